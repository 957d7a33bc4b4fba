//! Facts that a worker remembers of its peers, so that no later transfer pays for them again.

use std::collections::HashSet;
use std::sync::Arc;

use super::Worker;
use crate::drive::lane::{Lane, State};
use crate::net::pool::Key;
use crate::net::socket::{Idle, peek_idle};
use crate::transfer::Transfer;

/// The number of peers that are remembered for each reason. Beyond it, all are forgotten, and each
/// costs one more request sent in vain. The worst case is about 1 MiB for each reason.
const MAX_REMEMBERED: usize = 4096;

/// Adds a peer to the set of peers that are remembered for a reason.
#[allow(clippy::mutable_key_type, reason = "how a proxy wants to be answered is no part of what tells keys apart")]
pub(super) fn remember(keys: &mut HashSet<Arc<Key>>, key: &Arc<Key>) {
    if keys.len() >= MAX_REMEMBERED {
        keys.clear();
    }
    keys.insert(Arc::clone(key));
}

impl Worker {
    /// Sends a peer one request at a time from now on; if it sent an extra response, each on a new
    /// connection.
    pub(super) fn not_again(&mut self, key: Arc<Key>, has_shifted: bool) {
        let mut idle = Vec::new();
        for token in self.by_key.get(&key).into_iter().flatten() {
            let lane = &mut self.lanes[*token];
            lane.is_serial = true;
            if has_shifted && let State::Open(link) = &mut lane.state {
                idle.extend(link.is_idle().then_some(*token));
                link.take_one_only();
            }
        }
        idle.into_iter().for_each(|token| self.remove(token));
        if has_shifted {
            remember(&mut self.shifting, &key);
        }
        remember(&mut self.serial, &key);
    }

    /// The next connection to the peer of one that takes no more requests is given as many at once as that one bore, if it left
    /// others unanswered.
    pub(super) fn remember_what_it_bore(&mut self, token: usize) {
        let Some(Lane { state: State::Open(link), key, .. }) = self.lanes.get(token) else { return };
        // In this order: what it bears is counted request by request, and this is asked after each wake-up.
        if !link.is_closing() {
            return;
        }
        let Some(bore) = link.bore() else { return };
        if self.bore.len() >= MAX_REMEMBERED {
            self.bore.clear();
        }
        self.bore.insert(Arc::clone(key), bore);
    }

    /// Returns true if a transfer may be lost on this lane: it cannot be repeated, and the peer
    /// closes each connection after its first response, or has closed this idle one before any
    /// event shows it. The check costs a system call, so it is left out for other transfers.
    pub(super) fn may_lose(&mut self, token: usize, transfer: &Transfer) -> bool {
        let Some(Lane { state: State::Open(link), key, rested, .. }) = self.lanes.get(token) else { return false };
        if transfer.may_be_repeated() || !link.is_idle() {
            return false;
        }
        if self.leaving.contains(key) {
            return true;
        }
        if peek_idle(link.stream().socket()) == Idle::Silent {
            return false;
        }
        let (key, leaves_at_once) = (Arc::clone(key), link.served() == 1 && *rested == self.now);
        self.serve(token, false);
        let is_lost = !self.lanes.get(token).is_some_and(|lane| lane.takes(transfer));
        if is_lost && leaves_at_once {
            remember(&mut self.leaving, &key);
        }
        is_lost
    }
}
