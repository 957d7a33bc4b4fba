//! Tests of the relay of datagrams with HTTP/3 connections through it.

#[path = "common/h3_client.rs"]
mod h3_client;

use std::time::Duration;

use h3_client::H3Client;
use testkit::http3::Http3Settings;
use testkit::lossy_link_model::LinkConditions;
use testkit::origin::Origin;
use testkit::udp_relay::{DatagramVerdict, Direction, UdpRelay};

fn origin() -> Origin {
    Origin::builder().http3(Http3Settings::new()).start().unwrap()
}

#[test]
fn transfer_completes_over_a_lossy_link() {
    let origin = origin();
    let conditions = LinkConditions::new()
        .rtt(Duration::from_millis(4))
        .jitter(Duration::from_millis(1))
        .loss(0.02)
        .duplication(0.02)
        .reordering(0.05, Duration::from_millis(3))
        .rate(20 << 20);
    let relay = UdpRelay::to(origin.https_addr()).conditions(conditions).start().unwrap();
    let client = H3Client::connect(relay.addr(), origin.ca_pem()).unwrap();
    let reply = client.get("/bytes/500000").unwrap();
    assert_eq!(reply.body, origin.pattern().slice(0, 500_000));
    let counts = relay.counts();
    assert!(counts.flows == 1 && counts.down > 300 && counts.bytes_down > 500_000 && counts.dropped > 2);
    assert!(client.connection.rtt() >= Duration::from_millis(4));
}

#[test]
fn quic_connection_survives_nat_rebinding() {
    let origin = origin();
    let relay = UdpRelay::to(origin.https_addr()).start().unwrap();
    let client = H3Client::connect(relay.addr(), origin.ca_pem()).unwrap();
    for _ in 0..3 {
        assert_eq!(client.get("/small/1").unwrap().text(), "small 1\n");
        relay.rebind();
    }
    assert_eq!(client.get("/bytes/300000").unwrap().body.len(), 300_000);
    assert_eq!((origin.connections(), relay.counts().flows), (1, 1));
}

#[test]
fn filter_and_injection_change_the_datagrams() {
    let origin = origin();
    // Both ends notice the loss and send the content of the packet again.
    let relay = UdpRelay::to(origin.https_addr())
        .filter(|_, number, _| if number == 3 { DatagramVerdict::Drop } else { DatagramVerdict::Pass })
        .start()
        .unwrap();
    let client = H3Client::connect(relay.addr(), origin.ca_pem()).unwrap();
    for _ in 0..100 {
        relay.inject(Direction::Down, &[0x40; 50]);
        relay.inject(Direction::Up, &[0xc0; 1200]);
    }
    assert_eq!(client.get("/small/2").unwrap().text(), "small 2\n");
    assert_eq!(relay.counts().dropped, 2);
    assert!(client.connection.stats().udp_rx.datagrams > 2);
}

#[test]
fn blocked_direction_delivers_no_datagrams() {
    let origin = origin();
    let relay = UdpRelay::to(origin.https_addr()).start().unwrap();
    let client = H3Client::connect(relay.addr(), origin.ca_pem()).unwrap();
    relay.set_blocked(Direction::Down, true);
    client.runtime.block_on(async {
        let mut requests = client.requests.clone();
        let request = http::Request::get("https://localhost/small").body(()).unwrap();
        let mut stream = requests.send_request(request).await.unwrap();
        stream.finish().await.unwrap();
        tokio::time::timeout(Duration::from_millis(100), stream.recv_response()).await.expect_err("no reply");
        relay.set_blocked(Direction::Down, false);
        assert_eq!(stream.recv_response().await.unwrap().status(), 200);
    });
}
