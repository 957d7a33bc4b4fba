//! Hosts that must be reached over TLS (RFC 6797), shared.
//!
//! ```
//! use haul::Target;
//! use haul::state::hsts::Hsts;
//!
//! let hsts = Hsts::new();
//! hsts.take(&Target::parse("https://h.example/")?, b"max-age=600");
//! let plain = Target::parse("http://h.example/x")?;
//! assert_eq!(hsts.upgrade(&plain).unwrap().to_url(), "https://h.example/x");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_policy::hsts as policy;
use haul_policy::target::Target;

use super::files;
use crate::{Result, clock};

/// Hosts that must be reached over TLS; clones share them. At most [`policy::MAX_HOSTS`].
#[derive(Debug, Clone, Default)]
pub struct Hsts(Arc<Mutex<policy::Hsts>>);

impl Hsts {
    /// None is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a file of curl's holds; one that is not there is an empty one.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read): it cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = files::read(path.as_ref())?;
        self.lock().load(&String::from_utf8_lossy(&text), clock::unix_now());
        Ok(())
    }

    /// Puts what was heard since the last save into a file, with mode 0600. What other processes have put there meanwhile
    /// stays.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): it cannot be written, and is as it was. What was heard is
    /// written by the next save.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut known = self.lock();
        // Under the lock all the while: a save that fails must not forget, and these files are small.
        files::update(path.as_ref(), |text| {
            let now = clock::unix_now();
            let mut file = policy::Hsts::new();
            file.load(&String::from_utf8_lossy(text), now);
            known.apply_to(&mut file);
            file.write(now).into_bytes()
        })?;
        known.saved();
        Ok(())
    }

    /// Takes the Strict-Transport-Security field of a reply from `target`.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.lock().on_field(target, field, clock::unix_now());
    }

    /// `target` over TLS, if it is not and must be.
    #[must_use]
    pub fn upgrade(&self, target: &Target) -> Option<Target> {
        self.lock().upgrade(target, clock::unix_now())
    }

    fn lock(&self) -> MutexGuard<'_, policy::Hsts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
