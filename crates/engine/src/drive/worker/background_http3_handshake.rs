//! HTTP/3 handshakes beside an open TCP connection. Once a server has offered HTTP/3, requests
//! still use its open HTTP/2 connection until the QUIC handshake is complete.
//!
//! ```text
//!  offer ──▶ requests over TCP ─────────────▶ QUIC is open ──▶ requests by HTTP/3
//!              └──▶ QUIC handshake beside ──────┘ └──▶ it fails: requests over TCP
//! ```
//!
//! The handshake begins once for each server, and only while further transfers wait: it would not
//! help the last requests of a run. A connection attempt for waiting transfers races QUIC against
//! TCP ([`Connecting`](crate::net::connecting::Connecting)); the attempt of this module uses QUIC
//! alone.

use std::time::Duration;

use haul_policy::http3::{Http3Choice, Http3Policy};

use super::Worker;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::net::pool::ConnectionKey;
use crate::transfer::Transfer;

/// The time after which a server that answers no QUIC packet counts as silent.
const QUIC_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl Worker {
    /// Returns the token of a connection slot (a connection of this worker with its transfers)
    /// whose open HTTP/2 connection can carry the transfer, so that the transfer need not wait for
    /// a new HTTP/3 connection. Returns `None` if there is no such slot. If other transfers wait in
    /// the scheduler, begins a QUIC handshake for them in the background.
    pub(super) fn slot_before_http3(&mut self, key: &ConnectionKey, transfer: &Transfer) -> Option<usize> {
        let is_learned = transfer.options().http3 == Http3Policy::Learned;
        if !is_learned || !matches!(key.http3, Http3Choice::Race(_)) || transfer.reuse.needs_new_connection {
            return None;
        }
        let over_tcp = ConnectionKey { http3: Http3Choice::Off, ..key.clone() };
        let is_usable = |slot: &ConnectionSlot| {
            matches!(slot.state, ConnectionState::Open(_)) && slot.is_shared() && slot.accepts(transfer)
        };
        let mut tokens = self.slots.with_key(&over_tcp).iter().copied();
        let token = tokens.find(|token| is_usable(&self.slots[*token]))?;
        if self.scheduler.backlog() > 0 {
            self.begin_http3(key, transfer);
        }
        Some(token)
    }

    /// Begins a QUIC handshake in the background, for which no transfer waits. Does nothing if such
    /// a handshake with this peer has begun before.
    fn begin_http3(&mut self, key: &ConnectionKey, transfer: &Transfer) {
        if self.peers.get(key).has_tried_http3 {
            return;
        }
        self.peers.update(key, |record| record.has_tried_http3 = true);
        let key = self.slots.intern_key(key.clone());
        let answers_by = self.now + QUIC_ANSWER_TIMEOUT;
        let slot = ConnectionSlot::beside_http3(key, transfer.options(), self.options.depth, answers_by, self.now);
        let token = self.slots.insert(slot);
        self.on_socket_event(token, false);
    }
}
