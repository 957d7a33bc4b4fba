//! The parts of a request that the fault origin needs.

/// The fields of a request that the fault origin uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FaultyOriginRequest {
    pub(super) head_only: bool,
    pub(super) target: String,
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
    pub(super) close: bool,
}

impl FaultyOriginRequest {
    /// Parses a request head; returns `None` if it is not a GET or HEAD over HTTP/1.
    pub(super) fn parse(head: &str) -> Option<FaultyOriginRequest> {
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let head_only = match first.next()? {
            "GET" => false,
            "HEAD" => true,
            _ => return None,
        };
        let target = first.next()?.to_owned();
        let mut request =
            FaultyOriginRequest { head_only, target, range: None, if_range: None, close: first.next()? == "HTTP/1.0" };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_read_in_any_case() {
        let head =
            "GET /f/a?size=1 HTTP/1.1\r\nhost: x\r\nRANGE:bytes=1-\r\nif-Range: \"a\" \r\nConnection: Close\r\n\r\n";
        let request = FaultyOriginRequest::parse(head).unwrap();
        assert_eq!(request.target, "/f/a?size=1");
        assert_eq!((request.range.as_deref(), request.if_range.as_deref()), (Some("bytes=1-"), Some("\"a\"")));
        assert!(request.close && !request.head_only);
        assert_eq!(FaultyOriginRequest::parse("POST / HTTP/1.1\r\n\r\n"), None);
    }
}
