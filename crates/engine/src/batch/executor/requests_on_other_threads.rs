//! The requests of an executor that another thread runs, at first or to their end.

use std::sync::Arc;

use haul_policy::queue::HostId;

use super::{HandedOverWork, OnDone, RequestExecutor, failed_outcome};
use crate::drive::worker_inbox::WorkerMessage;
use crate::request::Request;
use crate::sink::Sink;
use crate::transfer::Transfer;
use crate::{Client, Error, Result};

/// The length in bytes above which a body counts as long. Only the event loop receives a long body:
/// receiving it would keep another thread from its own work for too long (a tenth of a millisecond
/// for this length).
pub(in crate::batch) const LONG_BODY: u64 = 512 << 10;

/// The maximum number of bytes of a body that may be missing while a thread other than the event
/// loop's waits for them. If more are missing, the event loop takes the request over. The other
/// thread may receive late, so the socket's receive buffer must have room for all missing bytes.
pub(in crate::batch) const MAX_WAITING_REST: u64 = 64 << 10;

impl RequestExecutor {
    /// Returns true if a thread other than the event loop's may run the next request that is
    /// submitted: no request waits or is in progress, and the last body was not long
    /// ([`LONG_BODY`]).
    pub(in crate::batch) fn may_start_on_other_thread(&self) -> bool {
        let state = self.lock();
        state.has_no_request_but(0) && !state.had_long_body
    }

    /// Accepts a request like [`submit`](Self::submit), and returns its id. Starts the request on
    /// this thread if no other request waits or is in progress, and no limit forbids the start.
    /// Then also returns the transfer, which the caller runs and passes to
    /// [`finish_started`](Self::finish_started) or [`hand_over`](Self::hand_over). If the request
    /// was not started, calls `before_wake`, and then wakes the event loop to run it.
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

    /// Makes the event loop move connections to the client's pool from now on, so that another
    /// thread can use them. A connection is moved when its request ends and no other waits or is in
    /// progress. Not moved are new and shared (HTTP/2) connections, and those of long bodies.
    pub(in crate::batch) fn pool_last_connection(&self) {
        self.lock().pools_last_connection = true;
    }

    /// Passes the result of a transfer that this thread has run to the transfer's callback, and
    /// releases the transfer's host slot, the permit for one transfer to the host.
    pub(in crate::batch) fn finish_started(&self, transfer: Box<Transfer>, result: Result<()>) {
        let slot = transfer.scheduling.host_slot;
        if self.finish(transfer, result) {
            self.release_host_slot(slot);
        }
    }

    /// Ends the request `id` with `error`, because a panic on this thread has destroyed the
    /// request's transfer. `slot` is the host slot of the transfer, a permit for one transfer to
    /// the host; `None` if the transfer had none.
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

    /// Gives the request `id`, which this thread has started, to the event loop. The event loop
    /// continues the request from its state `work`. Returns `None` in this case. If the event loop
    /// has failed meanwhile, the request has ended with an error: returns `work`.
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

    /// Takes back the request `id` that another thread has handed over to the event loop, so that
    /// the caller can cancel the request. Returns `None` if the event loop has already taken the
    /// request, or if the request was not handed over.
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
