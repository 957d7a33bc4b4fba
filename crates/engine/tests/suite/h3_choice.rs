//! Tests of the choice between HTTP/3 and TCP: the race between them, the use of Alt-Svc fields and
//! HTTPS records, and the memory of failures.

use crate::common;

use std::net::UdpSocket;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{DRIVERS, DriverKind, FetchOutcome, one_thread, retrying, run, single_stage, trusting_ca, with_h2_alpn};
use haul::fleet::FleetOptions;
use haul::net::dns::{ChosenDnsServers, HttpsLookupStatus};
use haul::net::local_address::UnixSocketAddress;
use haul::net::pool::ConnectionKey;
use haul::net::proxy::ProxyOptions;
use haul::request::Http3Policy;
use haul::state::http3::Http3Cache;
use haul::{Client, ErrorKind, ProtocolVersion, RequestOptions, Target};
use haul_policy::proxy::Proxy;
use tempfile::NamedTempFile;
use testkit::dns_server::{DnsServer, HttpsRecordData};
use testkit::frames::{self, H2Peer};
use testkit::h3_peer::{self, H3Peer};
use testkit::http3::{Http3Fault, Http3Settings};
use testkit::origin::{Origin, OriginBuilder};
use testkit::test_certificates::TestCertificates;

const HTTP3: Option<ProtocolVersion> = Some(ProtocolVersion::Http3);
const HTTP2: Option<ProtocolVersion> = Some(ProtocolVersion::Http2);

/// An origin, and options that trust it and use the given HTTP/3 policy.
struct OriginWithOptions {
    origin: Origin,
    options: RequestOptions,
    _ca: NamedTempFile,
}

impl OriginWithOptions {
    fn start(builder: OriginBuilder, policy: Http3Policy) -> Self {
        let origin = builder.http2(100).start().expect("an origin");
        let (options, ca) = trusting_ca(origin.ca_pem());
        let options = RequestOptions { http3: policy, retry: retrying(0).retry, ..with_h2_alpn(options) };
        Self { origin, options, _ca: ca }
    }

    fn with_fault(fault: Http3Fault) -> Self {
        Self::start(Origin::builder().http3(Http3Settings::new().fault(fault)), Http3Policy::Race)
    }

    /// Delays TCP so long that HTTP/3 wins the race even on a slow machine.
    fn with_patience(mut self) -> Self {
        self.options.connect.attempt_delay = Duration::from_secs(60);
        self
    }

    /// Empties the HTTP/3 cache, before the test of another driver.
    fn reset(&mut self) {
        self.options.http3_cache = Http3Cache::new();
    }

    fn get(&self, client: &Client, driver: DriverKind) -> FetchOutcome {
        driver.get(client, &self.origin.https_url("/small"), &self.options)
    }
}

#[test]
fn http3_wins_the_race_against_tcp() {
    let mut site =
        OriginWithOptions::start(Origin::builder().http3(Http3Settings::new()), Http3Policy::Race).with_patience();
    for (index, driver) in DRIVERS.into_iter().enumerate() {
        site.reset();
        let client = Client::new();
        for _ in 0..3 {
            let got = site.get(&client, driver);
            assert_eq!((got.ok(), got.facts.version), (&b"small\n"[..], HTTP3), "{driver:?}");
        }
        let opened = index as u64 + 1;
        assert_eq!((site.origin.quic_connections(), site.origin.connections()), (opened, opened), "all by QUIC");
    }
}

#[test]
fn http3_wins_although_tcp_is_refused() {
    let builder = Origin::builder().http3(Http3Settings::new()).tls_over_tcp(false);
    let mut site = OriginWithOptions::start(builder, Http3Policy::Race).with_patience();
    for driver in DRIVERS {
        site.reset();
        assert_eq!(site.get(&Client::new(), driver).facts.version, HTTP3, "{driver:?}");
    }
}

/// Returns the number of datagrams that have arrived at a socket.
fn datagrams(socket: &UdpSocket) -> usize {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count()
}

