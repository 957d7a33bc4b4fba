//! The session tickets of one server (RFC 8446 section 4.6.1; RFC 5077 for TLS 1.2).
//!
//! rustls' own cache is for many servers by name. Here a server is more than a name
//! ([`SessionKey`](super::SessionKey)), and thousands of stores must be small.

use std::sync::{Mutex, MutexGuard};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::ignore_poison::IgnorePoison;

/// The number of TLS 1.3 tickets kept, as in rustls. Each is used once.
const MAX_TICKETS: usize = 8;

/// The tickets of one server. All connections to that server share them.
#[derive(Debug, Default)]
pub(super) struct ServerTickets(Mutex<StoredTickets>);

#[derive(Debug, Default)]
struct StoredTickets {
    /// The group of the server's key exchange.
    group: Option<NamedGroup>,
    tls12: Option<Box<Tls12ClientSessionValue>>,
    /// The TLS 1.3 tickets of the server, the newest last.
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
