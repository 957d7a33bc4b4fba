//! An in-memory driver for HTTP/1 tests: it passes input to an HTTP/1 machine in pieces and records
//! the events.
#![allow(dead_code, reason = "each test binary uses its own part")]

use haul_proto::h1::{CloseReason, H1Config, H1Error, H1Event, H1Machine, RequestHead, RequestId, ResponseBodyFraming};
use haul_proto::time::MonotonicTimestamp;

/// An event of an HTTP/1 connection, in a form that does not depend on how the input was cut:
/// adjacent body events are joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum H1Observation {
    Interim(u64, Vec<u8>),
    Head(u64, Vec<u8>, ResponseBodyFraming),
    Body(u64, Vec<u8>),
    Complete(u64, Option<Vec<u8>>, Result<(), CloseReason>),
    /// A response that opens a tunnel: the id of its request, its head, and the bytes after the
    /// head, which the caller reads.
    Tunnel(u64, Vec<u8>, Vec<u8>),
    Error(H1Error),
}

/// The manner in which the input ends: not at all, properly, or without close_notify.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum InputEnd {
    Open,
    Clean,
    Cut,
}

pub(crate) fn get() -> RequestHead<'static> {
    with_method("GET")
}

pub(crate) fn with_method(method: &'static str) -> RequestHead<'static> {
    RequestHead { method, fields: &[("Host", b"h")], ..RequestHead::default() }
}

/// Returns an HTTP/1 connection on which these requests were enqueued and sent.
pub(crate) fn asked(config: H1Config, requests: &[RequestHead<'_>]) -> H1Machine {
    let mut conn = H1Machine::new(H1Config { max_pipeline: requests.len(), ..config });
    for request in requests {
        conn.enqueue(MonotonicTimestamp(0), request).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// Passes `wire` to the connection in pieces until nothing more can be read, and returns the
/// events. Each number in `cuts` (rising) is an offset at which a new piece begins.
pub(crate) fn feed(conn: &mut H1Machine, wire: &[u8], cuts: &[usize], end: InputEnd) -> Vec<H1Observation> {
    let mut seen: Vec<H1Observation> = Vec::new();
    let mut buffer = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([wire.len()]) {
        buffer.extend_from_slice(&wire[from..to]);
        from = to;
        let mut at = 0;
        loop {
            let step = match conn.step(MonotonicTimestamp(0), &mut buffer[at..]) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(H1Observation::Error(error));
                    return seen;
                }
            };
            let needs_input = step.event == H1Event::NeedInput;
            let tunnel = matches!(step.event, H1Event::Tunnel { .. });
            note(&mut seen, step.event, &buffer[at..]);
            at += step.consumed;
            if tunnel {
                let rest = [&buffer[at..], &wire[from..]].concat();
                if let Some(H1Observation::Tunnel(_, _, behind)) = seen.last_mut() {
                    *behind = rest;
                }
                return seen;
            }
            if needs_input {
                break;
            }
            if conn.close_reason().is_some() && matches!(seen.last(), Some(H1Observation::Complete(..))) {
                return seen;
            }
        }
        buffer.drain(..at);
    }
    if end != InputEnd::Open {
        match conn.end_of_input(end == InputEnd::Clean) {
            Ok(event) => note(&mut seen, event, &buffer),
            Err(error) => seen.push(H1Observation::Error(error)),
        }
    }
    seen
}

fn note(seen: &mut Vec<H1Observation>, event: H1Event, input: &[u8]) {
    let raw = |head: &haul_proto::ResponseHead| head.raw().to_vec();
    match event {
        H1Event::NeedInput => {}
        H1Event::Interim { id: RequestId(id), head } => seen.push(H1Observation::Interim(id, raw(&head))),
        H1Event::Head { id: RequestId(id), head, framing } => seen.push(H1Observation::Head(id, raw(&head), framing)),
        H1Event::Body { id: RequestId(id), range } => match seen.last_mut() {
            Some(H1Observation::Body(last, bytes)) if *last == id => bytes.extend_from_slice(&input[range]),
            _ => seen.push(H1Observation::Body(id, input[range].to_vec())),
        },
        H1Event::Complete { id: RequestId(id), trailers, reuse } => {
            seen.push(H1Observation::Complete(id, trailers.map(|trailers| trailers.raw().to_vec()), reuse));
        }
        H1Event::Tunnel { id: RequestId(id), head } => seen.push(H1Observation::Tunnel(id, raw(&head), Vec::new())),
    }
}

/// Sends a GET on a new connection, passes `wire` to the connection as the response, and returns
/// the events.
pub(crate) fn answer(wire: &[u8], end: InputEnd) -> Vec<H1Observation> {
    feed(&mut asked(H1Config::default(), &[get()]), wire, &[], end)
}

/// Sends a GET on a new connection and passes `wire` to the connection as the response. Returns the
/// error that ends the connection. `None` without an error.
pub(crate) fn error_of(wire: &[u8], end: InputEnd) -> Option<H1Error> {
    match answer(wire, end).pop() {
        Some(H1Observation::Error(error)) => Some(error),
        _ => None,
    }
}

/// Returns all body bytes of the events.
pub(crate) fn body_of(seen: &[H1Observation]) -> Vec<u8> {
    let bodies = seen.iter().filter_map(|event| match event {
        H1Observation::Body(_, bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    bodies.collect::<Vec<_>>().concat()
}

/// Returns `Ok` if the connection can be reused after its last complete response, otherwise the
/// reason why not. Returns `None` if no response is complete.
pub(crate) fn reuse_of(seen: &[H1Observation]) -> Option<Result<(), CloseReason>> {
    seen.iter().rev().find_map(|event| match event {
        H1Observation::Complete(_, _, reuse) => Some(*reuse),
        _ => None,
    })
}
