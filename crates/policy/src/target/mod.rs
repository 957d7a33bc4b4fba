//! The parser of http and https URLs. A URL is parsed once, so that DNS, Host, SNI, cookies and
//! secrets all see the same host.
//!
//! ```
//! use haul_policy::{Host, Target};
//!
//! let target = Target::parse("HTTP://me:pw@Bücher.Example:8080/a/../b?q=1#top")?;
//! assert_eq!(target.host(), &Host::Name("xn--bcher-kva.example".into()));
//! assert_eq!(target.authority(), "xn--bcher-kva.example:8080");
//! assert_eq!(target.path_and_query(), "/b?q=1");
//! assert_eq!(target.join("/c d")?.to_url(), "http://xn--bcher-kva.example:8080/c%20d");
//! assert_eq!(Target::parse("0x7f.1/x")?.to_string(), "http://127.0.0.1/x");
//! # Ok::<(), haul_policy::TargetError>(())
//! ```
//!
//! The parser follows RFC 3986. Rejected: the `url` crate. WHATWG's rules change bytes that curl
//! sends as given (`\` becomes `/`, `"<>` and more are encoded, tabs vanish), accept hosts that
//! curl refuses, and require a scheme. IDNA comes from the `idna` crate, addresses from
//! `core::net`.
//!
//! Bytes outside ASCII are encoded in both path and query (a request target is ASCII, RFC 9112
//! §3.2). curl 7 left them raw in the query; a server that decodes sees the same bytes.
//!
//! Left out: other schemes, percent-encoding normalisation, public suffixes.

mod authority;
mod error;
mod join;
mod origin;
pub(crate) mod path;
#[cfg(test)]
mod tests;
mod written_host;

use core::fmt::{self, Write};
use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3};

use written_host::HostAsWritten;

pub use error::{TargetError, UrlErrorKind};
pub use origin::{Host, Origin, Scheme};

/// The longest URL in bytes, as in curl.
pub const MAX_LEN: usize = 8_000_000;

/// A parsed absolute `http` or `https` URL. Display, Debug and [`to_url`](Target::to_url) do not
/// print the userinfo.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    origin: Origin,
    written: HostAsWritten,
    userinfo: Option<Box<str>>,
    explicit_port: Option<u16>,
    /// Path and query, as sent in the request line (origin-form, RFC 9112 §3.2.1).
    line: Box<str>,
    path_len: usize,
    fragment: Option<Box<str>>,
    path_as_is: bool,
}

/// A reference without scheme and authority, split into path, query and fragment.
struct PathQueryFragment<'t> {
    path: &'t str,
    query: Option<&'t str>,
    fragment: Option<&'t str>,
}

