//! Transfers that wait before they are tried again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use crate::transfer::Transfer;

/// A worker's delayed transfers, ordered by the time when they are due.
#[derive(Default)]
pub(super) struct DelayQueue {
    heap: BinaryHeap<Reverse<DelayedTransfer>>,
}

/// A transfer that waits before it is tried again.
pub(super) struct DelayedTransfer {
    at: Instant,
    /// True if another transfer uses this one's host slot (a permit for one transfer to a host)
    /// meanwhile: see [`Scheduler::retry_delayed`](super::Scheduler::retry_delayed).
    pub(super) is_lent: bool,
    pub(super) transfer: Box<Transfer>,
}

impl DelayQueue {
    /// Adds a transfer that is tried again at the time `at`.
    pub(super) fn push(&mut self, at: Instant, is_lent: bool, transfer: Box<Transfer>) {
        self.heap.push(Reverse(DelayedTransfer { at, is_lent, transfer }));
    }

    /// Returns the time when the first delayed transfer is due, if there is one.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(delayed)| delayed.at)
    }

    /// Removes and returns the next transfer, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<DelayedTransfer> {
        let is_due = self.next_timeout().is_some_and(|at| at <= now);
        is_due.then(|| self.heap.pop()).flatten().map(|Reverse(delayed)| delayed)
    }

    /// Removes and returns the transfers that `is_it` selects.
    pub(super) fn remove_all(&mut self, is_it: impl Fn(&Transfer) -> bool) -> Vec<DelayedTransfer> {
        if !self.heap.iter().any(|Reverse(delayed)| is_it(&delayed.transfer)) {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.heap).into_iter().map(|Reverse(delayed)| delayed);
        let (removed, kept): (Vec<_>, Vec<_>) = all.partition(|delayed| is_it(&delayed.transfer));
        self.heap = kept.into_iter().map(Reverse).collect();
        removed
    }
}

impl PartialEq for DelayedTransfer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for DelayedTransfer {}

impl PartialOrd for DelayedTransfer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayedTransfer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
