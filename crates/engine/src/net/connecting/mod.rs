//! The state machine that makes one connection, from the name lookup to the first request.
//!
//! ```text
//! Resolving ──▶ Racing ──▶ Staging ──▶ ConnectProgress::Open(stream)
//!   │ ▲                      │ a proxy asked for credentials and closed the connection
//!   │ └──────────────────────┘
//!   └─────▶ QUIC, and Racing after its head start ──▶ the first that is open
//! ```
//!
//! | phase | action | code |
//! |---|---|---|
//! | Resolving | looks up the origin's name or the proxy's | [`resolved_route`] |
//! | | and its keys for Encrypted Client Hello, if they are wanted | [`ech_key_sources`] |
//! | QUIC | does handshakes with the addresses, beside the other phases | `quic_tcp_race`, `net/quic` |
//! | Racing | tries the addresses (happy eyeballs) | [`super::happy_eyeballs`] |
//! | Staging | runs SOCKS, CONNECT, the PROXY protocol and TLS in turn | [`stages`] |
//! | QuicRacing | tries the addresses by QUIC handshakes, instead of Racing and Staging | `quic` |
//!
//! The machine owns its sockets and has no event loop. The event loop registers each socket and
//! calls [`Connecting::step`] after an event; the blocking driver calls [`Connecting::wait`]
//! between two steps. Sockets are non-blocking until the connection is open.

mod ech_key_sources;
#[cfg(feature = "http3")]
mod quic_tcp_race;
mod resolved_route;
mod stages;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use haul_policy::alt_svc::AlpnProtocol;
use haul_policy::dns::https_record::HttpsRecord;
use haul_policy::http3::Http3Choice;
use haul_proto::response_head::ResponseHead;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};

use self::resolved_route::ResolvedRoute;
use self::stages::{ConnectStageIo, ConnectStepOutcome, ConnectionStage};
use super::dns::{AddressFamily, AvailableAddresses};
use super::happy_eyeballs::{ConnectOptions, ConnectRace, ConnectRaceStatus};
use super::pool::ConnectionKey;
#[cfg(feature = "http3")]
use super::quic::{QuicAddressRace, QuicConnection, QuicReceiveMemory};
use super::stream::ConnectionStream;
use super::tls::{TlsContexts, TlsOptions};
use crate::request::RequestOptions;
use crate::state::http3::Http3Cache;
use crate::trace::{TraceEvent, TransferObserver};
use crate::{Error, ErrorKind, Result};

/// The maximum number of times that a connection is opened again because a proxy closed it after a
/// challenge. Without a limit, a proxy could reject each nonce as stale, and the attempts would
/// never end.
const MAX_REOPENED: u32 = 3;

/// The state machine that opens one connection, from the name lookup to the last handshake.
pub(crate) struct Connecting {
    key: Arc<ConnectionKey>,
    options: ConnectOptions,
    /// The observer to which each connection attempt is reported; `None` if nothing is reported.
    trace: Option<Arc<dyn TransferObserver>>,
    /// The index, among the host's addresses, of the address to try first.
    first_address: usize,
    deadline: Instant,
    reopened: u32,
    phase: ConnectPhase,
    /// True if the lookup of a name on the route continues, so that further addresses may follow.
    awaits_addresses: bool,
    /// True if a lookup has reported a change, so that the names on the route are to be asked for
    /// again.
    name_news: Arc<AtomicBool>,
    /// The TLS options of the connection key, completed with the server's keys for Encrypted Client
    /// Hello. `None` before these keys are known, or if no keys are wanted: the options of the
    /// connection key then apply.
    ech_tls: Option<TlsOptions>,
    /// True if the server has rejected the keys that were used for Encrypted Client Hello, and has
    /// sent its current keys instead.
    has_sent_keys: bool,
    /// The cache of working and failed HTTP/3 endpoints.
    #[cfg_attr(not(feature = "http3"), expect(dead_code, reason = "only QUIC is remembered"))]
    http3: Http3Cache,
    /// The QUIC handshakes in progress; `None` if there are none.
    #[cfg(feature = "http3")]
    quic: Option<Box<QuicAddressRace>>,
    /// True if only QUIC may be used for this connection, although its key permits TCP.
    #[cfg(feature = "http3")]
    is_quic_alone: bool,
}

