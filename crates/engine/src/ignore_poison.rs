//! Poisoned locks: how the engine treats a lock whose holder panicked.
//!
//! The engine uses the lock as if its holder had returned. A panic in the program's code (a sink, a
//! stream, a callback) must not make every later request of the same client panic, too.

use std::sync::{LockResult, PoisonError};

/// Locks a mutex even if an earlier holder panicked.
pub(crate) trait IgnorePoison<G> {
    /// Returns the guard, whether or not the lock is poisoned.
    fn ignore_poison(self) -> G;
}

impl<G> IgnorePoison<G> for LockResult<G> {
    #[inline]
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
