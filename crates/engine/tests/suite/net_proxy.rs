//! The way through proxies, by both drivers: what each of them is told, what comes through, and what hostile ones achieve.

use crate::common;
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
use crate::proxy;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use common::{DRIVERS, Got, bounded, start_origin, through, trusting};
use haul::batch::BatchOptions;
use haul::net::dns::{DnsOptions, Resolver};
use haul::net::proxy::{ProxyAuth, ProxyOptions};
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::auth::Credentials;
use haul_policy::proxy::{Environment, NoProxy, Proxy};
use proxy::{Rules, TestProxy, basic};
use rustls::{ServerConnection, StreamOwned};
use testkit::identity::Identity;
use testkit::raw::{RawPeer, Step};

fn adjusted(mut options: RequestOptions, adjust: impl FnOnce(&mut ProxyOptions)) -> RequestOptions {
    adjust(options.proxy.as_mut().unwrap());
    options
}

#[track_caller]
fn fails(got: &Got, kind: ErrorKind, exit: u8, says: &str) {
    assert_eq!((got.kind, got.exit), (Some(kind), exit), "{}: {}", got.url, got.message);
    assert!(got.message.contains(says), "{}", got.message);
    assert!(!got.message.contains("secret"), "{}", got.message);
}

/// Names under `.test` are this machine.
fn client() -> Client {
    Client::with_resolver(Resolver::with_lookup(DnsOptions::default(), |name| {
        if name.ends_with(".test") { Ok(vec!["127.0.0.1".parse().unwrap()]) } else { Ok(Vec::new()) }
    }))
}

#[test]
fn a_forwarding_proxy_serves_many_origins_by_one_connection() {
    let (one, two) = (start_origin(), start_origin());
    for driver in DRIVERS {
        let proxy = TestProxy::start(Rules { login: Some(("me", "secret")), ..Rules::default() });
        let mut options = through(&format!("http://me:secret@{}", proxy.addr), &RequestOptions::default());
        options.authorization = Some(b"Basic b3JpZ2lu".to_vec());
        options.proxy.as_mut().unwrap().fields.push(("X-For".into(), b"the proxy".to_vec()));
        let client = Client::new();
        one.forget();
        for origin in [&one, &two, &one] {
            assert_eq!(driver.get(&client, &origin.url("/small/7"), &options).ok(), b"small 7\n");
        }
        let told = proxy.told();
        assert_eq!(proxy.connections(), if driver == DRIVERS[0] { 1 } else { proxy.connections() });
        assert_eq!(told.len(), 3);
        for head in &told {
            assert!(head.contains(&format!("Proxy-Authorization: {}\r\n", basic("me", "secret"))), "{head}");
            assert!(head.contains("X-For: the proxy\r\n") && head.starts_with("GET http://127.0.0.1:"), "{head}");
        }
        for request in one.log() {
            assert_eq!(request.header("proxy-authorization"), None);
            assert_eq!(request.header("authorization"), Some("Basic b3JpZ2lu"));
        }
    }
}

#[test]
fn a_field_for_the_proxy_takes_the_place_of_none_of_the_requests_own() {
    let origin = start_origin();
    for driver in DRIVERS {
        let proxy = TestProxy::start(Rules::default());
        let mut options = through(&format!("http://{}", proxy.addr), &RequestOptions::default());
        options.fields.extend([("X-Own".into(), b"origin".to_vec()), ("User-Agent".into(), b"mine".to_vec())]);
        let told = &mut options.proxy.as_mut().unwrap().fields;
        told.extend([("X-Own".into(), b"proxy".to_vec()), ("User-Agent".into(), b"proxied".to_vec())]);
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/7"), &options).ok(), b"small 7\n");
        let head = &proxy.told()[0];
        let named = |name: &str| head.lines().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
        assert_eq!(named("X-Own: "), ["origin", "proxy"], "{head}");
        assert_eq!(named("User-Agent: "), ["mine", "proxied"], "{head}");
    }
}

