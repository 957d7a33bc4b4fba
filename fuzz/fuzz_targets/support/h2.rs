//! A driver in memory: it passes input to an HTTP/2 machine in pieces and records the events in a
//! form that does not depend on the cuts.

use haul_proto::ResponseError;
use haul_proto::ResponseLimits;
use haul_proto::h2::{BodyLength, FloodLimits, H2Config, H2Error, H2Event, H2Machine, RequestHead, RequestId};
use haul_proto::time::MonotonicTimestamp;

/// An empty SETTINGS frame.
pub const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Returns a configuration with limits that a small input can reach.
pub fn config() -> H2Config {
    H2Config {
        limits: ResponseLimits {
            head_bytes: 2_000,
            head_fields: 30,
            interim: 3,
            trailer_bytes: 500,
            trailer_fields: 10,
            ..ResponseLimits::default()
        },
        floods: FloodLimits {
            ping: 3,
            settings: 3,
            empty_data: 3,
            window_update: 5,
            priority: 3,
            reset: 3,
            go_away: 2,
            unknown: 3,
            continuation: 3,
            unread: 5,
        },
        stream_window: 200,
        header_table_size: 200,
        ..H2Config::default()
    }
}

pub fn request(method: &str, body: BodyLength) -> RequestHead<'_> {
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

/// Returns a connection on which this many requests have been sent.
pub fn asked(method: &str, requests: usize) -> H2Machine {
    let mut conn = H2Machine::new(config());
    for _ in 0..requests {
        conn.enqueue(MonotonicTimestamp(0), &request(method, BodyLength::None)).expect("a valid request");
    }
    conn.advance_output(conn.output().len());
    conn
}

/// The observed output, with neighbouring bodies of a response joined.
#[derive(PartialEq, Eq, Debug)]
pub enum H2Output {
    Head(RequestId, Vec<u8>, String),
    Body(RequestId, Vec<u8>),
    Other(String),
    Error(H2Error),
    Answered(Vec<u8>),
}

/// Passes the bytes to the connection in pieces of this size and returns the events. Releases no
/// payload, because the time of a release would depend on the size of the pieces.
pub fn feed(mut conn: H2Machine, wire: &[u8], piece: usize) -> Vec<H2Output> {
    let mut seen = Vec::new();
    'wire: for piece in wire.chunks(piece.max(1)) {
        let mut buffer = piece.to_vec();
        let mut at = 0;
        loop {
            let step = match conn.step(MonotonicTimestamp(0), &mut buffer[at..]) {
                Ok(step) => step,
                Err(error) => {
                    let next = conn.step(MonotonicTimestamp(0), &mut []);
                    assert!(matches!(next, Err(H2Error::Response(ResponseError::Closed(_)))), "an error is the end");
                    seen.push(H2Output::Error(error));
                    break 'wire;
                }
            };
            let input = &buffer[at..];
            at += step.consumed;
            match step.event {
                H2Event::NeedInput => {
                    assert_eq!(at, buffer.len(), "all input is consumed");
                    break;
                }
                H2Event::Interim { id, head } => {
                    seen.push(H2Output::Head(id, head.raw().to_vec(), "interim".to_owned()))
                }
                H2Event::Head { id, head, framing } => {
                    let text: Vec<String> = head.fields().map(|(name, value)| format!("{name}: {value:?}")).collect();
                    seen.push(H2Output::Head(
                        id,
                        head.raw().to_vec(),
                        format!("{} {framing:?} {text:?}", head.status()),
                    ));
                }
                H2Event::Body { id, range } => {
                    assert!(!range.is_empty() && range.end <= step.consumed, "{range:?} of {}", step.consumed);
                    match seen.last_mut() {
                        Some(H2Output::Body(last, bytes)) if *last == id => bytes.extend_from_slice(&input[range]),
                        _ => seen.push(H2Output::Body(id, input[range].to_vec())),
                    }
                }
                other => seen.push(H2Output::Other(format!("{other:?}"))),
            }
        }
    }
    seen.push(H2Output::Answered(conn.output().to_vec()));
    seen
}
