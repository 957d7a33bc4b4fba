//! The state machine of an HTTP/1 connection: accepts requests, returns events.
//!
//! A driver calls, in this order: [`H1Machine::enqueue`], with [`H1Machine::send_body`] and
//! [`H1Machine::finish_body`] as [`H1Machine::body_credit`] allows; then [`H1Machine::output`], and
//! [`H1Machine::advance_output`] for the bytes that the socket took; then [`H1Machine::step`] with
//! the bytes that the socket delivered, until [`H1Event::NeedInput`] or [`H1Event::Complete`].
//! `receive.rs` has the reading half; [`h1`](super) has the state diagram and an example.

use super::receive::ResponseReceiver;
use super::request::{self, RequestProperties};
use super::send::RequestSender;
use super::{BodyLength, RequestError, RequestHead};
use super::{CloseReason, H1Config, H1Error, H1Event, H1Step, RequestId};
use crate::framing::ResponseFramingContext;
use crate::response_error::ResponseError;
use crate::time::Timestamp;
use alloc::collections::VecDeque;

/// A request whose response is not complete.
#[derive(Debug)]
pub(crate) struct UnansweredRequest {
    pub(crate) id: RequestId,
    pub(crate) facts: RequestProperties,
    /// The position of the request's first byte in the output.
    start: u64,
    /// The position of the request's end in the output; `None` while its body is unfinished.
    end: Option<u64>,
}

/// The client's side of one HTTP/1 connection, without I/O.
#[derive(Debug)]
pub struct H1Machine {
    pub(crate) config: H1Config,
    pub(crate) sender: RequestSender,
    pub(crate) receiver: ResponseReceiver,
    pub(crate) exchanges: VecDeque<UnansweredRequest>,
    next_id: u64,
    pub(crate) closing: Option<CloseReason>,
}

impl H1Machine {
    /// Creates a connection on which nothing has been sent or received.
    pub fn new(mut config: H1Config) -> H1Machine {
        // Offsets in a head are 32 bits wide.
        config.limits.head_bytes = config.limits.head_bytes.min(u32::MAX as usize);
        config.limits.trailer_bytes = config.limits.trailer_bytes.min(u32::MAX as usize);
        config.max_pipeline = config.max_pipeline.max(1);
        H1Machine {
            config,
            sender: RequestSender::default(),
            receiver: ResponseReceiver::default(),
            exchanges: VecDeque::new(),
            next_id: 0,
            closing: None,
        }
    }

    /// Returns `true` if [`H1Machine::enqueue`] would accept a valid request now.
    pub fn can_enqueue(&self) -> bool {
        self.refusal().is_none()
    }

    fn refusal(&self) -> Option<RequestError> {
        if let Some(reason) = self.closing {
            return Some(RequestError::Closed(reason));
        }
        let last = self.exchanges.back()?;
        if last.facts.close {
            // RFC 9112 §9.6: a client that sends close must not send further requests.
            Some(RequestError::Closed(CloseReason::ClientClose))
        } else if last.facts.upgrade || last.facts.response_to == ResponseFramingContext::Connect {
            Some(RequestError::TunnelPending)
        } else if !self.sender.is_finished() {
            Some(RequestError::BodyPending)
        } else if self.exchanges.len() >= self.config.max_pipeline {
            Some(RequestError::PipelineFull { limit: self.config.max_pipeline })
        } else {
            None
        }
    }

    /// Appends a request's head to the output, and returns the request's number. An error leaves
    /// everything unchanged.
    pub fn enqueue(&mut self, now: Timestamp, request: &RequestHead<'_>) -> Result<RequestId, RequestError> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let facts = request::check(request)?;
        if self.config.deviations.http10 && request.body == BodyLength::Chunked {
            return Err(RequestError::ChunksInHttp10);
        }
        let start = self.sender.output.position();
        request::write(request, &facts, self.config.deviations.http10, self.sender.output.tail());
        self.sender.begin(request.body, request.expect_continue.then(|| now + self.config.expect_timeout));
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.exchanges.push_back(UnansweredRequest { id, facts, start, end: None });
        self.note_end();
        Ok(id)
    }

    /// Returns the number of bytes of the last request's body that [`H1Machine::send_body`] accepts
    /// now; `None` if no more body bytes are expected. The output buffers at most 64 KiB.
    pub fn body_credit(&self) -> Option<u64> {
        self.sender.credit()
    }

    /// Appends body bytes to the output, as a chunk if the body is chunked. Returns the number of
    /// bytes accepted: all of them, or as many as [`H1Machine::body_credit`] allowed. A body of
    /// known length ends with its last byte.
    ///
    /// Bytes given right after [`H1Machine::enqueue`] follow the head in one output slice.
    pub fn send_body(&mut self, data: &[u8]) -> Result<usize, RequestError> {
        let taken = self.sender.send(data).map_err(|error| self.or_closed(error))?;
        self.note_end();
        Ok(taken)
    }

    /// Ends a chunked body, and sends these trailers after it. For a body of known length, checks
    /// that all bytes were given.
    pub fn finish_body(&mut self, trailers: &[(&str, &[u8])]) -> Result<(), RequestError> {
        self.sender.finish(trailers)?;
        self.note_end();
        Ok(())
    }

