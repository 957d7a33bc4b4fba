//! Rules for paths of output files on Windows.

use std::path::Path;

use haul_policy::system_family::SystemFamily;

/// Returns true if the path names a device, such as `NUL`.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    SystemFamily::CURRENT.names_device(path.as_os_str().as_encoded_bytes())
}
