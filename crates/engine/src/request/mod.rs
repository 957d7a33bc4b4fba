//! What a request asks for: the [`RequestOptions`] that many requests share, what one has of its own ([`Particulars`]), and
//! how both are put together ([`RequestBuilder`]).
//!
//! ```
//! use haul::RequestOptions;
//! let mut options = RequestOptions::default();
//! options.method = "POST".into();
//! options.body = Some(b"name=value".as_slice().into());
//! options.fields.push(("Content-Type".into(), b"application/x-www-form-urlencoded".to_vec()));
//! ```

mod as_curl;
mod builder;
mod form;
mod pairs;
mod shown;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use haul_policy::multipart::{Content, Part};
pub use haul_policy::range::validator::Validator;
pub use haul_policy::redirect::RedirectRules;
pub use haul_policy::retry::RetryRules;
pub use haul_proto::h1::Liberties;

pub use as_curl::AsCurl;
pub use builder::{Request, RequestBuilder};
pub use form::Form;
pub use pairs::Pair;

use crate::Head;
use crate::body::DecodeLimits;
use crate::body::trailers::Trailers;
use crate::body::upload::Body;
use crate::interrupt::Interrupt;
use crate::net::connect::ConnectOptions;
use crate::net::dns::Family;
use crate::net::proxy::ProxyOptions;
use crate::net::tls::TlsOptions;
use crate::state::alt_svc::AltSvc;
use crate::state::auth::Auth;
use crate::state::hsts::Hsts;
use crate::state::jar::Jar;
use crate::trace::Trace;

/// Tells by the head of a response whether its content is wanted: [`RequestOptions::wants`].
pub trait Wants: Send + Sync {
    /// Whether it is.
    fn wants(&self, head: &Head) -> bool;
}

