//! Tests of alternative services (RFC 7838): requests go to the alternative, or to the origin if
//! the alternative fails.

use crate::common;

use std::fs;

use common::{DRIVERS, DriverKind, one_thread, retrying, run, single_stage, trusting_ca, with_h2_alpn};
use haul::net::proxy::ProxyOptions;
use haul::request::ConnectToRule;
use haul::state::alt_svc::AltSvcCache;
use haul::{Client, ProtocolVersion, RequestOptions, Target};
use tempfile::NamedTempFile;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

/// An origin, and another server that may serve as its alternative service (RFC 7838).
struct OriginWithAlternative {
    origin: Origin,
    other: Origin,
    identity: TestCertificates,
    options: RequestOptions,
    known: AltSvcCache,
    _ca: NamedTempFile,
}

impl OriginWithAlternative {
    fn start() -> Self {
        let identity = TestCertificates::for_names(&["localhost"]);
        let at =
            |identity: &TestCertificates| Origin::builder().record(true).identity(identity.clone()).http2(100).start();
        let (origin, other) = (at(&identity).unwrap(), at(&identity).unwrap());
        let (mut options, ca) = trusting_ca(identity.ca_pem());
        let known = AltSvcCache::new();
        options.alt_svc = Some(known.clone());
        Self { origin, other, identity, options: with_h2_alpn(options), known, _ca: ca }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.origin.https_addr().port())
    }

    /// Stores in the cache that the origin has an alternative service with this protocol on this
    /// port.
    fn announce(&self, protocol: &str, port: u16) {
        let target = Target::parse(&self.url("/")).unwrap();
        self.known.store_field(&target, format!("{protocol}=\":{port}\"").as_bytes());
    }

    /// Returns the number of requests that the origin has received, and the number that the other
    /// server has received. Resets both.
    fn take_request_counts(&self) -> (usize, usize) {
        let counts = (self.origin.log().len(), self.other.log().len());
        self.origin.forget();
        self.other.forget();
        counts
    }

    fn get(&self, driver: DriverKind) -> common::FetchOutcome {
        driver.get(&Client::new(), &self.url("/small"), &self.options)
    }
}

#[test]
fn alternative_service_receives_the_request_with_alt_used() {
    for driver in DRIVERS {
        for (protocol, version) in [("h2", "HTTP/2.0"), ("http%2F1.1", "HTTP/1.1")] {
            let two = OriginWithAlternative::start();
            let port = two.other.https_addr().port();
            two.announce(protocol, port);
            let got = driver.get(&Client::new(), &two.url("/echo"), &two.options);
            let text = String::from_utf8_lossy(got.ok());
            assert!(text.contains(version), "{text}");
            let seen = two.other.log().pop().expect("it was asked");
            assert_eq!(seen.header("alt-used"), Some(&*format!("localhost:{port}")));
            let authority = format!("localhost:{}", two.origin.https_addr().port());
            assert!(seen.header("host").unwrap_or(&seen.target).contains(&authority), "{seen:?}");
            assert_eq!(two.take_request_counts(), (0, 1));
        }
    }
}

#[test]
fn alternative_service_connection_is_reused() {
    let two = OriginWithAlternative::start();
    two.announce("h2", two.other.https_addr().port());
    let client = Client::new();
    for _ in 0..3 {
        DriverKind::Blocking.get(&client, &two.url("/small"), &two.options).ok();
    }
    let ran = run(&client, single_stage(&two.options), one_thread(), (0..5).map(|n| two.url(&format!("/small/{n}"))));
    assert_eq!(ran.output, b"small 0\nsmall 1\nsmall 2\nsmall 3\nsmall 4\n");
    assert_eq!((two.take_request_counts(), two.other.connections(), two.origin.connections()), ((0, 8), 1, 0));
}

/// Checks that an alternative service on the origin's own port needs no second connection, and that
/// an alternative with an unsupported protocol (HTTP/3) is ignored.
#[test]
fn alternative_on_own_port_or_http3_is_ignored() {
    for driver in DRIVERS {
        let two = OriginWithAlternative::start();
        let client = Client::new();
        driver.get(&client, &two.url("/small"), &two.options).ok();
        two.announce("h2", two.origin.https_addr().port());
        driver.get(&client, &two.url("/small"), &two.options).ok();
        two.announce("h3", two.other.https_addr().port());
        driver.get(&client, &two.url("/small"), &two.options).ok();
        assert!(two.origin.log().iter().all(|seen| seen.header("alt-used").is_none()));
        assert_eq!((two.take_request_counts(), two.origin.connections()), ((3, 0), 1));
    }
}

