//! Tests of QUIC connections that fail: each failure has the right error kind and curl's exit code.

use crate::common;

use std::time::Duration;

use common::{DRIVERS, one_thread, run, single_stage, trusting_ca};
use haul::request::Http3Policy;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h3_peer::{self, H3Peer};
use testkit::http3::{Http3Fault, Http3Settings};
use testkit::origin::Origin;
use testkit::unused_port::unused_port;

fn faulty(fault: Http3Fault) -> (Origin, RequestOptions, tempfile::NamedTempFile) {
    let origin = Origin::builder().http3(Http3Settings::new().fault(fault)).start().expect("an origin");
    let (options, ca) = trusting_ca(origin.ca_pem());
    (origin, RequestOptions { http3: Http3Policy::Only, ..options }, ca)
}

#[test]
fn failed_quic_handshakes_have_curls_exit_codes() {
    for (fault, exit, kind) in [
        (Http3Fault::Refused, 96, ErrorKind::QuicConnect),
        (Http3Fault::VersionNegotiation, 96, ErrorKind::QuicConnect),
        (Http3Fault::WrongAlpn, 35, ErrorKind::TlsHandshake),
        (Http3Fault::Closed(0x102), 56, ErrorKind::Receive),
    ] {
        let (origin, options, _ca) = faulty(fault);
        for driver in DRIVERS {
            let got = driver.get(&Client::new(), &origin.https_url("/small"), &options);
            assert_eq!((got.exit, got.kind), (exit, Some(kind)), "{driver:?}, {fault:?}: {}", got.message);
        }
    }
}

#[test]
fn silent_quic_servers_reach_the_connect_timeout() {
    let (origin, mut options, _ca) = faulty(Http3Fault::Silent);
    options.connect.timeout = Duration::from_millis(300);
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/small"), &options);
        assert_eq!((got.exit, got.kind), (28, Some(ErrorKind::Timeout)), "{driver:?}: {}", got.message);
        assert!(got.message.contains("the time limit ran out"), "{}", got.message);
    }
}

#[test]
fn closed_udp_port_is_a_refused_connection() {
    let port = unused_port();
    let options = RequestOptions { http3: Http3Policy::Only, ..RequestOptions::default() };
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &format!("https://127.0.0.1:{port}/"), &options);
        assert_eq!((got.exit, got.kind), (7, Some(ErrorKind::Connect)), "{driver:?}: {}", got.message);
    }
}

#[test]
fn silent_http3_servers_reach_the_time_limit() {
    let (origin, mut options, _ca) = faulty(Http3Fault::NoHttp3);
    options.max_time = Some(Duration::from_millis(500));
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/small"), &options);
        assert_eq!((got.exit, got.kind), (28, Some(ErrorKind::Timeout)), "{driver:?}: {}", got.message);
    }
}

#[test]
fn http3_without_tls_1_3_is_refused() {
    let (origin, mut options, _ca) = faulty(Http3Fault::Silent);
    options.tls.max_version = haul::net::tls::TlsVersion::V1_2;
    let got = DRIVERS[0].get(&Client::new(), &origin.https_url("/small"), &options);
    assert_eq!((got.exit, got.kind), (2, Some(ErrorKind::Setup)), "{}", got.message);
}

#[test]
fn endlessly_rejected_http3_request_is_an_error() {
    const REQUEST_REJECTED: u64 = 0x10b;
    for method in ["GET", "POST"] {
        let peer = H3Peer::start(|number, conn| {
            conn.greet(&[])?;
            if number == 0 {
                let first = conn.request()?;
                conn.send(first.stream, h3_peer::headers(&[(":status", "204")]))?;
                conn.finish(first.stream)?;
            }
            loop {
                let request = conn.request()?;
                conn.reset(request.stream, REQUEST_REJECTED)?;
            }
        });
        let (mut options, _ca) = trusting_ca(peer.ca_pem());
        options.http3 = Http3Policy::Only;
        options.method = method.into();
        options.retry.max = 0;
        let urls = ["/0", "/1"].map(|path| peer.url(path));
        let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
        let exits: Vec<u8> = run.exits().into_iter().map(|(_, exit)| exit).collect();
        assert_eq!(exits, [0, 95], "{method}");
        let sent = peer.requests().len();
        assert!(sent <= 6, "{method}: {sent} requests");
    }
}
