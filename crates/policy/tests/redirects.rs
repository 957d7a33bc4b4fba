//! Tests of redirects: methods, limits and refusals (RFC 9110 §15.4).

use haul_policy::Target;
use haul_policy::protocols::ProtocolSet;
use haul_policy::redirect::{RedirectError, RedirectRules, RedirectedRequest, SecretHandling, redirected_request};

fn hop(
    rules: &RedirectRules,
    status: u16,
    method: &str,
    location: &[u8],
) -> Result<Option<RedirectedRequest>, RedirectError> {
    let from = Target::parse("https://h/a").unwrap();
    redirected_request(rules, 0, status, Some(location), method, &from, &from.origin())
}

/// Returns the method after a redirect with this status, and whether the body is sent again.
fn next(rules: &RedirectRules, status: u16, method: &str) -> (String, bool) {
    let hop = hop(rules, status, method, b"/b").unwrap().unwrap();
    (hop.method, hop.keep_body)
}

#[test]
fn method_after_redirect_depends_on_the_status() {
    let rules = RedirectRules::default();
    let table = [
        (301, "GET", "GET", true),
        (301, "POST", "GET", false),
        (301, "PUT", "PUT", true),
        (301, "HEAD", "HEAD", true),
        (302, "POST", "GET", false),
        (302, "DELETE", "DELETE", true),
        (302, "post", "post", true),
        (303, "GET", "GET", false),
        (303, "POST", "GET", false),
        (303, "PUT", "GET", false),
        (303, "HEAD", "HEAD", true),
        (303, "DELETE", "GET", false),
        (307, "POST", "POST", true),
        (307, "PATCH", "PATCH", true),
        (308, "POST", "POST", true),
        (308, "GET", "GET", true),
        (300, "POST", "POST", true),
    ];
    for (status, method, expected, body) in table {
        assert_eq!(next(&rules, status, method), (expected.to_owned(), body), "{status} {method}");
    }
    let post = RedirectRules { post301: true, post303: true, ..RedirectRules::default() };
    assert_eq!(next(&post, 301, "POST"), ("POST".to_owned(), true));
    assert_eq!(next(&post, 302, "POST"), ("GET".to_owned(), false));
    assert_eq!(next(&post, 303, "POST"), ("POST".to_owned(), true));
    assert_eq!(next(&post, 303, "PUT"), ("GET".to_owned(), false));
    let custom = RedirectRules { keep_method: true, ..RedirectRules::default() };
    assert_eq!(next(&custom, 302, "POST"), ("POST".to_owned(), false));
    assert_eq!(next(&custom, 302, "PUT"), ("PUT".to_owned(), true));
    assert_eq!(next(&custom, 303, "PURGE"), ("PURGE".to_owned(), false));
}

/// Checks that `--post301`, `--post302` and `--post303` each affect only their own status.
#[test]
fn post301_post302_post303_keep_a_post() {
    for (status, other) in [(301, [302, 303]), (302, [301, 303]), (303, [301, 302])] {
        let rules = RedirectRules {
            post301: status == 301,
            post302: status == 302,
            post303: status == 303,
            ..RedirectRules::default()
        };
        assert_eq!(next(&rules, status, "POST"), ("POST".to_owned(), true), "{status}");
        for status in other {
            assert_eq!(next(&rules, status, "POST"), ("GET".to_owned(), false), "{status}");
        }
        assert_eq!(next(&rules, 303, "DELETE"), ("GET".to_owned(), false));
    }
}

#[test]
fn redirects_to_plain_http_drop_secrets() {
    let first = Target::parse("https://a/").unwrap();
    let plain_first = Target::parse("http://a/").unwrap();
    let downgraded = |rules: &RedirectRules, from: &str, first: &Target, to: &str| {
        let hop = redirected_request(
            rules,
            0,
            302,
            Some(to.as_bytes()),
            "GET",
            &Target::parse(from).unwrap(),
            &first.origin(),
        );
        let hop = hop.unwrap().unwrap();
        (hop.downgraded, hop.secrets)
    };
    let rules = RedirectRules::default();
    let trusted = RedirectRules { location_trusted: true, ..RedirectRules::default() };
    assert_eq!(downgraded(&rules, "https://a/", &first, "http://a/"), (true, SecretHandling::Drop));
    assert_eq!(downgraded(&rules, "http://b/", &first, "http://c/"), (true, SecretHandling::Drop));
    assert_eq!(downgraded(&rules, "http://b/", &plain_first, "http://c/"), (false, SecretHandling::Drop));
    assert_eq!(downgraded(&rules, "https://b/", &plain_first, "http://c/"), (true, SecretHandling::Drop));
    // The first origin is where it all began in the clear.
    assert_eq!(downgraded(&rules, "https://b/", &plain_first, "http://a/"), (false, SecretHandling::Keep));
    assert_eq!(downgraded(&trusted, "https://a/", &first, "http://b/"), (true, SecretHandling::Drop));
    assert_eq!(downgraded(&trusted, "https://a/", &first, "https://b/"), (false, SecretHandling::Keep));
    assert_eq!(downgraded(&trusted, "http://a/", &plain_first, "http://b/"), (false, SecretHandling::Keep));
}

