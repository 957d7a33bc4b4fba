//! Connections of a worker that have nothing to do: how many it keeps, and for how long.
//!
//! The client's limits for idle connections ([`PoolLimits`](crate::net::pool::PoolLimits)) apply to a worker's own, too. It wakes when the one that
//! has been idle longest has been so for too long, and for nothing else.

use std::sync::Arc;
use std::time::Instant;

use super::Worker;
use crate::clock;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};

/// Idle connections that a worker keeps at most.
const MAX_IDLE: usize = 64;

impl Worker {
    /// Notes that a slot has nothing to do, if that is so. Idle ones that are too many are closed, the longest idle first.
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
        self.stamp += 1;
        slot.idle_stamp = self.stamp;
        slot.idle_since = self.now;
        let key = (limits.per_key < MAX_IDLE).then(|| Arc::clone(&slot.key));
        self.idle.push_back((token, self.stamp));
        self.idle_count += 1;
        if let Some(key) = key {
            let idle = |token: &&usize| self.slots[**token].idle_stamp != 0;
            let of_key = || self.by_key[&key].iter().filter(idle);
            if of_key().count() > limits.per_key
                && let Some(&longest) = of_key().min_by_key(|token| self.slots[**token].idle_stamp)
            {
                self.remove(longest);
            }
        }
        while self.idle_count > MAX_IDLE.min(limits.connections) {
            let Some((token, stamp)) = self.idle.pop_front() else { break };
            if is_idle(self.slots.get(token), stamp) {
                self.remove(token);
            }
        }
        if self.idle.len() > 4 * MAX_IDLE {
            let slots = &self.slots;
            self.idle.retain(|(token, stamp)| is_idle(slots.get(*token), *stamp));
        }
    }

    /// Returns the time when the slot that has been idle longest reaches the limit.
    pub(super) fn idle_timeout(&mut self) -> Option<Instant> {
        while let Some((token, stamp)) = self.idle.front() {
            if let Some(slot) = self.slots.get(*token).filter(|slot| is_idle(Some(slot), *stamp)) {
                return Some(clock::after(slot.idle_since, self.client.pool_limits().idle));
            }
            self.idle.pop_front();
        }
        None
    }

    /// Closes the slots that have been idle for too long, and all idle ones if the client says so.
    pub(super) fn close_idle_timeouts(&mut self) {
        self.follow_close_idle();
        while self.idle_timeout().is_some_and(|at| at <= self.now)
            && let Some((token, _)) = self.idle.pop_front()
        {
            self.remove(token);
        }
    }

    /// Closes the idle slots if the client has closed its idle connections since.
    pub(super) fn follow_close_idle(&mut self) {
        let close_count = self.client.close_count();
        if self.close_count != close_count {
            self.close_count = close_count;
            self.close_idle_slots();
        }
    }

    pub(super) fn close_idle_slots(&mut self) {
        for (token, stamp) in std::mem::take(&mut self.idle) {
            if is_idle(self.slots.get(token), stamp) {
                self.remove(token);
            }
        }
    }
}

/// Returns true if this slot has been idle since `stamp`.
fn is_idle(slot: Option<&ConnectionSlot>, stamp: u64) -> bool {
    slot.is_some_and(|slot| slot.idle_stamp == stamp)
}
