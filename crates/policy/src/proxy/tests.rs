//! Tests of proxy URLs, the environment, `no_proxy`, routes, and SOCKS handshakes that arrive byte
//! by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::socks::{SocksDestination, SocksError, SocksHandshake, SocksStep};
use super::*;
use crate::auth::Credentials;
use crate::target::Target;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

#[test]
fn proxy_urls_are_parsed() {
    for (text, shown) in [
        ("h", "http://h:1080"),
        ("h:3128", "http://h:3128"),
        ("http://h", "http://h:1080"),
        ("HTTP://H:80/ignored?x", "http://h:80"),
        ("https://h", "https://h:443"),
        ("socks://h", "socks4://h:1080"),
        ("socks4a://h:1", "socks4a://h:1"),
        ("socks5://[::1]", "socks5://[::1]:1080"),
        ("SOCKS5H://u:p@127.1:9", "socks5h://127.0.0.1:9"),
        ("u:p@h", "http://h:1080"),
    ] {
        assert_eq!(Proxy::parse(text).unwrap().to_string(), shown, "{text}");
    }
    assert_eq!(Proxy::parse_with("h", ProxyKind::Socks5).unwrap().to_string(), "socks5://h:1080");
    let proxy = Proxy::parse("http://a%40b:%70%3aw@h").unwrap();
    assert_eq!(proxy.credentials(), Some(&Credentials::new("a@b", "p:w").unwrap()));
    assert_eq!(Proxy::parse("http://:@h").unwrap().credentials(), None);
    assert_eq!(Proxy::parse("http://h").unwrap().credentials(), None);
    assert_eq!(Proxy::parse("socks5h://localhost/run/tor.sock").unwrap().socket_path(), Some("/run/tor.sock"));
    assert_eq!(Proxy::parse("http://localhost/x").unwrap().socket_path(), None);
}

#[test]
fn malformed_proxy_urls_are_refused() {
    for (text, exit) in [
        ("ftp://h", 7),
        ("://h", 7),
        ("", 5),
        ("http://", 5),
        ("h:x", 5),
        ("h:99999", 5),
        ("http://a:b:c:d", 5),
        ("http://u@v@h", 5),
        ("http://u%0d%0aX:p@h", 5),
        ("h\r\nX: y", 5),
        ("http://h\\x", 5),
    ] {
        let error = Proxy::parse(text).unwrap_err();
        assert_eq!(error.exit_code(), exit, "{text}");
    }
    let error = Proxy::parse("http://u:hunter2@@h").unwrap_err();
    let proxy = Proxy::parse("http://u:hunter2@h").unwrap();
    assert!(!format!("{error} {error:?} {proxy} {proxy:?}").contains("hunter2"));
}

#[test]
fn environment_selects_the_proxy() {
    let read = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ProxyEnvironment::from_variables(move |name| {
            pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        })
    };
    let (http, https) = (target("http://h/"), target("https://h/"));
    let both = |environment: &ProxyEnvironment| {
        [&http, &https].map(|t| environment.proxy_for(t).unwrap_or("-").to_owned()).join(" ")
    };
    assert_eq!(both(&read(&[])), "- -");
    assert_eq!(both(&read(&[("HTTP_PROXY", "evil")])), "- -");
    assert_eq!(both(&read(&[("http_proxy", "a")])), "a -");
    assert_eq!(both(&read(&[("HTTPS_PROXY", "A"), ("https_proxy", "a")])), "- a");
    assert_eq!(both(&read(&[("HTTPS_PROXY", "A"), ("https_proxy", "")])), "- A");
    assert_eq!(both(&read(&[("ALL_PROXY", "A")])), "A A");
    assert_eq!(both(&read(&[("ALL_PROXY", "A"), ("all_proxy", "a"), ("http_proxy", "h")])), "h a");
    assert_eq!(both(&read(&[("all_proxy", "a"), ("NO_PROXY", "h")])), "- -");
    assert_eq!(both(&read(&[("all_proxy", "a"), ("NO_PROXY", "h"), ("no_proxy", "x")])), "a a");
    let environment = read(&[("all_proxy", "a"), ("NO_PROXY", "h")]);
    assert_eq!(environment.proxy_unless(&http, &NoProxy::parse("")), Some("a"));
}

