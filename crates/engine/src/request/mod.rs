//! The settings of a request: [`RequestOptions`], which many requests can share, and
//! [`RequestOverrides`] for a single request. A [`RequestBuilder`] combines them.
//!
//! ```
//! use haul::RequestOptions;
//! let mut options = RequestOptions::default();
//! options.method = "POST".into();
//! options.body = Some(b"name=value".as_slice().into());
//! options.fields.push(("Content-Type".into(), b"application/x-www-form-urlencoded".to_vec()));
//! ```

mod builder;
mod connection_key;
mod curl_compat;
mod debug;
mod multipart_form;
mod name_value_pairs;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use haul_policy::redirect::SecretHandling;
use haul_policy::secret_fields::may_send;

pub use haul_policy::multipart::{FormPart, FormPartContent};
pub use haul_policy::range::validator::Validator;
pub use haul_policy::redirect::RedirectRules;
pub use haul_policy::retry::RetryRules;
pub use haul_proto::h1::H1Deviations;

pub use crate::transfer::TotalRateLimit;
pub use builder::{Request, RequestBuilder, basic_authorization};
pub use curl_compat::CurlCompat;
pub use multipart_form::MultipartForm;
pub use name_value_pairs::NameValuePair;

pub use haul_policy::http3::Http3Policy;

use crate::ResponseHead;
use crate::body::DecodeLimits;
use crate::body::request_trailers::Trailers;
use crate::body::upload::RequestBody;
use crate::exchange_record::ExchangeRecorder;
use crate::interrupt_callback::InterruptCallback;
use crate::net::dns::AddressFamily;
use crate::net::happy_eyeballs::ConnectOptions;
use crate::net::proxy::ProxyOptions;
use crate::net::tls::TlsOptions;
use crate::state::alt_svc::AltSvcCache;
use crate::state::auth::AuthOptions;
use crate::state::cookie_jar::SharedCookieJar;
use crate::state::hsts::HstsCache;
use crate::state::http3::Http3Cache;
use crate::trace::TransferObserver;

/// A filter that decides from the head of a response whether its content is delivered. Programs set
/// it in [`RequestOptions::wants`].
pub trait ResponseHeadPredicate: Send + Sync {
    /// Returns true if the content of the response with this head must be delivered.
    fn wants(&self, head: &ResponseHead) -> bool;
}

/// An observer that is notified of the pauses before retries. Programs set it in
/// [`RequestOptions::pauses`].
pub trait RetryObserver: Send + Sync {
    /// Reports that a pause before a retry begins.
    fn begins(&self, pause: &RetryPause<'_>);
}

/// A pause before a retry of a transfer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RetryPause<'a> {
    /// The URL of the transfer.
    pub url: &'a str,
    /// The time from now until the retry.
    pub wait: Duration,
    /// The description of the failure that caused the retry.
    pub cause: &'a str,
    /// The number of the retry, counted from 1. It is 0 for the repetition of a request that the
    /// server did not process, because that does not count as a retry.
    pub retry: u32,
    /// The maximum number of retries.
    pub most: u32,
}

