//! Decides which request fields are secrets, and which peers may receive them.
//!
//! The lesson of past advisories (CVE-2018-1000007, CVE-2022-27774, CVE-2022-27776): a field that
//! the user gave for one origin must not follow a redirect to another.
//! [`redirected_request`](crate::redirect::redirected_request) decides when to drop secrets; this
//! module decides which fields those are.
//!
//! ```
//! use haul_policy::redirect::SecretHandling;
//! use haul_policy::secret_fields::fields_to_send;
//!
//! let fields = [("Accept".to_owned(), b"*/*".to_vec()), ("authorization".to_owned(), b"Bearer x".to_vec())];
//! let names: Vec<_> = fields_to_send(&fields, SecretHandling::Drop).map(|(name, _)| name.as_str()).collect();
//! assert_eq!(names, ["Accept"]);
//! ```

use std::borrow::Cow;

use crate::redirect::SecretHandling;
use crate::target::{Scheme, Target};

/// Names of fields that carry credentials, in lower case. The standard fields come first, then
/// fields in which well-known services expect a key, a token or a session. Only whole names are
/// compared. A field whose name only resembles these (`Idempotency-Key`, `X-Author`) is often
/// needed at the target of a redirect, and its absence would not be noticed.
const CREDENTIAL_FIELDS: &[&str] = &[
    // RFC 9110, RFC 6265, RFC 2965.
    "authorization",
    "proxy-authorization",
    "cookie",
    "cookie2",
    // Names that many services share.
    "access-token",
    "api-key",
    "api-secret",
    "api-token",
    "apikey",
    "auth",
    "auth-token",
    "authentication",
    "client-secret",
    "csrf-token",
    "id-token",
    "refresh-token",
    "secret-key",
    "session-token",
    "token",
    "x-access-key",
    "x-access-token",
    "x-api-key",
    "x-api-secret",
    "x-api-token",
    "x-apikey",
    "x-auth",
    "x-auth-key",
    "x-auth-token",
    "x-authentication",
    "x-authorization",
    "x-client-secret",
    "x-csrf-token",
    "x-csrftoken",
    "x-id-token",
    "x-jwt",
    "x-jwt-token",
    "x-password",
    "x-refresh-token",
    "x-secret",
    "x-secret-key",
    "x-session-id",
    "x-session-key",
    "x-session-token",
    "x-token",
    "x-user-token",
    "x-xsrf-token",
    // Single services.
    "aeg-sas-key",
    "aeg-sas-token",
    "cb-access-key",
    "cb-access-passphrase",
    "cf-access-client-id",
    "cf-access-client-secret",
    "cf-access-jwt-assertion",
    "cf-access-token",
    "circle-token",
    "dd-api-key",
    "dd-application-key",
    "deploy-token",
    "fastly-key",
    "jenkins-crumb",
    "job-token",
    "kong-admin-token",
    "ocp-apim-subscription-key",
    "private-token",
    "user-api-key",
    "x-algolia-api-key",
    "x-amz-security-token",
    "x-appwrite-key",
    "x-auth-user-service-key",
    "x-aws-ec2-metadata-token",
    "x-aws-parameters-secrets-token",
    "x-bugzilla-api-key",
    "x-cassandra-token",
    "x-cisco-meraki-api-key",
    "x-consul-token",
    "x-dreamfactory-session-token",
    "x-emby-token",
    "x-figma-token",
    "x-functions-key",
    "x-gerrit-auth",
    "x-github-otp",
    "x-gitlab-token",
    "x-goog-api-key",
    "x-goog-iam-authorization-token",
    "x-hasura-admin-secret",
    "x-honeycomb-team",
    "x-ibm-client-secret",
    "x-insert-key",
    "x-jfrog-art-api",
    "x-license-key",
    "x-mashape-key",
    "x-mbx-apikey",
    "x-ms-authorization-auxiliary",
    "x-nomad-token",
    "x-nuget-apikey",
    "x-octopus-apikey",
    "x-parse-master-key",
    "x-parse-rest-api-key",
    "x-parse-session-token",
    "x-plex-token",
    "x-postmark-account-token",
    "x-postmark-server-token",
    "x-query-key",
    "x-rapidapi-key",
    "x-redmine-api-key",
    "x-riot-token",
    "x-rollbar-access-token",
    "x-sentry-auth",
    "x-service-token",
    "x-sf-token",
    "x-shopify-access-token",
    "x-shopify-storefront-access-token",
    "x-storage-token",
    "x-subject-token",
    "x-subscription-token",
    "x-tableau-auth",
    "x-trackertoken",
    "x-typesense-api-key",
    "x-vault-token",
    "x-vercel-protection-bypass",
    "x-wsse",
    "xi-api-key",
    "zotero-api-key",
];

