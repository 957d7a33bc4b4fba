//! Rules for paths of output files on Windows.

use std::path::Path;

use haul::system::files;

/// Returns true if the path names a device, such as `NUL`.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    files::is_named_device(path)
}
