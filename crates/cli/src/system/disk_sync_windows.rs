//! Writes of files to the disk on Windows.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file, only to write it to the disk, for which Windows wants the right to write.
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

/// Does nothing: only an administrator may write a whole volume to the disk. After a loss of power,
/// a job may count a file of the last seconds as complete whose content is lost.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn sync_file_system(_directory: &File) -> io::Result<()> {
    Ok(())
}
