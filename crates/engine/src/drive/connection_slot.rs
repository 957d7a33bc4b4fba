//! A worker's connection slot: a connection, open or still being opened, and the transfers that
//! wait for it.
//!
//! ```text
//! Connecting ──▶ Open
//!     └──▶ failed: the waiting transfers are returned to the worker
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};
use rustix::fd::BorrowedFd;

use super::connection::{ConnectionWaker, HttpConnection};
use super::worker::ConnectAnswerState;
use super::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::Result;
use crate::buffer_pool::Buffer;
use crate::client::Client;
use crate::net::connecting::{ConnectContext, ConnectProgress, Connecting};
use crate::net::dns::{HttpsLookupStatus, LookupCaller};
use crate::net::event_registration;
use crate::net::pool::ConnectionKey;
#[cfg(feature = "http3")]
use crate::net::quic::QuicConnectionLoad;
#[cfg(feature = "http3")]
use crate::request::RequestOptions;
use crate::time_conversions;
use crate::transfer::Transfer;
use crate::transfer_facts::TransferPhase;

/// The maximum time for which transfers wait for a stream of a connection that carries no transfer.
const MAX_STREAM_WAIT: Duration = Duration::from_secs(2);

/// One connection of a worker, which is open or being opened, and the transfers that wait for it. A
/// worker is a thread with an event loop.
pub(crate) struct ConnectionSlot {
    /// The state of the slot's connection.
    pub(crate) state: ConnectionState,
    /// The key of the connection: the origin, proxy and settings that decide which requests it may
    /// carry.
    pub(crate) key: Arc<ConnectionKey>,
    /// Transfers whose requests are not sent yet. They wait until the connection is open, or until
    /// earlier transfers on it have been answered.
    pub(crate) waiting: VecDeque<Box<Transfer>>,
    /// The earliest deadline of the waiting transfers; `None` if none of them has a deadline. May
    /// also be the deadline of a transfer that has already left the queue. Storing the time avoids
    /// a search through thousands of transfers in each round of the event loop.
    waiting_deadline: Option<Instant>,
    /// True while the connection is not read, because a sink has no room.
    pub(crate) paused: bool,
    /// The rank (position in the output order) of the first waiting transfer, if that transfer
    /// waits for room in its sink; otherwise `None`. The sink wakes this slot when it has room.
    waits_for_room: Option<u64>,
    /// The time at which the waiting transfers give up this connection. `Some` only while transfers
    /// wait on an HTTP/2 or HTTP/3 connection that carries no transfer and whose peer allows no
    /// stream.
    stream_wait_ends: Option<Instant>,
    /// True if the peer has closed its side of the connection, but received bytes are still unread.
    /// The event loop reports the close only once, so the slot stores it.
    pub(crate) peer_closed: bool,
    /// The state of the slot's connection attempt: whether the server has accepted the connection
    /// and begun a response, and whether in time.
    pub(crate) attempt: ConnectAnswerState,
    /// True if the worker counts the slot among its idle connections.
    pub(crate) is_idle: bool,
    /// The time when the connection last became idle.
    pub(crate) idle_since: Instant,
    /// True if the peer has failed to answer pipelined requests. Each request is then sent only
    /// after the response to the previous one.
    pub(crate) is_serial: bool,
    /// True if the connection, once open, is expected to carry concurrent transfers (HTTP/2). Other
    /// transfers then wait for it. Only used before the connection is open.
    pub(crate) expects_sharing: bool,
    /// The connect timeout of the transfers for which the connection is opened.
    connect_timeout: Duration,
    max_depth: usize,
}

/// The state of a slot's connection: still being opened, or open.
pub(crate) enum ConnectionState {
    /// The connection is being opened: its host name is being resolved, or the handshakes are in
    /// progress.
    Connecting(Box<Connecting>),
    /// The connection is open: requests can be sent.
    Open(Box<HttpConnection>),
}