#[test]
fn no_proxy_matches_hosts_and_networks() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("*", &["http://h/", "http://[::1]/"], &[]),
        ("x,*", &["http://h/"], &[]),
        ("", &[], &["http://h/"]),
        (",, ,", &[], &["http://h/"]),
        (".", &[], &["http://h/"]),
        (
            "example.com",
            &["http://example.com/", "http://EXAMPLE.com:81/", "http://a.example.com/", "http://example.com./"],
            &["http://nexample.com/", "http://example.com.evil/", "http://example.co/"],
        ),
        (".example.com", &["http://example.com/", "http://a.example.com/"], &["http://nexample.com/"]),
        ("Example.COM.", &["http://example.com/", "http://a.example.com./"], &[]),
        (
            "example.com:80",
            &["http://example.com/", "https://a.example.com:80/"],
            &["http://example.com:81/", "https://example.com/"],
        ),
        (".example.com.:8080", &["http://example.com:8080/"], &["http://example.com/"]),
        ("10.0.0.1:81,[::1]:81", &["http://10.0.0.1:81/", "http://[::1]:81/"], &["http://10.0.0.1/", "http://[::1]/"]),
        ("10.0.0.0/8:81", &["http://10.9.9.9:81/"], &["http://10.9.9.9/"]),
        ("*:81", &["http://h:81/"], &["http://h/"]),
        ("h:,h:x,h:99999,:80,h:+80", &[], &["http://h/", "http://h:80/"]),
        ("a b\tc,d", &["http://a/", "http://b/", "http://c/", "http://d/"], &["http://e/"]),
        (
            "10.0.0.1",
            &["http://10.0.0.1/", "http://10.1/", "http://0xa.0.0.1/"],
            &["http://110.0.0.1/", "http://10.0.0.10/"],
        ),
        (
            "10.0.0.0/8",
            &["http://10.255.255.255/"],
            &["http://11.0.0.0/", "http://9.255.255.255/", "http://[::a00:0]/"],
        ),
        ("192.168.1.128/25", &["http://192.168.1.128/"], &["http://192.168.1.127/"]),
        ("0.0.0.0/0", &["http://1.2.3.4/"], &["http://[::1]/", "http://h/"]),
        ("10.0.0.0/33,10.0.0.0/,10.0.0.0/x,10.0.0.0/+8", &[], &["http://10.0.0.0/"]),
        ("::1", &["http://[::1]/", "http://[0:0::1]/"], &["http://[::2]/", "http://0.0.0.1/"]),
        ("[::1]", &["http://[::1]/"], &[]),
        ("fd00::/8,2001:db8::/33", &["http://[fdff::1]/", "http://[2001:db8:7fff::]/"], &["http://[2001:db8:8000::]/"]),
        ("::/129", &[], &["http://[::]/"]),
        ("1", &[], &["http://10.0.0.1/"]),
    ];
    for (list, direct, proxied) in table {
        let rules = NoProxy::parse(list);
        for url in *direct {
            assert!(rules.matches(&target(url)), "{list:?} {url}");
        }
        for url in *proxied {
            assert!(!rules.matches(&target(url)), "{list:?} {url}");
        }
    }
}

#[test]
fn connect_and_forwarded_requests_have_own_fields() {
    let http = Proxy::parse("http://pu:pp@p").unwrap();
    let socks = Proxy::parse("socks5://p").unwrap();
    let (plain, tls) = (target("http://u:p@h.example/p?q#f"), target("https://[fe80::1%25eth0]/"));
    assert_eq!(http.route(&plain, false), ProxyMode::Forward);
    assert_eq!(http.route(&plain, true), ProxyMode::Tunnel);
    assert_eq!(http.route(&tls, false), ProxyMode::Tunnel);
    assert_eq!(socks.route(&plain, false), ProxyMode::Socks);
    assert_eq!(absolute_form_target(&plain, false), "http://h.example/p?q");
    let upper = target("http://u:p@H.Example:81/p#f");
    let forms = [false, true].map(|as_written| absolute_form_target(&upper, as_written));
    assert_eq!(forms, ["http://h.example:81/p", "http://H.Example:81/p"]);
    assert_eq!(connect_authority(&plain), "h.example:80");
    assert_eq!(connect_authority(&tls), "[fe80::1]:443");

    let text = |fields: ProxyFields| {
        let line = |(name, value): (String, Vec<u8>)| format!("{name}: {}", String::from_utf8(value).unwrap());
        fields.into_iter().map(line).collect::<Vec<_>>()
    };
    let basic = http.credentials().unwrap().basic_authorization();
    assert_eq!(
        text(connect_fields(&plain, Some(&basic), Some(b"x/1"), &[("X-P".to_owned(), b"1".to_vec())])),
        [
            "Host: h.example:80",
            "Proxy-Authorization: Basic cHU6cHA=",
            "User-Agent: x/1",
            "Proxy-Connection: Keep-Alive",
            "X-P: 1"
        ]
    );
    let own = [("proxy-connection".to_owned(), b"close".to_vec())];
    assert_eq!(text(forward_fields(None, &own)), ["proxy-connection: close"]);
}

