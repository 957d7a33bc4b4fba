//! The executor: accepts single requests from any thread, and runs them on an event loop.
//!
//! The first request starts a thread. The thread ends after some time without requests, or when its
//! client was dropped. A later request starts a new thread. The thread passes the result of each
//! request to its [`OnDone`].
//!
//! A request's timeout includes the pause that a server asks for (`Retry-After`) and, depending on
//! [`WaitsCountedInTimeout`], the time in the queue behind other requests. A request whose timeout
//! expires before its start fails, and so does a request that waits longer than its
//! [`pool_timeout`](crate::RequestOptions::pool_timeout).
//!
//! The program's streams, sinks and traces run on the same thread. When one of them panics, all
//! requests in progress fail, since their connections are lost. Waiting requests continue on a new
//! event loop. (A panic on a thread that runs a request directly fails only this request. A
//! [`Read`](std::io::Read) that supplies content runs on a separate thread, and its panic fails
//! only its own request.)

mod admission;
mod requests_on_other_threads;
mod state;
mod supply_workers_with_requests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haul_policy::concurrency::{INITIAL_LIMIT, MAX_LIMIT};
use haul_policy::queue::{HostId, QueueCaps};
use haul_policy::target::Target;

pub(crate) use admission::{AdmissionControl, AdmissionRule, ExecutorLoad, InProgressSummary, WaitsCountedInTimeout};
pub(super) use requests_on_other_threads::{LONG_BODY, MAX_WAITING_REST};
use state::{RequestExecutorState, WaitingRequest};

use super::BatchOptions;
use crate::body::decoder_memory_budget::DecoderMemoryBudget;
use crate::body::delivery::BodyDelivery;
pub(crate) use crate::drive::worker::HandedOverWork;
use crate::drive::worker::{self, Scheduler, WorkerOptions};
use crate::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::fleet::StartLimits;
use crate::ignore_poison::IgnorePoison;
use crate::request::{Request, StallLimit};
use crate::sink::Sink;
use crate::time_conversions;
use crate::transfer::{Transfer, TransferOutcome};
use crate::{Client, Error, ErrorKind, Result, spawn_with_signals_blocked};

/// The time for which an idle thread waits for another request before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The error message for a request whose [`pool_timeout`](crate::RequestOptions::pool_timeout) has
/// expired.
const POOL_TIMED_OUT: &str = "no connection became free in time";

/// The callback for the result of a request. It also gets the request's sink, or `None` if the sink
/// was lost in a panic or because no thread could be started.
pub(crate) type OnDone = Box<dyn FnOnce(TransferOutcome, Option<Box<dyn Sink>>) + Send>;

/// The executor, which runs single requests of a client or a batch on one thread. The thread runs
/// an event loop.
pub(crate) struct RequestExecutor {
    state: Mutex<RequestExecutorState>,
    workers: WorkerOptions,
    counts: WaitsCountedInTimeout,
    limits: StartLimits,
    stall: Option<StallLimit>,
    admission: Option<Arc<dyn AdmissionControl>>,
    decoders: Arc<DecoderMemoryBudget>,
}

/// The maximum number of bytes that the content decoders of all requests of an executor may use
/// together for their windows (the decoded bytes kept for back references).
const MAX_DECODER_MEMORY: u64 = 32 << 20;

impl RequestExecutor {
    /// Makes an executor for the asynchronous requests of a client. `most` is the maximum number of
    /// requests at a time, in total and for each host.
    pub(crate) fn for_client(most: usize) -> Arc<Self> {
        let options = BatchOptions { max_parallel: most, per_host: Some(most), ..BatchOptions::default() };
        Self::new(&options, WaitsCountedInTimeout::All, None)
    }

    /// Makes an executor for the requests of a batch.
    pub(crate) fn for_batch(options: &BatchOptions, admission: Arc<dyn AdmissionControl>) -> Arc<Self> {
        Self::new(options, WaitsCountedInTimeout::Pauses, Some(admission))
    }

