//! Rules for paths of output files on Windows.

use std::path::Path;

use haul::system::file_metadata_and_flags;

/// Returns true if the path names a device, such as `NUL`.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    file_metadata_and_flags::is_named_device(path)
}
