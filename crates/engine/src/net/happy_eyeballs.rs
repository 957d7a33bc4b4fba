//! Happy eyeballs (RFC 8305): connects to several addresses of a host, and keeps the first
//! connection.
//!
//! ```text
//!  addresses, families interleaved (§4)      t=0      first attempt
//!  ┌────┬────┬────┬────┐                     +200 ms  second, the first stays in the race (§5)
//!  │ v6 │ v4 │ v6 │ v4 │  ─────────────►     failure  the next one at once
//!  └────┴────┴────┴────┘                     winner   the others are closed
//! ```
//!
//! [`ConnectRace`] owns the sockets of the attempts and has no event loop: the caller waits for
//! each socket and the next timeout, and then calls [`ConnectRace::step`]. A blocking `connect(2)`
//! with a timeout was rejected: it saves a system call on Linux, but gVisor ignores the timeout.
//!
//! ```
//! use haul::net::happy_eyeballs::{ConnectRaceStatus, ConnectOptions, ConnectRace};
//! use std::net::TcpListener;
//! use std::time::Instant;
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! let options = ConnectOptions::default();
//! let mut race = ConnectRace::new("localhost", vec![address], &options, Instant::now());
//! let peer = loop {
//!     match race.step(Instant::now(), &mut |_| ()) {
//!         ConnectRaceStatus::Pending => std::thread::yield_now(),
//!         ConnectRaceStatus::Done { peer, .. } => break peer,
//!         other => panic!("{other:?}"),
//!     }
//! };
//! assert_eq!(peer, address);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fd::{AsFd, BorrowedFd};

use super::attempt_schedule::AttemptOrder;
use super::local_address::{LocalBinding, LocalInterface, PortRange, UnixSocketAddress};
use super::socket::{Socket, TcpKeepalive};
use crate::system::socket_error_codes::{self, is_connect_in_progress, lacks_descriptors};
use crate::time_conversions;
use crate::trace::{TraceEvent, TransferObserver, system_error_text};
use crate::{Error, ErrorKind};

/// The options for making a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectOptions {
    /// The time after which an attempt with the next address begins, even if an earlier attempt is
    /// still pending. Default 200 ms, as in curl; RFC 8305 §5 recommends between 10 ms and 2 s.
    pub attempt_delay: Duration,
    /// The time limit for all attempts together. Default 300 s, as in curl.
    pub timeout: Duration,
    /// The keep-alive probes on a silent connection. `None` turns them off. Default: on, as in
    /// curl. They cost three system calls for each connection.
    pub keepalive: Option<TcpKeepalive>,
    /// The local interface or address of connections (`--interface`). Default: `None`, for the
    /// system's choice.
    pub interface: Option<LocalInterface>,
    /// The local ports of connections (`--local-port`). Default: `None`, for any port.
    pub local_ports: Option<PortRange>,
    /// The type of service of outgoing packets (`--ip-tos`): the DS field (RFC 2474 section 3) and
    /// ECN, eight bits together. Default: `None`, for the system's default.
    pub type_of_service: Option<u8>,
    /// The priority of outgoing packets, 0 to 7 (`--vlan-priority`), if the system supports it.
    /// Default: `None`, for the system's default.
    pub priority: Option<u8>,
    /// True to use Multipath TCP (RFC 8684) where the system and the peer support it (`--mptcp`).
    /// Default: false.
    pub multipath: bool,
    /// True to send the first bytes with the SYN if the system and the peer support it (TCP Fast
    /// Open, RFC 7413, `--tcp-fastopen`). A connection is then reported as connected before the
    /// peer has answered. Default: false. Hazard: the network may deliver these bytes twice.
    pub fast_open: bool,
    /// The Unix socket to which all connections go, regardless of the URL and the proxy settings
    /// (`--unix-socket`, `--abstract-unix-socket`). Default: none.
    pub unix_socket: Option<UnixSocketAddress>,
    /// True to begin each connection with a line of the PROXY protocol, version 1, which contains
    /// the addresses of both ends (`--haproxy-protocol`). Default: false.
    pub haproxy_protocol: bool,
    /// The client address in the line of the PROXY protocol (`--haproxy-clientip`). Default:
    /// `None`, for the local address of the connection.
    pub haproxy_client: Option<IpAddr>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            attempt_delay: Duration::from_millis(200),
            timeout: Duration::from_secs(300),
            keepalive: Some(TcpKeepalive::default()),
            interface: None,
            local_ports: None,
            type_of_service: None,
            priority: None,
            multipath: false,
            fast_open: false,
            unix_socket: None,
            haproxy_protocol: false,
            haproxy_client: None,
        }
    }
}

