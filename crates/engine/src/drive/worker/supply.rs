//! The other side of a worker: where its transfers come from, and where their outcomes go.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::queue::HostId;

use crate::drive::inbox::Inbox;
use crate::sink::output::Room;
use crate::transfer::Transfer;
use crate::{Error, Result};

/// The source of transfers, and the receiver of their results. All workers of a run share it.
///
/// Methods with a default are for runs that collect output, lend slots or count the cost of bodies.
pub trait Supply: Send + Sync {
    /// The next transfer for this worker, if one may start now.
    fn next(&self, worker: usize, now: Instant) -> Option<Box<Transfer>>;

    /// The slot of a transfer that is over is free: another one for it?
    fn another(&self, worker: usize, slot: HostId, now: Instant) -> Another;

    /// A transfer is over.
    fn finished(&self, worker: usize, transfer: Box<Transfer>, result: Result<()>);

    /// A transfer waits before it is tried again. Whether somebody else may use its share of the work meanwhile:
    /// [`Supply::resumed`] is called then when it goes on.
    fn delayed(&self, _transfer: &Transfer) -> bool {
        false
    }

    /// A transfer whose share was lent goes on.
    fn resumed(&self) {}

    /// The connection of this slot was left for another worker.
    fn gave_away(&self, _slot: HostId) {}

    /// Returns true if bodies cost more than moving them: they are decoded, decrypted or searched.
    fn is_heavy(&self) -> bool {
        false
    }

    /// The system has no descriptor left: this many at once are too many.
    fn fewer(&self);

    /// Passes gathered output on. While it is full, the first worker is told to watch it.
    ///
    /// # Errors
    /// When the output is gone; the run is over.
    fn flush(&self, _worker: usize) -> Result<Room> {
        Ok(Room::Free)
    }

    /// Returns true if output has been gathered.
    fn wants_flush(&self) -> bool {
        false
    }

    /// The descriptor to watch when the output is full.
    fn output(&self) -> Option<i32> {
        None
    }

    /// Returns the time to ask for the next transfer even without an event; `now` is the time that
    /// [`Supply::next`] was last called with.
    fn wakes_at(&self, now: Instant) -> Option<Instant>;

    /// All that a wake-up has brought is dealt with, and the worker looks for more. When it wants to be told so again though
    /// nothing happens by then.
    fn turned(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Returns the number of transfers that wait for a slot or a worker.
    fn backlog(&self) -> usize {
        0
    }

    /// Returns true if the run is over.
    fn is_over(&self) -> bool;

    /// A worker cannot go on, and the transfers it held are lost: the run ends with this.
    fn end(&self, error: Error);

    /// The host of this slot accepts concurrent transfers on one connection: it may have as many as there are slots.
    fn shares(&self, _slot: HostId) {}

    /// Returns the present limit of connections to one host, if it differs from the one that the
    /// run started with.
    fn connections(&self) -> Option<usize> {
        None
    }

    /// A worker has joined.
    fn joined(&self, inbox: &Arc<Inbox>);
}

/// The use of a free slot.
pub enum Another {
    /// A transfer; the slot stays taken.
    Transfer(Box<Transfer>),
    /// Another worker should have it, and the connection: see [`Supply::gave_away`].
    GiveAway,
    /// No transfer for now.
    Nothing,
}
