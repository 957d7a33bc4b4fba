//! Validates requests for HTTP/2 and HTTP/3 (RFC 9113 §8.3, RFC 9114 §4.3) and writes them as field
//! sections.
//!
//! Names are sent in lower case. Callers give the same fields for every HTTP version, so fields
//! that belong to an HTTP/1 connection are left out (RFC 9113 §8.2.2, RFC 9114 §4.2): Connection
//! and the fields that it names, Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade,
//! HTTP2-Settings, and any TE except `trailers`. Host becomes `:authority`.

use crate::field_coding::{FieldIndexing, FieldSectionEncoder};
use crate::request::{BodyLength, RequestHead, SendRequestError, check_fields, push_decimal};
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::syntax::{is_token, list_elements, parse_decimal, trim_ows};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// A request that passed [`check_request`], with the values that [`write_request()`] needs.
#[derive(Clone, Debug)]
pub(crate) struct ValidatedRequest<'a> {
    pub(crate) response_to: ResponseFramingContext,
    scheme: &'a str,
    path: Cow<'a, str>,
    authority: &'a [u8],
    /// The value of the Content-Length field to add; `None` to add none.
    length: Option<u64>,
    /// True if the writer has to add an Expect field.
    expect: bool,
    /// True if the caller gave a Connection field. The fields that Connection names are then left
    /// out.
    nominates: bool,
}

/// Validates a request for HTTP/2 and HTTP/3 without writing it. `room` is the peer's limit on the
/// size of a request head in bytes; `None` means no limit.
pub(crate) fn check_request<'a>(
    request: &RequestHead<'a>,
    room: Option<u32>,
) -> Result<ValidatedRequest<'a>, SendRequestError> {
    if !is_token(request.method.as_bytes()) {
        return Err(SendRequestError::Method);
    }
    let (scheme, path) = scheme_and_path(request);
    let mut facts = ValidatedRequest {
        response_to: request.response_to(),
        scheme,
        path,
        authority: request.authority.as_bytes(),
        length: if let BodyLength::Known(length) = request.body { Some(length) } else { None },
        expect: request.expect_continue && request.body.has_bytes(),
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
            if framed || length.is_none_or(|length| parse_decimal(trim_ows(value)) != Ok(length)) {
                return Err(SendRequestError::FramingField { index });
            }
            framed = true;
            facts.length = None;
        }
    }
    check_target(request, &facts)?;
    let limit = room.unwrap_or(u32::MAX);
    if field_section_size(request, &facts) > u64::from(limit) {
        return Err(SendRequestError::HeadTooLarge { limit });
    }
    Ok(facts)
}

/// Returns the values of `:scheme` and `:path`. A request target in absolute form, for a proxy that
/// forwards the request, contains both values (RFC 9112 §3.2.2).
///
/// A target without a path has the path `/`, or `*` if OPTIONS asks about the server (RFC 9113
/// §8.3.1).
fn scheme_and_path<'a>(request: &RequestHead<'a>) -> (&'a str, Cow<'a, str>) {
    let Some(("http", rest)) = request.target.split_once("://") else {
        return (request.scheme, Cow::Borrowed(request.target));
    };
    let after_authority = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    let path = match after_authority.as_bytes() {
        [] if request.method == "OPTIONS" => Cow::Borrowed("*"),
        [] => Cow::Borrowed("/"),
        [b'?', ..] => Cow::Owned(["/", after_authority].concat()),
        _ => Cow::Borrowed(after_authority),
    };
    ("http", path)
}

fn check_target(request: &RequestHead<'_>, facts: &ValidatedRequest<'_>) -> Result<(), SendRequestError> {
    let visible = |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    let authority = facts.authority;
    if !visible(authority) || authority.contains(&b'@') || core::str::from_utf8(authority).is_err() {
        return Err(SendRequestError::Authority);
    }
    if facts.response_to == ResponseFramingContext::Connect {
        return Ok(());
    }
    if !matches!(facts.scheme, "http" | "https") {
        return Err(SendRequestError::Scheme);
    }
    let asterisk = facts.path == "*" && request.method == "OPTIONS";
    if !visible(facts.path.as_bytes()) || !(facts.path.starts_with('/') || asterisk) {
        return Err(SendRequestError::Target);
    }
    Ok(())
}

