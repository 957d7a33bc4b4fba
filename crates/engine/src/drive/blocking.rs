//! The blocking driver: one transfer on one socket, with plain sends and receives. No event loop, no thread, no wake-up; on a warm connection a small
//! request is three system calls (peek, send, receive).
//!
//! It can stop in the midst of a body and go on later (`Exchanges::go_on`), for a program that reads the body piece by
//! piece: all its state is the socket, TLS, the machine and the transfer.
//!
//! ```text
//!            ┌──────────── After::Again ◀────────────┐
//!  Next ─────┴──▶ take from the pool, or open ──▶ Live ──▶ After::Done ──▶ Outcome
//!                                                 │  ▲
//!                                                 └──┘ enough for now: go_on returns
//! ```
//!
//! Limits hold without an event loop: the connection is made under the deadline, and a receive waits no longer than
//! what is left of it (`SO_RCVTIMEO`), which costs a system call only when the limit is another than the last one.
//!
//! A large body is waited for in `poll` instead, on a socket that is non-blocking for as long: then it can be moved
//! past our memory ([`super::direct`]), and the wait ends early when a bulk body has slowed down ([`super::bulk`]). So is
//! the answer to a large upload, which may begin before the upload has ended.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::body::path::BodyPath;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::drive::direct::{Mover, Waited};
use crate::drive::link::{Finished, Link, Pipes, Progress, Waker};
use crate::facts::Phase;
use crate::interrupt::Ticker;
use crate::net::connecting::{ConnectContext, ConnectProgress, Connecting};
use crate::net::dns::Family;
use crate::net::pool::Key;
use crate::request::Split;
use crate::split::{self, SplitMonitor, SplitOutcome};
use crate::transfer::{After, Broke, Outcome, Transfer};
use crate::{Error, ErrorKind, Result};

/// The waker of a blocking exchange, which wakes no thread: the sink itself waits.
const NOBODY: Waker<'static> = Waker { wake: None, token: 0 };

/// If at least this much of a body is to come, the driver waits in `poll`.
const WORTH_POLLING: u64 = 1 << 20;

/// Runs a transfer to its end.
pub fn run(client: &Client, transfer: Box<Transfer>) -> Outcome {
    run_to_end(client, transfer).into_outcome().0
}

/// Runs a transfer to its end. Also returns what the body's path held.
pub(crate) fn run_to_end(client: &Client, transfer: Box<Transfer>) -> Ended {
    let split = transfer.options().split;
    let mut exchanges = Exchanges::new(transfer, split);
    loop {
        if let Some(end) = exchanges.go_on(client, || false) {
            return end;
        }
    }
}

/// The exchanges of one transfer, with their progress.
pub(crate) struct Exchanges {
    state: State,
    split: Split,
    ticker: Ticker,
    /// The current time, if it has just been read.
    now: Option<Instant>,
}

enum State {
    /// The next exchange is to begin, at this moment if one is given.
    Next(Box<Transfer>, From, Option<Instant>),
    /// One is under way.
    Live(Live),
    /// The transfer is over, and its outcome has been handed out.
    Over,
}

/// The source of the connection for the next exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// The client's pool.
    Pool,
    /// The network: the last connection broke, which makes the others of its age suspect.
    Fresh,
}

/// The way in which an exchange waits for the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// In the receive itself: one system call for the received bytes.
    InReceive,
    /// In `poll`, before a receive or a move that does not wait: the socket is non-blocking.
    InPoll,
}

/// An exchange under way.
struct Live {
    link: Link,
    /// The start time, if set before the transfer is first driven.
    began: Option<Instant>,
    split_monitor: SplitMonitor,
    mover: Mover,
    waits: Waits,
    is_drained: bool,
    send_error: Option<io::Error>,
}

/// The reason why an exchange stopped.
enum Stopped {
    /// Transfers were given back.
    Finished,
    /// The caller has enough for now.
    Enough,
    /// The body is to be split into parts.
    WorthSplitting,
    /// From the hook.
    Interrupted(Error),
}

