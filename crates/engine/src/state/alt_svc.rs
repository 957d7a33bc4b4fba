//! Alternative services of origins (RFC 7838): a shared store that can be saved to a file.
//!
//! A request with such a store in its options connects to the first alternative service of its
//! origin that uses an allowed protocol (for HTTP/3: see [`http3`](super::http3)). The `Host` field
//! and the certificate remain those of the origin. If an alternative cannot be reached, it is not
//! tried again, and the failure does not count as a retry. Alternatives are not used if
//! certificates are not verified, through a proxy, or over a Unix socket.
//! [`connect_to`](crate::RequestOptions::connect_to) takes precedence.
//!
//! ```
//! use haul::Target;
//! use haul::state::alt_svc::AltSvcCache;
//!
//! let known = AltSvcCache::new();
//! known.store_field(&Target::parse("https://h.example/")?, b"h2=\":8443\"");
//! assert_eq!(known.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use haul_policy::alt_svc as policy;
pub use haul_policy::alt_svc::{AlpnProtocol, AlternativeService};
use haul_policy::http3::QuicEndpoint;
use haul_policy::target::Target;
use haul_proto::response_head::ProtocolVersion;

use super::file_backed_store::{SharedStore, file_store};
use crate::time_conversions;

/// A store of alternative services (RFC 7838), by origin. Clones share its contents.
pub type AltSvcCache = SharedStore<policy::AltSvcStore>;

file_store!(policy::AltSvcStore);

impl AltSvcCache {
    /// Stores the alternative services in `field`, the Alt-Svc field of an HTTP/1.1 response from
    /// `target`.
    pub fn store_field(&self, target: &Target, field: &[u8]) {
        self.store_field_by_version(target, ProtocolVersion::Http11, field);
    }

    /// Stores the alternative services in `field`, the Alt-Svc field of a response from `target`
    /// with this HTTP version.
    pub fn store_field_by_version(&self, target: &Target, version: ProtocolVersion, field: &[u8]) {
        self.store_field_generated_at(target, version, field, time_conversions::unix_now());
    }

    /// Stores the alternative services in `field`, the Alt-Svc field of a response from `target`
    /// with this HTTP version. The server generated the response at the time `generated`, in
    /// seconds since 1970.
    pub(crate) fn store_field_generated_at(
        &self,
        target: &Target,
        version: ProtocolVersion,
        field: &[u8],
        generated: u64,
    ) {
        self.lock().on_field(target, source_protocol(version), field, generated);
    }

    /// Returns the alternative service to use for a request to `target`. `alpn` lists the
    /// acceptable protocols by their ALPN names (RFC 7301). Returns `None` if no such service is
    /// known.
    #[must_use]
    pub fn find(&self, target: &Target, alpn: &[Vec<u8>]) -> Option<AlternativeService> {
        let offers = |name: &[u8]| alpn.iter().any(|offered| offered == name);
        let speaks = |protocol| match protocol {
            AlpnProtocol::H1 => alpn.is_empty() || offers(b"http/1.1"),
            AlpnProtocol::H2 => offers(b"h2"),
            AlpnProtocol::H3 => false,
        };
        self.lock().find(target, time_conversions::unix_now(), speaks).cloned()
    }

    /// Returns the HTTP/3 endpoints of `target`, the preferred one first.
    pub(crate) fn http3_endpoints(&self, target: &Target) -> Vec<QuicEndpoint> {
        super::http3::endpoints(&self.lock(), target).collect()
    }

    /// Records that this alternative service of `target` cannot be used, so that it is not tried
    /// again.
    pub fn mark_failed(&self, target: &Target, protocol: AlpnProtocol, host: &str, port: u16) {
        self.lock().mark_failed(target, protocol, host, port);
    }

    /// Returns the number of alternative services in the store.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if no alternative service is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the ALPN protocol for the HTTP version of a response that contains an Alt-Svc field.
pub(crate) fn source_protocol(version: ProtocolVersion) -> AlpnProtocol {
    match version {
        ProtocolVersion::Http2 => AlpnProtocol::H2,
        ProtocolVersion::Http3 => AlpnProtocol::H3,
        _ => AlpnProtocol::H1,
    }
}
