//! Ends streams, and closes the connection.

use haul_proto::ResponseError;
use std::time::Instant;

use haul_proto::h2::{self, CloseReason, ErrorCode, RequestId, ResetReason};

use super::super::replay_decision::{LostRequest, ResetRequest};
use super::super::{FinishedTransfers, ReceiveStatus};
use super::{H2ActiveStream, H2Connection};
use crate::time_conversions;
use crate::transfer::ExchangeFailurePoint;
use crate::{Error, ErrorKind};

impl H2Connection {
    pub(super) fn on_reset(
        &mut self,
        id: u64,
        reason: ResetReason,
        retryable: bool,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) {
        let started = self.active.get(&id).is_some_and(|active| active.transfer.facts.body_bytes > 0);
        let Some(mut active) = self.remove_stream(id, now) else { return };
        // A refusal costs the request no replay if the server made progress: if it takes few
        // requests on each connection, or few at once and had no time to announce that, and answers
        // the others.
        let is_uncounted = match reason {
            ResetReason::GoAway(ErrorCode::NO_ERROR) => self.closes_with_progress,
            ResetReason::Peer(ErrorCode::REFUSED_STREAM) => {
                active.sent_before_settings && (self.served > 0 || !self.active.is_empty())
            }
            _ => false,
        };
        if reason == ResetReason::Peer(ErrorCode::REFUSED_STREAM) {
            self.pipeline_limit.on_refusal();
        }
        let broke = match reason {
            ResetReason::Violation(error) if !error.is_early_end() => ExchangeFailurePoint::ByProtocol,
            _ if started => ExchangeFailurePoint::InResponse,
            _ => ExchangeFailurePoint::BeforeResponse,
        };
        let request = ResetRequest { retryable, is_uncounted, is_only_request: self.active.is_empty(), broke };
        let wants_older = matches!(reason, ResetReason::Peer(ErrorCode::HTTP_1_1_REQUIRED));
        let error = Error::new(ErrorKind::Http2Stream, reason.to_string());
        let after = request
            .next_step(&mut active.transfer, now, error, |transfer| wants_older && transfer.fall_back_to_http1());
        finished.push((active.transfer, after));
    }

    /// Resets a stream because its transfer needs no more of the body, and ends the transfer.
    pub(super) fn cancel_rest(&mut self, id: u64, now: Instant, finished: &mut FinishedTransfers) {
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.remove_stream(id, now) {
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
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.remove_stream(id, now) {
            let after = active.transfer.on_failure(error, broke, now);
            finished.push((active.transfer, after));
        }
    }

    /// Removes and returns a stream; `None` if there is no such stream. Gives the stream's
    /// unreleased bytes back to the connection's flow-control window, so that the peer can send
    /// more.
    pub(super) fn remove_stream(&mut self, id: u64, now: Instant) -> Option<H2ActiveStream> {
        let active = self.active.remove(&id)?;
        self.time_limited -= usize::from(active.transfer.has_time_limit());
        if active.unreleased > 0 {
            self.conn.release(time_conversions::to_monotonic_timestamp(now), RequestId(id), active.unreleased);
        }
        self.stalled.retain(|&other| other != id);
        Some(active)
    }

    /// Handles the end of input on the connection, because the peer has closed it.
    pub(super) fn on_peer_close(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        let said = self.conn.close_reason();
        let error = protocol_error(self.conn.end_of_input());
        let error = match said {
            // The GOAWAY gives the reason.
            Some(CloseReason::GoAway(code)) if error.kind() == ErrorKind::EmptyReply && code != ErrorCode::NO_ERROR => {
                Error::new(ErrorKind::Receive, CloseReason::GoAway(code).to_string())
            }
            _ => error,
        };
        self.abort(error, now, finished)
    }

    /// Closes a connection after an error. Its transfers are added to `finished`, to be retried
    /// where that is safe.
    pub fn abort(&mut self, error: Error, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        // The machine's remaining output gives the peer the reason.
        let _ = self.send_pending();
        self.closing = true;
        let (kind, cause) = (error.kind(), error.cause());
        let by_protocol = kind == ErrorKind::Http2;
        self.peer_violated_protocol |= by_protocol;
        if self.unanswered_up_to(u64::MAX) > 0 {
            self.pipeline_limit.on_unanswered(self.answered);
        }
        let mut error = Some(error);
        let mut ids: Vec<u64> = self.active.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let lost = LostRequest {
                has_response: self.conn.response_started(RequestId(id)),
                was_sent: self.conn.has_sent_any_of(RequestId(id)),
                was_served: self.served > 0,
                by_protocol,
            };
            let Some(mut active) = self.active.remove(&id) else { continue };
            let after = lost.next_step(&mut active.transfer, now, |broke| match broke {
                // Other transfers have the partial response.
                ExchangeFailurePoint::BeforeResponse if kind == ErrorKind::PartialBody => {
                    protocol_error(h2::H2Error::Response(ResponseError::EndedBeforeResponse))
                }
                _ => error.take().unwrap_or_else(|| Error::new(kind, cause.clone())),
            });
            finished.push((active.transfer, after));
        }
        self.time_limited = 0;
        ReceiveStatus::Closed
    }
}

/// Converts an error of the protocol machine to an [`Error`], whose kind determines the command's
/// exit code.
pub(super) fn protocol_error(error: h2::H2Error) -> Error {
    let kind = match error {
        h2::H2Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse) => ErrorKind::EmptyReply,
        h2::H2Error::EndedInRequest => ErrorKind::Send,
        h2::H2Error::EndedInResponse { .. } => ErrorKind::PartialBody,
        _ if error.is_early_end() => ErrorKind::Receive,
        _ => ErrorKind::Http2,
    };
    Error::new(kind, error.to_string())
}