/// All settings of a request except its target. `Debug` shows names and lengths, but no field
/// values and no content.
#[derive(Clone)]
pub struct RequestOptions {
    /// The request method (RFC 9110 section 9). Default `GET`.
    pub method: String,
    /// The header fields to send, as names and values. They replace the fields with the same names
    /// that the engine would send. Default: none.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The names of the header fields that haul must not add by itself. Default: none.
    pub without: Vec<String>,
    /// The value of `User-Agent`; `None` sends none. Default: `haul/VERSION`.
    pub user_agent: Option<Vec<u8>>,
    /// The value of `Authorization`. It is sent only to the origin of the first target, where it
    /// takes precedence over [`auth`](Self::auth). Default: none.
    pub authorization: Option<Vec<u8>>,
    /// The credentials and the settings for authentication to servers. Default: the user and
    /// password in the target's URL, sent with the Basic scheme.
    pub auth: AuthOptions,
    /// Cookies to send in the `Cookie` field after the cookies of the jar, such as `a=1; b=2`. They
    /// are sent only to the origin of the first target. Default: none.
    pub cookie: Option<Vec<u8>>,
    /// The cookie jar, in which cookies are stored and from which they are sent. Default: none.
    pub jar: Option<SharedCookieJar>,
    /// The cache of hosts that must be reached over TLS (RFC 6797), also after redirects. A
    /// response adds its host only if the server's certificate was verified. Default: none.
    pub hsts: Option<HstsCache>,
    /// The cache that stores Alt-Svc fields and provides alternative services (RFC 7838). Default:
    /// none.
    pub alt_svc: Option<AltSvcCache>,
    /// The value of the `Referer` field. Default: the field is not sent.
    pub referer: Option<Vec<u8>>,
    /// The value of `Range` without its unit, such as `0-99` (RFC 9110 section 14.1.2). Default:
    /// none.
    pub range: Option<String>,
    /// The content to send. With a known length it is sent with `Content-Length`, otherwise in
    /// chunks. A redirect that changes the method drops the content. Default: no content.
    pub body: Option<RequestBody>,
    /// The `Content-Type` of the content. It is sent only if there is content. Default: none.
    pub content_type: Option<String>,
    /// The `Content-Range` of the request's content, such as `50-99/100` (RFC 9110 section 14.5).
    /// It tells the server that the content is only a part of what the server will store. Use this
    /// only for servers that are known to support partial uploads. Default: none.
    pub content_range: Option<String>,
    /// The time for which content of more than 1 MiB or of unknown length waits for the server's
    /// 100 (Continue). The request then has the field `Expect: 100-continue`. Default 1 s; with
    /// zero, the field is not sent and the content does not wait.
    pub expect_timeout: Duration,
    /// True to request compressed content and decode it. Default: false.
    ///
    /// Compressed content is not requested for a part ([`range`](Self::range),
    /// [`resume_from`](Self::resume_from) or a `Range` field). Content that cannot be decoded
    /// ([`is_decodable`](crate::body::is_decodable)) is delivered as received, with its
    /// `Content-Encoding`.
    pub decode: bool,
    /// The limits for decoding compressed content, which protect against decompression bombs.
    /// Default: [`DecodeLimits::default`].
    pub decode_limits: DecodeLimits,
    /// True to deliver the heads of redirects, and the head of the final response, before the body.
    /// The heads of redirects are delivered up to 1 MiB in total. Default: false.
    pub include_head: bool,
    /// True to replace control characters and bidirectional formatting characters in delivered
    /// heads by `?`, for terminals. It has an effect only with
    /// [`include_head`](Self::include_head). Default: false.
    pub escape_head: bool,
    /// True to receive only the head of the response, regardless of the method: the body is neither
    /// delivered nor read. HEAD requests do not need this option. Default: false.
    pub head_only: bool,
    /// True to fail if the status is 400 or above, and deliver no body. Also fails if the response
    /// is a part (206) although no range was requested. Default: false.
    pub fail: bool,
    /// True to deliver the body of a response with a status of 400 or above before the request
    /// fails. It has an effect only with [`fail`](Self::fail). Default: false.
    pub fail_with_body: bool,
    /// The rules for following redirects. Default: no redirect is followed.
    pub redirects: RedirectRules,
    /// The rules for retries. Default: no retries.
    pub retry: RetryRules,
    /// True to make a retry continue at the byte where the last attempt broke off, with a range
    /// request. False to make a retry start from the beginning. Default: true.
    pub resume: bool,
    /// The request-target to send instead of the target's path and query, such as `*` for OPTIONS
    /// (RFC 9112 section 3.2). A proxy that forwards the request receives it unchanged. Default:
    /// `None`, the path and query are sent.
    pub request_target: Option<String>,
    /// The behaviours of curl to use instead of the engine's own. Each can be turned on separately.
    /// Default: none.
    pub curl_compat: CurlCompat,
    /// The permitted deviations from HTTP/1.1 in requests and responses. A connection carries only
    /// requests that permit the same deviations. Default: none.
    pub deviations: H1Deviations,
    /// The time limit for each attempt, including its body. Default: none.
    pub max_time: Option<Duration>,
    /// The time limit for the whole transfer: name lookups, redirects, retries and the pauses
    /// between them. A retry that would begin after this time is not made. Default: none.
    pub total_time: Option<Duration>,
    /// The maximum time for which the server may send no byte, once the request is sent. Default:
    /// none. Two times do not count:
    /// * the time between reads, if the program reads the body itself
    ///   ([`Response`](crate::Response)),
    /// * the time in which the source of the request's content has no bytes.
    pub read_timeout: Option<Duration>,
    /// The maximum time for which the server accepts no byte of the request. Default: none. If this
    /// is not set, [`read_timeout`](Self::read_timeout) and [`stall`](Self::stall) also apply to
    /// the sending of the request.
    pub write_timeout: Option<Duration>,
    /// The maximum time that the request spends in the queue of a [`Batch`](crate::batch::Batch) or
    /// of [`send_async`](crate::Client::send_async). A request waits there for a free connection
    /// under the limits on concurrent requests, for the rate limits, or for a host that asked for a
    /// pause. Default: none.
    pub pool_timeout: Option<Duration>,
    /// The stall timeout: the transfer fails when no byte has moved in either direction for this
    /// time. [`StallLimit::awaits_head`] decides whether the timeout also applies while the
    /// response head is awaited. Default: none.
    pub stall: Option<StallLimit>,
    /// The maximum size of a response body in bytes. The transfer fails if the announced size or
    /// the received size is larger. Default: no limit.
    pub max_size: Option<u64>,
    /// The offset of the first byte of the content to deliver (curl's `-C OFFSET`). The request has
    /// a Range field, whatever its method, and even if it has content. The transfer fails unless
    /// the response is the rest. Default: all of the content.
    pub resume_from: Option<u64>,
    /// The part of the content to deliver, such as its beginning; `None` for all of the content.
    /// Default: `None`.
    pub span: Option<WantedContentRange>,
    /// The maximum speed of a transfer, in content bytes per second. It applies to receiving, over
    /// all connections of the transfer together, and to sending. Default: no limit.
    pub limit_rate: Option<u64>,
    /// The maximum number of content bytes per second in each direction, for all transfers that
    /// share this limit together. Default: no limit.
    pub limit_rate_total: Option<TotalRateLimit>,
    /// The minimum speed of a transfer; a slower transfer fails. Default: none.
    pub speed_limit: Option<SpeedLimit>,
    /// The limits for fetching one large body over several connections at the same time. Default:
    /// one connection.
    pub split: SplitDownloadOptions,
    /// True to keep `.` and `..` segments in the paths of targets. Default: false.
    pub path_as_is: bool,
    /// The address families that connections may use. Default: all.
    pub family: AddressFamily,
    /// The settings for making connections, such as time limits and local addresses. Default:
    /// [`ConnectOptions::default`].
    pub connect: ConnectOptions,
    /// The rules that replace the host and port to which a connection is made. Only the first rule
    /// that matches the target applies. Default: none.
    pub connect_to: Vec<ConnectToRule>,
    /// True to use HTTP/2 without negotiation (prior knowledge), also without TLS (RFC 9113 section
    /// 3.3). Default: false; over TLS, HTTP/2 is negotiated if [`TlsOptions::alpn`] offers `h2`.
    pub prior_knowledge: bool,
    /// True to send the request on a new connection, not on one from the pool. A request after a
    /// redirect may use any connection. Default: false.
    pub fresh_connection: bool,
    /// True to close the connection after the response instead of keeping it for later requests.
    /// Default: false.
    pub closes_connection: bool,
    /// The use of HTTP/3 (RFC 9114): off, allowed or required. Default: [`Http3Policy::Off`].
    /// HTTP/3 needs the feature `http3` of this crate.
    pub http3: Http3Policy,
    /// The cache of endpoints that support HTTP/3, and of endpoints where HTTP/3 has failed. All
    /// requests of a program should share one cache. Default: an empty cache.
    pub http3_cache: Http3Cache,
    /// The TLS settings. Default: [`TlsOptions::default`], which verifies certificates.
    pub tls: TlsOptions,
    /// The proxies to use. Default: none.
    pub proxy: Option<ProxyOptions>,
    /// True to send a `Referer` after a redirect. Its value is the URL of the redirecting response,
    /// and replaces [`referer`](Self::referer). Default: false.
    pub auto_referer: bool,
    /// A filter that decides from a response's head whether its content is delivered. Content that
    /// it rejects is not delivered, as if the server had answered 304. Programs use this for
    /// servers that ignore conditional requests. Default: all content is delivered.
    pub wants: Option<Arc<dyn ResponseHeadPredicate>>,
    /// An observer that is notified of the pauses before retries. Default: none.
    pub pauses: Option<Arc<dyn RetryObserver>>,
    /// An observer that is notified of everything that the transfer sends and receives, for verbose
    /// output. Default: none.
    pub trace: Option<Arc<dyn TransferObserver>>,
    /// The recorder that receives each exchange as it was sent and received, for example for an
    /// archive. With a recorder, all bodies are copied through the memory of this process. Default:
    /// none.
    pub recorder: Option<Arc<dyn ExchangeRecorder>>,
    /// A callback that is called during waits, and decides whether the transfer is interrupted.
    /// Default: none.
    pub interrupt: Option<InterruptCallback>,
    /// True to keep the heads of followed redirects for
    /// [`TransferOutcome::history`](crate::transfer::TransferOutcome::history). Default: false.
    pub keep_history: bool,
}

