//! Tests of challenges, the choice of a scheme, Basic, Digest, and the sources of credentials.

use super::*;
use crate::redirect::SecretHandling;
use crate::target::Target;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

/// Parses these WWW-Authenticate fields and returns the challenges in a short notation for
/// comparison.
fn read(fields: &[&str]) -> String {
    let challenge = |challenge: &Challenge| {
        let parameters = challenge.parameters.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
        let token = challenge.token68.iter().map(|token| token.escape_ascii().to_string());
        let inner: Vec<String> = token.chain(parameters).collect();
        format!("{}({})", challenge.scheme, inner.join(","))
    };
    parse_challenges(fields.iter().map(|f| f.as_bytes())).iter().map(challenge).collect::<Vec<_>>().join(" ")
}

#[test]
fn auth_challenges_are_parsed() {
    for (fields, expected) in [
        (&["Basic realm=\"a, b\""][..], "Basic(realm=a, b)"),
        (&["basic"], "Basic()"),
        (
            &["Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\""],
            "newauth(realm=apps,type=1,title=Login to \\\"apps\\\") Basic(realm=simple)",
        ),
        (&["NTLM, Negotiate", "Basic realm=x"], "NTLM() Negotiate() Basic(realm=x)"),
        (&["Negotiate YII+/=="], "Negotiate(YII+/==)"),
        (&["Negotiate abc=, Digest nonce=\"n\""], "Negotiate(abc=) Digest(nonce=n)"),
        (&[" ,, Basic  realm = \"x\" ,, charset=\"UTF-8\",,"], "Basic(realm=x,charset=UTF-8)"),
        (&["DIGEST Realm=x,NONCE=\"\""], "Digest(realm=x,nonce=)"),
        (&["Basic realm=a@b:c, x=y"], "Basic(realm=a@b:c,x=y)"),
        // A parameter belongs to no challenge of another field.
        (&["Basic", "realm=x"], "Basic()"),
        (&["realm=x, Basic"], "Basic()"),
        (&["\"Digest\", Basic realm=x"], "Basic(realm=x)"),
        (&["Digest realm=\"open, Basic realm=x"], "Digest()"),
        (&["Digest realm=\"a\"junk, Basic"], "Digest(realm=a) Basic()"),
        (&["=, ==, @, Basic"], "Basic()"),
        (&["", ",", " "], ""),
    ] {
        assert_eq!(read(fields), expected, "{fields:?}");
    }
}

#[test]
fn challenge_parameter_without_comma_is_accepted() {
    for (field, expected) in [
        ("Digest realm=\"r\" nonce=\"n\" qop=auth", "Digest(realm=r,nonce=n,qop=auth)"),
        ("Digest realm=\"r\"nonce=n qop=\"auth\", Basic realm=x", "Digest(realm=r,nonce=n,qop=auth) Basic(realm=x)"),
        ("Basic realm=a charset=UTF-8", "Basic(realm=a,charset=UTF-8)"),
        // Another scheme needs its comma.
        ("Basic realm=a Digest nonce=n", "Basic(realm=a)"),
        ("Basic realm=\"a\"; nonce=n", "Basic(realm=a)"),
    ] {
        assert_eq!(read(&[field]), expected, "{field}");
    }
}

#[test]
fn number_of_parsed_challenges_is_bounded() {
    let many = "Basic realm=x,".repeat(10_000);
    assert_eq!(parse_challenges([many.as_bytes()]).len(), MAX_CHALLENGES);
    let wide = format!("Digest {}", "a=b,".repeat(10_000));
    assert_eq!(parse_challenges([wide.as_bytes()])[0].parameters.len(), MAX_PARAMETERS);
    // Of one that is there twice the last counts.
    assert_eq!(parse_challenges([&b"Digest nonce=1, NONCE=2"[..]])[0].get("nonce"), Some(&b"2"[..]));
    let field = b"Digest realm=\"a\\\"b\", nonce=\"n\", qop=\"auth,auth-int\", Negotiate abc==, Basic realm=x";
    for end in 0..field.len() {
        for byte in [0u8, b'"', b'\\', b',', b'=', b' ', 0xff] {
            let mut mutated = field.to_vec();
            mutated[end] = byte;
            let _ = choose_scheme(&parse_challenges([&mutated[..], &field[..end]]), AllowedAuthSchemes::ANY);
        }
    }
}

