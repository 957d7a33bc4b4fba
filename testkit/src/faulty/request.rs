//! The parts of a request that the fault origin needs, parsed by hand.

/// The parts of a request head that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) head_only: bool,
    pub(super) target: String,
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
    pub(super) close: bool,
}

impl Request {
    /// `None` if it is not a GET or HEAD over HTTP/1.
    pub(super) fn parse(head: &str) -> Option<Request> {
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let head_only = match first.next()? {
            "GET" => false,
            "HEAD" => true,
            _ => return None,
        };
        let target = first.next()?.to_owned();
        let mut request =
            Request { head_only, target, range: None, if_range: None, close: first.next()? == "HTTP/1.0" };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "range" => request.range = Some(value.to_owned()),
                "if-range" => request.if_range = Some(value.to_owned()),
                "connection" => request.close |= value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        Some(request)
    }
}

/// The part of a body that a Range selects (RFC 9110 §14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedPart {
    /// Not a Range to act on: none, several, another unit, or malformed.
    Whole,
    /// A half-open range of bytes.
    Part(u64, u64),
    /// A range outside the body.
    Unsatisfiable,
}

impl RequestedPart {
    pub(super) fn of(range: Option<&str>, size: u64) -> RequestedPart {
        RequestedPart::read(range, size).unwrap_or(RequestedPart::Whole)
    }

    fn read(range: Option<&str>, size: u64) -> Option<RequestedPart> {
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
    fn ranges_are_read_as_the_rfc_says() {
        let of = |range| RequestedPart::of(Some(range), 100);
        assert_eq!(of("bytes=0-0"), RequestedPart::Part(0, 1));
        assert_eq!(of("bytes=10-"), RequestedPart::Part(10, 100));
        assert_eq!(of("bytes=-10"), RequestedPart::Part(90, 100));
        assert_eq!(of("bytes=-1000"), RequestedPart::Part(0, 100));
        assert_eq!(of("bytes=99-1000"), RequestedPart::Part(99, 100));
        assert_eq!(of("bytes=100-"), RequestedPart::Unsatisfiable);
        assert_eq!(of("bytes=-0"), RequestedPart::Unsatisfiable);
        for odd in ["bytes=5-4", "bytes=0-1,3-4", "octets=0-1", "bytes=a-b", "bytes=", "bytes=-"] {
            assert_eq!(of(odd), RequestedPart::Whole, "{odd}");
        }
        assert_eq!(RequestedPart::of(None, 100), RequestedPart::Whole);
        assert_eq!(RequestedPart::of(Some("bytes=0-"), 0), RequestedPart::Unsatisfiable);
    }

    #[test]
    fn field_names_are_read_in_any_case() {
        let head =
            "GET /f/a?size=1 HTTP/1.1\r\nhost: x\r\nRANGE:bytes=1-\r\nif-Range: \"a\" \r\nConnection: Close\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!(request.target, "/f/a?size=1");
        assert_eq!((request.range.as_deref(), request.if_range.as_deref()), (Some("bytes=1-"), Some("\"a\"")));
        assert!(request.close && !request.head_only);
        assert_eq!(Request::parse("POST / HTTP/1.1\r\n\r\n"), None);
    }
}
