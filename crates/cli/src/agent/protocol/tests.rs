use std::time::Duration;

use super::*;
use crate::agent::request::Request;

fn orders() -> Vec<Order> {
    let request = Request { url: "http://h/".into(), options: haul::RequestOptions::default() };
    let files = vec![Stamp { path: "/a b".into(), what: [1, 2, 3, u64::MAX] }];
    vec![
        Order::Status,
        Order::Call { request: request.to_bytes().unwrap(), files },
        Order::Stop,
        Order::Call { request: Vec::new(), files: Vec::new() },
    ]
}

fn began() -> Began {
    Began {
        head: b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n".to_vec(),
        length: Some(7),
        total: None,
        validator: Validator::from_bytes(b"\"x\""),
    }
}

fn done(started: Instant) -> Done {
    let facts = Facts {
        status: 200,
        body_bytes: 7,
        decoded_bytes: Some(9),
        peer: Some("[::1]:80".parse().unwrap()),
        total: Duration::from_micros(1_500),
        version: Some(Version::Http11),
        ..Facts::new(started)
    };
    let error = Error::new(ErrorKind::PeerCertificate, "no").with_url("https://h/");
    Done { facts, url: "https://h/".into(), head: Some(began().head), error: Some((&error).into()) }
}

#[test]
fn orders_are_read_however_they_are_cut() {
    let bytes: Vec<u8> = orders().iter().flat_map(Order::to_frame).collect();
    for cut in 0..=bytes.len() {
        let mut frames = Frames::default();
        let mut read = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            frames.push(part);
            while let Some((kind, content)) = frames.next().unwrap() {
                read.push(Order::from_frame(kind, &content).unwrap());
            }
        }
        assert_eq!(read, orders(), "{cut}");
    }
}

#[test]
fn an_order_that_is_short_or_long_is_malformed() {
    for order in orders() {
        let frame = order.to_frame();
        let (kind, content) = (frame[4], &frame[5..]);
        for cut in 0..content.len() {
            assert_eq!(Order::from_frame(kind, &content[..cut]), Err(Malformed), "{cut}");
        }
        assert_eq!(Order::from_frame(kind, &[content, b"x"].concat()), Err(Malformed));
    }
    assert_eq!(Order::from_frame(0, b""), Err(Malformed));
}

#[test]
fn a_frame_that_is_too_long_is_not_waited_for() {
    let mut frames = Frames::default();
    frames.push(&[&u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes()[..], &[1]].concat());
    assert_eq!(frames.next(), Err(Malformed));
}

#[test]
fn events_come_back_as_they_were() {
    let started = Instant::now();
    let again = |event: Event| {
        let frame = event.to_frame();
        for cut in 5..frame.len() {
            assert!(Event::from_frame(frame[4], &frame[5..cut], started).is_err(), "{cut}");
        }
        Event::from_frame(frame[4], &frame[5..], started).unwrap()
    };
    let Event::Began(told) = again(Event::Began(began())) else { panic!() };
    assert_eq!(told, began());
    let Event::Done(mut told) = again(Event::Done(Box::new(done(started)))) else { panic!() };
    let head = told.take_head().unwrap();
    assert_eq!(head.get("a"), Some(&b"b"[..]));
    assert_eq!(format!("{:?}", told.facts), format!("{:?}", done(started).facts));
    let error = Error::from(told.error.take().unwrap());
    assert_eq!((error.exit_code(), error.to_string()), (60, "https://h/: no".to_owned()));
    assert!(matches!(again(Event::Refused), Event::Refused));
    assert!(matches!(again(Event::Stops), Event::Stops));
    let Event::State(text) = again(Event::State("pid: 1\n".into())) else { panic!() };
    assert_eq!(text, "pid: 1\n");
}

#[test]
fn every_kind_of_failure_keeps_its_exit_code() {
    for kind in KINDS {
        let sent = KINDS[usize::try_from(number_of(kind)).unwrap()];
        assert_eq!(sent, kind);
    }
}
