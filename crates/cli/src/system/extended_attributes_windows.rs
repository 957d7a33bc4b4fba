//! Extended attributes of files, which Windows does not have.

use std::io;
use std::path::Path;

/// Always fails.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub(crate) fn set(_path: &Path, _name: &str, _value: &[u8]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no extended attributes"))
}
