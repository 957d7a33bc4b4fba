//! Requests: validation, and the head on the wire.
//!
//! The caller decides all fields, Host included, and their order and spelling. Text that could
//! break the framing is refused: CR, LF and NUL are an error before a byte is written.
//!
//! ```
//! use haul_proto::h1::{BodyLength, Config, Conn, Request, RequestError};
//! use haul_proto::time::Time;
//!
//! let mut conn = Conn::new(Config::default());
//! let fields: &[(&str, &[u8])] = &[("Host", b"example.org"), ("X-Name", b"a\r\nEvil: b")];
//! let request = Request { method: "GET", target: "/", fields, body: BodyLength::None, expect_continue: false };
//! assert_eq!(conn.enqueue(Time(0), &request), Err(RequestError::FieldValue { index: 1 }));
//! assert!(conn.output().is_empty());
//! ```

use super::CloseReason;
use super::framing::{AnswerTo, Connection};
use crate::syntax::{decimal, is_token, list, trim_ows};
use alloc::vec::Vec;
use core::fmt;

/// The length of a request's body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BodyLength {
    /// No body, and no field about it. (For a POST without content use [`BodyLength::Known`] with
    /// 0, see RFC 9110 §8.6.)
    None,
    /// A known number of bytes; `Content-Length` is added unless the caller gave it.
    Known(u64),
    /// An unknown number; `Transfer-Encoding: chunked` is added unless the caller gave it.
    Chunked,
}

/// A request's head.
///
/// `Debug` prints the names of the fields but no values and no target, because those hold
/// credentials.
#[derive(Copy, Clone)]
pub struct Request<'a> {
    /// The method: a token, in the case that the server expects (`GET`). HEAD and CONNECT change
    /// how the response is read.
    pub method: &'a str,
    /// The request target exactly as sent (RFC 9112 §3.2): origin-form, absolute-form,
    /// authority-form or `*`.
    pub target: &'a str,
    /// All fields, in order. [`BodyLength`] and `expect_continue` add further ones.
    pub fields: &'a [(&'a str, &'a [u8])],
    /// The length of the body.
    pub body: BodyLength,
    /// True to hold the body back until `100 Continue` arrives or
    /// [`Config::expect_timeout`](super::Config) has passed. `Expect: 100-continue` is added unless
    /// the caller gave Expect. Has no effect without a body.
    pub expect_continue: bool,
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
            .field("fields", &Names(self.fields))
            .field("body", &self.body)
            .field("expect_continue", &self.expect_continue)
            .finish_non_exhaustive()
    }
}

/// A mistake of the caller. Nothing was written, and the connection is unchanged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The connection takes no further request.
    Closed(CloseReason),
    /// [`Config::max_pipeline`](super::Config::max_pipeline) requests are unanswered already.
    PipelineFull {
        /// The limit.
        limit: usize,
    },
    /// The body of the previous request is not finished.
    BodyPending,
    /// The previous request may turn the connection into a tunnel (CONNECT, Upgrade).
    TunnelPending,
    /// The method is not a token.
    Method,
    /// The target is empty or contains a space or a control byte.
    Target,
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
    /// The field with this index (Content-Length, Transfer-Encoding) contradicts the body's length
    /// or another field, or is not allowed in trailers.
    FramingField {
        /// The index into the fields.
        index: usize,
    },
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
    /// Trailers need a chunked body.
    TrailersWithoutChunks,
    /// The body has unknown length, but HTTP/1.0 has no chunks
    /// ([`Liberties::http10`](super::Liberties)).
    ChunksInHttp10,
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
            RequestError::PipelineFull { limit } => {
                write!(f, "request refused, the limit of {limit} unanswered requests is reached")
            }
            RequestError::BodyPending => f.write_str("request refused, the body of the one before is unfinished"),
            RequestError::TunnelPending => f.write_str("request refused, the connection may become a tunnel"),
            RequestError::Method => f.write_str("request refused, its method is not a token"),
            RequestError::Target => f.write_str("request refused, its target holds a space or a control byte"),
            RequestError::FieldName { index } => {
                write!(f, "request refused, the name of header {} is not a token", index + 1)
            }
            RequestError::FieldValue { index } => {
                write!(f, "request refused, the value of header {} holds CR, LF or NUL", index + 1)
            }
            RequestError::FramingField { index } => {
                write!(f, "request refused, header {} contradicts the length of the body", index + 1)
            }
            RequestError::NoBodyExpected => f.write_str("request body given where none is expected"),
            RequestError::BodyTooLong { expected } => {
                write!(f, "request body goes on beyond the {expected} bytes that were left of it")
            }
            RequestError::BodyTooShort { missing } => {
                write!(f, "request body ends {missing} bytes before its announced length")
            }
            RequestError::TrailersWithoutChunks => f.write_str("trailers given for a body that is not chunked"),
            RequestError::ChunksInHttp10 => f.write_str("HTTP/1.0 cannot send a body of unknown length"),
        }
    }
}

