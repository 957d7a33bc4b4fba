//! One test for each class of flaws in public advisories, with the advisory's name: secrets sent to
//! the wrong peer, cookies and HSTS that can be tricked. Flaws that need connections or files are
//! tested in the engine and in the command; `docs/design/trust.md` lists all.

use haul_policy::Target;
use haul_policy::auth::{Credentials, GivenCredentials, NetrcMode, credentials_for_target};
use haul_policy::cookie::CookieStore;
use haul_policy::hsts::HstsStore;
use haul_policy::proxy::{connect_fields, forward_fields};
use haul_policy::redirect::{RedirectRules, RedirectedRequest, SecretHandling, redirected_request};
use haul_policy::secret_fields::{fields_to_send, referer_for};

const NOW: u64 = 1_800_000_000;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Returns the redirected request for a redirect from `from`, the first URL, to `to`.
fn hop(from: &str, to: &str) -> RedirectedRequest {
    let from = target(from);
    let origin = from.origin();
    redirected_request(&RedirectRules::default(), 0, 302, Some(to.as_bytes()), "GET", &from, &origin)
        .unwrap()
        .expect("followed")
}

/// Returns the names of the user's fields that may be sent with this `SecretHandling`.
fn sent(secrets: SecretHandling) -> Vec<&'static str> {
    const NAMES: [&str; 5] = ["Authorization", "Cookie", "X-Api-Key", "Host", "Accept"];
    let fields = NAMES.map(|name| (name.to_owned(), b"v".to_vec()));
    let kept: Vec<_> = fields_to_send(&fields, secrets).map(|(name, _)| name.clone()).collect();
    NAMES.into_iter().filter(|name| kept.iter().any(|other| other == name)).collect()
}

#[test]
fn cve_2018_1000007_fields_stay_with_the_host() {
    assert_eq!(sent(hop("https://a.example/", "https://b.example/").secrets), ["Accept"]);
    assert_eq!(sent(hop("https://a.example/", "https://sub.a.example/").secrets), ["Accept"]);
    assert_eq!(sent(hop("https://a.example/", "https://A.example:443/x").secrets).len(), 5);
}

#[test]
fn cve_2022_27774_secrets_stay_with_port_and_scheme() {
    for to in ["https://a.example:444/", "http://a.example/", "http://a.example:443/"] {
        assert_eq!(sent(hop("https://a.example/", to).secrets), ["Accept"], "{to}");
    }
    assert_eq!(sent(hop("http://a.example/", "https://a.example/").secrets), ["Accept"]);
}

#[test]
fn cve_2022_27776_later_redirect_restores_no_secret() {
    let first = target("https://a.example/").origin();
    let mut at = target("https://a.example/");
    let mut kept = Vec::new();
    for location in ["https://a.example:8443/", "https://a.example:8443/again", "/more", "https://a.example/home"] {
        let hop = redirected_request(&RedirectRules::default(), 0, 302, Some(location.as_bytes()), "GET", &at, &first);
        let hop = hop.unwrap().unwrap();
        kept.push(hop.secrets == SecretHandling::Keep);
        at = hop.target;
    }
    assert_eq!(kept, [false, false, false, true]);
}

/// Returns the Basic credentials and the token for the request after a redirect from `from` to
/// `to`.
fn identity(given: &GivenCredentials<'_>, from: &str, to: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let hop = hop(from, to);
    let identity = credentials_for_target(given, &hop.target, hop.secrets, hop.downgraded).unwrap();
    (identity.credentials.map(|known| known.basic_authorization()), identity.bearer)
}

#[test]
fn cve_2025_14524_token_stays_with_origin() {
    let given = GivenCredentials { user: None, bearer: Some(b"t0ken"), negotiate: true, netrc: NetrcMode::Off };
    assert_eq!(identity(&given, "https://a.example/", "https://a.example/x").1.as_deref(), Some(&b"t0ken"[..]));
    for to in ["https://b.example/", "https://a.example:1/", "http://a.example/"] {
        assert_eq!(identity(&given, "https://a.example/", to).1, None, "{to}");
    }
}

