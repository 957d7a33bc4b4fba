//! Extra slots: while a running job only waits for a host that does not answer, another job may run
//! beyond the total cap. The extra slot is removed when the host answers or the wait ends.

use core::hash::Hash;

use super::{HostId, JobQueue};

/// The maximum number of [extra slots](JobQueue::add_extra_slot), as a multiple of the total cap
/// (the maximum number of running jobs). Each extra slot allows one running job more than the total
/// cap.
const MAX_EXTRA_SLOTS_PER_SLOT: usize = 4;
/// The maximum number of [extra slots](JobQueue::add_extra_slot) (jobs beyond the total cap),
/// however large the total cap is.
const MAX_EXTRA_SLOTS: usize = 1024;

impl<T, K: Hash + Eq + Clone> JobQueue<T, K> {
    /// Adds an extra slot: one more job may run than the total cap (the maximum number of running
    /// jobs) allows. Call this when a running job only waits for its host to answer. Call
    /// [`remove_extra_slot`](JobQueue::remove_extra_slot) when the host answers or the wait ends.
    ///
    /// Returns `false` if no slot can be added, because the number of extra slots is already four
    /// times the total cap, or 1,024. With a total cap of 1, jobs must run one after the other, and
    /// there are no extra slots.
    pub fn add_extra_slot(&mut self) -> bool {
        let most = if self.caps.total == 1 {
            0
        } else {
            MAX_EXTRA_SLOTS.min(self.caps.total.saturating_mul(MAX_EXTRA_SLOTS_PER_SLOT))
        };
        let may = self.extra_slots < most;
        self.extra_slots += usize::from(may);
        may
    }

    /// Adds an [extra slot](JobQueue::add_extra_slot), because a job of `host` waits for an answer
    /// on an open connection. Returns `false` if no slot can be added, or if `host` has answered an
    /// earlier request: such a host is slow, not dead.
    pub fn add_extra_slot_for_silent_host(&mut self, host: HostId) -> bool {
        let has_answered = self.host_index(host).is_none_or(|index| self.host_at(index).has_answered);
        !has_answered && self.add_extra_slot()
    }

    /// Records that `host` has answered a request, so that it is not a silent host.
    pub fn on_host_answered(&mut self, host: HostId) {
        if let Some(index) = self.host_index(host) {
            self.host_at(index).has_answered = true;
        }
    }

    /// Removes an [extra slot](JobQueue::add_extra_slot), the permit for one running job beyond the
    /// total cap. If more jobs are running than are allowed now, no job starts until enough have
    /// ended.
    pub fn remove_extra_slot(&mut self) {
        self.extra_slots = self.extra_slots.saturating_sub(1);
    }

    /// Lowers the total cap after the process has run out of file descriptors. The new cap is the
    /// number of running jobs, minus the number of extra slots (jobs allowed beyond the cap), minus
    /// one.
    pub fn shrink(&mut self) {
        self.set_total(self.running.saturating_sub(self.extra_slots + 1));
    }

    /// Returns true if another job may run: fewer jobs are running than the total cap and the extra
    /// slots (jobs allowed beyond the cap) together.
    pub fn has_free_slot(&self) -> bool {
        self.running < self.total_cap_with_extra_slots()
    }

    /// Returns the number of jobs that may run now: the total cap plus the number of extra slots
    /// (jobs allowed beyond the cap).
    pub(super) fn total_cap_with_extra_slots(&self) -> usize {
        self.caps.total.saturating_add(self.extra_slots)
    }
}
