//! Alternative services of origins (RFC 7838): a shared store that is kept, saved and used.
//!
//! A request with such a store in its options uses the first alternative of its origin that speaks
//! an allowed protocol: the same Host and certificate at another endpoint. An alternative that
//! cannot be reached is skipped from then on, at no cost in retries. None is used without
//! verification, through a proxy or over a Unix socket.
//! [`connect_to`](crate::RequestOptions::connect_to) takes precedence.
//!
//! ```
//! use haul::Target;
//! use haul::state::alt_svc::AltSvcCache;
//!
//! let known = AltSvcCache::new();
//! known.take(&Target::parse("https://h.example/")?, b"h2=\":8443\"");
//! assert_eq!(known.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use haul_policy::alt_svc as policy;
pub use haul_policy::alt_svc::{AlpnProtocol, AlternativeService};
use haul_policy::target::Target;
use haul_proto::head::ProtocolVersion;

use super::file_store::{StateCache, file_store};
use crate::clock;

/// Alternative services; clones share them.
pub type AltSvcCache = StateCache<policy::AltSvcStore>;

file_store!(policy::AltSvcStore);

impl AltSvcCache {
    /// Takes an Alt-Svc field of a reply from `target` over HTTP/1.1.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.take_by(target, ProtocolVersion::Http11, field);
    }

    /// Takes an Alt-Svc field of a reply from `target` over this version of HTTP.
    pub fn take_by(&self, target: &Target, version: ProtocolVersion, field: &[u8]) {
        let source = if version == ProtocolVersion::Http2 { AlpnProtocol::H2 } else { AlpnProtocol::H1 };
        self.lock().on_field(target, source, field, clock::unix_now());
    }

    /// Returns the alternative service for a request to `target` that may speak these protocols
    /// (ALPN names, RFC 7301).
    #[must_use]
    pub fn find(&self, target: &Target, alpn: &[Vec<u8>]) -> Option<AlternativeService> {
        let offers = |name: &[u8]| alpn.iter().any(|offered| offered == name);
        let speaks = |protocol| match protocol {
            AlpnProtocol::H1 => alpn.is_empty() || offers(b"http/1.1"),
            AlpnProtocol::H2 => offers(b"h2"),
            AlpnProtocol::H3 => false,
        };
        self.lock().find(target, clock::unix_now(), speaks).cloned()
    }

    /// Records that an alternative of `target` cannot be used, so that it is skipped from now on.
    pub fn fails(&self, target: &Target, protocol: AlpnProtocol, host: &str, port: u16) {
        self.lock().mark_failed(target, protocol, host, port);
    }

    /// Returns the number of known alternatives.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether no alternative is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
