//! Tests of the scripted HTTP/1 peer and of the relay, from the client's side.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use common::get;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::relay::Relay;
use testkit::unused_port::unused_port;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn ask(peer: &H1Peer) -> TcpStream {
    let mut stream = TcpStream::connect(peer.addr()).unwrap();
    stream.write_all(REQUEST).unwrap();
    stream
}

#[test]
fn each_connection_runs_its_own_script() {
    let script = |text: &str| vec![ScriptStep::ReadHead, ScriptStep::send_bytewise(text), ScriptStep::Close];
    let peer = H1Peer::start(vec![script("one"), script("two")]);
    for expected in ["one", "two"] {
        let mut text = String::new();
        ask(&peer).read_to_string(&mut text).unwrap();
        assert_eq!(text, expected);
    }
    let mut extra = TcpStream::connect(peer.addr()).unwrap();
    assert_eq!(extra.read(&mut [0]).unwrap(), 0, "closed at once");
    assert!(peer.finished(3));
    assert_eq!((peer.connections(), peer.received(1)), (3, REQUEST.to_vec()));
}

#[test]
fn head_and_body_are_read_by_separate_steps() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(3),
        ScriptStep::ReadHead,
        ScriptStep::send("done"),
        ScriptStep::ReadToEnd,
    ]);
    let mut stream = TcpStream::connect(peer.addr()).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\n\r\nabcGET / HTTP/1.1\r\n\r\nrest").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "done");
    assert!(peer.received(0).ends_with(b"rest"));
}

#[test]
fn client_sees_reset_and_close_differently() {
    let peer = H1Peer::start(vec![
        vec![ScriptStep::ReadHead, ScriptStep::send("abc"), ScriptStep::Await(1), ScriptStep::Reset],
        vec![ScriptStep::ReadHead, ScriptStep::send("abc"), ScriptStep::HalfClose, ScriptStep::ReadToEnd],
    ]);
    let mut stream = ask(&peer);
    stream.read_exact(&mut [0; 3]).unwrap();
    peer.release();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut stream = ask(&peer);
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    stream.write_all(b"more").unwrap();
    assert!(peer.saw(1, b"more"), "half closed: it still reads");
}

#[test]
fn flood_ends_when_the_client_disconnects() {
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::SendRepeatedly(vec![b'x'; 65_536], u64::MAX)]);
    let mut stream = ask(&peer);
    stream.read_exact(&mut [0; 100_000]).unwrap();
    drop(stream);
    assert!(peer.finished(1));
}

#[test]
fn cut_ends_tls_without_close_notify() {
    let identity = testkit::test_certificates::TestCertificates::generate();
    let script = |end| vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\n\r\nabc"), end];
    let peer = H1Peer::start_tls(vec![script(ScriptStep::Close), script(ScriptStep::Cut)], &identity, &[]);
    let config = testkit::test_certificates::client_config(identity.ca_pem());
    let ends: Vec<bool> = (0..2)
        .map(|_| {
            let session = rustls::ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(peer.addr()).unwrap());
            stream.write_all(REQUEST).unwrap();
            let mut bytes = Vec::new();
            let end = stream.read_to_end(&mut bytes);
            assert!(bytes.ends_with(b"abc"));
            end.is_ok()
        })
        .collect();
    assert_eq!(ends, [true, false]);
}

#[test]
fn relay_passes_bytes_unchanged_and_counts_connections() {
    let origin = Origin::builder().start().unwrap();
    let relay = Relay::to(origin.http_addr()).rtt(Duration::from_millis(4)).start().unwrap();
    let reply = get(relay.addr(), "/bytes/50000000", "");
    assert_eq!(reply.body, origin.pattern().slice(0, 50_000_000));
    get(relay.addr(), "/small", "");
    assert_eq!((relay.connections(), origin.connections()), (2, 2));
}

#[test]
fn relay_delays_replies_by_a_round_trip() {
    let origin = Origin::builder().start().unwrap();
    let rtt = Duration::from_millis(30);
    let relay = Relay::to(origin.http_addr()).rtt(rtt).start().unwrap();
    let start = Instant::now();
    get(relay.addr(), "/small", "");
    assert!(start.elapsed() >= rtt);
    let charged = Relay::to(origin.http_addr()).rtt(rtt).handshake(true).start().unwrap();
    let start = Instant::now();
    get(charged.addr(), "/small", "");
    assert!(start.elapsed() >= rtt * 2);
}

#[test]
fn jitter_delays_but_keeps_the_order() {
    let origin = Origin::builder().start().unwrap();
    let relay = Relay::to(origin.http_addr()).jitter(Duration::from_millis(3)).seed(5).start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert!(get(relay.addr(), "/bytes/2000000", "").body == origin.pattern().slice(0, 2_000_000))
            });
        }
    });
    let both = Relay::to(origin.http_addr()).rtt(Duration::from_millis(10)).jitter(Duration::from_millis(5));
    let both = both.start().unwrap();
    let start = Instant::now();
    get(both.addr(), "/small", "");
    assert!(start.elapsed() >= Duration::from_millis(10));
}

#[test]
fn relay_never_exceeds_its_rate() {
    let origin = Origin::builder().start().unwrap();
    let each = Relay::to(origin.http_addr()).rate(1_000_000).start().unwrap();
    let start = Instant::now();
    get(each.addr(), "/bytes/200000", "");
    assert!(start.elapsed() >= Duration::from_millis(190));

    let all = Relay::to(origin.http_addr()).total_rate(1_000_000).start().unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| get(all.addr(), "/bytes/50000", ""));
        }
    });
    assert!(start.elapsed() >= Duration::from_millis(190));
}

#[test]
fn unreachable_target_closes_the_relayed_connection() {
    let gone = SocketAddr::from(([127, 0, 0, 1], unused_port()));
    let relay = Relay::to(gone).start().unwrap();
    let mut stream = TcpStream::connect(relay.addr()).unwrap();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}
