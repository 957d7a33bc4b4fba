//! Decides whether a later response belongs to the same representation, byte for byte (RFC 9110
//! §8.8, §13.1.5).
//!
//! ```
//! use haul_policy::range::{ValidatorMatch, Validator};
//!
//! let (etag, modified) = (b"\"5f3a-c0\"", b"Sun, 06 Nov 1994 08:49:37 GMT");
//! let first = Validator::strong(Some(etag), Some(modified), None).unwrap();
//! assert_eq!(first.if_range(), etag);
//! assert_eq!(first.compare(Some(b"\"5f3a-c1\""), None), ValidatorMatch::Different);
//! assert_eq!(first.compare(None, None), ValidatorMatch::Unsaid);
//!
//! // A weak entity-tag may stay while bytes change, so the response has no strong validator.
//! let date = b"Sun, 06 Nov 1994 09:00:00 GMT";
//! assert_eq!(Validator::strong(Some(b"W/\"5f3a\""), Some(modified), Some(date)), None);
//! assert!(Validator::strong(None, Some(modified), Some(date)).is_some());
//! ```
//!
//! Left out: weak comparison. A cache may use it, but parts may be joined only after a strong
//! comparison.

use super::imf_fixdate;
use std::time::{Duration, SystemTime};

/// The largest length of an entity-tag in bytes, with its quotes. A longer entity-tag is refused,
/// not cut.
pub const MAX_ETAG: usize = 1024;

/// 1 January 1990, in seconds since 1970: a time before the first web server. An older
/// Last-Modified is a constant that a build system set, see [`Validator::strong`].
const FIRST_WEB_SERVER_TIME: u64 = 631_152_000;

/// The strong validator of a representation: a strong entity-tag, or a Last-Modified that counts as
/// strong.
///
/// `==` compares the text of the values; to compare with a later response use
/// [`compare`](Validator::compare).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    /// The value of ETag or Last-Modified as received. The first byte tells them apart, as in
    /// If-Range: only an entity-tag begins with a quote.
    value: Vec<u8>,
}

/// The result of comparing a later response with a validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidatorMatch {
    /// The response has the same representation, by strong comparison. Its bytes may be joined with
    /// the bytes received earlier.
    Same,
    /// The response has, or may have, another representation: its bytes must not be joined with
    /// those received earlier.
    Different,
    /// The response lacks the field from which the validator was made, such as ETag. A 206 response
    /// to a request with If-Range still belongs to the same representation (RFC 9110 §13.1.5). Any
    /// other response may belong to another one.
    Unsaid,
}

impl Validator {
    /// Returns the strong validator in a response's ETag, Last-Modified and Date; `None` if these
    /// fields contain no strong validator. Blanks around the values are accepted.
    ///
    /// A strong entity-tag takes precedence: `"…"` of valid bytes (RFC 9110 §8.8.3), at most
    /// [`MAX_ETAG`] bytes long. Without an entity-tag, a Last-Modified is used if it is strong by
    /// §8.8.2.2: Last-Modified and Date are valid, and Last-Modified is at least one second earlier
    /// than Date. A later change of the content then has another Last-Modified.
    ///
    /// If the entity-tag is weak or too long, the result is `None`: Last-Modified does not replace
    /// it. RFC 9110 §13.1.5 allows a date in If-Range only if there is no entity-tag. Besides, a
    /// weak entity-tag states that bodies with this tag may differ in bytes. If ETag is not an
    /// entity-tag at all (`ETag: abc`), it is ignored, and Last-Modified decides.
    ///
    /// A Last-Modified before 1990 is not used. Build systems and archivers give all files such a
    /// constant date (1970, 1980, 1985), so the next version of a file has the same date. If the
    /// date was real after all, the only loss is that the body is downloaded as one stream, not as
    /// several ranges at once.
    pub fn strong(etag: Option<&[u8]>, last_modified: Option<&[u8]>, date: Option<&[u8]>) -> Option<Validator> {
        if let Some(tag) = etag.map(<[u8]>::trim_ascii) {
            if is_entity_tag(tag) {
                return (tag.len() <= MAX_ETAG).then(|| Validator { value: tag.to_vec() });
            }
            // In lower case, too, which is invalid but clearly meant so.
            if let [b'W' | b'w', b'/', ..] = tag {
                return None;
            }
        }
        let (value, at) = parse_last_modified(last_modified?)?;
        let date = parse_http_date(date?)?;
        (at + Duration::from_secs(1) <= date).then(|| Validator { value: value.to_vec() })
    }

    /// Returns the value to send in If-Range. It is spelled as the server wrote it, because many
    /// servers compare it as text.
    pub fn if_range(&self) -> &[u8] {
        &self.value
    }

