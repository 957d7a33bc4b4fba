//! A stream socket with the calls that the drivers need. Each method is one system call.
//!
//! The event loop and the blocking driver share it: the same [`Socket`] can be non-blocking or
//! blocking, and [`Socket::recv_nonblocking`] never waits. Sends never raise `SIGPIPE`.
//! `TCP_NODELAY` is always set (RFC 9293 §3.7.4 allows disabling Nagle's algorithm): a request is
//! sent in one write, so there is nothing to gather, and waiting for a delayed ACK would cost up to
//! 40 ms.
//!
//! ```
//! use haul::net::socket::{IdleSocketState, Socket, peek_idle};
//! use std::{io::Write, net::TcpListener};
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! let socket = Socket::open(&address, false)?;
//! socket.connect(&address)?;
//! let (mut peer, _) = listener.accept()?;
//! assert_eq!(peek_idle(&socket), IdleSocketState::Silent);
//! peer.write_all(b"hello")?;
//! let mut buf = [0; 16];
//! assert_eq!(socket.recv(&mut buf)?, 5);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::{
    io::{self, IoSlice},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};

pub use super::socket_options::{IdleSocketState, TcpKeepalive};

/// The flags for `send(2)` that prevent the signal `SIGPIPE`: a send on a closed connection only
/// returns an error.
#[cfg(not(target_vendor = "apple"))]
pub const WITHOUT_SIGPIPE: SendFlags = SendFlags::NOSIGNAL;
/// The flags for `send(2)`: none. On Apple's systems, `open` and `from` set a socket option that
/// prevents the signal `SIGPIPE`.
#[cfg(target_vendor = "apple")]
pub const WITHOUT_SIGPIPE: SendFlags = SendFlags::empty();

/// A TCP or Unix stream socket, which is closed when dropped.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// The receive timeout and the send timeout that are set on the socket, in microseconds; 0
    /// means no timeout.
    armed: [AtomicU64; 2],
}