impl Target {
    /// Parses a URL. A text without a scheme is an `http` URL, even if its host name begins with
    /// `ftp.`.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        Target::parse_with(text, Scheme::Http, false)
    }

    /// Parses a URL. A text without a scheme gets the scheme `default_scheme`. `path_as_is` keeps
    /// the dot segments of this URL, but not those of references [joined](Target::join) to it.
    pub fn parse_with(text: &str, default_scheme: Scheme, path_as_is: bool) -> Result<Target, TargetError> {
        check_bytes(text)?;
        if text.starts_with('\u{feff}') {
            return Err(UrlErrorKind::ByteOrderMark.into());
        }
        // A scheme only if a slash follows: `localhost:8080` and `user:pw@host` have none.
        let (scheme, rest) = match split_scheme(text) {
            Some((scheme, rest)) if rest.starts_with('/') => (parse_scheme(scheme)?, skip_slashes(rest)?),
            _ => {
                check_no_scheme(text)?;
                (default_scheme, text)
            }
        };
        Target::from_authority(scheme, rest, path_as_is)
    }

    /// Parses a URL that probably has the same origin as `last`. If it does, only the text after
    /// the origin is parsed. This saves time for lists of URLs. `default_scheme` and `path_as_is`
    /// are as in [`parse_with`](Target::parse_with).
    ///
    /// ```
    /// use haul_policy::{Scheme, Target};
    /// let first = Target::parse_near("http://h.example:8080/a", None, Scheme::Http, false)?;
    /// let next = Target::parse_near("http://h.example:8080/b?c", Some(&first.origin()), Scheme::Http, false)?;
    /// assert_eq!(next, Target::parse("http://h.example:8080/b?c")?);
    /// # Ok::<(), haul_policy::TargetError>(())
    /// ```
    pub fn parse_near(
        text: &str,
        last: Option<&Origin>,
        default_scheme: Scheme,
        path_as_is: bool,
    ) -> Result<Target, TargetError> {
        let begins = |origin: &Origin| {
            let rest = text.strip_prefix(origin.url_prefix())?;
            // Only if the authority ends there: a longer port or name begins alike. A zone has more
            // than one spelling.
            let ends = matches!(rest.as_bytes().first(), None | Some(b'/' | b'?' | b'#'));
            (ends && !matches!(origin.host(), Host::V6(_, Some(_)))).then_some(rest)
        };
        let Some((origin, rest)) = last.and_then(|origin| Some((origin, begins(origin)?))) else {
            return Target::parse_with(text, default_scheme, path_as_is);
        };
        check_bytes(text)?;
        let port = Some(origin.port()).filter(|port| *port != origin.scheme().default_port());
        Ok(Target::from_origin(origin.clone(), None, port, rest, path_as_is))
    }

    /// Parses the part of a URL after `scheme://`. If `path_as_is` is true, dot segments are kept.
    fn from_authority(scheme: Scheme, rest: &str, path_as_is: bool) -> Result<Target, TargetError> {
        let end = memchr3(b'/', b'?', b'#', rest.as_bytes()).unwrap_or(rest.len());
        let parsed = authority::parse(&rest[..end])?;
        let port = parsed.port.unwrap_or(scheme.default_port());
        let written = HostAsWritten::new(parsed.written_host, &parsed.host);
        let origin = Origin::new(scheme, parsed.host, port);
        let target = Target::from_origin(origin, parsed.userinfo, parsed.port, &rest[end..], path_as_is);
        Ok(Target { written, ..target })
    }

    /// Creates a target from an origin and the part of a URL after it. If `path_as_is` is true, dot
    /// segments are kept.
    fn from_origin(
        origin: Origin,
        userinfo: Option<&str>,
        explicit_port: Option<u16>,
        tail: &str,
        path_as_is: bool,
    ) -> Target {
        let (line, path_len, fragment) = (Box::default(), 0, None);
        let userinfo = userinfo.map(Box::from);
        let written = HostAsWritten::default();
        let mut target = Target { origin, written, userinfo, explicit_port, line, path_len, fragment, path_as_is };
        let tail = PathQueryFragment::split(tail);
        target.set_path_and_query(tail.path, tail.query);
        target.fragment = tail.fragment.map(Box::from);
        target
    }

    fn set_path_and_query(&mut self, path: &str, query: Option<&str>) {
        let mut line = String::with_capacity(path.len().max(1) + query.map_or(0, |q| q.len() + 1));
        path::push_path(&mut line, path, self.path_as_is);
        self.path_len = line.len();
        if let Some(query) = query {
            line.push('?');
            path::push_encoded(&mut line, query);
        }
        self.line = line.into_boxed_str();
    }

    /// Returns the scheme, `http` or `https`.
    pub fn scheme(&self) -> Scheme {
        self.origin.scheme()
    }

    /// Returns the host in normalised form.
    pub fn host(&self) -> &Host {
        self.origin.host()
    }

    /// Returns the host as used for DNS, SNI and certificates: without brackets and zone.
    pub fn host_text(&self) -> &str {
        self.origin.host_text()
    }

    /// Returns the port, by default the scheme's.
    pub fn port(&self) -> u16 {
        self.origin.port()
    }

    /// Returns the port if it is written in the URL; otherwise `None`.
    pub fn explicit_port(&self) -> Option<u16> {
        self.explicit_port
    }

    /// Returns the request target in origin-form (RFC 9112 §3.2.1): path and query, without the
    /// fragment.
    pub fn path_and_query(&self) -> &str {
        &self.line
    }

    /// Returns the path, which begins with a slash.
    pub fn path(&self) -> &str {
        &self.line[..self.path_len]
    }

    /// Returns the query, the text after the first `?`; `None` if there is no `?`.
    pub fn query(&self) -> Option<&str> {
        self.line.get(self.path_len + 1..)
    }

    /// Returns the fragment as written, without the `#`. `None` if the URL has no fragment.
    pub fn fragment(&self) -> Option<&str> {
        self.fragment.as_deref()
    }

    /// Returns user and password, percent-decoded; `None` if there is no userinfo. Bytes that are
    /// not UTF-8 are replaced; use [`userinfo_bytes`](Target::userinfo_bytes) for credentials.
    pub fn userinfo(&self) -> Option<(String, String)> {
        let (user, password) = self.userinfo_bytes()?;
        Some((to_lossy_text(user), to_lossy_text(password)))
    }

    /// Returns user and password, percent-decoded; `None` if there is no userinfo. Neither contains
    /// CR, LF or NUL. The password is empty if the userinfo has no colon.
    pub fn userinfo_bytes(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let text = self.userinfo.as_deref()?;
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decode = |text: &str| crate::urlencode::percent_decode(text.as_bytes()).into_owned();
        Some((decode(user), decode(password)))
    }

    /// Returns `true` if the URL has a password, even an empty one: `user:@host` has a password,
    /// `user@host` has none.
    pub fn has_password(&self) -> bool {
        self.userinfo.as_deref().is_some_and(|text| text.contains(':'))
    }

    /// Returns the target with the scheme https (RFC 6797 §8.3): port 80 becomes 443, other ports
    /// stay.
    pub fn to_https(&self) -> Target {
        let port = if self.port() == Scheme::Http.default_port() { Scheme::Https.default_port() } else { self.port() };
        let explicit_port = self.explicit_port.map(|_| port);
        let origin = Origin::new(Scheme::Https, self.host().clone(), port);
        Target { origin, explicit_port, ..self.clone() }
    }

    /// Removes user and password from the URL.
    pub fn drop_userinfo(&mut self) {
        self.userinfo = None;
    }

    /// Removes the fragment from the URL.
    pub(crate) fn drop_fragment(&mut self) {
        self.fragment = None;
    }

    /// Returns the target with `path` instead of its path. `path` is encoded like the path of a
    /// parsed URL.
    pub(crate) fn with_path(&self, path: &str) -> Target {
        let line = [path, &self.line[self.path_len..]].concat();
        Target { line: line.into_boxed_str(), path_len: path.len(), ..self.clone() }
    }

    /// Returns the target with `query` instead of its query. The bytes of `query` are already
    /// encoded.
    pub(crate) fn with_query(&self, query: &str) -> Target {
        let line = [self.path(), "?", query].concat();
        Target { line: line.into_boxed_str(), ..self.clone() }
    }

    /// Returns the value of the Host field: IPv6 in brackets, the port only if it is not the
    /// default.
    pub fn authority(&self) -> Cow<'_, str> {
        self.origin.authority()
    }

    /// Writes the [`authority`](Target::authority) to `out`.
    pub fn write_authority(&self, out: &mut impl Write) -> fmt::Result {
        self.origin.write_authority(out)
    }

    /// Returns scheme, host and port as an [`Origin`]. The call does not copy them; it increments a
    /// reference count.
    pub fn origin(&self) -> Origin {
        self.origin.clone()
    }

    /// Returns the URL without userinfo and fragment, which is safe to print.
    pub fn to_url(&self) -> String {
        [self.origin.url_prefix(), &self.line].concat()
    }

    /// Appends the text of [`to_url`](Target::to_url) to `out`, so that the buffer can be reused.
    pub fn push_url(&self, out: &mut String) {
        out.reserve(self.origin.url_prefix().len() + self.line.len());
        out.push_str(self.origin.url_prefix());
        out.push_str(&self.line);
    }

    /// Returns `true` if the target and this origin share one allocation. An equal origin that was
    /// parsed separately does not share it.
    pub fn shares_origin(&self, origin: &Origin) -> bool {
        self.origin.is_same_as(origin)
    }

    pub(crate) fn inherit_userinfo(&mut self, from: &Target) {
        self.userinfo = self.userinfo.take().or_else(|| from.userinfo.clone());
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.line)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl core::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        Target::parse(text)
    }
}

