//! Validates requests for HTTP/1.1 (RFC 9112) and writes them.
//!
//! Fields keep the spelling and order that the caller gave. The only fields added are
//! Content-Length, Transfer-Encoding and Expect.

use super::framing::ConnectionFieldTokens;
use crate::request::{BodyLength, RequestHead, SendRequestError, check_fields, contains_byte, push_decimal};
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::syntax::{equals_lower_case, is_token, list_elements, parse_decimal, resembles_framing_field, trim_ows};
use alloc::vec::Vec;

/// The properties of a request that the connection remembers until the response is complete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestProperties {
    pub(crate) response_to: ResponseFramingContext,
    /// True if the request has an Upgrade field, so that 101 is a valid response.
    pub(crate) upgrade: bool,
    /// True if the request has `Connection: close`.
    pub(crate) close: bool,
    /// True if the request's TE field lists a coding, so that the response may use transfer codings
    /// other than chunked (RFC 9110 §10.1.4).
    pub(crate) asks_coding: bool,
    missing: MissingBodyFields,
}

/// The fields for the request's body that the head still needs because the caller did not supply
/// them: Content-Length, Transfer-Encoding, Expect.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct MissingBodyFields {
    length: Option<u64>,
    chunked: bool,
    expect: bool,
}

/// Validates a request for HTTP/1.1 without writing it. Returns the properties that
/// [`write_request()`] needs.
///
/// With `verbatim`, names that are not tokens are valid
/// ([`H1Deviations::verbatim_fields`](super::H1Deviations::verbatim_fields)).
pub(crate) fn check_request(request: &RequestHead<'_>, verbatim: bool) -> Result<RequestProperties, SendRequestError> {
    if !is_token(request.method.as_bytes()) {
        return Err(SendRequestError::Method);
    }
    if request.target.is_empty() || contains_byte(request.target.as_bytes(), |byte| byte <= b' ' || byte == 0x7f) {
        return Err(SendRequestError::Target);
    }
    if verbatim {
        check_verbatim(request.fields)?;
    } else {
        check_fields(request.fields)?;
    }
    let mut missing = MissingBodyFields {
        expect: request.expect_continue && request.body.has_bytes(),
        ..MissingBodyFields::default()
    };
    match request.body {
        BodyLength::None => {}
        BodyLength::Known(length) => missing.length = Some(length),
        BodyLength::Chunked => missing.chunked = true,
    }
    let (mut upgrade, mut connection, mut framed) = (false, ConnectionFieldTokens::default(), false);
    let mut asks_coding = false;
    for (index, (name, value)) in request.fields.iter().enumerate() {
        // The length of a name excludes nearly all others before any letter is compared.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => connection.read(value),
            7 if name.eq_ignore_ascii_case("upgrade") => upgrade = true,
            6 if name.eq_ignore_ascii_case("expect") => missing.expect = false,
            2 if name.eq_ignore_ascii_case("te") => {
                asks_coding |= list_elements(value).any(|element| !element.eq_ignore_ascii_case(b"trailers"));
            }
            14 | 17 if is_framing_field(name) => {
                if framed || !matches_body_length(name, value, request.body) {
                    return Err(SendRequestError::FramingField { index });
                }
                framed = true;
                (missing.length, missing.chunked) = (None, false);
            }
            _ => {}
        }
    }
    Ok(RequestProperties { response_to: request.response_to(), upgrade, close: connection.close, asks_coding, missing })
}

/// Checks fields whose names may be other than tokens. No field may contain a line end. A name that
/// is not a token must not resemble the name of a field that determines the framing
/// (Content-Length, Transfer-Encoding).
fn check_verbatim(fields: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
    for (index, (name, value)) in fields.iter().enumerate() {
        let name = name.as_bytes();
        let breaks_line = |byte| matches!(byte, b'\r' | b'\n' | 0);
        let is_wrong = name.is_empty() || contains_byte(name, |byte| breaks_line(byte) || byte == b':');
        if is_wrong || !is_token(name) && resembles_framing_field(name) {
            return Err(SendRequestError::FieldName { index });
        }
        if contains_byte(value, breaks_line) {
            return Err(SendRequestError::FieldValue { index });
        }
    }
    Ok(())
}

/// Writes the HTTP/1 head of a request that passed [`check_request`]. If `http10` is true, the
/// version in the head is HTTP/1.0, otherwise HTTP/1.1.
pub(crate) fn write_request(request: &RequestHead<'_>, facts: &RequestProperties, http10: bool, out: &mut Vec<u8>) {
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

/// Validates the fields of a trailer section without writing anything.
pub(crate) fn check_trailers(trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
    check_fields(trailers)?;
    match trailers.iter().position(|(name, _)| is_framing_field(name)) {
        Some(index) => Err(SendRequestError::FramingField { index }),
        None => Ok(()),
    }
}

/// Writes field lines (`name: value` and CR LF), without the empty line that ends a section.
pub(crate) fn write_fields(fields: &[(&str, &[u8])], out: &mut Vec<u8>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(if value.is_empty() { b":" } else { b": " });
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

fn is_framing_field(name: &str) -> bool {
    equals_lower_case(name.as_bytes(), b"content-length") || equals_lower_case(name.as_bytes(), b"transfer-encoding")
}

/// Returns `true` if a Content-Length or Transfer-Encoding field that the caller gave agrees with
/// the length of the body (RFC 9112 §6.1, §6.2).
fn matches_body_length(name: &str, value: &[u8], body: BodyLength) -> bool {
    let is_length = equals_lower_case(name.as_bytes(), b"content-length");
    match body {
        BodyLength::None => is_length && parse_decimal(trim_ows(value)) == Ok(0),
        BodyLength::Known(length) => is_length && parse_decimal(trim_ows(value)) == Ok(length),
        // Other codings may precede chunked: the caller has applied them.
        BodyLength::Chunked => {
            let chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
            !is_length
                && list_elements(value).last().is_some_and(|last| chunked(&last))
                && list_elements(value).filter(chunked).count() == 1
        }
    }
}