#[test]
fn a_tunnel_learns_host_and_port_and_nothing_of_the_request() {
    let origin = start_origin();
    let (trusting, _file) = trusting(origin.ca_pem());
    for driver in DRIVERS {
        for bytewise in [false, true] {
            let proxy = TestProxy::start(Rules { login: Some(("me", "secret")), bytewise, ..Rules::default() });
            let mut options = through(&format!("http://me:secret@{}", proxy.addr), &trusting);
            options.authorization = Some(b"Basic b3JpZ2lu".to_vec());
            options.cookie = Some(b"a=1".to_vec());
            let client = Client::new();
            for (url, tunnel) in [(origin.https_url("/echo"), false), (origin.url("/echo"), true)] {
                let options = adjusted(options.clone(), |proxy| proxy.tunnel = tunnel);
                let got = driver.get(&client, &url, &options);
                let body = String::from_utf8(got.ok().to_vec()).unwrap();
                assert!(body.contains("Basic b3JpZ2lu") && body.contains("a=1"), "{body}");
                assert!(!body.to_lowercase().contains("proxy-"), "{body}");
                assert_eq!(got.facts.connect_status, 200);
            }
            for (head, addr) in proxy.told().iter().zip([&origin.https_url(""), &origin.url("")]) {
                let addr = addr.split('/').nth(2).unwrap();
                assert!(head.starts_with(&format!("CONNECT {addr} HTTP/1.1\r\nHost: {addr}\r\n")), "{head}");
                assert!(!head.contains("b3JpZ2lu") && !head.contains("a=1") && !head.contains("echo"), "{head}");
            }
        }
    }
}

#[test]
fn large_bodies_come_whole_through_tls_in_tls() {
    let origin = start_origin();
    let identity = Identity::generate();
    let (trusting_origin, _file) = trusting(origin.ca_pem());
    let (trusting_proxy, _file) = trusting(identity.ca_pem());
    for driver in DRIVERS {
        let proxy = TestProxy::start(Rules { tls: Some(identity.server_config(&[])), ..Rules::default() });
        let options = adjusted(through(&format!("https://localhost:{}", proxy.addr.port()), &trusting_origin), |to| {
            to.tls = trusting_proxy.tls.clone();
        });
        let client = Client::new();
        for length in [0, 1, 100_000, 3_000_001] {
            let path = format!("/bytes/{length}");
            let expected = origin.pattern().slice(0, length);
            let got = driver.get(&client, &origin.https_url(&path), &options);
            assert!(got.ok() == expected, "{driver:?} {length}");
            // A request that is forwarded, and a tunnel without TLS inside, by the same proxy.
            let plain = adjusted(options.clone(), |proxy| proxy.tunnel = true);
            assert!(driver.get(&client, &origin.url(&path), &plain).ok() == expected, "{driver:?} {length}");
        }
        assert_eq!(driver.get(&client, &origin.url("/small/1"), &options).ok(), b"small 1\n");
        // The origin's CA says nothing about the proxy.
        let wrong = adjusted(options.clone(), |proxy| proxy.tls = options.tls.clone());
        fails(
            &driver.get(&Client::new(), &origin.https_url("/small"), &wrong),
            ErrorKind::PeerCertificate,
            60,
            "the proxy",
        );
    }
}

