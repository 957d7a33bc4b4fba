//! A driver in memory: it passes input to an HTTP/1 machine in pieces and records the events in a
//! form that does not depend on the cuts.

use haul_proto::ResponseError;
use haul_proto::ResponseLimits;
use haul_proto::h1::{H1Config, H1Error, H1Event, H1Machine, RequestHead};
use haul_proto::time::MonotonicTimestamp;

/// The observed output: heads and trailers as raw bytes, neighbouring bodies joined.
#[derive(PartialEq, Eq, Debug)]
pub enum H1Output {
    Interim(Vec<u8>),
    Head(Vec<u8>, String),
    Body(Vec<u8>),
    Complete(Option<Vec<u8>>, String),
    Tunnel(Vec<u8>),
    Error(H1Error),
}

/// Returns limits that a small input can reach.
pub fn limits() -> ResponseLimits {
    ResponseLimits {
        head_bytes: 2_000,
        head_fields: 120,
        interim: 3,
        chunk_line: 64,
        chunk_extensions_total: 200,
        trailer_bytes: 500,
        trailer_fields: 20,
    }
}

/// Returns a connection on which this many requests have been sent. Use more requests than the
/// input answers, so that bytes after the last response are never an error.
pub fn asked(method: &str, requests: usize) -> H1Machine {
    let mut conn = H1Machine::new(H1Config { limits: limits(), max_pipeline: requests, ..H1Config::default() });
    let fields: &[(&str, &[u8])] = if method == "CONNECT" { &[] } else { &[("Host", b"h")] };
    let request = RequestHead { method, fields, ..RequestHead::default() };
    for _ in 0..requests {
        conn.enqueue(MonotonicTimestamp(0), &request).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// Passes the bytes to the connection in pieces of this size and returns the events.
pub fn feed(mut conn: H1Machine, wire: &[u8], piece: usize) -> Vec<H1Output> {
    let mut seen = Vec::new();
    let mut buffer = Vec::new();
    for piece in wire.chunks(piece.max(1)) {
        buffer.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let input = &mut buffer[at..];
            let length = input.len();
            let step = match conn.step(MonotonicTimestamp(0), input) {
                Ok(step) => step,
                Err(error) => {
                    let next = conn.step(MonotonicTimestamp(0), &mut []);
                    assert!(matches!(next, Err(H1Error::Response(ResponseError::Closed(_)))), "an error is the end");
                    seen.push(H1Output::Error(error));
                    return seen;
                }
            };
            assert!(step.consumed <= length);
            if let H1Event::Body { range, .. } = &step.event {
                assert!(!range.is_empty() && range.end <= step.consumed, "{range:?} of {}", step.consumed);
            }
            let over = note(&mut seen, &step.event, &buffer[at..]);
            at += step.consumed;
            if over {
                return seen;
            }
            if step.event == H1Event::NeedInput {
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

/// Records an event. Returns `true` if no event can follow it.
fn note(seen: &mut Vec<H1Output>, event: &H1Event, input: &[u8]) -> bool {
    match event {
        H1Event::NeedInput => {}
        H1Event::Interim { head, .. } => seen.push(H1Output::Interim(head.raw().to_vec())),
        H1Event::Head { head, framing, .. } => {
            let text: Vec<String> = head.fields().map(|(name, value)| format!("{name}: {value:?}")).collect();
            seen.push(H1Output::Head(head.raw().to_vec(), format!("{} {framing:?} {text:?}", head.status())));
        }
        H1Event::Body { range, .. } => match seen.last_mut() {
            Some(H1Output::Body(bytes)) => bytes.extend_from_slice(&input[range.clone()]),
            _ => seen.push(H1Output::Body(input[range.clone()].to_vec())),
        },
        H1Event::Complete { trailers, reuse, .. } => {
            seen.push(H1Output::Complete(trailers.as_ref().map(|fields| fields.raw().to_vec()), format!("{reuse:?}")));
            return reuse.is_err();
        }
        H1Event::Tunnel { head, .. } => {
            seen.push(H1Output::Tunnel(head.raw().to_vec()));
            return true;
        }
    }
    false
}
