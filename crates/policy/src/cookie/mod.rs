//! Cookies (RFC 6265bis): storing, sending, and files.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::cookie::{CookieStore, netscape};
//!
//! let now = 1_800_000_000;
//! let shop = Target::parse("https://www.shop.example/cart/view")?;
//! let mut jar = CookieStore::new();
//! jar.set(&shop, b"sid=31; Domain=shop.example; Path=/; Secure; Max-Age=60", now)?;
//! jar.set(&shop, b"seen=1", now)?;
//! assert_eq!(jar.cookie_for(&shop, now).unwrap(), b"seen=1; sid=31");
//! assert_eq!(jar.cookie_for(&Target::parse("https://shop.example/")?, now).unwrap(), b"sid=31");
//! assert_eq!(jar.cookie_for(&Target::parse("http://www.shop.example/")?, now), None);
//! assert_eq!(jar.cookie_for(&shop, now + 60).unwrap(), b"seen=1");
//! assert!(jar.set(&shop, b"super=1; Domain=example", now).is_err());
//!
//! let file = netscape::write(&jar, now);
//! let mut again = CookieStore::new();
//! again.load(netscape::read(&file, now).cookies);
//! assert_eq!(again.cookie_for(&shop, now), jar.cookie_for(&shop, now));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | here | [`Cookie`], its parts and what makes them acceptable; limits |
//! | `set_cookie`, `date` | the lenient parser of Set-Cookie (§5.6); dates (§5.1.1) |
//! | `scope`, `public_suffix` | domains, paths; the Public Suffix List |
//! | [`CookieStore`] | storage (§5.7) and retrieval (§5.8.3) |
//! | [`CookieChanges`] | the changes of a jar since its file was read, for a file that other processes write too |
//! | [`netscape`], [`lwp`] | the files of curl, wget and browsers, and of Perl's HTTP::Cookies |
//!
//! Times are wall-clock seconds since 1970, passed in by the caller. A jar has no lock: wrap it in
//! one to share it.
//!
//! Left out: the same-site computation. A program that fetches a URL has no other top-level site,
//! so every request is same-site; the attribute is stored for programs that read the jar. Cookies
//! without a name are refused, as by curl and RFC 6265 §5.2: a bare value would be sent, and
//! servers read it as a name.

pub(crate) mod date;
mod error;
pub mod lwp;
pub mod netscape;
mod public_suffix;
mod scope;
mod set_cookie;
mod store;
#[cfg(test)]
mod tests;
mod unsaved_changes;

use core::fmt;

pub use error::CookieRefusal;
pub use store::{CookieFileConventions, CookieStore, SetCookieOutcome};
pub use unsaved_changes::{CookieChanges, CookieKey};

/// The largest length of a cookie's name and value together, in bytes (RFC 6265bis §5.6). A longer
/// cookie is refused.
pub const MAX_NAME_AND_VALUE: usize = 4096;
/// The largest length of an attribute's value, in bytes (RFC 6265bis §5.6). A longer attribute is
/// ignored, and the cookie is accepted without it.
pub const MAX_ATTRIBUTE: usize = 1024;
/// The largest number of cookies for all hosts under one registrable domain (such as
/// `example.co.uk`), as in Chrome. Together these cookies take at most 900 KiB.
pub const MAX_PER_SITE: usize = 180;
/// The largest number of cookies in a jar, as in RFC 6265bis §6.1. Together these cookies take at
/// most 15 MiB. A peer needs 17 domains to fill the jar.
pub const MAX_COOKIES: usize = 3000;
/// The largest number of cookies in one request, like curl's limit.
pub const MAX_COOKIES_PER_REQUEST: usize = 150;
/// The largest length in bytes of the Cookie field of a request, as in curl. Servers refuse longer
/// fields.
pub const MAX_COOKIE_FIELD: usize = 8190;
/// The largest lifetime of a cookie in seconds: 400 days (RFC 6265bis §5.5).
pub const MAX_AGE: u64 = 400 * 86_400;

/// The value of a cookie's SameSite attribute (RFC 6265bis §5.6.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SameSite {
    /// The SameSite attribute is missing or unknown.
    #[default]
    Default,
    /// The attribute is `SameSite=None`.
    None,
    /// The attribute is `SameSite=Lax`.
    Lax,
    /// The attribute is `SameSite=Strict`.
    Strict,
}

impl SameSite {
    /// Returns the value as it stands in the SameSite attribute; `None` for [`SameSite::Default`].
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            SameSite::Default => None,
            SameSite::None => Some("None"),
            SameSite::Lax => Some("Lax"),
            SameSite::Strict => Some("Strict"),
        }
    }

    pub(crate) fn parse(text: &[u8]) -> SameSite {
        [SameSite::None, SameSite::Lax, SameSite::Strict]
            .into_iter()
            .find(|kind| kind.as_str().is_some_and(|name| text.eq_ignore_ascii_case(name.as_bytes())))
            .unwrap_or_default()
    }
}

