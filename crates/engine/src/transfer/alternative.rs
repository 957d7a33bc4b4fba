//! Alternative services (RFC 7838): the Alt-Used field of a request, and the return to the origin
//! when a service fails.

use haul_policy::alt_svc::Protocol;

use super::Transfer;
use crate::net::pool::Key;
use crate::net::proxy::Via;
use crate::trace::Event;
use crate::{Error, ErrorKind};

/// An alternative service of an origin (RFC 7838): protocol, host and port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Door {
    protocol: Protocol,
    host: String,
    port: u16,
}

/// The route of the connection of the current exchange.
#[derive(Default)]
pub(super) struct ConnectionRoute {
    /// The alternative service at its end.
    pub(super) alternative: Option<Box<Door>>,
    /// The host of the first proxy, for traces.
    pub(super) proxy_host: Option<Box<str>>,
}

impl Transfer {
    /// Notes the key of the connection for the next exchange.
    pub fn goes_by(&mut self, key: &Key) {
        self.facts.proxy_used = key.via != Via::Direct;
        let hop = key.via.hop().filter(|_| self.options.trace.is_some());
        self.route.proxy_host = hop.map(|hop| hop.preproxy.as_ref().unwrap_or(&hop.proxy).host_text().into());
        let door =
            key.alternative.map(|protocol| Box::new(Door { protocol, host: key.dial.0.clone(), port: key.dial.1 }));
        if door == self.route.alternative {
            return;
        }
        if let (Some(trace), Some(Door { protocol, host, port })) = (&self.options.trace, door.as_deref()) {
            let (from, to) = (self.current.target.host_text(), protocol.as_str());
            let text = format!("Alt-svc connecting from {from}:{} to [{to}]{host}:{port}", self.current.target.port());
            trace.event(&Event::Info(text.into()));
        }
        self.route.alternative = door;
    }

    /// The Alt-Used field (section 5): which one is asked.
    pub(super) fn alt_used(&self) -> Option<String> {
        let Door { host, port, .. } = self.route.alternative.as_deref()?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// Notes that the alternative service could not be reached, so that the origin itself is used.
    /// Returns false if none was in use, or if the service is not to blame.
    pub(super) fn leaves_alternative(&mut self, error: &Error) -> bool {
        let is_its = matches!(
            error.kind(),
            ErrorKind::Resolve
                | ErrorKind::Connect
                | ErrorKind::Timeout
                | ErrorKind::TlsHandshake
                | ErrorKind::PeerCertificate
                | ErrorKind::PinnedKey
        );
        is_its && self.drops_alternative()
    }

    /// Stops using the alternative service. Returns false if none was in use.
    pub(super) fn drops_alternative(&mut self) -> bool {
        let (Some(door), Some(known)) = (self.route.alternative.take(), &self.options.alt_svc) else { return false };
        known.fails(&self.current.target, door.protocol, &door.host, door.port);
        true
    }
}
