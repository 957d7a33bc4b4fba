//! The event loop: one per worker thread, each with its own connections and read buffer.
//!
//! A worker asks its [`Supply`] for transfers, keeps each of its connections busy with the next one for the same host,
//! and sleeps in `epoll_wait` (or its like) when nothing moves. Readiness is edge-triggered and a descriptor is
//! registered once in its life, so a small page on a warm connection costs a send, a receive and its share of a wait.
//!
//! ```text
//!          ┌───────────────────────────────────────────────┐
//!  Supply ─┼▶ take ─▶ place ─▶ lanes ─▶ flush ─▶ sleep ─▶ events, messages, timers ─┐
//!          └───────────────────────────────────────▲───────────────────────────────┘
//! ```
//!
//! The first worker is the calling thread. Another is started when those that run have not slept for a while and there
//! is a backlog: one thread for a network-bound run, all cores for one that decodes or extracts.

mod cancel;
mod idle;
mod join;
mod lanes;
mod linger;
mod peers;
mod supply;
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

pub use supply::{Another, Supply};

use super::direct::Mover;
use super::idle_cores::IdleCores;
use super::inbox::{Inbox, Message};
use super::lane::{Lane, State};
use super::link::{Finished, Link, Progress};
use crate::buffer::Buffer;
use crate::client::Client;
use crate::net::pool::Key;
use crate::sink::Wake;
use crate::sink::output::Room;
use crate::stats::Totals;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result, threads};

/// The use of workers and connections by a run.
#[derive(Debug, Clone, Copy)]
pub struct Workers {
    /// Most threads, the calling one included.
    pub threads: usize,
    /// Requests that may be outstanding on an HTTP/1.1 connection; 1 is no pipelining.
    pub depth: usize,
    /// Connections to one host, where requests are pipelined.
    pub per_host: usize,
}

const INBOX: Token = Token(usize::MAX);
const OUTPUT: Token = Token(usize::MAX - 1);
/// A worker that slept less than a sixteenth of this long wants help, if bodies are heavy ([`Supply::is_heavy`]). In
/// either case a core must be idle: on two cores that a server shares, a second thread cost up to 40 % more CPU and won
/// nothing, for both are busy.
const BUSY_WINDOW: Duration = Duration::from_millis(30);
/// The same where bodies are only moved. The kernel does most of that work, and does it best undivided.
const LIGHT_WINDOW: Duration = Duration::from_millis(100);
/// The longest time for which small bodies are collected before they are written. In a busy run,
/// many are written in one call, and the last ones are not noticeably late.
const GATHERING: Duration = Duration::from_millis(1);

/// Runs workers until the supply is over.
///
/// # Errors
/// When the system provides no event loop, or the output is gone.
pub fn run(client: &Client, supply: &Arc<dyn Supply>, workers: Workers) -> Result<()> {
    let mut first = Worker::new(0, client, supply, workers)?;
    let outcome = first.run();
    for thread in first.others.drain(..) {
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
    supply: &Arc<dyn Supply>,
    workers: Workers,
    link: Link,
) -> Result<Result<()>, Box<Link>> {
    let Ok(mut worker) = Worker::new(0, client, supply, Workers { threads: 1, ..workers }) else {
        return Err(Box::new(link));
    };
    worker.adopt(link)?;
    Ok(worker.run())
}

/// Ends the run when a worker panics: the transfers it held would be waited for for ever.
struct Fuse<'a>(&'a dyn Supply);

impl Drop for Fuse<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Error::new(ErrorKind::Panicked, "a worker panicked"));
        }
    }
}

struct Worker {
    index: usize,
    client: Client,
    supply: Arc<dyn Supply>,
    workers: Workers,
    poll: Poll,
    inbox: Arc<Inbox>,
    wake: Arc<dyn Wake>,
    buffer: Buffer,
    mover: Mover,
    lanes: Slab<Lane>,
    by_key: HashMap<Arc<Key>, Vec<usize>>,
    /// Keys of peers that are not pipelined to again.
    serial: HashSet<Arc<Key>>,
    /// Keys of peers that sent a response too many: each of their connections carries one request.
    shifting: HashSet<Arc<Key>>,
    /// The number of requests that the last connection to a peer answered, if it left others
    /// unanswered.
    bore: HashMap<Arc<Key>, usize>,
    /// Keys of peers that offered HTTP/2 to, and that chose HTTP/1.1.
    unshared: HashSet<Arc<Key>>,
    /// Keys of peers that close each connection behind its first response, without saying so.
    leaving: HashSet<Arc<Key>>,
    /// Keys of hosts whose servers do not want them on the connections of others.
    apart: HashSet<Arc<Key>>,
    /// Idle lanes, longest idle first; a lane that is busy again has another stamp by then.
    idle: VecDeque<(usize, u64)>,
    idle_count: usize,
    /// The client's count of closings of its idle connections, when this worker last closed its
    /// own.
    closings: u32,
    stamp: u64,
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Transfers that have no connection yet, and a lane that may be free for them. A list, since a transfer that fails at once makes room for the
    /// next, and a million of them must not be a million nested calls.
    to_place: VecDeque<(Box<Transfer>, Option<usize>)>,
    /// Shared lanes with new requests: those of one turn leave in one write.
    unsent: Vec<usize>,
    /// Lanes that had their turn and have more to receive.
    again: Vec<usize>,
    finished: Finished,
    totals: Totals,
    now: Instant,
    slept: Duration,
    window_began: Instant,
    output_watched: bool,
    /// The last flush left something that this worker cannot wait for: to try again before anything has happened is vain.
    flushed_in_vain: bool,
    /// Since when there is gathered output.
    gathering_since: Option<Instant>,
    /// The time to call the supply again even without an event.
    turned_until: Option<Instant>,
    idle_cores: IdleCores,
    others: Vec<JoinHandle<()>>,
    /// Threads that close connections.
    lingering: Vec<JoinHandle<()>>,
}

