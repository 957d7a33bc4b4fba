//! The peer's violations of HTTP/3: an error type with one variant for each kind.
//!
//! An [`H3Error`] returned by [`H3Machine::step`](super::H3Machine::step) ends the connection.
//! Inside [`H3ResetReason::Violation`](super::H3ResetReason::Violation) it ends one response, and
//! the connection continues (RFC 9114 §8). A mistake of the caller is a
//! [`SendRequestError`](super::SendRequestError).
//!
//! ```
//! use haul_proto::h3::{H3Error, H3ErrorCode, H3FloodKind};
//!
//! let error = H3Error::Flood { kind: H3FloodKind::UnknownFrame, limit: 1_000 };
//! assert_eq!(error.to_string(), "server sent more than the limit of 1000 unknown frames to no purpose");
//! assert_eq!(error.code(), H3ErrorCode::EXCESSIVE_LOAD);
//! ```

use super::H3ErrorCode;
use crate::field_fault::FieldFault;
use crate::qpack::QpackError;
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::FieldSectionError;
use core::fmt;

/// The reason why an HTTP/3 connection, or one of its responses, is unusable: a mistake of the
/// peer, or an early end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H3Error {
    /// A mistake of the peer, or an end of the connection, that can happen in every HTTP version.
    Response(ResponseError),
    /// The frame is malformed or not allowed at this point.
    Frame(H3FrameFault),
    /// The payload of a frame is longer than the limit for frames of its type. DATA frames have no
    /// limit.
    FrameTooLarge {
        /// The type of the frame (RFC 9114 §7.2).
        kind: u64,
        /// The length of the frame's payload in bytes.
        length: u64,
        /// The largest payload length, in bytes, that is allowed for a frame of this type.
        limit: u64,
    },
    /// The buffered parts of incomplete field sections on all streams together exceed
    /// [`H3Config::partial_head_bytes`](super::H3Config::partial_head_bytes).
    PartialHeads {
        /// The largest number of bytes of incomplete field sections that the client buffers.
        limit: usize,
    },
    /// The peer opened or closed a stream although that is not allowed.
    Stream(H3IllegalStreamOpenOrClose),
    /// A field section or a QPACK instruction is invalid.
    Qpack(QpackError),
    /// SETTINGS have an identifier that is reserved or occurs twice (RFC 9114 §7.2.4).
    Setting {
        /// The identifier of the setting.
        id: u64,
    },
    /// The peer pushed, or referred to a push, although the client allows none.
    Push,
    /// The peer sent more data that make no progress, such as frames of unknown types, than
    /// [`H3FloodLimits`](super::H3FloodLimits) allows.
    Flood {
        /// The kind of the data that make no progress.
        kind: H3FloodKind,
        /// The limit for this kind from [`H3FloodLimits`](super::H3FloodLimits): a number of
        /// frames, streams or instructions, or of bytes for [`H3FloodKind::Unread`].
        limit: u32,
    },
    /// The response is malformed because of one of its fields (RFC 9114 §4.2, §4.3).
    Field(FieldFault),
    /// The number of body bytes received differs from Content-Length (RFC 9114 §4.1.2).
    Length {
        /// The Content-Length of the response.
        expected: u64,
        /// The number of body bytes received so far.
        got: u64,
    },
    /// A body arrived in a response without a body (204 or 304).
    UnexpectedBody,
    /// The request's stream ended before the head of a final response.
    MissingHead,
    /// The connection ended before all responses were complete.
    EndedInResponse {
        /// The number of responses that were incomplete when the connection ended.
        open: usize,
    },
}

/// The reason why an HTTP/3 frame is malformed, or not allowed on its stream or at this point.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H3FrameFault {
    /// A frame arrived on a stream on which frames of its type are not allowed.
    WrongStream {
        /// The type of the frame.
        kind: u64,
    },
    /// The control stream does not begin with SETTINGS.
    MissingSettings,
    /// SETTINGS arrived a second time on the control stream.
    SecondSettings,
    /// The payload of the frame does not have the layout of its type.
    Layout {
        /// The type of the frame.
        kind: u64,
    },
    /// The stream ended within the frame.
    Truncated,
    /// The frame is DATA and arrived before the head of the final response.
    DataBeforeHead,
    /// The frame is DATA or HEADERS and arrived after the trailers.
    AfterTrailers,
    /// GOAWAY has an id that is not the id of a request, or that is larger than the id in an
    /// earlier GOAWAY.
    GoAwayId,
}

