//! The peer's violations of HTTP/2: an error type with one variant for each kind.
//!
//! An [`H2Error`] returned by [`H2Machine::step`](super::H2Machine::step) ends the connection.
//! Inside [`ResetReason::Violation`](super::ResetReason::Violation) it ends one response, and the
//! connection continues (RFC 9113 §5.4). A mistake of the caller is a
//! [`SendRequestError`](super::SendRequestError) instead.
//!
//! ```
//! use haul_proto::h2::{H2Error, ErrorCode, FloodKind};
//!
//! let error = H2Error::Flood { kind: FloodKind::Ping, limit: 1_000 };
//! assert_eq!(error.to_string(), "server sent more than the limit of 1000 PING frames to no purpose");
//! assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
//! ```

use super::ErrorCode;
use crate::field_fault::FieldFault;
use crate::hpack;
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::FieldSectionError;
use core::fmt;

/// The reason why an HTTP/2 connection, or one of its responses, is unusable: a mistake of the
/// peer, or an early end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H2Error {
    /// A mistake of the peer, or an end of the connection, that can happen in every HTTP version.
    Response(ResponseError),
    /// HTTP/2 requires that the peer's first frame is SETTINGS, but the peer sent something else.
    NotHttp2 {
        /// True if the input looks like an HTTP/1 response.
        http1: bool,
    },
    /// The frame exceeds [`H2Config::max_frame_size`](super::H2Config::max_frame_size), or has a
    /// length that its type cannot have.
    FrameSize {
        /// The type of the frame (RFC 9113 §6).
        kind: u8,
        /// The length of the frame's payload in bytes.
        length: u32,
    },
    /// The frame is malformed or not allowed at this point.
    Frame(FrameFault),
    /// The header block cannot be decoded.
    Hpack(hpack::HpackError),
    /// A setting in SETTINGS has a value outside its range (RFC 9113 §6.5.2).
    Setting {
        /// The identifier of the setting.
        id: u16,
        /// The value of the setting, as sent by the peer.
        value: u32,
    },
    /// PUSH_PROMISE arrived although the client has switched off server push.
    Push,
    /// DATA exceed the flow-control window of the stream or of the connection.
    FlowControl,
    /// WINDOW_UPDATE or SETTINGS raised a flow-control window above 2³¹−1.
    WindowOverflow,
    /// WINDOW_UPDATE has an increment of 0.
    ZeroIncrement,
    /// The peer sent more frames that make no progress, such as PING, than
    /// [`FloodLimits`](super::FloodLimits) allows.
    Flood {
        /// The kind of the frames that make no progress.
        kind: FloodKind,
        /// The limit on the number of frames of this kind, from
        /// [`FloodLimits`](super::FloodLimits).
        limit: u32,
    },
    /// The response is malformed because of one of its fields (RFC 9113 §8.2, §8.3).
    Field(FieldFault),
    /// The number of DATA bytes differs from the response's Content-Length (RFC 9113 §8.1.1).
    Length {
        /// The Content-Length of the response.
        expected: u64,
        /// The number of body bytes received so far.
        got: u64,
    },
    /// DATA arrived in a response without a body (204 or 304).
    UnexpectedBody,
    /// The peer did not acknowledge the client's SETTINGS within
    /// [`H2Config::settings_timeout`](super::H2Config::settings_timeout).
    SettingsTimeout,
    /// The peer sent nothing within [`H2Config::keepalive`](super::H2Config::keepalive) after the
    /// client's PING.
    PingTimeout,
    /// The peer closed the connection after all of its responses, and before it had received all
    /// of a request.
    EndedInRequest,
    /// The peer closed the connection before all open responses were complete.
    EndedInResponse {
        /// The number of responses that were incomplete when the peer closed the connection.
        open: usize,
    },
}

/// The reason why a frame is malformed or not allowed at this point.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FrameFault {
    /// The frame is on stream 0, but frames of its type are allowed only on other streams.
    StreamZero,
    /// The frame is on another stream than stream 0, but frames of its type are allowed only on
    /// stream 0.
    NotStreamZero,
    /// The frame is on a stream that the client has not opened, or on a stream with an even number.
    IdleStream,
    /// The frame is on a stream that had ended already.
    ClosedStream,
    /// The frame arrived within a header block and is not CONTINUATION.
    Interleaved,
    /// The frame is a CONTINUATION that does not follow HEADERS or another CONTINUATION.
    StrayContinuation,
    /// The frame's padding is as large as its payload, or larger.
    Padding,
    /// The frame is DATA and arrived before the head of the response.
    DataBeforeHead,
    /// The frame is HEADERS within the body and does not end the stream, so that it cannot be
    /// trailers.
    HeadInBody,
    /// The frame is HEADERS on a tunnel, which carries only DATA (RFC 9113 §8.5).
    HeadersInTunnel,
    /// The frame is an interim (1xx) head that ends the stream.
    InterimEnd,
}

/// The kinds of HTTP/2 frames that cost the client resources without making progress.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum FloodKind {
    /// PING frames, except answers to the client's PINGs.
    Ping,
    /// SETTINGS frames, acknowledgements by the peer included.
    Settings,
    /// DATA frames that have no payload and do not end the stream.
    EmptyData,
    /// WINDOW_UPDATE frames.
    WindowUpdate,
    /// PRIORITY frames.
    Priority,
    /// RST_STREAM frames on streams that had ended already.
    Reset,
    /// GOAWAY frames.
    GoAway,
    /// CONTINUATION frames of a single header block.
    Continuation,
    /// Frames whose type RFC 9113 does not define.
    Unknown,
    /// PING and SETTINGS frames whose acknowledgements are unsent because the peer does not read.
    Unread,
}

