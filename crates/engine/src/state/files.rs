//! A file that any number of processes read and write: none loses what another wrote, and no reader sees half of it.
//!
//! ```text
//!  open ─▶ lock ─▶ is it still the file of that name? ─▶ read ─▶ change ─▶ write another, rename it over this ─▶ unlock
//!    ▲                            │ no: another process has renamed over it
//!    └────────────────────────────┘
//! ```
//!
//! The lock is on the file itself, and counts only if the file is still the one of that name once it is held. The rejected
//! alternative is a lock file beside it, which stays behind, and needs rights in a directory that only has to be written
//! for the rename.
//!
//! Nothing is synced to the disk: a power cut may cost the last save, not what was there before it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::{Error, ErrorKind, Result};

/// The most that is read of such a file. The stores' own limits keep them far below.
const MOST: u64 = 64 << 20;

/// The content of a file; empty if it does not exist.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut text)) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(cannot(ErrorKind::Read, "read", path, error)),
    }
}

/// Replaces a file with the result of `change` on its text, readable only for its owner. Anything but a regular file is written to instead.
pub(super) fn update(path: &Path, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<()> {
    try_update(path, change).map_err(|error| cannot(ErrorKind::Write, "write", path, error))
}

fn cannot(kind: ErrorKind, what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(kind, format!("cannot {what} {}", path.display()), error)
}

fn try_update(path: &Path, change: impl FnOnce(&[u8]) -> Vec<u8>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(&change(b""));
    }
    let mut file = lock(path)?;
    // A link stays one: what it leads to is replaced.
    let path = fs::canonicalize(path)?;
    let mut text = Vec::new();
    (&mut file).take(MOST).read_to_end(&mut text)?;
    let new = change(&text);
    if new == text {
        return Ok(());
    }
    let mut beside = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    beside.write_all(&new)?;
    beside.persist(&path)?;
    Ok(())
}

/// Opens or creates the file with this name, and waits for its lock. Closing it unlocks.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let held = file.metadata()?;
        match fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn many_threads_that_add_a_line_lose_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lines");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for i in 0..50 {
                        update(path, |text| [text, format!("{thread}-{i}\n").as_bytes()].concat()).unwrap();
                    }
                });
            }
        });
        let text = String::from_utf8(read(&path).unwrap()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 400);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_stays_one_and_a_device_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        update(&link, |text| [text, b" and new"].concat()).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"old and new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        update(Path::new("/dev/null"), |_| b"x".to_vec()).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = update(Path::new("/nonexistent/jar"), |_| Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Write);
        assert!(error.to_string().contains("/nonexistent/jar"), "{error}");
        assert_eq!(read(Path::new("/nonexistent/jar")).unwrap(), b"");
    }
}
