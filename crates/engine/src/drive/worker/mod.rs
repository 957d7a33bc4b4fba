//! The event loop: one per worker thread, each with its own connections and read buffer.
//!
//! A worker asks its [`Scheduler`] for transfers, keeps each of its connections busy with the next one for the same host,
//! and sleeps in `epoll_wait` (or its like) when nothing moves. Readiness is edge-triggered and a descriptor is
//! registered once in its life, so a small page on a warm connection costs a send, a receive and its share of a wait.
//!
//! ```text
//!          ┌───────────────────────────────────────────────┐
//!  Scheduler ─┼▶ take ─▶ place ─▶ slots ─▶ flush ─▶ sleep ─▶ events, messages, timers ─┐
//!          └───────────────────────────────────────▲───────────────────────────────┘
//! ```
//!
//! The first worker is the calling thread. Another is started when those that run have not slept for a while and there
//! is a backlog: one thread for a network-bound run, all cores for one that decodes or extracts.

mod cancel;
mod coalesce;
mod connections;
mod drain;
mod idle;
mod peer_records;
mod scheduler;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

pub use scheduler::{Scheduler, SlotUse};

use super::connection::{FinishedTransfers, HttpConnection, ReceiveStatus};
use super::connection_slot::{ConnectionSlot, ConnectionState};
use super::idle_cores::IdleCores;
use super::inbox::{WorkerInbox, WorkerMessage};
use super::zero_copy::ZeroCopyMover;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::net::pool::ConnectionKey;
use crate::sink::TransferWaker;
use crate::sink::output::OutputRoom;
use crate::stats::TransferTotals;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result, threads};

/// The use of workers and connections by a run.
#[derive(Debug, Clone, Copy)]
pub struct WorkerOptions {
    /// Most threads, the calling one included.
    pub threads: usize,
    /// Requests that may be outstanding on an HTTP/1.1 connection; 1 is no pipelining.
    pub depth: usize,
    /// Connections to one host, where requests are pipelined.
    pub per_host: usize,
}

const INBOX: Token = Token(usize::MAX);
const OUTPUT: Token = Token(usize::MAX - 1);
/// A worker that slept less than a sixteenth of this long wants help, if bodies are heavy ([`Scheduler::is_heavy`]). In
/// either case a core must be idle: on two cores that a server shares, a second thread cost up to 40 % more CPU and won
/// nothing, for both are busy.
const BUSY_WINDOW: Duration = Duration::from_millis(30);
/// The same where bodies are only moved. The kernel does most of that work, and does it best undivided.
const LIGHT_WINDOW: Duration = Duration::from_millis(100);
/// The longest time for which small bodies are collected before they are written. In a busy run,
/// many are written in one call, and the last ones are not noticeably late.
const GATHER_TIME: Duration = Duration::from_millis(1);

/// Runs workers until the scheduler is over.
///
/// # Errors
/// When the system provides no event loop, or the output is gone.
pub fn run(client: &Client, scheduler: &Arc<dyn Scheduler>, workers: WorkerOptions) -> Result<()> {
    let mut first = Worker::new(0, client, scheduler, workers)?;
    let outcome = first.run();
    for thread in first.helpers.drain(..) {
        // A worker that panicked has printed why, and ended the run.
        let _ = thread.join();
    }
    outcome
}

/// The same on this thread alone, with a connection on which a transfer is under way.
///
/// # Errors
/// The unchanged connection, if the system provides no event loop.
pub(crate) fn run_with(
    client: &Client,
    scheduler: &Arc<dyn Scheduler>,
    workers: WorkerOptions,
    connection: HttpConnection,
) -> Result<Result<()>, Box<HttpConnection>> {
    let Ok(mut worker) = Worker::new(0, client, scheduler, WorkerOptions { threads: 1, ..workers }) else {
        return Err(Box::new(connection));
    };
    worker.adopt(connection)?;
    Ok(worker.run())
}

/// Ends the run when a worker panics: the transfers it held would be waited for for ever.
struct PanicGuard<'a>(&'a dyn Scheduler);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort(Error::new(ErrorKind::Panicked, "a worker panicked"));
        }
    }
}

