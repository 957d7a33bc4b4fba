//! A JSON API with pages, like public APIs: a listing of items with each common kind of pagination,
//! routes that require a login, and routes with a limit on requests.
//!
//! | route | reply |
//! |---|---|
//! | `/api/link` | an array of items; `Link` fields with `next`, `prev`, `first` and `last` |
//! | `/api/next` | `{"items": [...], "next": URL or null}` |
//! | `/api/cursor` | `{"items": [...], "next_cursor": TEXT}`, which is the query parameter `cursor` of the next request; empty at the end |
//! | `/api/more` | `{"items": [...], "has_more": true or false}`; `page` selects the page |
//! | `/api/page` | an array, empty beyond the last page; with `missing=1`, 404 there |
//! | `/api/offset` | an array, empty beyond the last item; `offset` selects the first item |
//! | `/api/html` | a page of links with `<a rel="next">` |
//! | `/api/loop` | as `/api/link`, but the last page links to the second page as its next page |
//! | `/login` | GET: a form with a token against request forgery, and a cookie; POST of both with `user=me` and `password=secret`: a session cookie |
//! | `/private/REST` | as `/REST`, for Basic `me:secret`, Bearer `secret`, or the session cookie; else 401 |
//! | `/limited/SECS/REST` | the first request for each URL gets 429 with Retry-After; the others as `/REST` |
//!
//! The query parameters `total` (25) and `size` (10) set the number of items in total, and on one
//! page. `page` is the number of the page, from 1; `offset` is the index of the first item, from 0.

use hyper::header::{self, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::body::ReplyBody;
use super::routes::{RouteRequest, percent_decoded, plain};

/// The maximum number of items in a listing, and on one page of a listing.
const MAX_ITEMS: u64 = 1_000_000;
/// The token against request forgery. The form and the cookie of a login must contain it.
const FORM_TOKEN: &str = "f7+3b/9=";
const SESSION: &str = "session=k4d8";

/// The part of a listing that a request selects.
struct ListingPage {
    total: u64,
    size: u64,
    /// The index of the first item on the page. The items of a listing are counted from 0.
    from: u64,
}

impl ListingPage {
    fn from_request(asked: &RouteRequest) -> ListingPage {
        let number = |name: &str, default: u64| asked.query(name).and_then(|text| text.parse().ok()).unwrap_or(default);
        let size = number("size", 10).clamp(1, MAX_ITEMS);
        let total = number("total", 25).min(MAX_ITEMS);
        let before = (number("page", 1).max(1) - 1).saturating_mul(size);
        let cursor =
            asked.query("cursor").and_then(|cursor| cursor.strip_prefix("after=")?.strip_suffix("&+/")?.parse().ok());
        ListingPage { total, size, from: cursor.unwrap_or_else(|| number("offset", before)) }
    }

    fn end_item(&self) -> u64 {
        self.from.saturating_add(self.size).min(self.total)
    }

    fn has_next(&self) -> bool {
        self.end_item() < self.total
    }

    fn page(&self) -> u64 {
        self.from / self.size + 1
    }

    fn last_page(&self) -> u64 {
        self.total.div_ceil(self.size).max(1)
    }

    fn items(&self) -> Vec<Value> {
        (self.from..self.end_item()).map(|id| json!({"id": id, "name": format!("item {id}")})).collect()
    }
}

/// Returns the reply of the route `/api/KIND`, one page of a listing in the format that `kind`
/// names; `None` if there is no such route.
pub(super) fn listing(asked: &RouteRequest, kind: &str) -> Option<Response<ReplyBody>> {
    let page = ListingPage::from_request(asked);
    let other = |number: u64| with_page(asked, number);
    let next = page.has_next().then(|| other(page.page() + 1));
    Some(match kind {
        "link" | "loop" => {
            let next = next.or_else(|| (kind == "loop").then(|| other(2)));
            let previous = (page.from > 0).then(|| other(page.page() - 1));
            let mut links = vec![(Some(other(1)), "first"), (previous, "prev"), (next, "next")];
            links.push((Some(other(page.last_page())), "last"));
            let mut reply = array(&page);
            let text = |(target, relation): (Option<String>, _)| Some(format!("<{}>; rel=\"{relation}\"", target?));
            let field = links.into_iter().filter_map(text).collect::<Vec<_>>().join(", ");
            reply.headers_mut().insert(header::LINK, HeaderValue::from_str(&field).expect("an encoded URL"));
            reply
        }
        "next" => json_reply(&json!({"items": page.items(), "next": next})),
        "cursor" => {
            let cursor = page.has_next().then(|| format!("after={}&+/", page.end_item()));
            json_reply(&json!({"items": page.items(), "next_cursor": cursor.unwrap_or_default()}))
        }
        "more" => json_reply(&json!({"items": page.items(), "has_more": page.has_next()})),
        "page" | "offset" if page.from >= page.total && asked.query("missing").is_some() => {
            plain(StatusCode::NOT_FOUND, "{\"error\": \"no such page\"}\n")
        }
        "page" | "offset" => array(&page),
        "html" => {
            let item = |id: u64| format!("<li><a class=\"title\" href=\"/small/{id}\">item {id}</a>\n");
            let items: String = (page.from..page.end_item()).map(item).collect();
            let link =
                |next: String| format!("<a rel=\"nofollow next\" href=\"{}\">next</a>\n", next.replace('&', "&amp;"));
            let next = next.map(link).unwrap_or_default();
            let text = format!("<!DOCTYPE html><title>page {}</title><ul>\n{items}</ul>\n{next}", page.page());
            let mut reply = plain(StatusCode::OK, text);
            let media_type = HeaderValue::from_static("text/html; charset=utf-8");
            reply.headers_mut().insert(header::CONTENT_TYPE, media_type);
            reply
        }
        _ => return None,
    })
}

/// Returns the path and query of the request, with the page number in the query replaced by
/// `number`.
fn with_page(asked: &RouteRequest, number: u64) -> String {
    let others = asked.parts.uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
    let others = others.filter(|part| !part.starts_with("page="));
    let query: Vec<_> = others.map(str::to_owned).chain([format!("page={number}")]).collect();
    format!("{}?{}", asked.parts.uri.path(), query.join("&"))
}

fn array(page: &ListingPage) -> Response<ReplyBody> {
    json_reply(&Value::Array(page.items()))
}

fn json_reply(value: &Value) -> Response<ReplyBody> {
    let mut reply = plain(StatusCode::OK, format!("{value}\n"));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Returns the 401 reply if the request has no valid credentials; `None` if they are valid.
pub(super) fn refusal(asked: &RouteRequest) -> Option<Response<ReplyBody>> {
    let of = |name| asked.parts.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    // The user me with the password secret.
    let is_known = of(header::AUTHORIZATION).any(|value| matches!(value, "Basic bWU6c2VjcmV0" | "Bearer secret"));
    let has_session = of(header::COOKIE).any(|value| value.split("; ").any(|cookie| cookie == SESSION));
    if is_known || has_session {
        return None;
    }
    let mut reply = plain(StatusCode::UNAUTHORIZED, "who are you?\n");
    reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"api\""));
    Some(reply)
}

