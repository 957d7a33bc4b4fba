//! The session tickets of one server (RFC 8446 section 4.6.1; RFC 5077 for TLS 1.2).
//!
//! rustls' own cache finds tickets by server name only. haul needs a key with more fields
//! ([`SessionKey`](super::SessionKey)), and small memory use for thousands of servers.

use std::sync::{Mutex, MutexGuard};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::ignore_poison::IgnorePoison;

/// The maximum number of TLS 1.3 tickets kept for a server, as in rustls. A ticket is used for one
/// connection only.
const MAX_TICKETS: usize = 8;

/// The session tickets of one server. All connections to that server share them.
#[derive(Debug, Default)]
pub(super) struct ServerTickets(Mutex<StoredTickets>);

/// The session tickets of one server, and the key-exchange group to offer it first.
#[derive(Debug, Default)]
struct StoredTickets {
    /// The key-exchange group that the server chose in the last handshake, which the next handshake
    /// offers first. `None` before the first handshake.
    group: Option<NamedGroup>,
    tls12: Option<Box<Tls12ClientSessionValue>>,
    /// The server's TLS 1.3 tickets, in the order in which they arrived.
    tls13: Vec<Tls13ClientSessionValue>,
}

impl ServerTickets {
    fn lock(&self) -> MutexGuard<'_, StoredTickets> {
        self.0.lock().ignore_poison()
    }
}

impl ClientSessionStore for ServerTickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.lock().tls12 = Some(Box::new(session));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.lock().tls12.as_deref().cloned()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.lock().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let tickets = &mut self.lock().tls13;
        if tickets.len() >= MAX_TICKETS {
            tickets.remove(0);
        }
        tickets.reserve_exact(1);
        tickets.push(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().tls13.pop()
    }
}