/// A finished transfer. It stays boxed until its outcome is wanted.
pub(crate) struct Ended {
    transfer: Box<Transfer>,
    result: Result<()>,
}

impl Ended {
    /// Returns the outcome of the transfer, and the path that its body took.
    #[inline]
    pub(crate) fn into_outcome(self) -> (Outcome, BodyPath) {
        self.transfer.into_outcome(self.result)
    }
}

impl Exchanges {
    /// Of a transfer that was made just now; `split` as its sink allows.
    pub(crate) fn new(transfer: Box<Transfer>, split: Split) -> Self {
        let ticker = Ticker::new(transfer.options().interrupt.as_ref());
        let now = Some(transfer.facts.started);
        Self { state: State::Next(transfer, From::Pool, None), split, ticker, now }
    }

    /// Returns the transfer until it is over.
    pub(crate) fn transfer(&self) -> Option<&Transfer> {
        match &self.state {
            State::Next(transfer, ..) => Some(transfer),
            State::Live(live) => live.link.front(),
            State::Over => None,
        }
    }

    /// Abandons the response and closes its connection.
    pub(crate) fn give_up(self, client: &Client) {
        if let State::Live(live) = self.state {
            client.stats().connection_closed(&live.link);
        }
    }

    /// Drives the transfer until it is over, or until `is_enough` returns true after input has
    /// arrived.
    pub(crate) fn go_on(&mut self, client: &Client, mut is_enough: impl FnMut() -> bool) -> Option<Ended> {
        loop {
            let mut live = match std::mem::replace(&mut self.state, State::Over) {
                State::Next(transfer, from, at) => {
                    if let Some(Err(error)) = at.map(|at| self.ticker.sleep(at)) {
                        return Some(end(client, transfer, Err(error)));
                    }
                    let now = self.now.take().unwrap_or_else(Instant::now);
                    match begin(client, transfer, from, self.split, &mut self.ticker, now) {
                        Ok(live) => live,
                        Err(over) => match self.settle(client, over, From::Pool) {
                            Some(end) => return Some(end),
                            None => continue,
                        },
                    }
                }
                State::Live(live) => live,
                State::Over => unreachable!("who was given the outcome does not go on"),
            };
            let mut finished = Finished::new();
            match live.drive(client, &mut self.ticker, &mut finished, &mut is_enough) {
                Stopped::Finished => {
                    let from = live.leave(client);
                    let over = finished.pop().expect("a link gives back every transfer that was started on it");
                    if let Some(end) = self.settle(client, over, from) {
                        return Some(end);
                    }
                }
                Stopped::Enough => {
                    self.state = State::Live(live);
                    return None;
                }
                Stopped::WorthSplitting => {
                    if let Some(end) = self.split(client, live) {
                        return Some(end);
                    }
                }
                Stopped::Interrupted(error) => {
                    let again = error.again();
                    live.link.break_off(again, Instant::now(), &mut finished);
                    client.stats().connection_closed(&live.link);
                    let over = finished.pop().expect("a link gives back every transfer that was started on it");
                    return Some(end(client, over.0, Err(error)));
                }
            }
        }
    }

    fn settle(&mut self, client: &Client, (transfer, after): (Box<Transfer>, After), from: From) -> Option<Ended> {
        match after {
            After::Done(result) => Some(end(client, transfer, result)),
            After::Again(wait) => {
                let at = (!wait.is_zero()).then(|| crate::clock::after(Instant::now(), wait));
                self.state = State::Next(transfer, from, at);
                None
            }
        }
    }

