//! Tests of several hosts on one HTTP/3 connection (RFC 9114 section 3.3): each request names its
//! own origin, and failures are recorded for the origin for which the connection was opened.

use crate::common;

use std::time::Duration;

use common::{FleetRunResult, one_thread, retrying, run, single_stage, trusting_ca};
use haul::fleet::FleetOptions;
use haul::request::Http3Policy;
use haul::{Client, RequestOptions};
use tempfile::NamedTempFile;
use testkit::h3_peer::{self, H3Peer};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

const HOSTS: [&str; 2] = ["a.test", "b.test"];

/// Returns options that trust the servers of `identity` and use this HTTP/3 policy, and the file
/// with the CA certificate. TCP is delayed so long that HTTP/3 wins the race even on a slow
/// machine.
fn options(identity: &TestCertificates, policy: Http3Policy) -> (RequestOptions, NamedTempFile) {
    let (options, ca) = trusting_ca(identity.ca_pem());
    let mut options = RequestOptions { http3: policy, retry: retrying(0).retry, ..options };
    options.connect.attempt_delay = Duration::from_secs(60);
    (options, ca)
}

/// Makes a client for which both hosts have the address 127.0.0.1.
fn client(port: u16) -> Client {
    let client = Client::new();
    for host in HOSTS {
        client.resolver().add_override(&format!("{host}:{port}:127.0.0.1")).unwrap();
    }
    client
}

/// Fetches a page from each of these hosts, one after the other.
fn one_by_one(client: &Client, options: &RequestOptions, port: u16, hosts: &[&str]) -> FleetRunResult {
    let urls = hosts.iter().enumerate().map(|(number, host)| format!("https://{host}:{port}/small/{number}"));
    run(client, single_stage(options), FleetOptions { parallel: 1, ..one_thread() }, urls)
}

#[test]
fn coalesced_requests_send_no_alt_used() {
    let identity = TestCertificates::for_names(&HOSTS);
    let builder = Origin::builder().record(true).identity(identity.clone()).http3(Http3Settings::new());
    let origin = builder.start().expect("an origin");
    let (options, _ca) = options(&identity, Http3Policy::Only);
    let port = origin.https_addr().port();
    let ran = one_by_one(&client(port), &options, port, &["a.test", "b.test", "a.test"]);
    assert_eq!(String::from_utf8_lossy(&ran.output), "small 0\nsmall 1\nsmall 2\n");
    assert_eq!(origin.quic_connections(), 1);
    let log = origin.log();
    assert_eq!(log.len(), 3);
    assert!(log.iter().all(|seen| seen.header("alt-used").is_none()), "{log:?}");
}

#[test]
fn failure_on_coalesced_connection_counts_for_first_host() {
    let identity = TestCertificates::for_names(&HOSTS);
    let peer = H3Peer::start_with(Http3Settings::new(), &identity, |number, conn| {
        conn.greet(&[])?;
        for count in 0.. {
            let request = conn.request()?;
            if (number, count) == (0, 1) {
                conn.send(request.stream, h3_peer::frame(0x6, b"of HTTP/2"))?;
                return conn.wait_closed();
            }
            conn.send(request.stream, [h3_peer::headers(&[(":status", "200")]), h3_peer::data(b"ok ")].concat())?;
            conn.finish(request.stream)?;
        }
        Ok(())
    });
    let (options, _ca) = options(&identity, Http3Policy::Race);
    let port = peer.addr().port();
    // The second request breaks the connection that was made for the first host. Nobody listens at
    // the TCP port.
    let ran = one_by_one(&client(port), &options, port, &["a.test", "b.test", "a.test", "b.test"]);
    let exits: Vec<u8> = ran.reports.iter().map(|report| report.exit).collect();
    assert_eq!((exits, peer.connections()), (vec![0, 7, 7, 0], 2), "{:?}", ran.reports);
    assert_eq!(String::from_utf8_lossy(&ran.output), "ok ok ");
}
