//! HTTP/1.1, client side (RFC 9112): writes requests and reads their responses, in order.
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
//!                    ◄──── pipelined requests ─────────┘      any H1Error ─────────────► closed
//! ```
//!
//! # Example
//!
//! ```
//! use haul_proto::h1::{BodyLength, ResponseBodyFraming, H1Config, H1Machine, H1Event, RequestHead};
//! use haul_proto::time::MonotonicTimestamp;
//!
//! let mut conn = H1Machine::new(H1Config::default());
//! let now = MonotonicTimestamp(0);
//!
//! // A POST: head and body leave in one piece.
//! let id = conn.enqueue(now, &RequestHead {
//!     method: "POST",
//!     target: "/form",
//!     fields: &[("Host", b"example.org"), ("Content-Type", b"application/x-www-form-urlencoded")],
//!     body: BodyLength::Known(3),
//!     ..RequestHead::default()
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
//!         H1Event::Head { head, framing, .. } => {
//!             assert_eq!((head.status(), framing), (200, ResponseBodyFraming::Length(5)));
//!         }
//!         H1Event::Body { range, .. } => body.extend_from_slice(&wire[at..][range]),
//!         H1Event::Complete { id: whose, reuse, .. } => {
//!             assert_eq!((whose, reuse), (id, Ok(())));
//!             break;
//!         }
//!         H1Event::NeedInput => unreachable!("the whole response is there"),
//!         H1Event::Interim { .. } | H1Event::Tunnel { .. } => unreachable!("not in this response"),
//!     }
//!     at += step.consumed;
//! }
//! assert_eq!(body, b"hello");
//! assert!(conn.is_idle());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod chunked_decoder;
mod error;
mod event;
mod framing;
mod head_lines_before_fault;
mod machine;
mod parse_field_section;
mod receive;
mod request;
mod send;

pub use crate::close_reason::CloseReason;
pub use crate::request::{BodyLength, RequestHead, SendRequestError};
pub use crate::request_id_and_body_framing::{ContentLengthFault, RequestId, ResponseBodyFraming};
pub use crate::response_error::ResponseError;
pub use error::{ChunkFault, FieldLineFault, H1Error, TransferCodingFault};
pub use event::{H1Event, H1Step};
pub use machine::H1Machine;
pub(crate) use parse_field_section::parse_stored_head;

use crate::ResponseLimits;
use core::time::Duration;

/// The settings of one HTTP/1 connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct H1Config {
    /// Limits on the parts of a response other than its body.
    pub limits: ResponseLimits,
    /// The longest time for which a request's body waits for `100 Continue`, counted from
    /// [`H1Machine::enqueue`].
    ///
    /// Default 1 s, like curl's. Hazard: a server that ignores Expect costs this wait on every such
    /// request.
    pub expect_timeout: Duration,
    /// The largest number of unanswered requests on the connection. 1 means no pipelining; 0 counts
    /// as 1.
    ///
    /// Default 1. Each request occupies memory: its head in the output buffer until it is sent, and
    /// about 50 bytes until it is answered. Hazard: a slow response delays all responses after it,
    /// and a broken connection leaves them unanswered; pipeline only idempotent requests (RFC 9112
    /// §9.3.2).
    pub max_pipeline: usize,
    /// True if the requests are addressed to the peer as a proxy. `Proxy-Connection` in its
    /// responses then counts as `Connection`.
    ///
    /// RFC 9112 does not define the field (its appendix C.2.2 describes it), but older proxies send
    /// it, and clients honour it.
    pub is_proxy: bool,
    /// Deviations from RFC 9112 that the user asked for. Default: none.
    pub deviations: H1Deviations,
}

/// Deviations from RFC 9112, for users who know how their server behaves. By default, all are off.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct H1Deviations {
    /// True to send requests as `HTTP/1.0`, which cannot carry a body of unknown length.
    pub http10: bool,
    /// True to accept a response that does not begin with `HTTP/` as a body without a head, which
    /// ends when the peer closes. Hazard: a server of any other protocol then seems to answer.
    pub http09: bool,
    /// True to ignore `Content-Length` of responses: bodies last until the peer closes. Hazard: a
    /// truncated body looks complete.
    pub ignore_length: bool,
    /// True to deliver bodies as received: the chunked framing is part of the body, and other
    /// transfer codings are not decoded.
    pub raw: bool,
    /// True to accept transfer codings other than chunked even if no TE field asked for them (RFC
    /// 9110 section 10.1.4). Bodies are delivered undecoded; the caller decodes the codings that
    /// Transfer-Encoding names before chunked.
    pub codings: bool,
    /// True to accept more responses, as curl does. The connection accepts no further request after
    /// such a response.
    ///
    /// * `chunked` may occur twice. The body is decoded as chunked once.
    /// * With [`raw`](Self::raw), a response may have both Content-Length and transfer codings
    ///   other than chunked. Content-Length is then the length of the body.
    pub tolerant: bool,
    /// True to send requests as `HTTP/1.0` once the peer has answered with that version.
    pub follows_http10: bool,
    /// True to send header fields as they are: names that are not tokens, and blanks around values.
    /// CR, LF and NUL are refused nevertheless, and so are invalid names that resemble
    /// Content-Length or Transfer-Encoding. Hazard: the peer may read such fields differently.
    pub verbatim_fields: bool,
    /// True to treat a 101 that answers a request with an Upgrade field as a final response. Its
    /// body is everything after the head, until the peer closes.
    pub upgraded: bool,
}

impl Default for H1Config {
    fn default() -> H1Config {
        H1Config {
            limits: ResponseLimits::default(),
            expect_timeout: Duration::from_secs(1),
            max_pipeline: 1,
            is_proxy: false,
            deviations: H1Deviations::default(),
        }
    }
}
