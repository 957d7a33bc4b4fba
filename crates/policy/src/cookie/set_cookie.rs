//! Parses the Set-Cookie field as browsers do (RFC 6265bis §5.6): an unknown attribute is ignored,
//! and a dangerous name or value makes the parser refuse the cookie.

use super::{CookieFileConventions, CookieRefusal, MAX_AGE, MAX_ATTRIBUTE, SameSite, check_pair, date};

/// A parsed Set-Cookie field. If an attribute occurs several times, the last occurrence counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SetCookie<'h> {
    pub(super) name: &'h [u8],
    pub(super) value: &'h [u8],
    pub(super) expires: Option<u64>,
    pub(super) domain: &'h [u8],
    /// The path as it stands in the field. `None` if the field has no usable path; the caller then
    /// determines the default path.
    pub(super) path: Option<&'h [u8]>,
    pub(super) secure: bool,
    pub(super) http_only: bool,
    pub(super) same_site: SameSite,
}

pub(super) fn parse(field: &[u8], now: u64, style: CookieFileConventions) -> Result<SetCookie<'_>, CookieRefusal> {
    if field.iter().any(|b| (*b < b' ' && *b != b'\t') || *b == 0x7f) {
        return Err(CookieRefusal::ControlByte);
    }
    let mut pieces = field.split(|b| *b == b';');
    let pair = pieces.next().unwrap_or_default();
    let equals = pair.iter().position(|b| *b == b'=').ok_or(CookieRefusal::NoName)?;
    let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    check_pair(name, value)?;
    let mut cookie = SetCookie {
        name,
        value,
        expires: None,
        domain: b"",
        path: None,
        secure: false,
        http_only: false,
        same_site: SameSite::Default,
    };
    let mut max_age = None;
    for piece in pieces {
        let cut = piece.iter().position(|b| *b == b'=');
        let (key, value) = cut.map_or((piece, &b""[..]), |at| (&piece[..at], &piece[at + 1..]));
        let (key, value) = (key.trim_ascii(), value.trim_ascii());
        // curl unquotes paths, and takes no long text for a date.
        let value = match style {
            CookieFileConventions::Curl if key.eq_ignore_ascii_case(b"path") => remove_quotes(value),
            CookieFileConventions::Curl if key.eq_ignore_ascii_case(b"expires") && value.len() >= CURL_MAX_DATE => {
                continue;
            }
            _ => value,
        };
        if value.len() <= MAX_ATTRIBUTE {
            cookie.apply_attribute(key, value, now, &mut max_age);
        }
    }
    cookie.expires = max_age.or(cookie.expires);
    Ok(cookie)
}

/// An Expires value of at least this many bytes is ignored, as in curl.
const CURL_MAX_DATE: usize = 80;

/// Returns the value without the double quote at its start and the one at its end. Each is removed
/// even without the other.
fn remove_quotes(value: &[u8]) -> &[u8] {
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    value.strip_suffix(b"\"").unwrap_or(value)
}

impl<'h> SetCookie<'h> {
    fn apply_attribute(&mut self, key: &[u8], value: &'h [u8], now: u64, max_age: &mut Option<u64>) {
        let is = |name: &str| key.eq_ignore_ascii_case(name.as_bytes());
        if is("expires") {
            self.expires = date::parse(value).map(|at| at.min(now.saturating_add(MAX_AGE))).or(self.expires);
        } else if is("max-age") {
            *max_age = parse_seconds(value).map(|age| if age == 0 { 0 } else { now.saturating_add(age) }).or(*max_age);
        } else if is("domain") {
            self.domain = value;
        } else if is("path") {
            self.path = Some(value);
        } else if is("secure") {
            self.secure = true;
        } else if is("httponly") {
            self.http_only = true;
        } else if is("samesite") {
            self.same_site = SameSite::parse(value);
        }
    }
}

/// Parses the value of Max-Age (RFC 6265bis §5.6.2): digits, or a minus sign and digits. Returns
/// `None` for any other text. A negative number gives 0. A number above [`MAX_AGE`] gives
/// [`MAX_AGE`], however many digits it has.
fn parse_seconds(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() < value.len() {
        return Some(0);
    }
    let add = |sum: u64, b: &u8| sum.saturating_mul(10).saturating_add(u64::from(b - b'0'));
    Some(digits.iter().fold(0, add).min(MAX_AGE))
}