#[test]
fn bodies_that_wait_for_room_go_on_in_the_clear_through_a_proxys_tls() {
    let origin = start_origin();
    let identity = Identity::generate();
    let (trusting_proxy, _file) = trusting(identity.ca_pem());
    let proxy = TestProxy::start(Rules { tls: Some(identity.server_config(&[])), ..Rules::default() });
    let options = through(&format!("https://localhost:{}", proxy.addr.port()), &RequestOptions::default());
    let options = adjusted(options, |to| (to.tls, to.tunnel) = (trusting_proxy.tls, true));
    let client = Client::builder().options(|own| *own = options).build();
    let requests: Vec<_> = (0..12).map(|_| client.get(&origin.url("/bytes/400000")).build().unwrap()).collect();
    let batch = BatchOptions { memory: 100_000, per_host: 3, ..BatchOptions::default() };
    let expected = origin.pattern().slice(0, 400_000);
    let replies: Vec<_> = bounded("the batch", move || client.fetch_all(requests, batch).collect());
    assert!(replies.into_iter().all(|(_, reply)| reply.unwrap().body == expected));
}

#[test]
fn a_proxys_close_notify_ends_a_body_in_the_clear_that_its_tls_carries() {
    let identity = Identity::generate();
    let (trusting_proxy, _file) = trusting(identity.ca_pem());
    for (driver, notifies) in DRIVERS.into_iter().flat_map(|driver| [(driver, true), (driver, false)]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let config = identity.server_config(&[]);
        let proxy = thread::spawn(move || {
            let conn = ServerConnection::new(config).unwrap();
            let mut stream = StreamOwned::new(conn, listener.accept().unwrap().0);
            for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nall"] {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
            if notifies {
                stream.conn.send_close_notify();
            }
            stream.flush().unwrap();
        });
        let options = adjusted(through(&url, &RequestOptions::default()), |to| {
            (to.tls, to.tunnel) = (trusting_proxy.tls.clone(), true);
        });
        let got = driver.get(&client(), "http://example.test/", &options);
        proxy.join().unwrap();
        if notifies {
            assert_eq!(got.ok(), b"all", "{driver:?}");
        } else {
            fails(&got, ErrorKind::Receive, 56, "end mark");
        }
    }
}

#[test]
fn socks_proxies_of_every_kind() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    for driver in DRIVERS {
        for bytewise in [false, true] {
            for (kind, asked) in [
                ("socks4", format!("socks4 127.0.0.1:{port}")),
                ("socks4a", format!("socks4 h.test:{port}")),
                ("socks5", format!("socks5 127.0.0.1:{port}")),
                ("socks5h", format!("socks5 h.test:{port}")),
            ] {
                let login = Some(("me", "secret"));
                let proxy = TestProxy::start(Rules { login, bytewise, ..Rules::default() });
                let options = through(&format!("{kind}://me:secret@{}", proxy.addr), &RequestOptions::default());
                let client = client();
                let got = driver.get(&client, &format!("http://h.test:{port}/small/9"), &options);
                assert_eq!(got.ok(), b"small 9\n", "{driver:?} {kind}");
                assert_eq!(proxy.told().last(), Some(&asked));
                assert_eq!(proxy.told().contains(&"login me:secret".to_owned()), kind.starts_with("socks5"));
            }
        }
    }
}

#[test]
fn wrong_socks_credentials_and_refusals_exit_97() {
    let origin = start_origin();
    for driver in DRIVERS {
        let proxy = TestProxy::start(Rules { login: Some(("me", "right")), ..Rules::default() });
        for (kind, user, says) in [
            ("socks5", "me:secret@", "refused the user name or password"),
            ("socks5", "", "wants a user name"),
            ("socks4", "you@", "identd"),
        ] {
            let options = through(&format!("{kind}://{user}{}", proxy.addr), &RequestOptions::default());
            fails(&driver.get(&Client::new(), &origin.url("/small"), &options), ErrorKind::Proxy, 97, says);
        }
        let long = format!("http://{}.test/", "a.".repeat(126) + "aa");
        let options = through(&format!("socks5h://{}", proxy.addr), &RequestOptions::default());
        let before = proxy.connections();
        fails(&driver.get(&client(), &long, &options), ErrorKind::Proxy, 97, "cannot express");
        assert_eq!(proxy.connections(), before, "nothing was connected for what cannot be said");
    }
}

