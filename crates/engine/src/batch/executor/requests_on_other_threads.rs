//! The requests of an executor that another thread runs, at first or to their end.

use std::sync::Arc;

use haul_policy::queue::HostId;

use super::{HandedOverWork, OnDone, RequestExecutor, failed_outcome};
use crate::drive::worker_inbox::WorkerMessage;
use crate::request::Request;
use crate::sink::Sink;
use crate::transfer::Transfer;
use crate::{Client, Error, Result};

/// The largest rest of a body, in bytes, that another thread receives. A socket's receive buffer
/// takes it, however late the thread looks for it. A longer body is a long one.
pub(in crate::batch) const LONG_BODY: u64 = 64 << 10;

impl RequestExecutor {
    /// Returns true if another thread may run the next request: the executor has no request, and
    /// the last body was not long.
    pub(in crate::batch) fn may_start_on_other_thread(&self) -> bool {
        let state = self.lock();
        state.has_no_request_but(0) && !state.had_long_body
    }

    /// Accepts a request like [`submit`](Self::submit). If it is the only one and may start, starts
    /// it and returns its transfer, which the caller runs. The caller then calls
    /// [`finish_started`](Self::finish_started) or [`hand_over`](Self::hand_over). Otherwise calls
    /// `before_wake`, and then wakes the event loop.
    pub(in crate::batch) fn submit_or_start(
        self: &Arc<Self>,
        client: &Client,
        request: Request,
        prepare: impl FnOnce(u64) -> (Box<dyn Sink>, OnDone),
        before_wake: impl FnOnce(),
    ) -> (u64, Option<Box<Transfer>>) {
        let (id, transfer, wake_up) = self.accept(request, prepare, true);
        if transfer.is_none() {
            before_wake();
            self.wake_for_request(client, wake_up);
        }
        (id, transfer)
    }

    /// From now on, the event loop puts its connection into the client's pool when the last request
    /// in progress ends.
    pub(in crate::batch) fn pool_last_connection(&self) {
        self.lock().pools_last_connection = true;
    }

    /// Ends a transfer that this thread has run to its end.
    pub(in crate::batch) fn finish_started(&self, transfer: Box<Transfer>, result: Result<()>) {
        let slot = transfer.scheduling.host_slot;
        if self.finish(transfer, result) {
            self.release_host_slot(slot);
        }
    }

    /// Fails a request whose transfer was lost on this thread. `slot` is the transfer's host slot,
    /// its permit for one transfer to the host.
    pub(in crate::batch) fn fail_started(&self, id: u64, slot: Option<HostId>, error: &Error) {
        let mut state = self.lock();
        let lost = state.running.remove(&id);
        self.report_in_progress(&state);
        drop(state);
        if let Some((done, target)) = lost {
            done(failed_outcome(target, error.duplicate()), None);
            self.release_host_slot(slot);
            self.notify_results();
        }
    }

    fn release_host_slot(&self, slot: Option<HostId>) {
        let mut state = self.lock();
        if let Some(slot) = slot {
            state.queue.on_job_end(slot);
        }
        let starts_others = !state.waiting.is_empty();
        drop(state);
        if starts_others {
            self.wake_workers();
        }
    }

    /// Gives the transfer of the request `id`, which this thread began, to the event loop. Returns
    /// it if the request has already failed, because an event loop has.
    pub(in crate::batch) fn hand_over(
        self: &Arc<Self>,
        client: &Client,
        id: u64,
        work: HandedOverWork,
    ) -> Option<HandedOverWork> {
        let mut state = self.lock();
        if !state.running.contains_key(&id) {
            return Some(work);
        }
        state.handed_over.push(work);
        (state.on_other_thread, state.idle_since) = (None, None);
        let starts = !std::mem::replace(&mut state.has_worker, true);
        let inboxes = if starts { Vec::new() } else { state.inboxes.clone() };
        drop(state);
        if starts {
            self.start_thread(client);
        }
        for inbox in inboxes {
            inbox.send(WorkerMessage::TakeHandedOverWork);
        }
        None
    }

    /// Removes the transfer of the request `id` if it was handed over and the event loop has not
    /// taken it yet. Returns `None` if there is no such transfer.
    pub(in crate::batch) fn take_handed_over(&self, id: u64) -> Option<HandedOverWork> {
        let mut state = self.lock();
        let place = state.handed_over.iter().position(|work| match work {
            HandedOverWork::Connection(connection) => {
                connection.front_transfer().is_some_and(|transfer| transfer.scheduling.tag == id)
            }
            HandedOverWork::Step(transfer, _) => transfer.scheduling.tag == id,
        })?;
        Some(state.handed_over.swap_remove(place))
    }
}
