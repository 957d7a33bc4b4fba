//! Events returned by [`Conn::step`](super::Conn::step).
//!
//! ```
//! use haul_proto::h1::{Event, RequestId};
//!
//! fn deliver(buffer: &[u8], event: Event) {
//!     match event {
//!         Event::Head { head, framing, .. } => println!("{} with a body of {framing:?}", head.status()),
//!         Event::Body { range, .. } => println!("{} bytes", buffer[range].len()),
//!         Event::Complete { reuse: Ok(()), .. } => println!("back to the pool"),
//!         Event::Complete { reuse: Err(why), .. } => println!("drop the connection: {why}"),
//!         _ => {}
//!     }
//! }
//! deliver(b"hello", Event::Body { id: RequestId(0), range: 0..5 });
//! ```

use crate::fields::Fields;
use crate::head::Head;
use core::fmt;
use core::ops::Range;

/// A request on one connection; numbers rise in the order of
/// [`Conn::enqueue`](super::Conn::enqueue). In HTTP/2 the number is the stream's.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// The way in which the end of a response's body is determined (RFC 9112 §6.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BodyFraming {
    /// No body: an answer to HEAD, 204, 304.
    None,
    /// A known number of bytes.
    Length(u64),
    /// Chunks; in HTTP/2, frames until one ends the stream.
    Chunked,
    /// All bytes until the peer closes.
    UntilClose,
}

/// The next event in the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// More input is needed: keep the bytes that were not consumed, and read more after them.
    NeedInput,
    /// An interim response (1xx except 101). Another head follows.
    Interim {
        /// The request.
        id: RequestId,
        /// The head.
        head: Head,
    },
    /// The head of the final response.
    Head {
        /// The request.
        id: RequestId,
        /// The head.
        head: Head,
        /// The framing of the body.
        framing: BodyFraming,
    },
    /// Payload.
    Body {
        /// The request.
        id: RequestId,
        /// The position in the buffer given to `step`, without framing.
        range: Range<usize>,
    },
    /// The response has been read to its end.
    Complete {
        /// The request.
        id: RequestId,
        /// The trailer section of a chunked body, if there was one. Never merge it into the head
        /// (RFC 9110 §6.5.1).
        trailers: Option<Fields>,
        /// `Ok` if the connection may take further requests, else the reason.
        reuse: Result<(), CloseReason>,
    },
    /// The connection is no longer HTTP/1 after 101, or 2xx to CONNECT. All input after the head
    /// belongs to the caller.
    Tunnel {
        /// The request.
        id: RequestId,
        /// The head.
        head: Head,
    },
}

/// An event, and the number of bytes that it consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The number of bytes consumed from the start of the input, after which the next call begins.
    /// [`Event::NeedInput`] may consume bytes too.
    pub consumed: usize,
    /// The event.
    pub event: Event,
}

/// The reason why a connection takes no further request.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The response said `Connection: close`.
    ServerClose,
    /// The request said `Connection: close`.
    ClientClose,
    /// An HTTP/1.0 response without `Connection: keep-alive`.
    Http10,
    /// The body lasts until the connection ends.
    UntilClose,
    /// The response has both Transfer-Encoding and Content-Length, which two parties may read
    /// differently (RFC 9112 §6.1).
    LengthAndCoding,
    /// The HTTP/1.0 response has Transfer-Encoding, which that version lacks (RFC 9112 §6.1).
    CodingInHttp10,
    /// The framing breaks RFC 9112, but can be read in one way only: chunk lines with blanks or
    /// without CR, or `Transfer-Encoding: identity, chunked`. A proxy on the way may read it
    /// differently.
    LooseFraming,
    /// The response was complete before all of the request had been sent.
    RequestUnfinished,
    /// Bytes arrived that no request had asked for.
    UnsolicitedBytes,
    /// The peer closed the connection.
    PeerClosed,
    /// The peer broke the protocol, or closed within a response.
    Broken,
    /// The connection became a tunnel.
    Tunnel,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::ServerClose => "the server asked for it",
            CloseReason::ClientClose => "the request asked for it",
            CloseReason::Http10 => "an HTTP/1.0 server did not offer to keep it",
            CloseReason::UntilClose => "the body lasted until the connection ended",
            CloseReason::LengthAndCoding => "the response had both Transfer-Encoding and Content-Length",
            CloseReason::CodingInHttp10 => "an HTTP/1.0 server sent Transfer-Encoding",
            CloseReason::LooseFraming => "the framing of the response was not what RFC 9112 allows",
            CloseReason::RequestUnfinished => "the response was complete before the request was",
            CloseReason::UnsolicitedBytes => "the server sent bytes that no request had asked for",
            CloseReason::PeerClosed => "the server closed it",
            CloseReason::Broken => "the server broke the protocol",
            CloseReason::Tunnel => "it became a tunnel",
        })
    }
}
