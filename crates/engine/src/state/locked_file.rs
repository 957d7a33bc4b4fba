//! The files for cookies, HSTS and Alt-Svc, which any number of processes read and write. No
//! process overwrites the changes of another one, and no reader sees an incomplete file.
//!
//! ```text
//!  open ─▶ lock ─▶ is it still the file of that name? ─▶ read ─▶ change ─▶ write another, rename it over this ─▶ unlock
//!    ▲                            │ no: another process has renamed over it
//!    └────────────────────────────┘
//! ```
//!
//! The file itself is locked. After locking, the path must still refer to that file; otherwise, the
//! lock is useless. The rejected alternative is a separate lock file. A lock file would remain in
//! the directory, and could not be created in a directory that allows no new files.
//!
//! If no file can be renamed to the path (a mount point, a directory in which no file can be
//! created), the file is written in place while it is locked. On Windows, a file that another process
//! has open is replaced, too, unless that process forbids it or the file system is FAT.
//!
//! The file is not synced to the disk: a power failure may lose the last save, but not earlier
//! ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sink::temporary_and_final_names::{directory_of, prevents_replacement, with_temporary_name};
use crate::system::file_metadata_and_flags::{self, MetadataExt, OpenOptionsExt, fchown};
use crate::{Error, ErrorKind, Result};

/// The maximum number of bytes that are read from a file of cookies, HSTS or Alt-Svc. Because of
/// the limits of the stores, these files are far smaller.
const MAX_FILE_SIZE: u64 = 64 << 20;
/// The maximum pause between two attempts to lock a file.
const MAX_LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Returns the content of a file. Returns empty content if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_FILE_SIZE).read_to_end(&mut text)) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(file_error(ErrorKind::Read, "read", path, error)),
    }
}

/// Replaces the content of the file at `path`. `change` receives the old content, and returns the
/// new content. Only the owner of the new file can read it; on Windows, the access list of the
/// directory decides. If `path` is not a regular file, `change` receives empty content, and its
/// result is written to the file.
///
/// If another process has locked the file, waits for the lock until the deadline.
pub(super) fn update(path: &Path, deadline: Option<Instant>, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => write_special(path, &change(b"")),
        _ if file_metadata_and_flags::is_named_device(path) => write_special(path, &change(b"")),
        _ => {
            let mut file = lock(path, deadline)?;
            try_update(path, &mut file, change)
        }
    }
    .map_err(|error| file_error(ErrorKind::Write, "write", path, error))
}

fn file_error(kind: ErrorKind, what: &str, path: &Path, error: io::Error) -> Error {
    Error::with_source(kind, format!("cannot {what} {}", path.display()), error)
}

/// Writes `text` to a device or a FIFO. The file is opened with `O_CREAT`, because only then does
/// the kernel refuse FIFOs of other users in directories such as /tmp.
fn write_special(path: &Path, text: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?.write_all(text)
}

fn try_update(path: &Path, file: &mut File, change: impl FnOnce(&[u8]) -> Vec<u8>) -> io::Result<()> {
    let mut text = Vec::new();
    file.take(MAX_FILE_SIZE).read_to_end(&mut text)?;
    let new = change(&text);
    if new == text {
        return Ok(());
    }
    match path_to_replace(path, file).map(|target| replace(&target, file, &new)) {
        Some(Err(error)) if !prevents_replacement(&error) => Err(error),
        Some(Ok(())) => Ok(()),
        Some(Err(_)) | None => write_in_place(file, &new),
    }
}

/// Returns the path to which a new file is renamed to replace the opened file `file`: `path` with
/// symbolic links resolved. Returns `None` if `path` now refers to another file.
fn path_to_replace(path: &Path, file: &File) -> Option<PathBuf> {
    let target = fs::canonicalize(path).ok()?;
    file_metadata_and_flags::is_file_itself_at(file, &target).ok()?.then_some(target)
}

fn replace(target: &Path, old: &File, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let (mut beside, mut path) = with_temporary_name(directory_of(target), |path| options.open(path))?;
    beside.write_all(text)?;
    let (old, new) = (old.metadata()?, beside.metadata()?);
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        // Only root can do this, when it saves another user's file.
        let _ = fchown(&beside, Some(old.uid()), Some(old.gid()));
    }
    // This process has the old file open. On Windows, std's call replaces an open file, and that of
    // the crate tempfile does not.
    fs::rename(&path, target)?;
    path.disable_cleanup(true);
    Ok(())
}

