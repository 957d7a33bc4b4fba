//! Errors that a peer causes, one variant for each kind of violation.
//!
//! An [`H1Error`] ends the connection, since the start of the next response can no longer be known.
//! A mistake of the caller is a [`SendRequestError`](super::SendRequestError) instead; the
//! connection continues.
//!
//! ```
//! use haul_proto::h1::{H1Error, ContentLengthFault, ResponseError};
//!
//! let error = ResponseError::ContentLength(ContentLengthFault::Conflicting);
//! assert_eq!(error.to_string(), "server sent two Content-Length that differ");
//! assert_eq!(ResponseError::HeadTooLarge { limit: 307_200 }.to_string(), "server sent a head above the limit of 307200 bytes");
//! assert!(H1Error::from(ResponseError::EndedBeforeResponse).is_early_end());
//! ```

use crate::response_error::ResponseError;
use core::fmt;

/// The reason why an HTTP/1 connection is unusable: a mistake of the peer, or an early end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum H1Error {
    /// A mistake of the peer, or an end of the connection, that can happen in every HTTP version.
    Response(ResponseError),
    /// The response does not begin with a status line. It may be HTTP/0.9, another protocol, or the
    /// rest of an earlier response.
    NotHttp {
        /// True if this is the first response on the connection, and no interim response came
        /// before it.
        first: bool,
    },
    /// The status line names a version other than HTTP/1.0 and HTTP/1.1. `minor` is `None` if
    /// `major` is not 1.
    UnsupportedVersion {
        /// The major version: the digit before the dot.
        major: u8,
        /// The minor version: the digit after the dot; `None` if `major` is not 1.
        minor: Option<u8>,
    },
    /// The status line breaks RFC 9112 §4.
    StatusLine,
    /// A field line breaks RFC 9112 §5.
    Field(FieldLineFault),
    /// Too many empty lines precede the status line.
    EmptyLines {
        /// The largest number of empty lines allowed before a status line.
        limit: usize,
    },
    /// `101 Switching Protocols` answers a request without an Upgrade field (RFC 9110 §15.2.2).
    UnexpectedUpgrade,
    /// The response has a Transfer-Encoding that is not supported.
    TransferCoding(TransferCodingFault),
    /// The framing of a chunked body breaks RFC 9112 §7.1.
    Chunk(ChunkFault),
    /// A chunk-size line is longer than
    /// [`ResponseLimits::chunk_line`](crate::ResponseLimits::chunk_line).
    ChunkLineTooLong {
        /// The largest number of bytes allowed in a chunk-size line.
        limit: usize,
    },
    /// The chunk extensions of a body are longer than
    /// [`ResponseLimits::chunk_extensions_total`](crate::ResponseLimits::chunk_extensions_total).
    ChunkExtensionsTooLarge {
        /// The largest number of bytes allowed in the chunk extensions of a body.
        limit: usize,
    },
    /// Bytes arrived while no request was waiting for a response, or before any byte of the request
    /// had been sent.
    UnsolicitedBytes,
    /// The peer closed the connection after a complete response, while the rest of the request was
    /// still being sent.
    EndedInRequest,
    /// The peer closed the connection before the status line of the response was complete.
    EndedInStatusLine {
        /// The number of bytes received for this response, interim heads included.
        got: u64,
    },
    /// The peer closed the connection within a response head, after its status line.
    EndedInHead {
        /// The number of bytes received for this response, interim heads included.
        got: u64,
    },
    /// The peer closed the connection within a body of known length.
    EndedInBody {
        /// The Content-Length of the response.
        expected: u64,
        /// The number of bytes of this body that were received.
        got: u64,
    },
    /// The peer closed the connection before the last chunk of a chunked body, or within its
    /// trailers.
    EndedInChunks {
        /// The number of payload bytes received, without chunk framing.
        got: u64,
    },
    /// The body ends with the connection, but the transport's end mark (TLS close_notify) is
    /// missing: an attacker may have cut off the rest of the body.
    EndedUncleanly {
        /// The number of payload bytes of this body that were received.
        got: u64,
    },
}

/// A mistake in a field line of an HTTP/1 response.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FieldLineFault {
    /// The name is not a token: it is empty, contains a control byte or a space before the colon,
    /// or the colon is missing.
    Name,
    /// The value contains NUL, a CR without LF, or another control byte.
    Value,
    /// A line of the field section ends in CR without LF.
    LineEnd,
    /// A trailer field continues on the next line. Folded lines are accepted in heads only.
    Folded,
}

/// A mistake in a Transfer-Encoding field of a response.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransferCodingFault {
    /// Transfer-Encoding is present but names no coding.
    Empty,
    /// The response has a transfer coding that the request did not allow: a coding other than
    /// `chunked` and `identity`, or one of these two with parameters.
    Unsupported,
    /// The transfer coding `chunked` occurs twice.
    Repeated,
}