/// A transfer that waits before it is tried again.
struct Delayed {
    at: Instant,
    /// True if this worker's share is lent ([`Supply::delayed`]).
    is_lent: bool,
    transfer: Box<Transfer>,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

fn no_loop(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Connect, "the event loop cannot be set up", error)
}

impl Worker {
    fn new(index: usize, client: &Client, supply: &Arc<dyn Supply>, workers: Workers) -> Result<Self> {
        let poll = Poll::new().map_err(no_loop)?;
        let inbox = Arc::new(Inbox::new(poll.registry(), INBOX).map_err(no_loop)?);
        supply.joined(&inbox);
        client.joined(&inbox);
        let now = Instant::now();
        Ok(Self {
            index,
            client: client.clone(),
            supply: Arc::clone(supply),
            workers,
            poll,
            wake: inbox.clone(),
            inbox,
            buffer: client.shelf().take(),
            mover: Mover::default(),
            lanes: Slab::new(),
            by_key: HashMap::new(),
            serial: HashSet::new(),
            shifting: HashSet::new(),
            bore: HashMap::new(),
            unshared: HashSet::new(),
            leaving: HashSet::new(),
            apart: HashSet::new(),
            idle: VecDeque::new(),
            idle_count: 0,
            closings: client.closings(),
            stamp: 0,
            delayed: BinaryHeap::new(),
            to_place: VecDeque::new(),
            unsent: Vec::new(),
            again: Vec::new(),
            finished: Finished::new(),
            totals: Totals::default(),
            now,
            slept: Duration::ZERO,
            window_began: now,
            output_watched: false,
            flushed_in_vain: false,
            gathering_since: None,
            turned_until: None,
            idle_cores: IdleCores::default(),
            others: Vec::new(),
            lingering: Vec::new(),
        })
    }

    /// Works until the run is over. An error of this worker's own ends it for the others, too: the transfers that it held
    /// are lost.
    fn run(&mut self) -> Result<()> {
        let supply = Arc::clone(&self.supply);
        let _fuse = Fuse(&*supply);
        let outcome = self.turn_until_over();
        self.leave();
        if let Err(error) = &outcome {
            supply.end(error.again());
        }
        outcome
    }

    fn turn_until_over(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(256);
        let mut messages = Vec::new();
        loop {
            while let Some(transfer) = self.supply.next(self.index, self.now) {
                self.to_place.push_back((transfer, None));
                self.place_all();
            }
            for lane in std::mem::take(&mut self.unsent) {
                self.pump(lane);
            }
            self.flush()?;
            self.turned_until = self.supply.turned(self.now);
            if self.supply.is_over() {
                return Ok(());
            }
            self.sleep(&mut events)?;
            self.flushed_in_vain = false;
            self.close_old();
            self.inbox.collect(&mut messages);
            for message in messages.drain(..) {
                self.hear(message);
            }
            for event in &events {
                match event.token() {
                    INBOX => {}
                    OUTPUT => self.output_watched = false,
                    Token(lane) => self.serve(lane, event.is_read_closed() || event.is_error()),
                }
                self.place_all();
            }
            for lane in std::mem::take(&mut self.again) {
                self.serve(lane, false);
            }
            // A connection with nothing to do may get something now.
            self.place_all();
            self.look_at_timers();
            self.place_all();
            self.call_for_help();
        }
    }