    /// Fetches the rest over several connections.
    fn split(&mut self, client: &Client, live: Live) -> Option<Ended> {
        let Live { link, split_monitor, .. } = live;
        match split::run(client, link, split_monitor) {
            Ok((mut transfer, SplitOutcome::Done(result))) => {
                transfer.facts.finished(Instant::now());
                Some(end(client, transfer, result))
            }
            Ok((transfer, SplitOutcome::ContinueAlone)) => {
                // Once is enough: it was refused, or brought nothing.
                self.split.connections = 1;
                self.state = State::Next(transfer, From::Pool, None);
                None
            }
            Err(link) => {
                self.state = State::Live(Live::new(*link, SplitMonitor::Disabled));
                None
            }
        }
    }
}

/// The end of a transfer.
fn end(client: &Client, mut transfer: Box<Transfer>, result: Result<()>) -> Ended {
    let result = result.map_err(|error| transfer.own(error));
    if transfer.facts.total.is_zero() {
        transfer.facts.finished(Instant::now());
    }
    client.stats().transfer_finished(&transfer.facts, result.is_err());
    Ended { transfer, result }
}

/// Takes a connection, and puts the request into its machine.
fn begin(
    client: &Client,
    mut transfer: Box<Transfer>,
    from: From,
    split: Split,
    ticker: &mut Ticker,
    now: Instant,
) -> Result<Live, (Box<Transfer>, After)> {
    let warm = match from {
        From::Pool if !transfer.reuse.wants_fresh => {
            client.take_idle_for(transfer.target(), transfer.options(), now).filter(Link::can_start)
        }
        From::Pool | From::Fresh => None,
    };
    let (mut link, now) = match warm {
        Some(link) => (link, now),
        None => match open_for(client, &mut transfer, ticker) {
            Ok(link) => (link, Instant::now()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                return Err((transfer, After::Done(Err(error))));
            }
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, Instant::now());
                return Err((transfer, after));
            }
        },
    };
    let mut finished = Finished::new();
    link.start(transfer, now, NOBODY, &mut finished);
    match finished.pop() {
        Some(over) => {
            // It could not even be put into the machine: the connection is as it was.
            client.put_idle(link, now);
            Err(over)
        }
        None => Ok(Live { began: Some(now), ..Live::new(link, SplitMonitor::new(split)) }),
    }
}

impl Live {
    fn new(link: Link, split_monitor: SplitMonitor) -> Self {
        let (deadline, silent) = link.front().map_or((None, None), |front| (front.deadline(), front.silent_until()));
        let plain = [deadline, silent].into_iter().flatten().min();
        // A server that answers while it is sent to, and reads no more until its answer is taken, must not stop both sides.
        // Nor must one that is to be watched be waited for in a receive.
        let is_watched = link.is_uploading() || link.look_at() != plain;
        let waits = if is_watched && link.stream().socket().set_nonblocking(true).is_ok() {
            Waits::InPoll
        } else {
            Waits::InReceive
        };
        Self { link, began: None, split_monitor, mover: Mover::default(), waits, is_drained: false, send_error: None }
    }

    /// Returns true if the deadline of the transfer under way has passed.
    fn is_late(&self) -> bool {
        self.link.front().and_then(Transfer::deadline).is_some_and(|at| at <= Instant::now())
    }

    /// Leaves the connection to the pool, if it is of further use. Says where the next one should come from.
    fn leave(self, client: &Client) -> From {
        // In the pool all connections are blocking ones.
        let blocks = self.waits == Waits::InReceive || self.link.stream().socket().set_nonblocking(false).is_ok();
        if self.link.is_idle() && blocks {
            client.put_idle(self.link, Instant::now());
            return From::Pool;
        }
        client.stats().connection_closed(&self.link);
        if self.link.owes_drain() {
            self.link.drain();
        }
        From::Fresh
    }

