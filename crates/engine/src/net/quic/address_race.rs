//! Happy eyeballs over QUIC: begins handshakes with the addresses of a host, and keeps the first
//! connection whose handshake is complete.
//!
//! The counterpart for TCP is [`ConnectRace`](crate::net::happy_eyeballs::ConnectRace). A UDP peer
//! sends no answer before the handshake, so whole handshakes race. A handshake that fails because
//! of TLS ends the race, since all addresses belong to the same server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::Event;
use rustix::fd::{AsFd, BorrowedFd};

use super::config::{QuicConnectionLoad, QuicWindows};
use super::connection::{QuicConnection, QuicReceiveResult};
use super::datagram_receive_buffers::DatagramBufferPool;
use super::socket::QuicSocketOpenError;
use crate::net::attempt_schedule::AttemptOrder;
use crate::net::happy_eyeballs::{ConnectOptions, MAX_LATE_ADDRESS_WAIT, connect_error, timeout_error};
use crate::net::local_address::LocalBinding;
use crate::net::pool::ConnectionKey;
use crate::net::receive_memory_budget::SharedRecvMemory;
use crate::net::tls::{QuicAttemptTls, SessionKey, TlsContexts, TlsOptions, TlsVersion};
use crate::trace::{TraceEvent, TransferObserver, system_error_text};
use crate::{Error, ErrorKind, Result};

/// The maximum number of receive calls for one attempt before the other attempts get their turn.
const MAX_RECEIVES_PER_TURN: usize = 8;

/// QUIC handshakes with the addresses of one host. The first handshake that is complete ends the
/// race.
pub(crate) struct QuicAddressRace {
    host: String,
    order: AttemptOrder,
    racing: Vec<Box<QuicConnection>>,
    bind: LocalBinding,
    tls: TlsOptions,
    session_key: SessionKey,
    /// The time of the last call of [`step`](Self::step).
    stepped: Instant,
    /// True if a socket may contain datagrams that the last [`step`](Self::step) did not receive.
    /// No event announces them.
    has_more: bool,
    failure: Option<Error>,
    /// True if further addresses may follow, so that the race cannot fail yet.
    awaits_addresses: bool,
    /// The time at which the race fails although further addresses may follow; `None` while an
    /// attempt is in progress.
    gives_up_at: Option<Instant>,
    trace: Option<Arc<dyn TransferObserver>>,
}

/// The memory for receiving on new QUIC connections: datagram buffers and flow-control windows.
#[derive(Clone, Copy)]
pub(crate) struct QuicReceiveMemory<'a> {
    /// The pool of buffers into which the client's connections receive datagrams.
    pub(crate) buffers: &'a DatagramBufferPool,
    /// The receive memory from which all connections of the client reserve their flow-control
    /// windows.
    pub(crate) recv_memory: &'a SharedRecvMemory,
    /// The number of transfers that the connection is expected to carry. Several transfers share
    /// its flow-control window.
    pub(crate) load: QuicConnectionLoad,
}

/// A function that registers a new socket with the event loop.
type RegisterSocketFunction<'a> = dyn FnMut(BorrowedFd<'_>) -> io::Result<()> + 'a;

impl QuicAddressRace {
    /// Prepares a race; the first [`step`](Self::step) starts it. `addresses` are in order of
    /// preference.
    ///
    /// # Errors
    /// The options exclude TLS 1.3, without which there is no QUIC.
    pub(crate) fn new(
        key: &ConnectionKey,
        tls: Option<&TlsOptions>,
        addresses: Vec<SocketAddr>,
        options: &ConnectOptions,
        bind: LocalBinding,
        now: Instant,
    ) -> Result<Self> {
        let tls = tls.cloned().unwrap_or_default();
        if tls.max_version < TlsVersion::V1_3 {
            return Err(Error::new(ErrorKind::Setup, "HTTP/3 needs TLS 1.3, which the options exclude"));
        }
        Ok(Self {
            host: key.host.clone(),
            order: AttemptOrder::new(addresses, options.attempt_delay, now),
            racing: Vec::new(),
            bind,
            tls: TlsOptions { alpn: vec![b"h3".to_vec()], min_version: TlsVersion::V1_3, ..tls },
            session_key: key.session_key(),
            failure: None,
            awaits_addresses: false,
            gives_up_at: None,
            stepped: now,
            has_more: false,
            trace: None,
        })
    }

