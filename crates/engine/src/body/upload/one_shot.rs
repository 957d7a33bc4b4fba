//! Content that can be read once: the output of a reader or a stream.
//!
//! A sender of one request at a time waits for the content: in the read itself, or, if the source
//! has a descriptor, in `poll` together with the server. A loop that serves other transfers must
//! not wait. There a stream wakes the loop itself, or the task that awaits the response polls the
//! stream (`feeder`); a reader runs in a separate thread, a little ahead of what was sent.
//!
//! ```text
//!  reader ──thread──▶ queue of AHEAD pieces ──▶ read by the loop, woken for each piece
//! ```

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::feeder::{FeedQueue, Feeder};
use crate::sync::IgnorePoison;
use crate::threads;

/// Maximum number of bytes that the thread requests from its reader at once.
const PIECE: usize = 64 << 10;
/// The number of pieces that wait to be sent, besides the one being read and the one being sent.
const AHEAD: usize = 2;

/// A reader or a stream that can be read once, shared by the clones of its body.
#[derive(Clone)]
pub struct OneShotSource(Arc<OneShotShared>);

/// The state that the clones of a one-shot source share.
struct OneShotShared {
    origin: OneShotInput,
    is_begun: AtomicBool,
    /// The buffer that receives the stream's output from the task that polls it, if one does.
    feed_queue: Mutex<Option<Arc<FeedQueue>>>,
}

/// The reader, file or stream of a one-shot source.
enum OneShotInput {
    Reader(Mutex<Box<dyn Read + Send>>),
    /// A file, and whether it may have to be waited for (it is not a regular file).
    File(File, bool),
    Stream(Mutex<Box<dyn PollRead>>),
}

impl OneShotSource {
    /// Takes the reader.
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        Self::of(OneShotInput::Reader(Mutex::new(Box::new(reader))))
    }

    /// Takes a pipe, a terminal or a socket. While it gives nothing, the server is still read from
    /// and time limits apply.
    #[must_use]
    pub fn file(file: File) -> Self {
        let is_regular = file.metadata().is_ok_and(|about| about.is_file());
        Self::of(OneShotInput::File(file, !is_regular))
    }

    /// Takes the stream. An error of the stream aborts the request.
    pub fn stream<S, B, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::of(OneShotInput::Stream(Mutex::new(Box::new(StreamReader {
            stream: Box::pin(stream),
            piece: None,
            at: 0,
        }))))
    }

    fn of(origin: OneShotInput) -> Self {
        Self(Arc::new(OneShotShared { origin, is_begun: AtomicBool::new(false), feed_queue: Mutex::default() }))
    }

    /// Returns the feeder for the task that is to poll a stream, if nobody has begun to read it.
    pub(super) fn feeder(&self) -> Option<Feeder> {
        if !matches!(self.0.origin, OneShotInput::Stream(_)) || self.is_begun() {
            return None;
        }
        let mut feed_queue = lock(&self.0.feed_queue);
        if feed_queue.is_some() {
            return None;
        }
        let new = Arc::clone(feed_queue.insert(Arc::default()));
        Some(Feeder::new(self.clone(), new))
    }

    /// Detaches the task, which no longer polls the stream and has not begun.
    pub(super) fn forget_feeder(&self) {
        *lock(&self.0.feed_queue) = None;
    }

    /// Polls for the next bytes of a stream; 0 is the end.
    pub(super) fn poll_stream(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let OneShotInput::Stream(stream) = &self.0.origin else { return Poll::Ready(Ok(0)) };
        // A panic of the program's code fails this request only, not the others on the thread.
        catch_unwind(AssertUnwindSafe(|| lock(stream).poll_read(context, buffer)))
            .unwrap_or_else(|_| Poll::Ready(Err(io::Error::other(ReaderPanicked))))
    }

    /// Returns whether any of the content was consumed.
    pub(super) fn is_begun(&self) -> bool {
        self.0.is_begun.load(Ordering::Acquire)
    }
}

impl fmt::Debug for OneShotSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("is_begun", &self.is_begun()).finish_non_exhaustive()
    }
}

/// The reader of a [`OneShotSource`].
pub(super) struct OneShotReader {
    once: OneShotSource,
    waker: Option<Waker>,
    ahead: Option<ReaderThread>,
    feed_queue: Option<Arc<FeedQueue>>,
}

impl OneShotReader {
    /// Begins to read. With a waker, reads do not wait.
    pub(super) fn new(once: OneShotSource, waker: Option<Waker>) -> Self {
        Self { once, waker, ahead: None, feed_queue: None }
    }

