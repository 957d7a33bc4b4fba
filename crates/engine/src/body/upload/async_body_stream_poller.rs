//! Polls the stream of a request's content in the program's task that awaits the response. The
//! bytes pass through a queue to the event loop that sends the request. Some streams work only in a
//! task of the program's runtime: tokio's files, sockets and timers panic in other threads.
//!
//! ```text
//!  task ──polls the stream──▶ queue of MAX_UNSENT bytes ──▶ read by the loop, woken for each piece
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::one_shot::OneShotSource;
use crate::ignore_poison::IgnorePoison;

/// The size in bytes of the queue of unsent content at which the task stops polling the stream.
const MAX_UNSENT: usize = 128 << 10;
/// The maximum number of consecutive polls of a stream that is always ready. After that many polls,
/// the task yields to other tasks of the program.
const MAX_POLLS_PER_TURN: usize = 32;
/// The maximum number of bytes that one poll of the stream puts into the queue.
const MAX_BYTES_PER_POLL: usize = 64 << 10;

/// A stream of request content, and the writing end of the [`ContentQueue`] for its bytes. The
/// program's task that awaits the response calls [`poll_stream`](Self::poll_stream), which polls
/// the stream and puts the bytes into the queue. If the feeder is dropped before the stream ends,
/// the upload fails.
pub(crate) struct StreamFeeder {
    once: OneShotSource,
    feed_queue: Arc<ContentQueue>,
    buffer: Vec<u8>,
}

/// The queue of request content between the task that polls the stream and the event loop that
/// sends the content.
#[derive(Default)]
pub(super) struct ContentQueue(Mutex<ContentQueueState>);

/// The state of a [`ContentQueue`], protected by its lock.
#[derive(Default)]
struct ContentQueueState {
    pieces: VecDeque<Vec<u8>>,
    /// The number of bytes of the first piece in `pieces` that were already read.
    at: usize,
    bytes: usize,
    /// The end or the error of the stream; `None` before the stream has ended. The reader of the
    /// queue gets this result after all pieces.
    end: Option<io::Result<()>>,
    /// True once the event loop that sends the request has asked for content.
    is_wanted: bool,
    /// True if the writer of the queue is gone: the [`StreamFeeder`] was dropped, or the stream
    /// failed. No more bytes come.
    is_writer_gone: bool,
    /// The waker of the event loop that sends the request; `None` if the loop does not wait for
    /// content.
    reader: Option<Waker>,
    /// The waker of the task that polls the stream, while that task waits until the event loop asks
    /// for content; otherwise `None`.
    feeder: Option<Waker>,
}

impl ContentQueue {
    fn lock(&self) -> MutexGuard<'_, ContentQueueState> {
        self.0.lock().ignore_poison()
    }

    /// Reads the next bytes from the queue into `buffer` without waiting, and returns their number;
    /// 0 means the end of the content. Fails with `WouldBlock` if the queue is empty, and wakes
    /// `waker` when the queue has bytes.
    pub(super) fn read(&self, waker: &Waker, buffer: &mut [u8]) -> io::Result<usize> {
        let mut held = self.lock();
        held.is_wanted = true;
        let n = held.take_bytes(buffer);
        let read = if n > 0 { Ok(n) } else { held.after(waker) };
        let feeder = held.feeder.take();
        drop(held);
        if let Some(feeder) = feeder {
            feeder.wake();
        }
        read
    }
}

impl ContentQueueState {
    fn take_bytes(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(piece) = self.pieces.front()
            && filled < buffer.len()
        {
            let rest = &piece[self.at..];
            let n = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + n].copy_from_slice(&rest[..n]);
            filled += n;
            self.at += n;
            if n == rest.len() {
                self.pieces.pop_front();
                self.at = 0;
            }
        }
        self.bytes -= filled;
        filled
    }

    /// Returns the result of a read from the empty queue: 0 at the end of the content, or the error
    /// of the stream. Otherwise returns `WouldBlock`, and `waker` is woken when bytes arrive.
    fn after(&mut self, waker: &Waker) -> io::Result<usize> {
        match self.end.take() {
            Some(Ok(())) => {
                self.end = Some(Ok(()));
                Ok(0)
            }
            Some(Err(error)) => {
                self.is_writer_gone = true;
                Err(error)
            }
            None if self.is_writer_gone => {
                Err(io::Error::new(io::ErrorKind::BrokenPipe, "nobody gives the content any more"))
            }
            None => {
                self.reader = Some(waker.clone());
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

impl StreamFeeder {
    pub(super) fn new(once: OneShotSource, feed_queue: Arc<ContentQueue>) -> Self {
        Self { once, feed_queue, buffer: Vec::new() }
    }

    /// Polls the stream and puts its bytes into the queue, until the stream is pending or the queue
    /// is full. Returns true if no further call is needed: the stream has ended or failed.
    pub(crate) fn poll_stream(&mut self, context: &mut Context<'_>) -> bool {
        for _ in 0..MAX_POLLS_PER_TURN {
            let mut held = self.feed_queue.lock();
            if held.end.is_some() || held.is_writer_gone {
                return true;
            }
            if !held.is_wanted || held.bytes >= MAX_UNSENT {
                held.feeder = Some(context.waker().clone());
                return false;
            }
            drop(held);
            self.buffer.resize(MAX_BYTES_PER_POLL, 0);
            let Poll::Ready(read) = self.once.poll_stream(context, &mut self.buffer) else { return false };
            let mut held = self.feed_queue.lock();
            match read {
                Ok(0) => held.end = Some(Ok(())),
                Ok(n) => {
                    held.pieces.push_back(self.buffer[..n].to_vec());
                    held.bytes += n;
                }
                Err(error) => held.end = Some(Err(error)),
            }
            let reader = held.reader.take();
            drop(held);
            if let Some(reader) = reader {
                reader.wake();
            }
        }
        context.waker().wake_by_ref();
        false
    }
}

impl Drop for StreamFeeder {
    fn drop(&mut self) {
        let mut held = self.feed_queue.lock();
        held.is_writer_gone = true;
        let reader = held.reader.take();
        drop(held);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl fmt::Debug for StreamFeeder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamFeeder").finish_non_exhaustive()
    }
}
