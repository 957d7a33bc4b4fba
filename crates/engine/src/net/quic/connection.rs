//! A QUIC connection with its socket.
//!
//! A driver calls [`QuicConnection::receive`] when the socket is readable,
//! [`QuicConnection::handle_timeout`] at [`QuicConnection::next_timeout`], and
//! [`QuicConnection::transmit`] after both and after each use of a stream. Events and streams are
//! quinn-proto's ([`QuicConnection::machine`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_proto::h3::H3ErrorCode;
use quinn_proto::{
    ClientConfig, Connection, ConnectionClose, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent,
    Endpoint, Event, Transmit, VarInt,
};
use rustix::fd::{AsFd, BorrowedFd};

use super::config::{self, IDLE_TIMEOUT, QuicWindows};
use super::datagram_receive_buffers::DatagramBufferPool;
use super::socket::{QuicSocket, QuicSocketOpenError};
use crate::net::local_address::LocalBinding;
use crate::net::receive_memory_budget::ConnectionReceiveBudget;
use crate::net::stream::next_connection_number;
use crate::net::tls::{NegotiatedSession, QuicAttemptTls, QuicHandshakeData};
use crate::stats::WireTraffic;
use crate::system::socket_error_codes;
use crate::{Error, ErrorKind, fork};

/// The HTTP/3 error code for closing a connection without an error (RFC 9114 section 8.1).
const H3_NO_ERROR: VarInt = VarInt::from_u32(0x100);
/// The maximum number of datagrams in one send. Larger bursts would overflow short queues on the
/// path.
const MAX_SEGMENTS: usize = 32;
/// The number of consecutive ICMP errors (port unreachable) after which an established connection
/// is lost. A single error may be forged.
const MAX_REFUSALS: u32 = 3;

/// The result of [`QuicConnection::receive`]: whether datagrams were received, and whether there
/// may be more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicReceiveResult {
    /// No datagrams were available.
    WouldBlock,
    /// Datagrams were received, and there may be more.
    More,
    /// Datagrams were received, and no more are available.
    Drained,
}

/// A QUIC connection, in its handshake or established.
pub(crate) struct QuicConnection {
    socket: QuicSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    machine: Connection,
    tls: Arc<QuicAttemptTls>,
    buffers: DatagramBufferPool,
    /// The contents of the datagrams to send that the socket has not accepted yet.
    output: Vec<u8>,
    unsent: Option<Transmit>,
    /// The time at which quinn-proto must handle its next timeout; `None` if it has no timer.
    timeout: Option<Instant>,
    /// The number of ICMP errors (port unreachable) from the peer's host since the last received
    /// datagram.
    refusals: u32,
    /// True if the local address was changed since the last datagram from the peer.
    was_rebound: bool,
    /// The number of bytes that the last receive returned; 0 if there were none.
    last_received: usize,
    session: Option<NegotiatedSession>,
    /// The idle timeout that the server announced; `None` if the server has none.
    peer_idle_timeout: Option<Duration>,
    /// The flow-control budget: it limits the number of received bytes that wait until the program
    /// accepts them.
    budget: ConnectionReceiveBudget,
    windows: QuicWindows,
    /// The local address of the socket; `None` if the system does not report it.
    pub(crate) local: Option<SocketAddr>,
    /// The sequence number of this connection among all connections of the process, counted from 0.
    pub(crate) number: u64,
    generation: u32,
}