impl Socket {
    /// Opens a socket of the address's family, with close-on-exec and `TCP_NODELAY`.
    ///
    /// # Errors
    /// The errors of `socket(2)`, including `EMFILE` and `ENFILE`.
    pub fn open(address: &SocketAddr, nonblocking: bool) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = Self::from_fd(stream_socket(family, nonblocking)?);
        socket.without_sigpipe()?;
        socket.without_delay();
        Ok(socket)
    }

    /// Opens a socket for Multipath TCP (RFC 8684). If the system does not support that, opens an
    /// ordinary TCP socket ([`Socket::open`]).
    ///
    /// # Errors
    /// The errors of `socket(2)`.
    #[cfg(target_os = "linux")]
    pub fn open_multipath(address: &SocketAddr, nonblocking: bool) -> io::Result<Self> {
        let mut flags = net::SocketFlags::CLOEXEC;
        flags.set(net::SocketFlags::NONBLOCK, nonblocking);
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let Ok(fd) = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::MPTCP)) else {
            return Self::open(address, nonblocking);
        };
        let socket = Self::from_fd(fd);
        socket.without_sigpipe()?;
        socket.without_delay();
        Ok(socket)
    }

    /// Opens a socket like [`Socket::open`], because the system has no Multipath TCP.
    ///
    /// # Errors
    /// The errors of `socket(2)`.
    #[cfg(not(target_os = "linux"))]
    pub fn open_multipath(address: &SocketAddr, nonblocking: bool) -> io::Result<Self> {
        Self::open(address, nonblocking)
    }

    /// Opens a stream socket of the family `AF_UNIX`, which is not connected yet.
    ///
    /// # Errors
    /// The errors of `socket(2)`.
    pub fn open_unix(nonblocking: bool) -> io::Result<Self> {
        let socket = Self::from_fd(stream_socket(AddressFamily::UNIX, nonblocking)?);
        socket.without_sigpipe()?;
        Ok(socket)
    }

    /// Connects to a Unix socket. If the listener's backlog is full, a non-blocking call fails with
    /// `WouldBlock` and must be repeated.
    ///
    /// # Errors
    /// The errors of `connect(2)`.
    pub fn connect_unix(&self, address: &net::SocketAddrUnix) -> io::Result<()> {
        Ok(net::connect(&self.fd, address)?)
    }

    /// Starts to connect to `address`. On a non-blocking socket, this usually fails with
    /// `EINPROGRESS`, and [`Socket::connect_result`] later returns the result.
    ///
    /// # Errors
    /// The errors of `connect(2)`.
    pub fn connect(&self, address: &SocketAddr) -> io::Result<()> {
        Ok(net::connect(&self.fd, address)?)
    }

    /// Returns the result of a [`connect`](Self::connect) in progress; `None` if it has not ended
    /// yet.
    ///
    /// On Linux, this calls `connect(2)` again, which returns the result immediately. This single
    /// call replaces the three system calls `poll`, `SO_ERROR` and `getpeername`.
    #[cfg(linux_calls)]
    pub fn connect_result(&self, address: &SocketAddr) -> Option<io::Result<()>> {
        use rustix::io::Errno;
        match net::connect(&self.fd, address) {
            Ok(()) | Err(Errno::ISCONN) => Some(Ok(())),
            Err(Errno::ALREADY | Errno::INPROGRESS | Errno::INTR) => None,
            Err(errno) => Some(Err(errno.into())),
        }
    }

    /// Returns the result of a [`connect`](Self::connect) in progress; `None` if the connection
    /// attempt has not ended yet.
    #[cfg(not(linux_calls))]
    pub fn connect_result(&self, _address: &SocketAddr) -> Option<io::Result<()>> {
        match self.take_error() {
            Ok(()) => self.peer_addr().is_ok().then_some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Receives available bytes, and returns their number; 0 means the end of the stream. Waits for
    /// bytes if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `recv(2)`; `WouldBlock` also after a receive timeout.
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(net::recv(&self.fd, buf, RecvFlags::empty())?.1)
    }

    /// Receives available bytes without waiting, even if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `recv(2)`; `WouldBlock` if no bytes are available.
    pub fn recv_nonblocking(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(net::recv(&self.fd, buf, RecvFlags::DONTWAIT)?.1)
    }

    /// Sends as many of `bytes` as the socket accepts, and returns their number.
    ///
    /// # Errors
    /// The errors of `send(2)`.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.fd, bytes, WITHOUT_SIGPIPE)?)
    }

    /// Sends bytes without waiting, even if the socket is blocking.
    ///
    /// # Errors
    /// The errors of `send(2)`; `WouldBlock` if the socket accepts no bytes now.
    pub fn send_nonblocking(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(&self.fd, bytes, WITHOUT_SIGPIPE | SendFlags::DONTWAIT)?)
    }

    /// Sends several buffers in one call, such as a request head and a small body, so that they
    /// share a TCP segment. Returns the number of bytes that the socket accepted.
    ///
    /// # Errors
    /// The errors of `sendmsg(2)`.
    pub fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(net::sendmsg(&self.fd, pieces, &mut net::SendAncillaryBuffer::default(), WITHOUT_SIGPIPE)?)
    }

    /// Shuts down the sending direction. The socket can still receive.
    ///
    /// # Errors
    /// The errors of `shutdown(2)`.
    pub fn shutdown_write(&self) -> io::Result<()> {
        Ok(net::shutdown(&self.fd, net::Shutdown::Write)?)
    }

    /// Makes the socket non-blocking (`true`) or blocking (`false`).
    ///
    /// # Errors
    /// The errors of `ioctl(2)`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.fd, nonblocking)?)
    }

    /// Sets `SO_RCVLOWAT`: readers are woken only when this many bytes are available, at the end of
    /// the stream, or after an error. Bulk data thus needs fewer reads. 1 is the system's default.
    ///
    /// Hazard: if fewer bytes than this are still to come, and the peer keeps the connection open,
    /// a reader waits for ever. The caller must set the value back to 1 before that happens.
    ///
    /// # Errors
    /// The errors of `setsockopt(2)`.
    pub fn set_recv_lowat(&self, bytes: usize) -> io::Result<()> {
        let value = libc::c_int::try_from(bytes.max(1)).unwrap_or(libc::c_int::MAX);
        // SAFETY: `SO_RCVLOWAT` reads one `c_int`.
        unsafe { self.set(libc::SOL_SOCKET, libc::SO_RCVLOWAT, &value) }
    }

    /// Enables TCP Fast Open (RFC 7413) for the next connect: the first bytes are sent with the
    /// SYN, if the peer has allowed that before.
    ///
    /// # Errors
    /// The errors of `setsockopt(2)`, or `Unsupported` on systems other than Linux.
    pub fn set_fast_open(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        // SAFETY: `TCP_FASTOPEN_CONNECT` reads one `c_int`.
        return unsafe { self.set(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &(1 as libc::c_int)) };
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets a socket option to `value`. `level` is the protocol level, and `option` the option's
    /// number, as in `setsockopt(2)`.
    ///
    /// # Safety
    /// `T` must be the type that the option reads.
    unsafe fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the descriptor is open while `self` lives, and the pointer and the length name
        // one valid `T`, which by this function's contract is what the option reads.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Sets the timeout of blocking receives, which then fail with `WouldBlock`. `None` means no
    /// timeout.
    ///
    /// # Errors
    /// The errors of `setsockopt(2)`.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_timeout(SocketTimeoutKind::Receive, timeout)
    }

    /// Sets the timeout of blocking receives and sends to `most`; `None` means no timeout. Keeps a
    /// current timeout, without a system call, if it lies between half of `most` and a sixteenth
    /// above `most`. A call may therefore time out early or late, so the caller must check the
    /// time.
    ///
    /// # Errors
    /// The errors of `setsockopt(2)`.
    pub fn set_timeouts(&self, most: Option<Duration>) -> io::Result<()> {
        for (armed, which) in self.armed.iter().zip([SocketTimeoutKind::Receive, SocketTimeoutKind::Send]) {
            if !is_close_enough(armed.load(Ordering::Relaxed), most.map_or(0, micros)) {
                self.set_timeout(which, most)?;
            }
        }
        Ok(())
    }

    /// Sets the timeout of receives or of sends. Uses the socket option that every system supports:
    /// rustix uses a newer Linux option, which gVisor accepts but ignores.
    fn set_timeout(&self, which: SocketTimeoutKind, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(at_least_one_tick);
        let armed = &self.armed[which as usize];
        if armed.load(Ordering::Relaxed) != timeout.map_or(0, micros) {
            let option = match which {
                SocketTimeoutKind::Receive => libc::SO_RCVTIMEO,
                SocketTimeoutKind::Send => libc::SO_SNDTIMEO,
            };
            // SAFETY: both options read one `timeval`.
            unsafe { self.set(libc::SOL_SOCKET, option, &timeval(timeout.unwrap_or_default()))? };
            armed.store(timeout.map_or(0, micros), Ordering::Relaxed);
        }
        Ok(())
    }

    fn from_fd(fd: OwnedFd) -> Self {
        Self { fd, armed: Default::default() }
    }

    /// Turns keep-alive probes on. Failures are ignored, since some sandboxes do not support the
    /// probes. On OpenBSD, only the system's own times and count apply.
    pub fn set_keepalive(&self, keepalive: TcpKeepalive) {
        let _ = sockopt::set_socket_keepalive(&self.fd, true);
        #[cfg(not(target_os = "openbsd"))]
        self.set_keepalive_times(keepalive);
        #[cfg(target_os = "openbsd")]
        let _ = keepalive;
    }

    #[cfg(not(target_os = "openbsd"))]
    fn set_keepalive_times(&self, keepalive: TcpKeepalive) {
        let _ = sockopt::set_tcp_keepidle(&self.fd, keepalive.idle.max(Duration::from_secs(1)));
        let _ = sockopt::set_tcp_keepintvl(&self.fd, keepalive.interval.max(Duration::from_secs(1)));
        if let Some(count) = keepalive.count {
            let _ = sockopt::set_tcp_keepcnt(&self.fd, count.max(1));
        }
    }

    /// Disables Nagle's algorithm, if the system supports that.
    fn without_delay(&self) {
        let _ = sockopt::set_tcp_nodelay(&self.fd, true);
    }

    /// Clears the socket's pending error (`SO_ERROR`).
    ///
    /// # Errors
    /// The pending error, if there was one.
    pub fn take_error(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(&self.fd)??)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// The errors of `getpeername(2)`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let address = net::getpeername(&self.fd)?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(SocketAddr::try_from(address)?)
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The errors of `getsockname(2)`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }

    #[cfg(not(target_vendor = "apple"))]
    #[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
    fn without_sigpipe(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(target_vendor = "apple")]
    fn without_sigpipe(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_nosigpipe(&self.fd, true)?)
    }
}

