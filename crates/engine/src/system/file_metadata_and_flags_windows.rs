//! Files on Windows, under the names that the standard library has for Unix. Files have no owner and
//! no permission bits here: the directory's access list decides.

use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle;
use std::path::Path;

pub use std::os::windows::io::OwnedHandle as OwnedFile;

use haul_policy::file_names_by_system::OsFamily;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OPEN_REPARSE_POINT, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// The name of the null device, to which writes have no effect.
pub const NULL_DEVICE: &str = "NUL";

/// Returns true if the path is the name of the null device.
#[must_use]
pub fn is_null_device_name(path: &Path) -> bool {
    path.as_os_str().eq_ignore_ascii_case(NULL_DEVICE)
}

/// Returns true if the path names a device, such as `NUL` or `COM1`. Opens the path to find out,
/// because a name such as `aux.log` is a device on Windows 10 and a file on Windows 11.
#[must_use]
pub fn is_named_device(path: &Path) -> bool {
    OsFamily::Windows.names_device(path.as_os_str().as_encoded_bytes())
        && match OpenOptions::new().write(true).open(path) {
            Ok(file) => !winapi_util::file::typ(&file).is_ok_and(|kind| kind.is_disk()),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
}

/// Returns true if an open file is a character device, such as a console or the null device.
#[must_use]
pub fn is_char_device(file: &File) -> bool {
    winapi_util::file::typ(file).is_ok_and(|kind| kind.is_char())
}

/// The time from 1601, where Windows begins to count, to 1970, in units of 100 ns.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
const UNITS_PER_SECOND: u64 = 10_000_000;
/// The offset of the byte that [`lock`] locks. Other processes cannot read or write a locked byte, so
/// it lies behind the end of every file.
const LOCKED_BYTE: u64 = 1 << 62;

/// The replacement for the Unix trait that sets the permission bits of new directories. The bits
/// have no effect on Windows.
pub trait DirBuilderExt {
    /// Returns the builder unchanged.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _mode: u32) -> &mut Self {
        self
    }
}

/// The replacement for the Unix trait that sets the permission bits of new files. The bits have no
/// effect on Windows.
pub trait OpenOptionsExt {
    /// Returns the options unchanged.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _mode: u32) -> &mut Self {
        self
    }
}

/// The replacement for the Unix trait that tests for special files. On Windows, the test always
/// returns false.
pub trait FileTypeExt {
    /// Returns false.
    fn is_char_device(&self) -> bool;
    /// Returns false.
    fn is_fifo(&self) -> bool;
}

impl FileTypeExt for FileType {
    fn is_char_device(&self) -> bool {
        false
    }

    fn is_fifo(&self) -> bool {
        false
    }
}

/// The replacement for the Unix trait that reads the permission bits of a file.
pub trait PermissionsExt {
    /// Returns the bits that let everyone read and, unless the file is read-only, write.
    fn mode(&self) -> u32;
}

impl PermissionsExt for Permissions {
    fn mode(&self) -> u32 {
        if self.readonly() { 0o444 } else { 0o666 }
    }
}

/// The metadata of a file, by the methods that the standard library has on Unix.
pub trait MetadataExt {
    /// Returns the size in bytes.
    fn size(&self) -> u64;
    /// Returns the permission bits, as [`PermissionsExt::mode`] does.
    fn mode(&self) -> u32;
    /// Returns 0, because the file's metadata does not name its volume.
    fn dev(&self) -> u64;
    /// Returns 0, because the file's metadata does not contain its number.
    fn ino(&self) -> u64;
    /// Returns 0, because files have no numeric owner.
    fn uid(&self) -> u32;
    /// Returns 0, because files have no numeric group.
    fn gid(&self) -> u32;
    /// Returns the time of the last change of the content, in seconds since 1970.
    fn mtime(&self) -> i64;
    /// Returns the nanoseconds of [`mtime`](Self::mtime).
    fn mtime_nsec(&self) -> i64;
    /// Returns the time of the creation or of the last change of the content, whichever is later, in
    /// seconds since 1970.
    fn ctime(&self) -> i64;
    /// Returns the nanoseconds of [`ctime`](Self::ctime).
    fn ctime_nsec(&self) -> i64;
}

impl MetadataExt for Metadata {
    fn size(&self) -> u64 {
        self.len()
    }

    fn mode(&self) -> u32 {
        self.permissions().mode()
    }

    fn dev(&self) -> u64 {
        0
    }

    fn ino(&self) -> u64 {
        0
    }

    fn uid(&self) -> u32 {
        0
    }

    fn gid(&self) -> u32 {
        0
    }

    fn mtime(&self) -> i64 {
        seconds(self.last_write_time())
    }

    fn mtime_nsec(&self) -> i64 {
        nanoseconds(self.last_write_time())
    }

    fn ctime(&self) -> i64 {
        seconds(self.last_write_time().max(self.creation_time()))
    }

    fn ctime_nsec(&self) -> i64 {
        nanoseconds(self.last_write_time().max(self.creation_time()))
    }
}

fn seconds(time: u64) -> i64 {
    (time.saturating_sub(UNIX_EPOCH) / UNITS_PER_SECOND).cast_signed()
}

fn nanoseconds(time: u64) -> i64 {
    (time % UNITS_PER_SECOND * 100).cast_signed()
}

