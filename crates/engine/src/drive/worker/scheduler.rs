//! The scheduler of a run: the source of a worker's transfers, and the receiver of their results.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::queue::HostId;

use crate::drive::inbox::WorkerInbox;
use crate::sink::output::OutputRoom;
use crate::transfer::Transfer;
use crate::{Error, Result};

/// The source of a worker's transfers, and the receiver of their results. All workers of a run
/// share it.
///
/// Methods with a default are for runs that gather output, lend host slots or measure the cost of
/// bodies.
pub trait Scheduler: Send + Sync {
    /// Returns the next transfer for this worker, if one may start now.
    fn next(&self, worker: usize, now: Instant) -> Option<Box<Transfer>>;

    /// Decides the use of a finished transfer's host slot.
    fn next_for_slot(&self, worker: usize, slot: HostId, now: Instant) -> SlotUse;

    /// Notes that a transfer is over.
    fn finished(&self, worker: usize, transfer: Box<Transfer>, result: Result<()>);

    /// Notes that a transfer waits before it is tried again. Returns true if another transfer may
    /// use its slot meanwhile: [`Scheduler::retry_resumed`] is called when it continues.
    fn retry_delayed(&self, _transfer: &Transfer) -> bool {
        false
    }

    /// Notes that a transfer whose slot was lent continues.
    fn retry_resumed(&self) {}

    /// Notes that the connection of this host slot is in the pool for another worker.
    fn slot_given_away(&self, _slot: HostId) {}

    /// Returns true if bodies cost more than moving them: they are decoded, decrypted or searched.
    fn is_heavy(&self) -> bool {
        false
    }

    /// Notes that the system has no descriptor left, so that fewer transfers may run.
    fn out_of_descriptors(&self);

    /// Passes gathered output on. While the output is full, the first worker watches it.
    ///
    /// # Errors
    /// When the output is gone; the run is over.
    fn flush(&self, _worker: usize) -> Result<OutputRoom> {
        Ok(OutputRoom::Free)
    }

    /// Returns true if output has been gathered.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Returns the descriptor to watch when the output is full.
    fn output_fd(&self) -> Option<i32> {
        None
    }

    /// Returns the time to ask for the next transfer even without an event; `now` is the time that
    /// [`Scheduler::next`] was last called with.
    fn next_timeout(&self, now: Instant) -> Option<Instant>;

    /// Notes that the worker has handled all events of a wake-up, and looks for more. Returns the
    /// time of the next such call, if one is needed without an event.
    fn end_turn(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Returns the number of transfers that wait for a slot or a worker.
    fn backlog(&self) -> usize {
        0
    }

    /// Returns true if the run is over.
    fn is_over(&self) -> bool;

    /// Ends the run with the error of a worker, whose transfers are lost.
    fn abort(&self, error: Error);

    /// Notes that the host of this slot accepts concurrent transfers on one connection: it may have
    /// as many as there are slots.
    fn host_multiplexes(&self, _slot: HostId) {}

    /// Returns the present limit of connections to one host, if it differs from the one that the
    /// run started with.
    fn connections(&self) -> Option<usize> {
        None
    }

    /// Notes that a worker has started.
    fn worker_started(&self, inbox: &Arc<WorkerInbox>);
}

/// The use of a free host slot.
pub enum SlotUse {
    /// A transfer; the slot stays taken.
    Transfer(Box<Transfer>),
    /// Another worker gets the slot and the connection: see [`Scheduler::slot_given_away`].
    GiveAway,
    /// No transfer for now.
    Nothing,
}
