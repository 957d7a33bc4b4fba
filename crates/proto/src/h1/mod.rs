//! HTTP/1.1, client side (RFC 9112): requests in, responses out, in order.
//!
//! # States
//!
//! ```text
//!           enqueue                 1xx ─► Interim
//!             │                      ┌──┐
//!             ▼                      │  ▼                       framing
//!   idle ──────────► waiting for a head ──────► Head ──┬── none, Length(0) ───────────────┐
//!    ▲  (output,     │      │                          ├── Length ───► Body* / direct ────┤
//!    │  body_credit) │      │                          ├── Chunked ──► Body* ── trailers ─┤
//!    │               │      │ 101, 2xx to CONNECT      └── UntilClose ► Body* ── end ─────┤
//!    │               │      ▼                                                             ▼
//!    │               │    Tunnel (the caller's)      reuse: Ok ◄────────────────────── Complete
//!    │               │                                 │                                  │ reuse: Err(why)
//!    └───────────────┼──── nothing unanswered ─────────┤                                  ▼
//!                    ◄──── pipelined requests ─────────┘      any Error ─────────────► closed
//! ```
//!
//! # A walk
//!
//! ```
//! use haul_proto::h1::{BodyLength, BodyFraming, Config, Conn, Event, Request};
//! use haul_proto::time::Time;
//!
//! let mut conn = Conn::new(Config::default());
//! let now = Time(0);
//!
//! // A POST: head and body leave in one piece.
//! let id = conn.enqueue(now, &Request {
//!     method: "POST",
//!     target: "/form",
//!     fields: &[("Host", b"example.org"), ("Content-Type", b"application/x-www-form-urlencoded")],
//!     body: BodyLength::Known(3),
//!     expect_continue: false,
//! })?;
//! assert_eq!(conn.send_body(b"a=1")?, 3);
//! assert_eq!(conn.body_credit(), None, "nothing is left to give");
//! assert_eq!(conn.output(), b"POST /form HTTP/1.1\r\nHost: example.org\r\n\
//!     Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1");
//! conn.advance_output(conn.output().len()); // as much as the socket took
//!
//! // What the socket gives, in pieces of any size.
//! let mut wire = *b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
//! let (mut at, mut body) = (0, Vec::new());
//! loop {
//!     let step = conn.step(now, &mut wire[at..])?;
//!     match step.event {
//!         Event::Head { head, framing, .. } => {
//!             assert_eq!((head.status(), framing), (200, BodyFraming::Length(5)));
//!         }
//!         Event::Body { range, .. } => body.extend_from_slice(&wire[at..][range]),
//!         Event::Complete { id: whose, reuse, .. } => {
//!             assert_eq!((whose, reuse), (id, Ok(())));
//!             break;
//!         }
//!         Event::NeedInput => unreachable!("the whole response is there"),
//!         Event::Interim { .. } | Event::Tunnel { .. } => unreachable!("not in this response"),
//!     }
//!     at += step.consumed;
//! }
//! assert_eq!(body, b"hello");
//! assert!(conn.is_idle());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod chunked;
mod conn;
mod error;
mod event;
pub(crate) mod framing;
mod parse;
mod receive;
pub(crate) mod request;
mod send;

pub use conn::Conn;
pub use error::{ChunkFault, CodingFault, Error, FieldFault, LengthFault};
pub use event::{BodyFraming, CloseReason, Event, RequestId, Step};
pub(crate) use parse::reread;
pub use request::{BodyLength, Request, RequestError};

use crate::Limits;
use core::time::Duration;

/// Settings of one connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What a response may cost besides its body.
    pub limits: Limits,
    /// How long a body is held back for `100 Continue`, counted from [`Conn::enqueue`].
    ///
    /// Default 1 s, as curl. Hazard: a server that ignores Expect costs this wait on every such request.
    pub expect_timeout: Duration,
    /// Unanswered requests on the connection; 1 is no pipelining, and 0 is taken as 1.
    ///
    /// Default 1. Each costs its head in the output buffer until it is sent, and about 50 bytes until it is answered.
    /// Hazard: a slow response holds up all behind it, and a break leaves them unanswered; only idempotent requests
    /// should be pipelined (RFC 9112 §9.3.2).
    pub max_pipeline: usize,
    /// The peer is a proxy that the requests are addressed to: `Proxy-Connection` in its responses counts as `Connection`.
    ///
    /// Not in RFC 9112 (its appendix C.2.2 tells what it is), but what older proxies send, and clients heed.
    pub is_proxy: bool,
    /// Deviations from RFC 9112 that the user asks for. Default: none.
    pub liberties: Liberties,
}

/// Deviations that only a user who knows the server can ask for. All are off by default.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Liberties {
    /// Requests say `HTTP/1.0`. A body of unknown length cannot be sent then.
    pub http10: bool,
    /// A response that does not begin with `HTTP/` is a body without a head, until the peer closes. Hazard: any server
    /// of any protocol seems to answer.
    pub http09: bool,
    /// `Content-Length` of responses is ignored: bodies last until the peer closes. Hazard: a body that breaks off
    /// looks whole.
    pub ignore_length: bool,
    /// Bodies are delivered as received: chunked ones with their framing, and other transfer codings undecoded.
    pub raw: bool,
    /// Transfer codings other than chunked are taken even if no TE asked for them (RFC 9110 section 10.1.4): bodies are
    /// delivered undecoded, and the caller undoes the codings that Transfer-Encoding names before chunked.
    pub codings: bool,
    /// A 101 to a request with an Upgrade field is a response whose content is everything that follows, until the peer
    /// closes.
    pub upgraded: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limits: Limits::default(),
            expect_timeout: Duration::from_secs(1),
            max_pipeline: 1,
            is_proxy: false,
            liberties: Liberties::default(),
        }
    }
}
