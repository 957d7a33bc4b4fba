//! Output to standard output and similar descriptors. Other processes inherit and share such
//! descriptors, so they are never made non-blocking. Still, a full pipe must not block a driver
//! that also serves other transfers.
//!
//! The method for writing without waiting depends on the type of descriptor: `RWF_NOWAIT` for a
//! pipe, `MSG_DONTWAIT` for a socket. If the kernel does not support `RWF_NOWAIT` for pipes (Linux
//! before 6.4, other systems), at most `PIPE_BUF` bytes are written after `poll` has reported the
//! pipe writable; such a write cannot block (pipe(7)). Files, devices and terminals are written
//! directly.
//!
//! Bytes that cannot be written now are kept. The caller gets [`OutputReadiness::Full`], and must
//! write no more until [`DescriptorWriter::flush`] returns [`OutputReadiness::Free`]. Small writes
//! are buffered, so that a thousand small bodies need one system call.
//!
//! ```no_run
//! use haul::sink::descriptor_writer::{DescriptorWriter, OutputReadiness};
//! let mut output = DescriptorWriter::stdout();
//! if output.write(b"hello")? == OutputReadiness::Full {
//!     output.wait(None)?;
//! }
//! output.drain(None)?;
//! # Ok::<(), haul::Error>(())
//! ```

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

#[cfg(unix)]
use rustix::fd::BorrowedFd;
use rustix::fd::RawFd;

use self::nonblocking_write_method::{WriteMethod, may_be_terminal, stdout_file};
use super::{ResponseForSink, Sink, TransferWaker};
use crate::buffer_pool::OfferedBodyBytes;
use crate::system::file_metadata_and_flags::{NULL_DEVICE, OwnedFile};
use crate::{Error, ErrorKind, Result};

#[cfg_attr(windows, path = "descriptor_writer/nonblocking_write_method_windows.rs")]
mod nonblocking_write_method;

/// The result of a write to an output: whether the output accepts more bytes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputReadiness {
    /// The output accepts more bytes.
    Free,
    /// The output is full. The caller must wait until the descriptor of the output is writable, and
    /// then call [`DescriptorWriter::flush`].
    Full,
}

/// The minimum size in bytes of a write that is passed to the system immediately. Shorter writes
/// are collected in a buffer.
const MIN_DIRECT_WRITE: usize = 16 << 10;
/// The number of buffered bytes at which the buffer is written to the descriptor.
const FLUSH_THRESHOLD: usize = 64 << 10;
/// The number of kept bytes above which a [`BlockingOutputSink`] waits for its output, although the
/// driver would wait for it. It is above the flow-control window of a connection. Only decoded
/// content can exceed it.
const MAX_KEPT: usize = 16 << 20;
/// The number of kept bytes above which a [`BlockingOutputSink`] has no credit. With fewer bytes,
/// the peer sends more while the output takes them: an output with a small buffer would otherwise
/// wait for a round trip each time that it is full.
const MAX_KEPT_WITH_CREDIT: usize = 256 << 10;
/// The number of bytes at the beginning of an output that are searched for a NUL byte, as in curl.
/// A NUL means that the content is binary.
const BINARY_CHECK_LENGTH: usize = 2000;

/// A writer to a file descriptor. It never waits if the system can write to this kind of descriptor
/// without waiting.
#[derive(Debug)]
pub struct DescriptorWriter {
    file: File,
    way: WriteMethod,
    /// False once the capacity of the pipe was enlarged, or the system refused that.
    may_enlarge: AtomicBool,
    backlog: Vec<u8>,
    done: usize,
    /// The number of bytes that must still be searched for NUL, if the output is a terminal that
    /// accepts only text; otherwise 0.
    unchecked: usize,
}

