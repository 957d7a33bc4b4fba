//! The admission of requests to an [`Executor`](super::Executor).

use std::time::Instant;

/// Decides which requests an executor may start. The executor reports the requests in progress to
/// it.
pub(crate) trait Admission: Send + Sync {
    /// Returns the requests that may start now.
    fn rule(&self) -> AdmissionRule;

    /// Receives the number of the first request in progress.
    fn set_first(&self, id: Option<u64>);

    /// Ends a turn: all events of the last wake-up are handled, and readers of results may be
    /// woken. Returns when to call this again if nothing happens before.
    fn end_turn(&self, load: ExecutorLoad, now: Instant) -> Option<Instant>;
}

/// The numbers of waiting and running requests of an executor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExecutorLoad {
    /// Requests that have not started yet.
    pub(crate) waiting: usize,
    /// Requests in progress.
    pub(crate) running: usize,
}

/// The part of a request's wait before its start that counts towards its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedWait {
    /// The whole wait counts.
    All,
    /// Only the wait for a server that asked for a pause counts. The wait for other requests does
    /// not, since the program chose how many run at once.
    Pauses,
}

/// The requests that may start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionRule {
    /// Any request.
    Any,
    /// Only the request with this number, regardless of the caps. If none is running, any request.
    Only(u64),
    /// No request.
    None,
}
