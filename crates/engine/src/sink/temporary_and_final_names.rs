//! Names of output files: the temporary name while a file is written, the rename to its final name,
//! and what happens to a file that already has that name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, io};

use haul_policy::target::Target;
use tempfile::{NamedTempFile, TempPath};

use crate::Result;

/// The treatment of an existing file that has the target's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClobberMode {
    /// Replaces an existing file if the user chose the file name. If the response suggested the
    /// name, keeps the existing file and fails.
    #[default]
    Own,
    /// Replaces an existing file, unless the response suggested the file's name. Replaces a file
    /// with a suggested name only if the file was created or changed after this time, and otherwise
    /// keeps the file and fails. The time is the beginning of an earlier run of the program that
    /// this run continues. The earlier run has probably written every file that is newer.
    OwnSince(SystemTime),
    /// Replaces an existing file, even if the response suggested its name.
    Replace,
    /// Keeps the existing file, and appends a number to the name of the new file: `.1` to `.100`
    /// (curl's `--no-clobber`).
    Number,
    /// Keeps the existing file, and makes the sink fail.
    Refuse,
    /// Keeps the existing file, and makes the sink fail. A fleet, which runs many transfers in
    /// parallel, then counts the transfer as successful, and does not receive the rest of the body.
    Skip,
}

impl ClobberMode {
    /// Returns true if this mode can replace an existing file.
    pub(super) fn replaces(self) -> bool {
        matches!(self, Self::Own | Self::OwnSince(_) | Self::Replace)
    }
}

/// A check that accepts or refuses a file's path before the file is opened. The check can reserve
/// paths, since several responses may suggest the same name.
#[derive(Clone)]
pub struct FilePathCheck(Arc<FilePathCheckFunction>);

/// A function that accepts or refuses the path of a file for the requested target.
type FilePathCheckFunction = dyn Fn(&Path, &Target) -> Result<()> + Send + Sync;

impl FilePathCheck {
    /// Makes a check from a function. The function is called once for each file, with the path of
    /// the file and the requested target.
    #[must_use]
    pub fn new(check: impl Fn(&Path, &Target) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn check(&self, path: &Path, target: &Target) -> Result<()> {
        (self.0)(path, target)
    }
}

impl fmt::Debug for FilePathCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilePathCheck")
    }
}

/// Compares by identity: only clones of the same check are equal.
impl PartialEq for FilePathCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for FilePathCheck {}

/// Returns the directory that contains the path. Returns `.` for a bare file name.
pub fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns the common prefix of the names of a process's temporary files. By this prefix, other
/// processes recognize the temporary files of a process that was killed. The names end in
/// [`TEMPORARY_SUFFIX`].
pub fn temporary_prefix(process: u32) -> String {
    format!(".haul-{process}-")
}

/// The suffix of the names of temporary files.
pub const TEMPORARY_SUFFIX: &str = ".part";

/// Creates a file in `dir` by calling `make` with a new random path. The file is removed when the
/// returned value is dropped, unless it was renamed before.
pub(crate) fn with_temporary_name<T>(
    dir: &Path,
    make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, TempPath)> {
    let prefix = temporary_prefix(std::process::id());
    let named = tempfile::Builder::new().prefix(&prefix).suffix(TEMPORARY_SUFFIX).make_in(dir, make)?;
    Ok(NamedTempFile::into_parts(named))
}

/// Returns true if an error means that no other file can be renamed to the target, although the
/// target itself may be writable. The error comes from the rename, or from creating the file to be
/// renamed. Possible causes:
/// * The target is a mount point.
/// * The target's directory allows no new files.
/// * The directory is sticky, and the target belongs to another user.
/// * The target belongs to another project's quota.
pub(crate) fn prevents_replacement(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), ResourceBusy | PermissionDenied | ReadOnlyFilesystem | CrossesDevices)
}

/// Returns the paths to try for a new file: the target and, with [`ClobberMode::Number`], the
/// target followed by `.1` to `.100`.
pub(super) fn candidate_paths(target: &Path, clobber: ClobberMode) -> impl Iterator<Item = PathBuf> {
    let target = target.to_owned();
    let last = if clobber == ClobberMode::Number { 100 } else { 0 };
    (0..=last).map(move |number| match number {
        0 => target.clone(),
        number => {
            let mut name = OsString::from(&target);
            name.push(format!(".{number}"));
            name.into()
        }
    })
}

