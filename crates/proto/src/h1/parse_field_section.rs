//! Finds the end of a field section, and parses the section.
//!
//! The search for the end remembers its position, so that a head that arrives byte by byte costs no
//! more than one that arrives at once. Only a complete section is passed to `httparse`. Rejected:
//! calling `httparse` after every read, which takes quadratic time with a slow peer and reports
//! errors that depend on how the input was cut.

use super::error::{FieldLineFault, H1Error};
use crate::fields::{FieldSpan, Fields};
use crate::response_error::ResponseError;
use crate::response_head::{ProtocolVersion, ResponseHead};
use crate::syntax::{is_tchar, is_token, resembles_framing_field};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ptr;
use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};
use memchr::memchr;

/// The number of fields that can be parsed without an allocation. A head with more fields is rare
/// and is parsed a second time with an allocation.
const FIELDS_ON_STACK: usize = 96;

/// An incremental search for the empty line that ends a field section. Each call receives the
/// section from its first byte on.
#[derive(Default, Debug)]
pub(crate) struct FieldSectionScan {
    /// The position in the section from which the search resumes. The section does not end before
    /// this position.
    resume: usize,
    seen: usize,
    /// True if at least one line of the section has ended.
    has_line: bool,
    /// True if a line of the section begins with a space or a tab.
    folded: bool,
    /// The number of bytes that all calls together have examined.
    #[cfg(test)]
    examined: usize,
}

impl FieldSectionScan {
    /// Returns the length of the field section in bytes, including its final empty line; `None`
    /// until that line has arrived. A line may end in LF without CR (RFC 9112 §2.2).
    pub(crate) fn find_end(&mut self, input: &[u8]) -> Option<usize> {
        let mut at = self.resume.min(input.len());
        self.seen = input.len();
        loop {
            let Some(line_feed) = find_line_feed(&input[at..]).map(|found| at + found) else {
                self.examine(input.len() - at);
                self.has_line |= at > self.resume;
                self.resume = input.len();
                return None;
            };
            self.examine(line_feed + 1 - at);
            match &input[line_feed + 1..] {
                [b'\r', b'\n', ..] => return Some(line_feed + 3),
                [b'\n', ..] => return Some(line_feed + 2),
                // The next byte decides; the next search begins at this line feed again.
                [] | [b'\r'] => {
                    self.has_line = true;
                    self.resume = line_feed;
                    return None;
                }
                [b' ' | b'\t', ..] => self.folded = true,
                _ => {}
            }
            at = line_feed + 1;
        }
    }

    /// Returns the number of bytes of the field section seen so far.
    pub(crate) fn seen_bytes(&self) -> usize {
        self.seen
    }

    /// Returns `true` if the first line of the section has ended.
    pub(crate) fn has_complete_line(&self) -> bool {
        self.has_line
    }

    #[cfg(test)]
    fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
    }

    #[cfg(not(test))]
    fn examine(&mut self, _bytes: usize) {}
}

/// Returns the position of the first line feed, or `None`. Lines of a head are short. Examining
/// eight bytes at a time takes half the time of a `memchr` call for each line.
fn find_line_feed(input: &[u8]) -> Option<usize> {
    const LINE_FEEDS: u64 = u64::from_ne_bytes([b'\n'; 8]);
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = input.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let differs = u64::from_le_bytes(*word) ^ LINE_FEEDS;
        // The lowest high bit that is set belongs to the first byte that is zero, and so to the
        // first line feed.
        let found = differs.wrapping_sub(ONES) & !differs & HIGH_BITS;
        if found != 0 {
            return Some(8 * index + found.trailing_zeros() as usize / 8);
        }
    }
    let place = rest.iter().position(|&byte| byte == b'\n')?;
    Some(8 * words.len() + place)
}

/// Checks the part of a status line that has arrived. Input of another protocol is thus recognised
/// at its first wrong byte, not only when it exceeds the length limit.
pub(crate) fn check_start(input: &[u8]) -> Result<(), H1Error> {
    const HTTP_PREFIX: &[u8] = b"HTTP/";
    let common = input.len().min(HTTP_PREFIX.len());
    if input[..common] != HTTP_PREFIX[..common] {
        return Err(H1Error::NotHttp { first: true });
    }
    match &input[common..] {
        [] | [b'1'] | [b'1', b'.'] | [b'1', b'.', b'0' | b'1', ..] => Ok(()),
        [b'1', b'.', minor @ b'2'..=b'9', ..] => {
            Err(H1Error::UnsupportedVersion { major: 1, minor: Some(minor - b'0') })
        }
        [major @ (b'0' | b'2'..=b'9'), ..] => Err(H1Error::UnsupportedVersion { major: major - b'0', minor: None }),
        _ => Err(H1Error::StatusLine),
    }
}

