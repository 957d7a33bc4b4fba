//! The bytes that a response covers: Content-Range of a 206 or 416 (RFC 9110 §14.4).
//!
//! ```
//! use haul_policy::range::content_range::parse;
//!
//! let part = parse(b"bytes 500-999/1234").unwrap();
//! assert!(part.is_exactly(500, 1000, 1234));
//! assert!(!part.is_exactly(500, 1000, 1235));
//! assert_eq!(parse(b"bytes */1234").unwrap().total, Some(1234)); // of a 416: where the body really ends
//! assert_eq!(parse(b"bytes 500-1234/1234"), None); // its last byte lies behind the end
//! ```

use core::ops::Range;

/// A valid Content-Range with the unit `bytes`. At least one of the two fields is `Some`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The range of bytes, half-open and never empty. `None` stands for `*` in a 416: the requested
    /// range cannot be satisfied.
    pub span: Option<Range<u64>>,
    /// The length of the whole representation in bytes; `None` stands for `*`: the length is
    /// unknown. `span` never exceeds it.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Returns `true` if this is exactly the answer to `Range: bytes=FIRST-LAST` for a body of
    /// `total` bytes. LAST is `end` - 1. An unknown total does not match, since the body's length
    /// may have changed.
    pub fn is_exactly(&self, first: u64, end: u64, total: u64) -> bool {
        self.span == Some(first..end) && self.total == Some(total)
    }
}

/// Parses the value of a Content-Range. Returns `None` if the value is invalid or its unit is not
/// `bytes` (in upper or lower case).
///
/// The parser is strict, because the value decides where the bytes of a part are written. It
/// refuses a last byte before the first byte or after the end, a number that does not fit 64 bits,
/// a sign, `*/*`, and two values joined by a comma. It accepts blanks and tabs only around the
/// value and after the unit, where some servers add them for alignment. It refuses `bytes=0-4/9`
/// (the syntax of requests), although some clients accept that: a server that confuses the two
/// cannot be trusted with offsets.
pub fn parse(value: &[u8]) -> Option<ContentRange> {
    let value = trim_blanks(value);
    let (unit, rest) = value.split_at_checked(5)?;
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let said = trim_blanks(rest);
    if said.len() == rest.len() {
        return None;
    }
    let (span, total) = split_at_byte(said, b'/')?;
    let total = if total == b"*" { None } else { Some(parse_number(total)?) };
    if span == b"*" {
        return total.is_some().then_some(ContentRange { span: None, total });
    }
    let (first, last) = split_at_byte(span, b'-')?;
    let (first, last) = (parse_number(first)?, parse_number(last)?);
    let end = last.checked_add(1)?;
    let inside = total.is_none_or(|total| end <= total);
    (first < end && inside).then_some(ContentRange { span: Some(first..end), total })
}

/// Splits `text` at the first occurrence of the byte `at`. A second occurrence stays in the second
/// part, which then fails to parse as a number. Returns `None` if `text` does not contain the byte.
fn split_at_byte(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((&text[..place], &text[place + 1..]))
}

