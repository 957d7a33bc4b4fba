//! Chooses the origin's reply for each path. The documentation of the parent module has the table
//! of routes.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use flate2::Crc;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Version};
use serde_json::json;

use super::OriginState;
use super::body::{ReplyBody, RouteBodySource};
use super::entity::{Entity, EntityContent};
use super::paged_api;
use super::request_log::LoggedRequest;
use crate::byte_pattern;
use crate::content_coding::{self, ContentCoding};
use crate::dns_server::ReceivedQuery;

/// The longest request body that the origin accepts, in bytes.
const BODY_LIMIT: usize = 1 << 30;
/// The maximum length in bytes of a text that a path may request. A limit is needed, since the text
/// is generated in memory.
const TEXT_LIMIT: u64 = 1 << 28;
const BOMB_LIMIT: u64 = 1 << 20;

/// The number of interim responses with status 103 (Early Hints) that precede a reply.
#[derive(Clone, Copy)]
pub(super) struct EarlyHintsCount(pub(super) u64);

/// The parts of a request that the origin's routes need.
pub(super) struct RouteRequest {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    trailers: HeaderMap,
    connection: u64,
    tls: bool,
}

pub(super) async fn reply<B>(
    state: &OriginState,
    connection: u64,
    tls: bool,
    request: Request<B>,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let (parts, body) = request.into_parts();
    let _answering = state.record.request(parts.uri.path());
    if let Some(code) = parts.uri.path().strip_prefix("/early/") {
        return status_reply(code.parse().ok());
    }
    if parts.uri.path() == "/discard" {
        return discard(body).await;
    }
    // A request whose body was cut off is logged with an empty one.
    let (body, trailers) = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => {
            let trailers = whole.trailers().cloned().unwrap_or_default();
            (whole.to_bytes(), trailers)
        }
        Err(_) => return plain(StatusCode::BAD_REQUEST, "the body did not arrive\n"),
    };
    let asked = RouteRequest { parts, body, trailers, connection, tls };
    if state.record.keeps_log() {
        state.record.add(LoggedRequest {
            connection,
            tls,
            version: format!("{:?}", asked.parts.version),
            method: asked.parts.method.to_string(),
            target: asked.parts.uri.to_string(),
            headers: fields(&asked.parts.headers),
            body: asked.body.clone(),
            trailers: fields(&asked.trailers),
        });
    }
    let path = asked.parts.uri.path().to_owned();
    // `*` and the authority of a CONNECT are not paths.
    if !path.starts_with('/') {
        return plain(StatusCode::NOT_FOUND, "no such page\n");
    }
    let mut rest = path.as_str();
    let mut hints = 0;
    let final_reply = |rest: &str, route: &str, argument: &str, hints: u64| {
        let mut reply = direct(state, &asked, rest, route, argument);
        reply.extensions_mut().insert(EarlyHintsCount(hints));
        reply
    };
    loop {
        if let Some(inner) = rest.strip_prefix("/private/") {
            if let Some(refusal) = paged_api::refusal(&asked) {
                return refusal;
            }
            rest = &rest[rest.len() - inner.len() - 1..];
            continue;
        }
        let (route, argument) = rest[1..].split_once('/').unwrap_or((&rest[1..], ""));
        let (number, tail) = argument.split_once('/').map_or((argument, None), |(n, t)| (n, Some(t)));
        let (Ok(count), Some(tail)) = (number.parse::<u64>(), tail) else {
            return final_reply(rest, route, argument, hints);
        };
        match route {
            "delay" => tokio::time::sleep(Duration::from_millis(count)).await,
            "hints" => hints += count,
            "flaky" if state.record.attempt(&path) < count => {
                return plain(StatusCode::SERVICE_UNAVAILABLE, "not yet\n");
            }
            "retry-after" if state.record.attempt(&path) == 0 => {
                let mut reply = plain(StatusCode::SERVICE_UNAVAILABLE, "not yet\n");
                reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(count));
                return reply;
            }
            "limited" if state.record.attempt(&asked.parts.uri.to_string()) == 0 => {
                let mut reply = plain(StatusCode::TOO_MANY_REQUESTS, "slow down\n");
                reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(count));
                return reply;
            }
            "flaky" | "retry-after" | "limited" => {}
            _ => return final_reply(rest, route, argument, hints),
        }
        // The tail with the slash before it.
        rest = &rest[rest.len() - tail.len() - 1..];
    }
}

