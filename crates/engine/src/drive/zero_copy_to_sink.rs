//! Zero-copy transfer of body bytes: the kernel moves them from the socket to the sink's
//! descriptor, and they never enter the memory of this process.
//!
//! ```text
//!  socket ──splice──▶ the sink's pipe                       where the sink is a pipe
//!  socket ──splice──▶ a pipe of our own ──splice──▶ file    where it is a file or a device
//!  socket ──recv, MSG_TRUNC──▶ nowhere                      where it is /dev/null
//! ```
//!
//! A [`ZeroCopyMover`] never waits for the socket; [`wait`] does. The sink's descriptor belongs to
//! the program and is never made non-blocking: `SPLICE_F_NONBLOCK` concerns the pipe alone, and the
//! socket, which belongs to the engine, is non-blocking while bytes are moved. (On a blocking
//! socket, the kernel would wait for the server with the pipe locked, and the reader of that pipe
//! could not even read its content.)
//!
//! A refusal by the kernel (`O_APPEND`, some devices) is not an error: [`ZeroCopyStop::Refused`]
//! means that the rest must be copied, and no byte is lost. Systems without `splice` always refuse,
//! and so does a build with the feature `portable`.
//!
//! ```
//! use std::{fs::File, os::fd::AsFd};
//! use haul::drive::zero_copy_to_sink::{ZeroCopyMethod, zero_copy_method_for};
//! let null = File::options().write(true).open("/dev/null")?;
//! let expected = cfg!(linux_calls).then_some(ZeroCopyMethod::Nowhere);
//! assert_eq!(zero_copy_method_for(null.as_fd()), expected);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

pub use sys::{ZeroCopyMover, zero_copy_method_for};

/// The method by which the kernel moves received bytes to the sink's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroCopyMethod {
    /// The descriptor is a pipe: bytes are moved from the socket directly into it.
    Pipe,
    /// The descriptor is a file or a device: bytes go through an intermediate pipe.
    Through,
    /// The descriptor is `/dev/null`: the kernel discards the received bytes.
    Nowhere,
}

/// The result of one [`ZeroCopyMover::step`]: the number of bytes that were moved, and the reason
/// why the step stopped.
#[derive(Debug)]
pub struct ZeroCopyStep {
    /// The number of bytes that have reached the sink's descriptor.
    pub moved: u64,
    /// The reason why the step stopped. `None` if the next step can follow immediately.
    pub stop: Option<ZeroCopyStop>,
}

/// The reasons why a [`ZeroCopyMover::step`] stops.
#[derive(Debug)]
pub enum ZeroCopyStop {
    /// The socket has no input, or the sink's pipe is full. The caller can use [`wait`] to wait
    /// until the next step is possible.
    WouldBlock,
    /// The system cannot move these bytes, or the stream may have ended. The caller must use
    /// ordinary receives and writes for the remaining bytes. A receive also detects the end of the
    /// stream.
    Refused,
    /// Receiving from the socket failed: the connection broke.
    Socket(io::Error),
    /// Writing to the sink's descriptor failed.
    Output(io::Error),
}

/// The reason why a wait for the socket or another descriptor ([`wait`]) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroCopyWaitResult {
    /// The socket or the [`ExtraPollDescriptor`] is ready.
    Ready,
    /// No descriptor became ready for the time `quiet`.
    Quiet,
    /// The deadline has passed.
    Late,
}

/// Returns true if this error of `splice(2)` means that the bytes must be copied: the file system,
/// the kernel or a sandbox (EPERM) cannot move them. This includes EFAULT, which gVisor returns if
/// the sink's pipe is full; in this case, no bytes were taken from the socket.
#[must_use]
#[cfg(unix)]
pub fn requires_copying(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::FAULT)
}

/// Returns true if a pipe has room for more bytes, without waiting.
///
/// # Errors
/// The errors of `poll(2)`.
pub fn has_room(pipe: BorrowedFd<'_>) -> io::Result<bool> {
    poll_descriptors(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::OUT)], Some(Duration::ZERO), None)
}

/// Waits until a pipe has room for more bytes or has lost its reader, and returns true. Returns
/// false if the deadline passes before.
///
/// # Errors
/// The errors of `poll(2)`.
pub fn wait_for_room(pipe: BorrowedFd<'_>, deadline: Option<Instant>) -> io::Result<bool> {
    poll_descriptors(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::OUT)], None, deadline)
}

