//! A driver in memory: it passes the input of QUIC streams to an HTTP/3 machine in pieces and
//! records the events in a form that does not depend on the cuts.

use haul_proto::h3::{BodyLength, H3Config, H3Error, H3Event, H3FloodLimits, H3Machine, RequestHead, RequestId};
use haul_proto::time::MonotonicTimestamp;
use haul_proto::{ResponseError, ResponseLimits};
use std::collections::{BTreeMap, VecDeque};

/// Returns a configuration with limits that a small input can reach.
pub fn config() -> H3Config {
    H3Config {
        limits: ResponseLimits {
            head_bytes: 2_000,
            head_fields: 30,
            interim: 3,
            trailer_bytes: 500,
            trailer_fields: 10,
            ..ResponseLimits::default()
        },
        floods: H3FloodLimits {
            unknown_frame: 3,
            unknown_stream: 3,
            empty_data: 3,
            go_away: 2,
            cancel_push: 2,
            table_change: 30,
            stream_cancellation: 3,
            unread: 60,
        },
        qpack_table_capacity: 200,
        qpack_blocked_streams: 2,
        partial_head_bytes: 1_000,
        max_frame_size: 100,
        ..H3Config::default()
    }
}

pub fn request(method: &str, body: BodyLength) -> RequestHead<'_> {
    RequestHead { method, authority: "h", body, ..RequestHead::default() }
}

/// Takes all output of the machine.
pub fn drain_output(conn: &mut H3Machine) {
    while let Some(output) = conn.next_output() {
        let (stream, length) = (output.stream, output.bytes.len());
        conn.advance_output(stream, length);
    }
}

/// Returns a connection on which this many requests have been sent.
pub fn asked(method: &str, requests: u64) -> H3Machine {
    let mut conn = H3Machine::new(config());
    for number in 0..requests {
        conn.enqueue(MonotonicTimestamp(0), 4 * number, &request(method, BodyLength::None)).expect("a valid request");
    }
    drain_output(&mut conn);
    conn
}

/// Bytes of a stream, and whether the stream ends after them.
pub struct StreamPiece<'a> {
    pub stream: u64,
    pub bytes: &'a [u8],
    pub fin: bool,
}

/// Reads pieces of streams from fuzzing input: a byte that names the stream and its end, a byte
/// with the length, and the bytes.
pub fn pieces(mut data: &[u8]) -> Vec<StreamPiece<'_>> {
    const STREAMS: [u64; 8] = [0, 4, 8, 3, 7, 11, 15, 12];
    let (mut found, mut ended, mut types) = (Vec::new(), Vec::new(), BTreeMap::new());
    while let [head, length, rest @ ..] = data {
        let (bytes, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        data = behind;
        let stream = STREAMS[usize::from(head & 7)];
        if ended.contains(&stream) {
            continue;
        }
        let fin = head & 0xc0 == 0xc0;
        if fin {
            ended.push(stream);
        }
        // Of the QPACK streams, a whole part is read before its errors are reported: if an
        // insertion unblocks a response and the next one is malformed, the response can be read
        // only if the two arrive apart. They always do here.
        if let (3, Some(last)) = (stream & 3, bytes.len().checked_sub(1))
            && *types.entry(stream).or_insert(bytes[0]) != 0
        {
            let parts = bytes.chunks(1).enumerate();
            found.extend(parts.map(|(at, bytes)| StreamPiece { stream, bytes, fin: fin && at == last }));
            continue;
        }
        found.push(StreamPiece { stream, bytes, fin });
    }
    found
}

/// The observed events, with neighbouring bodies of a response joined.
#[derive(PartialEq, Eq, Debug)]
pub enum H3Observed {
    Body(RequestId, Vec<u8>),
    Other(String),
    Error(H3Error),
}

/// The state of a driver: for each stream, the input that was not consumed, and whether it ends.
#[derive(Default)]
pub struct KeptInput(BTreeMap<u64, (Vec<u8>, bool)>);

impl KeptInput {
    /// Passes a piece to the connection, and the kept input of streams that it unblocks. Returns
    /// `false` after an error.
    pub fn feed(&mut self, conn: &mut H3Machine, piece: &StreamPiece<'_>, seen: &mut Vec<H3Observed>) -> bool {
        let entry = self.0.entry(piece.stream).or_default();
        entry.0.extend_from_slice(piece.bytes);
        entry.1 |= piece.fin;
        let mut readable = VecDeque::from([piece.stream]);
        while let Some(stream) = readable.pop_front() {
            let (bytes, fin) = self.0.entry(stream).or_default();
            match drain(conn, stream, bytes, *fin, seen, &mut readable) {
                Some(consumed) => drop(bytes.drain(..consumed)),
                None => return false,
            }
        }
        true
    }
}

fn drain(
    conn: &mut H3Machine,
    stream: u64,
    bytes: &[u8],
    fin: bool,
    seen: &mut Vec<H3Observed>,
    unblocked: &mut VecDeque<u64>,
) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = match conn.step(MonotonicTimestamp(0), stream, &bytes[at..], fin) {
            Ok(step) => step,
            Err(error) => {
                let next = conn.step(MonotonicTimestamp(0), stream, &[], false);
                assert!(matches!(next, Err(H3Error::Response(ResponseError::Closed(_)))), "an error is the end");
                seen.push(H3Observed::Error(error));
                return None;
            }
        };
        let input = &bytes[at..];
        assert!(step.consumed <= input.len());
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
                assert!(!range.is_empty() && range.end <= step.consumed, "{range:?} of {}", step.consumed);
                match seen.last_mut() {
                    Some(H3Observed::Body(last, body)) if *last == id => body.extend_from_slice(&input[range]),
                    _ => seen.push(H3Observed::Body(id, input[range].to_vec())),
                }
            }
            H3Event::Head { id, head, framing } => {
                seen.push(H3Observed::Other(format!("{} {:?} {framing:?}", id.0, head.raw())));
            }
            H3Event::Interim { id, head } => seen.push(H3Observed::Other(format!("{} {:?}", id.0, head.raw()))),
            other => seen.push(H3Observed::Other(format!("{other:?}"))),
        }
    }
}
