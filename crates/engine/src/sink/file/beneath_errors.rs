//! The errors for a file name that leads out of the output directory.

use std::io;
use std::path::Path;

/// Returns the error for the symbolic link `path`, which is not followed because a URL, a list or a
/// page chose the name of the file.
pub(super) fn link_error(path: &Path) -> io::Error {
    let message = format!(
        "{} is a link, which is not followed, because a URL or a list chose the name; remove the link, or name its \
         target by --output-dir",
        path.display()
    );
    io::Error::new(io::ErrorKind::NotADirectory, message)
}

/// Returns the error for a directory that is not below the output directory.
pub(super) fn outside_error(directory: &Path) -> io::Error {
    let message = format!("{} is outside of the output directory", directory.display());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
