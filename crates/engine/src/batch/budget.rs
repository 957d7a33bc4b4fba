//! The memory budget for the bodies of a batch, both under way and complete but not yet taken.
//!
//! While the program has nothing to take, the first request under way may exceed the budget, since
//! the program waits for its result. A batch therefore holds at most its budget and one body more.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use haul_policy::target::Target;

use super::hall::Admitted;
use crate::Result;
use crate::buffer::Lease;
use crate::sink::{Begin, Partial, Sink, Wake};
use crate::sync::IgnorePoison;

/// The number that stands for no request.
const NONE: u64 = u64::MAX;
/// A sink is not stopped for less room than this.
const LEAST: u64 = 16 << 10;

/// The memory budget of a batch.
pub(super) struct Budget {
    most: u64,
    held: AtomicU64,
    /// Number of the first request under way.
    first: AtomicU64,
    /// Number of the request that the program waits for, in the order of the input.
    head: AtomicU64,
    /// The program has nothing to take.
    is_hungry: AtomicBool,
    /// The sinks that wait for room.
    waiting: Mutex<Vec<(Arc<dyn Wake>, usize)>>,
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most: most.max(LEAST),
            held: AtomicU64::new(0),
            first: AtomicU64::new(NONE),
            head: AtomicU64::new(NONE),
            is_hungry: AtomicBool::new(true),
            waiting: Mutex::default(),
        }
    }

    fn room(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::SeqCst))
    }

    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    pub(super) fn takes(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Releases `bytes` of the budget. Returns whether the budget was exhausted before, so that
    /// requests may start that could not.
    pub(super) fn gives(&self, bytes: u64) -> bool {
        let held = self.held.fetch_sub(bytes, Ordering::SeqCst);
        let was_full = held >= self.most;
        if held.saturating_sub(bytes) < self.most {
            self.wake();
        }
        was_full
    }

    /// Records the number of the next request in the order of the input.
    pub(super) fn head_is(&self, id: u64) {
        self.head.store(id, Ordering::SeqCst);
    }

    /// Records whether the program has nothing to take. Returns true if that is so now and was not
    /// before.
    pub(super) fn hungers(&self, is_hungry: bool) -> bool {
        let is_new = !self.is_hungry.swap(is_hungry, Ordering::SeqCst) && is_hungry;
        if is_new {
            self.wake();
        }
        is_new
    }

    /// Returns which requests may start now.
    pub(super) fn admits(&self) -> Admitted {
        if self.room() > 0 {
            Admitted::Any
        } else if self.is_hungry.load(Ordering::SeqCst) {
            Admitted::Only(self.head.load(Ordering::SeqCst))
        } else {
            Admitted::None
        }
    }

    /// Records the first of the requests under way.
    pub(super) fn first_is(&self, id: Option<u64>) {
        let id = id.unwrap_or(NONE);
        if self.first.swap(id, Ordering::SeqCst) != id {
            self.wake();
        }
    }

    fn is_preferred(&self, id: u64) -> bool {
        self.is_hungry.load(Ordering::SeqCst) && self.first.load(Ordering::SeqCst) == id
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().ignore_poison());
        for (driver, token) in waiting {
            driver.wake(token);
        }
    }
}

/// A sink whose bytes count against a budget.
pub(super) struct Counted {
    sink: Box<dyn Sink>,
    id: u64,
    holds: Holds,
}

/// A sink's share of a budget, which is returned when it is dropped.
struct Holds {
    bytes: u64,
    budget: Arc<Budget>,
}

impl Holds {
    fn takes(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.budget.takes(bytes);
    }

    fn give(&mut self) {
        self.budget.gives(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.give();
        }
    }
}

impl Counted {
    pub(super) fn new(sink: Box<dyn Sink>, id: u64, budget: Arc<Budget>) -> Self {
        Self { sink, id, holds: Holds { bytes: 0, budget } }
    }

    /// Returns the sink and the share that it keeps.
    pub(super) fn into_parts(mut self) -> (Box<dyn Sink>, u64) {
        let bytes = std::mem::take(&mut self.holds.bytes);
        (self.sink, bytes)
    }
}

impl Sink for Counted {
    fn takes_coded(&mut self, coding: &[u8]) -> bool {
        self.sink.takes_coded(coding)
    }

    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.sink.begin(begin)
    }

    fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        let own = self.sink.credit(waker, token);
        let budget = &self.holds.budget;
        let is_preferred = || budget.is_preferred(self.id);
        if own == 0 || is_preferred() {
            return own;
        }
        if let (0, Some(waker)) = (budget.room(), waker) {
            budget.waiting.lock().ignore_poison().push((Arc::clone(waker), token));
            // It may have become the one that goes on, or got room, in between.
            if !is_preferred() && budget.room() == 0 {
                return 0;
            }
        }
        own.min(budget.room().max(LEAST))
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        self.holds.takes(lease.bytes().len() as u64);
        self.sink.bytes(lease)
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        let received = self.sink.receive(socket, most)?;
        if let Ok(n) = &received {
            self.holds.takes(*n as u64);
        }
        Some(received)
    }

    fn partial(&mut self, target: &Target) -> Option<Partial> {
        self.sink.partial(target)
    }

    fn restart(&mut self) -> bool {
        let may = self.sink.restart();
        if may {
            self.holds.give();
        }
        may
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }

    fn file_name(&self) -> Option<&std::path::Path> {
        self.sink.file_name()
    }
}