struct Worker {
    index: usize,
    client: Client,
    scheduler: Arc<dyn Scheduler>,
    workers: WorkerOptions,
    poll: Poll,
    inbox: Arc<WorkerInbox>,
    wake: Arc<dyn TransferWaker>,
    buffer: Buffer,
    mover: ZeroCopyMover,
    slots: Slab<ConnectionSlot>,
    by_key: HashMap<Arc<ConnectionKey>, Vec<usize>>,
    /// Keys of peers that are not pipelined to again.
    serial: HashSet<Arc<ConnectionKey>>,
    /// Keys of peers that sent a response too many: each of their connections carries one request.
    extra_response: HashSet<Arc<ConnectionKey>>,
    /// The number of requests that the last connection to a peer answered, if it left others
    /// unanswered.
    pipeline_limits: HashMap<Arc<ConnectionKey>, usize>,
    /// Keys of peers that offered HTTP/2 to, and that chose HTTP/1.1.
    http1_only: HashSet<Arc<ConnectionKey>>,
    /// Keys of peers that close each connection behind its first response, without saying so.
    one_response_only: HashSet<Arc<ConnectionKey>>,
    /// Keys of hosts whose servers do not want them on the connections of others.
    uncoalesced: HashSet<Arc<ConnectionKey>>,
    /// Idle slots, longest idle first; a slot that is busy again has another stamp by then.
    idle: VecDeque<(usize, u64)>,
    idle_count: usize,
    /// The client's count of closings of its idle connections, when this worker last closed its
    /// own.
    close_count: u32,
    stamp: u64,
    delayed: BinaryHeap<Reverse<DelayedTransfer>>,
    /// Transfers that have no connection yet, and a slot that may be free for them. A list, since a transfer that fails at once makes room for the
    /// next, and a million of them must not be a million nested calls.
    to_place: VecDeque<(Box<Transfer>, Option<usize>)>,
    /// Shared slots with new requests: those of one turn leave in one write.
    unsent: Vec<usize>,
    /// Slots that had their turn and have more to receive.
    ready_again: Vec<usize>,
    finished: FinishedTransfers,
    totals: TransferTotals,
    now: Instant,
    slept: Duration,
    window_began: Instant,
    output_watched: bool,
    /// The last flush left something that this worker cannot wait for: to try again before anything has happened is vain.
    flush_blocked: bool,
    /// Since when there is gathered output.
    gathered_since: Option<Instant>,
    /// The time to call the scheduler again even without an event.
    end_turn_again_at: Option<Instant>,
    idle_cores: IdleCores,
    helpers: Vec<JoinHandle<()>>,
    /// Threads that close connections.
    draining: Vec<JoinHandle<()>>,
}

/// A transfer that waits before it is tried again.
struct DelayedTransfer {
    at: Instant,
    /// True if this worker's share is lent ([`Scheduler::delayed`]).
    is_lent: bool,
    transfer: Box<Transfer>,
}

impl PartialEq for DelayedTransfer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for DelayedTransfer {}

impl PartialOrd for DelayedTransfer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayedTransfer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

fn event_loop_error(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Connect, "the event loop cannot be set up", error)
}

impl Worker {
    fn new(index: usize, client: &Client, scheduler: &Arc<dyn Scheduler>, workers: WorkerOptions) -> Result<Self> {
        let poll = Poll::new().map_err(event_loop_error)?;
        let inbox = Arc::new(WorkerInbox::new(poll.registry(), INBOX).map_err(event_loop_error)?);
        scheduler.worker_started(&inbox);
        client.register_inbox(&inbox);
        let now = Instant::now();
        Ok(Self {
            index,
            client: client.clone(),
            scheduler: Arc::clone(scheduler),
            workers,
            poll,
            wake: inbox.clone(),
            inbox,
            buffer: client.buffer_pool().take(),
            mover: ZeroCopyMover::default(),
            slots: Slab::new(),
            by_key: HashMap::new(),
            serial: HashSet::new(),
            extra_response: HashSet::new(),
            pipeline_limits: HashMap::new(),
            http1_only: HashSet::new(),
            one_response_only: HashSet::new(),
            uncoalesced: HashSet::new(),
            idle: VecDeque::new(),
            idle_count: 0,
            close_count: client.close_count(),
            stamp: 0,
            delayed: BinaryHeap::new(),
            to_place: VecDeque::new(),
            unsent: Vec::new(),
            ready_again: Vec::new(),
            finished: FinishedTransfers::new(),
            totals: TransferTotals::default(),
            now,
            slept: Duration::ZERO,
            window_began: now,
            output_watched: false,
            flush_blocked: false,
            gathered_since: None,
            end_turn_again_at: None,
            idle_cores: IdleCores::default(),
            helpers: Vec::new(),
            draining: Vec::new(),
        })
    }