/// The properties of a request that the connection remembers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) answer_to: AnswerTo,
    /// True if the request asked for another protocol, so that 101 is a possible answer.
    pub(crate) upgrade: bool,
    /// True if the request said `Connection: close`.
    pub(crate) close: bool,
    /// Its TE names a coding, so the response may have others than chunked (RFC 9110 §10.1.4).
    pub(crate) asks_coding: bool,
    missing: Missing,
}

/// The fields to add.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Missing {
    length: Option<u64>,
    chunked: bool,
    expect: bool,
}

/// Validates a request without writing anything.
pub(crate) fn check(request: &Request<'_>) -> Result<Facts, RequestError> {
    if !is_token(request.method.as_bytes()) {
        return Err(RequestError::Method);
    }
    if request.target.is_empty() || has_any(request.target.as_bytes(), |byte| byte <= b' ' || byte == 0x7f) {
        return Err(RequestError::Target);
    }
    check_fields(request.fields)?;
    let mut missing = Missing { expect: request.expect_continue && has_body(request.body), ..Missing::default() };
    match request.body {
        BodyLength::None => {}
        BodyLength::Known(length) => missing.length = Some(length),
        BodyLength::Chunked => missing.chunked = true,
    }
    let (mut upgrade, mut connection, mut framed) = (false, Connection::default(), false);
    let mut asks_coding = false;
    for (index, (name, value)) in request.fields.iter().enumerate() {
        if name.eq_ignore_ascii_case("connection") {
            connection.read(value);
        } else if name.eq_ignore_ascii_case("upgrade") {
            upgrade = true;
        } else if name.eq_ignore_ascii_case("expect") {
            missing.expect = false;
        } else if name.eq_ignore_ascii_case("te") {
            asks_coding |= list(value).any(|element| !element.eq_ignore_ascii_case(b"trailers"));
        } else if is_framing(name) {
            if framed || !agrees(name, value, request.body) {
                return Err(RequestError::FramingField { index });
            }
            framed = true;
            (missing.length, missing.chunked) = (None, false);
        }
    }
    let answer_to = match request.method {
        "HEAD" => AnswerTo::Head,
        "CONNECT" => AnswerTo::Connect,
        _ => AnswerTo::Other,
    };
    Ok(Facts { answer_to, upgrade, close: connection.close, asks_coding, missing })
}

/// Writes the head of a request that passed [`check`].
pub(crate) fn write(request: &Request<'_>, facts: &Facts, http10: bool, out: &mut Vec<u8>) {
    let fields: usize = request.fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
    out.reserve(request.method.len() + request.target.len() + fields + 64);
    out.extend_from_slice(request.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(request.target.as_bytes());
    out.extend_from_slice(if http10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    write_fields(request.fields, out);
    if let Some(length) = facts.missing.length {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    if facts.missing.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if facts.missing.expect {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Validates trailers without writing anything.
pub(crate) fn check_trailers(trailers: &[(&str, &[u8])]) -> Result<(), RequestError> {
    check_fields(trailers)?;
    match trailers.iter().position(|(name, _)| is_framing(name)) {
        Some(index) => Err(RequestError::FramingField { index }),
        None => Ok(()),
    }
}

/// Writes field lines, without the empty line after them.
pub(crate) fn write_fields(fields: &[(&str, &[u8])], out: &mut Vec<u8>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(if value.is_empty() { b":" } else { b": " });
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

fn check_fields(fields: &[(&str, &[u8])]) -> Result<(), RequestError> {
    for (index, (name, value)) in fields.iter().enumerate() {
        if !is_token(name.as_bytes()) {
            return Err(RequestError::FieldName { index });
        }
        if has_any(value, |byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(RequestError::FieldValue { index });
        }
    }
    Ok(())
}

/// Returns `true` if a byte matches. Examines all bytes without an early exit, so that the compiler
/// can vectorise the loop.
fn has_any(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |found, &byte| found | is(byte))
}

fn has_body(length: BodyLength) -> bool {
    !matches!(length, BodyLength::None | BodyLength::Known(0))
}

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
}

/// Returns `true` if the caller's framing field agrees with the body's length (RFC 9112 §6.1,
/// §6.2).
fn agrees(name: &str, value: &[u8], body: BodyLength) -> bool {
    let is_length = name.eq_ignore_ascii_case("content-length");
    match body {
        BodyLength::None => is_length && decimal(trim_ows(value)) == Ok(0),
        BodyLength::Known(length) => is_length && decimal(trim_ows(value)) == Ok(length),
        // Other codings may precede chunked: the caller has applied them.
        BodyLength::Chunked => {
            let chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
            !is_length
                && list(value).last().is_some_and(|last| chunked(&last))
                && list(value).filter(chunked).count() == 1
        }
    }
}

pub(crate) fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
