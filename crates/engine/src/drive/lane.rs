//! A worker's connection from its name to its first request: resolve, connect, greet proxies, secure, open.
//!
//! ```text
//! Resolving ──▶ Connecting ──▶ [Securing] ──▶ Open
//!     └─────────────┴───────────────┴──▶ failed: the transfers that waited for it are given back
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::inbox::{Inbox, Message};
use super::link::{Link, Waker};
use crate::buffer::Buffer;
use crate::client::Client;
use crate::clock;
use crate::net::connect::{Connect, Connector};
use crate::net::dns::Lookup;
use crate::net::pool::Key;
use crate::net::proxy::{Opening, Route};
use crate::net::stream::Stream;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result};

/// A connection, or one in the making.
pub struct Lane {
    /// How far it is.
    pub state: State,
    /// What it may be used for.
    pub key: Arc<Key>,
    /// Transfers that will be started when it is open, or when those before them are answered.
    pub waiting: VecDeque<Box<Transfer>>,
    /// No later than the first of them has to be over. (Looking through them all at each turn is dear when there are
    /// thousands.)
    waiting_until: Option<Instant>,
    /// Its sink has no credit: it is not read.
    pub paused: bool,
    /// The rank of the transfer whose sink wakes this lane when it may be started.
    awaits: Option<u64>,
    /// The peer has ended its side, and that is still to be read: the event that said so does not come again.
    pub ended: bool,
    /// When it was last found idle; to tell a lane from an earlier one of the same token.
    pub idle_since: u64,
    /// The time then.
    pub rested: Instant,
    /// The peer has shown that it cannot be sent a request before it has answered the last one.
    pub is_serial: bool,
    /// It is not open yet, and will most likely be shared: other transfers wait for it.
    pub hopes_to_share: bool,
    /// How often it was begun anew because a proxy had asked who we are and left.
    reopened: u32,
    /// By when it must be open.
    opens_by: Instant,
    /// The time limit of the transfers that it is opened for.
    opens_within: Duration,
    depth: usize,
}

/// How far a lane is.
pub enum State {
    /// The names are being resolved.
    Resolving,
    /// The addresses are being tried; then this is to be said.
    Connecting(Box<Connector>, Box<Opening>),
    /// The exchange with proxies and the TLS handshake are in progress.
    Securing(Box<Opening>),
    /// Requests can be sent.
    Open(Box<Link>),
}

/// How far [`Lane::advance`] got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// There is something to wait for.
    Waits,
    /// Its addresses are known, and nothing is connected to yet: it may not have to be. To be called again if it has.
    Resolved,
    /// It is open.
    Open,
}

/// The result of a step in a state.
enum Step {
    /// It is another one now.
    On(State),
    /// It has to be waited for.
    Waits(State),
}

/// What a lane needs from its worker to proceed.
pub struct Surroundings<'a> {
    /// The client.
    pub client: &'a Client,
    /// Where descriptors are watched.
    pub registry: &'a Registry,
    /// The worker's inbox.
    pub inbox: &'a Arc<Inbox>,
    /// The worker's read buffer.
    pub buffer: &'a mut Buffer,
    /// The time.
    pub now: Instant,
}

impl Lane {
    /// A lane that will be opened for this transfer.
    #[must_use]
    pub fn new(key: Arc<Key>, transfer: Box<Transfer>, depth: usize, now: Instant) -> Self {
        let opens_within = transfer.options().connect.timeout;
        Self {
            waiting_until: transfer.deadline(),
            waiting: VecDeque::from([transfer]),
            opens_by: clock::after(now, opens_within),
            opens_within,
            ..Self::of(State::Resolving, key, depth, now)
        }
    }