    /// Works until the run is over. An error of this worker's own ends it for the others, too: the transfers that it held
    /// are lost.
    fn run(&mut self) -> Result<()> {
        let scheduler = Arc::clone(&self.scheduler);
        let _guard = PanicGuard(&*scheduler);
        let outcome = self.run_loop();
        self.leave();
        if let Err(error) = &outcome {
            scheduler.abort(error.again());
        }
        outcome
    }

    fn run_loop(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(256);
        let mut messages = Vec::new();
        loop {
            while let Some(transfer) = self.scheduler.next(self.index, self.now) {
                self.to_place.push_back((transfer, None));
                self.place_all();
            }
            for slot in std::mem::take(&mut self.unsent) {
                self.pump(slot);
            }
            self.flush()?;
            self.end_turn_again_at = self.scheduler.end_turn(self.now);
            if self.scheduler.is_over() {
                return Ok(());
            }
            self.sleep(&mut events)?;
            self.flush_blocked = false;
            self.close_idle_timeouts();
            self.inbox.take_all(&mut messages);
            for message in messages.drain(..) {
                self.handle_message(message);
            }
            for event in &events {
                match event.token() {
                    INBOX => {}
                    OUTPUT => self.output_watched = false,
                    Token(slot) => self.serve(slot, event.is_read_closed() || event.is_error()),
                }
                self.place_all();
            }
            for slot in std::mem::take(&mut self.ready_again) {
                self.serve(slot, false);
            }
            // A connection with nothing to do may get something now.
            self.place_all();
            self.handle_timers();
            self.place_all();
            self.start_helper();
        }
    }

    /// Passes gathered output on. If the output is full, watches it for room.
    fn flush(&mut self) -> Result<()> {
        if !self.scheduler.wants_flush() {
            self.gathered_since = None;
            return Ok(());
        }
        if self.flush_blocked {
            return Ok(());
        }
        let since = *self.gathered_since.get_or_insert(self.now);
        if self.output_watched || self.now.saturating_duration_since(since) < GATHER_TIME {
            return Ok(());
        }
        self.gathered_since = None;
        if self.scheduler.flush(self.index)? == OutputRoom::Free {
            // The rest waits for a later stage, which takes more when one of its transfers starts.
            self.flush_blocked = self.scheduler.wants_flush();
            return Ok(());
        }
        if self.index != 0 {
            // The output is watched by the first worker, since it can be watched only once.
            self.flush_blocked = true;
            return Ok(());
        }
        if !self.output_watched
            && let Some(fd) = self.scheduler.output_fd()
        {
            let registry = self.poll.registry();
            let mut source = SourceFd(&fd);
            registry
                .register(&mut source, OUTPUT, Interest::WRITABLE)
                .or_else(|_| registry.reregister(&mut source, OUTPUT, Interest::WRITABLE))
                .map_err(|error| Error::with_source(ErrorKind::Write, "the output cannot be watched", error))?;
            self.output_watched = true;
        }
        Ok(())
    }

