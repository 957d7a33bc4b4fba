//! A stream socket on Windows, with the calls that the drivers need.
//!
//! The system's socket is always non-blocking. On a blocking socket, Windows has no call that
//! returns without waiting, and a timeout leaves the socket in an undefined state. A [`Socket`] in
//! blocking mode waits by `WSAPoll`, and then repeats the call. After a receive that does not fill
//! its buffer, and after each send, [`event_registration`] makes the event loop report the socket
//! again.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::net::{self, RecvFlags, SendFlags, sockopt};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};

use super::event_registration;
pub use super::socket_options::{IdleSocketState, TcpKeepalive};

/// A TCP socket, which is closed when dropped.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    /// True if calls return an error instead of waiting.
    is_nonblocking: AtomicBool,
    /// The timeout of receives and of sends in microseconds; 0 means no timeout.
    timeouts: [AtomicU64; 2],
}

/// The direction for which a blocking socket waits.
#[derive(Debug, Clone, Copy)]
enum WaitDirection {
    Receive,
    Send,
}

impl Socket {
    /// Opens a socket of the address's family, with `TCP_NODELAY`.
    ///
    /// # Errors
    /// The errors of `WSASocketW`.
    pub fn open(address: &SocketAddr, nonblocking: bool) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
        Self::from_socket(socket, nonblocking)
    }

    /// Opens an ordinary TCP socket ([`Socket::open`]). Windows does not support Multipath TCP.
    ///
    /// # Errors
    /// The errors of `WSASocketW`.
    pub fn open_multipath(address: &SocketAddr, nonblocking: bool) -> io::Result<Self> {
        Self::open(address, nonblocking)
    }

    fn from_socket(socket: socket2::Socket, nonblocking: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Without it, small writes wait for acknowledgements.
        let _ = socket.set_tcp_nodelay(true);
        Ok(Self { socket, is_nonblocking: AtomicBool::new(nonblocking), timeouts: Default::default() })
    }

    /// Starts to connect to `address`. On a non-blocking socket, this usually fails with
    /// `WouldBlock`, and [`Socket::connect_result`] later returns the result.
    ///
    /// # Errors
    /// The errors of `connect`.
    pub fn connect(&self, address: &SocketAddr) -> io::Result<()> {
        match self.socket.connect(&SockAddr::from(*address)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_nonblocking() => {
                self.wait(WaitDirection::Send)?;
                self.take_error()
            }
            connected => connected,
        }
    }

    /// Returns the result of a [`connect`](Self::connect) in progress; `None` if the connection
    /// attempt has not ended yet.
    pub fn connect_result(&self, _address: &SocketAddr) -> Option<io::Result<()>> {
        match self.take_error() {
            Ok(()) if self.peer_addr().is_ok() => Some(Ok(())),
            Ok(()) => {
                event_registration::after_send(self.as_fd(), false);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Receives available bytes, and returns their number; 0 means the end of the stream. Waits for
    /// bytes if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `recv`; `WouldBlock` also after a receive timeout.
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.repeat(WaitDirection::Receive, || self.recv_nonblocking(buf))
    }

    /// Receives available bytes without waiting, even if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `recv`; `WouldBlock` if no bytes are available.
    pub fn recv_nonblocking(&self, buf: &mut [u8]) -> io::Result<usize> {
        let room = buf.len();
        let received = net::recv(self.as_fd(), buf, RecvFlags::empty()).map(|(n, _)| n).map_err(io::Error::from);
        if !matches!(received, Ok(n) if n == room) {
            event_registration::after_short_receive(self.as_fd());
        }
        received
    }

    /// Sends as many of `bytes` as the socket accepts, and returns their number.
    ///
    /// # Errors
    /// The errors of `send`.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.repeat(WaitDirection::Send, || self.send_nonblocking(bytes))
    }

    /// Sends bytes without waiting, even if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `send`; `WouldBlock` if the socket accepts no bytes now.
    pub fn send_nonblocking(&self, bytes: &[u8]) -> io::Result<usize> {
        self.after_send(bytes.len(), net::send(self.as_fd(), bytes, SendFlags::empty()).map_err(io::Error::from))
    }

    /// Sends several buffers in one call, such as a request head and a small body, so that they
    /// share a TCP segment. Returns the number of bytes that the socket accepted.
    ///
    /// # Errors
    /// The errors of `WSASend`.
    pub fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        self.repeat(WaitDirection::Send, || self.after_send(length, self.socket.send_vectored(pieces)))
    }

    /// Shuts down the sending direction. The socket can still receive.
    ///
    /// # Errors
    /// The errors of `shutdown`.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.socket.shutdown(std::net::Shutdown::Write)
    }

    /// Makes the socket non-blocking (`true`) or blocking (`false`).
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.is_nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// Fails, because the option does not exist on Windows.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn set_recv_lowat(&self, _bytes: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails: haul does not use TCP Fast Open on Windows.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn set_fast_open(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets the timeout of blocking receives, which then fail with `WouldBlock`. `None` means no
    /// timeout.
    ///
    /// # Errors
    /// None.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.timeouts[WaitDirection::Receive as usize].store(timeout.map_or(0, micros), Ordering::Relaxed);
        Ok(())
    }

    /// Sets the timeout of blocking receives and sends; `None` means no timeout.
    ///
    /// # Errors
    /// None.
    pub fn set_timeouts(&self, most: Option<Duration>) -> io::Result<()> {
        self.timeouts.iter().for_each(|timeout| timeout.store(most.map_or(0, micros), Ordering::Relaxed));
        Ok(())
    }

    /// Turns keep-alive probes on. The system decides the number of probes. Errors are ignored.
    pub fn set_keepalive(&self, keepalive: TcpKeepalive) {
        let second = Duration::from_secs(1);
        let times = socket2::TcpKeepalive::new()
            .with_time(keepalive.idle.max(second))
            .with_interval(keepalive.interval.max(second));
        let _ = self.socket.set_tcp_keepalive(&times);
    }

    /// Clears the socket's pending error (`SO_ERROR`).
    ///
    /// # Errors
    /// The pending error, if there was one.
    pub fn take_error(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(self.as_fd())??)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// The errors of `getpeername`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.peer_addr()?.as_socket().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The errors of `getsockname`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn is_nonblocking(&self) -> bool {
        self.is_nonblocking.load(Ordering::Relaxed)
    }

    /// Calls `call`, which never waits. If it returns `WouldBlock` and this socket is in blocking
    /// mode, waits until the socket is ready, and calls `call` again.
    ///
    /// # Errors
    /// The error of the call; `WouldBlock` in non-blocking mode or after the timeout.
    fn repeat(&self, direction: WaitDirection, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_nonblocking() => {
                    self.wait(direction)?;
                }
                result => return result,
            }
        }
    }

    /// Waits until the socket is ready.
    ///
    /// # Errors
    /// `WouldBlock` after the timeout; the errors of `WSAPoll`.
    fn wait(&self, direction: WaitDirection) -> io::Result<()> {
        let flags = match direction {
            WaitDirection::Receive => PollFlags::IN,
            WaitDirection::Send => PollFlags::OUT,
        };
        let timeout = Some(self.timeouts[direction as usize].load(Ordering::Relaxed)).filter(|&timeout| timeout > 0);
        let timeout = timeout.and_then(|timeout| Timespec::try_from(Duration::from_micros(timeout)).ok());
        match poll(&mut [PollFd::new(self, flags)], timeout.as_ref())? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    /// Tells the event loop the result of a send of `length` bytes, and returns the result.
    fn after_send(&self, length: usize, result: io::Result<usize>) -> io::Result<usize> {
        event_registration::after_send(self.as_fd(), matches!(result, Ok(n) if n == length));
        result
    }
}

/// Checks, without waiting and without consuming input, whether an idle connection may be reused.
pub fn peek_idle(fd: impl AsFd) -> IdleSocketState {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    match SockRef::from(&fd.as_fd()).peek(&mut byte) {
        Ok(0) => IdleSocketState::Closed,
        Ok(_) => IdleSocketState::HasBytes,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => IdleSocketState::Silent,
        Err(_) => IdleSocketState::Closed,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

impl TryFrom<TcpStream> for Socket {
    type Error = io::Error;

    fn try_from(stream: TcpStream) -> io::Result<Self> {
        Self::from_socket(stream.into(), false)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        event_registration::forget(self.as_fd());
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        AsFd::as_fd(&self.socket)
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        AsRawFd::as_raw_fd(&self.socket)
    }
}