    /// Returns the descriptor to wait for after `WouldBlock` without a waker.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        match &self.once.0.origin {
            OneShotInput::File(file, _) => Some(file.as_fd()),
            OneShotInput::Reader(_) | OneShotInput::Stream(_) => None,
        }
    }

    /// Reads the next bytes; 0 is the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(ahead) = &mut self.ahead {
            return ahead.read(buffer);
        }
        let shared = &*self.once.0;
        shared.is_begun.store(true, Ordering::Release);
        match (&shared.origin, &self.waker) {
            (OneShotInput::Stream(_), Some(waker)) => {
                if self.feed_queue.is_none() {
                    self.feed_queue.clone_from(&lock(&shared.feed_queue));
                }
                if let Some(feed_queue) = &self.feed_queue {
                    return feed_queue.read(waker, buffer);
                }
                return match self.once.poll_stream(&mut Context::from_waker(waker), buffer) {
                    Poll::Ready(read) => read,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                };
            }
            (OneShotInput::Stream(stream), None) => return wait(&mut **lock(stream), buffer),
            (OneShotInput::Reader(reader), None) => return lock(reader).read(buffer).map_err(no_wait),
            (OneShotInput::File(file, true), None) if !has_come(file)? => return Err(io::ErrorKind::WouldBlock.into()),
            // Another reader of a shared descriptor may have taken the bytes. The read is then
            // repeated.
            (OneShotInput::File(file, true), None) => return (&*file).read(buffer),
            (OneShotInput::File(file, false), None) => return (&*file).read(buffer).map_err(no_wait),
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

/// Returns whether a read would not wait, because data or the end has arrived.
fn has_come(file: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

/// Waits until the file has data. Returns `false` if waiting is not possible.
fn waits_for(file: &File) -> bool {
    let waited = retry_on_intr(|| poll(&mut [PollFd::new(file, PollFlags::IN)], None));
    waited.is_ok()
}

/// A source that returns WouldBlock without arranging a wake-up has failed.
fn no_wait(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::Error::other(error) } else { error }
}

/// The content ended early because the program's code that reads it panicked.
#[derive(Debug)]
pub(crate) struct ReaderPanicked;

impl fmt::Display for ReaderPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what reads the content panicked")
    }
}

impl Error for ReaderPanicked {}

/// The pieces that a separate thread reads ahead.
struct ReaderThread {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl ReaderThread {
    /// Begins to read. Returns `None` if no thread can be started.
    fn start(once: &OneShotSource, waker: &Waker) -> Option<Self> {
        let (sender, pieces) = sync_channel(AHEAD);
        let sender = PieceSender { sender: Some(sender), waker: waker.clone() };
        let once = once.clone();
        let read = move || match &once.0.origin {
            OneShotInput::Reader(reader) => read_all(&mut **lock(reader), None, &sender),
            OneShotInput::File(file, _) => read_all(&mut &*file, Some(file), &sender),
            OneShotInput::Stream(_) => {}
        };
        threads::start("haul-read", read).ok()?;
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

/// Sends the reader's output until its end (an empty piece), an error, or until the receiver is
/// gone. If a read would block, waits for data in `file`.
fn read_all(reader: &mut dyn Read, file: Option<&File>, sender: &PieceSender) {
    let mut buffer = vec![0; PIECE];
    loop {
        let piece = match reader.read(&mut buffer) {
            Ok(n) => Ok(buffer[..n].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && file.is_some_and(waits_for) => continue,
            Err(error) => Err(no_wait(error)),
        };
        let is_last = piece.as_ref().map_or(true, Vec::is_empty);
        if !sender.send(piece) || is_last {
            return;
        }
    }
}

/// Sends pieces to the loop and wakes it. If the reader panics, the loop is woken for the end of
/// the pieces.
struct PieceSender {
    sender: Option<SyncSender<io::Result<Vec<u8>>>>,
    waker: Waker,
}

impl PieceSender {
    /// Returns `false` if the receiver is gone.
    fn send(&self, piece: io::Result<Vec<u8>>) -> bool {
        let is_told = self.sender.as_ref().is_some_and(|sender| sender.send(piece).is_ok());
        self.waker.wake_by_ref();
        is_told
    }
}

impl Drop for PieceSender {
    fn drop(&mut self) {
        self.sender = None;
        self.waker.wake_by_ref();
    }
}

/// A source of bytes that are available now or later.
trait PollRead: Send {
    /// Polls for the next bytes; 0 is the end.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
}

/// A stream of pieces, read as bytes.
struct StreamReader<S, B> {
    stream: Pin<Box<S>>,
    piece: Option<B>,
    at: usize,
}

impl<S, B, E> PollRead for StreamReader<S, B>
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
            self.piece = match self.stream.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => Some(piece),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failed(error.into()))),
                Poll::Ready(None) => return Poll::Ready(Ok(0)),
                Poll::Pending => {
                    self.piece = None;
                    return Poll::Pending;
                }
            };
        }
    }
}

fn failed(error: Box<dyn Error + Send + Sync>) -> io::Error {
    error.downcast::<io::Error>().map_or_else(io::Error::other, |error| no_wait(*error))
}

/// Waits for the next bytes in this thread.
fn wait(stream: &mut dyn PollRead, buffer: &mut [u8]) -> io::Result<usize> {
    pollster::block_on(poll_fn(|context| stream.poll_read(context, buffer)))
}
