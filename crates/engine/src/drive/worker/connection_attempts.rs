//! Connection attempts without an answer: name lookups and connects that may never get one.
//!
//! ```text
//!   begin ──▶ fresh ──250 ms──▶ late: other transfers may use the slots of those that wait for it
//!               └────── answered, failed or given up ──────┘
//! ```
//!
//! A dead host answers nothing, and its transfers end by their time limit. Without these rules they
//! would hold the slots of `--parallel-max` meanwhile, and live hosts would wait for dead ones. A
//! slot that is lent is taken back when the host answers; until then one transfer more than the
//! limit runs. The limits of hosts count late attempts as before.
//!
//! Fresh attempts have a limit of their own, so that a run does not send thousands of SYNs at once.
//! Requests on open connections do not count.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Worker;
use crate::net::proxy::ProxyRoute;
use crate::transfer::Transfer;

/// The time without an answer after which an attempt is late. An answer from the other side of the
/// earth takes about as long.
const LATE_AFTER: Duration = Duration::from_millis(250);
/// The number of fresh attempts of a worker from which on it takes no further transfer from the
/// queue. Even if no host answers, this is 1,024 attempts a second.
const MAX_FRESH: usize = 256;

/// The state of a slot's connection attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectAttemptState {
    /// The attempt has not begun, has got an answer, or has failed.
    #[default]
    Settled,
    /// The attempt with this number has begun just now.
    Fresh(u64),
    /// The attempt is late.
    Late,
}

/// The connection attempts of a worker that have no answer yet.
#[derive(Default)]
pub(super) struct ConnectionAttempts {
    /// The time when each attempt becomes late, its slot and its number. Settled attempts remain
    /// until their time.
    queue: VecDeque<(Instant, usize, u64)>,
    fresh: usize,
    last: u64,
}

impl ConnectionAttempts {
    /// Returns true if another attempt may begin.
    pub(super) fn has_room(&self) -> bool {
        self.fresh < MAX_FRESH
    }

    /// Returns the time when the next attempt becomes late.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.queue.front().map(|(at, ..)| *at)
    }

    fn begin(&mut self, token: usize, now: Instant) -> ConnectAttemptState {
        self.last += 1;
        self.fresh += 1;
        self.queue.push_back((now + LATE_AFTER, token, self.last));
        ConnectAttemptState::Fresh(self.last)
    }

    /// Ends an attempt.
    pub(super) fn settle(&mut self, state: ConnectAttemptState) {
        self.fresh -= usize::from(matches!(state, ConnectAttemptState::Fresh(_)));
    }
}

impl Worker {
    /// Begins to count the attempt of a slot.
    pub(super) fn note_attempt(&mut self, token: usize) {
        let now = self.now;
        if let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.is_unanswered()) {
            slot.attempt = self.attempts.begin(token, now);
        }
    }

    /// Ends the attempt of a slot, if it has got an answer. Takes lent slots back.
    pub(super) fn settle_attempt(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token).filter(|slot| !slot.is_unanswered()) else { return };
        let state = std::mem::take(&mut slot.attempt);
        if state == ConnectAttemptState::Late {
            for transfer in &mut slot.waiting {
                if std::mem::take(&mut transfer.scheduling.is_slot_lent) {
                    self.scheduler.end_lend();
                }
            }
        }
        self.attempts.settle(state);
    }

    /// Lends the slots of the attempts that have become late.
    pub(super) fn lend_late_slots(&mut self) {
        while self.attempts.next_timeout().is_some_and(|at| at <= self.now)
            && let Some((_, token, number)) = self.attempts.queue.pop_front()
        {
            if let Some(slot) =
                self.slots.get_mut(token).filter(|slot| slot.attempt == ConnectAttemptState::Fresh(number))
            {
                slot.attempt = ConnectAttemptState::Late;
                self.attempts.settle(ConnectAttemptState::Fresh(number));
                self.lend_slots(token);
            }
        }
    }

    /// Lets other transfers use the slots of those that wait for a late attempt. A proxy's silence
    /// concerns all transfers, so it lends none.
    pub(super) fn lend_slots(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        if slot.attempt != ConnectAttemptState::Late
            || slot.key.via != ProxyRoute::Direct
            || !self.client.descriptor_budget().is_half_free()
        {
            return;
        }
        for transfer in &mut slot.waiting {
            let scheduling = &mut transfer.scheduling;
            if scheduling.host_slot.is_some() && !scheduling.has_given_slot && !scheduling.is_slot_lent {
                scheduling.is_slot_lent = self.scheduler.lend_slot();
            }
        }
    }

    /// Takes the lent slot of a transfer back, because the transfer continues or ends.
    pub(super) fn take_slot_back(&self, transfer: &mut Transfer) {
        if std::mem::take(&mut transfer.scheduling.is_slot_lent) {
            self.scheduler.end_lend();
        }
    }
}
