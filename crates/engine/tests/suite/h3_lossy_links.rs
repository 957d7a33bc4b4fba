//! Tests of HTTP/3 over a bad link: lost, reordered and duplicated datagrams, a NAT that forgets
//! its flows, and forged datagrams.

use crate::common;

use std::time::Duration;

use common::{DRIVERS, one_thread, run, single_stage, trusting_ca};
use haul::request::{ConnectToRule, Http3Policy};
use haul::{Client, RequestOptions};
use testkit::http3::Http3Settings;
use testkit::lossy_link_model::LinkConditions;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;
use testkit::udp_relay::{DatagramVerdict, Direction, UdpRelay};

/// Starts an origin and a relay in front of it. Returns options that use only HTTP/3 and connect
/// through the relay.
fn relayed(relay: impl FnOnce(&Origin) -> UdpRelay) -> (Origin, UdpRelay, RequestOptions, tempfile::NamedTempFile) {
    let origin = Origin::builder().http3(Http3Settings::new()).start().expect("an origin");
    let relay = relay(&origin);
    let (options, ca) = trusting_ca(origin.ca_pem());
    let to_port = Some(relay.addr().port());
    let connect_to = vec![ConnectToRule { host: None, port: None, to_host: None, to_port }];
    let options = RequestOptions { http3: Http3Policy::Only, connect_to, ..options };
    (origin, relay, options, ca)
}

#[test]
fn http3_bodies_survive_a_lossy_link() {
    let link = LinkConditions::new()
        .rtt(Duration::from_millis(4))
        .loss(0.03)
        .duplication(0.02)
        .reordering(0.05, Duration::from_millis(3));
    let (origin, relay, options, _ca) =
        relayed(|origin| UdpRelay::to(origin.https_addr()).conditions(link).start().unwrap());
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/bytes/2000000"), &options);
        assert!(got.ok() == origin.pattern().slice(0, 2_000_000), "{driver:?}");
    }
    assert!(relay.counts().dropped > 0);
}

#[test]
fn http3_uploads_survive_a_lossy_link() {
    let link = LinkConditions::new().rtt(Duration::from_millis(4)).loss(0.03);
    let (origin, _relay, mut options, _ca) =
        relayed(|origin| UdpRelay::to(origin.https_addr()).conditions(link).start().unwrap());
    let content = origin.pattern().slice(0, 1_000_000);
    options.method = "PUT".into();
    options.body = Some(content.clone().into());
    for driver in DRIVERS {
        origin.forget();
        assert_eq!(driver.get(&Client::new(), &origin.https_url("/small"), &options).ok(), b"small\n", "{driver:?}");
        assert!(origin.log()[0].body == content, "{driver:?}");
    }
}

#[test]
fn quic_connection_survives_a_nat_rebinding() {
    let (origin, relay, options, _ca) = relayed(|origin| UdpRelay::to(origin.https_addr()).start().unwrap());
    for driver in DRIVERS {
        let client = Client::new();
        for _ in 0..3 {
            let got = driver.get(&client, &origin.https_url("/bytes/300000"), &options);
            assert!(got.ok() == origin.pattern().slice(0, 300_000), "{driver:?}");
            relay.rebind();
        }
    }
    assert_eq!(origin.quic_connections(), 2, "one for each client");
}

#[test]
fn quic_handshake_survives_loss_of_first_datagram() {
    let (origin, _relay, options, _ca) = relayed(|origin| {
        let filter = |direction: Direction, number: u64, _: &[u8]| match direction {
            Direction::Up if number == 0 => DatagramVerdict::Drop,
            _ => DatagramVerdict::Pass,
        };
        UdpRelay::to(origin.https_addr()).filter(filter).start().unwrap()
    });
    for driver in DRIVERS {
        assert_eq!(driver.get(&Client::new(), &origin.https_url("/small"), &options).ok(), b"small\n", "{driver:?}");
    }
}

#[test]
fn forged_quic_datagrams_do_not_disturb_a_transfer() {
    let noise = |number: u64, datagram: &[u8]| {
        let mut forged = datagram.to_vec();
        for (at, byte) in forged.iter_mut().enumerate().skip(1) {
            *byte = byte.wrapping_mul(167).wrapping_add(number as u8).wrapping_add(at as u8);
        }
        // Long headers of Initial, Handshake and Retry packets, short ones, and unknown versions.
        forged[0] = [0xc0, 0xe0, 0xf0, 0x40, 0x80][number as usize % 5];
        if number.is_multiple_of(2) && forged.len() > 5 {
            forged[1..5].copy_from_slice(&[0, 0, 0, (number % 4 / 2) as u8]);
        }
        forged
    };
    let (origin, _relay, options, _ca) = relayed(|origin| {
        let filter = move |direction: Direction, number: u64, datagram: &[u8]| match direction {
            // A Version Negotiation packet or a Retry is believed only before the first valid
            // packet.
            Direction::Down if number > 1 => {
                DatagramVerdict::Replace(vec![noise(number, datagram), datagram.to_vec(), vec![0x40], Vec::new()])
            }
            _ => DatagramVerdict::Pass,
        };
        UdpRelay::to(origin.https_addr()).filter(filter).start().unwrap()
    });
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/bytes/500000"), &options);
        assert!(got.ok() == origin.pattern().slice(0, 500_000), "{driver:?}");
    }
    assert_eq!(origin.quic_connections(), 2);
}

#[test]
fn forty_http3_requests_survive_a_lossy_link() {
    let link = LinkConditions::new().rtt(Duration::from_millis(2)).loss(0.05);
    let (origin, _relay, options, _ca) =
        relayed(|origin| UdpRelay::to(origin.https_addr()).conditions(link).start().unwrap());
    let urls = (0..40).map(|n| origin.https_url(&format!("/bytes/{}", 10_000 + n)));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    let expected: Vec<u8> = (0..40).flat_map(|n| origin.pattern().slice(0, 10_000 + n)).collect();
    assert!(run.output == expected, "{} of {}", run.output.len(), expected.len());
    assert_eq!(origin.quic_connections(), 1);
}

#[test]
fn quic_stateless_reset_leads_to_new_connection() {
    let identity = TestCertificates::generate();
    let start = |port: u16| {
        let settings = Http3Settings::new().reset_key([7; 64]);
        Origin::builder().identity(identity.clone()).https_port(port).http3(settings).start().expect("an origin")
    };
    let origin = start(0);
    let (options, _ca) = trusting_ca(origin.ca_pem());
    let options = RequestOptions { http3: Http3Policy::Only, ..options };
    let (port, url) = (origin.https_addr().port(), origin.https_url("/small"));
    let client = Client::new();
    assert_eq!(DRIVERS[0].get(&client, &url, &options).ok(), b"small\n");
    drop(origin);
    let origin = start(port);
    assert_eq!(DRIVERS[0].get(&client, &url, &options).ok(), b"small\n");
    assert_eq!(origin.quic_connections(), 1);
}