fn write_in_place(file: &mut File, text: &[u8]) -> io::Result<()> {
    // This fails for another user's file, which keeps its permissions.
    let _ = file_metadata_and_flags::set_mode(file, 0o600);
    file.rewind()?;
    file.write_all(text)?;
    file.set_len(text.len() as u64)
}

/// Opens or creates the file at this path, and waits until this process has locked it, at most
/// until the deadline. Closing the file releases the lock.
fn lock(path: &Path, deadline: Option<Instant>) -> Result<File> {
    let failed = |error| file_error(ErrorKind::Write, "write", path, error);
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        if !wait_for_lock(&file, deadline).map_err(failed)? {
            let holder =
                lock_holder(&file).map_or("another process".to_owned(), |process| format!("process {process}"));
            let message = format!("cannot write {}: {holder} holds its lock", path.display());
            return Err(Error::new(ErrorKind::Timeout, message));
        }
        match file_metadata_and_flags::is_file_at(&file, path) {
            Ok(true) => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
}

/// Waits for the lock on the file. Returns true if the lock was acquired, and false if the deadline
/// has passed.
fn wait_for_lock(file: &File, deadline: Option<Instant>) -> io::Result<bool> {
    let lock = if deadline.is_some() { file_metadata_and_flags::try_lock } else { file_metadata_and_flags::lock };
    let mut pause = Duration::from_millis(1);
    loop {
        match lock(file) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = deadline.map_or(MAX_LOCK_PAUSE, |at| at.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    return Ok(false);
                }
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(MAX_LOCK_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the process ID of the holder of the lock on the file. Returns `None` if the system does
/// not reveal it.
#[cfg(target_os = "linux")]
fn lock_holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    // The kernel may skip a line if other processes lock and unlock files while it is read.
    (0..3).find_map(|_| {
        // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:262170 0 EOF`
        fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_it = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&place.as_str());
            fields.get(4).filter(|_| is_it)?.parse().ok().filter(|&process| process > 0)
        })
    })
}

/// Returns `None`, because this system does not reveal which process holds a lock.
#[cfg(not(target_os = "linux"))]
fn lock_holder(_file: &File) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn concurrent_updates_of_a_file_lose_no_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lines");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for i in 0..50 {
                        update(path, None, |text| [text, format!("{thread}-{i}\n").as_bytes()].concat()).unwrap();
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
    fn update_writes_through_links_and_keeps_devices() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        update(&link, None, |text| [text, b" and new"].concat()).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"old and new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        update(Path::new("/dev/null"), None, |_| b"x".to_vec()).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn update_error_names_the_path() {
        let error = update(Path::new("/nonexistent/jar"), None, |_| Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Write);
        assert!(error.to_string().contains("/nonexistent/jar"), "{error}");
        assert_eq!(read(Path::new("/nonexistent/jar")).unwrap(), b"");
    }

    #[test]
    fn update_waits_for_the_lock_until_the_deadline() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("jar");
        fs::write(&path, "old").unwrap();
        let held = File::open(&path).unwrap();
        file_metadata_and_flags::lock(&held).unwrap();
        let error = update(&path, Some(Instant::now()), |_| b"new".to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let text = error.to_string();
        assert!(text.contains("jar") && text.contains("holds its lock"), "{text}");
        if fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.contains(&std::process::id().to_string())) {
            assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let far = Instant::now() + Duration::from_secs(600);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| update(&path, Some(far), |_| b"new".to_vec()));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn write_in_place_replaces_the_content() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("jar");
        fs::write(&path, "an old text").unwrap();
        let mut file = File::options().read(true).write(true).open(&path).unwrap();
        write_in_place(&mut file, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn link_swapped_after_opening_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (real, victim, link) = (place.path().join("real"), place.path().join("victim"), place.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &link).unwrap();
        let mut opened = File::options().read(true).write(true).open(&real).unwrap();
        try_update(&link, &mut opened, |_| b"new".to_vec()).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }
}
