//! Content that can be read once: the output of a reader or a stream.
//!
//! A thread that sends one request at a time waits for the content: in the read itself, or, if the
//! source has a descriptor, in `poll` together with the server's socket. An event loop serves other
//! transfers and must not wait. A stream wakes the event loop, or is polled by the task that awaits
//! the response (`async_body_stream_poller`). A reader is read a little ahead by a separate thread.
//!
//! ```text
//!  reader ──thread──▶ queue of PIECES_AHEAD ──▶ read by the loop, woken for each piece
//! ```

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::fd::AsFd;
use rustix::fd::BorrowedFd;
#[cfg(unix)]
use rustix::io::retry_on_intr;

use super::async_body_stream_poller::{ContentQueue, StreamFeeder};
use crate::ignore_poison::IgnorePoison;
use crate::spawn_with_signals_blocked;

/// The maximum number of bytes that the reading thread requests from its reader in one call.
const MAX_READ: usize = 64 << 10;
/// The number of pieces that the reading thread reads ahead of the sender. The piece being read and
/// the piece being sent are not counted.
const PIECES_AHEAD: usize = 2;

/// A source of content that can be read once: a reader, a file or a stream. All clones of a
/// [`RequestBody`](super::RequestBody) share one source. The first upload that reads from the
/// source claims it. All other uploads fail.
#[derive(Clone)]
pub struct OneShotSource {
    state: Arc<OneShotSourceState>,
    /// The queue through which the program's task passes the bytes of a stream to the event loop;
    /// `None` if no such task polls the stream. Each request has its own queue.
    feed_queue: Option<Arc<ContentQueue>>,
}

/// The state that the clones of a [`OneShotSource`] share.
struct OneShotSourceState {
    origin: OneShotInput,
    /// True once an upload has claimed the content.
    is_begun: AtomicBool,
}

/// The input of a [`OneShotSource`], which can be read once: a reader, a file or a stream.
enum OneShotInput {
    Reader(Mutex<Box<dyn Read + Send>>),
    /// A file. The `bool` is true if reads may wait, because the file is a pipe, a terminal or a
    /// socket.
    File(File, bool),
    Stream(Mutex<Box<dyn AsyncByteSource>>),
}

impl OneShotSource {
    /// Makes a source that reads its content from `reader`.
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        Self::from_input(OneShotInput::Reader(Mutex::new(Box::new(reader))))
    }

    /// Makes a source that reads from a file, which may be a pipe, a terminal or a socket. While no
    /// data arrives from the file, haul can still receive the response, and time limits apply. On
    /// Windows, a blocking request waits for the data instead.
    #[must_use]
    pub fn file(file: File) -> Self {
        // Windows cannot tell whether a pipe has data, so reads wait, or another thread reads.
        let is_regular = cfg!(windows) || file.metadata().is_ok_and(|about| about.is_file());
        Self::from_input(OneShotInput::File(file, !is_regular))
    }

    /// Makes a source that polls a stream. An error of the stream aborts the request.
    pub fn stream<S, B, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::from_input(OneShotInput::Stream(Mutex::new(Box::new(PieceStreamReader {
            stream: Box::pin(stream),
            state: PieceStreamState::Open,
            piece: None,
            at: 0,
        }))))
    }

    fn from_input(origin: OneShotInput) -> Self {
        Self { state: Arc::new(OneShotSourceState { origin, is_begun: AtomicBool::new(false) }), feed_queue: None }
    }

    /// Makes a copy of the source for one request, and a feeder, with which a task of the program
    /// polls the stream for that request. Returns `None` if reading has begun, or if the source is
    /// not a stream.
    pub(super) fn with_feeder(&self) -> Option<(Self, StreamFeeder)> {
        if !matches!(self.state.origin, OneShotInput::Stream(_)) || self.is_begun() {
            return None;
        }
        let feed_queue = Arc::<ContentQueue>::default();
        let feeder = StreamFeeder::new(self.clone(), Arc::clone(&feed_queue));
        Some((Self { state: Arc::clone(&self.state), feed_queue: Some(feed_queue) }, feeder))
    }

    /// Polls the stream for its next bytes and copies them to `buffer`. Returns their number; 0 at
    /// the end of the stream.
    pub(super) fn poll_stream(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let OneShotInput::Stream(stream) = &self.state.origin else { return Poll::Ready(Ok(0)) };
        // A panic of the program's code fails this request only, not the others on the thread.
        catch_unwind(AssertUnwindSafe(|| lock(stream).poll_read(context, buffer)))
            .unwrap_or_else(|_| Poll::Ready(Err(io::Error::other(ReaderPanicked))))
    }

    /// Returns true if any of the content was read. The content can then no longer be sent from the
    /// beginning.
    pub(super) fn is_begun(&self) -> bool {
        self.state.is_begun.load(Ordering::Acquire)
    }

    /// Claims the content for one upload.
    ///
    /// # Errors
    /// [`ContentClaimed`] if another upload has claimed the content.
    fn claim(&self) -> io::Result<()> {
        if self.state.is_begun.swap(true, Ordering::AcqRel) { Err(io::Error::other(ContentClaimed)) } else { Ok(()) }
    }
}

