//! The types that describe the framing of messages in all HTTP versions: the ids of requests, the
//! end of a response's body, and Content-Length (RFC 9110 §8.6).

use crate::syntax::{DecimalFault, parse_decimal, trim_ows};

/// The id of a request on its connection. Later requests have higher ids. In HTTP/2 and HTTP/3 the
/// id is the stream identifier.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// The rule by which the end of a response's body is found (RFC 9112 §6.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ResponseBodyFraming {
    /// The response has no body: it answers HEAD, or is a 204 or 304.
    None,
    /// The body has this length in bytes.
    Length(u64),
    /// HTTP/1: the chunked transfer coding. HTTP/2 and HTTP/3: a body of unknown length, which ends
    /// with the stream.
    Chunked,
    /// The body consists of all bytes until the peer closes the connection.
    UntilClose,
}

/// The property of a request that influences the framing of its response: its method is HEAD,
/// CONNECT or another.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ResponseFramingContext {
    Head,
    Connect,
    Other,
}

/// The kinds of mistakes in a Content-Length.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ContentLengthFault {
    /// The value is not a plain decimal number: it has a sign or a unit, is empty, or is a list
    /// with an empty element.
    Malformed,
    /// The number in the field exceeds 2⁶⁴−1.
    TooLarge,
    /// Two values differ, in one Content-Length field or in two.
    Conflicting,
}

/// Parses the value of Content-Length: one number, or a list of equal numbers. Some intermediaries
/// combine a field that was sent twice into such a list (RFC 9110 §8.6).
pub(crate) fn parse_content_length(value: &[u8]) -> Result<u64, ContentLengthFault> {
    let mut length = None;
    for element in value.split(|&byte| byte == b',') {
        let one = parse_decimal(trim_ows(element)).map_err(|fault| match fault {
            DecimalFault::NotANumber => ContentLengthFault::Malformed,
            DecimalFault::TooLarge => ContentLengthFault::TooLarge,
        })?;
        if length.is_some_and(|known| known != one) {
            return Err(ContentLengthFault::Conflicting);
        }
        length = Some(one);
    }
    length.ok_or(ContentLengthFault::Malformed)
}
