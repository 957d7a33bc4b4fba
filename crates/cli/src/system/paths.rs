//! Rules for paths of output files.

use std::ffi::OsStr;
use std::path::Path;

/// Returns the text by which two names of files in one directory are compared: the name itself.
pub(crate) fn file_name_key(name: &OsStr) -> &OsStr {
    name
}

/// Returns true if the path names an open descriptor.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|name| path.starts_with(name))
}