impl QuicConnection {
    /// Opens a socket to the peer and begins the handshake. Call [`QuicConnection::transmit`] next.
    ///
    /// # Errors
    /// The socket cannot be opened, bound or connected, or the handshake cannot begin.
    pub(super) fn open(
        peer: SocketAddr,
        bind: &LocalBinding,
        tls: Arc<QuicAttemptTls>,
        (budget, windows): (ConnectionReceiveBudget, QuicWindows),
        buffers: &DatagramBufferPool,
        now: Instant,
    ) -> Result<Self, QuicSocketOpenError> {
        let socket = QuicSocket::open(peer, bind)?;
        let mut endpoint = Endpoint::new(config::endpoint(), None, !socket.may_fragment(), None);
        let mut client = ClientConfig::new(Arc::clone(&tls) as _);
        client.transport_config(config::transport(windows));
        let started = endpoint.connect(now, client, peer, "");
        let (handle, machine) = started.map_err(|error| QuicSocketOpenError::Connect(io::Error::other(error)))?;
        let local = socket.local();
        Ok(Self {
            socket,
            endpoint,
            handle,
            machine,
            tls,
            buffers: buffers.clone(),
            output: Vec::new(),
            unsent: None,
            timeout: Some(now),
            refusals: 0,
            was_rebound: false,
            last_received: 0,
            session: None,
            peer_idle_timeout: None,
            budget,
            windows,
            local,
            number: next_connection_number(),
            generation: fork::fork_count(),
        })
    }

    /// Returns the quinn-proto connection, through which the caller reads and writes streams. The
    /// caller must call [`QuicConnection::transmit`] afterwards.
    pub(crate) fn machine(&mut self) -> &mut Connection {
        &mut self.machine
    }

