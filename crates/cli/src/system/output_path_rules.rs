//! Rules for paths of output files.

use std::path::Path;

/// Returns true if the path names an open descriptor.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|name| path.starts_with(name))
}
