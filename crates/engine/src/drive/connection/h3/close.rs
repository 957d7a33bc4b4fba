//! Ends streams, and closes the connection.

use std::time::Instant;

use haul_proto::h3::{H3Error, H3ErrorCode, H3ResetReason, RequestId};

use super::super::replay_decision::{LostRequest, ResetRequest};
use super::super::{FinishedTransfers, ReceiveStatus};
use super::{H3ActiveStream, H3Connection};
use crate::transfer::ExchangeFailurePoint;
use crate::{Error, ErrorKind};

impl H3Connection {
    pub(super) fn on_reset(
        &mut self,
        id: u64,
        reason: H3ResetReason,
        retryable: bool,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        let started = self.active.get(&id).is_some_and(|active| active.transfer.facts.body_bytes > 0);
        let Some(mut active) = self.remove_stream(id) else { return };
        let is_refused = reason == H3ResetReason::Peer(H3ErrorCode::REQUEST_REJECTED);
        if is_refused {
            self.pipeline_limit.on_refusal();
        }
        // A refusal costs the request no replay if the server has completed another response since
        // the request was sent.
        let is_uncounted = match reason {
            H3ResetReason::GoAway => self.closes_with_progress,
            _ => is_refused && self.served > active.served_before,
        };
        let broke = match reason {
            H3ResetReason::Violation(error) if !error.is_early_end() => ExchangeFailurePoint::ByProtocol,
            _ if started => ExchangeFailurePoint::InResponse,
            _ => ExchangeFailurePoint::BeforeResponse,
        };
        let request = ResetRequest { retryable, is_uncounted, is_only_request: self.active.is_empty(), broke };
        let wants_older = reason == H3ResetReason::Peer(H3ErrorCode::VERSION_FALLBACK);
        let error = Error::new(ErrorKind::Http3, reason.to_string());
        let after = request
            .next_step(&mut active.transfer, now, error, |transfer| wants_older && transfer.fall_back_from_http3());
        finished.push((active.transfer, after));
    }

    /// Resets a stream because its transfer needs no more of the body, and ends the transfer.
    pub(super) fn cancel_rest(&mut self, id: u64, now: Instant, finished: &mut FinishedTransfers) {
        self.machine.reset(RequestId(id), H3ErrorCode::REQUEST_CANCELLED);
        if let Some(mut active) = self.remove_stream(id) {
            let after = active.transfer.on_complete(now);
            finished.push((active.transfer, after));
        }
    }

    pub(super) fn fail(
        &mut self,
        id: u64,
        error: Error,
        broke: ExchangeFailurePoint,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        self.machine.reset(RequestId(id), H3ErrorCode::REQUEST_CANCELLED);
        if let Some(mut active) = self.remove_stream(id) {
            let after = active.transfer.on_failure(error, broke, now);
            finished.push((active.transfer, after));
        }
    }

    /// Removes and returns a stream; `None` if there is no such stream.
    pub(super) fn remove_stream(&mut self, id: u64) -> Option<H3ActiveStream> {
        let active = self.active.remove(&id)?;
        self.time_limited -= usize::from(active.transfer.has_time_limit());
        self.stalled.remove(id);
        Some(active)
    }

    /// Records that the peer violated the protocol, and returns the error.
    pub(super) fn on_violation(&mut self, error: H3Error) -> Error {
        self.close_code = error.code();
        protocol_error(error)
    }

    /// Closes a connection after an error. Its transfers are added to `finished`, to be retried
    /// where that is safe.
    pub fn abort(&mut self, error: Error, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        self.closing = true;
        let (kind, cause) = (error.kind(), error.cause());
        let by_protocol = self.close_code != H3ErrorCode::NO_ERROR;
        self.quic.close(self.close_code.0, if by_protocol { &cause } else { "" }, now);
        if self.unanswered_before(u64::MAX) > 0 {
            self.pipeline_limit.on_unanswered(self.answered);
        }
        let mut error = Some(error);
        let mut ids: Vec<u64> = self.active.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let lost = LostRequest {
                has_response: self.machine.response_started(RequestId(id)),
                was_sent: self.machine.has_sent_any_of(RequestId(id)),
                was_served: self.served > 0,
                by_protocol,
            };
            let Some(mut active) = self.active.remove(&id) else { continue };
            let after = lost.next_step(&mut active.transfer, now, |broke| {
                let error = error.take().unwrap_or_else(|| Error::new(kind, cause.clone()));
                match broke {
                    ExchangeFailurePoint::InResponse => error.about("the response is incomplete"),
                    ExchangeFailurePoint::BeforeResponse => error.about("no response arrived"),
                    _ => error,
                }
            });
            finished.push((active.transfer, after));
        }
        self.time_limited = 0;
        ReceiveStatus::Closed
    }
}

/// Converts an error of the protocol machine to an [`Error`], whose kind determines the command's
/// exit code.
pub(super) fn protocol_error(error: H3Error) -> Error {
    let kind = if error.is_early_end() { ErrorKind::Receive } else { ErrorKind::Http3 };
    Error::new(kind, error.to_string())
}