    /// Sends and receives until something stops it.
    fn drive(
        &mut self,
        client: &Client,
        ticker: &mut Ticker,
        finished: &mut Finished,
        is_enough: &mut impl FnMut() -> bool,
    ) -> Stopped {
        let mut buffer = client.shelf().take();
        let began = *self.began.get_or_insert_with(Instant::now);
        // The program may have spent time on the bytes it was given.
        if let Some(transfer) = self.link.front_mut() {
            transfer.is_held_up(false, began);
        }
        loop {
            let now = self.began.take().unwrap_or_else(Instant::now);
            if let Err(error) = ticker.tick(now) {
                return Stopped::Interrupted(error);
            }
            if self.split_monitor.is_worth_trying(&self.link, now) {
                return Stopped::WorthSplitting;
            }
            let look_at = self.link.look_at();
            if look_at.is_some_and(|at| at <= now) {
                self.link.expire(now, finished);
                if !finished.is_empty() {
                    return Stopped::Finished;
                }
            }
            let until = ticker.cut(look_at, now);
            self.send(until, now);
            self.choose_wait();
            if self.has_to_wait() && !self.wait(until, finished) {
                if finished.is_empty() {
                    continue;
                }
                return Stopped::Finished;
            }
            let progress = self.receive(&mut buffer, now, finished);
            if let Err(error) = self.heed(progress, ticker, finished) {
                return Stopped::Interrupted(error);
            }
            if !finished.is_empty() {
                return Stopped::Finished;
            }
            if is_enough() {
                if let Some(transfer) = self.link.front_mut() {
                    transfer.is_held_up(true, Instant::now());
                }
                return Stopped::Enough;
            }
        }
    }

    /// Sends the output, and limits the waits of sends and receives to the time that is left.
    fn send(&mut self, until: Option<Instant>, now: Instant) {
        if self.send_error.is_some() {
            return;
        }
        let limited = match self.waits {
            Waits::InPoll => Ok(()),
            Waits::InReceive => {
                self.link.stream().socket().limit_waits(until.map(|at| at.saturating_duration_since(now)))
            }
        };
        // The server may have answered before it closed: look before giving up.
        self.send_error = limited.and_then(|()| self.link.pump()).err();
    }

    /// A body that proves to be large is waited for in `poll` from now on.
    fn choose_wait(&mut self) {
        if self.waits == Waits::InPoll {
            return;
        }
        let link = &mut self.link;
        let is_large = link.remaining() >= WORTH_POLLING || link.quiet_at().is_some() || link.is_direct(Pipes::Awaited);
        if is_large && !link.has_output() && link.stream().socket().set_nonblocking(true).is_ok() {
            self.waits = Waits::InPoll;
            self.is_drained = true;
        } else if link.quiet_at().is_some() {
            // A receive waits for as much as the mark says, however long: what less there is, poll alone gives up waiting for.
            link.hurry();
        }
    }

    /// Returns true if nothing can be received without a wait in `poll`.
    fn has_to_wait(&self) -> bool {
        self.waits == Waits::InPoll && self.is_drained && !self.link.stream().has_ahead() && !self.link.has_due()
    }

    /// Waits in `poll`. Returns false if there is nothing to receive, because it is too early or
    /// the transfer is over.
    fn wait(&mut self, until: Option<Instant>, finished: &mut Finished) -> bool {
        let error = match self.link.wait(until) {
            Ok(Waited::Ready) => return true,
            Ok(Waited::Quiet) => {
                self.link.hurry();
                return true;
            }
            Ok(Waited::Late) if !self.is_late() => return false,
            Ok(Waited::Late) => too_late(self.send_error.take()),
            Err(error) => Error::with_source(ErrorKind::Receive, "the connection cannot be waited for", error),
        };
        self.link.break_off(error, Instant::now(), finished);
        false
    }

    /// Receives once, or lets the kernel move available bytes to the sink.
    fn receive(&mut self, buffer: &mut Buffer, now: Instant, finished: &mut Finished) -> Progress {
        if self.waits == Waits::InPoll && self.link.is_direct(Pipes::Awaited) {
            self.is_drained = true;
            return self.link.move_body(&mut self.mover, Instant::now(), NOBODY, finished);
        }
        let progress = self.link.receive(buffer, now, NOBODY, finished);
        self.is_drained = progress != Progress::More;
        progress
    }

