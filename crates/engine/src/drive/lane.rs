//! A worker's connection from its name to its first request: resolve, connect, secure, open.
//!
//! ```text
//! Resolving ──▶ Connecting ──▶ [Securing] ──▶ Open
//!     └─────────────┴───────────────┴──▶ failed: the transfers that waited for it are given back
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::inbox::{Inbox, Message};
use super::link::Link;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::clock;
use crate::net::connect::{Connect, Connector, with_port};
use crate::net::dns::Lookup;
use crate::net::pool::Key;
use crate::net::stream::Stream;
use crate::net::tls::Tls;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result};

/// A connection, or one in the making.
pub struct Lane {
    /// How far it is.
    pub state: State,
    /// What it may be used for.
    pub key: Arc<Key>,
    /// Transfers that will be started when it is open, or when those before them are answered.
    pub waiting: VecDeque<Transfer>,
    /// Its sink has no credit: it is not read.
    pub paused: bool,
    /// The peer has ended its side, and that is still to be read: the event that said so does not come again.
    pub ended: bool,
    /// When it was last found idle; to tell a lane from an earlier one of the same token.
    pub idle_since: u64,
    /// The peer has shown that it cannot be sent a request before it has answered the last one.
    pub is_serial: bool,
    /// It is not open yet, and will most likely be shared: other transfers wait for it.
    pub hopes_to_share: bool,
    /// By when it must be open.
    opens_by: Instant,
    depth: usize,
}

/// How far a lane is.
pub enum State {
    /// The name is being resolved.
    Resolving,
    /// The addresses are being tried.
    Connecting(Connector),
    /// The TLS handshake is under way.
    Securing(Box<Stream>),
    /// Requests can be sent.
    Open(Box<Link>),
}

