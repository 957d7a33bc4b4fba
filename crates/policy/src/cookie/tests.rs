//! Tests of cookies: Set-Cookie, retrieval, limits, files, and merging with a file.

use super::*;
use crate::target::Target;

mod files;

const NOW: u64 = 1_800_000_000;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

fn jar_of(url: &str, cookies: &[&str]) -> CookieStore {
    let mut jar = CookieStore::new();
    for cookie in cookies {
        jar.set(&target(url), cookie.as_bytes(), NOW).unwrap_or_else(|e| panic!("{cookie}: {e}"));
    }
    jar
}

fn sent(jar: &CookieStore, url: &str) -> String {
    sent_at(jar, url, NOW)
}

fn sent_at(jar: &CookieStore, url: &str, now: u64) -> String {
    String::from_utf8(jar.cookie_for(&target(url), now).unwrap_or_default()).unwrap()
}

fn refusal(url: &str, cookie: &str) -> Option<CookieRefusal> {
    CookieStore::new().set(&target(url), cookie.as_bytes(), NOW).err()
}

#[test]
fn cookie_name_and_value_are_parsed_like_browsers() {
    for (field, expected) in [
        ("a=b", "a=b"),
        (" a = b ; x", "a=b"),
        ("a=", "a="),
        ("a=b=c==", "a=b=c=="),
        ("a=\"b c\"", "a=\"b c\""),
        ("a\t=\tb", "a=b"),
        ("a b=c", "a b=c"),
    ] {
        assert_eq!(sent(&jar_of("https://h.example/", &[field]), "https://h.example/"), expected, "{field:?}");
    }
    let long = "x".repeat(MAX_NAME_AND_VALUE);
    for (field, why) in [
        ("", CookieRefusal::NoName),
        ("a", CookieRefusal::NoName),
        ("=b", CookieRefusal::NoName),
        ("a; b=c", CookieRefusal::NoName),
        ("a=b\0", CookieRefusal::ControlByte),
        ("a=b\r\nSet-Cookie: x=y", CookieRefusal::ControlByte),
        ("a=b; path=/\x7f", CookieRefusal::ControlByte),
        ("a=b\x01c", CookieRefusal::ControlByte),
        ("a=b\tc", CookieRefusal::ControlByte),
        ("a\tb=c", CookieRefusal::ControlByte),
        (&format!("a={long}"), CookieRefusal::TooLong),
    ] {
        assert_eq!(refusal("https://h.example/", field), Some(why), "{field:?}");
    }
    assert_eq!(refusal("https://h.example/", &format!("a={}", &long[1..])), None);
}

