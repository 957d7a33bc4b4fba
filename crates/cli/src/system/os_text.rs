//! Bytes as texts of the system, such as names of files. On Unix, any bytes are such a text.

use std::borrow::Cow;
use std::ffi::OsStr;

pub(crate) use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Converts bytes to an `OsStr`, such as the name of a file.
pub(crate) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}