#[test]
fn userinfo_of_a_url_stays_with_its_origin() {
    let given = GivenCredentials { user: None, bearer: None, negotiate: false, netrc: NetrcMode::Off };
    let known = Credentials::new("u", "p").unwrap().basic_authorization();
    assert_eq!(identity(&given, "https://u:p@a.example/", "/x").0, Some(known));
    for to in ["https://b.example/", "//b.example/", "http://a.example/", "https://u:p@b.example/"] {
        assert_eq!(identity(&given, "https://u:p@a.example/", to).0, None, "{to}");
    }
}

#[test]
fn cve_2024_11053_netrc_password_is_for_its_host() {
    for netrc in [
        &b"machine a.example login alice password alices\nmachine b.example\n"[..],
        b"machine a.example login alice password alices\nmachine b.example login bob\n",
        b"machine a.example login alice password alices\n",
    ] {
        let given = GivenCredentials { user: None, bearer: None, negotiate: false, netrc: NetrcMode::Required(netrc) };
        let (first, _) = identity(&given, "https://a.example/", "https://a.example/x");
        assert_eq!(first, Some(Credentials::new("alice", "alices").unwrap().basic_authorization()));
        let (there, _) = identity(&given, "https://a.example/", "https://b.example/");
        let none = Credentials::new("bob", "").unwrap().basic_authorization();
        assert!(there.is_none() || there == Some(none), "{}", String::from_utf8_lossy(netrc));
    }
}

#[test]
fn cve_2025_0167_empty_netrc_default_gives_nothing() {
    let netrc = &b"machine a.example login alice password alices\ndefault\n"[..];
    let given = GivenCredentials { user: None, bearer: None, negotiate: false, netrc: NetrcMode::Required(netrc) };
    let (there, _) = identity(&given, "https://a.example/", "https://b.example/");
    assert_eq!(there, None);
}

#[test]
fn cve_2026_8926_netrc_password_belongs_to_user() {
    let netrc = &b"machine a.example login alice password alices\nmachine a.example login bob password bobs\n"[..];
    for of_file in [NetrcMode::Required(netrc), NetrcMode::Optional(netrc)] {
        let given = GivenCredentials { user: None, bearer: None, negotiate: false, netrc: of_file };
        for (user, password) in [("alice", "alices"), ("bob", "bobs"), ("eve", "")] {
            let (sent, _) = identity(&given, &format!("https://{user}@a.example/"), "https://a.example/x");
            assert_eq!(sent, Some(Credentials::new(user, password).unwrap().basic_authorization()), "{user}");
        }
    }
}

#[test]
fn netrc_entry_matches_only_its_exact_host() {
    let netrc = &b"machine a.example login alice password alices\n"[..];
    let given = GivenCredentials { user: None, bearer: None, negotiate: false, netrc: NetrcMode::Required(netrc) };
    for (host, expected) in [
        ("a.example", true),
        ("A.EXAMPLE", true),
        ("w.a.example", false),
        ("xa.example", false),
        ("a.example.evil.test", false),
        ("a.exampl", false),
    ] {
        let identity =
            credentials_for_target(&given, &target(&format!("https://{host}/")), SecretHandling::Keep, false).unwrap();
        assert_eq!(identity.credentials.is_some(), expected, "{host}");
    }
}

#[test]
fn https_to_http_drops_credentials_cookies_and_referer() {
    let netrc = &b"machine a.example login alice password alices\n"[..];
    let given =
        GivenCredentials { user: None, bearer: Some(b"t"), negotiate: false, netrc: NetrcMode::Required(netrc) };
    assert_eq!(identity(&given, "https://a.example/", "http://a.example/"), (None, None));
    assert_eq!(identity(&given, "https://b.example/", "http://a.example/"), (None, None));
    let mut jar = CookieStore::new();
    jar.set(&target("https://a.example/"), b"s=1; Secure", NOW).unwrap();
    assert_eq!(jar.cookie_for(&target("http://a.example/"), NOW), None);
    assert!(jar.cookie_for(&target("https://a.example/"), NOW).is_some());
    assert_eq!(referer_for(&target("https://a.example/private"), &target("http://a.example/")), None);
    let trusting = RedirectRules { location_trusted: true, ..RedirectRules::default() };
    let from = target("https://a.example/");
    let there = redirected_request(&trusting, 0, 302, Some(b"http://a.example/"), "GET", &from, &from.origin())
        .unwrap()
        .unwrap();
    assert_eq!(there.secrets, SecretHandling::Drop, "whoever is trusted, nobody listens in");
}