/// Parses a complete response head, whose end `scan` has found. `limit` is the largest number of
/// fields. Keeps control bytes in values and in the reason phrase, except CR, LF and NUL (RFC 9110
/// §5.5). Skips a line whose name is not a token (`Feature Policy: x`), as browsers and curl do.
pub(crate) fn parse_head(input: &[u8], scan: &FieldSectionScan, limit: usize) -> Result<ResponseHead, H1Error> {
    // RFC 9112 §5.2: a user agent replaces a fold by spaces; only a server may refuse it.
    let whole = if scan.folded { Cow::Owned(unfold_lines(input)) } else { Cow::Borrowed(input) };
    match parse_head_text(&whole, &whole, limit) {
        Err(error @ (H1Error::Field(FieldLineFault::Name | FieldLineFault::Value) | H1Error::StatusLine)) => {
            let text = replace_invalid_bytes(&whole);
            if error == H1Error::StatusLine && first_line(&whole).contains(&0) {
                return Err(H1Error::Field(FieldLineFault::Value));
            }
            if text == *whole { Err(error) } else { parse_head_text(&whole, &text, limit) }
        }
        read => read,
    }
}

/// Returns the first line of a head, without its line feed.
fn first_line(input: &[u8]) -> &[u8] {
    &input[..memchr(b'\n', input).unwrap_or(input.len())]
}

/// Returns a copy of the response head in which each line fold, with the blanks around it, is
/// replaced by one space. The line after the status line cannot be a fold.
fn unfold_lines(input: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let first = memchr(b'\n', input).map_or(input.len(), |line_feed| line_feed + 1);
    let (status_line, fields) = input.split_at(first);
    let mut text = Vec::with_capacity(input.len());
    text.extend_from_slice(status_line);
    for line in fields.split_inclusive(|byte| *byte == b'\n') {
        let blanks = line.iter().take_while(|byte| is_blank(byte)).count();
        if blanks == 0 || text.len() == first {
            text.extend_from_slice(line);
            continue;
        }
        let before = text.strip_suffix(b"\n").unwrap_or(&text);
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let kept = before.len() - before.iter().rev().take_while(|byte| is_blank(byte)).count();
        text.truncate(kept);
        text.push(b' ');
        text.extend_from_slice(&line[blanks..]);
    }
    text
}

/// Returns a copy of the response head for `httparse`, in which bytes that `httparse` refuses but
/// haul tolerates are replaced. Control bytes become 0x80, and the non-token bytes of an [invalid
/// name](is_invalid_name) become `x`. The length stays the same.
fn replace_invalid_bytes(input: &[u8]) -> Vec<u8> {
    let is_control = |byte: u8| byte.is_ascii_control() && !matches!(byte, 0 | b'\t' | b'\r' | b'\n');
    let mut text = input.to_vec();
    for (number, line) in text.split_mut(|&byte| byte == b'\n').enumerate() {
        let end = memchr(b':', line).filter(|&colon| number > 0 && is_invalid_name(&line[..colon])).unwrap_or(0);
        line[..end].iter_mut().filter(|byte| !is_tchar(**byte)).for_each(|byte| *byte = b'x');
        line.iter_mut().filter(|byte| is_control(**byte)).for_each(|byte| *byte = 0x80);
    }
    text
}

/// Returns `true` if a field name is not a token and its field line can be skipped without harm.
/// The name must not be empty, contain control bytes other than tabs, or resemble Content-Length or
/// Transfer-Encoding. A lenient parser could take `Content Length` for Content-Length.
///
/// A name can begin with a blank only in the line after the status line. Such a line is skipped
/// (RFC 9112 §2.2). [`unfold_lines`] joins any other line that begins with a blank to the line
/// before it.
fn is_invalid_name(name: &[u8]) -> bool {
    !is_token(name)
        && !name.is_empty()
        && !name.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t')
        && !resembles_framing_field(name)
}

