//! HTTP/2, client side (RFC 9113): writes requests and reads their responses, in parallel on one
//! connection.
//!
//! The interface is like that of [`h1`](crate::h1), with the same types for heads and ids. The
//! differences come from parallel responses. Each call about a body has the id of its request.
//! Payload must be released with [`H2Machine::release`]; otherwise flow control stops the peer. All
//! input is consumed, so that a driver keeps no remainder. A single response can fail
//! ([`H2Event::Reset`]).
//!
//! # States of a request
//!
//! ```text
//!            enqueue          1xx ─► Interim
//!               │              ┌──┐
//!               ▼              │  ▼
//!   (room) ─► open ── waiting for a head ───► Head ──► Body* ──► Complete (with trailers or without)
//!               │              │                        │  ▲
//!               │              │                        ▼  │ release: windows open
//!               │              │                      the sink
//!               └──────────────┴── at any time ─────────┴──────► Reset (retryable or not)
//!
//!   connection:  open ──► GoAway / go_away: no further requests ──► closed
//!                  └───── any H2Error ─────────────────────────────────▲
//! ```
//!
//! # Example
//!
//! ```
//! use haul_proto::h2::{ResponseBodyFraming, H2Config, H2Machine, H2Event, RequestHead};
//! use haul_proto::time::MonotonicTimestamp;
//!
//! let mut conn = H2Machine::new(H2Config::default());
//! let now = MonotonicTimestamp(0);
//! let id = conn.enqueue(now, &RequestHead {
//!     method: "GET",
//!     scheme: "https",
//!     authority: "example.org",
//!     target: "/hello",
//!     fields: &[("User-Agent", b"example/1"), ("Accept", b"*/*")],
//!     ..RequestHead::default()
//! })?;
//! assert!(conn.output().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "preface, SETTINGS and the request in one slice");
//! conn.advance_output(conn.output().len()); // as much as the socket took
//!
//! // What the socket gives, in pieces of any size: SETTINGS, HEADERS, DATA.
//! let mut wire = *b"\0\0\0\x04\0\0\0\0\0\
//!     \0\0\x04\x01\x04\0\0\0\x01\x88\x5c\x015\
//!     \0\0\x05\0\x01\0\0\0\x01hello";
//! let (mut at, mut body) = (0, Vec::new());
//! loop {
//!     let step = conn.step(now, &mut wire[at..])?;
//!     match step.event {
//!         H2Event::Settings { max_concurrent } => assert_eq!(max_concurrent, 100, "it said nothing about that"),
//!         H2Event::Head { head, framing, .. } => {
//!             assert_eq!(framing, ResponseBodyFraming::Length(5));
//!             assert_eq!(head.raw(), b"HTTP/2 200 \r\ncontent-length: 5\r\n\r\n");
//!         }
//!         H2Event::Body { id, range } => {
//!             let bytes = &wire[at..][range];
//!             body.extend_from_slice(bytes);
//!             conn.release(now, id, bytes.len() as u64); // the sink has it
//!         }
//!         H2Event::Complete { id: whose, .. } => assert_eq!(whose, id),
//!         H2Event::NeedInput => break,
//!         other => unreachable!("not in this response: {other:?}"),
//!     }
//!     at += step.consumed;
//! }
//! assert_eq!(body, b"hello");
//! assert_eq!(conn.output(), b"\0\0\0\x04\x01\0\0\0\0", "the peer's SETTINGS are acknowledged");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod connection_state;
mod control;
mod error;
mod event;
mod flood_limits;
mod frame;
mod header_blocks;
mod machine;
mod receive;
mod receive_windows;
mod send_data;
mod stream_state;

pub use crate::close_reason::CloseReason;
pub use crate::field_fault::FieldFault;
pub use crate::request::{BodyLength, RequestHead, SendRequestError};
pub use crate::request_id_and_body_framing::{ContentLengthFault, RequestId, ResponseBodyFraming};
pub use crate::response_error::ResponseError;
pub use error::{FloodKind, FrameFault, H2Error};
pub use event::{ErrorCode, H2Event, H2Step, ResetReason};
pub use flood_limits::FloodLimits;
pub use machine::H2Machine;

use crate::ResponseLimits;
use core::time::Duration;

/// The settings of one HTTP/2 connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct H2Config {
    /// Limits on the parts of a response other than its body. `head_bytes` and `trailer_bytes`
    /// count as in RFC 9113 §6.5.2: 32 bytes for each field in addition to its name and value.
    pub limits: ResponseLimits,
    /// Limits on HTTP/2 frames that make no progress.
    pub floods: FloodLimits,
    /// The initial receive window of a response: the number of bytes of its body that the peer may
    /// send before any are [released](H2Machine::release). At most [`H2Config::connection_window`].
    ///
    /// Default 262,144 (256 KiB). The window grows by itself if it slows a response down. The
    /// initial windows of all open requests must fit into the connection's window, so this value
    /// limits the number of open requests: at most four with 256 KiB and a connection's window of
    /// 1 MiB. Hazard: a small window costs round trips at the beginning of each body.
    pub stream_window: u32,
    /// The receive window of the connection: the number of body bytes that the peer may send on all
    /// streams together before any are [released](H2Machine::release). It is the memory budget of
    /// the connection. At least 65,535, at most 2³¹−1.
    ///
    /// Default 33,554,432 (32 MiB). This is also the most that the caller has to buffer if nobody
    /// reads the bodies.
    pub connection_window: u32,
    /// The largest frame payload accepted, in bytes: 16,384 to 16,777,215.
    ///
    /// Default 65,536. DATA frames are never buffered, so that larger frames only save frame
    /// headers. Other frames that arrive in pieces are buffered, up to
    /// [`ResponseLimits::head_bytes`] for heads and this size for the rest. Hazard: a large frame
    /// delays other responses.
    pub max_frame_size: u32,
    /// The size in bytes of the dynamic table with which the peer compresses heads (RFC 7541
    /// §2.3.2).
    ///
    /// Default 4,096. Worst case of memory: twice this size for names and values, and the same
    /// amount again for offsets.
    pub header_table_size: u32,
    /// The largest number of open requests, if the peer allows as many. Default 1,000; each open
    /// request costs about 200 bytes.
    pub max_streams: u32,
    /// The longest time for which a request's body waits for `100 Continue`, counted from
    /// [`H2Machine::enqueue`]. Default 1 s, like curl's.
    pub expect_timeout: Duration,
    /// The longest time that the peer may take to acknowledge the client's SETTINGS, counted from
    /// the first call with a `now` argument. Default 30 s, because a server may acknowledge them
    /// only when it has something to send. The connection ends one second later, so that the caller
    /// can first pass an acknowledgement that has arrived but waits in the transport.
    pub settings_timeout: Duration,
    /// The time without input, while requests are open, after which a PING is sent. If nothing
    /// arrives for the same time again, the connection ends with an error. `None`, the default: no
    /// PING is sent.
    pub keepalive: Option<Duration>,
}

impl Default for H2Config {
    fn default() -> H2Config {
        H2Config {
            limits: ResponseLimits::default(),
            floods: FloodLimits::default(),
            stream_window: 256 * 1024,
            connection_window: 32 * 1024 * 1024,
            max_frame_size: 64 * 1024,
            header_table_size: 4_096,
            max_streams: 1_000,
            expect_timeout: Duration::from_secs(1),
            settings_timeout: Duration::from_secs(30),
            keepalive: None,
        }
    }
}
