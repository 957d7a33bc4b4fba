//! A request and its builder.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_core::Stream;
use haul_policy::field_validation::{is_token, is_value};
use haul_policy::redirect::RedirectRules;
use haul_policy::secret_fields::without_userinfo;
use haul_policy::target::{Target, TargetError};

use super::multipart_form::MultipartForm;
use super::name_value_pairs::{self, NameValuePair};
use super::{RequestOptions, RequestOverrides, method};
use crate::body::request_trailers::Trailers;
use crate::body::upload::{LengthCheckedStream, RequestBody};
use crate::response::{Response, ResponseFuture};
use crate::state::cookie_jar::SharedCookieJar;
use crate::{Client, Error, ErrorKind, Result};

/// A request. It can be sent any number of times, unless its content can be read only once.
///
/// ```
/// let client = haul::Client::new();
/// let request = client.post("http://example.test/a").query([("q", "1 2")]).body("text").build()?;
/// assert_eq!((request.method(), request.target().path_and_query()), ("POST", "/a?q=1+2"));
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    /// The target of the request: the parsed URL.
    pub(crate) target: Target,
    /// The options that the request shares with other requests.
    pub(crate) options: Arc<RequestOptions>,
    /// The settings that apply to this request alone.
    pub(crate) own: RequestOverrides,
}

impl Request {
    /// Makes a request from its parts without copying them. Programs that send many requests can
    /// thus prepare the options once.
    #[must_use]
    pub fn new(target: Target, options: Arc<RequestOptions>, own: RequestOverrides) -> Self {
        Self { target, options, own }
    }

    /// Returns the time limit of each attempt to send the request; `None` if attempts are not
    /// limited.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.own.max_time.or(self.options.max_time)
    }

    /// Returns the target of the request: the parsed URL.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        self.own.method.as_deref().unwrap_or(&self.options.method)
    }

    /// Returns the options that the request shares with other requests.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.options
    }

    /// Returns the settings that apply to this request alone.
    #[must_use]
    pub fn overrides(&self) -> &RequestOverrides {
        &self.own
    }
}

/// A builder of requests. Invalid settings are reported only by [`build`](Self::build), and
/// therefore also by [`send`](Self::send).
///
/// ```
/// # let origin = testkit::origin::Origin::builder().start().unwrap();
/// # let url = origin.url("/status/204");
/// use std::time::Duration;
///
/// let client = haul::Client::new();
/// let response = client
///     .put(&url)
///     .header("Content-Type", "text/plain")
///     .basic_auth("me", "secret")
///     .timeout(Duration::from_secs(10))
///     .body("seven")
///     .send()?;
/// assert_eq!(response.status(), 204);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is sent before send"]
pub struct RequestBuilder {
    client: Client,
    url: RequestUrl,
    query: String,
    options: Arc<RequestOptions>,
    own: RequestOverrides,
    /// The media type of the content; `None` if no method of the builder has set it. The media type
    /// becomes the `Content-Type`, unless the program adds that field itself.
    content_type: Option<String>,
    /// The length that the program gave with the content; `None` if it gave none. The length
    /// becomes the `Content-Length`, unless the request has trailers, with which content is sent in
    /// chunks.
    content_length: Option<u64>,
    error: Option<Error>,
}

impl Clone for RequestBuilder {
    fn clone(&self) -> Self {
        let Self { client, url, query, options, own, content_type, content_length, error } = self;
        Self {
            client: client.clone(),
            url: url.clone(),
            query: query.clone(),
            options: Arc::clone(options),
            own: own.clone(),
            content_type: content_type.clone(),
            content_length: *content_length,
            error: error.as_ref().map(Error::duplicate),
        }
    }
}

/// The URL of a request: text that is not parsed yet, or a parsed target.
#[derive(Clone)]
enum RequestUrl {
    Text(String),
    Target(Target),
}

impl std::fmt::Debug for RequestUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(url) => without_userinfo(url).fmt(f),
            Self::Target(target) => target.fmt(f),
        }
    }
}

/// Formats the URL for error messages: one line, without userinfo.
impl std::fmt::Display for RequestUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(url) => without_userinfo(url).escape_debug().fmt(f),
            Self::Target(target) => target.to_url().fmt(f),
        }
    }
}

impl RequestBuilder {
    pub(crate) fn new(client: &Client, name: &str, url: &str) -> Self {
        Self::with_url(client, name, RequestUrl::Text(url.to_owned()))
    }

