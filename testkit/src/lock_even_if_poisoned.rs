//! Locks a mutex even if it is poisoned: a test that panicked has already reported its own failure.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, even if another thread panicked while it held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