/// The progress of opening a connection, returned by [`ConnectionSlot::continue_opening`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionSlotProgress {
    /// The slot must wait for the next event or timeout.
    Waits,
    /// The addresses are known, and no connection attempt has begun. The caller may use another
    /// open connection to the same address instead. Otherwise it calls `continue_opening` again.
    Resolved,
    /// The connection is open.
    Open,
}

/// The parts of a worker that [`ConnectionSlot::continue_opening`] uses.
pub(crate) struct ConnectionSlotContext<'a> {
    /// The client whose transfers the worker runs.
    pub(crate) client: &'a Client,
    /// The registry of the event loop, in which sockets are registered.
    pub(crate) registry: &'a Registry,
    /// The worker's inbox, to which other threads send messages for this slot.
    pub(crate) inbox: &'a Arc<WorkerInbox>,
    /// The worker's read buffer, into which the slot may receive.
    pub(crate) buffer: &'a mut Buffer,
    /// The current time.
    pub(crate) now: Instant,
}

impl ConnectionSlot {
    /// Makes a slot for a new connection, with this transfer waiting for it. Opening begins with
    /// [`continue_opening`](Self::continue_opening). `depth` is the maximum number of outstanding
    /// requests on an HTTP/1.1 connection.
    #[must_use]
    pub(crate) fn new(key: Arc<ConnectionKey>, mut transfer: Box<Transfer>, depth: usize, now: Instant) -> Self {
        transfer.facts.enter_phase(TransferPhase::Resolve, now);
        let options = transfer.options();
        let connect_timeout = options.connect.timeout;
        let opens_by = time_conversions::add_saturating(now, connect_timeout);
        let connecting = Connecting::new(Arc::clone(&key), options, transfer.address_index(), opens_by);
        Self {
            waiting_deadline: transfer.deadline(),
            waiting: VecDeque::from([transfer]),
            connect_timeout,
            ..Self::with_state(ConnectionState::Connecting(Box::new(connecting)), key, depth, now)
        }
    }

    /// Makes a slot for an HTTP/3 connection that is opened in the background: no transfer waits
    /// for it. Meanwhile, an open HTTP/2 connection carries the transfers. The attempt fails if the
    /// connection is not open at the time `answers_by`.
    #[cfg(feature = "http3")]
    pub(crate) fn beside_http3(
        key: Arc<ConnectionKey>,
        options: &RequestOptions,
        depth: usize,
        answers_by: Instant,
        now: Instant,
    ) -> Self {
        let connecting = Connecting::new(Arc::clone(&key), options, 0, answers_by).with_quic_only();
        Self::with_state(ConnectionState::Connecting(Box::new(connecting)), key, depth, now)
    }

    /// Makes a slot for an open connection. `depth` is the maximum number of outstanding requests
    /// on an HTTP/1.1 connection.
    #[must_use]
    pub(crate) fn from_open_connection(connection: HttpConnection, depth: usize, now: Instant) -> Self {
        let key = Arc::clone(connection.key());
        Self::with_state(ConnectionState::Open(Box::new(connection)), key, depth, now)
    }

    fn with_state(state: ConnectionState, key: Arc<ConnectionKey>, depth: usize, now: Instant) -> Self {
        Self {
            state,
            key,
            waiting: VecDeque::new(),
            waiting_deadline: None,
            paused: false,
            waits_for_room: None,
            stream_wait_ends: None,
            peer_closed: false,
            attempt: ConnectAnswerState::Settled,
            is_idle: false,
            idle_since: now,
            is_serial: false,
            expects_sharing: false,
            connect_timeout: Duration::ZERO,
            max_depth: depth,
        }
    }

    /// Returns true if the host name is being resolved, or connection attempts to several addresses
    /// compete. Several sockets may be registered under the slot's token during that time.
    #[must_use]
    pub(crate) fn is_racing(&self) -> bool {
        matches!(&self.state, ConnectionState::Connecting(connecting) if connecting.is_racing())
    }

