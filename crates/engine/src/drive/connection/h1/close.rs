//! Ends exchanges, and closes the connection.

use haul_proto::ResponseError;
use std::io;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_proto::h1::{self, CloseReason, H1Event};
use haul_proto::response_head::ResponseHead;

use super::super::{FinishedTransfers, ReceiveStatus};
use super::H1Connection;
use super::zero_copy_to_sink::ZeroCopyDecision;
use crate::transfer::{ExchangeFailurePoint, TransferStep};
use crate::{Error, ErrorKind};

impl H1Connection {
    /// Closes the connection in the middle of a response, because its transfer needs no more of the
    /// body. Ends the transfer.
    pub(super) fn stop_response(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        self.closing = true;
        self.finish_front(now, finished);
        self.close(now, finished)
    }

    pub(super) fn on_io_error(
        &mut self,
        error: io::Error,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        self.was_reset = true;
        // The peer's reset ends a body that lasts until then, too: never as a success.
        let error = if self.conn.response_started() {
            Error::with_source(ErrorKind::Receive, "the connection broke", error)
        } else {
            Error::with_source(ErrorKind::Receive, "the connection broke before the response", error)
        };
        self.abort(error, now, finished)
    }

    pub(super) fn finish_front(&mut self, now: Instant, finished: &mut FinishedTransfers) {
        self.direct = ZeroCopyDecision::Undecided;
        if let Some(mut transfer) = self.queue.pop_front() {
            match self.queue.front_mut() {
                Some(next) => next.on_slot_granted(now),
                None => self.content.end(),
            }
            self.closing |= transfer.content_may_be_unread() || transfer.options().closes_connection;
            if !self.closing {
                transfer.on_connection_kept();
            }
            self.closing |= self.is_cut && self.queue.is_empty();
            // The range and the validator of a part already show that it is the right response.
            if !transfer.is_part() && self.pipelined.must_hold_back(transfer.reuse.is_pipelined()) {
                return self.pipelined.hold_back(transfer, self.queue.is_empty(), now);
            }
            let after = transfer.on_complete(now);
            finished.push((transfer, after));
            self.closing |= self.is_one_request_only && self.queue.is_empty();
        }
    }

    /// Handles the end of input on the connection. `clean` is true if the peer announced the end:
    /// by TLS `close_notify`, or by the end of the tunnel's stream.
    pub(super) fn on_peer_close(
        &mut self,
        clean: bool,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        if self.queue.is_empty() {
            return self.close(now, finished);
        }
        if let Some(error) = self.send_error.take() {
            return self.on_io_error(error, now, finished);
        }
        match self.conn.end_of_input(clean || !self.stream.is_secure()) {
            Ok(H1Event::Complete { .. }) => {
                self.closing = true;
                if let Some(transfer) = self.queue.front_mut() {
                    transfer.mark_record_complete();
                }
                self.finish_front(now, finished);
                self.close(now, finished)
            }
            Ok(_) => self.close(now, finished),
            Err(error) => {
                let error = match self.partial_head() {
                    // The rest of the head is missing, and with it the announced content.
                    Some(head) if head.get("content-length").is_some() => {
                        Error::new(ErrorKind::PartialBody, error.to_string())
                    }
                    _ => protocol_error(error),
                };
                self.abort(error, now, finished)
            }
        }
    }

    /// Parses the incomplete response head in the buffer `tail`, after the connection has ended too
    /// early. Passes the complete lines of the head to the transfer, and returns them. Returns
    /// `None` if the transfer does not accept partial heads.
    fn partial_head(&mut self) -> Option<ResponseHead> {
        let transfer = self.queue.front_mut().filter(|transfer| transfer.wants_partial_heads())?;
        let head = self.conn.partial_head(&self.tail)?;
        transfer.on_partial_head(head.clone());
        Some(head)
    }

    /// Closes a connection after an error. The first transfer on the connection fails with `error`.
    /// The other transfers may be retried.
    pub fn abort(&mut self, error: Error, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        if let Some(mut transfer) = self.queue.pop_front() {
            let broke = match (self.conn.response_started(), self.served) {
                _ if self.is_headless => ExchangeFailurePoint::WhileStale,
                _ if self.peer_violated_protocol => ExchangeFailurePoint::ByProtocol,
                (true, _) => ExchangeFailurePoint::InResponse,
                (false, 0) => ExchangeFailurePoint::BeforeResponse,
                (false, _) => ExchangeFailurePoint::WhileStale,
            };
            // What looks like a malformed head may be the content of an earlier response that must
            // have none, such as a 204. Nothing precedes the first response of a connection.
            // curl reports such a response.
            let is_pipelined = transfer.reuse.is_pipelined();
            let is_shifted = self.peer_violated_protocol
                && self.served > 0
                && transfer.awaits_head()
                && is_idempotent(transfer.method())
                && (is_pipelined || transfer.may_resend() && !transfer.wants_partial_heads());
            self.breaks_pipelining |= is_shifted || is_pipelined && self.closed_unexpectedly();
            let after = match is_shifted {
                true if is_pipelined => transfer.retract_response(now),
                true => transfer.repeat_on_new_connection(now),
                false => transfer.on_failure(error, broke, now),
            };
            finished.push((transfer, after));
        }
        self.close(now, finished)
    }

