//! The common part of [`hsts`](super::hsts) and [`alt_svc`](super::alt_svc): a small store behind a
//! lock, kept in a text file. Cookies are many and read far more than written, so their jar has
//! separate locks.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use haul_policy::cookie::StateFileStyle;

use super::locked_file;
use crate::sync::IgnorePoison;
use crate::{Result, clock};

/// The operations of a policy store that are needed to keep it in a file.
pub trait FileStore: Default {
    /// Makes an empty store whose file has the heading of this style.
    fn with_style(style: StateFileStyle) -> Self;
    /// Adds the contents of a file.
    fn load(&mut self, text: &str, now: u64);
    /// Applies the changes since the last save to the contents of a file.
    fn apply_to(&self, file: &mut Self);
    /// Returns the text of the file.
    fn write(&self, now: u64) -> String;
    /// Records that the changes are in the file.
    fn saved(&mut self);
}

/// A policy store behind a lock, kept in a text file; clones share it.
#[derive(Debug, Default)]
pub struct StateCache<T>(Arc<Mutex<T>>);

impl<T> Clone for StateCache<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> StateCache<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().ignore_poison()
    }
}

impl<T: FileStore> StateCache<T> {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store whose file has the heading of this style.
    #[must_use]
    pub fn of(style: StateFileStyle) -> Self {
        Self(Arc::new(Mutex::new(T::with_style(style))))
    }

    /// Adds the contents of a file in curl's format. A missing file counts as empty.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read): it cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = locked_file::read(path.as_ref())?;
        self.lock().load(&String::from_utf8_lossy(&text), clock::unix_now());
        Ok(())
    }

    /// Saves to a file, with mode 0600, the changes since the last save. Changes that other
    /// processes have saved there meanwhile are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): it cannot be written, and is unchanged. The
    /// next save writes the changes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_by(path, None)
    }

    /// Saves like [`save`](Self::save). Waits at most until this deadline for a lock that another
    /// process holds on the file.
    ///
    /// # Errors
    /// As [`save`](Self::save), and [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), whose text
    /// names the process where the system reveals it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        let mut known = self.lock();
        // The lock is held throughout: a save that fails must not forget, and these files are
        // small.
        locked_file::update(path.as_ref(), deadline, |text| {
            let now = clock::unix_now();
            let mut file = T::default();
            file.load(&String::from_utf8_lossy(text), now);
            known.apply_to(&mut file);
            file.write(now).into_bytes()
        })?;
        known.saved();
        Ok(())
    }
}

/// Implements [`FileStore`] for a policy store by its methods of the same names.
macro_rules! file_store {
    ($store:ty) => {
        impl super::file_store::FileStore for $store {
            fn with_style(style: haul_policy::cookie::StateFileStyle) -> Self {
                <$store>::of(style)
            }

            fn load(&mut self, text: &str, now: u64) {
                <$store>::load(self, text, now);
            }

            fn apply_to(&self, file: &mut Self) {
                <$store>::apply_to(self, file);
            }

            fn write(&self, now: u64) -> String {
                <$store>::write(self, now)
            }

            fn saved(&mut self) {
                <$store>::saved(self);
            }
        }
    };
}
pub(super) use file_store;