/// A descriptor to wait for together with a socket.
#[derive(Debug, Clone, Copy)]
pub enum ExtraPollDescriptor<'a> {
    /// The pipe to which the sink writes. The wait ends when the pipe has lost its reader.
    Sink(BorrowedFd<'a>),
    /// The descriptor to which the sink writes, such as a full pipe. The wait ends when the
    /// descriptor accepts bytes or has lost its reader.
    FullOutput(BorrowedFd<'a>),
    /// The descriptor from which an upload reads its content. The wait ends when the descriptor has
    /// more bytes.
    Source(BorrowedFd<'a>),
}

impl<'a> ExtraPollDescriptor<'a> {
    fn poll_fd(self) -> PollFd<'a> {
        match self {
            Self::Sink(pipe) => PollFd::from_borrowed_fd(pipe, PollFlags::empty()),
            Self::FullOutput(output) => PollFd::from_borrowed_fd(output, PollFlags::OUT),
            Self::Source(source) => PollFd::from_borrowed_fd(source, PollFlags::IN),
        }
    }
}

/// Waits until the socket is readable, or also writable if `sends` is true. The wait also ends if
/// one of `extra_descriptors` is ready, after the time `quiet`, or at `deadline`. `None` means that
/// there is no such descriptor or limit.
///
/// # Errors
/// The errors of `poll(2)`.
pub fn wait(
    socket: BorrowedFd<'_>,
    sends: bool,
    extra_descriptors: [Option<ExtraPollDescriptor<'_>>; 2],
    quiet: Option<Duration>,
    deadline: Option<Instant>,
) -> io::Result<ZeroCopyWaitResult> {
    let wanted = if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let socket = PollFd::from_borrowed_fd(socket, wanted);
    let is_ready = match extra_descriptors.map(|extra| extra.map(ExtraPollDescriptor::poll_fd)) {
        [Some(first), Some(second)] => poll_descriptors(&mut [socket, first, second], quiet, deadline)?,
        [Some(extra), None] | [None, Some(extra)] => poll_descriptors(&mut [socket, extra], quiet, deadline)?,
        [None, None] => poll_descriptors(&mut [socket], quiet, deadline)?,
    };
    Ok(match deadline {
        _ if is_ready => ZeroCopyWaitResult::Ready,
        Some(deadline) if deadline <= Instant::now() => ZeroCopyWaitResult::Late,
        _ => ZeroCopyWaitResult::Quiet,
    })
}

/// Polls until a descriptor is ready, but not longer than `quiet` and not beyond `deadline`.
/// Returns false if no descriptor became ready in time.
fn poll_descriptors(fds: &mut [PollFd<'_>], quiet: Option<Duration>, deadline: Option<Instant>) -> io::Result<bool> {
    let quiet = quiet.and_then(|quiet| Instant::now().checked_add(quiet));
    let end = [quiet, deadline].into_iter().flatten().min();
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        // Rounded up, or the last wait would be repeated for nothing until the clock moves on.
        let timeout = left.map(|left| Timespec::try_from(left).unwrap_or_default());
        match poll(fds, timeout.as_ref()) {
            Ok(0) if end.is_none_or(|end| Instant::now() < end) => {}
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(linux_calls)]
mod sys {
    use std::io;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
    use rustix::io::{Errno, read, retry_on_intr, write};
    use rustix::net::{RecvFlags, recv};
    use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

    use super::{ZeroCopyMethod, ZeroCopyStep, ZeroCopyStop, requires_copying};
    use crate::sink::null_device_detection::is_null_device;
    use crate::sink::pipe_capacity::enlarge;

    /// The maximum number of bytes for one call of `splice`. It is larger than the capacity of any
    /// pipe.
    const MAX_SPLICE: u64 = 1 << 30;
    /// The maximum number of received bytes that one system call discards.
    const MAX_DISCARDED: usize = 4 << 20;

    const SPLICE_FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

    /// Returns the method by which the kernel can move bytes to this descriptor; `None` if the
    /// bytes must be copied.
    #[must_use]
    pub fn zero_copy_method_for(output: BorrowedFd<'_>) -> Option<ZeroCopyMethod> {
        let kind = FileType::from_raw_mode(fstat(output).ok()?.st_mode);
        match kind {
            FileType::Fifo => {
                enlarge(output);
                Some(ZeroCopyMethod::Pipe)
            }
            FileType::CharacterDevice if is_null_device(output) => Some(ZeroCopyMethod::Nowhere),
            FileType::CharacterDevice if rustix::termios::isatty(output) => None,
            FileType::RegularFile | FileType::CharacterDevice | FileType::BlockDevice => {
                let appends = fcntl_getfl(output).ok()?.contains(OFlags::APPEND);
                (!appends).then_some(ZeroCopyMethod::Through)
            }
            _ => None,
        }
    }

    /// Moves bytes from sockets to descriptors by the kernel. Each event loop has one mover, which
    /// keeps an intermediate pipe for reuse.
    #[derive(Debug, Default)]
    pub struct ZeroCopyMover {
        pipe: Option<SplicePipe>,
        /// The buffer that is passed to `recv` with `MSG_TRUNC`. The kernel then discards the
        /// received bytes and writes nothing to the buffer, so the system assigns no memory to it.
        untouched: Vec<u8>,
    }

    /// An intermediate pipe between the socket and a file. It is empty between two steps.
    #[derive(Debug)]
    struct SplicePipe {
        read: OwnedFd,
        write: OwnedFd,
    }

    impl ZeroCopyMover {
        /// Makes the kernel move at most `limit` received bytes from the socket to the output.
        pub fn step(
            &mut self,
            socket: BorrowedFd<'_>,
            output: BorrowedFd<'_>,
            target: ZeroCopyMethod,
            limit: u64,
        ) -> ZeroCopyStep {
            match target {
                ZeroCopyMethod::Pipe => step(splice_into_pipe(socket, output, limit).map_err(|stop| match stop {
                    // Reading a socket gives no EPIPE: this is the pipe's.
                    ZeroCopyStop::Socket(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        ZeroCopyStop::Output(error)
                    }
                    stop => stop,
                })),
                ZeroCopyMethod::Through => self.splice_through_pipe(socket, output, limit),
                ZeroCopyMethod::Nowhere => step(self.discard(socket, limit)),
            }
        }

        /// Makes the kernel discard received bytes (tcp(7), `MSG_TRUNC`): at most `limit` bytes,
        /// and at most [`MAX_DISCARDED`] bytes. Returns the number of discarded bytes.
        fn discard(&mut self, socket: BorrowedFd<'_>, limit: u64) -> Result<u64, ZeroCopyStop> {
            if self.untouched.is_empty() {
                self.untouched = vec![0; MAX_DISCARDED];
            }
            let piece = &mut self.untouched[..limit.min(MAX_DISCARDED as u64) as usize];
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            received_bytes(retry_on_intr(|| recv(socket, &mut *piece, flags)).map(|(_, n)| n))
        }

        fn splice_through_pipe(&mut self, socket: BorrowedFd<'_>, output: BorrowedFd<'_>, limit: u64) -> ZeroCopyStep {
            // Taken out: whatever goes wrong below, a pipe that is not empty is not used again.
            let Some(pipe) = self.pipe.take().or_else(|| SplicePipe::new().ok()) else {
                return ZeroCopyStep { moved: 0, stop: Some(ZeroCopyStop::Refused) };
            };
            let taken = match splice_into_pipe(socket, pipe.write.as_fd(), limit) {
                Ok(taken) => taken,
                Err(stop) => {
                    self.pipe = Some(pipe);
                    return step(Err(stop));
                }
            };
            let mut moved = 0;
            while moved < taken {
                match splice(&pipe.read, None, output, None, (taken - moved) as usize, SpliceFlags::MOVE) {
                    Ok(0) => {
                        return ZeroCopyStep {
                            moved,
                            stop: Some(ZeroCopyStop::Output(io::ErrorKind::WriteZero.into())),
                        };
                    }
                    Ok(n) => moved += n as u64,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => await_room(output),
                    Err(error) if requires_copying(error) => {
                        let (copied, error) = pipe.copy_out(output, taken - moved);
                        let stop = error.map_or(ZeroCopyStop::Refused, ZeroCopyStop::Output);
                        return ZeroCopyStep { moved: moved + copied, stop: Some(stop) };
                    }
                    Err(error) => return ZeroCopyStep { moved, stop: Some(ZeroCopyStop::Output(error.into())) },
                }
            }
            self.pipe = Some(pipe);
            ZeroCopyStep { moved, stop: None }
        }
    }

    /// Moves at most `limit` bytes from the socket into a pipe, and returns their number.
    fn splice_into_pipe(socket: BorrowedFd<'_>, pipe: BorrowedFd<'_>, limit: u64) -> Result<u64, ZeroCopyStop> {
        received_bytes(retry_on_intr(|| splice(socket, None, pipe, None, limit.min(MAX_SPLICE) as usize, SPLICE_FLAGS)))
    }

    /// Converts the result of a call that received bytes (a `splice` from the socket, or a receive
    /// that discards bytes) to the number of received bytes, or to the reason to stop.
    fn received_bytes(answer: Result<usize, Errno>) -> Result<u64, ZeroCopyStop> {
        match answer {
            // The end; but urgent data (RFC 9293 section 3.8.5) look like it, so a receive has to
            // say.
            Ok(0) => Err(ZeroCopyStop::Refused),
            Ok(n) => Ok(n as u64),
            Err(Errno::AGAIN) => Err(ZeroCopyStop::WouldBlock),
            Err(error) if requires_copying(error) => Err(ZeroCopyStop::Refused),
            Err(error) => Err(ZeroCopyStop::Socket(error.into())),
        }
    }

    /// Makes a [`ZeroCopyStep`] from the result of one system call. `came` is the number of bytes
    /// that the call moved, or the reason to stop.
    fn step(came: Result<u64, ZeroCopyStop>) -> ZeroCopyStep {
        match came {
            Ok(moved) => ZeroCopyStep { moved, stop: None },
            Err(stop) => ZeroCopyStep { moved: 0, stop: Some(stop) },
        }
    }

    /// Waits until a descriptor is writable. Needed if another process that shares the descriptor
    /// has made it non-blocking.
    fn await_room(output: BorrowedFd<'_>) {
        // A failure shows again in the write.
        let _ = poll(&mut [PollFd::from_borrowed_fd(output, PollFlags::OUT)], None);
    }

    impl SplicePipe {
        fn new() -> io::Result<Self> {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            enlarge(&write);
            Ok(Self { read, write })
        }

        /// Writes the `held` bytes in the intermediate pipe to `output` by copying them. Returns
        /// the number of written bytes, and the error that stopped the copy; `None` if all were
        /// written.
        fn copy_out(&self, output: BorrowedFd<'_>, held: u64) -> (u64, Option<io::Error>) {
            let mut buffer = vec![0; 64 << 10];
            let mut copied = 0;
            while copied < held {
                let most = buffer.len().min((held - copied) as usize);
                let n = match read(&self.read, &mut buffer[..most]) {
                    Ok(n) => n,
                    Err(Errno::INTR) => continue,
                    Err(error) => return (copied, Some(error.into())),
                };
                let mut piece = &buffer[..n];
                while !piece.is_empty() {
                    match write(output, piece) {
                        Ok(0) => return (copied, Some(io::ErrorKind::WriteZero.into())),
                        Ok(n) => {
                            copied += n as u64;
                            piece = &piece[n..];
                        }
                        Err(Errno::INTR) => {}
                        Err(Errno::AGAIN) => await_room(output),
                        Err(error) => return (copied, Some(error.into())),
                    }
                }
            }
            (copied, None)
        }
    }
}

#[cfg(not(linux_calls))]
mod sys {
    use rustix::fd::BorrowedFd;

    use super::{ZeroCopyMethod, ZeroCopyStep, ZeroCopyStop};

    /// Returns `None`: on this system, bytes must always be copied.
    #[must_use]
    pub fn zero_copy_method_for(_output: BorrowedFd<'_>) -> Option<ZeroCopyMethod> {
        None
    }

    /// A mover for systems whose kernel cannot move bytes from a socket to a descriptor. It always
    /// asks the caller to copy them.
    #[derive(Debug, Default)]
    pub struct ZeroCopyMover {}

    impl ZeroCopyMover {
        /// Moves nothing, and reports that the bytes must be copied.
        pub fn step(
            &mut self,
            _socket: BorrowedFd<'_>,
            _output: BorrowedFd<'_>,
            _target: ZeroCopyMethod,
            _limit: u64,
        ) -> ZeroCopyStep {
            ZeroCopyStep { moved: 0, stop: Some(ZeroCopyStop::Refused) }
        }
    }
}
