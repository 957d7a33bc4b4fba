//! Closes a connection that has unread input, so that the peer still receives the last output.
//!
//! A socket that is closed with unread input, or that receives input after it was closed, resets
//! the connection. The peer may then lose output that it has not read yet, such as the GOAWAY that
//! gives the reason (RFC 9113 section 5.4.1; RFC 9112 section 9.6 describes the same problem).
//! Therefore, this module first closes only the sending direction. Then it drops further input
//! until the peer closes its direction, or until a limit is reached.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

use super::socket::Socket;

/// The maximum number of input bytes that are read and discarded before the connection is closed.
const MAX_DROPPED_BYTES: usize = 1 << 20;
/// The maximum time to wait until the peer closes its sending direction.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// Closes the sending direction, and discards input until the peer has closed its direction or a
/// limit is reached. Closing a socket with unread input would send a reset, which could destroy the
/// last output.
pub(super) fn drain(socket: &Socket) {
    if socket.shutdown_write().is_err() || socket.set_nonblocking(true).is_err() {
        return;
    }
    let end = Instant::now() + MAX_WAIT;
    let mut buffer = [0; 16 << 10];
    let mut dropped = 0;
    while dropped < MAX_DROPPED_BYTES {
        match socket.recv(&mut buffer) {
            Ok(0) => return,
            Ok(n) => dropped += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && wait_for_input(socket, end) => {}
            Err(_) => return,
        }
    }
}

/// Waits until the socket has input. Returns false if there is none before `end`.
fn wait_for_input(socket: &Socket, end: Instant) -> bool {
    let left = end.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).unwrap_or_default();
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    !left.is_zero() && !matches!(poll(&mut fds, Some(&timeout)), Ok(0))
}
