//! The parser of URLs for `curl_url_set`.

use std::net::{Ipv4Addr, Ipv6Addr};

use haul_policy::urlencode::percent_decode;

use super::flags;
use super::parts::UrlParts;
use crate::codes::{
    CURLUE_BAD_FILE_URL, CURLUE_BAD_HOSTNAME, CURLUE_BAD_IPV6, CURLUE_BAD_PORT_NUMBER, CURLUE_BAD_SCHEME,
    CURLUE_BAD_SLASHES, CURLUE_MALFORMED_INPUT, CURLUE_NO_HOST, CURLUE_UNSUPPORTED_SCHEME, CURLUE_USER_NOT_ALLOWED,
    CURLUcode,
};

/// The maximum length of a URL in bytes, as in libcurl.
pub(super) const MAX_LEN: usize = 8_000_000;

/// The schemes that libcurl knows, with their default ports.
const SCHEMES: &[(&str, u16)] = &[
    ("http", 80),
    ("https", 443),
    ("ws", 80),
    ("wss", 443),
    ("ftp", 21),
    ("ftps", 990),
    ("file", 0),
    ("dict", 2628),
    ("gopher", 70),
    ("gophers", 70),
    ("imap", 143),
    ("imaps", 993),
    ("ldap", 389),
    ("ldaps", 636),
    ("mqtt", 1883),
    ("pop3", 110),
    ("pop3s", 995),
    ("rtsp", 554),
    ("scp", 22),
    ("sftp", 22),
    ("smb", 445),
    ("smbs", 445),
    ("smtp", 25),
    ("smtps", 465),
    ("telnet", 23),
    ("tftp", 69),
];

/// Returns the default port of a scheme; `None` if the scheme is unknown.
pub(super) fn default_port(scheme: &[u8]) -> Option<u16> {
    SCHEMES.iter().find(|(name, _)| name.as_bytes() == scheme).map(|(_, port)| *port)
}

/// Returns true if URLs of this scheme may have login options after the password.
fn has_options(scheme: &[u8]) -> bool {
    matches!(scheme, b"imap" | b"imaps" | b"pop3" | b"pop3s" | b"smtp" | b"smtps")
}

/// Splits a URL into its scheme, in lower case, and the text after the colon. Returns `None` if the
/// URL has no scheme. If `guesses` is true, a slash must follow the colon, so that the host of
/// `host:port` is not mistaken for a scheme.
pub(super) fn split_scheme(url: &[u8], guesses: bool) -> Option<(Vec<u8>, &[u8])> {
    let end = url.iter().position(|b| !(b.is_ascii_alphanumeric() || b"+-.".contains(b)))?;
    let is_name = url.first().is_some_and(u8::is_ascii_alphabetic) && end <= 40;
    let rest = url.get(end..)?.strip_prefix(b":")?;
    let is_scheme = is_name && (!guesses || rest.first() == Some(&b'/'));
    is_scheme.then(|| (url[..end].to_ascii_lowercase(), rest))
}

/// Returns an error if a text is too long for a URL, or contains control characters or spaces.
/// Spaces are allowed if `flag` allows them.
fn check_bytes(text: &[u8], flag: u32) -> Result<(), CURLUcode> {
    if text.len() > MAX_LEN {
        return Err(CURLUE_MALFORMED_INPUT);
    }
    let allows_space = flag & flags::ALLOW_SPACE != 0;
    let is_bad = |b: &u8| *b < 0x20 || *b == 0x7f || (*b == b' ' && !allows_space);
    if text.iter().any(is_bad) { Err(CURLUE_MALFORMED_INPUT) } else { Ok(()) }
}