/// The current phase of opening a connection.
enum ConnectPhase {
    /// The names on the route are being looked up.
    Resolving,
    /// The addresses of the first host on the route (a proxy or the origin) are being connected to.
    Racing { race: Box<ConnectRace>, stages: RemainingStages },
    /// The TCP connection is open. The remaining stages (proxies, TLS) run one after the other.
    Staging { wire: Box<ConnectStageIo>, stages: RemainingStages },
    /// Only QUIC is tried, either during its head start or because it is the only allowed protocol.
    /// TCP starts at the time `tcp_starts`, or never if `tcp_starts` is `None`.
    #[cfg(feature = "http3")]
    QuicFirst { route: Box<ResolvedRoute>, tcp_starts: Option<Instant> },
    /// TCP has failed with this error, and QUIC handshakes are still in progress.
    #[cfg(feature = "http3")]
    TcpFailed(Error),
    /// The connection is open, or making it has failed.
    Over,
}

/// The stages (exchanges with proxies and TLS peers) that must still be completed, the next one
/// first.
type RemainingStages = VecDeque<Box<dyn ConnectionStage>>;

/// The result of [`Connecting::step`]: the progress of making the connection.
pub(crate) enum ConnectProgress {
    /// The connection attempt must wait. The caller must call `step` again after an event of a
    /// socket, after a notification of the resolver, or at [`Connecting::next_timeout`].
    Waits,
    /// The addresses are known and no connection was attempted yet. The caller must call `step`
    /// again to continue.
    Resolved,
    /// One part of connecting is complete, and the next part has begun. The caller must call `step`
    /// again to continue.
    Advanced,
    /// The connection is open and can carry requests. Its socket is non-blocking.
    Open(OpenedConnection),
}

/// A connection that can carry requests: a byte stream, or QUIC.
pub(crate) enum OpenedConnection {
    /// A byte stream, for HTTP/1 or HTTP/2.
    Stream(Box<ConnectionStream>),
    /// A QUIC connection, for HTTP/3.
    #[cfg(feature = "http3")]
    Quic(Box<QuicConnection>),
}

/// A function that looks up a name. It returns `None` while no address is known.
type ResolveFunction<'a> = dyn FnMut(&str, u16, AddressFamily) -> Result<Option<AvailableAddresses>> + 'a;

/// A function that looks up the HTTPS records of an origin. It returns `None` while the lookup is
/// pending.
type HttpsRecordsFunction<'a> = dyn FnMut(&str, u16) -> Result<Option<Arc<[HttpsRecord]>>> + 'a;

/// The values and callbacks that the caller passes to [`Connecting::step`].
pub(crate) struct ConnectContext<'a> {
    /// The current time.
    pub(crate) now: Instant,
    /// The client's cache of TLS configurations, which handshakes use.
    pub(crate) tls: &'a TlsContexts,
    /// The buffer for received bytes. It may be empty if [`Connecting::needs_buffer`] returns
    /// false.
    pub(crate) buffer: &'a mut [u8],
    /// The client's receive buffers and shared receive memory, for a QUIC connection.
    #[cfg(feature = "http3")]
    pub(crate) quic: QuicReceiveMemory<'a>,
    /// The callback that looks up a name. It returns `None` while no address is known. If it
    /// returns an incomplete list, it is called again once [`Connecting::name_news`] is set.
    pub(crate) resolve: &'a mut ResolveFunction<'a>,
    /// The callback that looks up the HTTPS records of an origin. It returns `None` while the
    /// lookup is pending.
    pub(crate) https_records: &'a mut HttpsRecordsFunction<'a>,
    /// The callback that registers a new socket with the event loop.
    pub(crate) watch: &'a mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>,
    /// The observer to which the milestones of opening the connection are reported.
    pub(crate) observer: &'a mut dyn ConnectObserver,
}

/// The head of a CONNECT request, or of a proxy's response to it.
pub(crate) enum ConnectRequestOrReplyHead {
    /// The trace event for a sent CONNECT request. The event does not contain the values of secret
    /// fields, such as credentials.
    Request(TraceEvent<'static>),
    /// The head of the proxy's response, as received.
    Response(ResponseHead),
}

/// An observer that is notified of the milestones of opening a connection.
pub(crate) trait ConnectObserver {
    /// Reports that the names on the route are resolved to addresses.
    fn on_resolved(&mut self);
    /// Reports that an address accepted the connection. `local` is the local address of the socket.
    fn on_connected(&mut self, local: Option<SocketAddr>);
    /// Reports the progress of CONNECT. `status` is the status of the proxy's last response; 0
    /// before a response. `heads` are the heads sent and received since the previous report.
    fn on_connect_response(
        &mut self,
        status: u16,
        auth_scheme: Option<&'static str>,
        heads: &[ConnectRequestOrReplyHead],
    );
    /// Reports that the TLS handshake with the origin is complete.
    fn on_tls_established(&mut self);
}

impl Connecting {
    /// Makes the state machine for a connection with this key. The attempt fails if the connection
    /// is not open at `deadline`. `first_address` is the index of the address to try first.
    pub(crate) fn new(
        key: Arc<ConnectionKey>,
        options: &RequestOptions,
        first_address: usize,
        deadline: Instant,
    ) -> Self {
        Self {
            key,
            options: options.connect.clone(),
            trace: options.trace.clone(),
            first_address,
            deadline,
            reopened: 0,
            phase: ConnectPhase::Resolving,
            awaits_addresses: false,
            name_news: Arc::default(),
            ech_tls: None,
            has_sent_keys: false,
            http3: options.http3_cache.clone(),
            #[cfg(feature = "http3")]
            quic: None,
            #[cfg(feature = "http3")]
            is_quic_alone: false,
        }
    }

