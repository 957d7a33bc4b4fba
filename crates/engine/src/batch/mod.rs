//! Runs many requests in parallel. The program submits them one by one, or passes an iterator of
//! requests. Responses are complete, and are returned in the order of the requests or of
//! completion.
//!
//! One thread serves all requests, except those that [`BatchOptions::direct`] leaves to the
//! program's threads. It starts with the first request and ends by itself. The memory of bodies is
//! bounded: if the program does not take the responses, haul stops receiving.
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let base = origin.url("/small");
//! use haul::batch::BatchOptions;
//!
//! let client = haul::Client::new();
//! let requests = (0..100).map(|i| client.get(&format!("{base}/{i}")).build().expect("a URL"));
//! for (index, reply) in client.fetch_all(requests, BatchOptions::default()) {
//!     assert_eq!(reply?.body, format!("small {index}\n").as_bytes());
//! }
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! A [`Batch`] does the same without an iterator. It also works with other event loops: the
//! descriptor of [`Batch::fd`] is readable while [`Batch::try_next`] has a result. It can also wake
//! tasks of the program ([`Batch::task_waker`]).

mod budget_counting_sink;
mod completion_queue;
mod descriptor_wakers;
mod direct_driver;
pub(crate) mod executor;
mod fetch_all;
mod memory_budget;
mod readiness_set;
mod results_descriptor;

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, OwnedFd};

pub use fetch_all::FetchAll;

use crate::fleet::{HostStartRate, StartRate};
use crate::fork;
use crate::interrupt_callback::{InterruptCallback, InterruptCallbackTimer};
use crate::request::{Request, StallLimit, TotalRateLimit};
use crate::response::BufferedResponse;
use crate::sink::Sink;
use crate::sink::memory::MemorySink;
use crate::transfer::TransferOutcome;
use crate::{Client, Error, ErrorKind, Result};
use budget_counting_sink::BudgetCountingSink;
use completion_queue::{CompletionQueue, CompletionState};
use direct_driver::DirectDriver;
use executor::{OnDone, RequestExecutor};

/// The order in which responses are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BatchOrder {
    /// Responses are returned in the order of the requests. The default.
    #[default]
    Input,
    /// Responses are returned as soon as they are complete.
    Completion,
}

/// The error message for a batch that a forked child uses.
const INHERITED: &str = "the requests of this batch belong to the parent of this process";

/// Limits and settings of a [`Batch`].
///
/// A request's [`timeout`](crate::RequestBuilder::timeout) begins when the request starts. The time
/// before, in which the request waits for other requests of the batch or for free memory, does not
/// count. A delay that the server demands with `Retry-After` counts.
/// [`RequestOptions::pool_timeout`](crate::RequestOptions::pool_timeout) limits all of these times
/// together.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Maximum number of requests at a time. Default 64.
    pub max_parallel: usize,
    /// Maximum number of requests at a time to one host. On HTTP/1.1, it is also the maximum number
    /// of connections to the host. Default: chosen between 6 and 50 by measurement
    /// ([`haul_policy::concurrency`]); 6 if requests are pipelined.
    pub per_host: Option<usize>,
    /// Maximum number of unanswered requests on an HTTP/1.1 connection (RFC 9112 section 9.3.2).
    /// Default 1: no pipelining.
    pub pipeline: usize,
    /// The maximum rate at which requests start. A retry counts, a redirect does not. Default: no
    /// limit.
    pub start_rate: Option<StartRate>,
    /// The maximum rate at which requests to one host start. The host is the host in the URL of the
    /// request. Default: no limit.
    pub host_start_rate: Option<HostStartRate>,
    /// The limit on bytes per second for all requests together. The bytes of a request with its own
    /// total limit do not count. Default: no limit.
    pub limit_rate_total: Option<TotalRateLimit>,
    /// The stall timeout: a request fails if no byte of it is sent or received for this time. A
    /// stall timeout of the request takes precedence. Default: none.
    pub stall: Option<StallLimit>,
    /// The order in which the responses are returned. Default: the order of the requests.
    pub order: BatchOrder,
    /// Maximum number of bytes for bodies in progress and bodies that the program has not taken
    /// yet. One body may exceed this limit. Default 64 MiB.
    pub memory: u64,
    /// True if the program watches the descriptor of the batch ([`Batch::fd`]), and looks for
    /// results soon after it becomes readable. The program's threads may then send and receive a
    /// request by themselves, if it is the only one of the batch: [`Batch::submit`] sends it, and
    /// [`Batch::try_next`] receives its response. This saves the wake-up of the batch's thread. Has
    /// an effect on Linux only. Default: false.
    pub direct: bool,
    /// A callback that is called while the program waits for results, and that decides whether to
    /// stop waiting. Default: none.
    pub interrupt: Option<InterruptCallback>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            max_parallel: 64,
            per_host: None,
            pipeline: 1,
            start_rate: None,
            host_start_rate: None,
            limit_rate_total: None,
            stall: None,
            order: BatchOrder::Input,
            memory: 64 << 20,
            direct: false,
            interrupt: None,
        }
    }
}