    /// Adds the addresses that are not in the race yet. If `awaits_more` is true, further addresses
    /// may follow, and the race does not fail before they are added.
    pub(crate) fn add_addresses(&mut self, addresses: Vec<SocketAddr>, awaits_more: bool) {
        self.order.add(addresses);
        self.awaits_addresses = awaits_more;
    }

    /// Replaces the local settings of the attempts that have not begun.
    pub(crate) fn replace_binding(&mut self, bind: &LocalBinding) {
        self.bind.clone_from(bind);
    }

    /// Makes the race report each attempt to this observer.
    #[must_use]
    pub(crate) fn with_trace(self, trace: Option<Arc<dyn TransferObserver>>) -> Self {
        Self { trace, ..self }
    }

    /// Returns the addresses that are not attempted yet, in order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.order.addresses()
    }

    /// Advances the race as far as the sockets allow. Returns the connection whose handshake is
    /// complete; `None` while no handshake is complete.
    ///
    /// # Errors
    /// No address can be used. The error is [`ErrorKind::Connect`] if the last address refused the
    /// connection, [`ErrorKind::QuicConnect`] if the last handshake failed, or an error of TLS.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        tls: &TlsContexts,
        resources: QuicReceiveMemory<'_>,
        watch: &mut RegisterSocketFunction<'_>,
    ) -> Result<Option<Box<QuicConnection>>> {
        let mut attempt_now = self.racing.is_empty();
        let mut index = 0;
        (self.stepped, self.has_more) = (now, false);
        while let Some(attempt) = self.racing.get_mut(index) {
            match drive_attempt(&self.host, attempt, now) {
                Ok(progress @ (QuicAttemptStepResult::Waits | QuicAttemptStepResult::HasMore)) => {
                    self.has_more |= progress == QuicAttemptStepResult::HasMore;
                    index += 1;
                }
                Ok(QuicAttemptStepResult::Complete) => {
                    let won = self.racing.swap_remove(index);
                    self.racing.clear();
                    self.order.clear();
                    return check_protocol(won).map(Some);
                }
                Err(error) => {
                    let lost = self.racing.remove(index);
                    self.on_attempt_failed(lost.peer(), error)?;
                    attempt_now = true;
                }
            }
        }
        while let Some(peer) = self.order.next(attempt_now, now) {
            self.trace_text(|| format!("  Trying {peer}..."));
            match self.open(peer, now, tls, resources, watch) {
                Ok(attempt) => {
                    self.racing.push(attempt);
                    self.order.on_attempt_begun(now);
                    break;
                }
                // The attempts in progress may still succeed.
                Err(error) if error.lacks_descriptors() && !self.racing.is_empty() => {
                    self.order.postpone(peer, now);
                    break;
                }
                Err(error) => {
                    if error.lacks_descriptors() {
                        self.order.clear();
                        self.awaits_addresses = false;
                    }
                    self.on_attempt_failed(peer, error)?;
                    attempt_now = true;
                }
            }
        }
        if !self.racing.is_empty() {
            self.gives_up_at = None;
            return Ok(None);
        }
        let gives_up_at = *self.gives_up_at.get_or_insert(now + MAX_LATE_ADDRESS_WAIT);
        if !self.awaits_addresses || gives_up_at <= now { Err(self.failure_error()) } else { Ok(None) }
    }

    /// Returns the time at which to call [`step`](Self::step) even if no socket is ready; `None` if
    /// no such call is needed.
    #[must_use]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let rest = self.has_more.then_some(self.stepped);
        self.racing
            .iter()
            .filter_map(|attempt| attempt.next_timeout())
            .chain(self.order.next_timeout())
            .chain(rest)
            .chain(self.gives_up_at)
            .min()
    }

    /// Returns the sockets of the attempts. Each socket becomes readable when an answer arrives.
    /// The value beside a socket is true if the caller must also wait until the socket is writable.
    pub(crate) fn pending_fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        self.racing.iter().map(|attempt| (attempt.as_fd(), attempt.has_output()))
    }

    /// Returns true if a valid packet from any address has arrived.
    #[must_use]
    pub(crate) fn was_answered(&self) -> bool {
        self.racing.iter().any(|attempt| attempt.was_answered())
    }

    /// Returns the error of a race whose time limit has passed.
    pub(crate) fn timeout_error(&self) -> Error {
        let port = self.racing.first().map(|attempt| attempt.peer()).or(self.order.addresses().next().copied());
        timeout_error(&self.host, port.map_or(0, |peer| peer.port()))
    }

    fn open(
        &self,
        peer: SocketAddr,
        now: Instant,
        contexts: &TlsContexts,
        resources: QuicReceiveMemory<'_>,
        watch: &mut RegisterSocketFunction<'_>,
    ) -> Result<Box<QuicConnection>> {
        let budget = resources.load.reserve(resources.recv_memory);
        let windows = QuicWindows::new(&budget, resources.load);
        let context = contexts.context(&self.tls)?.for_server(self.session_key.clone());
        let tls = QuicAttemptTls::new(context, &self.host, windows.initial_stream)?;
        let (memory, buffers) = ((budget, windows), resources.buffers);
        let opened = QuicConnection::open(peer, &self.bind, Arc::clone(&tls), memory, buffers, now);
        let mut attempt = opened.map_err(|error| match (error, tls.failure()) {
            (_, Some(error)) => error,
            (QuicSocketOpenError::Bind(error), _) => self.bind.bind_error(peer, error),
            (QuicSocketOpenError::Connect(error), _) => connect_error(&self.host, peer.port(), error),
        })?;
        let watched = watch(attempt.as_fd());
        watched.map_err(|error| Error::with_source(ErrorKind::Connect, "the connection cannot be watched", error))?;
        attempt.transmit(now).map_err(|error| connect_error(&self.host, peer.port(), error))?;
        Ok(Box::new(attempt))
    }

    /// Records that an attempt has failed, so that the next address is attempted.
    ///
    /// # Errors
    /// The error of the attempt, if every other address would fail in the same way.
    fn on_attempt_failed(&mut self, peer: SocketAddr, error: Error) -> Result<()> {
        self.trace_text(|| {
            let why = error.io_source().map_or_else(|| error.cause(), system_error_text);
            format!("connect to {} port {} failed: {why}", peer.ip(), peer.port())
        });
        if error.is_tls() {
            return Err(error);
        }
        self.failure = Some(error);
        Ok(())
    }

    fn failure_error(&mut self) -> Error {
        self.failure.take().unwrap_or_else(|| {
            Error::new(ErrorKind::Connect, format!("failed to connect to {}: it has no address", self.host))
        })
    }

    fn trace_text(&self, text: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.event(&TraceEvent::Info(text().into()));
        }
    }
}

