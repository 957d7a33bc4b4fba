//! Decides whether a request on a shared connection is sent again after its stream was reset or its
//! connection was lost. The rules are the same for HTTP/2 and HTTP/3.
//!
//! ```text
//!  stream reset ─────▶ ResetRequest::next_step ──▶ again, or Transfer::on_failure
//!  connection lost ──▶ LostRequest::next_step ───▶ again, or Transfer::on_failure
//! ```

use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;

use crate::Error;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};

/// The number of times that one transfer's request may be repeated after a refusal without counting
/// as a retry. The server may be restarting, or may accept fewer streams than it announced.
const FREE_REPLAYS: u8 = 3;

/// The state of a request when its stream was reset.
pub(super) struct ResetRequest {
    /// True if the server has not processed the request.
    pub(super) retryable: bool,
    /// True if a repetition does not count towards [`FREE_REPLAYS`].
    pub(super) is_uncounted: bool,
    /// True if the connection has no other request.
    pub(super) is_only_request: bool,
    /// The point at which the exchange failed, if the request is not sent again.
    pub(super) broke: ExchangeFailurePoint,
}

impl ResetRequest {
    /// Returns the next step of the transfer after a reset with the reason `error`. The request is
    /// sent again if it is `retryable`, at most [`FREE_REPLAYS`] times, or if `falls_back` has
    /// chosen an older protocol version and returns true. Otherwise, the exchange fails.
    pub(super) fn next_step(
        &self,
        transfer: &mut Transfer,
        now: Instant,
        error: Error,
        falls_back: impl FnOnce(&mut Transfer) -> bool,
    ) -> TransferStep {
        let pause = self.pause_before_replay(transfer, &error, now);
        if falls_back(transfer) {
            return TransferStep::Again(Duration::ZERO);
        }
        if let Some(pause) = pause {
            return TransferStep::Again(pause);
        }
        let error = refusal_error(transfer, self.retryable, error);
        transfer.on_failure(error, self.broke, now)
    }

    /// Returns the pause before the request is sent again; `None` if it is not. A pause is reported
    /// with the reason `error`.
    ///
    /// The first repetition follows at once. Before a further one, a server that may be overloaded
    /// gets the pause of a retry ([`Transfer::backoff`]).
    ///
    /// The request is sent again on a new connection in two cases: the allowed repetitions are used
    /// up, or this repetition counts and the connection has no other request.
    fn pause_before_replay(&self, transfer: &mut Transfer, error: &Error, now: Instant) -> Option<Duration> {
        if !self.retryable || transfer.has_spent_content() {
            return None;
        }
        let counts = !self.is_uncounted;
        transfer.attempt.replays = transfer.attempt.replays.saturating_add(u8::from(counts));
        let replays = transfer.attempt.replays;
        let pause = match replays.checked_sub(2) {
            _ if replays > FREE_REPLAYS => return None,
            Some(earlier) if counts => transfer.backoff(earlier.into(), error, now)?,
            _ => Duration::ZERO,
        };
        // A connection that refuses its only request, or one request repeatedly, may be about to
        // close. The next attempt uses another connection.
        transfer.reuse.needs_new_connection |= self.is_only_request && counts || replays == FREE_REPLAYS;
        Some(pause)
    }
}

/// The state of a request when its connection was lost.
pub(super) struct LostRequest {
    /// True if the response had begun.
    pub(super) has_response: bool,
    /// True if bytes of the request were sent.
    pub(super) was_sent: bool,
    /// True if the server had completed at least one response on the connection.
    pub(super) was_served: bool,
    /// True if the server violated the protocol.
    pub(super) by_protocol: bool,
}

impl LostRequest {
    /// Returns the next step of the transfer. The request is sent again at once, but at most
    /// [`FREE_REPLAYS`] times, if all of these are true:
    /// * The server did not violate the protocol.
    /// * The request's content can be sent again.
    /// * The request was not sent, or may be repeated. It may be repeated if its method is
    ///   idempotent, its response has not begun, and the server has completed another response on
    ///   the connection.
    ///
    /// Otherwise, the exchange fails with the error that the function `error` returns. The
    /// transfer's retry rules then decide whether the transfer is tried again later or ends.
    pub(super) fn next_step(
        &self,
        transfer: &mut Transfer,
        now: Instant,
        error: impl FnOnce(ExchangeFailurePoint) -> Error,
    ) -> TransferStep {
        // A request that was sent with a method that is not idempotent is not repeated, as in curl.
        let is_new = !self.was_sent || (!self.has_response && self.was_served && is_idempotent(transfer.method()));
        transfer.attempt.replays = transfer.attempt.replays.saturating_add(1);
        let may_repeat = is_new && !self.by_protocol && transfer.attempt.replays <= FREE_REPLAYS;
        if may_repeat && !transfer.has_spent_content() {
            transfer.reuse.needs_new_connection = true;
            return TransferStep::Again(Duration::ZERO);
        }
        let broke = match (self.by_protocol, self.has_response) {
            (true, _) => ExchangeFailurePoint::ByProtocol,
            (_, true) => ExchangeFailurePoint::InResponse,
            _ => ExchangeFailurePoint::BeforeResponse,
        };
        let error = refusal_error(transfer, may_repeat, error(broke));
        transfer.on_failure(error, broke, now)
    }
}

/// Returns the error of a request that the server did not process, for the reason `error`, if its
/// content prevents sending it again; otherwise `error`.
fn refusal_error(transfer: &Transfer, retryable: bool, error: Error) -> Error {
    match transfer.resend_error() {
        Some(content) if retryable => content.about(&error.cause()),
        _ => error,
    }
}
