//! The authority of a URL, `user:password@host:port`. If two parsers disagree about it, secrets
//! leak.
//!
//! Text that could make DNS, the Host field, SNI or a cookie jar see another host is refused, not
//! repaired. Such text is a second `@`, a backslash, encoded delimiters, or empty labels.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use memchr::memchr;

use super::error::{TargetError, UrlErrorKind};
use super::origin::Host;
use crate::urlencode;

/// The largest length of a host in bytes, as in curl. DNS has no names above 253 bytes, but
/// `--resolve` and proxies may use longer names.
const MAX_HOST: usize = 65_535;

/// The parts of a URL's authority.
pub(super) struct Authority<'t> {
    /// The text before the `@`, as written; `None` if there is no `@`.
    pub(super) userinfo: Option<&'t str>,
    pub(super) host: Host,
    /// The host as written in the URL. An IPv6 address keeps its opening bracket but not the
    /// closing one.
    pub(super) written_host: &'t str,
    /// The port as written; `None` for `host` and `host:`.
    pub(super) port: Option<u16>,
}

pub(super) fn parse(text: &str) -> Result<Authority<'_>, TargetError> {
    let (userinfo, host_port) = match memchr(b'@', text.as_bytes()) {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    if let Some(userinfo) = userinfo {
        check_userinfo(userinfo, host_port)?;
    }
    let (written_host, port) = split_port(host_port)?;
    let host = match written_host.strip_prefix('[') {
        Some(rest) => parse_bracketed(rest)?,
        None => parse_name_or_ipv4(written_host)?,
    };
    Ok(Authority { userinfo, host, written_host, port: parse_port(port)? })
}

fn check_userinfo(userinfo: &str, after: &str) -> Result<(), TargetError> {
    let forbidden = urlencode::percent_decode(userinfo.as_bytes()).iter().any(|b| matches!(b, 0 | b'\r' | b'\n'));
    if forbidden || userinfo.contains('\\') || after.contains('@') {
        return Err(UrlErrorKind::Userinfo.into());
    }
    Ok(())
}

/// Splits the text after the userinfo into the host and the port after the colon. The host keeps
/// its opening bracket, if any, but loses the closing one.
fn split_port(text: &str) -> Result<(&str, &str), TargetError> {
    if text.starts_with('[') {
        let end = memchr(b']', text.as_bytes()).ok_or(UrlErrorKind::Ipv6)?;
        let after = &text[end + 1..];
        return match after.strip_prefix(':') {
            Some(port) => Ok((&text[..end], port)),
            None if after.is_empty() => Ok((&text[..end], "")),
            None => Err(UrlErrorKind::Port.into()),
        };
    }
    Ok(text.split_once(':').unwrap_or((text, "")))
}

/// Parses a port. Only digits are allowed; `u16::from_str` would accept a plus sign. Returns `None`
/// for an empty text (`host:`), which means no port, as in browsers and curl.
fn parse_port(digits: &str) -> Result<Option<u16>, TargetError> {
    if digits.is_empty() {
        return Ok(None);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UrlErrorKind::Port.into());
    }
    digits.parse().map(Some).map_err(|_| UrlErrorKind::Port.into())
}

fn parse_bracketed(text: &str) -> Result<Host, TargetError> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => {
            // RFC 6874 puts the zone after `%25`. A bare `%` is accepted, too, unless it could be
            // an encoded byte: to curl `[fe80::1%31]` is `fe80::11`.
            let (zone, is_bare) = zone.strip_prefix("25").map_or((zone, true), |zone| (zone, false));
            let encodes = is_bare && zone.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            if encodes || zone.is_empty() || zone.len() > 15 || !zone.bytes().all(plain) {
                return Err(UrlErrorKind::Ipv6.into());
            }
            (address, Some(zone.to_owned()))
        }
        None => (text, None),
    };
    let ip: Ipv6Addr = address.parse().map_err(|_| UrlErrorKind::Ipv6)?;
    Ok(Host::V6(ip, zone))
}

fn parse_name_or_ipv4(text: &str) -> Result<Host, TargetError> {
    if text.is_empty() {
        return Err(UrlErrorKind::NoHost.into());
    }
    if text.len() > MAX_HOST {
        return Err(UrlErrorKind::Host.into());
    }
    let decoded = if memchr(b'%', text.as_bytes()).is_some() {
        let bytes = urlencode::percent_decode(text.as_bytes()).into_owned();
        Cow::Owned(String::from_utf8(bytes).map_err(|_| UrlErrorKind::Host)?)
    } else {
        Cow::Borrowed(text)
    };
    let mut name = if decoded.is_ascii() {
        decoded.into_owned()
    } else {
        // Non-transitional, as in browsers and curl: `faß.de` is not `fass.de`.
        Uts46::new()
            .to_ascii(decoded.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, DnsLength::VerifyAllowRootDot)
            .map_err(|_| UrlErrorKind::Idna)?
            .into_owned()
    };
    name.make_ascii_lowercase();
    // After IDNA, which makes digits, dots and slashes out of their full-width forms.
    check_name(&name)?;
    Ok(match parse_lenient_ipv4(&name) {
        Some(ip) => Host::V4(ip),
        None => Host::Name(name),
    })
}

/// Checks the characters of a host name: letters, digits, `-`, `_`, `~` and single dots. A list of
/// allowed characters cannot miss a dangerous character. (curl has a list of forbidden characters,
/// which misses `|`.)
fn check_name(name: &str) -> Result<(), TargetError> {
    let mut after_dot = true;
    for b in name.bytes() {
        match b {
            b'.' if after_dot => return Err(UrlErrorKind::Host.into()),
            b'.' => after_dot = true,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => after_dot = false,
            _ => return Err(UrlErrorKind::Host.into()),
        }
    }
    if name.is_empty() { Err(UrlErrorKind::NoHost.into()) } else { Ok(()) }
}

/// Parses an IPv4 address in any syntax that `inet_aton`, and so every resolver, accepts: `127.1`,
/// `0x7f.1`, `0177.0.0.1`, `2130706433`. A trailing dot is accepted, as in browsers and curl.
/// Returns `None` for any other text, such as five parts, a part that is too large, or `08`. Such a
/// text counts as a name.
fn parse_lenient_ipv4(name: &str) -> Option<Ipv4Addr> {
    if !name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut parts = [0u32; 4];
    let mut count = 0;
    for part in name.split('.') {
        *parts.get_mut(count)? = parse_ipv4_number(part)?;
        count += 1;
    }
    let last = parts[count - 1];
    let leading = &parts[..count - 1];
    // The last part fills the remaining bytes.
    let room = u32::MAX >> (8 * leading.len());
    if last > room || leading.iter().any(|part| *part > 0xff) {
        return None;
    }
    let high = leading.iter().enumerate().map(|(i, part)| part << (24 - 8 * i)).sum::<u32>();
    Some(Ipv4Addr::from(high | last))
}

fn parse_ipv4_number(part: &str) -> Option<u32> {
    let (digits, radix) = match part.as_bytes() {
        [b'0', b'x', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        _ => (part, 10),
    };
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}
