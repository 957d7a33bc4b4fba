//! Derives the load of a host from the results of its requests. The limit on concurrent requests to
//! a host is adjusted by this load ([`haul_policy::concurrency`]).

use std::io;
use std::time::{Duration, Instant};

use haul_policy::concurrency::{CompletionKind, RefusedLoad};
use haul_policy::queue::JobEnd;

use super::{Transfer, TransferStep};
use crate::time_conversions;
use crate::transfer_facts::TransferPhase;
use crate::{Error, ErrorKind, Result};

/// The maximum number of retries of a transfer that its host has refused because of overload. These
/// retries do not count in the retry rules. A further refusal is handled like any other failure.
const MAX_LOAD_RETRIES: u8 = 5;

/// The maximum number of retries because of overload at a host whose limit on parallel transfers
/// has never grown. Such a host may be down.
const MAX_LOAD_RETRIES_AT_FIRST: u8 = 2;

/// The delay before the first retry because of overload. It doubles with each further retry. During
/// the delay, other requests to the host may end.
const LOAD_RETRY_PAUSE: Duration = Duration::from_millis(25);

/// The way in which a host that may be overloaded has refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverloadRefusal {
    /// Status 503, or a connection that was refused or reset before a response. A retry may succeed
    /// as soon as fewer requests run.
    Overload,
    /// Status 429, or a Retry-After field: the host requests a pause.
    WantsPause,
}

impl OverloadRefusal {
    /// Returns the refusal that a response with this status expresses; `None` if the status
    /// expresses no refusal. `wants_pause` returns true if the response has a Retry-After field.
    pub(super) fn from_status(status: u16, wants_pause: impl FnOnce() -> bool) -> Option<Self> {
        match status {
            503 if !wants_pause() => Some(Self::Overload),
            429 | 503 => Some(Self::WantsPause),
            _ => None,
        }
    }

    /// Returns the refusal that `error` stands for, if an overloaded host may have caused this
    /// failure before the response; otherwise `None`.
    pub(super) fn from_error(error: &Error) -> Option<Self> {
        let is_lost = matches!(error.kind(), ErrorKind::EmptyReply | ErrorKind::Send | ErrorKind::Receive);
        let is_refused = error.io_source().is_some_and(|source| {
            matches!(source.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
        });
        (is_lost || is_refused).then_some(Self::Overload)
    }
}

impl Transfer {
    /// Returns the end time and the duration of a request that its host has refused. The limit on
    /// parallel transfers to this host is adjusted by them. Returns `None` if the host has not
    /// refused the request.
    pub(crate) fn refused_job_end(&self, now: Instant) -> Option<JobEnd> {
        self.attempt.refusal?;
        let total = now.saturating_duration_since(self.facts.placed_at);
        let (now, kind) = (time_conversions::to_monotonic_time(now), CompletionKind::Refused);
        Some(JobEnd { now, first_byte: total, total, on_new_connection: self.facts.connects > 0, kind })
    }

    /// Returns the end time, the duration and the time to the first byte of a finished transfer.
    /// The limit on parallel transfers to the host is adjusted by them. Returns `None` if these
    /// times say nothing about the host, for example because the host has refused or redirected the
    /// transfer.
    pub(crate) fn served_job_end(&self, result: &Result<()>) -> Option<JobEnd> {
        let facts = &*self.facts;
        let is_served = result.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Status);
        // A response that continues a body leaves the time of the first one.
        let is_timed = !facts.first_byte.is_zero() && facts.first_byte >= facts.sent;
        if !is_served || !is_timed || self.attempt.refusal.is_some() || facts.redirects > 0 {
            return None;
        }
        Some(JobEnd {
            now: time_conversions::to_monotonic_time(facts.started + facts.total),
            first_byte: facts.first_byte - facts.sent,
            total: facts.total.saturating_sub(facts.sent),
            on_new_connection: facts.connects > 0,
            kind: CompletionKind::Served,
        })
    }

    /// Prepares another attempt of a transfer that its host refused because of overload. The
    /// attempt does not count as a retry. Returns the minimum delay before the attempt, which must
    /// also wait until the limit on transfers to the host allows it. Returns `None` if there is no
    /// further attempt.
    pub(crate) fn retry_for_load(&mut self, load: RefusedLoad, step: &TransferStep, now: Instant) -> Option<Duration> {
        let rules = &self.options.retry;
        // A growing limit must not make a transfer fail that would not have failed otherwise, even
        // if it may not be retried.
        let is_normal = rules.max > 0 && !rules.only_resets && rules.delay.is_none();
        let may_retry = load == RefusedLoad::Grown || is_normal;
        let most = if load == RefusedLoad::Grown { MAX_LOAD_RETRIES } else { MAX_LOAD_RETRIES_AT_FIRST };
        if self.attempt.refusal != Some(OverloadRefusal::Overload) || self.attempt.load_retries >= most {
            return None;
        }
        match step {
            // With a fixed pause, the user has decided.
            TransferStep::Again(_) if rules.delay.is_some() => return None,
            TransferStep::Again(_) => self.attempt.counted_attempts = self.attempt.counted_attempts.saturating_sub(1),
            TransferStep::Done(_) if !may_retry || !self.reset_for_retry() => return None,
            TransferStep::Done(_) => {}
        }
        let pause = LOAD_RETRY_PAUSE * (1 << self.attempt.load_retries);
        self.attempt.load_retries += 1;
        self.facts.enter_phase(TransferPhase::Pause, now);
        self.begin_attempt(now + pause);
        Some(pause)
    }

    /// Records that the worker begins to look for a connection for the transfer.
    pub(crate) fn on_connection_search_began(&mut self, now: Instant) {
        self.facts.placed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overload_statuses_are_refusals() {
        for (status, wants_pause, expected) in [
            (503, false, Some(OverloadRefusal::Overload)),
            (503, true, Some(OverloadRefusal::WantsPause)),
            (429, false, Some(OverloadRefusal::WantsPause)),
            (429, true, Some(OverloadRefusal::WantsPause)),
            (500, false, None),
            (200, true, None),
        ] {
            assert_eq!(OverloadRefusal::from_status(status, || wants_pause), expected, "{status} {wants_pause}");
        }
    }

    #[test]
    fn lost_and_refused_connections_are_refusals() {
        let lost = [ErrorKind::EmptyReply, ErrorKind::Send, ErrorKind::Receive];
        for kind in lost {
            assert_eq!(
                OverloadRefusal::from_error(&Error::new(kind, "x")),
                Some(OverloadRefusal::Overload),
                "{kind:?}"
            );
        }
        for (source, expected) in [
            (io::ErrorKind::ConnectionRefused, Some(OverloadRefusal::Overload)),
            (io::ErrorKind::ConnectionReset, Some(OverloadRefusal::Overload)),
            (io::ErrorKind::HostUnreachable, None),
        ] {
            let error = Error::with_source(ErrorKind::Connect, "x", io::Error::from(source));
            assert_eq!(OverloadRefusal::from_error(&error), expected, "{source:?}");
        }
        assert_eq!(OverloadRefusal::from_error(&Error::new(ErrorKind::Timeout, "x")), None);
    }
}