fn chosen(fields: &[&str], allowed: AllowedAuthSchemes) -> Result<ChosenAuthScheme, AuthError> {
    choose_scheme(&parse_challenges(fields.iter().map(|f| f.as_bytes())), allowed)
}

#[test]
fn strongest_allowed_auth_scheme_is_chosen() {
    let digest = "Digest realm=r, nonce=n, algorithm=SHA-256";
    let all = &["Basic realm=x", digest, "Bearer", "NTLM"][..];
    let bearer = AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::ANY };
    assert_eq!(chosen(all, bearer), Ok(ChosenAuthScheme::Bearer));
    assert!(matches!(chosen(all, AllowedAuthSchemes::ANY), Ok(ChosenAuthScheme::Digest(_))));
    assert_eq!(chosen(all, AllowedAuthSchemes::BASIC), Ok(ChosenAuthScheme::Basic));
    assert_eq!(chosen(&["Basic"], AllowedAuthSchemes::DIGEST), Ok(ChosenAuthScheme::Nothing));
    assert_eq!(chosen(&["Bearer"], AllowedAuthSchemes::ANY), Ok(ChosenAuthScheme::Nothing));
    assert_eq!(chosen(&[], AllowedAuthSchemes::ANY), Ok(ChosenAuthScheme::Nothing));
    let token_or_password = AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::BASIC };
    assert_eq!(chosen(&["Basic realm=x"], token_or_password), Ok(ChosenAuthScheme::Basic), "no Bearer is offered");
    // The server's order among its digests, but for those that cannot be answered.
    let unknown = "Digest realm=r, nonce=n, algorithm=SHA-1024";
    let Ok(ChosenAuthScheme::Digest(challenge)) =
        chosen(&[unknown, "Digest realm=r, nonce=m, algorithm=md5-SESS", digest], AllowedAuthSchemes::ANY)
    else {
        panic!("the second")
    };
    assert_eq!(challenge.algorithm(), DigestAlgorithm::Md5);
    assert_eq!(chosen(&[unknown, "Basic"], AllowedAuthSchemes::ANY), Ok(ChosenAuthScheme::Basic));
    assert_eq!(chosen(&[unknown, "Basic"], AllowedAuthSchemes::DIGEST), Err(AuthError::DigestAlgorithm));
    for incomplete in [
        "Digest realm=r",
        "Digest nonce=n",
        "Digest realm=r, nonce=n, qop=\"auth-conf\"",
        "Digest realm=r, nonce=\"a\tb\"",
        "Digest realm=r, nonce=n, opaque=\"a\x7fb\"",
    ] {
        assert_eq!(chosen(&[incomplete], AllowedAuthSchemes::ANY), Err(AuthError::DigestChallenge), "{incomplete}");
    }
    let error = chosen(&["NTLM", "Negotiate", "NTLM abc"], AllowedAuthSchemes::ANY).unwrap_err();
    assert_eq!(error, AuthError::Unsupported(vec!["NTLM".into(), "Negotiate".into()]));
    assert_eq!(error.to_string(), "the server offers only NTLM or Negotiate, which the request may not use");
}

#[test]
fn negotiate_takes_precedence_where_it_is_allowed() {
    let all = &["Basic realm=x, Negotiate", "Bearer", "Digest realm=r, nonce=n"][..];
    let allowed = AllowedAuthSchemes { bearer: true, negotiate: true, ..AllowedAuthSchemes::ANY };
    assert_eq!(chosen(all, allowed), Ok(ChosenAuthScheme::Negotiate(Vec::new())));
    assert_eq!(chosen(&["negotiate oRQw=="], allowed), Ok(ChosenAuthScheme::Negotiate(b"oRQw==".to_vec())));
    assert_eq!(chosen(&["Basic realm=x"], AllowedAuthSchemes::NEGOTIATE), Ok(ChosenAuthScheme::Nothing));
    let error = chosen(&["NTLM"], AllowedAuthSchemes::NEGOTIATE).unwrap_err();
    assert_eq!(error, AuthError::Unsupported(vec!["NTLM".into()]));
}