#[test]
fn a_preproxy_comes_first() {
    let origin = start_origin();
    let (trusting, _file) = trusting(origin.ca_pem());
    for driver in DRIVERS {
        let first = TestProxy::start(Rules { login: Some(("first", "secret")), ..Rules::default() });
        for kind in ["http", "socks5", "socks4"] {
            let second = TestProxy::start(Rules { login: Some(("second", "secret2")), ..Rules::default() });
            let options = through(&format!("{kind}://second:secret2@{}", second.addr), &trusting);
            let options = adjusted(options, |proxy| {
                let url = format!("socks5://first:secret@{}", first.addr);
                proxy.preproxy = Some(Proxy::parse(&url).unwrap());
            });
            for url in [origin.https_url("/small/3"), origin.url("/small/3")] {
                assert_eq!(driver.get(&Client::new(), &url, &options).ok(), b"small 3\n", "{kind}");
            }
            assert!(first.told().contains(&format!("socks5 {}", second.addr)));
            assert!(!first.told().concat().contains("secret2"), "{:?}", first.told());
            assert!(!second.told().is_empty() && !second.told().concat().contains("first"));
        }
        let alone = RequestOptions {
            proxy: Some({
                let mut proxy = ProxyOptions::default();
                proxy.preproxy = Some(Proxy::parse(&format!("socks5://first:secret@{}", first.addr)).unwrap());
                proxy
            }),
            ..RequestOptions::default()
        };
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/3"), &alone).ok(), b"small 3\n");
        let http = adjusted(alone, |proxy| proxy.preproxy = Some(Proxy::parse("http://127.0.0.1").unwrap()));
        fails(&driver.get(&Client::new(), &origin.url("/"), &http), ErrorKind::Setup, 2, "SOCKS");
    }
}

#[test]
fn digest_is_answered_in_tunnels_and_for_forwarded_requests() {
    let origin = start_origin();
    let (trusting, _file) = trusting(origin.ca_pem());
    for driver in DRIVERS {
        for auth in [ProxyAuth::Digest, ProxyAuth::Any] {
            let proxy = TestProxy::start(Rules { login: Some(("me", "secret")), digest: true, ..Rules::default() });
            let options = adjusted(through(&format!("http://{}", proxy.addr), &trusting), |to| {
                to.auth = auth;
                to.credentials = Some(Credentials::new("me", "secret").unwrap());
            });
            let client = Client::new();
            for url in [origin.https_url("/small/4"), origin.url("/small/4"), origin.url("/small/4")] {
                assert_eq!(driver.get(&client, &url, &options).ok(), b"small 4\n", "{driver:?} {auth:?}");
            }
            // The challenge is asked for once, and remembered.
            assert_eq!(proxy.told().len(), 4, "{:?}", proxy.told());
            assert!(!proxy.told().concat().contains("Basic"));

            let fresh = TestProxy::start(Rules { login: Some(("me", "other")), digest: true, ..Rules::default() });
            let wrong = adjusted(through(&format!("http://me:secret@{}", fresh.addr), &trusting), |to| to.auth = auth);
            let got = driver.get(&client, &origin.https_url("/small"), &wrong);
            fails(&got, ErrorKind::Connect, 7, "CONNECT tunnel failed, response 407");
            assert_eq!(driver.get(&client, &origin.url("/small"), &wrong).status, 407);
        }
    }
}

