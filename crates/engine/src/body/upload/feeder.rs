//! Polls the stream of a request's content in the program's task while the task awaits the
//! response. Some streams work only in a task: tokio's files, sockets and timers panic in other
//! threads.
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

/// The number of unsent bytes at which the task stops polling the stream.
const MAX_UNSENT: usize = 128 << 10;
/// The maximum number of consecutive polls of a stream that is always ready. After these, the task
/// yields.
const TURN: usize = 32;
/// The maximum number of bytes that one poll puts into the queue.
const PIECE: usize = 64 << 10;

/// The task's side of the queue, which puts in the stream's bytes. Dropping it ends the content.
pub(crate) struct ContentFeeder {
    once: OneShotSource,
    feed_queue: Arc<ContentQueue>,
    buffer: Vec<u8>,
}

/// The queue of content between the task that polls a stream and the loop that sends.
#[derive(Default)]
pub(super) struct ContentQueue(Mutex<ContentQueueState>);

/// The state of a [`ContentQueue`], protected by its lock.
#[derive(Default)]
struct ContentQueueState {
    pieces: VecDeque<Vec<u8>>,
    /// The number of bytes already taken from the first piece.
    at: usize,
    bytes: usize,
    /// The end or the error of the stream. It applies after all pieces in the queue.
    end: Option<io::Result<()>>,
    /// True if the sending loop has asked for content.
    is_wanted: bool,
    /// True if the [`ContentFeeder`] was dropped, so no more bytes come.
    is_left: bool,
    /// The waker of the sending loop, if it waits for content.
    reader: Option<Waker>,
    /// The waker of the task, if it waits to be asked for content.
    feeder: Option<Waker>,
}

impl ContentQueue {
    fn lock(&self) -> MutexGuard<'_, ContentQueueState> {
        self.0.lock().ignore_poison()
    }

    /// Reads the next bytes from the queue without waiting, and returns their number; 0 means the
    /// end.
    pub(super) fn read(&self, waker: &Waker, buffer: &mut [u8]) -> io::Result<usize> {
        let mut held = self.lock();
        held.is_wanted = true;
        let n = held.take(buffer);
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
    fn take(&mut self, buffer: &mut [u8]) -> usize {
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

    /// Returns the result of a read when the queue is empty: the end, an error, or `WouldBlock`.
    fn after(&mut self, waker: &Waker) -> io::Result<usize> {
        match self.end.take() {
            Some(Ok(())) => {
                self.end = Some(Ok(()));
                Ok(0)
            }
            Some(Err(error)) => {
                self.is_left = true;
                Err(error)
            }
            None if self.is_left => Err(io::Error::new(io::ErrorKind::BrokenPipe, "nobody gives the content any more")),
            None => {
                self.reader = Some(waker.clone());
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

impl ContentFeeder {
    pub(super) fn new(once: OneShotSource, feed_queue: Arc<ContentQueue>) -> Self {
        Self { once, feed_queue, buffer: Vec::new() }
    }

    /// Polls the stream until it is pending or the queue is full. Returns true if the stream has
    /// ended.
    pub(crate) fn feed(&mut self, context: &mut Context<'_>) -> bool {
        for _ in 0..TURN {
            let mut held = self.feed_queue.lock();
            if held.end.is_some() || held.is_left {
                return true;
            }
            if !held.is_wanted || held.bytes >= MAX_UNSENT {
                held.feeder = Some(context.waker().clone());
                return false;
            }
            drop(held);
            self.buffer.resize(PIECE, 0);
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

impl Drop for ContentFeeder {
    fn drop(&mut self) {
        let mut held = self.feed_queue.lock();
        held.is_left = true;
        let (reader, is_wanted) = (held.reader.take(), held.is_wanted);
        drop(held);
        if !is_wanted {
            // No byte was used, so another request may send the stream.
            self.once.forget_feeder();
        }
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl fmt::Debug for ContentFeeder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentFeeder").finish_non_exhaustive()
    }
}
