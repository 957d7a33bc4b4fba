//! HTTP/3, client side (RFC 9114): writes requests and reads their responses, each exchange on its
//! own QUIC stream.
//!
//! The interface is like that of [`h2`](crate::h2), with the same types for heads and ids. The
//! differences come from QUIC, which the driver implements. A request's id is the identifier of its
//! QUIC stream, which the driver opens. [`H3Machine::step`] reads the input of one stream, and
//! [`H3Machine::next_output`] returns bytes and the stream to write them to. There are no
//! flow-control windows here: QUIC stops the peer if the driver reads no more of a stream.
//!
//! # States of a request
//!
//! ```text
//!            enqueue          1xx ─► Interim
//!               │              ┌──┐
//!               ▼              │  ▼
//!    (stream) ─► open ── waiting for a head ───► Head ──► Body* ──► Complete (with trailers or without)
//!               │              │  ▲                    │
//!               │      Blocked ▼  │ Unblocked          │
//!               │         (QPACK table)                │
//!               └──────────────┴── at any time ────────┴──────► Reset (retryable or not)
//!
//!   connection:  open ──► GoAway / go_away: no further requests ──► closed
//!                  └───── any H3Error ─────────────────────────────────▲
//! ```
//!
//! # Example
//!
//! ```
//! use haul_proto::h3::{ResponseBodyFraming, H3Config, H3Event, H3Machine, H3SendStream, RequestHead};
//! use haul_proto::time::MonotonicTimestamp;
//!
//! let mut conn = H3Machine::new(H3Config::default());
//! let now = MonotonicTimestamp(0);
//! // The driver has opened the bidirectional QUIC stream 0.
//! let id = conn.enqueue(now, 0, &RequestHead {
//!     method: "GET",
//!     scheme: "https",
//!     authority: "example.org",
//!     target: "/hello",
//!     fields: &[("User-Agent", b"example/1"), ("Accept", b"*/*")],
//!     ..RequestHead::default()
//! })?;
//! let mut streams = Vec::new();
//! while let Some(output) = conn.next_output() {
//!     let (stream, length) = (output.stream, output.bytes.len());
//!     streams.push((stream, output.fin));
//!     conn.advance_output(stream, length); // as much as QUIC took
//! }
//! assert_eq!(streams, [
//!     (H3SendStream::Control, false),
//!     (H3SendStream::QpackDecoder, false),
//!     (H3SendStream::Request(id), true),
//! ]);
//!
//! // What QUIC gives, in pieces of any size: SETTINGS on the server's stream 3, then the response.
//! assert_eq!(conn.step(now, 3, b"\0\x04\0", false)?.event, H3Event::Settings);
//! let wire = b"\x01\x06\0\0\xd9\x54\x015\0\x05hello"; // HEADERS, DATA
//! let (mut at, mut body) = (0, Vec::new());
//! loop {
//!     let step = conn.step(now, 0, &wire[at..], true)?;
//!     match step.event {
//!         H3Event::Head { head, framing, .. } => {
//!             assert_eq!(framing, ResponseBodyFraming::Length(5));
//!             assert_eq!(head.raw(), b"HTTP/3 200 \r\ncontent-length: 5\r\n\r\n");
//!         }
//!         H3Event::Body { range, .. } => body.extend_from_slice(&wire[at..][range]),
//!         H3Event::Complete { id: whose, .. } => assert_eq!(whose, id),
//!         H3Event::NeedInput => break,
//!         other => unreachable!("not in this response: {other:?}"),
//!     }
//!     at += step.consumed;
//! }
//! assert_eq!(body, b"hello");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod error;
mod error_code;
mod event;
mod field_sections;
mod flood_limits;
mod frame;
mod machine;
mod output;
mod peer_streams;
mod receive;
mod request_stream;
mod upload;
mod varint;

pub use crate::close_reason::CloseReason;
pub use crate::field_fault::FieldFault;
pub use crate::request::{BodyLength, RequestHead, SendRequestError};
pub use crate::request_id_and_body_framing::{ContentLengthFault, RequestId, ResponseBodyFraming};
pub use crate::response_error::ResponseError;
pub use error::{H3Error, H3FloodKind, H3FrameFault, H3IllegalStreamOpenOrClose};
pub use error_code::H3ErrorCode;
pub use event::{H3Event, H3Output, H3ResetReason, H3SendStream, H3Step, H3StreamAbortToSend};
pub use flood_limits::H3FloodLimits;
pub use machine::H3Machine;

use crate::ResponseLimits;
use core::time::Duration;

/// The settings of one HTTP/3 connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct H3Config {
    /// Limits on the parts of a response other than its body. `head_bytes` and `trailer_bytes`
    /// count as in RFC 9114 §4.2.2: 32 bytes for each field in addition to its name and value.
    pub limits: ResponseLimits,
    /// Limits on HTTP/3 data that make no progress.
    pub floods: H3FloodLimits,
    /// The largest capacity in bytes of the QPACK dynamic table with which the peer compresses
    /// heads (RFC 9204 §3.2.3).
    ///
    /// Default 4,096. In the worst case, the table occupies ten times this capacity in memory.
    pub qpack_table_capacity: u32,
    /// The number of responses that may wait at a time for entries of the QPACK dynamic table (RFC
    /// 9204 §2.1.2).
    ///
    /// Default 16. Hazard: with 0, a peer can use a new table entry only after a round trip.
    pub qpack_blocked_streams: u32,
    /// The largest number of open requests. The peer's limit on QUIC streams applies in addition;
    /// the caller has to obey it. Default 1,000; each open request costs about 300 bytes.
    pub max_streams: u32,
    /// The largest number of bytes of incomplete or blocked field sections, on all streams
    /// together. Default 4,194,304 (4 MiB).
    pub partial_head_bytes: usize,
    /// The largest payload in bytes of SETTINGS and of the other frames on the control stream.
    /// Default 16,384.
    pub max_frame_size: u32,
    /// The longest time for which a request's body waits for `100 Continue`, counted from
    /// [`H3Machine::enqueue`]. Default 1 s, like curl's.
    pub expect_timeout: Duration,
}

impl Default for H3Config {
    fn default() -> H3Config {
        H3Config {
            limits: ResponseLimits::default(),
            floods: H3FloodLimits::default(),
            qpack_table_capacity: 4_096,
            qpack_blocked_streams: 16,
            max_streams: 1_000,
            partial_head_bytes: 4 * 1024 * 1024,
            max_frame_size: 16 * 1024,
            expect_timeout: Duration::from_secs(1),
        }
    }
}