impl DescriptorWriter {
    /// Makes a writer to the standard output of this process. If the descriptor of standard output
    /// cannot be duplicated, makes a writer whose writes all fail.
    ///
    /// # Panics
    /// The descriptor cannot be duplicated, and `/dev/null` cannot be opened either.
    #[must_use]
    pub fn stdout() -> Self {
        // A descriptor that is open for reading only makes later writes fail, without a panic here.
        match stdout_file() {
            Ok(file) => Self::new(file),
            Err(_) => Self::new(OwnedFile::from(File::open(NULL_DEVICE).expect("the null device can be opened"))),
        }
    }

    /// Returns true if the output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.way == WriteMethod::Direct && self.file.is_terminal()
    }

    /// Makes a writer to this descriptor. The writer closes the descriptor when it is dropped.
    #[must_use]
    pub fn new(file: OwnedFile) -> Self {
        let file = File::from(file);
        let way = WriteMethod::for_file(&file);
        Self { file, way, may_enlarge: AtomicBool::new(true), backlog: Vec::new(), done: 0, unchecked: 0 }
    }

    /// Makes the writer accept only text if the output is a terminal, since binary content can make
    /// a terminal unusable. If the first 2,000 bytes contain a NUL, writing fails before any byte
    /// is output. By default, all content is accepted.
    #[must_use]
    pub fn refusing_binary_on_terminal(mut self) -> Self {
        // A pipe or a socket is no terminal, which saves the system call.
        let may_be = self.way == WriteMethod::Direct && may_be_terminal(&self.file);
        self.unchecked = if may_be && self.file.is_terminal() { BINARY_CHECK_LENGTH } else { 0 };
        self
    }

    fn check_for_binary(&mut self, bytes: &[u8]) -> Result<()> {
        let first = &bytes[..bytes.len().min(self.unchecked)];
        if first.contains(&0) {
            let message = "binary content is not printed on a terminal: -o FILE saves it, -o - insists";
            return Err(Error::new(ErrorKind::Write, message));
        }
        self.unchecked -= first.len();
        Ok(())
    }

    /// Writes all of `bytes`. Buffers the bytes that the descriptor does not accept now.
    ///
    /// # Errors
    /// [`ErrorKind::Write`], with the operating system's error.
    pub fn write(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.check_for_binary(bytes)?;
        let waiting = self.backlog.len() - self.done;
        if bytes.len() < MIN_DIRECT_WRITE {
            self.backlog.extend_from_slice(bytes);
            return if self.backlog.len() - self.done < FLUSH_THRESHOLD {
                Ok(OutputReadiness::Free)
            } else {
                self.flush()
            };
        }
        let mut written = 0;
        while written < waiting + bytes.len() {
            let first = &self.backlog[(self.done + written).min(self.backlog.len())..];
            let second = &bytes[written.saturating_sub(waiting)..];
            match self.try_write(&[IoSlice::new(first), IoSlice::new(second)])? {
                Some(n) => written += n,
                None => {
                    self.done += written.min(waiting);
                    self.compact();
                    self.backlog.extend_from_slice(&bytes[written.saturating_sub(waiting)..]);
                    return Ok(OutputReadiness::Full);
                }
            }
        }
        self.done = self.backlog.len();
        self.compact();
        Ok(OutputReadiness::Free)
    }

    /// Writes all of the pieces, in one system call if possible. Buffers the bytes that the
    /// descriptor does not accept now.
    ///
    /// # Errors
    /// [`ErrorKind::Write`], with the operating system's error.
    pub fn write_pieces(&mut self, mut pieces: &mut [IoSlice<'_>]) -> Result<OutputReadiness> {
        let small = pieces.iter().map(|piece| piece.len()).sum::<usize>() < MIN_DIRECT_WRITE;
        if small || self.unchecked > 0 {
            return pieces.iter().try_fold(OutputReadiness::Free, |_, piece| self.write(piece));
        }
        if self.flush()? == OutputReadiness::Full {
            pieces.iter().for_each(|piece| self.backlog.extend_from_slice(piece));
            return Ok(OutputReadiness::Full);
        }
        while !pieces.is_empty() {
            match self.try_write(pieces)? {
                Some(n) => IoSlice::advance_slices(&mut pieces, n),
                None => {
                    pieces.iter().for_each(|piece| self.backlog.extend_from_slice(piece));
                    return Ok(OutputReadiness::Full);
                }
            }
        }
        Ok(OutputReadiness::Free)
    }

    /// Writes the buffered bytes, as far as the descriptor accepts them now.
    ///
    /// # Errors
    /// [`ErrorKind::Write`], with the operating system's error.
    pub fn flush(&mut self) -> Result<OutputReadiness> {
        while self.done < self.backlog.len() {
            match self.try_write(&[IoSlice::new(&self.backlog[self.done..])])? {
                Some(n) => self.done += n,
                None => {
                    self.compact();
                    return Ok(OutputReadiness::Full);
                }
            }
        }
        self.compact();
        Ok(OutputReadiness::Free)
    }

    /// Writes all buffered bytes, and waits until they are written.
    ///
    /// # Errors
    /// [`ErrorKind::Write`], or [`ErrorKind::Timeout`] at the deadline.
    pub fn drain(&mut self, deadline: Option<Instant>) -> Result<()> {
        while self.flush()? == OutputReadiness::Full {
            self.wait(deadline)?;
        }
        Ok(())
    }

    /// Returns the number of buffered bytes that are not written yet.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.backlog.len() - self.done
    }

    /// Waits until the descriptor is writable. Without a deadline, waits without a limit.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] at the deadline.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        if nonblocking_write_method::wait(&self.file, deadline)? {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Timeout, "time ran out while the output took nothing"))
        }
    }

    /// Returns the descriptor that an event loop can watch until the output accepts more bytes.
    /// Returns `None` if the output is never full.
    pub(crate) fn descriptor_to_watch(&self) -> Option<RawFd> {
        nonblocking_write_method::descriptor_to_watch(&self.file)
    }

    /// Tries once to write the bytes of `parts`, without waiting. At least one part must not be
    /// empty. Returns the number of bytes written, or `None` if the descriptor accepts no bytes
    /// now.
    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>> {
        nonblocking_write_method::try_write(&self.file, self.way, &self.may_enlarge, parts)
    }

    fn compact(&mut self) {
        if self.done == self.backlog.len() {
            self.backlog.clear();
            self.done = 0;
        } else if self.done >= FLUSH_THRESHOLD.max(self.backlog.len() / 2) {
            self.backlog.drain(..self.done);
            self.done = 0;
        }
    }
}