    /// Returns the address of the peer.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.socket.peer()
    }

    /// Returns the number of bytes that the last receive returned; 0 if there were none.
    pub(crate) fn last_received(&self) -> usize {
        self.last_received
    }

    /// Returns the size of the socket's receive buffer in bytes.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.socket.receive_buffer()
    }

    /// Returns the results of the TLS handshake; `None` while the handshake is in progress.
    pub(crate) fn session(&self) -> Option<&NegotiatedSession> {
        self.session.as_ref()
    }

    /// Returns the time without a received datagram after which either side closes the connection.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.peer_idle_timeout.map_or(IDLE_TIMEOUT, |timeout| timeout.min(IDLE_TIMEOUT))
    }

    /// Returns the sizes of the receive windows with which this side has opened the connection: the
    /// windows of the connection and of its streams.
    pub(crate) fn windows(&self) -> QuicWindows {
        self.windows
    }

    /// Returns the budget from which the connection's flow-control windows are computed.
    pub(crate) fn budget(&self) -> &ConnectionReceiveBudget {
        &self.budget
    }

    /// Returns true if either side has closed the connection, or if the connection is lost.
    pub(crate) fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    /// Returns true if a valid packet from the peer has arrived.
    pub(crate) fn was_answered(&self) -> bool {
        let frames = self.machine.stats().frame_rx;
        frames.acks > 0 || frames.crypto > 0
    }

    /// Removes and returns the next event that quinn-proto reports for the connection. Returns
    /// `None` if there is no further event.
    pub(crate) fn poll(&mut self) -> Option<Event> {
        let event = self.machine.poll();
        if matches!(event, Some(Event::Connected)) {
            let data = self.machine.crypto_session().handshake_data();
            if let Some(data) = data.and_then(|data| data.downcast::<QuicHandshakeData>().ok()) {
                self.peer_idle_timeout = data.peer_idle_timeout;
                self.session = Some(data.session);
            }
        }
        event
    }

    /// Receives available datagrams with one system call.
    ///
    /// # Errors
    /// The peer's host refuses datagrams repeatedly, or the socket is broken.
    pub(crate) fn receive(&mut self, now: Instant) -> io::Result<QuicReceiveResult> {
        let mut buffers = self.buffers.take_buffers();
        let Self { socket, endpoint, handle, machine, .. } = self;
        let (peer, handle) = (socket.peer(), *handle);
        // An endpoint without a server's settings answers nothing that concerns other connections.
        let mut unused = Vec::new();
        let mut bytes = 0;
        let received = buffers.receive(socket, |datagram, ecn| {
            bytes += datagram.len();
            let event = endpoint.handle(now, peer, None, ecn, datagram, &mut unused);
            if let Some(DatagramEvent::ConnectionEvent(for_handle, event)) = event
                && for_handle == handle
            {
                machine.handle_event(event);
            }
        });
        self.buffers.put_buffers(buffers);
        self.last_received = bytes;
        let outcome = match received {
            Ok(has_more) => {
                (self.refusals, self.was_rebound) = (0, false);
                if has_more { QuicReceiveResult::More } else { QuicReceiveResult::Drained }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => QuicReceiveResult::WouldBlock,
            Err(error) => {
                self.on_socket_error(error, now)?;
                QuicReceiveResult::More
            }
        };
        self.exchange_events();
        Ok(outcome)
    }

    /// Sends the datagrams that are due. Returns false if the socket has no room for all of them.
    ///
    /// # Errors
    /// The peer's host refuses datagrams repeatedly, or the socket is broken.
    pub(crate) fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        let outcome = loop {
            if self.unsent.is_none() {
                let segments = self.socket.max_segments().min(MAX_SEGMENTS);
                self.output.clear();
                self.unsent = self.machine.poll_transmit(now, segments, &mut self.output);
            }
            let Some(transmit) = &self.unsent else { break Ok(true) };
            match self.socket.send(transmit, &self.output[..transmit.size]) {
                Ok(()) => self.unsent = None,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(false),
                Err(error) => {
                    // The datagrams are lost, and sent again later like any others.
                    let was_batch = self.unsent.take().is_some_and(|unsent| unsent.segment_size.is_some());
                    // The network device cannot send several datagrams by one call. The socket does
                    // not try that again.
                    if was_batch
                        && matches!(error.raw_os_error(), Some(socket_error_codes::EIO | socket_error_codes::EINVAL))
                    {
                        continue;
                    }
                    if let Err(error) = self.on_socket_error(error, now) {
                        break Err(error);
                    }
                }
            }
        };
        self.exchange_events();
        outcome
    }

    /// Handles an error that the socket reports for a send or a receive. Ignores temporary errors,
    /// and changes the local address if the network has changed.
    ///
    /// # Errors
    /// The error, if the connection cannot continue after it.
    fn on_socket_error(&mut self, error: io::Error, now: Instant) -> io::Result<()> {
        match error.raw_os_error() {
            // A probe for the largest size of a datagram was too large.
            Some(socket_error_codes::EMSGSIZE) => Ok(()),
            Some(socket_error_codes::ECONNREFUSED) => {
                self.refusals += 1;
                if self.machine.is_handshaking() || self.refusals >= MAX_REFUSALS { Err(error) } else { Ok(()) }
            }
            Some(
                socket_error_codes::ENETUNREACH
                | socket_error_codes::EHOSTUNREACH
                | socket_error_codes::EADDRNOTAVAIL
                | socket_error_codes::ENETDOWN,
            ) if !self.machine.is_handshaking() => {
                self.rebind(now);
                Ok(())
            }
            Some(socket_error_codes::ENOBUFS | socket_error_codes::ENOMEM | socket_error_codes::EPERM)
                if !self.machine.is_handshaking() =>
            {
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Lets the system choose a new local address, because the current address can no longer be
    /// used, and migrates the connection to the new address (RFC 9000 section 9).
    fn rebind(&mut self, now: Instant) {
        if std::mem::replace(&mut self.was_rebound, true) || self.socket.rebind().is_err() {
            return;
        }
        self.local = self.socket.local();
        self.machine.local_address_changed();
        self.timeout = Some(now);
    }

    /// Returns true if datagrams wait for room in the socket.
    pub(crate) fn has_output(&self) -> bool {
        self.unsent.is_some()
    }

    /// Returns the time at which the caller must call [`QuicConnection::handle_timeout`], even if
    /// no datagram has arrived; `None` if no timer runs.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// Handles the timers that have expired at `now`. The caller must call
    /// [`QuicConnection::transmit`] next.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timeout.is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
            self.exchange_events();
        }
    }

    /// Passes events between the connection and the endpoint of quinn-proto, which are separate
    /// objects.
    fn exchange_events(&mut self) {
        while let Some(event) = self.machine.poll_endpoint_events() {
            let back: Option<ConnectionEvent> = self.endpoint.handle_event(self.handle, event);
            if let Some(event) = back {
                self.machine.handle_event(event);
            }
        }
        self.timeout = self.machine.poll_timeout();
    }

    /// Closes the connection, and prepares a datagram that tells the peer the error code and the
    /// reason.
    pub(crate) fn close(&mut self, code: u64, reason: &str, now: Instant) {
        if self.is_closed() || self.generation != fork::fork_count() {
            return;
        }
        let code = VarInt::from_u64(code).unwrap_or(H3_NO_ERROR);
        self.machine.close(now, code, Bytes::copy_from_slice(reason.as_bytes()));
        self.unsent = None;
        // If the socket has no room, the peer notices the end by its own timeout.
        let _ = self.transmit(now);
    }

    /// Returns the error for a connection that was lost during the handshake.
    pub(super) fn handshake_failure(&self, reason: &ConnectionError) -> Error {
        if let Some(error) = self.tls.failure() {
            return error;
        }
        match reason {
            ConnectionError::TimedOut => Error::new(ErrorKind::Timeout, "the QUIC handshake timed out"),
            // The server rejected the client's certificate or parameters by a TLS alert.
            ConnectionError::ConnectionClosed(close) if is_tls_alert(close) => tls_rejection(reason),
            reason => Error::new(ErrorKind::QuicConnect, format!("the QUIC handshake failed: {reason}")),
        }
    }

    /// Returns the numbers of sent and received datagrams and bytes so far.
    pub(crate) fn traffic(&self) -> WireTraffic {
        let stats = self.machine.stats();
        WireTraffic {
            known: true,
            bytes_sent: stats.udp_tx.bytes,
            bytes_received: stats.udp_rx.bytes,
            packets_sent: stats.udp_tx.datagrams,
            packets_received: stats.udp_rx.datagrams,
        }
    }
}