/// A SOCKS handshake: the protocol, the destination, the credentials, the proxy's replies, and the
/// messages that the client must send.
type SocksExchange<'w> = (ProxyKind, SocksDestination<'w>, Option<&'w Credentials>, Vec<u8>, Vec<Vec<u8>>);

const NAME: SocksDestination<'_> = SocksDestination::Name("h.example");

/// Passes `replies` to the handshake in pieces of `size` bytes. Returns the sent messages, and the
/// number of bytes used or the error.
fn play(handshake: &mut SocksHandshake, replies: &[u8], size: usize) -> (Vec<Vec<u8>>, Result<usize, SocksError>) {
    let mut sent = vec![handshake.start().to_vec()];
    let (mut at, mut piece_end) = (0, 0);
    loop {
        if at == piece_end {
            if piece_end == replies.len() {
                return (sent, Ok(usize::MAX));
            }
            piece_end = (piece_end + size).min(replies.len());
        }
        match handshake.receive(&replies[at..piece_end]) {
            Err(error) => return (sent, Err(error)),
            Ok((used, step)) => {
                at += used;
                match step {
                    SocksStep::NeedMore => assert_eq!(at, piece_end),
                    SocksStep::Send(bytes) => sent.push(bytes),
                    SocksStep::Token(None) => sent.push(handshake.token_message(b"one").unwrap()),
                    SocksStep::Token(Some(token)) if token == b"more" => {
                        sent.push(handshake.token_message(b"two").unwrap());
                    }
                    SocksStep::Token(Some(_)) => sent.push(handshake.level_message(b"none").unwrap()),
                    SocksStep::Level(level) => match handshake.on_level(&level) {
                        Ok(request) => sent.push(request),
                        Err(error) => return (sent, Err(error)),
                    },
                    SocksStep::Done => return (sent, Ok(at)),
                }
            }
        }
    }
}

#[test]
fn socks_handshake_accepts_replies_in_any_pieces() {
    let user = Credentials::new("me", "pw").unwrap();
    let v4 = SocksDestination::Address(IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4)));
    let v6 = SocksDestination::Address(IpAddr::V6(Ipv6Addr::LOCALHOST));
    let reply_name = [&[5, 0, 5, 0, 0, 3, 2][..], b"ab", &[0, 9]].concat();
    let request_name = [&[5, 1, 0, 3, 9][..], b"h.example", &[0, 80]].concat();
    let loopback = [&[5, 1, 0, 4][..], &Ipv6Addr::LOCALHOST.octets(), &[0, 80]].concat();
    let verdict = [&[5, 2, 1, 0, 5, 0, 0, 4][..], &[7; 18]].concat();
    let table: Vec<SocksExchange<'_>> = vec![
        (ProxyKind::Socks4, v4, None, vec![0, 90, 0, 0, 0, 0, 0, 0], vec![vec![4, 1, 0, 80, 1, 2, 3, 4, 0]]),
        (
            ProxyKind::Socks4a,
            NAME,
            Some(&user),
            vec![0, 90, 1, 2, 3, 4, 5, 6],
            vec![[&[4, 1, 0, 80, 0, 0, 0, 1][..], b"me\0h.example\0"].concat()],
        ),
        (ProxyKind::Socks5h, NAME, None, reply_name, vec![vec![5, 1, 0], request_name.clone()]),
        (
            ProxyKind::Socks5,
            v4,
            Some(&user),
            vec![5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            vec![vec![5, 2, 0, 2], vec![5, 1, 0, 1, 1, 2, 3, 4, 0, 80]],
        ),
        (ProxyKind::Socks5, v6, Some(&user), verdict, vec![vec![5, 2, 0, 2], b"\x01\x02me\x02pw".to_vec(), loopback]),
    ];
    for (kind, destination, credentials, mut replies, expected) in table {
        let length = replies.len();
        replies.extend_from_slice(b"220 from the destination");
        for size in 1..=replies.len() {
            let mut handshake = SocksHandshake::new(kind, destination, 80, credentials).unwrap();
            let (sent, end) = play(&mut handshake, &replies, size);
            assert_eq!((sent, end), (expected.clone(), Ok(length)), "{kind:?} {size}");
            assert_eq!(handshake.missing_bytes(), 0);
            assert_eq!(handshake.receive(b"more").unwrap(), (0, SocksStep::Done));
        }
        // No truncated handshake succeeds.
        for end in 0..length {
            let mut handshake = SocksHandshake::new(kind, destination, 80, credentials).unwrap();
            assert_eq!(play(&mut handshake, &replies[..end], 1).1, Ok(usize::MAX));
            assert!(handshake.missing_bytes() > 0);
        }
    }
}