impl fmt::Debug for OneShotSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("is_begun", &self.is_begun()).finish_non_exhaustive()
    }
}

/// A reader of content that can be read once (a [`OneShotSource`]), for one upload.
pub(super) struct OneShotReader {
    once: OneShotSource,
    /// True once this reader has claimed the content.
    is_mine: bool,
    waker: Option<Waker>,
    ahead: Option<ReaderThread>,
}

impl OneShotReader {
    /// Makes a reader of the content of `once`. With `waker`, a read that finds no bytes returns
    /// `WouldBlock`, and `waker` is woken when bytes may have arrived. Without `waker`, a read
    /// waits for bytes. On Unix, a read of a pipe, a terminal or a socket never waits: without
    /// `waker`, the caller polls the descriptor [`source`](Self::source) after `WouldBlock`.
    pub(super) fn new(once: OneShotSource, waker: Option<Waker>) -> Self {
        Self { once, is_mine: false, waker, ahead: None }
    }

    /// Returns the descriptor of the source's file. If the reader was made without a waker, the
    /// caller polls this descriptor after a read has returned `WouldBlock`. Returns `None` if the
    /// source is not a file, and always on Windows.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        match &self.once.state.origin {
            #[cfg(unix)]
            OneShotInput::File(file, _) => Some(file.as_fd()),
            #[cfg(windows)]
            OneShotInput::File(..) => None,
            OneShotInput::Reader(_) | OneShotInput::Stream(_) => None,
        }
    }

    /// Returns the descriptor of the source if it is a pipe, terminal or socket that the calling
    /// thread reads directly. The caller may take bytes from it. Returns `None` if the source is of
    /// another kind, or if another thread reads it.
    ///
    /// # Errors
    /// [`ContentClaimed`] if another upload has claimed the content.
    pub(super) fn pipe(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        let is_direct = self.waker.is_none() && self.ahead.is_none();
        if !is_direct || !matches!(self.once.state.origin, OneShotInput::File(_, true)) {
            return Ok(None);
        }
        self.claim()?;
        Ok(self.source())
    }

    /// Claims the content for this upload, unless it has done so.
    fn claim(&mut self) -> io::Result<()> {
        if !self.is_mine {
            self.once.claim()?;
            self.is_mine = true;
        }
        Ok(())
    }

    /// Reads the next bytes of the content into `buffer`, and returns their number; 0 means the
    /// end.
    ///
    /// # Errors
    /// The error of the source, or [`ContentClaimed`] if another upload has claimed the content.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(ahead) = &mut self.ahead {
            return ahead.read(buffer);
        }
        self.claim()?;
        let shared = &*self.once.state;
        match (&shared.origin, &self.waker) {
            (OneShotInput::Stream(_), Some(waker)) => {
                if let Some(feed_queue) = &self.once.feed_queue {
                    return feed_queue.read(waker, buffer);
                }
                return match self.once.poll_stream(&mut Context::from_waker(waker), buffer) {
                    Poll::Ready(read) => read,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                };
            }
            (OneShotInput::Stream(stream), None) => return read_blocking(&mut **lock(stream), buffer),
            (OneShotInput::Reader(reader), None) => return lock(reader).read(buffer).map_err(would_block_as_failure),
            (OneShotInput::File(file, true), None) if !is_readable(file)? => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // Another reader of a shared descriptor may have taken the bytes. The read is then
            // repeated.
            (OneShotInput::File(file, true), None) => return (&*file).read(buffer),
            (OneShotInput::File(file, false), None) => return (&*file).read(buffer).map_err(would_block_as_failure),
            (OneShotInput::Reader(_) | OneShotInput::File(..), Some(_)) => {}
        }
        self.ahead = self.waker.as_ref().and_then(|waker| ReaderThread::start(&self.once, waker));
        if self.ahead.is_none() {
            // No thread can be started, so the read waits here.
            self.waker = None;
        }
        self.read(buffer)
    }
}

