//! Enters the directories in a file name that a URL, a list or a page chose. Links are not
//! followed, so the file is always below the directory that the user chose.
//!
//! The directories are entered one by one (`openat` with `O_NOFOLLOW`). Missing directories are
//! created. The rejected alternative, `openat2` with `RESOLVE_BENEATH`, is not available on older
//! kernels and in sandboxes, and creates no directories. One race remains: if another process
//! replaces a directory by a link between this check and the opening of the file, the link is
//! followed.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, RawMode, mkdirat, openat};
use rustix::io::Errno;

use super::beneath_errors::{link_error, outside_error};

/// The flags for opening a directory in order to look up names in it. They require no permission to
/// list the directory.
#[cfg(target_os = "linux")]
const OPEN_FOR_LOOKUP: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const OPEN_FOR_LOOKUP: OFlags = OFlags::RDONLY;

/// Checks that `directory` is below `base`, and that no directory between them is a symbolic link.
/// With `make`, creates missing directories with these permission bits.
///
/// # Errors
/// A directory is a link or a file, or is missing; errors of the file system.
pub(super) fn check_beneath(base: &Path, directory: &Path, make: Option<u32>) -> io::Result<()> {
    let below = directory.strip_prefix(base).map_err(|_| outside_error(directory))?;
    let mut path = base.to_owned();
    let mut open: Option<OwnedFd> = None;
    for component in below.components() {
        let name = match component {
            Component::CurDir => continue,
            Component::Normal(name) => name,
            // Only the user writes `..`.
            Component::ParentDir => Path::new("..").as_os_str(),
            Component::RootDir | Component::Prefix(_) => return Err(outside_error(directory)),
        };
        let parent = match open.take() {
            Some(parent) => parent,
            None => open_base(base, make)?,
        };
        path.push(name);
        let enter = || {
            openat(
                &parent,
                name,
                OPEN_FOR_LOOKUP | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )
        };
        let entered = match (enter(), make) {
            (Err(Errno::NOENT), Some(mode)) => match mkdirat(&parent, name, Mode::from_raw_mode(mode as RawMode)) {
                Ok(()) | Err(Errno::EXIST) => enter(),
                Err(error) => Err(error),
            },
            (entered, _) => entered,
        };
        open = Some(entered.map_err(|error| directory_error(error, &path))?);
    }
    Ok(())
}

fn open_base(base: &Path, make: Option<u32>) -> io::Result<OwnedFd> {
    let base = if base.as_os_str().is_empty() { Path::new(".") } else { base };
    let open = || openat(CWD, base, OPEN_FOR_LOOKUP | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    match (open(), make) {
        (Err(Errno::NOENT), Some(mode)) => {
            fs::DirBuilder::new().recursive(true).mode(mode).create(base)?;
            Ok(open()?)
        }
        (opened, _) => Ok(opened?),
    }
}

/// Returns the error for the directory `path`, which cannot be entered because of `error`.
fn directory_error(error: Errno, path: &Path) -> io::Error {
    let is_link = matches!(error, Errno::NOTDIR | Errno::LOOP)
        && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if !is_link {
        return error.into();
    }
    link_error(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_below_the_output_directory_are_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("out");
        let enter = |name: &str, make| check_beneath(&base, &base.join(name), make);
        assert_eq!(enter("a", None).unwrap_err().kind(), io::ErrorKind::NotFound);
        enter("a/b/./c", Some(0o777)).unwrap();
        enter("a/b", None).unwrap();
        fs::write(base.join("file"), "").unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        symlink("../outside", base.join("link")).unwrap();
        symlink("b", base.join("a/inner")).unwrap();
        symlink("nowhere", base.join("dangling")).unwrap();
        for name in ["link", "link/x", "a/inner/c", "dangling/x"] {
            let error = enter(name, Some(0o777)).unwrap_err();
            assert!(error.to_string().contains("is a link, which is not followed"), "{name}: {error}");
        }
        assert_eq!(enter("file/x", Some(0o777)).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(fs::read_dir(dir.path().join("outside")).unwrap().next().is_none());
        assert!(super::check_beneath(&base, dir.path(), None).is_err());
        // The user's own directory may be a link.
        super::check_beneath(&base.join("link"), &base.join("link/made"), Some(0o777)).unwrap();
        assert!(dir.path().join("outside/made").is_dir());
    }
}
