//! Extended attributes of files on Windows, where no file has them: every call fails.

use std::io;
use std::path::Path;

/// Fails, because Windows has no extended attributes.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub(crate) fn set(_path: &Path, _name: &str, _value: &[u8]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no extended attributes"))
}