impl<'t> PathQueryFragment<'t> {
    fn split(text: &'t str) -> PathQueryFragment<'t> {
        let cut = |text: &'t str, at: u8| match memchr(at, text.as_bytes()) {
            Some(i) => (&text[..i], Some(&text[i + 1..])),
            None => (text, None),
        };
        if memchr2(b'?', b'#', text.as_bytes()).is_none() {
            return PathQueryFragment { path: text, query: None, fragment: None };
        }
        let (text, fragment) = cut(text, b'#');
        let (path, query) = cut(text, b'?');
        PathQueryFragment { path, query, fragment }
    }
}

fn check_bytes(text: &str) -> Result<(), TargetError> {
    if text.len() > MAX_LEN {
        return Err(UrlErrorKind::TooLong.into());
    }
    let is_bad = |b: u8| b <= b' ' || b == 0x7f;
    // Without an early exit the compiler can vectorise the loop.
    if !text.bytes().fold(false, |found, b| found | is_bad(b)) {
        return Ok(());
    }
    match text.bytes().position(is_bad) {
        Some(at) if text.as_bytes()[at] == 0 => Err(UrlErrorKind::Nul(at).into()),
        Some(at) => Err(UrlErrorKind::Byte(at).into()),
        None => Ok(()),
    }
}

