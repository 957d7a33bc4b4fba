//! The hosts and paths that a cookie belongs to (RFC 6265bis §5.1.2–4, §5.7 steps 9–11).

use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;

use super::CookieRefusal;
use super::public_suffix::public_suffix;
use crate::target::{Host, Scheme, Target};

/// The widest scope that a cookie with a given domain may have: one host, or also its subdomains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaxCookieScope {
    /// The cookie can only be for the host itself. The host is an address, or its name is a public
    /// suffix or has a trailing dot.
    Host,
    /// The cookie is for the domain and all hosts below it.
    Domain,
}

/// Returns the host's text for comparison with cookie domains. An IPv6 zone is part of it:
/// `fe80::1%eth0` and `fe80::1%wlan0` are two machines.
pub(super) fn host_of(target: &Target) -> Cow<'_, str> {
    match target.host() {
        Host::Name(name) => Cow::Borrowed(name),
        Host::V6(ip, Some(zone)) => Cow::Owned(format!("{ip}%{zone}")),
        Host::V4(_) | Host::V6(_, None) => Cow::Borrowed(target.host_text()),
    }
}

/// Returns `true` if the connection resists eavesdropping and tampering. It uses TLS, or it stays
/// within this machine: the host is `localhost`, 127.0.0.1 or `::1`, as in curl.
pub(super) fn is_secure(target: &Target) -> bool {
    target.scheme() == Scheme::Https
        || match target.host() {
            Host::Name(name) => name == "localhost",
            Host::V4(ip) => *ip == Ipv4Addr::LOCALHOST,
            Host::V6(ip, _) => *ip == Ipv6Addr::LOCALHOST,
        }
}

/// Returns the key under which a host's cookies are stored and counted: its registrable domain, or
/// the host if it has none. All hosts that can share a cookie have the same key. Therefore, one
/// look-up finds all cookies of a host, and one limit covers all subdomains of a domain.
pub(super) fn registrable_domain(host: &str) -> &str {
    if is_address(host) {
        return host;
    }
    // A name with a trailing dot is another host than the one without, so the dot stays in the key.
    let name = host.strip_suffix('.').unwrap_or(host);
    let below = &name[..name.len() - public_suffix(name).len()];
    below.strip_suffix('.').map_or(host, |below| &host[below.rfind('.').map_or(0, |dot| dot + 1)..])
}

/// Returns `true` if anyone may register names under `domain` (lower case, no trailing dot). By the
/// default rule of the Public Suffix List, every name without a dot is a public suffix.
pub(super) fn is_public_suffix(domain: &str) -> bool {
    public_suffix(domain).len() == domain.len()
}

/// Returns the domain `text` in the form in which a jar stores it, and the widest scope that a
/// cookie with this domain may have. A program or a file supplies `text`. `host_only` is true if
/// the cookie is for the host alone.
pub(super) fn canonical_domain(text: &str, host_only: bool) -> Result<(String, MaxCookieScope), CookieRefusal> {
    let text = text.strip_prefix('.').unwrap_or(text);
    if let Some(address) = canonical_address(text) {
        return Ok((address, MaxCookieScope::Host));
    }
    let name = text.to_ascii_lowercase();
    let widest = check_name(&name)?;
    match widest {
        MaxCookieScope::Host if !host_only => Err(CookieRefusal::Domain),
        MaxCookieScope::Domain if is_public_suffix(&name) => Ok((name, MaxCookieScope::Host)),
        widest => Ok((name, widest)),
    }
}