/// Renames the file `from` to `target`, as `clobber` allows. Returns the resulting path, which may
/// have a number appended.
pub(super) fn rename_file(from: &Path, target: &Path, clobber: ClobberMode) -> io::Result<PathBuf> {
    if clobber.replaces() {
        std::fs::rename(from, target)?;
        return Ok(target.to_owned());
    }
    for name in candidate_paths(target, clobber) {
        match rename_unless_taken(from, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if is_unsupported(&error) => match link_unless_taken(from, &name) {
                Ok(()) => return Ok(name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) if !name.try_exists()? => {
                    // The file system can do neither, so this is the closest substitute.
                    std::fs::rename(from, &name)?;
                    return Ok(name);
                }
                Err(_) => {}
            },
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns true if an error means that the system or the file system cannot rename a file without
/// replacing an existing one. (A sandbox that does not know the call returns `PERM`.)
fn is_unsupported(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(number) => matches!(number, libc::EINVAL | libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP),
        None => error.kind() == io::ErrorKind::Unsupported,
    }
}

/// Renames a file, but fails if the new name exists.
#[cfg(any(linux_calls, target_vendor = "apple"))]
fn rename_unless_taken(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Always fails: this system has no call that renames a file only if the new name does not exist.
#[cfg(not(any(linux_calls, target_vendor = "apple")))]
fn rename_unless_taken(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Renames a file, but fails if the new name exists. Uses two calls that every system has: a link,
/// which never replaces a file, and the removal of the old name. Between the two calls, the file
/// has both names.
fn link_unless_taken(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

/// Creates files without a name (`O_TMPFILE`), and gives them a name later.
#[cfg(linux_calls)]
pub(super) mod unnamed {
    use std::fs::{self, File, OpenOptions};
    use std::io::{self, Seek};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fd::AsRawFd;
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
    use rustix::io::Errno;

    use tempfile::TempPath;

    use super::ClobberMode;

    /// The directory that contains a process's open descriptors. A user other than root can link an
    /// unnamed file only through this directory.
    const DESCRIPTOR_DIRECTORY: &str = "/proc/self/fd";

    /// True once the system has refused to link an unnamed file. All later files are created with a
    /// name.
    static IS_LINKING_REFUSED: AtomicBool = AtomicBool::new(false);

    pub(in crate::sink) fn create(dir: &Path, mode: u32) -> io::Result<File> {
        static NAMEABLE: OnceLock<bool> = OnceLock::new();
        if IS_LINKING_REFUSED.load(Ordering::Relaxed)
            || !NAMEABLE.get_or_init(|| fs::metadata(DESCRIPTOR_DIRECTORY).is_ok())
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(mode))?))
    }

    /// Links the unnamed file at `target`, as `clobber` allows, and returns the resulting path. A
    /// link cannot replace a file. To replace a file, the unnamed file is linked under a temporary
    /// name and then renamed.
    ///
    /// If the system refuses all links (a sandbox, Android), the content is copied to a new file.
    pub(in crate::sink) fn link_at_target(
        file: &File,
        target: &Path,
        clobber: ClobberMode,
        syncs: bool,
    ) -> io::Result<PathBuf> {
        let own = format!("{DESCRIPTOR_DIRECTORY}/{}", file.as_raw_fd());
        let link = |name: &Path| linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW);
        for name in super::candidate_paths(target, clobber) {
            match link(&name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) if clobber.replaces() => {
                    let name = |name: &Path| link(name).map_err(io::Error::from);
                    match super::with_temporary_name(super::directory_of(target), name) {
                        Ok(((), beside)) => beside.persist(target).map_err(io::Error::from)?,
                        Err(error) if Errno::from_io_error(&error).is_some_and(is_refusal) => {
                            return super::rename_file(&copy_to_named_file(file, target, syncs)?, target, clobber);
                        }
                        Err(error) => return Err(error),
                    }
                    return Ok(target.to_owned());
                }
                Err(Errno::EXIST) => {}
                Err(error) if is_refusal(error) => {
                    return super::rename_file(&copy_to_named_file(file, target, syncs)?, target, clobber);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns true if an error means that the system never allows the linking of unnamed files.
    fn is_refusal(error: Errno) -> bool {
        matches!(error, Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV)
    }

    /// Copies the content of an unnamed file to a new file with a temporary name in the directory
    /// of `target`.
    fn copy_to_named_file(mut file: &File, target: &Path, syncs: bool) -> io::Result<TempPath> {
        IS_LINKING_REFUSED.store(true, Ordering::Relaxed);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(file.metadata()?.permissions().mode() & 0o777);
        let (mut copy, path) = super::with_temporary_name(super::directory_of(target), |path| options.open(path))?;
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) != (copy.metadata()?.uid(), copy.metadata()?.gid()) {
            // This succeeds only for root, when the file belongs to another user.
            let _ = fchown(&copy, Some(metadata.uid()), Some(metadata.gid()));
        }
        let _ = copy.set_permissions(metadata.permissions());
        file.rewind()?;
        io::copy(&mut file, &mut copy)?;
        if syncs {
            copy.sync_all()?;
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rename_unless_taken_never_replaces_a_file() {
        let by_link: fn(&Path, &Path) -> io::Result<()> = link_unless_taken;
        for rename in if is_unsupported_here() { vec![by_link] } else { vec![by_link, rename_unless_taken] } {
            let dir = tempfile::tempdir().unwrap();
            let (from, taken, free) = (dir.path().join("from"), dir.path().join("taken"), dir.path().join("free"));
            std::fs::write(&from, "new").unwrap();
            std::fs::write(&taken, "old").unwrap();
            assert_eq!(rename(&from, &taken).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&taken).unwrap(), b"old");
            rename(&from, &free).unwrap();
            assert_eq!(std::fs::read(&free).unwrap(), b"new");
            assert!(!from.exists());
            assert_eq!(rename_file(&free, &taken, ClobberMode::Number).unwrap(), dir.path().join("taken.1"));
        }
    }

    #[test]
    fn missing_permission_for_a_rename_is_no_missing_call() {
        assert!(!is_unsupported(&io::Error::from_raw_os_error(libc::EACCES)));
        assert!(is_unsupported(&io::Error::from_raw_os_error(libc::EPERM)), "a sandbox that does not know the call");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn directory_without_new_files_prevents_a_replacement() {
        // The error of the crate tempfile has no number of the system.
        let error = tempfile::NamedTempFile::new_in("/sys").unwrap_err();
        assert!(prevents_replacement(&error), "{error}");
    }

    fn is_unsupported_here() -> bool {
        rename_unless_taken(Path::new("/nonexistent"), Path::new("/nonexistent"))
            .is_err_and(|error| error.kind() == io::ErrorKind::Unsupported)
    }
}