    /// Returns true if nothing has answered the connection attempt: the name is not resolved, or no
    /// address has accepted the connection.
    #[must_use]
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(&self.state, ConnectionState::Connecting(connecting) if connecting.is_unanswered())
    }

    /// Returns true if the connection is open and has no transfer, and no transfer waits for it.
    #[must_use]
    pub(crate) fn is_unused(&self) -> bool {
        matches!(&self.state, ConnectionState::Open(connection) if connection.is_idle()) && self.waiting.is_empty()
    }

    /// Returns the number of transfers on the slot, in progress or waiting.
    #[must_use]
    pub(crate) fn outstanding_count(&self) -> usize {
        match &self.state {
            ConnectionState::Open(connection) => connection.outstanding_count() + self.waiting.len(),
            _ => self.waiting.len(),
        }
    }

    /// Returns true if the transfer may be queued on the slot. The transfer then starts at once, or
    /// as soon as the slot's current transfers allow it.
    #[must_use]
    pub(crate) fn accepts(&self, transfer: &Transfer) -> bool {
        if !matches!(self.state, ConnectionState::Open(_)) && transfer.options().connect.timeout != self.connect_timeout
        {
            return false;
        }
        let last = match &self.state {
            ConnectionState::Open(connection) if connection.is_closing() => return false,
            ConnectionState::Open(connection) if connection.is_shared() && transfer.wants_own_connection() => {
                // Another part's request may wait behind the first, so that no round trip is lost.
                let is_of_parts = connection.front_transfer().is_none_or(Transfer::wants_own_connection);
                return is_of_parts && self.outstanding_count() < self.max_depth;
            }
            // Transfers without room wait here, since another connection would not help. The
            // exception is a transfer that all the others wait for: they would never make room for
            // it.
            ConnectionState::Open(connection) if connection.is_shared() => {
                return !connection.is_stuck_before(transfer.scheduling.rank);
            }
            ConnectionState::Open(connection)
                if !self.is_serial && self.waiting.is_empty() && !connection.is_pipeline_limited() =>
            {
                return connection.accepts(transfer);
            }
            _ if self.expects_sharing => return true,
            ConnectionState::Open(connection) => self.waiting.back().map(|last| &**last).or(connection.last_transfer()),
            _ => self.waiting.back().map(|last| &**last),
        };
        self.outstanding_count() < self.max_depth && last.is_none_or(|last| transfer.may_pipeline_after(last))
    }

    /// Queues a transfer. On a shared connection (HTTP/2 or HTTP/3), waiting transfers are ordered
    /// by their rank (position in the output order): a transfer that is sent again goes before
    /// transfers whose output comes later. Returns true if the transfer is first in the queue.
    pub(crate) fn enqueue(&mut self, transfer: Box<Transfer>, now: Instant) -> bool {
        self.waiting_deadline = [self.waiting_deadline, transfer.deadline()].into_iter().flatten().min();
        let place = match self.is_shared() {
            true => self.waiting.partition_point(|other| other.scheduling.rank <= transfer.scheduling.rank),
            false => self.waiting.len(),
        };
        self.waiting.insert(place, transfer);
        self.update_stream_wait(now);
        place == 0
    }

    /// Removes and returns the waiting transfers that need another connection. On a shared
    /// connection (HTTP/2 or HTTP/3) that accepts no more requests, these are all waiting
    /// transfers. On other connections, this is at most the first waiting transfer, if it would
    /// [wait here for ever](HttpConnection::is_stuck_before).
    pub(crate) fn take_unservable(&mut self, now: Instant) -> VecDeque<Box<Transfer>> {
        self.update_stream_wait(now);
        match &self.state {
            ConnectionState::Open(connection) if connection.is_shared() && connection.is_closing() => {
                std::mem::take(&mut self.waiting)
            }
            ConnectionState::Open(connection)
                if self.waiting.front().is_some_and(|next| connection.is_stuck_before(next.scheduling.rank)) =>
            {
                self.waiting.pop_front().into_iter().collect()
            }
            _ => VecDeque::new(),
        }
    }

    /// Starts the limit [`MAX_STREAM_WAIT`] when transfers begin to wait for a stream of a
    /// connection that carries no transfer. Removes the limit when this wait is over. A server may
    /// forbid all streams for a short time (SETTINGS_MAX_CONCURRENT_STREAMS 0, RFC 9113 section
    /// 6.5.2). The client cannot know whether the server will allow a stream again.
    fn update_stream_wait(&mut self, now: Instant) {
        let lacks_stream = match &self.state {
            ConnectionState::Open(connection) => {
                connection.is_shared()
                    && !connection.is_closing()
                    && connection.outstanding_count() == 0
                    && !connection.can_start()
            }
            ConnectionState::Connecting(_) => false,
        };
        if !lacks_stream || self.waiting.is_empty() {
            self.stream_wait_ends = None;
        } else if self.stream_wait_ends.is_none() {
            self.stream_wait_ends = Some(now + MAX_STREAM_WAIT);
        }
    }

    /// Removes and returns the waiting transfers if the time for which they wait for a stream has
    /// passed.
    pub(crate) fn take_without_stream(&mut self, now: Instant) -> VecDeque<Box<Transfer>> {
        // The server may have allowed a stream since, or no transfer may wait any more.
        self.update_stream_wait(now);
        match self.stream_wait_ends {
            Some(at) if at <= now => std::mem::take(&mut self.waiting),
            _ => VecDeque::new(),
        }
    }

    /// Removes and returns the waiting transfers whose deadline has passed.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> VecDeque<Box<Transfer>> {
        if self.waiting_deadline.is_none_or(|at| at > now) {
            return VecDeque::new();
        }
        let (late, waiting): (VecDeque<_>, _) =
            self.waiting.drain(..).partition(|transfer| transfer.deadline().is_some_and(|at| at <= now));
        self.waiting_deadline = waiting.iter().filter_map(|transfer| transfer.deadline()).min();
        self.waiting = waiting;
        late
    }

    /// Allows reading from the connection again, because a sink may have room.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.waits_for_room = None;
    }

    /// Removes and returns the first waiting transfer if its request can be sent now. Returns
    /// `None` otherwise. On a shared connection (HTTP/2 or HTTP/3), the transfer also waits until
    /// its sink has room, since its body may arrive at any time.
    pub(crate) fn next_waiting(&mut self, waker: ConnectionWaker<'_>) -> Option<Box<Transfer>> {
        let ConnectionState::Open(connection) = &self.state else { return None };
        let next = self.waiting.front_mut()?;
        // Transfers in progress may themselves wait for one on another connection: the sink wakes
        // us again.
        let wake = waker.wake.filter(|_| self.waits_for_room != Some(next.scheduling.rank));
        if connection.is_shared() && connection.accepts(next) && !next.is_ready(wake, waker.token) {
            self.waits_for_room = Some(next.scheduling.rank);
            return None;
        }
        let may = if self.is_serial && !connection.is_shared() {
            connection.outstanding_count() == 0 && connection.can_start()
        } else {
            connection.accepts(next)
        };
        may.then(|| self.waiting.pop_front())?
    }

    /// Returns true if the connection carries concurrent transfers (HTTP/2 or HTTP/3), or is
    /// expected to do so once it is open.
    #[must_use]
    pub(crate) fn is_shared(&self) -> bool {
        match &self.state {
            ConnectionState::Open(connection) => connection.is_shared() && !connection.is_closing(),
            _ => self.expects_sharing,
        }
    }

    /// Returns the time of the next timeout of the connection or of a waiting transfer; `None` if
    /// there is none.
    #[must_use]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let own = match &self.state {
            ConnectionState::Open(connection) => {
                let read = time_conversions::earliest(connection.low_water_timeout(), connection.resumes_at());
                time_conversions::earliest(connection.next_timeout(), read)
            }
            ConnectionState::Connecting(connecting) => Some(connecting.next_timeout()),
        };
        [own, self.waiting_deadline, self.stream_wait_ends].into_iter().flatten().min()
    }

    /// Returns whether a QUIC connection of this slot is expected to carry one transfer, many
    /// transfers, or parts of a split download. Its flow-control windows are chosen by this.
    #[cfg(feature = "http3")]
    fn expected_load(&self) -> QuicConnectionLoad {
        match self.waiting.front() {
            // A part that may have to pause must not fill the window of its connection.
            Some(first) if first.wants_own_connection() && !first.has_rate_limit() => QuicConnectionLoad::PartsOfBody,
            Some(_) if self.waiting.len() == 1 => QuicConnectionLoad::One,
            // If none wait, the connection is made for many ([`ConnectionSlot::beside_http3`]).
            Some(_) | None => QuicConnectionLoad::Many,
        }
    }

    /// Continues to open the connection, as far as possible without waiting.
    ///
    /// # Errors
    /// The connection cannot be made. The caller must drop the slot.
    pub(crate) fn continue_opening(
        &mut self,
        token: usize,
        around: &mut ConnectionSlotContext<'_>,
    ) -> Result<ConnectionSlotProgress> {
        #[cfg(feature = "http3")]
        let load = self.expected_load();
        loop {
            let ConnectionState::Connecting(connecting) = &mut self.state else {
                return Ok(ConnectionSlotProgress::Open);
            };
            let inbox = around.inbox;
            let resolver = around.client.resolver();
            let name_news = connecting.name_news();
            let progress = connecting.step(&mut ConnectContext {
                now: around.now,
                tls: around.client.tls(),
                buffer: around.buffer,
                #[cfg(feature = "http3")]
                quic: around.client.quic_resources(load),
                resolve: &mut |host, port, family| {
                    let (inbox, news) = (Arc::clone(inbox), Arc::clone(&name_news));
                    resolver.lookup_for_connection((host, port), family, LookupCaller::EventLoop, move || {
                        news.store(true, Ordering::Release);
                        inbox.send(WorkerMessage::Resolved(token));
                    })
                },
                https_records: &mut |host, port| {
                    let inbox = Arc::clone(inbox);
                    match resolver.https_records(host, port, move || inbox.send(WorkerMessage::Resolved(token))) {
                        HttpsLookupStatus::Ready { records, .. } => Ok(Some(records)),
                        HttpsLookupStatus::Pending => Ok(None),
                    }
                },
                watch: &mut |fd| watch(around.registry, fd, token),
                observer: &mut self.waiting.front_mut(),
            })?;
            match progress {
                ConnectProgress::Waits => return Ok(ConnectionSlotProgress::Waits),
                ConnectProgress::Resolved => return Ok(ConnectionSlotProgress::Resolved),
                ConnectProgress::Advanced => {}
                ConnectProgress::Open(opened) => {
                    let rate = self.waiting.front().and_then(|transfer| transfer.options().lowest_rate());
                    // TCP may have won against QUIC: `ConnectionSlotTable::update_key` does the
                    // rest.
                    let key = Arc::clone(connecting.key());
                    let connection =
                        HttpConnection::new(opened, key, self.max_depth, around.client.recv_memory(), rate);
                    self.state = ConnectionState::Open(Box::new(connection));
                }
            }
        }
    }
}

/// Registers a descriptor with the event loop, for both reading and writing, until the descriptor
/// is closed. No later call is needed when a connection changes from sending to receiving. Events
/// carry the number `token`.
pub(crate) fn watch(registry: &Registry, fd: BorrowedFd<'_>, token: usize) -> std::io::Result<()> {
    event_registration::register(registry, fd, Token(token), Interest::READABLE | Interest::WRITABLE)
}
