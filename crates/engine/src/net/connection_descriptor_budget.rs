//! The number of file descriptors that idle connections may use.
//!
//! ```text
//!  RLIMIT_NOFILE   ┌──────────────────────────┬──────────────────┬─────────┐
//!                  │ idle, at most one half   │ 2 × busy         │ reserve │
//!                  └──────────────────────────┴──────────────────┴─────────┘
//! ```
//!
//! A busy connection counts twice, since its body may go to a file. The reserve is for the rest of
//! the process. Other descriptors of the process are not counted: when the system refuses one, idle
//! connections are closed ([`crate::drive::worker`]).

use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of file descriptors that remain free for purposes other than connections,
/// such as output files.
const MAX_RESERVE: usize = 64;

/// The number of file descriptors that connections use, and the process's limit. All event loops of
/// a client share this budget.
#[derive(Debug, Default)]
pub(crate) struct ConnectionDescriptorBudget {
    /// The number of descriptors that the process may open; 0 before this limit is read.
    limit: AtomicUsize,
    /// The number of connections in event loops, including idle connections.
    connections: AtomicUsize,
    /// The number of idle connections in event loops.
    idle: AtomicUsize,
}

impl ConnectionDescriptorBudget {
    /// Makes the next check of the budget read the process's descriptor limit again, because that
    /// limit may have changed.
    pub(crate) fn reread_limit(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Returns the descriptor limit of the process. The first call reads it.
    fn limit(&self) -> usize {
        let known = self.limit.load(Ordering::Relaxed);
        if known > 0 {
            return known;
        }
        let limit = descriptor_limit().unwrap_or(usize::MAX);
        self.limit.store(limit, Ordering::Relaxed);
        limit
    }

    /// Counts a new connection of an event loop, even if its socket is not open yet.
    pub(crate) fn add_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts `count` connections that an event loop has closed or handed over to another owner.
    /// `idle` is the number of idle connections among them.
    pub(crate) fn remove_connections(&self, count: usize, idle: usize) {
        self.connections.fetch_sub(count, Ordering::Relaxed);
        self.idle.fetch_sub(idle, Ordering::Relaxed);
    }

    /// Counts a connection as idle.
    pub(crate) fn add_idle(&self) {
        self.idle.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection as busy.
    pub(crate) fn remove_idle(&self) {
        self.idle.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of idle connections of event loops.
    pub(crate) fn idle_connections(&self) -> usize {
        self.idle.load(Ordering::Relaxed)
    }

    /// Returns the number of busy (not idle) connections of event loops.
    fn busy_connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed).saturating_sub(self.idle_connections())
    }

    /// Returns true if busy connections use less than half of the file descriptors that the process
    /// may open.
    pub(crate) fn is_half_free(&self) -> bool {
        self.busy_connections() < self.limit() / 2
    }

    /// Returns the maximum number of idle connections. More busy connections result in a lower
    /// maximum, so that enough descriptors remain for them.
    pub(crate) fn max_idle(&self) -> usize {
        max_idle(self.limit(), self.busy_connections())
    }
}

/// Returns the number of descriptors that this process may open. Returns `None` if there is no limit.
fn descriptor_limit() -> Option<usize> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current?.try_into().ok();
    #[cfg(windows)]
    None
}

fn max_idle(limit: usize, busy: usize) -> usize {
    let reserve = MAX_RESERVE.min(limit / 8);
    (limit / 2).min(limit.saturating_sub(reserve.saturating_add(busy.saturating_mul(2))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_idle_shrinks_as_busy_connections_grow() {
        assert_eq!([0, 64, 300, 480, 1000].map(|busy| max_idle(1024, busy)), [512, 512, 360, 0, 0]);
        assert_eq!([0, 5, 20].map(|busy| max_idle(32, busy)), [16, 16, 0]);
        assert_eq!(max_idle(usize::MAX, 5), usize::MAX / 2);
        assert_eq!(max_idle(0, 0), 0);
    }

    #[test]
    fn limit_counts_busy_and_idle_connections() {
        let budget = ConnectionDescriptorBudget::default();
        budget.limit.store(100, Ordering::Relaxed);
        (0..40).for_each(|_| budget.add_connection());
        let mut counts = vec![budget.max_idle()];
        assert!(budget.is_half_free());
        (0..10).for_each(|_| budget.add_connection());
        assert!(!budget.is_half_free());
        budget.remove_connections(10, 0);
        (0..20).for_each(|_| budget.add_idle());
        counts.push(budget.max_idle());
        budget.remove_idle();
        budget.remove_connections(21, 19);
        counts.extend([budget.max_idle(), budget.idle_connections()]);
        assert_eq!(counts, [8, 48, 50, 0]);
        budget.reread_limit();
        assert!(budget.max_idle() > 0, "it was read again");
    }
}