/// Reading and writing at an offset of a file. On Windows, this also moves the file's current
/// position.
pub trait FileExt {
    /// Reads available bytes at this offset, and returns their number.
    ///
    /// # Errors
    /// An error of the file system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer with the bytes at this offset.
    ///
    /// # Errors
    /// An error of the file system; [`io::ErrorKind::UnexpectedEof`] if the file is too short.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes at this offset.
    ///
    /// # Errors
    /// An error of the file system.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => (buffer, offset) = (&mut buffer[n..], offset + n as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(self, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => (bytes, offset) = (&bytes[n..], offset + n as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Does nothing, because files have no numeric owner.
pub fn fchown(_file: &File, _owner: Option<u32>, _group: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// Returns `None`, because the metadata of a path does not identify a file.
#[must_use]
pub fn device_and_inode(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns the volume and the index of an open file, which together identify it.
///
/// # Errors
/// The system does not provide the identity of a file.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    let information = winapi_util::file::information(file)?;
    Ok((information.volume_serial_number(), information.file_index()))
}

/// Returns the volume and the index of the file at `path`. A symbolic link at `path` is followed.
///
/// # Errors
/// The path cannot be opened, or the system does not provide the identity of a file.
pub fn identity_at(path: &Path) -> io::Result<(u64, u64)> {
    identity(&OpenOptions::new().access_mode(0).open(path)?)
}

/// Returns true if both handles refer to the same file (the same volume and file index).
///
/// # Errors
/// The system does not provide the identity of a file.
pub fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(identity(one)? == identity(other)?)
}

/// Returns true if `path` leads to the file that `file` has open (the same volume and file index).
/// A symbolic link at `path` is followed.
///
/// # Errors
/// The path cannot be opened, or the system does not provide the identity of a file.
pub fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    is_same_file(file, &OpenOptions::new().access_mode(0).open(path)?)
}

/// Returns true if `path` itself is the file that `file` has open (the same volume and file index).
/// A symbolic link at `path` is not followed.
///
/// # Errors
/// The path cannot be opened, or the system does not provide the identity of a file.
pub fn is_file_itself_at(file: &File, path: &Path) -> io::Result<bool> {
    is_same_file(file, &do_not_follow(OpenOptions::new().access_mode(0)).open(path)?)
}

/// Returns true if an open file is a regular file, and not a console, a pipe or a directory.
///
/// # Errors
/// The system does not provide the kind of a file.
pub fn is_regular(file: &File) -> io::Result<bool> {
    Ok(winapi_util::file::typ(file)?.is_disk() && file.metadata()?.is_file())
}

/// Returns true, because on Windows the access list of a file, and not its owner, decides who may
/// open it.
#[must_use]
pub fn is_own(_metadata: &Metadata) -> bool {
    true
}

/// Returns true if an open file has only one name.
#[must_use]
pub fn has_one_name(file: &File, _metadata: &Metadata) -> bool {
    winapi_util::file::information(file).is_ok_and(|information| information.number_of_links() == 1)
}

/// Changes the options so that opening a symbolic link opens the link itself.
pub fn do_not_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// Changes the options so that opening a symbolic link opens the link itself.
pub fn do_not_follow_or_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    do_not_follow(options)
}

/// Returns the options unchanged, because opening a file never waits on Windows.
pub fn do_not_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Does nothing, because files have no permission bits.
pub fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Returns the error for a file that cannot be replaced at present.
#[must_use]
pub fn busy_error() -> io::Error {
    io::ErrorKind::ResourceBusy.into()
}

/// Creates or truncates a file, or opens the device that the path names, which cannot be truncated.
///
/// # Errors
/// The file cannot be opened for writing.
pub fn create(path: &Path) -> io::Result<File> {
    if is_named_device(path) { OpenOptions::new().write(true).open(path) } else { File::create(path) }
}

/// Creates or truncates a file. Each write appends to the file, even if another process writes to
/// the same file.
///
/// # Errors
/// The file cannot be opened for writing.
pub fn create_for_appending(path: &Path) -> io::Result<File> {
    if is_named_device(path) {
        return create(path);
    }
    // An open for appending alone has no right to truncate.
    File::create(path)?;
    OpenOptions::new().append(true).open(path)
}

/// Does nothing, because the file system keeps a journal of its directories.
pub fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Locks a file for this process alone, until the file is closed. Waits if another process holds
/// the lock.
///
/// # Errors
/// The errors of `LockFileEx`.
pub fn lock(file: &File) -> io::Result<()> {
    lock_with(file, LOCKFILE_EXCLUSIVE_LOCK)
}

/// Locks a file for this process alone, until the file is closed.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process holds the lock; other errors of `LockFileEx`.
pub fn try_lock(file: &File) -> io::Result<()> {
    const LOCK_VIOLATION: i32 = windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION.cast_signed();
    lock_with(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY).map_err(|error| match error.raw_os_error() {
        Some(LOCK_VIOLATION) => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

fn lock_with(file: &File, flags: u32) -> io::Result<()> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = LOCKED_BYTE as u32;
    place.Anonymous.Anonymous.OffsetHigh = (LOCKED_BYTE >> 32) as u32;
    // SAFETY: the handle is open while `file` lives. This crate opens no file for overlapped calls, so
    // the call has ended when it returns, and `place` lives until then.
    let result = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) };
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns true if another handle of the file holds the file's lock.
#[must_use]
pub fn is_locked(file: &File) -> bool {
    lock_with(file, LOCKFILE_FAIL_IMMEDIATELY).is_err()
}