/// A set of requests in progress, usable from any number of threads. Dropping the batch cancels its
/// requests and closes their connections.
///
/// In a forked child, a batch does not work: submitted requests are not sent, and [`Batch::next`]
/// fails.
pub struct Batch {
    client: Client,
    executor: Arc<RequestExecutor>,
    queue: Arc<CompletionQueue>,
    /// The driver for [`BatchOptions::direct`]; `None` if it is not set.
    direct: Option<DirectDriver>,
    interrupt: Option<InterruptCallback>,
    generation: u32,
}

/// A finished request of a [`Batch`], with its outcome and its sink.
pub struct FinishedRequest {
    id: u64,
    outcome: TransferOutcome,
    sink: Option<Box<dyn Sink>>,
    cost: u64,
}

impl FinishedRequest {
    /// Returns the id of the request, which [`Batch::submit`] returned.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the outcome of the request: its result, the head of its response, and facts about
    /// the transfer.
    #[must_use]
    pub fn outcome(&self) -> &TransferOutcome {
        &self.outcome
    }

    /// Returns the response with its body. The body is empty if the request has its own sink.
    ///
    /// # Errors
    /// The request failed.
    pub fn into_reply(self) -> Result<BufferedResponse> {
        let (outcome, memory) = self.into_parts::<MemorySink>();
        BufferedResponse::from_outcome(outcome, memory.map(MemorySink::into_bytes).unwrap_or_default())
    }

    /// Returns the outcome and the sink. The sink is `None` if it is not of type `S`. It is also
    /// `None` if it was lost in a panic, or because no thread could be started.
    #[must_use]
    pub fn into_parts<S: Sink>(self) -> (TransferOutcome, Option<S>) {
        let sink = self.sink.map(|sink| sink as Box<dyn Any>);
        (self.outcome, sink.and_then(|sink| sink.downcast().ok()).map(|sink| *sink))
    }
}

impl Batch {
    pub(crate) fn new(client: &Client, options: BatchOptions) -> Self {
        let queue = CompletionQueue::new(options.order, options.memory);
        let executor = RequestExecutor::for_batch(&options, queue.clone());
        let direct = options.direct.then(|| DirectDriver::new(client, &executor));
        let generation = fork::fork_count();
        Self { client: client.clone(), executor, queue, direct, interrupt: options.interrupt, generation }
    }

    /// Adds a request whose response body is kept in memory. Returns the request's id, counted from
    /// 0. Never waits.
    pub fn submit(&self, request: Request) -> u64 {
        self.submit_into(request, Box::new(MemorySink::default()))
    }

