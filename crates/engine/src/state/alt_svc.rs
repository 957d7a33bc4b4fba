//! Where else origins are served (RFC 7838), shared. It is kept and written; which protocols are spoken is decided elsewhere.
//!
//! ```
//! use haul::Target;
//! use haul::state::alt_svc::AltSvc;
//!
//! let known = AltSvc::new();
//! known.take(&Target::parse("https://h.example/")?, b"h2=\":8443\"");
//! assert_eq!(known.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_policy::alt_svc as policy;
use haul_policy::target::Target;

use super::files;
use crate::{Result, clock};

/// Alternative services; clones share them.
#[derive(Debug, Clone, Default)]
pub struct AltSvc(Arc<Mutex<policy::AltSvc>>);

impl AltSvc {
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
            let mut file = policy::AltSvc::new();
            file.load(&String::from_utf8_lossy(text), now);
            known.apply_to(&mut file);
            file.write(now).into_bytes()
        })?;
        known.saved();
        Ok(())
    }

    /// Takes an Alt-Svc field of a reply from `target` over HTTP/1.1.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.lock().on_field(target, policy::Protocol::H1, field, clock::unix_now());
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, policy::AltSvc> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