/// Returns the reply of `/login`: the form, or the result of submitting the form.
pub(super) fn login(asked: &RouteRequest) -> Response<ReplyBody> {
    let form_cookie = format!("form={}", FORM_TOKEN.replace(['+', '/', '='], "_"));
    if asked.parts.method != Method::POST {
        let text = format!(
            "<!DOCTYPE html><title>Log in</title>\n<form method=\"post\"><input type=\"hidden\" name=\"csrf\" \
             value=\"{FORM_TOKEN}\"><input name=\"user\"><input name=\"password\" type=\"password\"></form>\n"
        );
        let mut reply = plain(StatusCode::OK, text);
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
        headers.insert(header::SET_COOKIE, HeaderValue::from_str(&form_cookie).expect("a cookie"));
        return reply;
    }
    let body = String::from_utf8_lossy(&asked.body);
    let sent = |name: &str| {
        let value = body.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| percent_decoded(&value.replace('+', " ")))
    };
    let cookies = asked.parts.headers.get(header::COOKIE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_ours =
        sent("csrf").as_deref() == Some(FORM_TOKEN) && cookies.split("; ").any(|cookie| cookie == form_cookie);
    let is_known = sent("user").as_deref() == Some("me") && sent("password").as_deref() == Some("secret");
    if !is_ours || !is_known {
        return plain(StatusCode::FORBIDDEN, "no entry\n");
    }
    let mut reply = plain(StatusCode::OK, "welcome\n");
    reply.headers_mut().insert(header::SET_COOKIE, HeaderValue::from_static(SESSION));
    reply
}