/// Returns an upper bound of the size of the request head, counted as in RFC 9113 §6.5.2.
fn field_section_size(request: &RequestHead<'_>, facts: &ValidatedRequest<'_>) -> u64 {
    let fields: usize = request.fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    let pseudo = request.method.len() + facts.scheme.len() + facts.path.len() + facts.authority.len();
    // The names of the pseudo-fields, Content-Length and Expect, and 32 bytes for each of the six.
    (fields + pseudo + 300) as u64
}

/// Writes the field section of a request that passed [`check_request`]. `name` is a buffer that is
/// reused to convert field names to lower case.
pub(crate) fn write_request(
    request: &RequestHead<'_>,
    facts: &ValidatedRequest<'_>,
    encoder: &mut impl FieldSectionEncoder,
    name: &mut Vec<u8>,
) {
    encoder.push_field(b":method", request.method.as_bytes(), FieldIndexing::Add);
    encoder.push_field(b":authority", facts.authority, FieldIndexing::Add);
    if facts.response_to != ResponseFramingContext::Connect {
        encoder.push_field(b":scheme", facts.scheme.as_bytes(), FieldIndexing::Add);
        encoder.push_field(b":path", facts.path.as_bytes(), FieldIndexing::Skip);
    }
    write_fields(request.fields, request.sensitive, facts.nominates, encoder, name);
    if let Some(length) = facts.length {
        let mut digits = Vec::new();
        push_decimal(length, &mut digits);
        encoder.push_field(b"content-length", &digits, FieldIndexing::Skip);
    }
    if facts.expect {
        encoder.push_field(b"expect", b"100-continue", FieldIndexing::Add);
    }
}

fn write_fields(
    fields: &[(&str, &[u8])],
    sensitive: &[&str],
    nominates: bool,
    encoder: &mut impl FieldSectionEncoder,
    lower: &mut Vec<u8>,
) {
    for &(name, value) in fields {
        let value = trim_ows(value);
        if is_omitted_in_http2(name, value) || nominates && is_nominated(name, fields) {
            continue;
        }
        // The only value of TE that HTTP/2 and HTTP/3 allow (RFC 9113 section 8.2.2).
        let value = if name.eq_ignore_ascii_case("te") { b"trailers" } else { value };
        lower.clear();
        lower.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        encoder.push_field(lower, value, indexing(lower, value, sensitive));
    }
}

/// Returns the HTTP/1.1 text of an HTTP/2 or HTTP/3 request: the same fields in the same order,
/// with `:authority` as Host and without all other pseudo-fields.
///
/// ```
/// use haul_proto::request::{RequestHead, to_http1_text};
///
/// let request = RequestHead { fields: &[("Host", b"example.org"), ("Accept", b"*/*")], ..RequestHead::default() };
/// assert_eq!(to_http1_text(&request).unwrap(), b"GET / HTTP/1.1\r\nhost: example.org\r\naccept: */*\r\n\r\n");
/// ```
///
/// # Errors
/// The request cannot be sent.
pub fn to_http1_text(request: &RequestHead<'_>) -> Result<Vec<u8>, SendRequestError> {
    let facts = check_request(request, None)?;
    let mut text = Http1TextEncoder([request.method, " ", &facts.path, " HTTP/1.1\r\n"].concat().into_bytes());
    write_request(request, &facts, &mut text, &mut Vec::new());
    text.0.extend_from_slice(b"\r\n");
    Ok(text.0)
}

/// The HTTP/1.1 text of a request head that is being written field by field.
struct Http1TextEncoder(Vec<u8>);

impl FieldSectionEncoder for Http1TextEncoder {
    fn push_field(&mut self, name: &[u8], value: &[u8], _indexing: FieldIndexing) {
        let name = match name {
            b":authority" => b"host",
            [b':', ..] => return,
            name => name,
        };
        for part in [name, b": ", value, b"\r\n"] {
            self.0.extend_from_slice(part);
        }
    }
}

/// Validates the fields of a trailer section without writing anything.
pub(crate) fn check_trailers(trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
    check_fields(trailers)?;
    match trailers.iter().position(|(name, value)| {
        name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("host")
            || is_omitted_in_http2(name, value)
    }) {
        Some(index) => Err(SendRequestError::FramingField { index }),
        None => Ok(()),
    }
}

/// Writes the field section of trailers that passed [`check_trailers`]. `name` is a buffer that is
/// reused to convert field names to lower case.
pub(crate) fn write_trailers(trailers: &[(&str, &[u8])], encoder: &mut impl FieldSectionEncoder, name: &mut Vec<u8>) {
    write_fields(trailers, &[], false, encoder, name);
}