    /// Adds a request whose response body goes into this sink. Returns the request's id. The sink
    /// is used on another thread, or with [`BatchOptions::direct`] also by [`Batch::try_next`] and
    /// [`Batch::try_bunch`], and is returned with the result ([`FinishedRequest::into_parts`]).
    /// With [`BatchOptions::direct`], this method itself may call [`Sink::partial`], which must not
    /// use the batch.
    pub fn submit_into(&self, request: Request, sink: Box<dyn Sink>) -> u64 {
        if self.is_inherited() {
            return u64::MAX;
        }
        self.queue.lock().outstanding += 1;
        let prepare = |id| -> (Box<dyn Sink>, OnDone) {
            let sink = BudgetCountingSink::new(sink, id, Arc::clone(&self.queue.budget));
            let queue = Arc::clone(&self.queue);
            (Box::new(sink), Box::new(move |outcome, sink| queue.push_result(id, outcome, sink)))
        };
        match &self.direct {
            Some(direct) => direct.submit(request, prepare),
            None => self.executor.submit(&self.client, request, prepare),
        }
    }

    /// Cancels a request and closes its connection or stream. The request still appears among the
    /// results, as a failure with [`ErrorKind::Interrupted`]. Returns `false` if it had already
    /// finished.
    pub fn cancel(&self, id: u64) -> bool {
        if self.is_inherited() {
            return false;
        }
        match &self.direct {
            Some(direct) => direct.cancel(id),
            None => self.executor.cancel(id),
        }
    }

