//! Files: their extensions in the standard library, and their identity, owner and flags.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::path::Path;

pub(crate) use std::os::fd::OwnedFd as OwnedFile;
pub(crate) use std::os::unix::fs::{
    DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
};

use rustix::fs::OFlags;

/// The path of the null device, to which writes have no effect.
pub(crate) const NULL_DEVICE: &str = "/dev/null";

/// Returns the device and the inode of a file, which together identify the file. On Unix, the
/// result is never `None`.
#[must_use]
pub(crate) fn device_and_inode(metadata: &Metadata) -> Option<(u64, u64)> {
    Some((metadata.dev(), metadata.ino()))
}

/// Returns true if both handles refer to one file: they have the same device and inode.
///
/// # Errors
/// The errors of `fstat(2)`.
pub(crate) fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(device_and_inode(&one.metadata()?) == device_and_inode(&other.metadata()?))
}

/// Returns true if `path` leads to the file that `file` has open (the same device and inode). A
/// symbolic link at `path` is followed.
///
/// # Errors
/// The errors of `fstat(2)` and `stat(2)`.
pub(crate) fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(device_and_inode(&file.metadata()?) == device_and_inode(&std::fs::metadata(path)?))
}

/// Returns true if `path` itself is the file that `file` has open (the same device and inode). A
/// symbolic link at `path` is not followed.
///
/// # Errors
/// The errors of `fstat(2)` and `lstat(2)`.
pub(crate) fn is_file_itself_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(device_and_inode(&file.metadata()?) == device_and_inode(&std::fs::symlink_metadata(path)?))
}

/// Returns true if the user of this process owns the file.
#[must_use]
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Returns true if the open file has only one name (hard link). `metadata` is the metadata of the
/// file.
#[must_use]
pub(crate) fn has_one_name(_file: &File, metadata: &Metadata) -> bool {
    metadata.nlink() == 1
}

/// Sets the options so that opening a symbolic link fails.
pub(crate) fn do_not_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
}

/// Sets the options so that opening a symbolic link fails, and opening a FIFO does not wait for its
/// other end.
pub(crate) fn do_not_follow_or_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

/// Sets the options so that opening a FIFO does not wait for its other end.
pub(crate) fn do_not_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

/// Sets the permission bits of a file.
///
/// # Errors
/// The errors of `fchmod(2)`.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Returns the error for a file that cannot be replaced at present (`EBUSY`).
#[must_use]
pub(crate) fn busy_error() -> io::Error {
    rustix::io::Errno::BUSY.into()
}

/// Writes the entries of a directory to the disk.
///
/// # Errors
/// The errors of `open(2)` and `fsync(2)`.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Locks a file for this process alone, until the file is closed. Waits if another process holds
/// the lock.
///
/// # Errors
/// The errors of `flock(2)`; [`io::ErrorKind::Interrupted`] after a signal.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive)?)
}

/// Locks a file for this process alone, until the file is closed.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process holds the lock; other errors of `flock(2)`.
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}