#[test]
fn digest_is_answered_on_another_connection_where_the_proxy_leaves() {
    let challenge = "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n";
    for driver in DRIVERS {
        let closes = "Connection: close\r\nContent-Length: 2\r\n\r\nno";
        for framing in [closes, "\r\nno", "Proxy-Connection: close\r\nContent-Length: 0\r\n\r\n"] {
            let asks = vec![Step::ReadHead, Step::send(format!("{challenge}{framing}")), Step::Close];
            let opens = vec![
                Step::ReadHead,
                Step::send("HTTP/1.1 200 OK\r\n\r\n"),
                Step::ReadHead,
                Step::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                Step::Close,
            ];
            let peer = RawPeer::start(vec![asks.clone(), opens]);
            let options =
                adjusted(through(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default()), |to| {
                    (to.auth, to.tunnel) = (ProxyAuth::Any, true)
                });
            assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok");
            let (first, second) = (peer.received(0), peer.received(1));
            assert!(!String::from_utf8_lossy(&first).contains("Proxy-Authorization"));
            assert!(String::from_utf8_lossy(&second).contains("Proxy-Authorization: Digest username=\"me\""));
            // One that asks for ever is not asked for ever.
            let stubborn = RawPeer::always(asks);
            let options =
                adjusted(through(&format!("http://me:secret@{}", stubborn.addr()), &RequestOptions::default()), |to| {
                    (to.auth, to.tunnel) = (ProxyAuth::Any, true)
                });
            fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Connect, 7, "407");
            assert_eq!(stubborn.connections(), 2);
        }
    }
}

/// What a proxy says to a CONNECT that it does not let through.
fn challenge(nonce: usize, fields: &str) -> Step {
    Step::send(format!(
        "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"{nonce}\", qop=\"auth\"{fields}\r\nContent-Length: 0\r\n\r\n"
    ))
}

/// Lets a CONNECT through, and answers what comes by the tunnel.
fn tunnels() -> Vec<Step> {
    let ok = Step::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\n\r\n"), Step::ReadHead, ok, Step::Close]
}

fn tunnelled_with_digest(peer: &RawPeer) -> RequestOptions {
    adjusted(through(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default()), |to| {
        (to.auth, to.tunnel) = (ProxyAuth::Digest, true);
    })
}

#[test]
fn a_proxy_that_leaves_with_an_aged_nonce_is_answered_on_another_connection() {
    let leaves = |nonce: usize| {
        let fields = if nonce == 0 { "" } else { ", stale=true" };
        vec![Step::ReadHead, challenge(nonce, &format!("{fields}\r\nConnection: close")), Step::Close]
    };
    for driver in DRIVERS {
        let peer = RawPeer::start(vec![leaves(0), leaves(1), tunnels()]);
        let options = tunnelled_with_digest(&peer);
        assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok", "{driver:?}");
        assert!(String::from_utf8_lossy(&peer.received(2)).contains("nonce=\"1\""));
        // One to which every nonce is too old is not asked for ever.
        let peer = RawPeer::start((0..20).map(leaves).collect());
        let options = tunnelled_with_digest(&peer);
        fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Connect, 7, "407");
        assert_eq!(peer.connections(), 4, "{driver:?}");
    }
}

#[test]
fn a_proxy_that_closes_before_it_hears_the_answer_is_asked_on_another_connection() {
    for driver in DRIVERS {
        // Behind its 407 without a word; when it has read the answer; with a reset.
        let closes = vec![Step::ReadHead, challenge(0, ""), Step::Close];
        let reads = vec![Step::ReadHead, challenge(0, ""), Step::ReadHead, Step::Close];
        let resets = vec![Step::ReadHead, challenge(0, ""), Step::ReadHead, Step::Reset];
        for asks in [closes, reads, resets] {
            let peer = RawPeer::start(vec![asks.clone(), tunnels()]);
            let options = tunnelled_with_digest(&peer);
            assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"ok", "{driver:?} {asks:?}");
            let peer = RawPeer::start(vec![asks, vec![Step::ReadHead]]);
            let options = tunnelled_with_digest(&peer);
            let says = "the proxy closed the connection before it answered CONNECT";
            fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Receive, 56, says);
            assert_eq!(peer.connections(), 2, "{driver:?}");
        }
    }
}