    /// Returns the pool key of the connection. If TCP was faster than QUIC, this key excludes
    /// HTTP/3.
    pub(crate) fn key(&self) -> &Arc<ConnectionKey> {
        &self.key
    }

    /// Advances to the next phase, or continues the current phase as far as the sockets allow.
    ///
    /// # Errors
    /// The connection cannot be made. The machine must not be used any more.
    pub(crate) fn step(&mut self, context: &mut ConnectContext<'_>) -> Result<ConnectProgress> {
        if self.deadline <= context.now {
            #[cfg(feature = "http3")]
            self.remember_late_quic();
            return Err(self.timed_out());
        }
        self.add_late_addresses(context);
        #[cfg(feature = "http3")]
        if let Some(progress) = self.step_quic(context)? {
            return Ok(progress);
        }
        let progress = match std::mem::replace(&mut self.phase, ConnectPhase::Over) {
            ConnectPhase::Resolving => return self.resolve(context),
            ConnectPhase::Racing { race, stages } => self.step_race(race, stages, context),
            ConnectPhase::Staging { wire, stages } => self.step_stages(wire, stages, context),
            #[cfg(feature = "http3")]
            ConnectPhase::QuicFirst { route, tcp_starts } => {
                return self.wait_for_head_start(route, tcp_starts, context);
            }
            #[cfg(feature = "http3")]
            ConnectPhase::TcpFailed(error) => Err(error),
            ConnectPhase::Over => Err(Error::new(ErrorKind::Setup, "the connection was already opened, or failed")),
        };
        #[cfg(feature = "http3")]
        let progress = self.after_tcp(progress);
        progress
    }

    /// Returns the time at which the caller must call [`Connecting::step`] even without an event:
    /// the start of the next attempt, or the time limit of the whole connection attempt.
    #[must_use]
    pub(crate) fn next_timeout(&self) -> Instant {
        let of_phase = match &self.phase {
            ConnectPhase::Racing { race, .. } => race.next_timeout(),
            #[cfg(feature = "http3")]
            ConnectPhase::QuicFirst { tcp_starts, .. } => *tcp_starts,
            _ => None,
        };
        #[cfg(feature = "http3")]
        let of_phase = of_phase.into_iter().chain(self.quic.as_ref().and_then(|quic| quic.next_timeout())).min();
        of_phase.map_or(self.deadline, |at| at.min(self.deadline))
    }

    /// Returns the error that reports the expired time limit. Its message names the phase in which
    /// the time expired.
    #[must_use]
    pub(crate) fn timed_out(&mut self) -> Error {
        match &mut self.phase {
            ConnectPhase::Resolving | ConnectPhase::Over => {
                Error::new(ErrorKind::Timeout, format!("resolving timed out: {}", self.key.host))
            }
            ConnectPhase::Racing { race, .. } => race.timeout_error(),
            #[cfg(feature = "http3")]
            ConnectPhase::QuicFirst { .. } => match &mut self.quic {
                Some(quic) => quic.timeout_error(),
                None => Error::new(ErrorKind::Timeout, format!("connecting timed out: {}", self.key.host)),
            },
            #[cfg(feature = "http3")]
            ConnectPhase::TcpFailed(error) => error.duplicate(),
            ConnectPhase::Staging { stages, .. } => {
                let name = stages.front().map_or_else(|| "the connection".to_owned(), |stage| stage.name());
                Error::new(ErrorKind::Timeout, format!("{name} timed out"))
            }
        }
    }

    /// Returns true if several sockets may be registered with the event loop, because several
    /// connection attempts run in parallel.
    #[must_use]
    pub(crate) fn is_racing(&self) -> bool {
        #[cfg(feature = "http3")]
        if self.quic.is_some() {
            return true;
        }
        !self.needs_buffer()
    }

