//! Properties of peers that a worker remembers, so that later transfers need not detect them again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::Worker;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::lru::LruMap;
use crate::net::pool::ConnectionKey;
use crate::transfer::Transfer;

/// The maximum number of peers whose properties ([`PeerRecord`]) a worker remembers. Each record
/// takes about 100 bytes. Beyond this number, the worker forgets the record that it used longest
/// ago, and must detect that peer's properties again. At worst, the peer closes the next connection
/// without answering a request, for example if `answers_once` was forgotten.
const MAX_REMEMBERED: usize = 4096;

/// The properties of a peer that earlier connections have shown. Records are found by a hash of the
/// connection's key, so a peer may get the record of another peer. That is harmless: each property
/// only makes haul more careful or saves a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PeerRecord {
    /// True if the peer must get only one request at a time on a connection.
    pub(super) is_serial: bool,
    /// True if the peer has sent an extra response (one that no request asked for). Each connection
    /// to this peer then carries only one request in all.
    pub(super) has_extra_response: bool,
    /// The number of requests that the next connection to the peer is expected to answer: 3, for
    /// example, if the last one answered 3 and left others unanswered. `None` if no connection has
    /// shown such a limit.
    pub(super) pipeline_limit: Option<usize>,
    /// True if the peer chose HTTP/1.1 although HTTP/2 was offered.
    pub(super) chose_http1: bool,
    /// True if the peer closes each connection after its first response, without an announcement.
    pub(super) answers_once: bool,
    /// True if a QUIC handshake with the peer has begun in the background, while a connection over
    /// TCP was open.
    #[cfg_attr(not(feature = "http3"), expect(dead_code, reason = "only QUIC is remembered"))]
    pub(super) has_tried_http3: bool,
    /// True if the host rejected a request on a connection to another host (421).
    pub(super) refuses_coalescing: bool,
}

/// The remembered properties of peers ([`PeerRecord`]), by a hash of the connection key. The keys
/// are not stored, since they would take ten times as much memory. Peers with equal hashes share a
/// record.
pub(super) struct PeerRecordCache {
    hasher: RandomState,
    records: LruMap<u64, PeerRecord>,
}

impl Default for PeerRecordCache {
    fn default() -> Self {
        Self { hasher: RandomState::new(), records: LruMap::new(MAX_REMEMBERED) }
    }
}

impl PeerRecordCache {
    /// Returns the record of a peer. Returns the default record, without any property, if the peer
    /// is unknown.
    pub(super) fn get(&mut self, key: &ConnectionKey) -> PeerRecord {
        if self.records.len() == 0 {
            return PeerRecord::default();
        }
        self.records.get(&self.hasher.hash_one(key)).copied().unwrap_or_default()
    }

    /// Changes the record of a peer by the function `change`. Adds the record if there is none.
    pub(super) fn update(&mut self, key: &ConnectionKey, change: impl FnOnce(&mut PeerRecord)) {
        let mut record = self.get(key);
        change(&mut record);
        self.records.insert(self.hasher.hash_one(key), record);
    }
}

impl Worker {
    /// Makes all connections to this peer carry only one request at a time from now on. If the peer
    /// sent an extra response (one that no request asked for), each request uses a new connection,
    /// too.
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
        self.peers.update(&key, |record| {
            record.is_serial = true;
            record.has_extra_response |= has_extra_response;
        });
    }

    /// Stores in the peer's record how many requests the next connection to the peer is expected to
    /// answer before it closes. The number comes from the connection in slot `token`. Does nothing
    /// while that connection still accepts requests, or if neither that connection nor an earlier
    /// one has shown such a limit.
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
        self.peers.update(key, |record| record.pipeline_limit = Some(limit));
    }

    /// Returns true if the idle connection in the connection slot `token` (a connection with its
    /// transfers) must not carry this request. Two things must be true. The peer is known to close
    /// each connection after its first response, or it has already closed this one. And the request
    /// may not be sent again on another connection, for example a POST.
    pub(super) fn may_lose_request(&mut self, token: usize, transfer: &Transfer) -> bool {
        let Some(ConnectionSlot { state: ConnectionState::Open(connection), key, idle_since, .. }) =
            self.slots.get(token)
        else {
            return false;
        };
        if transfer.may_resend() || !connection.is_idle() {
            return false;
        }
        if self.peers.get(key).answers_once {
            return true;
        }
        if connection.is_open_without_input() {
            return false;
        }
        let (key, leaves_at_once) = (Arc::clone(key), connection.response_count() == 1 && *idle_since == self.now);
        self.on_socket_event(token, false);
        let is_lost = !self.slots.get(token).is_some_and(|slot| slot.accepts(transfer));
        if is_lost && leaves_at_once {
            self.peers.update(&key, |record| record.answers_once = true);
        }
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestOptions, Target};

    #[test]
    fn peer_seen_longest_ago_is_forgotten_first() {
        let key = |host: usize| {
            ConnectionKey::new(&Target::parse(&format!("http://h{host}/")).unwrap(), &RequestOptions::default())
        };
        let mut peers = PeerRecordCache::default();
        for host in 0..MAX_REMEMBERED {
            peers.update(&key(host), |record| record.chose_http1 = true);
        }
        peers.update(&key(0), |record| record.pipeline_limit = Some(3));
        peers.update(&key(MAX_REMEMBERED), |record| record.is_serial = true);
        assert_eq!(peers.records.len(), MAX_REMEMBERED);
        let first = peers.get(&key(0));
        assert_eq!((first.chose_http1, first.pipeline_limit, first.is_serial), (true, Some(3), false));
        assert!(!peers.get(&key(1)).chose_http1 && peers.get(&key(2)).chose_http1);
        assert!(peers.get(&key(MAX_REMEMBERED)).is_serial);
    }
}
