//! The event loop: one a worker thread, each with connections and a read buffer of its own.
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

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use super::direct::Mover;
use super::idle_cores::IdleCores;
use super::inbox::{Inbox, Message};
use super::lane::{Lane, State, Surroundings, watch};
use super::link::{Finished, Pipes, Progress, Waker};
use crate::buffer::Buffer;
use crate::client::Client;
use crate::clock;
use crate::net::pool::Key;
use crate::sink::Wake;
use crate::sink::output::Room;
use crate::stats::Totals;
use crate::transfer::{After, Broke, Transfer};
use crate::{Error, ErrorKind, Result};

/// Where transfers come from and go to. Shared by all workers of a run.
pub trait Supply: Send + Sync {
    /// The next transfer for this worker, if one may start now.
    fn next(&self, worker: usize, now: Instant) -> Option<Transfer>;

    /// The slot of a transfer that is over is free: another one for it?
    fn another(&self, worker: usize, slot: HostId, now: Instant) -> Another;

    /// A transfer is over.
    fn finished(&self, worker: usize, transfer: Transfer, result: Result<()>);

    /// A transfer waits before it is tried again. Whether somebody else may use its share of the work meanwhile:
    /// [`Supply::resumed`] is called then when it goes on.
    fn delayed(&self, transfer: &Transfer) -> bool;

    /// A transfer whose share was lent goes on.
    fn resumed(&self);

    /// The connection of this slot was left for another worker.
    fn gave_away(&self, slot: HostId);

    /// Whether bodies cost more than moving them: they are decoded, decrypted or searched.
    fn is_heavy(&self) -> bool;

    /// The system has no descriptor left: so many at once are too many.
    fn fewer(&self);

    /// Passes gathered output on. While it is full, the first worker is told to watch it.
    ///
    /// # Errors
    /// When the output is gone; the run is over.
    fn flush(&self, worker: usize) -> Result<Room>;

    /// Whether there is gathered output.
    fn wants_flush(&self) -> bool;

    /// The descriptor to watch when the output is full.
    fn output(&self) -> Option<i32>;

    /// When to ask for a next transfer though nothing happened.
    fn wakes_at(&self, now: Instant) -> Option<Instant>;

    /// How many transfers wait for a slot or a worker.
    fn backlog(&self) -> usize;

    /// Whether the run is over.
    fn is_over(&self) -> bool;

    /// A worker cannot go on, and the transfers it held are lost: the run ends with this.
    fn end(&self, error: Error);

    /// A worker has joined.
    fn joined(&self, inbox: &Arc<Inbox>);
}

/// What a free slot is used for.
pub enum Another {
    /// This transfer; the slot stays taken.
    Transfer(Box<Transfer>),
    /// Another worker should have it, and the connection: see [`Supply::gave_away`].
    GiveAway,
    /// Nothing now.
    Nothing,
}

/// How a run uses workers and connections.
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
/// Idle connections that a worker keeps at most.
const MAX_IDLE: usize = 64;
/// Peers that are remembered as not to be pipelined to; beyond this all are forgotten, and one that misbehaves again costs
/// a replay again. Worst case about 1 MiB.
const MAX_SERIAL: usize = 4096;
/// Receives on one connection before the others have their turn.
const TURN: usize = 8;
/// A worker that slept less than a sixteenth of this long wants help, if bodies are heavy ([`Supply::is_heavy`]). In
/// either case a core must be idle: on two cores that a server shares, a second thread cost up to 40 % more CPU and won
/// nothing, for both are busy.
const BUSY_WINDOW: Duration = Duration::from_millis(30);
/// The same where bodies are only moved. The kernel does most of that work, and does it best undivided.
const LIGHT_WINDOW: Duration = Duration::from_millis(100);
/// How long small bodies may be gathered before they are written: on a busy run many leave in one call, and nobody waits
/// noticeably for the last ones.
const GATHERING: Duration = Duration::from_millis(1);
/// How long a transfer waits that found no descriptor.
const DESCRIPTOR_WAIT: Duration = Duration::from_millis(20);
/// How often it does so at least; while others are at work, for ever.
const MAX_STARVED: u32 = 250;

/// Runs workers until the supply is over.
///
/// # Errors
/// When there is no event loop to be had, or the output is gone.
pub fn run(client: &Client, supply: &Arc<dyn Supply>, workers: Workers) -> Result<()> {
    let mut first = Worker::new(0, client, supply, workers)?;
    let outcome = first.run();
    for thread in first.others.drain(..) {
        // A worker that panicked has printed why, and ended the run.
        let _ = thread.join();
    }
    outcome
}

