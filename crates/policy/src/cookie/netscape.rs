//! The Netscape cookie file, as curl, wget, Python and browsers' exporters read and write it.
//!
//! ```text
//! # Netscape HTTP Cookie File
//! .example.com     TRUE    /     TRUE    1893456000   sid    31
//! #HttpOnly_h.example  FALSE  /app  FALSE  0            seen   1
//! domain           hosts   path  Secure  ends (0:     name   value
//!                  below                 session)
//! ```
//!
//! The fields are separated by tabs. Lines of `Set-Cookie: …` are read as well, as by curl's `-b`.
//!
//! ```
//! use haul_policy::cookie::netscape;
//!
//! let file = b"# comment\r\n.example.com\tTRUE\t/\tTRUE\t0\tsid\t31\r\nSet-Cookie: a=1; Domain=h.example\r\nnonsense\n";
//! let read = netscape::read(file, 0);
//! assert_eq!((read.cookies.len(), read.refused), (2, 1));
//! assert_eq!((read.cookies[0].parts().domain.as_str(), read.cookies[0].value()), ("example.com", &b"31"[..]));
//! ```
//!
//! SameSite has no column: it is lost in such a file.

use super::{Cookie, CookieParts, Jar, Refusal, jar, scope};

/// What a file held.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Its cookies that had not ended, in its order.
    pub cookies: Vec<Cookie>,
    /// How many lines were neither comments nor acceptable cookies.
    pub refused: usize,
}

/// The first line; wget and Python want it literally.
const MAGIC: &[u8] = b"# Netscape HTTP Cookie File\n";
const ABOUT: &[u8] = b"# Written by haul. Fields: domain, subdomains too, path, secure, end, name, value.\n\n";
const HTTP_ONLY: &[u8] = b"#HttpOnly_";
const SET_COOKIE: &[u8] = b"Set-Cookie:";

/// Reads a file; `now` in seconds since 1970. Any text is one: what is no cookie is counted.
pub fn read(text: &[u8], now: u64) -> Read {
    let mut found = Read::default();
    for line in text.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_comment = line.first() == Some(&b'#') && !line.starts_with(HTTP_ONLY);
        if line.trim_ascii().is_empty() || is_comment {
            continue;
        }
        match parse_line(line, now) {
            Ok(cookie) if cookie.is_expired(now) => {}
            Ok(cookie) => found.cookies.push(cookie),
            Err(_) => found.refused += 1,
        }
    }
    found
}

/// Writes the cookies that have not ended, the oldest first: reading the file keeps their order.
pub fn write(jar: &Jar, now: u64) -> Vec<u8> {
    let mut out = [MAGIC, ABOUT].concat();
    jar.iter().filter(|cookie| !cookie.is_expired(now)).for_each(|cookie| push_line(&mut out, cookie.parts()));
    out
}

fn push_line(out: &mut Vec<u8>, cookie: &CookieParts) {
    let flag = |yes: bool| if yes { &b"TRUE"[..] } else { b"FALSE" };
    if cookie.http_only {
        out.extend_from_slice(HTTP_ONLY);
    }
    if !cookie.host_only {
        out.push(b'.');
    }
    // Some readers take these for signed 64 bits.
    let expires = cookie.expires.map_or(0, |at| at.clamp(1, i64::MAX as u64)).to_string();
    let fields: [&[u8]; 7] = [
        cookie.domain.as_bytes(),
        flag(!cookie.host_only),
        &cookie.path,
        flag(cookie.secure),
        expires.as_bytes(),
        &cookie.name,
        &cookie.value,
    ];
    out.extend_from_slice(&fields.join(&b'\t'));
    out.push(b'\n');
}

fn parse_line(line: &[u8], now: u64) -> Result<Cookie, Refusal> {
    if line.get(..SET_COOKIE.len()).is_some_and(|start| start.eq_ignore_ascii_case(SET_COOKIE)) {
        return jar::from_header_line(&line[SET_COOKIE.len()..], now);
    }
    let (http_only, line) = match line.strip_prefix(HTTP_ONLY) {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let mut fields = line.split(|b| *b == b'\t').peekable();
    let mut next = || fields.next().ok_or(Refusal::NoName);
    let domain = core::str::from_utf8(next()?).map_err(|_| Refusal::Domain)?;
    let with_subdomains = next()?.eq_ignore_ascii_case(b"TRUE");
    // Some writers leave the path out: then the Secure flag stands in its place.
    let mut path = next()?;
    let secure = if path == b"TRUE" || path == b"FALSE" { core::mem::replace(&mut path, b"/") } else { next()? };
    let expires = end(next()?)?;
    // Six fields: an empty value, and a writer that drops the tab before it.
    let (name, value) = (next()?, next().unwrap_or_default());
    if fields.next().is_some() {
        return Err(Refusal::ControlByte);
    }
    // A host with a trailing dot was host-only when it was written.
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    Cookie::new(CookieParts {
        name: name.to_vec(),
        value: value.to_vec(),
        domain: domain.to_owned(),
        host_only: !with_subdomains || scope::is_address(domain),
        path: path.to_vec(),
        secure: secure.eq_ignore_ascii_case(b"TRUE"),
        http_only,
        same_site: super::SameSite::Default,
        expires,
    })
}

/// A count of seconds; 0 is the session. Negative ones (written by 32-bit programs) have ended.
fn end(text: &[u8]) -> Result<Option<u64>, Refusal> {
    let text = core::str::from_utf8(text).map_err(|_| Refusal::ControlByte)?.trim();
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
    // A fraction, as Firefox exporters write it, is cut off.
    let (digits, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if digits.is_empty() || !digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return Err(Refusal::ControlByte);
    }
    Ok(match digits.parse().unwrap_or(u64::MAX) {
        0 => None,
        _ if negative => Some(0),
        at => Some(at),
    })
}