/// Checks the Domain attribute of a cookie that `host` sent (RFC 6265bis §5.6.3). Returns the
/// domain, or `None` if the cookie belongs to the host alone.
pub(super) fn parse_domain_attribute(value: &[u8], host: &str) -> Result<Option<String>, CookieRefusal> {
    let value = value.strip_prefix(b".").unwrap_or(value);
    if value.is_empty() {
        return Ok(None);
    }
    let domain = core::str::from_utf8(value).map_err(|_| CookieRefusal::Domain)?.to_ascii_lowercase();
    if is_address(host) {
        // Servers do write their own address here; one written in another form is a different text.
        let own = canonical_address(domain.trim_start_matches('[').trim_end_matches(']'))
            .is_some_and(|address| address == host);
        return if own { Ok(None) } else { Err(CookieRefusal::ForeignDomain) };
    }
    if check_name(&domain)? == MaxCookieScope::Host {
        return Err(CookieRefusal::Domain);
    }
    if is_public_suffix(&domain) {
        return if domain == host { Ok(None) } else { Err(CookieRefusal::PublicSuffix) };
    }
    if domain_match(host, &domain) { Ok(Some(domain)) } else { Err(CookieRefusal::ForeignDomain) }
}

/// Returns `true` if the host name `host` equals `domain` or is a subdomain of it (RFC 6265bis
/// §5.1.3).
pub(super) fn domain_match(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.') && !is_address(host))
}

/// Returns the default path of a cookie (RFC 6265bis §5.1.4): the directory of the request's path,
/// without its trailing slash.
pub(super) fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

/// Returns `true` if `cookie_path` is `path` or a directory above it (RFC 6265bis §5.1.4). Compares
/// the bytes as they are sent; percent-encoding is not decoded.
pub(super) fn path_match(path: &[u8], cookie_path: &[u8]) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"))
}

/// Checks the characters of a host name in a cookie's Domain: letters, digits, `-_~` and single
/// dots, as in a [`Target`]. Returns the widest scope that the cookie may have: only the host
/// itself if the name ends with a dot, otherwise also its subdomains.
fn check_name(name: &str) -> Result<MaxCookieScope, CookieRefusal> {
    let labels = name.strip_suffix('.').unwrap_or(name);
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_~".contains(&b);
    if labels.split('.').any(|label| label.is_empty() || !label.bytes().all(plain)) {
        return Err(CookieRefusal::Domain);
    }
    Ok(if labels.len() < name.len() { MaxCookieScope::Host } else { MaxCookieScope::Domain })
}

fn canonical_address(text: &str) -> Option<String> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Some(ip.to_string());
    }
    let (ip, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
    let ip: Ipv6Addr = ip.parse().ok()?;
    match zone {
        None => Some(ip.to_string()),
        Some(zone) if !zone.is_empty() && zone.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) => {
            Some(format!("{ip}%{zone}"))
        }
        Some(_) => None,
    }
}

pub(super) fn is_address(host: &str) -> bool {
    host.contains(':') || host.as_bytes().first().is_some_and(u8::is_ascii_digit) && host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registrable_domain_follows_the_public_suffix_list() {
        for (host, expected) in [
            ("www.example.com", "example.com"),
            ("example.com", "example.com"),
            ("com", "com"),
            ("a.b.co.uk", "b.co.uk"),
            ("co.uk", "co.uk"),
            ("x.github.io", "x.github.io"),
            ("a.www.ck", "www.ck"),
            ("localhost", "localhost"),
            ("a.localhost", "a.localhost"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
            ("xn--55qx5d.cn", "xn--55qx5d.cn"),
        ] {
            assert_eq!(registrable_domain(host), expected);
        }
        assert_eq!(registrable_domain("a.www.example.com."), "example.com.");
        assert_eq!(registrable_domain("co.uk."), "co.uk.");
    }

    #[test]
    fn cookie_paths_match_whole_directories() {
        for (path, cookie, expected) in [
            ("/", "/", true),
            ("/a", "/", true),
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/a/b", "/a/", true),
            ("/ab", "/a", false),
            ("/a", "/a/", false),
            ("/A", "/a", false),
        ] {
            assert_eq!(path_match(path.as_bytes(), cookie.as_bytes()), expected, "{path} {cookie}");
        }
        for (path, expected) in [("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/", "/a/b")] {
            assert_eq!(default_path(path), expected);
        }
    }
}