    /// Compares a later response, given by its ETag and Last-Modified as received, with this
    /// validator.
    ///
    /// Only the field from which this validator was made is compared. An entity-tag is compared
    /// byte for byte, so a weak or malformed entity-tag always differs (strong comparison, RFC 9110
    /// §8.8.3.2). Dates are compared as points in time, in any format.
    pub fn compare(&self, etag: Option<&[u8]>, last_modified: Option<&[u8]>) -> ValidatorMatch {
        let same = if self.is_entity_tag() {
            let Some(tag) = etag else { return ValidatorMatch::Unsaid };
            tag.trim_ascii() == self.value
        } else {
            let Some(text) = last_modified else { return ValidatorMatch::Unsaid };
            parse_http_date(text).is_some_and(|at| parse_http_date(&self.value) == Some(at))
        };
        if same { ValidatorMatch::Same } else { ValidatorMatch::Different }
    }

    /// Returns the validator as bytes for storage in a file, at most [`MAX_ETAG`] bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.value.clone()
    }

    /// Creates a validator from bytes that [`to_bytes`](Validator::to_bytes) returned; `None` if
    /// they cannot be a validator. The result is safe to send as a field value: none of its bytes
    /// ends a line.
    pub fn from_bytes(bytes: &[u8]) -> Option<Validator> {
        let tag = is_entity_tag(bytes) && bytes.len() <= MAX_ETAG;
        let date = || parse_last_modified(bytes).is_some_and(|(value, _)| value == bytes);
        (tag || date()).then(|| Validator { value: bytes.to_vec() })
    }

    fn is_entity_tag(&self) -> bool {
        self.value.first() == Some(&b'"')
    }
}

/// Returns `true` for a strong entity-tag: `DQUOTE *etagc DQUOTE`, where etagc is `%x21 / %x23-7E /
/// obs-text`.
fn is_entity_tag(tag: &[u8]) -> bool {
    match tag {
        [b'"', inner @ .., b'"'] => inner.iter().all(|b| matches!(b, 0x21 | 0x23..=0x7e | 0x80..)),
        _ => false,
    }
}

/// Parses a Last-Modified. Returns its text without blanks around it, and the time. Returns `None`
/// if it is invalid or before 1990.
fn parse_last_modified(value: &[u8]) -> Option<(&[u8], SystemTime)> {
    let at = parse_http_date(value)?;
    (at >= SystemTime::UNIX_EPOCH + Duration::from_secs(FIRST_WEB_SERVER_TIME)).then_some((value.trim_ascii(), at))
}