/// The reason why the peer's opening or closing of a stream violates the protocol.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H3IllegalStreamOpenOrClose {
    /// The peer opened a second control stream, QPACK encoder stream or QPACK decoder stream.
    Duplicate,
    /// The server opened a bidirectional stream.
    ServerBidirectional,
    /// The peer closed or stopped a control stream, a QPACK encoder stream or a QPACK decoder
    /// stream.
    ClosedCritical,
}

/// The kinds of HTTP/3 data that cost the client resources without making progress.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum H3FloodKind {
    /// Frames whose type RFC 9114 does not define.
    UnknownFrame,
    /// Unidirectional streams whose type is unknown, or that ended before their type was received.
    UnknownStream,
    /// DATA frames without payload.
    EmptyData,
    /// GOAWAY frames.
    GoAway,
    /// CANCEL_PUSH frames.
    CancelPush,
    /// Instructions on the peer's QPACK encoder stream, which change the dynamic table.
    TableChange,
    /// Stream Cancellation instructions on the peer's QPACK decoder stream.
    StreamCancellation,
    /// QPACK decoder instructions that are unsent because the peer gives no flow-control credit for
    /// their stream.
    Unread,
}

impl H3Error {
    /// Returns the error code that the client sends to the peer for this error (RFC 9114 §8.1).
    pub fn code(&self) -> H3ErrorCode {
        match self {
            H3Error::Response(error) if error.is_limit() => H3ErrorCode::EXCESSIVE_LOAD,
            H3Error::Response(error) if error.is_early_end() => H3ErrorCode::NO_ERROR,
            H3Error::Frame(fault) => match fault {
                H3FrameFault::MissingSettings => H3ErrorCode::MISSING_SETTINGS,
                H3FrameFault::Layout { .. } | H3FrameFault::Truncated => H3ErrorCode::FRAME_ERROR,
                H3FrameFault::GoAwayId => H3ErrorCode::ID_ERROR,
                _ => H3ErrorCode::FRAME_UNEXPECTED,
            },
            H3Error::FrameTooLarge { .. } | H3Error::PartialHeads { .. } | H3Error::Flood { .. } => {
                H3ErrorCode::EXCESSIVE_LOAD
            }
            H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical) => H3ErrorCode::CLOSED_CRITICAL_STREAM,
            H3Error::Stream(_) => H3ErrorCode::STREAM_CREATION_ERROR,
            H3Error::Qpack(QpackError::Section(_)) => H3ErrorCode::QPACK_DECOMPRESSION_FAILED,
            H3Error::Qpack(QpackError::EncoderStream(_)) => H3ErrorCode::QPACK_ENCODER_STREAM_ERROR,
            H3Error::Qpack(QpackError::DecoderStream(_)) => H3ErrorCode::QPACK_DECODER_STREAM_ERROR,
            H3Error::Setting { .. } => H3ErrorCode::SETTINGS_ERROR,
            H3Error::Push => H3ErrorCode::ID_ERROR,
            H3Error::EndedInResponse { .. } => H3ErrorCode::NO_ERROR,
            // RFC 9114 §4.1.2: the message is malformed.
            H3Error::Response(_)
            | H3Error::Field(_)
            | H3Error::Length { .. }
            | H3Error::UnexpectedBody
            | H3Error::MissingHead => H3ErrorCode::MESSAGE_ERROR,
        }
    }

    /// Returns `true` if the connection ended before any byte of a response was received. An
    /// idempotent request may then be sent again on a new connection (RFC 9110 §9.2.2).
    pub fn is_before_response(&self) -> bool {
        matches!(self, H3Error::Response(ResponseError::EndedBeforeResponse | ResponseError::EndedIdle))
    }

    /// Returns `true` if the connection ended too early, and `false` if the peer sent invalid data
    /// or too much.
    pub fn is_early_end(&self) -> bool {
        self.is_before_response() || matches!(self, H3Error::EndedInResponse { .. })
    }
}

