//! The settings of a request: the [`RequestOptions`] that many requests share, those of a single
//! one ([`RequestOverrides`]), and how both are combined ([`RequestBuilder`]).
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
mod form;
mod name_value_pairs;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use haul_policy::multipart::{FormPart, FormPartContent};
pub use haul_policy::range::validator::Validator;
pub use haul_policy::redirect::RedirectRules;
pub use haul_policy::retry::RetryRules;
pub use haul_proto::h1::H1Deviations;

pub use builder::{Request, RequestBuilder, basic_authorization};
pub use curl_compat::CurlCompat;
pub use form::MultipartForm;
pub use name_value_pairs::NameValuePair;

use crate::ResponseHead;
use crate::body::DecodeLimits;
use crate::body::trailers::Trailers;
use crate::body::upload::RequestBody;
use crate::interrupt::Interrupt;
use crate::net::connect::ConnectOptions;
use crate::net::dns::AddressFamily;
use crate::net::proxy::ProxyOptions;
use crate::net::tls::TlsOptions;
use crate::state::alt_svc::AltSvcCache;
use crate::state::auth::AuthOptions;
use crate::state::cookie_jar::SharedCookieJar;
use crate::state::hsts::HstsCache;
use crate::trace::TransferObserver;

/// Decides by the head of a response whether its content is wanted: [`RequestOptions::wants`].
pub trait ContentFilter: Send + Sync {
    /// Returns whether the content of the response with this head is wanted.
    fn wants(&self, head: &ResponseHead) -> bool;
}

/// Observes the pauses before further tries: [`RequestOptions::pauses`].
pub trait RetryObserver: Send + Sync {
    /// Reports that the transfer of this URL is tried again after `wait`; `why` is the reason for
    /// the last failure.
    fn begins(&self, url: &str, wait: Duration, why: &str);
}

