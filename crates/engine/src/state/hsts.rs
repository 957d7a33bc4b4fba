//! Hosts that must be reached over TLS (RFC 6797): a shared store that can be saved to a file.
//!
//! ```
//! use haul::Target;
//! use haul::state::hsts::HstsCache;
//!
//! let hsts = HstsCache::new();
//! hsts.store_field(&Target::parse("https://h.example/")?, b"max-age=600");
//! let plain = Target::parse("http://h.example/x")?;
//! assert_eq!(hsts.upgrade(&plain).unwrap().to_url(), "https://h.example/x");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use haul_policy::hsts as policy;
use haul_policy::target::Target;

use super::file_backed_store::{SharedStore, file_store};
use crate::time_conversions;

/// A store of hosts that must be reached over TLS. Clones share its contents. It contains at most
/// [`policy::MAX_HOSTS`] hosts.
pub type HstsCache = SharedStore<policy::HstsStore>;

file_store!(policy::HstsStore);

impl HstsCache {
    /// Stores or removes the host of `target` according to `field`, the Strict-Transport-Security
    /// field of a response from `target`.
    pub fn store_field(&self, target: &Target, field: &[u8]) {
        self.lock().on_field(target, field, time_conversions::unix_now());
    }

    /// Returns the https target to use instead of `target`. Returns `None` if `target` is not an
    /// http target, or if its host need not be reached over TLS.
    #[must_use]
    pub fn upgrade(&self, target: &Target) -> Option<Target> {
        self.lock().to_https_target(target, time_conversions::unix_now())
    }
}
