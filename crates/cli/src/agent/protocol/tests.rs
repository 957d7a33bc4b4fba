use std::time::Duration;

use super::*;
use crate::agent::request::AgentRequest;

fn orders() -> Vec<CallerMessage> {
    let request = AgentRequest { url: "http://h/".into(), options: haul::RequestOptions::default() };
    let files = vec![FileIdentity { path: "/a b".into(), metadata: [1, 2, 3, u64::MAX] }];
    vec![
        CallerMessage::Status,
        CallerMessage::Call { request: request.to_bytes().unwrap(), files },
        CallerMessage::Stop,
        CallerMessage::Call { request: Vec::new(), files: Vec::new() },
    ]
}

fn began() -> ResponseStart {
    ResponseStart {
        head: b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n".to_vec(),
        length: Some(7),
        total: None,
        validator: Validator::from_bytes(b"\"x\""),
    }
}

fn done(started: Instant) -> AgentTransferResult {
    let facts = TransferFacts {
        status: 200,
        body_bytes: 7,
        decoded_bytes: Some(9),
        peer: Some("[::1]:80".parse().unwrap()),
        total: Duration::from_micros(1_500),
        version: Some(ProtocolVersion::Http11),
        ..TransferFacts::new(started)
    };
    let error = Error::new(ErrorKind::PeerCertificate, "no").with_url("https://h/");
    AgentTransferResult { facts, url: "https://h/".into(), head: Some(began().head), error: Some((&error).into()) }
}

#[test]
fn call_messages_survive_any_fragmentation() {
    let bytes: Vec<u8> = orders().iter().flat_map(CallerMessage::to_frame).collect();
    for cut in 0..=bytes.len() {
        let mut frames = AgentFrameSplitter::default();
        let mut read = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            frames.push(part);
            while let Some((kind, content)) = frames.next().unwrap() {
                read.push(CallerMessage::from_frame(kind, &content).unwrap());
            }
        }
        assert_eq!(read, orders(), "{cut}");
    }
}

#[test]
fn truncated_or_extended_call_message_is_malformed() {
    for order in orders() {
        let frame = order.to_frame();
        let (kind, content) = (frame[4], &frame[5..]);
        for cut in 0..content.len() {
            assert_eq!(CallerMessage::from_frame(kind, &content[..cut]), Err(MalformedAgentValue), "{cut}");
        }
        assert_eq!(CallerMessage::from_frame(kind, &[content, b"x"].concat()), Err(MalformedAgentValue));
    }
    assert_eq!(CallerMessage::from_frame(0, b""), Err(MalformedAgentValue));
}

#[test]
fn oversized_frame_is_malformed_at_once() {
    let mut frames = AgentFrameSplitter::default();
    frames.push(&[&u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes()[..], &[1]].concat());
    assert_eq!(frames.next(), Err(MalformedAgentValue));
}

#[test]
fn agent_messages_survive_the_round_trip() {
    let started = Instant::now();
    let again = |event: AgentMessage| {
        let frame = event.to_frame();
        for cut in 5..frame.len() {
            assert!(AgentMessage::from_frame(frame[4], &frame[5..cut], started).is_err(), "{cut}");
        }
        AgentMessage::from_frame(frame[4], &frame[5..], started).unwrap()
    };
    let AgentMessage::Began(told) = again(AgentMessage::Began(began())) else { panic!() };
    assert_eq!(told, began());
    let AgentMessage::Done(mut told) = again(AgentMessage::Done(Box::new(done(started)))) else { panic!() };
    let head = told.take_head().unwrap();
    assert_eq!(head.get("a"), Some(&b"b"[..]));
    assert_eq!(format!("{:?}", told.facts), format!("{:?}", done(started).facts));
    let error = Error::from(told.error.take().unwrap());
    assert_eq!((error.exit_code(), error.to_string()), (60, "https://h/: no".to_owned()));
    assert!(matches!(again(AgentMessage::Refused), AgentMessage::Refused));
    assert!(matches!(again(AgentMessage::Stops), AgentMessage::Stops));
    let AgentMessage::State(text) = again(AgentMessage::State("pid: 1\n".into())) else { panic!() };
    assert_eq!(text, "pid: 1\n");
}

#[test]
fn error_kinds_survive_the_round_trip() {
    for kind in ERROR_KINDS {
        let sent = ERROR_KINDS[usize::try_from(error_kind_number(kind)).unwrap()];
        assert_eq!(sent, kind);
    }
}
