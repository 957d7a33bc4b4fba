//! A queue of items that are due at different times.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Instant;

/// Items in the order of the times at which they are due. Of two items that are due at the same
/// time, the item that was added first comes first.
pub(crate) struct TimedQueue<T> {
    waiting: BinaryHeap<Reverse<TimedItem<T>>>,
    added: u64,
}

/// An item of a [`TimedQueue`], with its due time and its number in the order of arrival.
struct TimedItem<T> {
    due: Instant,
    number: u64,
    item: T,
}

impl<T> Default for TimedQueue<T> {
    fn default() -> TimedQueue<T> {
        TimedQueue { waiting: BinaryHeap::new(), added: 0 }
    }
}

impl<T> TimedQueue<T> {
    pub(crate) fn push(&mut self, due: Instant, item: T) {
        self.added += 1;
        self.waiting.push(Reverse(TimedItem { due, number: self.added, item }));
    }

    /// Removes and returns the first item if it is due at the time `now`; `None` otherwise.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        self.next_due().filter(|due| *due <= now)?;
        self.waiting.pop().map(|Reverse(first)| first.item)
    }

    /// Returns the time at which the first item is due; `None` if there are no items.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(first)| first.due)
    }
}

impl<T> TimedItem<T> {
    fn rank(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl<T> Ord for TimedItem<T> {
    fn cmp(&self, other: &TimedItem<T>) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<T> PartialOrd for TimedItem<T> {
    fn partial_cmp(&self, other: &TimedItem<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for TimedItem<T> {
    fn eq(&self, other: &TimedItem<T>) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for TimedItem<T> {}
