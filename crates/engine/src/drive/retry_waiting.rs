//! Transfers that wait for their retry without occupying a slot of the limit on parallel transfers.
//!
//! The scheduler's queue holds only the IDs of these transfers, and decides when each of them
//! continues.

use std::collections::BTreeSet;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::transfer::Transfer;

/// The maximum number of transfers of a run that wait for their retry without counting towards the
/// limit on parallel transfers. Further waiting transfers count.
///
/// A waiting transfer takes about 2 KiB, so all of them take about 8 MiB. The number does not
/// depend on the limit on parallel transfers. For example, a run with 10 parallel transfers may
/// have 1,000 failing URLs among its first 10,000, and all of these wait at the same time.
pub(crate) const MAX_WAITING_RETRIES: usize = 4096;

/// The transfers that wait for their retry. The key is the ID that the scheduler gave to the
/// transfer.
#[derive(Default)]
pub(crate) struct WaitingRetries {
    /// The waiting transfers by their IDs. Each is stored with its deadline (also in `deadlines`),
    /// or `None` if it has no deadline.
    transfers: FxHashMap<u64, (Box<Transfer>, Option<Instant>)>,
    /// The deadlines of the waiting transfers, each with the ID of its transfer. A transfer that
    /// still waits at its deadline fails.
    deadlines: BTreeSet<(Instant, u64)>,
}

impl WaitingRetries {
    /// Adds a transfer. The transfer fails if it still waits at `deadline`. `None` means that it
    /// has no deadline.
    pub(crate) fn insert(&mut self, transfer: Box<Transfer>, deadline: Option<Instant>) {
        let tag = transfer.scheduling.tag;
        self.deadlines.extend(deadline.map(|at| (at, tag)));
        self.transfers.insert(tag, (transfer, deadline));
    }

    /// Removes and returns the transfer with this ID; `None` if no such transfer waits.
    pub(crate) fn remove(&mut self, tag: u64) -> Option<Box<Transfer>> {
        let (transfer, deadline) = self.transfers.remove(&tag)?;
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, tag));
        }
        Some(transfer)
    }

    /// Returns the ID of a transfer whose deadline has passed; `None` if no deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Option<u64> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|(_, tag)| *tag)
    }

    /// Returns the earliest deadline of the waiting transfers; `None` if none has a deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }
}
