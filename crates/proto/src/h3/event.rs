//! Events returned by [`H3Machine::step`](super::H3Machine::step), and actions on QUIC streams.
//!
//! ```
//! use haul_proto::h3::{H3ErrorCode, H3Event, H3ResetReason, RequestId};
//!
//! fn say(buffer: &[u8], event: H3Event) -> String {
//!     match event {
//!         H3Event::Head { id, head, framing } => format!("{}: {} with {framing:?}", id.0, head.status()),
//!         H3Event::Body { id, range } => format!("{}: {} bytes", id.0, buffer[range].len()),
//!         H3Event::Complete { id, .. } => format!("{}: done", id.0),
//!         H3Event::Reset { id, reason, retryable: true } => format!("{}: again, {reason}", id.0),
//!         H3Event::Reset { id, reason, retryable: false } => format!("{}: failed, {reason}", id.0),
//!         _ => String::new(),
//!     }
//! }
//! assert_eq!(say(b"hello", H3Event::Body { id: RequestId(0), range: 0..5 }), "0: 5 bytes");
//! let reason = H3ResetReason::Peer(H3ErrorCode::REQUEST_REJECTED);
//! let refused = H3Event::Reset { id: RequestId(4), reason, retryable: true };
//! assert_eq!(say(b"", refused), "4: again, server reset the stream: H3_REQUEST_REJECTED");
//! ```

use super::{H3Error, H3ErrorCode, RequestId, ResponseBodyFraming};
use crate::fields::Fields;
use crate::response_head::ResponseHead;
use core::fmt;
use core::ops::Range;

/// An event that an HTTP/3 connection has read from the input of one of its streams.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H3Event {
    /// All input was consumed, and there is no event to report: read more.
    NeedInput,
    /// The response's next field section needs QPACK table entries that have not arrived. Keep the
    /// unconsumed input of this stream, and read no more of the stream until
    /// [`H3Event::Unblocked`].
    Blocked {
        /// The request whose response is blocked.
        id: RequestId,
    },
    /// The QPACK table entries for a blocked response have arrived. Call `step` for its stream
    /// again, with the input that was kept (which may be empty).
    Unblocked {
        /// The request whose response was blocked until now.
        id: RequestId,
    },
    /// The peer's SETTINGS arrived on its control stream.
    Settings,
    /// An interim response (1xx). The head of another response to this request follows.
    Interim {
        /// The request that this interim response answers.
        id: RequestId,
        /// The head of the interim response: status and header fields.
        head: ResponseHead,
    },
    /// The head of the final response. After a 2xx to CONNECT, the request body and the response
    /// body are the tunnel.
    Head {
        /// The request that this response answers.
        id: RequestId,
        /// The head of the final response.
        head: ResponseHead,
        /// The framing of the response body. Without Content-Length it is
        /// [`ResponseBodyFraming::Chunked`], even if the stream ends with the head.
        framing: ResponseBodyFraming,
    },
    /// Bytes of a response's body.
    Body {
        /// The request to which the body belongs.
        id: RequestId,
        /// The range of these body bytes in the buffer given to `step`. It contains no framing.
        range: Range<usize>,
    },
    /// The response is complete, and its body has the announced length. No further event has this
    /// request's id.
    Complete {
        /// The request whose response is complete.
        id: RequestId,
        /// The trailer section; `None` if the response has none. Never merge trailers into the head
        /// (RFC 9110 §6.5.1).
        trailers: Option<Fields>,
    },
    /// The response ended early. No further event has this request's id; the connection continues.
    Reset {
        /// The request whose response ended early.
        id: RequestId,
        /// The reason why the response ended.
        reason: H3ResetReason,
        /// True if the peer has not processed the request. It may then be sent again, whatever its
        /// method (RFC 9114 §4.1.1, §5.2).
        retryable: bool,
    },
    /// The peer accepts no further requests. Open requests before `first_refused` continue; an
    /// [`H3Event::Reset`] follows for each other request.
    GoAway {
        /// The first request id that the peer has not processed and will not process. The same
        /// holds for all higher ids.
        first_refused: RequestId,
    },
}

impl H3Event {
    /// Returns the id of the request that the event is about; `None` for an event about the
    /// connection.
    pub fn id(&self) -> Option<RequestId> {
        match self {
            H3Event::NeedInput | H3Event::Settings | H3Event::GoAway { .. } => None,
            H3Event::Blocked { id }
            | H3Event::Unblocked { id }
            | H3Event::Interim { id, .. }
            | H3Event::Head { id, .. }
            | H3Event::Body { id, .. }
            | H3Event::Complete { id, .. }
            | H3Event::Reset { id, .. } => Some(*id),
        }
    }
}

/// An event of an HTTP/3 connection, and the number of input bytes that it consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct H3Step {
    /// The number of bytes consumed from the start of the stream's input: pass the bytes after them
    /// to the next call of `step` for this stream. [`H3Event::NeedInput`] consumes all input.
    pub consumed: usize,
    /// The event that the consumed bytes caused.
    pub event: H3Event,
}

/// The reason why one response ended early while the connection continues.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H3ResetReason {
    /// The peer reset the stream with this code.
    Peer(H3ErrorCode),
    /// The peer sent a GOAWAY that refuses this request.
    GoAway,
    /// The response is malformed or exceeds a limit. The client has reset its stream.
    Violation(H3Error),
}

impl fmt::Display for H3ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            H3ResetReason::Peer(code) => write!(f, "server reset the stream: {code}"),
            H3ResetReason::GoAway => f.write_str("server went away before this request"),
            H3ResetReason::Violation(error) => error.fmt(f),
        }
    }
}

/// A QUIC stream on which the HTTP/3 client sends.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum H3SendStream {
    /// The client's control stream, which is unidirectional (RFC 9114 §6.2.1).
    Control,
    /// The stream of the client's QPACK encoder, which is unidirectional (RFC 9204 §4.2).
    QpackEncoder,
    /// The stream of the client's QPACK decoder, which is unidirectional (RFC 9204 §4.2).
    QpackDecoder,
    /// The bidirectional stream of a request.
    Request(RequestId),
}

/// Bytes to write to a QUIC stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct H3Output<'a> {
    /// The stream on which to send. If it is a unidirectional stream that does not exist yet, open
    /// it now.
    pub stream: H3SendStream,
    /// The bytes to write.
    pub bytes: &'a [u8],
    /// True if the stream ends after `bytes`, which may then be empty.
    pub fin: bool,
}

/// An abrupt end of one direction of a QUIC stream (RFC 9000 §3.5).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum H3StreamAbortToSend {
    /// Send RESET_STREAM: the client abandons the sending direction of this request's stream.
    ResetStream {
        /// The request whose stream is reset.
        id: RequestId,
        /// The application error code in the RESET_STREAM frame.
        code: H3ErrorCode,
    },
    /// Send STOP_SENDING: the client reads no more of this stream.
    StopSending {
        /// The identifier of the QUIC stream that the client no longer reads.
        stream: u64,
        /// The application error code in the STOP_SENDING frame.
        code: H3ErrorCode,
    },
}
