//! The Range field of a request (RFC 9110 §14).

/// The part of a body that a request's Range field selects (RFC 9110 §14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedPart {
    /// The whole body: the request has no Range field, or one that is malformed, has several
    /// ranges, or has a unit other than bytes.
    Whole,
    /// The bytes from the first offset (inclusive) to the second offset (exclusive).
    Part(u64, u64),
    /// The range lies outside the body, so the server must reply with 416.
    Unsatisfiable,
}

impl RequestedPart {
    pub(crate) fn from_range_field(range: Option<&str>, size: u64) -> RequestedPart {
        RequestedPart::parse(range, size).unwrap_or(RequestedPart::Whole)
    }

    fn parse(range: Option<&str>, size: u64) -> Option<RequestedPart> {
        let (first, last) = range?.strip_prefix("bytes=")?.split_once('-')?;
        let (start, end) = match (first, last) {
            ("", suffix) => (size.saturating_sub(suffix.parse().ok()?), size),
            (first, "") => (first.parse().ok()?, size),
            (first, last) => {
                let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
                if last < first {
                    return None;
                }
                (first, last.saturating_add(1).min(size))
            }
        };
        Some(if start < end { RequestedPart::Part(start, end) } else { RequestedPart::Unsatisfiable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_field_is_parsed_by_rfc_9110() {
        let of = |range| RequestedPart::from_range_field(Some(range), 100);
        assert_eq!(of("bytes=0-0"), RequestedPart::Part(0, 1));
        assert_eq!(of("bytes=10-"), RequestedPart::Part(10, 100));
        assert_eq!(of("bytes=-10"), RequestedPart::Part(90, 100));
        assert_eq!(of("bytes=-1000"), RequestedPart::Part(0, 100));
        assert_eq!(of("bytes=99-1000"), RequestedPart::Part(99, 100));
        assert_eq!(of("bytes=0-18446744073709551615"), RequestedPart::Part(0, 100));
        assert_eq!(of("bytes=100-"), RequestedPart::Unsatisfiable);
        assert_eq!(of("bytes=-0"), RequestedPart::Unsatisfiable);
        for odd in ["bytes=5-4", "bytes=0-1,3-4", "octets=0-1", "bytes=a-b", "bytes=", "bytes=-"] {
            assert_eq!(of(odd), RequestedPart::Whole, "{odd}");
        }
        assert_eq!(RequestedPart::from_range_field(None, 100), RequestedPart::Whole);
        assert_eq!(RequestedPart::from_range_field(Some("bytes=0-"), 0), RequestedPart::Unsatisfiable);
    }
}
