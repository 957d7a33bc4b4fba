//! Room for a file before its content comes.

use std::fs::File;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Shorter bodies are written in a few calls, and gain nothing.
pub(super) const WORTH_RESERVING: u64 = 1 << 20;

/// Allocates a file's blocks at once: 1 GiB is written three times as fast then, and a disk that is too small is known
/// before a byte is fetched for nothing, as is a file that this process may not make so large. The size stays what was written,
/// so a file that remains unfinished is no longer than its content.
pub(in crate::sink) fn reserve(file: &File, length: u64) -> io::Result<()> {
    if length < WORTH_RESERVING {
        return Ok(());
    }
    // Found out by writing it would be by SIGXFSZ, which ends the process.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| length > limit) {
        return Err(Errno::FBIG.into());
    }
    allocate(file, length)
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length).map_err(io::Error::from) {
        Err(error) if is_full(&error) => Err(error),
        // Any other refusal means that the file system cannot do it.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Whether there is no room for a file of this length.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