fn lock<T>(origin: &Mutex<T>) -> MutexGuard<'_, T> {
    origin.lock().ignore_poison()
}

/// Returns true if a read of `file` would not wait, because data or the end of the file has
/// arrived.
#[cfg(unix)]
fn is_readable(file: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

/// Returns true without a check, because Windows cannot tell whether a pipe has data. The read that
/// follows waits for the data.
#[cfg(windows)]
fn is_readable(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// Returns false without waiting, because Windows can wait for sockets only, not for files.
#[cfg(windows)]
fn wait_readable(_file: &File) -> bool {
    false
}

/// Waits until `file` has data to read. Returns false if waiting is not possible.
#[cfg(unix)]
fn wait_readable(file: &File) -> bool {
    let waited = retry_on_intr(|| poll(&mut [PollFd::new(file, PollFlags::IN)], None));
    waited.is_ok()
}

/// If `error` is `WouldBlock`, returns another error instead: the reader has no descriptor to poll,
/// so the sender would wait for ever. Returns any other error unchanged.
fn would_block_as_failure(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::Error::other(error) } else { error }
}

/// The error for content that can be read only once, and that another upload has claimed.
#[derive(Debug)]
pub(crate) struct ContentClaimed;

impl fmt::Display for ContentClaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content was read once already and cannot be sent again")
    }
}

impl Error for ContentClaimed {}

/// The error for content that broke off because the program's code panicked while it produced the
/// content.
#[derive(Debug)]
pub(crate) struct ReaderPanicked;

impl fmt::Display for ReaderPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what reads the content panicked")
    }
}

impl Error for ReaderPanicked {}

