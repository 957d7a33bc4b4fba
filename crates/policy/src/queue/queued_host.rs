//! The state of one host in a [`JobQueue`](super::JobQueue): its jobs, its pause and its cap.
//!
//! The queue has several sets of hosts, from which it takes the next host that may start a job. A
//! host with waiting jobs is in at most one of them ([`HostSetMembership`]).

use super::JobPosition;
use super::jobs_by_position::WaitingJobs;
use crate::concurrency::ConcurrencyLimit;
use crate::time::MonotonicTime;

/// An entry in the table of hosts. `generation` changes when another host reuses the entry, so that
/// old [`HostId`](super::HostId)s become invalid.
#[derive(Debug)]
pub(super) struct HostTableEntry<T, K> {
    pub(super) generation: u32,
    pub(super) host: Option<QueuedHost<T, K>>,
}

/// The state of a host in the queue: its jobs, its pause and its cap (the maximum number of its
/// running jobs).
#[derive(Debug)]
pub(super) struct QueuedHost<T, K> {
    pub(super) key: K,
    pub(super) waiting: WaitingJobs<T>,
    pub(super) running: usize,
    /// The number of jobs of this host whose start time has not come
    /// ([`push_delayed`](super::JobQueue::push_delayed)).
    pub(super) delayed: usize,
    pub(super) paused_until: Option<MonotonicTime>,
    /// The time before which the caller's request start rate (`--rate`) allows no further job on
    /// this host to start; `None` if there is no such time.
    pub(super) rate_limited_until: Option<MonotonicTime>,
    /// The maximum number of running jobs on this host; `None` for the queue's cap per host.
    pub(super) cap: Option<usize>,
    /// True if the host has answered a request.
    pub(super) has_answered: bool,
    /// The adaptive limit on concurrent requests that determines `cap`; `None` until it is first
    /// needed.
    pub(super) concurrency: Option<Box<ConcurrencyLimit>>,
    /// The time until which the queue remembers the host and its cap (maximum number of running
    /// jobs) although the host has no jobs; `None` if the cap need not be remembered.
    pub(super) remembered_until: Option<MonotonicTime>,
    pub(super) listed: HostSetMembership,
}

/// The set in a [`JobQueue`](super::JobQueue) that contains a host, with the key of the host in
/// that set: `ready` (may start a job), `paused`, `resting` (has no jobs, but is remembered), or
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostSetMembership {
    Nowhere,
    Ready(JobPosition, HostBusyOrIdle),
    Paused(MonotonicTime),
    Resting(MonotonicTime),
}

/// The activity of a host: busy if a job of the host is running, otherwise idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostBusyOrIdle {
    Busy,
    Idle,
}

impl<T, K> QueuedHost<T, K> {
    /// Makes the state of a host to which no job was added yet.
    pub(super) fn without_jobs(key: K) -> Self {
        QueuedHost {
            key,
            waiting: WaitingJobs::default(),
            running: 0,
            delayed: 0,
            paused_until: None,
            rate_limited_until: None,
            cap: None,
            has_answered: false,
            concurrency: None,
            remembered_until: None,
            listed: HostSetMembership::Nowhere,
        }
    }

    /// Returns the time before which no job may start on the host: the end of the pause, or the
    /// time at which the start rate that the caller has set for the host allows the next start.
    /// Returns `None` if there is no such time.
    pub(super) fn held_until(&self) -> Option<MonotonicTime> {
        self.paused_until.max(self.rate_limited_until)
    }

    /// Returns the time until which the queue remembers the host although it has no jobs: the end
    /// of its pause, or the time until which its cap is remembered. Returns `None` if neither is
    /// set.
    pub(super) fn retained_until(&self) -> Option<MonotonicTime> {
        self.paused_until.max(self.remembered_until)
    }
}
