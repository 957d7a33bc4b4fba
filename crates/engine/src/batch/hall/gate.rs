//! What the owner of a [`Hall`](super::Hall) decides: which request may start, and which waiting time counts.

use std::time::Instant;

/// Decides whether another request may start, and is told which are under way.
pub(crate) trait Gate: Send + Sync {
    /// Whether one more may start now.
    fn admits(&self) -> Admitted;

    /// The first of those under way.
    fn first_is(&self, id: Option<u64>);

    /// Everything from the last wake-up has been handled, so those who wait for results may be woken. When to be called again
    /// though nothing happens by then.
    fn turned(&self, load: Load, now: Instant) -> Option<Instant>;
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Requests that have not started yet.
    pub(crate) waiting: usize,
    /// Requests under way.
    pub(crate) running: usize,
}

/// Which waiting for its turn is of a request's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// All of it.
    All,
    /// The wait for a server counts, not the wait for other requests to end: the program chose how many run at once.
    Pauses,
}

/// What may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Any request.
    Any,
    /// This one alone, whatever the caps say; and any if nothing runs.
    Only(u64),
    /// None.
    None,
}