/// Reads the content of a request to its end without keeping it, and replies with its length and
/// checksum.
async fn discard<B>(body: B) -> Response<ReplyBody>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut body = std::pin::pin!(body);
    let (mut length, mut checksum) = (0, Crc::new());
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return plain(StatusCode::BAD_REQUEST, "the body did not arrive\n") };
        if let Some(data) = frame.data_ref() {
            length += data.len();
            checksum.update(data);
        }
    }
    plain(StatusCode::OK, format!("{length} {:08x}\n", checksum.sum()))
}

/// Returns the reply of a route that answers without waiting. `route` is the first segment of the
/// path, and `argument` the path after it.
fn direct(state: &OriginState, asked: &RouteRequest, path: &str, route: &str, argument: &str) -> Response<ReplyBody> {
    let number = argument.parse::<u64>().ok();
    let coded = route.parse::<ContentCoding>().ok();
    match (route, number) {
        ("api", _) => {
            paged_api::listing(asked, argument).unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "no such listing\n"))
        }
        ("login", _) => paged_api::login(asked),
        ("echo", _) => echo(asked),
        ("dns-query", _) => dns_query(state, asked),
        ("small", _) if argument.is_empty() => plain(StatusCode::OK, "small\n"),
        ("small", Some(n)) => plain(StatusCode::OK, format!("small {n}\n")),
        ("bytes" | "weak", Some(n)) => {
            let strength = if route == "weak" { "W/" } else { "" };
            let etag = format!("{strength}\"{}-{n}\"", state.site.seed());
            let entity = Entity {
                content: EntityContent::Pattern(state.pattern, n),
                etag,
                media_type: "application/octet-stream",
            };
            entity.reply(&asked.parts.headers)
        }
        ("chunked", Some(n)) => {
            let trailers =
                asked.query("trailer").map(|_| HeaderMap::from_iter([("x-total".parse().expect("a name"), n.into())]));
            let declared = trailers.is_some();
            let source = RouteBodySource::Pattern { pattern: state.pattern, from: 0, to: n };
            let mut reply = Response::new(ReplyBody::without_length(source, trailers));
            if declared {
                reply.headers_mut().insert(header::TRAILER, HeaderValue::from_static("x-total"));
            }
            reply
        }
        ("close", Some(n)) => {
            let source = RouteBodySource::Pattern { pattern: state.pattern, from: 0, to: n };
            let mut reply = Response::new(ReplyBody::without_length(source, None));
            *reply.version_mut() = Version::HTTP_10;
            reply
        }
        ("text", Some(n)) if n <= TEXT_LIMIT => {
            let etag = format!("\"text-{}-{n}\"", state.site.seed());
            negotiated(
                asked,
                "auto",
                byte_pattern::compressible_text(state.site.seed(), n as usize).into(),
                etag,
                "text/plain",
            )
        }
        (_, Some(n)) if coded.is_some() && n <= TEXT_LIMIT => {
            let text = byte_pattern::compressible_text(state.site.seed(), n as usize);
            encoded(&text, coded.as_slice(), None, "text/plain")
        }
        ("bomb", Some(mib)) if mib <= BOMB_LIMIT => {
            let mut reply =
                Response::new(ReplyBody::with_length(RouteBodySource::Pieces(content_coding::bomb(mib).into())));
            reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            reply
        }
        ("status", code) => status_reply(code),
        ("redirect", Some(code)) => redirect(code, asked.query("to").as_deref()),
        ("chain", Some(0)) => plain(StatusCode::OK, "end of chain\n"),
        ("chain", Some(n)) => redirect(302, Some(&format!("/chain/{}", n - 1))),
        _ => match state.site.page(path) {
            Some(page) => {
                let etag = format!("\"{}{path}\"", state.site.seed());
                negotiated(asked, "identity", page, etag, "text/html; charset=utf-8")
            }
            None => plain(StatusCode::NOT_FOUND, "no such page\n"),
        },
    }
}

/// Answers a DNS query over HTTPS (RFC 8484).
fn dns_query(state: &OriginState, asked: &RouteRequest) -> Response<ReplyBody> {
    const MEDIA_TYPE: &str = "application/dns-message";
    if asked.parts.headers.get(header::CONTENT_TYPE).is_none_or(|value| value != MEDIA_TYPE) {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "no DNS message\n");
    }
    let query = ReceivedQuery::parse(&asked.body, true, ([127, 0, 0, 1], 0).into());
    let answer = query.and_then(|query| state.dns.as_ref()?(&query).into_iter().next());
    let Some(answer) = answer else { return plain(StatusCode::NOT_FOUND, "no such name server\n") };
    let mut reply = Response::new(ReplyBody::with_length(RouteBodySource::single_piece(answer.message)));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    reply
}