#[test]
fn http1_alternative_on_own_port_turns_http2_off() {
    for driver in DRIVERS {
        let two = OriginWithAlternative::start();
        two.announce("http%2F1.1", two.origin.https_addr().port());
        assert_eq!(two.get(driver).facts.version, Some(ProtocolVersion::Http11), "{driver:?}");
        two.announce("h2", two.origin.https_addr().port());
        assert_eq!(two.get(driver).facts.version, Some(ProtocolVersion::Http2), "{driver:?}");
    }
}

#[test]
fn unreachable_alternative_falls_back_without_using_a_retry() {
    let closed = unused_port();
    let stranger = TestCertificates::for_names(&["elsewhere.test"]);
    for driver in DRIVERS {
        let two = OriginWithAlternative::start();
        let foreign = Origin::builder().record(true).identity(stranger.clone()).http2(100).start().unwrap();
        let old = H1Peer::start_tls(vec![vec![ScriptStep::ReadToEnd]], &two.identity, &[b"http/1.1"]);
        let plain = two.other.http_addr().port();
        for port in [closed, foreign.https_addr().port(), old.addr().port(), plain] {
            two.announce("h2", port);
            let got = two.get(driver);
            assert_eq!((got.ok(), got.facts.retries), (&b"small\n"[..], 0), "{port}");
            // The alternative is not tried again.
            assert_eq!(two.get(driver).ok(), b"small\n");
        }
        assert_eq!((two.take_request_counts(), foreign.log().len(), old.connections()), ((8, 0), 0, 1));
        assert_eq!(foreign.connections(), 1);
    }
}

#[test]
fn alternative_answering_421_falls_back_to_the_origin() {
    let reply = "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwrong";
    for driver in DRIVERS {
        let two = OriginWithAlternative::start();
        let script = vec![ScriptStep::ReadHead, ScriptStep::send(reply)];
        let wrong = H1Peer::start_tls(vec![script], &two.identity, &[b"http/1.1"]);
        two.announce("http%2F1.1", wrong.addr().port());
        assert_eq!(two.get(driver).ok(), b"small\n");
        assert_eq!((two.take_request_counts(), wrong.connections()), ((1, 0), 1));
    }
}

#[test]
fn alternative_is_unused_when_disabled_unverified_or_rerouted() {
    for driver in DRIVERS {
        let two = OriginWithAlternative::start();
        let port = two.other.https_addr().port();
        two.announce("h2", port);
        let get = |change: &dyn Fn(&mut RequestOptions)| {
            let mut options = two.options.clone();
            change(&mut options);
            assert_eq!(driver.get(&Client::new(), &two.url("/small"), &options).ok(), b"small\n");
        };
        get(&|options| options.alt_svc = None);
        // Without verification, the alternative cannot prove that it serves the origin.
        get(&|options| options.tls.verify = false);
        let own = two.origin.https_addr().port();
        get(&|options| {
            options.connect_to =
                vec![ConnectToRule { host: None, port: Some(own), to_host: Some("127.0.0.1".into()), to_port: None }];
        });
        assert_eq!(two.take_request_counts(), (3, 0));
        // A proxy is asked for the origin.
        let proxy = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
        ]);
        let mut options = retrying(0);
        (options.tls, options.alt_svc) = (two.options.tls.clone(), two.options.alt_svc.clone());
        let uri = haul_policy::proxy::Proxy::parse(&format!("http://{}", proxy.addr())).unwrap();
        let mut through = ProxyOptions::default();
        through.proxy = Some(uri);
        options.proxy = Some(through);
        assert_eq!(driver.get(&Client::new(), &two.url("/small"), &options).exit, 7);
        assert!(proxy.saw(0, format!("CONNECT localhost:{own} ").as_bytes()));
        assert_eq!(two.take_request_counts(), (0, 0));
    }
}

#[test]
fn failed_alternative_stays_in_the_saved_file() {
    let two = OriginWithAlternative::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    let closed = unused_port();
    two.announce("h2", closed);
    two.get(DriverKind::Blocking).ok();
    two.known.save(file.path()).unwrap();
    assert!(fs::read_to_string(file.path()).unwrap().contains(&format!("h2 localhost {closed} ")));
}