#[test]
fn basic_and_bearer_values_are_encoded() {
    let basic = |user: &[u8], password: &[u8]| Credentials::new(user, password).unwrap().basic_authorization();
    assert_eq!(basic(b"Aladdin", b"open sesame"), b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    // RFC 7617 §2.1, in UTF-8.
    assert_eq!(basic(b"test", "123\u{a3}".as_bytes()), b"Basic dGVzdDoxMjPCow==");
    assert_eq!(basic(b"", b""), b"Basic Og==");
    assert_eq!(Credentials::new("a:b", "").unwrap().check_basic(), Err(AuthError::ColonInUser));
    assert_eq!(Credentials::new("a", "b:c").unwrap().check_basic(), Ok(()));
    for bad in ["a\rb", "a\nb", "a\0b"] {
        assert_eq!(Credentials::new(bad, "").unwrap_err(), AuthError::ControlByte);
        assert_eq!(Credentials::new("", bad).unwrap_err(), AuthError::ControlByte);
        assert_eq!(bearer_authorization(bad.as_bytes()), Err(AuthError::ControlByte));
    }
    assert_eq!(bearer_authorization(b"mF_9.B5f-4.1JqM"), Ok(b"Bearer mF_9.B5f-4.1JqM".to_vec()));
    assert!(
        bearer_authorization(b"").is_err()
            && bearer_authorization(b"a b").is_err()
            && bearer_authorization(b"\xe9").is_err()
    );
    assert_eq!(Credentials::split_user_and_password(b"u:p:q"), (&b"u"[..], Some(&b"p:q"[..])));
    assert_eq!(Credentials::split_user_and_password(b"u"), (&b"u"[..], None));
    assert!(!format!("{:?}", Credentials::new("u", "hunter2").unwrap()).contains("hunter2"));
}

fn digest(field: &str) -> DigestSession {
    match chosen(&[field], AllowedAuthSchemes::DIGEST) {
        Ok(ChosenAuthScheme::Digest(challenge)) => DigestSession::new(challenge),
        other => panic!("{other:?}"),
    }
}

fn parameter(value: &[u8], name: &str) -> String {
    let challenge = parse_challenges([value]).pop().unwrap();
    String::from_utf8(challenge.get(name).unwrap_or_default().to_vec()).unwrap()
}

#[test]
fn digest_answers_match_rfc7616_section_3_9_1() {
    let me = Credentials::new("Mufasa", "Circle of Life").unwrap();
    let fields = "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
        opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
    for (algorithm, response) in [
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ] {
        let mut digest = digest(&format!("Digest {fields}, algorithm={algorithm}"));
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let value = digest.authorize(&me, "GET", "/dir/index.html", None, cnonce).unwrap();
        assert_eq!(
            String::from_utf8(value).unwrap(),
            format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", cnonce=\"{cnonce}\", \
                 nc=00000001, qop=auth, response=\"{response}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", \
                 algorithm={algorithm}"
            )
        );
    }
}

#[test]
fn digest_answer_matches_corrected_rfc7616_example() {
    let me = Credentials::new("J\u{e4}s\u{f8}n Doe", "Secret, or not?").unwrap();
    let field = "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
        nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", \
        charset=UTF-8";
    let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v";
    let value = digest(&format!("{field}, userhash=true")).authorize(&me, "GET", "/doe.json", None, cnonce).unwrap();
    assert_eq!(parameter(&value, "username"), "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b");
    assert_eq!(parameter(&value, "response"), "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5");
    assert_eq!(parameter(&value, "userhash"), "true");
    // Without the hash, the name in its extended form; without the charset, as it is.
    let value = digest(field).authorize(&me, "GET", "/doe.json", None, cnonce).unwrap();
    assert_eq!(parameter(&value, "username*"), "UTF-8''J%C3%A4s%C3%B8n%20Doe");
    let value = digest("Digest realm=r, nonce=n").authorize(&me, "GET", "/", None, cnonce).unwrap();
    assert_eq!(parameter(&value, "username"), "J\u{e4}s\u{f8}n Doe");
    // Marks that RFC 8187 allows are not encoded. A name that is not UTF-8 has no extended form.
    let field = "Digest realm=r, nonce=n, charset=UTF-8";
    let value =
        |user: &[u8]| digest(field).authorize(&Credentials::new(user, "p").unwrap(), "GET", "/", None, cnonce).unwrap();
    assert_eq!(parameter(&value("\u{e4}!+*".as_bytes()), "username*"), "UTF-8''%C3%A4!+%2A");
    assert!(value(b"J\xe4s").starts_with(b"Digest username=\"J\xe4s\", "));
}