#[test]
fn silent_http3_endpoint_is_tried_once() {
    for driver in DRIVERS {
        let site = OriginWithOptions::start(Origin::builder(), Http3Policy::Race);
        let silent = UdpSocket::bind(site.origin.https_addr()).unwrap();
        let got = site.get(&Client::new(), driver);
        assert_eq!((got.ok(), got.facts.version, got.facts.retries), (&b"small\n"[..], HTTP2, 0), "{driver:?}");
        assert!(datagrams(&silent) > 0, "{driver:?}");
        // New clients have no connections, so that each request chooses again.
        for _ in 0..3 {
            assert_eq!(site.get(&Client::new(), driver).facts.version, HTTP2);
        }
        assert_eq!(datagrams(&silent), 0, "{driver:?}");
    }
}

#[test]
fn closed_udp_port_falls_back_to_tcp() {
    for driver in DRIVERS {
        let site = OriginWithOptions::start(Origin::builder(), Http3Policy::Race);
        for _ in 0..2 {
            let got = site.get(&Client::new(), driver);
            assert_eq!((got.ok(), got.facts.version, got.facts.retries), (&b"small\n"[..], HTTP2, 0), "{driver:?}");
        }
    }
}

#[test]
fn failing_http3_never_fails_a_request() {
    for fault in [
        Http3Fault::Silent,
        Http3Fault::Refused,
        Http3Fault::VersionNegotiation,
        Http3Fault::WrongAlpn,
        Http3Fault::Closed(0x102),
        Http3Fault::Closed(0x100),
    ] {
        for driver in DRIVERS {
            let site = OriginWithOptions::with_fault(fault);
            for _ in 0..3 {
                let got = site.get(&Client::new(), driver);
                let facts = (got.facts.version, got.facts.retries);
                assert_eq!((got.exit, facts), (0, (HTTP2, 0)), "{driver:?} {fault:?}: {}", got.message);
            }
            assert!(site.origin.quic_connections() <= 4, "{driver:?} {fault:?}");
        }
    }
}