/// All settings of a request except its target. `Debug` shows names and lengths, but no field
/// values and no content.
#[derive(Clone)]
pub struct RequestOptions {
    /// The method (RFC 9110 section 9). Default `GET`.
    pub method: String,
    /// Fields to send; each replaces a field of the same name that the engine would send. Default:
    /// none.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Names of fields that the engine must not add by itself. Default: none.
    pub without: Vec<String>,
    /// `User-Agent`. Default `haul/VERSION`; `None` sends none.
    pub user_agent: Option<Vec<u8>>,
    /// A complete `Authorization` value, sent only to the first target's origin, where it takes
    /// precedence over [`auth`](Self::auth). Default: none.
    pub authorization: Option<Vec<u8>>,
    /// Credentials. Default: user and password of the target, by Basic.
    pub auth: AuthOptions,
    /// `Cookie`, sent only to the first target's origin, after the cookies from the jar. Default:
    /// none.
    pub cookie: Option<Vec<u8>>,
    /// The jar in which cookies are kept and from which they are sent. Default: none.
    pub jar: Option<SharedCookieJar>,
    /// Hosts that must be reached over TLS, for first targets and redirects. Nothing is learned
    /// over a connection whose certificate was not verified. Default: none.
    pub hsts: Option<HstsCache>,
    /// Store for Alt-Svc fields and source of the alternative services that are used. Default:
    /// none.
    pub alt_svc: Option<AltSvcCache>,
    /// `Referer`. Default: none.
    pub referer: Option<Vec<u8>>,
    /// `Range`, a bytes-range-set such as `0-99` (RFC 9110 section 14.1.2). Default: none.
    pub range: Option<String>,
    /// The content to send. If its length is known, `Content-Length` is set; otherwise it is sent
    /// in chunks. It is dropped if a redirect changes the method. Default: none.
    pub body: Option<RequestBody>,
    /// `Content-Type` of the content; sent only together with it. Default: none.
    pub content_type: Option<String>,
    /// `Content-Range` of the content, such as `50-99/100`: which part of the whole it is (RFC 9110
    /// section 14.5). Only for servers known to support partial uploads. Default: none.
    pub content_range: Option<String>,
    /// Time to wait for the server's consent before sending content of more than 1 MiB or of
    /// unknown length (`Expect: 100-continue`). Default 1 s; zero does not ask.
    pub expect_timeout: Duration,
    /// Ask for compressed content and decode it. Default no.
    ///
    /// A request for a part ([`range`](Self::range), [`resume_from`](Self::resume_from) or a
    /// `Range` field) does not ask for compression. Content that cannot be decoded
    /// ([`is_decodable`](crate::body::is_decodable)) is delivered as received, with its
    /// `Content-Encoding`.
    pub decode: bool,
    /// Limits for decoding. Default: [`DecodeLimits::default`].
    pub decode_limits: DecodeLimits,
    /// Deliver the heads of redirects and of the response before its body; of the redirects, only
    /// the first MiB. Default no.
    pub include_head: bool,
    /// With [`include_head`](Self::include_head): replace control characters and marks of text
    /// direction in the heads by `?`, for terminals. Default no.
    pub escape_head: bool,
    /// Receive only the head, whatever the method: the body is neither delivered nor read. Default
    /// no. Not needed with HEAD.
    pub head_only: bool,
    /// Treat a status of 400 or above as an error and deliver no body. Default no.
    pub fail: bool,
    /// With [`fail`](Self::fail): deliver the body of such a response before failing. Default no.
    pub fail_with_body: bool,
    /// Rules for the redirects that are followed. Default: none.
    pub redirects: RedirectRules,
    /// Rules for the failures that are retried. Default: none.
    pub retry: RetryRules,
    /// Continue a retry where the last attempt broke off, with a range, instead of starting over.
    /// Default yes.
    pub resume: bool,
    /// The request-target as it is sent, in place of the target's path and query (RFC 9112 section
    /// 3.2): `*` for OPTIONS. A forwarding proxy gets the same. Default: none.
    pub request_target: Option<String>,
    /// Behaviours to copy from curl. Default: none.
    pub curl_compat: CurlCompat,
    /// Permitted deviations from HTTP/1.1. Part of the pool's key. Default: none.
    pub deviations: H1Deviations,
    /// Time limit for each whole attempt. Default: no limit.
    pub max_time: Option<Duration>,
    /// Time limit for the whole transfer: name lookups, redirects, retries and the pauses between
    /// them. No retry begins for which the limit leaves no time. Default: no limit.
    pub total_time: Option<Duration>,
    /// Maximum time for which the server may stay silent, from the request on. Default: no limit.
    /// If the program reads the body ([`Response`](crate::Response)), time spent in the program
    /// does not count.
    pub read_timeout: Option<Duration>,
    /// Maximum size of a body in bytes, as announced and as received. Default: no limit.
    pub max_size: Option<u64>,
    /// Deliver the content from this byte on; the server must support ranges (curl's `-C OFFSET`).
    /// Default: all of it.
    pub resume_from: Option<u64>,
    /// The part of the content that is delivered. Default: all of it.
    pub span: Option<ContentSpan>,
    /// Maximum number of bytes of content received per second, over all connections of a transfer
    /// together, and of content sent. Default: no limit.
    pub limit_rate: Option<u64>,
    /// Lower limit on the speed of a transfer. Default: as slow as the server likes.
    pub speed_limit: Option<SpeedLimit>,
    /// Number of connections that may be used to fetch one large body. Default: one.
    pub split: SplitOptions,
    /// Keep `.` and `..` segments in the paths of targets. Default no.
    pub path_as_is: bool,
    /// Address families to use. Default: all.
    pub family: AddressFamily,
    /// Settings for making connections. Default: [`ConnectOptions::default`].
    pub connect: ConnectOptions,
    /// Rules for connecting somewhere else than to the target; the first match is used. Default:
    /// none.
    pub connect_to: Vec<ConnectToRule>,
    /// Use HTTP/2 without negotiation (RFC 9113 section 3.3). Default no: over TLS it is negotiated
    /// if [`TlsOptions::alpn`] offers `h2`.
    pub prior_knowledge: bool,
    /// TLS settings. Default: [`TlsOptions::default`], which verifies certificates.
    pub tls: TlsOptions,
    /// The proxies that are used. Default: none.
    pub proxy: Option<ProxyOptions>,
    /// After a redirect, send the URL that redirected as `Referer`, instead of
    /// [`referer`](Self::referer). Default no.
    pub auto_referer: bool,
    /// Decides by the head which content is wanted. Other content is not delivered, as if the
    /// server had answered 304; this is for servers that ignore conditions. Default: all.
    pub wants: Option<Arc<dyn ContentFilter>>,
    /// An observer of the pauses before further tries. Default: none.
    pub pauses: Option<Arc<dyn RetryObserver>>,
    /// An observer of the traffic. Default: none.
    pub trace: Option<Arc<dyn TransferObserver>>,
    /// A hook that blocking calls ask during waits whether to continue. Default: none.
    pub interrupt: Option<Interrupt>,
    /// Keep the heads of the redirects that were followed, for
    /// [`TransferOutcome::history`](crate::transfer::TransferOutcome::history). Default no.
    pub keep_history: bool,
}

