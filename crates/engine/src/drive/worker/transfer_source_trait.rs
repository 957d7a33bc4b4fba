//! The scheduler of a run: supplies transfers to the workers and receives the results.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::concurrency::RefusedLoad;
use haul_policy::queue::{HostId, JobEnd};
use rustix::fd::RawFd;

use crate::drive::connection::HttpConnection;
use crate::drive::worker_inbox::WorkerInbox;
use crate::sink::descriptor_writer::OutputReadiness;
use crate::transfer::{Transfer, TransferStep};
use crate::{Error, Result};

/// The source of the transfers of a run, and the receiver of their results. A run is a set of
/// transfers that several workers (threads with an event loop) execute. All workers of the run
/// share the scheduler.
///
/// A host slot is a permit for one transfer to a host. Methods with a default implementation are
/// needed only by some runs: those that gather the output of several transfers for one write, start
/// other transfers while a host does not answer, or decode bodies.
pub trait Scheduler: Send + Sync {
    /// Returns the next transfer for the worker with the index `worker`; `None` if no transfer may
    /// start now.
    fn next(&self, worker: usize, now: Instant) -> Option<Box<Transfer>>;

    /// Decides how a host slot (a permit for one transfer to a host) is used after the transfer
    /// that held it is finished.
    fn next_for_slot(&self, worker: usize, slot: HostId, now: Instant) -> FreeHostSlotUse;

    /// Records that a transfer is over, with this result. `worker` is the index of its worker.
    fn on_finished(&self, worker: usize, transfer: Box<Transfer>, result: Result<()>);

    /// Takes a transfer that waits for its retry until the time `at`. Other transfers may use its
    /// host slot (permit for one transfer to a host) meanwhile. At that time, [`Scheduler::next`]
    /// or [`Scheduler::next_for_slot`] returns the transfer.
    ///
    /// If the transfer must keep its host slot, this method returns the transfer immediately, and
    /// the worker itself waits. This is the default.
    fn delay_retry(&self, _worker: usize, transfer: Box<Transfer>, _at: Instant) -> Option<Box<Transfer>> {
        Some(transfer)
    }

    /// Returns the time from which the limit on the start rate allows the retry of a transfer that
    /// still holds its host slot (the permit for one transfer to a host). If the retry is allowed
    /// now, counts the retry as a start and returns `None`.
    fn retry_wait(&self, _transfer: &Transfer, _now: Instant) -> Option<Instant> {
        None
    }

    /// Removes and returns the transfer with this tag (an ID that the caller has given it), if the
    /// transfer waits for a retry and holds no host slot (a permit for one transfer to a host). The
    /// worker then cancels the transfer. Returns `None` otherwise.
    fn cancelled_retry(&self, _worker: usize, _tag: u64) -> Option<Box<Transfer>> {
        None
    }

    /// Removes and returns a transfer whose deadline passed while it waited for its retry; `None`
    /// if there is none. The worker then ends the transfer with an error.
    fn overdue_retry(&self, _worker: usize, _now: Instant) -> Option<Box<Transfer>> {
        None
    }

    /// Adds an extra slot: allows one more transfer than the limit on all transfers, because a
    /// running transfer waits for the first answer of its host. Returns false if no further slot
    /// may be added. Each success needs a later call of [`Scheduler::remove_extra_slot`].
    fn add_extra_slot(&self) -> bool {
        false
    }

    /// Adds an extra slot: one transfer more than the limit on all transfers may run while the
    /// transfer with the host slot `slot` waits. Its host has accepted the connection, but sends no
    /// response. Returns false if the host has answered an earlier transfer, since such a host is
    /// only slow. Also returns false if no further slot may be added. Each success needs a later
    /// call of [`Scheduler::remove_extra_slot`].
    fn add_extra_slot_for_silent_host(&self, _slot: HostId) -> bool {
        false
    }

    /// Records that the host of this host slot (a permit for one transfer to a host) has answered a
    /// transfer.
    fn on_host_answered(&self, _slot: HostId) {}

    /// Removes an extra slot that [`Scheduler::add_extra_slot`] added, because the transfer that
    /// waited for its host's first answer continues or ends.
    fn remove_extra_slot(&self) {}

