//! A cookie jar that requests can share.
//!
//! ```
//! use haul::Target;
//! use haul::state::cookie_jar::SharedCookieJar;
//!
//! let site = Target::parse("http://h.example/")?;
//! let (ours, same) = { let jar = SharedCookieJar::new(); (jar.clone(), jar) };
//! ours.store_fields(&site, [&b"sid=31"[..]]);
//! assert_eq!(same.cookie_for(&site).unwrap(), b"sid=31");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use haul_policy::cookie::{self, netscape};
use haul_policy::target::Target;

pub use haul_policy::cookie::CookieFileConventions;

use super::locked_file;
use crate::fork::{self, ForkSafeLock, ForkSafeReadGuard, ForkSafeWriteGuard};
use crate::ignore_poison::IgnorePoison;
use crate::{Result, time_conversions};

/// The maximum number of Set-Cookie fields that are stored from one response, as in curl. Further
/// fields are ignored.
pub const MAX_COOKIES_PER_RESPONSE: usize = 50;

/// A cookie jar that several requests can share. Clones share the same cookies. For its limits, see
/// [`haul_policy::cookie`].
#[derive(Clone, Default)]
pub struct SharedCookieJar(Arc<JarInner>);

/// The state that all clones of a [`SharedCookieJar`] share.
#[derive(Default)]
struct JarInner {
    cookies: ForkSafeLock<cookie::CookieStore>,
    /// The lock that is held while the jar is saved to a file, so that two simultaneous saves do
    /// not write the same changes twice.
    saving: ForkSafeLock<SaveLock>,
}

/// The lock of the saves of one process. A save may wait for a file for a long time, so that a fork
/// must not wait for a save. A forked child makes its own lock, since another thread of its parent
/// may have held the inherited one.
struct SaveLock {
    lock: Arc<Mutex<()>>,
    /// The value of [`fork::fork_count`] in the process that made the lock.
    generation: u32,
}

impl Default for SaveLock {
    fn default() -> Self {
        Self { lock: Arc::default(), generation: fork::fork_count() }
    }
}

impl SharedCookieJar {
    /// Makes an empty jar.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty jar. `style` selects the header comment with which the jar's files begin.
    #[must_use]
    pub fn with_style(style: CookieFileConventions) -> Self {
        Self(Arc::new(JarInner {
            cookies: ForkSafeLock::new(cookie::CookieStore::with_style(style)),
            saving: ForkSafeLock::default(),
        }))
    }