impl ConnectOptions {
    /// Returns true if requests with these options and requests with `other` may share a
    /// connection. Ignores `attempt_delay` and `timeout`, which do not affect an open connection.
    #[must_use]
    pub fn make_equal_connections(&self, other: &Self) -> bool {
        let Self {
            attempt_delay: _,
            timeout: _,
            keepalive,
            interface,
            local_ports,
            type_of_service,
            priority,
            multipath,
            fast_open,
            unix_socket,
            haproxy_protocol,
            haproxy_client,
        } = self;
        *keepalive == other.keepalive
            && *interface == other.interface
            && *local_ports == other.local_ports
            && *type_of_service == other.type_of_service
            && *priority == other.priority
            && *multipath == other.multipath
            && *fast_open == other.fast_open
            && *unix_socket == other.unix_socket
            && *haproxy_protocol == other.haproxy_protocol
            && *haproxy_client == other.haproxy_client
    }

    /// Returns a copy of these options with the default `attempt_delay` and `timeout`, so that
    /// options which differ only in these fields become equal.
    pub(crate) fn without_timeouts(&self) -> Self {
        let Self { attempt_delay, timeout, .. } = Self::default();
        Self { attempt_delay, timeout, ..self.clone() }
    }
}

/// The delay before another attempt to connect to a Unix socket whose backlog is full. A delay is
/// needed because no event reports that the backlog has room again.
const UNIX_SOCKET_RETRY_DELAY: Duration = Duration::from_millis(10);

/// The maximum time for which a race waits for further addresses after all known addresses have
/// failed.
pub(super) const MAX_LATE_ADDRESS_WAIT: Duration = Duration::from_secs(3);

/// The result of [`ConnectRace::step`]: a connected socket, an error, or attempts still in
/// progress.
#[derive(Debug)]
pub enum ConnectRaceStatus {
    /// No attempt has succeeded yet: wait for a socket to become writable, or for
    /// [`ConnectRace::next_timeout`].
    Pending,
    /// An attempt succeeded. The socket is still non-blocking.
    Done {
        /// The connected socket.
        socket: Socket,
        /// The address and port of the peer.
        peer: SocketAddr,
    },
    /// The connected Unix socket of [`ConnectRace::for_unix_socket`], which is still non-blocking.
    Local(Socket),
    /// No address accepted the connection ([`ErrorKind::Connect`]), or the time limit passed
    /// ([`ErrorKind::Timeout`]).
    Failed(Error),
}

/// Connection attempts to the addresses of one host. The first successful attempt ends the race.
#[derive(Debug)]
pub struct ConnectRace {
    host: String,
    order: AttemptOrder,
    racing: Vec<ConnectAttempt>,
    deadline: Instant,
    keepalive: Option<TcpKeepalive>,
    bind: LocalBinding,
    unix: Option<UnixSocketAddress>,
    /// The time of the next attempt to connect to the Unix socket `unix`, whose backlog was full.
    unix_retry: Instant,
    failure: Option<(SocketAddr, io::Error)>,
    /// True if further addresses may follow, so that the race cannot fail yet.
    awaits_addresses: bool,
    /// The time at which the race fails although further addresses may follow; `None` while an
    /// attempt is in progress.
    gives_up_at: Option<Instant>,
    /// True if `failure` is an error of binding the local address.
    could_not_bind: bool,
    /// The observer to which each connection attempt is reported; `None` if nothing is reported.
    trace: Option<Arc<dyn TransferObserver>>,
}

/// A connection attempt in progress.
#[derive(Debug)]
struct ConnectAttempt {
    socket: Socket,
    peer: SocketAddr,
}

