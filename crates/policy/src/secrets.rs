//! What must not reach the wrong peer.
//!
//! The lesson of the field's advisories (CVE-2018-1000007, CVE-2022-27774, CVE-2022-27776): a field the user gave for one
//! origin must not follow a redirect to another. [`redirect::decide`](crate::redirect::decide) says when; this says what.
//!
//! ```
//! use haul_policy::redirect::Secrets;
//! use haul_policy::secrets::fields_for;
//!
//! let fields = [("Accept".to_owned(), b"*/*".to_vec()), ("authorization".to_owned(), b"Bearer x".to_vec())];
//! let names: Vec<_> = fields_for(&fields, Secrets::Drop).map(|(name, _)| name.as_str()).collect();
//! assert_eq!(names, ["Accept"]);
//! ```

use std::borrow::Cow;

use crate::redirect::Secrets;
use crate::target::{Scheme, Target};

/// Field names that carry credentials, in lower case. The standard ones, then those that well-known services read an API key or token from. curl
/// drops only Authorization and Cookie on a redirect and so hands the others over; a program that wants that can use `--location-trusted`.
const SECRET_FIELDS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "cookie2",
    "authentication",
    "api-key",
    "apikey",
    "x-api-key",
    "x-apikey",
    "x-api-token",
    "x-access-token",
    "x-amz-security-token",
    "x-auth-key",
    "x-auth-token",
    "x-authorization",
    "x-csrf-token",
    "x-xsrf-token",
    "x-gitlab-token",
    "x-goog-api-key",
    "x-goog-iam-authorization-token",
    "x-ms-authorization-auxiliary",
    "x-session-token",
    "x-vault-token",
    "private-token",
    "job-token",
    "deploy-token",
];

/// Whether a request field of this name carries a secret: such a field is redacted in traces and bound to the first origin.
pub fn is_secret_field(name: &str) -> bool {
    SECRET_FIELDS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// Whether a field of the user's own may be sent. Under [`Secrets::Drop`] that leaves out secret fields, and Host: it
/// named the first origin's host.
#[inline]
pub fn may_go(name: &str, secrets: Secrets) -> bool {
    secrets == Secrets::Keep || !(is_secret_field(name) || name.eq_ignore_ascii_case("host"))
}

/// The user's own fields that [may be sent](may_go).
pub fn fields_for(fields: &[(String, Vec<u8>)], secrets: Secrets) -> impl Iterator<Item = &(String, Vec<u8>)> {
    fields.iter().filter(move |(name, _)| may_go(name, secrets))
}

/// The Referer of a request to `to` that `from` led to: the URL of `from` without userinfo and fragment (RFC 9110 §10.1.3); none from https to http.
pub fn referer(from: &Target, to: &Target) -> Option<String> {
    let downgrade = from.scheme() == Scheme::Https && to.scheme() == Scheme::Http;
    (!downgrade).then(|| from.to_url())
}

/// A URL as it was written, without anything that may have been meant as a user. It is used for text that is not a URL, too, when that is shown. A
/// query begins after a path; a `?` or `#` before one may belong to a password that was not encoded.
///
/// ```
/// use haul_policy::secrets::without_userinfo;
///
/// assert_eq!(without_userinfo("http://me:pass?word@h:x/"), "http://***@h:x/");
/// assert_eq!(without_userinfo("http://h:x/?to=a@b"), "http://h:x/?to=a@b");
/// ```
pub fn without_userinfo(url: &str) -> Cow<'_, str> {
    let authority = url.find("://").map_or(0, |colon| colon + 3);
    let rest = &url[authority..];
    let query = match rest.find(['/', '?', '#']) {
        Some(path) if rest[path..].starts_with('/') => {
            url.len() - rest.len() + rest.find(['?', '#']).unwrap_or(rest.len())
        }
        _ => url.len(),
    };
    match url[..query].rfind('@') {
        None => Cow::Borrowed(url),
        Some(at) => Cow::Owned(format!("{}***{}", if authority <= at { &url[..authority] } else { "" }, &url[at..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> (String, Vec<u8>) {
        (name.to_owned(), b"v".to_vec())
    }

    #[test]
    fn names_are_case_insensitive() {
        for name in ["Authorization", "COOKIE", "proxy-Authorization", "X-Api-Key", "PRIVATE-TOKEN"] {
            assert!(is_secret_field(name), "{name}");
        }
        for name in ["Accept", "Cookies", "Authorization2", "", "X-Authorization-", "Set-Cookie"] {
            assert!(!is_secret_field(name), "{name}");
        }
    }

    #[test]
    fn drop_filters_secrets_and_host_only() {
        let fields = ["Accept", "HOST", "cookie", "X-Trace", "Authorization"].map(field);
        let kept: Vec<_> = fields_for(&fields, Secrets::Drop).map(|f| f.0.as_str()).collect();
        assert_eq!(kept, ["Accept", "X-Trace"]);
        assert_eq!(fields_for(&fields, Secrets::Keep).count(), 5);
    }

    #[test]
    fn what_may_be_a_password_is_hidden_in_what_is_no_url() {
        for (url, shown) in [
            ("http://u:p@[x", "http://***@[x"),
            ("http://u:p/q@h:x/", "http://***@h:x/"),
            ("http://u:p?q@h/?a@b", "http://***@b"),
            ("http://u:p#q@h", "http://***@h"),
            ("u:p@h:x", "***@h:x"),
            ("u:p?q@h", "***@h"),
            ("u:p@h://x", "***@h://x"),
            ("http://h:x/?to=a@b", "http://h:x/?to=a@b"),
            ("h/#a@b", "h/#a@b"),
            ("", ""),
        ] {
            assert_eq!(without_userinfo(url), shown, "{url}");
        }
    }

    #[test]
    fn referer_is_redacted_and_never_downgraded() {
        let t = |s: &str| Target::parse(s).unwrap();
        let from = t("https://u:p@a.example/x?y#z");
        assert_eq!(referer(&from, &t("https://b.example/")).as_deref(), Some("https://a.example/x?y"));
        assert_eq!(referer(&from, &t("http://a.example/")), None);
        assert_eq!(referer(&t("http://a/"), &t("https://b/")).as_deref(), Some("http://a/"));
    }
}