/// The name, value and attributes of a [`Cookie`]. `Debug` does not print the value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CookieParts {
    /// The cookie's name, which is not empty.
    pub name: Vec<u8>,
    /// The value of the cookie, exactly as it is sent.
    pub value: Vec<u8>,
    /// The host that receives the cookie, or the domain whose hosts receive it. A domain has no
    /// leading dot. An IPv6 address has no brackets, and its zone follows a `%`.
    pub domain: String,
    /// True if only the host in `domain` receives the cookie; false if its subdomains receive it
    /// too.
    pub host_only: bool,
    /// The path at and below which the cookie is sent; begins with a slash.
    pub path: Vec<u8>,
    /// True if the cookie is sent only over TLS, or to this machine (`Secure`).
    pub secure: bool,
    /// True if the cookie is hidden from scripts in pages (`HttpOnly`). haul runs no scripts, but
    /// writes the flag to cookie files.
    pub http_only: bool,
    /// The SameSite attribute. It is stored, but does not influence where the cookie is sent.
    pub same_site: SameSite,
    /// The expiry time in seconds since 1970; `None` for a session cookie.
    pub expires: Option<u64>,
}

/// A cookie that passed the checks of RFC 6265bis and may be stored. `Debug` does not print the
/// value.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie(CookieParts);

impl Cookie {
    /// Creates a cookie from parts that a program or a file supplies. For a Set-Cookie field, use
    /// [`CookieStore::set`] instead.
    ///
    /// A leading dot of the domain is removed, and the domain is lower-cased. If the domain is an
    /// address or a public suffix, the cookie becomes host-only. A path without a leading slash
    /// becomes `/`.
    pub fn new(mut parts: CookieParts) -> Result<Cookie, CookieRefusal> {
        check_pair(&parts.name, &parts.value)?;
        let (domain, widest) = scope::canonical_domain(&parts.domain, parts.host_only)?;
        parts.domain = domain;
        parts.host_only |= widest == scope::MaxCookieScope::Host;
        if parts.path.first() != Some(&b'/') {
            parts.path = b"/".to_vec();
        }
        if parts.path.len() > MAX_ATTRIBUTE {
            return Err(CookieRefusal::TooLong);
        }
        if parts.path.iter().any(|b| is_control(*b) || *b == b';') {
            return Err(CookieRefusal::ControlByte);
        }
        check_prefix(&parts)?;
        Ok(Cookie(parts))
    }

    /// Returns the name, value and attributes of the cookie.
    pub fn parts(&self) -> &CookieParts {
        &self.0
    }

    /// Returns the cookie's name.
    pub fn name(&self) -> &[u8] {
        &self.0.name
    }

    /// Returns the cookie's value.
    pub fn value(&self) -> &[u8] {
        &self.0.value
    }

    /// Returns `true` if the cookie has expired at `now`, in seconds since 1970.
    pub fn is_expired(&self, now: u64) -> bool {
        self.0.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns `true` if the cookie has no expiry time: it is a session cookie.
    pub fn is_session(&self) -> bool {
        self.0.expires.is_none()
    }

    /// Returns the key by which the cookie is identified (RFC 6265bis §5.7, step 23).
    pub fn key(&self) -> CookieKey {
        let CookieParts { name, domain, host_only, path, .. } = &self.0;
        CookieKey { domain: domain.clone(), host_only: *host_only, path: path.clone(), name: name.clone() }
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CookieParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &self.name.escape_ascii().to_string())
            .field("domain", &self.domain)
            .field("host_only", &self.host_only)
            .field("path", &self.path.escape_ascii().to_string())
            .field("secure", &self.secure)
            .field("http_only", &self.http_only)
            .field("same_site", &self.same_site)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Returns `true` for control bytes and tabs. RFC 6265bis allows tabs in cookies, but a line of a
/// Netscape file cannot contain them, and curl refuses them too.
fn is_control(b: u8) -> bool {
    b < b' ' || b == 0x7f
}

fn check_pair(name: &[u8], value: &[u8]) -> Result<(), CookieRefusal> {
    if name.is_empty() {
        return Err(CookieRefusal::NoName);
    }
    if name.len() + value.len() > MAX_NAME_AND_VALUE {
        return Err(CookieRefusal::TooLong);
    }
    let bad = |b: &u8| is_control(*b) || *b == b';';
    if name.iter().any(|b| bad(b) || *b == b'=') || value.iter().any(bad) {
        return Err(CookieRefusal::ControlByte);
    }
    Ok(())
}

/// Checks the rules for the name prefixes `__Secure-` and `__Host-` (RFC 6265bis §4.1.3). Case is
/// ignored, since servers that ignore case would accept `__host-` as `__Host-`. Checks only the
/// stored parts; [`CookieStore::set`] checks that the field had a Path.
fn check_prefix(parts: &CookieParts) -> Result<(), CookieRefusal> {
    let has = |prefix: &[u8]| parts.name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if has(b"__Secure-") && !parts.secure {
        return Err(CookieRefusal::SecurePrefix);
    }
    if has(b"__Host-") && !(parts.secure && parts.host_only && parts.path == b"/") {
        return Err(CookieRefusal::HostPrefix);
    }
    Ok(())
}