#[test]
fn cve_2023_32681_origin_gets_no_proxy_credentials() {
    // To the proxy they go in fields of their own, which a request to an origin is never made of.
    let basic = Credentials::new("p", "q").unwrap().basic_authorization();
    for fields in
        [connect_fields(&target("https://a.example/"), Some(&basic), None, &[]), forward_fields(Some(&basic), &[])]
    {
        let holding: Vec<_> =
            fields.iter().filter(|(_, value)| *value == basic).map(|(name, _)| name.as_str()).collect();
        assert_eq!(holding, ["Proxy-Authorization"]);
    }
    // One that the user gave as a field of the request is a secret like others.
    let own = [("proxy-authorization".to_owned(), basic)];
    assert_eq!(fields_to_send(&own, hop("https://a.example/", "https://b.example/").secrets).count(), 0);
}

#[test]
fn ambiguous_url_authorities_are_refused() {
    for (url, host) in [
        ("http://a.example\\@b.example/", None),
        ("http://a.example@b.example/", Some("b.example")),
        ("http://a@c@b.example/", None),
        ("http://a.example;b.example/", None),
        ("http://a.example%2F@b.example/", Some("b.example")),
        ("http://a.example%2Fb.example/", None),
        ("http://a.example%5Cb.example/", None),
        ("http://a.example%40b.example/", None),
        ("http://a.example#@b.example/", Some("a.example")),
        ("http://a.example?@b.example/", Some("a.example")),
        ("http://a.example:80@b.example/", Some("b.example")),
        ("http://a..example/", None),
        ("http://a.example%00.b.example/", None),
        ("http://a.example b.example/", None),
    ] {
        let parsed = Target::parse(url);
        match host {
            Some(host) => {
                let parsed = parsed.unwrap_or_else(|error| panic!("{url}: {error}"));
                assert_eq!(parsed.host_text(), host, "{url}");
                assert!(parsed.to_url().starts_with(&format!("http://{host}/")), "{url}: {}", parsed.to_url());
            }
            // A backslash may also end the authority, as in browsers: then that host is the only
            // one.
            None => assert!(parsed.as_ref().map_or(true, |parsed| parsed.host_text() == "a.example"), "{url}"),
        }
    }
}

#[test]
fn urls_and_credentials_refuse_cr_lf_nul() {
    for bad in ["\r", "\n", "\0", "\r\nX: y"] {
        for url in [
            format!("http://a.example/x{bad}y"),
            format!("http://a{bad}.example/"),
            format!("http://a.example/?{bad}q"),
        ] {
            let sent = Target::parse(&url).map(|target| target.path_and_query().to_owned());
            assert!(sent.as_ref().map_or(true, |sent| !sent.contains(['\r', '\n', '\0'])), "{url:?}: {sent:?}");
        }
        assert!(
            Credentials::new(&*format!("u{bad}"), "p").is_err() && Credentials::new("u", &*format!("p{bad}")).is_err()
        );
    }
}

#[test]
fn debug_output_of_credentials_contains_no_secret() {
    let known = Credentials::new("alice", "hunter2").unwrap();
    assert!(!format!("{known:?}").contains("hunter2"));
    let parsed = target("http://alice:hunter2@a.example/");
    assert!(!format!("{parsed:?} {}", parsed.to_url()).contains("hunter2"));
    let mut jar = CookieStore::new();
    jar.set(&parsed, b"sid=hunter2", NOW).unwrap();
    assert!(!format!("{jar:?}").contains("hunter2"));
}

/// Returns `true` if the cookie store accepts the Set-Cookie value `field` in a response from
/// `url`.
fn takes(url: &str, field: &str) -> bool {
    CookieStore::new().set(&target(url), field.as_bytes(), NOW).is_ok()
}

