//! The admission of requests to a [`RequestExecutor`](super::RequestExecutor).

use std::time::Instant;

/// The part of a batch that decides which waiting requests its executor may start. The executor
/// reports its requests in progress to it.
pub(crate) trait AdmissionControl: Send + Sync {
    /// Returns the rule by which requests may start now.
    fn rule(&self) -> AdmissionRule;

    /// Records which requests are in progress.
    fn set_in_progress(&self, requests: InProgressSummary);

    /// Ends a round of the event loop, i.e. the handling of all events of one wake-up. Wakes the
    /// threads that wait for results, or puts this off, so that one wake-up serves several results.
    /// Returns the time at which this method must be called again if no event occurs before; `None`
    /// if no such call is needed.
    fn end_round(&self, load: ExecutorLoad, now: Instant) -> Option<Instant>;
}

/// The number of waiting and of running requests of an executor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExecutorLoad {
    /// The number of requests that have not started yet.
    pub(crate) waiting: usize,
    /// The number of requests in progress.
    pub(crate) running: usize,
}

/// The facts about an executor's requests in progress by which an [`AdmissionControl`] decides
/// which waiting requests may start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InProgressSummary {
    /// The lowest id of the requests in progress, not counting requests that wait for a retry.
    /// `None` if there is no such request.
    pub(crate) first_running: Option<u64>,
    /// The lowest id of the requests that wait for a retry. `None` if there is no such request.
    pub(crate) first_retrying: Option<u64>,
    /// The number of requests that wait for a retry.
    pub(crate) retrying: usize,
}

/// The kinds of waiting before a request starts that count towards the request's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsCountedInTimeout {
    /// The whole wait counts towards the timeout.
    All,
    /// The time in the queue behind other requests does not count, since the program chose how many
    /// run in parallel. Only a pause that the server asks for (`Retry-After`) counts: if it is
    /// longer than a waiting request's timeout, the request fails when the timeout expires.
    Pauses,
}

/// The rule by which waiting requests may start, returned by [`AdmissionControl::rule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionRule {
    /// Any waiting request may start.
    Any,
    /// The memory budget is used up, so at most one request may start. The id is that of the
    /// request whose result the program needs next (`u64::MAX` if any result will do). The first
    /// case that applies decides:
    /// * This request is the first in the queue: only this request may start, regardless of the
    ///   limits on concurrent requests.
    /// * A request is running: no request may start.
    /// * Requests wait for a retry: only the first one whose retry is due may start, regardless of
    ///   the same limits.
    /// * Otherwise, any request may start.
    Only(u64),
    /// No request may start.
    None,
}
