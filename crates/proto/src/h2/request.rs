//! Requests: validation, and the header block.
//!
//! Names are sent in lower case. Callers give the same fields for every version, so fields that
//! belong to an HTTP/1 connection are left out (RFC 9113 §8.2.2): Connection and the fields it
//! names, Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade, HTTP2-Settings, and any TE but
//! `trailers`. Host becomes `:authority`.
//!
//! ```
//! use haul_proto::h2::{BodyLength, Config, Conn, Request, RequestError};
//! use haul_proto::time::Time;
//!
//! let mut conn = Conn::new(Config::default());
//! let request = Request {
//!     method: "GET",
//!     scheme: "https",
//!     authority: "example.org",
//!     path: "/",
//!     fields: &[("X-Name", b"a\r\nEvil: b")],
//!     body: BodyLength::None,
//!     expect_continue: false,
//!     sensitive: &[],
//! };
//! assert_eq!(conn.enqueue(Time(0), &request), Err(RequestError::FieldValue { index: 0 }));
//! ```

use super::CloseReason;
use crate::h1::BodyLength;
use crate::h1::framing::AnswerTo;
use crate::h1::request::push_decimal;
use crate::hpack::{Encoder, Indexing};
use crate::syntax::{decimal, is_token, list, trim_ows};
use alloc::vec::Vec;
use core::fmt;

/// A request's head.
///
/// `Debug` prints the names of the fields but no values and no path, because those hold
/// credentials.
#[derive(Copy, Clone)]
pub struct Request<'a> {
    /// The method: a token, in the case that the server expects (`GET`). HEAD changes how the
    /// response is read; CONNECT is sent without scheme and path (RFC 9113 §8.5).
    pub method: &'a str,
    /// `https` or `http`.
    pub scheme: &'a str,
    /// Host and port as in a URL, without userinfo. A Host field replaces it.
    pub authority: &'a str,
    /// Path and query, beginning with a slash; or `*` for OPTIONS.
    pub path: &'a str,
    /// All other fields, in order.
    pub fields: &'a [(&'a str, &'a [u8])],
    /// The length of the body. `Known` adds Content-Length unless the caller gave it; `Chunked` is
    /// a body of unknown length.
    pub body: BodyLength,
    /// True to hold the body back until `100 Continue` arrives or
    /// [`Config::expect_timeout`](super::Config) has passed. `Expect: 100-continue` is added unless
    /// the caller gave Expect. Has no effect without a body.
    pub expect_continue: bool,
    /// Names of fields (in lower case) that must never enter a compression table, in addition to
    /// Authorization, Proxy-Authorization and a Cookie of less than 20 bytes. Lengths of encrypted
    /// blocks could reveal their values (RFC 7541 §7.1.3).
    pub sensitive: &'a [&'a str],
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Names<'a>(&'a [(&'a str, &'a [u8])]);
        impl fmt::Debug for Names<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
            }
        }
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("authority", &self.authority)
            .field("fields", &Names(self.fields))
            .field("body", &self.body)
            .field("expect_continue", &self.expect_continue)
            .finish_non_exhaustive()
    }
}

/// A mistake of the caller, or a reason to wait. Nothing was written, and the connection is
/// unchanged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The connection takes no further request.
    Closed(CloseReason),
    /// As many requests are unanswered as the peer accepts at a time.
    TooManyStreams {
        /// The limit: the peer's, 100 until it is known, or
        /// [`Config::max_streams`](super::Config::max_streams).
        limit: u32,
    },
    /// Windows and unreleased bytes take up all of
    /// [`Config::connection_window`](super::Config::connection_window).
    NoWindow,
    /// The method is not a token.
    Method,
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The authority is empty or contains a space, a control byte or userinfo.
    Authority,
    /// The path is empty, does not begin with a slash, or contains a space or a control byte.
    Path,
    /// The name of the field with this index is not a token.
    FieldName {
        /// The index into the fields.
        index: usize,
    },
    /// The value of the field with this index contains CR, LF or NUL.
    FieldValue {
        /// The index into the fields.
        index: usize,
    },
    /// The field with this index (Content-Length) contradicts the body's length or another field,
    /// or is not allowed in trailers.
    FramingField {
        /// The index into the fields.
        index: usize,
    },
    /// The head exceeds the peer's `SETTINGS_MAX_HEADER_LIST_SIZE`.
    HeadTooLarge {
        /// The peer's limit in bytes, counted as in RFC 9113 §6.5.2.
        limit: u32,
    },
    /// No open request has this id.
    UnknownRequest,
    /// The request has no body, or all of it was sent.
    NoBodyExpected,
    /// The body exceeds its announced length.
    BodyTooLong {
        /// The number of bytes that were missing before.
        expected: u64,
    },
    /// The body ended before its announced length.
    BodyTooShort {
        /// The number of missing bytes.
        missing: u64,
    },
    /// Trailers need a body of unknown length.
    TrailersWithoutChunks,
}