#[test]
fn a_forwarding_proxys_proxy_connection_is_heeded() {
    let ok = |version: &str, field: &str| {
        Step::send(format!("HTTP/{version} 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\nok"))
    };
    for driver in DRIVERS {
        let client = client();
        // It closes a while after it has said so.
        let closes = vec![Step::ReadHead, ok("1.1", "Proxy-Connection: close"), Step::ReadToEnd];
        let keeps = vec![Step::ReadHead, ok("1.0", "Proxy-Connection: keep-alive"), Step::ReadHead, ok("1.0", "X: y")];
        let peer = RawPeer::start(vec![closes.clone(), closes, keeps]);
        let options = through(&format!("http://{}", peer.addr()), &RequestOptions::default());
        for connections in [1, 2, 3, 3] {
            assert_eq!(driver.get(&client, "http://example.test/", &options).ok(), b"ok", "{driver:?}");
            assert_eq!(peer.connections(), connections, "{driver:?}");
        }
    }
}

#[test]
fn two_that_a_proxy_asks_at_a_time_count_their_answers_together() {
    let nonces = ["", "nonce=\"n\"", "nonce=\"m\", stale=true"];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
    let client = client();
    let options = adjusted(through(&url, &RequestOptions::default()), |to| to.auth = ProxyAuth::Digest);
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (client, options) = (client.clone(), options.clone());
            thread::spawn(move || DRIVERS[0].get(&client, "http://example.test/", &options))
        })
        .collect();
    let mut both = [listener.accept().unwrap().0, listener.accept().unwrap().0];
    for (round, nonce) in nonces.iter().enumerate() {
        let mut counts: Vec<_> = both
            .iter_mut()
            .map(|stream| {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                head.split("nc=").nth(1).map(|count| count[..8].to_owned())
            })
            .collect();
        counts.sort();
        let expected = ["00000001", "00000002"].map(|count| (!nonce.is_empty()).then(|| count.to_owned()));
        assert_eq!(counts, expected, "{nonce}");
        let answer = match nonces.get(round + 1) {
            Some(next) => format!(
                "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Digest realm=\"r\", {next}, qop=\"auth\"\r\nContent-Length: 0\r\n\r\n"
            ),
            None => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into(),
        };
        both.iter_mut().for_each(|stream| stream.write_all(answer.as_bytes()).unwrap());
    }
    for client in clients {
        assert_eq!(client.join().unwrap().ok(), b"ok");
    }
}

#[test]
fn a_large_body_that_began_with_the_proxys_answer_comes_whole() {
    // Larger than one read, and half of it in the segment of the proxy's answer: none of it may be moved past what was
    // read ahead.
    let body = testkit::pattern::Pattern::new(7).slice(0, 400_000);
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n".to_vec();
    answer.extend_from_slice(&body);
    for driver in DRIVERS {
        let peer = RawPeer::always(vec![Step::ReadHead, Step::Send(answer.clone()), Step::ReadHead, Step::Close]);
        let options =
            adjusted(through(&format!("http://{}", peer.addr()), &RequestOptions::default()), |to| to.tunnel = true);
        let got = driver.get(&client(), "http://example.test/", &options);
        assert!(got.exit != 0 && got.body.is_empty() || got.body == body, "{} {}", got.message, got.body.len());
    }
}

