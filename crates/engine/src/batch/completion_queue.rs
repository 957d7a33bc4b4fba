//! The completion queue of a batch: finished results, and the decision when to wake the program.
//!
//! The event loop adds results as they arrive, and notifies the program after each round
//! ([`AdmissionControl::end_round`]). Waking a thread costs about as much as a small exchange. So
//! while enough requests wait to keep the connections busy, the loop gathers results for up to a
//! millisecond before it notifies. A program that does not wait is not notified: it checks the
//! queue before it waits.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, OwnedFd};

use super::budget_counting_sink::BudgetCountingSink;
use super::descriptor_wakers::{TaskWaker, WokenTaskQueue};
use super::executor::{AdmissionControl, AdmissionRule, ExecutorLoad, InProgressSummary};
use super::memory_budget::MemoryBudget;
use super::results_descriptor::ResultsDescriptor;
use super::{BatchOrder, FinishedRequest};
use crate::drive::retry_waiting::MAX_WAITING_RETRIES;
use crate::ignore_poison::IgnorePoison;
use crate::sink::Sink;
use crate::transfer::TransferOutcome;

/// The longest time for which the event loop gathers results before it notifies the program. One
/// notification then serves several results.
const MAX_NOTIFY_DELAY: Duration = Duration::from_millis(1);

/// The queue of a batch's finished requests, from which the program takes the results. The queue
/// also decides, by the memory budget for bodies, which further requests may start.
pub(super) struct CompletionQueue {
    pub(super) budget: Arc<MemoryBudget>,
    order: BatchOrder,
    /// The number of requests that pause before a retry.
    retrying: AtomicUsize,
    state: Mutex<CompletionState>,
    available: Condvar,
    /// The descriptor that the program watches; empty until the program asks for it.
    notifier: OnceLock<ResultsDescriptor>,
}

/// The state of a completion queue, under its lock.
#[derive(Default)]
pub(super) struct CompletionState {
    /// Results that must wait, because an earlier request is not finished. The key is the id of the
    /// finished request. Used only with `BatchOrder::Input`.
    out_of_order: BTreeMap<u64, FinishedRequest>,
    /// The results that the program can take now, in the order in which the program gets them.
    ready: VecDeque<FinishedRequest>,
    /// With `BatchOrder::Input`: the id of the request whose result must move to `ready` next.
    next: u64,
    /// The number of requests whose results the program has not taken yet.
    pub(super) outstanding: usize,
    /// The number of threads that wait for a result.
    waiting: usize,
    /// The `ahead` of [`has_room`](CompletionQueue::has_room) for the thread that waits: the number
    /// of outstanding requests that the program wants. As soon as there is room for another
    /// request, the thread is woken even without a result. `None` if the thread waits only for
    /// results.
    pub(super) ahead: Option<usize>,
    /// The time of the first result of which the program was not notified yet. `None` if the
    /// program was notified of all results.
    unnotified_since: Option<Instant>,
    /// True if the notification descriptor, which the program watches, is readable, or if a thread
    /// is about to make it readable.
    is_notified: bool,
    /// The tasks of the program that were woken and that `Batch::woken_tasks` has not returned yet.
    woken: Vec<Arc<TaskWaker<CompletionQueue>>>,
}

impl WokenTaskQueue for CompletionQueue {
    fn add_woken(&self, waker: Arc<TaskWaker<Self>>) {
        let mut state = self.lock();
        state.woken.push(waker);
        let notifies = self.begin_notification(&mut state);
        drop(state);
        self.end_notification(notifies);
    }
}

impl CompletionState {
    /// Returns the time until which the notification of the program is delayed; `None` if the
    /// program is to be notified now.
    fn end_of_delay(&mut self, load: ExecutorLoad, now: Instant) -> Option<Instant> {
        // A waiting program adds no requests. It is notified before the waiting requests run short.
        if load.waiting > load.running / 4 {
            let end = *self.unnotified_since.get_or_insert(now) + MAX_NOTIFY_DELAY;
            if now < end {
                return Some(end);
            }
        }
        self.unnotified_since = None;
        None
    }
}

impl CompletionQueue {
    pub(super) fn new(order: BatchOrder, memory: u64) -> Arc<Self> {
        let budget = Arc::new(MemoryBudget::new(memory));
        if order == BatchOrder::Input {
            budget.set_head(0);
        }
        let retrying = AtomicUsize::new(0);
        Arc::new(Self {
            budget,
            order,
            retrying,
            state: Mutex::default(),
            available: Condvar::new(),
            notifier: OnceLock::new(),
        })
    }

