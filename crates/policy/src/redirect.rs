//! Decides where a 3xx leads, with which method and body, and whether secrets may follow (RFC 9110
//! §15.4).
//!
//! Secrets are bound to the scheme, host and port of the *first* URL, not of the previous URL:
//! after redirects from a to b and from b to b, `b` must not get the secrets that the first
//! redirect dropped. A redirect back to `a` sends them again, since `a` had them before.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::redirect::{RedirectRules, SecretHandling, redirected_request};
//!
//! let rules = RedirectRules::default();
//! let from = Target::parse("https://me:pw@a.example/form")?;
//! let first = from.origin();
//! let hop = redirected_request(&rules, 0, 303, Some(b"/done"), "POST", &from, &first)?.unwrap();
//! assert_eq!((hop.method.as_str(), hop.keep_body, hop.secrets), ("GET", false, SecretHandling::Keep));
//! let hop = redirected_request(&rules, 1, 307, Some(b"http://a.example/"), "PUT", &hop.target, &first)?.unwrap();
//! assert_eq!((hop.method.as_str(), hop.keep_body, hop.secrets), ("PUT", true, SecretHandling::Drop));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out: Refresh fields, HTML, caching of permanent redirects.

use core::fmt;
use core::fmt::Write;

use crate::target::path::push_byte;
use crate::target::{Origin, Scheme, Target, TargetError};

/// The user's settings for redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectRules {
    /// `-L`: true to follow redirects; default on.
    pub follow: bool,
    /// True if a temporary redirect (302, 303, 307) with a Location is an error, as for `fetch -A`;
    /// default off.
    pub permanent_only: bool,
    /// `--max-redirs`: the maximum number of redirects that one request follows. Default 50;
    /// `u32::MAX` means no limit.
    pub max: u32,
    /// `--post301`: true if a POST stays a POST on a 301; by default it becomes a GET.
    pub post301: bool,
    /// `--post302`: true if a POST stays a POST on a 302; by default it becomes a GET.
    pub post302: bool,
    /// `--post303`: true if a POST stays a POST on a 303; by default it becomes a GET.
    pub post303: bool,
    /// `-X`: true to keep the user's method after every redirect. A redirect that would otherwise
    /// change the method to GET still drops the content, as in curl: a 301, 302 or 303 for POST,
    /// and a 303 for any other method but HEAD. A 301 or 302 does not change PUT to GET (RFC 9110
    /// §15.4.2), so PUT is sent again with its content. curl sends PUT again without its content,
    /// which would empty the resource.
    pub keep_method: bool,
    /// `--follow`: true if redirects treat every method as POST: after `-X PURGE -d x`, a 301 leads
    /// to GET. False if redirects treat no method as POST: after `-X POST` without content, a 301
    /// keeps POST. `None`, the default: only the method named POST counts as POST.
    pub is_post: Option<bool>,
    /// `--proto-redir`: true if a redirect may lead to plain http; default on.
    pub allow_http: bool,
    /// `--proto-redir`: true if a redirect may lead to https; default on.
    pub allow_https: bool,
    /// `--location-trusted`: true to send secrets to other origins, too. Default: false. Hazard:
    /// every server that a redirect leads to receives the secrets. A redirect from https to http
    /// still drops them.
    pub location_trusted: bool,
}

impl Default for RedirectRules {
    fn default() -> Self {
        RedirectRules {
            follow: true,
            permanent_only: false,
            max: 50,
            post301: false,
            post302: false,
            post303: false,
            keep_method: false,
            is_post: None,
            allow_http: true,
            allow_https: true,
            location_trusted: false,
        }
    }
}

/// The rule for the user's secrets in a request: credentials, cookies of `-b`, and fields for which
/// [`is_secret_field`](crate::secret_fields::is_secret_field) returns `true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretHandling {
    /// The secrets are sent, because the target has the origin for which they were given.
    Keep,
    /// The secrets are not sent, because the target has another origin, or the request would not be
    /// encrypted.
    Drop,
}

/// The request to send after a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectedRequest {
    /// The next target, without userinfo unless `secrets` is [`SecretHandling::Keep`].
    pub target: Target,
    /// The method of the request after the redirect.
    pub method: String,
    /// True if the body is sent again; if not, drop Content-Length, Content-Type and similar fields
    /// too.
    pub keep_body: bool,
    /// The rule for the user's secrets in this request.
    pub secrets: SecretHandling,
    /// True if the redirect is a downgrade from https to plain http. The target is then http, the
    /// redirecting URL or the first URL of the chain is https, and the target's origin is not the
    /// origin of the first URL, which the user chose. The request must then carry no secrets at
    /// all, not even the new host's own credentials from netrc.
    pub downgraded: bool,
    /// True if the target has the same origin as the first URL of the redirect chain. A Host field
    /// that the user set is sent only to that origin, even with `--location-trusted`.
    pub same_origin: bool,
}

/// The reason why a redirect was not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectError {
    /// The chain of redirects is longer than allowed.
    TooMany {
        /// The largest number of redirects allowed, [`RedirectRules::max`].
        max: u32,
    },
    /// The redirect is temporary, and [`RedirectRules::permanent_only`] is set.
    Temporary,
    /// The value of Location does not give a valid URL.
    Malformed(TargetError),
    /// The Location's scheme is neither http nor https, or the user's rules do not allow it. The
    /// text is the scheme.
    UnsupportedScheme(String),
}