#[test]
fn gssapi_handshake_accepts_replies_in_any_pieces() {
    let user = Credentials::new("me", "pw").unwrap();
    let rounds = [&[5, 1, 1, 1, 0, 4][..], b"more", &[1, 1, 0, 4], b"last", &[1, 2, 0, 1, 0]].concat();
    let replies = [&rounds[..], &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
    let messages = [b"\x01\x01\0\x03one".to_vec(), b"\x01\x01\0\x03two".to_vec(), b"\x01\x02\0\x04none".to_vec()];
    for (credentials, first) in [(None, vec![5, 2, 0, 1]), (Some(&user), vec![5, 3, 0, 1, 2])] {
        for size in 1..=replies.len() {
            let handshake = SocksHandshake::new(ProxyKind::Socks5h, NAME, 80, credentials).unwrap();
            let (sent, end) = play(&mut handshake.offering_gssapi(), &replies, size);
            assert_eq!((&sent[0], &sent[1..4], end), (&first, &messages[..], Ok(replies.len())), "{size}");
            assert_eq!(sent[4][..4], [5, 1, 0, 3]);
        }
    }
    // SOCKS 4 has no methods.
    let four = SocksHandshake::new(ProxyKind::Socks4a, NAME, 80, None).unwrap().offering_gssapi();
    assert_eq!(four.start()[..2], [4, 1]);
}

#[test]
fn gssapi_refusal_by_socks_proxy_is_an_error() {
    let end = |replies: &[u8]| {
        let handshake = SocksHandshake::new(ProxyKind::Socks5h, NAME, 80, None).unwrap();
        play(&mut handshake.offering_gssapi(), replies, 1).1.unwrap_err()
    };
    let token = [&[5, 1, 1, 1, 0, 1][..], b"t"].concat();
    let after = |more: &[u8]| end(&[&token[..], more].concat());
    assert_eq!(end(&[5, 0xff]), SocksError::NoMethod);
    assert_eq!(end(&[5, 1, 1, 0xff]), SocksError::WrongTicket);
    assert_eq!(after(&[1, 0xff]), SocksError::WrongTicket);
    assert_eq!(after(&[1, 2, 0, 1, 2]), SocksError::Protection);
    for broken in [&[5, 1, 2][..], &[5, 1, 1, 2], &[5, 1, 1, 1, 0, 0]] {
        assert_eq!(end(broken), SocksError::NotAProxy);
    }
    for broken in [&[1, 1][..], &[1, 2, 0, 1, 9], &[1, 2, 0, 2, 0, 0]] {
        assert_eq!(after(broken), SocksError::NotAProxy);
    }
    assert!(SocksHandshake::new(ProxyKind::Socks5h, NAME, 80, None).unwrap().token_message(&[0; 65536]).is_err());
}

#[test]
fn socks_refusals_have_distinct_error_messages() {
    let user = Credentials::new("me", "hunter2").unwrap();
    let end = |kind, credentials, replies: &[u8]| {
        let mut handshake = SocksHandshake::new(kind, NAME, 80, credentials).unwrap();
        assert!(!format!("{handshake:?}").contains("hunter2"));
        let error = play(&mut handshake, replies, 1).1.unwrap_err();
        assert_eq!(error.exit_code(), 97);
        error
    };
    assert_eq!(end(ProxyKind::Socks5h, None, &[5, 0xff]), SocksError::WantsCredentials);
    assert_eq!(end(ProxyKind::Socks5h, Some(&user), &[5, 0xff]), SocksError::NoMethod);
    assert_eq!(end(ProxyKind::Socks5h, None, &[5, 2]), SocksError::NotAProxy);
    assert_eq!(end(ProxyKind::Socks5h, None, &[5, 1]), SocksError::NotAProxy);
    assert_eq!(end(ProxyKind::Socks5h, Some(&user), &[5, 2, 1, 1]), SocksError::WrongCredentials);
    assert_eq!(end(ProxyKind::Socks5h, None, &[5, 0, 5, 0, 0, 9]), SocksError::NotAProxy);
    for kind in [ProxyKind::Socks4a, ProxyKind::Socks5h] {
        assert_eq!(end(kind, None, b"HTTP/1.1 400 Bad Request\r\n"), SocksError::NotAProxy);
    }
    // Known with its second byte: some proxies close right after it.
    let mut texts: Vec<String> =
        (1..=9).map(|code| end(ProxyKind::Socks5h, None, &[5, 0, 5, code]).to_string()).collect();
    texts.extend((91..=94).map(|code| end(ProxyKind::Socks4a, None, &[0, code, 0, 0, 0, 0, 0, 0]).to_string()));
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count);
}