    /// Returns true if the program may submit another request, because the number of outstanding
    /// requests is below the limit. A request is outstanding from its submission until the program
    /// takes its result. The limit depends on the order of the results:
    /// - `BatchOrder::Completion`: `ahead`, plus the number of requests that wait for a retry.
    /// - `BatchOrder::Input`: `ahead`, plus [`MAX_WAITING_RETRIES`] while any request waits for a
    ///   retry. The results of all later requests then wait, too.
    pub(super) fn has_room(&self, state: &CompletionState, ahead: usize) -> bool {
        let retrying = self.retrying.load(Ordering::Relaxed);
        let more = match self.order {
            BatchOrder::Completion => retrying,
            BatchOrder::Input if retrying > 0 => MAX_WAITING_RETRIES,
            BatchOrder::Input => 0,
        };
        state.outstanding < ahead.saturating_add(more)
    }

    /// Sets the flag `is_notified`, because the program must be notified. Returns true if the
    /// caller must then make the notification descriptor readable with
    /// [`end_notification`](Self::end_notification). Does nothing and returns false if the flag is
    /// already set, or if there is no descriptor.
    ///
    /// The caller must release the lock of `state` between the two calls. Otherwise the thread that
    /// the descriptor wakes, which needs the lock at once, often waits for it, and on one processor
    /// each such wait costs two task switches.
    fn begin_notification(&self, state: &mut CompletionState) -> bool {
        self.notifier.get().is_some() && !std::mem::replace(&mut state.is_notified, true)
    }

    /// Makes the notification descriptor, which the program watches, readable if `notifies` is
    /// true. `notifies` is the result of [`begin_notification`](Self::begin_notification).
    fn end_notification(&self, notifies: bool) {
        if let Some(notifier) = self.notifier.get().filter(|_| notifies) {
            notifier.make_readable();
        }
    }

    /// Makes the notification descriptor not readable if the program has nothing left to take:
    /// neither a result nor the id of a woken task.
    ///
    /// The flag `is_notified` stays set while another thread is between
    /// [`begin_notification`](Self::begin_notification) and
    /// [`end_notification`](Self::end_notification). That thread then wakes the program, which may
    /// find no result. The program's next call makes the descriptor not readable.
    fn clear_notification(&self, state: &mut CompletionState) {
        if state.is_notified && state.ready.is_empty() && state.woken.is_empty() {
            state.is_notified = !self.notifier.get().is_some_and(ResultsDescriptor::clear);
        }
    }

    /// Makes the descriptor readable and wakes waiting threads if there are results left.
    pub(super) fn notify_of_remaining_results(&self, mut state: MutexGuard<'_, CompletionState>) {
        let has_results = !state.ready.is_empty();
        let notifies = has_results && self.begin_notification(&mut state);
        // A thread that waits for the result of the last request has none to wait for any more.
        let wakes = state.waiting > 0 && (has_results || state.outstanding == 0);
        drop(state);
        self.end_notification(notifies);
        if wakes {
            self.available.notify_all();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, CompletionState> {
        self.state.lock().ignore_poison()
    }

    /// Adds a result. Waiting threads are notified later, by [`AdmissionControl::end_round`].
    pub(super) fn push_result(&self, id: u64, outcome: TransferOutcome, sink: Option<Box<dyn Sink>>) {
        let counted = sink.and_then(|sink| (sink as Box<dyn Any>).downcast::<BudgetCountingSink>().ok());
        let (sink, cost) = counted.map(|counted| counted.into_parts()).unzip();
        let cost = cost.unwrap_or(0);
        let finished = FinishedRequest { id, outcome, sink, cost };
        let mut state = self.lock();
        let state = &mut *state;
        match self.order {
            BatchOrder::Completion => state.ready.push_back(finished),
            BatchOrder::Input if id == state.next => {
                state.ready.push_back(finished);
                state.next += 1;
                while let Some(finished) = state.out_of_order.remove(&state.next) {
                    state.ready.push_back(finished);
                    state.next += 1;
                }
                self.budget.set_head(state.next);
            }
            BatchOrder::Input => {
                state.out_of_order.insert(id, finished);
            }
        }
        self.budget.set_nothing_ready(state.ready.is_empty());
    }

    /// Removes and returns at most `most` results. The second value is true if the caller must wake
    /// the event loop: the memory budget was used up before, and may now let waiting requests
    /// start.
    pub(super) fn take_results(&self, state: &mut CompletionState, most: usize) -> (Vec<FinishedRequest>, bool) {
        let count = state.ready.len().min(most);
        if count == 0 {
            self.clear_notification(state);
            return (Vec::new(), false);
        }
        let taken: Vec<_> = state.ready.drain(..count).collect();
        state.outstanding -= count;
        let is_empty = state.ready.is_empty();
        if is_empty {
            state.unnotified_since = None;
            self.clear_notification(state);
        }
        let nothing_ready = self.budget.set_nothing_ready(is_empty);
        let has_room = self.budget.release(taken.iter().map(|finished| finished.cost).sum());
        (taken, has_room || nothing_ready && self.budget.is_full())
    }

    /// Waits until results may have arrived, at most for the duration `most`. The lock of `state`
    /// is released during the wait.
    pub(super) fn wait_for_results<'a>(
        &self,
        mut state: MutexGuard<'a, CompletionState>,
        most: Duration,
    ) -> MutexGuard<'a, CompletionState> {
        state.waiting += 1;
        state = match most {
            Duration::MAX => self.available.wait(state).ignore_poison(),
            most => self.available.wait_timeout(state, most).ignore_poison().0,
        };
        state.waiting -= 1;
        state
    }