#[test]
fn digest_answers_match_rfc2069_and_rfc2617_examples() {
    let me = Credentials::new("Mufasa", "Circle Of Life").unwrap();
    // RFC 2617 §3.5, with and without quality of protection.
    let fields = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
    let value =
        digest(&format!("{fields}, qop=\"auth,auth-int\"")).authorize(&me, "GET", "/dir/index.html", None, "0a4f113b");
    assert_eq!(parameter(&value.unwrap(), "response"), "6629fae49393a05397450978507c4ef1");
    let value = digest(fields).authorize(&me, "GET", "/dir/index.html", None, "0a4f113b").unwrap();
    assert_eq!(parameter(&value, "response"), "670fd8c2df070c60b045671b8b24ff02");
    for absent in ["qop", "nc", "cnonce", "algorithm"] {
        assert_eq!(parameter(&value, absent), "", "{absent}");
    }
}

#[test]
fn digest_auth_int_covers_the_body() {
    let me = Credentials::new("u", "p").unwrap();
    let response = |body: Option<&[u8]>| {
        let mut digest = digest("Digest realm=r, nonce=n, qop=\"auth-int\", algorithm=SHA-256");
        assert_eq!(digest.challenge().qop(), Qop::AuthInt);
        let hash = body.map(|body| {
            let mut hasher = digest.challenge().algorithm().hasher();
            body.chunks(3).for_each(|chunk| hasher.update(chunk));
            hasher.finish()
        });
        let value = digest.authorize(&me, "POST", "/", hash.as_deref(), "c").unwrap();
        assert_eq!(parameter(&value, "qop"), "auth-int");
        parameter(&value, "response")
    };
    assert_eq!(response(None), response(Some(b"")));
    assert_ne!(response(None), response(Some(b"a=1")));
    let a2 = DigestAlgorithm::Sha256.hash_joined(&[
        b"POST",
        b"/",
        DigestAlgorithm::Sha256.hash_joined(&[b"a=1"]).as_bytes(),
    ]);
    let a1 = DigestAlgorithm::Sha256.hash_joined(&[b"u", b"r", b"p"]);
    let expected =
        DigestAlgorithm::Sha256.hash_joined(&[a1.as_bytes(), b"n", b"00000001", b"c", b"auth-int", a2.as_bytes()]);
    assert_eq!(response(Some(b"a=1")), expected);
}

