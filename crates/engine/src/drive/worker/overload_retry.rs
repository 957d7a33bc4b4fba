//! Retries transfers that a host refused because it was overloaded.

use super::Worker;
use crate::transfer::{Transfer, TransferStep};

impl Worker {
    /// Reports to the scheduler if the host has refused the transfer because of overload. Returns
    /// the next step of the transfer: another try as soon as fewer transfers to the host run, or
    /// `step` if the host has not refused the transfer or this retry is not allowed.
    pub(super) fn retry_refused(&mut self, transfer: &mut Transfer, step: TransferStep) -> TransferStep {
        let is_repeated = matches!(&step, TransferStep::Again(wait) if wait.is_zero());
        if is_repeated || transfer.is_part() {
            return step;
        }
        let Some(end) = transfer.refused_job_end(self.now) else { return step };
        let Some(host_slot) = transfer.scheduling.host_slot else { return step };
        let pause =
            self.scheduler.on_refused(host_slot, end).and_then(|load| transfer.retry_for_load(load, &step, self.now));
        pause.map_or(step, TransferStep::Again)
    }
}
