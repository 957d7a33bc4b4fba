//! Finished results waiting to be taken, and when to wake the program for them.
//!
//! The event loop puts results in as they come, and lets the program know of them when it has dealt with all that a wake-up
//! brought ([`Gate::turned`]). To wake a thread costs about as much as a small exchange, so while requests enough wait for
//! their turn, the loop gathers what comes for a moment first: the connections have work, and nobody waits noticeably longer.
//! A program that is not waiting is not told anything: it looks before it waits.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::budget::{Budget, Counted};
use super::hall::{Admitted, Gate, Load};
use super::{Finished, Order};
use crate::sink::Sink;
use crate::sync::IgnorePoison;
use crate::transfer::Outcome;

/// Maximum time for which results are collected before the program is notified.
const GATHERING: Duration = Duration::from_millis(1);

/// See the module.
pub(super) struct Tray {
    pub(super) budget: Arc<Budget>,
    order: Order,
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// Results that arrived out of turn.
    early: BTreeMap<u64, Finished>,
    /// Results that can be taken.
    ready: VecDeque<Finished>,
    /// The next number in the order of the input.
    next: u64,
    /// Results that have not been taken yet.
    pub(super) outstanding: usize,
    /// Threads that wait for something to take.
    waiting: usize,
    /// Since when there is something that nobody was told of.
    untold_since: Option<Instant>,
    bell: Option<Bell>,
}

impl State {
    /// Returns whether the program must be notified of new results.
    fn is_awaited(&self) -> bool {
        self.waiting > 0 || self.bell.as_ref().is_some_and(|bell| !bell.is_ringing())
    }
}

impl Tray {
    pub(super) fn new(order: Order, memory: u64) -> Arc<Self> {
        let budget = Arc::new(Budget::new(memory));
        if order == Order::Input {
            budget.head_is(0);
        }
        Arc::new(Self { budget, order, state: Mutex::default(), came: Condvar::new() })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Adds a result. Waiters are told later ([`Gate::turned`]).
    pub(super) fn put(&self, id: u64, outcome: Outcome, sink: Option<Box<dyn Sink>>) {
        let counted = sink.and_then(|sink| (sink as Box<dyn Any>).downcast::<Counted>().ok());
        let (sink, cost) = counted.map(|counted| counted.into_parts()).unzip();
        let cost = cost.unwrap_or(0);
        let finished = Finished { id, outcome, sink, cost };
        let mut state = self.lock();
        let state = &mut *state;
        match self.order {
            Order::Completion => state.ready.push_back(finished),
            Order::Input if id == state.next => {
                state.ready.push_back(finished);
                state.next += 1;
                while let Some(finished) = state.early.remove(&state.next) {
                    state.ready.push_back(finished);
                    state.next += 1;
                }
                self.budget.head_is(state.next);
            }
            Order::Input => {
                state.early.insert(id, finished);
            }
        }
        self.budget.hungers(state.ready.is_empty());
    }

    /// The first that may be taken, `most` at most; and whether so much room has come of it that requests may start.
    pub(super) fn take(&self, state: &mut State, most: usize) -> (Vec<Finished>, bool) {
        let count = state.ready.len().min(most);
        if count == 0 {
            return (Vec::new(), false);
        }
        let taken: Vec<_> = state.ready.drain(..count).collect();
        state.outstanding -= count;
        let is_empty = state.ready.is_empty();
        if is_empty {
            state.untold_since = None;
            if let Some(bell) = &mut state.bell {
                bell.set(false);
            }
        }
        let is_hungry = self.budget.hungers(is_empty);
        let has_room = self.budget.gives(taken.iter().map(|finished| finished.cost).sum());
        (taken, has_room || is_hungry && self.budget.is_full())
    }

    /// Waits until there may be something to take, for so long at most.
    pub(super) fn wait<'a>(&self, mut state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        state.waiting += 1;
        state = match most {
            Duration::MAX => self.came.wait(state).ignore_poison(),
            most => self.came.wait_timeout(state, most).ignore_poison().0,
        };
        state.waiting -= 1;
        state
    }

