//! Frames of a scripted HTTP/3 peer, and an in-memory driver that records the events of an HTTP/3
//! machine.

use haul_proto::h3::{
    BodyLength, H3Config, H3Error, H3ErrorCode, H3Event, H3Machine, H3ResetReason, H3SendStream, H3StreamAbortToSend,
    RequestHead, RequestId, ResponseBodyFraming,
};
use haul_proto::time::MonotonicTimestamp;
use std::collections::{BTreeMap, VecDeque};

pub(crate) const DATA: u64 = 0;
pub(crate) const HEADERS: u64 = 1;
pub(crate) const CANCEL_PUSH: u64 = 3;
pub(crate) const SETTINGS: u64 = 4;
pub(crate) const PUSH_PROMISE: u64 = 5;
pub(crate) const GOAWAY: u64 = 7;
pub(crate) const MAX_PUSH_ID: u64 = 13;

/// The identifier of the server's control stream.
pub(crate) const CONTROL: u64 = 3;
/// The identifier of the server's QPACK encoder stream.
pub(crate) const ENCODER: u64 = 7;
/// The identifier of the server's QPACK decoder stream.
pub(crate) const DECODER: u64 = 11;

pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        0..64 => vec![value as u8],
        64..16_384 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        16_384..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varint(kind), varint(payload.len() as u64), payload.to_vec()].concat()
}

pub(crate) fn settings(entries: &[(u64, u64)]) -> Vec<u8> {
    let payload: Vec<u8> = entries.iter().flat_map(|&(id, value)| [varint(id), varint(value)].concat()).collect();
    frame(SETTINGS, &payload)
}

/// Returns the first bytes of the server's control stream: its type and SETTINGS.
pub(crate) fn control(entries: &[(u64, u64)]) -> Vec<u8> {
    [varint(0), settings(entries)].concat()
}

fn integer(value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let full = (1 << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Returns a field section whose fields are literals, neither indexed nor Huffman-coded.
pub(crate) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = vec![0, 0];
    for (name, value) in fields {
        integer(name.len(), 3, 0x20, &mut out);
        out.extend_from_slice(name.as_bytes());
        integer(value.len(), 7, 0, &mut out);
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// Returns a QPACK instruction that inserts this entry.
pub(crate) fn insertion(name: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    integer(name.len(), 5, 0x40, &mut out);
    out.extend_from_slice(name.as_bytes());
    integer(value.len(), 7, 0, &mut out);
    out.extend_from_slice(value.as_bytes());
    out
}

/// Returns a QPACK instruction that sets the capacity of the dynamic table.
pub(crate) fn capacity(size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    integer(size, 5, 0x20, &mut out);
    out
}

pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

pub(crate) fn data(payload: &[u8]) -> Vec<u8> {
    frame(DATA, payload)
}

pub(crate) fn with(method: &'static str, body: BodyLength) -> RequestHead<'static> {
    RequestHead { method, authority: "h", body, ..RequestHead::default() }
}

pub(crate) fn get() -> RequestHead<'static> {
    with("GET", BodyLength::None)
}

/// Removes all output from the connection. Returns the bytes of each stream, and whether the stream
/// ended.
pub(crate) fn sent(conn: &mut H3Machine) -> BTreeMap<H3SendStream, (Vec<u8>, bool)> {
    let mut taken: BTreeMap<H3SendStream, (Vec<u8>, bool)> = BTreeMap::new();
    while let Some(output) = conn.next_output() {
        let (stream, length) = (output.stream, output.bytes.len());
        let entry = taken.entry(stream).or_default();
        assert!(!entry.1, "{stream:?} goes on after its end");
        entry.0.extend_from_slice(output.bytes);
        entry.1 = output.fin;
        conn.advance_output(stream, length);
    }
    taken
}

/// Removes the output of a request's stream. Returns its bytes, and whether the stream ended.
pub(crate) fn sent_request(conn: &mut H3Machine, id: u64) -> (Vec<u8>, bool) {
    sent(conn).remove(&H3SendStream::Request(RequestId(id))).unwrap_or_default()
}

pub(crate) fn commands(conn: &mut H3Machine) -> Vec<H3StreamAbortToSend> {
    std::iter::from_fn(|| conn.next_command()).collect()
}

pub(crate) fn reset_stream(id: u64, code: H3ErrorCode) -> H3StreamAbortToSend {
    H3StreamAbortToSend::ResetStream { id: RequestId(id), code }
}

pub(crate) fn stop_sending(stream: u64, code: H3ErrorCode) -> H3StreamAbortToSend {
    H3StreamAbortToSend::StopSending { stream, code }
}

/// Returns an HTTP/3 connection on which `request` was enqueued and sent `count` times, on the
/// streams 0, 4, and so on.
pub(crate) fn asked(config: H3Config, request: &RequestHead<'_>, count: u64) -> H3Machine {
    let mut conn = H3Machine::new(config);
    for number in 0..count {
        conn.enqueue(MonotonicTimestamp(0), 4 * number, request).expect("a valid request");
    }
    sent(&mut conn);
    conn
}

/// An event of an HTTP/3 connection, in a form that does not depend on how the input was cut:
/// adjacent body events of one response are joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum H3RecordedEvent {
    Settings,
    Interim(u64, Vec<u8>),
    Head(u64, Vec<u8>, ResponseBodyFraming),
    Body(u64, Vec<u8>),
    Complete(u64, Option<Vec<u8>>),
    Reset(u64, H3ResetReason, bool),
    GoAway(u64),
    Error(H3Error),
}

/// A piece of the peer's input: the stream identifier, the bytes, and true if the stream ends after
/// them.
pub(crate) type Piece = (u64, Vec<u8>, bool);

/// Passes the pieces to the connection, each cut into parts of at most `size` bytes, and returns
/// the events. Input of a blocked stream is kept until the stream is unblocked.
pub(crate) fn feed(conn: &mut H3Machine, pieces: &[Piece], size: usize) -> Vec<H3RecordedEvent> {
    let (mut seen, mut kept) = (Vec::new(), BTreeMap::<u64, (Vec<u8>, bool)>::new());
    for (stream, bytes, fin) in pieces {
        let mut parts: Vec<&[u8]> = bytes.chunks(size.max(1)).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let entry = kept.entry(*stream).or_default();
            entry.0.extend_from_slice(part);
            entry.1 |= *fin && number == last;
            let mut readable = VecDeque::from([*stream]);
            while let Some(stream) = readable.pop_front() {
                let (bytes, fin) = kept.entry(stream).or_default();
                match drain(conn, stream, bytes, *fin, &mut seen, &mut readable) {
                    Some(consumed) => drop(bytes.drain(..consumed)),
                    None => return seen,
                }
            }
        }
    }
    seen
}

/// Steps one stream until it needs input or is blocked. Returns the number of bytes consumed;
/// `None` after an error.
fn drain(
    conn: &mut H3Machine,
    stream: u64,
    bytes: &[u8],
    fin: bool,
    seen: &mut Vec<H3RecordedEvent>,
    unblocked: &mut VecDeque<u64>,
) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = match conn.step(MonotonicTimestamp(0), stream, &bytes[at..], fin) {
            Ok(step) => step,
            Err(error) => {
                seen.push(H3RecordedEvent::Error(error));
                return None;
            }
        };
        let input = &bytes[at..];
        at += step.consumed;
        match step.event {
            H3Event::NeedInput => {
                assert_eq!(at, bytes.len(), "all input is consumed");
                return Some(at);
            }
            H3Event::Blocked { id } => {
                assert_eq!(id.0, stream);
                return Some(at);
            }
            H3Event::Unblocked { id } => unblocked.push_back(id.0),
            H3Event::Body { id, range } => {
                assert!(!range.is_empty() && range.end <= step.consumed);
                match seen.last_mut() {
                    Some(H3RecordedEvent::Body(last, body)) if *last == id.0 => body.extend_from_slice(&input[range]),
                    _ => seen.push(H3RecordedEvent::Body(id.0, input[range].to_vec())),
                }
            }
            event => seen.push(observation(event)),
        }
    }
}