impl From<ResponseError> for H3Error {
    fn from(error: ResponseError) -> H3Error {
        H3Error::Response(error)
    }
}

impl From<FieldSectionError> for H3Error {
    fn from(error: FieldSectionError) -> H3Error {
        match error {
            FieldSectionError::Response(error) => H3Error::Response(error),
            FieldSectionError::Field(fault) => H3Error::Field(fault),
        }
    }
}

impl From<QpackError> for H3Error {
    fn from(error: QpackError) -> H3Error {
        H3Error::Qpack(error)
    }
}

impl core::error::Error for H3Error {}

impl fmt::Display for H3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            H3Error::Response(error) => write!(f, "{error}"),
            H3Error::Frame(fault) => write!(f, "server sent {fault}"),
            H3Error::FrameTooLarge { kind, length, limit } => {
                write!(f, "server sent a frame of type {kind:#x} with {length} bytes where {limit} are allowed")
            }
            H3Error::PartialHeads { limit } => {
                write!(f, "server sent incomplete headers above the limit of {limit} bytes")
            }
            H3Error::Stream(fault) => write!(f, "server {fault}"),
            H3Error::Qpack(error) => write!(f, "server sent {error}"),
            H3Error::Setting { id } => write!(f, "server sent setting {id:#x}, which is reserved or was sent before"),
            H3Error::Push => f.write_str("server pushed though push is not allowed"),
            H3Error::Flood { kind, limit } => {
                write!(f, "server sent more than the limit of {limit} {kind} to no purpose")
            }
            H3Error::Field(fault) => write!(f, "server sent a malformed header: {fault}"),
            H3Error::Length { expected, got } => {
                write!(f, "server sent a body of {got} bytes where {expected} were announced")
            }
            H3Error::UnexpectedBody => f.write_str("server sent a body where there can be none"),
            H3Error::MissingHead => f.write_str("server ended the stream without a response"),
            H3Error::EndedInResponse { open } => {
                write!(f, "the connection ended with {open} responses incomplete")
            }
        }
    }
}

impl fmt::Display for H3FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            H3FrameFault::WrongStream { kind } => {
                return write!(f, "a frame of type {kind:#x} on a stream that cannot have it");
            }
            H3FrameFault::Layout { kind } => return write!(f, "a frame of type {kind:#x} with a malformed payload"),
            H3FrameFault::MissingSettings => "another frame before its settings",
            H3FrameFault::SecondSettings => "its settings twice",
            H3FrameFault::Truncated => "a frame that ends early",
            H3FrameFault::DataBeforeHead => "a body before its head",
            H3FrameFault::AfterTrailers => "a frame after the trailers",
            H3FrameFault::GoAwayId => "a GOAWAY with an impossible number",
        })
    }
}

impl fmt::Display for H3IllegalStreamOpenOrClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            H3IllegalStreamOpenOrClose::Duplicate => "opened a second control or QPACK stream",
            H3IllegalStreamOpenOrClose::ServerBidirectional => "opened a bidirectional stream",
            H3IllegalStreamOpenOrClose::ClosedCritical => "closed a control or QPACK stream",
        })
    }
}

impl fmt::Display for H3FloodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            H3FloodKind::UnknownFrame => "unknown frames",
            H3FloodKind::UnknownStream => "unknown streams",
            H3FloodKind::EmptyData => "empty DATA frames",
            H3FloodKind::GoAway => "GOAWAY frames",
            H3FloodKind::CancelPush => "CANCEL_PUSH frames",
            H3FloodKind::TableChange => "QPACK table changes",
            H3FloodKind::StreamCancellation => "QPACK stream cancellations",
            H3FloodKind::Unread => "streams whose QPACK acknowledgements it does not read",
        })
    }
}