/// What a lane needs of its worker to get on.
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
    pub fn new(key: Arc<Key>, transfer: Transfer, depth: usize, now: Instant) -> Self {
        let timeout = key.connect.timeout;
        Self {
            state: State::Resolving,
            key,
            waiting: VecDeque::from([transfer]),
            paused: false,
            ended: false,
            idle_since: 0,
            is_serial: false,
            hopes_to_share: false,
            opens_by: clock::after(now, timeout),
            depth,
        }
    }

    /// A lane that is open already.
    #[must_use]
    pub fn open(link: Link, depth: usize, now: Instant) -> Self {
        Self {
            key: Arc::clone(link.key()),
            state: State::Open(Box::new(link)),
            waiting: VecDeque::new(),
            paused: false,
            ended: false,
            idle_since: 0,
            is_serial: false,
            hopes_to_share: false,
            opens_by: now,
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

    /// Whether a transfer can be given to it, to be started at once or behind those that it has.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        let last = match &self.state {
            State::Open(link) if link.is_closing() => return false,
            // Those that find no room wait for it here: another connection would bring nothing.
            State::Open(link) if link.is_shared() => return true,
            State::Open(link) if !self.is_serial && self.waiting.is_empty() => return link.takes(transfer),
            _ if self.hopes_to_share => return true,
            State::Open(link) => self.waiting.back().or(link.last()),
            _ => self.waiting.back(),
        };
        self.depth() < self.depth && last.is_none_or(|last| transfer.may_follow(last))
    }

    /// The next transfer that waits, if it can be started.
    pub fn next_waiting(&mut self) -> Option<Transfer> {
        let State::Open(link) = &self.state else { return None };
        let next = self.waiting.front()?;
        let may =
            if self.is_serial && !link.is_shared() { link.depth() == 0 && link.can_start() } else { link.takes(next) };
        may.then(|| self.waiting.pop_front())?
    }

    /// Whether transfers run side by side on it, or will.
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
        let limit = self.waiting.iter().filter_map(Transfer::deadline).chain([self.opens_by]).min();
        match &self.state {
            State::Open(link) => [link.look_at(), link.quiet_at(), link.resumes_at()].into_iter().flatten().min(),
            State::Connecting(connector) => [limit, connector.next_timeout()].into_iter().flatten().min(),
            _ => limit,
        }
    }

    /// Gets on with opening. `true` when it is open.
    ///
    /// # Errors
    /// When it cannot be opened; the lane is of no further use.
    pub fn advance(&mut self, token: usize, around: &mut Surroundings<'_>) -> Result<bool> {
        loop {
            let now = around.now;
            if !matches!(self.state, State::Open(_)) && self.deadline_of_opening() <= now {
                return Err(Error::new(ErrorKind::Timeout, "the connection could not be made in time"));
            }
            match &mut self.state {
                State::Resolving => match self.resolve(token, around)? {
                    Some(connector) => self.state = State::Connecting(connector),
                    None => return Ok(false),
                },
                State::Connecting(connector) => {
                    let mut failed = None;
                    let outcome = connector.step(now, &mut |fd| {
                        failed = watch(around.registry, fd, token).err();
                    });
                    if let Some(error) = failed {
                        return Err(Error::with_source(ErrorKind::Connect, "the connection cannot be watched", error));
                    }
                    match outcome {
                        Connect::Pending => return Ok(false),
                        Connect::Failed(error) => return Err(error),
                        Connect::Done { socket, peer } => {
                            if let Some(transfer) = self.waiting.front_mut() {
                                transfer.facts.connects += 1;
                                transfer.facts.connected = now.saturating_duration_since(transfer.facts.started);
                                transfer.facts.local = socket.local_addr().ok();
                            }
                            let stream = Stream::plain(socket, peer);
                            self.state = match &self.key.tls {
                                Some(tls) => {
                                    let context = around.client.tls().context(tls)?.at(&self.key.place());
                                    let tls = Tls::new(&context, &self.key.host)?;
                                    State::Securing(Box::new(stream.secure(tls)))
                                }
                                None => State::Open(Box::new(Link::new(stream, Arc::clone(&self.key), self.depth))),
                            };
                        }
                    }
                }
                State::Securing(stream) => {
                    if !stream.handshake(around.buffer, None)? {
                        return Ok(false);
                    }
                    if let Some(transfer) = self.waiting.front_mut() {
                        transfer.facts.secured = Instant::now().saturating_duration_since(transfer.facts.started);
                    }
                    let State::Securing(stream) = std::mem::replace(&mut self.state, State::Resolving) else {
                        unreachable!("the state was just looked at");
                    };
                    self.state = State::Open(Box::new(Link::new(*stream, Arc::clone(&self.key), self.depth)));
                }
                State::Open(_) => return Ok(true),
            }
        }
    }

    fn deadline_of_opening(&self) -> Instant {
        self.waiting.iter().filter_map(Transfer::deadline).chain([self.opens_by]).min().unwrap_or(self.opens_by)
    }

    fn resolve(&mut self, token: usize, around: &Surroundings<'_>) -> Result<Option<Connector>> {
        let key = &self.key;
        let Some(transfer) = self.waiting.front_mut() else { return Ok(None) };
        let addresses = match key.address() {
            Some(address) => Arc::from([address]),
            None => {
                let inbox = Arc::clone(around.inbox);
                let notify = move || inbox.send(Message::Resolved(token));
                match around.client.resolver().lookup(&key.dial.0, key.dial.1, key.family, notify) {
                    Lookup::Ready(answer) => answer?,
                    Lookup::Pending => return Ok(None),
                }
            }
        };
        transfer.facts.resolved = around.now.saturating_duration_since(transfer.facts.started);
        let mut addresses = with_port(&addresses, key.dial.1);
        let others = transfer.spread % addresses.len().max(1);
        addresses.rotate_left(others);
        Ok(Some(Connector::new(&key.dial.0, addresses, &key.connect, around.now)))
    }
}

/// Watches a descriptor for both directions, from now until it is closed: one system call in its life.
pub fn watch(registry: &Registry, fd: BorrowedFd<'_>, token: usize) -> std::io::Result<()> {
    registry.register(&mut SourceFd(&fd.as_raw_fd()), Token(token), Interest::READABLE | Interest::WRITABLE)
}
