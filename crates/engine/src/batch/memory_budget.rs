//! The memory budget for the bodies of a batch: the bodies in progress and the bodies that the
//! program has not taken yet.
//!
//! While no result is ready, one request may exceed the budget: the one in progress with the lowest
//! id. Otherwise, incomplete bodies could use up the budget, and none of them could be completed.
//! The bodies of a batch thus take at most about the budget plus the size of one body.

use std::sync::Arc;

use super::executor::AdmissionRule;
use crate::ignore_poison::IgnorePoison;
use crate::sink::{TransferWaker, add_waiting_transfer};
use crate::std_or_loom_sync::Mutex;
use crate::std_or_loom_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The value of `first` and `head` in [`MemoryBudget`] that means "no request".
const NO_REQUEST: u64 = u64::MAX;
/// The minimum budget in bytes. A smaller budget is raised to this number.
const MIN_BUDGET: u64 = 16 << 10;

/// The memory budget for the bodies of a batch, in bytes. It limits the bodies in progress and the
/// bodies that the program has not taken yet.
pub(super) struct MemoryBudget {
    most: u64,
    held: AtomicU64,
    /// The id of the request in progress that may exceed the budget; [`NO_REQUEST`] if there is
    /// none.
    first: AtomicU64,
    /// The id of the request whose result the program gets next, if results come in input order;
    /// [`NO_REQUEST`] otherwise.
    head: AtomicU64,
    /// True if no result is ready for the program. Only while this is true may the request with the
    /// id in `first` exceed the budget.
    nothing_ready: AtomicBool,
    /// The transfers that wait until the budget has room. Each is stored as the waker of its event
    /// loop, and the token of its connection.
    waiting: Mutex<Vec<(Arc<dyn TransferWaker>, usize)>>,
}

impl MemoryBudget {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most: most.max(MIN_BUDGET),
            held: AtomicU64::new(0),
            first: AtomicU64::new(NO_REQUEST),
            head: AtomicU64::new(NO_REQUEST),
            nothing_ready: AtomicBool::new(true),
            waiting: Mutex::default(),
        }
    }

    fn free_bytes(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::SeqCst))
    }

    pub(super) fn is_full(&self) -> bool {
        self.free_bytes() == 0
    }

    pub(super) fn add(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Releases `bytes` bytes of the budget. Returns true if the budget was used up before the
    /// call. Waiting requests may then start.
    pub(super) fn release(&self, bytes: u64) -> bool {
        let held = self.held.fetch_sub(bytes, Ordering::SeqCst);
        let was_full = held >= self.most;
        if held.saturating_sub(bytes) < self.most {
            self.wake_waiting_sinks();
        }
        was_full
    }

    /// Sets the id of the request whose result the program gets next, if results come in input
    /// order.
    pub(super) fn set_head(&self, id: u64) {
        self.head.store(id, Ordering::SeqCst);
    }

    /// Records whether no result is ready for the program. Returns true if the value changes from
    /// false to true.
    pub(super) fn set_nothing_ready(&self, nothing_ready: bool) -> bool {
        let is_new = !self.nothing_ready.swap(nothing_ready, Ordering::SeqCst) && nothing_ready;
        if is_new {
            self.wake_waiting_sinks();
        }
        is_new
    }

    /// Returns the rule for the start of waiting requests:
    /// * [`AdmissionRule::Any`] if the budget has free bytes.
    /// * [`AdmissionRule::None`] if the budget is used up and a result is ready for the program.
    /// * [`AdmissionRule::Only`] if the budget is used up and no result is ready. Requests then
    ///   start only one at a time.
    pub(super) fn admission_rule(&self) -> AdmissionRule {
        if self.free_bytes() > 0 {
            AdmissionRule::Any
        } else if self.nothing_ready.load(Ordering::SeqCst) {
            AdmissionRule::Only(self.head.load(Ordering::SeqCst))
        } else {
            AdmissionRule::None
        }
    }

    /// Sets the id of the request in progress that may exceed the budget; `None` if there is no
    /// such request.
    pub(super) fn set_first(&self, id: Option<u64>) {
        let id = id.unwrap_or(NO_REQUEST);
        if self.first.swap(id, Ordering::SeqCst) != id {
            self.wake_waiting_sinks();
        }
    }

    fn is_preferred(&self, id: u64) -> bool {
        self.nothing_ready.load(Ordering::SeqCst) && self.first.load(Ordering::SeqCst) == id
    }

    /// Returns the number of body bytes that the request `id` may receive now. It is at most `own`,
    /// the number of bytes that the request's sink accepts. If the result is 0 because the budget
    /// is used up, `waker` is woken with `token`, the token of the request's connection, as soon as
    /// the number may have changed.
    pub(super) fn credit(&self, own: u64, id: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        if own == 0 || self.is_preferred(id) {
            return own;
        }
        if let (0, Some(waker)) = (self.free_bytes(), waker) {
            add_waiting_transfer(&mut self.waiting.lock().ignore_poison(), waker, token);
            // It may have become the preferred one, or got room, in between.
            if !self.is_preferred(id) && self.free_bytes() == 0 {
                return 0;
            }
        }
        own.min(self.free_bytes().max(MIN_BUDGET))
    }

    fn wake_waiting_sinks(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().ignore_poison());
        for (driver, token) in waiting {
            driver.wake(token);
        }
    }
}