/// Checks `--proto-redir` and `--proto` with curl's defaults for redirects and with narrower sets.
#[test]
fn redirects_only_to_allowed_schemes_are_followed() {
    let rules = RedirectRules::default().with_protocols(ProtocolSet::default().with_list("=https").unwrap());
    let code = |location: &[u8]| hop(&rules, 301, "GET", location).map(|hop| hop.is_some()).map_err(|e| e.exit_code());
    assert_eq!(
        (code(b"https://o/"), code(b"/x"), code(b"http://h/"), code(b"ftp://h/")),
        (Ok(true), Ok(true), Err(1), Err(1))
    );
}

#[test]
fn statuses_other_than_redirects_are_not_followed() {
    let rules = RedirectRules::default();
    for status in [100, 200, 204, 299, 304, 305, 400, 404, 500] {
        assert_eq!(hop(&rules, status, "GET", b"/b"), Ok(None), "{status}");
    }
    // Undefined statuses count as 300 (RFC 9110 section 15).
    for status in [300, 306, 309, 399] {
        assert!(hop(&rules, status, "GET", b"/b").unwrap().is_some(), "{status}");
    }
    let from = Target::parse("http://h/").unwrap();
    assert_eq!(redirected_request(&rules, 99, 302, None, "GET", &from, &from.origin()), Ok(None));
    assert_eq!(hop(&rules, 302, "GET", b" \t"), Ok(None));
    assert_eq!(hop(&RedirectRules { follow: false, ..rules }, 302, "GET", b"/b"), Ok(None));
}

#[test]
fn permanent_only_refuses_temporary_redirects() {
    let rules = RedirectRules { permanent_only: true, ..RedirectRules::default() };
    for status in [302, 303, 307] {
        assert_eq!(hop(&rules, status, "GET", b"/b"), Err(RedirectError::Temporary), "{status}");
    }
    for status in [301, 308] {
        assert!(hop(&rules, status, "GET", b"/b").unwrap().is_some(), "{status}");
    }
    assert_eq!(hop(&rules, 302, "GET", b""), Ok(None));
}

#[test]
fn redirect_limit_ends_a_chain() {
    let from = Target::parse("http://h/").unwrap();
    let at = |max, hops| {
        redirected_request(
            &RedirectRules { max, ..RedirectRules::default() },
            hops,
            302,
            Some(b"/"),
            "GET",
            &from,
            &from.origin(),
        )
    };
    assert!(at(50, 49).unwrap().is_some());
    assert_eq!(at(50, 50), Err(RedirectError::TooMany { max: 50 }));
    assert_eq!(at(0, 0).unwrap_err().exit_code(), 47);
    assert!(at(u32::MAX, u32::MAX).unwrap().is_some());
}

#[test]
fn refused_redirects_have_curls_exit_codes() {
    let rules = RedirectRules::default();
    let code = |rules: &RedirectRules, location: &[u8]| {
        hop(rules, 302, "GET", location).map_err(|e| e.exit_code()).map(|_| ())
    };
    for (location, exit) in [
        (&b"file:///etc/passwd"[..], 1),
        (b"ftp://h/", 1),
        (b"javascript:x", 1),
        (b"http://", 3),
        (b"http://a@b@c/", 3),
        (b"/a\rSet-Cookie: x", 3),
        (b"/\0", 3),
        (b"//a\\b/", 3),
        (b"http://h:99999/", 3),
        (b"//\xff/", 3),
    ] {
        assert_eq!(code(&rules, location), Err(exit), "{}", String::from_utf8_lossy(location));
    }
    let tls_only = RedirectRules { allow_http: false, ..RedirectRules::default() };
    assert_eq!(code(&tls_only, b"http://h/"), Err(1));
    assert_eq!(code(&tls_only, b"https://o/"), Ok(()));
    assert_eq!(code(&RedirectRules { allow_https: false, ..rules }, b"/b"), Err(1));
}

#[test]
fn location_in_other_charset_is_percent_encoded() {
    let rules = RedirectRules::default();
    let url = |location: &[u8]| hop(&rules, 302, "GET", location).unwrap().unwrap().target.to_url();
    assert_eq!(url(b"/\xe9\xc3\xa9?\xff x"), "https://h/%E9%C3%A9?%FF+x");
    assert_eq!(url("//b\u{fc}cher.example/\u{fc}".as_bytes()), "https://xn--bcher-kva.example/%C3%BC");
}

#[test]
fn redirect_error_messages_contain_no_secret() {
    let error = hop(&RedirectRules::default(), 302, "GET", b"http://u:hunter2@a@b/").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
