//! Alternative services of origins (RFC 7838): a shared store that is kept, saved and used.
//!
//! A request that has such a store in its options goes by the first alternative of its origin that speaks what it may speak:
//! the same Host, the same certificate, another door. One that cannot be reached is passed over from then on, at no cost in
//! retries. Without verification, through proxies and by a Unix socket none is used; what [`connect_to`](crate::RequestOptions::connect_to)
//! says goes before.
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

use std::path::Path;
use std::time::Instant;

use haul_policy::alt_svc as policy;
pub use haul_policy::alt_svc::{AlpnProtocol, AlternativeService};
use haul_policy::cookie::StateFileStyle;
use haul_policy::target::Target;
use haul_proto::head::ProtocolVersion;

use super::file_store::{SharedStore, kept};
use crate::{Result, clock};

/// Alternative services; clones share them.
#[derive(Debug, Clone, Default)]
pub struct AltSvcCache(SharedStore<policy::AltSvcStore>);

kept!(policy::AltSvcStore);

impl AltSvcCache {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store whose file has the heading of this style.
    #[must_use]
    pub fn of(style: StateFileStyle) -> Self {
        Self(SharedStore::new(policy::AltSvcStore::of(style)))
    }

    /// Adds the contents of a file in curl's format. A missing file counts as empty.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read): it cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        self.0.load(path.as_ref())
    }

    /// Saves to a file, with mode 0600, the changes since the last save. Changes that other
    /// processes have saved there meanwhile are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): it cannot be written, and is unchanged. The next save writes the changes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_by(path, None)
    }

    /// Saves like [`AltSvcCache::save`]. Waits at most until this deadline for a lock that another
    /// process holds on the file.
    ///
    /// # Errors
    /// As [`AltSvcCache::save`], and [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), whose text names the process where the system
    /// tells it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        self.0.save(path.as_ref(), deadline)
    }

    /// Takes an Alt-Svc field of a reply from `target` over HTTP/1.1.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.take_by(target, ProtocolVersion::Http11, field);
    }

    /// Takes an Alt-Svc field of a reply from `target` over this version of HTTP.
    pub fn take_by(&self, target: &Target, version: ProtocolVersion, field: &[u8]) {
        let source = if version == ProtocolVersion::Http2 { AlpnProtocol::H2 } else { AlpnProtocol::H1 };
        self.0.lock().on_field(target, source, field, clock::unix_now());
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
        self.0.lock().find(target, clock::unix_now(), speaks).cloned()
    }

    /// Records that an alternative of `target` cannot be used, so that it is skipped from now on.
    pub fn fails(&self, target: &Target, protocol: AlpnProtocol, host: &str, port: u16) {
        self.0.lock().mark_failed(target, protocol, host, port);
    }

    /// Returns the number of known alternatives.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Returns whether no alternative is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