/// Returns true if the peer closed the connection because of a TLS alert (RFC 9001 section 4.8).
fn is_tls_alert(close: &ConnectionClose) -> bool {
    (0x100..0x200).contains(&u64::from(close.error_code))
}

/// Returns the error for a handshake that the peer rejected by a TLS alert.
fn tls_rejection(reason: &ConnectionError) -> Error {
    Error::new(ErrorKind::TlsHandshake, format!("TLS handshake failed: {reason}")).into_tls_rejection()
}

/// Returns the error for an established connection that was lost. The kind is
/// [`ErrorKind::Receive`], as in curl, even if the peer closed the connection with H3_NO_ERROR.
/// Only a TLS alert is reported like a failed handshake. [`ErrorKind::Http3`] is used only for
/// violations of HTTP/3 that the client finds, and for streams that the peer reset.
pub(crate) fn connection_lost(reason: &ConnectionError) -> Error {
    match reason {
        ConnectionError::TimedOut => Error::new(ErrorKind::Receive, "the server sent nothing for too long"),
        ConnectionError::Reset => Error::new(ErrorKind::Receive, "the server has forgotten the connection"),
        // By TLS 1.3, a server rejects the client's certificate after the client's handshake is
        // complete.
        ConnectionError::ConnectionClosed(close) if is_tls_alert(close) => tls_rejection(reason),
        ConnectionError::TransportError(error) => {
            Error::new(ErrorKind::Receive, format!("the server violated QUIC: {error}"))
        }
        ConnectionError::ApplicationClosed(close) => {
            let code = H3ErrorCode(close.error_code.into());
            let reason = String::from_utf8_lossy(&close.reason);
            let separator = if reason.is_empty() { "" } else { ": " };
            Error::new(ErrorKind::Receive, format!("the server closed the connection with {code}{separator}{reason}"))
        }
        reason => Error::new(ErrorKind::Receive, format!("the server closed the connection: {reason}")),
    }
}

impl Drop for QuicConnection {
    /// Notifies the peer that the connection is closed. Does nothing if the connection is already
    /// closed, or if this process is a forked child and its parent owns the connection.
    fn drop(&mut self) {
        self.close(H3_NO_ERROR.into_inner(), "", Instant::now());
    }
}

impl AsFd for QuicConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl std::fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, socket, .. } = self;
        f.debug_struct("QuicConnection").field("number", number).field("peer", &socket.peer()).finish_non_exhaustive()
    }
}