/// Parses a response head. The parser reads `text`, but the result contains the bytes of `input`.
/// `text` is `input` itself, or a copy of the same length in which bytes that `httparse` refuses
/// are replaced ([`replace_invalid_bytes`]). `limit` is the largest number of fields.
fn parse_head_text(input: &[u8], text: &[u8], limit: usize) -> Result<ResponseHead, H1Error> {
    let too_many = H1Error::Response(ResponseError::TooManyFields { limit });
    let mut stack = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_ON_STACK];
    let mut response = Response::new(&mut []);
    let config = ParserConfig::default();
    let room = &mut stack[..limit.min(FIELDS_ON_STACK)];
    let mut parsed = config.parse_response_with_uninit_headers(&mut response, text, room);
    let mut heap: Vec<Header<'_>>;
    if parsed == Err(httparse::Error::TooManyHeaders) && limit > FIELDS_ON_STACK {
        heap = vec![EMPTY_HEADER; limit.min(count_lines(input))];
        response = Response::new(&mut heap);
        parsed = config.parse_response(&mut response, text);
    }
    if parsed.map_err(|error| syntax_error(error, too_many))? != Status::Complete(input.len()) {
        return Err(H1Error::StatusLine);
    }
    let version = match response.version {
        Some(0) => ProtocolVersion::Http10,
        Some(1) => ProtocolVersion::Http11,
        _ => return Err(H1Error::StatusLine),
    };
    let status = match response.code {
        Some(code @ 100..=999) => code,
        _ => return Err(H1Error::StatusLine),
    };
    Ok(ResponseHead::new(version, status, find_reason_phrase(input), to_fields(input, text, response.headers)))
}

/// Parses a response head of any HTTP version from the bytes of [`ResponseHead::raw`]; `None` if
/// they are not a head.
pub(crate) fn parse_stored_head(raw: &[u8]) -> Option<ResponseHead> {
    const HTTP2_PREFIX: &[u8] = b"HTTP/2 ";
    const HTTP3_PREFIX: &[u8] = b"HTTP/3 ";
    let mut scan = FieldSectionScan::default();
    if scan.find_end(raw) != Some(raw.len()) {
        return None;
    }
    let (version, rest) = match (raw.strip_prefix(HTTP2_PREFIX), raw.strip_prefix(HTTP3_PREFIX)) {
        (Some(rest), _) => (ProtocolVersion::Http2, rest),
        (_, Some(rest)) => (ProtocolVersion::Http3, rest),
        _ => return parse_head(raw, &scan, count_lines(raw)).ok(),
    };
    let (status, rest) = rest.split_at_checked(3)?;
    let status = core::str::from_utf8(status).ok()?.parse::<u16>().ok().filter(|status| *status >= 100)?;
    let mut headers = vec![EMPTY_HEADER; count_lines(raw)];
    let Ok(Status::Complete((_, headers))) = httparse::parse_headers(rest.strip_prefix(b" \r\n")?, &mut headers) else {
        return None;
    };
    let end = (HTTP2_PREFIX.len() + "200 ".len()) as u32;
    Some(ResponseHead::new(version, status, (end, end), to_fields(raw, raw, headers)))
}

/// Parses a complete trailer section, whose end `scan` has found. `limit` is the largest number of
/// fields.
pub(crate) fn parse_trailers(input: &[u8], scan: &FieldSectionScan, limit: usize) -> Result<Fields, H1Error> {
    if scan.folded {
        return Err(H1Error::Field(FieldLineFault::Folded));
    }
    let mut headers = vec![EMPTY_HEADER; limit.min(count_lines(input))];
    match httparse::parse_headers(input, &mut headers) {
        Ok(Status::Complete((end, headers))) if end == input.len() => Ok(to_fields(input, input, headers)),
        Ok(_) => Err(H1Error::Field(FieldLineFault::LineEnd)),
        Err(error) => Err(syntax_error(error, H1Error::Response(ResponseError::TooManyTrailers { limit }))),
    }
}

/// Returns the number of lines in `input`, which is an upper bound for its number of fields.
fn count_lines(input: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', input).count()
}

fn syntax_error(error: httparse::Error, too_many: H1Error) -> H1Error {
    match error {
        httparse::Error::HeaderName => H1Error::Field(FieldLineFault::Name),
        httparse::Error::HeaderValue => H1Error::Field(FieldLineFault::Value),
        httparse::Error::NewLine => H1Error::Field(FieldLineFault::LineEnd),
        httparse::Error::TooManyHeaders => too_many,
        httparse::Error::Status | httparse::Error::Token | httparse::Error::Version => H1Error::StatusLine,
    }
}

