//! The idle connections of a worker. Limits their number and their idle time.
//!
//! The client's limits for idle connections ([`PoolLimits`](crate::net::pool::PoolLimits)) apply to
//! the pool and to all workers together. If they are exceeded, or if descriptors become scarce
//! ([`crate::net::connection_descriptor_budget`]), the oldest connection of the pool is closed. If
//! the pool is empty, the connection that this worker used longest ago is closed. The worker wakes
//! only for the timeout of the connection that has been idle longest.
//!
//! A connection that gets another transfer in the same round of the event loop does not become
//! idle: idle connections are only determined at the end of each round.

use std::time::Instant;

use super::Worker;
use crate::drive::connection_slot::ConnectionState;
use crate::lru::RecencyList;
use crate::time_conversions;

/// The idle connections of a worker, in the order in which they became idle.
pub(super) struct IdleConnectionSlots {
    /// The tokens of the idle connection slots, from the slot that became idle first to the last.
    order: RecencyList,
    /// The tokens of the connection slots that lost their last transfer in this round of the event
    /// loop. They may still get another transfer in the same round.
    free: Vec<usize>,
    /// The number of calls of [`Client::close_idle`](crate::Client::close_idle) that this worker
    /// has seen.
    close_count: u32,
}

impl IdleConnectionSlots {
    pub(super) fn new(close_count: u32) -> Self {
        Self { order: RecencyList::default(), free: Vec::new(), close_count }
    }

    /// Removes a connection slot from the list of idle slots.
    pub(super) fn remove(&mut self, token: usize) {
        self.order.remove(token);
    }
}

impl Worker {
    /// If a connection slot (a connection with its transfers) has no transfer, adds the slot to
    /// `free`, the slots that became free in this round of the event loop. At the end of the round,
    /// the slot counts as idle, unless it has got another transfer. If the client keeps no idle
    /// connections, removes the slot at once.
    pub(super) fn mark_idle_if_unused(&mut self, token: usize) {
        let Some(slot) = self.slots.get(token) else { return };
        if !slot.is_unused() || slot.is_idle {
            return;
        }
        if self.client.pool_limits().keep_none() {
            return self.remove(token);
        }
        self.slots[token].idle_since = self.now;
        self.idle.free.push(token);
    }

    /// Marks as idle the connection slots (connections with their transfers) that became free in
    /// this round of the event loop and got no other transfer. Closes idle connections beyond the
    /// limits.
    pub(super) fn mark_idle_slots(&mut self) {
        while let Some(token) = self.idle.free.pop() {
            if let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.is_unused() && !slot.is_idle) {
                if let ConnectionState::Open(connection) = &mut slot.state {
                    connection.release_buffers();
                }
                self.slots.set_idle(token, true);
                self.idle.order.mark_newest(token);
                self.limit_idle_of_key(token);
                self.limit_idle();
            }
        }
    }

    /// Removes the connection in slot `token` from the worker's list of idle connections, because
    /// the connection gets a transfer.
    pub(super) fn mark_busy(&mut self, token: usize) {
        if self.idle.order.remove(token) {
            self.slots.set_idle(token, false);
        }
    }

    fn limit_idle_of_key(&mut self, token: usize) {
        let most = self.client.pool_limits().per_key;
        if most >= self.idle.order.len() {
            return;
        }
        let is_idle = |token: &&usize| self.slots[**token].is_idle;
        let idle = self.slots.with_key(&self.slots[token].key).iter().filter(is_idle);
        if idle.clone().count() > most
            && let Some(&longest) = idle.min_by_key(|token| self.slots[**token].idle_since)
        {
            self.remove(longest);
        }
    }

    /// Closes idle connections of the pool and of this worker until the number of the client's idle
    /// connections is within the limits.
    pub(super) fn limit_idle(&mut self) {
        while self.client.has_surplus_idle_connections()
            && (self.client.close_oldest_pooled() || self.close_oldest_idle_slot())
        {}
    }

    /// Closes an idle connection to free its file descriptor. Returns false if neither the pool nor
    /// this worker has an idle connection.
    pub(super) fn free_descriptor(&mut self) -> bool {
        self.client.close_oldest_pooled() || self.close_oldest_idle_slot()
    }

    fn close_oldest_idle_slot(&mut self) -> bool {
        let Some(oldest) = self.idle.order.oldest() else { return false };
        self.remove(oldest);
        true
    }

    /// Returns the time when the connection that has been idle longest reaches its idle timeout;
    /// `None` if no connection is idle.
    pub(super) fn idle_timeout(&self) -> Option<Instant> {
        let oldest = self.slots.get(self.idle.order.oldest()?)?;
        Some(time_conversions::add_saturating(oldest.idle_since, self.client.pool_limits().idle))
    }

    /// Closes the connections that have reached their idle timeout. If
    /// [`Client::close_idle`](crate::Client::close_idle) was called, closes all idle connections.
    pub(super) fn close_idle_timeouts(&mut self) {
        self.close_idle_if_requested();
        while self.idle_timeout().is_some_and(|at| at <= self.now) && self.close_oldest_idle_slot() {}
    }

    /// Closes the idle connections if [`Client::close_idle`](crate::Client::close_idle) was called
    /// since the last check.
    pub(super) fn close_idle_if_requested(&mut self) {
        let close_count = self.client.close_idle_calls();
        if self.idle.close_count != close_count {
            self.idle.close_count = close_count;
            for token in std::mem::take(&mut self.idle.free) {
                if self.slots.get(token).is_some_and(|slot| slot.is_unused()) {
                    self.remove(token);
                }
            }
            while self.close_oldest_idle_slot() {}
        }
    }
}
