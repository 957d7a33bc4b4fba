//! The file of Perl's HTTP::Cookies: `Set-Cookie3` lines under `#LWP-Cookies-1.0`.
//!
//! ```
//! use haul_policy::cookie::{CookieStore, lwp};
//!
//! let text = b"#LWP-Cookies-1.0\n\
//!     Set-Cookie3: sid=\"a b\"; path=\"/\"; domain=.example.com; path_spec; secure; expires=\"2030-01-01 00:00:00Z\"; version=0\n";
//! let read = lwp::read(text, 0).expect("the first line is right");
//! let mut jar = CookieStore::new();
//! jar.load(read.cookies);
//! assert_eq!(jar.iter().next().unwrap().value(), b"a b");
//! assert_eq!(lwp::write(&jar, 0), text);
//! assert!(lwp::read(b"# Netscape HTTP Cookie File\n", 0).is_none());
//! ```
//!
//! LWP appends `.local` to hosts without a dot and sends such a cookie to both names; `read`
//! returns one cookie for each. Session cookies have `discard`. LWP writes session cookies only
//! with `ignore_discard`; `write` always does, as curl does.

use super::netscape::CookieFile;
use super::{Cookie, CookieParts, CookieRefusal, CookieStore, SameSite, scope};
use crate::calendar::CalendarTime;

const FILE_HEADER: &[u8] = b"#LWP-Cookies-";
const COOKIE_LINE_PREFIX: &[u8] = b"Set-Cookie3:";

/// Parses a cookie file of LWP, the Perl library. `now` is in seconds since 1970. Returns `None` if
/// the text does not begin with the first line of an LWP file.
pub fn read(text: &[u8], now: u64) -> Option<CookieFile> {
    let mut lines = text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if !lines.next()?.starts_with(FILE_HEADER) {
        return None;
    }
    let mut found = CookieFile::default();
    for line in lines.filter_map(|line| line.strip_prefix(COOKIE_LINE_PREFIX)) {
        match parse_line(line) {
            Ok(cookies) => found.cookies.extend(cookies.filter(|cookie| !cookie.is_expired(now))),
            Err(_) => found.refused += 1,
        }
    }
    Some(found)
}

/// Returns the text of a cookie file of LWP (the Perl library) with the cookies of `jar` that have
/// not expired at `now` (in seconds since 1970), oldest first.
pub fn write(jar: &CookieStore, now: u64) -> Vec<u8> {
    let mut out = b"#LWP-Cookies-1.0\n".to_vec();
    let mut last_start = out.len();
    for cookie in jar.iter().filter(|cookie| !cookie.is_expired(now)) {
        let start = out.len();
        push_line(&mut out, cookie.parts());
        // `h` and `h.local` of one line that was read become one line again.
        if out[last_start..start] == out[start..] {
            out.truncate(start);
        } else {
            last_start = start;
        }
    }
    out
}

fn push_line(out: &mut Vec<u8>, cookie: &CookieParts) {
    out.extend_from_slice(COOKIE_LINE_PREFIX);
    out.push(b' ');
    push_pair(out, &cookie.name, Some(&cookie.value));
    let dot = if cookie.host_only { "" } else { "." };
    let local = if cookie.domain.contains(['.', ':']) { "" } else { ".local" };
    let domain = format!("{dot}{}{local}", cookie.domain);
    let expires = cookie.expires.map(|at| {
        let CalendarTime { year, month, day, hour, minute, second } = CalendarTime::from_unix(at);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
    });
    let mut attribute = |key: &str, value: Option<&[u8]>| {
        out.extend_from_slice(b"; ");
        push_pair(out, key.as_bytes(), value);
    };
    attribute("path", Some(&cookie.path));
    attribute("domain", Some(domain.as_bytes()));
    attribute("path_spec", None);
    if cookie.secure {
        attribute("secure", None);
    }
    match &expires {
        Some(expires) => attribute("expires", Some(expires.as_bytes())),
        None => attribute("discard", None),
    }
    if cookie.http_only {
        attribute("HttpOnly", None);
    }
    if let Some(kind) = cookie.same_site.as_str() {
        attribute("SameSite", Some(kind.as_bytes()));
    }
    attribute("version", Some(b"0"));
    out.push(b'\n');
}