/// Returns a reply whose content is encoded according to the query parameter `enc`. `auto` selects
/// by Accept-Encoding, `identity` means no coding, and a list contains the codings in the order in
/// which they are applied.
fn negotiated(
    asked: &RouteRequest,
    default: &str,
    content: Bytes,
    etag: String,
    media_type: &'static str,
) -> Response<ReplyBody> {
    let choice = asked.query("enc").unwrap_or_else(|| default.to_owned());
    let codings = match choice.as_str() {
        "identity" => Ok(Vec::new()),
        "auto" => {
            let accepted = asked.parts.headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok());
            Ok(accepted.and_then(ContentCoding::negotiate).into_iter().collect())
        }
        named => named.split(',').map(str::parse).collect::<Result<Vec<ContentCoding>, _>>(),
    };
    match codings {
        Err(_) => plain(StatusCode::BAD_REQUEST, "no such coding\n"),
        Ok(codings) if codings.is_empty() => {
            Entity { content: EntityContent::Bytes(content), etag, media_type }.reply(&asked.parts.headers)
        }
        Ok(codings) => encoded(&content, &codings, Some(&etag), media_type),
    }
}

fn encoded(
    plain: &[u8],
    codings: &[ContentCoding],
    etag: Option<&str>,
    media_type: &'static str,
) -> Response<ReplyBody> {
    let coded = codings.iter().fold(plain.to_vec(), |bytes, coding| coding.encode(&bytes));
    let tokens: Vec<&str> = codings.iter().map(|coding| coding.token()).collect();
    let tokens = tokens.join(", ");
    let mut reply = Response::builder()
        .header(header::CONTENT_ENCODING, &tokens)
        .header(header::CONTENT_TYPE, media_type)
        .header(header::CONTENT_LENGTH, coded.len())
        .header(header::VARY, "Accept-Encoding");
    if let Some(etag) = etag {
        // Another representation has another validator (RFC 9110 section 8.8.3.3).
        reply = reply.header(header::ETAG, format!("{}-{tokens}\"", etag.trim_end_matches('"')));
    }
    reply
        .body(ReplyBody::with_length(RouteBodySource::single_piece(coded)))
        .expect("fields that are valid by construction")
}

/// Returns a reply with the status `code`, or with 400 if `code` is `None` or not a final status.
fn status_reply(code: Option<u64>) -> Response<ReplyBody> {
    let code = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    match StatusCode::from_u16(code) {
        Ok(status) if matches!(code, 204 | 205 | 304) => plain(status, ""),
        Ok(status) if code >= 200 => plain(status, format!("{status}\n")),
        _ => plain(StatusCode::BAD_REQUEST, "no final status\n"),
    }
}

fn redirect(code: u64, to: Option<&str>) -> Response<ReplyBody> {
    let status = u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let location = to.and_then(|to| HeaderValue::from_bytes(to.as_bytes()).ok());
    match (status, location) {
        (Some(status), Some(location)) if status.as_u16() >= 200 => {
            let mut reply = plain(status, "elsewhere\n");
            reply.headers_mut().insert(header::LOCATION, location);
            reply
        }
        _ => plain(StatusCode::BAD_REQUEST, "a redirect is /redirect/CODE?to=URL\n"),
    }
}

fn echo(asked: &RouteRequest) -> Response<ReplyBody> {
    let text = json!({
        "method": asked.parts.method.as_str(),
        "target": asked.parts.uri.to_string(),
        "version": format!("{:?}", asked.parts.version),
        "headers": fields(&asked.parts.headers),
        "body": String::from_utf8_lossy(&asked.body),
        "body_len": asked.body.len(),
        "connection": asked.connection,
        "tls": asked.tls,
    });
    let mut reply = plain(StatusCode::OK, format!("{text}\n"));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut reply = Response::new(ReplyBody::with_length(RouteBodySource::single_piece(text)));
    *reply.status_mut() = status;
    reply
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

impl RouteRequest {
    /// Returns the percent-decoded value of the query parameter `name`; `None` if it is missing.
    /// The value of `to` extends to the end of the query, so that a URL in it may contain an
    /// unencoded `&`.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let mut query = self.parts.uri.query()?;
        loop {
            let (pair, rest) = query.split_once('&').unwrap_or((query, ""));
            match pair.split_once('=') {
                Some(("to", _)) if name == "to" => return Some(percent_decoded(&query[3..])),
                Some((key, value)) if key == name => return Some(percent_decoded(value)),
                _ if rest.is_empty() => return None,
                _ => query = rest,
            }
        }
    }
}

/// Percent-decodes a text. Invalid escapes stay unchanged; bytes that are not UTF-8 are replaced.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
