//! Rules for paths of output files on Windows.

use std::ffi::OsStr;
use std::path::Path;

use haul_policy::system_family::SystemFamily;

/// Returns the text by which two names of files in one directory are compared: in lower case, because
/// `a` and `A` are the same file.
pub(crate) fn file_name_key(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

/// Returns true if the path names a device, such as `NUL`.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    SystemFamily::CURRENT.names_device(path.as_os_str().as_encoded_bytes())
}
