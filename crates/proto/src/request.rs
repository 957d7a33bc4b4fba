//! Requests for all HTTP versions: their parts, the errors of a caller, and validation.
//!
//! The caller decides all fields and their order. Text that could break the framing is refused: CR,
//! LF and NUL are an error before a byte is written. Each version sends the parts as follows:
//!
//! | part | HTTP/1.1 | HTTP/2, HTTP/3 |
//! |---|---|---|
//! | `method` | request line | `:method` |
//! | `target` | request line | `:path`; an absolute form gives `:scheme` too |
//! | `scheme` | not sent | `:scheme` |
//! | `authority` | not sent: the caller gives Host | `:authority`, unless there is a Host |
//! | `fields` | as given | in lower case, without fields that belong to an HTTP/1 connection |
//!
//! ```
//! use haul_proto::time::MonotonicTimestamp;
//! use haul_proto::{h1, h2, request::{RequestHead, SendRequestError}};
//!
//! let fields: &[(&str, &[u8])] = &[("Host", b"example.org"), ("X-Name", b"a\r\nEvil: b")];
//! let request = RequestHead { target: "/search", fields, ..RequestHead::default() };
//! let mut http1 = h1::H1Machine::new(h1::H1Config::default());
//! assert_eq!(http1.enqueue(MonotonicTimestamp(0), &request), Err(SendRequestError::FieldValue { index: 1 }));
//! let mut http2 = h2::H2Machine::new(h2::H2Config::default());
//! assert_eq!(http2.enqueue(MonotonicTimestamp(0), &request), Err(SendRequestError::FieldValue { index: 1 }));
//! ```

pub use crate::request_section_writer::to_http1_text;

use crate::close_reason::CloseReason;
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::syntax::is_token;
use alloc::vec::Vec;
use core::fmt;

/// The length of a request's body, which determines how its end is marked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BodyLength {
    /// The request has no body, and no Content-Length or Transfer-Encoding field. (For a POST
    /// without content use [`BodyLength::Known`] with 0, see RFC 9110 §8.6.)
    None,
    /// The body has this length in bytes. A Content-Length field is added unless the caller gave
    /// one.
    Known(u64),
    /// The body has an unknown number of bytes. HTTP/1.1 adds `Transfer-Encoding: chunked` unless
    /// the caller gave it.
    Chunked,
}

impl BodyLength {
    pub(crate) fn has_bytes(self) -> bool {
        !matches!(self, BodyLength::None | BodyLength::Known(0))
    }
}

/// The head of a request.
///
/// `Debug` prints the names of the fields but no values and no target, because these may contain
/// credentials. The default is a GET of `/` with the scheme https and without fields.
#[derive(Copy, Clone)]
pub struct RequestHead<'a> {
    /// The method: a token, in the letter case that the server expects (`GET`). HEAD and CONNECT
    /// change how the response is read.
    pub method: &'a str,
    /// The scheme of the target URI: `https` or `http`.
    pub scheme: &'a str,
    /// The host and port of the target URI, without userinfo. If `fields` has a Host field, the
    /// value of that field is used instead.
    pub authority: &'a str,
    /// The request target exactly as HTTP/1.1 sends it (RFC 9112 §3.2): origin-form, absolute-form,
    /// authority-form or `*`.
    pub target: &'a str,
    /// The header fields of the request as names and values, in order. The connection adds further
    /// fields if [`BodyLength`] or `expect_continue` requires them.
    pub fields: &'a [(&'a str, &'a [u8])],
    /// The length of the request's body.
    pub body: BodyLength,
    /// True to delay the body until `100 Continue` arrives or the connection's `expect_timeout` has
    /// passed. An `Expect: 100-continue` field is added unless the caller gave an Expect field. Has
    /// no effect without a body.
    pub expect_continue: bool,
    /// True to send the request as HTTP/1.0 if the connection speaks HTTP/1. Default: false.
    pub http10: bool,
    /// Names of fields (in lower case) that must never enter an HPACK or QPACK table, because the
    /// lengths of encrypted blocks could reveal their values (RFC 7541 §7.1.3). Authorization,
    /// Proxy-Authorization and a Cookie of less than 20 bytes never enter a table in any case.
    pub sensitive: &'a [&'a str],
}

impl Default for RequestHead<'_> {
    fn default() -> Self {
        RequestHead {
            method: "GET",
            scheme: "https",
            authority: "",
            target: "/",
            fields: &[],
            body: BodyLength::None,
            expect_continue: false,
            http10: false,
            sensitive: &[],
        }
    }
}