/// The state of a connection attempt after one step of sending and receiving.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuicAttemptStepResult {
    /// The QUIC handshake is complete.
    Complete,
    /// The attempt waits for its socket or its timer.
    Waits,
    /// The socket may have more datagrams, and no event will announce them.
    HasMore,
}

/// Receives datagrams for a connection attempt, and sends what the handshake needs.
fn drive_attempt(host: &str, attempt: &mut QuicConnection, now: Instant) -> Result<QuicAttemptStepResult> {
    let port = attempt.peer().port();
    let refused = |error: io::Error| connect_error(host, port, error);
    attempt.handle_timeout(now);
    let mut progress = QuicAttemptStepResult::HasMore;
    for _ in 0..MAX_RECEIVES_PER_TURN {
        if attempt.receive(now).map_err(refused)? != QuicReceiveResult::More {
            progress = QuicAttemptStepResult::Waits;
            break;
        }
    }
    while let Some(event) = attempt.poll() {
        match event {
            // The last message of the handshake is sent together with the first request.
            Event::Connected => return Ok(QuicAttemptStepResult::Complete),
            Event::ConnectionLost { reason } => {
                // The alert tells the peer the reason.
                let _ = attempt.transmit(now);
                return Err(attempt.handshake_failure(&reason));
            }
            _ => {}
        }
    }
    attempt.transmit(now).map_err(refused)?;
    Ok(progress)
}

/// Checks that the server agreed to HTTP/3 (RFC 9114 section 3.1).
fn check_protocol(won: Box<QuicConnection>) -> Result<Box<QuicConnection>> {
    match won.session().and_then(|session| session.alpn()) {
        Some(b"h3") => Ok(won),
        _ => Err(Error::new(ErrorKind::QuicConnect, "the server does not speak HTTP/3")),
    }
}
