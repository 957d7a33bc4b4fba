//! The buffer of a [`Response`](super::Response)'s body between the driver, which fills it, and the
//! program, which reads it.
//!
//! The driver's side is a sink ([`BodyBufferSink`]); the program's side is a [`BodyBufferReader`].
//! Coded content is buffered as received, and decoded only when the program reads it, since 100 KiB
//! may decode to 100 MiB.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use rustix::fd::BorrowedFd;

use super::ResponseInfo;
use crate::buffer_pool::{KeptBodyBytes, OfferedBodyBytes};
use crate::ignore_poison::IgnorePoison;
use crate::sink::memory::receive_into;
use crate::sink::{ReceivedIntoSink, ResponseForSink, Sink, TransferWaker};
use crate::transfer::TransferOutcome;
use crate::{Error, ErrorKind, Result};

/// The maximum number of body bytes in the buffer of one response. That is enough for two receive
/// calls of the driver, which sends and receives for the transfer.
pub(crate) const BUFFER_LIMIT: u64 = 256 << 10;

/// The maximum announced length, in bytes, of a body for which all memory is allocated before the
/// body arrives. The memory for a longer body grows as it arrives, so that a false length costs
/// nothing.
const MAX_TRUSTED_LENGTH: u64 = 4 << 20;

/// The buffer between the driver, which receives the body, and the program, which reads it.
#[derive(Default)]
struct BodyBufferState {
    pieces: VecDeque<KeptBodyBytes>,
    bytes: u64,
    has_begun: bool,
    /// True if the program already has the response, so that a retry cannot discard it any more.
    is_shown: bool,
    coding: Vec<u8>,
    length: Option<u64>,
    /// The remaining body, collected in one buffer; `None` unless the program asked for the whole
    /// remaining body at once.
    whole: Option<Vec<u8>>,
    /// True if the program does not want the remaining body, so that the driver stops receiving.
    is_given_up: bool,
    /// The waker of the driver, and the token of the transfer to pass to it; `None` unless the
    /// driver waits for room in the buffer.
    driver: Option<(Arc<dyn TransferWaker>, usize)>,
    /// The waker of the program's task that reads the body; `None` unless that task waits for
    /// bytes.
    reader: Option<Waker>,
    /// True if the driver, which receives the response, runs on another thread than the program.
    /// The driver then puts copies of the response head and of the facts about the transfer into
    /// `about`, from which the program takes them.
    is_remote: bool,
    about: Option<Box<ResponseInfo>>,
    end: Option<Box<TransferOutcome>>,
}

/// The result of asking for more bytes of the body without waiting.
pub(crate) enum NextChunk {
    /// The next bytes of the body.
    Piece(KeptBodyBytes),
    /// The transfer has ended with this outcome, and all bytes of the body were read.
    End(Box<TransferOutcome>),
    /// No bytes have arrived yet. The stored waker is woken when some arrive.
    Later,
}

/// The side of the body's buffer that belongs to the driver (the code that receives the response):
/// the sink that puts the body's bytes into the buffer.
pub(crate) struct BodyBufferSink(Arc<Mutex<BodyBufferState>>);

/// The program's side of the body's buffer, from which the program reads the body.
pub(crate) struct BodyBufferReader(Arc<Mutex<BodyBufferState>>);

/// Makes an empty body buffer, and returns its two sides.
pub(crate) fn pair() -> (BodyBufferSink, BodyBufferReader) {
    let held = Arc::new(Mutex::new(BodyBufferState::default()));
    (BodyBufferSink(Arc::clone(&held)), BodyBufferReader(held))
}

fn lock(held: &Mutex<BodyBufferState>) -> MutexGuard<'_, BodyBufferState> {
    held.lock().ignore_poison()
}

/// Wakes the program's task if it waits for bytes. The lock is released first, since waking may run
/// the program's code.
fn wake(mut held: MutexGuard<'_, BodyBufferState>) {
    let reader = held.reader.take();
    drop(held);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl Sink for BodyBufferSink {
    fn takes_encoded(&mut self, coding: &[u8]) -> bool {
        lock(&self.0).coding = coding.to_vec();
        true
    }

    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        let mut held = lock(&self.0);
        held.has_begun = true;
        held.length = begin.length;
        if held.is_remote {
            let (head, target) = (begin.head.clone(), begin.place.clone());
            let (facts, history) = (Box::new(begin.facts.clone()), begin.history.to_vec());
            held.about = Some(Box::new(ResponseInfo { head, target, facts, history, trailers: None }));
        }
        wake(held);
        Ok(())
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let mut held = lock(&self.0);
        // A driver on the program's own thread has no waker, and stops as soon as there are bytes.
        let Some(waker) = waker.filter(|_| held.whole.is_none() && !held.is_given_up) else { return u64::MAX };
        let room = BUFFER_LIMIT.saturating_sub(held.bytes);
        if room == 0 {
            held.driver = Some((Arc::clone(waker), token));
        }
        room
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        let mut held = lock(&self.0);
        if held.is_given_up {
            return Err(Error::new(ErrorKind::Write, "the response is not wanted any more"));
        }
        match &mut held.whole {
            Some(whole) => whole.extend_from_slice(offered.bytes()),
            None => {
                let piece = offered.into_kept_bytes();
                held.bytes += piece.bytes().len() as u64;
                held.pieces.push_back(piece);
                wake(held);
            }
        }
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        receive_into(lock(&self.0).whole.as_mut()?, socket, most)
    }

    fn restart(&mut self) -> bool {
        let mut held = lock(&self.0);
        if held.is_shown {
            return false;
        }
        let (driver, reader, is_remote) = (held.driver.take(), held.reader.take(), held.is_remote);
        *held = BodyBufferState { driver, reader, is_remote, ..BodyBufferState::default() };
        true
    }
}

