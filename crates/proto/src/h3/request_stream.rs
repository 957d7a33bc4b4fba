//! The state of one open request: the receiving half of its stream, and its upload.

use super::frame::H3FrameReader;
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_head::Fields;
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;

#[derive(Debug)]
pub(crate) struct H3RequestStream {
    pub(crate) response_to: ResponseFramingContext,
    pub(crate) upload: RemainingRequestBody,
    /// The time at which the wait for `100 Continue` ends; `None` if the request's body does not
    /// wait.
    pub(crate) hold_until: Option<MonotonicTimestamp>,
    pub(crate) phase: ResponsePhase,
    pub(crate) reader: H3FrameReader,
    /// The number of QPACK table entries that the peer must have inserted before the field section
    /// in `reader.partial` can be decoded. `None` if no field section waits.
    pub(crate) waits_for: Option<u64>,
    pub(crate) interim: u32,
    pub(crate) head_bytes: usize,
    /// True if any part of the response on this stream was received.
    pub(crate) started: bool,
    /// True if the response's status is 2xx and the stream is not a tunnel: the server is then
    /// expected to read the rest of the request.
    pub(crate) reads_on: bool,
    /// True if the stream is a tunnel, on which only DATA frames are allowed (RFC 9114 §4.4).
    pub(crate) is_tunnel: bool,
    /// True if the trailer section of the response has arrived.
    pub(crate) is_trailed: bool,
    /// The trailers of the response, kept until the stream and the request have ended; `None` if
    /// the response has none or they have not arrived.
    pub(crate) trailers: Option<Fields>,
}

impl H3RequestStream {
    /// Returns the number of bytes of the request's body that may be given now, if its output has
    /// room for `room` bytes; `None` if no more body bytes are expected.
    pub(crate) fn body_credit(&self, room: u64) -> Option<u64> {
        match self.upload {
            RemainingRequestBody::Finished | RemainingRequestBody::Abandoned => None,
            _ if self.hold_until.is_some() => Some(0),
            RemainingRequestBody::Known { left } => Some(left.min(room)),
            RemainingRequestBody::Open => Some(room),
        }
    }

    /// Ends the wait of the request's body for `100 Continue`, and returns `true` if the body was
    /// waiting. `is_wanted` is true if the body may be sent now, and false if the server sent a
    /// final response in place of 100 (RFC 9110 §10.1.1).
    pub(crate) fn end_continue_wait(&mut self, is_wanted: bool) -> bool {
        let was_waiting = self.hold_until.take().is_some();
        if was_waiting && !is_wanted {
            self.upload = RemainingRequestBody::Abandoned;
        }
        was_waiting
    }

    /// Returns the number of bytes of a field section that are buffered on this stream.
    pub(crate) fn buffered_bytes(&self) -> usize {
        use super::frame::H3FrameReadState;
        match self.reader.state {
            H3FrameReadState::Payload(_) => self.reader.partial.len(),
            _ if self.waits_for.is_some() => self.reader.partial.len(),
            _ => 0,
        }
    }
}
