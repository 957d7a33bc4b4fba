//! The treatment of poisoned locks, i.e. of locks whose holder panicked.
//!
//! The engine ignores the poisoning. A panic in the program's code (a sink, a stream, a callback)
//! must not make every later request of the same client panic, too.

use std::sync::{LockResult, PoisonError};

/// A lock that can be taken even if an earlier holder panicked.
pub(crate) trait IgnorePoison<G> {
    /// Returns the guard of the lock, even if the lock is poisoned.
    fn ignore_poison(self) -> G;
}

impl<G> IgnorePoison<G> for LockResult<G> {
    #[inline]
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