    /// Returns the number of submitted requests whose results the program has not taken yet.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        if self.is_inherited() { 0 } else { self.queue.lock().outstanding }
    }

    /// Returns the next finished request, or `None` if there is none at present. Never waits for
    /// the network. With [`BatchOptions::direct`], this method itself may receive the bytes of a
    /// response that have arrived, and pass them to the sink of the request. If that sink panics,
    /// the panic propagates to the caller.
    pub fn try_next(&self) -> Option<FinishedRequest> {
        self.try_bunch(1).pop()
    }

    /// Returns the finished requests that can be taken now, at most `most`. Never waits for the
    /// network. With [`BatchOptions::direct`], it may receive a response like
    /// [`try_next`](Self::try_next).
    pub fn try_bunch(&self, most: usize) -> Vec<FinishedRequest> {
        if self.is_inherited() {
            return Vec::new();
        }
        let has_new_result = self.direct.as_ref().is_some_and(DirectDriver::drive);
        let mut state = self.queue.lock();
        let taken = self.take_results(&mut state, most);
        if has_new_result {
            // The batch's thread has not notified the program of it.
            self.queue.notify_of_remaining_results(state);
        }
        taken
    }

    /// Waits for the next finished request, and returns it. Returns `None` if the program has taken
    /// the results of all submitted requests.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if the interrupt callback ended the wait. A later call continues
    /// the wait, and no result is lost. [`ErrorKind::Receive`] in a forked child.
    pub fn next(&self) -> Result<Option<FinishedRequest>> {
        self.next_by(None)
    }

    /// Waits like [`next`](Self::next), but not beyond `deadline`. Returns `None` if no request
    /// finishes in time, or if the program has taken all results.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next).
    pub fn next_by(&self, deadline: Option<Instant>) -> Result<Option<FinishedRequest>> {
        Ok(self.next_bunch(1, deadline)?.pop())
    }

    /// Returns the finished requests that can be taken now, at most `most`. If there is none, waits
    /// until `deadline` for the first one. Returns an empty list if none finishes in time, or if
    /// the program has taken all results. One call for many results saves time in programs for
    /// which each call into the library is expensive.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next).
    pub fn next_bunch(&self, most: usize, deadline: Option<Instant>) -> Result<Vec<FinishedRequest>> {
        self.next_or_room(most, deadline, None)
    }

    /// Returns true if the program may submit another request, because fewer than `ahead` requests
    /// are in progress or have a result that the program has not taken. Requests that wait for a
    /// retry do not count.
    fn has_room(&self, ahead: usize) -> bool {
        self.queue.has_room(&self.queue.lock(), ahead)
    }

    /// Waits like [`next_bunch`](Self::next_bunch). If `ahead` is given, also returns as soon as
    /// [`has_room`](Self::has_room) is true for that number. The list is then empty if there are no
    /// results.
    fn next_or_room(
        &self,
        most: usize,
        deadline: Option<Instant>,
        ahead: Option<usize>,
    ) -> Result<Vec<FinishedRequest>> {
        if self.is_inherited() {
            return Err(Error::new(ErrorKind::Receive, INHERITED));
        }
        let _waiting = self.direct.as_ref().map(DirectDriver::yield_to_batch_thread);
        let mut timer = InterruptCallbackTimer::new(self.interrupt.as_ref());
        let mut state = self.queue.lock();
        state.ahead = ahead;
        loop {
            let taken = self.take_results(&mut state, most);
            let has_room = ahead.is_some_and(|ahead| self.queue.has_room(&state, ahead));
            if !taken.is_empty() || most == 0 || state.outstanding == 0 || has_room {
                return Ok(taken);
            }
            let now = Instant::now();
            if deadline.is_some_and(|at| at <= now) {
                return Ok(taken);
            }
            if timer.is_callback_due(now) {
                drop(state);
                timer.call_if_due(now)?;
                state = self.queue.lock();
                continue;
            }
            let wait = timer.limit_wait(deadline, now).map_or(Duration::MAX, |at| at.saturating_duration_since(now));
            state = self.queue.wait_for_results(state, wait);
        }
    }

    /// Returns a descriptor for `poll` and similar calls. The first call creates it. The descriptor
    /// is readable while [`try_next`](Self::try_next) or [`woken_tasks`](Self::woken_tasks) has
    /// something to return. With [`BatchOptions::direct`], it may also be readable when `try_next`
    /// has no result yet, for example when a part of a response has arrived: `try_next` then
    /// receives that part. Do not read from the descriptor.
    ///
    /// # Errors
    /// The process or the system has no file descriptors left, or the process is a forked child.
    pub fn fd(&self) -> io::Result<OwnedFd> {
        if self.is_inherited() {
            return Err(io::Error::other(INHERITED));
        }
        let results = self.queue.notifier_fd()?;
        let Some(direct) = &self.direct else { return Ok(results) };
        direct.readiness(&results)?.map_or(Ok(results), |readiness| readiness.as_fd().try_clone_to_owned())
    }

    /// Returns a waker for a task of the program, such as one that polls the future of
    /// [`Client::send_async`]. `task` is any number by which the program identifies the task. When
    /// the waker is woken, the descriptor of [`fd`](Self::fd) becomes readable, and
    /// [`woken_tasks`](Self::woken_tasks) returns `task`. So an event loop without an async runtime
    /// needs only one descriptor for finished requests and for streams. The waker does nothing
    /// after the batch was dropped.
    #[must_use]
    pub fn task_waker(&self, task: u64) -> Waker {
        self.queue.task_waker(task)
    }

    /// Returns the ids of the tasks whose wakers were woken since the last call, each id once.
    /// Never waits.
    pub fn woken_tasks(&self) -> Vec<u64> {
        if self.is_inherited() { Vec::new() } else { self.queue.take_woken_tasks() }
    }

    /// Returns true if this process was forked from the process that made the batch. The child must
    /// not use the batch: another thread of the parent may have held a lock, which then stays
    /// locked in the child for ever.
    fn is_inherited(&self) -> bool {
        self.generation != fork::fork_count()
    }

    fn take_results(&self, state: &mut CompletionState, most: usize) -> Vec<FinishedRequest> {
        let (taken, may_start) = self.queue.take_results(state, most);
        if may_start {
            self.executor.wake_workers();
        }
        taken
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.is_inherited() {
            // The request in progress belongs to the parent, and so does its file, which a dropped
            // sink may remove. Dropping it may also need a lock that stays locked for ever.
            std::mem::forget(self.direct.take());
            return;
        }
        if let Some(direct) = &self.direct {
            direct.close();
        }
        // Joined, since the thread must not use code that the program unloads after this. It
        // waits only in its event loop, so it ends at once. A panic was reported already. A sink
        // that owns the batch may drop it on that thread, which cannot join itself.
        let thread = self.executor.close().filter(|thread| thread.thread().id() != thread::current().id());
        let _ = thread.map(JoinHandle::join);
    }
}
