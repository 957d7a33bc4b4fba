//! Tests for known vulnerabilities that require connections: state left on pooled connections,
//! unchecked certificates. Each advisory has one test, named after it. `docs/design/trust.md` lists
//! all of them.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{DRIVERS, following, http2_origin, start_origin, trusting_ca, with_h2_alpn};
use haul::net::pool::ConnectionKey;
use haul::net::proxy::ProxyOptions;
use haul::net::tls::{ClientCertificateFiles, Passphrase, Pem, TlsVersion};
use haul::state::auth::{AuthOptions, Credentials};
use haul::{Client, RequestOptions, Target};
use haul_policy::proxy::Proxy;
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn cve_2024_35195_unverified_connection_is_not_reused() {
    let origin = http2_origin(100);
    for driver in DRIVERS {
        for adjust in [with_h2_alpn, |options| options] {
            let client = Client::new();
            let mut careless = adjust(RequestOptions::default());
            careless.tls.verify = false;
            let url = origin.https_url("/small/1");
            assert_eq!(driver.get(&client, &url, &careless).ok(), b"small 1\n");
            let careful = adjust(RequestOptions::default());
            assert_eq!(driver.get(&client, &url, &careful).exit, 60, "{driver:?}: it must ask again whom it talks to");
            let (known, _file) = trusting_ca(origin.ca_pem());
            assert_eq!(driver.get(&client, &url, &adjust(known)).ok(), b"small 1\n");
        }
    }
}

#[test]
fn cve_2022_27782_tls_settings_separate_connections() {
    let target = Target::parse("https://a.example/").unwrap();
    let base = RequestOptions::default();
    let key = ConnectionKey::new(&target, &base);
    type OptionChange = fn(&mut RequestOptions);
    let changes: [(&str, OptionChange); 14] = [
        ("verify", |options| options.tls.verify = false),
        ("ca_file", |options| options.tls.ca_file = Some("ca".into())),
        ("ca_path", |options| options.tls.ca_path = Some("ca".into())),
        ("ca_pem", |options| options.tls.ca_pem = Some(Pem::new(&b"ca"[..]))),
        ("identity_pem", |options| options.tls.identity_pem = Some(Pem::new(&b"me"[..]))),
        ("identity", |options| {
            options.tls.identity = Some(ClientCertificateFiles { certificate: "me".into(), key: None })
        }),
        ("passphrase", |options| options.tls.passphrase = Some(Passphrase::new("x"))),
        ("min_version", |options| options.tls.min_version = TlsVersion::V1_3),
        ("max_version", |options| options.tls.max_version = TlsVersion::V1_2),
        ("alpn", |options| options.tls.alpn = vec![b"h2".to_vec()]),
        ("sni", |options| options.tls.sni = false),
        ("interface", |options| {
            options.connect.interface = Some(haul::net::local_address::LocalInterface::parse("lo").unwrap())
        }),
        ("prior knowledge", |options| options.prior_knowledge = true),
        ("proxy", |options| {
            let mut proxy = ProxyOptions::default();
            proxy.proxy = Some(Proxy::parse("http://p.example").unwrap());
            options.proxy = Some(proxy);
        }),
    ];
    for (what, change) in changes {
        let mut options = base.clone();
        change(&mut options);
        assert!(ConnectionKey::new(&target, &options) != key && !key.matches_request(&target, &options), "{what}");
    }
    assert!(key.matches_request(&target, &base) && ConnectionKey::new(&target, &base) == key);
}

#[test]
fn cve_2022_27775_address_zone_separates_connections() {
    let options = RequestOptions::default();
    let key = |url: &str| ConnectionKey::new(&Target::parse(url).unwrap(), &options);
    let one = Target::parse("http://[fe80::1%251]/").unwrap();
    assert!(
        key("http://[fe80::1%251]/").matches_request(&one, &options)
            && !key("http://[fe80::1%252]/").matches_request(&one, &options)
    );
    assert!(key("http://[fe80::1%251]/") != key("http://[fe80::1%252]/"));
    assert!(key("http://[fe80::1%251]/") != key("http://[fe80::1]/"));
    assert!(key("http://[fe80::1%251]/") == key("http://[FE80:0::1%251]/"));
}