/// Parts of field names that suggest a secret, in addition to [`CREDENTIAL_FIELDS`]. Traces and
/// logs hide the values of fields with such names. Hiding too much does little harm: `-D` shows all
/// fields. Hiding too little puts a password into a build log.
const SECRET_WORDS: &[&str] =
    &["token", "secret", "api-key", "api_key", "apikey", "auth", "passw", "session", "credential", "signature"];

/// Field names that contain one of [`SECRET_WORDS`] but are shown: they describe authentication
/// without a secret.
const NON_SECRET_FIELDS: &[&str] = &[
    "www-authenticate",
    "proxy-authenticate",
    "authentication-info",
    "proxy-authentication-info",
    "access-control-allow-credentials",
];

/// Returns `true` if a request field of this name carries credentials. Such a field is sent only to
/// the origin of the user's URL, not to other origins after a redirect. Its value is
/// [hidden](is_hidden_field).
pub fn is_secret_field(name: &str) -> bool {
    let name = name.trim_matches([' ', '\t']);
    CREDENTIAL_FIELDS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// Returns `true` if the value of a field of this name must not appear in traces, logs and errors:
/// the field carries credentials, or its name suggests that.
///
/// ```
/// use haul_policy::secret_fields::is_hidden_field;
///
/// assert!(is_hidden_field("X-Fastly-Key-Signature") && is_hidden_field("Set-Cookie"));
/// assert!(!is_hidden_field("X-Author") && !is_hidden_field("WWW-Authenticate"));
/// ```
pub fn is_hidden_field(name: &str) -> bool {
    let is = |listed: &[&str]| listed.iter().any(|field| name.eq_ignore_ascii_case(field));
    is_secret_field(name) || is(&["set-cookie", "set-cookie2"]) || has_secret_word(name) && !is(NON_SECRET_FIELDS)
}

/// Returns `true` if the name contains one of [`SECRET_WORDS`]. The names `author` and `authority`
/// do not count as `auth`.
fn has_secret_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    let begins = |at: usize, word: &str| {
        bytes.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    let is_author = |at: usize| begins(at, "author") && !begins(at, "authoriz") && !begins(at, "authoris");
    (0..bytes.len()).any(|at| !is_author(at) && SECRET_WORDS.iter().any(|word| begins(at, word)))
}

/// Returns `true` if a field that the user set may be sent in a request. `secrets` is the rule for
/// this request: [`SecretHandling::Drop`] excludes fields with credentials, and a Host field, which
/// is meant for the origin of the first URL.
#[inline]
pub fn may_send(name: &str, secrets: SecretHandling) -> bool {
    secrets == SecretHandling::Keep || !(is_secret_field(name) || name.eq_ignore_ascii_case("host"))
}

/// Returns `true` if curl would send a field that the user set in a request. `secrets` is the rule
/// for this request: [`SecretHandling::Drop`] excludes Authorization, Proxy-Authorization, Cookie
/// and Host.
pub fn may_send_as_curl(name: &str, secrets: SecretHandling) -> bool {
    const STANDARD_SECRET_FIELDS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "host"];
    // curl sends blanks around a name.
    let name = name.trim();
    secrets == SecretHandling::Keep || !STANDARD_SECRET_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field))
}

