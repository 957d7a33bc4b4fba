//! The methods for writing to a descriptor without waiting.

use std::fs::File;
use std::io::{self, ErrorKind as IoKind, IoSlice, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, RawFd};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::pipe::PIPE_BUF;

use super::write_error;
use crate::Result;
use crate::net::socket::WITHOUT_SIGPIPE;
use crate::sink::null_device_detection::is_null_device;
use crate::sink::pipe_capacity::enlarge;
use crate::system::file_metadata_and_flags::OwnedFile;

/// The method for writing to a descriptor without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMethod {
    /// A direct write, for a file, a device or a terminal: these accept bytes even if nobody reads
    /// them.
    Direct,
    /// A write with the flag `RWF_NOWAIT`, which fails instead of waiting; for a pipe.
    Nowait,
    /// A call of `poll`, and then a write of a few bytes, for a pipe on an older kernel.
    Poll,
    /// A send with `MSG_DONTWAIT`, for a socket.
    Socket,
    /// No write at all, because the null device discards all bytes.
    Nowhere,
}

impl WriteMethod {
    /// Returns the method for the kind of this file.
    pub(super) fn for_file(file: &File) -> Self {
        match fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) => Self::Nowait,
            Ok(FileType::Socket) => Self::Socket,
            Ok(FileType::CharacterDevice) if is_null_device(file) => Self::Nowhere,
            _ => Self::Direct,
        }
    }
}

/// Duplicates the descriptor of standard output.
///
/// # Errors
/// Standard output is closed, or the process has no free descriptor.
pub(super) fn stdout_file() -> io::Result<OwnedFile> {
    io::stdout().as_fd().try_clone_to_owned()
}

/// Returns true if the file may be a terminal, because it is a character device.
pub(super) fn may_be_terminal(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice)
}

/// Returns the descriptor that an event loop can watch until the output accepts more bytes. On
/// Unix, there always is one.
pub(super) fn descriptor_to_watch(file: &File) -> Option<RawFd> {
    Some(file.as_raw_fd())
}

/// Waits until the file is writable, and returns true. Returns false at the deadline. Without a
/// deadline, waits without a limit.
pub(super) fn wait(file: &File, deadline: Option<Instant>) -> Result<bool> {
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| left.try_into().unwrap_or_default());
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], timeout.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(write_error(error.into())),
        }
    }
}

/// Tries once to write the bytes of `parts`, without waiting. At least one part must not be
/// empty. Returns the number of bytes written, or `None` if the descriptor accepts no bytes
/// now. Before the first `None` for a pipe, tries to enlarge the pipe, and makes `may_enlarge`
/// false.
pub(super) fn try_write(
    mut this: &File,
    mut way: WriteMethod,
    may_enlarge: &AtomicBool,
    parts: &[IoSlice<'_>],
) -> Result<Option<usize>> {
    let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
    loop {
        let outcome = match way {
            WriteMethod::Direct => this.write_vectored(parts),
            WriteMethod::Nowhere => Ok(parts.iter().map(|part| part.len()).sum()),
            WriteMethod::Nowait => write_nowait(this, parts),
            WriteMethod::Socket => send(this, first, SendFlags::DONTWAIT | WITHOUT_SIGPIPE).map_err(io::Error::from),
            WriteMethod::Poll => {
                let mut fds = [PollFd::new(this, PollFlags::OUT)];
                match poll(&mut fds, Some(&rustix::event::Timespec::default())) {
                    Ok(0) => return Ok(None),
                    Ok(_) => {}
                    Err(error) => return Err(write_error(error.into())),
                }
                this.write(&first[..first.len().min(PIPE_BUF)])
            }
        };
        match outcome {
            Ok(0) => return Err(write_error(io::Error::from(IoKind::WriteZero))),
            Ok(n) => return Ok(Some(n)),
            Err(error) if error.kind() == IoKind::Interrupted => {}
            // The pipe is widened only once it is full, since a small body is not worth the
            // call. A refusal is remembered.
            Err(error)
                if error.kind() == IoKind::WouldBlock
                    && way == WriteMethod::Nowait
                    && may_enlarge.swap(false, Ordering::Relaxed)
                    && enlarge(this) => {}
            Err(error) if error.kind() == IoKind::WouldBlock && way != WriteMethod::Direct => return Ok(None),
            // Another process that shares the descriptor made it non-blocking: wait here, as
            // for a file.
            Err(error) if error.kind() == IoKind::WouldBlock => drop(wait(this, None)?),
            Err(error) if way == WriteMethod::Nowait && is_unsupported(&error) => way = WriteMethod::Poll,
            Err(error) => return Err(write_error(error)),
        }
    }
}

/// Writes to a descriptor without waiting, even if the descriptor is in blocking mode. Returns the
/// number of bytes written.
#[cfg(linux_calls)]
fn write_nowait(file: &File, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    use rustix::io::{ReadWriteFlags, pwritev2};
    Ok(pwritev2(file, parts, u64::MAX, ReadWriteFlags::NOWAIT)?)
}

/// Always fails, because only Linux can write without waiting to a descriptor in blocking mode.
#[cfg(not(linux_calls))]
fn write_nowait(_file: &File, _parts: &[IoSlice<'_>]) -> io::Result<usize> {
    Err(Errno::OPNOTSUPP.into())
}

fn is_unsupported(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::SPIPE | Errno::PERM))
}
