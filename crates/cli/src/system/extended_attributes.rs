//! Extended attributes of files.

use std::io;
use std::path::Path;

/// Sets an attribute of a file. A symbolic link at `path` is followed.
///
/// # Errors
/// The errors of `setxattr(2)`; [`io::ErrorKind::Unsupported`] on a system without attributes.
pub(crate) fn set(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    xattr::set_deref(path, name, value)
}
