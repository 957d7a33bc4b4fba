//! Sends bytes of a file or a pipe to a socket without a copy in this process's memory (`sendfile`,
//! `splice`).
//!
//! Each upload makes one sender, if the process ignores `SIGPIPE`. In any other process, a write to
//! a closed connection would end the process, because these calls have no flag that suppresses the
//! signal. Systems without these calls, and builds with the feature `portable`, have no sender.

use std::fs::File;
use std::io;

use rustix::fd::BorrowedFd;

/// The minimum length in bytes of a file that the kernel sends by `sendfile`. A shorter file is
/// read into memory, and sent in one write with the head of the request.
pub(crate) const MIN_FILE_BYTES: u64 = 256 << 10;

/// The minimum number of bytes that must wait in a pipe so that the kernel sends them directly
/// (`splice`), as one chunk of the request's content. If fewer wait, they are read and copied.
pub(crate) const MIN_PIPE_BYTES: u64 = 16 << 10;

/// The result of one call of [`FileSender::send`] or [`FileSender::send_pipe`].
#[derive(Debug)]
pub(crate) enum FileSendResult {
    /// The number of bytes that were sent; 0 if the file has ended.
    #[cfg_attr(not(linux_calls), expect(dead_code, reason = "without these calls nothing is sent"))]
    Sent(u64),
    /// The kernel cannot send these bytes. The caller must read and send them. No byte was lost.
    Refused,
}

/// Sends files and pipes by `sendfile` and `splice`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSender(());

impl FileSender {
    /// Makes a sender. Returns `None` if the kernel cannot send files for this process, so that the
    /// caller must read and copy them. One reason is that the process does not ignore `SIGPIPE`.
    pub(crate) fn new() -> Option<Self> {
        sys::ignores_sigpipe().then_some(Self(()))
    }

    /// Sends at most `length` bytes from the current position of `file`, and advances the position.
    ///
    /// # Errors
    /// The error of the socket; `WouldBlock` if it accepts nothing.
    pub(crate) fn send(self, socket: BorrowedFd<'_>, file: &File, length: u64) -> io::Result<FileSendResult> {
        sys::send(socket, file, length)
    }

    /// Returns the number of bytes that wait in `pipe`.
    pub(crate) fn bytes_in_pipe(self, pipe: BorrowedFd<'_>) -> u64 {
        sys::waiting(pipe)
    }

    /// Sends at most `length` bytes that wait in `pipe`. Returns [`FileSendResult::Refused`] if no
    /// byte waits there.
    ///
    /// # Errors
    /// The error of the socket; `WouldBlock` if it accepts nothing.
    pub(crate) fn send_pipe(
        self,
        socket: BorrowedFd<'_>,
        pipe: BorrowedFd<'_>,
        length: u64,
    ) -> io::Result<FileSendResult> {
        sys::send_pipe(socket, pipe, length)
    }
}

/// Returns true if `source` is a pipe from which the kernel can send. Also enlarges the pipe to the
/// largest capacity that an unprivileged process may set.
pub(crate) fn is_pipe(source: BorrowedFd<'_>) -> bool {
    sys::is_pipe(source)
}

#[cfg(linux_calls)]
mod sys {
    use std::fs::File;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fd::BorrowedFd;
    use rustix::fs::{FileType, fstat};
    use rustix::io::{Errno, ioctl_fionread};
    use rustix::pipe::{SpliceFlags, splice};

    use super::FileSendResult;
    use crate::drive::zero_copy_to_sink::requires_copying;
    use crate::sink::pipe_capacity::enlarge;

    /// The largest number of bytes that one system call sends. A small number keeps the calls
    /// short: time limits are checked only between two calls.
    const MOST: u64 = 256 << 10;

    /// The bit of `SIGPIPE` in a signal mask.
    const SIGPIPE_BIT: u64 = 1 << 12;

