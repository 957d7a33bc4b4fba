//! Events returned by [`H1Machine::step`](super::H1Machine::step).
//!
//! ```
//! use haul_proto::h1::{H1Event, RequestId};
//!
//! fn deliver(buffer: &[u8], event: H1Event) {
//!     match event {
//!         H1Event::Head { head, framing, .. } => println!("{} with a body of {framing:?}", head.status()),
//!         H1Event::Body { range, .. } => println!("{} bytes", buffer[range].len()),
//!         H1Event::Complete { reuse: Ok(()), .. } => println!("back to the pool"),
//!         H1Event::Complete { reuse: Err(why), .. } => println!("drop the connection: {why}"),
//!         _ => {}
//!     }
//! }
//! deliver(b"hello", H1Event::Body { id: RequestId(0), range: 0..5 });
//! ```

use crate::close_reason::CloseReason;
use crate::fields::Fields;
use crate::request_id_and_body_framing::{RequestId, ResponseBodyFraming};
use crate::response_head::ResponseHead;
use core::ops::Range;

/// An event that an HTTP/1 connection has read from its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum H1Event {
    /// More input is needed. Keep the bytes that were not consumed, read more, and pass both to the
    /// next call of `step`.
    NeedInput,
    /// An interim response (1xx except 101). The head of another response to this request follows.
    Interim {
        /// The request that this interim response answers.
        id: RequestId,
        /// The head of the interim response.
        head: ResponseHead,
    },
    /// The head of the final response.
    Head {
        /// The request that this response answers.
        id: RequestId,
        /// The head of the final response.
        head: ResponseHead,
        /// The framing of the response's body.
        framing: ResponseBodyFraming,
    },
    /// Bytes of the response's body.
    Body {
        /// The request to which the body belongs.
        id: RequestId,
        /// The range of these body bytes in the buffer given to `step`. It contains no chunk
        /// framing.
        range: Range<usize>,
    },
    /// The response has been read to its end.
    Complete {
        /// The request whose response is complete.
        id: RequestId,
        /// The trailer section of a chunked body; `None` if the response has none. Never merge
        /// trailers into the head (RFC 9110 §6.5.1).
        trailers: Option<Fields>,
        /// `Ok` if the connection accepts further requests; otherwise the reason why it does not.
        reuse: Result<(), CloseReason>,
    },
    /// The connection no longer carries HTTP/1, after a 101 or a 2xx to CONNECT. All input after
    /// the head is data of the new protocol, for the caller to read.
    Tunnel {
        /// The request that opened the tunnel.
        id: RequestId,
        /// The head of the response that opened the tunnel.
        head: ResponseHead,
    },
}

/// An event of an HTTP/1 connection, and the number of input bytes that it consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct H1Step {
    /// The number of bytes consumed from the start of the input: pass the bytes after them to the
    /// next call of `step`. [`H1Event::NeedInput`] may consume bytes too.
    pub consumed: usize,
    /// The event that the consumed bytes caused.
    pub event: H1Event,
}