impl RequestHead<'_> {
    pub(crate) fn response_to(&self) -> ResponseFramingContext {
        match self.method {
            "HEAD" => ResponseFramingContext::Head,
            "CONNECT" => ResponseFramingContext::Connect,
            _ => ResponseFramingContext::Other,
        }
    }
}

/// A list of header fields of which `Debug` prints only the names, since the values may be secret.
struct FieldNamesOnly<'a>(&'a [(&'a str, &'a [u8])]);

impl fmt::Debug for FieldNamesOnly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("authority", &self.authority)
            .field("fields", &FieldNamesOnly(self.fields))
            .field("body", &self.body)
            .field("expect_continue", &self.expect_continue)
            .finish_non_exhaustive()
    }
}

/// The reason why a connection refused a call: a mistake of the caller, or a limit that requires
/// waiting. No byte was written, and the connection is unchanged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SendRequestError {
    /// The connection accepts no further request, for this reason.
    Closed(CloseReason),
    /// HTTP/1.1: the number of unanswered requests has reached
    /// [`max_pipeline`](crate::h1::H1Config::max_pipeline).
    PipelineFull {
        /// The largest number of unanswered requests that the configuration allows.
        limit: usize,
    },
    /// HTTP/1.1: the body of the previous request is not finished.
    BodyPending,
    /// HTTP/1.1: the previous request may turn the connection into a tunnel (CONNECT, Upgrade).
    TunnelPending,
    /// HTTP/2 and HTTP/3: the number of unanswered requests has reached its limit.
    TooManyStreams {
        /// The largest number of unanswered requests. HTTP/2: the peer's limit (100 until the peer
        /// has sent one), or [`max_streams`](crate::h2::H2Config::max_streams) if that is smaller.
        /// HTTP/3: [`max_streams`](crate::h3::H3Config::max_streams).
        limit: u32,
    },
    /// HTTP/3: the identifier does not belong to a bidirectional QUIC stream that the client
    /// opened, or the stream carries a request already.
    StreamIdentifier,
    /// HTTP/2: one more response needs a receive window that does not fit into
    /// [`connection_window`](crate::h2::H2Config::connection_window). Release received bytes, or
    /// wait for a response to end.
    NoWindow,
    /// The method of the request is not a token.
    Method,
    /// The scheme of a request over HTTP/2 or HTTP/3 is neither `http` nor `https`.
    Scheme,
    /// HTTP/2 and HTTP/3: the authority is empty, is not UTF-8, or contains a space, a control byte
    /// or userinfo.
    Authority,
    /// The request target is empty, or contains a space or a control byte. HTTP/2 and HTTP/3
    /// also refuse a path that does not begin with a slash.
    Target,
    /// The name of the field with this index is not a token.
    FieldName {
        /// The index of the field among the request's fields, counted from 0.
        index: usize,
    },
    /// The value of the field with this index contains CR, LF or NUL.
    FieldValue {
        /// The index of the field among the request's fields, counted from 0.
        index: usize,
    },
    /// The field with this index (Content-Length or Transfer-Encoding) contradicts the length of
    /// the body or another field, or is not allowed in trailers.
    FramingField {
        /// The index of the field among the request's fields, counted from 0.
        index: usize,
    },
    /// The request head is larger than the peer allows: in HTTP/2 by
    /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in HTTP/3 by `SETTINGS_MAX_FIELD_SECTION_SIZE`.
    HeadTooLarge {
        /// The largest head that the peer allows, in bytes: the lengths of all names and values,
        /// plus 32 for each field (RFC 9113 §6.5.2).
        limit: u32,
    },
    /// No request with this id is open on the connection.
    UnknownRequest,
    /// The request has no body, or the caller has given all of its body already.
    NoBodyExpected,
    /// The caller passed more body bytes than the announced length.
    BodyTooLong {
        /// The announced length minus the number of body bytes passed before this call.
        expected: u64,
    },
    /// The caller ended the body before its announced length.
    BodyTooShort {
        /// The announced length minus the number of body bytes that the caller has passed.
        missing: u64,
    },
    /// The request has trailers and a body of known length. Only a chunked body can have trailers.
    TrailersWithoutChunks,
    /// The body has an unknown length, which HTTP/1.0 cannot express
    /// ([`H1Deviations::http10`](crate::h1::H1Deviations) is set).
    ChunksInHttp10,
}

impl SendRequestError {
    /// Returns the index of the request field that caused the error; `None` if no field did.
    #[must_use]
    pub fn field_index(&self) -> Option<usize> {
        match *self {
            Self::FieldName { index } | Self::FieldValue { index } | Self::FramingField { index } => Some(index),
            _ => None,
        }
    }
}

