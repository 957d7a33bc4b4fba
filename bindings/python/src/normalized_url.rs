//! URLs as the Python package requests accepts and shows them. The engine parses them.
//!
//! requests encodes characters that a URL must not contain, while the engine refuses them. So this
//! module normalises a URL once. The program sees the normalised text, and the engine requests it.

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use haul::{ErrorKind, Target};
use haul_policy::shard::shard_of_url;
use haul_policy::target::{Host, Scheme, TargetError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::refused_request_error;

/// The bytes that the Python package requests does not percent-encode: the reserved and unreserved
/// characters of RFC 3986 sections 2.2 and 2.3, except brackets. Brackets are allowed only around
/// an IPv6 address. Some servers (Tomcat) refuse them elsewhere.
const UNENCODED: &[u8] = b"!#$&'()*+,/:;=?@~-._";

/// Percent-encodes characters that a URL must not contain (RFC 3986 section 2.1), and decodes
/// needless escapes (section 2.3). If one percent sign does not begin an escape, all percent signs
/// are encoded, as in the Python package requests.
#[pyfunction]
pub(crate) fn requote(text: &str) -> String {
    encoded(text, false)
}

/// Percent-encodes the characters that a URL must not contain. If `as_is` is true, existing escapes
/// stay unchanged; otherwise, needless escapes are decoded, as [`requote`] does.
fn encoded(text: &str, as_is: bool) -> String {
    let bytes = text.as_bytes();
    let is_kept = |b: u8| b.is_ascii_alphanumeric() || UNENCODED.contains(&b);
    if bytes.iter().all(|&b| is_kept(b)) {
        return text.to_owned();
    }
    let escape = |at: usize| {
        let digits = bytes.get(at + 1..at + 3)?;
        digits.iter().all(u8::is_ascii_hexdigit).then(|| std::str::from_utf8(digits).ok())?
    };
    let has_lone_percent = (0..bytes.len()).any(|at| bytes[at] == b'%' && escape(at).is_none());
    let mut out = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let b = bytes[at];
        match escape(at).filter(|_| b == b'%' && !has_lone_percent) {
            Some(digits) if as_is => {
                out.push('%');
                out.push_str(digits);
                at += 3;
                continue;
            }
            Some(digits) => {
                let value = u8::from_str_radix(digits, 16).unwrap_or(b'%');
                if value.is_ascii_alphanumeric() || b"-._~".contains(&value) {
                    out.push(char::from(value));
                } else {
                    push_escaped(&mut out, value);
                }
                at += 3;
                continue;
            }
            None if is_kept(b) => out.push(char::from(b)),
            None => push_escaped(&mut out, b),
        }
        at += 1;
    }
    out
}

/// Percent-encodes the path and the query of a URL, as [`encoded`] does. A lone percent sign in one of
/// them does not affect the other.
fn encoded_path_and_query(text: &str, as_is: bool) -> String {
    match text.split_once('?') {
        Some((path, query)) => format!("{}?{}", encoded(path, as_is), encoded(query, as_is)),
        None => encoded(text, as_is),
    }
}

fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// A normalised URL: the text that the program sees, and the target that is requested.
#[derive(Clone)]
pub(crate) struct PreparedUrl {
    pub(crate) url: String,
    pub(crate) target: Target,
    /// True if the URL is sent as written, with its dot segments and escapes, because the program
    /// passed a prepared request.
    pub(crate) as_is: bool,
}

/// A cache of the URL that was prepared last. The cache helps because many programs request the
/// same URL or the same origin again. Without the cache, parsing a URL takes a third of the time
/// that a small request spends outside the engine.
#[derive(Default)]
pub(crate) struct LastUrlCache(Mutex<Option<(String, bool, PreparedUrl)>>);

impl LastUrlCache {
    /// Returns the cached URL if the arguments are the same as last time. If not, prepares the URL
    /// by [`prepare`], or by [`prepare_as_is`] if `as_is` is true. A URL with a `query` is not
    /// cached.
    pub(crate) fn prepare(&self, text: &str, query: Option<&str>, as_is: bool) -> PyResult<PreparedUrl> {
        if query.is_some() {
            return prepare(text, query);
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, was_as_is, prepared)) = &*last {
            if asked == text && *was_as_is == as_is {
                return Ok(prepared.clone());
            }
            if let Some(target) = parse_same_origin(text, &prepared.target) {
                return Ok(PreparedUrl { url: text.to_owned(), target, as_is });
            }
        }
        let prepared = normalise(text, None, as_is)?;
        *last = Some((text.to_owned(), as_is, prepared.clone()));
        Ok(prepared)
    }
}

