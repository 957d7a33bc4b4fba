//! Moving end of a transfer: the byte at which another connection's part begins, so that the
//! transfer stops although its response continues.
//!
//! A cut is tentative at first: the transfer waits there. It is settled when the other part has proved to come (the
//! transfer is over then), or lifted when it has not, and then nothing was lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sink::Wake;
use crate::sync::IgnorePoison;

/// The end that others set to a transfer.
#[derive(Default)]
pub(crate) struct Cut {
    at: AtomicU64,
    is_settled: AtomicBool,
    /// The position of the transfer.
    position: AtomicU64,
    waiting: Mutex<Option<(Arc<dyn Wake>, usize)>>,
}

impl Cut {
    /// No cut yet.
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self { at: AtomicU64::new(u64::MAX), ..Self::default() })
    }

    /// Sets the byte at which the transfer stops; [`u64::MAX`] removes the limit.
    pub(crate) fn set(&self, at: u64) {
        self.at.store(at, Ordering::SeqCst);
        self.wake();
    }

    /// The byte before which the transfer stops.
    fn at(&self) -> u64 {
        self.at.load(Ordering::SeqCst)
    }

    /// Returns the position of the transfer.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::SeqCst)
    }

    /// The transfer has got so far.
    pub(super) fn moved_to(&self, at: u64) {
        self.position.store(at, Ordering::SeqCst);
    }

    /// Makes the end final: a transfer that reaches it is over from now on.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns the number of bytes that a transfer at the position `at` may still deliver. If 0,
    /// `waker` is woken when that changes.
    pub(super) fn room(&self, at: u64, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        let room = self.at().saturating_sub(at);
        if room == 0 {
            *self.waiting.lock().ignore_poison() = waker.map(|waker| (Arc::clone(waker), token));
        }
        room
    }

    /// Returns the end of the bytes to deliver among those from `at` to `came_to`, which were
    /// received together. Bytes after a tentative cut, as in a TLS record that was opened whole,
    /// are delivered: they would be missing if the cut were lifted.
    pub(super) fn shorten(&self, at: u64, came_to: u64) -> u64 {
        if self.is_settled.load(Ordering::SeqCst) { came_to.min(self.at().max(at)) } else { came_to }
    }

    /// Returns true if a transfer at the position `at` is over.
    pub(super) fn is_reached(&self, at: u64) -> bool {
        self.is_settled.load(Ordering::SeqCst) && at >= self.at()
    }

    fn wake(&self) {
        if let Some((waker, token)) = self.waiting.lock().ignore_poison().take() {
            waker.wake(token);
        }
    }
}
