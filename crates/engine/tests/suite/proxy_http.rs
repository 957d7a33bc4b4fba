//! Tests of HTTP proxies: forwarded requests, CONNECT tunnels, TLS to the proxy, and the
//! information that each proxy receives.

use crate::common;
use crate::support::proxy;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{DRIVERS, start_origin, trusting_ca, with_proxy, with_time_limit};
use haul::batch::BatchOptions;
use haul::net::proxy::ProxyOptions;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::proxy::Proxy;
use proxy::{TestProxy, TestProxyBehavior, adjusted, assert_fails, basic, client};
use rustls::{ServerConnection, StreamOwned};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

/// The connection of a client to a proxy of [`https_proxy`].
type ProxyStream = StreamOwned<ServerConnection, TcpStream>;

/// Starts a proxy that accepts one TLS connection and calls `serve` with it. Returns the URL of the
/// proxy, and the thread that returns the result of `serve`.
fn https_proxy<T: Send + 'static>(
    identity: &TestCertificates,
    serve: impl FnOnce(ProxyStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let connection = ServerConnection::new(identity.server_config(&[])).unwrap();
    (url, thread::spawn(move || serve(StreamOwned::new(connection, listener.accept().unwrap().0))))
}

/// Reads a request head, and no byte after it.
fn read_head(stream: &mut ProxyStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

#[test]
fn forwarding_proxy_connection_serves_many_origins() {
    let (one, two) = (start_origin(), start_origin());
    for driver in DRIVERS {
        let proxy =
            TestProxy::start(TestProxyBehavior { login: Some(("me", "secret")), ..TestProxyBehavior::default() });
        let mut options = with_proxy(&format!("http://me:secret@{}", proxy.addr), &RequestOptions::default());
        options.authorization = Some(b"Basic b3JpZ2lu".to_vec());
        options.proxy.as_mut().unwrap().fields.push(("X-For".into(), b"the proxy".to_vec()));
        let client = Client::new();
        one.forget();
        for origin in [&one, &two, &one] {
            assert_eq!(driver.get(&client, &origin.url("/small/7"), &options).ok(), b"small 7\n");
        }
        let told = proxy.received();
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
fn proxy_fields_do_not_replace_request_fields() {
    let origin = start_origin();
    for driver in DRIVERS {
        let proxy = TestProxy::start(TestProxyBehavior::default());
        let mut options = with_proxy(&format!("http://{}", proxy.addr), &RequestOptions::default());
        options.fields.extend([("X-Own".into(), b"origin".to_vec()), ("User-Agent".into(), b"mine".to_vec())]);
        let told = &mut options.proxy.as_mut().unwrap().fields;
        told.extend([("X-Own".into(), b"proxy".to_vec()), ("User-Agent".into(), b"proxied".to_vec())]);
        assert_eq!(driver.get(&Client::new(), &origin.url("/small/7"), &options).ok(), b"small 7\n");
        let head = &proxy.received()[0];
        let named = |name: &str| head.lines().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
        assert_eq!(named("X-Own: "), ["origin", "proxy"], "{head}");
        assert_eq!(named("User-Agent: "), ["mine", "proxied"], "{head}");
    }
}

#[test]
fn connect_reveals_only_host_and_port() {
    let origin = start_origin();
    let (trusting, _file) = trusting_ca(origin.ca_pem());
    for driver in DRIVERS {
        for bytewise in [false, true] {
            let proxy = TestProxy::start(TestProxyBehavior {
                login: Some(("me", "secret")),
                bytewise,
                ..TestProxyBehavior::default()
            });
            let mut options = with_proxy(&format!("http://me:secret@{}", proxy.addr), &trusting);
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
                assert_eq!((got.facts.auth_scheme, got.facts.proxy_auth_scheme), (Some("Basic"), Some("Basic")));
            }
            for (head, addr) in proxy.received().iter().zip([&origin.https_url(""), &origin.url("")]) {
                let addr = addr.split('/').nth(2).unwrap();
                assert!(head.starts_with(&format!("CONNECT {addr} HTTP/1.1\r\nHost: {addr}\r\n")), "{head}");
                assert!(!head.contains("b3JpZ2lu") && !head.contains("a=1") && !head.contains("echo"), "{head}");
            }
        }
    }
}

#[test]
fn large_bodies_arrive_whole_through_tls_in_tls() {
    let origin = start_origin();
    let identity = TestCertificates::generate();
    let (trusting_origin, _file) = trusting_ca(origin.ca_pem());
    let (trusting_proxy, _file) = trusting_ca(identity.ca_pem());
    for driver in DRIVERS {
        let proxy = TestProxy::start(TestProxyBehavior {
            tls: Some(identity.server_config(&[])),
            ..TestProxyBehavior::default()
        });
        let options =
            adjusted(with_proxy(&format!("https://localhost:{}", proxy.addr.port()), &trusting_origin), |to| {
                to.tls = trusting_proxy.tls.clone();
            });
        let client = Client::new();
        for length in [0, 1, 100_000, 3_000_001] {
            let path = format!("/bytes/{length}");
            let expected = origin.pattern().slice(0, length);
            let got = driver.get(&client, &origin.https_url(&path), &options);
            assert!(got.ok() == expected, "{driver:?} {length}");
            // A forwarded request, and a tunnel without TLS inside, through the same proxy.
            let plain = adjusted(options.clone(), |proxy| proxy.tunnel = true);
            assert!(driver.get(&client, &origin.url(&path), &plain).ok() == expected, "{driver:?} {length}");
        }
        assert_eq!(driver.get(&client, &origin.url("/small/1"), &options).ok(), b"small 1\n");
        // The origin's CA says nothing about the proxy.
        let wrong = adjusted(options.clone(), |proxy| proxy.tls = options.tls.clone());
        assert_fails(
            &driver.get(&Client::new(), &origin.https_url("/small"), &wrong),
            ErrorKind::PeerCertificate,
            60,
            "the proxy",
        );
    }
}

#[test]
fn paused_plain_bodies_continue_through_https_proxy() {
    let origin = start_origin();
    let identity = TestCertificates::generate();
    let (trusting_proxy, _file) = trusting_ca(identity.ca_pem());
    let proxy =
        TestProxy::start(TestProxyBehavior { tls: Some(identity.server_config(&[])), ..TestProxyBehavior::default() });
    let options = with_proxy(&format!("https://localhost:{}", proxy.addr.port()), &RequestOptions::default());
    let options = adjusted(options, |to| (to.tls, to.tunnel) = (trusting_proxy.tls, true));
    let client = Client::builder().options(|own| *own = options).build();
    let requests: Vec<_> = (0..12).map(|_| client.get(&origin.url("/bytes/400000")).build().unwrap()).collect();
    let batch = BatchOptions { memory: 100_000, per_host: Some(3), ..BatchOptions::default() };
    let expected = origin.pattern().slice(0, 400_000);
    let replies: Vec<_> = with_time_limit("the batch", move || client.fetch_all(requests, batch).collect());
    assert!(replies.into_iter().all(|(_, reply)| reply.unwrap().body == expected));
}

#[test]
fn proxy_close_notify_ends_a_tunnelled_plain_body() {
    let identity = TestCertificates::generate();
    let (trusting_proxy, _file) = trusting_ca(identity.ca_pem());
    for (driver, notifies) in DRIVERS.into_iter().flat_map(|driver| [(driver, true), (driver, false)]) {
        let (url, proxy) = https_proxy(&identity, move |mut stream| {
            for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nall"] {
                read_head(&mut stream);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            if notifies {
                stream.conn.send_close_notify();
            }
            stream.flush().unwrap();
        });
        let options = adjusted(with_proxy(&url, &RequestOptions::default()), |to| {
            (to.tls, to.tunnel) = (trusting_proxy.tls.clone(), true);
        });
        let got = driver.get(&client(), "http://example.test/", &options);
        proxy.join().unwrap();
        if notifies {
            assert_eq!(got.ok(), b"all", "{driver:?}");
        } else {
            assert_fails(&got, ErrorKind::Receive, 56, "end mark");
        }
    }
}

#[test]
fn endless_tls_record_of_an_https_proxy_does_not_extend_the_time_limit() {
    let identity = TestCertificates::generate();
    let (trusting_proxy, _file) = trusting_ca(identity.ca_pem());
    for driver in DRIVERS {
        let (url, proxy) = https_proxy(&identity, move |mut stream| {
            read_head(&mut stream);
            // The header of a record of 16 KiB, and then a byte of it at a time, until the client
            // has gone.
            let mut socket = stream.sock;
            let _ = socket.write_all(&[0x17, 3, 3, 0x40, 0]);
            (0..100).all(|_| {
                thread::sleep(Duration::from_millis(50));
                socket.write_all(b"x").is_ok()
            })
        });
        let mut options = adjusted(with_proxy(&url, &RequestOptions::default()), |to| {
            to.tls = trusting_proxy.tls.clone();
        });
        options.max_time = Some(Duration::from_millis(500));
        let got = driver.get(&client(), "http://example.test/", &options);
        assert_fails(&got, ErrorKind::Timeout, 28, "timed out");
        assert!(!proxy.join().unwrap(), "{driver:?}: the proxy saw the client go");
    }
}

#[test]
fn end_of_a_proxy_connection_within_a_tls_record_is_found_at_once() {
    let identity = TestCertificates::generate();
    let (trusting_proxy, _file) = trusting_ca(identity.ca_pem());
    for driver in DRIVERS {
        let (url, proxy) = https_proxy(&identity, move |mut stream| {
            read_head(&mut stream);
            // The header of a record and the end arrive together.
            stream.sock.write_all(&[0x17, 3, 3, 0x40, 0]).unwrap();
        });
        let mut options = adjusted(with_proxy(&url, &RequestOptions::default()), |to| {
            to.tls = trusting_proxy.tls.clone();
        });
        options.max_time = Some(Duration::from_secs(20));
        let got = driver.get(&client(), "http://example.test/", &options);
        proxy.join().unwrap();
        assert!(!matches!(got.kind, None | Some(ErrorKind::Timeout)), "{driver:?}: {}", got.message);
    }
}

#[test]
fn proxy_connection_field_in_response_is_obeyed() {
    let ok = |version: &str, field: &str| {
        ScriptStep::send(format!("HTTP/{version} 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\nok"))
    };
    for driver in DRIVERS {
        let client = client();
        // The proxy closes some time after it has announced so.
        let closes = vec![ScriptStep::ReadHead, ok("1.1", "Proxy-Connection: close"), ScriptStep::ReadToEnd];
        let keeps = vec![
            ScriptStep::ReadHead,
            ok("1.0", "Proxy-Connection: keep-alive"),
            ScriptStep::ReadHead,
            ok("1.0", "X: y"),
        ];
        let peer = H1Peer::start(vec![closes.clone(), closes, keeps]);
        let options = with_proxy(&format!("http://{}", peer.addr()), &RequestOptions::default());
        for connections in [1, 2, 3, 3] {
            assert_eq!(driver.get(&client, "http://example.test/", &options).ok(), b"ok", "{driver:?}");
            assert_eq!(peer.connections(), connections, "{driver:?}");
        }
    }
}

#[test]
fn body_after_connect_response_is_never_truncated() {
    // A body larger than one read, half of it in the segment of the CONNECT response: splicing must
    // not skip bytes read ahead.
    let body = testkit::byte_pattern::BytePattern::new(7).slice(0, 400_000);
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n".to_vec();
    answer.extend_from_slice(&body);
    for driver in DRIVERS {
        let peer = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::Send(answer.clone()),
            ScriptStep::ReadHead,
            ScriptStep::Close,
        ]);
        let options =
            adjusted(with_proxy(&format!("http://{}", peer.addr()), &RequestOptions::default()), |to| to.tunnel = true);
        let got = driver.get(&client(), "http://example.test/", &options);
        assert!(got.exit != 0 && got.body.is_empty() || got.body == body, "{} {}", got.message, got.body.len());
    }
}