/// Returns those of `fields`, which the user set, that may be sent in a request ([`may_send`]). If
/// `secrets` is [`SecretHandling::Drop`], fields with credentials and the Host field are left out.
pub fn fields_to_send(
    fields: &[(String, Vec<u8>)],
    secrets: SecretHandling,
) -> impl Iterator<Item = &(String, Vec<u8>)> {
    fields.iter().filter(move |(name, _)| may_send(name, secrets))
}

/// Returns the Referer of the request to `to` after a redirect from `from`. It is the URL `from`
/// without userinfo and fragment (RFC 9110 §10.1.3). Returns `None` if `from` is https and `to` is
/// http.
pub fn referer_for(from: &Target, to: &Target) -> Option<String> {
    let downgrade = from.scheme() == Scheme::Https && to.scheme() == Scheme::Http;
    (!downgrade).then(|| from.to_url())
}

/// Returns a URL as written, with `***` in place of text that may be userinfo. The text may also be
/// a malformed URL.
///
/// Text before an `@` may be userinfo, even if it has a `/`, `?` or `#`: a password that was not
/// encoded may contain these. Only an `@` in a query or fragment that follows a path does not
/// count.
///
/// ```
/// use haul_policy::secret_fields::without_userinfo;
///
/// assert_eq!(without_userinfo("http://me:pass?word@h:x/"), "http://***@h:x/");
/// assert_eq!(without_userinfo("http://h:x/?to=a@b"), "http://h:x/?to=a@b");
/// ```
pub fn without_userinfo(url: &str) -> Cow<'_, str> {
    let authority = authority_start(url);
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

/// Returns a URL without user and password. All other parts keep their spelling.
///
/// ```
/// use haul_policy::secret_fields::drop_userinfo;
///
/// assert_eq!(drop_userinfo("HTTP://me:word@h:080/a@b"), "HTTP://h:080/a@b");
/// assert_eq!(drop_userinfo("me@h?x"), "h?x");
/// ```
pub fn drop_userinfo(url: &str) -> Cow<'_, str> {
    let from = authority_start(url);
    let authority = url[from..].find(['/', '\\', '?', '#']).map_or(&url[from..], |length| &url[from..from + length]);
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &url[..from], &url[from + at + 1..])),
        None => Cow::Borrowed(url),
    }
}