impl ConnectRace {
    /// Returns the addresses that are not attempted yet, in order.
    pub fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.order.addresses()
    }

    /// Prepares a race; the first [`step`](Self::step) starts it. `addresses` are in order of
    /// preference (the system's resolver sorts them by RFC 6724). The race interleaves the address
    /// families. `host` is the name of the host for error messages.
    #[must_use]
    pub fn new(host: &str, addresses: Vec<SocketAddr>, options: &ConnectOptions, now: Instant) -> Self {
        Self {
            host: host.to_owned(),
            order: AttemptOrder::new(addresses, options.attempt_delay, now),
            racing: Vec::new(),
            deadline: time_conversions::add_saturating(now, options.timeout),
            keepalive: options.keepalive,
            bind: LocalBinding::from_options(options),
            unix: None,
            unix_retry: now,
            failure: None,
            awaits_addresses: false,
            gives_up_at: None,
            could_not_bind: false,
            trace: None,
        }
    }

    /// Adds the addresses that are not in the race yet. If `awaits_more` is true, further addresses
    /// may follow, and the race does not fail before they are added.
    pub fn add_addresses(&mut self, addresses: Vec<SocketAddr>, awaits_more: bool) {
        self.order.add(addresses);
        self.awaits_addresses = awaits_more;
    }

    /// Replaces the local settings of the attempts that have not begun.
    pub(super) fn replace_binding(&mut self, bind: &LocalBinding) {
        self.bind.clone_from(bind);
    }

    /// Makes the race report each connection attempt to this observer.
    #[must_use]
    pub fn with_trace(self, trace: Option<Arc<dyn TransferObserver>>) -> Self {
        Self { trace, ..self }
    }

    fn trace_text(&self, text: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.event(&TraceEvent::Info(text().into()));
        }
    }

    fn trace_attempt(&self, peer: &SocketAddr) {
        self.trace_text(|| format!("  Trying {peer}..."));
    }

    fn trace_failure(&self, peer: &SocketAddr, error: &io::Error) {
        self.trace_text(|| {
            format!("connect to {} port {} failed: {}", peer.ip(), peer.port(), system_error_text(error))
        });
    }

    /// Makes the race bind all its sockets to the local address in `bind`, and apply the other
    /// settings in `bind` to them.
    #[must_use]
    pub fn from(self, bind: LocalBinding) -> Self {
        Self { bind, ..self }
    }

    /// Prepares a connection to a Unix socket. The race then has no IP addresses.
    #[must_use]
    pub fn for_unix_socket(socket: UnixSocketAddress, options: &ConnectOptions, now: Instant) -> Self {
        let mut connector = Self::new(&socket.to_string(), Vec::new(), options, now);
        connector.unix = Some(socket);
        connector
    }

    fn step_unix_socket(
        &mut self,
        unix: &UnixSocketAddress,
        now: Instant,
        opened: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> ConnectRaceStatus {
        if now >= self.deadline {
            return ConnectRaceStatus::Failed(self.timeout_error());
        }
        match unix.connect(true) {
            Ok(socket) => {
                opened(socket.as_fd());
                ConnectRaceStatus::Local(socket)
            }
            // The listener's backlog is full, and no event tells when it has room again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unix_retry = now + UNIX_SOCKET_RETRY_DELAY;
                ConnectRaceStatus::Pending
            }
            Err(error) => ConnectRaceStatus::Failed(unix.failed(error)),
        }
    }

    /// Advances the race: collects the results of pending attempts, and starts the next attempt if
    /// it is due. Calls `opened` once for each new socket, so that the caller can register it for
    /// events. Closes the sockets of failed attempts.
    pub fn step(&mut self, now: Instant, opened: &mut dyn FnMut(BorrowedFd<'_>)) -> ConnectRaceStatus {
        if let Some(unix) = self.unix.take() {
            let outcome = self.step_unix_socket(&unix, now, opened);
            self.unix = Some(unix);
            return outcome;
        }
        let mut attempt_now = self.racing.is_empty();
        let mut index = 0;
        while let Some(attempt) = self.racing.get(index) {
            match attempt.socket.connect_result(&attempt.peer) {
                None => index += 1,
                Some(Ok(())) => {
                    let ConnectAttempt { socket, peer } = self.racing.swap_remove(index);
                    return self.on_connected(socket, peer);
                }
                Some(Err(error)) => {
                    let ConnectAttempt { peer, .. } = self.racing.remove(index);
                    self.on_attempt_failed(peer, error);
                    attempt_now = true;
                }
            }
        }
        if now >= self.deadline {
            return ConnectRaceStatus::Failed(self.timeout_error());
        }
        while let Some(peer) = self.order.next(attempt_now, now) {
            self.trace_attempt(&peer);
            match start_attempt(&peer, &self.bind) {
                Ok((socket, ConnectedOrInProgress::Connected)) => {
                    opened(socket.as_fd());
                    return self.on_connected(socket, peer);
                }
                Ok((socket, ConnectedOrInProgress::Started)) => {
                    opened(socket.as_fd());
                    self.racing.push(ConnectAttempt { socket, peer });
                    self.order.on_attempt_begun(now);
                    break;
                }
                Err(FailedConnectSyscall::Connect(error)) if lacks_descriptors(&error) && !self.racing.is_empty() => {
                    // The pending attempts may still succeed. This address was not attempted, so it
                    // stays first.
                    self.order.postpone(peer, now);
                    break;
                }
                Err(FailedConnectSyscall::Bind(error)) => {
                    if self.failure.is_none() {
                        self.failure = Some((peer, error));
                        self.could_not_bind = true;
                    }
                    attempt_now = true;
                }
                Err(FailedConnectSyscall::Connect(error)) => {
                    let hopeless = lacks_descriptors(&error);
                    self.on_attempt_failed(peer, error);
                    if hopeless {
                        self.order.clear();
                        self.awaits_addresses = false;
                    }
                    attempt_now = true;
                }
            }
        }
        if !self.racing.is_empty() {
            self.gives_up_at = None;
            return ConnectRaceStatus::Pending;
        }
        let gives_up_at = *self.gives_up_at.get_or_insert(now + MAX_LATE_ADDRESS_WAIT);
        if !self.awaits_addresses || gives_up_at <= now {
            return ConnectRaceStatus::Failed(self.failure_error());
        }
        ConnectRaceStatus::Pending
    }

    /// Returns the time at which to call [`step`](Self::step) even if no socket is ready: the start
    /// of the next attempt or the time limit, whichever is earlier. The result is never `None`.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let next = if self.unix.is_some() { Some(self.unix_retry) } else { self.order.next_timeout() };
        Some(next.into_iter().chain(self.gives_up_at).fold(self.deadline, Instant::min))
    }

    /// Returns the sockets of the pending attempts, so that the caller can wait until one is
    /// writable.
    pub fn pending_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.racing.iter().map(|attempt| attempt.socket.as_fd())
    }

    fn on_connected(&mut self, socket: Socket, peer: SocketAddr) -> ConnectRaceStatus {
        self.racing.clear();
        self.order.clear();
        if let Some(keepalive) = self.keepalive {
            socket.set_keepalive(keepalive);
        }
        ConnectRaceStatus::Done { socket, peer }
    }

    /// Records the error of a failed attempt for the error message, unless the error recorded
    /// before is more informative ([`failure_rank`]).
    fn on_attempt_failed(&mut self, peer: SocketAddr, error: io::Error) {
        self.trace_failure(&peer, &error);
        let replace = self.failure.as_ref().is_none_or(|(_, kept)| failure_rank(&error) >= failure_rank(kept));
        if replace || self.could_not_bind {
            self.could_not_bind = false;
            self.failure = Some((peer, error));
        }
    }

    /// Returns the error of a race whose time limit has passed. If every known address has failed,
    /// that is the failure.
    pub(super) fn timeout_error(&self) -> Error {
        if self.racing.is_empty()
            && self.awaits_addresses
            && let Some((peer, error)) = &self.failure
        {
            // Several transfers may wait for this race: each gets a copy of the error.
            let copy = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            return self.attempt_error(*peer, copy);
        }
        let port = self.racing.first().map(|attempt| attempt.peer).or(self.order.addresses().next().copied());
        let port = port.or(self.failure.as_ref().map(|(peer, _)| *peer));
        let port = port.map_or(0, |peer| peer.port());
        timeout_error(&self.host, port)
    }

    fn failure_error(&mut self) -> Error {
        match self.failure.take() {
            Some((peer, error)) => self.attempt_error(peer, error),
            None => Error::new(ErrorKind::Connect, format!("failed to connect to {}: it has no address", self.host)),
        }
    }

    /// Returns the error of the race whose last attempt, to `peer`, failed with `error`.
    fn attempt_error(&self, peer: SocketAddr, error: io::Error) -> Error {
        if self.could_not_bind {
            self.bind.bind_error(peer, error)
        } else {
            connect_error(&self.host, peer.port(), error)
        }
    }
}

