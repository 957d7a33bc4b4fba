//! Frames of a scripted HTTP/2 peer, and an in-memory driver that records the events of an HTTP/2
//! machine.

use haul_proto::h2::{
    BodyLength, ErrorCode, H2Config, H2Error, H2Event, H2Machine, RequestHead, RequestId, ResetReason,
    ResponseBodyFraming,
};
use haul_proto::time::MonotonicTimestamp;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const WHOLE: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        entries.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

pub(crate) fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// Returns a header block whose fields are literals, neither indexed nor Huffman-coded.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fn string(text: &str, out: &mut Vec<u8>) {
        let length = text.len();
        if length < 127 {
            out.push(length as u8);
        } else {
            out.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                out.push(rest as u8 | 128);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
        out.extend_from_slice(text.as_bytes());
    }
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        string(name, &mut out);
        string(value, &mut out);
    }
    out
}

pub(crate) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | WHOLE, stream, &block(fields))
}

pub(crate) fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(DATA, flags, stream, payload)
}

pub(crate) fn padded(stream: u32, flags: u8, payload: &[u8], padding: u8) -> Vec<u8> {
    let payload = [&[padding], payload, &vec![0; usize::from(padding)][..]].concat();
    frame(DATA, flags | PADDED, stream, &payload)
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn rst(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

pub(crate) fn go_away(last: u32, code: ErrorCode) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &code.0.to_be_bytes(), b"why"].concat())
}

/// Splits the output of a connection into frames, without the preface. Each is given as type,
/// flags, stream and payload.
pub(crate) fn frames(output: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut rest = output.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(output);
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let stream = u32::from_be_bytes([rest[5], rest[6], rest[7], rest[8]]);
        found.push((rest[3], rest[4], stream, rest[9..9 + length].to_vec()));
        rest = &rest[9 + length..];
    }
    found
}

/// Removes all bytes from the connection's output and returns their frames.
pub(crate) fn sent(conn: &mut H2Machine) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let found = frames(conn.output());
    conn.advance_output(conn.output().len());
    found
}

pub(crate) fn with(method: &'static str, body: BodyLength) -> RequestHead<'static> {
    RequestHead {
        method,
        scheme: "https",
        authority: "h",
        target: "/",
        fields: &[],
        body,
        expect_continue: false,
        http10: false,
        sensitive: &[],
    }
}

pub(crate) fn get() -> RequestHead<'static> {
    with("GET", BodyLength::None)
}

/// Returns an HTTP/2 connection on which `request` was enqueued and sent `count` times.
pub(crate) fn asked(config: H2Config, request: &RequestHead<'_>, count: usize) -> H2Machine {
    let mut conn = H2Machine::new(config);
    for _ in 0..count {
        conn.enqueue(MonotonicTimestamp(0), request).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// An event of an HTTP/2 connection, in a form that does not depend on how the input was cut:
/// adjacent body events of one response are joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum H2RecordedEvent {
    Settings(u32),
    Interim(u64, Vec<u8>),
    Head(u64, Vec<u8>, ResponseBodyFraming),
    Body(u64, Vec<u8>),
    Complete(u64, Option<Vec<u8>>),
    Reset(u64, ResetReason, bool),
    GoAway(u64, ErrorCode),
    Error(H2Error),
}

/// Passes `wire` to the connection in pieces and returns the events. Each number in `cuts` (in
/// rising order) is an offset at which a new piece begins. Bodies are released at once.
pub(crate) fn feed(conn: &mut H2Machine, wire: &[u8], cuts: &[usize]) -> Vec<H2RecordedEvent> {
    let mut seen: Vec<H2RecordedEvent> = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([wire.len()]) {
        let mut piece = wire[from..to].to_vec();
        from = to;
        let mut at = 0;
        loop {
            let step = match conn.step(MonotonicTimestamp(0), &mut piece[at..]) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(H2RecordedEvent::Error(error));
                    return seen;
                }
            };
            let input = &piece[at..];
            at += step.consumed;
            match step.event {
                H2Event::NeedInput => {
                    assert_eq!(at, piece.len(), "all input is consumed");
                    break;
                }
                H2Event::Settings { max_concurrent } => seen.push(H2RecordedEvent::Settings(max_concurrent)),
                H2Event::Interim { id, head } => seen.push(H2RecordedEvent::Interim(id.0, head.raw().to_vec())),
                H2Event::Head { id, head, framing } => {
                    seen.push(H2RecordedEvent::Head(id.0, head.raw().to_vec(), framing))
                }
                H2Event::Body { id, range } => {
                    assert!(!range.is_empty() && range.end <= step.consumed);
                    conn.release(MonotonicTimestamp(0), id, range.len() as u64);
                    match seen.last_mut() {
                        Some(H2RecordedEvent::Body(last, bytes)) if *last == id.0 => {
                            bytes.extend_from_slice(&input[range])
                        }
                        _ => seen.push(H2RecordedEvent::Body(id.0, input[range].to_vec())),
                    }
                }
                H2Event::Complete { id, trailers } => {
                    seen.push(H2RecordedEvent::Complete(id.0, trailers.map(|trailers| trailers.raw().to_vec())));
                }
                H2Event::Reset { id, reason, retryable } => seen.push(H2RecordedEvent::Reset(id.0, reason, retryable)),
                H2Event::GoAway { last: RequestId(last), code } => seen.push(H2RecordedEvent::GoAway(last, code)),
                other => panic!("an event that is not known here: {other:?}"),
            }
        }
    }
    seen
}

/// Passes the server's SETTINGS and these frames to the connection, and returns the events.
pub(crate) fn answer(conn: &mut H2Machine, frames: &[Vec<u8>]) -> Vec<H2RecordedEvent> {
    let wire = [settings(&[]), frames.concat()].concat();
    let mut seen = feed(conn, &wire, &[]);
    assert_eq!(seen.remove(0), H2RecordedEvent::Settings(100));
    seen
}

pub(crate) fn head(id: u64, text: &str, framing: ResponseBodyFraming) -> H2RecordedEvent {
    H2RecordedEvent::Head(id, text.replace('\n', "\r\n").into_bytes(), framing)
}

pub(crate) fn body(id: u64, bytes: &[u8]) -> H2RecordedEvent {
    H2RecordedEvent::Body(id, bytes.to_vec())
}

pub(crate) fn complete(id: u64) -> H2RecordedEvent {
    H2RecordedEvent::Complete(id, None)
}
