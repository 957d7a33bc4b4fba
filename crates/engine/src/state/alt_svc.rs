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

use haul_policy::alt_svc as policy;
use haul_policy::target::Target;

use super::store::{Shared, kept};
use crate::{Result, clock};

/// Alternative services; clones share them.
#[derive(Debug, Clone, Default)]
pub struct AltSvc(Shared<policy::AltSvc>);

kept!(policy::AltSvc);

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
        self.0.load(path.as_ref())
    }

    /// Puts what was heard since the last save into a file, with mode 0600. What other processes have put there meanwhile
    /// stays.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): it cannot be written, and is as it was. What was heard is
    /// written by the next save.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.0.save(path.as_ref())
    }

    /// Takes an Alt-Svc field of a reply from `target` over HTTP/1.1.
    pub fn take(&self, target: &Target, field: &[u8]) {
        self.0.lock().on_field(target, policy::Protocol::H1, field, clock::unix_now());
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