    /// Adds the cookies of a Netscape cookie file (or of a file with `Set-Cookie:` lines). Returns
    /// the number of lines that are not valid cookies. A missing file counts as empty.
    ///
    /// The cookies count as already saved, so [`SharedCookieJar::save`] does not write them again.
    /// Use this method only for the file to which the jar is saved, and [`SharedCookieJar::import`]
    /// for any other file.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read) if the file cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<usize> {
        let read = netscape::read(&locked_file::read(path.as_ref())?, time_conversions::unix_now());
        self.write().load(read.cookies);
        Ok(read.refused)
    }

    /// Adds the cookies of a file, like [`SharedCookieJar::load`]. The cookies do not count as
    /// saved, so [`SharedCookieJar::save`] writes them to the jar's own file.
    ///
    /// # Errors
    /// The errors of [`SharedCookieJar::load`].
    pub fn import(&self, path: impl AsRef<Path>) -> Result<usize> {
        Ok(self.import_text(&locked_file::read(path.as_ref())?))
    }

    /// Adds the cookies of a file like [`SharedCookieJar::import`]. With `host`, cookies from
    /// `Set-Cookie:` lines without a domain apply only to this host.
    ///
    /// # Errors
    /// The errors of [`SharedCookieJar::load`].
    pub fn import_of(&self, path: impl AsRef<Path>, host: Option<&str>) -> Result<usize> {
        Ok(self.import_text_of(&locked_file::read(path.as_ref())?, host))
    }

    /// Adds the cookies in `text`, which has the format of a cookie file. [`SharedCookieJar::save`]
    /// writes these cookies to the jar's own file. Returns the number of lines that are not valid
    /// cookies.
    pub fn import_text(&self, text: &[u8]) -> usize {
        self.import_text_of(text, None)
    }

    /// Adds the cookies in `text`, which has the format of a cookie file. With `host`, cookies from
    /// `Set-Cookie:` lines without a domain apply only to this host, as with
    /// [`SharedCookieJar::import_of`]. Returns the number of lines that are not valid cookies.
    pub fn import_text_of(&self, text: &[u8], host: Option<&str>) -> usize {
        let read = netscape::read_for_host(text, time_conversions::unix_now(), host);
        let mut jar = self.write();
        for cookie in read.cookies {
            jar.insert(cookie);
        }
        read.refused
    }

    /// Saves the changes since [`SharedCookieJar::load`] or the last save to a Netscape cookie
    /// file, with mode 0600. Changes that other processes have saved there in the meantime are
    /// kept; if two processes set the same cookie, the later save wins. If `path` is not a regular
    /// file, such as `/dev/stdout`, nothing is read from it: the text that is written to it is a
    /// new cookie file with only the changed cookies.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if the file cannot be written. It is then
    /// unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_by(path, None)
    }

    /// Saves like [`SharedCookieJar::save`], but waits at most until the deadline for a lock that
    /// another process holds on the file.
    ///
    /// # Errors
    /// The errors of [`SharedCookieJar::save`], and
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) at the deadline. The timeout error names
    /// the process that holds the lock, if the system reveals it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        let save_lock = self.save_lock();
        let _saving = save_lock.lock().ignore_poison();
        let (changes, style) = self.with(|jar| (jar.changes(), jar.style()));
        locked_file::update(path.as_ref(), deadline, |text| {
            let now = time_conversions::unix_now();
            let mut file = cookie::CookieStore::with_style(style);
            file.load(netscape::read(text, now).cookies);
            changes.apply_to(&mut file);
            netscape::write(&file, now)
        })?;
        self.write().mark_saved(&changes);
        Ok(())
    }

    /// Replaces a Netscape cookie file with all cookies of the jar, with mode 0600. Waits at most
    /// until the deadline for a lock that another process holds on the file.
    ///
    /// # Errors
    /// The errors of [`SharedCookieJar::save_by`].
    pub fn replace_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        let save_lock = self.save_lock();
        let _saving = save_lock.lock().ignore_poison();
        let (changes, text) = self.with(|jar| (jar.changes(), netscape::write(jar, time_conversions::unix_now())));
        locked_file::update(path.as_ref(), deadline, |_| text.clone())?;
        self.write().mark_saved(&changes);
        Ok(())
    }

    /// Returns all cookies of the jar as the text of a Netscape cookie file.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        netscape::write(&self.read(), time_conversions::unix_now())
    }

    /// Removes the session cookies, which are cookies without an expiry time (`-j`).
    pub fn clear_session(&self) {
        self.write().clear_session();
    }

    /// Stores the cookies of the Set-Cookie fields of a response from `target`, at most
    /// [`MAX_COOKIES_PER_RESPONSE`]. Returns the number of rejected fields.
    pub fn store_fields<'f>(&self, target: &Target, fields: impl IntoIterator<Item = &'f [u8]>) -> usize {
        let mut fields = fields.into_iter().take(MAX_COOKIES_PER_RESPONSE).peekable();
        // Most responses have no Set-Cookie field, and need no lock.
        if fields.peek().is_none() {
            return 0;
        }
        let (now, mut jar) = (time_conversions::unix_now(), self.write());
        fields.filter(|field| jar.set(target, field, now).is_err()).count()
    }

    /// Returns the value of the Cookie field of a request to `target`. Returns `None` if the jar
    /// has no cookie for it.
    #[must_use]
    pub fn cookie_for(&self, target: &Target) -> Option<Vec<u8>> {
        self.read().cookie_for(target, time_conversions::unix_now())
    }

    /// Calls `look` with the cookies, and returns its result. During the call, no request can store
    /// cookies, and no other thread can fork. A request with this jar in the call waits for itself
    /// for ever if its response sets a cookie.
    pub fn with<T>(&self, look: impl FnOnce(&cookie::CookieStore) -> T) -> T {
        look(&self.read())
    }

    /// Calls `change` with the cookies, and returns its result. During the call, no request can
    /// read or store cookies, and no other thread can fork. A request with this jar in the call
    /// waits for itself for ever.
    pub fn change<T>(&self, change: impl FnOnce(&mut cookie::CookieStore) -> T) -> T {
        change(&mut self.write())
    }

    fn read(&self) -> ForkSafeReadGuard<'_, cookie::CookieStore> {
        self.0.cookies.read()
    }

    fn write(&self) -> ForkSafeWriteGuard<'_, cookie::CookieStore> {
        self.0.cookies.write()
    }

    /// Returns this process's lock for saves.
    fn save_lock(&self) -> Arc<Mutex<()>> {
        let mut saving = self.0.saving.write();
        if saving.generation != fork::fork_count() {
            // Not dropped: the inherited lock may be held by a thread that is not in this process.
            std::mem::forget(std::mem::take(&mut *saving));
        }
        Arc::clone(&saving.lock)
    }
}

impl fmt::Debug for SharedCookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCookieJar").field("cookies", &self.read().len()).finish()
    }
}