    /// Replaces [`RequestError::NoBodyExpected`] by [`RequestError::Closed`] if the connection is
    /// closing: closing dropped the body, so the caller made no mistake.
    fn or_closed(&self, error: RequestError) -> RequestError {
        match (error, self.closing) {
            (RequestError::NoBodyExpected, Some(reason)) => RequestError::Closed(reason),
            _ => error,
        }
    }

    /// Records the end of the last request once its body is finished. No earlier request can have
    /// an unfinished body.
    fn note_end(&mut self) {
        if self.sender.is_finished()
            && let Some(exchange) = self.exchanges.back_mut()
        {
            exchange.end.get_or_insert(self.sender.output.position());
        }
    }

    /// Returns all bytes that are ready to send, as one slice.
    pub fn output(&self) -> &[u8] {
        self.sender.output.pending()
    }

    /// Records that the transport accepted `n` bytes of [`H1Machine::output`]. Call it before
    /// passing their response to [`H1Machine::step`]: a response to an unsent request is an error.
    pub fn advance_output(&mut self, n: usize) {
        self.sender.output.advance(n);
    }

    /// Reads the next event from `input`, which begins at the first byte not consumed before.
    ///
    /// Call `step` until [`H1Event::NeedInput`] (then read more) or [`H1Event::Complete`] (then
    /// call it again if the connection is reused and more requests are
    /// [unanswered](H1Machine::unanswered)). After `Complete` with a reason to close, after a
    /// tunnel and after an error, no more can be read ([`ResponseError::Closed`]).
    pub fn step(&mut self, now: Timestamp, input: &mut [u8]) -> Result<H1Step, H1Error> {
        self.handle_timeout(now);
        let result = self.receive(input);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    /// Records that the peer closed its side. `clean` is false if the transport has an end mark
    /// that did not arrive (TLS without close_notify).
    ///
    /// Returns [`H1Event::Complete`] if the response may end here, else an error that names the
    /// truncated part. Pass all input to [`H1Machine::step`] first.
    pub fn end_of_input(&mut self, clean: bool) -> Result<H1Event, H1Error> {
        let result = self.receive_end(clean);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    fn fail(&mut self, error: H1Error) {
        let reason = match error {
            H1Error::Response(ResponseError::Closed(_)) => return,
            H1Error::UnsolicitedBytes => CloseReason::UnsolicitedBytes,
            error if error.is_early_end() => CloseReason::PeerClosed,
            _ => CloseReason::Broken,
        };
        self.close(reason);
    }

    /// Closes the connection: no more input is read and no request is accepted. If it is closed
    /// already, the first reason is kept.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.closing.get_or_insert(reason);
        self.receiver.close();
        self.sender.abandon();
    }

    /// Returns `true` if a byte of this request has been sent.
    pub(crate) fn has_left(&self, exchange: &UnansweredRequest) -> bool {
        self.sender.output.sent() > exchange.start
    }

    /// Returns `true` if all of this request has been sent.
    pub(crate) fn has_left_wholly(&self, exchange: &UnansweredRequest) -> bool {
        exchange.end.is_some_and(|end| self.sender.output.sent() >= end)
    }

    /// Returns `Some(remaining)` if the next bytes on the wire are that many bytes of payload. The
    /// driver may then move up to that many bytes from the socket to their destination without
    /// [`H1Machine::step`].
    ///
    /// First pass the bytes that the driver has already read into its buffer to
    /// [`H1Machine::step`].
    pub fn direct_body(&self) -> Option<u64> {
        self.receiver.direct()
    }

    /// Records payload bytes that the driver moved itself, as [`H1Machine::direct_body`] allows.
    /// Returns [`H1Event::Complete`] with the last one. If the rest of the request has to be sent
    /// first, returns `None`, and [`H1Machine::has_due`] becomes true when it has been sent.
    ///
    /// Reporting more bytes than [`H1Machine::direct_body`] allows is a bug in the driver: debug
    /// builds panic, others count only the allowed ones.
    pub fn advance_body(&mut self, n: u64) -> Option<H1Event> {
        let is_whole = self.receiver.advance_direct(n);
        is_whole.then(|| self.complete(None, false)).filter(|event| *event != H1Event::NeedInput)
    }

    /// Returns the request whose response is read next; `None` if no request is unanswered.
    pub fn current(&self) -> Option<RequestId> {
        self.exchanges.front().map(|exchange| exchange.id)
    }

    /// Iterates over the requests without a complete response, in the order in which they were
    /// enqueued. After the connection broke, they may be sent again on another one; the first of
    /// them only if [`H1Machine::response_started`] is false.
    pub fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.exchanges.iter().map(|exchange| exchange.id)
    }

    /// Returns `true` if a byte of the [current](H1Machine::current) response was received.
    pub fn response_started(&self) -> bool {
        self.receiver.started()
    }

    /// Returns the time of the next timeout: call [`H1Machine::handle_timeout`] then. Only a
    /// request that waits for `100 Continue` has one.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.sender.hold_until()
    }

    /// Ends the wait for `100 Continue` if `now` is past its deadline. Call
    /// [`H1Machine::body_credit`] afterwards.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.sender.hold_until().is_some_and(|until| until <= now) {
            self.sender.release();
        }
    }

    /// Returns `true` if the connection is open with nothing to send and no unanswered request.
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.exchanges.is_empty() && self.output().is_empty()
    }

    /// Returns the reason to send no further request on this connection; `None` if it can be reused
    /// so far. The reason is known as soon as the head that states it has been read.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.closing
    }
}