fn observation(event: H3Event) -> H3RecordedEvent {
    match event {
        H3Event::Settings => H3RecordedEvent::Settings,
        H3Event::Interim { id, head } => H3RecordedEvent::Interim(id.0, head.raw().to_vec()),
        H3Event::Head { id, head, framing } => H3RecordedEvent::Head(id.0, head.raw().to_vec(), framing),
        H3Event::Complete { id, trailers } => {
            H3RecordedEvent::Complete(id.0, trailers.map(|trailers| trailers.raw().to_vec()))
        }
        H3Event::Reset { id, reason, retryable } => H3RecordedEvent::Reset(id.0, reason, retryable),
        H3Event::GoAway { first_refused } => H3RecordedEvent::GoAway(first_refused.0),
        other => panic!("an event that is not known here: {other:?}"),
    }
}

/// Returns the events that need no input.
pub(crate) fn due(conn: &mut H3Machine) -> Vec<H3RecordedEvent> {
    std::iter::from_fn(|| conn.next_event()).map(observation).collect()
}

/// Passes these frames of the response to request `id` to the connection, and returns the events.
/// `fin` ends the response.
pub(crate) fn answer(conn: &mut H3Machine, id: u64, frames: &[Vec<u8>], fin: bool) -> Vec<H3RecordedEvent> {
    feed(conn, &[(id, frames.concat(), fin)], usize::MAX)
}

pub(crate) fn head(id: u64, text: &str, framing: ResponseBodyFraming) -> H3RecordedEvent {
    H3RecordedEvent::Head(id, text.replace('\n', "\r\n").into_bytes(), framing)
}

pub(crate) fn body(id: u64, bytes: &[u8]) -> H3RecordedEvent {
    H3RecordedEvent::Body(id, bytes.to_vec())
}

pub(crate) fn complete(id: u64) -> H3RecordedEvent {
    H3RecordedEvent::Complete(id, None)
}

pub(crate) fn violation(id: u64, error: H3Error) -> H3RecordedEvent {
    H3RecordedEvent::Reset(id, H3ResetReason::Violation(error), false)
}