/// The settings of a single request among many that share their [`RequestOptions`], which are not
/// copied for it.
///
/// ```
/// use haul::request::RequestOverrides;
/// let own = RequestOverrides { method: Some("DELETE".into()), ..RequestOverrides::default() };
/// assert!(own.fields.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct RequestOverrides {
    /// The method, instead of [`RequestOptions::method`].
    pub method: Option<Cow<'static, str>>,
    /// Fields to send in addition to [`RequestOptions::fields`], replacing those of the same name.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, instead of [`RequestOptions::body`].
    pub body: Option<RequestBody>,
    /// Trailer fields after the content. Default: none.
    pub trailers: Option<Trailers>,
    /// Time limit for an attempt, instead of [`RequestOptions::max_time`].
    pub max_time: Option<Duration>,
}

impl RequestOverrides {
    /// Returns the content: the request's own, or else the shared one.
    pub(crate) fn content<'a>(&'a self, options: &'a RequestOptions) -> Option<&'a RequestBody> {
        self.body.as_ref().or(options.body.as_ref())
    }
}

/// Returns a method's name, without allocating for the methods of RFC 9110 and RFC 5789.
#[must_use]
pub fn method(name: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    match KNOWN.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}

/// Lower limit on the speed of a transfer: a transfer that is slower for so long fails (curl's
/// `--speed-limit` and `--speed-time`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedLimit {
    /// The minimum speed.
    pub bytes_per_second: u64,
    /// Time for which the transfer may be slower than that.
    pub time: Duration,
}

/// A part of a content, for a GET without a `Range` of its caller's own.
///
/// ```
/// use haul::request::ContentSpan;
///
/// // The first 64 KiB, and no more of a longer one: the connection is free for the next request then.
/// let opening = ContentSpan::Opening(64 << 10);
/// # drop(opening);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentSpan {
    /// At most this many bytes from the beginning, at least 1. If the server does not support
    /// ranges, everything is delivered; likewise if the rest could not be requested later because
    /// the content has no validator (`Begin::validator`). `Begin::total` is the full length.
    Opening(u64),
    /// The rest of content whose beginning is already there: from a byte on, for the given length
    /// and validator. Any answer but a 206 with exactly these bytes fails
    /// ([`ErrorKind::Changed`](crate::ErrorKind::Changed),
    /// [`ErrorKind::Range`](crate::ErrorKind::Range)).
    Rest {
        /// Offset of the first byte.
        from: u64,
        /// Offset behind the last byte; `None` is the end of the content.
        to: Option<u64>,
        /// Length of the whole content.
        total: u64,
        /// A validator that distinguishes this content from every other.
        validator: Validator,
    },
}

/// Limits for fetching a large body over several connections (`docs/design/splitting.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Maximum number of connections; 1 never splits. Default 1.
    pub connections: usize,
    /// Maximum distance by which parts may run ahead of the output, in bytes; files have no such
    /// limit. Default 16 MiB.
    pub memory: u64,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { connections: 1, memory: 16 << 20 }
    }
}

/// Connects to another host and port than the target's, while everything else stays (curl's
/// `--connect-to`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectToRule {
    /// Host that the rule applies to; `None` for any.
    pub host: Option<String>,
    /// Port that the rule applies to; `None` for any.
    pub port: Option<u16>,
    /// Connect to this host; `None` keeps it.
    pub to_host: Option<String>,
    /// Connect to this port; `None` keeps it.
    pub to_port: Option<u16>,
}

impl RequestOptions {
    /// Returns the host and port to connect to for this host and port.
    #[must_use]
    pub fn dial<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
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
            max_size: None,
            resume_from: None,
            span: None,
            limit_rate: None,
            speed_limit: None,
            split: SplitOptions::default(),
            path_as_is: false,
            family: AddressFamily::Any,
            connect: ConnectOptions::default(),
            connect_to: Vec::new(),
            prior_knowledge: false,
            tls: TlsOptions::default(),
            proxy: None,
            auto_referer: false,
            wants: None,
            pauses: None,
            trace: None,
            interrupt: None,
            keep_history: false,
        }
    }
}