/// The settings of a single request. Each setting overrides or extends the [`RequestOptions`],
/// which many requests share without a copy.
///
/// ```
/// use haul::request::RequestOverrides;
/// let own = RequestOverrides { method: Some("DELETE".into()), ..RequestOverrides::default() };
/// assert!(own.fields.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct RequestOverrides {
    /// The method of the request; `None` for the method in [`RequestOptions::method`].
    pub method: Option<Cow<'static, str>>,
    /// Header fields to send in addition to [`RequestOptions::fields`]. They replace the shared
    /// fields with the same names.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content of the request; `None` for the content in [`RequestOptions::body`].
    pub body: Option<RequestBody>,
    /// The trailer fields to send after the content. Default: none.
    pub trailers: Option<Trailers>,
    /// The time limit for each attempt; `None` for the limit in [`RequestOptions::max_time`].
    pub max_time: Option<Duration>,
}

impl RequestOverrides {
    /// Returns the content of this request, or else the content in the shared `options`. Returns
    /// `None` if there is neither.
    pub(crate) fn content<'a>(&'a self, options: &'a RequestOptions) -> Option<&'a RequestBody> {
        self.body.as_ref().or(options.body.as_ref())
    }
}

/// Returns a method name as a `Cow`. A method of RFC 9110 or RFC 5789 is returned as a static
/// string, without an allocation.
#[must_use]
pub fn method(name: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    match KNOWN.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}