#[test]
fn a_proxy_that_refuses_connect_ends_it_with_56() {
    for driver in DRIVERS {
        for (answer, kind, exit, says) in [
            (
                "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
                ErrorKind::Connect,
                7,
                "response 407",
            ),
            ("HTTP/1.1 503 Later\r\n\r\n", ErrorKind::Connect, 7, "response 503"),
            (
                "HTTP/1.1 302 There\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n",
                ErrorKind::Connect,
                7,
                "response 302",
            ),
            ("HTTP/1.1 101 Other\r\nUpgrade: x\r\n\r\n", ErrorKind::Receive, 56, "switched protocols"),
            ("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", ErrorKind::Protocol, 8, "broken"),
            ("HTTP/1.1 403 No\r\nContent-Length: 1x\r\n\r\n", ErrorKind::Protocol, 8, "broken"),
            ("SSH-2.0-OpenSSH\r\n", ErrorKind::Receive, 56, "broken"),
            ("HTTP/1.1 200 OK\r\nX: y", ErrorKind::Receive, 56, "closed the connection"),
            ("", ErrorKind::Receive, 56, "closed the connection"),
        ] {
            let peer = RawPeer::always(vec![Step::ReadHead, Step::send(answer), Step::Close]);
            let options = through(&format!("http://me:secret@{}", peer.addr()), &RequestOptions::default());
            let got = driver.get(&client(), "https://example.test/", &options);
            fails(&got, kind, exit, says);
            assert_eq!(peer.connections(), 1, "it is not tried again: {answer}");
        }
    }
}

#[test]
fn endless_heads_and_interim_answers_end() {
    for driver in DRIVERS {
        for (start, repeated) in
            [("HTTP/1.1 200 OK\r\n", "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"), ("", "HTTP/1.1 100 Go\r\n\r\n")]
        {
            let peer = RawPeer::always(vec![
                Step::ReadHead,
                Step::send(start),
                Step::SendRepeatedly(repeated.as_bytes().to_vec(), 1 << 22),
            ]);
            let options = through(&format!("http://{}", peer.addr()), &RequestOptions::default());
            fails(&driver.get(&client(), "https://example.test/", &options), ErrorKind::Receive, 56, "broken");
        }
    }
}

#[test]
fn what_comes_behind_the_answer_belongs_to_the_tunnel() {
    // The proxy claims a body, which a 2xx to CONNECT has not (RFC 9110 §9.3.6): these bytes are the origin's.
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for driver in DRIVERS {
        // In one write with the answer, before the request: what nobody asked for is not taken for a response.
        let early = RawPeer::always(vec![
            Step::ReadHead,
            Step::send(format!("{answer}{response}")),
            Step::ReadHead,
            Step::Close,
        ]);
        let options =
            adjusted(through(&format!("http://{}", early.addr()), &RequestOptions::default()), |to| to.tunnel = true);
        let got = driver.get(&client(), "http://example.test/", &options);
        assert!(got.exit == 0 && got.body == b"hello" || got.exit != 0 && got.body.is_empty(), "{got:?}");

        let later = RawPeer::always(vec![
            Step::ReadHead,
            Step::send_bytewise(answer),
            Step::ReadHead,
            Step::send(response),
            Step::Close,
        ]);
        let options =
            adjusted(through(&format!("http://{}", later.addr()), &RequestOptions::default()), |to| to.tunnel = true);
        assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"hello");
    }
}

#[test]
fn hostile_socks_replies_are_errors_at_every_cut() {
    let reply: &[u8] = b"\x05\x00\x05\x00\x00\x03\x09localhost\x00\x50";
    for driver in DRIVERS {
        for cut in 0..reply.len() {
            let peer = RawPeer::always(vec![
                Step::ReadBytes(3),
                Step::send_bytewise(&reply[..cut]),
                Step::HalfClose,
                Step::ReadToEnd,
            ]);
            let options = through(&format!("socks5h://{}", peer.addr()), &RequestOptions::default());
            fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Proxy, 97, "SOCKS");
        }
        for bad in [
            &b"HTTP/1.1 400 Bad\r\n\r\n"[..],
            b"\x05\x01",
            b"\x05\xff",
            b"\x04\x00",
            b"\x05\x00\x05\x02",
            b"\x05\x00\x05\x00\x00\x09",
        ] {
            let peer = RawPeer::always(vec![Step::ReadBytes(3), Step::send(bad), Step::HalfClose, Step::ReadToEnd]);
            let options = through(&format!("socks5h://{}", peer.addr()), &RequestOptions::default());
            fails(&driver.get(&client(), "http://example.test/", &options), ErrorKind::Proxy, 97, "SOCKS");
        }
    }
}