#[test]
fn failing_http3_does_not_stop_a_fleet() {
    for fault in [Http3Fault::Silent, Http3Fault::WrongAlpn, Http3Fault::Closed(0x102)] {
        let site = OriginWithOptions::with_fault(fault);
        let urls = (0..50).map(|n| site.origin.https_url(&format!("/small/{n}")));
        let ran = run(&Client::new(), single_stage(&site.options), one_thread(), urls);
        let expected: String = (0..50).map(|n| format!("small {n}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&ran.output), expected, "{fault:?}");
    }
}

#[test]
fn alt_svc_field_moves_later_requests_to_http3() {
    let builder = || Origin::builder().http3(Http3Settings::new()).advertise_http3();
    for driver in DRIVERS {
        let site = OriginWithOptions::start(builder(), Http3Policy::Learned).with_patience();
        let client = Client::new();
        let versions: Vec<_> = (0..3).map(|_| site.get(&client, driver).facts.version).collect();
        assert_eq!(versions, [HTTP2, HTTP3, HTTP3], "{driver:?}");
        assert_eq!((site.origin.quic_connections(), site.origin.connections()), (1, 2), "{driver:?}");
    }
}

#[test]
fn requests_stay_on_http2_until_http3_is_open() {
    let identity = TestCertificates::for_names(&["localhost"]);
    let by_http3 = H3Peer::start_with(Http3Settings::new(), &identity, |_, conn| {
        conn.greet(&[])?;
        loop {
            let asked = conn.request()?;
            let reply = [h3_peer::headers(&[(":status", "200")]), h3_peer::data(b"HTTP/3 ")].concat();
            conn.send(asked.stream, reply)?;
            conn.finish(asked.stream)?;
        }
    });
    let by_http3 = Arc::new(by_http3);
    let offer = format!("h3=\":{}\"", by_http3.addr().port());
    let seen = Arc::clone(&by_http3);
    let by_http2 = H2Peer::start_tls(&identity, move |_, conn| {
        conn.greet(&[])?;
        loop {
            let asked = conn.request()?;
            if asked.path() == "/2" {
                // The client has completed its handshake before the server does.
                seen.wait_for_connection();
            }
            // The offer is in the second of two field lines.
            let head = [(":status", "200"), ("alt-svc", "h2=\":1\""), ("alt-svc", &offer)];
            conn.send(frames::headers(asked.stream, false, &head))?;
            conn.send(frames::data(asked.stream, true, b"HTTP/2 "))?;
        }
    });
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let options = RequestOptions { http3: Http3Policy::Learned, ..with_h2_alpn(options) };
    let urls = (1..=4).map(|number| by_http2.https_url(&format!("/{number}")));
    let ran = run(&Client::new(), single_stage(&options), FleetOptions { parallel: 1, ..one_thread() }, urls);
    assert_eq!(String::from_utf8_lossy(&ran.output), "HTTP/2 HTTP/2 HTTP/3 HTTP/3 ");
    assert_eq!((by_http2.connections(), by_http3.connections()), (1, 1));
}

#[test]
fn silent_http3_alternative_delays_no_request() {
    let site = OriginWithOptions::start(Origin::builder().advertise_http3(), Http3Policy::Learned).with_patience();
    let silent = UdpSocket::bind(site.origin.https_addr()).unwrap();
    let urls = (0..20).map(|n| site.origin.https_url(&format!("/small/{n}")));
    let options = FleetOptions { parallel: 1, ..one_thread() };
    let ran = run(&Client::new(), single_stage(&site.options), options, urls);
    let expected: String = (0..20).map(|n| format!("small {n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&ran.output), expected);
    assert_eq!(site.origin.connections(), 1, "the open connection carries all requests");
    assert!(datagrams(&silent) > 0);
}

#[test]
fn last_request_begins_no_quic_handshake() {
    let builder = Origin::builder().http3(Http3Settings::new()).advertise_http3();
    let site = OriginWithOptions::start(builder, Http3Policy::Learned).with_patience();
    let urls = (0..2).map(|n| site.origin.https_url(&format!("/small/{n}")));
    let options = FleetOptions { parallel: 1, ..one_thread() };
    let ran = run(&Client::new(), single_stage(&site.options), options, urls);
    assert_eq!(String::from_utf8_lossy(&ran.output), "small 0\nsmall 1\n");
    assert_eq!((site.origin.connections(), site.origin.quic_connections()), (1, 0));
}

#[test]
fn silent_alt_svc_endpoint_is_tried_only_once() {
    for driver in DRIVERS {
        let site = OriginWithOptions::start(Origin::builder().advertise_http3(), Http3Policy::Learned);
        let silent = UdpSocket::bind(site.origin.https_addr()).unwrap();
        let client = Client::new();
        for _ in 0..2 {
            assert_eq!(site.get(&client, driver).facts.version, HTTP2, "{driver:?}");
        }
        assert!(datagrams(&silent) > 0, "{driver:?}");
        for _ in 0..3 {
            assert_eq!(site.get(&client, driver).facts.version, HTTP2, "{driver:?}");
        }
        assert_eq!(datagrams(&silent), 0, "{driver:?}");
    }
}

#[test]
fn alt_svc_is_ignored_when_off_or_unverified() {
    for driver in DRIVERS {
        let mut site =
            OriginWithOptions::start(Origin::builder().http3(Http3Settings::new()).advertise_http3(), Http3Policy::Off);
        let client = Client::new();
        for _ in 0..2 {
            assert_eq!(site.get(&client, driver).facts.version, HTTP2, "{driver:?}");
        }
        site.options.http3 = Http3Policy::Learned;
        site.options.tls.verify = false;
        for _ in 0..2 {
            assert_eq!(site.get(&client, driver).facts.version, HTTP2, "{driver:?}");
        }
        assert_eq!(site.origin.quic_connections(), 0);
    }
}

#[test]
fn https_record_leads_to_http3() {
    let identity = TestCertificates::for_names(&["web.example"]);
    for driver in DRIVERS {
        let builder = Origin::builder().http3(Http3Settings::new()).identity(identity.clone());
        let site = OriginWithOptions::start(builder, Http3Policy::Learned).with_patience();
        let port = site.origin.https_addr().port();
        let dns = DnsServer::start(move |query| {
            let record = HttpsRecordData { target: "web.example".into(), ..HttpsRecordData::with_alpn("h3") };
            match query.record_type {
                65 => vec![query.https(&[record])],
                _ => vec![query.addresses(&["127.0.0.1".parse().unwrap()])],
            }
        })
        .unwrap();
        let client = Client::new();
        client.resolver().use_servers(&ChosenDnsServers::parse(&dns.address().to_string()).unwrap());
        let url = format!("https://web.example:{port}/small");
        driver.get(&client, &url, &site.options).ok();
        let (sender, receiver) = mpsc::channel();
        let notify = move || sender.send(()).unwrap();
        if let HttpsLookupStatus::Pending = client.resolver().https_records("web.example", port, notify) {
            receiver.recv().unwrap();
        }
        // The record is in the cache, but the connection over TCP is open.
        let got = driver.get(&client, &url, &site.options);
        assert_eq!((got.ok(), got.facts.version), (&b"small\n"[..], HTTP3), "{driver:?}");
        let asked: Vec<_> = dns.queries().into_iter().filter(|query| query.record_type == 65).collect();
        assert_eq!((asked.len(), &*asked[0].name), (1, &*format!("_{port}._https.web.example")));
    }
}

#[test]
fn http3_only_policy_requires_https_without_proxy() {
    let mut options = RequestOptions { http3: Http3Policy::Only, ..RequestOptions::default() };
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), "http://127.0.0.1:9/", &options);
        assert_eq!((got.exit, got.kind), (3, Some(ErrorKind::Url)), "{driver:?}: {}", got.message);
    }
    options.connect.unix_socket = Some(UnixSocketAddress::Path("/nonexistent".into()));
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), "https://127.0.0.1:9/", &options);
        assert_eq!((got.exit, got.kind), (96, Some(ErrorKind::QuicConnect)), "{driver:?}: {}", got.message);
    }
    options.connect.unix_socket = None;
    let mut through = haul::net::proxy::ProxyOptions::default();
    through.proxy = Some(haul_policy::proxy::Proxy::parse("socks5://127.0.0.1:9").unwrap());
    options.proxy = Some(through);
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), "https://127.0.0.1:9/", &options);
        assert_eq!((got.exit, got.kind), (3, Some(ErrorKind::Url)), "{driver:?}");
        assert!(got.message.contains("proxy"), "{}", got.message);
    }
}