/// Parses a URL that begins with the origin of `other` in the same spelling. Returns `None` if the
/// origin differs, or if the URL needs normalisation.
fn parse_same_origin(text: &str, other: &Target) -> Option<Target> {
    let origin = other.origin();
    let tail = text.strip_prefix(origin.url_prefix())?;
    if !tail.bytes().all(|b| b.is_ascii_alphanumeric() || UNENCODED.contains(&b)) {
        return None;
    }
    let target = Target::parse_near(text, Some(&origin), Scheme::Http, false).ok()?;
    (target.shares_origin(&origin) && target.path_and_query() == tail).then_some(target)
}

/// Returns `true` if a URL needs no normalisation and contains `authority` in exactly this
/// spelling.
fn needs_no_normalisation(text: &str, authority: &str) -> bool {
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    (text.starts_with("http://") || text.starts_with("https://"))
        && host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
        // A host that begins with a digit may be an address in an old spelling.
        && (host.as_bytes().first().is_some_and(u8::is_ascii_lowercase) || host.parse::<Ipv4Addr>().is_ok())
        && port.is_none_or(|port| !port.is_empty() && !port.starts_with('0'))
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || UNENCODED.contains(&b))
}

/// Normalises a URL, appends `query` to the URL's query, and parses the result.
///
/// # Errors
/// The URL has no scheme or host, a scheme other than http and https, or an invalid host.
pub(crate) fn prepare(text: &str, query: Option<&str>) -> PyResult<PreparedUrl> {
    normalise(text, query, false)
}

/// Parses the URL of a prepared request. The URL is sent as written: dot segments and existing
/// escapes stay unchanged.
///
/// # Errors
/// The URL has no scheme or host, a scheme other than http and https, or an invalid host.
pub(crate) fn prepare_as_is(text: &str) -> PyResult<PreparedUrl> {
    normalise(text, None, true)
}

/// Normalises a URL, appends `query` to its query, and parses the result. With `as_is`, dot
/// segments and existing escapes stay unchanged. Raises an exception for an invalid URL, with the
/// message of the Python package requests.
fn normalise(text: &str, query: Option<&str>, as_is: bool) -> PyResult<PreparedUrl> {
    let text = text.trim_start();
    let no_scheme = || {
        let text = mask_userinfo(text);
        let message = format!("Invalid URL {text:?}: No scheme supplied. Perhaps you meant https://{text}?");
        refused_request_error(ErrorKind::Setup, message)
    };
    let (scheme, rest) = text.split_once(':').ok_or_else(no_scheme)?;
    let no_host =
        || refused_request_error(ErrorKind::Url, format!("Invalid URL {:?}: No host supplied", mask_userinfo(text)));
    let Some(rest) = rest.strip_prefix("//") else {
        // To requests, anything before a colon is a scheme, whatever follows: that of
        // `localhost:8080` is `localhost`.
        let is_http = scheme.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"));
        return Err(if is_http { no_host() } else { unsupported_scheme_error(text) });
    };
    let is_http = scheme.eq_ignore_ascii_case("http");
    if !is_http && !scheme.eq_ignore_ascii_case("https") {
        return Err(if is_scheme(scheme) { unsupported_scheme_error(text) } else { no_scheme() });
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (written, tail) = rest.split_at(end);
    if written.is_empty() {
        return Err(no_host());
    }
    let authority = encoded_userinfo(written);
    let authority = authority.as_ref();
    if query.is_none_or(str::is_empty)
        && needs_no_normalisation(text, authority)
        && let Ok(target) = Target::parse_with(text, Scheme::Http, false)
        && target.path_and_query() == tail
    {
        return Ok(PreparedUrl { url: text.to_owned(), target, as_is });
    }
    let (line, fragment) = tail.split_once('#').map_or((tail, None), |(line, fragment)| (line, Some(fragment)));
    let mut line = encoded_path_and_query(line, as_is);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        line.push(match line.find('?') {
            Some(_) if line.ends_with('?') => ' ',
            Some(_) => '&',
            None => '?',
        });
        if line.ends_with(' ') {
            line.pop();
        }
        line.push_str(&requote(query));
    }
    let scheme = if is_http { "http" } else { "https" };
    let invalid = |error: &TargetError| {
        let host = authority.rsplit('@').next().unwrap_or_default();
        let message = if host.is_empty() || host.starts_with(':') {
            format!("Invalid URL {text:?}: No host supplied")
        } else {
            format!("Failed to parse: {}: {error}", text.replace(written, host))
        };
        refused_request_error(ErrorKind::Url, message)
    };
    let target = Target::parse_with(&format!("{scheme}://{authority}{line}"), Scheme::Http, as_is)
        .map_err(|error| invalid(&error))?;
    if let Host::Name(name) = target.host()
        && name.starts_with(['*', '.'])
    {
        return Err(refused_request_error(ErrorKind::Url, "URL has an invalid label."));
    }
    let userinfo = authority.rsplit_once('@').map_or("", |(userinfo, _)| userinfo);
    let at = if userinfo.is_empty() { "" } else { "@" };
    let port = target.explicit_port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = match target.host() {
        Host::Name(name) => name.to_string(),
        other => other.to_string(),
    };
    let mut url = format!("{scheme}://{userinfo}{at}{host}{port}{}", target.path_and_query());
    if let Some(fragment) = fragment {
        url.push('#');
        url.push_str(&requote(fragment));
    }
    Ok(PreparedUrl { url, target, as_is })
}

