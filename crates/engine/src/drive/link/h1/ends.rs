//! The end of exchanges and of the connection.

use haul_proto::ResponseError;
use std::io;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_proto::h1::{self, CloseReason, Event};

use super::super::{Finished, Progress};
use super::Link;
use super::direct::Direct;
use crate::transfer::{After, Broke};
use crate::{Error, ErrorKind};

impl Link {
    /// Ends the transfer under way because it has all that it wants of a response that continues.
    pub(super) fn leave_off(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        self.closing = true;
        self.finish_front(now, finished);
        self.close(now, finished)
    }

    pub(super) fn broke(&mut self, error: io::Error, now: Instant, finished: &mut Finished) -> Progress {
        self.reset = true;
        // The peer's reset ends a body that lasts until then, too: never as a success.
        let error = if self.conn.response_started() {
            Error::with_source(ErrorKind::Receive, "the connection broke", error)
        } else {
            Error::with_source(ErrorKind::Receive, "the connection broke before the response", error)
        };
        self.break_off(error, now, finished)
    }

    pub(super) fn finish_front(&mut self, now: Instant, finished: &mut Finished) {
        self.direct = Direct::Undecided;
        if let Some(mut transfer) = self.queue.pop_front() {
            self.closing |= transfer.may_be_unread();
            if !self.closing {
                transfer.on_kept();
            }
            // The range and the validator of a part say whose it is.
            if !transfer.is_part() && self.turn.holds(transfer.reuse.is_pipelined()) {
                return self.turn.hold(transfer, self.queue.is_empty(), now);
            }
            let after = transfer.on_complete(now);
            finished.push((transfer, after));
            self.closing |= self.is_single && self.queue.is_empty();
        }
    }

    /// Handles the end of the stream by the peer; `clean` if TLS or the tunnel's stream announced
    /// it.
    pub(super) fn end(&mut self, clean: bool, now: Instant, finished: &mut Finished) -> Progress {
        if self.queue.is_empty() {
            return self.close(now, finished);
        }
        if let Some(error) = self.send_error.take() {
            return self.broke(error, now, finished);
        }
        match self.conn.end_of_input(clean || !self.stream.is_secure()) {
            Ok(Event::Complete { .. }) => {
                self.closing = true;
                self.finish_front(now, finished);
                self.close(now, finished)
            }
            Ok(_) => self.close(now, finished),
            Err(error) => self.break_off(from_machine(error), now, finished),
        }
    }

    /// Closes a connection that cannot continue: the transfer at the front fails with `error`, the
    /// others with it.
    pub fn break_off(&mut self, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        if let Some(mut transfer) = self.queue.pop_front() {
            let broke = match (self.conn.response_started(), self.served) {
                _ if self.violated => Broke::ByProtocol,
                (true, _) => Broke::InResponse,
                (false, 0) => Broke::BeforeResponse,
                (false, _) => Broke::WhileStale,
            };
            self.misbehaved |= transfer.reuse.is_pipelined() && self.has_broken_its_word();
            let after = transfer.on_failure(error, broke, now);
            finished.push((transfer, after));
        }
        self.close(now, finished)
    }

    /// Returns true if the peer ended the connection in an unexpected way.
    fn has_broken_its_word(&self) -> bool {
        match self.conn.close_reason() {
            Some(CloseReason::PeerClosed | CloseReason::Broken | CloseReason::UnsolicitedBytes) => true,
            Some(_) => self.served < 2,
            None => self.reset,
        }
    }

    /// Gives back the unanswered transfers: their requests may be sent again where that is safe
    /// (RFC 9112 section 9.3.2).
    pub(super) fn close(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        self.closing = true;
        self.settle_turn(now, finished);
        if !self.queue.is_empty() {
            self.misbehaved |= self.has_broken_its_word();
            self.allowance.left_some(self.served);
        }
        for mut transfer in self.queue.drain(..) {
            let after = if is_idempotent(transfer.method()) {
                After::Again(Duration::ZERO)
            } else {
                let error = Error::new(ErrorKind::EmptyReply, "the connection closed before the response");
                transfer.on_failure(error, Broke::BeforeResponse, now)
            };
            finished.push((transfer, after));
        }
        Progress::Closed
    }
}

/// Returns true if the peer violated the protocol. Unsolicited bytes do not count: mostly, they are
/// a last message that crossed the request (a 408 on an idle connection).
pub(super) fn is_violation(error: h1::Error) -> bool {
    !error.is_early_end()
        && !matches!(error, h1::Error::UnsolicitedBytes | h1::Error::Response(ResponseError::Closed(_)))
}

/// The error kind, and so the exit code, for a protocol error of the machine.
pub(super) fn from_machine(error: h1::Error) -> Error {
    let kind = match error {
        h1::Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse)
        | h1::Error::EndedInStatusLine { .. } => ErrorKind::EmptyReply,
        h1::Error::EndedInRequest => ErrorKind::Send,
        h1::Error::EndedInBody { .. } | h1::Error::EndedInChunks { .. } => ErrorKind::PartialBody,
        h1::Error::NotHttp | h1::Error::StatusLine | h1::Error::UnsupportedVersion { .. } => {
            ErrorKind::UnsupportedScheme
        }
        h1::Error::Field(_) | h1::Error::Response(ResponseError::ContentLength(_)) | h1::Error::UnexpectedUpgrade => {
            ErrorKind::Protocol
        }
        h1::Error::TransferCoding(_) => ErrorKind::ContentCoding,
        _ => ErrorKind::Receive,
    };
    Error::new(kind, error.to_string())
}