#[test]
fn cookie_domain_attribute_sets_the_scope() {
    for (host, domain, gets, not) in [
        ("www.a.example", "", "www.a.example", "x.www.a.example"),
        ("www.a.example", "a.example", "other.a.example", "ba.example"),
        ("www.a.example", ".", "www.a.example", "a.example"),
        ("www.a.example", ".A.Example", "a.example", "example"),
        ("www.a.example", "www.a.example", "x.www.a.example", "a.example"),
        ("a.co.uk", "a.co.uk", "b.a.co.uk", "b.co.uk"),
        // A public suffix, for itself alone.
        ("co.uk", "co.uk", "co.uk", "a.co.uk"),
        ("github.io", "", "github.io", "a.github.io"),
        ("localhost", "localhost", "localhost", "a.localhost"),
        ("intranet", "", "intranet", "a.intranet"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", "1.127.0.0.1"),
        ("[::1]", "[::1]", "[::1]", "[::2]"),
        ("[fe80::1%25a]", "", "[fe80::1%25a]", "[fe80::1%25b]"),
        ("a.example.", "", "a.example.", "a.example"),
    ] {
        let jar = jar_of(&format!("https://{host}/"), &[&format!("n=v; Domain={domain}")]);
        assert_eq!(sent(&jar, &format!("https://{gets}/")), "n=v", "{host} {domain}");
        assert_eq!(sent(&jar, &format!("https://{not}/")), "", "{host} {domain}");
    }
}

#[test]
fn cookies_for_foreign_and_public_domains_are_refused() {
    use CookieRefusal::{Domain, ForeignDomain, PublicSuffix};
    for (host, domain, why) in [
        ("www.a.example", "b.example", ForeignDomain),
        ("www.a.example", "x.www.a.example", ForeignDomain),
        ("wwwa.example", "a.example", ForeignDomain),
        ("a.example", "example", PublicSuffix),
        ("a.co.uk", "co.uk", PublicSuffix),
        // CVE-2023-46218: in any case; CVE-2022-27779: with a trailing dot.
        ("a.co.uk", "Co.UK", PublicSuffix),
        ("a.co.uk", "co.uk.", Domain),
        ("a.example", "a.example.", Domain),
        ("a.example.", "a.example.", Domain),
        ("a.example.", "a.example", ForeignDomain),
        ("a.github.io", "github.io", PublicSuffix),
        ("x.y.ck", "y.ck", PublicSuffix),
        ("a.xn--55qx5d.cn", "xn--55qx5d.cn", PublicSuffix),
        ("a.example", "..a.example", Domain),
        ("a.example", "a..example", Domain),
        ("a.example", "a.example/", Domain),
        ("a.example", "a.example:443", Domain),
        ("a.example", "\u{e9}.example", Domain),
        ("127.0.0.1", "0.0.1", ForeignDomain),
        ("127.0.0.1", "1", ForeignDomain),
        ("127.0.0.1", "127.0.0.2", ForeignDomain),
        ("[::1]", "::2", ForeignDomain),
        ("x.3.4", "4", PublicSuffix),
    ] {
        let found = refusal(&format!("https://{host}/"), &format!("n=v; domain={domain}"));
        assert_eq!(found, Some(why), "{host} {domain}");
    }
    // A name's cookie does not go to an address that ends like it.
    let jar = jar_of("https://x.3.4/", &["n=v; Domain=3.4"]);
    assert_eq!(sent(&jar, "https://1.2.3.4/"), "");
}

#[test]
fn cookie_path_attribute_sets_the_scope() {
    for (url, path, gets, not) in [
        ("https://h/a/b/c", "", "https://h/a/b/x", "https://h/a/"),
        ("https://h/a/b/", "", "https://h/a/b", "https://h/a"),
        ("https://h/a", "", "https://h/", "http://i/"),
        ("https://h/a", "; Path=/x", "https://h/x/y", "https://h/xy"),
        ("https://h/a", "; Path=x", "https://h/b", "http://i/"),
        ("https://h/a", "; Path=/x; path=", "https://h/b", "http://i/"),
        ("https://h/a", "; Path=/\u{e9}", "https://h/nothing/\u{e9}", "https://h/\u{e9}"),
    ] {
        let jar = jar_of(url, &[&format!("n=v{path}")]);
        assert_eq!(sent(&jar, not), "", "{path} {not}");
        if !gets.contains("nothing") {
            assert_eq!(sent(&jar, gets), "n=v", "{path} {gets}");
        }
    }
    // Too long an attribute is ignored.
    let jar = jar_of("https://h/", &[&format!("n=v; path=/{}", "x".repeat(MAX_ATTRIBUTE))]);
    assert_eq!(sent(&jar, "https://h/"), "n=v");
}

#[test]
fn cookie_expiry_follows_max_age_and_expires() {
    let end = |attributes: &str| {
        let jar = jar_of("https://h/", &[&format!("n=v{attributes}")]);
        jar.iter().next().map(|cookie| cookie.parts().expires)
    };
    let year_2020 = "expires=Wed, 01 Jan 2020 00:00:00 GMT";
    assert_eq!(end(""), Some(None));
    assert_eq!(end("; max-age=60"), Some(Some(NOW + 60)));
    assert_eq!(end("; max-age=99999999999999999999999999"), Some(Some(NOW + MAX_AGE)));
    assert_eq!(end("; expires=Fri, 31 Dec 9999 23:59:59 GMT"), Some(Some(NOW + MAX_AGE)));
    assert_eq!(end(&format!("; max-age=60; {year_2020}")), Some(Some(NOW + 60)));
    assert_eq!(end("; max-age=; max-age=x; max-age=+1; max-age=1.5; max-age=-"), Some(None));
    assert_eq!(end("; expires=never"), Some(None));
    for ended in ["; max-age=0", "; max-age=-1", &format!("; {year_2020}"), "; max-age=60; max-age=0"] {
        assert_eq!(end(ended), None, "{ended}");
    }
    let mut jar = jar_of("https://h/", &["a=1; max-age=10", "b=1"]);
    assert_eq!(sent_at(&jar, "https://h/", NOW + 9), "a=1; b=1");
    assert_eq!(sent_at(&jar, "https://h/", NOW + 10), "b=1");
    assert_eq!(jar.set(&target("https://h/"), b"b=; max-age=0", NOW), Ok(SetCookieOutcome::Removed));
    assert_eq!(jar.set(&target("https://h/"), b"b=; max-age=0", NOW), Ok(SetCookieOutcome::Nothing));
    jar.clear_expired(NOW + 10);
    assert!(jar.is_empty());
    // A clock at its end overflows nothing.
    assert!(jar.set(&target("https://h/"), b"a=1; max-age=9", u64::MAX).is_ok());
}

#[test]
fn secure_cookies_need_tls() {
    let jar = jar_of("https://h.example/", &["s=1; Secure", "p=1"]);
    assert_eq!(sent(&jar, "https://h.example/"), "s=1; p=1");
    assert_eq!(sent(&jar, "http://h.example/"), "p=1");
    assert_eq!(refusal("http://h.example/", "s=1; Secure"), Some(CookieRefusal::Insecure));
    for own in ["http://localhost/", "http://127.0.0.1/", "http://[::1]/"] {
        assert_eq!(sent(&jar_of(own, &["s=1; secure"]), own), "s=1", "{own}");
    }
    for other in ["http://127.0.0.2/", "http://a.localhost/", "http://localhost./"] {
        assert_eq!(refusal(other, "s=1; secure"), Some(CookieRefusal::Insecure), "{other}");
    }
}

#[test]
fn plain_http_cannot_hide_a_secure_cookie() {
    let mut jar = jar_of("https://www.a.example/", &["s=1; Secure; Domain=a.example; Path=/in"]);
    let mut set = |url: &str, cookie: &str| jar.set(&target(url), cookie.as_bytes(), NOW).err();
    let hides = Some(CookieRefusal::HidesSecure);
    for cookie in ["s=2; Domain=a.example; Path=/in", "s=2; Path=/in/side", "s=; max-age=0; Domain=a.example; Path=/in"]
    {
        assert_eq!(set("http://www.a.example/", cookie), hides, "{cookie}");
    }
    assert_eq!(set("http://x.www.a.example/", "s=2; Path=/in"), hides);
    // Another name, another path, another site, or TLS.
    assert_eq!(set("http://www.a.example/", "S=2; Path=/in"), None);
    assert_eq!(set("http://www.a.example/", "s=2; Path=/"), None);
    assert_eq!(set("http://b.example/", "s=2; Path=/in"), None);
    assert_eq!(set("https://www.a.example/", "s=2; Domain=a.example; Path=/in"), None);
    let host_only = jar_of("https://a.example/", &["s=1; Secure"]);
    let mut jar = host_only.clone();
    assert_eq!(jar.set(&target("http://b.a.example/"), b"s=2; domain=a.example", NOW), Err(CookieRefusal::HidesSecure));
}

#[test]
fn cookie_name_prefixes_are_enforced() {
    let https = "https://h.example/";
    for (cookie, why) in [
        ("__Secure-a=1", Some(CookieRefusal::SecurePrefix)),
        ("__sEcure-a=1", Some(CookieRefusal::SecurePrefix)),
        ("__Secure-a=1; Secure", None),
        ("__Host-a=1; Secure; Path=/", None),
        ("__HOST-a=1; Secure", Some(CookieRefusal::HostPrefix)),
        ("__Host-a=1; Path=/", Some(CookieRefusal::HostPrefix)),
        ("__Host-a=1; Secure; Path=/x", Some(CookieRefusal::HostPrefix)),
        ("__host-a=1; Secure; Path=/; Domain=h.example", Some(CookieRefusal::HostPrefix)),
        ("__Hosta=1", None),
        ("x__Host-a=1", None),
    ] {
        assert_eq!(refusal(https, cookie), why, "{cookie}");
    }
    // Domain=HOST of a public suffix is host-only, but was written.
    assert_eq!(
        refusal("https://github.io/", "__Host-a=1; Secure; Path=/; Domain=github.io"),
        Some(CookieRefusal::HostPrefix)
    );
    assert_eq!(refusal("http://h.example/", "__Secure-a=1; Secure"), Some(CookieRefusal::Insecure));
}

#[test]
fn longest_paths_are_sent_first_then_oldest_cookies() {
    let mut jar = jar_of("https://h/a/b/", &["x=1; path=/", "y=1; path=/a/b", "z=1; path=/a", "w=1; path=/"]);
    assert_eq!(sent(&jar, "https://h/a/b"), "y=1; z=1; x=1; w=1");
    // A new value keeps its place.
    assert_eq!(jar.set(&target("https://h/"), b"x=2; path=/", NOW + 1), Ok(SetCookieOutcome::Replaced));
    assert_eq!(sent(&jar, "https://h/"), "x=2; w=1");
    // Host-only and domain cookies of one name are two.
    let jar = jar_of("https://a.example/", &["n=1", "n=2; domain=a.example"]);
    assert_eq!(sent(&jar, "https://a.example/"), "n=1; n=2");
}

#[test]
fn number_of_stored_cookies_is_bounded() {
    let mut jar = CookieStore::new();
    let site = target("https://a.example/");
    jar.set(&site, b"safe=1; Secure", NOW).unwrap();
    jar.set(&site, b"old=1; max-age=1", NOW).unwrap();
    for i in 0..MAX_PER_SITE - 1 {
        jar.set(&target(&format!("https://s{i}.a.example/")), b"n=1", NOW + 2).unwrap();
    }
    // The ended one went first.
    assert_eq!(jar.len(), MAX_PER_SITE);
    assert!(jar.iter().all(|cookie| cookie.name() != b"old"));
    for i in 0..10 {
        jar.set(&site, format!("m{i}=1").as_bytes(), NOW + 2).unwrap();
    }
    assert_eq!(jar.len(), MAX_PER_SITE);
    assert!(sent(&jar, "https://a.example/").starts_with("safe=1; m0=1"));
    assert_eq!(sent(&jar, "https://s0.a.example/"), "");

    jar.set(&target("https://quiet.example/"), b"q=1", NOW).unwrap();
    for i in 0..20 {
        for j in 0..MAX_PER_SITE {
            jar.set(&target(&format!("https://evil{i}.example/")), format!("n{j}=1").as_bytes(), NOW).unwrap();
        }
    }
    assert_eq!(jar.len(), MAX_COOKIES);
    assert_eq!(sent(&jar, "https://quiet.example/"), "q=1");
}

#[test]
fn number_of_sent_cookies_is_bounded() {
    let mut jar = CookieStore::new();
    for i in 0..MAX_COOKIES_PER_REQUEST + 10 {
        jar.set(&target("https://h/"), format!("n{i}=1").as_bytes(), NOW).unwrap();
    }
    assert_eq!(sent(&jar, "https://h/").split("; ").count(), MAX_COOKIES_PER_REQUEST);
    let mut jar = CookieStore::new();
    for i in 0..5 {
        jar.set(&target("https://h/"), format!("n{i}={}", "x".repeat(4000)).as_bytes(), NOW).unwrap();
    }
    let field = sent(&jar, "https://h/");
    assert!(field.len() <= MAX_COOKIE_FIELD && field.split("; ").count() == 2);
}

#[test]
fn set_cookie_cannot_inject_a_line_end() {
    let field = b"a=b; Domain=h.example; Path=/p; Secure; HttpOnly; SameSite=Lax; Max-Age=9; Expires=Wed, 01 Jan 2020 00:00:00 GMT";
    let at = target("https://h.example/");
    for end in 0..field.len() {
        let _ = CookieStore::new().set(&at, &field[..end], NOW);
        for byte in [0, b'\r', b'\n', b'\t', b';', b'=', b'"', 0x7f, 0xff] {
            let mut mutated = field.to_vec();
            mutated[end] = byte;
            let mut jar = CookieStore::new();
            if jar.set(&at, &mutated, NOW).is_ok() {
                let text = netscape::write(&jar, NOW);
                assert!(netscape::read(&text, NOW).refused == 0, "{}", mutated.escape_ascii());
                assert!(!jar.cookie_for(&at, NOW).unwrap_or_default().iter().any(|b| *b < b' '));
            }
        }
    }
}

#[test]
fn byte_order_mark_of_a_cookie_file_is_skipped() {
    let read = netscape::read("\u{feff}a.example\tFALSE\t/\tFALSE\t0\ts\t1\n".as_bytes(), NOW);
    assert_eq!((read.cookies.len(), read.refused), (1, 0));
}

#[test]
fn netscape_cookie_files_are_read_and_written() {
    let text = b"# Netscape HTTP Cookie File\n\n.a.example\tTRUE\t/\tFALSE\t0\ts\t1\n\
        b.example\tFALSE\t/p\tTRUE\t1900000000\tt\t2\r\n#HttpOnly_c.example\tFALSE\t/\tFALSE\t0\tu\t3 4\n\
        d.example\tFALSE\tFALSE\t0\tnopath\t5\ne.example\tFALSE\t/\tFALSE\t0\tempty\n\
        f.example\tfalse\t/\tfalse\t1.9e9\tbad\t1\n.co.uk\tTRUE\t/\tFALSE\t0\tsuffix\t1\n\
        127.0.0.1\tTRUE\t/\tFALSE\t0\tip\t1\nold.example\tFALSE\t/\tFALSE\t5\told\t1\nneg.example\tFALSE\t/\tFALSE\t-5\told\t1\n\
        Set-Cookie: h=6; Domain=.h.example; Path=/; Secure\nset-cookie: nodomain=1\n\
        g.example\tFALSE\t/\tFALSE\t0\t__Secure-x\t1\nshort\tFALSE\t/\nx.example\tFALSE\t/\tFALSE\tsoon\ta\tb\n\
        y.example\tFALSE\t/\tFALSE\t0\ta\tb\tc\nz.example\tFALSE\t/\tFALSE\t1900000000.5\tfrac\t7\n\
        p.example\tFALSE\t/\tFALSE\t\tpython\t8\n";
    let read = netscape::read(text, NOW);
    let names: Vec<_> = read.cookies.iter().map(|c| String::from_utf8_lossy(c.name()).into_owned()).collect();
    assert_eq!(names, ["s", "t", "u", "nopath", "empty", "suffix", "ip", "h", "frac", "python"]);
    assert_eq!(read.refused, 6);
    let mut jar = CookieStore::new();
    jar.load(read.cookies);
    assert_eq!(sent(&jar, "http://x.a.example/"), "s=1");
    assert_eq!(sent(&jar, "https://b.example/p/q"), "t=2");
    assert_eq!(sent(&jar, "http://b.example/p/q"), "");
    assert_eq!(sent(&jar, "http://c.example/"), "u=3 4");
    assert_eq!((sent(&jar, "http://co.uk/"), sent(&jar, "http://a.co.uk/")), ("suffix=1".to_owned(), String::new()));
    assert_eq!(sent(&jar, "https://x.h.example/"), "h=6");
    assert!(jar.changes().is_empty());
    let written = netscape::write(&jar, NOW);
    let lines = String::from_utf8(written.clone()).unwrap();
    assert!(lines.starts_with("# Netscape HTTP Cookie File\n"));
    for line in [
        ".a.example\tTRUE\t/\tFALSE\t0\ts\t1",
        "b.example\tFALSE\t/p\tTRUE\t1900000000\tt\t2",
        "#HttpOnly_c.example\tFALSE\t/\tFALSE\t0\tu\t3 4",
        "e.example\tFALSE\t/\tFALSE\t0\tempty\t",
    ] {
        assert!(lines.lines().any(|other| other == line), "{line}");
    }
    let mut again = CookieStore::new();
    again.load(netscape::read(&written, NOW).cookies);
    assert!(again.iter().eq(jar.iter()));
}

#[test]
fn lwp_cookie_files_are_read_and_written() {
    let mut jar = jar_of(
        "https://www.a.example/",
        &["a=\"q\\\"; domain=a.example; max-age=60; HttpOnly; SameSite=strict", "b=c d; Secure"],
    );
    jar.set(&target("http://intranet/"), b"n=1", NOW).unwrap();
    let text = lwp::write(&jar, NOW);
    let mut again = CookieStore::new();
    again.load(lwp::read(&text, NOW).unwrap().cookies);
    assert_eq!(sent(&again, "https://www.a.example/"), "a=\"q\\\"; b=c d");
    assert_eq!(again.iter().next().unwrap().parts().same_site, SameSite::Strict);
    assert_eq!(sent(&again, "http://intranet/"), "n=1");
    // LWP itself would send it to both.
    assert_eq!(sent(&again, "http://intranet.local/"), "n=1");
    assert_eq!(lwp::write(&again, NOW), text);
    for end in 0..text.len() {
        let _ = lwp::read(&text[..end], NOW);
    }
    let odd = b"#LWP-Cookies-2.0\nSet-Cookie3: a\nSet-Cookie3: a=1\nSet-Cookie3: a=1; domain=co.uk; expires=\"x\"\nSet-Cookie3: a=\"1\nnoise\n";
    assert_eq!(lwp::read(odd, NOW).unwrap().refused, 4);
}

#[test]
fn session_cookies_end_with_the_session() {
    let mut jar = CookieStore::new();
    jar.load(netscape::read(b"h\tFALSE\t/\tFALSE\t0\ts\t1\nh\tFALSE\t/\tFALSE\t1900000000\tp\t1\n", NOW).cookies);
    jar.set(&target("http://h/"), b"t=1", NOW).unwrap();
    jar.clear_session();
    assert_eq!(sent(&jar, "http://h/"), "p=1");
    let changes = jar.changes();
    assert_eq!((changes.cookies_to_set().len(), changes.cookies_to_remove().len()), (0, 1));
}

#[test]
fn cookie_changed_during_a_save_stays_unsaved() {
    let at = target("http://h/");
    let mut jar = jar_of("http://h/", &["a=1", "b=1"]);
    let changes = jar.changes();
    jar.set(&at, b"a=2", NOW).unwrap();
    jar.set(&at, b"b=; max-age=0", NOW).unwrap();
    jar.mark_saved(&changes);
    let later = jar.changes();
    assert_eq!(later.cookies_to_set().iter().map(Cookie::value).collect::<Vec<_>>(), [b"2"]);
    assert_eq!(later.cookies_to_remove().iter().map(|key| key.name.as_slice()).collect::<Vec<_>>(), [b"b"]);
    // One that the file has, gone while another is written.
    jar.set(&at, b"a=; max-age=0", NOW).unwrap();
    jar.mark_saved(&later);
    let last = jar.changes();
    assert_eq!(last.cookies_to_remove().iter().map(|key| key.name.as_slice()).collect::<Vec<_>>(), [b"a"]);
    jar.mark_saved(&last);
    assert!(jar.changes().is_empty());
    // What never reached the file leaves no trace.
    for i in 0..1000 {
        jar.set(&at, format!("n{i}=1").as_bytes(), NOW).unwrap();
        jar.set(&at, format!("n{i}=; max-age=0").as_bytes(), NOW).unwrap();
    }
    assert!(jar.changes().is_empty());
}

#[test]
fn debug_output_hides_the_cookie_value() {
    let jar = jar_of("http://h/", &["a=hunter2"]);
    assert!(!format!("{jar:?} {:?}", jar.changes()).contains("hunter2"));
}

#[test]
fn curl_style_writes_newest_cookies_first_below_heading() {
    let site = Target::parse("https://www.h.example/dir/page").unwrap();
    let now = 1_800_000_001;
    let mut jar = CookieStore::with_style(CookieFileConventions::Curl);
    for field in ["a=1", "b=2; Domain=h.example", "long=3", "c=4; Max-Age=99999999", "a=5"] {
        jar.set(&site, field.as_bytes(), now).unwrap();
    }
    // The longest path, domain and name first, then the newest; a value that is replaced keeps its
    // place.
    assert_eq!(jar.cookie_for(&site, now).unwrap(), b"long=3; c=4; a=5; b=2");
    let text = String::from_utf8(netscape::write(&jar, now)).unwrap();
    let lines: Vec<&str> = text.lines().skip(4).collect();
    // Paths end without a slash, and 400 days on a minute.
    let end = (now + MAX_AGE + 30) / 60 * 60;
    assert_eq!(lines[0], format!("www.h.example\tFALSE\t/dir\tFALSE\t{end}\tc\t4"));
    assert_eq!(
        lines[1..3],
        ["www.h.example\tFALSE\t/dir\tFALSE\t0\tlong\t3", ".h.example\tTRUE\t/dir\tFALSE\t0\tb\t2"]
    );
    let directory = Target::parse("https://www.h.example/dir").unwrap();
    assert!(jar.cookie_for(&directory, now).is_some());
}

#[test]
fn curl_style_limits_the_cookies_before_sorting() {
    let mut jar = CookieStore::with_style(CookieFileConventions::Curl);
    for i in 0..MAX_COOKIES_PER_REQUEST + 3 {
        jar.set(&target("https://h/"), format!("n{i:03}=1").as_bytes(), NOW).unwrap();
    }
    let field = sent(&jar, "https://h/");
    assert!(field.starts_with("n149=1; n148=1; ") && field.ends_with("; n000=1"), "{field}");
}

#[test]
fn curl_style_ignores_trailing_slash_of_cookie_path() {
    let site = target("https://h.example/p");
    let mut jar = CookieStore::with_style(CookieFileConventions::Curl);
    jar.load(netscape::read(b"h.example\tFALSE\t/p/\tFALSE\t0\told\t1\n", NOW).cookies);
    jar.set(&site, b"a=1; Path=/p/", NOW).unwrap();
    assert_eq!(jar.set(&site, b"a=2; Path=/p", NOW), Ok(SetCookieOutcome::Replaced));
    assert_eq!(sent(&jar, "https://h.example/p"), "old=1; a=2");
    assert_eq!(jar.set(&site, b"old=; Path=/p; Max-Age=0", NOW), Ok(SetCookieOutcome::Removed));
    assert_eq!(jar.changes().cookies_to_remove()[0].path, b"/p");
    // The root stays what it is, and the standard's style keeps what was written.
    jar.set(&site, b"b=1; Path=/", NOW).unwrap();
    assert_eq!(sent(&jar, "https://h.example/x"), "b=1");
    assert_eq!(sent(&jar_of("https://h.example/", &["a=1; Path=/p/"]), "https://h.example/p"), "");
}

#[test]
fn curl_style_removes_one_slash_from_cookie_path() {
    let mut jar = CookieStore::with_style(CookieFileConventions::Curl);
    jar.set(&target("https://h.example/a"), b"n=1; Path=/a//", NOW).unwrap();
    assert_eq!(jar.iter().map(|cookie| &cookie.parts().path).collect::<Vec<_>>(), [b"/a/"]);
}

#[test]
fn curl_style_rounds_longest_cookie_expiry_to_minutes() {
    for (second, expected) in [(0, 0), (29, 0), (30, 60), (59, 60)] {
        let mut jar = CookieStore::with_style(CookieFileConventions::Curl);
        let minute = NOW / 60 * 60;
        jar.set(&target("https://h.example/"), b"n=1; Max-Age=99999999", minute + second).unwrap();
        let ends: Vec<_> = jar.iter().filter_map(|cookie| cookie.parts().expires).collect();
        assert_eq!(ends, [minute + MAX_AGE + expected], "{second}");
    }
}

#[test]
fn http_cookie_without_slash_cannot_shadow_secure_cookie() {
    let [https, http] = ["https://h.example/", "http://h.example/"].map(|url| Target::parse(url).unwrap());
    let mut jar = CookieStore::new();
    jar.set(&https, b"sid=1; Secure; Path=/login/", 0).unwrap();
    assert_eq!(jar.set(&http, b"sid=2; Path=/login", 0), Err(CookieRefusal::HidesSecure));
}

#[test]
fn lwp_host_with_two_dots_has_no_bare_name() {
    let line = |domain: &str| format!("#LWP-Cookies-2.0\nSet-Cookie3: a=b; path=\"/\"; domain={domain}; version=0\n");
    let loaded = |domain: &str| {
        let mut jar = CookieStore::new();
        jar.load(lwp::read(line(domain).as_bytes(), NOW).unwrap().cookies);
        jar
    };
    assert_eq!(sent(&loaded("bare.local"), "http://bare/"), "a=b");
    assert_eq!(sent(&loaded("bare.local"), "http://bare.local/"), "a=b");
    assert_eq!(sent(&loaded("a.b.local"), "http://a.b/"), "");
    assert_eq!(sent(&loaded("a.b.local"), "http://a.b.local/"), "a=b");
}

#[test]
fn curl_style_ignores_long_expiry_dates() {
    let date = |length: usize| format!("{:1$}", "Thu, 01 Jan 2015 00:00:00 GMT", length);
    let stored = |style, length| {
        let mut jar = CookieStore::with_style(style);
        jar.set(&target("http://h.example/"), format!("a=b; expires=\"{}\"", date(length)).as_bytes(), NOW).unwrap();
        sent(&jar, "http://h.example/") == "a=b"
    };
    // The quotes count.
    assert!(!stored(CookieFileConventions::Curl, 77) && stored(CookieFileConventions::Curl, 78));
    assert!(!stored(CookieFileConventions::Standard, 78));
}

#[test]
fn cookie_field_has_at_most_its_limit() {
    for (length, both) in [(MAX_COOKIE_FIELD, true), (MAX_COOKIE_FIELD + 1, false)] {
        let mut jar = CookieStore::new();
        let values = [MAX_NAME_AND_VALUE - 1, length - MAX_NAME_AND_VALUE - 1 - 2 - 2];
        for (name, value) in ["a", "b"].iter().zip(values) {
            let cookie = format!("{name}={}", "v".repeat(value));
            jar.set(&target("http://h.example/"), cookie.as_bytes(), NOW).unwrap();
        }
        let expected = if both { length } else { MAX_NAME_AND_VALUE + 1 };
        assert_eq!(sent(&jar, "http://h.example/").len(), expected);
    }
}

#[test]
fn domains_of_files_have_canonical_forms() {
    use super::scope::{MaxCookieScope, canonical_domain};
    for (text, host_only, expected) in [
        ("A.Example.com", false, Ok(("a.example.com".to_owned(), MaxCookieScope::Domain))),
        (".example.com", true, Ok(("example.com".to_owned(), MaxCookieScope::Domain))),
        ("com", false, Ok(("com".to_owned(), MaxCookieScope::Host))),
        ("example.com.", true, Ok(("example.com.".to_owned(), MaxCookieScope::Host))),
        ("example.com.", false, Err(CookieRefusal::Domain)),
        ("127.0.0.1", false, Ok(("127.0.0.1".to_owned(), MaxCookieScope::Host))),
        ("fe80:0::1%eth0", true, Ok(("fe80::1%eth0".to_owned(), MaxCookieScope::Host))),
        ("fe80::1%", true, Err(CookieRefusal::Domain)),
        ("fe80::1%a/b", true, Err(CookieRefusal::Domain)),
    ] {
        assert_eq!(canonical_domain(text, host_only), expected, "{text}");
    }
}

#[test]
fn changes_are_empty_without_set_and_removed_cookies() {
    let mut jar = CookieStore::new();
    assert!(jar.changes().is_empty());
    jar.set(&target("http://h.example/"), b"a=b", NOW).unwrap();
    let changes = jar.changes();
    assert!(!changes.is_empty() && changes.cookies_to_set().len() == 1);
    jar.mark_saved(&changes);
    assert!(jar.changes().is_empty());
    jar.set(&target("http://h.example/"), b"a=; max-age=0", NOW).unwrap();
    let changes = jar.changes();
    assert!(!changes.is_empty() && changes.cookies_to_remove().len() == 1);
}

#[test]
fn control_bytes_in_a_cookie_are_refused() {
    for byte in (0..=0x1f).chain([0x7f]).filter(|byte| *byte != b'\t') {
        let field = [b"a=b", &[byte][..], b"c"].concat();
        let stored = CookieStore::new().set(&target("http://h.example/"), &field, NOW);
        assert_eq!(stored.err(), Some(CookieRefusal::ControlByte), "{byte}");
    }
}

#[test]
fn debug_of_a_cookie_shows_no_value() {
    let mut jar = CookieStore::new();
    jar.set(&target("http://h.example/"), b"name=word", NOW).unwrap();
    let text = format!("{:?}", jar.changes().cookies_to_set());
    assert!(text.contains("\"name\"") && text.contains("h.example") && !text.contains("word"), "{text}");
}
