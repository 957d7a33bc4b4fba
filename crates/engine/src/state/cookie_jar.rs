//! A shared jar of cookies.
//!
//! ```
//! use haul::Target;
//! use haul::state::cookie_jar::SharedCookieJar;
//!
//! let site = Target::parse("http://h.example/")?;
//! let (ours, same) = { let jar = SharedCookieJar::new(); (jar.clone(), jar) };
//! ours.take(&site, [&b"sid=31"[..]]);
//! assert_eq!(same.cookie_for(&site).unwrap(), b"sid=31");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use haul_policy::cookie::{self, netscape};
use haul_policy::target::Target;

pub use haul_policy::cookie::StateFileStyle;

use super::locked_file;
use crate::sync::IgnorePoison;
use crate::{Result, clock};

/// Maximum number of Set-Cookie fields read from one reply; curl's number. The rest is ignored.
pub const MAX_PER_REPLY: usize = 50;

/// Cookies for any number of requests at once; clones are the same jar. Limits are those of
/// [`haul_policy::cookie`].
#[derive(Clone, Default)]
pub struct SharedCookieJar(Arc<JarInner>);

#[derive(Default)]
struct JarInner {
    cookies: RwLock<cookie::CookieStore>,
    /// Held while saving: a second save would count as changed what the first has just written.
    saving: Mutex<()>,
}

impl SharedCookieJar {
    /// Makes an empty jar.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty jar of this style.
    #[must_use]
    pub fn of(style: StateFileStyle) -> Self {
        Self(Arc::new(JarInner { cookies: RwLock::new(cookie::CookieStore::of(style)), saving: Mutex::default() }))
    }

    /// Adds the cookies of a Netscape file (or of one with `Set-Cookie:` lines), and returns how
    /// many of its lines are no cookies. A missing file counts as empty.
    ///
    /// For the file that [`SharedCookieJar::save`] will write. Of another, use
    /// [`SharedCookieJar::import`]: else its cookies are not saved.
    ///
    /// # Errors
    /// [`ErrorKind::Read`](crate::ErrorKind::Read): it cannot be read.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<usize> {
        let read = netscape::read(&locked_file::read(path.as_ref())?, clock::unix_now());
        self.write().load(read.cookies);
        Ok(read.refused)
    }

    /// Loads like [`SharedCookieJar::load`] from a file that is only read. Its cookies are saved
    /// together with the others.
    ///
    /// # Errors
    /// As [`SharedCookieJar::load`].
    pub fn import(&self, path: impl AsRef<Path>) -> Result<usize> {
        Ok(self.import_text(&locked_file::read(path.as_ref())?))
    }

    /// Loads like [`SharedCookieJar::import`], but binds `Set-Cookie:` lines without a domain to
    /// this host alone.
    ///
    /// # Errors
    /// As [`SharedCookieJar::load`].
    pub fn import_of(&self, path: impl AsRef<Path>, host: Option<&str>) -> Result<usize> {
        Ok(self.import_text_of(&locked_file::read(path.as_ref())?, host))
    }

    /// Loads like [`SharedCookieJar::import`] from a text.
    pub fn import_text(&self, text: &[u8]) -> usize {
        self.import_text_of(text, None)
    }

    /// Loads like [`SharedCookieJar::import_of`] from a text.
    pub fn import_text_of(&self, text: &[u8], host: Option<&str>) -> usize {
        let read = netscape::read_for_host(text, clock::unix_now(), host);
        let mut jar = self.write();
        for cookie in read.cookies {
            jar.insert(cookie);
        }
        read.refused
    }

    /// Saves the changes since [`SharedCookieJar::load`] or the last save into a Netscape file,
    /// with mode 0600. Changes that other processes have saved there meanwhile are kept; if two set
    /// the same cookie, the later save counts. A file that is not regular, such as `/dev/stdout`,
    /// receives the changes as a complete file.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): it cannot be written, and is as it was.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_by(path, None)
    }

    /// Saves like [`SharedCookieJar::save`]. Waits at most until this deadline for a lock that
    /// another process holds on the file.
    ///
    /// # Errors
    /// As [`SharedCookieJar::save`], and [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), whose
    /// text names the process where the system tells it.
    pub fn save_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        let _saving = self.0.saving.lock().ignore_poison();
        let (changes, style) = self.with(|jar| (jar.changes(), jar.style()));
        locked_file::update(path.as_ref(), deadline, |text| {
            let now = clock::unix_now();
            let mut file = cookie::CookieStore::of(style);
            file.load(netscape::read(text, now).cookies);
            changes.apply_to(&mut file);
            netscape::write(&file, now)
        })?;
        self.write().saved(&changes);
        Ok(())
    }

    /// Writes the whole jar to a Netscape file, with mode 0600, replacing it. The deadline is that
    /// of [`SharedCookieJar::save_by`].
    ///
    /// # Errors
    /// As [`SharedCookieJar::save_by`].
    pub fn replace_by(&self, path: impl AsRef<Path>, deadline: Option<Instant>) -> Result<()> {
        let _saving = self.0.saving.lock().ignore_poison();
        let (changes, text) = self.with(|jar| (jar.changes(), netscape::write(jar, clock::unix_now())));
        locked_file::update(path.as_ref(), deadline, |_| text.clone())?;
        self.write().saved(&changes);
        Ok(())
    }

    /// Returns the whole jar as a Netscape file.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        netscape::write(&self.read(), clock::unix_now())
    }

    /// Removes the cookies that end with the session (`-j`).
    pub fn clear_session(&self) {
        self.write().clear_session();
    }

    /// Takes the Set-Cookie fields of a reply to a request to `target`, at most [`MAX_PER_REPLY`].
    /// Returns how many were refused.
    pub fn take<'f>(&self, target: &Target, fields: impl IntoIterator<Item = &'f [u8]>) -> usize {
        let mut fields = fields.into_iter().take(MAX_PER_REPLY).peekable();
        // Most replies set none, and need no lock.
        if fields.peek().is_none() {
            return 0;
        }
        let (now, mut jar) = (clock::unix_now(), self.write());
        fields.filter(|field| jar.set(target, field, now).is_err()).count()
    }

    /// Returns the value of the Cookie field of a request to `target`.
    #[must_use]
    pub fn cookie_for(&self, target: &Target) -> Option<Vec<u8>> {
        self.read().cookie_for(target, clock::unix_now())
    }

    /// Calls `look` with the cookies.
    pub fn with<T>(&self, look: impl FnOnce(&cookie::CookieStore) -> T) -> T {
        look(&self.read())
    }

    /// Calls `change` with the cookies, while no request can read them.
    pub fn change<T>(&self, change: impl FnOnce(&mut cookie::CookieStore) -> T) -> T {
        change(&mut self.write())
    }

    fn read(&self) -> RwLockReadGuard<'_, cookie::CookieStore> {
        self.0.cookies.read().ignore_poison()
    }

    fn write(&self) -> RwLockWriteGuard<'_, cookie::CookieStore> {
        self.0.cookies.write().ignore_poison()
    }
}

impl fmt::Debug for SharedCookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCookieJar").field("cookies", &self.read().len()).finish()
    }
}