    pub(crate) fn with_target(client: &Client, name: &str, target: Target) -> Self {
        Self::with_url(client, name, RequestUrl::Target(target))
    }

    fn with_url(client: &Client, name: &str, url: RequestUrl) -> Self {
        let own = RequestOverrides { method: Some(method(name)), ..RequestOverrides::default() };
        let options = Arc::clone(client.options());
        Self {
            client: client.clone(),
            url,
            query: String::new(),
            options,
            own,
            content_type: None,
            content_length: None,
            error: None,
        }
    }

    /// Adds a header field to the request. All fields that are added with the same name are sent;
    /// they replace the fields with this name that the client's options or the engine would send.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = (name.as_ref(), value.as_ref());
        if let Err(error) = check_field(name, value) {
            self.error.get_or_insert(error);
        }
        self.own.fields.push((name.to_owned(), value.to_vec()));
        self
    }

    /// Adds several header fields. Each field is added as by [`header`](Self::header).
    pub fn headers<N: AsRef<str>, V: AsRef<[u8]>>(self, fields: impl IntoIterator<Item = (N, V)>) -> Self {
        fields.into_iter().fold(self, |builder, (name, value)| builder.header(name, value))
    }

    /// Appends name-value pairs to the query of the URL. They are encoded as in forms (a space
    /// becomes `+`).
    pub fn query<P: NameValuePair>(mut self, pairs: impl IntoIterator<Item = P>) -> Self {
        name_value_pairs::append_form_encoded(&mut self.query, pairs);
        self
    }

    /// Sets the content of the request: bytes, text, or a [`RequestBody`] made of files, readers
    /// and pieces.
    pub fn body(mut self, body: impl Into<RequestBody>) -> Self {
        self.own.body = Some(body.into());
        self.content_length = None;
        self
    }

    /// Sets content that is read from `reader` while it is sent. With `length`, haul sends a
    /// `Content-Length` and reads no more bytes than that. Without it, the content is sent in
    /// chunks (RFC 9112 section 7.1). The content can be sent only once: a redirect that keeps the
    /// content, or a retry, fails.
    ///
    /// Hazards: if the reader ends before `length` bytes, the request fails and its connection is
    /// closed. If several requests run at the same time, a separate thread reads; a reader that
    /// blocks for ever occupies that thread for ever.
    pub fn body_reader(self, reader: impl Read + Send + 'static, length: Option<u64>) -> Self {
        let Some(length) = length else { return self.body(RequestBody::reader(reader)) };
        // A thread that reads ahead may request more bytes than are to be sent.
        self.body(RequestBody::reader(reader.take(length))).with_content_length(length)
    }

    /// Sets content that comes from a stream while it is sent. With `length`, haul sends a
    /// `Content-Length`; without it, the content is sent in chunks. If the stream has more or fewer
    /// bytes than `length`, the request fails and its connection is closed. The content can be sent
    /// only once, as with [`body_reader`](Self::body_reader).
    ///
    /// With [`send_async`](Self::send_async), the task that awaits the response, and then its body,
    /// polls the stream. The stream may use that task's runtime, and makes no progress while the
    /// task does not await. With all other methods, the thread that sends the request polls the
    /// stream. In a batch, this thread also sends other requests, and has no runtime. The stream
    /// must not block.
    ///
    /// A server may send a successful response before the stream has ended. The body of that
    /// response ends only after the stream has ended, too.
    pub fn body_stream<S, B, E>(self, stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = std::result::Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match length {
            Some(length) => {
                let body = RequestBody::stream(LengthCheckedStream::new(stream, length));
                self.body(body).with_content_length(length)
            }
            None => self.body(RequestBody::stream(stream)),
        }
    }

    fn with_content_length(mut self, length: u64) -> Self {
        self.content_length = Some(length);
        self
    }

    /// Sets the trailer fields of the request. The content is then sent in chunks. The trailers are
    /// produced after the content has been sent; see [`Trailers`].
    pub fn trailers(mut self, trailers: Trailers) -> Self {
        self.own.trailers = Some(trailers);
        self
    }

    /// Sets an `application/x-www-form-urlencoded` form with these name-value pairs as the content.
    pub fn form<P: NameValuePair>(self, pairs: impl IntoIterator<Item = P>) -> Self {
        let mut text = String::new();
        name_value_pairs::append_form_encoded(&mut text, pairs);
        self.with_content_type("application/x-www-form-urlencoded").body(text.into_bytes())
    }

    /// Sets a `multipart/form-data` form (RFC 7578) as the content.
    pub fn multipart(mut self, form: MultipartForm) -> Self {
        match form.finish() {
            Ok((content_type, body)) => self.with_content_type(&content_type).body(body),
            Err(error) => {
                self.error.get_or_insert(error);
                self
            }
        }
    }

    /// Sets `value`, serialized as JSON, as the content. The `Content-Type` becomes
    /// `application/json`, unless the program adds that field itself.
    #[cfg(feature = "json")]
    pub fn json(mut self, value: &(impl serde::Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(value) {
            Ok(text) => self.json_text(text),
            Err(error) => {
                let error = Error::with_source(ErrorKind::Setup, "the value cannot be written as JSON", error);
                self.error.get_or_insert(error);
                self
            }
        }
    }

    /// Sets text that is already JSON as the content. The `Content-Type` becomes
    /// `application/json`, unless the program adds that field itself.
    pub fn json_text(self, text: impl Into<Vec<u8>>) -> Self {
        self.with_content_type("application/json").body(text.into())
    }

    /// Sets the media type that becomes the `Content-Type`, unless the program adds that field
    /// itself.
    fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// Adds `Authorization` with the Basic scheme (RFC 7617) to the first request, without waiting
    /// for a challenge. Replaces an earlier `Authorization`. The credentials are sent only to the
    /// origin of this request. [`RequestOptions::auth`] can answer challenges instead.
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        self.with_authorization(basic_authorization(user.as_bytes(), password.as_bytes()))
    }

    /// Adds `Authorization` with a bearer token (RFC 6750), which is sent only to the origin of
    /// this request. Replaces an earlier `Authorization`.
    pub fn bearer(self, token: &str) -> Self {
        self.with_authorization(format!("Bearer {token}"))
    }

    fn with_authorization(mut self, value: impl AsRef<[u8]>) -> Self {
        self.own.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        self.header("Authorization", value)
    }

    /// Sets the time limit for each attempt to send the request and receive the response with its
    /// body. With [`send_async`](Self::send_async), the limit includes the time in the queue before
    /// the request starts.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.own.max_time = Some(limit);
        self
    }

    /// Sets the maximum time for which the server may send no byte. Default: no limit.
    pub fn read_timeout(self, limit: Duration) -> Self {
        self.options(|options| options.read_timeout = Some(limit))
    }

    /// Sets whether redirects are followed.
    pub fn follow(self, follow: bool) -> Self {
        self.options(|options| options.redirects.follow = follow)
    }

    /// Sets the rules for following redirects.
    pub fn redirects(self, rules: RedirectRules) -> Self {
        self.options(|options| options.redirects = rules)
    }

    /// Sets whether haul requests compressed content and delivers it decoded
    /// ([`RequestOptions::decode`]).
    pub fn decode(self, decode: bool) -> Self {
        self.options(|options| options.decode = decode)
    }

    /// Sets the cookie jar, in which cookies are stored and from which they are sent.
    pub fn jar(self, jar: SharedCookieJar) -> Self {
        self.options(|options| options.jar = Some(jar))
    }

    /// Calls `change`, which modifies the options of this request. This copies the client's
    /// options. For many requests with the same options, build a client with them.
    pub fn options(mut self, change: impl FnOnce(&mut RequestOptions)) -> Self {
        change(Arc::make_mut(&mut self.options));
        self
    }

    /// Builds the request.
    ///
    /// # Errors
    /// [`ErrorKind::Url`] for a malformed URL, [`ErrorKind::UnsupportedScheme`] for a scheme other
    /// than http and https, or the error of an invalid form or value.
    pub fn build(self) -> Result<Request> {
        self.into_client_and_request().1
    }

    /// Sends the request and waits for the head of the final response.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build) and [`Client::send`].
    pub fn send(self) -> Result<Response> {
        let (client, request) = self.into_client_and_request();
        client.send(request?)
    }

    /// Returns a future that sends the request when the future is first polled, and resolves to the
    /// response when the response's head has arrived ([`Client::send_async`]).
    pub fn send_async(self) -> ResponseFuture {
        let (client, request) = self.into_client_and_request();
        ResponseFuture::new(&client, request)
    }

    fn into_client_and_request(self) -> (Client, Result<Request>) {
        let Self { client, url, query, options, mut own, content_type, content_length, error } = self;
        if let Some(error) = error {
            return (client, Err(error.with_url(url.to_string())));
        }
        if let Some(content_type) = content_type
            && !own.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            own.fields.push(("Content-Type".to_owned(), content_type.into_bytes()));
        }
        if let Some(length) = content_length.filter(|_| own.trailers.is_none()) {
            own.fields.push(("Content-Length".to_owned(), length.to_string().into_bytes()));
        }
        let target = match url {
            RequestUrl::Target(target) if query.is_empty() => Ok(target),
            RequestUrl::Target(target) => {
                let both = with_query(&target.query().map_or_else(String::new, |old| format!("?{old}")), &query);
                target.join(&both).map_err(unusable_url_error)
            }
            RequestUrl::Text(url) if query.is_empty() => parse_target(&client, url, &options),
            RequestUrl::Text(url) => parse_target(&client, with_query(&url, &query), &options),
        };
        (client, target.map(|target| Request { target, options, own }))
    }
}

