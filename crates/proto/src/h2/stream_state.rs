//! The state of an open request stream.

use super::receive_windows::StreamReceiveWindow;
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_head::Fields;
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;

/// The state of a request and its response on an HTTP/2 stream.
#[derive(Debug)]
pub(crate) struct RequestStreamState {
    pub(crate) response_to: ResponseFramingContext,
    pub(crate) upload: RemainingRequestBody,
    /// The time at which the wait for `100 Continue` ends; `None` if the request's body does not
    /// wait.
    pub(crate) hold_until: Option<MonotonicTimestamp>,
    /// The number of bytes that the peer allows the client to send on the stream.
    pub(crate) send_window: i64,
    pub(crate) inbound: StreamReceiveWindow,
    pub(crate) phase: ResponsePhase,
    pub(crate) interim: u32,
    pub(crate) head_bytes: usize,
    /// True if any part of the response on this stream was received.
    pub(crate) started: bool,
    /// True if the response's status is 2xx and the stream is not a tunnel: the server is then
    /// expected to read the rest of the request.
    pub(crate) reads_on: bool,
    /// True if the response has made the stream a tunnel (RFC 9113 §8.5).
    pub(crate) is_tunnel: bool,
    /// The trailers of a response that ended before its request was sent completely, kept until the
    /// end of the response is reported; `None` otherwise.
    pub(crate) trailers: Option<Fields>,
    /// The position of the request's first byte, counted from the first byte sent on the
    /// connection.
    pub(crate) start: u64,
}

impl RequestStreamState {
    /// Ends the wait of the request's body for `100 Continue`, and returns `true` if the body was
    /// waiting. `wanted` is true if the body may be sent now, and false if the server sent a final
    /// response in place of 100 (RFC 9110 §10.1.1).
    pub(crate) fn end_continue_wait(&mut self, wanted: bool) -> bool {
        let was_waiting = self.hold_until.take().is_some();
        if was_waiting && !wanted {
            self.upload = RemainingRequestBody::Abandoned;
        }
        was_waiting
    }

    /// Returns the number of bytes of the response's body that have not arrived; `None` if unknown.
    pub(crate) fn remaining_body(&self) -> Option<u64> {
        match self.phase {
            ResponsePhase::Body { expected: Some(expected), got, .. } => Some(expected.saturating_sub(got)),
            _ => None,
        }
    }
}