/// Everything about a request but its target. `Debug` shows names and lengths, no values of fields and no content.
#[derive(Clone)]
pub struct RequestOptions {
    /// The method (RFC 9110 section 9). Default `GET`.
    pub method: String,
    /// Fields to send besides those that the engine makes; one that the engine makes too replaces it. Default: none.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Names of fields that the engine would make and shall not. Default: none.
    pub without: Vec<String>,
    /// `User-Agent`. Default `haul/VERSION`; `None` sends none.
    pub user_agent: Option<Vec<u8>>,
    /// `Authorization` as it is, sent only to the first target's origin; there it goes before [`auth`](Self::auth). Default: none.
    pub authorization: Option<Vec<u8>>,
    /// In whose name. Default: that of the target's own user, by Basic.
    pub auth: Auth,
    /// `Cookie`, sent only to the first target's origin, behind what the jar has for it. Default: none.
    pub cookie: Option<Vec<u8>>,
    /// Where cookies are kept and taken from. Default: none are.
    pub jar: Option<Jar>,
    /// Hosts that must be reached over TLS; redirects heed it as well as first targets. What is heard over a connection whose
    /// certificate was not checked is not believed. Default: none is known.
    pub hsts: Option<Hsts>,
    /// Where the Alt-Svc fields of replies are kept, and which alternatives are gone to. Default: none.
    pub alt_svc: Option<AltSvc>,
    /// `Referer`. Default: none.
    pub referer: Option<Vec<u8>>,
    /// `Range`, a bytes-range-set such as `0-99` (RFC 9110 section 14.1.2). Default: none.
    pub range: Option<String>,
    /// The content to send. Where its length is known `Content-Length` is set from it, else it goes by chunks. A method
    /// that redirects change loses it. Default: none.
    pub body: Option<Body>,
    /// `Content-Type` of the content; it goes and stays with it. Default: none.
    pub content_type: Option<String>,
    /// `Content-Range` of the content, such as `50-99/100`: which part of the whole it is (RFC 9110 section 14.5). A server has
    /// to know that it takes parts. Default: none.
    pub content_range: Option<String>,
    /// How long the server is waited for that is asked whether it wants the content (`Expect: 100-continue`), as it is with
    /// content of more than 1 MiB or unknown length. Default 1 s; zero never asks.
    pub expect_timeout: Duration,
    /// Ask for compressed content and decode it. Default no.
    ///
    /// Where [`range`](Self::range), [`resume_from`](Self::resume_from) or a `Range` field asks for a part, none is asked for; and
    /// content that cannot be decoded ([`is_decodable`](crate::body::is_decodable)) is given as it came, its
    /// `Content-Encoding` with it.
    pub decode: bool,
    /// Bounds of decoding. Default: [`DecodeLimits::default`].
    pub decode_limits: DecodeLimits,
    /// Deliver the response's head before its body, and before that the heads of the redirects that led to it; of those, what
    /// comes behind the first MiB is left out. Default no.
    pub include_head: bool,
    /// The head is all that is wanted, whatever the method: the body is not delivered, nor read. Default no. HEAD
    /// needs no such word.
    pub head_only: bool,
    /// Treat a status of 400 or above as an error and deliver no body. Default no.
    pub fail: bool,
    /// With [`fail`](Self::fail): deliver the body of such a response all the same, and fail then. Default no.
    pub fail_with_body: bool,
    /// Which redirects are followed. Default: none.
    pub redirects: RedirectRules,
    /// Which failures are tried again. Default: none.
    pub retry: RetryRules,
    /// Whether another try goes on where the last one broke off, by a range, in place of beginning anew. Default yes.
    pub resume: bool,
    /// The request-target as it is sent, in place of the target's path and query (RFC 9112 section 3.2): `*` for OPTIONS.
    /// A proxy that forwards is told the same. Default: none.
    pub request_target: Option<String>,
    /// What is done as curl does it. Default: nothing.
    pub as_curl: AsCurl,
    /// What is done otherwise than HTTP/1.1 says. Part of the pool's key. Default: nothing.
    pub liberties: Liberties,
    /// How long each attempt may take in all. Default: no limit.
    pub max_time: Option<Duration>,
    /// How long the server may be silent while it is waited for, from the request on. Default: no limit. Where the body is
    /// read by the program ([`Response`](crate::Response)), the time that the program takes does not count.
    pub read_timeout: Option<Duration>,
    /// How large a body may be, in bytes, as announced and as received. Default: no limit.
    pub max_size: Option<u64>,
    /// Deliver the content from this byte on; the server must do ranges (curl's `-C OFFSET`). Default: all of it.
    pub resume_from: Option<u64>,
    /// Which part of the content is delivered. Default: all of it.
    pub span: Option<Span>,
    /// Most bytes a second of content received, over all connections of a transfer together, and most of content sent.
    /// Default: no limit.
    pub limit_rate: Option<u64>,
    /// How slow a transfer may be. Default: as slow as the server likes.
    pub speed_limit: Option<SpeedLimit>,
    /// How many connections may be used to fetch one large body. Default: one.
    pub split: Split,
    /// Keep `.` and `..` in paths of targets as they are written. Default no.
    pub path_as_is: bool,
    /// Which kinds of address may be used. Default: all.
    pub family: Family,
    /// How connections are made. Default: [`ConnectOptions::default`].
    pub connect: ConnectOptions,
    /// Where connections go in place of what the target says; the first that fits is used. Default: none.
    pub connect_to: Vec<ConnectTo>,
    /// Speak HTTP/2 without agreeing on it first (RFC 9113 section 3.3). Default no: over TLS it is agreed on where
    /// [`TlsOptions::alpn`] offers `h2`.
    pub prior_knowledge: bool,
    /// How TLS is done. Default: [`TlsOptions::default`], which checks certificates.
    pub tls: TlsOptions,
    /// Which proxies are used. Default: none.
    pub proxy: Option<ProxyOptions>,
    /// Send the URL that redirected as `Referer`, in place of [`referer`](Self::referer). Default no.
    pub auto_referer: bool,
    /// Which content is wanted, going by its head. What is not is not delivered, as if the server had said 304: there are some that
    /// know no conditions. Default: all.
    pub wants: Option<Arc<dyn Wants>>,
    /// Who watches. Default: nobody.
    pub trace: Option<Arc<dyn Trace>>,
    /// Who is asked, while a blocking call waits, whether it shall go on. Default: nobody.
    pub interrupt: Option<Interrupt>,
    /// Keep the heads of the redirects that were followed, for [`Outcome::history`](crate::transfer::Outcome::history).
    /// Default no.
    pub keep_history: bool,
}