    /// Returns true if the next step may receive bytes, so that [`ConnectContext::buffer`] must not
    /// be empty.
    #[must_use]
    pub(crate) fn needs_buffer(&self) -> bool {
        matches!(self.phase, ConnectPhase::Staging { .. })
    }

    /// Returns true as long as no address has answered: the host name is being resolved, or
    /// connections to its addresses are being attempted.
    #[must_use]
    pub(crate) fn is_unanswered(&self) -> bool {
        #[cfg(feature = "http3")]
        if self.quic.as_ref().is_some_and(|quic| quic.was_answered()) {
            return false;
        }
        match &self.phase {
            ConnectPhase::Resolving | ConnectPhase::Racing { .. } => true,
            ConnectPhase::Staging { .. } | ConnectPhase::Over => false,
            #[cfg(feature = "http3")]
            ConnectPhase::QuicFirst { .. } | ConnectPhase::TcpFailed(_) => true,
        }
    }

    /// Returns the addresses that the lookup has found and that were not attempted yet.
    pub(crate) fn untried_addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        let addresses: Box<dyn Iterator<Item = &SocketAddr>> = match &self.phase {
            ConnectPhase::Racing { race, .. } => Box::new(race.addresses()),
            #[cfg(feature = "http3")]
            ConnectPhase::QuicFirst { .. } => Box::new(self.quic.iter().flat_map(|quic| quic.addresses())),
            _ => Box::new(std::iter::empty()),
        };
        addresses
    }