/// Returns the start and end of the reason phrase in a response head, which follows `HTTP/1.x NNN
/// `. This function is needed because `httparse` returns no phrase that contains bytes above 127.
fn find_reason_phrase(input: &[u8]) -> (u32, u32) {
    let line = &input[..memchr(b'\n', input).unwrap_or(input.len())];
    let end = line.strip_suffix(b"\r").unwrap_or(line).len();
    let start = end.min("HTTP/1.1 200 ".len());
    (start as u32, end as u32)
}

/// Copies `input`, a head or a trailer section, and records the positions of its fields. `headers`
/// are the parsed fields, as slices of `text`. `text` is `input` itself, or a copy of the same
/// length in which bytes that `httparse` refuses are replaced. The length of `input` fits in 32
/// bits.
fn to_fields(input: &[u8], text: &[u8], headers: &[Header<'_>]) -> Fields {
    let base = text.as_ptr() as usize;
    let place = |part: &[u8]| {
        let start = part.as_ptr() as usize - base;
        (start as u32, (start + part.len()) as u32)
    };
    let mut spans = Vec::with_capacity(headers.len());
    spans.extend(
        headers
            .iter()
            .map(|header| FieldSpan { name: place(header.name.as_bytes()), value: place(header.value) })
            .filter(|span| ptr::eq(input, text) || is_token(&input[span.name.0 as usize..span.name.1 as usize])),
    );
    Fields::new(input.to_vec(), spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// Passes a response head byte by byte to the search for its end, and checks that at most twice
    /// as many bytes are examined as the head has.
    #[test]
    fn head_arriving_byte_by_byte_takes_linear_time() {
        let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
        for number in 0..2_000 {
            head.extend_from_slice(format!("X-{number}: {number}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        let mut scan = FieldSectionScan::default();
        for cut in 0..head.len() {
            assert_eq!(scan.find_end(&head[..cut]), None, "{cut}");
        }
        assert_eq!(scan.find_end(&head), Some(head.len()));
        assert!(scan.examined <= 2 * head.len(), "{} bytes examined of {}", scan.examined, head.len());
    }

    #[test]
    fn first_line_feed_is_found_at_any_position() {
        // Neighbouring values that the word arithmetic might mistake for a line feed.
        for filler in [0x00, 0x09, 0x0b, 0x0d, 0x7f, 0x8a, 0xff] {
            let mut text = [filler; 40];
            assert_eq!(find_line_feed(&text), None);
            for place in (0..text.len()).rev() {
                text[place] = b'\n';
                for start in 0..=place {
                    assert_eq!(find_line_feed(&text[start..]), Some(place - start), "{filler:x} {start} {place}");
                }
            }
        }
    }

    #[test]
    fn field_section_ends_at_empty_lf_or_crlf_line() {
        let find = |text: &[u8]| FieldSectionScan::default().find_end(text);
        assert_eq!(find(b"a\r\n\r\nrest"), Some(5));
        assert_eq!(find(b"a\n\nrest"), Some(3));
        assert_eq!(find(b"a\n\r\nrest"), Some(4));
        assert_eq!(find(b"a\r\n\n"), Some(4));
        assert_eq!(find(b"a\r\n\r"), None);
        assert_eq!(find(b"a\r\n\r\n"), Some(5));
    }

    #[test]
    fn invalid_status_line_is_refused_at_first_byte() {
        for cut in 0..b"HTTP/1.1 200 OK".len() {
            assert_eq!(check_start(&b"HTTP/1.1 200 OK"[..cut]), Ok(()));
        }
        assert_eq!(check_start(b"h"), Err(H1Error::NotHttp { first: true }));
        assert_eq!(check_start(b"<html>"), Err(H1Error::NotHttp { first: true }));
        assert_eq!(check_start(b"HTTP/2"), Err(H1Error::UnsupportedVersion { major: 2, minor: None }));
        assert_eq!(check_start(b"HTTP/1.2"), Err(H1Error::UnsupportedVersion { major: 1, minor: Some(2) }));
        assert_eq!(check_start(b"HTTP/1 "), Err(H1Error::StatusLine));
        assert_eq!(check_start(b"HTTP/x"), Err(H1Error::StatusLine));
    }
}
