//! The properties and settings of an HTTP connection's socket, such as its timeouts, and the
//! address of its peer. The interface is the same for byte streams and QUIC.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};

use super::HttpConnection;
use crate::net::pool::PoolableConnection;
use crate::net::socket::{IdleSocketState, peek_idle};
use crate::net::stream::ConnectionStream;
use crate::stats::WireTraffic;

impl AsFd for HttpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::H1(connection) => connection.as_fd(),
            Self::H2(connection) => connection.as_fd(),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.as_fd(),
        }
    }
}

impl PoolableConnection for HttpConnection {
    fn is_reusable(&mut self, _now: Instant) -> bool {
        match self {
            Self::H1(_) | Self::H2(_) => self.is_open_without_input(),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.is_reusable(_now),
        }
    }
}

impl HttpConnection {
    /// Returns the byte stream that carries the connection: a socket, TLS, or a tunnel through a
    /// proxy. `None` for QUIC.
    pub(super) fn stream(&self) -> Option<&ConnectionStream> {
        match self {
            Self::H1(connection) => Some(connection.stream()),
            Self::H2(connection) => Some(connection.stream()),
            #[cfg(feature = "http3")]
            Self::H3(_) => None,
        }
    }

    /// Returns the address of the other end of the connection: the server, or the proxy if there is
    /// one. `None` on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::H1(connection) => connection.stream().peer,
            Self::H2(connection) => connection.stream().peer,
            #[cfg(feature = "http3")]
            Self::H3(connection) => Some(connection.peer()),
        }
    }

    /// Returns true if the server's certificate is also valid for the host name `host`.
    #[must_use]
    pub fn is_certified_for(&self, host: &str) -> bool {
        match self {
            Self::H1(connection) => connection.stream().is_certified_for(host),
            Self::H2(connection) => connection.stream().is_certified_for(host),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.is_certified_for(host),
        }
    }

    /// Returns true if the socket is open and has no unread input.
    #[must_use]
    pub fn is_open_without_input(&self) -> bool {
        peek_idle(self.as_fd()) == IdleSocketState::Silent
    }

    /// Sets whether socket calls return immediately instead of waiting. Calls on a UDP socket never
    /// wait.
    ///
    /// # Errors
    /// The errors of `ioctl(2)`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream().map_or(Ok(()), |stream| stream.socket().set_nonblocking(nonblocking))
    }

    /// Returns true if calls on the socket can block until data can be sent or received. A wait in
    /// `poll` is then not needed.
    #[must_use]
    pub fn can_block(&self) -> bool {
        self.stream().is_some()
    }

    /// Sets the time limit of each blocking receive and send on the socket. `None` means no limit.
    /// For the precision of the limit, see [`Socket::set_timeouts`].
    ///
    /// # Errors
    /// The errors of `setsockopt(2)`.
    ///
    /// [`Socket::set_timeouts`]: crate::net::socket::Socket::set_timeouts
    pub fn set_timeouts(&self, most: Option<Duration>) -> io::Result<()> {
        self.stream().map_or(Ok(()), |stream| stream.socket().set_timeouts(most))
    }

    /// Returns true if the next receive can return bytes that were already read from the socket;
    /// see [`ConnectionStream::has_buffered_input`].
    #[must_use]
    pub fn has_buffered_input(&self) -> bool {
        self.stream().is_some_and(ConnectionStream::has_buffered_input)
    }

    /// Returns true if output waits until the flow-control window of a proxy has room; see
    /// [`ConnectionStream::waits_for_proxy`].
    #[must_use]
    pub fn waits_for_proxy(&self) -> bool {
        self.stream().is_some_and(ConnectionStream::waits_for_proxy)
    }

    /// Returns true if encrypted bytes wait until the socket accepts them.
    #[must_use]
    pub fn has_encrypted_output(&self) -> bool {
        self.stream().is_some_and(ConnectionStream::has_output)
    }

    /// Returns the numbers of bytes and packets that the connection has sent and received so far.
    #[must_use]
    pub fn wire_traffic(&self) -> WireTraffic {
        match self {
            Self::H1(_) | Self::H2(_) => WireTraffic::from_tcp_socket(self.as_fd()),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.wire_traffic(),
        }
    }
}