fn parse_target(client: &Client, url: String, options: &RequestOptions) -> Result<Target> {
    let parsed = client.target(&url, options.path_as_is);
    parsed.map_err(|error| unusable_url_error(error).with_url(RequestUrl::Text(url).to_string()))
}

/// Returns an error if this header field cannot be sent. The builder checks each field, so that no
/// connection is made for a request that cannot be sent. Such a connection would block a server
/// that serves only one connection at a time.
fn check_field(name: &str, value: &[u8]) -> Result<()> {
    let cause = match (is_token(name.as_bytes()), is_value(value)) {
        (false, _) => "its name is not a token",
        (_, false) => "its value has CR, LF or NUL in it",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Setup, format!("the request cannot be sent for its header {name:?}: {cause}")))
}

fn unusable_url_error(error: TargetError) -> Error {
    let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
    Error::with_source(kind, "the URL cannot be used", error)
}

fn with_query(url: &str, query: &str) -> String {
    let (url, fragment) = url.split_once('#').map_or((url, None), |(url, fragment)| (url, Some(fragment)));
    let joint = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some((_, before)) if before.ends_with('&') => "",
        Some(_) => "&",
    };
    let mut whole = [url, joint, query].concat();
    if let Some(fragment) = fragment {
        whole.push('#');
        whole.push_str(fragment);
    }
    whole
}

