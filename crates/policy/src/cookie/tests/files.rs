//! Tests of cookie files and of saves.

use super::*;

#[test]
fn cookie_removed_during_two_saves_stays_unsaved() {
    let mut jar = jar_of("http://h.example/", &["a=b"]);
    let first = jar.changes();
    jar.retain(|_| false);
    let second = jar.changes();
    jar.mark_saved(&first);
    jar.mark_saved(&second);
    assert_eq!(jar.changes().cookies_to_remove().len(), 1, "the first save wrote the cookie");
}

#[test]
fn lwp_values_are_quoted_where_no_token() {
    for (value, expected) in [("b", "b"), ("!~", "!~"), ("", "\"\""), ("b c", "\"b c\""), ("b\"c\\", "\"b\\\"c\\\\\"")]
    {
        let jar = jar_of("http://h.example/", &[&format!("a={value}")]);
        let text = String::from_utf8(lwp::write(&jar, NOW)).unwrap();
        assert!(text.contains(&format!("Set-Cookie3: a={expected}; path=\"/\"; ")), "{text}");
    }
}

#[test]
fn file_line_without_domain_belongs_to_the_host() {
    let read = |line: &str, host| {
        let file = netscape::read_for_host(format!("Set-Cookie: {line}\n").as_bytes(), NOW, host);
        file.cookies.first().map(|cookie| (cookie.parts().domain.clone(), cookie.parts().host_only))
    };
    let of = |domain: &str, host_only| Some((domain.to_owned(), host_only));
    assert_eq!(read("a=b", Some("h.example")), of("h.example", true));
    assert_eq!(read("a=b; domain=x.example", Some("h.example")), of("x.example", false));
    assert_eq!(read("a=b; domain=co.uk", Some("h.example")), of("co.uk", true));
    assert_eq!(read("a=b; domain=x.example", None), of("x.example", false));
    assert_eq!(read("a=b", None), None);
}

#[test]
fn cookie_file_expiry_has_its_special_values() {
    let expiry = |text: &str| {
        let line = format!("h.example\tFALSE\t/\tFALSE\t{text}\ta\tb\n");
        let file = netscape::read(line.as_bytes(), 0);
        (file.cookies.first().map(|cookie| cookie.parts().expires), file.refused)
    };
    assert_eq!([expiry("0"), expiry("-0"), expiry("")], [(Some(None), 0); 3]);
    assert_eq!(expiry("7"), (Some(Some(7)), 0));
    assert_eq!(expiry("7.9"), (Some(Some(7)), 0));
    assert_eq!(expiry("99999999999999999999"), (Some(Some(u64::MAX)), 0));
    assert_eq!(expiry("-7"), (None, 0), "it has expired");
    assert_eq!([expiry("-"), expiry("."), expiry("7x"), expiry("7.x")], [(None, 1); 4]);
}

#[test]
fn written_expiry_fits_signed_numbers() {
    for (expires, expected) in [(None, "0"), (Some(u64::MAX), "9223372036854775807"), (Some(NOW + 1), "1800000001")] {
        let mut jar = CookieStore::new();
        let parts =
            CookieParts { domain: "h.example".into(), path: b"/".into(), name: b"a".into(), ..Default::default() };
        jar.insert(Cookie::new(CookieParts { expires, ..parts }).unwrap());
        let text = String::from_utf8(netscape::write(&jar, NOW)).unwrap();
        assert!(text.contains(&format!("\tFALSE\t{expected}\ta\t\n")), "{text}");
    }
}

/// Some writers leave the path out.
#[test]
fn secure_file_line_may_lack_its_path() {
    let read = |secure: &str| {
        let file = netscape::read(format!("h.example\tFALSE\t{secure}\t0\ta\tb\n").as_bytes(), NOW);
        file.cookies.first().map(|cookie| (cookie.parts().path.clone(), cookie.parts().secure))
    };
    assert_eq!([read("TRUE"), read("FALSE")], [true, false].map(|secure| Some((b"/".to_vec(), secure))));
}

#[test]
fn program_and_file_cookies_have_bounded_paths() {
    let with_path = |length: usize| {
        let path = [b"/", &vec![b'p'; length - 1][..]].concat();
        Cookie::new(CookieParts { name: b"a".into(), domain: "h.example".into(), path, ..Default::default() }).err()
    };
    assert_eq!([with_path(1024), with_path(1025)], [None, Some(CookieRefusal::TooLong)]);
}

#[test]
fn host_prefix_needs_a_cookie_of_one_host() {
    let refusal = |host_only| {
        let (name, path) = (b"__Host-a".to_vec(), b"/".to_vec());
        let parts = CookieParts { name, path, secure: true, host_only, ..Default::default() };
        Cookie::new(CookieParts { domain: "h.example".into(), ..parts }).err()
    };
    assert_eq!([refusal(true), refusal(false)], [None, Some(CookieRefusal::HostPrefix)]);
}

#[test]
fn cookies_of_two_paths_are_two_cookies() {
    let jar = jar_of("http://h.example/", &["a=1; Path=/x", "a=2; Path=/y", "a=3; Path=/x"]);
    assert_eq!(["x", "y"].map(|path| sent(&jar, &format!("http://h.example/{path}"))), ["a=3", "a=2"]);
}

#[test]
fn secure_cookie_of_a_sibling_host_hides_nothing() {
    let mut jar = jar_of("https://a.h.example/", &["s=1; Secure"]);
    let mut set = |url: &str| jar.set(&target(url), b"s=2", NOW).err();
    assert_eq!(set("http://b.h.example/"), None);
    assert_eq!(set("http://a.h.example/"), Some(CookieRefusal::HidesSecure));
}