#[test]
fn digest_counts_requests_and_accepts_nextnonce() {
    let me = Credentials::new("u", "p").unwrap();
    let mut plain = digest("Digest realm=r, nonce=n, qop=auth");
    let mut next = |cnonce: &str| plain.authorize(&me, "GET", "/", None, cnonce).unwrap();
    assert_eq!((parameter(&next("a"), "nc"), parameter(&next("b"), "nc")), ("00000001".into(), "00000002".into()));
    plain.on_authentication_info(b"qop=auth, rspauth=\"x\", nextnonce=\"m, \\\"o\"");
    let value = plain.authorize(&me, "GET", "/", None, "c").unwrap();
    assert_eq!((parameter(&value, "nonce"), parameter(&value, "nc")), ("m, \"o".into(), "00000001".into()));
    for ignored in [&b"nextnonce="[..], b"nextnonce=\"a\0\"", b"x", b"", b"Basic nextnonce=\"z\"", b"nextnonce=\"open"]
    {
        let before = plain.challenge().clone();
        plain.on_authentication_info(ignored);
        assert_eq!(*plain.challenge(), before, "{}", ignored.escape_ascii());
    }

    let mut session = digest("Digest realm=r, nonce=n, qop=auth, algorithm=MD5-sess");
    let value = session.authorize(&me, "GET", "/", None, "c1").unwrap();
    let key = DigestAlgorithm::Md5.hash_joined(&[b"u", b"r", b"p"]);
    let a1 = DigestAlgorithm::Md5.hash_joined(&[key.as_bytes(), b"n", b"c1"]);
    let a2 = DigestAlgorithm::Md5.hash_joined(&[b"GET", b"/"]);
    let expected = |nonce: &[u8]| {
        DigestAlgorithm::Md5.hash_joined(&[a1.as_bytes(), nonce, b"00000001", b"c1", b"auth", a2.as_bytes()])
    };
    assert_eq!(parameter(&value, "response"), expected(b"n"));
    assert_eq!(parameter(&value, "algorithm"), "MD5-sess");
    // The server needs the client nonce for the key even without a quality of protection.
    let mut legacy = digest("Digest realm=r, nonce=n, algorithm=MD5-sess");
    let value = legacy.authorize(&me, "GET", "/", None, "c1").unwrap();
    assert_eq!((parameter(&value, "cnonce"), parameter(&value, "qop")), ("c1".into(), String::new()));
    // The key is made once (§3.4.2).
    session.on_authentication_info(b"nextnonce=m");
    let value = session.authorize(&me, "GET", "/", None, "c2").unwrap();
    assert_eq!((parameter(&value, "cnonce"), parameter(&value, "response")), ("c1".into(), expected(b"m")));
}

#[test]
fn digest_answers_again_only_to_stale_nonces() {
    let me = Credentials::new("u", "p").unwrap();
    let mut first = digest("Digest realm=r, nonce=n, qop=auth");
    let again = |field: &str| digest(field).challenge().clone();
    assert!(first.may_answer_again(&again("Digest realm=r, nonce=m, qop=auth")));
    first.authorize(&me, "GET", "/", None, "c").unwrap();
    assert!(!first.may_answer_again(&again("Digest realm=r, nonce=m, qop=auth")));
    assert!(first.may_answer_again(&again("Digest realm=r, nonce=m, qop=auth, stale=TRUE")));
    assert!(!first.may_answer_again(&again("Digest realm=r, nonce=n, qop=auth, stale=true")));
    // Whose count goes on is another matter.
    assert!(first.has_same_challenge(&again("Digest realm=r, nonce=n, qop=auth, stale=true")));
    assert!(!first.has_same_challenge(&again("Digest realm=r, nonce=m, qop=auth")));
}

#[test]
fn digest_protection_space_is_below_its_domains() {
    let asked = target("https://h/a/b");
    let covers = |domain: &str, url: &str| {
        digest(&format!("Digest realm=r, nonce=n, domain=\"{domain}\""))
            .challenge()
            .is_in_protection_space(&asked, &target(url))
    };
    assert!(covers("", "https://h/x") && !covers("", "http://h/x") && !covers("", "https://i/x"));
    assert!(covers("/a https://h/c", "https://h/a/z") && covers("/a https://h/c", "https://h/c"));
    assert!(!covers("/a", "https://h/x"));
    // A server does not hand a proof of the password to others.
    assert!(!covers("https://i/", "https://i/x") && !covers("https://i/", "https://h/x"));
}

#[test]
fn digest_values_cannot_add_parameters_or_fields() {
    let me = Credentials::new("a\"b\\c", "p").unwrap();
    let mut quoting = digest("Digest realm=\"r\\\"s\", nonce=n");
    let value = quoting.authorize(&me, "GET", "/", None, "c").unwrap();
    assert!(value.starts_with(b"Digest username=\"a\\\"b\\\\c\", realm=\"r\\\"s\", "));
    for (uri, cnonce) in [("/a b", "c"), ("/\r\n", "c"), ("/", "c\n"), ("/\u{e9}", "c")] {
        assert_eq!(quoting.authorize(&me, "GET", uri, None, cnonce), Err(AuthError::ControlByte));
    }
    assert!(!format!("{quoting:?}").contains("Credentials"));
    assert_eq!(cnonce([0xab; 16]), "ab".repeat(16));
}