impl RequestError {
    /// Returns the index of the field in question.
    #[must_use]
    pub fn field(&self) -> Option<usize> {
        match *self {
            Self::FieldName { index } | Self::FieldValue { index } | Self::FramingField { index } => Some(index),
            _ => None,
        }
    }
}

impl core::error::Error for RequestError {}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RequestError::Closed(reason) => write!(f, "request refused, connection is closed: {reason}"),
            RequestError::TooManyStreams { limit } => {
                write!(f, "request refused, the limit of {limit} unanswered requests is reached")
            }
            RequestError::NoWindow => f.write_str("request refused, no window is left for its response"),
            RequestError::Method => f.write_str("request refused, its method is not a token"),
            RequestError::Scheme => f.write_str("request refused, its scheme is neither http nor https"),
            RequestError::Authority => f.write_str("request refused, its authority is not a host and a port"),
            RequestError::Path => f.write_str("request refused, its path holds a space or a control byte"),
            RequestError::FieldName { index } => {
                write!(f, "request refused, the name of header {} is not a token", index + 1)
            }
            RequestError::FieldValue { index } => {
                write!(f, "request refused, the value of header {} holds CR, LF or NUL", index + 1)
            }
            RequestError::FramingField { index } => {
                write!(f, "request refused, header {} contradicts the length of the body", index + 1)
            }
            RequestError::HeadTooLarge { limit } => {
                write!(f, "request refused, its head is above the server's limit of {limit} bytes")
            }
            RequestError::UnknownRequest => f.write_str("no such request is open"),
            RequestError::NoBodyExpected => f.write_str("request body given where none is expected"),
            RequestError::BodyTooLong { expected } => {
                write!(f, "request body goes on beyond the {expected} bytes that were left of it")
            }
            RequestError::BodyTooShort { missing } => {
                write!(f, "request body ends {missing} bytes before its announced length")
            }
            RequestError::TrailersWithoutChunks => f.write_str("trailers given for a body of known length"),
        }
    }
}

/// The properties of a request that the connection remembers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) answer_to: AnswerTo,
    authority: &'a [u8],
    /// The Content-Length to add.
    length: Option<u64>,
    /// True if Expect has to be added.
    expect: bool,
    /// True if there is a Connection field, whose tokens exclude other fields.
    nominates: bool,
}

/// Validates a request without writing anything. `room` is the largest head that the peer accepts.
pub(crate) fn check<'a>(request: &Request<'a>, room: Option<u32>) -> Result<Facts<'a>, RequestError> {
    if !is_token(request.method.as_bytes()) {
        return Err(RequestError::Method);
    }
    let mut facts = Facts {
        answer_to: match request.method {
            "HEAD" => AnswerTo::Head,
            "CONNECT" => AnswerTo::Connect,
            _ => AnswerTo::Other,
        },
        authority: request.authority.as_bytes(),
        length: if let BodyLength::Known(length) = request.body { Some(length) } else { None },
        expect: request.expect_continue && has_body(request.body),
        nominates: false,
    };
    check_fields(request.fields)?;
    let mut framed = false;
    for (index, &(name, value)) in request.fields.iter().enumerate() {
        if name.eq_ignore_ascii_case("host") {
            facts.authority = trim_ows(value);
        } else if name.eq_ignore_ascii_case("connection") {
            facts.nominates = true;
        } else if name.eq_ignore_ascii_case("expect") {
            facts.expect = false;
        } else if name.eq_ignore_ascii_case("content-length") {
            let length = match request.body {
                BodyLength::None => Some(0),
                BodyLength::Known(length) => Some(length),
                BodyLength::Chunked => None,
            };
            if framed || length.is_none_or(|length| decimal(trim_ows(value)) != Ok(length)) {
                return Err(RequestError::FramingField { index });
            }
            framed = true;
            facts.length = None;
        }
    }
    check_target(request, &facts)?;
    let limit = room.unwrap_or(u32::MAX);
    if list_size(request, &facts) > u64::from(limit) {
        return Err(RequestError::HeadTooLarge { limit });
    }
    Ok(facts)
}

fn check_target(request: &Request<'_>, facts: &Facts<'_>) -> Result<(), RequestError> {
    let visible = |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    if !visible(facts.authority) || facts.authority.contains(&b'@') {
        return Err(RequestError::Authority);
    }
    if facts.answer_to == AnswerTo::Connect {
        return Ok(());
    }
    if !matches!(request.scheme, "http" | "https") {
        return Err(RequestError::Scheme);
    }
    let asterisk = request.path == "*" && request.method == "OPTIONS";
    if !visible(request.path.as_bytes()) || !(request.path.starts_with('/') || asterisk) {
        return Err(RequestError::Path);
    }
    Ok(())
}