#[test]
fn cve_2022_27779_dotted_suffix_sets_no_cookie() {
    assert!(!takes("http://a.co.uk/", "s=1; Domain=co.uk."));
    assert!(!takes("http://a.co.uk./", "s=1; Domain=co.uk."));
    assert!(!takes("http://a.co.uk/", "s=1; Domain=co.uk"));
    assert!(takes("http://w.a.co.uk/", "s=1; Domain=a.co.uk"));
}

#[test]
fn cve_2023_46218_suffix_case_is_ignored() {
    for domain in ["co.UK", "CO.UK", ".Co.Uk", "cO.uK."] {
        assert!(!takes("http://a.co.uk/", &format!("s=1; Domain={domain}")), "{domain}");
    }
    assert!(takes("http://w.a.co.uk/", "s=1; Domain=A.CO.UK"));
}

#[test]
fn cve_2022_35252_control_bytes_are_refused() {
    for byte in (0..0x20_u8).chain([0x7f]) {
        let mut jar = CookieStore::new();
        for field in [[b"a", &[byte][..], b"b=c"].concat(), [b"a=b", &[byte][..], b"c"].concat()] {
            assert!(jar.set(&target("http://a.example/"), &field, NOW).is_err(), "{field:?}");
        }
    }
    assert!(takes("http://a.example/", "a=b\u{e9}c"));
}

#[test]
fn plain_http_cookie_does_not_overwrite_secure_cookie() {
    let mut jar = CookieStore::new();
    jar.set(&target("https://a.example/"), b"s=good; Secure; Path=/", NOW).unwrap();
    assert!(jar.set(&target("http://a.example/"), b"s=bad; Path=/", NOW).is_err());
    assert!(jar.set(&target("http://a.example/"), b"s=bad; Secure; Path=/", NOW).is_err());
    assert_eq!(jar.cookie_for(&target("https://a.example/"), NOW).unwrap(), b"s=good");
    jar.set(&target("https://a.example/"), b"s=new; Secure; Path=/", NOW).unwrap();
}

#[test]
fn cookie_prefixes_are_enforced_in_any_case() {
    for name in ["__Host-s", "__host-s", "__HOST-s"] {
        assert!(takes("https://a.example/", &format!("{name}=1; Secure; Path=/")), "{name}");
        for worse in ["; Path=/", "; Secure; Path=/x", "; Secure; Path=/; Domain=a.example"] {
            assert!(!takes("https://a.example/", &format!("{name}=1{worse}")), "{name}{worse}");
        }
    }
    assert!(!takes("https://a.example/", "__secure-s=1") && takes("https://a.example/", "__Secure-s=1; Secure"));
}

#[test]
fn cve_2022_32205_number_of_cookies_is_bounded() {
    let (mut jar, from) = (CookieStore::new(), target("https://a.example/"));
    for n in 0..5_000 {
        let _ = jar.set(&from, format!("n{n}={}", "v".repeat(1_000)).as_bytes(), NOW);
    }
    assert!(jar.len() <= 180, "{}", jar.len());
    assert!(jar.cookie_for(&from, NOW).unwrap().len() <= 8_190);
    assert!(!takes("https://a.example/", &format!("s={}", "v".repeat(5_000))));
}

#[test]
fn cve_2022_30115_dots_do_not_escape_hsts() {
    let mut hsts = HstsStore::new();
    hsts.on_field(&target("https://a.example/"), b"max-age=600; includeSubDomains", NOW);
    for url in [
        "http://a.example/",
        "http://a.example./",
        "http://A.EXAMPLE/",
        "http://a\u{3002}example/",
        "http://w.a.example./",
    ] {
        assert!(hsts.to_https_target(&target(url), NOW).is_some(), "{url}");
    }
    assert!(hsts.to_https_target(&target("http://b.example/"), NOW).is_none());
    let mut dotted = HstsStore::new();
    dotted.on_field(&target("https://a.example./"), b"max-age=600", NOW);
    assert!(dotted.to_https_target(&target("http://a.example/"), NOW).is_some());
}