/// A thread that reads the content from a reader that may block. The event loop takes the pieces
/// that have been read and sends them, so that it never waits for the reader.
struct ReaderThread {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl ReaderThread {
    /// Starts the thread that reads the content of `once`. Returns `None` if no thread can be
    /// started.
    fn start(once: &OneShotSource, waker: &Waker) -> Option<Self> {
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        let sender = ReaderThreadSender { sender: Some(sender), waker: waker.clone() };
        let once = once.clone();
        let read = move || match &once.state.origin {
            OneShotInput::Reader(reader) => read_all(&mut **lock(reader), None, &sender),
            OneShotInput::File(file, _) => read_all(&mut &*file, Some(file), &sender),
            OneShotInput::Stream(_) => {}
        };
        spawn_with_signals_blocked::start("haul-read", read).ok()?;
        Some(Self { pieces, piece: Vec::new(), at: 0 })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            (self.piece, self.at) = match self.pieces.try_recv() {
                Ok(piece) => (piece?, 0),
                Err(TryRecvError::Empty) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryRecvError::Disconnected) => return Err(io::Error::other(ReaderPanicked)),
            };
        }
        let n = buffer.len().min(self.piece.len() - self.at);
        buffer[..n].copy_from_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Sends the output of `reader` to the event loop in pieces, until an error or the end (sent as an
/// empty piece), or until the receiver is dropped. `file` is the file that `reader` reads, if any.
/// If a read would block, waits until `file` has data; without a file, sends an error.
fn read_all(reader: &mut dyn Read, file: Option<&File>, sender: &ReaderThreadSender) {
    let mut buffer = vec![0; MAX_READ];
    loop {
        let piece = match reader.read(&mut buffer) {
            Ok(n) => Ok(buffer[..n].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && file.is_some_and(wait_readable) => continue,
            Err(error) => Err(would_block_as_failure(error)),
        };
        let is_last = piece.as_ref().map_or(true, Vec::is_empty);
        if !sender.send(piece) || is_last {
            return;
        }
    }
}

/// The reading thread's end of the queue of pieces. It sends pieces of content to the event loop,
/// and wakes the loop. If it is dropped, even by a panic of the reader, the loop is woken and
/// notices that no more pieces come.
struct ReaderThreadSender {
    sender: Option<SyncSender<io::Result<Vec<u8>>>>,
    waker: Waker,
}

impl ReaderThreadSender {
    /// Sends a piece. Returns false if the receiver was dropped.
    fn send(&self, piece: io::Result<Vec<u8>>) -> bool {
        let is_told = self.sender.as_ref().is_some_and(|sender| sender.send(piece).is_ok());
        self.waker.wake_by_ref();
        is_told
    }
}

impl Drop for ReaderThreadSender {
    fn drop(&mut self) {
        self.sender = None;
        self.waker.wake_by_ref();
    }
}

/// An asynchronous source of content bytes: a [`Stream`] of pieces, polled as a stream of bytes.
trait AsyncByteSource: Send {
    /// Polls for the next bytes and copies them to `buffer`. Returns their number; 0 at the end.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
}

/// Reads the bytes of a stream of pieces. Stores the rest of a piece that did not fit into the
/// buffer of a read.
struct PieceStreamReader<S, B> {
    stream: Pin<Box<S>>,
    state: PieceStreamState,
    piece: Option<B>,
    at: usize,
}

/// The state of a stream. A stream that is not open must not be polled again.
#[derive(Clone, Copy)]
enum PieceStreamState {
    Open,
    Ended,
    Failed,
}

impl<S, B, E> AsyncByteSource for PieceStreamReader<S, B>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: AsRef<[u8]> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let rest = self.piece.as_ref().map_or(&[][..], |piece| &piece.as_ref()[self.at..]);
            if !rest.is_empty() {
                let n = buffer.len().min(rest.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                self.at += n;
                return Poll::Ready(Ok(n));
            }
            self.at = 0;
            match self.state {
                PieceStreamState::Open => {}
                PieceStreamState::Ended => return Poll::Ready(Ok(0)),
                PieceStreamState::Failed => return Poll::Ready(Err(io::Error::other("the stream has failed"))),
            }
            self.piece = match self.stream.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => Some(piece),
                Poll::Ready(Some(Err(error))) => {
                    (self.state, self.piece) = (PieceStreamState::Failed, None);
                    return Poll::Ready(Err(stream_error(error.into())));
                }
                Poll::Ready(None) => {
                    (self.state, self.piece) = (PieceStreamState::Ended, None);
                    return Poll::Ready(Ok(0));
                }
                Poll::Pending => {
                    self.piece = None;
                    return Poll::Pending;
                }
            };
        }
    }
}

fn stream_error(error: Box<dyn Error + Send + Sync>) -> io::Error {
    error.downcast::<io::Error>().map_or_else(io::Error::other, |error| would_block_as_failure(*error))
}

/// Reads the next bytes of `stream` into `buffer`, and returns their number; 0 means the end.
/// Blocks the current thread until there are bytes.
fn read_blocking(stream: &mut dyn AsyncByteSource, buffer: &mut [u8]) -> io::Result<usize> {
    pollster::block_on(poll_fn(|context| stream.poll_read(context, buffer)))
}