/// Parses an HTTP-date in any of its three formats (RFC 9110 §5.6.7). Returns `None` for other
/// text.
///
/// Checks the bytes first: httpdate accepts any byte between the date and the time of the RFC 850
/// format, even a line end.
fn parse_http_date(value: &[u8]) -> Option<SystemTime> {
    let value = value.trim_ascii();
    if let Some(seconds) = imf_fixdate::parse(value) {
        return Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    }
    if !value.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let text = core::str::from_utf8(value).ok()?;
    httpdate::parse_http_date(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MODIFIED: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";

    fn tag(text: &[u8]) -> Option<Validator> {
        Validator::strong(Some(text), None, None)
    }

    fn dated(modified: &str, date: &str) -> Option<Validator> {
        Validator::strong(None, Some(modified.as_bytes()), Some(date.as_bytes()))
    }

    #[test]
    fn strong_entity_tags_are_accepted() {
        for good in [&b"\"a\""[..], b"\"\"", b"\"W/x\"", b"\"a'b\\c,d;e\"", b"\"\x80\xff\"", b"\"!#~\""] {
            let validator = tag(good).expect("a strong tag");
            assert_eq!(validator.if_range(), good);
        }
        assert_eq!(tag(b" \"a\"\t").unwrap().if_range(), b"\"a\"");
        let bad = [
            &b""[..],
            b"\"",
            b"a",
            b"\"a",
            b"a\"",
            b"'a'",
            b"W/\"a\"",
            b"w/\"a\"",
            b"\"a b\"",
            b"\"a\tb\"",
            b"\"a\"b\"",
            b"\"a\", \"b\"",
            b"\"a\r\nX: y\"",
            b"\"a\0\"",
            b"\"\x7f\"",
        ];
        for bad in bad {
            assert_eq!(tag(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn longest_entity_tag_is_accepted_uncut() {
        let of = |length: usize| format!("\"{}\"", "x".repeat(length - 2)).into_bytes();
        assert!(tag(&of(MAX_ETAG)).is_some());
        assert_eq!(Validator::strong(Some(&of(MAX_ETAG + 1)), Some(MODIFIED), Some(LATER)), None, "a tag is there");
        assert_eq!(Validator::from_bytes(&of(MAX_ETAG + 1)), None);
    }

    #[test]
    fn entity_tag_takes_precedence_over_last_modified() {
        let both = Validator::strong(Some(b"\"a\""), Some(MODIFIED), Some(LATER)).unwrap();
        assert_eq!(both.if_range(), b"\"a\"");
        for weak in [&b"W/\"a\""[..], b"w/\"a\"", b"W/a", b"W/"] {
            assert_eq!(Validator::strong(Some(weak), Some(MODIFIED), Some(LATER)), None, "{}", weak.escape_ascii());
        }
        for none in [&b"abc"[..], b"", b"\"a\", \"b\"", b"\"a b\""] {
            let validator = Validator::strong(Some(none), Some(MODIFIED), Some(LATER)).unwrap();
            assert_eq!(validator.if_range(), MODIFIED);
        }
    }

    #[test]
    fn last_modified_is_strong_after_one_second() {
        let date = "Sun, 06 Nov 1994 08:49:38 GMT";
        assert!(dated("Sun, 06 Nov 1994 08:49:37 GMT", date).is_some());
        assert!(dated("Sunday, 06-Nov-94 08:49:37 GMT", date).is_some());
        assert_eq!(dated(" Sun Nov  6 08:49:37 1994 ", date).unwrap().if_range(), b"Sun Nov  6 08:49:37 1994");
        let bad = [
            ("Sun, 06 Nov 1994 08:49:38 GMT", date), // the same second
            ("Sun, 06 Nov 1994 08:49:39 GMT", date),
            ("Sun, 99 Nov 1994 08:49:37 GMT", date),
            ("Sun, 06 Nov 1994 08:49:37 GMT", "now"),
            ("yesterday", date),
            ("Sunday, 06-Nov-94\r08:49:37 GMT", date),
            ("Sunday, 06-Nov-94\n08:49:37 GMT", date),
            ("Sunday, 06-Nov-94\x0008:49:37 GMT", date),
            ("784111777", date),
            ("\u{fc}", date),
            ("", date),
            ("Thu, 01 Jan 1970 00:00:01 GMT", date),
            ("Tue, 01 Jan 1980 00:00:00 GMT", date),
            ("Sat, 26 Oct 1985 08:15:00 GMT", date),
        ];
        for (modified, date) in bad {
            assert_eq!(dated(modified, date), None, "{modified} {date}");
        }
        assert_eq!(Validator::strong(None, Some(MODIFIED), None), None, "without Date");
        assert_eq!(Validator::strong(None, None, Some(LATER)), None);
    }

    #[test]
    fn validator_is_compared_with_later_responses() {
        let table = [
            (Some(&b"\"a\""[..]), ValidatorMatch::Same),
            (Some(b" \"a\" "), ValidatorMatch::Same),
            (Some(b"\"A\""), ValidatorMatch::Different),
            (Some(b"W/\"a\""), ValidatorMatch::Different),
            (Some(b"a"), ValidatorMatch::Different),
            (Some(b""), ValidatorMatch::Different),
            (None, ValidatorMatch::Unsaid),
        ];
        for (etag, want) in table {
            assert_eq!(tag(b"\"a\"").unwrap().compare(etag, Some(LATER)), want, "{etag:?}");
        }
        let table = [
            (Some(MODIFIED), ValidatorMatch::Same),
            (Some(b"Sunday, 06-Nov-94 08:49:37 GMT"), ValidatorMatch::Same),
            (Some(LATER), ValidatorMatch::Different),
            (Some(b"soon"), ValidatorMatch::Different),
            (Some(b""), ValidatorMatch::Different),
            (None, ValidatorMatch::Unsaid),
        ];
        let first = Validator::strong(None, Some(MODIFIED), Some(LATER)).unwrap();
        for (modified, want) in table {
            assert_eq!(first.compare(Some(b"\"new\""), modified), want, "{modified:?}");
        }
    }

    #[test]
    fn stored_validators_are_read_back() {
        for first in [tag(b"\"abc\"").unwrap(), Validator::strong(None, Some(MODIFIED), Some(LATER)).unwrap()] {
            let bytes = first.to_bytes();
            assert_eq!(Validator::from_bytes(&bytes), Some(first));
            for end in 0..bytes.len() {
                assert_eq!(Validator::from_bytes(&bytes[..end]), None, "{end}");
            }
        }
        for bad in
            [&b"W/\"a\""[..], b" \"a\"", b"\"a\" ", b"x", b" Sun, 06 Nov 1994 08:49:37 GMT", b"Sun, 06 Nov 1994\r"]
        {
            assert_eq!(Validator::from_bytes(bad), None, "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn accepted_validators_contain_no_line_end(
            etag in proptest::collection::vec(prop_oneof![Just(b'"'), any::<u8>()], 0..8),
            modified in "(Sun, 0[0-9] Nov 1994 08:49:37 GMT|Sunday, 06-Nov-94[ \r\n\0-]08:49:37 GMT|.{0,12})[\r\n\0]?",
        ) {
            if let Some(made) = Validator::strong(Some(&etag), Some(modified.as_bytes()), Some(LATER)) {
                prop_assert!(!made.if_range().iter().any(|b| b"\r\n\0".contains(b)));
                prop_assert_eq!(made.compare(Some(&etag), Some(modified.as_bytes())), ValidatorMatch::Same);
                prop_assert_eq!(Validator::from_bytes(&made.to_bytes()), Some(made));
            }
        }
    }

    #[test]
    fn last_modified_counts_since_1990() {
        assert!(dated("Mon, 01 Jan 1990 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:38 GMT").is_some());
        assert_eq!(dated("Sun, 31 Dec 1989 23:59:59 GMT", "Sun, 06 Nov 1994 08:49:38 GMT"), None);
    }
}
