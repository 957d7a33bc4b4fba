//! Decisions of the owner of a [`Executor`](super::Executor): which request may start, and which waiting
//! time counts.

use std::time::Instant;

/// Decides whether another request may start. The executor reports the requests under way to it.
pub(crate) trait Admission: Send + Sync {
    /// Returns which requests may start now.
    fn rule(&self) -> AdmissionRule;

    /// Receives the number of the first request under way.
    fn set_first(&self, id: Option<u64>);

    /// Ends a turn: all events of the last wake-up are handled, and readers of results may be
    /// woken. Returns when to call this again if nothing happens before.
    fn end_turn(&self, load: ExecutorLoad, now: Instant) -> Option<Instant>;
}

/// The number of requests that wait and that run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExecutorLoad {
    /// Requests that have not started yet.
    pub(crate) waiting: usize,
    /// Requests under way.
    pub(crate) running: usize,
}

/// The part of the wait for a turn that counts as a request's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedWait {
    /// The whole wait counts.
    All,
    /// The wait for a server counts. The wait for other requests to end does not, since the program
    /// chose how many run at once.
    Pauses,
}

/// The requests that may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionRule {
    /// Any request.
    Any,
    /// Only the request with this number, regardless of the caps. If none is running, any request.
    Only(u64),
    /// No request.
    None,
}