    /// Records that the host of this host slot (permit for one transfer to a host) has refused a
    /// transfer because of overload. Returns the load of the host: at most as many running requests
    /// as a new host is allowed, or more. With this result, the worker decides whether to try the
    /// transfer again as soon as the host's limit allows. Returns `None` if no other request to the
    /// host was running, or if the limits of hosts do not adapt.
    fn on_refused(&self, _slot: HostId, _end: JobEnd) -> Option<RefusedLoad> {
        None
    }

    /// Releases a host slot (permit for one transfer to a host), so that another worker can use it.
    /// Before this call, the calling worker puts the slot's connection into the client's pool. The
    /// other worker takes the connection from there.
    fn release_slot_for_other_worker(&self, _slot: HostId) {}

    /// Returns true if most of the CPU time is spent on decoding, decrypting or searching bodies,
    /// and not on moving their bytes. Default: false.
    fn is_heavy(&self) -> bool {
        false
    }

    /// Records that the system has no file descriptor left. The scheduler should run fewer
    /// transfers at a time.
    fn on_out_of_descriptors(&self);

    /// Writes the output of several transfers, which was gathered in memory to save system calls.
    /// `worker` is the index of the calling worker. Returns [`OutputReadiness::Full`] if the output
    /// has no room for the rest. The worker with the index 0 then waits until the output is
    /// writable. If the caller is another worker, this method sends a message to worker 0.
    ///
    /// # Errors
    /// The output cannot be written any more. The run ends.
    fn flush(&self, _worker: usize) -> Result<OutputReadiness> {
        Ok(OutputReadiness::Free)
    }

    /// Returns true if output has been gathered that a flush should write.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Returns the descriptor of the run's output, which the event loop watches while the output is
    /// full. `None` if the descriptor cannot be watched.
    fn output_fd(&self) -> Option<RawFd> {
        None
    }

    /// Returns the time at which [`Scheduler::next`] must be called again even if no event occurs;
    /// `None` if there is no such time. `now` is the current time.
    fn next_timeout(&self, now: Instant) -> Option<Instant>;

    /// Records that the worker has handled all events of one wake-up. Returns the time at which
    /// this method must be called again even if no event occurs; `None` if there is no such time.
    fn on_round_end(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Removes and returns the transfers that other threads have begun and that this run's workers
    /// must continue. A worker calls this method after the message
    /// [`TakeHandedOverWork`](crate::drive::worker_inbox::WorkerMessage). Default: none.
    fn take_handed_over_work(&self) -> Vec<HandedOverWork> {
        Vec::new()
    }

    /// Returns the number of transfers of the run that wait for a host slot (a permit for one
    /// transfer to a host) or for a worker.
    fn backlog(&self) -> usize {
        0
    }

    /// Returns true if there is nothing more to fetch and all transfers are finished, or if the run
    /// was aborted.
    fn is_run_over(&self) -> bool;

    /// Ends the run with `error`, because a worker failed and lost its transfers.
    fn abort(&self, error: Error);

    /// Records whether the host of this host slot (permit for one transfer to a host) supports
    /// concurrent transfers on one connection (HTTP/2, HTTP/3). The limit on connections to the
    /// host does not apply to transfers to such a host.
    fn set_host_multiplexes(&self, _slot: HostId, _multiplexes: bool) {}

    /// Returns the current limit on connections to one host; `None` if the limit is still
    /// [`WorkerOptions::per_host`](super::WorkerOptions::per_host).
    fn connections(&self) -> Option<usize> {
        None
    }

    /// Records that a worker has started. The scheduler sends messages to the worker through
    /// `inbox`.
    fn on_worker_started(&self, inbox: &Arc<WorkerInbox>);
}

/// The use of a host slot (a permit for one transfer to a host) after the transfer that held it is
/// finished; see [`Scheduler::next_for_slot`].
pub enum FreeHostSlotUse {
    /// The host slot (a permit for one transfer to a host) is used for this transfer.
    Transfer(Box<Transfer>),
    /// Another worker needs the host slot (a permit for one transfer to a host) and its connection.
    /// This worker puts the connection into the pool and calls
    /// [`Scheduler::release_slot_for_other_worker`].
    GiveAway,
    /// No transfer uses the host slot (a permit for one transfer to a host) at present. The
    /// scheduler has released it.
    Nothing,
}

/// A transfer that another thread began, and that a worker continues.
pub enum HandedOverWork {
    /// A connection on which the transfer is in progress.
    Connection(HttpConnection),
    /// A transfer without a connection, and its next step.
    Step(Box<Transfer>, TransferStep),
}