    /// Returns true if this process ignores `SIGPIPE`.
    pub(super) fn ignores_sigpipe() -> bool {
        /// True after a call has found that this process ignores `SIGPIPE`. Later calls use this
        /// result, since programs change the setting only when they start.
        static IS_SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
        if IS_SIGPIPE_IGNORED.load(Ordering::Relaxed) {
            return true;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let ignores = mask & SIGPIPE_BIT != 0;
        IS_SIGPIPE_IGNORED.store(ignores, Ordering::Relaxed);
        ignores
    }

    pub(super) fn send(socket: BorrowedFd<'_>, file: &File, length: u64) -> io::Result<FileSendResult> {
        match rustix::fs::sendfile(socket, file, None, length.min(MOST) as usize) {
            Ok(n) => Ok(FileSendResult::Sent(n as u64)),
            // A read error shows again when the bytes are read.
            Err(Errno::IO | Errno::OVERFLOW | Errno::SPIPE) => Ok(FileSendResult::Refused),
            Err(error) if requires_copying(error) => Ok(FileSendResult::Refused),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_pipe(source: BorrowedFd<'_>) -> bool {
        let is_pipe = fstat(source).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Fifo);
        if is_pipe {
            enlarge(source);
        }
        is_pipe
    }

    pub(super) fn waiting(pipe: BorrowedFd<'_>) -> u64 {
        ioctl_fionread(pipe).unwrap_or(0)
    }

    pub(super) fn send_pipe(socket: BorrowedFd<'_>, pipe: BorrowedFd<'_>, length: u64) -> io::Result<FileSendResult> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        match splice(pipe, None, socket, None, length.min(MOST) as usize, flags) {
            Ok(0) => Ok(FileSendResult::Refused),
            Ok(n) => Ok(FileSendResult::Sent(n as u64)),
            // Another reader of the pipe may have taken the bytes.
            Err(Errno::AGAIN) if waiting(pipe) == 0 => Ok(FileSendResult::Refused),
            Err(error) if requires_copying(error) => Ok(FileSendResult::Refused),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(linux_calls))]
mod sys {
    use std::fs::File;
    use std::io;

    use rustix::fd::BorrowedFd;

    use super::FileSendResult;

    pub(super) fn ignores_sigpipe() -> bool {
        false
    }

    pub(super) fn send(_socket: BorrowedFd<'_>, _file: &File, _length: u64) -> io::Result<FileSendResult> {
        Ok(FileSendResult::Refused)
    }

    pub(super) fn is_pipe(_source: BorrowedFd<'_>) -> bool {
        false
    }

    pub(super) fn waiting(_pipe: BorrowedFd<'_>) -> u64 {
        0
    }

    pub(super) fn send_pipe(
        _socket: BorrowedFd<'_>,
        _pipe: BorrowedFd<'_>,
        _length: u64,
    ) -> io::Result<FileSendResult> {
        Ok(FileSendResult::Refused)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::unix::net::UnixStream;

    use rustix::fd::AsFd;

    use super::*;

    #[test]
    fn file_sender_sends_from_the_file_position() {
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
    fn file_sender_sends_bytes_waiting_in_a_pipe() {
        let Some(sender) = FileSender::new() else { return };
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(is_pipe(reader.as_fd()));
        assert!(!is_pipe(tempfile::tempfile().unwrap().as_fd()));
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let send = |length| sender.send_pipe(socket.as_fd(), reader.as_fd(), length).unwrap();
        assert!(matches!(send(4), FileSendResult::Refused), "nothing waits");
        writer.write_all(b"0123456789").unwrap();
        assert_eq!(sender.bytes_in_pipe(reader.as_fd()), 10);
        assert!(matches!(send(4), FileSendResult::Sent(4)));
        assert_eq!(sender.bytes_in_pipe(reader.as_fd()), 6);
        drop(writer);
        assert!(matches!(send(100), FileSendResult::Sent(6)));
        assert!(matches!(send(100), FileSendResult::Refused), "the pipe has ended");
        drop(socket);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"0123456789");
    }

    #[test]
    fn sending_a_file_to_closed_peer_fails() {
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