/// Ends the run when a worker panics: the transfers it held would be waited for for ever.
struct Fuse<'a>(&'a dyn Supply);

impl Drop for Fuse<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Error::new(ErrorKind::Setup, "a worker panicked"));
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
    /// Idle lanes, longest idle first; a lane that is busy again has another stamp by then.
    idle: VecDeque<(usize, u64)>,
    idle_count: usize,
    stamp: u64,
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Transfers that have no connection yet, and a lane that may be free for them. A list, for a transfer that fails at
    /// once makes room for the next, and a million of them must not be a million calls deep.
    to_place: VecDeque<(Transfer, Option<usize>)>,
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
    idle_cores: IdleCores,
    others: Vec<JoinHandle<()>>,
}

/// A transfer that waits before it is tried again.
struct Delayed {
    at: Instant,
    /// Its share was lent ([`Supply::delayed`]).
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

/// Whether the system refused a descriptor.
fn lacks_descriptors(error: &Error) -> bool {
    matches!(error.io_source().and_then(io::Error::raw_os_error), Some(libc::EMFILE | libc::ENFILE))
}

fn no_loop(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Setup, "the event loop cannot be set up", error)
}

impl Worker {
    fn new(index: usize, client: &Client, supply: &Arc<dyn Supply>, workers: Workers) -> Result<Self> {
        let poll = Poll::new().map_err(no_loop)?;
        let inbox = Arc::new(Inbox::new(poll.registry(), INBOX).map_err(no_loop)?);
        supply.joined(&inbox);
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
            idle: VecDeque::new(),
            idle_count: 0,
            stamp: 0,
            delayed: BinaryHeap::new(),
            to_place: VecDeque::new(),
            again: Vec::new(),
            finished: Finished::new(),
            totals: Totals::default(),
            now,
            slept: Duration::ZERO,
            window_began: now,
            output_watched: false,
            flushed_in_vain: false,
            gathering_since: None,
            idle_cores: IdleCores::default(),
            others: Vec::new(),
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
            supply.end(Error::new(error.kind(), error.cause()));
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
            self.flush()?;
            if self.supply.is_over() {
                return Ok(());
            }
            self.sleep(&mut events)?;
            self.flushed_in_vain = false;
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
            self.look_at_timers();
            self.place_all();
            self.call_for_help();
        }
    }

    /// Passes gathered output on; when the output is full, sees to it that someone notices when it is not.
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
            // What is left waits for a later stage, which takes more when a transfer of it starts.
            self.flushed_in_vain = self.supply.wants_flush();
            return Ok(());
        }
        if self.index != 0 {
            // The output is watched by the first worker, for it can be watched once only.
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
            self.next_deadline(before).map(|at| at.saturating_duration_since(before))
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

    fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let lanes = self.lanes.iter().filter_map(|(_, lane)| lane.deadline()).min();
        let delayed = self.delayed.peek().map(|Reverse(delayed)| delayed.at);
        let gathered = self.gathering_since.filter(|_| !self.output_watched).map(|since| since + GATHERING);
        [lanes, delayed, gathered, self.supply.wakes_at(now)].into_iter().flatten().min()
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Resume(lane) => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.paused = false;
                }
                self.serve(lane, false);
            }
            Message::Resolved(lane) => self.serve(lane, false),
            // The flush of the next turn watches the output, and the supply is asked anyway.
            Message::WatchOutput | Message::Look => {}
        }
    }

    fn place_all(&mut self) {
        while let Some((transfer, warm)) = self.to_place.pop_front() {
            self.place(transfer, warm);
        }
    }

    /// Finds a connection for a transfer, or begins to make one.
    fn place(&mut self, transfer: Transfer, warm: Option<usize>) {
        if let Some(token) = warm
            && !transfer.wants_fresh
            && let Some(lane) = self.lanes.get(token)
            && lane.key.fits(transfer.target(), transfer.options())
            && matches!(lane.state, State::Open(_))
            && lane.takes(&transfer)
        {
            return self.start(token, transfer);
        }
        let key = Key::new(transfer.target(), transfer.options());
        if !transfer.wants_fresh
            && let Some(token) = self.free_lane(&key, &transfer)
        {
            return self.start(token, transfer);
        }
        if !transfer.wants_fresh
            && let Some(link) = self.client.take_idle(&key, self.now)
        {
            let entry = self.lanes.vacant_entry();
            let token = entry.key();
            if link.stream().socket().set_nonblocking(true).is_ok()
                && watch(self.poll.registry(), std::os::fd::AsFd::as_fd(&link), token).is_ok()
            {
                let mut lane = Lane::open(link, self.workers.depth, self.now);
                lane.is_serial = self.serial.contains(&lane.key);
                self.by_key.entry(Arc::clone(&lane.key)).or_default().push(token);
                entry.insert(lane);
                return self.start(token, transfer);
            }
        }
        let key = self.by_key.get_key_value(&key).map_or_else(|| Arc::new(key), |(key, _)| Arc::clone(key));
        let mut lane = Lane::new(Arc::clone(&key), transfer, self.workers.depth, self.now);
        lane.is_serial = self.serial.contains(&key);
        let token = self.lanes.insert(lane);
        self.by_key.entry(key).or_default().push(token);
        self.serve(token, false);
    }

    /// A lane of this key that can take a transfer: an idle one, or where requests are pipelined the one with the
    /// fewest, once there are as many lanes as there may be.
    fn free_lane(&self, key: &Key, transfer: &Transfer) -> Option<usize> {
        let tokens = self.by_key.get(key)?;
        let free = |token: &&usize| self.lanes[**token].takes(transfer);
        let best = tokens.iter().filter(free).min_by_key(|token| self.lanes[**token].depth()).copied()?;
        let idle = self.lanes[best].depth() == 0;
        (idle || tokens.len() >= self.workers.per_host).then_some(best)
    }

    /// Gives a transfer to a lane.
    fn start(&mut self, token: usize, transfer: Transfer) {
        let now = self.now;
        let lane = &mut self.lanes[token];
        let waits = !lane.waiting.is_empty() || (lane.is_serial && lane.depth() > 0);
        match &mut lane.state {
            State::Open(link) if !waits => {
                if link.depth() == 0 && lane.idle_since != 0 {
                    lane.idle_since = 0;
                    self.idle_count -= 1;
                }
                let mut finished = std::mem::take(&mut self.finished);
                link.start(transfer, now, &mut finished);
                self.settle(token, &mut finished);
                self.finished = finished;
                self.pump(token);
            }
            _ => lane.waiting.push_back(transfer),
        }
    }

    /// Sends what a lane has to send.
    fn pump(&mut self, token: usize) {
        let Some(Lane { state: State::Open(link), .. }) = self.lanes.get_mut(token) else { return };
        // A failed send is found by the next receive, which may bring the response that explains it.
        let _ = link.pump();
    }

    /// Something may have happened on a lane.
    fn serve(&mut self, token: usize, ended: bool) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        // While addresses are raced it may be another socket that ended.
        lane.ended |= ended && matches!(lane.state, State::Securing(_) | State::Open(_));
        if !matches!(lane.state, State::Open(_)) {
            self.open(token);
            return;
        }
        let State::Open(link) = &mut lane.state else { return };
        if link.has_output() {
            let _ = link.pump();
        }
        let mut finished = std::mem::take(&mut self.finished);
        for turn in 1.. {
            let Some(Lane { state: State::Open(link), paused, ended, .. }) = self.lanes.get_mut(token) else { break };
            let ended = *ended;
            if *paused {
                break;
            }
            let waker = Waker { wake: Some(&self.wake), token };
            let progress = if link.is_direct(Pipes::Written) {
                match link.move_body(&mut self.mover, self.now, waker, &mut finished) {
                    // A bulk body's next piece is waited for, not fetched in bits.
                    Progress::More if !link.has_more() => Progress::Drained,
                    progress => progress,
                }
            } else {
                link.receive(&mut self.buffer, self.now, waker, &mut finished)
            };
            match progress {
                Progress::Paused => *paused = true,
                Progress::Closed => {
                    if link.has_misbehaved() {
                        let key = Arc::clone(&link.key);
                        self.not_again(key);
                    }
                    self.remove(token);
                }
                Progress::WouldBlock | Progress::More | Progress::Drained => {}
            }
            self.settle(token, &mut finished);
            match progress {
                Progress::WouldBlock | Progress::Paused | Progress::Closed => break,
                Progress::Drained if !ended => break,
                _ if turn >= TURN => {
                    self.again.push(token);
                    break;
                }
                Progress::More | Progress::Drained => {}
            }
        }
        self.finished = finished;
    }

    /// Gets on with opening a lane.
    fn open(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let mut around = Surroundings {
            client: &self.client,
            registry: self.poll.registry(),
            inbox: &self.inbox,
            buffer: &mut self.buffer,
            now: self.now,
        };
        match lane.advance(token, &mut around) {
            Ok(false) => {}
            Ok(true) => {
                self.start_waiting(token);
                // What came with the handshake waits in no socket: look once.
                self.serve(token, false);
            }
            Err(error) => {
                let waiting = std::mem::take(&mut lane.waiting);
                self.remove(token);
                self.could_not_open(waiting, error);
            }
        }
    }

    /// The transfers of a lane that could not be opened fail with it, or wait until there are descriptors again.
    fn could_not_open(&mut self, waiting: VecDeque<Transfer>, error: Error) {
        let exhausted = lacks_descriptors(&error);
        let (kind, cause) = (error.kind(), error.cause());
        let mut error = Some(error);
        for mut transfer in waiting {
            if exhausted && self.may_starve(&transfer) {
                self.starve(transfer);
                continue;
            }
            // The first transfer gets the error itself; to the others it says the same.
            let error = error.take().unwrap_or_else(|| Error::new(kind, cause.clone()));
            let after = transfer.on_failure(error, Broke::BeforeSending, self.now);
            self.go_on(transfer, after, None);
        }
    }

    /// Whether it is worth waiting for a descriptor: while others are at work, which will free theirs, and else a while.
    fn may_starve(&self, transfer: &Transfer) -> bool {
        transfer.starved < MAX_STARVED || self.lanes.iter().any(|(_, lane)| lane.depth() > 0)
    }

    /// Lets a transfer wait until there are descriptors again.
    fn starve(&mut self, mut transfer: Transfer) {
        transfer.starved += 1;
        self.close_idle_lanes();
        self.supply.fewer();
        let at = self.now + DESCRIPTOR_WAIT;
        self.delayed.push(Reverse(Delayed { at, is_lent: false, transfer: Box::new(transfer) }));
    }

    /// Deals with transfers whose exchange on a lane is over.
    fn settle(&mut self, token: usize, finished: &mut Finished) {
        let any = !finished.is_empty();
        for (transfer, after) in finished.drain(..) {
            self.go_on(transfer, after, Some(token));
        }
        if any {
            self.start_waiting(token);
        }
        self.rest(token);
    }

    /// Starts what waits on a lane and can be started now.
    fn start_waiting(&mut self, token: usize) {
        let mut failed = Finished::new();
        while let Some(lane) = self.lanes.get_mut(token)
            && let Some(transfer) = lane.next_waiting()
            && let State::Open(link) = &mut lane.state
        {
            link.start(transfer, self.now, &mut failed);
        }
        for (transfer, after) in failed {
            self.go_on(transfer, after, Some(token));
        }
        self.pump(token);
    }

    /// Sends a peer one request at a time from now on.
    fn not_again(&mut self, key: Arc<Key>) {
        for token in self.by_key.get(&key).into_iter().flatten() {
            self.lanes[*token].is_serial = true;
        }
        if self.serial.len() >= MAX_SERIAL {
            self.serial.clear();
        }
        self.serial.insert(key);
    }

    fn go_on(&mut self, mut transfer: Transfer, after: After, warm: Option<usize>) {
        match after {
            // The file that it should have gone to could not be opened.
            After::Done(Err(error)) if lacks_descriptors(&error) && self.may_starve(&transfer) && transfer.revive() => {
                self.starve(transfer);
            }
            After::Again(wait) if wait.is_zero() => self.to_place.push_back((transfer, warm)),
            After::Again(wait) => {
                let is_lent = self.supply.delayed(&transfer);
                let at = clock::after(self.now, wait);
                self.delayed.push(Reverse(Delayed { at, is_lent, transfer: Box::new(transfer) }));
            }
            After::Done(result) => {
                let slot = transfer.slot;
                self.totals.transfer_finished(&transfer.facts, result.is_err());
                self.supply.finished(self.index, transfer, result);
                let Some(slot) = slot else { return };
                match self.supply.another(self.index, slot, self.now) {
                    Another::Transfer(transfer) => self.to_place.push_back((*transfer, warm)),
                    Another::GiveAway => {
                        if let Some(token) = warm {
                            self.give_away(token);
                        }
                        // Only now: the other worker must find the connection when it has the slot.
                        self.supply.gave_away(slot);
                    }
                    Another::Nothing => {}
                }
            }
        }
    }

    /// Notes that a lane has nothing to do, if that is so.
    fn rest(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let State::Open(link) = &lane.state else { return };
        if lane.idle_since != 0 || !link.is_idle() || !lane.waiting.is_empty() {
            return;
        }
        self.stamp += 1;
        lane.idle_since = self.stamp;
        self.idle.push_back((token, self.stamp));
        self.idle_count += 1;
        while self.idle_count > MAX_IDLE || self.idle.len() > 4 * MAX_IDLE {
            let Some((token, stamp)) = self.idle.pop_front() else { break };
            if self.lanes.get(token).is_some_and(|lane| lane.idle_since == stamp) {
                if self.idle_count > MAX_IDLE {
                    self.remove(token);
                } else {
                    self.idle.push_back((token, stamp));
                }
            }
        }
    }

    /// Leaves an idle connection where another worker finds it.
    fn give_away(&mut self, token: usize) {
        let idle = matches!(self.lanes.get(token), Some(Lane { state: State::Open(link), .. }) if link.is_idle());
        if idle && let Some(link) = self.take_out(token) {
            let fd = link.stream().socket().as_raw_fd();
            // In the pool all connections are blocking ones.
            if self.poll.registry().deregister(&mut SourceFd(&fd)).is_ok()
                && link.stream().socket().set_nonblocking(false).is_ok()
            {
                self.client.put_idle(link, self.now);
            }
        }
    }

    fn remove(&mut self, token: usize) {
        if let Some(link) = self.take_out(token) {
            self.totals.connection_closed(&link);
        }
    }

    /// Takes a lane out of all lists; answers its connection if it was open.
    fn take_out(&mut self, token: usize) -> Option<super::link::Link> {
        let lane = self.lanes.try_remove(token)?;
        if lane.idle_since != 0 {
            self.idle_count -= 1;
        }
        if let Some(tokens) = self.by_key.get_mut(&lane.key) {
            tokens.retain(|&other| other != token);
            if tokens.is_empty() {
                self.by_key.remove(&lane.key);
            }
        }
        self.to_place.extend(lane.waiting.into_iter().map(|transfer| (transfer, None)));
        match lane.state {
            State::Open(link) => Some(*link),
            _ => None,
        }
    }

    fn close_idle_lanes(&mut self) {
        for (token, stamp) in std::mem::take(&mut self.idle) {
            if self.lanes.get(token).is_some_and(|lane| lane.idle_since == stamp) {
                self.remove(token);
            }
        }
    }

    fn look_at_timers(&mut self) {
        while self.delayed.peek().is_some_and(|Reverse(delayed)| delayed.at <= self.now) {
            if let Some(Reverse(delayed)) = self.delayed.pop() {
                if delayed.is_lent {
                    self.supply.resumed();
                }
                self.to_place.push_back((*delayed.transfer, None));
            }
        }
        let now = self.now;
        let due = |lane: &Lane| lane.deadline().is_some_and(|at| at <= now);
        let overdue: Vec<usize> = self.lanes.iter().filter(|(_, lane)| due(lane)).map(|(token, _)| token).collect();
        for token in overdue {
            match self.lanes.get_mut(token) {
                Some(Lane { state: State::Open(link), .. }) if !link.is_overdue(now) => {
                    link.hurry();
                    self.serve(token, false);
                }
                Some(Lane { state: State::Open(link), .. }) => {
                    let mut finished = std::mem::take(&mut self.finished);
                    let error = Error::new(ErrorKind::Timeout, "the operation timed out");
                    link.break_off(error, now, &mut finished);
                    self.remove(token);
                    self.settle(token, &mut finished);
                    self.finished = finished;
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
        let started = std::thread::Builder::new().name(format!("haul-{index}")).spawn(move || {
            if let Ok(mut worker) = Worker::new(index, &client, &supply, workers) {
                // What ends it reaches the first worker through the supply.
                let _ = worker.run();
            }
        });
        if let Ok(thread) = started {
            self.others.push(thread);
        }
    }

    /// Leaves the idle connections to the client.
    fn leave(&mut self) {
        let tokens: Vec<usize> = self.lanes.iter().map(|(token, _)| token).collect();
        for token in tokens {
            self.give_away(token);
            self.remove(token);
        }
        self.client.stats().add(&std::mem::take(&mut self.totals));
    }
}

#[cfg(test)]
mod tests;