/// Returns an upper bound of the head's size, counted as in RFC 9113 §6.5.2.
fn list_size(request: &Request<'_>, facts: &Facts<'_>) -> u64 {
    let fields: usize = request.fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    let pseudo = request.method.len() + request.scheme.len() + request.path.len() + facts.authority.len();
    // The names of the pseudo-fields, Content-Length and Expect, and 32 bytes for each of the six.
    (fields + pseudo + 300) as u64
}

/// Writes the block of a request that passed [`check`]. `name` is scratch space.
pub(crate) fn write(
    request: &Request<'_>,
    facts: &Facts<'_>,
    encoder: &mut Encoder,
    name: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    encoder.begin(out);
    encoder.encode(b":method", request.method.as_bytes(), Indexing::Add, out);
    encoder.encode(b":authority", facts.authority, Indexing::Add, out);
    if facts.answer_to != AnswerTo::Connect {
        encoder.encode(b":scheme", request.scheme.as_bytes(), Indexing::Add, out);
        encoder.encode(b":path", request.path.as_bytes(), Indexing::Skip, out);
    }
    write_fields(request.fields, request.sensitive, facts.nominates, encoder, name, out);
    if let Some(length) = facts.length {
        let mut digits = Vec::new();
        push_decimal(length, &mut digits);
        encoder.encode(b"content-length", &digits, Indexing::Skip, out);
    }
    if facts.expect {
        encoder.encode(b"expect", b"100-continue", Indexing::Add, out);
    }
}

fn write_fields(
    fields: &[(&str, &[u8])],
    sensitive: &[&str],
    nominates: bool,
    encoder: &mut Encoder,
    lower: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    for &(name, value) in fields {
        let value = trim_ows(value);
        if is_dropped(name, value) || nominates && is_nominated(name, fields) {
            continue;
        }
        // The only value of TE that HTTP/2 allows (RFC 9113 section 8.2.2).
        let value = if name.eq_ignore_ascii_case("te") { b"trailers" } else { value };
        lower.clear();
        lower.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        encoder.encode(lower, value, indexing(lower, value, sensitive), out);
    }
}

/// Validates trailers without writing anything.
pub(crate) fn check_trailers(trailers: &[(&str, &[u8])]) -> Result<(), RequestError> {
    check_fields(trailers)?;
    match trailers.iter().position(|(name, value)| {
        name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("host") || is_dropped(name, value)
    }) {
        Some(index) => Err(RequestError::FramingField { index }),
        None => Ok(()),
    }
}

/// Writes the block of trailers that passed [`check_trailers`].
pub(crate) fn write_trailers(trailers: &[(&str, &[u8])], encoder: &mut Encoder, name: &mut Vec<u8>, out: &mut Vec<u8>) {
    encoder.begin(out);
    write_fields(trailers, &[], false, encoder, name, out);
}

fn check_fields(fields: &[(&str, &[u8])]) -> Result<(), RequestError> {
    for (index, (name, value)) in fields.iter().enumerate() {
        if !is_token(name.as_bytes()) {
            return Err(RequestError::FieldName { index });
        }
        if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(RequestError::FieldValue { index });
        }
    }
    Ok(())
}

fn has_body(length: BodyLength) -> bool {
    !matches!(length, BodyLength::None | BodyLength::Known(0))
}

/// Returns `true` for fields that HTTP/2 must not carry, and for Host, which became `:authority`.
fn is_dropped(name: &str, value: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        2 => is("te") && !list(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers")),
        4 => is("host"),
        7 => is("upgrade"),
        10 => is("connection") || is("keep-alive"),
        14 => is("http2-settings"),
        16 => is("proxy-connection"),
        17 => is("transfer-encoding"),
        _ => false,
    }
}

/// Returns `true` if a Connection field names this field. TE must be named there and is kept.
fn is_nominated(name: &str, fields: &[(&str, &[u8])]) -> bool {
    !name.eq_ignore_ascii_case("te")
        && fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case("connection"))
            .any(|(_, value)| list(value).any(|token| token.eq_ignore_ascii_case(name.as_bytes())))
}

fn indexing(name: &[u8], value: &[u8], sensitive: &[&str]) -> Indexing {
    match name {
        b"authorization" | b"proxy-authorization" => Indexing::Never,
        b"cookie" if value.len() < 20 => Indexing::Never,
        _ if sensitive.iter().any(|secret| secret.as_bytes() == name) => Indexing::Never,
        // These differ from request to request.
        b"content-length" | b"range" | b"if-range" | b"if-none-match" | b"if-modified-since" => Indexing::Skip,
        _ => Indexing::Add,
    }
}
