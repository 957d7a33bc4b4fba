//! Slots that are lent: jobs that only wait for dead hosts do not keep others from running.

use core::hash::Hash;

use super::{HostId, JobQueue};

/// The number of lent slots for each slot of the total cap, and the largest number of them.
const MAX_LENT_PER_SLOT: usize = 4;
const MAX_LENT: usize = 1024;

impl<T, K: Hash + Eq + Clone> JobQueue<T, K> {
    /// Allows one job more than the total cap, because a running job only waits for its host to
    /// answer. Call [`return_lent_slot`](JobQueue::return_lent_slot) when the host answers or the
    /// wait ends. Returns `false` if four times the cap, or 1,024 slots, are lent already. With a
    /// cap of 1, the order of the jobs is meant to be kept, and no slot is lent.
    pub fn lend_slot(&mut self) -> bool {
        let most =
            if self.caps.total == 1 { 0 } else { MAX_LENT.min(self.caps.total.saturating_mul(MAX_LENT_PER_SLOT)) };
        let may = self.lent < most;
        self.lent += usize::from(may);
        may
    }

    /// Lends a slot of `host`, which has accepted a connection and not answered yet, as
    /// [`lend_slot`](JobQueue::lend_slot). Returns `false`, too, if the host has answered an
    /// earlier request: then it is slow, and not dead.
    pub fn lend_slot_of_silent_host(&mut self, host: HostId) -> bool {
        let has_answered = self.host_index(host).is_none_or(|index| self.host_at(index).has_answered);
        !has_answered && self.lend_slot()
    }

    /// Records that `host` has answered a request.
    pub fn on_host_answered(&mut self, host: HostId) {
        if let Some(index) = self.host_index(host) {
            self.host_at(index).has_answered = true;
        }
    }

    /// Takes back a slot that was [lent](JobQueue::lend_slot). If too many jobs run then, no job
    /// starts before others end.
    pub fn return_lent_slot(&mut self) {
        self.lent = self.lent.saturating_sub(1);
    }

    /// Lowers the total cap below the number of running jobs, because there are no descriptors for
    /// more. Slots that are lent are not counted.
    pub fn shrink(&mut self) {
        self.set_total(self.running.saturating_sub(self.lent + 1));
    }

    /// Returns true if the total cap allows another job.
    pub fn has_free_slot(&self) -> bool {
        self.running < self.total_cap_with_lent()
    }

    /// Returns the total cap with the lent slots.
    pub(super) fn total_cap_with_lent(&self) -> usize {
        self.caps.total.saturating_add(self.lent)
    }
}
