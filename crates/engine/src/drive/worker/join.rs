//! One connection for several hosts (RFC 9113 section 9.1.1): a request may use an open HTTP/2
//! connection to another host if that connection's certificate is valid for the request's host too,
//! and if the connection goes to one of that host's addresses. All settings for TLS and for
//! connecting have to be the same.
//!
//! A server that does not serve the other host on that connection responds with 421 (RFC 9110
//! section 15.5.20). The transfer is then tried once more on its host's own connection, which all
//! other transfers of that host use from then on.
//!
//! The decision is made when the host's name is resolved and before any connection attempt. A
//! transfer that finds no such connection open makes one: to wait for another host's handshake
//! would be slower if the server then responds with 421.

use std::sync::Arc;

use super::Worker;
use super::peers::remember;
use crate::drive::lane::{Lane, State};
use crate::drive::link::Link;
use crate::net::pool::Key;

impl Worker {
    /// Moves the transfers of a lane whose name is resolved to an open connection that may carry
    /// them. Returns false if there is none, and the lane has to connect.
    pub(super) fn join(&mut self, token: usize) -> bool {
        let Some(host) = self.find_host(token) else { return false };
        let Some(lane) = self.lanes.get_mut(token) else { return false };
        let waiting = std::mem::take(&mut lane.waiting);
        self.remove(token);
        if let Some(slot) = waiting.front().and_then(|transfer| transfer.scheduling.host_slot) {
            self.supply.shares(slot);
        }
        for transfer in waiting {
            self.start(host, transfer);
        }
        true
    }

    /// Keeps this host's transfers off other hosts' connections from now on, because one of these
    /// rejected them.
    pub(super) fn keep_apart(&mut self, key: &Key) {
        remember(&mut self.apart, &Arc::new(key.clone()));
    }

    fn find_host(&self, token: usize) -> Option<usize> {
        let lane = self.lanes.get(token)?;
        let State::Connecting(connecting) = &lane.state else { return None };
        if lane.waiting.iter().any(|transfer| transfer.reuse.wants_fresh) || self.apart.contains(&lane.key) {
            return None;
        }
        let may_carry = |other: &Lane| match &other.state {
            State::Open(link) if link.is_shared() && !link.is_closing() => {
                carries(link, &lane.key, |peer| connecting.untried_addresses().any(|address| *address == peer))
                    // Not what was sent away from there, because it would find no room.
                    && lane.waiting.iter().all(|transfer| other.takes(transfer))
            }
            _ => false,
        };
        self.lanes.iter().find(|(_, other)| may_carry(other)).map(|(host, _)| host)
    }
}

/// Returns true if a connection may also carry requests to this key's host.
fn carries(link: &Link, key: &Key, is_address: impl Fn(std::net::SocketAddr) -> bool) -> bool {
    link.key().may_carry(key) && link.stream().peer.is_some_and(is_address) && link.stream().is_for(&key.host)
}
