use super::*;

fn t(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn kind(text: &str) -> UrlErrorKind {
    match Target::parse(text) {
        Err(TargetError::Malformed { kind }) => kind,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn urls_are_parsed_as_by_curl() {
    // (given, Host, request target); the first columns were run through curl.
    let table = [
        ("http://h/a", "h", "/a"),
        ("http:/h/a", "h", "/a"),
        ("http:///h/a", "h", "/a"),
        ("HTTP://HoSt/A?B", "host", "/A?B"),
        ("www.example.com", "www.example.com", "/"),
        ("ftp.example.com/x", "ftp.example.com", "/x"),
        ("localhost:8080?q", "localhost:8080", "/?q"),
        ("http://h:80/", "h", "/"),
        ("https://h:443", "h", "/"),
        ("https://h:80", "h:80", "/"),
        ("http://h:", "h", "/"),
        ("http://h:0/", "h:0", "/"),
        ("http://h:00065535/", "h:65535", "/"),
        ("http://h?q#f", "h", "/?q"),
        ("http://h#f?q", "h", "/"),
        ("http://h/?", "h", "/?"),
        ("http://h/a??b?c", "h", "/a??b?c"),
        ("http://h/..", "h", "/"),
        ("http://h/a/b/..", "h", "/a/"),
        ("http://h/a/../b/./c/%2e%2E/d", "h", "/b/d"),
        ("http://h//a//../b", "h", "//a/b"),
        ("http://h/.../.a/..b/%2", "h", "/.../.a/..b/%2"),
        ("http://h/a?/../b", "h", "/a?/../b"),
        ("http://h/\u{e9}?\u{e9}", "h", "/%C3%A9?%C3%A9"),
        ("http://h/a\\b\"<>|^`{}", "h", "/a\\b\"<>|^`{}"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1", "/"),
        ("mailto:x@y", "y", "/"),
        ("http://u:p@h/", "h", "/"),
        ("http://b\u{fc}cher.example/", "xn--bcher-kva.example", "/"),
        ("http://fa\u{df}.de/", "xn--fa-hia.de", "/"),
        ("http://a_b-c~.h./", "a_b-c~.h.", "/"),
        ("http://a\u{3002}b/", "a.b", "/"),
    ];
    for (given, authority, line) in table {
        let target = t(given);
        assert_eq!((&*target.authority(), target.path_and_query()), (authority, line), "{given}");
    }
}

#[test]
fn ambiguous_url_hosts_are_refused() {
    let hosts = [
        "http://a@b@c/",
        "http://a\\@b/",
        "http://a\\b/",
        "http://evil%2Fgood/",
        "http://evil%00/",
        "http://a%40b/",
        "http://a;b/",
        "http://a..b/",
        "http://.a/",
        "http://./",
        "http://a,b/",
        "http://a%5cb/",
        "http://a%0d%0ab/",
        "http://a|b/",
        "http://a%/",
        "http://a%zz/",
        "http://[::1]x/",
        "http://a[b]/",
        "http://\u{ff0f}b/",
        "http://a\u{ff20}b/",
        "http://a\u{ff05}00/",
        "http://%ff/",
        "http://u%0ap@h/",
        "http://u:%00@h/",
        "http://a=b/",
        "http://(a)/",
    ];
    for text in hosts {
        let kind = kind(text);
        assert!(
            matches!(kind, UrlErrorKind::Host | UrlErrorKind::Userinfo | UrlErrorKind::Port | UrlErrorKind::Idna),
            "{text}: {kind:?}"
        );
    }
    for text in ["", "http://", "http:///", "http://@/", "http://:80/", "//h/", "/a", "?q", "http://u@/x"] {
        assert!(matches!(kind(text), UrlErrorKind::NoHost), "{text}");
    }
    for text in [
        "http://h:65536/",
        "http://h:8x/",
        "http://h:+1/",
        "http://h:-1/",
        "http:h:80",
        "http://a:b:1/",
        "::1",
        "http://h:%38/",
        "http:",
        "h:?q",
        "u:p@h:",
        "[::1]:",
    ] {
        assert!(matches!(kind(text), UrlErrorKind::Port | UrlErrorKind::NoHost), "{text}");
    }
    for text in ["http://h/a b", "http://h/\t", "http://h/\r\nX: y", " http://h/", "http://h/\u{7f}", "http://a b/"] {
        assert!(matches!(kind(text), UrlErrorKind::Byte(_)), "{text:?}");
    }
    assert_eq!(kind("http://h/\0"), UrlErrorKind::Nul(9));
    assert_eq!(kind("http:////h/"), UrlErrorKind::Slashes);
    let longest = format!("http://h/{}", "a".repeat(MAX_LEN - 9));
    assert_eq!(kind(&format!("{longest}a")), UrlErrorKind::TooLong);
    assert!(Target::parse(&longest).is_ok());
    assert_eq!(kind(&format!("http://{}/", "a".repeat(65_536))), UrlErrorKind::Host);
    assert!(Target::parse(&format!("http://{}/", "a".repeat(65_535))).is_ok());
    // What IDNA makes of it is longer than a label may be.
    assert_eq!(
        kind("http://too-long-IDN-name-c\u{fc}rl-r\u{fc}le\u{df}-la-la-la-dee-da-flooby-nooby.local/"),
        UrlErrorKind::Idna
    );
    assert!(Target::parse("http://r\u{e4}ksm\u{f6}rg\u{e5}s.example./").is_ok());
}

#[test]
fn url_schemes_other_than_http_are_refused() {
    for (text, scheme) in
        [("ftp://h/", "ftp"), ("FILE:///etc/passwd", "file"), ("foo:/x", "foo"), ("javascript:/x", "javascript")]
    {
        let error = Target::parse(text).unwrap_err();
        assert_eq!(error, TargetError::UnsupportedScheme(scheme.to_owned()));
        assert_eq!(error.exit_code(), 1);
    }
    assert_eq!(Target::parse("http://").unwrap_err().exit_code(), 3);
    let target = Target::parse_with("h/a/../b", Scheme::Https, true).unwrap();
    assert_eq!(target.to_url(), "https://h/a/../b");
    // That holds for the URL itself, not for where it leads.
    assert_eq!(target.join("./c").unwrap().path(), "/c");
}

#[test]
fn ipv4_address_is_recognised_in_any_spelling() {
    let table = [
        ("127.1", Some("127.0.0.1")),
        ("0x7f.1", Some("127.0.0.1")),
        ("0X7F000001", Some("127.0.0.1")),
        ("0177.0.0.01", Some("127.0.0.1")),
        ("2130706433", Some("127.0.0.1")),
        ("1.2.3.4", Some("1.2.3.4")),
        ("1.2.65535", Some("1.2.255.255")),
        ("1.16777215", Some("1.255.255.255")),
        ("4294967295", Some("255.255.255.255")),
        ("0", Some("0.0.0.0")),
        ("\u{ff11}\u{ff12}\u{ff17}.0.0.1", Some("127.0.0.1")),
        ("4294967296", None),
        ("1.16777216", None),
        ("256.1", None),
        ("1.2.3.256", None),
        ("1.2.3.4.5", None),
        ("08.1", None),
        ("0x.1", None),
        ("127.0.0.1.", Some("127.0.0.1")),
        ("2130706433.", Some("127.0.0.1")),
        ("1.2.3.4.5.", None),
        ("1a.2", None),
        ("0xg", None),
    ];
    for (given, address) in table {
        let target = t(&format!("http://{given}/"));
        match address {
            Some(address) => {
                assert_eq!(target.host(), &Host::V4(address.parse().unwrap()), "{given}");
                assert_eq!((target.host_text(), &*target.authority()), (address, address));
            }
            None => assert_eq!(target.host(), &Host::Name(given.to_owned())),
        }
    }
}

#[test]
fn ipv6_zone_resembling_an_encoded_byte_is_refused() {
    // Whoever undoes percent-encoding first, as curl, sees ::1, fe80::11, fe80::1:1 in the first
    // three.
    for text in ["[::%31]", "[fe80::1%31]", "[fe80::1%3a1]", "[fe80::1%12]", "[fe80::1%aab]", "[::1%25]"] {
        assert_eq!(kind(&format!("http://{text}/")), UrlErrorKind::Ipv6, "{text}");
    }
    for (zone, is_accepted) in
        [("eth0.1-a_b~c", true), (&"z".repeat(15), true), (&"z".repeat(16), false), ("a!b", false)]
    {
        let url = format!("http://[fe80::1%25{zone}]/");
        assert_eq!(
            Target::parse(&url).map_err(|_| kind(&url)).err(),
            (!is_accepted).then_some(UrlErrorKind::Ipv6),
            "{zone}"
        );
    }
    for (text, zone) in [("%1", "1"), ("%2531", "31"), ("%2525", "25"), ("%eno1", "eno1"), ("%lo", "lo"), ("%b", "b")] {
        let expected = Host::V6("fe80::1".parse().unwrap(), Some(zone.into()));
        assert_eq!(t(&format!("http://[fe80::1{text}]/")).host(), &expected, "{text}");
    }
}

#[test]
fn ipv6_addresses_and_zones_are_parsed() {
    let target = t("http://[FE80:0::1%25eth0]:8080/x");
    assert_eq!(target.host(), &Host::V6("fe80::1".parse().unwrap(), Some("eth0".into())));
    assert_eq!(target.host_text(), "fe80::1");
    assert_eq!(target.authority(), "[fe80::1]:8080");
    assert_eq!(target.to_url(), "http://[fe80::1%25eth0]:8080/x");
    assert_eq!(t("http://[fe80::1%eth0]:8080/x").origin(), target.origin());
    assert_ne!(t("http://[fe80::1%25eth1]:8080/x").origin(), target.origin());
    assert_eq!(t("http://[::1]").authority(), "[::1]");
    for text in [
        "http://[::1",
        "http://[]/",
        "http://[1.2.3.4]/",
        "http://[v1.x]/",
        "http://[::1%]/",
        "http://[::1%25a/b]/",
        "http://[::g]/",
    ] {
        assert_eq!(kind(text), UrlErrorKind::Ipv6, "{text}");
    }
}

#[test]
fn equal_origins_compare_equal_in_any_spelling() {
    let same = ["http://Ex.com", "http://ex.COM:80/a", "ex.com:080?q", "http://u:p@ex.com/#f", "http://e%78.com/"]
        .map(|s| t(s).origin());
    assert!(same.iter().all(|origin| *origin == same[0] && origin.to_string() == "http://ex.com"));
    for other in ["https://ex.com/", "http://ex.com:81/", "http://ex.com./", "http://www.ex.com/"] {
        assert_ne!(t(other).origin(), same[0], "{other}");
    }
}

#[test]
fn url_userinfo_is_decoded_and_never_printed() {
    let info = |s: &str| t(s).userinfo();
    let pair = |u: &str, p: &str| Some((u.to_owned(), p.to_owned()));
    assert_eq!(info("http://h/"), None);
    assert_eq!(info("http://u@h/"), pair("u", ""));
    assert_eq!(info("http://u%40x:p%2F%3a:z@h/"), pair("u@x", "p/::z"));
    assert_eq!(info("http://:@h/"), pair("", ""));
    assert_eq!(info("http://u%:%g1@h/"), pair("u%", "%g1"));
    assert_eq!(t("http://%e9@h/").userinfo_bytes(), Some((vec![0xe9], vec![])));
    let target = t("http://user:hunter2@h/p?q#frag");
    for text in [target.to_string(), target.to_url(), format!("{target:?}"), format!("{:?}", target.origin())] {
        assert!(!text.contains("hunter2") && !text.contains("user") && !text.contains("frag"), "{text}");
    }
    let error = Target::parse("http://user:hunter2@h@x/").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn rfc3986_reference_examples_are_resolved() {
    let base = t("http://a/b/c/d;p?q");
    let table = [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"),
    ];
    for (reference, expected) in table {
        assert_eq!(base.join(reference).unwrap().to_url(), expected, "{reference}");
    }
}

#[test]
fn references_resolve_as_in_browsers_and_curl() {
    let base = t("https://u:p@h:8443/a/b?c#frag");
    let table = [
        ("/x y?z w", "https://h:8443/x%20y?z+w"),
        (" /x \r\n", "https://h:8443/x"),
        ("/\u{e9}", "https://h:8443/%C3%A9"),
        ("//o/x", "https://o/x"),
        ("HTTP://o", "http://o/"),
        ("\\\\evil/x", "https://h:8443/a/\\\\evil/x"),
        ("http:/o/x", "http://o/x"),
        ("//b\u{fc}cher.example", "https://xn--bcher-kva.example/"),
        ("a:b", ""),
        ("javascript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("//", ""),
        ("///o/x", "https://o/x"),
        ("////x", ""),
        ("http:x", ""),
        ("//a@b@c/", ""),
        ("/x\ry", ""),
        ("/x\0", ""),
        ("/x\ty", ""),
        ("//o\\@h/", ""),
        ("http:////x", ""),
    ];
    for (reference, expected) in table {
        let joined = base.join(reference).map(|target| target.to_url()).unwrap_or_default();
        assert_eq!(joined, expected, "{reference:?}");
    }
    // Fragment: inherited unless there is a new one. Userinfo: only where no host is named.
    assert_eq!(base.join("//o/x").unwrap().fragment(), Some("frag"));
    assert_eq!(base.join("x#new").unwrap().fragment(), Some("new"));
    assert_eq!(base.join("x#").unwrap().fragment(), Some(""));
    assert!(base.join("x").unwrap().userinfo().is_some());
    assert_eq!(base.join("//h:8443/x").unwrap().userinfo(), None);
    assert_eq!(base.join("x").unwrap().explicit_port(), Some(8443));
}

#[test]
fn parse_near_gives_same_target_as_parse() {
    let origins = [
        "http://h.example",
        "http://h.example:8080",
        "https://127.0.0.1:8443",
        "http://[::1]:81",
        "http://[fe80::1%25lo]",
    ];
    let tails = [
        "",
        "/",
        "/a/../b?c=1#d",
        "?q",
        "#f",
        ":81/",
        "0/",
        ".evil/",
        "@evil/",
        "\\@evil/",
        "/a b",
        "/\u{e9}",
        "/x\r\n",
        "%2e/",
        "/./@:",
    ];
    for known in origins {
        let known = t(known).origin();
        for written in origins {
            for tail in tails {
                for as_is in [false, true] {
                    let text = format!("{written}{tail}");
                    let near = Target::parse_near(&text, Some(&known), Scheme::Http, as_is);
                    assert_eq!(near, Target::parse_with(&text, Scheme::Http, as_is), "{text} near {known}");
                }
            }
        }
    }
    let known = t("http://h.example:8080/").origin();
    let shares_origin =
        |text: &str| Target::parse_near(text, Some(&known), Scheme::Http, false).unwrap().shares_origin(&known);
    assert!(
        shares_origin("http://h.example:8080?q")
            && !shares_origin("HTTP://h.example:8080/")
            && !shares_origin("http://h.example:808/")
    );
}

#[test]
fn url_errors_tell_how_to_fix_them() {
    let told = |text: &str| Target::parse(text).unwrap_err().to_string();
    for (text, remedy) in [
        ("http://", "no host: write http://HOST/PATH"),
        ("http:///", "no host: write http://HOST/PATH"),
        ("http://:80/", "no host: write http://HOST/PATH"),
        ("http:////h/", "belong two slashes: http://HOST/"),
        ("\u{feff}http://h/", "begins with a byte order mark: save the file without one"),
        ("%FF%FEh\0t\0", "a NUL byte at offset 7; if the URL is from a list in UTF-16, save that as UTF-8"),
        ("\u{feff}h", "begins with a byte order mark: save the file without one"),
    ] {
        assert!(told(text).contains(remedy), "{text}: {}", told(text));
    }
}

#[test]
fn pushed_url_equals_the_returned_one() {
    let target = t("https://u:p@H:444/\u{e4}?c#d");
    let mut text = String::from("- ");
    target.push_url(&mut text);
    assert_eq!(text, "- https://h:444/%C3%A4?c");
    assert_eq!(text[2..], target.to_url());
}

#[test]
fn debug_of_an_origin_is_its_url() {
    assert_eq!(format!("{:?}", t("https://u:p@H:444/a").origin()), "Origin(https://h:444)");
}

#[test]
fn displayed_url_has_no_userinfo_and_fragment() {
    assert_eq!(t("https://u:p@H:444/a?c#d").to_string(), "https://h:444/a?c");
}

#[test]
fn ports_of_each_length_are_written() {
    for port in [1, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 65_535] {
        let url = format!("https://h:{port}/");
        assert_eq!(t(&url).to_url(), url);
    }
}

#[test]
fn url_password_may_be_empty() {
    let has_password = |url| t(url).has_password();
    assert!(has_password("http://u:@h/") && has_password("http://u:p@h/") && has_password("http://:@h/"));
    assert!(!has_password("http://u@h/") && !has_password("http://h/"));
}

#[test]
fn authority_is_written_as_it_is_returned() {
    for (url, expected) in [("http://u:p@H:80/", "h"), ("https://h:80/", "h:80"), ("http://[::1]:8/", "[::1]:8")] {
        let target = t(url);
        let mut written = String::new();
        target.write_authority(&mut written).unwrap();
        assert_eq!((&*target.authority(), &*written), (expected, expected));
    }
}
