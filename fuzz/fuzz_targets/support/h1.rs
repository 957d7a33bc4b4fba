//! A driver in memory: feeds an HTTP/1 connection in pieces and writes down what happens, without
//! regard to the cuts.

use haul_proto::Limits;
use haul_proto::ResponseError;
use haul_proto::h1::{Config, Conn, Error, Event, Request};
use haul_proto::time::Time;

/// The observed output: heads and trailers as raw bytes, neighbouring bodies joined.
#[derive(PartialEq, Eq, Debug)]
pub enum H1Output {
    Interim(Vec<u8>),
    Head(Vec<u8>, String),
    Body(Vec<u8>),
    Complete(Option<Vec<u8>>, String),
    Tunnel(Vec<u8>),
    Error(Error),
}

/// Limits that a small input can reach.
pub fn limits() -> Limits {
    Limits {
        head_bytes: 2_000,
        head_fields: 120,
        interim: 3,
        chunk_line: 64,
        chunk_extensions_total: 200,
        trailer_bytes: 500,
        trailer_fields: 20,
    }
}

/// A connection on which so many requests have been sent; more than an input answers, so that bytes
/// behind the last response never matter.
pub fn asked(method: &str, requests: usize) -> Conn {
    let mut conn = Conn::new(Config { limits: limits(), max_pipeline: requests, ..Config::default() });
    let fields: &[(&str, &[u8])] = if method == "CONNECT" { &[] } else { &[("Host", b"h")] };
    let request = Request { method, fields, ..Request::default() };
    for _ in 0..requests {
        conn.enqueue(Time(0), &request).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// Feeds the wire in pieces of this size.
pub fn feed(mut conn: Conn, wire: &[u8], piece: usize) -> Vec<H1Output> {
    let mut seen = Vec::new();
    let mut buffer = Vec::new();
    for piece in wire.chunks(piece.max(1)) {
        buffer.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let input = &mut buffer[at..];
            let length = input.len();
            let step = match conn.step(Time(0), input) {
                Ok(step) => step,
                Err(error) => {
                    let next = conn.step(Time(0), &mut []);
                    assert!(matches!(next, Err(Error::Response(ResponseError::Closed(_)))), "an error is the end");
                    seen.push(H1Output::Error(error));
                    return seen;
                }
            };
            assert!(step.consumed <= length);
            if let Event::Body { range, .. } = &step.event {
                assert!(!range.is_empty() && range.end <= step.consumed, "{range:?} of {}", step.consumed);
            }
            let over = note(&mut seen, &step.event, &buffer[at..]);
            at += step.consumed;
            if over {
                return seen;
            }
            if step.event == Event::NeedInput {
                break;
            }
        }
        buffer.drain(..at);
    }
    match conn.end_of_input(true) {
        Ok(event) => {
            note(&mut seen, &event, &buffer);
        }
        Err(error) => seen.push(H1Output::Error(error)),
    }
    seen
}

/// Is nothing more to be read?
fn note(seen: &mut Vec<H1Output>, event: &Event, input: &[u8]) -> bool {
    match event {
        Event::NeedInput => {}
        Event::Interim { head, .. } => seen.push(H1Output::Interim(head.raw().to_vec())),
        Event::Head { head, framing, .. } => {
            let text: Vec<String> = head.fields().map(|(name, value)| format!("{name}: {value:?}")).collect();
            seen.push(H1Output::Head(head.raw().to_vec(), format!("{} {framing:?} {text:?}", head.status())));
        }
        Event::Body { range, .. } => match seen.last_mut() {
            Some(H1Output::Body(bytes)) => bytes.extend_from_slice(&input[range.clone()]),
            _ => seen.push(H1Output::Body(input[range.clone()].to_vec())),
        },
        Event::Complete { trailers, reuse, .. } => {
            seen.push(H1Output::Complete(trailers.as_ref().map(|fields| fields.raw().to_vec()), format!("{reuse:?}")));
            return reuse.is_err();
        }
        Event::Tunnel { head, .. } => {
            seen.push(H1Output::Tunnel(head.raw().to_vec()));
            return true;
        }
    }
    false
}