    /// A lane that is open already.
    #[must_use]
    pub fn open(link: Link, depth: usize, now: Instant) -> Self {
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
            reopened: 0,
            opens_by: now,
            opens_within: Duration::ZERO,
            depth,
        }
    }

    /// How many transfers it has.
    #[must_use]
    pub fn depth(&self) -> usize {
        match &self.state {
            State::Open(link) => link.depth() + self.waiting.len(),
            _ => self.waiting.len(),
        }
    }

    /// Whether it accepts a transfer, to be started at once or after those that it has.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        if !matches!(self.state, State::Open(_)) && transfer.options().connect.timeout != self.opens_within {
            return false;
        }
        let last = match &self.state {
            State::Open(link) if link.is_closing() => return false,
            // Transfers without room wait here: another connection would not help. Except one that all the others wait for: they would never make
            // room for it.
            State::Open(link) if link.is_shared() => return !link.is_stuck_before(transfer.rank),
            State::Open(link) if !self.is_serial && self.waiting.is_empty() && !link.is_held_back() => {
                return link.takes(transfer);
            }
            _ if self.hopes_to_share => return true,
            State::Open(link) => self.waiting.back().map(|last| &**last).or(link.last()),
            _ => self.waiting.back().map(|last| &**last),
        };
        self.depth() < self.depth && last.is_none_or(|last| transfer.may_follow(last))
    }

    /// Queues a transfer after the others; on a shared connection before those of a higher rank, since the output may wait for one that is sent again
    /// after a refusal. Returns whether it is the next one.
    pub fn wait(&mut self, transfer: Box<Transfer>) -> bool {
        self.waiting_until = [self.waiting_until, transfer.deadline()].into_iter().flatten().min();
        let place = match self.is_shared() {
            true => self.waiting.partition_point(|other| other.rank <= transfer.rank),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, transfer);
        place == 0
    }

    /// The transfers that have to leave: all where no more requests are taken, and the next one where those under way
    /// wait for it and it for them.
    pub fn evicted(&mut self) -> VecDeque<Box<Transfer>> {
        match &self.state {
            State::Open(link) if link.is_shared() && link.is_closing() => std::mem::take(&mut self.waiting),
            State::Open(link) if self.waiting.front().is_some_and(|next| link.is_stuck_before(next.rank)) => {
                self.waiting.pop_front().into_iter().collect()
            }
            _ => VecDeque::new(),
        }
    }

    /// Waiting transfers whose time has run out.
    pub fn overdue(&mut self, now: Instant) -> VecDeque<Box<Transfer>> {
        if self.waiting_until.is_none_or(|at| at > now) {
            return VecDeque::new();
        }
        let (late, waiting): (VecDeque<_>, _) =
            self.waiting.drain(..).partition(|transfer| transfer.deadline().is_some_and(|at| at <= now));
        self.waiting_until = waiting.iter().filter_map(|transfer| transfer.deadline()).min();
        self.waiting = waiting;
        late
    }

    /// A sink has credit again, or it is worth asking.
    pub fn resume(&mut self) {
        self.paused = false;
        self.awaits = None;
    }

    /// The next waiting transfer, if it can be started. On a shared connection it also waits for room in its sink, since its body would be sent at
    /// once.
    pub fn next_waiting(&mut self, waker: Waker<'_>) -> Option<Box<Transfer>> {
        let State::Open(link) = &self.state else { return None };
        let next = self.waiting.front_mut()?;
        // Transfers in progress may themselves wait for one on another connection: the sink wakes us again.
        let wake = waker.wake.filter(|_| self.awaits != Some(next.rank));
        if link.is_shared() && link.takes(next) && !next.is_ready(wake, waker.token) {
            self.awaits = Some(next.rank);
            return None;
        }
        let may =
            if self.is_serial && !link.is_shared() { link.depth() == 0 && link.can_start() } else { link.takes(next) };
        may.then(|| self.waiting.pop_front())?
    }

    /// Whether transfers share it, or will.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match &self.state {
            State::Open(link) => link.is_shared() && !link.is_closing(),
            _ => self.hopes_to_share,
        }
    }

    /// When it must be looked at though nothing happened.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let (waiting, opens) = (self.waiting_until, Some(self.opens_by));
        match &self.state {
            State::Open(link) => [link.look_at(), link.quiet_at(), link.resumes_at(), waiting],
            State::Connecting(connector, _) => [opens, connector.next_timeout(), waiting, None],
            _ => [opens, waiting, None, None],
        }
        .into_iter()
        .flatten()
        .min()
    }

    /// Gets on with opening.
    ///
    /// # Errors
    /// When it cannot be opened; the lane is of no further use.
    pub fn advance(&mut self, token: usize, around: &mut Surroundings<'_>) -> Result<Advance> {
        loop {
            if !matches!(self.state, State::Open(_)) && self.opens_by <= around.now {
                return Err(Error::new(ErrorKind::Timeout, "the connection could not be made in time"));
            }
            let step = match std::mem::replace(&mut self.state, State::Resolving) {
                State::Resolving => match self.resolve(token, around)? {
                    Some((connector, opening)) => {
                        self.state = State::Connecting(Box::new(connector), Box::new(opening));
                        return Ok(Advance::Resolved);
                    }
                    None => return Ok(Advance::Waits),
                },
                State::Connecting(connector, opening) => self.connect(connector, opening, token, around)?,
                State::Securing(opening) => self.secure(opening, around)?,
                State::Open(link) => {
                    self.state = State::Open(link);
                    return Ok(Advance::Open);
                }
            };
            match step {
                Step::On(state) => self.state = state,
                Step::Waits(state) => {
                    self.state = state;
                    return Ok(Advance::Waits);
                }
            }
        }
    }

    fn connect(
        &mut self,
        mut connector: Box<Connector>,
        mut opening: Box<Opening>,
        token: usize,
        around: &Surroundings<'_>,
    ) -> Result<Step> {
        let now = around.now;
        let mut failed = None;
        let outcome = connector.step(now, &mut |fd| failed = watch(around.registry, fd, token).err());
        if let Some(error) = failed {
            return Err(Error::with_source(ErrorKind::Connect, "the connection cannot be watched", error));
        }
        let (socket, peer) = match outcome {
            Connect::Pending => return Ok(Step::Waits(State::Connecting(connector, opening))),
            Connect::Failed(error) => return Err(error),
            Connect::Done { socket, peer } => (socket, Some(peer)),
            Connect::Local(socket) => (socket, None),
        };
        let local = socket.local_addr().ok();
        if let Some(transfer) = self.waiting.front_mut() {
            transfer.facts.connects += 1;
            transfer.facts.connected = now.saturating_duration_since(transfer.facts.started);
            transfer.facts.local = local;
        }
        let mut stream = Stream::plain(socket, peer);
        stream.local = local;
        opening.connected(stream);
        Ok(Step::On(State::Securing(opening)))
    }

    fn secure(&mut self, mut opening: Box<Opening>, around: &mut Surroundings<'_>) -> Result<Step> {
        let had_to_speak = !opening.is_done();
        let outcome = opening.step(around.client.tls(), around.buffer, None);
        if let Some(transfer) = self.waiting.front_mut() {
            transfer.facts.connect_status = opening.connect_status();
            opening.take_connect_heads().iter().for_each(|head| transfer.on_connect_answer(head));
        }
        if outcome.is_err() && opening.wants_another(self.reopened) {
            self.reopened += 1;
            return Ok(Step::On(State::Resolving));
        }
        if !outcome? {
            return Ok(Step::Waits(State::Securing(opening)));
        }
        if let Some(transfer) = self.waiting.front_mut()
            && had_to_speak
            && self.key.tls.is_some()
        {
            transfer.facts.secured = Instant::now().saturating_duration_since(transfer.facts.started);
        }
        let rate = self.waiting.front().and_then(|transfer| transfer.options().limit_rate);
        let (stream, key) = (opening.into_stream()?, Arc::clone(&self.key));
        let link = Link::new(stream, key, self.depth, around.client.windows(), rate);
        Ok(Step::On(State::Open(Box::new(link))))
    }

    fn resolve(&mut self, token: usize, around: &Surroundings<'_>) -> Result<Option<(Connector, Opening)>> {
        let key = &self.key;
        let Some(transfer) = self.waiting.front_mut() else { return Ok(None) };
        let ask = |host: &str, port, family| {
            let inbox = Arc::clone(around.inbox);
            let notify = move || inbox.send(Message::Resolved(token));
            match around.client.resolver().lookup(host, port, family, notify) {
                Lookup::Ready(answer) => answer.map(Some),
                Lookup::Pending => Ok(None),
            }
        };
        let Some(route) = Route::find(key, ask)? else { return Ok(None) };
        transfer.facts.resolved = around.now.saturating_duration_since(transfer.facts.started);
        let opening = Opening::new(key, &route)?;
        let connector = route.connector(&transfer.options().connect, transfer.spread, around.now);
        Ok(Some((connector.watched(transfer.options().trace.clone()), opening)))
    }
}

/// Watches a descriptor for both directions, from now until it is closed: one system call in its life.
pub fn watch(registry: &Registry, fd: BorrowedFd<'_>, token: usize) -> std::io::Result<()> {
    registry.register(&mut SourceFd(&fd.as_raw_fd()), Token(token), Interest::READABLE | Interest::WRITABLE)
}