    fn new(
        options: &BatchOptions,
        counts: WaitsCountedInTimeout,
        admission: Option<Arc<dyn AdmissionControl>>,
    ) -> Arc<Self> {
        let per_host = options.per_host.unwrap_or(INITIAL_LIMIT).max(1);
        let caps = QueueCaps { total: options.max_parallel.max(1), per_host };
        let mut state = RequestExecutorState::new(caps);
        if options.per_host.is_none() && options.pipeline <= 1 {
            state.queue.adapt_caps(MAX_LIMIT);
        }
        Arc::new(Self {
            state: Mutex::new(state),
            workers: WorkerOptions {
                threads: 1,
                depth: options.pipeline.max(1),
                per_host: caps.per_host,
                connects_at_once: false,
            },
            counts,
            limits: StartLimits {
                all: options.start_rate.clone(),
                each_host: options.host_start_rate.clone(),
                bytes: options.limit_rate_total.clone(),
            },
            stall: options.stall,
            admission,
            decoders: Arc::new(DecoderMemoryBudget::new(MAX_DECODER_MEMORY)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, RequestExecutorState> {
        self.state.lock().ignore_poison()
    }

    /// Accepts a request, and returns its id. Ids are counted from 0. Calls `prepare` with the id
    /// to get the request's sink and the callback for its result.
    pub(crate) fn submit(
        self: &Arc<Self>,
        client: &Client,
        request: Request,
        prepare: impl FnOnce(u64) -> (Box<dyn Sink>, OnDone),
    ) -> u64 {
        let (id, _, wake_up) = self.accept(request, prepare, false);
        self.wake_for_request(client, wake_up);
        id
    }

    /// Accepts a request. If `may_start` is true, starts its transfer unless other requests or a
    /// limit prevent it. Returns the id, the transfer if it was started, and how the caller must
    /// wake the event loop.
    fn accept(
        &self,
        request: Request,
        prepare: impl FnOnce(u64) -> (Box<dyn Sink>, OnDone),
        may_start: bool,
    ) -> (u64, Option<Box<Transfer>>, EventLoopWakeUp) {
        let since = Instant::now();
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        let (sink, done) = prepare(id);
        let host = state.queue.push(&request.target.origin(), id, ());
        self.limits.on_push(&mut state.queue, host, since);
        let expires = request.max_time().and_then(|limit| since.checked_add(limit)).filter(|at| {
            let waits_for_proxy =
                || state.queue.paused_until(host).is_some_and(|until| time_conversions::to_monotonic_time(*at) < until);
            self.counts == WaitsCountedInTimeout::All || waits_for_proxy()
        });
        let turn_ends = request.options.pool_timeout.and_then(|limit| since.checked_add(limit));
        let due = [expires, turn_ends].into_iter().flatten().min();
        state.due.extend(due.map(|at| (at, id)));
        state.waiting.insert(id, WaitingRequest { request, sink, done, since, due });
        if may_start
            && state.has_no_request_but(1)
            && let Some(transfer) = self.next_transfer(&mut state, since)
        {
            state.on_other_thread = Some(id);
            return (id, Some(transfer), EventLoopWakeUp::None);
        }
        state.idle_since = None;
        if !std::mem::replace(&mut state.has_worker, true) {
            return (id, None, EventLoopWakeUp::StartThread);
        }
        // A request that must wait for another one needs no wake-up, unless its timeout is the next
        // one.
        let is_due_first = due.is_some() && state.due.first().is_some_and(|(_, first)| *first == id);
        let has_to_wait = state.queue.is_full(host)
            && state.queue.first_seq() != Some(id)
            && state.queue.has_silence_timeout_or_needs_none(time_conversions::to_monotonic_time(since))
            && !is_due_first;
        let wake_up =
            if has_to_wait { EventLoopWakeUp::None } else { EventLoopWakeUp::CheckWork(state.inboxes.clone()) };
        (id, None, wake_up)
    }

    fn wake_for_request(self: &Arc<Self>, client: &Client, wake_up: EventLoopWakeUp) {
        match wake_up {
            EventLoopWakeUp::None => {}
            EventLoopWakeUp::StartThread => self.start_thread(client),
            EventLoopWakeUp::CheckWork(inboxes) => {
                for inbox in inboxes {
                    inbox.send(WorkerMessage::CheckWork);
                }
            }
        }
    }

    /// Cancels a request: drops its sink, and closes its connection if the request is in progress.
    /// The callback gets an error. Returns `false` if the request has already finished.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let mut state = self.lock();
        if let Some(job) = state.remove_from_queue(id) {
            drop(state);
            (job.done)(failed_outcome(job.request.target, Error::cancelled()), Some(job.sink));
            self.notify_results();
            return true;
        }
        let runs = state.running.contains_key(&id) || state.retrying.contains_key(&id);
        let inboxes = state.inboxes.clone();
        drop(state);
        if runs {
            for inbox in inboxes {
                inbox.send(WorkerMessage::Cancel(id));
            }
        }
        runs
    }

    /// Wakes the event loop after a change that allows waiting requests to start.
    pub(crate) fn wake_workers(&self) {
        let inboxes = self.lock().inboxes.clone();
        for inbox in inboxes {
            inbox.send(WorkerMessage::CheckWork);
        }
    }

    /// Marks the executor as retired: its client was dropped, so there will be no further requests.
    /// The thread ends as soon as the requests in progress are finished.
    pub(crate) fn stop_after_running(&self) {
        self.lock().is_retired = true;
        self.wake_workers();
    }

    /// Closes the executor: aborts requests in progress and drops waiting requests. Their callbacks
    /// are not called. Returns the thread, so that the caller can join it; `None` if there is no
    /// thread.
    pub(crate) fn close(&self) -> Option<JoinHandle<()>> {
        let mut state = self.lock();
        state.is_closed = true;
        state.is_over = true;
        let waiting = state.take_all_waiting();
        let thread = state.thread.take();
        drop(state);
        drop(waiting);
        self.wake_workers();
        thread
    }

    fn start_thread(self: &Arc<Self>, client: &Client) {
        let (executor, client) = (Arc::clone(self), client.for_thread());
        let started = spawn_with_signals_blocked::start("haul-batch", move || executor.run_thread(&client));
        match started {
            Ok(thread) => self.lock().thread = Some(thread),
            Err(error) => {
                self.lock().has_worker = false;
                self.fail_all(&Error::with_source(ErrorKind::Setup, "no thread can be started", error));
            }
        }
    }

    fn run_thread(self: Arc<Self>, client: &Client) {
        let supply: Arc<dyn Scheduler> = self.clone();
        loop {
            match catch_unwind(AssertUnwindSafe(|| worker::run(client, &supply, self.workers))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail_all_of_run(&error),
                // The panic has been printed and reported to the requests that were in progress.
                Err(_) => self.requeue_waiting(),
            }
            let mut state = self.lock();
            state.inboxes.clear();
            state.is_over = state.is_closed;
            if state.is_closed || state.waiting.is_empty() {
                state.has_worker = false;
                // The results of these requests are not wanted any more.
                let running = std::mem::take(&mut state.running);
                let retrying = (std::mem::take(&mut state.retrying), std::mem::take(&mut state.retries));
                drop(state);
                drop((running, retrying));
                return;
            }
        }
    }

    /// Fails all requests after an event loop has failed with `error`. First sets `is_over`, so
    /// that no request starts meanwhile. A request that the program submits when it gets these
    /// errors waits for the next event loop. If that request started on the program's thread, the
    /// executor's thread would discard it with the requests in progress.
    fn fail_all_of_run(&self, error: &Error) {
        self.lock().is_over = true;
        self.fail_all(error);
    }

    /// Fails all requests of the executor with this error: those in the queue and those in
    /// progress.
    fn fail_all(&self, error: &Error) {
        let mut state = self.lock();
        let waiting = state.take_all_waiting();
        drop(state);
        for (_, job) in waiting {
            (job.done)(failed_outcome(job.request.target, error.duplicate()), Some(job.sink));
        }
        self.fail_running(error);
    }

    /// Fails all requests in progress with this error.
    fn fail_running(&self, error: &Error) {
        let mut state = self.lock();
        let mut running = std::mem::take(&mut state.running);
        running.append(&mut state.retrying);
        let transfers = (std::mem::take(&mut state.retries), std::mem::take(&mut state.handed_over));
        drop(state);
        drop(transfers);
        for (_, (done, target)) in running {
            done(failed_outcome(target, error.duplicate()), None);
        }
        self.notify_results();
    }

    /// Makes a new queue after an event loop has panicked, because the old queue still counts the
    /// requests that were in progress. Adds the waiting requests to the new queue in the same
    /// order.
    fn requeue_waiting(&self) {
        let mut state = self.lock();
        let state = &mut *state;
        state.queue = state.queue.empty_with_same_caps();
        let mut waiting: Vec<_> = state.waiting.iter().collect();
        waiting.sort_unstable_by_key(|(id, _)| **id);
        for (id, job) in waiting {
            let host = state.queue.push(&job.request.target.origin(), *id, ());
            self.limits.on_push(&mut state.queue, host, Instant::now());
        }
    }

    /// Notifies the program of results that were added outside the event loop, for example by a
    /// cancellation.
    pub(super) fn notify_results(&self) {
        if let Some(admission) = &self.admission {
            admission.end_round(ExecutorLoad::default(), Instant::now());
        }
    }

    /// Reports the requests in progress to the [`AdmissionControl`].
    fn report_in_progress(&self, state: &RequestExecutorState) {
        if let Some(admission) = &self.admission {
            admission.set_in_progress(InProgressSummary {
                first_running: state.running.keys().next().copied(),
                first_retrying: state.retrying.keys().next().copied(),
                retrying: state.retrying.len(),
            });
        }
    }

    /// Fails the waiting requests whose timeout has expired before their start.
    fn fail_timed_out(&self, now: Instant) {
        let mut late = Vec::new();
        let mut state = self.lock();
        while let Some((_, id)) = state.due.first().copied().filter(|(at, _)| *at <= now) {
            late.extend(state.remove_from_queue(id));
        }
        drop(state);
        for job in late {
            let waited = now.saturating_duration_since(job.since);
            let is_pool_timeout = job.request.options.pool_timeout.is_some_and(|limit| limit <= waited);
            let cause = if is_pool_timeout { POOL_TIMED_OUT } else { "the operation timed out before its turn came" };
            let error = Error::new(ErrorKind::Timeout, cause);
            (job.done)(failed_outcome(job.request.target, error), Some(job.sink));
        }
    }

    /// Returns the next transfer that may start now; `None` if none may.
    fn next_transfer(&self, state: &mut RequestExecutorState, now: Instant) -> Option<Box<Transfer>> {
        // Pauses end even if nothing may start: `next_timeout` reports their end only once.
        state.queue.end_expired_pauses(time_conversions::to_monotonic_time(now));
        if self.limits.earliest_start(now).is_some() {
            return None;
        }
        loop {
            let StartableRequests { beyond_caps, below } = self.startable_requests(state);
            let (host, id, ()) =
                state.queue.next_below(below, time_conversions::to_monotonic_time(now), beyond_caps)?;
            if let Some(transfer) = self.start_transfer(state, host, id, now) {
                self.limits.on_start(&mut state.queue, host, now);
                return Some(transfer);
            }
            state.queue.on_job_end(host);
        }
    }

    /// Records the end of a transfer, and passes its result to its callback. Returns false if the
    /// transfer's request has already failed, because an event loop has panicked.
    fn finish(&self, transfer: Box<Transfer>, result: Result<()>) -> bool {
        let (pause, slot) = (transfer.host_pause(), transfer.scheduling.host_slot);
        let served = transfer.served_job_end(&result);
        let reuses_connection = transfer.facts.connects == 0;
        let is_long = transfer.facts.body_bytes > LONG_BODY;
        let (outcome, path) = transfer.into_outcome(result);
        let mut state = self.lock();
        // The host slot of a request that has failed belongs to a queue that is gone.
        let Some((done, _)) = state.running.remove(&outcome.tag) else { return false };
        if let (Some(pause), Some(slot)) = (pause, slot) {
            state.pause_host(slot, pause);
        }
        if let (Some(end), Some(slot)) = (served, slot) {
            state.queue.adapt_cap_on_end(slot, end);
        }
        (state.has_reused_connection, state.had_long_body) = (reuses_connection, is_long);
        self.report_in_progress(&state);
        drop(state);
        done(outcome, Some(path.into_sink()));
        true
    }

    fn start_transfer(
        &self,
        state: &mut RequestExecutorState,
        host: HostId,
        id: u64,
        now: Instant,
    ) -> Option<Box<Transfer>> {
        if let Some(mut transfer) = state.take_retry(id) {
            transfer.resume_with_slot(host, self.counts == WaitsCountedInTimeout::Pauses, now);
            self.report_in_progress(state);
            return Some(transfer);
        }
        let WaitingRequest { request, sink, done, since, .. } = state.take_waiting(id)?;
        let began = if self.counts == WaitsCountedInTimeout::All { since } else { now };
        let Request { target, options, own } = request;
        state.running.insert(id, (done, target.clone()));
        self.report_in_progress(state);
        let path = BodyDelivery::new(sink).with_decoder_memory(&self.decoders);
        let mut transfer = Transfer::with_overrides(target, options, own, path, began, id);
        transfer.add_run_limits(self.limits.bytes.as_ref(), self.stall);
        transfer.scheduling.host_slot = Some(host);
        transfer.scheduling.rank = id;
        Some(transfer)
    }

    /// Returns the waiting requests that may start now.
    fn startable_requests(&self, state: &RequestExecutorState) -> StartableRequests {
        if state.is_over {
            return StartableRequests::NONE;
        }
        match self.admission.as_ref().map_or(AdmissionRule::Any, |admission| admission.rule()) {
            AdmissionRule::Any => StartableRequests::ALL,
            AdmissionRule::Only(head) if state.queue.first_seq() == Some(head) => StartableRequests::only_request(head),
            AdmissionRule::Only(_) if !state.running.is_empty() => StartableRequests::NONE,
            AdmissionRule::Only(_) if state.retrying.is_empty() => StartableRequests::ALL,
            // Its own body may be what uses up the memory.
            AdmissionRule::Only(_) => {
                let due = state.retrying.keys().copied().find(|id| state.queue.contains(*id));
                due.map_or(StartableRequests::NONE, StartableRequests::only_request)
            }
            AdmissionRule::None => StartableRequests::NONE,
        }
    }
}

/// The way to wake the event loop for a request that was accepted.
enum EventLoopWakeUp {
    /// The event loop needs no wake-up.
    None,
    /// There is no event loop: its thread must be started.
    StartThread,
    /// The event loop must look for requests that may start.
    CheckWork(Vec<Arc<WorkerInbox>>),
}

/// The waiting requests that may start.
#[derive(Clone, Copy)]
struct StartableRequests {
    /// The request that may start regardless of the limits on concurrent requests; `None` if there
    /// is no such request.
    beyond_caps: Option<u64>,
    /// Waiting requests with a lower id than this may start, within the limits on concurrent
    /// requests. 0 means that none may start.
    below: u64,
}

impl StartableRequests {
    const ALL: Self = Self { beyond_caps: None, below: u64::MAX };
    const NONE: Self = Self { beyond_caps: None, below: 0 };

    fn only_request(id: u64) -> Self {
        Self { beyond_caps: Some(id), below: 0 }
    }
}

/// Makes the outcome of a request that failed without a response.
pub(super) fn failed_outcome(target: Target, error: Error) -> TransferOutcome {
    let error = error.with_url(target.to_url());
    TransferOutcome::unsent(target, error, Instant::now())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::sink::memory::MemorySink;
    use crate::transfer::TransferStep;

    #[test]
    fn host_pause_longer_than_the_clock_range_is_accepted() {
        let mut state = RequestExecutorState::new(QueueCaps { total: 1, per_host: 1 });
        let host = state.queue.push(&Target::parse("http://h.test/").expect("a URL").origin(), 0, ());
        state.pause_host(host, Duration::MAX);
        assert!(state.queue.next(time_conversions::to_monotonic_time(Instant::now()), None).is_none());
    }

    #[test]
    fn cancelled_queued_request_leaves_no_state() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let url = format!("http://{}/", silent.local_addr().expect("it is bound"));
        let client = Client::new();
        let executor = RequestExecutor::for_client(1);
        let submit = || {
            let request = client.get(&url).timeout(Duration::from_secs(60)).build().expect("a URL");
            executor.submit(&client, request, |_| (Box::new(MemorySink::default()), Box::new(|_, _| {})))
        };
        submit();
        let _connection = silent.accept().expect("the first is under way");
        let given_up: Vec<u64> = (0..100).map(|_| submit()).collect();
        assert!(given_up.into_iter().all(|id| executor.cancel(id)));
        let state = executor.lock();
        assert_eq!((state.queue.len(), state.waiting.len(), state.due.len()), (0, 0, 0));
        drop(state);
        executor.close().map(JoinHandle::join).expect("there is a thread").expect("it has not panicked");
    }

    /// Makes an executor whose event loop the test stands for.
    fn executor_without_thread() -> (Client, Arc<RequestExecutor>) {
        let executor = RequestExecutor::for_client(4);
        executor.lock().has_worker = true;
        (Client::new(), executor)
    }

    fn start_here(executor: &Arc<RequestExecutor>, client: &Client) -> (u64, Option<Box<Transfer>>) {
        let request = client.get("http://h.test/").build().expect("a URL");
        let prepare = |_| -> (Box<dyn Sink>, OnDone) { (Box::new(MemorySink::default()), Box::new(|_, _| {})) };
        executor.submit_or_start(client, request, prepare, || {})
    }

    #[test]
    fn event_loop_ends_beside_requests_of_other_threads() {
        let (client, executor) = executor_without_thread();
        let long_ago = Instant::now().checked_sub(IDLE_TIMEOUT).expect("the machine is up");
        for idle_since in [None, Some(long_ago)] {
            executor.lock().idle_since = idle_since;
            let transfer = start_here(&executor, &client).1.expect("it is the only one");
            assert!(!executor.is_run_over(), "the request may be handed over");
            assert!(executor.next_timeout(Instant::now()).is_some(), "the event loop looks again");
            executor.finish_started(transfer, Ok(()));
            assert!(executor.next_timeout(Instant::now()).is_some());
        }
        executor.lock().idle_since = Some(long_ago);
        assert!(executor.is_run_over());
    }

    #[test]
    fn request_submitted_while_an_event_loop_fails_waits_for_the_next() {
        let (client, executor) = executor_without_thread();
        let request = client.get("http://h.test/").build().expect("a URL");
        let is_started = Arc::new(Mutex::new(None));
        let (again, started) = ((Arc::clone(&executor), client.clone()), Arc::clone(&is_started));
        let on_done = move |_: TransferOutcome, _: Option<Box<dyn Sink>>| {
            *started.lock().ignore_poison() = Some(start_here(&again.0, &again.1).1.is_some());
        };
        executor.submit(&client, request, |_| (Box::new(MemorySink::default()), Box::new(on_done)));
        executor.fail_all_of_run(&Error::new(ErrorKind::Setup, "on purpose"));
        assert_eq!(*is_started.lock().ignore_poison(), Some(false));
        assert_eq!(executor.lock().waiting.len(), 1);
    }

    #[test]
    fn failed_request_is_not_handed_over() {
        let (client, executor) = executor_without_thread();
        let (id, transfer) = start_here(&executor, &client);
        let transfer = transfer.expect("it is the only one");
        executor.fail_running(&Error::new(ErrorKind::Panicked, "on purpose"));
        let step = TransferStep::Done(Ok(()));
        assert!(executor.hand_over(&client, id, HandedOverWork::Step(transfer, step)).is_some());
        assert!(executor.lock().handed_over.is_empty());
    }
}