    /// See [`Batch::fd`](super::Batch::fd).
    pub(super) fn fd(&self) -> io::Result<OwnedFd> {
        let mut state = self.lock();
        if state.bell.is_none() {
            let mut bell = Bell::new()?;
            bell.set(!state.ready.is_empty());
            state.bell = Some(bell);
        }
        match &state.bell {
            Some(bell) => bell.as_fd().try_clone_to_owned(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Forgets all that was asked for; answers the number of the next in the order of the input.
    pub(super) fn clear(&self) -> u64 {
        let mut state = self.lock();
        state.outstanding = 0;
        state.ready.clear();
        state.next
    }
}

impl Gate for Tray {
    fn admits(&self) -> Admitted {
        self.budget.admits()
    }

    fn first_is(&self, id: Option<u64>) {
        self.budget.first_is(id);
    }

    fn turned(&self, load: Load, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        if state.ready.is_empty() || !state.is_awaited() {
            return None;
        }
        // A program that waits adds no requests; it is told before those run short that keep the connections busy.
        if load.waiting > load.running / 4 {
            let end = *state.untold_since.get_or_insert(now) + GATHERING;
            if now < end {
                return Some(end);
            }
        }
        state.untold_since = None;
        if let Some(bell) = &mut state.bell {
            bell.set(true);
        }
        let is_waited_for = state.waiting > 0;
        drop(state);
        if is_waited_for {
            self.came.notify_all();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use haul_policy::target::Target;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::super::hall::lost;
    use super::*;
    use crate::Error;
    use crate::buffer::{Lease, Shelf};
    use crate::sink::memory::Memory;

    fn put(tray: &Tray, id: u64) {
        tray.lock().outstanding += 1;
        let target = Target::parse("http://h.test/").expect("it is a URL");
        tray.put(id, lost(target, Error::cancelled()), None);
    }

    fn is_told(fd: &OwnedFd) -> bool {
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec::default())).expect("it can be polled") > 0
    }

    fn taken(tray: &Tray, most: usize) -> Vec<u64> {
        tray.take(&mut tray.lock(), most).0.iter().map(Finished::id).collect()
    }

    #[test]
    fn results_are_gathered_while_there_is_enough_to_do_and_told_of_at_once_when_there_is_not() {
        let (tray, now) = (Tray::new(Order::Completion, 1 << 20), Instant::now());
        let (busy, short) = (Load { waiting: 3, running: 8 }, Load { waiting: 2, running: 8 });
        put(&tray, 0);
        assert_eq!(tray.turned(busy, now), None, "nobody waits");
        assert_eq!(taken(&tray, 9), [0]);
        let fd = tray.fd().expect("there is a descriptor");
        assert_eq!(tray.turned(busy, now), None, "there is nothing to tell of");

        put(&tray, 1);
        assert_eq!(tray.turned(busy, now), Some(now + GATHERING));
        put(&tray, 2);
        // The first result counts.
        assert_eq!(tray.turned(busy, now + GATHERING / 2), Some(now + GATHERING));
        assert!(!is_told(&fd));
        assert_eq!(tray.turned(busy, now + GATHERING), None);
        assert!(is_told(&fd));
        assert_eq!(taken(&tray, 1), [1]);
        assert!(is_told(&fd), "there is more");
        assert_eq!(taken(&tray, 9), [2]);
        assert!(!is_told(&fd));

        put(&tray, 3);
        assert_eq!(tray.turned(short, now), None);
        assert!(is_told(&fd));
    }

    #[test]
    fn a_sink_that_is_lost_gives_back_what_it_held() {
        let tray = Tray::new(Order::Completion, 1);
        let fill = || {
            let mut sink = Counted::new(Box::new(Memory::default()), 0, Arc::clone(&tray.budget));
            let shelf = Shelf::new(1 << 16);
            sink.bytes(Lease::new(&mut shelf.take(), 0..1 << 16)).expect("memory takes all");
            sink
        };
        let lost = fill();
        assert!(tray.budget.is_full());
        drop(lost);
        assert!(!tray.budget.is_full());
        drop(fill().into_parts());
        assert!(tray.budget.is_full(), "it is the program's to take");
    }

    #[test]
    fn in_order_of_the_input_those_that_come_early_wait() {
        let tray = Tray::new(Order::Input, 1 << 20);
        for id in [2, 1, 4] {
            put(&tray, id);
            assert!(taken(&tray, 9).is_empty());
        }
        put(&tray, 0);
        assert_eq!(taken(&tray, 2), [0, 1]);
        assert_eq!(taken(&tray, 9), [2]);
        put(&tray, 3);
        assert_eq!(taken(&tray, 9), [3, 4]);
    }
}