#[test]
fn credentials_come_from_user_url_or_netrc() {
    let file = b"machine a login ann password 1\nmachine b login bob password 2\ndefault login d password 3";
    let user = Credentials::new("cli", "0").unwrap();
    let pair = |given: &GivenCredentials<'_>, url: &str, secrets, downgraded| {
        let identity = credentials_for_target(given, &target(url), secrets, downgraded).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        identity.credentials.map(|c| format!("{}:{}", text(c.user()), text(c.password()))).unwrap_or_default()
    };
    let (keep, drop) = (SecretHandling::Keep, SecretHandling::Drop);
    let optional = GivenCredentials { netrc: NetrcMode::Optional(file), ..GivenCredentials::default() };
    let required = GivenCredentials { netrc: NetrcMode::Required(file), ..GivenCredentials::default() };
    let both = GivenCredentials { user: Some(&user), netrc: NetrcMode::Optional(file), ..GivenCredentials::default() };
    for (given, url, secrets, downgraded, expected) in [
        (&optional, "https://a/", keep, false, "ann:1"),
        (&optional, "https://b/", drop, false, "bob:2"),
        (&optional, "http://b/", drop, true, ""),
        (&optional, "https://c/", drop, false, "d:3"),
        (&optional, "https://u:p@a/", keep, false, "u:p"),
        (&optional, "https://u:@a/", keep, false, "u:"),
        (&optional, "https://ann@a/", keep, false, "ann:1"),
        (&optional, "https://eve@a/", keep, false, "eve:"),
        (&optional, "https://u:p@a/", drop, false, "ann:1"),
        (&required, "https://a/", keep, false, "ann:1"),
        (&required, "https://ann:p@a/", keep, false, "ann:1"),
        (&required, "https://ann@a/", keep, false, "ann:1"),
        (&required, "https://u:p@a/", keep, false, "u:p"),
        (&required, "https://u:p@c/", keep, false, "u:p"),
        (&required, "https://d@c/", keep, false, "d:3"),
        (&both, "https://a/", keep, false, "cli:0"),
        (&both, "https://b/", drop, false, ""),
        (&GivenCredentials::default(), "https://u:p@a/", keep, false, "u:p"),
        (&GivenCredentials::default(), "https://a/", keep, false, ""),
        (&GivenCredentials::default(), "https://:p@a/", keep, false, ":p"),
        (&GivenCredentials::default(), "https://u@a/", keep, false, "u:"),
    ] {
        assert_eq!(pair(given, url, secrets, downgraded), expected, "{given:?} {url} {secrets:?}");
    }
    for url in ["https://@a/", "https://:@a/"] {
        for (given, expected) in [(&GivenCredentials::default(), None), (&optional, Credentials::new("ann", "1").ok())]
        {
            let identity = credentials_for_target(given, &target(url), keep, false).unwrap();
            assert_eq!(identity.credentials, expected, "{given:?} {url}");
        }
    }
    let token = GivenCredentials { bearer: Some(b"t"), ..GivenCredentials::default() };
    let bearer =
        |secrets, downgraded| credentials_for_target(&token, &target("http://a/"), secrets, downgraded).unwrap().bearer;
    assert_eq!((bearer(keep, false), bearer(drop, false), bearer(keep, true)), (Some(b"t".to_vec()), None, None));
    let ticket = GivenCredentials { negotiate: true, ..GivenCredentials::default() };
    let may = |secrets, downgraded| {
        credentials_for_target(&ticket, &target("http://a/"), secrets, downgraded).unwrap().negotiate
    };
    assert_eq!((may(keep, false), may(drop, false), may(keep, true)), (true, false, false));
    let broken =
        GivenCredentials { netrc: NetrcMode::Optional(b"machine a password \"x\\n\""), ..GivenCredentials::default() };
    assert_eq!(
        credentials_for_target(&broken, &target("http://a/"), keep, false),
        Err(CredentialsError::Auth(AuthError::ControlByte))
    );
}