fn write_error(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Write, "failed to write the output", error)
}

#[cfg(unix)]
impl rustix::fd::AsFd for DescriptorWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A sink that writes one body to a descriptor, and blocks until all of it is written. Use it only
/// on a thread that runs no other transfers.
#[derive(Debug)]
pub struct BlockingOutputSink {
    output: DescriptorWriter,
    deadline: Option<Instant>,
    /// The time at which waiting for the descriptor ends: the deadline of the current attempt or of
    /// the whole output, whichever is earlier. `None` if neither is set.
    until: Option<Instant>,
    written: bool,
    /// True if the driver waits for the descriptor, and the sink keeps the bytes that the
    /// descriptor does not accept.
    keeps_unwritten: bool,
}

impl BlockingOutputSink {
    /// Makes a sink that writes to `output`. It waits at most until `deadline` or until the
    /// deadline of the transfer, whichever is earlier.
    #[must_use]
    pub fn new(output: DescriptorWriter, deadline: Option<Instant>) -> Self {
        Self { output, deadline, until: deadline, written: false, keeps_unwritten: false }
    }

    /// Writes the buffered bytes. Waits until all are written, unless the driver waits for the
    /// descriptor. `readiness` is the result of the latest write: a full output is not tried again.
    fn write_buffered(&mut self, readiness: OutputReadiness) -> Result<()> {
        match readiness {
            _ if !self.keeps_unwritten || self.output.waiting_bytes() > MAX_KEPT => self.output.drain(self.until),
            OutputReadiness::Full => Ok(()),
            OutputReadiness::Free => self.output.flush().map(drop),
        }
    }
}