    /// Does everything due before the next receive.
    ///
    /// # Errors
    /// From the hook.
    fn heed(&mut self, progress: Progress, ticker: &mut Ticker, finished: &mut Finished) -> Result<()> {
        match progress {
            Progress::Throttled => {
                let until = [self.link.resumes_at(), self.link.look_at()].into_iter().flatten().min();
                until.map_or(Ok(()), |until| ticker.sleep(until))?;
                self.link.resume();
                self.is_drained = false;
            }
            Progress::Interrupted => ticker.signalled(Instant::now())?,
            // The time that the receive had is over, which may have been cut short for the hook.
            Progress::WouldBlock if self.waits == Waits::InReceive && (self.is_late() || self.send_error.is_some()) => {
                self.link.break_off(too_late(self.send_error.take()), Instant::now(), finished);
            }
            _ => {}
        }
        Ok(())
    }
}

fn too_late(send_error: Option<io::Error>) -> Error {
    match send_error {
        Some(error) => Error::with_source(ErrorKind::Send, "the request could not be sent", error),
        None => timed_out(),
    }
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "the operation timed out")
}

/// Opens a connection for the next exchange.
fn open_for(client: &Client, transfer: &mut Transfer, ticker: &mut Ticker) -> Result<Link> {
    let key = Key::new(transfer.target(), transfer.options());
    transfer.goes_by(&key);
    open(client, key, transfer, ticker)
}

/// Makes a connection by the connecting machine, waiting in `poll` and in the resolver.
fn open(client: &Client, key: Key, transfer: &mut Transfer, ticker: &mut Ticker) -> Result<Link> {
    let options = Arc::clone(transfer.options());
    let key = Arc::new(key);
    let now = Instant::now();
    transfer.facts.enter(Phase::Resolve, now);
    let opens_by = crate::clock::after(now, options.connect.timeout);
    let opens_by = transfer.deadline().map_or(opens_by, |at| at.min(opens_by));
    let mut connecting = Connecting::new(Arc::clone(&key), Arc::clone(&options), 0, opens_by);
    // Most plain connections need no buffer.
    let mut buffer = None;
    loop {
        let now = Instant::now();
        ticker.tick(now)?;
        let lease = connecting.needs_buffer().then(|| buffer.get_or_insert_with(|| client.shelf().take()));
        let progress = connecting.step(&mut ConnectContext {
            now,
            tls: client.tls(),
            buffer: lease.map_or(&mut [], |buffer| &mut buffer[..]),
            resolve: &mut |host, port, family| resolve(client, host, port, family, opens_by, ticker).map(Some),
            watch: &mut |_| Ok(()),
            observer: transfer,
        })?;
        match progress {
            ConnectProgress::Resolved | ConnectProgress::Advanced => {}
            ConnectProgress::Waits => {
                let until = connecting.next_timeout();
                connecting.wait(ticker.cut(Some(until), Instant::now()).unwrap_or(until))?;
            }
            ConnectProgress::Open(stream) => {
                if let Err(error) = stream.socket().set_nonblocking(false) {
                    let message = format!("failed to connect to {}", key.host);
                    return Err(Error::with_source(ErrorKind::Connect, message, error));
                }
                return Ok(Link::new(*stream, key, 1, client.windows(), options.limit_rate));
            }
        }
    }
}

/// Looks a name up and waits for the answer until `deadline`, asking the interrupt hook meanwhile.
fn resolve(
    client: &Client,
    host: &str,
    port: u16,
    family: Family,
    deadline: Instant,
    ticker: &mut Ticker,
) -> Result<Arc<[IpAddr]>> {
    loop {
        let now = Instant::now();
        let answer = client.resolver().resolve(host, port, family, ticker.cut(Some(deadline), now));
        let is_late = || deadline <= Instant::now();
        match answer {
            Err(error) if error.kind() == ErrorKind::Timeout && !is_late() => ticker.tick(Instant::now())?,
            answer => return answer,
        }
    }
}
