//! Events returned by [`H2Machine::step`](super::H2Machine::step).
//!
//! ```
//! use haul_proto::h2::{ErrorCode, H2Event, RequestId, ResetReason};
//!
//! fn say(buffer: &[u8], event: H2Event) -> String {
//!     match event {
//!         H2Event::Head { id, head, framing } => format!("{}: {} with {framing:?}", id.0, head.status()),
//!         H2Event::Body { id, range } => format!("{}: {} bytes", id.0, buffer[range].len()),
//!         H2Event::Complete { id, .. } => format!("{}: done", id.0),
//!         H2Event::Reset { id, reason, retryable: true } => format!("{}: again, {reason}", id.0),
//!         H2Event::Reset { id, reason, retryable: false } => format!("{}: failed, {reason}", id.0),
//!         _ => String::new(),
//!     }
//! }
//! assert_eq!(say(b"hello", H2Event::Body { id: RequestId(1), range: 0..5 }), "1: 5 bytes");
//! let reason = ResetReason::Peer(ErrorCode::REFUSED_STREAM);
//! let refused = H2Event::Reset { id: RequestId(3), reason, retryable: true };
//! assert_eq!(say(b"", refused), "3: again, server reset the stream: REFUSED_STREAM");
//! ```

use super::H2Error;
use crate::fields::Fields;
use crate::h1::{RequestId, ResponseBodyFraming};
use crate::response_head::ResponseHead;
use core::fmt;
use core::ops::Range;

/// An event that an HTTP/2 connection has read from its input.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H2Event {
    /// All input was consumed, and there is no event to report: read more.
    NeedInput,
    /// The peer's settings arrived, at the beginning or later. With them, the result of
    /// [`H2Machine::can_enqueue`](super::H2Machine::can_enqueue) may change.
    Settings {
        /// The number of requests that the peer accepts at the same time.
        max_concurrent: u32,
    },
    /// An interim response (1xx). The head of another response to this request follows.
    Interim {
        /// The request that this interim response answers.
        id: RequestId,
        /// The head of the interim response.
        head: ResponseHead,
    },
    /// The head of the final response. After a 2xx to CONNECT, the request body and the response
    /// body are the tunnel.
    Head {
        /// The request that this response answers.
        id: RequestId,
        /// The head of the final response.
        head: ResponseHead,
        /// The framing of the response's body; `Length(0)` if the stream ended with the head.
        framing: ResponseBodyFraming,
    },
    /// Bytes of a response's body. Call [`H2Machine::release`](super::H2Machine::release) when they
    /// have been consumed.
    Body {
        /// The request to which the body belongs.
        id: RequestId,
        /// The range of these body bytes in the buffer given to `step`. It contains no framing and
        /// no padding.
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
        reason: ResetReason,
        /// True if the peer has not processed the request. It may then be sent again, whatever its
        /// method (RFC 9113 §8.7).
        retryable: bool,
    },
    /// The peer accepts no further requests. Open requests up to `last` continue; an
    /// [`H2Event::Reset`] follows for each later request.
    GoAway {
        /// The last request that the peer may have processed. No later request was processed.
        last: RequestId,
        /// The error code of the peer's GOAWAY.
        code: ErrorCode,
    },
}

impl H2Event {
    /// Returns the id of the request that the event is about; `None` for an event about the
    /// connection.
    pub fn id(&self) -> Option<RequestId> {
        match self {
            H2Event::NeedInput | H2Event::Settings { .. } | H2Event::GoAway { .. } => None,
            H2Event::Interim { id, .. }
            | H2Event::Head { id, .. }
            | H2Event::Body { id, .. }
            | H2Event::Complete { id, .. }
            | H2Event::Reset { id, .. } => Some(*id),
        }
    }
}

/// An event of an HTTP/2 connection, and the number of input bytes that it consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct H2Step {
    /// The number of bytes consumed from the start of the input: pass the bytes after them to the
    /// next call of `step`. [`H2Event::NeedInput`] consumes all input.
    pub consumed: usize,
    /// The event that the consumed bytes caused.
    pub event: H2Event,
}

/// The reason why one response ended early while the connection continues.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResetReason {
    /// The peer reset the stream with this code.
    Peer(ErrorCode),
    /// The peer reset the stream with this code after its response was complete, and before it had
    /// received all of the request. The code is not NO_ERROR, so the peer may not have processed
    /// the request.
    InRequest(ErrorCode),
    /// The peer sent a GOAWAY with this code. This request's stream identifier is above the last
    /// stream identifier in the GOAWAY.
    GoAway(ErrorCode),
    /// The response is malformed or exceeds a limit. The client has reset its stream.
    Violation(H2Error),
}

impl fmt::Display for ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetReason::Peer(code) => write!(f, "server reset the stream: {code}"),
            ResetReason::InRequest(code) => {
                write!(f, "server answered, and then reset the stream before it had all of the request: {code}")
            }
            ResetReason::GoAway(code) => write!(f, "server went away before this request: {code}"),
            ResetReason::Violation(error) => error.fmt(f),
        }
    }
}

/// An error code of RST_STREAM and GOAWAY (RFC 9113 §7).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct ErrorCode(pub u32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: ErrorCode = ErrorCode($code);)*
        }

        impl fmt::Display for ErrorCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(ErrorCode::$name => f.write_str(stringify!($name)),)*
                    ErrorCode(code) => write!(f, "error {code:#x}"),
                }
            }
        }
    };
}

codes! {
    /// The connection or the stream ends without an error.
    NO_ERROR = 0x0;
    /// The protocol was violated, and no other code is more specific.
    PROTOCOL_ERROR = 0x1;
    /// The sender of the code has an internal error.
    INTERNAL_ERROR = 0x2;
    /// More data was sent than a flow-control window allowed, or a window grew too large.
    FLOW_CONTROL_ERROR = 0x3;
    /// SETTINGS were not acknowledged in time.
    SETTINGS_TIMEOUT = 0x4;
    /// A frame arrived on a stream that was closed.
    STREAM_CLOSED = 0x5;
    /// A frame has a length that its type cannot have.
    FRAME_SIZE_ERROR = 0x6;
    /// The server did not process the request, so that it may be sent again.
    REFUSED_STREAM = 0x7;
    /// The sender of the code no longer wants the stream.
    CANCEL = 0x8;
    /// A header block cannot be decoded.
    COMPRESSION_ERROR = 0x9;
    /// The connection behind a CONNECT tunnel broke.
    CONNECT_ERROR = 0xa;
    /// The recipient of the code causes too much load.
    ENHANCE_YOUR_CALM = 0xb;
    /// The transport is not secure enough.
    INADEQUATE_SECURITY = 0xc;
    /// The server asks the client to send this request over HTTP/1.1.
    HTTP_1_1_REQUIRED = 0xd;
}
