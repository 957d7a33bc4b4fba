//! A driver in memory: it feeds a connection in given pieces and writes down what happens.
#![allow(dead_code, reason = "each test binary uses its own part")]

use haul_proto::h1::{BodyFraming, CloseReason, Config, Conn, Error, Event, Request, RequestId};
use haul_proto::time::Time;

/// An event without regard to how the input was cut: neighbouring bodies are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Interim(u64, Vec<u8>),
    Head(u64, Vec<u8>, BodyFraming),
    Body(u64, Vec<u8>),
    Complete(u64, Option<Vec<u8>>, Result<(), CloseReason>),
    /// The head, and the bytes that belong to the caller.
    Tunnel(u64, Vec<u8>, Vec<u8>),
    Error(Error),
}

/// The end of the input.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Open,
    Clean,
    Cut,
}

pub(crate) fn get() -> Request<'static> {
    with_method("GET")
}

pub(crate) fn with_method(method: &'static str) -> Request<'static> {
    Request { method, fields: &[("Host", b"h")], ..Request::default() }
}

/// A connection on which these requests are enqueued and sent.
pub(crate) fn asked(config: Config, requests: &[Request<'_>]) -> Conn {
    let mut conn = Conn::new(Config { max_pipeline: requests.len(), ..config });
    for request in requests {
        conn.enqueue(Time(0), request).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// Feeds the wire, cut before each of these positions (rising), until nothing more is to be read.
pub(crate) fn feed(conn: &mut Conn, wire: &[u8], cuts: &[usize], end: End) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut buffer = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([wire.len()]) {
        buffer.extend_from_slice(&wire[from..to]);
        from = to;
        let mut at = 0;
        loop {
            let step = match conn.step(Time(0), &mut buffer[at..]) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(Seen::Error(error));
                    return seen;
                }
            };
            let needs_input = step.event == Event::NeedInput;
            let tunnel = matches!(step.event, Event::Tunnel { .. });
            note(&mut seen, step.event, &buffer[at..]);
            at += step.consumed;
            if tunnel {
                let rest = [&buffer[at..], &wire[from..]].concat();
                if let Some(Seen::Tunnel(_, _, behind)) = seen.last_mut() {
                    *behind = rest;
                }
                return seen;
            }
            if needs_input {
                break;
            }
            if conn.close_reason().is_some() && matches!(seen.last(), Some(Seen::Complete(..))) {
                return seen;
            }
        }
        buffer.drain(..at);
    }
    if end != End::Open {
        match conn.end_of_input(end == End::Clean) {
            Ok(event) => note(&mut seen, event, &buffer),
            Err(error) => seen.push(Seen::Error(error)),
        }
    }
    seen
}

fn note(seen: &mut Vec<Seen>, event: Event, input: &[u8]) {
    let raw = |head: &haul_proto::Head| head.raw().to_vec();
    match event {
        Event::NeedInput => {}
        Event::Interim { id: RequestId(id), head } => seen.push(Seen::Interim(id, raw(&head))),
        Event::Head { id: RequestId(id), head, framing } => seen.push(Seen::Head(id, raw(&head), framing)),
        Event::Body { id: RequestId(id), range } => match seen.last_mut() {
            Some(Seen::Body(last, bytes)) if *last == id => bytes.extend_from_slice(&input[range]),
            _ => seen.push(Seen::Body(id, input[range].to_vec())),
        },
        Event::Complete { id: RequestId(id), trailers, reuse } => {
            seen.push(Seen::Complete(id, trailers.map(|trailers| trailers.raw().to_vec()), reuse));
        }
        Event::Tunnel { id: RequestId(id), head } => seen.push(Seen::Tunnel(id, raw(&head), Vec::new())),
    }
}

/// One GET, and what its answer gives.
pub(crate) fn answer(wire: &[u8], end: End) -> Vec<Seen> {
    feed(&mut asked(Config::default(), &[get()]), wire, &[], end)
}

/// The error that this answer to a GET ends with, whatever comes before it.
pub(crate) fn error_of(wire: &[u8], end: End) -> Option<Error> {
    match answer(wire, end).pop() {
        Some(Seen::Error(error)) => Some(error),
        _ => None,
    }
}

/// All body bytes of an answer.
pub(crate) fn body_of(seen: &[Seen]) -> Vec<u8> {
    let bodies = seen.iter().filter_map(|event| match event {
        Seen::Body(_, bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    bodies.collect::<Vec<_>>().concat()
}

/// The verdict about reuse of the last complete response.
pub(crate) fn reuse_of(seen: &[Seen]) -> Option<Result<(), CloseReason>> {
    seen.iter().rev().find_map(|event| match event {
        Seen::Complete(_, _, reuse) => Some(*reuse),
        _ => None,
    })
}
