//! The state machine of an HTTP/1 connection. It accepts requests and returns events.
//!
//! A driver calls, in this order: [`H1Machine::enqueue`], with [`H1Machine::send_body`] and
//! [`H1Machine::finish_body`] as [`H1Machine::body_credit`] allows; then [`H1Machine::output`], and
//! [`H1Machine::advance_output`] for the bytes that the socket accepted; then [`H1Machine::step`]
//! with the bytes that the socket delivered, until [`H1Event::NeedInput`] or [`H1Event::Complete`].
//! The receiving half is in `receive.rs`; the state diagram and an example are in [`h1`](super).

use super::receive::ResponseReceiver;
use super::request::{self, RequestProperties};
use super::send::RequestSender;
use super::{BodyLength, RequestHead, SendRequestError};
use super::{CloseReason, H1Config, H1Error, H1Event, H1Step, RequestId};
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_error::ResponseError;
use crate::time::MonotonicTimestamp;
use alloc::collections::VecDeque;

/// A request on an HTTP/1 connection whose response is not complete yet.
#[derive(Debug)]
pub(crate) struct UnansweredRequest {
    pub(crate) id: RequestId,
    pub(crate) facts: RequestProperties,
    /// The position of the request's first byte, counted from the first byte sent on the
    /// connection.
    start: u64,
    /// The position after the request's last byte, counted from the first byte sent on the
    /// connection; `None` while the request's body is unfinished.
    end: Option<u64>,
}