/// Removes blanks and tabs at both ends. (`trim_ascii` would also remove line ends, which no field
/// contains.)
fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Parses decimal digits; leading zeros are allowed. Returns `None` for other text, and for a
/// number that does not fit 64 bits.
fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(span: Option<Range<u64>>, total: Option<u64>) -> Option<ContentRange> {
        Some(ContentRange { span, total })
    }

    #[test]
    fn valid_content_ranges_are_parsed() {
        let table: &[(&str, Option<ContentRange>)] = &[
            ("bytes 0-499/1234", made(Some(0..500), Some(1234))),
            ("bytes 0-0/1", made(Some(0..1), Some(1))),
            ("bytes 734-1233/1234", made(Some(734..1234), Some(1234))),
            ("bytes 42-1233/*", made(Some(42..1234), None)),
            ("bytes */1234", made(None, Some(1234))),
            ("bytes */0", made(None, Some(0))),
            ("BYTES 1-2/3", made(Some(1..3), Some(3))),
            (" \tBytes \t 01-0002/00003\t ", made(Some(1..3), Some(3))),
            ("bytes 0-18446744073709551614/18446744073709551615", made(Some(0..u64::MAX), Some(u64::MAX))),
            ("bytes 18446744073709551614-18446744073709551614/*", made(Some(u64::MAX - 1..u64::MAX), None)),
        ];
        for (text, want) in table {
            assert_eq!(&parse(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn invalid_content_ranges_are_refused() {
        let table = [
            "",
            " ",
            "bytes",
            "bytes ",
            "bytes */*",
            "bytes /",
            "bytes -/5",
            "bytes 0-/5",
            "bytes -4/5",
            "bytes 0-4",
            "bytes 0-4/",
            "bytes /5",
            "bytes0-4/5",
            "bytes=0-4/5",
            "bytes: 0-4/5",
            "byte 0-4/5",
            "octets 0-4/5",
            "bytes\u{a0}0-4/5",
            "bytes 0 - 4/5",
            "bytes 0-4 /5",
            "bytes 0-4/ 5",
            "bytes 0-5/5",
            "bytes 4-3/5",
            "bytes 5-9/5",
            "bytes 0-0/0",
            "bytes +0-4/5",
            "bytes 0-+4/5",
            "bytes 0--4/5",
            "bytes 0-4/-5",
            "bytes 0x0-4/5",
            "bytes 0-4/5, bytes 0-4/5",
            "bytes 0-4/5,",
            "bytes 0-1,3-4/5",
            "bytes 0-4/5/5",
            "bytes *-4/5",
            "bytes 0-*/5",
            "bytes 0-4/5\r",
            "bytes 0-4/5\n",
            "bytes 0-18446744073709551615/*",
            "bytes 0-4/18446744073709551616",
            "bytes 0-99999999999999999999999999/*",
            "bytes 18446744073709551616-18446744073709551617/*",
        ];
        for text in table {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"bytes 0-4/5\0"), None);
        assert_eq!(parse(b"\xff\xfe"), None);
    }

    #[test]
    fn content_range_matches_only_exact_first_last_total() {
        let part = parse(b"bytes 10-19/100").unwrap();
        assert!(part.is_exactly(10, 20, 100));
        for (first, end, total) in [(9, 20, 100), (11, 20, 100), (10, 19, 100), (10, 21, 100), (10, 20, 101)] {
            assert!(!part.is_exactly(first, end, total), "{first} {end} {total}");
        }
        assert!(!parse(b"bytes 10-19/*").unwrap().is_exactly(10, 20, 100));
        assert!(!parse(b"bytes */100").unwrap().is_exactly(0, 0, 100));
    }

    #[test]
    fn truncated_content_range_never_keeps_its_total() {
        let text = b"bytes 1000-1999/12345";
        for end in 0..text.len() {
            let cut = parse(&text[..end]);
            assert!(cut.is_none_or(|part| part.total != Some(12345)), "{end}");
        }
    }

    proptest! {
        #[test]
        fn written_content_range_is_parsed_back(first in any::<u64>(), last in any::<u64>(), total in any::<u64>()) {
            let read = parse(format!("bytes {first}-{last}/{total}").as_bytes());
            if first <= last && last < total {
                prop_assert!(read.unwrap().is_exactly(first, last + 1, total));
            } else {
                prop_assert_eq!(read, None);
            }
        }

        #[test]
        fn parsed_content_ranges_are_consistent(text in "[bB]ytes [0-9*/ -]{0,20}") {
            if let Some(ContentRange { span, total }) = parse(text.as_bytes()) {
                prop_assert!(span.is_some() || total.is_some());
                let span = span.unwrap_or(0..1);
                prop_assert!(span.start < span.end);
                prop_assert!(total.is_none_or(|total| span.end <= total || text.contains('*')));
            }
        }
    }
}
