//! Cancels a transfer, whether it is in progress or waits anywhere in the worker.

use super::Worker;
use crate::Error;
use crate::drive::connection::{FinishedTransfers, ReceiveStatus};
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::transfer::{Transfer, TransferStep};

impl Worker {
    /// Cancels the transfer with this tag (the caller's ID for it). If the transfer is in progress,
    /// closes its connection, or only resets its stream if the connection is shared.
    pub(super) fn cancel(&mut self, tag: u64) {
        let mut given_up = Vec::new();
        let is_it = |transfer: &Transfer| transfer.scheduling.tag == tag && !transfer.is_part();
        if let Some(place) = self.to_place.iter().position(|(transfer, _)| is_it(transfer)) {
            given_up.extend(self.to_place.remove(place).map(|(transfer, _)| transfer));
        }
        given_up.extend(self.delayed.remove_all(is_it));
        given_up.extend(self.scheduler.cancelled_retry(self.index, tag));
        for token in self.slots.tokens() {
            given_up.extend(self.cancel_on(token, tag));
        }
        for transfer in given_up {
            self.handle_next_step(transfer, TransferStep::Done(Err(Error::cancelled())), None);
        }
        self.assign_all_startable();
    }

    /// Cancels the transfer with this tag (the caller's ID for the transfer) if it is on the
    /// connection in slot `token` or waits for that connection. Returns the transfer if it was only
    /// waiting; otherwise `None`.
    fn cancel_on(&mut self, token: usize, tag: u64) -> Option<Box<Transfer>> {
        let slot = self.slots.get_mut(token)?;
        if let Some(place) =
            slot.waiting.iter().position(|transfer| transfer.scheduling.tag == tag && !transfer.is_part())
        {
            let given_up = slot.waiting.remove(place);
            // No other transfer waits for this unopened connection.
            if slot.waiting.is_empty() && !matches!(slot.state, ConnectionState::Open(_)) {
                self.remove(token);
            }
            return given_up;
        }
        let ConnectionSlot { state: ConnectionState::Open(connection), paused, .. } = slot else { return None };
        let mut finished = FinishedTransfers::new();
        let progress = connection.cancel(tag, self.now, &mut finished)?;
        *paused = false;
        for (_, after) in finished.iter_mut().filter(|(transfer, _)| transfer.scheduling.tag == tag) {
            *after = TransferStep::Done(Err(Error::cancelled()));
        }
        if progress == ReceiveStatus::Closed {
            self.remove(token);
        } else {
            self.send_pending(token);
        }
        self.handle_finished(token, &mut finished);
        None
    }
}