#[test]
fn credentials_begin_with_their_scheme() {
    assert_eq!(AuthScheme::from_credentials(b"Basic dTpw"), AuthScheme::Basic);
    assert_eq!(AuthScheme::from_credentials(b"bearer"), AuthScheme::Bearer);
    assert_eq!(AuthScheme::from_credentials(b"Odd x y"), AuthScheme::Other("odd".into()));
}

#[test]
fn malformed_item_ends_after_its_quoted_string() {
    for (field, expected) in [
        (r#"bad"x\",y", Basic realm=z"#, "Basic(realm=z)"),
        (r#"bad"x\\", Basic realm=z"#, "Basic(realm=z)"),
        (r#"bad\"x, Basic realm=z", Digest"#, "Digest()"),
    ] {
        assert_eq!(read(&[field]), expected, "{field}");
    }
}

#[test]
fn last_allowed_challenge_has_its_parameters() {
    let field = vec!["Basic realm=a, x=b"; MAX_CHALLENGES].join(", ");
    let found = parse_challenges([field.as_bytes()]);
    assert_eq!(found.len(), MAX_CHALLENGES);
    assert_eq!(found[MAX_CHALLENGES - 1].get("x"), Some(&b"b"[..]));
}

#[test]
fn digest_challenge_names_its_realm() {
    let challenge = parse_challenges([&b"Digest realm=\"a b\", nonce=n"[..]]).remove(0);
    assert_eq!(DigestChallenge::new(&challenge).unwrap().realm(), b"a b");
}

#[test]
fn debug_of_credentials_shows_no_secret() {
    let user = Credentials::new("name", "word").unwrap();
    let given = GivenCredentials {
        user: Some(&user),
        bearer: Some(b"token"),
        netrc: NetrcMode::Required(b"machine h password word"),
        ..GivenCredentials::default()
    };
    let text = format!("{given:?}");
    assert!(text.contains("user: true") && text.contains("bearer: true"), "{text}");
    assert!(!text.contains("word") && !text.contains("token"), "{text}");
}

#[test]
fn digest_challenge_may_be_stale() {
    let is_stale = |field: &[u8]| DigestChallenge::new(&parse_challenges([field]).remove(0)).unwrap().is_stale();
    assert!(is_stale(b"Digest realm=a, nonce=n, stale=TRUE"));
    assert!(!is_stale(b"Digest realm=a, nonce=n, stale=false") && !is_stale(b"Digest realm=a, nonce=n"));
}

#[test]
fn constants_allow_their_auth_scheme_alone() {
    let allowed = |all: AllowedAuthSchemes| [all.basic, all.digest, all.bearer, all.negotiate];
    assert_eq!(allowed(AllowedAuthSchemes::NONE), [false; 4]);
    assert_eq!(allowed(AllowedAuthSchemes::ANY), [true, true, false, false]);
    assert_eq!(allowed(AllowedAuthSchemes::BASIC), [true, false, false, false]);
    assert_eq!(allowed(AllowedAuthSchemes::DIGEST), [false, true, false, false]);
    assert_eq!(allowed(AllowedAuthSchemes::NEGOTIATE), [false, false, false, true]);
}

#[test]
fn debug_of_netrc_mode_shows_no_file() {
    let file = b"machine h login ann password word";
    for (mode, expected) in [
        (NetrcMode::Off, "Off"),
        (NetrcMode::Optional(file), "Optional(..)"),
        (NetrcMode::Required(file), "Required(..)"),
    ] {
        assert_eq!(format!("{mode:?}"), expected);
    }
}

#[test]
fn debug_of_digest_names_the_challenge() {
    assert_eq!(format!("{:?}", Credentials::new("u", "word").unwrap()), "Credentials(..)");
    let session = format!("{:?}", digest("Digest realm=\"area\", nonce=n, qop=auth"));
    assert!(session.starts_with("DigestSession { challenge: ") && session.contains("count: 0"), "{session}");
    let request = RequestCredentials { bearer: Some(b"token".to_vec()), ..RequestCredentials::default() };
    let expected = "Identity { credentials: None, bearer: true, negotiate: false }";
    assert_eq!(format!("{request:?}"), expected);
}