/// The direction of a socket timeout: receiving or sending.
#[derive(Clone, Copy)]
enum SocketTimeoutKind {
    Receive,
    Send,
}

/// Checks, without waiting and without consuming input, whether an idle connection may be reused.
pub fn peek_idle(fd: impl AsFd) -> IdleSocketState {
    use rustix::io::Errno;
    let mut byte = [0];
    loop {
        return match net::recv(&fd, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => IdleSocketState::Closed,
            Ok(_) => IdleSocketState::HasBytes,
            Err(Errno::AGAIN) => IdleSocketState::Silent,
            Err(Errno::INTR) => continue,
            Err(_) => IdleSocketState::Closed,
        };
    }
}

/// Returns `timeout`, but at least one microsecond, because the system takes 0 as no timeout.
fn at_least_one_tick(timeout: Duration) -> Duration {
    timeout.max(Duration::from_micros(1))
}

fn timeval(time: Duration) -> libc::timeval {
    // 32 bits are enough for 68 years on every system.
    let seconds = i32::try_from(time.as_secs()).unwrap_or(i32::MAX);
    libc::timeval { tv_sec: seconds.into(), tv_usec: time.subsec_micros() as _ }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// Returns true if a socket's current timeout `armed` is so close to `wanted` that it need not be
/// changed. Both are in microseconds; 0 means no timeout.
fn is_close_enough(armed: u64, wanted: u64) -> bool {
    match (armed, wanted) {
        (0, 0) => true,
        (0, _) | (_, 0) => false,
        (armed, wanted) => armed <= wanted.saturating_add(wanted / 16) && armed >= wanted / 2,
    }
}

fn protocol(family: AddressFamily) -> Option<net::Protocol> {
    (family != AddressFamily::UNIX).then_some(ipproto::TCP)
}

#[cfg(not(target_vendor = "apple"))]
fn stream_socket(family: AddressFamily, nonblocking: bool) -> io::Result<OwnedFd> {
    let mut flags = net::SocketFlags::CLOEXEC;
    flags.set(net::SocketFlags::NONBLOCK, nonblocking);
    Ok(net::socket_with(family, SocketType::STREAM, flags, protocol(family))?)
}

#[cfg(target_vendor = "apple")]
fn stream_socket(family: AddressFamily, nonblocking: bool) -> io::Result<OwnedFd> {
    let fd = net::socket(family, SocketType::STREAM, protocol(family))?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    if nonblocking {
        rustix::io::ioctl_fionbio(&fd, true)?;
    }
    Ok(fd)
}

impl TryFrom<TcpStream> for Socket {
    type Error = io::Error;

    fn try_from(stream: TcpStream) -> io::Result<Self> {
        let socket = Self::from_fd(stream.into());
        socket.without_sigpipe()?;
        socket.without_delay();
        Ok(socket)
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.fd
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
