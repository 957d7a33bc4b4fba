//! Parses the head of a request; only the parts that the server needs.

/// The parts of a request head that the page server needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageRequest<'a> {
    /// The host in the Host field, without the port.
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    /// True if the request requires the connection to be closed after the response.
    pub(super) closes: bool,
    /// The length of the request head in bytes, including the final empty line.
    pub(super) len: usize,
}

/// Parses the first request in `input`; `None` if its head is not complete. A request without a
/// Host field has an empty host; a request whose head is not UTF-8 has an empty host and path.
/// Requests must have no content.
pub(super) fn parse(input: &[u8]) -> Option<PageRequest<'_>> {
    let end = input.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let text = str::from_utf8(&input[..end]).unwrap_or_default();
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let path = words.nth(1).unwrap_or_default();
    let mut head = PageRequest { host: "", path, closes: words.next() == Some("HTTP/1.0"), len: end + 4 };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if name.eq_ignore_ascii_case("host") {
            head.host = value.split(':').next().unwrap_or_default();
        } else if name.eq_ignore_ascii_case("connection") {
            head.closes = value.eq_ignore_ascii_case("close");
        }
    }
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_head_is_parsed_when_complete() {
        let text = b"GET /300/1 HTTP/1.1\r\nHost: a.test:80\r\nconnection: Close\r\n\r\nGET ";
        let head = PageRequest { host: "a.test", path: "/300/1", closes: true, len: text.len() - 4 };
        assert_eq!(parse(text), Some(head));
        assert_eq!(parse(&text[..text.len() - 6]), None);
        let old = PageRequest { host: "", path: "/", closes: true, len: 18 };
        assert_eq!(parse(b"GET / HTTP/1.0\r\n\r\n"), Some(old));
        assert!(!parse(b"GET / HTTP/1.1\r\nA\r\n\r\n").unwrap().closes);
    }
}
