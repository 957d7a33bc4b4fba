//! The common part of [`hsts`](super::hsts) and [`alt_svc`](super::alt_svc): a small store behind a
//! mutex, which can be saved to a text file. The [cookie jar](super::cookie_jar) has a read-write
//! lock instead, since cookies are read far more often than written.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use haul_policy::cookie::CookieFileConventions;

use super::locked_file;
use crate::fork::{ForkSafeLock, ForkSafeWriteGuard};
use crate::{Result, time_conversions};

/// A store, such as the HSTS store, that can be loaded from a text file and saved to it.
pub trait PersistentStore: Default {
    /// Makes an empty store. `style` selects the header comment with which the store's files begin.
    fn with_style(style: CookieFileConventions) -> Self;
    /// Adds the entries in the text of the store's file. `now` is the Unix time in seconds.
    fn load(&mut self, text: &str, now: u64);
    /// Applies the changes of this store since its last save to `file`, a store that contains the
    /// current entries of the file.
    fn apply_changes_to(&self, file: &mut Self);
    /// Returns the entries of the store as the text of its file. `now` is the Unix time in seconds.
    fn write(&self, now: u64) -> String;
    /// Records that all changes so far were written to the file.
    fn mark_saved(&mut self);
}

/// A store behind a lock, which can be saved to a text file. Clones share its contents.
#[derive(Debug, Default)]
pub struct SharedStore<T>(Arc<ForkSafeLock<T>>);

impl<T> Clone for SharedStore<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> SharedStore<T> {
    pub(super) fn lock(&self) -> ForkSafeWriteGuard<'_, T> {
        self.0.write()
    }
}

impl<T: PersistentStore> SharedStore<T> {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store. `style` selects the header comment with which the store's files begin.
    #[must_use]
    pub fn with_style(style: CookieFileConventions) -> Self {
        Self(Arc::new(ForkSafeLock::new(T::with_style(style))))
    }

    /// Adds the entries of a file in curl's format. A missing file is treated as empty.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read) if the file cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = locked_file::read(path.as_ref())?;
        self.lock().load(&String::from_utf8_lossy(&text), time_conversions::unix_now());
        Ok(())
    }

    /// Saves the changes since the last save to a file, with mode 0600. Changes that other
    /// processes have saved there in the meantime are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if the file cannot be written. It is then
    /// unchanged, and the next save includes these changes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_by(path, None)
    }

    /// Saves like [`save`](Self::save), but waits at most until the deadline for a lock that
    /// another process holds on the file.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save), and [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) at
    /// the deadline. The timeout error names the process that holds the lock, if the system reveals
    /// it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        // The store is locked after the file, since another process may hold the file's lock for
        // long. It stays locked until the file is written: if that fails, no change may be lost.
        // These files are small.
        let mut locked = None;
        locked_file::update(path.as_ref(), deadline, |text| {
            let known = locked.insert(self.lock());
            let now = time_conversions::unix_now();
            let mut file = T::default();
            file.load(&String::from_utf8_lossy(text), now);
            known.apply_changes_to(&mut file);
            file.write(now).into_bytes()
        })?;
        if let Some(mut known) = locked {
            known.mark_saved();
        }
        Ok(())
    }
}

/// Implements [`PersistentStore`] for a store type, whose own methods have the names of the trait's
/// methods.
macro_rules! file_store {
    ($store:ty) => {
        impl super::file_backed_store::PersistentStore for $store {
            fn with_style(style: haul_policy::cookie::CookieFileConventions) -> Self {
                <$store>::with_style(style)
            }

            fn load(&mut self, text: &str, now: u64) {
                <$store>::load(self, text, now);
            }

            fn apply_changes_to(&self, file: &mut Self) {
                <$store>::apply_changes_to(self, file);
            }

            fn write(&self, now: u64) -> String {
                <$store>::to_text(self, now)
            }

            fn mark_saved(&mut self) {
                <$store>::mark_saved(self);
            }
        }
    };
}
pub(super) use file_store;
