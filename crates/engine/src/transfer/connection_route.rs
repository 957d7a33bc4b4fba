//! The route of a transfer's connection: through a proxy, or to an alternative service (RFC 7838).
//! If an alternative service fails, the origin is used instead.

use haul_policy::alt_svc::AlpnProtocol;

use super::Transfer;
use crate::net::pool::ConnectionKey;
use crate::net::proxy::ProxyRoute;
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind};

/// An alternative service of an origin (RFC 7838): protocol, host and port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AltService {
    protocol: AlpnProtocol,
    host: String,
    port: u16,
}

/// The route of the connection for the current exchange: to an alternative service or the origin,
/// and through a proxy or directly.
#[derive(Default)]
pub(super) struct ConnectionRoute {
    /// The alternative service (RFC 7838) to which the connection is made; `None` if the connection
    /// is made to the origin itself.
    pub(super) alternative: Option<Box<AltService>>,
    /// The host of the first proxy on the route, for traces; `None` without a proxy.
    pub(super) proxy_host: Option<Box<str>>,
}

impl Transfer {
    /// Records the route of the connection for the next exchange, which `key`, its pool key,
    /// contains.
    pub fn set_route(&mut self, key: &ConnectionKey) {
        self.facts.proxy_used = key.via != ProxyRoute::Direct;
        let hop = key.via.hop().filter(|_| self.options.trace.is_some());
        self.route.proxy_host = hop.map(|hop| hop.preproxy.as_ref().unwrap_or(&hop.proxy).host_text().into());
        let service = key
            .alternative
            .map(|protocol| Box::new(AltService { protocol, host: key.dial.0.clone(), port: key.dial.1 }));
        if service == self.route.alternative {
            return;
        }
        if let (Some(trace), Some(AltService { protocol, host, port })) = (&self.options.trace, service.as_deref()) {
            let (from, to) = (self.current.target.host_text(), protocol.as_str());
            let text = format!("Alt-svc connecting from {from}:{} to [{to}]{host}:{port}", self.current.target.port());
            trace.event(&TraceEvent::Info(text.into()));
        }
        self.route.alternative = service;
    }

    /// Returns the value of the Alt-Used field (RFC 7838 section 5). Returns `None` if no
    /// alternative service is used.
    pub(super) fn alt_used(&self) -> Option<String> {
        let AltService { host, port, .. } = self.route.alternative.as_deref()?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// Stops using the alternative service if `error` means that it could not be reached. Returns
    /// false if no alternative service was in use, or if the error has another cause.
    pub(super) fn drop_alternative_after(&mut self, error: &Error) -> bool {
        let is_of_service = matches!(
            error.kind(),
            ErrorKind::Resolve
                | ErrorKind::Connect
                | ErrorKind::Timeout
                | ErrorKind::TlsHandshake
                | ErrorKind::PeerCertificate
                | ErrorKind::PinnedKey
        );
        is_of_service && self.drop_alternative()
    }

    /// Stops using the alternative service. Returns false if none was in use.
    pub(super) fn drop_alternative(&mut self) -> bool {
        let (Some(service), Some(known)) = (self.route.alternative.take(), &self.options.alt_svc) else { return false };
        known.fails(&self.current.target, service.protocol, &service.host, service.port);
        true
    }
}