/// Percent-encodes each `@` of an authority except the last. An earlier `@` belongs to the user or
/// the password.
fn encoded_userinfo(authority: &str) -> Cow<'_, str> {
    match authority.rsplit_once('@') {
        Some((userinfo, host)) if userinfo.contains('@') => {
            Cow::Owned(format!("{}@{host}", userinfo.replace('@', "%40")))
        }
        _ => Cow::Borrowed(authority),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn unsupported_scheme_error(text: &str) -> PyErr {
    refused_request_error(
        ErrorKind::UnsupportedScheme,
        format!("No connection adapters were found for {:?}", mask_userinfo(text)),
    )
}

/// Returns a URL with its user and password masked, for a message that may be logged. The URL may
/// be invalid.
pub(crate) fn mask_userinfo(text: &str) -> String {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    match text[start..end].rfind('@') {
        Some(at) => format!("{}***{}", &text[..start], &text[start + at..]),
        None => text.to_owned(),
    }
}

/// Normalises a URL and appends `query`. The result is the same as `PreparedRequest.url` in the
/// Python package requests.
#[pyfunction]
#[pyo3(signature = (url, query=None))]
pub(crate) fn prepare_url(url: &str, query: Option<&str>) -> PyResult<String> {
    prepare(url, query).map(|prepared| prepared.url)
}

/// Normalises the base URL, and resolves a Location against it (RFC 3986 section 5). The result
/// keeps the fragment of the base URL unless the Location has one (RFC 9110 section 10.2.2).
#[pyfunction]
pub(crate) fn join(base: &str, location: &str) -> PyResult<String> {
    let from = prepare(base, None)?;
    let (reference, fragment) =
        location.split_once('#').map_or((location, None), |(reference, fragment)| (reference, Some(fragment)));
    let its_scheme = reference.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
    let mut url = if let Some((scheme, rest)) = its_scheme
        && (rest.starts_with("//") || !scheme.eq_ignore_ascii_case(from.target.scheme().as_str()))
    {
        prepare(reference, None)?.url
    } else if let Some(rest) = reference.strip_prefix("//") {
        prepare(&format!("{}://{rest}", from.target.scheme().as_str()), None)?.url
    } else {
        // `http:/x` means `/x` if `http` is the scheme of the base URL (RFC 3986 section 5.2.2), as
        // in requests.
        let reference = its_scheme.map_or(reference, |(_, rest)| rest);
        let to = from
            .target
            .join(&encoded_path_and_query(reference, false))
            .map_err(|error| refused_request_error(ErrorKind::Url, error.to_string()))?;
        let authority = from.url.split('/').nth(2).unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{}://{host}{}", to.scheme().as_str(), to.path_and_query())
    };
    if let Some(fragment) = fragment.or_else(|| base.split_once('#').map(|(_, fragment)| fragment)) {
        url.push('#');
        url.push_str(&requote(fragment));
    }
    Ok(url)
}

/// Converts the value of a received Location to the text of a URL. Python has the value as a `str`
/// with one character for each byte (Latin-1). Bytes that form UTF-8 are decoded; other bytes
/// beyond ASCII are percent-encoded. Returns `None` if a character is above U+00FF, so that the
/// `str` does not stand for bytes.
#[pyfunction]
pub(crate) fn location_text(value: &str) -> Option<String> {
    if value.is_ascii() {
        return Some(value.to_owned());
    }
    let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    bytes.map(|bytes| haul_policy::redirect::location_text(&bytes))
}

/// Returns true if the value of a request field with this name is a secret.
#[pyfunction]
pub(crate) fn is_secret_field(name: &str) -> bool {
    haul_policy::secret_fields::is_secret_field(name)
}

/// The parts of a URL: scheme, host, port, and the percent-decoded user and password, if the URL
/// has a user.
type UrlParts = (&'static str, String, u16, Option<(String, String)>);

/// Splits a URL into scheme, host, port, and user with password ([`UrlParts`]).
#[pyfunction]
pub(crate) fn split_url(url: &str) -> PyResult<UrlParts> {
    let PreparedUrl { target, .. } = prepare(url, None)?;
    Ok((target.scheme().as_str(), target.host_text().to_owned(), target.port(), target.userinfo()))
}

/// Returns the number of the shard to which the URL's host belongs, from 0 to `count` - 1. A text
/// that is not a URL is in shard 0.
#[pyfunction]
pub(crate) fn shard(url: &str, count: i64) -> PyResult<u32> {
    let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
    let count = count.ok_or_else(|| PyValueError::new_err("the number of shards has to be from 1 to 4294967295"))?;
    Ok(shard_of_url(url, Scheme::Http, count))
}
