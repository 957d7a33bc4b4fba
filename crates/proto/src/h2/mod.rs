//! HTTP/2, client side (RFC 9113): requests in, responses out, side by side on one connection.
//!
//! The sibling of [`h1`](crate::h1): the same words, heads and ids. What differs follows from many responses at a time: each call about a body names
//! its request; payload is given back with [`Conn::release`], because windows are how a peer is stopped; all input is always consumed, so a driver
//! keeps no remainder; a response can fail alone ([`Event::Reset`]).
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
//!                  └───── any Error ─────────────────────────────────▲
//! ```
//!
//! # A walk
//!
//! ```
//! use haul_proto::h2::{BodyFraming, BodyLength, Config, Conn, Event, Request};
//! use haul_proto::time::Time;
//!
//! let mut conn = Conn::new(Config::default());
//! let now = Time(0);
//! let id = conn.enqueue(now, &Request {
//!     method: "GET",
//!     scheme: "https",
//!     authority: "example.org",
//!     path: "/hello",
//!     fields: &[("User-Agent", b"example/1"), ("Accept", b"*/*")],
//!     body: BodyLength::None,
//!     expect_continue: false,
//!     sensitive: &[],
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
//!         Event::Settings { max_concurrent } => assert_eq!(max_concurrent, 100, "it said nothing about that"),
//!         Event::Head { head, framing, .. } => {
//!             assert_eq!(framing, BodyFraming::Length(5));
//!             assert_eq!(head.raw(), b"HTTP/2 200 \r\ncontent-length: 5\r\n\r\n");
//!         }
//!         Event::Body { id, range } => {
//!             let bytes = &wire[at..][range];
//!             body.extend_from_slice(bytes);
//!             conn.release(now, id, bytes.len() as u64); // the sink has it
//!         }
//!         Event::Complete { id: whose, .. } => assert_eq!(whose, id),
//!         Event::NeedInput => break,
//!         other => unreachable!("not in this response: {other:?}"),
//!     }
//!     at += step.consumed;
//! }
//! assert_eq!(body, b"hello");
//! assert_eq!(conn.output(), b"\0\0\0\x04\x01\0\0\0\0", "the peer's SETTINGS are acknowledged");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod blocks;
mod conn;
mod control;
mod error;
mod event;
mod floods;
mod flow;
mod frame;
mod receive;
mod request;
mod response;
mod send;
mod state;
mod streams;

pub use crate::h1::{BodyFraming, BodyLength, LengthFault, RequestId};
pub use conn::Conn;
pub use error::{Error, FieldFault, Flood, FrameFault};
pub use event::{CloseReason, ErrorCode, Event, ResetReason, Step};
pub use floods::Floods;
pub use request::{Request, RequestError};

use crate::Limits;
use core::time::Duration;

/// Settings of one connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What a response may cost besides its body. `head_bytes` and `trailer_bytes` count as RFC 9113 §6.5.2 does: 32
    /// bytes for each field above its name and value.
    pub limits: Limits,
    /// How many frames may arrive without progress.
    pub floods: Floods,
    /// How much of one response the peer may send before anything is released, in bytes; at most [`Config::connection_window`].
    ///
    /// Default 262,144 (256 KiB). It grows by itself if it slows a response down. As many requests may be open as initial windows fit the
    /// connection's. Hazard: a small one costs round trips at the beginning of each body.
    pub stream_window: u32,
    /// How much the peer may send on all streams together before anything is released, in bytes: the memory budget of the connection. At least
    /// 65,535, at most 2³¹−1.
    ///
    /// Default 33,554,432 (32 MiB), which is also the most that a driver has to hold if nobody takes bodies.
    pub connection_window: u32,
    /// The largest frame taken, in bytes: 16,384 to 16,777,215.
    ///
    /// Default 65,536. DATA frames are never buffered, so a larger one only saves headers; other frames that arrive in pieces are, up to
    /// [`Limits::head_bytes`] for heads and this for the rest. Hazard: a large frame holds up other responses.
    pub max_frame_size: u32,
    /// The size of the table with which the peer compresses heads, in bytes.
    ///
    /// Default 4,096. Worst case of memory: twice that, and as much again for offsets.
    pub header_table_size: u32,
    /// Requests open at a time, if the peer takes that many. Default 1,000; each costs about 200 bytes.
    pub max_streams: u32,
    /// How long a body is held back for `100 Continue`, counted from [`Conn::enqueue`]. Default 1 s, as curl.
    pub expect_timeout: Duration,
    /// How long the peer may take to acknowledge our SETTINGS, counted from the first call with a time. Default 30 s,
    /// because a server may acknowledge them only when it has something to send.
    pub settings_timeout: Duration,
    /// If nothing arrives for this long while requests are open, a PING is sent; if nothing arrives for this long again, the connection is given up.
    /// Default none.
    pub keepalive: Option<Duration>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limits: Limits::default(),
            floods: Floods::default(),
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