/// The stall timeout: the maximum time for which no byte of a transfer moves in either direction.
///
/// The time counts while the response is incomplete and its content is awaited, and while content
/// of the request waits until the server accepts it. The time does not count while the program does
/// not read, or while the source of the request's content has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallLimit {
    /// The time without a moved byte after which the transfer fails.
    pub time: Duration,
    /// True if the time also counts while the head of the response is awaited, after the end of the
    /// request.
    pub awaits_head: bool,
}

/// The minimum speed of a transfer. A transfer that is slower for a given time fails (curl's
/// `--speed-limit` and `--speed-time`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedLimit {
    /// The minimum number of bytes that must arrive in a second, on average.
    pub bytes_per_second: u64,
    /// The time for which the transfer may be slower than the minimum speed before it fails.
    pub time: Duration,
}

/// The part of the target's content to deliver. It applies only to a GET request without a `Range`
/// field.
///
/// ```
/// use haul::request::WantedContentRange;
///
/// // The first 64 KiB, and no more of a longer one: the connection is free for the next request then.
/// let opening = WantedContentRange::Opening(64 << 10);
/// # drop(opening);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedContentRange {
    /// The beginning of the content. The number is the maximum length in bytes, at least 1. The
    /// whole content is delivered in two cases: the server does not support ranges, or the content
    /// has no strong validator
    /// ([`ResponseForSink::validator`](crate::sink::ResponseForSink::validator)). A later request
    /// for the rest would need that validator.
    /// [`ResponseForSink::total`](crate::sink::ResponseForSink::total) is the full length.
    Opening(u64),
    /// A range of the content, for a caller that already has the bytes before the range, and knows
    /// the length and the validator of the whole content. Any response other than a 206 with
    /// exactly this range is an error ([`ErrorKind::Changed`](crate::ErrorKind::Changed),
    /// [`ErrorKind::Range`](crate::ErrorKind::Range)).
    Rest {
        /// The offset in the content of the first byte of the range.
        from: u64,
        /// The offset after the last byte of the range; `None` for the end of the content.
        to: Option<u64>,
        /// The length of the whole content in bytes.
        total: u64,
        /// The strong validator of the content. The server must confirm it.
        validator: Validator,
    },
}

/// Limits for fetching a large body over several connections (`docs/design/splitting.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitDownloadOptions {
    /// The maximum number of connections; with 1, a body is never split. Default 1.
    pub connections: usize,
    /// The maximum number of bytes in parts that wait in memory until they can be output in order.
    /// Parts that are written to a file need no such memory. Default 16 MiB.
    pub memory: u64,
}

impl Default for SplitDownloadOptions {
    fn default() -> Self {
        Self { connections: 1, memory: 16 << 20 }
    }
}

/// A rule that replaces only the host and port of the connection (curl's `--connect-to`). The
/// request is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectToRule {
    /// The host of the targets to which the rule applies; `None` for any host.
    pub host: Option<String>,
    /// The port of the targets to which the rule applies; `None` for any port.
    pub port: Option<u16>,
    /// The host to connect to; `None` for the host of the target.
    pub to_host: Option<String>,
    /// The port to connect to; `None` for the port of the target.
    pub to_port: Option<u16>,
}

