//! Tests of the relay of IP packets. They need permission to create network namespaces.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use testkit::byte_pattern::BytePattern;
use testkit::ip_relay::{FAR_ADDR, IpRelay, NEAR_ADDR};
use testkit::lossy_link_model::LinkConditions;

/// Starts a relay. If this process may not, prints the reason and returns `None`.
fn start(conditions: &LinkConditions) -> Option<IpRelay> {
    match IpRelay::start(conditions) {
        Ok(relay) => Some(relay),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: the relay of IP packets: {error}");
            None
        }
    }
}

#[test]
fn lost_tcp_segments_are_sent_again() {
    let Some(relay) = start(&LinkConditions::new().loss(0.05)) else { return };
    let content = BytePattern::new(1).slice(0, 1_000_000);
    let listener = relay.far().run(|| TcpListener::bind((FAR_ADDR, 0)).unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut got = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| listener.accept().unwrap().0.write_all(&content).unwrap());
        let mut stream = relay.near().run(|| TcpStream::connect(addr).unwrap()).unwrap();
        stream.read_to_end(&mut got).unwrap();
    });
    assert!(got == content);
    // 700 segments and their acknowledgements.
    assert!(relay.dropped() > 0 && relay.packets() > 700, "{} of {}", relay.dropped(), relay.packets());
}

#[test]
fn datagrams_arrive_after_half_the_round_trip() {
    let half = Duration::from_millis(20);
    let Some(relay) = start(&LinkConditions::new().rtt(2 * half)) else { return };
    let far = relay.far().run(|| UdpSocket::bind((FAR_ADDR, 0)).unwrap()).unwrap();
    let near = relay.near().run(|| UdpSocket::bind((NEAR_ADDR, 0)).unwrap()).unwrap();
    let sent = Instant::now();
    near.send_to(b"hello", far.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 10];
    let (len, from) = far.recv_from(&mut buffer).unwrap();
    assert!(sent.elapsed() >= half);
    assert_eq!((&buffer[..len], from), (&b"hello"[..], near.local_addr().unwrap()));
}
