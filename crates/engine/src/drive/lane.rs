//! A worker's connection slot: a connection in the making or an open one, and the transfers that wait for it.
//!
//! ```text
//! Connecting ──▶ Open
//!     └──▶ failed: the transfers that waited for it are given back
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::inbox::{Inbox, Message};
use super::link::{Link, Waker};
use crate::Result;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::clock;
use crate::facts::Phase;
use crate::net::connecting::{ConnectContext, ConnectProgress, Connecting};
use crate::net::dns::Lookup;
use crate::net::pool::Key;
use crate::transfer::Transfer;

/// A connection, or one in the making.
pub(crate) struct Lane {
    /// The state of its connection.
    pub(crate) state: State,
    /// The key of its connection: the requests that it may carry.
    pub(crate) key: Arc<Key>,
    /// Transfers that will be started when it is open, or when those before them are answered.
    pub(crate) waiting: VecDeque<Box<Transfer>>,
    /// No later than the first of them has to be over. (Looking through them all at each turn is dear when there are
    /// thousands.)
    waiting_until: Option<Instant>,
    /// True while a sink has no credit, so that the connection is not read.
    pub(crate) paused: bool,
    /// The rank of the transfer whose sink wakes this lane when it may be started.
    awaits: Option<u64>,
    /// The peer has ended its side, and that is still to be read: the event that said so does not come again.
    pub(crate) ended: bool,
    /// The stamp of the time when it was last found idle. It tells a lane from an earlier one with
    /// the same token.
    pub(crate) idle_since: u64,
    /// The time then.
    pub(crate) rested: Instant,
    /// The peer has shown that it cannot be sent a request before it has answered the last one.
    pub(crate) is_serial: bool,
    /// Set before the connection is open if it will most likely be shared: other transfers wait for
    /// it.
    pub(crate) hopes_to_share: bool,
    /// The time limit of the transfers that it is opened for.
    opens_within: Duration,
    depth: usize,
}

/// The state of a lane.
pub(crate) enum State {
    /// The connection is being made.
    Connecting(Box<Connecting>),
    /// Requests can be sent.
    Open(Box<Link>),
}

/// The result of [`Lane::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    /// The lane can do nothing before the next event.
    Waits,
    /// The addresses are known and nothing is connected yet. Call `advance` again if no open
    /// connection fits.
    Resolved,
    /// The connection is open.
    Open,
}

/// The parts of the worker that a lane needs to proceed.
pub(crate) struct Surroundings<'a> {
    /// The client.
    pub(crate) client: &'a Client,
    /// The registry in which descriptors are watched.
    pub(crate) registry: &'a Registry,
    /// The worker's inbox.
    pub(crate) inbox: &'a Arc<Inbox>,
    /// The worker's read buffer.
    pub(crate) buffer: &'a mut Buffer,
    /// The time.
    pub(crate) now: Instant,
}

impl Lane {
    /// A lane that will be opened for this transfer.
    #[must_use]
    pub(crate) fn new(key: Arc<Key>, mut transfer: Box<Transfer>, depth: usize, now: Instant) -> Self {
        transfer.facts.enter(Phase::Resolve, now);
        let options = Arc::clone(transfer.options());
        let opens_within = options.connect.timeout;
        let opens_by = clock::after(now, opens_within);
        let connecting = Connecting::new(Arc::clone(&key), options, transfer.address_index(), opens_by);
        Self {
            waiting_until: transfer.deadline(),
            waiting: VecDeque::from([transfer]),
            opens_within,
            ..Self::of(State::Connecting(Box::new(connecting)), key, depth, now)
        }
    }

    /// A lane that is open already.
    #[must_use]
    pub(crate) fn open(link: Link, depth: usize, now: Instant) -> Self {
        let key = Arc::clone(link.key());
        Self::of(State::Open(Box::new(link)), key, depth, now)
    }

    fn of(state: State, key: Arc<Key>, depth: usize, now: Instant) -> Self {
        Self {
            state,
            key,
            waiting: VecDeque::new(),
            waiting_until: None,
            paused: false,
            awaits: None,
            ended: false,
            idle_since: 0,
            rested: now,
            is_serial: false,
            hopes_to_share: false,
            opens_within: Duration::ZERO,
            depth,
        }
    }

    /// Returns true during the name lookup and the race of addresses: several sockets may be
    /// watched under the lane's token.
    #[must_use]
    pub(crate) fn is_racing(&self) -> bool {
        matches!(&self.state, State::Connecting(connecting) if !connecting.needs_buffer())
    }

    /// Returns the number of transfers on the lane.
    #[must_use]
    pub(crate) fn depth(&self) -> usize {
        match &self.state {
            State::Open(link) => link.depth() + self.waiting.len(),
            _ => self.waiting.len(),
        }
    }

    /// Returns true if the lane accepts a transfer, to be started at once or after its present
    /// ones.
    #[must_use]
    pub(crate) fn takes(&self, transfer: &Transfer) -> bool {
        if !matches!(self.state, State::Open(_)) && transfer.options().connect.timeout != self.opens_within {
            return false;
        }
        let last = match &self.state {
            State::Open(link) if link.is_closing() => return false,
            // Transfers without room wait here: another connection would not help. Except one that all the others wait for: they would never make
            // room for it.
            State::Open(link) if link.is_shared() => return !link.is_stuck_before(transfer.scheduling.rank),
            State::Open(link) if !self.is_serial && self.waiting.is_empty() && !link.is_held_back() => {
                return link.takes(transfer);
            }
            _ if self.hopes_to_share => return true,
            State::Open(link) => self.waiting.back().map(|last| &**last).or(link.last()),
            _ => self.waiting.back().map(|last| &**last),
        };
        self.depth() < self.depth && last.is_none_or(|last| transfer.may_follow(last))
    }

