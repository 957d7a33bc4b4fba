//! Connection coalescing (RFC 9113 section 9.1.1): a request may use an open HTTP/2 connection to
//! another host. The connection's certificate must also be valid for the request's host, and the
//! connection must go to an address of the request's host. All settings for TLS and for connecting
//! must be the same.
//!
//! A server that does not serve the other host on that connection responds with 421 (RFC 9110
//! section 15.5.20). The transfer is then tried once more on its host's own connection, which all
//! other transfers of that host use from then on.
//!
//! The decision is made when the host's name is resolved, and before any connection attempt. If no
//! open connection can be used, the transfer opens a new one. It does not wait for another host's
//! handshake, because the server might then respond with 421.

use super::Worker;
use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::net::pool::ConnectionKey;

impl Worker {
    /// Moves the transfers of the connection slot `token` (a connection and the transfers that wait
    /// for it) to an open connection to another host, if such a connection may carry them. Called
    /// when the host name of the slot is resolved, and before its connection is opened. Returns
    /// false if there is no such connection; the slot then opens a new one.
    pub(super) fn coalesce(&mut self, token: usize) -> bool {
        let Some(host) = self.find_coalescable(token) else { return false };
        let Some(slot) = self.slots.get_mut(token) else { return false };
        let waiting = std::mem::take(&mut slot.waiting);
        self.remove(token);
        if let Some(host_slot) = waiting.front().and_then(|transfer| transfer.scheduling.host_slot) {
            self.scheduler.set_host_multiplexes(host_slot, true);
        }
        for transfer in waiting {
            self.start(host, transfer);
        }
        true
    }

    /// Records that requests to this host must not use other hosts' connections, because the server
    /// rejected a request on one of them.
    pub(super) fn never_coalesce(&mut self, key: &ConnectionKey) {
        self.peers.update(key, |record| record.refuses_coalescing = true);
    }

    fn find_coalescable(&mut self, token: usize) -> Option<usize> {
        let slot = self.slots.get(token)?;
        let ConnectionState::Connecting(connecting) = &slot.state else { return None };
        if slot.waiting.iter().any(|transfer| transfer.reuse.needs_new_connection || transfer.wants_own_connection())
            || self.peers.get(&slot.key).refuses_coalescing
        {
            return None;
        }
        let may_carry = |other: &ConnectionSlot| match &other.state {
            ConnectionState::Open(connection) if connection.is_shared() && !connection.is_closing() => {
                connection.key().serves_requests_for(&slot.key)
                    && connection.is_certified_for(&slot.key.host)
                    // A transfer that was moved off that connection finds no room there.
                    && slot.waiting.iter().all(|transfer| other.accepts(transfer))
            }
            _ => false,
        };
        let mut shared = connecting.untried_addresses().flat_map(|address| self.slots.shared_with(address));
        shared.find(|(_, other)| may_carry(other)).map(|(host, _)| host)
    }
}
