//! Tests of QUIC connections that outlive the idle timeout of the server, because the client sends
//! PING frames.

use crate::common;

use std::thread;
use std::time::Duration;

use common::{DRIVERS, trusting_ca};
use haul::request::Http3Policy;
use haul::{Client, RequestOptions};
use testkit::h3_peer::{H3Peer, data, headers};
use testkit::http3::Http3Settings;
use testkit::test_certificates::TestCertificates;

#[test]
fn pings_keep_a_short_idle_timeout_from_expiring() {
    let identity = TestCertificates::generate();
    let settings = Http3Settings::new().idle_timeout(Duration::from_secs(2));
    let peer = H3Peer::start_with(settings, &identity, |_, conn| {
        conn.greet(&[])?;
        let request = conn.request()?;
        // The response is slower than the idle timeout.
        conn.wait_for_pings(3)?;
        conn.send(request.stream, [headers(&[(":status", "200")]), data(b"late")].concat())?;
        conn.finish(request.stream)?;
        conn.wait_closed()
    });
    let (options, _ca) = trusting_ca(peer.ca_pem());
    let options = RequestOptions { http3: Http3Policy::Only, ..options };
    thread::scope(|scope| {
        for driver in DRIVERS {
            let (peer, options) = (&peer, &options);
            scope.spawn(move || assert_eq!(driver.get(&Client::new(), &peer.url("/"), options).ok(), b"late"));
        }
    });
    assert_eq!(peer.connections(), DRIVERS.len());
}