#[test]
fn ipv6_zone_selects_the_interface() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for driver in DRIVERS {
        // The port is closed, so a refusal proves that the address was tried.
        let got = driver.get(&Client::new(), &format!("http://[::1%25lo]:{port}/"), &RequestOptions::default());
        assert_eq!(got.exit, 7, "{driver:?}: {}", got.message);
        let got = driver.get(&Client::new(), &format!("http://[fe80::1%25none0]:{port}/"), &RequestOptions::default());
        assert_eq!(got.exit, 6, "{driver:?}: {}", got.message);
    }
}

#[test]
fn proxy_users_have_separate_connections() {
    let target = Target::parse("https://a.example/").unwrap();
    let key = |userinfo: &str| {
        let mut proxy = ProxyOptions::default();
        proxy.proxy = Some(Proxy::parse(&format!("http://{userinfo}p.example")).unwrap());
        ConnectionKey::new(&target, &RequestOptions { proxy: Some(proxy), ..RequestOptions::default() })
    };
    assert!(key("a:1@") != key("b:1@") && key("a:1@") != key("a:2@") && key("") != key("a:1@"));
}

#[test]
fn reused_connection_carries_no_earlier_secret() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let client = Client::new();
        let auth = AuthOptions::user(Credentials::new("me", "secret").unwrap());
        let known = RequestOptions { auth, cookie: Some(b"a=1".to_vec()), ..RequestOptions::default() };
        for options in [&known, &RequestOptions::default()] {
            assert_eq!(driver.get(&client, &origin.url("/small"), options).exit, 0);
        }
        let log = origin.log();
        assert_eq!(log[0].connection, log[1].connection, "{driver:?}: the same connection");
        assert!(log[0].header("authorization").is_some() && log[0].header("cookie").is_some());
        assert!(log[1].header("authorization").is_none() && log[1].header("cookie").is_none(), "{:?}", log[1]);
    }
}

#[test]
fn unsolicited_bytes_are_not_taken_as_a_response() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
                ),
            ],
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood"),
            ],
        ]);
        let client = Client::new();
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"good", "{driver:?}");
    }
}

#[test]
fn no_request_is_sent_before_certificate_verification() {
    // The certificate names another host; the server records everything it receives after the
    // handshake.
    let identity = testkit::test_certificates::TestCertificates::for_names(&["other.example"]);
    let config = identity.server_config(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let got = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&got);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                log.lock().unwrap().extend_from_slice(&buffer[..read]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    for driver in DRIVERS {
        let (mut options, _file) = trusting_ca(identity.ca_pem());
        options.auth = AuthOptions::user(Credentials::new("me", "secret").unwrap());
        // Twice, because a failed handshake must not leave a usable ticket.
        let client = Client::new();
        for _ in 0..2 {
            assert_eq!(driver.get(&client, &url, &options).exit, 60, "{driver:?}");
        }
        options.tls.verify = false;
        assert_eq!(driver.get(&client, &url, &options).exit, 0, "{driver:?}: it can be talked to");
    }
    let text = String::from_utf8(got.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("Authorization: ").count(), 2, "only who does not ask for a certificate says anything");
}

#[test]
fn line_breaks_in_a_request_prevent_connecting() {
    let origin = start_origin();
    for driver in DRIVERS {
        let field = ("X-A".to_owned(), b"a\r\nX-B: b".to_vec());
        let name = ("X-A: a\r\nX-B".to_owned(), b"b".to_vec());
        let bad = [
            RequestOptions { fields: vec![field], ..RequestOptions::default() },
            RequestOptions { fields: vec![name], ..RequestOptions::default() },
            RequestOptions { method: "GET / HTTP/1.1\r\nX: y\r\n\r\nGET".into(), ..RequestOptions::default() },
            RequestOptions { cookie: Some(b"a=1\nX: y".to_vec()), ..RequestOptions::default() },
            RequestOptions { user_agent: Some("a\r\nX: y".into()), ..RequestOptions::default() },
        ];
        for options in bad {
            let got = driver.get(&Client::new(), &origin.url("/small"), &options);
            assert_ne!(got.exit, 0, "{driver:?} {options:?}");
        }
        assert_eq!(origin.requests(), 0, "{driver:?}");
    }
}

#[test]
fn location_with_line_breaks_injects_no_header() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let url = origin.url("/redirect/302?to=/echo%250d%250aX-Own:%25201");
        assert_eq!(driver.get(&Client::new(), &url, &following()).status, 404, "{driver:?}: the path as it was said");
        assert!(origin.log().iter().all(|request| request.header("x-own").is_none()));
    }
}