impl RedirectError {
    /// Returns the exit code that curl has for this error: 47 for a redirect that is not followed,
    /// 3 for a malformed URL, 1 for an unsupported scheme.
    pub fn exit_code(&self) -> u8 {
        match self {
            RedirectError::TooMany { .. } | RedirectError::Temporary => 47,
            RedirectError::Malformed(_) => 3,
            RedirectError::UnsupportedScheme(_) => 1,
        }
    }
}

/// Decides whether to follow a redirect, and returns the request to send. Returns `None` if the
/// response is not a redirect to follow.
///
/// `status` and `location` are from the response to a `method` request to `from`. `hops_so_far` is
/// the number of redirects followed before this one. `first` is the origin of the user's URL, from
/// which the first redirect led.
///
/// 304 and 305 are never followed, with or without a Location. A status from 306 to 399 that HTTP
/// does not define counts as 300 (RFC 9110 section 15), and curl follows it. An empty Location
/// counts as missing, as in curl.
pub fn redirected_request(
    rules: &RedirectRules,
    hops_so_far: u32,
    status: u16,
    location: Option<&[u8]>,
    method: &str,
    from: &Target,
    first: &Origin,
) -> Result<Option<RedirectedRequest>, RedirectError> {
    let location = location.unwrap_or_default().trim_ascii();
    if !rules.follow || location.is_empty() || !matches!(status, 300..=303 | 306..=399) {
        return Ok(None);
    }
    if rules.permanent_only && matches!(status, 302 | 303 | 307) {
        return Err(RedirectError::Temporary);
    }
    if hops_so_far >= rules.max && rules.max != u32::MAX {
        return Err(RedirectError::TooMany { max: rules.max });
    }
    let mut target = from.join(&location_text(location))?;
    let allowed = match target.scheme() {
        Scheme::Http => rules.allow_http,
        Scheme::Https => rules.allow_https,
    };
    if !allowed {
        return Err(RedirectError::UnsupportedScheme(target.scheme().as_str().to_owned()));
    }
    let same_origin = target.origin() == *first;
    let downgraded = !same_origin && is_downgrade(&target, from, first);
    let secrets =
        if same_origin || rules.location_trusted && !downgraded { SecretHandling::Keep } else { SecretHandling::Drop };
    if secrets == SecretHandling::Drop {
        target.drop_userinfo();
    } else if target.origin() == from.origin() {
        target.inherit_userinfo(from);
    }
    let (method, keep_body) = method_after(rules, status, method);
    Ok(Some(RedirectedRequest { target, method: method.to_owned(), keep_body, secrets, downgraded, same_origin }))
}

fn is_downgrade(to: &Target, from: &Target, first: &Origin) -> bool {
    let was_private = from.scheme() == Scheme::Https || first.scheme() == Scheme::Https;
    was_private && to.scheme() == Scheme::Http
}

/// Returns the method after a redirect, and true if the body is sent again (RFC 9110 §15.4.2–9).
/// 301 and 302 turn POST, and no other method, into GET. 303 turns every method but HEAD into GET.
/// 307 and 308 change neither method nor body.
fn method_after<'m>(rules: &RedirectRules, status: u16, method: &'m str) -> (&'m str, bool) {
    let post = rules.is_post.unwrap_or(method == "POST");
    let becomes_get = match status {
        301 => post && !rules.post301,
        302 => post && !rules.post302,
        303 => !(method == "HEAD" || post && rules.post303),
        _ => false,
    };
    match (becomes_get, rules.keep_method) {
        (false, _) => (method, true),
        // As in curl: the user's method stays, and the content is dropped as if it had changed.
        (true, true) => (method, false),
        (true, false) => ("GET", false),
    }
}

/// Returns the value of a Location field as text. Valid UTF-8 is kept, since a host name may
/// contain it. Control bytes, and bytes that are not valid UTF-8, are percent-encoded. CR, LF and
/// NUL are not encoded: they stay in the text, so that the URL parser refuses it.
pub fn location_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.trim_ascii().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\0' | '\r' | '\n' => text.push(c),
                c if c.is_ascii_control() => push_byte(&mut text, c as u8),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|b| push_byte(&mut text, *b));
    }
    text
}

impl From<TargetError> for RedirectError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::UnsupportedScheme(scheme) => RedirectError::UnsupportedScheme(scheme),
            malformed => RedirectError::Malformed(malformed),
        }
    }
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedirectError::TooMany { max } => write!(f, "maximum ({max}) redirects followed"),
            RedirectError::Temporary => f.write_str("temporary redirect, which is not followed"),
            RedirectError::Malformed(error) => write!(f, "redirect to a {error}"),
            RedirectError::UnsupportedScheme(scheme) => {
                f.write_str("redirect to protocol \"")?;
                scheme.chars().take(40).try_for_each(|c| f.write_char(c))?;
                f.write_str("\", which is not supported or not allowed")
            }
        }
    }
}

impl core::error::Error for RedirectError {}
