//! Parts of a URL in their original spelling. Scripts compare them with the URL that they
//! requested.

/// Returns the host as the URL spells it, which is what curl prints: `BÜCHER.example`, not
/// `xn--bcher-kva.example`. `canonical` is the host in normal form. Returns `None` if the URL has
/// no host, or has an IP address in another form than the canonical one.
pub(crate) fn host<'u>(url: &'u str, canonical: &str) -> Option<&'u str> {
    let host_port = authority(url).rsplit('@').next()?;
    let host = host_port.split(':').next()?;
    let is_it = host.eq_ignore_ascii_case(canonical) || !host.is_ascii() && !host.contains('%');
    is_it.then_some(host)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keeps_its_original_spelling() {
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
    fn user_stays_percent_encoded() {
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
