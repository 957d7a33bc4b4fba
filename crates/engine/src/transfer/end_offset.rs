//! The moving end of a transfer: the byte at which another connection's part begins. The transfer
//! stops there although its response continues.
//!
//! The end is tentative at first: the transfer waits there. It is settled once the other part has
//! proved to arrive; the transfer is over then. It is lifted if the part does not arrive, and the
//! transfer has lost nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sink::TransferWaker;
use crate::sync::IgnorePoison;

/// The end that a split sets for its first stream, and the position of that stream.
#[derive(Default)]
pub(crate) struct EndOffset {
    end: AtomicU64,
    is_settled: AtomicBool,
    /// The position of the transfer.
    position: AtomicU64,
    waiting: Mutex<Option<(Arc<dyn TransferWaker>, usize)>>,
}

impl EndOffset {
    /// Makes an end that limits nothing yet.
    pub(crate) fn unlimited() -> Arc<Self> {
        Arc::new(Self { end: AtomicU64::new(u64::MAX), ..Self::default() })
    }

    /// Sets the byte before which the transfer stops; [`u64::MAX`] removes the limit.
    pub(crate) fn set(&self, end: u64) {
        self.end.store(end, Ordering::SeqCst);
        self.wake();
    }

    /// Returns the byte before which the transfer stops.
    fn end(&self) -> u64 {
        self.end.load(Ordering::SeqCst)
    }

    /// Returns the position of the transfer.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::SeqCst)
    }

    /// Notes the position of the transfer.
    pub(super) fn set_position(&self, at: u64) {
        self.position.store(at, Ordering::SeqCst);
    }

    /// Makes the end final: a transfer that reaches it is over from now on.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns the number of bytes that a transfer at the position `at` may still deliver. If 0,
    /// `waker` is woken when that changes.
    pub(super) fn room(&self, at: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let room = self.end().saturating_sub(at);
        if room == 0 {
            *self.waiting.lock().ignore_poison() = waker.map(|waker| (Arc::clone(waker), token));
        }
        room
    }

    /// Returns the end of the bytes to deliver among those from `at` to `received_to`, which were
    /// received together. Bytes after a tentative end, as in a TLS record that was opened whole,
    /// are delivered: they would be missing if the end were lifted.
    pub(super) fn shorten(&self, at: u64, received_to: u64) -> u64 {
        if self.is_settled.load(Ordering::SeqCst) { received_to.min(self.end().max(at)) } else { received_to }
    }

    /// Returns true if a transfer at the position `at` is over.
    pub(super) fn is_reached(&self, at: u64) -> bool {
        self.is_settled.load(Ordering::SeqCst) && at >= self.end()
    }

    fn wake(&self) {
        if let Some((waker, token)) = self.waiting.lock().ignore_poison().take() {
            waker.wake(token);
        }
    }
}
