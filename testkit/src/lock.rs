//! Locks a mutex whatever happened to earlier holders: a test that panicked has reported its own
//! failure.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, poisoned or not.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
