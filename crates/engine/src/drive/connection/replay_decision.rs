//! Decides whether a request on a shared connection is sent again after its stream was reset or its
//! connection was lost. The rules are the same for HTTP/2 and HTTP/3.
//!
//! ```text
//!  stream reset ─────▶ may_replay_after_reset ─────▶ again, or Transfer::on_failure
//!  connection lost ──▶ next_step ──────▶ again, or Transfer::on_failure
//! ```

use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;

use crate::Error;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};

/// The number of times that one transfer's request may be repeated after a refusal without counting
/// as a retry. The server may be restarting, or may accept fewer streams than it announced.
const FREE_REPLAYS: u32 = 3;

/// Returns true if the request of a reset stream must be sent again. The server must not have
/// processed the request (`retryable`), and at most [`FREE_REPLAYS`] repetitions are allowed. This
/// repetition does not count if `is_uncounted` is true.
///
/// The request is sent again on a new connection in two cases: the allowed repetitions are used up,
/// or this repetition counts and the connection has no other request (`is_only_request`).
pub(super) fn may_replay_after_reset(
    transfer: &mut Transfer,
    retryable: bool,
    is_uncounted: bool,
    is_only_request: bool,
) -> bool {
    transfer.attempt.replays += u32::from(retryable && !is_uncounted);
    let is_again = retryable && transfer.attempt.replays <= FREE_REPLAYS;
    // A connection that refuses its only request, or one request repeatedly, may be about to close.
    // The next attempt uses another connection.
    let is_doubtful = is_only_request && !is_uncounted || transfer.attempt.replays == FREE_REPLAYS;
    transfer.reuse.needs_new_connection |= is_again && is_doubtful;
    is_again
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
    /// [`FREE_REPLAYS`] times, if the server did not violate the protocol and one of these is true:
    /// the request was not sent; or its method is idempotent, its response has not begun, and the
    /// connection has served another request. Otherwise, the exchange fails with the error that the
    /// function `error` returns, and the transfer's retry rules decide whether the transfer is
    /// tried again later or ends.
    pub(super) fn next_step(
        &self,
        transfer: &mut Transfer,
        now: Instant,
        error: impl FnOnce(ExchangeFailurePoint) -> Error,
    ) -> TransferStep {
        // A request that was sent with a method that is not idempotent is not repeated, as in curl.
        let is_new = !self.was_sent || (!self.has_response && self.was_served && is_idempotent(transfer.method()));
        transfer.attempt.replays += 1;
        if is_new && !self.by_protocol && transfer.attempt.replays <= FREE_REPLAYS {
            transfer.reuse.needs_new_connection = true;
            return TransferStep::Again(Duration::ZERO);
        }
        let broke = match (self.by_protocol, self.has_response) {
            (true, _) => ExchangeFailurePoint::ByProtocol,
            (_, true) => ExchangeFailurePoint::InResponse,
            _ => ExchangeFailurePoint::BeforeResponse,
        };
        transfer.on_failure(error(broke), broke, now)
    }
}