/// Returns the index at which the authority of a URL starts: after the scheme, its colon and any
/// number of slashes, because `http:/host` and `http:///host` are URLs, too. Returns 0 for a text
/// without a scheme.
fn authority_start(url: &str) -> usize {
    match url.find(['/', '\\', '?', '#']) {
        Some(at) if url[at..].starts_with('/') && url[..at].ends_with(':') && !url[..at].contains('@') => {
            url.len() - url[at..].trim_start_matches('/').len()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> (String, Vec<u8>) {
        (name.to_owned(), b"v".to_vec())
    }

    #[test]
    fn secret_field_names_are_case_insensitive() {
        for name in ["Authorization", "COOKIE", "proxy-Authorization", "X-Api-Key", "PRIVATE-TOKEN"] {
            assert!(is_secret_field(name), "{name}");
        }
        for name in ["Accept", "Cookies", "Authorization2", "", "X-Authorization-", "Set-Cookie"] {
            assert!(!is_secret_field(name), "{name}");
        }
    }

    #[test]
    fn credential_fields_are_lower_case_without_duplicates() {
        for (at, name) in CREDENTIAL_FIELDS.iter().enumerate() {
            assert_eq!(**name, name.to_ascii_lowercase());
            assert!(!CREDENTIAL_FIELDS[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn only_exact_service_key_fields_are_secret() {
        for name in ["X-JFrog-Art-Api", "X-Shopify-Access-Token", "DD-API-KEY", "CF-Access-Client-Secret", "X-Token"] {
            assert!(is_secret_field(name) && !may_send(name, SecretHandling::Drop) && is_hidden_field(name), "{name}");
            assert!(may_send_as_curl(name, SecretHandling::Drop), "{name}");
        }
        for name in ["Idempotency-Key", "X-Author", "X-Atlassian-Token", "Sec-WebSocket-Key", "X-Request-Id"] {
            assert!(!is_secret_field(name) && may_send(name, SecretHandling::Drop), "{name}");
        }
        for name in ["Authorization", "cookie", "Proxy-Authorization", "Host"] {
            assert!(
                !may_send_as_curl(name, SecretHandling::Drop) && may_send_as_curl(name, SecretHandling::Keep),
                "{name}"
            );
        }
    }

    #[test]
    fn fields_with_secret_sounding_names_are_hidden() {
        for name in [
            "X-My-Secret",
            "MyApiKey",
            "x-api_key",
            "X-Passwd",
            "PHPSESSION",
            "Signature",
            "X-Authorised-By",
            "Auth",
            "X-Authorization-Code",
            "Set-Cookie2",
        ] {
            assert!(is_hidden_field(name), "{name}");
        }
        for name in
            ["Author", "X-Authority", "X-Co-Author", "Accept", "Idempotency-Key", "Proxy-Authenticate", "", "ETag"]
        {
            assert!(!is_hidden_field(name), "{name}");
        }
    }

    #[test]
    fn secret_handling_drop_filters_secrets_and_host() {
        let fields = ["Accept", "HOST", "cookie", "X-Trace", "Authorization"].map(field);
        let kept: Vec<_> = fields_to_send(&fields, SecretHandling::Drop).map(|f| f.0.as_str()).collect();
        assert_eq!(kept, ["Accept", "X-Trace"]);
        assert_eq!(fields_to_send(&fields, SecretHandling::Keep).count(), 5);
    }

    #[test]
    fn possible_passwords_in_malformed_urls_are_hidden() {
        for (url, shown) in [
            ("http://u:p@[x", "http://***@[x"),
            ("http://u:p/q@h:x/", "http://***@h:x/"),
            ("http://u:p?q@h/?a@b", "http://***@b"),
            ("http://u:p#q@h", "http://***@h"),
            ("http:/u:p@h:x/", "http:/***@h:x/"),
            ("http:///u:p@h:x/", "http:///***@h:x/"),
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
    fn referer_has_no_userinfo_and_no_downgrade() {
        let t = |s: &str| Target::parse(s).unwrap();
        let from = t("https://u:p@a.example/x?y#z");
        assert_eq!(referer_for(&from, &t("https://b.example/")).as_deref(), Some("https://a.example/x?y"));
        assert_eq!(referer_for(&from, &t("http://a.example/")), None);
        assert_eq!(referer_for(&t("http://a/"), &t("https://b/")).as_deref(), Some("http://a/"));
    }

    #[test]
    fn userinfo_is_dropped_from_the_authority_alone() {
        for (url, expected) in [
            ("http://u:p@h:1/a@b?c@d", "http://h:1/a@b?c@d"),
            ("http://u@v:p@h", "http://h"),
            ("u:p@h/a", "h/a"),
            ("http:/u:p@h/a", "http:/h/a"),
            ("http:///u:p@h/a", "http:///h/a"),
            ("http:u:p@h/a", "h/a"),
            ("u:p@h://x", "h://x"),
            ("h/?to=http://a@b", "h/?to=http://a@b"),
            ("http://h/a@b", "http://h/a@b"),
            ("http://h?a@b", "http://h?a@b"),
            ("http://h\\a@b", "http://h\\a@b"),
            ("h", "h"),
        ] {
            assert_eq!(drop_userinfo(url), expected, "{url}");
        }
    }
}