/// Returns a socket address for each IP address, all with this port.
#[must_use]
pub fn with_port(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    addresses.iter().map(|&address| SocketAddr::new(address, port)).collect()
}

/// The result of a `connect(2)` call that did not fail.
enum ConnectedOrInProgress {
    Connected,
    /// The `connect(2)` call is still in progress.
    Started,
}

/// The system call that failed during a connection attempt, with its error.
enum FailedConnectSyscall {
    Bind(io::Error),
    Connect(io::Error),
}

fn start_attempt(
    peer: &SocketAddr,
    bind: &LocalBinding,
) -> std::result::Result<(Socket, ConnectedOrInProgress), FailedConnectSyscall> {
    let open = if bind.multipath { Socket::open_multipath } else { Socket::open };
    let socket = open(peer, true).map_err(FailedConnectSyscall::Connect)?;
    if bind.fast_open {
        // It saves a round trip at most: without it, the connection is an ordinary one.
        let _ = socket.set_fast_open();
    }
    bind.apply(&socket, peer).map_err(FailedConnectSyscall::Bind)?;
    match socket.connect(peer) {
        Ok(()) => Ok((socket, ConnectedOrInProgress::Connected)),
        Err(error) if is_connect_in_progress(&error) => Ok((socket, ConnectedOrInProgress::Started)),
        Err(error) => Err(FailedConnectSyscall::Connect(error)),
    }
}

