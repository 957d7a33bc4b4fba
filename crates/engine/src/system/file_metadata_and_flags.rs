//! Files: their extensions in the standard library, and their identity, owner and flags.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::path::Path;

pub use std::os::fd::OwnedFd as OwnedFile;
pub use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

use rustix::fs::OFlags;

/// The path of the null device, to which writes have no effect.
pub const NULL_DEVICE: &str = "/dev/null";

/// Returns true if the path is the usual name of the null device.
#[must_use]
pub fn is_null_device_name(path: &Path) -> bool {
    path.as_os_str() == NULL_DEVICE
}

/// Returns false: on Unix, no file name is reserved for a device, as `NUL` is on Windows.
#[must_use]
pub fn is_named_device(_path: &Path) -> bool {
    false
}

/// Returns true if an open file is a character device, such as a terminal or the null device.
#[must_use]
pub fn is_char_device(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.file_type().is_char_device())
}

/// Returns the device and the inode of a file, which together identify the file. On Unix, the
/// result is never `None`.
#[must_use]
pub fn device_and_inode(metadata: &Metadata) -> Option<(u64, u64)> {
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the device and the inode of an open file, which together identify it.
///
/// # Errors
/// The errors of `fstat(2)`.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Returns the device and the inode of the file at `path`. A symbolic link at `path` is followed.
///
/// # Errors
/// The errors of `stat(2)`.
pub fn identity_at(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Returns true if both descriptors refer to the same file (the same device and inode).
///
/// # Errors
/// The errors of `fstat(2)`.
pub fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(device_and_inode(&one.metadata()?) == device_and_inode(&other.metadata()?))
}

/// Returns true if `path` leads to the file that `file` has open (the same device and inode). A
/// symbolic link at `path` is followed.
///
/// # Errors
/// The errors of `fstat(2)` and `stat(2)`.
pub fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(device_and_inode(&file.metadata()?) == device_and_inode(&std::fs::metadata(path)?))
}

/// Returns true if `path` itself is the file that `file` has open (the same device and inode). A
/// symbolic link at `path` is not followed.
///
/// # Errors
/// The errors of `fstat(2)` and `lstat(2)`.
pub fn is_file_itself_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(device_and_inode(&file.metadata()?) == device_and_inode(&std::fs::symlink_metadata(path)?))
}

/// Returns true if an open file is a regular file, and not a device, a pipe or a directory.
///
/// # Errors
/// The errors of `fstat(2)`.
pub fn is_regular(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.is_file())
}

/// Returns true if the user of this process owns the file.
#[must_use]
pub fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Returns true if the open file has only one name (hard link). `metadata` is the metadata of the
/// file.
#[must_use]
pub fn has_one_name(_file: &File, metadata: &Metadata) -> bool {
    metadata.nlink() == 1
}

/// Sets the flag with which opening a symbolic link fails (`O_NOFOLLOW`).
pub fn do_not_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
}

/// Sets the flags with which opening a symbolic link fails, and opening a FIFO does not wait.
pub fn do_not_follow_or_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

/// Sets the flag with which opening a FIFO does not wait (`O_NONBLOCK`).
pub fn do_not_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

/// Sets the permission bits of a file.
///
/// # Errors
/// The errors of `fchmod(2)`.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Returns the error for a file that cannot be replaced at present (`EBUSY`).
#[must_use]
pub fn busy_error() -> io::Error {
    rustix::io::Errno::BUSY.into()
}

/// Creates or truncates a file.
///
/// # Errors
/// The file cannot be opened for writing.
pub fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Creates or truncates a file. Each write appends to the file, even if another process writes to
/// the file at the same time.
///
/// # Errors
/// The errors of `open(2)`.
pub fn create_for_appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(OFlags::APPEND.bits().cast_signed());
    options.open(path)
}

/// Writes the entries of a directory to the disk.
///
/// # Errors
/// The errors of `open(2)` and `fsync(2)`.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Locks a file for this process alone, until the file is closed. Waits if another process holds
/// the lock.
///
/// # Errors
/// The errors of `flock(2)`; [`io::ErrorKind::Interrupted`] after a signal.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive)?)
}

/// Locks a file for this process alone, until the file is closed.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process holds the lock; other errors of `flock(2)`.
pub fn try_lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}

/// Returns true if the file is locked through another open file description, of this or another
/// process.
#[must_use]
pub fn is_locked(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
}