impl RequestOptions {
    /// Returns the host and port to connect to for a target with this host and port.
    #[must_use]
    pub fn connect_host_and_port<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
        let fits = |entry: &&ConnectToRule| {
            entry.host.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(host))
                && entry.port.is_none_or(|wanted| wanted == port)
        };
        match self.connect_to.iter().find(fits) {
            Some(entry) => (entry.to_host.as_deref().unwrap_or(host), entry.to_port.unwrap_or(port)),
            None => (host, port),
        }
    }
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            fields: Vec::new(),
            without: Vec::new(),
            user_agent: Some(concat!("haul/", env!("CARGO_PKG_VERSION")).into()),
            authorization: None,
            auth: AuthOptions::default(),
            cookie: None,
            jar: None,
            hsts: None,
            alt_svc: None,
            referer: None,
            range: None,
            body: None,
            content_type: None,
            content_range: None,
            expect_timeout: Duration::from_secs(1),
            decode: false,
            decode_limits: DecodeLimits::default(),
            include_head: false,
            escape_head: false,
            head_only: false,
            fail: false,
            fail_with_body: false,
            resume: true,
            request_target: None,
            curl_compat: CurlCompat::default(),
            deviations: H1Deviations::default(),
            redirects: RedirectRules { follow: false, ..RedirectRules::default() },
            retry: RetryRules { max: 0, ..RetryRules::default() },
            max_time: None,
            total_time: None,
            read_timeout: None,
            write_timeout: None,
            pool_timeout: None,
            stall: None,
            max_size: None,
            resume_from: None,
            span: None,
            limit_rate: None,
            limit_rate_total: None,
            speed_limit: None,
            split: SplitDownloadOptions::default(),
            path_as_is: false,
            family: AddressFamily::Any,
            connect: ConnectOptions::default(),
            connect_to: Vec::new(),
            prior_knowledge: false,
            fresh_connection: false,
            closes_connection: false,
            http3: Http3Policy::Off,
            http3_cache: Http3Cache::default(),
            tls: TlsOptions::default(),
            proxy: None,
            auto_referer: false,
            wants: None,
            pauses: None,
            trace: None,
            interrupt: None,
            recorder: None,
            keep_history: false,
        }
    }
}

impl RequestOptions {
    /// Returns a copy without credentials, for a target that the user has not given. Removes user,
    /// token, cookies, client certificate, and the header fields that may contain credentials. Also
    /// removes the `Host` field, since it is meant for the target that the user has given.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut secretless = self.clone();
        // Every field is named, so that a new one cannot be forgotten here.
        let Self {
            authorization,
            auth,
            cookie,
            tls,
            fields,
            method: _,
            without: _,
            user_agent: _,
            jar: _,
            hsts: _,
            alt_svc: _,
            referer: _,
            range: _,
            body: _,
            content_type: _,
            content_range: _,
            expect_timeout: _,
            decode: _,
            decode_limits: _,
            include_head: _,
            escape_head: _,
            head_only: _,
            fail: _,
            fail_with_body: _,
            redirects: _,
            retry: _,
            resume: _,
            request_target: _,
            curl_compat: _,
            deviations: _,
            max_time: _,
            total_time: _,
            read_timeout: _,
            write_timeout: _,
            pool_timeout: _,
            stall: _,
            max_size: _,
            resume_from: _,
            span: _,
            limit_rate: _,
            limit_rate_total: _,
            speed_limit: _,
            split: _,
            path_as_is: _,
            family: _,
            connect: _,
            connect_to: _,
            prior_knowledge: _,
            fresh_connection: _,
            closes_connection: _,
            http3: _,
            http3_cache: _,
            proxy: _,
            auto_referer: _,
            wants: _,
            pauses: _,
            trace: _,
            recorder: _,
            interrupt: _,
            keep_history: _,
        } = &mut secretless;
        (*authorization, *cookie) = (None, None);
        *auth = auth.without_origin_credentials();
        tls.remove_identity();
        fields.retain(|(name, _)| may_send(name, SecretHandling::Drop));
        secretless
    }

    /// Returns the lower one of [`limit_rate`](Self::limit_rate) and
    /// [`limit_rate_total`](Self::limit_rate_total), in bytes per second. Returns `None` if neither
    /// is set.
    pub(crate) fn lowest_rate(&self) -> Option<u64> {
        let total = self.limit_rate_total.as_ref().map(TotalRateLimit::bytes_per_second);
        [self.limit_rate, total].into_iter().flatten().min()
    }
}