#[test]
fn unsupported_socks_destinations_and_credentials_are_refused() {
    let new = |kind, destination, credentials: Option<&Credentials>| {
        SocksHandshake::new(kind, destination, 1, credentials).err()
    };
    let long = "x".repeat(256);
    let v6 = SocksDestination::Address(IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert_eq!(new(ProxyKind::Http, NAME, None), Some(SocksError::NotSocks));
    assert_eq!(new(ProxyKind::Socks4, NAME, None), Some(SocksError::Unresolved));
    assert_eq!(new(ProxyKind::Socks5, NAME, None), Some(SocksError::Unresolved));
    assert_eq!(new(ProxyKind::Socks4, v6, None), Some(SocksError::NoIpv6));
    for kind in [ProxyKind::Socks4a, ProxyKind::Socks5h] {
        for name in ["", &long, "a\0b"] {
            assert_eq!(new(kind, SocksDestination::Name(name), None), Some(SocksError::TooLong));
        }
        let user = Credentials::new(&long, "").unwrap();
        assert_eq!(new(kind, NAME, Some(&user)), Some(SocksError::TooLong));
        assert_eq!(new(kind, SocksDestination::Name(&long[1..]), None), None);
    }
    let password = Credentials::new("", &long).unwrap();
    assert_eq!(new(ProxyKind::Socks5h, NAME, Some(&password)), Some(SocksError::TooLong));
}

#[test]
fn no_proxy_list_is_parsed_as_by_curl() {
    let all = ["http://a/", "http://x.b/", "http://10.0.0.1/", "http://[::1]/"];
    for (list, direct) in [
        ("*", &all[..]),
        ("*,c", &[]),
        ("c,*", &[]),
        (" *", &[]),
        ("a,b", &all[..2]),
        (" a , b ", &all[..2]),
        ("c b", &[]),
        ("a\tb", &all[..1]),
        (",,.b.", &all[1..2]),
        ("a:80,b:80,10.0.0.1:80", &[]),
        ("10.0.0.0/8", &all[2..3]),
        ("0.0.0.0/0,::/0", &[]),
        ("10.0.0.1/0,::1/0", &all[2..]),
        ("[::1],[::1]/128", &[]),
        ("::1,10.0.0.1/33", &all[3..]),
        ("", &[]),
    ] {
        let rules = NoProxy::parse_as_curl(list);
        let matched: Vec<_> = all.into_iter().filter(|url| rules.matches(&target(url))).collect();
        assert_eq!(matched, direct, "{list:?}");
        assert_eq!(NoProxy::parse(&rules.to_string()), rules, "{list:?}");
    }
    let pairs = |name: &str| match name {
        "http_proxy" => Some("p"),
        "no_proxy" => Some("a:80"),
        _ => None,
    };
    let environment = ProxyEnvironment::from_variables(pairs);
    assert_eq!(environment.proxy_for(&target("http://a/")), None);
    let environment = ProxyEnvironment::from_variables_with(pairs, NoProxy::parse_as_curl);
    assert_eq!(environment.proxy_for(&target("http://a/")), Some("p"));
}

#[test]
fn no_proxy_list_is_written_and_parsed_back() {
    // The last line: names that without the dots at their ends would be all hosts, a network, or
    // other names.
    for text in [
        "",
        "*",
        "example.com,10.0.0.0/8,fd00::/8",
        ".Internal. [::1],x",
        "example.com:80,10.0.0.1:81,fd00::/8 [::1]:82 .a:1:2 ..b:3",
        ".* .10.0.0.1 .10.0.0.0/8 .[::1] ..a a.. .a/b",
    ] {
        let list = NoProxy::parse(text);
        assert_eq!(NoProxy::parse(&list.to_string()), list, "{text}");
    }
    let nobody = NoProxy::parse(&NoProxy::parse(".*").to_string());
    assert!(!nobody.matches(&target("http://a.example/")));
}

#[test]
fn user_without_a_password_has_credentials() {
    let credentials = |text: &str| Proxy::parse(text).unwrap().credentials().cloned();
    assert_eq!(credentials("http://user@h"), Some(Credentials::new("user", "").unwrap()));
    assert_eq!(credentials("http://:word@h"), Some(Credentials::new("", "word").unwrap()));
}

#[test]
fn environment_names_proxies_over_tls() {
    let environment = |pairs: &'static [(&str, &str)]| {
        ProxyEnvironment::from_variables(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert!(!environment(&[]).has_https_proxy());
    assert!(!environment(&[("https_proxy", "http://p"), ("http_proxy", "socks5://p")]).has_https_proxy());
    assert!(environment(&[("http_proxy", "https://p")]).has_https_proxy());
    assert!(environment(&[("https_proxy", "HTTPS://p:1")]).has_https_proxy());
    let listed = environment(&[("no_proxy", "a.example")]);
    assert!(listed.no_proxy().matches(&target("http://a.example/")));
    assert!(!listed.no_proxy().matches(&target("http://b.example/")));
}

#[test]
fn environment_is_read_from_its_variables() {
    let given = |name: &str| match name {
        "http_proxy" => Some("http://p:1".to_owned()),
        "https_proxy" => Some("https://q:2".to_owned()),
        "no_proxy" => Some("a.example,b.example:80".to_owned()),
        _ => None,
    };
    let environment = ProxyEnvironment::from_variables(given);
    let pairs = environment.variables();
    assert_eq!(pairs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["http_proxy", "https_proxy", "no_proxy"]);
    let again = ProxyEnvironment::from_variables(|name| {
        pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    });
    for (url, proxy) in
        [("http://h/", Some("http://p:1")), ("https://h/", Some("https://q:2")), ("http://a.example/", None)]
    {
        assert_eq!((environment.proxy_for(&target(url)), again.proxy_for(&target(url))), (proxy, proxy), "{url}");
    }
    assert_eq!(environment.without_proxies().variables(), [pairs[2].clone()]);
    assert_eq!(ProxyEnvironment::default().variables(), []);
}

#[test]
fn host_and_port_of_proxy_urls_are_parsed() {
    for (text, host, port) in [("http://[::1]:3128", "::1", 3128), ("https://P.Example", "p.example", 443)] {
        let proxy = Proxy::parse(text).unwrap();
        assert_eq!(
            (proxy.host_text(), proxy.port(), proxy.host().to_string().trim_matches(['[', ']'])),
            (host, port, host)
        );
    }
}

#[test]
fn debug_of_proxies_shows_no_password() {
    let proxy = Proxy::parse("http://u:word@p.example:3128").unwrap();
    assert_eq!(format!("{proxy:?}"), "Proxy(http://p.example:3128)");
    let user = Credentials::new("u", "word").unwrap();
    let handshake = SocksHandshake::new(ProxyKind::Socks5h, NAME, 80, Some(&user)).unwrap();
    assert_eq!(format!("{handshake:?}"), "SocksHandshake { state: Choice, .. }");
}

/// Checks proxy variables with bytes that are not UTF-8. In a user name, these bytes keep their
/// values. In a host, they make the URL invalid, so that no request bypasses the proxy.
#[test]
fn environment_bytes_that_are_not_utf8_are_encoded() {
    let proxy = |value: &'static [u8]| {
        let environment = ProxyEnvironment::from_variables(|name| (name == "http_proxy").then_some(value));
        environment.proxy_for(&target("http://h/")).map(str::to_owned)
    };
    let url = proxy(b"http://J\xe4s:\xc3\xa4@p:1").unwrap();
    assert_eq!(url, "http://J%E4s:\u{e4}@p:1");
    let credentials = Proxy::parse(&url).unwrap().credentials().cloned();
    assert_eq!(credentials, Some(Credentials::new(b"J\xe4s", "\u{e4}").unwrap()));
    assert!(Proxy::parse(&proxy(b"http://p\xff:1").unwrap()).is_err());
}