    /// Blocks in `poll` until a socket is ready or `until` has passed.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if the call of `poll` fails.
    pub(crate) fn wait(&self, until: Instant) -> Result<()> {
        let mut fds: Vec<PollFd<'_>> = match &self.phase {
            ConnectPhase::Racing { race, .. } => {
                race.pending_fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)).collect()
            }
            ConnectPhase::Staging { wire, .. } => {
                let flags = if wire.has_output() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                vec![PollFd::from_borrowed_fd(wire.stream.as_fd(), flags)]
            }
            _ => Vec::new(),
        };
        #[cfg(feature = "http3")]
        if let Some(quic) = &self.quic {
            let flags = |sends| if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.extend(quic.pending_fds().map(|(fd, sends)| PollFd::from_borrowed_fd(fd, flags(sends))));
        }
        let wait = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut fds, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => {
                let message = format!("failed to connect to {}", self.key.host);
                Err(Error::with_source(ErrorKind::Connect, message, io::Error::from(errno)))
            }
        }
    }

    fn resolve(&mut self, context: &mut ConnectContext<'_>) -> Result<ConnectProgress> {
        // Both lookups begin at once.
        let route = ResolvedRoute::resolve(&self.key, &mut *context.resolve)?;
        let has_keys = self.find_ech_keys(context)?;
        let (Some(route), true) = (route, has_keys) else {
            self.phase = ConnectPhase::Resolving;
            return Ok(ConnectProgress::Waits);
        };
        self.awaits_addresses = !route.is_complete;
        context.observer.on_resolved();
        if self.key.http3 != Http3Choice::Off {
            return self.begin_quic(route, context);
        }
        self.begin_tcp(&route, context.now)?;
        Ok(ConnectProgress::Resolved)
    }

    /// Adds addresses that became known after connecting has begun (RFC 8305 section 3). Does
    /// nothing if the lookups on the route have ended, if they have reported no change, or if no
    /// attempt can use further addresses.
    fn add_late_addresses(&mut self, context: &mut ConnectContext<'_>) {
        if !self.awaits_addresses || matches!(self.phase, ConnectPhase::Resolving) {
            return;
        }
        let is_racing = !matches!(self.phase, ConnectPhase::Staging { .. });
        #[cfg(feature = "http3")]
        let is_racing = is_racing || self.quic.is_some();
        if !is_racing {
            self.awaits_addresses = false;
            return;
        }
        if !self.name_news.swap(false, Ordering::AcqRel) {
            return;
        }
        let route = match ResolvedRoute::resolve(&self.key, &mut *context.resolve) {
            Ok(None) => return,
            Ok(Some(route)) => Some(route),
            // The addresses that are known already are tried.
            Err(_) => None,
        };
        self.awaits_addresses = route.as_ref().is_some_and(|route| !route.is_complete);
        #[cfg(feature = "http3")]
        self.add_quic_addresses(route.as_ref(), context);
        match (&mut self.phase, route) {
            (ConnectPhase::Racing { race, .. }, Some(route)) => {
                race.replace_binding(&route.bind);
                race.add_addresses(route.addresses().to_vec(), self.awaits_addresses);
            }
            (ConnectPhase::Racing { race, .. }, None) => race.add_addresses(Vec::new(), false),
            #[cfg(feature = "http3")]
            (ConnectPhase::QuicFirst { route: known, .. }, Some(route)) => **known = route,
            _ => {}
        }
    }

    /// Returns the flag that a driver sets when a lookup reports a change.
    pub(crate) fn name_news(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.name_news)
    }

    /// Returns true if the lookup of a name on the route continues.
    pub(crate) fn awaits_addresses(&self) -> bool {
        self.awaits_addresses || matches!(self.phase, ConnectPhase::Resolving)
    }

    /// Begins to connect over TCP, or to a Unix socket.
    fn begin_tcp(&mut self, route: &ResolvedRoute, now: Instant) -> Result<()> {
        let race = route.connect_race(&self.options, self.first_address, now);
        let mut race = Box::new(race.with_trace(self.trace.clone()));
        race.add_addresses(Vec::new(), self.awaits_addresses);
        self.phase = ConnectPhase::Racing { race, stages: stages::stages_for(&self.key, self.tls(), route)? };
        Ok(())
    }

    fn step_race(
        &mut self,
        mut race: Box<ConnectRace>,
        stages: RemainingStages,
        context: &mut ConnectContext<'_>,
    ) -> Result<ConnectProgress> {
        let mut failed = None;
        let outcome = race.step(context.now, &mut |fd| failed = (context.watch)(fd).err());
        if let Some(error) = failed {
            return Err(Error::with_source(ErrorKind::Connect, "the connection cannot be watched", error));
        }
        let (socket, peer) = match outcome {
            ConnectRaceStatus::Pending => {
                self.phase = ConnectPhase::Racing { race, stages };
                return Ok(ConnectProgress::Waits);
            }
            ConnectRaceStatus::Failed(error) => return Err(error),
            ConnectRaceStatus::Done { socket, peer } => (socket, Some(peer)),
            ConnectRaceStatus::Local(socket) => (socket, None),
        };
        let local = socket.local_addr().ok();
        context.observer.on_connected(local);
        let mut stream = ConnectionStream::plain(socket, peer);
        stream.local = local;
        if stages.is_empty() {
            return self.finish_opening(stream);
        }
        self.phase = ConnectPhase::Staging { wire: Box::new(ConnectStageIo::new(stream)), stages };
        Ok(ConnectProgress::Advanced)
    }

    fn step_stages(
        &mut self,
        mut wire: Box<ConnectStageIo>,
        mut stages: RemainingStages,
        context: &mut ConnectContext<'_>,
    ) -> Result<ConnectProgress> {
        while let Some(stage) = stages.front_mut() {
            let outcome = stage.step(&mut wire, context.tls, context.buffer);
            let heads = std::mem::take(&mut wire.connect_heads);
            context.observer.on_connect_response(wire.connect_status, wire.auth_scheme, &heads);
            match outcome {
                Ok(ConnectStepOutcome::Done) => drop(stages.pop_front()),
                Ok(ConnectStepOutcome::Blocked) => {
                    self.phase = ConnectPhase::Staging { wire, stages };
                    return Ok(ConnectProgress::Waits);
                }
                Err(_) if wire.needs_new_connection && self.reopened < MAX_REOPENED => {
                    self.reopened += 1;
                    self.phase = ConnectPhase::Resolving;
                    return Ok(ConnectProgress::Advanced);
                }
                Err(error) if self.takes_sent_keys(&error) => return Ok(ConnectProgress::Advanced),
                Err(error) => return Err(error),
            }
        }
        if self.key.tls.is_some() {
            context.observer.on_tls_established();
        }
        self.finish_opening(wire.stream)
    }

    #[cfg(not(feature = "http3"))]
    fn begin_quic(&mut self, _: ResolvedRoute, _: &mut ConnectContext<'_>) -> Result<ConnectProgress> {
        Err(Error::new(ErrorKind::Setup, "this build of haul has no HTTP/3"))
    }

    /// Returns the progress for an open stream. If the connection goes to an alternative service,
    /// first checks that the service uses the protocol with which it was advertised (RFC 7838
    /// section 2.4).
    fn finish_opening(&self, stream: ConnectionStream) -> Result<ConnectProgress> {
        if self.key.alternative == Some(AlpnProtocol::H2) && stream.alpn() != Some(b"h2") {
            return Err(Error::new(ErrorKind::TlsHandshake, "the alternative service does not speak HTTP/2"));
        }
        Ok(ConnectProgress::Open(OpenedConnection::Stream(Box::new(stream))))
    }
}