/// Parses an absolute URL, or a URL without a scheme if `flag` allows guessing the scheme.
pub(super) fn parse(url: &[u8], flag: u32) -> Result<UrlParts, CURLUcode> {
    check_bytes(url, flag)?;
    let may_lack_scheme = flag & (flags::GUESS_SCHEME | flags::DEFAULT_SCHEME) != 0;
    let mut parts = UrlParts::default();
    let rest = match split_scheme(url, may_lack_scheme) {
        Some((scheme, rest)) if scheme == b"file" => return parse_file(rest, flag),
        Some((scheme, rest)) => {
            let slashes = rest.iter().take_while(|b| **b == b'/').count();
            if default_port(&scheme).is_none() && flag & flags::NON_SUPPORT_SCHEME == 0 {
                return Err(CURLUE_UNSUPPORTED_SCHEME);
            }
            if !(1..=3).contains(&slashes) {
                return Err(CURLUE_BAD_SLASHES);
            }
            parts.scheme = Some(scheme);
            // After an unknown scheme, the third slash begins the path.
            let skipped = if flag & flags::NO_AUTHORITY != 0 { slashes.min(2) } else { slashes };
            &rest[skipped..]
        }
        None if !may_lack_scheme => return Err(CURLUE_BAD_SCHEME),
        None => url,
    };
    let end = rest.iter().position(|b| b"/?#".contains(b)).unwrap_or(rest.len());
    parse_authority(&mut parts, &rest[..end], flag)?;
    if parts.scheme.is_none() {
        parts.is_guessed = true;
        parts.scheme = Some(match flag & flags::DEFAULT_SCHEME {
            0 => guess_scheme(parts.host.as_deref().unwrap_or_default()).to_vec(),
            _ => b"https".to_vec(),
        });
    }
    parse_tail(&mut parts, &rest[end..], flag);
    Ok(parts)
}

/// Guesses the scheme from the first label of a host, such as `ftp` from `ftp.example.com`.
fn guess_scheme(host: &[u8]) -> &'static [u8] {
    for (label, scheme) in
        [("ftp.", "ftp"), ("dict.", "dict"), ("ldap.", "ldap"), ("imap.", "imap"), ("smtp.", "smtp"), ("pop3.", "pop3")]
    {
        if host.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label.as_bytes())) {
            return scheme.as_bytes();
        }
    }
    b"http"
}

fn parse_file(rest: &[u8], flag: u32) -> Result<UrlParts, CURLUcode> {
    let mut path = rest;
    if let Some(after) = rest.strip_prefix(b"//") {
        let local = [&b"localhost/"[..], b"127.0.0.1/"]
            .into_iter()
            .find(|host| after.get(..host.len()).is_some_and(|start| start.eq_ignore_ascii_case(host)));
        path = match local {
            Some(host) => &after[host.len() - 1..],
            None => after,
        };
    }
    if !path.starts_with(b"/") {
        return Err(CURLUE_BAD_FILE_URL);
    }
    let mut parts = UrlParts { scheme: Some(b"file".to_vec()), ..UrlParts::default() };
    parse_tail(&mut parts, path, flag);
    Ok(parts)
}

fn parse_authority(parts: &mut UrlParts, authority: &[u8], flag: u32) -> Result<(), CURLUcode> {
    let (login, place) = match authority.iter().position(|b| *b == b'@') {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    };
    if let Some(login) = login {
        if flag & flags::DISALLOW_USER != 0 {
            return Err(CURLUE_USER_NOT_ALLOWED);
        }
        let splits = parts.scheme.as_deref().is_some_and(has_options);
        let (login, options) = match login.iter().position(|b| *b == b';').filter(|_| splits) {
            Some(at) => (&login[..at], Some(login[at + 1..].to_vec())),
            None => (login, None),
        };
        let colon = login.iter().position(|b| *b == b':');
        parts.user = Some(login[..colon.unwrap_or(login.len())].to_vec());
        parts.password = colon.map(|at| login[at + 1..].to_vec());
        parts.options = options;
    }
    let (host, port) = match place.first() {
        Some(b'[') => {
            let end = place.iter().position(|b| *b == b']').ok_or(CURLUE_BAD_IPV6)?;
            match &place[end + 1..] {
                [] => (&place[..=end], None),
                [b':', port @ ..] => (&place[..=end], Some(port)),
                _ => return Err(CURLUE_BAD_PORT_NUMBER),
            }
        }
        _ => match place.iter().position(|b| *b == b':') {
            Some(at) => (&place[..at], Some(&place[at + 1..])),
            None => (place, None),
        },
    };
    if let Some(port) = port.filter(|port| !port.is_empty()) {
        parts.port = Some(parse_port(port)?);
    }
    if host.is_empty() {
        if flag & flags::NO_AUTHORITY == 0 {
            return Err(CURLUE_NO_HOST);
        }
        parts.host = Some(Vec::new());
        return Ok(());
    }
    set_host(parts, host)
}

/// Parses a port: up to five digits, at most 65535.
pub(super) fn parse_port(text: &[u8]) -> Result<u16, CURLUcode> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or(CURLUE_BAD_PORT_NUMBER)
}