#[test]
fn bytes_after_connect_response_belong_to_tunnel() {
    // The proxy announces a body, which a 2xx to CONNECT does not have (RFC 9110 section 9.3.6):
    // these bytes belong to the origin.
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for driver in DRIVERS {
        // In one write with the CONNECT response, before the request: such bytes are not a
        // response.
        let early = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::send(format!("{answer}{response}")),
            ScriptStep::ReadHead,
            ScriptStep::Close,
        ]);
        let options = adjusted(with_proxy(&format!("http://{}", early.addr()), &RequestOptions::default()), |to| {
            to.tunnel = true
        });
        let got = driver.get(&client(), "http://example.test/", &options);
        assert!(got.exit == 0 && got.body == b"hello" || got.exit != 0 && got.body.is_empty(), "{got:?}");

        let later = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::send_bytewise(answer),
            ScriptStep::ReadHead,
            ScriptStep::send(response),
            ScriptStep::Close,
        ]);
        let options = adjusted(with_proxy(&format!("http://{}", later.addr()), &RequestOptions::default()), |to| {
            to.tunnel = true
        });
        assert_eq!(driver.get(&client(), "http://example.test/", &options).ok(), b"hello");
    }
}

/// Checks that a request never uses a connection that was opened with other proxy settings.
#[test]
fn pool_separates_connections_by_proxy_settings() {
    let origin = start_origin();
    let proxy = TestProxy::start(TestProxyBehavior::default());
    let other = TestProxy::start(TestProxyBehavior::default());
    let url = |user: &str| format!("http://{user}{}", proxy.addr);
    let plain = RequestOptions::default();
    let with = |adjust: fn(&mut ProxyOptions)| adjusted(with_proxy(&url(""), &plain), adjust);
    let ways = [
        plain.clone(),
        with_proxy(&url(""), &plain),
        with_proxy(&url("a:1@"), &plain),
        with_proxy(&url("a:2@"), &plain),
        with_proxy(&format!("http://{}", other.addr), &plain),
        with_proxy(&format!("socks5://{}", proxy.addr), &plain),
        with(|proxy| proxy.tunnel = true),
        with(|proxy| proxy.fields.push(("X".into(), b"1".to_vec()))),
        adjusted(with_proxy(&url(""), &plain), |to| {
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
