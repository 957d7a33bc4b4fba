//! Writes of files and file systems to the disk.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Opens an existing file to sync its content to the disk, not to change the content.
///
/// # Errors
/// The errors of `open(2)`.
pub(crate) fn open_to_sync(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Writes the content of a file to the disk, but not all of its metadata. Does nothing on a file
/// system that cannot do this.
///
/// # Errors
/// The errors of `fdatasync(2)`.
pub(crate) fn sync_content(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::OPNOTSUPP)) => Ok(()),
        synced => synced,
    }
}

/// Writes the file system that contains the directory to the disk.
///
/// # Errors
/// The errors of `syncfs(2)`.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(directory: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(directory)?)
}

/// Writes all file systems to the disk, because systems other than Linux have no call for a single
/// one.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn sync_file_system(_directory: &File) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}
