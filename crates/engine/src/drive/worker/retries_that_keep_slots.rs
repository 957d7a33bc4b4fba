//! Transfers that wait for their retry and keep their slot (of the limit on parallel transfers).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use crate::transfer::Transfer;

/// The transfers of a worker that wait before they are tried again, because they have failed or
/// found no free file descriptor. They are ordered by the time when they are due.
#[derive(Default)]
pub(super) struct DelayedTransfers {
    heap: BinaryHeap<Reverse<DelayedTransfer>>,
}

/// The reason why a transfer must wait before it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelayReason {
    /// The transfer has failed, and waits for its retry.
    Retry,
    /// The process had no free file descriptor.
    Descriptor,
}

/// A transfer that waits before it is tried again.
struct DelayedTransfer {
    at: Instant,
    reason: DelayReason,
    transfer: Box<Transfer>,
}

impl DelayedTransfers {
    /// Adds a transfer that is tried again at the time `at`.
    pub(super) fn push(&mut self, at: Instant, reason: DelayReason, transfer: Box<Transfer>) {
        self.heap.push(Reverse(DelayedTransfer { at, reason, transfer }));
    }

    /// Returns the time when the first delayed transfer is due; `None` if no transfer is delayed.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(delayed)| delayed.at)
    }

    /// Removes and returns the first delayed transfer, if it is due. Returns `None` otherwise.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(DelayReason, Box<Transfer>)> {
        let is_due = self.next_timeout().is_some_and(|at| at <= now);
        is_due.then(|| self.heap.pop()).flatten().map(|Reverse(delayed)| (delayed.reason, delayed.transfer))
    }

    /// Removes and returns the delayed transfers for which `is_it` returns true.
    #[expect(clippy::vec_box, reason = "transfers are large and stay in their boxes")]
    pub(super) fn remove_all(&mut self, is_it: impl Fn(&Transfer) -> bool) -> Vec<Box<Transfer>> {
        if !self.heap.iter().any(|Reverse(delayed)| is_it(&delayed.transfer)) {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.heap).into_iter().map(|Reverse(delayed)| delayed);
        let (removed, kept): (Vec<_>, Vec<_>) = all.partition(|delayed| is_it(&delayed.transfer));
        self.heap = kept.into_iter().map(Reverse).collect();
        removed.into_iter().map(|delayed| delayed.transfer).collect()
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
