//! Checks the directories in a file name that a URL, a list or a page chose, on Windows. Links are
//! not followed, so the file is always below the directory that the user chose. A race remains: if
//! another process replaces a directory by a link after this check, the link is followed.

use std::fs;
use std::io;
use std::path::{Component, Path};

use super::beneath_errors::{link_error, outside_error};

/// Checks that `directory` is below `base`, and that no directory between them is a symbolic link
/// or a junction. With `make`, creates missing directories; the permission bits have no effect.
///
/// # Errors
/// A directory is a link or a file, or is missing; errors of the file system.
pub(super) fn check_beneath(base: &Path, directory: &Path, make: Option<u32>) -> io::Result<()> {
    let below = directory.strip_prefix(base).map_err(|_| outside_error(directory))?;
    let mut path = base.to_owned();
    for component in below.components() {
        match component {
            Component::CurDir => continue,
            Component::Normal(_) | Component::ParentDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(outside_error(directory)),
        }
        if make.is_some() {
            fs::create_dir_all(&path)?;
        }
        path.push(component);
        let metadata = match (fs::symlink_metadata(&path), make) {
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::NotFound => {
                match fs::create_dir(&path) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
                fs::symlink_metadata(&path)?
            }
            (metadata, _) => metadata?,
        };
        if metadata.is_symlink() {
            return Err(link_error(&path));
        }
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    Ok(())
}