/// What one request has of its own, where many share their [`RequestOptions`]: nothing of those is copied for it.
///
/// ```
/// use haul::request::Particulars;
/// let own = Particulars { method: Some("DELETE".into()), ..Particulars::default() };
/// assert!(own.fields.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Particulars {
    /// The method, in place of [`RequestOptions::method`].
    pub method: Option<Cow<'static, str>>,
    /// Fields to send besides [`RequestOptions::fields`]; those of the same names are not sent then.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, in place of [`RequestOptions::body`].
    pub body: Option<Body>,
    /// Fields behind the content. Default: none.
    pub trailers: Option<Trailers>,
    /// How long an attempt may take, in place of [`RequestOptions::max_time`].
    pub max_time: Option<Duration>,
}

impl Particulars {
    /// The content: the request's own, or that which it shares.
    pub(crate) fn content<'a>(&'a self, options: &'a RequestOptions) -> Option<&'a Body> {
        self.body.as_ref().or(options.body.as_ref())
    }
}

/// A method's name, without memory of its own for those that RFC 9110 and RFC 5789 define.
#[must_use]
pub fn method(name: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    match KNOWN.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}

/// A transfer that is slower than this for so long has failed (curl's `--speed-limit` and `--speed-time`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedLimit {
    /// The least speed.
    pub bytes_per_second: u64,
    /// How long it may be below that.
    pub time: Duration,
}

/// A part of a content, for a GET without a `Range` of its caller's own.
///
/// ```
/// use haul::request::Span;
///
/// // The first 64 KiB, and no more of a longer one: the connection is free for the next request then.
/// let opening = Span::Opening(64 << 10);
/// # drop(opening);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// At most so many bytes of its beginning, at least 1. A server that does no ranges sends all of it, and all of it is
    /// delivered; so it is where the rest could not be asked for later, since nothing tells this content from another
    /// (`Begin::validator`). `Begin::total` says how much there is.
    Opening(u64),
    /// The rest of a content whose beginning is there: from a byte on, of the content of this length that this validator
    /// names. Another answer than 206 with just these bytes fails ([`ErrorKind::Changed`](crate::ErrorKind::Changed),
    /// [`ErrorKind::Range`](crate::ErrorKind::Range)).
    Rest {
        /// The first byte.
        from: u64,
        /// The byte behind the last; none is the end.
        to: Option<u64>,
        /// The length of the whole.
        total: u64,
        /// What tells it from every other.
        validator: Validator,
    },
}

/// How a large body may be fetched over several connections (`docs/design/splitting.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Most connections; 1 never splits. Default 1.
    pub connections: usize,
    /// How far parts may run ahead of what has gone out, in bytes; a file has no such limit. Default 16 MiB.
    pub memory: u64,
}

impl Default for Split {
    fn default() -> Self {
        Self { connections: 1, memory: 16 << 20 }
    }
}

/// A connection for one host and port goes to another, while everything else stays (curl's `--connect-to`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectTo {
    /// For this host only.
    pub host: Option<String>,
    /// For this port only.
    pub port: Option<u16>,
    /// Goes to this host; none keeps it.
    pub to_host: Option<String>,
    /// Goes to this port; none keeps it.
    pub to_port: Option<u16>,
}

impl RequestOptions {
    /// Where a connection for this host and port goes.
    #[must_use]
    pub fn dial<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
        let fits = |entry: &&ConnectTo| {
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
            auth: Auth::default(),
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
            head_only: false,
            fail: false,
            fail_with_body: false,
            resume: true,
            request_target: None,
            as_curl: AsCurl::default(),
            liberties: Liberties::default(),
            redirects: RedirectRules { follow: false, ..RedirectRules::default() },
            retry: RetryRules { max: 0, ..RetryRules::default() },
            max_time: None,
            read_timeout: None,
            max_size: None,
            resume_from: None,
            span: None,
            limit_rate: None,
            speed_limit: None,
            split: Split::default(),
            path_as_is: false,
            family: Family::Any,
            connect: ConnectOptions::default(),
            connect_to: Vec::new(),
            prior_knowledge: false,
            tls: TlsOptions::default(),
            proxy: None,
            auto_referer: false,
            wants: None,
            trace: None,
            interrupt: None,
            keep_history: false,
        }
    }
}
