//! The end of streams and of the connection.

use haul_proto::ResponseError;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_proto::h2::{self, CloseReason, ErrorCode, RequestId, ResetReason};

use super::super::{Finished, Progress};
use super::{Active, Link, is_limited};
use crate::clock;
use crate::transfer::{After, Broke};
use crate::{Error, ErrorKind};

/// The number of refusals of one transfer that do not count as retries: a server may restart, or
/// accept fewer streams than it announced.
const FREE_REPLAYS: u32 = 3;

impl Link {
    pub(super) fn was_reset(
        &mut self,
        id: u64,
        reason: ResetReason,
        retryable: bool,
        now: Instant,
        finished: &mut Finished,
    ) {
        let started = self.active.get(&id).is_some_and(|active| active.transfer.facts.body_bytes > 0);
        let Some(mut active) = self.take_out(id, now) else { return };
        // A server that takes few requests a connection, or few at once and had no time to say so, and answers those, is as
        // good as one that takes many.
        let costs_nothing = match reason {
            ResetReason::GoAway(ErrorCode::NO_ERROR) => self.left_some,
            ResetReason::Peer(ErrorCode::REFUSED_STREAM) => {
                active.is_guess && (self.served > 0 || !self.active.is_empty())
            }
            _ => false,
        };
        if reason == ResetReason::Peer(ErrorCode::REFUSED_STREAM) {
            self.allowance.refused();
        }
        active.transfer.attempt.replays += u32::from(retryable && !costs_nothing);
        let wants_older = matches!(reason, ResetReason::Peer(ErrorCode::HTTP_1_1_REQUIRED));
        let is_again = retryable && active.transfer.attempt.replays <= FREE_REPLAYS;
        // A connection that refuses its only request, or one so often, may be on its way out: the next try is on another.
        let is_doubtful = self.active.is_empty() && !costs_nothing || active.transfer.attempt.replays == FREE_REPLAYS;
        active.transfer.reuse.wants_fresh |= is_again && is_doubtful;
        let after = if wants_older && active.transfer.leaves_http2() || is_again {
            After::Again(Duration::ZERO)
        } else {
            let broke = match reason {
                ResetReason::Violation(error) if !error.is_early_end() => Broke::ByProtocol,
                _ if started => Broke::InResponse,
                _ => Broke::BeforeResponse,
            };
            active.transfer.on_failure(Error::new(ErrorKind::Http2Stream, reason.to_string()), broke, now)
        };
        finished.push((active.transfer, after));
    }

    /// The rest of a response is not wanted.
    pub(super) fn leave(&mut self, id: u64, now: Instant, finished: &mut Finished) {
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.take_out(id, now) {
            let after = active.transfer.on_complete(now);
            finished.push((active.transfer, after));
        }
    }

    pub(super) fn fail(&mut self, id: u64, error: Error, broke: Broke, now: Instant, finished: &mut Finished) {
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.take_out(id, now) {
            let after = active.transfer.on_failure(error, broke, now);
            finished.push((active.transfer, after));
        }
    }

    /// Removes a transfer from this connection, and returns its bytes to the window.
    pub(super) fn take_out(&mut self, id: u64, now: Instant) -> Option<Active> {
        let active = self.active.remove(&id)?;
        self.limited -= usize::from(is_limited(&active.transfer));
        if active.unreleased > 0 {
            self.conn.release(clock::time(now), RequestId(id), active.unreleased);
        }
        self.held.retain(|&other| other != id);
        Some(active)
    }

    /// The peer has ended the stream.
    pub(super) fn end(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        let said = self.conn.close_reason();
        let error = from_machine(self.conn.end_of_input());
        let error = match said {
            // The GOAWAY gives the reason.
            Some(CloseReason::GoAway(code)) if error.kind() == ErrorKind::EmptyReply && code != ErrorCode::NO_ERROR => {
                Error::new(ErrorKind::Receive, CloseReason::GoAway(code).to_string())
            }
            _ => error,
        };
        self.break_off(error, now, finished)
    }

    /// Closes a connection that cannot continue: its transfers are given back, to be tried again
    /// where that is safe.
    pub fn break_off(&mut self, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        // The machine's remaining output says why.
        let _ = self.pump();
        self.closing = true;
        let (kind, cause) = (error.kind(), error.cause());
        let by_protocol = kind == ErrorKind::Http2;
        self.has_objected |= by_protocol;
        if self.unanswered_up_to(u64::MAX) > 0 {
            self.allowance.left_some(self.answered);
        }
        let mut error = Some(error);
        let mut ids: Vec<u64> = self.active.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let started = self.conn.response_started(RequestId(id));
            let was_seen = self.conn.request_left(RequestId(id));
            let Some(mut active) = self.active.remove(&id) else { continue };
            // By a method that is not idempotent curl sends what was seen no second time here either.
            let is_new = !was_seen || (!started && self.served > 0 && is_idempotent(active.transfer.method()));
            active.transfer.attempt.replays += 1;
            let after = if is_new && !by_protocol && active.transfer.attempt.replays <= FREE_REPLAYS {
                active.transfer.reuse.wants_fresh = true;
                After::Again(Duration::ZERO)
            } else {
                let broke = match (by_protocol, started) {
                    (true, _) => Broke::ByProtocol,
                    (_, true) => Broke::InResponse,
                    _ => Broke::BeforeResponse,
                };
                let error = match broke {
                    // It is others that have a response in part.
                    Broke::BeforeResponse if kind == ErrorKind::PartialBody => {
                        from_machine(h2::Error::Response(ResponseError::EndedBeforeResponse))
                    }
                    _ => error.take().unwrap_or_else(|| Error::new(kind, cause.clone())),
                };
                active.transfer.on_failure(error, broke, now)
            };
            finished.push((active.transfer, after));
        }
        self.limited = 0;
        Progress::Closed
    }
}

/// The error, with its kind and exit code, for a protocol error of the machine.
pub(super) fn from_machine(error: h2::Error) -> Error {
    let kind = match error {
        h2::Error::Response(ResponseError::EndedIdle | ResponseError::EndedBeforeResponse) => ErrorKind::EmptyReply,
        h2::Error::EndedInResponse { .. } => ErrorKind::PartialBody,
        _ if error.is_early_end() => ErrorKind::Receive,
        _ => ErrorKind::Http2,
    };
    Error::new(kind, error.to_string())
}