impl Sink for BlockingOutputSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.until = [self.deadline, begin.deadline].into_iter().flatten().min();
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.written = true;
        // Buffered bytes are written before the next read, which may take long.
        let readiness = self.output.write(offered.bytes())?;
        self.write_buffered(readiness)
    }

    fn keeps_in_memory(&self) -> bool {
        false
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.written = true;
        let readiness = self.output.write_pieces(pieces)?;
        self.write_buffered(readiness)
    }

    fn credit(&mut self, _: Option<&Arc<dyn TransferWaker>>, _: usize) -> u64 {
        if self.keeps_unwritten && self.output.waiting_bytes() > MAX_KEPT_WITH_CREDIT { 0 } else { u64::MAX }
    }

    fn keep_unwritten(&mut self, keeps: bool) {
        self.keeps_unwritten = keeps;
    }

    #[cfg(unix)]
    fn full_output(&mut self) -> Option<BorrowedFd<'_>> {
        use rustix::fd::AsFd;

        (self.output.waiting_bytes() > 0).then(|| self.output.as_fd())
    }

    fn write_kept(&mut self) -> Result<()> {
        if self.keeps_unwritten { self.output.flush().map(drop) } else { self.output.drain(self.until) }
    }

    #[cfg(unix)]
    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        use rustix::fd::AsFd;

        (self.output.waiting_bytes() == 0).then(|| self.output.as_fd())
    }

    fn moved(&mut self, bytes: u64) {
        self.written |= bytes > 0;
    }

    fn restart(&mut self) -> bool {
        !self.written
    }

    fn finish(&mut self) -> Result<()> {
        self.output.drain(self.until)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn write_to_full_pipe_keeps_the_rest_without_blocking() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = DescriptorWriter::new(writer.into());
        let piece: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut pieces = 0;
        loop {
            pieces += 1;
            if output.write(&piece).unwrap() == OutputReadiness::Full {
                break;
            }
        }
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        output.drain(None).unwrap();
        drop(output);
        assert_eq!(reading.join().unwrap(), piece.repeat(pieces));
    }

    #[test]
    fn pipe_without_rwf_nowait_never_blocks() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = DescriptorWriter { way: WriteMethod::Poll, ..DescriptorWriter::new(writer.into()) };
        while output.write(&[7; 50_000]).unwrap() == OutputReadiness::Free {}
        let mut first = [0; 30_000];
        reader.read_exact(&mut first).unwrap();
        output.flush().unwrap();
        assert!(first.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn written_pieces_keep_their_order_in_a_full_pipe() {
        for way in [WriteMethod::Nowait, WriteMethod::Poll, WriteMethod::Direct] {
            let (mut reader, writer) = io::pipe().unwrap();
            let reading = std::thread::spawn(move || {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).unwrap();
                all
            });
            let mut output = DescriptorWriter { way, ..DescriptorWriter::new(writer.into()) };
            let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
            output.write(&bytes[..7]).unwrap();
            let mut pieces: Vec<_> = bytes[7..].chunks(16_401).map(IoSlice::new).collect();
            output.write_pieces(&mut pieces).unwrap();
            output.write_pieces(&mut [IoSlice::new(b"th"), IoSlice::new(b""), IoSlice::new(b"e end")]).unwrap();
            output.drain(None).unwrap();
            drop(output);
            assert_eq!(reading.join().unwrap(), [&bytes[..], b"the end"].concat());
        }
    }

    #[cfg(unix)]
    #[test]
    fn sink_of_a_full_pipe_keeps_bytes_without_credit() {
        for way in [WriteMethod::Nowait, WriteMethod::Poll] {
            let (mut reader, writer) = io::pipe().unwrap();
            let output = DescriptorWriter { way, ..DescriptorWriter::new(writer.into()) };
            let mut sink = BlockingOutputSink::new(output, None);
            sink.keep_unwritten(true);
            let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
            sink.bytes(OfferedBodyBytes::borrowed(&bytes)).unwrap();
            assert_eq!((sink.credit(None, 0), sink.full_output().is_some()), (0, true), "{way:?}");
            let reading = std::thread::spawn(move || {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).unwrap();
                all
            });
            while sink.full_output().is_some() {
                sink.output.wait(None).unwrap();
                sink.write_kept().unwrap();
            }
            assert_eq!(sink.credit(None, 0), u64::MAX, "{way:?}");
            drop(sink);
            assert!(reading.join().unwrap() == bytes, "{way:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn few_kept_bytes_leave_credit() {
        let (_reader, writer) = io::pipe().unwrap();
        let output = DescriptorWriter { way: WriteMethod::Poll, ..DescriptorWriter::new(writer.into()) };
        let mut sink = BlockingOutputSink::new(output, None);
        sink.keep_unwritten(true);
        sink.bytes(OfferedBodyBytes::borrowed(&[7; 200_000])).unwrap();
        assert_eq!((sink.credit(None, 0), sink.full_output().is_some()), (u64::MAX, true));
        sink.bytes(OfferedBodyBytes::borrowed(&[7; 200_000])).unwrap();
        assert_eq!((sink.credit(None, 0), sink.full_output().is_some()), (0, true));
    }

    #[test]
    fn kept_bytes_of_a_slow_reader_stay_few() {
        let (mut reader, writer) = io::pipe().unwrap();
        let output = DescriptorWriter { way: WriteMethod::Poll, ..DescriptorWriter::new(writer.into()) };
        let mut sink = BlockingOutputSink::new(output, None);
        sink.keep_unwritten(true);
        let (piece, mut read) = ([7; 50_000], [0; 50_000]);
        while sink.full_output().is_none() {
            sink.pieces(&mut [IoSlice::new(&piece)]).unwrap();
        }
        for _ in 0..100 {
            sink.pieces(&mut [IoSlice::new(&piece)]).unwrap();
            reader.read_exact(&mut read).unwrap();
            sink.write_kept().unwrap();
        }
        assert!(sink.full_output().is_some() && sink.output.backlog.len() < 1 << 20, "{}", sink.output.backlog.len());
    }

    #[cfg(linux_calls)]
    #[test]
    fn pipe_is_enlarged_at_most_once() {
        use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

        let (_reader, writer) = io::pipe().unwrap();
        let mut output = DescriptorWriter::new(writer.into());
        while output.write(&[7; 50_000]).unwrap() == OutputReadiness::Free {}
        let (_reader, writer) = io::pipe().unwrap();
        output.file = File::from(rustix::fd::OwnedFd::from(writer));
        let size = fcntl_setpipe_size(&output.file, 1 << 16).unwrap();
        while output.write(&[7; 50_000]).unwrap() == OutputReadiness::Free {}
        assert_eq!(fcntl_getpipe_size(&output.file).unwrap(), size);
    }

    #[test]
    fn small_writes_are_buffered_until_flush() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = DescriptorWriter::new(writer.into());
        for _ in 0..100 {
            output.write(b"0123456789").unwrap();
        }
        assert_eq!(rustix::io::ioctl_fionread(&reader).unwrap(), 0);
        output.flush().unwrap();
        assert_eq!(rustix::io::ioctl_fionread(&reader).unwrap(), 1000);
        reader.read_exact(&mut [0; 1000]).unwrap();
    }

    #[test]
    fn closed_reader_causes_a_write_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut output = DescriptorWriter::new(writer.into());
        output.write(b"x").unwrap();
        let error = output.flush().unwrap_err();
        assert_eq!(error.exit_code(), 23);
        assert_eq!(error.io_source().unwrap().kind(), io::ErrorKind::BrokenPipe);
    }
}