    /// Passes gathered output on. If the output is full, watches it for room.
    fn flush(&mut self) -> Result<()> {
        if !self.supply.wants_flush() {
            self.gathering_since = None;
            return Ok(());
        }
        if self.flushed_in_vain {
            return Ok(());
        }
        let since = *self.gathering_since.get_or_insert(self.now);
        if self.output_watched || self.now.saturating_duration_since(since) < GATHERING {
            return Ok(());
        }
        self.gathering_since = None;
        if self.supply.flush(self.index)? == Room::Free {
            // The rest waits for a later stage, which takes more when one of its transfers starts.
            self.flushed_in_vain = self.supply.wants_flush();
            return Ok(());
        }
        if self.index != 0 {
            // The output is watched by the first worker, since it can be watched only once.
            self.flushed_in_vain = true;
            return Ok(());
        }
        if !self.output_watched
            && let Some(fd) = self.supply.output()
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
        let may_sleep = self.again.is_empty() && self.inbox.falls_asleep();
        let timeout = if may_sleep {
            self.next_deadline().map(|at| at.saturating_duration_since(before))
        } else {
            Some(Duration::ZERO)
        };
        match self.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(no_loop(error)),
        }
        self.now = Instant::now();
        self.slept += self.now - before;
        Ok(())
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let lanes = self.lanes.iter().filter_map(|(_, lane)| lane.deadline()).min();
        let delayed = self.delayed.peek().map(|Reverse(delayed)| delayed.at);
        let gathered = self.gathering_since.filter(|_| !self.output_watched).map(|since| since + GATHERING);
        // The supply is asked with the time that it was last asked for a transfer with: a pause that has ended since was
        // not over then, and would be slept through.
        let old = self.old_at();
        [lanes, delayed, gathered, self.turned_until, old, self.supply.wakes_at(self.now)].into_iter().flatten().min()
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Resume(lane) => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.resume();
                }
                self.serve(lane, false);
            }
            Message::Resolved(lane) => self.serve(lane, false),
            Message::Cancel(tag) => self.cancel(tag),
            // The flush of the next turn watches the output, and the supply is asked anyway.
            Message::WatchOutput | Message::Look => {}
        }
    }

    fn look_at_timers(&mut self) {
        while self.delayed.peek().is_some_and(|Reverse(delayed)| delayed.at <= self.now) {
            if let Some(Reverse(delayed)) = self.delayed.pop() {
                if delayed.is_lent {
                    self.supply.resumed();
                }
                self.to_place.push_back((delayed.transfer, None));
            }
        }
        let now = self.now;
        let due = |lane: &Lane| lane.deadline().is_some_and(|at| at <= now);
        let overdue: Vec<usize> = self.lanes.iter().filter(|(_, lane)| due(lane)).map(|(token, _)| token).collect();
        for token in overdue {
            self.end_late(token);
            match self.lanes.get_mut(token) {
                Some(Lane { state: State::Open(link), .. }) => {
                    let mut finished = std::mem::take(&mut self.finished);
                    let progress = link.expire(now, &mut finished);
                    let is_over = progress == Progress::Closed;
                    if is_over {
                        self.remove(token);
                    }
                    self.settle(token, &mut finished);
                    self.finished = finished;
                    let Some(Lane { state: State::Open(link), paused, .. }) = self.lanes.get_mut(token) else {
                        continue;
                    };
                    if link.resumes_at().is_some_and(|at| at <= now) {
                        link.resume();
                        *paused = false;
                    }
                    if link.quiet_at().is_some_and(|at| at <= now) {
                        link.hurry();
                    }
                    self.serve(token, false);
                }
                Some(_) => self.open(token),
                None => {}
            }
        }
    }

    /// Starts another worker if this one did not get to sleep lately and there is enough to do for two.
    fn call_for_help(&mut self) {
        if self.index != 0 || self.others.len() + 1 >= self.workers.threads {
            return;
        }
        let heavy = self.supply.is_heavy();
        let window = self.now.saturating_duration_since(self.window_began);
        if window < if heavy { BUSY_WINDOW } else { LIGHT_WINDOW } {
            return;
        }
        let busy = self.slept < window / 16;
        self.slept = Duration::ZERO;
        self.window_began = self.now;
        let idle = self.idle_cores.is_one_idle(window);
        if !busy || !idle || self.supply.backlog() == 0 {
            return;
        }
        let (index, client, supply) = (self.others.len() + 1, self.client.clone(), Arc::clone(&self.supply));
        let workers = self.workers;
        // Without another thread this one goes on alone, and asks again.
        let started = threads::start(format!("haul-{index}"), move || {
            if let Ok(mut worker) = Worker::new(index, &client, &supply, workers) {
                // What ends it reaches the first worker through the supply.
                let _ = worker.run();
            }
        });
        if let Ok(thread) = started {
            self.others.push(thread);
        }
    }

    /// Leaves the idle connections to the client, and gives parts under way back to their split.
    fn leave(&mut self) {
        self.heed_closings();
        let tokens: Vec<usize> = self.lanes.iter().map(|(token, _)| token).collect();
        for token in tokens {
            if let Some(Lane { state: State::Open(link), .. }) = self.lanes.get_mut(token)
                && link.front().is_some_and(Transfer::is_part)
            {
                let mut finished = Finished::new();
                link.break_off(Error::new(ErrorKind::Receive, "it was no longer needed"), self.now, &mut finished);
                for (transfer, _) in finished {
                    self.supply.finished(self.index, transfer, Ok(()));
                }
            }
            self.give_away(token);
            self.remove(token);
        }
        self.end_lingering();
        self.client.stats().add(&std::mem::take(&mut self.totals));
    }
}