/// Returns `true` for a field that must not be sent in HTTP/2 and HTTP/3, and for Host, whose value
/// is sent as `:authority`.
fn is_omitted_in_http2(name: &str, value: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        2 => is("te") && !list_elements(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers")),
        4 => is("host"),
        7 => is("upgrade"),
        10 => is("connection") || is("keep-alive"),
        14 => is("http2-settings"),
        16 => is("proxy-connection"),
        17 => is("transfer-encoding"),
        _ => false,
    }
}

/// Returns `true` if a Connection field names this field, which is then not sent in HTTP/2 and
/// HTTP/3. TE is an exception: HTTP/1 requires Connection to name TE, but TE is sent.
fn is_nominated(name: &str, fields: &[(&str, &[u8])]) -> bool {
    !name.eq_ignore_ascii_case("te")
        && fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case("connection"))
            .any(|(_, value)| list_elements(value).any(|token| token.eq_ignore_ascii_case(name.as_bytes())))
}

fn indexing(name: &[u8], value: &[u8], sensitive: &[&str]) -> FieldIndexing {
    match name {
        b"authorization" | b"proxy-authorization" => FieldIndexing::Never,
        b"cookie" if value.len() < 20 => FieldIndexing::Never,
        _ if sensitive.iter().any(|secret| secret.as_bytes() == name) => FieldIndexing::Never,
        // These differ from request to request.
        b"content-length" | b"range" | b"if-range" | b"if-none-match" | b"if-modified-since" => FieldIndexing::Skip,
        _ => FieldIndexing::Add,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_target_without_path_gets_one() {
        let path = |method, target| {
            let request = RequestHead { method, authority: "h", target, ..RequestHead::default() };
            check_request(&request, None).map(|facts| (facts.scheme, facts.path.into_owned()))
        };
        let http = |path: &str| Ok(("http", path.into()));
        assert_eq!(path("GET", "http://h/a?b"), http("/a?b"));
        assert_eq!(path("GET", "http://h"), http("/"));
        assert_eq!(path("GET", "http://h?q"), http("/?q"));
        assert_eq!(path("GET", "http://h?q=/a"), http("/?q=/a"));
        assert_eq!(path("OPTIONS", "http://h"), http("*"));
        assert_eq!(path("OPTIONS", "http://h/"), http("/"));
        assert_eq!(path("GET", "http://h#f/a"), Err(SendRequestError::Target));
    }

    #[test]
    fn secrets_and_short_cookies_are_never_indexed() {
        let of = |name: &str, length| indexing(name.as_bytes(), &[b'v'; 99][..length], &["x-key"]);
        for name in ["authorization", "proxy-authorization", "x-key"] {
            assert_eq!(of(name, 99), FieldIndexing::Never, "{name}");
        }
        assert_eq!([of("cookie", 19), of("cookie", 20)], [FieldIndexing::Never, FieldIndexing::Add]);
        assert_eq!([of("content-length", 1), of("accept", 1)], [FieldIndexing::Skip, FieldIndexing::Add]);
    }

    #[test]
    fn section_size_is_an_upper_bound() {
        let fields: &[(&str, &[u8])] = &[("accept", b"*/*"), ("x", b"")];
        let request = RequestHead { authority: "h.example", target: "/path", fields, ..RequestHead::default() };
        let facts = check_request(&request, None).expect("valid");
        // 6 + 3 + 32 and 1 + 32 bytes; GET, the scheme, the path, the authority; 300 bytes.
        let scheme = request.scheme.len();
        assert_eq!(field_section_size(&request, &facts), (41 + 33 + 3 + scheme + 5 + 9 + 300) as u64);
        let size = field_section_size(&request, &facts) as u32;
        assert!(check_request(&request, Some(size)).is_ok());
        let limit = size - 1;
        assert_eq!(check_request(&request, Some(limit)).err(), Some(SendRequestError::HeadTooLarge { limit }));
    }

    #[test]
    fn te_is_never_nominated_by_connection() {
        let fields: &[(&str, &[u8])] = &[("Connection", b"te, X-Hop"), ("TE", b"trailers"), ("x-hop", b"1")];
        assert_eq!(["te", "X-HOP", "x-other"].map(|name| is_nominated(name, fields)), [false, true, false]);
    }
}