impl BodyBufferReader {
    /// Returns a function that stores the outcome of the transfer and wakes the reader. If another
    /// thread runs the transfer, that thread must call the function at the end of the transfer.
    pub(crate) fn end_callback(&self) -> impl FnOnce(TransferOutcome) + Send + 'static {
        lock(&self.0).is_remote = true;
        let held = Arc::clone(&self.0);
        move |outcome| {
            let mut held = lock(&held);
            held.end = Some(Box::new(outcome));
            wake(held);
        }
    }

    /// Returns the response if its head has arrived, or the outcome if the transfer has failed.
    /// Before that, returns `None`, and stores `waker`, which is woken when the program should call
    /// this again.
    pub(crate) fn poll_begun(&self, waker: &Waker) -> Option<Result<Box<ResponseInfo>, Box<TransferOutcome>>> {
        let mut held = lock(&self.0);
        if let Some(about) = held.about.take() {
            // The response cannot be discarded for a retry from now on.
            held.is_shown = true;
            return Some(Ok(about));
        }
        if let Some(end) = held.end.take() {
            return Some(Err(end));
        }
        held.reader = Some(waker.clone());
        None
    }

    /// Returns the next bytes of the body, or its end. If no bytes have arrived yet, returns
    /// [`NextChunk::Later`], and stores `waker`, which is woken when the program should call this
    /// again.
    pub(crate) fn poll_next(&self, waker: &Waker) -> NextChunk {
        if let Some(piece) = self.take_piece() {
            return NextChunk::Piece(piece);
        }
        let mut held = lock(&self.0);
        if !held.pieces.is_empty() {
            drop(held);
            return self.poll_next(waker);
        }
        if let Some(end) = held.end.take() {
            return NextChunk::End(end);
        }
        held.reader = Some(waker.clone());
        NextChunk::Later
    }

    /// Records that the program does not want the remaining body. The driver then stops receiving.
    pub(crate) fn abandon(&self) {
        lock(&self.0).is_given_up = true;
    }

    /// Returns true if the head of the response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        lock(&self.0).has_begun
    }

    /// Records that the program has the response, so that a retry cannot discard it any more.
    /// Returns the value of the response's `Content-Encoding`.
    pub(crate) fn commit_response(&self) -> Vec<u8> {
        let mut held = lock(&self.0);
        held.is_shown = true;
        std::mem::take(&mut held.coding)
    }

    /// Returns true if there are bytes in the buffer.
    pub(crate) fn has_bytes(&self) -> bool {
        !lock(&self.0).pieces.is_empty()
    }

    /// Removes the next piece of the body from the buffer, and returns it. Returns `None` if the
    /// buffer is empty.
    pub(crate) fn take_piece(&self) -> Option<KeptBodyBytes> {
        let mut held = lock(&self.0);
        let piece = held.pieces.pop_front()?;
        held.bytes -= piece.bytes().len() as u64;
        let driver = held.driver.take();
        drop(held);
        if let Some((driver, token)) = driver {
            driver.wake(token);
        }
        Some(piece)
    }

    /// Makes the buffer collect the whole remaining body in one allocation. `first` contains bytes
    /// that the program's side has already removed from the buffer, and becomes the beginning of
    /// the collected body.
    pub(crate) fn collect_rest(&self, first: &[u8]) {
        let mut held = lock(&self.0);
        let there = first.len() as u64 + held.bytes;
        let mut whole = Vec::with_capacity(held.length.unwrap_or(0).min(MAX_TRUSTED_LENGTH).max(there) as usize);
        whole.extend_from_slice(first);
        for piece in held.pieces.drain(..) {
            whole.extend_from_slice(piece.bytes());
        }
        held.bytes = 0;
        held.whole = Some(whole);
        let driver = held.driver.take();
        drop(held);
        if let Some((driver, token)) = driver {
            driver.wake(token);
        }
    }

    /// Removes and returns the body that the buffer has collected as one vector since the call of
    /// [`BodyBufferReader::collect_rest`]; empty without such a call.
    pub(crate) fn take_collected(&self) -> Vec<u8> {
        lock(&self.0).whole.take().unwrap_or_default()
    }
}