impl core::error::Error for SendRequestError {}

impl fmt::Display for SendRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SendRequestError::Closed(reason) => write!(f, "request refused, connection is closed: {reason}"),
            SendRequestError::PipelineFull { limit } => {
                write!(f, "request refused, the limit of {limit} unanswered requests is reached")
            }
            SendRequestError::BodyPending => f.write_str("request refused, the body of the one before is unfinished"),
            SendRequestError::TunnelPending => f.write_str("request refused, the connection may become a tunnel"),
            SendRequestError::TooManyStreams { limit } => {
                write!(f, "request refused, the limit of {limit} unanswered requests is reached")
            }
            SendRequestError::StreamIdentifier => f.write_str("request refused, its QUIC stream cannot carry it"),
            SendRequestError::NoWindow => f.write_str("request refused, no window is left for its response"),
            SendRequestError::Method => f.write_str("request refused, its method is not a token"),
            SendRequestError::Scheme => f.write_str("request refused, its scheme is neither http nor https"),
            SendRequestError::Authority => f.write_str("request refused, its authority is not a host and a port"),
            SendRequestError::Target => f.write_str("request refused, its target holds a space or a control byte"),
            SendRequestError::FieldName { index } => {
                write!(f, "request refused, the name of header {} is not a token", index + 1)
            }
            SendRequestError::FieldValue { index } => {
                write!(f, "request refused, the value of header {} holds CR, LF or NUL", index + 1)
            }
            SendRequestError::FramingField { index } => {
                write!(f, "request refused, header {} contradicts the length of the body", index + 1)
            }
            SendRequestError::HeadTooLarge { limit } => {
                write!(f, "request refused, its head is above the server's limit of {limit} bytes")
            }
            SendRequestError::UnknownRequest => f.write_str("no such request is open"),
            SendRequestError::NoBodyExpected => f.write_str("request body given where none is expected"),
            SendRequestError::BodyTooLong { expected } => {
                write!(f, "request body goes on beyond the {expected} bytes that were left of it")
            }
            SendRequestError::BodyTooShort { missing } => {
                write!(f, "request body ends {missing} bytes before its announced length")
            }
            SendRequestError::TrailersWithoutChunks => f.write_str("trailers given for a body of known length"),
            SendRequestError::ChunksInHttp10 => f.write_str("HTTP/1.0 cannot send a body of unknown length"),
        }
    }
}

/// Checks that the names and values of a request's fields are valid (RFC 9110 §5).
pub(crate) fn check_fields(fields: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
    for (index, (name, value)) in fields.iter().enumerate() {
        if !is_token(name.as_bytes()) {
            return Err(SendRequestError::FieldName { index });
        }
        if may_break_line(value) && contains_byte(value, |byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(SendRequestError::FieldValue { index });
        }
    }
    Ok(())
}

/// Returns `true` if a value contains CR, LF or NUL. May also return `true` for other values: it
/// only looks for control bytes below 0x0e other than the tab. Most values are too short for the
/// vectorised loop of [`contains_byte`], so this function examines eight bytes at a time.
fn may_break_line(value: &[u8]) -> bool {
    const LIMIT: u8 = b'\r' + 1;
    const LIMITS: u64 = u64::from_ne_bytes([LIMIT; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = value.as_chunks();
    // The subtraction sets the high bit of the first byte below the limit. A borrow may set the
    // high bits of later bytes.
    let found = words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .fold(0, |found, word| found | (word.wrapping_sub(LIMITS) & !word));
    found & HIGH_BITS != 0 || rest.iter().any(|&byte| byte < LIMIT)
}

/// Returns `true` if `is` returns true for any of the bytes. Examines all bytes without an early
/// exit, so that the compiler can vectorise the loop.
pub(crate) fn contains_byte(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |found, &byte| found | is(byte))
}

/// Appends a number in decimal digits to `out`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_in_values_are_refused_at_any_position() {
        for filler in [b'\t', b' ', b'a', 0x7f, 0x80, 0x8d, 0xff] {
            for length in 0..20 {
                let mut value = [filler; 20];
                assert_eq!(check_fields(&[("a", &value[..length])]), Ok(()), "{filler:x} {length}");
                for place in 0..length {
                    for wrong in [b'\r', b'\n', 0] {
                        value[place] = wrong;
                        let checked = check_fields(&[("b", b""), ("a", &value[..length])]);
                        assert_eq!(
                            checked,
                            Err(SendRequestError::FieldValue { index: 1 }),
                            "{filler:x} {length} {place}"
                        );
                    }
                    value[place] = filler;
                }
            }
        }
    }
}