/// Returns the value of `Authorization` for this user and password in the Basic scheme (RFC 7617).
#[must_use]
pub fn basic_authorization(user: &[u8], password: &[u8]) -> Vec<u8> {
    let pair = [user, b":", password].concat();
    format!("Basic {}", STANDARD.encode(pair)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_pairs_are_added_before_the_fragment() {
        for (url, whole) in [
            ("http://h/a", "http://h/a?x=1"),
            ("http://h/a?", "http://h/a?x=1"),
            ("http://h/a?b=c", "http://h/a?b=c&x=1"),
            ("http://h/a?b&", "http://h/a?b&x=1"),
            ("http://h/a#f?g", "http://h/a?x=1#f?g"),
        ] {
            assert_eq!(with_query(url, "x=1"), whole);
        }
    }

    #[test]
    fn builder_accepts_common_string_types() {
        use std::borrow::Cow;

        let client = Client::builder().header(String::from("X-Client"), "1").build();
        let (name, value, bytes) = (String::from("X-Own"), String::from("2"), vec![1, 2]);
        let get = || client.get("http://h/").header(&name, &value).header(Cow::from("X-Bytes"), b"\xff");
        let request = get().headers([(&name, &value)]).body(&bytes).build().unwrap();
        assert_eq!(client.options().fields, [("X-Client".to_owned(), b"1".to_vec())]);
        let fields = &request.overrides().fields;
        assert!(fields[0] == fields[2] && fields[1] == ("X-Bytes".to_owned(), vec![0xff]));
        for body in [
            RequestBody::from(Cow::from("text")),
            RequestBody::from(Cow::from(&b"text"[..])),
            RequestBody::from(Box::from(*b"text")),
        ] {
            assert_eq!(
                get().body(body).build().unwrap().overrides().body.as_ref().unwrap().bytes(),
                Some(&b"text"[..])
            );
        }
    }

    #[test]
    fn builder_reports_invalid_urls_when_built() {
        let client = Client::new();
        assert_eq!(client.get("ftp://h/").build().unwrap_err().kind(), ErrorKind::UnsupportedScheme);
        assert_eq!(client.get("http://h:x/").build().unwrap_err().kind(), ErrorKind::Url);
        let request = client.get("http://h/").follow(false).build().unwrap();
        assert!(!request.options().redirects.follow && client.options().redirects.follow);
    }
}