pub(super) fn connect_error(host: &str, port: u16, error: io::Error) -> Error {
    // If the kernel gives up after unanswered SYNs, that is a timeout, as in curl (28).
    let kind = if error.kind() == io::ErrorKind::TimedOut { ErrorKind::Timeout } else { ErrorKind::Connect };
    Error::with_source(kind, format!("failed to connect to {host} port {port}"), error)
}

pub(super) fn timeout_error(host: &str, port: u16) -> Error {
    Error::new(ErrorKind::Timeout, format!("failed to connect to {host} port {port}: the time limit ran out"))
}

/// Returns how informative an error is: 0 for an unreachable network or unavailable address family,
/// 1 for other errors, and 2 for a lack of descriptors. The error with the highest rank is
/// reported. Among equal ranks, the last one is reported.
fn failure_rank(error: &io::Error) -> u8 {
    if lacks_descriptors(error) {
        return 2;
    }
    match error.raw_os_error() {
        Some(
            socket_error_codes::ENETUNREACH | socket_error_codes::EADDRNOTAVAIL | socket_error_codes::EAFNOSUPPORT,
        ) => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_informative_connect_failure_is_reported() {
        let mut connector = ConnectRace::new("h", Vec::new(), &ConnectOptions::default(), Instant::now());
        let peer = "127.0.0.1:9".parse().unwrap();
        for (os, kept) in [
            (libc::ENETUNREACH, libc::ENETUNREACH),
            (libc::ECONNREFUSED, libc::ECONNREFUSED),
            (libc::ENETUNREACH, libc::ECONNREFUSED),
            (libc::EMFILE, libc::EMFILE),
            (libc::ECONNRESET, libc::EMFILE),
        ] {
            connector.on_attempt_failed(peer, io::Error::from_raw_os_error(os));
            assert_eq!(connector.failure.as_ref().unwrap().1.raw_os_error(), Some(kept));
        }
        let error = connector.failure_error();
        assert_eq!(error.io_source().unwrap().raw_os_error(), Some(libc::EMFILE));
        assert!(error.to_string().starts_with("failed to connect to h port 9: "), "{error}");
    }
}