/// Appends `key=value`, or only `key` without a value, as the Perl module HTTP::Headers::Util does.
/// The value is quoted if it is empty or contains a byte that a token cannot have.
fn push_pair(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    out.extend_from_slice(key);
    let Some(value) = value else { return };
    out.push(b'=');
    let special = |b: &u8| *b <= b' ' || *b >= 0x7f || b"()<>@,;:\\\"/[]?={}".contains(b);
    if !value.is_empty() && !value.iter().any(special) {
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    for b in value {
        if matches!(b, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*b);
    }
    out.push(b'"');
}

fn parse_line(line: &[u8]) -> Result<impl Iterator<Item = Cookie> + use<>, CookieRefusal> {
    let mut pairs = LwpAttributes { rest: line };
    let (name, value) = pairs.next().ok_or(CookieRefusal::NoName)?;
    let mut parts = CookieParts { name, value: value.ok_or(CookieRefusal::NoName)?, ..CookieParts::default() };
    let mut domain = None;
    for (key, value) in pairs {
        let is = |name: &str| key.eq_ignore_ascii_case(name.as_bytes());
        let value = value.unwrap_or_default();
        if is("path") {
            parts.path = value;
        } else if is("domain") {
            domain = String::from_utf8(value).ok();
        } else if is("secure") {
            parts.secure = true;
        } else if is("httponly") {
            parts.http_only = true;
        } else if is("samesite") {
            parts.same_site = SameSite::parse(&value);
        } else if is("expires") {
            let text = core::str::from_utf8(&value).map_err(|_| CookieRefusal::ControlByte)?;
            parts.expires =
                Some(CalendarTime::parse(text).and_then(CalendarTime::to_unix).ok_or(CookieRefusal::ControlByte)?);
        }
    }
    let domain = domain.ok_or(CookieRefusal::Domain)?;
    parts.host_only = !domain.starts_with('.') || scope::is_address(&domain[1..]);
    parts.domain = domain.trim_start_matches('.').to_owned();
    let bare = parts.domain.strip_suffix(".local").filter(|name| !name.contains('.'));
    let bare = bare.map(|name| Cookie::new(CookieParts { domain: name.to_owned(), ..parts.clone() })).transpose()?;
    Ok(bare.into_iter().chain([Cookie::new(parts)?]))
}

/// An iterator over the items `key`, `key=token` and `key="quoted"` of a line, separated by
/// semicolons.
struct LwpAttributes<'l> {
    rest: &'l [u8],
}

impl Iterator for LwpAttributes<'_> {
    type Item = (Vec<u8>, Option<Vec<u8>>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.rest.iter().position(|b| !b.is_ascii_whitespace() && *b != b';')?;
        let text = &self.rest[start..];
        let end = text.iter().position(|b| matches!(b, b'=' | b';')).unwrap_or(text.len());
        let (key, mut rest) = (text[..end].trim_ascii().to_vec(), &text[end..]);
        let mut value = None;
        if let Some(after) = rest.strip_prefix(b"=") {
            let mut read = Vec::new();
            rest = after.trim_ascii_start();
            if let Some(quoted) = rest.strip_prefix(b"\"") {
                rest = quoted;
                while let Some((b, after)) = rest.split_first() {
                    rest = after;
                    match (b, after.split_first()) {
                        (b'"', _) => break,
                        (b'\\', Some((escaped, after))) => {
                            read.push(*escaped);
                            rest = after;
                        }
                        _ => read.push(*b),
                    }
                }
            } else {
                let end = rest.iter().position(|b| *b == b';').unwrap_or(rest.len());
                read.extend_from_slice(rest[..end].trim_ascii());
                rest = &rest[end..];
            }
            value = Some(read);
        }
        self.rest = rest;
        Some((key, value))
    }
}
