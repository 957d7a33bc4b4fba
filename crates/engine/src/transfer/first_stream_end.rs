//! The end of the first stream of a split download: the offset at which the part of another
//! connection begins. The stream stops there although its response continues.
//!
//! At first, the end is tentative: a stream that reaches it waits. Once the response for the next
//! part has begun, the end is settled, and a stream that reaches it is finished. If no part
//! arrives, the end is removed, and the stream continues.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::ignore_poison::IgnorePoison;
use crate::sink::TransferWaker;

/// The offset at which the first stream of a split download stops, and the stream's current offset.
/// The first stream is the response that was in progress before the split. The coordinator and the
/// stream share this value.
#[derive(Default)]
pub(crate) struct FirstStreamEnd {
    end: AtomicU64,
    is_settled: AtomicBool,
    /// The offset in the body of the next byte that the first stream delivers.
    position: AtomicU64,
    waiting: Mutex<Option<(Arc<dyn TransferWaker>, usize)>>,
}

impl FirstStreamEnd {
    /// Makes an end offset that is not set, so that the first stream does not stop.
    pub(crate) fn unlimited() -> Arc<Self> {
        Arc::new(Self { end: AtomicU64::new(u64::MAX), ..Self::default() })
    }

    /// Sets the offset at which the first stream stops; [`u64::MAX`] means that it does not stop.
    pub(crate) fn set(&self, end: u64) {
        self.end.store(end, Ordering::SeqCst);
        self.wake();
    }

    /// Returns the offset at which the first stream stops, or [`u64::MAX`] if no such offset is
    /// set.
    fn end(&self) -> u64 {
        self.end.load(Ordering::SeqCst)
    }

    /// Returns the offset in the body of the next byte that the first stream delivers.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::SeqCst)
    }

    /// Records the offset in the body of the next byte that the first stream delivers.
    pub(super) fn set_position(&self, at: u64) {
        self.position.store(at, Ordering::SeqCst);
    }

    /// Makes the end offset final. A first stream that reaches a final end offset is finished. At
    /// an end offset that is not final, the first stream waits, because the offset may still
    /// change.
    pub(crate) fn make_final(&self) {
        self.is_settled.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns the number of bytes that the first stream, now at the offset `at`, may deliver. If
    /// the number is 0, stores `waker`, which is called with `token` when the end offset changes or
    /// becomes final.
    pub(super) fn bytes_until_end(&self, at: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let room = self.end().saturating_sub(at);
        if room == 0 {
            *self.waiting.lock().ignore_poison() = waker.map(|waker| (Arc::clone(waker), token));
        }
        room
    }

    /// Returns the offset before which the received bytes are delivered. The bytes of the body from
    /// `at` to `received_to` have been received.
    ///
    /// If the end offset is [final](Self::make_final), bytes after the end offset are dropped.
    /// Otherwise, all received bytes are delivered, even those after the end offset (for example
    /// the rest of a TLS record), since the coordinator may still remove the end offset.
    pub(super) fn deliverable_end(&self, at: u64, received_to: u64) -> u64 {
        if self.is_settled.load(Ordering::SeqCst) { received_to.min(self.end().max(at)) } else { received_to }
    }

    /// Returns true if the end offset is final and `at` has reached it.
    pub(super) fn is_reached(&self, at: u64) -> bool {
        self.is_settled.load(Ordering::SeqCst) && at >= self.end()
    }

    fn wake(&self) {
        if let Some((waker, token)) = self.waiting.lock().ignore_poison().take() {
            waker.wake(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Stores the token of the last wake-up; 0 means none.
    #[derive(Default)]
    struct LastToken(AtomicUsize);

    impl TransferWaker for LastToken {
        fn wake(&self, token: usize) {
            self.0.store(token, Ordering::SeqCst);
        }
    }

    #[test]
    fn stream_waits_at_its_end_until_the_end_changes() {
        let end = FirstStreamEnd::unlimited();
        let last = Arc::new(LastToken::default());
        let waker: Arc<dyn TransferWaker> = last.clone();
        let woken = || last.0.swap(0, Ordering::SeqCst);
        assert_eq!(end.bytes_until_end(100, Some(&waker), 7), u64::MAX - 100);
        end.set(150);
        assert_eq!(woken(), 0, "the stream does not wait");
        assert_eq!(end.bytes_until_end(100, Some(&waker), 7), 50);
        assert_eq!(end.bytes_until_end(150, Some(&waker), 7), 0);
        end.set(160);
        assert_eq!(woken(), 7);
        end.set(170);
        assert_eq!(woken(), 0, "only once");
        assert_eq!(end.bytes_until_end(180, Some(&waker), 8), 0);
        end.make_final();
        assert_eq!(woken(), 8);
    }

    #[test]
    fn bytes_after_the_end_are_dropped_once_it_is_final() {
        let end = FirstStreamEnd::unlimited();
        end.set_position(120);
        assert_eq!(end.position(), 120);
        end.set(150);
        assert_eq!(end.deliverable_end(140, 200), 200);
        assert!(!end.is_reached(150) && !end.is_reached(151));
        end.make_final();
        assert_eq!(end.deliverable_end(140, 200), 150);
        assert_eq!(end.deliverable_end(140, 145), 145);
        assert_eq!(end.deliverable_end(160, 200), 160);
        assert!(end.is_reached(150) && end.is_reached(151) && !end.is_reached(149));
    }
}
