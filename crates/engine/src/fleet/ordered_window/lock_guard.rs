//! The locked state of a window.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::{NO_SLOT, OrderedWindow, OrderedWindowState};
use crate::sink::descriptor_writer::OutputReadiness;

/// A guard of the locked state of an [`OrderedWindow`]. When it is dropped, it updates the copies
/// of some values that other threads read without the lock.
pub(super) struct OrderedWindowLockGuard<'a> {
    pub(super) state: MutexGuard<'a, OrderedWindowState>,
    pub(super) window: &'a OrderedWindow,
}

impl Deref for OrderedWindowLockGuard<'_> {
    type Target = OrderedWindowState;

    fn deref(&self) -> &OrderedWindowState {
        &self.state
    }
}

impl DerefMut for OrderedWindowLockGuard<'_> {
    fn deref_mut(&mut self) -> &mut OrderedWindowState {
        &mut self.state
    }
}

impl Drop for OrderedWindowLockGuard<'_> {
    fn drop(&mut self) {
        let wants_flush = self.state.dirty || self.state.room == OutputReadiness::Full;
        self.window.held.store(self.state.held, Ordering::Relaxed);
        self.window.claimed.store(self.state.claimed.unwrap_or(NO_SLOT), Ordering::Relaxed);
        self.window.wants_flush.store(wants_flush, Ordering::Relaxed);
    }
}
