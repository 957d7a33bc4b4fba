//! The connection: requests in, events out.
//!
//! A driver calls, in this order: [`Conn::enqueue`] (and [`Conn::send_body`], [`Conn::finish_body`] as [`Conn::body_credit`] allows), then
//! [`Conn::output`] and [`Conn::advance_output`] for what its socket took, then [`Conn::step`] with what its socket gave, until [`Event::NeedInput`]
//! or [`Event::Complete`]. The reading half is in `receive.rs`; the state diagram and an example are in [`h1`](super).

use super::framing::AnswerTo;
use super::receive::Receiver;
use super::request::{self, BodyLength, Facts, Request, RequestError};
use super::send::Sender;
use super::{CloseReason, Config, Error, Event, RequestId, Step};
use crate::time::Time;
use alloc::collections::VecDeque;

/// A request that has no complete answer yet.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) id: RequestId,
    pub(crate) facts: Facts,
    /// Where its first byte stands in the output.
    start: u64,
    /// Where its last byte ends, once that is known.
    end: Option<u64>,
}

/// One HTTP/1 connection, client side.
#[derive(Debug)]
pub struct Conn {
    pub(crate) config: Config,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) exchanges: VecDeque<Exchange>,
    next_id: u64,
    pub(crate) closing: Option<CloseReason>,
}

impl Conn {
    /// A connection that is open and has carried nothing yet.
    pub fn new(mut config: Config) -> Conn {
        // Offsets in a head are 32 bits wide.
        config.limits.head_bytes = config.limits.head_bytes.min(u32::MAX as usize);
        config.limits.trailer_bytes = config.limits.trailer_bytes.min(u32::MAX as usize);
        config.max_pipeline = config.max_pipeline.max(1);
        Conn {
            config,
            sender: Sender::default(),
            receiver: Receiver::default(),
            exchanges: VecDeque::new(),
            next_id: 0,
            closing: None,
        }
    }