#[test]
fn post_broken_off_over_http3_is_sent_once() {
    for driver in DRIVERS {
        let mut site = OriginWithOptions::with_fault(Http3Fault::Closed(0x102));
        site.options.method = "POST".into();
        site.options.body = Some(b"x".to_vec().into());
        let got = site.get(&Client::new(), driver);
        assert!(site.origin.requests() <= 1, "{driver:?}");
        assert!(got.exit == 0 || got.exit == 56, "{driver:?}: {}", got.message);
    }
}

#[test]
fn http3_only_request_matches_exactly_its_own_key() {
    let only = RequestOptions { http3: Http3Policy::Only, ..RequestOptions::default() };
    let mut by_proxy = only.clone();
    let mut proxy = ProxyOptions::default();
    proxy.proxy = Some(Proxy::parse("http://p.example").unwrap());
    by_proxy.proxy = Some(proxy);
    let mut by_socket = only.clone();
    by_socket.connect.unix_socket = Some(UnixSocketAddress::Path("socket".into()));
    let mut unverified = only.clone();
    unverified.tls.verify = false;
    let urls = ["https://a.example/", "https://a.example:444/", "https://b.example/", "http://a.example/"];
    let requests: Vec<_> = [only, by_proxy, by_socket, unverified]
        .iter()
        .flat_map(|options| urls.map(|url| (Target::parse(url).unwrap(), options.clone())))
        .collect();
    for (of_key, with) in &requests {
        let key = ConnectionKey::new(of_key, with);
        for (target, options) in &requests {
            let is_equal = key == ConnectionKey::new(target, options);
            assert_eq!(key.matches_request(target, options), is_equal, "{of_key:?}, {target:?}");
        }
    }
}
