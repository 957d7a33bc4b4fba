//! Writes of files to the disk on Windows.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens an existing file to sync its content to the disk, not to change the content. The file is
/// opened for writing, because Windows does not sync a file otherwise.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn open_to_sync(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Writes the content of a file to the disk.
///
/// # Errors
/// The errors of `FlushFileBuffers`.
pub(crate) fn sync_content(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Does nothing, because only an administrator may sync a whole volume to the disk. So after a loss
/// of power, the job's file (`--job`) may record a transfer as finished although content of its
/// output file is lost.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn sync_file_system(_directory: &File) -> io::Result<()> {
    Ok(())
}
