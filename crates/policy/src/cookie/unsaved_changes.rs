//! Changes of a jar since its file was read. Several processes may share one file: a save applies
//! these changes to the file *as it is at that moment*.
//!
//! Writing the whole jar would undo the changes of other processes; curl loses cookies that way. A
//! save therefore is: lock the file, read it again, [`CookieChanges::apply_to`] it, write, unlock,
//! [`CookieStore::mark_saved`].
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::cookie::{CookieStore, netscape};
//!
//! let site = Target::parse("http://h.example/")?;
//! let text = b"h.example\tFALSE\t/\tFALSE\t0\told\t1\n";
//! let (mut ours, mut file) = (CookieStore::new(), CookieStore::new());
//! ours.load(netscape::read(text, 9).cookies);
//! ours.set(&site, b"mine=1", 9)?;
//! ours.set(&site, b"old=; Max-Age=0", 9)?;
//! // Meanwhile another process has added a cookie.
//! file.load(netscape::read(&[&text[..], b"h.example\tFALSE\t/\tFALSE\t0\ttheirs\t1\n"].concat(), 9).cookies);
//!
//! let changes = ours.changes();
//! changes.apply_to(&mut file);
//! ours.mark_saved(&changes);
//! assert_eq!(file.cookie_for(&site, 9).unwrap(), b"theirs=1; mine=1");
//! assert!(ours.changes().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{Cookie, CookieStore};

/// The identity of a cookie. Two cookies with equal keys replace each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CookieKey {
    /// The host that receives the cookie, or the domain whose hosts receive it, without a leading
    /// dot.
    pub domain: String,
    /// True if only the host in `domain` receives the cookie; false if its subdomains receive it,
    /// too.
    pub host_only: bool,
    /// The path of the cookie, equal to [`CookieParts::path`](super::CookieParts::path).
    pub path: Vec<u8>,
    /// The name of the cookie.
    pub name: Vec<u8>,
}

/// The changes of a jar since its file was read or last written.
///
/// If two processes set the same cookie, the last process to save wins. A cookie that was evicted
/// only because of the limits stays in the file. The removal of a cookie that was never in the file
/// is not recorded, so a server cannot make this record grow.
#[derive(Clone, Debug, Default)]
pub struct CookieChanges {
    /// The jar's change counter at the time when these changes were collected.
    pub(super) upto: u64,
    pub(super) set: Vec<Cookie>,
    pub(super) removed: Vec<CookieKey>,
}

impl CookieChanges {
    /// Returns `true` if the jar has no unsaved changes.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// Returns the cookies to write to the file, in the order in which they were created.
    pub fn cookies_to_set(&self) -> &[Cookie] {
        &self.set
    }

    /// Returns the keys of the cookies to delete from the file.
    pub fn cookies_to_remove(&self) -> &[CookieKey] {
        &self.removed
    }

    /// Applies these changes to `file`, a jar that was just read again from the file.
    pub fn apply_to(&self, file: &mut CookieStore) {
        for key in &self.removed {
            file.remove(key);
        }
        for cookie in &self.set {
            file.insert(cookie.clone());
        }
    }
}