    /// Would [`Conn::enqueue`] take a (valid) request now?
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
        } else if last.facts.upgrade || last.facts.answer_to == AnswerTo::Connect {
            Some(RequestError::TunnelPending)
        } else if !self.sender.is_finished() {
            Some(RequestError::BodyPending)
        } else if self.exchanges.len() >= self.config.max_pipeline {
            Some(RequestError::PipelineFull { limit: self.config.max_pipeline })
        } else {
            None
        }
    }

    /// Appends a request's head to the output. On an error nothing has changed.
    pub fn enqueue(&mut self, now: Time, request: &Request<'_>) -> Result<RequestId, RequestError> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let facts = request::check(request)?;
        if self.config.liberties.http10 && request.body == BodyLength::Chunked {
            return Err(RequestError::ChunksInHttp10);
        }
        let start = self.sender.output.position();
        request::write(request, &facts, self.config.liberties.http10, self.sender.output.tail());
        self.sender.begin(request.body, request.expect_continue.then(|| now + self.config.expect_timeout));
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.exchanges.push_back(Exchange { id, facts, start, end: None });
        self.note_end();
        Ok(id)
    }

    /// How many bytes of the last request's body can be taken now; `None` if no body bytes are expected, or none any longer. At most 64 KiB wait in
    /// the output.
    pub fn body_credit(&self) -> Option<u64> {
        self.sender.credit()
    }

    /// Appends body bytes to the output, as a chunk when the body is chunked, and returns how many it took: all of them, or as many as
    /// [`Conn::body_credit`] said. A body of known length is finished with its last byte.
    ///
    /// What is given right after [`Conn::enqueue`] stands behind the head in one output slice.
    pub fn send_body(&mut self, data: &[u8]) -> Result<usize, RequestError> {
        let taken = self.sender.send(data).map_err(|error| self.or_closed(error))?;
        self.note_end();
        Ok(taken)
    }

    /// Ends a chunked body, with trailers if there are any; for a body of known length, checks that all of it was given.
    pub fn finish_body(&mut self, trailers: &[(&str, &[u8])]) -> Result<(), RequestError> {
        self.sender.finish(trailers)?;
        self.note_end();
        Ok(())
    }

    /// Closing drops the body that was being sent; report that, rather than that there was no body.
    fn or_closed(&self, error: RequestError) -> RequestError {
        match (error, self.closing) {
            (RequestError::NoBodyExpected, Some(reason)) => RequestError::Closed(reason),
            _ => error,
        }
    }

    /// Only the last request can have an unfinished body.
    fn note_end(&mut self) {
        if self.sender.is_finished()
            && let Some(exchange) = self.exchanges.back_mut()
        {
            exchange.end.get_or_insert(self.sender.output.position());
        }
    }

    /// Bytes to be sent, in one piece.
    pub fn output(&self) -> &[u8] {
        self.sender.output.pending()
    }

    /// The transport took so many bytes of [`Conn::output`]. Call it before the bytes that answer them are given to [`Conn::step`]: a response to a
    /// request that was not sent is an error.
    pub fn advance_output(&mut self, n: usize) {
        self.sender.output.advance(n);
    }

    /// Reads the next thing from the input, which begins at the first byte that was not consumed before.
    ///
    /// Call it until it answers [`Event::NeedInput`] (then read more) or [`Event::Complete`] (then call on if the
    /// connection is reused and more is [unanswered](Conn::unanswered)). After `Complete` with a reason to close, after
    /// a tunnel and after an error there is nothing to read any more ([`Error::Closed`]).
    pub fn step(&mut self, now: Time, input: &mut [u8]) -> Result<Step, Error> {
        self.handle_timeout(now);
        let result = self.receive(input);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    /// The peer closed its side. `clean` is false where the transport has an end mark and it did not come (TLS without
    /// close_notify).
    ///
    /// Gives [`Event::Complete`] if the response may end here, else an error that names what was cut off. All input must have been given to
    /// [`Conn::step`] before.
    pub fn end_of_input(&mut self, clean: bool) -> Result<Event, Error> {
        let result = self.receive_end(clean);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    fn fail(&mut self, error: Error) {
        let reason = match error {
            Error::Closed(_) => return,
            Error::UnsolicitedBytes => CloseReason::UnsolicitedBytes,
            error if error.is_early_end() => CloseReason::PeerClosed,
            _ => CloseReason::Broken,
        };
        self.close(reason);
    }

    /// Nothing is read or begun any more. The first reason stays.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.closing.get_or_insert(reason);
        self.receiver.close();
        self.sender.abandon();
    }

    /// Has a byte of this request been sent?
    pub(crate) fn has_left(&self, exchange: &Exchange) -> bool {
        self.sender.output.sent() > exchange.start
    }

    /// Has all of this request been sent?
    pub(crate) fn has_left_wholly(&self, exchange: &Exchange) -> bool {
        exchange.end.is_some_and(|end| self.sender.output.sent() >= end)
    }

    /// `Some(remaining)` if the next bytes on the wire are that many bytes of payload: the driver may move up to that many from the socket to their
    /// destination without passing them through here.
    ///
    /// Bytes that are in the driver's buffer already go through [`Conn::step`] first.
    pub fn direct_body(&self) -> Option<u64> {
        self.receiver.direct()
    }

    /// Reports bytes moved under [`Conn::direct_body`]. Gives [`Event::Complete`] when that was all, unless the rest of the request has to leave
    /// first: then [`Conn::has_due`] says when.
    ///
    /// Reporting more than was granted is a bug in the driver: it panics in debug builds, and counts as the grant otherwise.
    pub fn advance_body(&mut self, n: u64) -> Option<Event> {
        let is_whole = self.receiver.advance_direct(n);
        is_whole.then(|| self.complete(None, false)).filter(|event| *event != Event::NeedInput)
    }

    /// The request whose response comes next.
    pub fn current(&self) -> Option<RequestId> {
        self.exchanges.front().map(|exchange| exchange.id)
    }

    /// Requests without a complete response, in order. After a break they may be replayed on another connection; the
    /// first one only if nothing of its response was [seen](Conn::response_started).
    pub fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.exchanges.iter().map(|exchange| exchange.id)
    }

    /// Has any byte of the [current](Conn::current) response been received?
    pub fn response_started(&self) -> bool {
        self.receiver.started()
    }

    /// When [`Conn::handle_timeout`] wants to be called. Only a request that waits for `100 Continue` asks for it.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.sender.hold_until()
    }

    /// Time has passed: a body that was held back long enough may go, so ask [`Conn::body_credit`] again.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.sender.hold_until().is_some_and(|until| until <= now) {
            self.sender.release();
        }
    }

    /// Is the connection open with nothing to send and nothing unanswered?
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.exchanges.is_empty() && self.output().is_empty()
    }

    /// Why no further request is taken, as soon as it is known: with the head of the response that says so.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.closing
    }
}