impl H2Error {
    /// Returns the error code that the client sends to the peer for this error (RFC 9113 §7).
    pub fn code(&self) -> ErrorCode {
        match self {
            H2Error::FrameSize { .. } => ErrorCode::FRAME_SIZE_ERROR,
            H2Error::Frame(FrameFault::ClosedStream) => ErrorCode::STREAM_CLOSED,
            H2Error::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            H2Error::FlowControl | H2Error::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            H2Error::Setting { id: super::frame::setting::INITIAL_WINDOW_SIZE, .. } => ErrorCode::FLOW_CONTROL_ERROR,
            H2Error::Flood { .. } => ErrorCode::ENHANCE_YOUR_CALM,
            H2Error::Response(error) if error.is_limit() => ErrorCode::ENHANCE_YOUR_CALM,
            H2Error::Response(error) if error.is_early_end() => ErrorCode::NO_ERROR,
            H2Error::SettingsTimeout => ErrorCode::SETTINGS_TIMEOUT,
            H2Error::PingTimeout | H2Error::EndedInRequest | H2Error::EndedInResponse { .. } => ErrorCode::NO_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// Returns `true` if the connection ended before any byte of a response was received. An
    /// idempotent request may then be sent again on a new connection (RFC 9110 §9.2.2).
    pub fn is_before_response(&self) -> bool {
        matches!(self, H2Error::Response(ResponseError::EndedBeforeResponse | ResponseError::EndedIdle))
    }

    /// Returns `true` if the peer closed the connection or was silent, and `false` if the peer sent
    /// invalid data.
    pub fn is_early_end(&self) -> bool {
        matches!(
            self,
            H2Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse)
                | H2Error::EndedInRequest
                | H2Error::EndedInResponse { .. }
                | H2Error::PingTimeout
        )
    }
}

impl From<ResponseError> for H2Error {
    fn from(error: ResponseError) -> H2Error {
        H2Error::Response(error)
    }
}

impl From<FieldSectionError> for H2Error {
    fn from(error: FieldSectionError) -> H2Error {
        match error {
            FieldSectionError::Response(error) => H2Error::Response(error),
            FieldSectionError::Field(fault) => H2Error::Field(fault),
        }
    }
}

impl core::error::Error for H2Error {}

impl fmt::Display for H2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            H2Error::Response(error) => write!(f, "{error}"),
            H2Error::NotHttp2 { http1: true } => f.write_str("server answered by HTTP/1 where HTTP/2 was agreed"),
            H2Error::NotHttp2 { http1: false } => f.write_str("server sent something that is not HTTP/2"),
            H2Error::FrameSize { kind, length } => {
                write!(f, "server sent a frame of type {kind} with an impossible length of {length} bytes")
            }
            H2Error::Frame(fault) => write!(f, "server sent {fault}"),
            H2Error::Hpack(fault) => write!(f, "server sent a malformed header block: {fault}"),
            H2Error::Setting { id, value } => write!(f, "server sent setting {id} with the impossible value {value}"),
            H2Error::Push => f.write_str("server pushed though push is switched off"),
            H2Error::FlowControl => f.write_str("server sent more than the window allowed"),
            H2Error::WindowOverflow => f.write_str("server raised a window above 2147483647 bytes"),
            H2Error::ZeroIncrement => f.write_str("server raised a window by nothing"),
            H2Error::Flood { kind, limit } => {
                write!(f, "server sent more than the limit of {limit} {kind} frames to no purpose")
            }
            H2Error::Field(fault) => write!(f, "server sent a malformed header: {fault}"),
            H2Error::Length { expected, got } => {
                write!(f, "server sent a body of {got} bytes where {expected} were announced")
            }
            H2Error::UnexpectedBody => f.write_str("server sent a body where there can be none"),
            H2Error::SettingsTimeout => f.write_str("server did not acknowledge the settings in time"),
            H2Error::PingTimeout => f.write_str("server did not answer a ping in time"),
            H2Error::EndedInRequest => f.write_str("server closed the connection before it had all of the request"),
            H2Error::EndedInResponse { open } => {
                write!(f, "server closed the connection with {open} responses incomplete")
            }
        }
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrameFault::StreamZero => "a frame of a stream on stream 0",
            FrameFault::NotStreamZero => "a frame of the connection on a stream",
            FrameFault::IdleStream => "a frame on a stream that was never opened",
            FrameFault::ClosedStream => "a frame on a stream that had ended",
            FrameFault::Interleaved => "another frame within a header block",
            FrameFault::StrayContinuation => "a continuation of nothing",
            FrameFault::Padding => "a frame with more padding than it has room for",
            FrameFault::DataBeforeHead => "a body before its head",
            FrameFault::HeadInBody => "a second head that does not end the stream",
            FrameFault::HeadersInTunnel => "a header block in a tunnel",
            FrameFault::InterimEnd => "an interim head that ends the stream",
        })
    }
}

impl fmt::Display for FloodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FloodKind::Ping => "PING",
            FloodKind::Settings => "SETTINGS",
            FloodKind::EmptyData => "empty DATA",
            FloodKind::WindowUpdate => "WINDOW_UPDATE",
            FloodKind::Priority => "PRIORITY",
            FloodKind::Reset => "RST_STREAM",
            FloodKind::GoAway => "GOAWAY",
            FloodKind::Continuation => "CONTINUATION",
            FloodKind::Unknown => "unknown",
            FloodKind::Unread => "unread acknowledged",
        })
    }
}
