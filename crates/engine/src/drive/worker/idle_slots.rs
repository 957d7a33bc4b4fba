//! Idle connections of a worker: how many it keeps, and for how long.
//!
//! The client's limits for idle connections ([`PoolLimits`](crate::net::pool::PoolLimits)) apply to
//! a worker's connections, too. The worker wakes only for the timeout of the connection that has
//! been idle longest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::Worker;
use crate::clock;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};

/// The maximum number of idle connections of a worker.
const MAX_IDLE: usize = 64;

/// The idle connections of a worker, in the order in which they became idle.
pub(super) struct IdleConnectionSlots {
    /// The token and the idle stamp of each slot, the longest idle first. If a slot was busy after
    /// it had been added, it has another stamp, and the entry is ignored.
    queue: VecDeque<(usize, u64)>,
    count: usize,
    last_stamp: u64,
    /// The number of [`Client::close_idle`](crate::Client::close_idle) calls to which this worker
    /// has reacted.
    close_count: u32,
}

impl IdleConnectionSlots {
    pub(super) fn new(close_count: u32) -> Self {
        Self { queue: VecDeque::new(), count: 0, last_stamp: 0, close_count }
    }

    /// Adds a slot, and returns the stamp of its idle period.
    fn push(&mut self, token: usize) -> u64 {
        self.last_stamp += 1;
        self.queue.push_back((token, self.last_stamp));
        self.count += 1;
        self.last_stamp
    }

    /// Notes that an idle slot got a transfer or was removed.
    pub(super) fn on_busy(&mut self) {
        self.count -= 1;
    }
}

impl Worker {
    /// Marks a slot as idle if it has no transfer. If there are too many idle connections, closes
    /// those that have been idle longest.
    pub(super) fn note_idle(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let ConnectionState::Open(connection) = &slot.state else { return };
        if slot.idle_stamp != 0 || !connection.is_idle() || !slot.waiting.is_empty() {
            return;
        }
        let limits = *self.client.pool_limits();
        if limits.keep_none() {
            return self.remove(token);
        }
        slot.idle_stamp = self.idle.push(token);
        slot.idle_since = self.now;
        let key = (limits.per_key < MAX_IDLE).then(|| Arc::clone(&slot.key));
        if let Some(key) = key {
            let idle = |token: &&usize| self.slots[**token].idle_stamp != 0;
            let of_key = || self.slots.with_key(&key).iter().filter(idle);
            if of_key().count() > limits.per_key
                && let Some(&longest) = of_key().min_by_key(|token| self.slots[**token].idle_stamp)
            {
                self.remove(longest);
            }
        }
        while self.idle.count > MAX_IDLE.min(limits.connections) {
            let Some((token, stamp)) = self.idle.queue.pop_front() else { break };
            if is_idle(self.slots.get(token), stamp) {
                self.remove(token);
            }
        }
        if self.idle.queue.len() > 4 * MAX_IDLE {
            let slots = &self.slots;
            self.idle.queue.retain(|(token, stamp)| is_idle(slots.get(*token), *stamp));
        }
    }

    /// Returns the time when the connection that has been idle longest reaches its idle timeout.
    pub(super) fn idle_timeout(&mut self) -> Option<Instant> {
        while let Some((token, stamp)) = self.idle.queue.front() {
            if let Some(slot) = self.slots.get(*token).filter(|slot| is_idle(Some(slot), *stamp)) {
                return Some(clock::after(slot.idle_since, self.client.pool_limits().idle));
            }
            self.idle.queue.pop_front();
        }
        None
    }

    /// Closes the connections that have reached their idle timeout, and all idle ones if
    /// [`Client::close_idle`](crate::Client::close_idle) was called.
    pub(super) fn close_idle_timeouts(&mut self) {
        self.follow_close_idle();
        while self.idle_timeout().is_some_and(|at| at <= self.now)
            && let Some((token, _)) = self.idle.queue.pop_front()
        {
            self.remove(token);
        }
    }

    /// Closes the idle connections if [`Client::close_idle`](crate::Client::close_idle) was called
    /// since the last check.
    pub(super) fn follow_close_idle(&mut self) {
        let close_count = self.client.close_count();
        if self.idle.close_count != close_count {
            self.idle.close_count = close_count;
            self.close_idle_slots();
        }
    }

    pub(super) fn close_idle_slots(&mut self) {
        for (token, stamp) in std::mem::take(&mut self.idle.queue) {
            if is_idle(self.slots.get(token), stamp) {
                self.remove(token);
            }
        }
    }
}

/// Returns true if the slot is still in the idle period with this stamp.
fn is_idle(slot: Option<&ConnectionSlot>, stamp: u64) -> bool {
    slot.is_some_and(|slot| slot.idle_stamp == stamp)
}
