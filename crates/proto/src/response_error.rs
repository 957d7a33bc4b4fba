//! Errors that a peer causes in every HTTP version: exceeded limits, an invalid Content-Length, and
//! early ends.

use crate::close_reason::CloseReason;
use crate::request_id_and_body_framing::ContentLengthFault;
use core::fmt;

/// A mistake of the peer, or an end of the connection, that can happen in every HTTP version.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResponseError {
    /// The heads of this response are together larger than
    /// [`ResponseLimits::head_bytes`](crate::ResponseLimits::head_bytes). In HTTP/2 and HTTP/3, a
    /// single encoded field section may not exceed this limit either.
    HeadTooLarge {
        /// The largest number of bytes allowed for all heads of a response together.
        limit: usize,
    },
    /// A head has more fields than
    /// [`ResponseLimits::head_fields`](crate::ResponseLimits::head_fields).
    TooManyFields {
        /// The largest number of fields allowed in a head.
        limit: usize,
    },
    /// More interim responses arrived than
    /// [`ResponseLimits::interim`](crate::ResponseLimits::interim).
    TooManyInterim {
        /// The largest number of interim responses allowed.
        limit: u32,
    },
    /// The trailer section exceeds
    /// [`ResponseLimits::trailer_bytes`](crate::ResponseLimits::trailer_bytes).
    TrailersTooLarge {
        /// The largest number of bytes allowed in the trailer section.
        limit: usize,
    },
    /// More trailer fields arrived than
    /// [`ResponseLimits::trailer_fields`](crate::ResponseLimits::trailer_fields).
    TooManyTrailers {
        /// The largest number of trailer fields allowed.
        limit: usize,
    },
    /// Content-Length is malformed, or several values differ.
    ContentLength(ContentLengthFault),
    /// The peer closed an idle connection, which is not a fault.
    EndedIdle,
    /// The peer closed the connection before the first byte of an expected response. In HTTP/1.1,
    /// interim responses may have arrived, but no byte of the final response.
    EndedBeforeResponse,
    /// The connection had ended before this call, for this reason; no more can be read.
    Closed(CloseReason),
}

impl ResponseError {
    /// Returns `true` if the error is that the response exceeds a limit of
    /// [`ResponseLimits`](crate::ResponseLimits).
    pub(crate) fn is_limit(self) -> bool {
        matches!(
            self,
            ResponseError::HeadTooLarge { .. }
                | ResponseError::TooManyFields { .. }
                | ResponseError::TooManyInterim { .. }
                | ResponseError::TrailersTooLarge { .. }
                | ResponseError::TooManyTrailers { .. }
        )
    }

    /// Returns `true` if the error is that the connection has ended, and `false` if the peer sent a
    /// malformed or too large message.
    pub(crate) fn is_early_end(self) -> bool {
        matches!(self, ResponseError::EndedIdle | ResponseError::EndedBeforeResponse | ResponseError::Closed(_))
    }
}

impl core::error::Error for ResponseError {}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ResponseError::HeadTooLarge { limit } => write!(f, "server sent a head above the limit of {limit} bytes"),
            ResponseError::TooManyFields { limit } => write!(f, "server sent a head above the limit of {limit} fields"),
            ResponseError::TooManyInterim { limit } => {
                write!(f, "server sent more than the limit of {limit} interim responses")
            }
            ResponseError::TrailersTooLarge { limit } => {
                write!(f, "server sent trailers above the limit of {limit} bytes")
            }
            ResponseError::TooManyTrailers { limit } => {
                write!(f, "server sent trailers above the limit of {limit} fields")
            }
            ResponseError::ContentLength(ContentLengthFault::Malformed) => {
                f.write_str("server sent a malformed Content-Length")
            }
            ResponseError::ContentLength(ContentLengthFault::TooLarge) => {
                f.write_str("server sent a Content-Length above 64 bits")
            }
            ResponseError::ContentLength(ContentLengthFault::Conflicting) => {
                f.write_str("server sent two Content-Length that differ")
            }
            ResponseError::EndedIdle => f.write_str("server closed the idle connection"),
            ResponseError::EndedBeforeResponse => f.write_str("server closed the connection without a response"),
            ResponseError::Closed(reason) => write!(f, "connection is closed: {reason}"),
        }
    }
}