/// A mistake in the framing of a chunked body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChunkFault {
    /// A chunk size does not begin with a hexadecimal digit, but with a sign, a space or a line
    /// end, for example.
    Size,
    /// A chunk size is followed by a byte that is not a digit, an extension or a line end (`0x5`,
    /// `5h`).
    SizeEnd,
    /// A chunk size has more than 16 hexadecimal digits.
    SizeOverflow,
    /// The chunk size is followed by blanks, and the blanks by something other than an extension or
    /// a line end.
    SizeSpaced,
    /// A CR in the chunked framing is not followed by LF.
    BareCr,
    /// A chunk extension contains a control byte.
    Extension,
    /// The payload of a chunk is not followed by a line end, so the chunk size was wrong.
    DataEnd,
}

impl H1Error {
    /// Returns `true` if the peer closed the connection too early, and `false` if the peer sent
    /// invalid data.
    pub fn is_early_end(&self) -> bool {
        matches!(
            self,
            H1Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse)
                | H1Error::EndedInStatusLine { .. }
                | H1Error::EndedInHead { .. }
                | H1Error::EndedInBody { .. }
                | H1Error::EndedInChunks { .. }
                | H1Error::EndedUncleanly { .. }
                | H1Error::EndedInRequest
        )
    }
}

impl From<ResponseError> for H1Error {
    fn from(error: ResponseError) -> H1Error {
        H1Error::Response(error)
    }
}

impl core::error::Error for H1Error {}

impl fmt::Display for H1Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            H1Error::Response(error) => write!(f, "{error}"),
            H1Error::NotHttp { .. } => f.write_str("server sent something that is not HTTP/1"),
            H1Error::UnsupportedVersion { major, minor: Some(minor) } => {
                write!(f, "server answered with HTTP/{major}.{minor} where only 1.0 and 1.1 are possible")
            }
            H1Error::UnsupportedVersion { major, minor: None } => {
                write!(f, "server answered with HTTP/{major} where only 1.0 and 1.1 are possible")
            }
            H1Error::StatusLine => f.write_str("server sent a malformed status line"),
            H1Error::Field(fault) => write!(f, "server sent a malformed header: {fault}"),
            H1Error::EmptyLines { limit } => {
                write!(f, "server sent more than the limit of {limit} empty lines before a status line")
            }
            H1Error::UnexpectedUpgrade => f.write_str("server switched protocols without having been asked to"),
            H1Error::TransferCoding(TransferCodingFault::Empty) => {
                f.write_str("server sent an empty Transfer-Encoding")
            }
            H1Error::TransferCoding(TransferCodingFault::Unsupported) => {
                f.write_str("server sent a Transfer-Encoding that was not asked for")
            }
            H1Error::TransferCoding(TransferCodingFault::Repeated) => {
                f.write_str("server sent a Transfer-Encoding with chunked twice")
            }
            H1Error::Chunk(fault) => write!(f, "server sent malformed chunks: {fault}"),
            H1Error::ChunkLineTooLong { limit } => {
                write!(f, "server sent a chunk-size line above the limit of {limit} bytes")
            }
            H1Error::ChunkExtensionsTooLarge { limit } => {
                write!(f, "server sent chunk extensions above the limit of {limit} bytes")
            }
            H1Error::UnsolicitedBytes => f.write_str("server sent bytes that no request had asked for"),
            H1Error::EndedInRequest => f.write_str("server closed the connection before it had all of the request"),
            H1Error::EndedInStatusLine { got } => {
                write!(f, "server closed the connection within the status line, after {got} bytes")
            }
            H1Error::EndedInHead { got } => {
                write!(f, "server closed the connection within the head, after {got} bytes")
            }
            H1Error::EndedInBody { expected, got } => {
                write!(f, "server closed the connection after {got} of {expected} bytes of the body")
            }
            H1Error::EndedInChunks { got } => {
                write!(f, "server closed the connection before the last chunk, after {got} bytes of the body")
            }
            H1Error::EndedUncleanly { got } => {
                write!(f, "connection ended without its end mark after {got} bytes: the body may have been cut")
            }
        }
    }
}

impl fmt::Display for FieldLineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldLineFault::Name => "a name that is not a token directly before a colon",
            FieldLineFault::Value => "a control byte in a value",
            FieldLineFault::LineEnd => "CR without LF",
            FieldLineFault::Folded => "a folded trailer",
        })
    }
}

impl fmt::Display for ChunkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunkFault::Size => "no size where one has to stand",
            ChunkFault::SizeEnd => "a size followed by something else",
            ChunkFault::SizeOverflow => "a size of more than 16 digits",
            ChunkFault::SizeSpaced => "blanks within a size line",
            ChunkFault::BareCr => "CR without LF",
            ChunkFault::Extension => "a control byte in an extension",
            ChunkFault::DataEnd => "a chunk longer than its size",
        })
    }
}