    fn sleep(&mut self, events: &mut Events) -> Result<()> {
        let before = Instant::now();
        let may_sleep = self.ready_again.is_empty() && self.inbox.try_sleep();
        let timeout = if may_sleep {
            self.next_timeout().map(|at| at.saturating_duration_since(before))
        } else {
            Some(Duration::ZERO)
        };
        match self.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(event_loop_error(error)),
        }
        self.now = Instant::now();
        self.slept += self.now - before;
        Ok(())
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let slots = self.slots.iter().filter_map(|(_, slot)| slot.next_timeout()).min();
        let delayed = self.delayed.peek().map(|Reverse(delayed)| delayed.at);
        let gathered = self.gathered_since.filter(|_| !self.output_watched).map(|since| since + GATHER_TIME);
        // The scheduler is asked with the time that it was last asked for a transfer with: a pause that has ended since was
        // not over then, and would be slept through.
        let old = self.idle_timeout();
        [slots, delayed, gathered, self.end_turn_again_at, old, self.scheduler.next_timeout(self.now)]
            .into_iter()
            .flatten()
            .min()
    }

    fn handle_message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Resume(slot) => {
                if let Some(slot) = self.slots.get_mut(slot) {
                    slot.resume();
                }
                self.serve(slot, false);
            }
            WorkerMessage::Resolved(slot) => self.serve(slot, false),
            WorkerMessage::Cancel(tag) => self.cancel(tag),
            // The flush of the next turn watches the output, and the scheduler is asked anyway.
            WorkerMessage::WatchOutput | WorkerMessage::CheckWork => {}
        }
    }

    fn handle_timers(&mut self) {
        while self.delayed.peek().is_some_and(|Reverse(delayed)| delayed.at <= self.now) {
            if let Some(Reverse(delayed)) = self.delayed.pop() {
                if delayed.is_lent {
                    self.scheduler.retry_resumed();
                }
                self.to_place.push_back((delayed.transfer, None));
            }
        }
        let now = self.now;
        let due = |slot: &ConnectionSlot| slot.next_timeout().is_some_and(|at| at <= now);
        let overdue: Vec<usize> = self.slots.iter().filter(|(_, slot)| due(slot)).map(|(token, _)| token).collect();
        for token in overdue {
            self.end_overdue(token);
            match self.slots.get_mut(token) {
                Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) => {
                    let mut finished = std::mem::take(&mut self.finished);
                    let progress = connection.expire(now, &mut finished);
                    let is_over = progress == ReceiveStatus::Closed;
                    if is_over {
                        self.remove(token);
                    }
                    self.settle(token, &mut finished);
                    self.finished = finished;
                    let Some(ConnectionSlot { state: ConnectionState::Open(connection), paused, .. }) =
                        self.slots.get_mut(token)
                    else {
                        continue;
                    };
                    if connection.resumes_at().is_some_and(|at| at <= now) {
                        connection.resume();
                        *paused = false;
                    }
                    if connection.low_water_timeout().is_some_and(|at| at <= now) {
                        connection.reset_low_water_mark();
                    }
                    self.serve(token, false);
                }
                Some(_) => self.open(token),
                None => {}
            }
        }
    }

    /// Starts another worker if this one did not get to sleep lately and there is enough to do for two.
    fn start_helper(&mut self) {
        if self.index != 0 || self.helpers.len() + 1 >= self.workers.threads {
            return;
        }
        let heavy = self.scheduler.is_heavy();
        let window = self.now.saturating_duration_since(self.window_began);
        if window < if heavy { BUSY_WINDOW } else { LIGHT_WINDOW } {
            return;
        }
        let busy = self.slept < window / 16;
        self.slept = Duration::ZERO;
        self.window_began = self.now;
        let idle = self.idle_cores.is_one_idle(window);
        if !busy || !idle || self.scheduler.backlog() == 0 {
            return;
        }
        let (index, client, scheduler) = (self.helpers.len() + 1, self.client.clone(), Arc::clone(&self.scheduler));
        let workers = self.workers;
        // Without another thread this one goes on alone, and asks again.
        let started = threads::start(format!("haul-{index}"), move || {
            if let Ok(mut worker) = Worker::new(index, &client, &scheduler, workers) {
                // What ends it reaches the first worker through the scheduler.
                let _ = worker.run();
            }
        });
        if let Ok(thread) = started {
            self.helpers.push(thread);
        }
    }

    /// Leaves the idle connections to the client, and gives parts under way back to their split.
    fn leave(&mut self) {
        self.follow_close_idle();
        let tokens: Vec<usize> = self.slots.iter().map(|(token, _)| token).collect();
        for token in tokens {
            if let Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) = self.slots.get_mut(token)
                && connection.front().is_some_and(Transfer::is_part)
            {
                let mut finished = FinishedTransfers::new();
                connection.abort(Error::new(ErrorKind::Receive, "it was no longer needed"), self.now, &mut finished);
                for (transfer, _) in finished {
                    self.scheduler.finished(self.index, transfer, Ok(()));
                }
            }
            self.give_away(token);
            self.remove(token);
        }
        self.join_draining();
        self.client.stats().add(&std::mem::take(&mut self.totals));
    }
}
