//! Transfers whose connection could not be opened. Without a free file descriptor, they wait until
//! another transfer frees one.

use std::collections::VecDeque;
use std::time::Duration;

use super::Worker;
use super::retries_that_keep_slots::DelayReason;
use crate::Error;
use crate::transfer::{ExchangeFailurePoint, Transfer};
use crate::transfer_facts::TransferPhase;

/// The time after which a transfer that found no free file descriptor tries again to get a
/// connection.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(20);
/// The maximum number of times that a transfer waits for a free file descriptor, for
/// [`DESCRIPTOR_RETRY_DELAY`] each. After that, the transfer fails, unless other transfers are
/// active.
const MAX_DESCRIPTOR_WAITS: u8 = 250;

impl Worker {
    /// Handles the transfers in `waiting`, whose connection could not be opened because of `error`.
    /// A transfer fails, or is retried if its retry rules say so. If the cause is a lack of file
    /// descriptors, a transfer that may wait for a free one is tried again later. A part of a split
    /// download never waits, since the other connections can fetch its range.
    pub(super) fn on_open_failure(&mut self, waiting: VecDeque<Box<Transfer>>, error: Error) {
        let exhausted = error.lacks_descriptors();
        let alike = error.duplicate();
        let mut error = Some(error);
        for mut transfer in waiting {
            if exhausted && transfer.is_part() {
                if self.free_descriptor() {
                    self.to_place.push_back((transfer, None));
                    continue;
                }
                // While the first part waited, the first stream would wait for that part.
                self.scheduler.on_out_of_descriptors();
            } else if exhausted && self.may_wait_for_descriptor(&transfer) {
                self.wait_for_descriptor(transfer);
                continue;
            }
            // The first transfer gets the error itself, the others a copy of its text.
            let error = error.take().unwrap_or_else(|| alike.duplicate());
            let after = transfer.on_failure(error, ExchangeFailurePoint::BeforeSending, self.now);
            self.handle_next_step(transfer, after, None);
        }
    }

    /// Returns true if a transfer may wait for a file descriptor. It may wait while other transfers
    /// are active, because their descriptors will become free. Without other transfers, it may wait
    /// for a limited time.
    pub(super) fn may_wait_for_descriptor(&self, transfer: &Transfer) -> bool {
        let is_late = transfer.deadline().is_some_and(|at| at <= self.now);
        !is_late && (transfer.attempt.descriptor_waits < MAX_DESCRIPTOR_WAITS || self.slots.has_transfers())
    }

    /// Lets a transfer wait for a file descriptor. If an idle connection can be closed, the
    /// transfer is tried again at once. Otherwise it is delayed by [`DESCRIPTOR_RETRY_DELAY`]. The
    /// delay does not count towards the transfer's time limit.
    pub(super) fn wait_for_descriptor(&mut self, mut transfer: Box<Transfer>) {
        self.remove_extra_slot_of(&mut transfer);
        transfer.attempt.descriptor_waits = transfer.attempt.descriptor_waits.saturating_add(1);
        transfer.facts.enter_phase(TransferPhase::Idle, self.now);
        if self.free_descriptor() {
            self.to_place.push_back((transfer, None));
            return;
        }
        self.client.request_descriptors();
        self.scheduler.on_out_of_descriptors();
        transfer.postpone_deadline(DESCRIPTOR_RETRY_DELAY);
        let at = self.now + DESCRIPTOR_RETRY_DELAY;
        self.delayed.push(at, DelayReason::Descriptor, transfer);
    }
}
