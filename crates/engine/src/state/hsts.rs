//! Hosts that must be reached over TLS (RFC 6797), shared.
//!
//! ```
//! use haul::Target;
//! use haul::state::hsts::HstsCache;
//!
//! let hsts = HstsCache::new();
//! hsts.take(&Target::parse("https://h.example/")?, b"max-age=600");
//! let plain = Target::parse("http://h.example/x")?;
//! assert_eq!(hsts.upgrade(&plain).unwrap().to_url(), "https://h.example/x");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::time::Instant;

use haul_policy::cookie::StateFileStyle;
use haul_policy::hsts as policy;
use haul_policy::target::Target;

use super::file_store::{SharedStore, kept};
use crate::{Result, clock};

/// Hosts that must be reached over TLS; clones share them. At most [`policy::MAX_HOSTS`].
#[derive(Debug, Clone, Default)]
pub struct HstsCache(SharedStore<policy::HstsStore>);

kept!(policy::HstsStore);

impl HstsCache {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store whose file has the heading of this style.
    #[must_use]
    pub fn of(style: StateFileStyle) -> Self {
        Self(SharedStore::new(policy::HstsStore::of(style)))
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

    /// Saves like [`HstsCache::save`]. Waits at most until this deadline for a lock that another process
    /// holds on the file.
    ///
    /// # Errors
    /// As [`HstsCache::save`], and [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), whose text names the process where the system
    /// tells it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        self.0.save(path.as_ref(), deadline)
    }

    /// Takes the Strict-Transport-Security field of a reply from `target`.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.0.lock().on_field(target, field, clock::unix_now());
    }

    /// Returns `target` over TLS, if it is not over TLS and must be.
    #[must_use]
    pub fn upgrade(&self, target: &Target) -> Option<Target> {
        self.0.lock().upgrade(target, clock::unix_now())
    }
}
