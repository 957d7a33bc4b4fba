//! Properties of peers that a worker remembers, so that later transfers do not have to find them
//! again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Worker;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::net::pool::ConnectionKey;
use crate::net::socket::{IdleSocketState, peek_idle};
use crate::transfer::Transfer;

/// The maximum number of peers in each record. When it is reached, the record is cleared. Each peer
/// may then cost one more request that has to be repeated. A record takes at most about 1 MiB.
const MAX_REMEMBERED: usize = 4096;

/// The properties of peers that their earlier connections have revealed.
#[derive(Default)]
pub(super) struct PeerProperties {
    /// Peers that left pipelined requests unanswered, so that they get one request at a time on a
    /// connection.
    pub(super) serial: HashSet<Arc<ConnectionKey>>,
    /// Peers that sent an extra response: each of their connections carries one request.
    pub(super) extra_response: HashSet<Arc<ConnectionKey>>,
    /// The number of requests that the last connection to a peer answered, if it left others
    /// unanswered.
    pub(super) pipeline_limits: HashMap<Arc<ConnectionKey>, usize>,
    /// Peers that chose HTTP/1.1 although HTTP/2 was offered.
    pub(super) http1_only: HashSet<Arc<ConnectionKey>>,
    /// Peers that close each connection after its first response, without an announcement.
    pub(super) one_response_only: HashSet<Arc<ConnectionKey>>,
    /// Hosts that rejected requests on connections to other hosts (421).
    pub(super) uncoalesced: HashSet<Arc<ConnectionKey>>,
}

/// Adds a peer to one of the records.
#[allow(clippy::mutable_key_type, reason = "how a proxy wants to be answered is no part of what tells keys apart")]
pub(super) fn remember(keys: &mut HashSet<Arc<ConnectionKey>>, key: &Arc<ConnectionKey>) {
    if keys.len() >= MAX_REMEMBERED {
        keys.clear();
    }
    keys.insert(Arc::clone(key));
}

impl Worker {
    /// Makes this peer get one request at a time from now on. If it sent an extra response, it gets
    /// each request on a new connection, too.
    pub(super) fn stop_pipelining(&mut self, key: Arc<ConnectionKey>, has_extra_response: bool) {
        let mut idle = Vec::new();
        for token in self.slots.with_key(&key).to_vec() {
            let slot = &mut self.slots[token];
            slot.is_serial = true;
            if has_extra_response && let ConnectionState::Open(connection) = &mut slot.state {
                idle.extend(connection.is_idle().then_some(token));
                connection.limit_to_one_request();
            }
        }
        idle.into_iter().for_each(|token| self.remove(token));
        if has_extra_response {
            remember(&mut self.peers.extra_response, &key);
        }
        remember(&mut self.peers.serial, &key);
    }

    /// Remembers the pipeline limit that a closing connection has learned about its peer.
    pub(super) fn remember_pipeline_limit(&mut self, token: usize) {
        let Some(ConnectionSlot { state: ConnectionState::Open(connection), key, .. }) = self.slots.get(token) else {
            return;
        };
        // Checked first, because this is called after each wake-up and the limit is counted request
        // by request.
        if !connection.is_closing() {
            return;
        }
        let Some(limit) = connection.learned_pipeline_limit() else { return };
        if self.peers.pipeline_limits.len() >= MAX_REMEMBERED {
            self.peers.pipeline_limits.clear();
        }
        self.peers.pipeline_limits.insert(Arc::clone(key), limit);
    }

    /// Returns true if a request that cannot be repeated might be lost on this slot. That is so if
    /// the peer closes each connection after its first response, or has already closed this idle
    /// one. The second check costs a system call, so it is omitted for requests that can be
    /// repeated.
    pub(super) fn may_be_lost(&mut self, token: usize, transfer: &Transfer) -> bool {
        let Some(ConnectionSlot { state: ConnectionState::Open(connection), key, idle_since, .. }) =
            self.slots.get(token)
        else {
            return false;
        };
        if transfer.may_resend() || !connection.is_idle() {
            return false;
        }
        if self.peers.one_response_only.contains(key) {
            return true;
        }
        if peek_idle(connection.stream().socket()) == IdleSocketState::Silent {
            return false;
        }
        let (key, leaves_at_once) = (Arc::clone(key), connection.served() == 1 && *idle_since == self.now);
        self.serve(token, false);
        let is_lost = !self.slots.get(token).is_some_and(|slot| slot.accepts(transfer));
        if is_lost && leaves_at_once {
            remember(&mut self.peers.one_response_only, &key);
        }
        is_lost
    }
}