    /// Queues a transfer after the others. On a shared connection, it goes before transfers of a
    /// higher rank, since the output may wait for one that is sent again after a refusal. Returns
    /// true if it is the next one.
    pub(crate) fn wait(&mut self, transfer: Box<Transfer>) -> bool {
        self.waiting_until = [self.waiting_until, transfer.deadline()].into_iter().flatten().min();
        let place = match self.is_shared() {
            true => self.waiting.partition_point(|other| other.scheduling.rank <= transfer.scheduling.rank),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, transfer);
        place == 0
    }

    /// Removes and returns the transfers that have to leave: all if the connection takes no more
    /// requests, and the next one if it and the ones under way would wait for each other.
    pub(crate) fn evicted(&mut self) -> VecDeque<Box<Transfer>> {
        match &self.state {
            State::Open(link) if link.is_shared() && link.is_closing() => std::mem::take(&mut self.waiting),
            State::Open(link)
                if self.waiting.front().is_some_and(|next| link.is_stuck_before(next.scheduling.rank)) =>
            {
                self.waiting.pop_front().into_iter().collect()
            }
            _ => VecDeque::new(),
        }
    }

    /// Removes and returns waiting transfers whose time has run out.
    pub(crate) fn overdue(&mut self, now: Instant) -> VecDeque<Box<Transfer>> {
        if self.waiting_until.is_none_or(|at| at > now) {
            return VecDeque::new();
        }
        let (late, waiting): (VecDeque<_>, _) =
            self.waiting.drain(..).partition(|transfer| transfer.deadline().is_some_and(|at| at <= now));
        self.waiting_until = waiting.iter().filter_map(|transfer| transfer.deadline()).min();
        self.waiting = waiting;
        late
    }

    /// Resumes reading: a sink has credit again, or may have.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.awaits = None;
    }

    /// Returns the next waiting transfer, if it can start. On a shared connection, it also waits
    /// for room in its sink, since its body would be sent at once.
    pub(crate) fn next_waiting(&mut self, waker: Waker<'_>) -> Option<Box<Transfer>> {
        let State::Open(link) = &self.state else { return None };
        let next = self.waiting.front_mut()?;
        // Transfers in progress may themselves wait for one on another connection: the sink wakes us again.
        let wake = waker.wake.filter(|_| self.awaits != Some(next.scheduling.rank));
        if link.is_shared() && link.takes(next) && !next.is_ready(wake, waker.token) {
            self.awaits = Some(next.scheduling.rank);
            return None;
        }
        let may =
            if self.is_serial && !link.is_shared() { link.depth() == 0 && link.can_start() } else { link.takes(next) };
        may.then(|| self.waiting.pop_front())?
    }

    /// Returns true if transfers share the connection, or are expected to.
    #[must_use]
    pub(crate) fn is_shared(&self) -> bool {
        match &self.state {
            State::Open(link) => link.is_shared() && !link.is_closing(),
            _ => self.hopes_to_share,
        }
    }

    /// Returns the time of the next timeout.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting_until;
        match &self.state {
            State::Open(link) => [link.look_at(), link.quiet_at(), link.resumes_at(), waiting],
            State::Connecting(connecting) => [Some(connecting.next_timeout()), waiting, None, None],
        }
        .into_iter()
        .flatten()
        .min()
    }

    /// Advances the connection as far as its sockets allow.
    ///
    /// # Errors
    /// The connection cannot be made; the lane is of no further use.
    pub(crate) fn advance(&mut self, token: usize, around: &mut Surroundings<'_>) -> Result<Advance> {
        loop {
            let State::Connecting(connecting) = &mut self.state else { return Ok(Advance::Open) };
            let inbox = around.inbox;
            let resolver = around.client.resolver();
            let progress = connecting.step(&mut ConnectContext {
                now: around.now,
                tls: around.client.tls(),
                buffer: around.buffer,
                resolve: &mut |host, port, family| {
                    let inbox = Arc::clone(inbox);
                    match resolver.lookup(host, port, family, move || inbox.send(Message::Resolved(token))) {
                        Lookup::Ready(answer) => answer.map(Some),
                        Lookup::Pending => Ok(None),
                    }
                },
                watch: &mut |fd| watch(around.registry, fd, token),
                observer: &mut self.waiting.front_mut(),
            })?;
            match progress {
                ConnectProgress::Waits => return Ok(Advance::Waits),
                ConnectProgress::Resolved => return Ok(Advance::Resolved),
                ConnectProgress::Advanced => {}
                ConnectProgress::Open(stream) => {
                    let rate = self.waiting.front().and_then(|transfer| transfer.options().limit_rate);
                    let key = Arc::clone(&self.key);
                    let link = Link::new(*stream, key, self.depth, around.client.windows(), rate);
                    self.state = State::Open(Box::new(link));
                }
            }
        }
    }
}

/// Watches a descriptor for both directions, from now until it is closed: one system call in its life.
pub(crate) fn watch(registry: &Registry, fd: BorrowedFd<'_>, token: usize) -> std::io::Result<()> {
    registry.register(&mut SourceFd(&fd.as_raw_fd()), Token(token), Interest::READABLE | Interest::WRITABLE)
}
