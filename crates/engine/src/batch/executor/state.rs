//! The state that a [`RequestExecutor`](super::RequestExecutor) keeps under its lock: waiting
//! requests, requests in progress, and the thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haul_policy::queue::{HostId, JobQueue, QueueCaps};
use haul_policy::target::Target;
use rustc_hash::FxHashMap;

use super::OnDone;
use crate::drive::retry_waiting::{MAX_WAITING_RETRIES, WaitingRetries};
use crate::drive::worker::HandedOverWork;
use crate::drive::worker_inbox::WorkerInbox;
use crate::request::Request;
use crate::sink::Sink;
use crate::time_conversions;
use crate::transfer::Transfer;

/// The state of an executor, which runs requests on the event loop of a separate thread: its
/// requests and its thread.
pub(super) struct RequestExecutorState {
    pub(super) queue: JobQueue<()>,
    pub(super) waiting: FxHashMap<u64, WaitingRequest>,
    /// The deadlines of waiting requests, each with the id of its request. Only requests whose
    /// timeout can expire before they start are included.
    pub(super) due: BTreeSet<(Instant, u64)>,
    pub(super) running: BTreeMap<u64, (OnDone, Target)>,
    /// The requests in progress that wait for a retry, by id. They do not count towards the limits
    /// on concurrent requests.
    pub(super) retrying: BTreeMap<u64, (OnDone, Target)>,
    /// The transfers of the requests in `retrying`. A transfer that has a deadline, and still waits
    /// for its retry at that time, fails.
    pub(super) retries: WaitingRetries,
    /// The maximum number of requests in `retrying`. A further request that is to be retried keeps
    /// its place among the running requests.
    pub(super) max_retrying: usize,
    pub(super) next_id: u64,
    pub(super) inboxes: Vec<Arc<WorkerInbox>>,
    /// True if a thread runs the event loop, or is about to run it.
    pub(super) has_worker: bool,
    /// The thread that was started last; `None` before the first start. It is joined when the
    /// executor is closed.
    pub(super) thread: Option<JoinHandle<()>>,
    /// True if the event loop must end. Another event loop may be started later.
    pub(super) is_over: bool,
    /// True if the executor is closed. No event loop is started any more.
    pub(super) is_closed: bool,
    /// True if the client was dropped. The event loop ends once the requests in progress are
    /// finished.
    pub(super) is_retired: bool,
    /// The time since when the event loop has no request; `None` if it has one.
    pub(super) idle_since: Option<Instant>,
    /// The id of the request that a thread other than the event loop's started last. That thread
    /// runs the request as long as `running` contains the id. `None` if no other thread has started
    /// a request, or if the last such request was handed over to the event loop.
    pub(super) on_other_thread: Option<u64>,
    /// The requests in progress that another thread began, and that the event loop has not taken
    /// over yet.
    pub(super) handed_over: Vec<HandedOverWork>,
    /// True if the event loop moves the connection of a request to the client's pool, where another
    /// thread can use it, when the request ends and no other waits or is in progress. The event
    /// loop keeps new and shared connections, and those with a long body.
    pub(super) pools_last_connection: bool,
    /// True if the request that ended last used a connection that was already open. The event loop
    /// moves only such a connection to the client's pool, where another thread can use it. A new
    /// connection stays with the event loop, which closes it as soon as the server does: perhaps no
    /// other request to that server follows.
    pub(super) has_reused_connection: bool,
    /// True if the body of the request that ended last was long ([`LONG_BODY`](super::LONG_BODY)).
    /// The next body is then probably long, too. So the event loop, not another thread, runs the
    /// next request, and keeps the connection for it.
    pub(super) had_long_body: bool,
}

/// A request that waits for its start, with its sink and callback.
pub(super) struct WaitingRequest {
    pub(super) request: Request,
    pub(super) sink: Box<dyn Sink>,
    pub(super) done: OnDone,
    pub(super) since: Instant,
    /// The time at which the request fails if it has not started by then. `None` if the request may
    /// wait without a limit. [`RequestExecutorState::due`] contains the same time.
    pub(super) due: Option<Instant>,
}

impl RequestExecutorState {
    pub(super) fn new(caps: QueueCaps) -> Self {
        Self {
            queue: JobQueue::new(caps),
            waiting: FxHashMap::default(),
            due: BTreeSet::new(),
            running: BTreeMap::new(),
            retrying: BTreeMap::new(),
            retries: WaitingRetries::default(),
            // With one request at a time, the order is part of what the program asked for.
            max_retrying: if caps.total <= 1 { 0 } else { MAX_WAITING_RETRIES },
            next_id: 0,
            inboxes: Vec::new(),
            has_worker: false,
            thread: None,
            is_over: false,
            is_closed: false,
            is_retired: false,
            idle_since: None,
            on_other_thread: None,
            handed_over: Vec::new(),
            pools_last_connection: false,
            has_reused_connection: false,
            had_long_body: false,
        }
    }

    /// Returns true if no request is in progress, and no more than `waiting` requests wait.
    pub(super) fn has_no_request_but(&self, waiting: usize) -> bool {
        self.waiting.len() <= waiting && self.running.is_empty() && self.retrying.is_empty()
    }

    /// Returns true if no request waits, and none is in progress on the event loop. A request that
    /// another thread runs does not count.
    pub(super) fn is_event_loop_free(&self) -> bool {
        self.waiting.is_empty()
            && self.retrying.is_empty()
            && self.running.keys().all(|id| Some(*id) == self.on_other_thread)
    }

    /// Removes the waiting request with this id from the queue and returns it. Returns `None` if no
    /// such request waits.
    pub(super) fn remove_from_queue(&mut self, id: u64) -> Option<WaitingRequest> {
        let job = self.take_waiting(id)?;
        self.queue.remove(id);
        Some(job)
    }

    /// Removes all waiting requests from the queue and returns them. The key is the id of the
    /// request.
    pub(super) fn take_all_waiting(&mut self) -> FxHashMap<u64, WaitingRequest> {
        self.queue = self.queue.empty_with_same_caps();
        self.due.clear();
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn take_waiting(&mut self, id: u64) -> Option<WaitingRequest> {
        let job = self.waiting.remove(&id)?;
        if let Some(due) = job.due {
            self.due.remove(&(due, id));
        }
        Some(job)
    }

    /// Removes and returns the transfer of a request that waits for a retry. The request counts as
    /// running from now on. Returns `None` if no such request waits for a retry.
    pub(super) fn take_retry(&mut self, id: u64) -> Option<Box<Transfer>> {
        let transfer = self.retries.remove(id)?;
        self.running.extend(self.retrying.remove_entry(&id));
        Some(transfer)
    }

    /// Delays all requests to a host for the time `pause`, because the server asked for it
    /// (`Retry-After`). The pause counts towards the timeouts of the requests that wait for this
    /// host, so a request whose timeout expires during the pause fails before it starts.
    pub(super) fn pause_host(&mut self, host: HostId, pause: Duration) {
        let now = Instant::now();
        let until = time_conversions::add_saturating(now, pause);
        let Self { queue, waiting, due, .. } = self;
        queue.pause_host_until(host, time_conversions::to_monotonic_time(until));
        for id in queue.waiting_jobs_of_host(host) {
            let Some(job) = waiting.get_mut(&id) else { continue };
            let end = job.request.max_time().and_then(|limit| now.checked_add(limit)).filter(|at| *at < until);
            if let Some(end) = end.filter(|end| job.due.is_none_or(|known| *end < known)) {
                due.extend(Some((end, id)));
                if let Some(known) = job.due.replace(end) {
                    due.remove(&(known, id));
                }
            }
        }
    }
}