#[test]
fn a_silent_proxy_is_given_up_in_time() {
    for driver in DRIVERS {
        for url in ["http", "https", "socks5h", "socks4a"] {
            let peer = RawPeer::always(vec![Step::ReadToEnd]);
            let mut options =
                through(&format!("{url}://{}", peer.addr()), &common::impatient(Duration::from_millis(100)));
            options.proxy.as_mut().unwrap().tls.verify = false;
            fails(&driver.get(&client(), "https://example.test/", &options), ErrorKind::Timeout, 28, "time");
        }
    }
}

#[test]
fn proxies_that_cannot_be_are_no_reason_to_go_direct() {
    for driver in DRIVERS {
        let origin = start_origin();
        let nowhere = through("http://nowhere.invalid:1", &RequestOptions::default());
        fails(&driver.get(&Client::new(), &origin.url("/"), &nowhere), ErrorKind::ProxyResolve, 5, "proxy");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = through(&format!("socks5://{closed}"), &RequestOptions::default());
        assert_eq!(driver.get(&Client::new(), &origin.url("/"), &refused).exit, 7);
        let environment = Environment::read(|name| (name == "http_proxy").then_some("ftp://me:secret@x"));
        let mut proxy = ProxyOptions::default();
        proxy.environment = environment;
        let options = RequestOptions { proxy: Some(proxy), ..RequestOptions::default() };
        fails(&driver.get(&Client::new(), &origin.url("/"), &options), ErrorKind::Connect, 7, "scheme");
        assert_eq!(origin.requests(), 0);
        let direct = adjusted(options, |proxy| proxy.no_proxy = Some(NoProxy::parse("127.0.0.0/8")));
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/1"), &direct).exit, 0);
    }
}

/// Each of these must not find another's connection.
#[test]
fn the_pool_keeps_ways_apart() {
    let origin = start_origin();
    let proxy = TestProxy::start(Rules::default());
    let other = TestProxy::start(Rules::default());
    let url = |user: &str| format!("http://{user}{}", proxy.addr);
    let plain = RequestOptions::default();
    let with = |adjust: fn(&mut ProxyOptions)| adjusted(through(&url(""), &plain), adjust);
    let ways = [
        plain.clone(),
        through(&url(""), &plain),
        through(&url("a:1@"), &plain),
        through(&url("a:2@"), &plain),
        through(&format!("http://{}", other.addr), &plain),
        through(&format!("socks5://{}", proxy.addr), &plain),
        with(|proxy| proxy.tunnel = true),
        with(|proxy| proxy.fields.push(("X".into(), b"1".to_vec()))),
        adjusted(through(&url(""), &plain), |to| {
            to.preproxy = Some(Proxy::parse(&format!("socks5://{}", other.addr)).unwrap());
        }),
    ];
    let client = Client::new();
    let target = origin.url("/small/2");
    for (round, expected) in [(0, 1), (1, 0)] {
        for (place, options) in ways.iter().enumerate() {
            let got = DRIVERS[0].get(&client, &target, options);
            assert_eq!(got.ok(), b"small 2\n");
            assert_eq!(got.facts.connects, expected, "round {round}, way {place}");
        }
    }
}

#[test]
fn the_proxy_protocol_tells_both_ends() {
    for driver in DRIVERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            let mut got = Vec::new();
            while !got.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                got.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 204 No\r\n\r\n").unwrap();
            (String::from_utf8(got).unwrap(), peer)
        });
        let mut options = RequestOptions::default();
        options.connect.haproxy_protocol = true;
        assert_eq!(driver.get(&Client::new(), &format!("http://{addr}/"), &options).exit, 0);
        let (got, peer) = server.join().unwrap();
        let line = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\nGET / HTTP/1.1\r\n", peer.port(), addr.port());
        assert!(got.starts_with(&line), "{got}");
    }
}
