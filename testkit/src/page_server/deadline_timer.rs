//! Deadlines of the event loop: a heap of times, and a system timer for the earliest.
//!
//! The timeout of epoll has a resolution of one millisecond, which would double a round trip of one
//! millisecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Deadlines, each with a value of type `T` that the event loop handles when the deadline has
/// passed.
pub(super) struct Deadlines<T> {
    clock: OwnedFd,
    waiting: BinaryHeap<Reverse<(Instant, u64, T)>>,
    /// The number of deadlines added so far. It orders deadlines with equal times: the one added
    /// first expires first.
    added: u64,
}

impl<T: Ord> Deadlines<T> {
    pub(super) fn new() -> io::Result<Deadlines<T>> {
        let clock = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Deadlines { clock, waiting: BinaryHeap::new(), added: 0 })
    }

    /// Returns a file descriptor that becomes readable at the earliest deadline.
    pub(super) fn descriptor(&self) -> RawFd {
        self.clock.as_raw_fd()
    }

    pub(super) fn add(&mut self, due: Instant, what: T) {
        let is_first = self.waiting.peek().is_none_or(|Reverse((first, ..))| due < *first);
        self.added += 1;
        self.waiting.push(Reverse((due, self.added, what)));
        if is_first {
            self.set(due);
        }
    }

    /// Removes and returns the value of the earliest deadline that has passed at `now`. If no
    /// deadline has passed, sets the system timer to the next deadline and returns `None`.
    pub(super) fn expired(&mut self, now: Instant) -> Option<T> {
        let first = self.waiting.peek().map(|Reverse((due, ..))| *due)?;
        if first > now {
            self.set(first);
            return None;
        }
        self.waiting.pop().map(|Reverse((_, _, what))| what)
    }

    fn set(&self, due: Instant) {
        // Zero would turn the timer off.
        let wait = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let Ok(it_value) = Timespec::try_from(wait) else { return };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        // Fails only for a wrong descriptor or time.
        let _ = timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &once);
    }
}
