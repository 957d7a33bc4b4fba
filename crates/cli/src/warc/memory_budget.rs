//! The memory budget for the recorded messages of unfinished exchanges.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes that recorded messages may still reserve.
#[derive(Debug)]
pub(super) struct WarcMemoryBudget(AtomicUsize);

impl WarcMemoryBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Reserves this number of bytes. Returns false if fewer are left in the budget.
    fn try_reserve(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The part of the memory budget that one message has reserved. Dropping it returns the bytes to
/// the budget.
#[derive(Debug)]
pub(super) struct ReservedMemory {
    budget: Arc<WarcMemoryBudget>,
    bytes: usize,
}

impl ReservedMemory {
    pub(super) fn new(budget: &Arc<WarcMemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Increases the reservation to this number of bytes. Returns false if the budget has too few
    /// bytes left.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let may = self.budget.try_reserve(bytes.saturating_sub(self.bytes));
        if may {
            self.bytes = self.bytes.max(bytes);
        }
        may
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_memory_reservation_returns_its_bytes() {
        let budget = Arc::new(WarcMemoryBudget::new(100));
        let mut first = ReservedMemory::new(&budget);
        assert!(first.grow(60) && first.grow(40) && first.bytes() == 60);
        let mut second = ReservedMemory::new(&budget);
        assert!(!second.grow(41) && second.grow(40) && !first.grow(61));
        drop(second);
        assert!(first.grow(100));
    }
}