    /// Returns the position in the queue of the first transfer that has exceeded its deadline.
    pub(super) fn first_overdue(&self, now: Instant) -> Option<usize> {
        self.queue.iter().position(|transfer| transfer.deadline().is_some_and(|deadline| deadline <= now))
    }

    /// Fails the transfer at the index `at` of the queue, whose deadline has passed. Also removes
    /// the transfers behind it, because their responses come only after the one that is missing.
    /// The removed transfers are sent again on other connections. The transfers before `at` keep
    /// the connection.
    pub(super) fn cut_queue(&mut self, at: usize, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        self.is_cut = true;
        let mut removed = self.queue.drain(at..);
        if let Some(mut overdue) = removed.next() {
            let after = overdue.on_failure(Error::timed_out(), ExchangeFailurePoint::BeforeResponse, now);
            finished.push((overdue, after));
        }
        // Only requests with idempotent methods are pipelined.
        finished.extend(removed.map(|transfer| (transfer, TransferStep::Again(Duration::ZERO))));
        ReceiveStatus::More
    }

    /// Returns true if the peer closed the connection without announcing it. Some requests may then
    /// be unanswered.
    fn closed_unexpectedly(&self) -> bool {
        match self.conn.close_reason() {
            Some(CloseReason::PeerClosed | CloseReason::Broken | CloseReason::UnsolicitedBytes) => true,
            Some(_) => self.served < 2,
            None => self.was_reset,
        }
    }

    /// Closes the connection, and adds its transfers without a response to `finished`. A request
    /// with an idempotent method will be sent again (RFC 9112 section 9.3.2). For any other
    /// request, the retry rules of its transfer decide.
    pub(super) fn close(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        self.closing = true;
        self.accept_or_retry_pipeline(now, finished);
        if !self.queue.is_empty() {
            self.breaks_pipelining |= self.closed_unexpectedly();
            self.pipeline_limit.on_unanswered(self.served);
        }
        for mut transfer in self.queue.drain(..) {
            let after = if is_idempotent(transfer.method()) {
                TransferStep::Again(Duration::ZERO)
            } else {
                let error = Error::new(ErrorKind::EmptyReply, "the connection closed before the response");
                transfer.on_failure(error, ExchangeFailurePoint::BeforeResponse, now)
            };
            finished.push((transfer, after));
        }
        ReceiveStatus::Closed
    }
}

/// Returns true if `error` shows that the peer violated the protocol. Unsolicited bytes are not a
/// violation: usually, they are a message that the peer sent before it received the request (such
/// as a 408 on an idle connection).
pub(super) fn is_violation(error: h1::H1Error) -> bool {
    !error.is_early_end()
        && !matches!(error, h1::H1Error::UnsolicitedBytes | h1::H1Error::Response(ResponseError::Closed(_)))
}

/// Converts an error of the protocol machine to an [`Error`], whose kind determines the command's
/// exit code.
pub(super) fn protocol_error(error: h1::H1Error) -> Error {
    let kind = match error {
        h1::H1Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse)
        | h1::H1Error::EndedInStatusLine { .. } => ErrorKind::EmptyReply,
        h1::H1Error::EndedInRequest => ErrorKind::Send,
        h1::H1Error::EndedInBody { .. } | h1::H1Error::EndedInChunks { .. } => ErrorKind::PartialBody,
        h1::H1Error::NotHttp { first: false } | h1::H1Error::UnsupportedVersion { major: 2 | 3, .. } => {
            ErrorKind::Protocol
        }
        h1::H1Error::NotHttp { .. } | h1::H1Error::StatusLine | h1::H1Error::UnsupportedVersion { .. } => {
            ErrorKind::UnsupportedScheme
        }
        h1::H1Error::Response(ResponseError::TooManyFields { .. }) => ErrorKind::HeadTooLarge,
        h1::H1Error::Field(_)
        | h1::H1Error::Response(ResponseError::ContentLength(_))
        | h1::H1Error::UnexpectedUpgrade => ErrorKind::Protocol,
        h1::H1Error::TransferCoding(_) => ErrorKind::ContentCoding,
        _ => ErrorKind::Receive,
    };
    Error::new(kind, error.to_string())
}
