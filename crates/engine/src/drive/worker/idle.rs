//! Connections of a worker that have nothing to do: how many it keeps, and for how long.
//!
//! The client's limits for idle connections ([`PoolLimits`](crate::net::pool::PoolLimits)) apply to a worker's own, too. It wakes when the one that
//! has been idle longest has been so for too long, and for nothing else.

use std::sync::Arc;
use std::time::Instant;

use super::Worker;
use crate::clock;
use crate::drive::lane::{Lane, State};

/// Idle connections that a worker keeps at most.
const MAX_IDLE: usize = 64;

impl Worker {
    /// Notes that a lane has nothing to do, if that is so. Idle ones that are too many are closed, the longest idle first.
    pub(super) fn rest(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let State::Open(link) = &lane.state else { return };
        if lane.idle_since != 0 || !link.is_idle() || !lane.waiting.is_empty() {
            return;
        }
        let limits = *self.client.pool_limits();
        if limits.keep_none() {
            return self.remove(token);
        }
        self.stamp += 1;
        lane.idle_since = self.stamp;
        lane.rested = self.now;
        let key = (limits.per_key < MAX_IDLE).then(|| Arc::clone(&lane.key));
        self.idle.push_back((token, self.stamp));
        self.idle_count += 1;
        if let Some(key) = key {
            let idle = |token: &&usize| self.lanes[**token].idle_since != 0;
            let of_key = || self.by_key[&key].iter().filter(idle);
            if of_key().count() > limits.per_key
                && let Some(&longest) = of_key().min_by_key(|token| self.lanes[**token].idle_since)
            {
                self.remove(longest);
            }
        }
        while self.idle_count > MAX_IDLE.min(limits.connections) {
            let Some((token, stamp)) = self.idle.pop_front() else { break };
            if is_idle(self.lanes.get(token), stamp) {
                self.remove(token);
            }
        }
        if self.idle.len() > 4 * MAX_IDLE {
            let lanes = &self.lanes;
            self.idle.retain(|(token, stamp)| is_idle(lanes.get(*token), *stamp));
        }
    }

    /// Returns the time when the lane that has been idle longest reaches the limit.
    pub(super) fn old_at(&mut self) -> Option<Instant> {
        while let Some((token, stamp)) = self.idle.front() {
            if let Some(lane) = self.lanes.get(*token).filter(|lane| is_idle(Some(lane), *stamp)) {
                return Some(clock::after(lane.rested, self.client.pool_limits().idle));
            }
            self.idle.pop_front();
        }
        None
    }

    /// Closes the lanes that have been idle for too long, and all idle ones if the client says so.
    pub(super) fn close_old(&mut self) {
        self.heed_closings();
        while self.old_at().is_some_and(|at| at <= self.now)
            && let Some((token, _)) = self.idle.pop_front()
        {
            self.remove(token);
        }
    }

    /// Closes the idle lanes if the client has closed its idle connections since.
    pub(super) fn heed_closings(&mut self) {
        let closings = self.client.closings();
        if self.closings != closings {
            self.closings = closings;
            self.close_idle_lanes();
        }
    }

    pub(super) fn close_idle_lanes(&mut self) {
        for (token, stamp) in std::mem::take(&mut self.idle) {
            if is_idle(self.lanes.get(token), stamp) {
                self.remove(token);
            }
        }
    }
}

/// Returns true if this lane has been idle since `stamp`.
fn is_idle(lane: Option<&Lane>, stamp: u64) -> bool {
    lane.is_some_and(|lane| lane.idle_since == stamp)
}
