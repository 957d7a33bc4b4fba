//! Decides whether a request on a shared connection is sent again after its stream was reset or its
//! connection was lost. The rules are the same for HTTP/2 and HTTP/3.
//!
//! ```text
//!  stream reset ─────▶ pause_before_replay ─────▶ again, or Transfer::on_failure
//!  connection lost ──▶ next_step ──────▶ again, or Transfer::on_failure
//! ```

use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;

use crate::Error;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};

/// The number of times that one transfer's request may be repeated after a refusal without counting
/// as a retry. The server may be restarting, or may accept fewer streams than it announced.
const FREE_REPLAYS: u8 = 3;

/// Returns the pause before the request of a reset stream is sent again; `None` if it is not. The
/// server must not have processed the request (`retryable`), and at most [`FREE_REPLAYS`]
/// repetitions are allowed. This repetition does not count if `is_uncounted` is true. The function
/// `error` returns the reason of the reset, with which a pause is reported.
///
/// The first repetition follows at once. Before a further one, a server that may be overloaded gets
/// the pause of a retry ([`Transfer::backoff`]).
///
/// The request is sent again on a new connection in two cases: the allowed repetitions are used up,
/// or this repetition counts and the connection has no other request (`is_only_request`).
pub(super) fn pause_before_replay(
    transfer: &mut Transfer,
    retryable: bool,
    is_uncounted: bool,
    is_only_request: bool,
    error: impl FnOnce() -> Error,
    now: Instant,
) -> Option<Duration> {
    if !retryable || transfer.has_spent_content() {
        return None;
    }
    transfer.attempt.replays = transfer.attempt.replays.saturating_add(u8::from(!is_uncounted));
    let replays = transfer.attempt.replays;
    let pause = match replays.checked_sub(2) {
        _ if replays > FREE_REPLAYS => return None,
        Some(earlier) if !is_uncounted => transfer.backoff(earlier.into(), &error(), now)?,
        _ => Duration::ZERO,
    };
    // A connection that refuses its only request, or one request repeatedly, may be about to close.
    // The next attempt uses another connection.
    transfer.reuse.needs_new_connection |= is_only_request && !is_uncounted || replays == FREE_REPLAYS;
    Some(pause)
}

/// Returns the error of a request that the server did not process, for the reason `error`, if its
/// content prevents sending it again; otherwise `error`.
pub(super) fn refusal_error(transfer: &Transfer, retryable: bool, error: Error) -> Error {
    match transfer.resend_error() {
        Some(content) if retryable => content.about(&error.cause()),
        _ => error,
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