/// The client's side of an HTTP/1 connection, as a state machine without I/O.
#[derive(Debug)]
pub struct H1Machine {
    pub(crate) config: H1Config,
    pub(crate) sender: RequestSender,
    pub(crate) receiver: ResponseReceiver,
    pub(crate) exchanges: VecDeque<UnansweredRequest>,
    next_id: u64,
    /// True if a response head was received on the connection.
    pub(crate) has_answered: bool,
    /// True if the last response head had the version HTTP/1.0.
    pub(crate) saw_http10: bool,
    /// True if the connection became unusable within a response head.
    pub(crate) failed_in_head: bool,
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
            has_answered: false,
            saw_http10: false,
            failed_in_head: false,
            closing: None,
        }
    }

    /// Returns `true` if [`H1Machine::enqueue`] would accept a valid request now: the connection is
    /// open, and no limit requires waiting.
    pub fn can_enqueue(&self) -> bool {
        self.enqueue_error().is_none()
    }

    fn enqueue_error(&self) -> Option<SendRequestError> {
        if let Some(reason) = self.closing {
            return Some(SendRequestError::Closed(reason));
        }
        let last = self.exchanges.back()?;
        if last.facts.close {
            // RFC 9112 §9.6: a client that sends close must not send further requests.
            Some(SendRequestError::Closed(CloseReason::ClientClose))
        } else if last.facts.upgrade || last.facts.response_to == ResponseFramingContext::Connect {
            Some(SendRequestError::TunnelPending)
        } else if !self.sender.is_finished() {
            Some(SendRequestError::BodyPending)
        } else if self.exchanges.len() >= self.config.max_pipeline {
            Some(SendRequestError::PipelineFull { limit: self.config.max_pipeline })
        } else {
            None
        }
    }

    /// Appends a request head to the output, and returns the request's id. If the request is
    /// refused, the connection is unchanged.
    pub fn enqueue(
        &mut self,
        now: MonotonicTimestamp,
        request: &RequestHead<'_>,
    ) -> Result<RequestId, SendRequestError> {
        if let Some(refusal) = self.enqueue_error() {
            return Err(refusal);
        }
        let facts = request::check_request(request, self.config.deviations.verbatim_fields)?;
        let http10 = request.http10 || self.sends_http10();
        if http10 && request.body == BodyLength::Chunked {
            return Err(SendRequestError::ChunksInHttp10);
        }
        let start = self.sender.output.end_position();
        request::write_request(request, &facts, http10, self.sender.output.append_buffer());
        self.sender.begin_body(request.body, request.expect_continue.then(|| now + self.config.expect_timeout));
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.exchanges.push_back(UnansweredRequest { id, facts, start, end: None });
        self.record_request_end();
        Ok(id)
    }

    /// Returns true if the next request is sent as HTTP/1.0.
    pub fn sends_http10(&self) -> bool {
        let deviations = self.config.deviations;
        deviations.http10 || deviations.follows_http10 && self.saw_http10
    }

    /// Returns the number of body bytes of the last request that [`H1Machine::send_body`] accepts
    /// now; `None` if no more body bytes are expected. At most 64 KiB of unsent output are
    /// buffered; after the first 4 MiB sent on a connection, 256 KiB.
    pub fn body_credit(&self) -> Option<u64> {
        self.sender.body_credit()
    }

    /// Appends bytes of the last request's body to the output, as a chunk if the body is chunked.
    /// Returns the number of bytes accepted: all of `data`, or as much as
    /// [`H1Machine::body_credit`] allowed. The last byte of a body of known length completes the
    /// request.
    ///
    /// Bytes given right after [`H1Machine::enqueue`] follow the head in one output slice, so that
    /// one write sends both.
    pub fn send_body(&mut self, data: &[u8]) -> Result<usize, SendRequestError> {
        let taken = self.sender.append_body(data).map_err(|error| self.closed_or(error))?;
        self.record_request_end();
        Ok(taken)
    }

    /// Appends at most `room` bytes of the last request's body, which `fill` writes directly into
    /// the output. Unlike [`H1Machine::send_body`], this needs no copy. Returns the number of
    /// appended bytes, which is the result of `fill`.
    pub fn fill_body(&mut self, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<usize, SendRequestError> {
        let taken = self.sender.fill_body(room, fill).map_err(|error| self.closed_or(error))?;
        self.record_request_end();
        Ok(taken)
    }

    /// Returns true if the last request's body is sent in chunks, and a chunk may begin now.
    pub fn may_begin_chunk(&self) -> bool {
        self.sender.may_begin_chunk()
    }

    /// Returns true if a chunk of the last request's body has begun and its payload is not
    /// complete. The caller then passes payload to [`H1Machine::send_body`], or writes it to the
    /// socket itself and calls [`H1Machine::advance_direct_body`].
    pub fn is_in_chunk(&self) -> bool {
        self.sender.is_in_chunk()
    }

    /// Begins a chunk of `size` bytes, which must not be 0. Its payload follows through
    /// [`H1Machine::advance_direct_body`] or [`H1Machine::send_body`].
    ///
    /// To begin a chunk while [`H1Machine::may_begin_chunk`] is false is a bug of the caller: debug
    /// builds panic, other builds ignore the call.
    pub fn begin_chunk(&mut self, size: u64) {
        self.sender.begin_chunk(size);
    }

    /// Returns the number of body bytes of the last request that the caller may write to the socket
    /// itself, for example with `sendfile`. It is 0 unless all of these hold:
    ///
    /// * All output has been sent.
    /// * The body does not wait for `100 Continue`.
    /// * The body has a known length, or a chunk has begun.
    pub fn direct_body_credit(&self) -> u64 {
        self.sender.direct_body_credit()
    }

    /// Records that the caller wrote `n` body bytes to the socket itself, as
    /// [`H1Machine::direct_body_credit`] allows.
    pub fn advance_direct_body(&mut self, n: u64) {
        self.sender.advance_direct_body(n);
        self.record_request_end();
    }

    /// Ends the body of the last request. A chunked body ends with the given trailers. For a body
    /// of known length, checks that the caller gave all bytes.
    pub fn finish_body(&mut self, trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
        self.sender.finish_body(trailers)?;
        self.record_request_end();
        Ok(())
    }

    /// Replaces [`SendRequestError::NoBodyExpected`] by [`SendRequestError::Closed`] if the
    /// connection is closing. Returns any other `error` unchanged. A closing connection expects no
    /// body bytes, because it has dropped the rest of the body. A caller that passes more bytes
    /// thus makes no mistake.
    fn closed_or(&self, error: SendRequestError) -> SendRequestError {
        match (error, self.closing) {
            (SendRequestError::NoBodyExpected, Some(reason)) => SendRequestError::Closed(reason),
            _ => error,
        }
    }

    /// Records the position in the output at which the last request ends, if its body is finished.
    /// Earlier requests have ended before it.
    fn record_request_end(&mut self) {
        if self.sender.is_finished()
            && let Some(exchange) = self.exchanges.back_mut()
        {
            exchange.end.get_or_insert(self.sender.output.end_position());
        }
    }

    /// Returns all bytes that are ready to send, as one slice.
    pub fn output(&self) -> &[u8] {
        self.sender.output.pending()
    }

    /// Records that the transport accepted `n` bytes of [`H1Machine::output`]. Call it before
    /// passing received bytes to [`H1Machine::step`]: a response to an unsent request is an error.
    pub fn advance_output(&mut self, n: usize) {
        self.sender.output.advance(n);
    }

    /// Reads the next event from `input`, which must begin at the first byte that earlier calls did
    /// not consume.
    ///
    /// Call `step` until it returns [`H1Event::NeedInput`] or [`H1Event::Complete`]. After
    /// [`H1Event::NeedInput`], read more. After [`H1Event::Complete`], go on if the connection is
    /// reused and more requests are [unanswered](H1Machine::unanswered). After `Complete` with a
    /// reason to close, after a tunnel and after an error, no more can be read
    /// ([`ResponseError::Closed`]).
    pub fn step(&mut self, now: MonotonicTimestamp, input: &mut [u8]) -> Result<H1Step, H1Error> {
        self.handle_timeout(now);
        let result = self.receive(input);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    /// Records that the peer closed its side of the connection. `clean` is false if the transport
    /// uses an end mark (TLS close_notify) and the mark did not arrive.
    ///
    /// Returns [`H1Event::Complete`] if the response may end here, otherwise an error that names
    /// the truncated part. Pass all input to [`H1Machine::step`] first.
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
        self.failed_in_head = self.receiver.expects_head();
        self.close(reason);
    }

    /// Closes the connection: it reads no more input and accepts no request. If the connection is
    /// closed already, the earlier reason is kept.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.closing.get_or_insert(reason);
        self.receiver.close();
        self.sender.abandon_body();
    }

    /// Returns `true` if at least one byte of this request has been sent.
    pub(crate) fn has_sent_any_of(&self, exchange: &UnansweredRequest) -> bool {
        self.sender.output.sent_bytes() > exchange.start
    }

    /// Returns `true` if all bytes of this request have been sent.
    pub(crate) fn has_sent_all_of(&self, exchange: &UnansweredRequest) -> bool {
        exchange.end.is_some_and(|end| self.sender.output.sent_bytes() >= end)
    }

    /// Returns the number of payload bytes that come next in the input. The caller may itself move
    /// up to this number of bytes from the socket to their destination, without
    /// [`H1Machine::step`]. Returns `None` if other bytes may come next.
    ///
    /// First pass the bytes that the caller has already read into its buffer to
    /// [`H1Machine::step`].
    pub fn direct_body(&self) -> Option<u64> {
        self.receiver.direct_body_bytes()
    }

    /// Returns `true` if [`H1Machine::step`] has returned all of a body of known length, so that
    /// [`H1Event::Complete`] comes next.
    pub fn is_at_body_end(&self) -> bool {
        self.receiver.is_at_body_end()
    }

    /// Records that the caller itself read `n` payload bytes of the response's body from the
    /// transport, as [`H1Machine::direct_body`] allows. Returns [`H1Event::Complete`] if these
    /// bytes end the response, otherwise `None`. Also returns `None` if the response ended before
    /// its request was sent completely; [`H1Machine::has_completion_to_report`] becomes true when
    /// the request has been sent.
    ///
    /// To report more bytes than [`H1Machine::direct_body`] allows is a bug of the caller: debug
    /// builds panic, other builds count only the allowed bytes.
    pub fn advance_body(&mut self, n: u64) -> Option<H1Event> {
        let is_whole = self.receiver.advance_direct_body(n);
        is_whole.then(|| self.complete_response(None, false)).filter(|event| *event != H1Event::NeedInput)
    }

    /// Returns the id of the request whose response is being read, or is read next; `None` if no
    /// request is unanswered.
    pub fn current_request(&self) -> Option<RequestId> {
        self.exchanges.front().map(|exchange| exchange.id)
    }

    /// Iterates over the ids of the requests without a complete response, in the order in which
    /// they were enqueued. After the connection broke, the caller may send them again on another
    /// connection. The first of them is an exception: it may be sent again only if
    /// [`H1Machine::response_started`] is false.
    pub fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.exchanges.iter().map(|exchange| exchange.id)
    }

    /// Returns `true` if at least one byte of the response to the
    /// [current](H1Machine::current_request) request was received.
    pub fn response_started(&self) -> bool {
        self.receiver.has_started()
    }

    /// Returns the time at which to call [`H1Machine::handle_timeout`]; `None` if no timeout is
    /// running. Only a request that waits for `100 Continue` has a timeout.
    pub fn poll_timeout(&self) -> Option<MonotonicTimestamp> {
        self.sender.continue_deadline()
    }

    /// Ends the wait for `100 Continue` if its deadline has passed at `now`. Call
    /// [`H1Machine::body_credit`] afterwards.
    pub fn handle_timeout(&mut self, now: MonotonicTimestamp) {
        if self.sender.continue_deadline().is_some_and(|until| until <= now) {
            self.sender.end_continue_wait();
        }
    }

    /// Returns `true` if the connection is open, has nothing to send, and has no unanswered
    /// request.
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.exchanges.is_empty() && self.output().is_empty()
    }

    /// Returns the reason why the connection accepts no further request; `None` while it accepts
    /// requests. The reason is known as soon as the response head that causes it has been read.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.closing
    }
}