/// Splits `scheme:rest` at the colon (RFC 3986 §3.1). Returns `None` if the text does not begin
/// with a scheme. A scheme has at most 40 bytes, as in curl.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(41).position(|b| !(b.is_ascii_alphanumeric() || b"+-.".contains(&b)))?;
    let rest = text[end..].strip_prefix(':')?;
    text.as_bytes()[0].is_ascii_alphabetic().then_some((&text[..end], rest))
}

/// Refuses text of the form `word:`. It is a scheme with nothing after it, not a host with an empty
/// port.
fn check_no_scheme(text: &str) -> Result<(), TargetError> {
    let end = memchr3(b'/', b'?', b'#', text.as_bytes()).unwrap_or(text.len());
    if text[..end].ends_with(':') { Err(UrlErrorKind::Port.into()) } else { Ok(()) }
}

fn parse_scheme(scheme: &str) -> Result<Scheme, TargetError> {
    if scheme.eq_ignore_ascii_case("http") {
        Ok(Scheme::Http)
    } else if scheme.eq_ignore_ascii_case("https") {
        Ok(Scheme::Https)
    } else {
        Err(TargetError::UnsupportedScheme(scheme.to_ascii_lowercase()))
    }
}

/// Returns the text after one to three slashes, and refuses any other number of slashes. curl
/// accepts `http:/host` and `http:///host`, too.
fn skip_slashes(rest: &str) -> Result<&str, TargetError> {
    let after = rest.trim_start_matches('/');
    match rest.len() - after.len() {
        1..=3 => Ok(after),
        _ => Err(UrlErrorKind::Slashes.into()),
    }
}

fn to_lossy_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
