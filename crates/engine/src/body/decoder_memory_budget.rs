//! The memory that the decoders of many bodies share for their windows.
//!
//! A zstd body may need a window of 8 MiB, and a brotli body a window of 16 MiB, until its end. A
//! body with a small window is always decoded at once. Any other body is admitted if there is room
//! for its whole window, and is then decoded to its end. A body that is not admitted waits: the
//! bytes that arrived with the response head are kept, and no more bytes are read until an admitted
//! body ends. If the kept bytes are the whole body, it is decoded at once, since it needs its
//! window only for a moment.
//!
//! A body is admitted even without room if no other body is admitted, or if the output of other
//! bodies waits for it. Thus at least one body can always continue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::ignore_poison::IgnorePoison;
use crate::sink::{TransferWaker, add_waiting_transfer};

/// The size in bytes below which the window of a decoder counts as small. A body with a small
/// window never waits for memory.
pub(super) const MAX_SMALL_WINDOW: u64 = 128 << 10;

/// A limit on the total memory that the decoders of many bodies use for their windows. If a
/// decoder's window does not fit, the body waits until other bodies have ended.
#[derive(Default)]
pub struct DecoderMemoryBudget {
    limit: u64,
    /// The number of bytes that all decoders use at present. It is a copy of
    /// `DecoderMemoryState::used` that can be read without the lock.
    used: AtomicU64,
    state: Mutex<DecoderMemoryState>,
}

/// The state of a [`DecoderMemoryBudget`], protected by its lock.
#[derive(Default)]
struct DecoderMemoryState {
    used: u64,
    admitted: usize,
    waiting: Vec<(Arc<dyn TransferWaker>, usize)>,
}

impl std::fmt::Debug for DecoderMemoryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecoderMemoryBudget")
            .field("limit", &self.limit)
            .field("used", &self.used_bytes())
            .finish_non_exhaustive()
    }
}

impl DecoderMemoryBudget {
    /// Makes a limit of `limit` bytes for the windows of all decoders together.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns the number of bytes that all decoders use at present.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn with_state<T>(&self, change: impl FnOnce(&mut DecoderMemoryState) -> T) -> T {
        let mut state: MutexGuard<'_, DecoderMemoryState> = self.state.lock().ignore_poison();
        let changed = change(&mut state);
        self.used.store(state.used, Ordering::Relaxed);
        changed
    }
}

/// The part of a [`DecoderMemoryBudget`] that the decoder of one body uses. Dropping the share
/// releases this memory.
#[derive(Debug)]
pub(crate) struct DecoderMemoryShare {
    memory: Arc<DecoderMemoryBudget>,
    bytes: u64,
    is_admitted: bool,
}

impl DecoderMemoryShare {
    pub(crate) fn new(memory: &Arc<DecoderMemoryBudget>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0, is_admitted: false }
    }

    /// Records that the decoder uses `bytes` bytes in total. A smaller number than before changes
    /// nothing.
    pub(crate) fn set_used_bytes(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.memory.with_state(|state| state.used += bytes - self.bytes);
            self.bytes = bytes;
        }
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.is_admitted
    }

    /// Returns true if the decoder may use `window` bytes, the size of its whole window. Returns
    /// false if the window does not fit into the memory limit. In this case, `waker` is woken with
    /// `token`, the token of the body's connection, when another decoder has released memory.
    pub(super) fn try_admit(&mut self, window: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        if self.is_admitted {
            return true;
        }
        let more = window.saturating_sub(self.bytes);
        let limit = self.memory.limit;
        self.is_admitted = self.memory.with_state(|state| {
            let fits = state.admitted == 0 || state.used + more <= limit;
            if fits {
                state.admitted += 1;
                state.used += more;
            } else if let Some(waker) = waker {
                add_waiting_transfer(&mut state.waiting, waker, token);
            }
            fits
        });
        if self.is_admitted {
            self.bytes += more;
        }
        self.is_admitted
    }
}

impl Drop for DecoderMemoryShare {
    fn drop(&mut self) {
        let waiting = self.memory.with_state(|state| {
            state.used -= self.bytes;
            state.admitted -= usize::from(self.is_admitted);
            std::mem::take(&mut state.waiting)
        });
        for (waker, token) in waiting {
            waker.wake(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct TokenSumWaker(AtomicUsize);

    impl TransferWaker for TokenSumWaker {
        fn wake(&self, token: usize) {
            self.0.fetch_add(token, Ordering::Relaxed);
        }
    }

    #[test]
    fn decoders_beyond_the_memory_limit_wait() {
        let memory = Arc::new(DecoderMemoryBudget::new(100));
        let woken = Arc::new(TokenSumWaker::default());
        let waker: Arc<dyn TransferWaker> = woken.clone();
        let [mut one, mut two, mut three] = std::array::from_fn(|_| DecoderMemoryShare::new(&memory));
        assert!(one.try_admit(80, Some(&waker), 1) && one.try_admit(80, Some(&waker), 1));
        two.set_used_bytes(15);
        assert!(!two.try_admit(80, Some(&waker), 2) && !two.try_admit(80, Some(&waker), 2));
        assert!(!three.try_admit(6, Some(&waker), 4));
        assert!(three.try_admit(5, Some(&waker), 4));
        assert_eq!((memory.used_bytes(), woken.0.load(Ordering::Relaxed)), (100, 0));
        drop(one);
        assert_eq!((memory.used_bytes(), woken.0.load(Ordering::Relaxed)), (20, 6));
        assert!(two.try_admit(80, Some(&waker), 2));
        drop((two, three));
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn single_decoder_may_exceed_the_memory_limit() {
        let memory = Arc::new(DecoderMemoryBudget::new(100));
        let [mut one, mut two] = std::array::from_fn(|_| DecoderMemoryShare::new(&memory));
        assert!(one.try_admit(1000, None, 0));
        assert!(!two.try_admit(1, None, 0));
        drop(one);
        assert!(two.try_admit(1, None, 0));
    }
}
