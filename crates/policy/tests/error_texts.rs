//! Tests of the texts of errors: each reason has its own, and names what is at fault.

use core::fmt::Display;

use haul_policy::TargetError;
use haul_policy::auth::{Credentials, CredentialsError, MessageSignatureError};
use haul_policy::cookie::CookieRefusal;
use haul_policy::file_url::FileUrlError;
use haul_policy::filename::NoFileName;
use haul_policy::netrc;
use haul_policy::proxy::{Proxy, ProxyParseError};
use haul_policy::redirect::RedirectError;

/// Checks that each text contains the detail beside it, and that no two texts are equal.
fn check_texts(errors: &[(&dyn Display, &str)]) {
    let mut texts: Vec<String> = errors.iter().map(|(error, _)| error.to_string()).collect();
    for (text, (_, detail)) in texts.iter().zip(errors) {
        assert!(text.contains(detail), "{text}: {detail}");
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), errors.len(), "{texts:?}");
}

#[test]
fn file_name_errors_name_the_fault() {
    check_texts(&[
        (&FileUrlError::OtherHost, "another host"),
        (&FileUrlError::NoAbsolutePath, "no absolute path"),
        (&FileUrlError::Nul, "NUL"),
        (&NoFileName, "Remote file name has no length"),
    ]);
}

#[test]
fn signature_errors_name_the_component() {
    check_texts(&[
        (&MessageSignatureError::Key, "not hexadecimal"),
        (&MessageSignatureError::KeyLength(7), "32 bytes, not of 7"),
        (&MessageSignatureError::KeyId, "identifier"),
        (&MessageSignatureError::Component("n\u{7}".into()), "component n\\u{7}"),
        (&MessageSignatureError::Repeated("path".into()), "path is named twice"),
        (&MessageSignatureError::Count, "1 to 16"),
        (&MessageSignatureError::NoField("x-a".into()), "header x-a"),
    ]);
}

#[test]
fn proxy_errors_name_the_fault() {
    let refused = |text: &str| Proxy::parse(text).expect_err("no proxy");
    let (scheme, host, control) = (refused("ftp://h"), refused("http://"), ProxyParseError::Credentials);
    assert_eq!((&scheme, scheme.exit_code(), host.exit_code()), (&ProxyParseError::Scheme, 7, 5));
    check_texts(&[(&scheme, "unsupported proxy scheme"), (&host, "proxy: "), (&control, "control byte")]);
}

#[test]
fn redirect_errors_shorten_the_scheme() {
    let malformed = haul_policy::Target::parse("http://a b/").expect_err("no URL");
    assert!(matches!(malformed, TargetError::Malformed { .. }));
    let detail = format!("redirect to a {malformed}");
    check_texts(&[
        (&RedirectError::TooMany { max: 3 }, "maximum (3) redirects"),
        (&RedirectError::Temporary, "temporary redirect"),
        (&RedirectError::Malformed(malformed), &detail),
        (&RedirectError::UnsupportedScheme("x".repeat(41)), &format!("\"{}\"", "x".repeat(40))),
    ]);
}

#[test]
fn cookie_errors_differ_in_their_texts() {
    check_texts(&[
        (&CookieRefusal::ControlByte, "control byte"),
        (&CookieRefusal::TooLong, "too long"),
        (&CookieRefusal::NoName, "no name"),
        (&CookieRefusal::Domain, "not a host name"),
        (&CookieRefusal::ForeignDomain, "not the server's"),
        (&CookieRefusal::PublicSuffix, "public suffix"),
        (&CookieRefusal::Insecure, "Secure"),
        (&CookieRefusal::HidesSecure, "hide"),
        (&CookieRefusal::SecurePrefix, "__Secure-"),
        (&CookieRefusal::HostPrefix, "__Host-"),
    ]);
}

#[test]
fn credential_errors_show_their_cause() {
    let netrc = netrc::check_syntax(b"machine \"h").expect_err("an open quote");
    let auth = Credentials::new("a\nb", "").expect_err("a line break in the user name");
    check_texts(&[
        (&CredentialsError::from(netrc), &netrc.to_string()),
        (&CredentialsError::from(auth.clone()), &auth.to_string()),
    ]);
    assert!(!netrc.to_string().is_empty() && !auth.to_string().is_empty());
}

#[test]
fn form_error_names_the_line_end() {
    check_texts(&[(&haul_policy::multipart::MultipartError::LineEnd, "line end")]);
}

#[test]
fn shard_errors_name_the_fault() {
    let refused = |text: &str| haul_policy::shard::UrlListShard::parse(text).expect_err("no shard");
    check_texts(&[
        (&refused("1"), "expected K/N"),
        (&refused("0/0"), "N is at least 1"),
        (&refused("0/4294967296"), "N is at most 4294967295"),
        (&refused("4/4"), "K is from 0 to 3"),
    ]);
}