    /// Returns the descriptor for [`Batch::fd`](super::Batch::fd), which is readable while there
    /// are results.
    pub(super) fn notifier_fd(&self) -> io::Result<OwnedFd> {
        let mut state = self.lock();
        if let Some(notifier) = self.notifier.get() {
            return notifier.as_fd().try_clone_to_owned();
        }
        let notifier = ResultsDescriptor::new()?;
        if !state.ready.is_empty() || !state.woken.is_empty() {
            state.is_notified = true;
            notifier.make_readable();
        }
        // The lock is held, so no other thread makes one.
        self.notifier.get_or_init(|| notifier).as_fd().try_clone_to_owned()
    }

    /// Makes a waker for a task of the program. `task` is the id that the program has given to the
    /// task.
    pub(super) fn task_waker(self: &Arc<Self>, task: u64) -> Waker {
        Waker::from(Arc::new(TaskWaker::new(Arc::downgrade(self), task)))
    }

    /// Returns the ids of the program's async tasks whose wakers were woken ([`TaskWaker`]), and
    /// removes these ids from the queue.
    pub(super) fn take_woken_tasks(&self) -> Vec<u64> {
        let mut state = self.lock();
        let woken = std::mem::take(&mut state.woken);
        self.clear_notification(&mut state);
        drop(state);
        woken.iter().map(|waker| waker.take()).collect()
    }

    /// Drops the results that are ready for the program. Returns the id of the request whose result
    /// would have become ready next. The id has a meaning only with `BatchOrder::Input`.
    pub(super) fn drop_ready_results(&self) -> u64 {
        let mut state = self.lock();
        state.outstanding = 0;
        state.ready.clear();
        state.next
    }
}

impl AdmissionControl for CompletionQueue {
    fn rule(&self) -> AdmissionRule {
        self.budget.admission_rule()
    }

    fn set_in_progress(&self, requests: InProgressSummary) {
        let InProgressSummary { first_running, first_retrying, retrying } = requests;
        self.retrying.store(retrying, Ordering::Relaxed);
        // In the order of the input, the bodies of later requests are kept until the first one has
        // been tried again. Only that one may exceed the budget.
        let first_retrying = first_retrying.filter(|_| self.order == BatchOrder::Input);
        self.budget.set_first([first_running, first_retrying].into_iter().flatten().min());
    }

    fn end_round(&self, load: ExecutorLoad, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        let is_watched = self.notifier.get().is_some() && !state.is_notified;
        let mut wakes = state.waiting > 0 && state.ahead.is_some_and(|ahead| self.has_room(&state, ahead));
        let (mut notifies, mut end_of_delay) = (false, None);
        if !state.ready.is_empty() && (state.waiting > 0 || is_watched) {
            end_of_delay = state.end_of_delay(load, now);
            if end_of_delay.is_none() {
                wakes |= state.waiting > 0;
                notifies = self.begin_notification(&mut state);
            }
        }
        drop(state);
        self.end_notification(notifies);
        if wakes {
            self.available.notify_all();
        }
        end_of_delay
    }
}

#[cfg(test)]
mod tests {
    use haul_policy::target::Target;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::super::executor::failed_outcome;
    use super::*;
    use crate::Error;
    use crate::buffer_pool::{BufferPool, OfferedBodyBytes};
    use crate::sink::memory::MemorySink;

