//! Rules for paths of output files.

use std::path::Path;

/// Returns true if the path names an open descriptor, such as `/dev/fd/3` or `/dev/stdout`, or is
/// below `/proc`.
pub(crate) fn names_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|name| path.starts_with(name))
}
