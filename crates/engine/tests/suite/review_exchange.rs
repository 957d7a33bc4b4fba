//! Exchanges that once went wrong: retries of what cannot get better, two sides that wait for each other, limits that
//! could be outlived.

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{DRIVERS, Driver, impatient, retrying};
use haul::body::path::BodyPath;
use haul::net::pool::Key;
use haul::sink::memory::Memory;
use haul::transfer::{After, Broke, Transfer};
use haul::{Client, Error, ErrorKind, RequestOptions, Target};
use haul_policy::redirect::RedirectRules;
use haul_proto::h1::{Config, Conn, Event};
use haul_proto::time::Time;
use testkit::raw::{RawPeer, Step};

#[test]
fn a_peer_that_breaks_the_protocol_is_not_asked_again() {
    for driver in DRIVERS {
        for (reply, asked, kind) in [
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 1, ErrorKind::Receive),
            ("HTTP/1.1 200 OK\r\nContent-Length: 42, 30\r\n\r\n", 1, ErrorKind::Protocol),
            ("HTTP/1.1 200 OK\nno colon\n\n", 1, ErrorKind::Protocol),
            // What merely ends too early may be whole the next time.
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 4, ErrorKind::PartialBody),
            ("HTTP/1.1 200 OK\r\nContent-", 4, ErrorKind::Receive),
        ] {
            let peer = RawPeer::always(vec![Step::ReadHead, Step::send(reply), Step::Close]);
            // A driver's own sink could not take back what it has written.
            let got = match driver {
                Driver::Blocking => driver.get(&Client::new(), &peer.url("/"), &retrying(3)),
                Driver::Reactor if kind == ErrorKind::PartialBody => continue,
                Driver::Reactor => driver.get(&Client::new(), &peer.url("/"), &retrying(3)),
            };
            assert_eq!((got.kind, peer.connections()), (Some(kind), asked), "{driver:?} {reply:?} {}", got.message);
        }
    }
}

#[test]
fn a_server_that_answers_while_it_is_sent_to_stops_neither_side() {
    // More than the kernel keeps on the way, both ways.
    const SIZE: usize = 24 << 20;
    let piece = vec![b'x'; 1 << 16];
    let times = (SIZE / piece.len()) as u64;
    for driver in DRIVERS {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        let script = vec![
            Step::ReadHead,
            Step::send(head),
            Step::SendRepeatedly(piece.clone(), times),
            Step::ReadBytes(SIZE),
            Step::Close,
        ];
        let peer = RawPeer::start(vec![script]);
        let body: Arc<[u8]> = vec![b'y'; SIZE].into();
        let options = RequestOptions {
            method: "POST".into(),
            body: Some(body.into()),
            // Both are to send at once.
            expect_timeout: Duration::ZERO,
            ..RequestOptions::default()
        };
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!(got.ok().len(), SIZE, "{driver:?}");
    }
}

#[test]
fn a_handshake_that_drips_does_not_outlive_the_limit() {
    // The start of a record that takes a minute at this pace.
    let mut record = vec![0x16, 3, 3, 0x40, 0];
    record.resize(1200, 0);
    for driver in DRIVERS {
        let peer = RawPeer::always(vec![Step::SendSlowly(record.clone(), Duration::from_millis(50))]);
        let url = peer.url("/").replace("http:", "https:");
        let mut options = impatient(Duration::from_millis(400));
        options.tls.verify = false;
        let got = driver.get(&Client::new(), &url, &options);
        assert_eq!(got.kind, Some(ErrorKind::Timeout), "{driver:?} {}", got.message);
    }
}

/// A transfer that has been answered so.
fn answered(transfer: &mut Transfer, reply: &str) {
    let mut conn = Conn::new(Config::default());
    transfer.enqueue(&mut conn, Instant::now()).unwrap();
    conn.advance_output(conn.output().len());
    let step = conn.step(Time(0), &mut reply.as_bytes().to_vec()).unwrap();
    let Event::Head { head, framing, .. } = step.event else { panic!("{:?}", step.event) };
    transfer.on_head(head, framing, Instant::now());
}

fn transfer(options: RequestOptions) -> Box<Transfer> {
    let target = Target::parse("http://a.test/").unwrap();
    Transfer::new(target, Arc::new(options), BodyPath::new(Box::new(Memory::default())), Instant::now(), 0)
}

#[test]
fn a_pause_is_asked_for_once() {
    let mut transfer = transfer(retrying(5));
    answered(&mut transfer, "HTTP/1.1 503 X\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(transfer.host_pause(), Some(Duration::from_secs(100)));
    assert!(matches!(transfer.on_complete(Instant::now()), After::Again(_)));
    // The next attempt breaks: the host has not asked again.
    transfer.enqueue(&mut Conn::new(Config::default()), Instant::now()).unwrap();
    let broken = Error::new(ErrorKind::EmptyReply, "closed");
    assert!(matches!(transfer.on_failure(broken, Broke::BeforeResponse, Instant::now()), After::Again(_)));
    assert_eq!(transfer.host_pause(), None);
}

#[test]
fn a_host_is_not_paused_for_another_it_redirected_to() {
    let options = RequestOptions { redirects: RedirectRules::default(), ..retrying(5) };
    let mut transfer = transfer(options);
    answered(&mut transfer, "HTTP/1.1 302 X\r\nLocation: http://b.test/\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(transfer.on_complete(Instant::now()), After::Again(Duration::ZERO)));
    answered(&mut transfer, "HTTP/1.1 503 X\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(transfer.host_pause(), None);
    // The wait itself is the transfer's own.
    assert!(matches!(transfer.on_complete(Instant::now()), After::Again(wait) if wait == Duration::from_secs(100)));
}

#[test]
fn limits_beyond_all_clocks_are_no_limits() {
    let origin = common::start_origin();
    for driver in DRIVERS {
        let mut options = impatient(Duration::MAX);
        options.max_time = Some(Duration::MAX);
        let got = driver.get(&Client::new(), &origin.url("/small"), &options);
        assert_eq!(got.ok(), b"small\n", "{driver:?}");
    }
}

#[test]
fn tickets_stay_with_their_port_and_their_detour() {
    let mut options = RequestOptions::default();
    let key = |url: &str, options: &RequestOptions| Key::new(&Target::parse(url).unwrap(), options).place();
    let plain = key("https://a.test/", &options);
    assert_eq!(plain, key("https://A.test:443/x", &options));
    assert_ne!(plain, key("https://a.test:8443/", &options));
    assert_ne!(plain, key("https://b.test/", &options));
    let detour = haul::request::ConnectTo { host: None, port: None, to_host: Some("c.test".into()), to_port: None };
    options.connect_to.push(detour);
    assert_ne!(plain, key("https://a.test/", &options));
}
