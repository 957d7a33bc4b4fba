//! Poisoned locks: the engine's one rule for a lock whose holder panicked.
//!
//! The lock is used as if its holder had returned. A panic of the program's code (a sink, a stream,
//! a hook) must not make every later request of the same client panic, too.

use std::sync::{LockResult, PoisonError};

/// Access to a lock whether or not an earlier holder panicked.
pub(crate) trait IgnorePoison<G> {
    /// Returns the guard.
    fn ignore_poison(self) -> G;
}

impl<G> IgnorePoison<G> for LockResult<G> {
    #[inline]
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
