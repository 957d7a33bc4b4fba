//! The parts of a URL in their original spelling, because scripts compare them with the URL that
//! they requested.

/// Returns the host as the URL spells it, because curl prints it so: `BÜCHER.example`, not
/// `xn--bcher-kva.example`. `canonical` is the host in normal form. Returns `None` if the URL has
/// no host, or has an IP address in another form than the canonical one.
pub(crate) fn host<'u>(url: &'u str, canonical: &str) -> Option<&'u str> {
    let host_port = authority(url).rsplit('@').next()?;
    let host = host_port.split(':').next()?;
    let is_it = host.eq_ignore_ascii_case(canonical) || !host.is_ascii() && !host.contains('%');
    is_it.then_some(host)
}

/// Returns `canonical`, the normalized path and query of `url`, with all non-ASCII characters
/// percent-decoded: `/ü` for `/%C3%BC`. curl prints such characters as the URL spells them. Returns
/// `None` if `url` has no non-ASCII characters after the host (`/a`), or if some of them are
/// percent-encoded in `url` (`/ü%C3%BC`).
pub(crate) fn path(url: &str, canonical: &str) -> Option<String> {
    let spelled = after_authority(url);
    let is_encoded = |at: usize| {
        spelled.as_bytes().get(at + 1).is_some_and(|digit| matches!(digit, b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F'))
    };
    if spelled.is_ascii() || spelled.match_indices('%').any(|(at, _)| is_encoded(at)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(canonical.len());
    let mut rest = canonical.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let encoded = rest.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = encoded.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| !byte.is_ascii()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the user in a URL, without percent-decoding. Empty if the URL has none.
pub(super) fn user(url: &str) -> &str {
    let userinfo = authority(url).rsplit_once('@').map_or("", |(userinfo, _)| userinfo);
    userinfo.split(':').next().unwrap_or_default()
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns the path, the query and the fragment of a URL.
fn after_authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    &rest[authority(url).len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_out_host_keeps_its_original_spelling() {
        for (url, canonical, expected) in [
            ("http://BÜcher.example:8/a:b@c", "xn--bcher-kva.example", Some("BÜcher.example")),
            ("http://me:x@Host.example?@y", "host.example", Some("Host.example")),
            ("Host:80", "host", Some("Host")),
            ("http://0x7f.1/", "127.0.0.1", None),
            ("http://h%41x/", "hax", None),
            ("http://[::1]/", "::1", None),
        ] {
            assert_eq!(host(url, canonical), expected, "{url}");
        }
    }

    #[test]
    fn write_out_path_keeps_non_ascii_characters() {
        for (url, canonical, expected) in [
            ("http://h/ü?ä", "/%C3%BC?%C3%A4", Some("/ü?ä")),
            ("h/%7Eü b", "/%7E%C3%BC%20b", Some("/%7Eü%20b")),
            ("http://h/ü%C3%BC", "/%C3%BC%C3%BC", None),
            ("http://ü/a", "/a", None),
            ("http://h/a", "/a", None),
        ] {
            assert_eq!(path(url, canonical).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn write_out_user_stays_percent_encoded() {
        for (url, expected) in [
            ("http://us%40er:p%3a@h/", "us%40er"),
            ("http://me@h", "me"),
            ("http://h/me@there", ""),
            ("me:x@h", "me"),
            ("http://:x@h", ""),
        ] {
            assert_eq!(user(url), expected, "{url}");
        }
    }
}
