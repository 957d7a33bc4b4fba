//! Discards a response that may belong to another request on the same connection.

use std::time::{Duration, Instant};

use super::resettable_state::{BodyDisposition, ResponseDecisions};
use super::{Transfer, TransferStep};
use crate::transfer_facts::TransferPhase;
use crate::{Error, ErrorKind};

impl Transfer {
    /// Returns true if the final head of the current response has not arrived, and no content of an
    /// earlier response to this transfer (before a retry, for example) is in the sink.
    pub(crate) fn awaits_head(&self) -> bool {
        matches!(self.response.disposition, BodyDisposition::Unknown) && !self.progress.has_begun
    }

    /// Sends the current request again on a new connection. This does not count as an attempt.
    pub(crate) fn repeat_on_new_connection(&mut self, now: Instant) -> TransferStep {
        self.record = None;
        self.reuse.needs_new_connection = true;
        self.facts.enter_phase(TransferPhase::Idle, now);
        TransferStep::Again(Duration::ZERO)
    }

    /// Discards a complete response that may belong to another request on the same connection.
    /// Fails the transfer if some of the content was already output. Otherwise, starts it again at
    /// the caller's target. If a redirect changed the method, or the request's content can be sent
    /// only once, the target remains the redirect's.
    pub fn retract_response(&mut self, now: Instant) -> TransferStep {
        self.response = ResponseDecisions::default();
        self.record = None;
        if !self.body.restart() {
            let message = "the server sent a response that no request had asked for, so this one may be another URL's: \
                           do without pipelining";
            return self.finish_with(Err(Error::new(ErrorKind::Receive, message)), now);
        }
        self.start_over();
        self.return_to_first_target();
        self.facts.enter_phase(TransferPhase::Idle, now);
        *self.facts = self.facts.for_next_attempt(self.facts.started);
        self.head = None;
        self.trailers = None;
        TransferStep::Again(Duration::ZERO)
    }
}
