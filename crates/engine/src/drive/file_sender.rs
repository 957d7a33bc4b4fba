//! Sends bytes of a file to a socket without a copy in this process's memory (`sendfile`).
//!
//! A sender is made once for each upload: only if the process ignores `SIGPIPE`, because `sendfile`
//! has no flag that keeps the kernel from sending that signal when the peer has closed. Systems
//! without this call, and builds with the feature `portable`, have no sender.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

/// The number of remaining bytes from which on the check whether the kernel can send them is worth its
/// cost. Fewer bytes go out together with the head.
pub(crate) const WORTH_SENDING: u64 = 256 << 10;

/// The result of one call.
#[derive(Debug)]
pub(crate) enum FileSendResult {
    /// The number of bytes that were sent; 0 at the end of the file.
    Sent(u64),
    /// The kernel cannot send this file: its bytes must be read. None were lost.
    Refused,
}

/// Sends files by the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSender(());

impl FileSender {
    /// Makes a sender; `None` if files must be read.
    pub(crate) fn new() -> Option<Self> {
        sys::ignores_sigpipe().then_some(Self(()))
    }

    /// Sends at most `length` bytes from the position of `file`, which moves behind them.
    ///
    /// # Errors
    /// The error of the socket; `WouldBlock` if it accepts nothing.
    pub(crate) fn send(self, socket: BorrowedFd<'_>, file: &File, length: u64) -> io::Result<FileSendResult> {
        sys::send(socket, file, length)
    }
}

#[cfg(linux_calls)]
mod sys {
    use std::fs::File;
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::io::Errno;

    use super::FileSendResult;
    use crate::drive::zero_copy::is_not_done;

    /// The largest number of bytes of one call. The driver looks at the time between calls.
    const MOST: u64 = 256 << 10;

    /// The bit of `SIGPIPE` in a mask of signals.
    const SIGPIPE: u64 = 1 << 12;

    /// Returns true if this process ignores `SIGPIPE`.
    pub(super) fn ignores_sigpipe() -> bool {
        /// True once a process of ours was found to ignore it. Programs that change this set it at
        /// their start.
        static IS_KNOWN: AtomicBool = AtomicBool::new(false);
        if IS_KNOWN.load(Ordering::Relaxed) {
            return true;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let ignores = mask & SIGPIPE != 0;
        IS_KNOWN.store(ignores, Ordering::Relaxed);
        ignores
    }

    pub(super) fn send(socket: BorrowedFd<'_>, file: &File, length: u64) -> io::Result<FileSendResult> {
        match rustix::fs::sendfile(socket, file, None, length.min(MOST) as usize) {
            Ok(n) => Ok(FileSendResult::Sent(n as u64)),
            // A read error shows again when the bytes are read.
            Err(Errno::IO | Errno::OVERFLOW | Errno::SPIPE) => Ok(FileSendResult::Refused),
            Err(error) if is_not_done(error) => Ok(FileSendResult::Refused),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(linux_calls))]
mod sys {
    use std::fs::File;
    use std::io;
    use std::os::fd::BorrowedFd;

    use super::FileSendResult;

    pub(super) fn ignores_sigpipe() -> bool {
        false
    }

    pub(super) fn send(_socket: BorrowedFd<'_>, _file: &File, _length: u64) -> io::Result<FileSendResult> {
        Ok(FileSendResult::Refused)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_from_the_position_of_the_file_are_sent() {
        // Rust's programs ignore SIGPIPE from their start.
        assert_eq!(FileSender::new().is_some(), cfg!(linux_calls));
        let Some(sender) = FileSender::new() else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        file.seek(SeekFrom::Start(3)).unwrap();
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let sent = sender.send(socket.as_fd(), &file, 4).unwrap();
        assert!(matches!(sent, FileSendResult::Sent(4)), "{sent:?}");
        assert_eq!(file.stream_position().unwrap(), 7);
        file.seek(SeekFrom::Start(10)).unwrap();
        let at_end = sender.send(socket.as_fd(), &file, 4).unwrap();
        assert!(matches!(at_end, FileSendResult::Sent(0)), "{at_end:?}");
        drop(socket);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"3456");
    }

    #[test]
    fn closed_peer_is_an_error_of_the_socket() {
        let Some(sender) = FileSender::new() else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        file.rewind().unwrap();
        let (socket, peer) = UnixStream::pair().unwrap();
        drop(peer);
        let error = sender.send(socket.as_fd(), &file, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