    fn put(queue: &CompletionQueue, id: u64) {
        queue.lock().outstanding += 1;
        let target = Target::parse("http://h.test/").expect("it is a URL");
        queue.push_result(id, failed_outcome(target, Error::cancelled()), None);
    }

    fn is_readable(fd: &OwnedFd) -> bool {
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec::default())).expect("it can be polled") > 0
    }

    fn taken(queue: &CompletionQueue, most: usize) -> Vec<u64> {
        queue.take_results(&mut queue.lock(), most).0.iter().map(FinishedRequest::id).collect()
    }

    #[test]
    fn result_notification_is_delayed_while_requests_are_queued() {
        let (queue, now) = (CompletionQueue::new(BatchOrder::Completion, 1 << 20), Instant::now());
        let (busy, short) = (ExecutorLoad { waiting: 3, running: 8 }, ExecutorLoad { waiting: 2, running: 8 });
        put(&queue, 0);
        assert_eq!(queue.end_round(busy, now), None, "nobody waits");
        assert_eq!(taken(&queue, 9), [0]);
        let fd = queue.notifier_fd().expect("there is a descriptor");
        assert_eq!(queue.end_round(busy, now), None, "there is nothing to tell of");

        put(&queue, 1);
        assert_eq!(queue.end_round(busy, now), Some(now + MAX_NOTIFY_DELAY));
        put(&queue, 2);
        // The first result counts.
        assert_eq!(queue.end_round(busy, now + MAX_NOTIFY_DELAY / 2), Some(now + MAX_NOTIFY_DELAY));
        assert!(!is_readable(&fd));
        assert_eq!(queue.end_round(busy, now + MAX_NOTIFY_DELAY), None);
        assert!(is_readable(&fd));
        assert_eq!(taken(&queue, 1), [1]);
        assert!(is_readable(&fd), "there is more");
        assert_eq!(taken(&queue, 9), [2]);
        assert!(!is_readable(&fd));

        put(&queue, 3);
        assert_eq!(queue.end_round(short, now), None);
        assert!(is_readable(&fd));
    }

    #[test]
    fn late_notification_is_cleared_by_the_next_call() {
        let (queue, now) = (CompletionQueue::new(BatchOrder::Completion, 1 << 20), Instant::now());
        let fd = queue.notifier_fd().expect("there is a descriptor");
        put(&queue, 0);
        // As in `end_round`, if another thread takes the result before the descriptor is readable.
        assert!(queue.begin_notification(&mut queue.lock()));
        assert_eq!(taken(&queue, 9), [0]);
        put(&queue, 1);
        assert!(!queue.begin_notification(&mut queue.lock()), "one is on its way");
        queue.end_notification(true);
        assert!(is_readable(&fd));
        assert_eq!(taken(&queue, 9), [1]);
        assert!(!is_readable(&fd));

        put(&queue, 2);
        assert!(queue.begin_notification(&mut queue.lock()));
        assert_eq!(taken(&queue, 9), [2]);
        queue.end_notification(true);
        assert!(is_readable(&fd), "for nothing");
        assert!(taken(&queue, 9).is_empty());
        assert!(!is_readable(&fd));
        put(&queue, 3);
        queue.end_round(ExecutorLoad::default(), now);
        assert!(is_readable(&fd));
        assert!(queue.take_woken_tasks().is_empty());
        assert!(is_readable(&fd), "there is a result");
    }

    #[test]
    fn dropped_sink_releases_its_memory_budget() {
        let queue = CompletionQueue::new(BatchOrder::Completion, 1);
        let fill = || {
            let mut sink = BudgetCountingSink::new(Box::new(MemorySink::default()), 0, Arc::clone(&queue.budget));
            let pool = BufferPool::new(1 << 16);
            sink.bytes(OfferedBodyBytes::new(&mut pool.take_buffer(), 0..1 << 16)).expect("memory takes all");
            sink
        };
        let lost = fill();
        assert!(queue.budget.is_full());
        drop(lost);
        assert!(!queue.budget.is_full());
        drop(fill().into_parts());
        assert!(queue.budget.is_full(), "it is the program's to take");
    }

    #[test]
    fn input_order_delays_results_that_finish_early() {
        let queue = CompletionQueue::new(BatchOrder::Input, 1 << 20);
        for id in [2, 1, 4] {
            put(&queue, id);
            assert!(taken(&queue, 9).is_empty());
        }
        put(&queue, 0);
        assert_eq!(taken(&queue, 2), [0, 1]);
        assert_eq!(taken(&queue, 9), [2]);
        put(&queue, 3);
        assert_eq!(taken(&queue, 9), [3, 4]);
    }
}
