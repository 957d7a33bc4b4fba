//! A small store behind a lock, kept in a text file: the common part of [`hsts`](super::hsts) and
//! [`alt_svc`](super::alt_svc). Cookies are many and read far more than written, so their jar has
//! separate locks.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::locked_file;
use crate::sync::IgnorePoison;
use crate::{Result, clock};

/// The operations of a policy store that are needed to keep it in a file.
pub(super) trait FileStore: Default {
    /// Adds the contents of a file.
    fn load(&mut self, text: &str, now: u64);
    /// Applies the changes since the last save to the contents of a file.
    fn apply_to(&self, file: &mut Self);
    /// Returns the text of the file.
    fn write(&self, now: u64) -> String;
    /// Records that the changes are in the file.
    fn saved(&mut self);
}

/// A store; clones share it.
#[derive(Debug, Default)]
pub(super) struct SharedStore<T>(Arc<Mutex<T>>);

impl<T> Clone for SharedStore<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> SharedStore<T> {
    pub(super) fn new(store: T) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().ignore_poison()
    }
}

impl<T: FileStore> SharedStore<T> {
    /// Adds the contents of a file. A missing file counts as empty.
    pub(super) fn load(&self, path: &Path) -> Result<()> {
        let text = locked_file::read(path)?;
        self.lock().load(&String::from_utf8_lossy(&text), clock::unix_now());
        Ok(())
    }

    /// Saves the changes since the last save into a file.
    pub(super) fn save(&self, path: &Path, deadline: Option<Instant>) -> Result<()> {
        let mut known = self.lock();
        // Under the lock all the while: a save that fails must not forget, and these files are small.
        locked_file::update(path, deadline, |text| {
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

/// Lends a policy store's methods, which have these names, to [`FileStore`].
macro_rules! kept {
    ($store:ty) => {
        impl super::file_store::FileStore for $store {
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
pub(super) use kept;
