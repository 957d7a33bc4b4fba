//! The admission of requests to a [`RequestExecutor`](super::RequestExecutor).

use std::time::Instant;

/// The admission of requests: decides which requests an executor may start. The executor reports to
/// it which requests are in progress.
pub(crate) trait AdmissionControl: Send + Sync {
    /// Returns the rule by which requests may start now.
    fn rule(&self) -> AdmissionRule;

    /// Records the requests in progress.
    fn set_in_progress(&self, requests: InProgressSummary);

    /// Ends a round of the event loop: all events of the last wake-up were handled. Threads that
    /// wait for results may be woken now. Returns the time at which this method must be called
    /// again even without an event, if there is one.
    fn end_turn(&self, load: ExecutorLoad, now: Instant) -> Option<Instant>;
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
    /// The lowest id of all requests that are in progress and do not wait for a retry.
    pub(crate) first_running: Option<u64>,
    /// The lowest id of all requests that wait to be tried again.
    pub(crate) first_retrying: Option<u64>,
    /// The number of requests that wait to be tried again.
    pub(crate) retrying: usize,
}

/// The part of a request's wait before its start that counts towards the request's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitCountedInTimeout {
    /// The whole wait counts towards the timeout.
    All,
    /// Only the pause that a server asked for (`Retry-After`) counts towards the timeout. The time
    /// in the queue behind other requests does not, since the program chose how many run in
    /// parallel.
    Pauses,
}

/// The rule by which requests may start; see [`AdmissionControl::rule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionRule {
    /// Any waiting request may start.
    Any,
    /// The request with this id may start, regardless of the limits on concurrent requests. Another
    /// request may start only if no request is running: a request that waits to be tried again or,
    /// if there is none, any request.
    Only(u64),
    /// No request may start.
    None,
}