/// Sets the host after checking it: an IPv6 address in brackets, an IPv4 address in any notation,
/// or a name.
pub(super) fn set_host(parts: &mut UrlParts, host: &[u8]) -> Result<(), CURLUcode> {
    if let Some(inner) = host.strip_prefix(b"[") {
        let inner = inner.strip_suffix(b"]").ok_or(CURLUE_BAD_IPV6)?;
        let (address, zone) = match inner.iter().position(|b| *b == b'%') {
            Some(at) => {
                let zone = &inner[at + 1..];
                (&inner[..at], Some(zone.strip_prefix(b"25").filter(|rest| !rest.is_empty()).unwrap_or(zone)))
            }
            None => (inner, None),
        };
        let address: Ipv6Addr =
            std::str::from_utf8(address).ok().and_then(|text| text.parse().ok()).ok_or(CURLUE_BAD_IPV6)?;
        if zone.is_some_and(|zone| zone.is_empty() || zone.len() > 15) {
            return Err(CURLUE_BAD_IPV6);
        }
        parts.zone = zone.map(<[u8]>::to_vec);
        parts.host = Some(format!("[{address}]").into_bytes());
        return Ok(());
    }
    let plain = percent_decode(host);
    if let Some(address) = ipv4(&plain) {
        parts.host = Some(address.to_string().into_bytes());
        parts.zone = None;
        return Ok(());
    }
    let is_bad = |b: &u8| *b <= 0x20 || *b == 0x7f || b"/:#?!@{}[]\\$'\"^`*<>=;,&()+%".contains(b);
    if plain.is_empty() || plain.iter().any(is_bad) {
        return Err(CURLUE_BAD_HOSTNAME);
    }
    parts.host = Some(plain.into_owned());
    parts.zone = None;
    Ok(())
}

/// Parses an IPv4 address of one to four numbers, which may be octal or hexadecimal. Returns `None`
/// for a name.
fn ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    let text = std::str::from_utf8(host).ok()?;
    let text = text.strip_suffix('.').unwrap_or(text);
    let number = |part: &str| {
        if part.is_empty() {
            return None;
        }
        let lower = part.to_ascii_lowercase();
        match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
            (Some(digits), _) => u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
            (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
            _ => lower.bytes().all(|b| b.is_ascii_digit()).then(|| lower.parse().ok()).flatten(),
        }
    };
    let numbers: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    if first.len() > 3 || first.iter().any(|number| *number > 255) {
        return None;
    }
    let room = 32 - 8 * first.len();
    if room < 32 && u64::from(*last) >= 1 << room {
        return None;
    }
    let high = first.iter().enumerate().fold(0u32, |sum, (at, number)| sum | number << (24 - 8 * at));
    Some(Ipv4Addr::from(high | last))
}

/// Parses the path, the query and the fragment of a URL, and stores them in `parts`.
pub(super) fn parse_tail(parts: &mut UrlParts, tail: &[u8], flag: u32) {
    let encodes = flag & flags::URLENCODE != 0;
    let (rest, fragment) = split_at_byte(tail, b'#');
    let (path, query) = split_at_byte(rest, b'?');
    let encoded = |text: &[u8], in_query: bool| if encodes { encode_loose(text, in_query) } else { text.to_vec() };
    parts.fragment = fragment.map(|text| encoded(text, false));
    parts.query = query.map(|text| encoded(text, true));
    let path = encoded(path, false);
    let path = if flag & flags::PATH_AS_IS != 0 { path } else { without_dots(&path) };
    parts.path = (!path.is_empty()).then_some(path);
}

fn split_at_byte(text: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == byte) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Percent-encodes spaces and bytes outside ASCII. In a query, a space becomes `+`.
pub(super) fn encode_loose(text: &[u8], in_query: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for b in text {
        match b {
            b' ' if in_query => out.push(b'+'),
            b if *b <= 0x20 || *b >= 0x7f => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
            b => out.push(*b),
        }
    }
    out
}

/// Removes `.` and `..` segments from an absolute path (RFC 3986 section 5.2.4).
pub(super) fn without_dots(path: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = path[1..].split(|b| *b == b'/').collect();
    let last = segments.len() - 1;
    for (at, segment) in segments.iter().enumerate() {
        let plain = percent_decode(segment);
        let (is_dot, is_parent) = (&*plain == b".", &*plain == b"..");
        if is_parent {
            kept.pop();
        }
        if !is_dot && !is_parent {
            kept.push(segment);
        } else if at == last {
            kept.push(b"");
        }
    }
    [b"/", kept.join(&b'/').as_slice()].concat()
}
