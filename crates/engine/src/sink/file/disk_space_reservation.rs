//! Reservation of disk space for a file's content, in steps, before the content arrives.
//!
//! ```text
//!  0        written      reserved                                announced
//!  ├───────────┼────────────┤ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┤
//!              └── less than 1 MiB left: the next step, twice as long
//! ```
//!
//! Writes to blocks that were allocated in large steps are three times as fast. The rejected
//! alternative reserves the announced length before the first byte: then a server that announces a
//! terabyte and sends a byte would fill the disk or, on tmpfs, the memory.

use std::fs::File;
use std::io;

/// The minimum length in bytes of a body for which disk space is reserved. A shorter body is
/// written in a few calls, so a reservation would not be faster.
pub(super) const MIN_RESERVED_BODY: u64 = 1 << 20;
/// The number of bytes that the first reservation of disk space covers. Each further reservation is
/// twice as large as the previous one.
const FIRST_RESERVATION: u64 = 16 << 20;
/// The number of bytes of reserved, unused disk space below which more space is reserved.
const MIN_UNUSED_RESERVATION: u64 = 1 << 20;

/// The disk space that is reserved in a file ahead of the bytes that are being written.
#[derive(Debug, Default)]
pub(in crate::sink) struct DiskSpaceReservation {
    /// The offset in the file of the next byte to be written.
    at: u64,
    reserved: u64,
    /// The offset in the file beyond which no space is reserved: the end of the expected content.
    /// There are two exceptions: for content below [`MIN_RESERVED_BODY`] and after a failed
    /// reservation, `end` equals `reserved`, so that no more space is reserved.
    end: u64,
    step: u64,
}

impl DiskSpaceReservation {
    /// Makes a reservation for the bytes from `at` to `end`. No space is reserved before
    /// [`DiskSpaceReservation::reserve_ahead`].
    pub(in crate::sink) fn new(at: u64, end: u64) -> Self {
        let end = if end.saturating_sub(at) < MIN_RESERVED_BODY { at } else { end };
        Self { at, reserved: at, end, step: FIRST_RESERVATION }
    }

    /// Records that the writer has written this number of further bytes.
    pub(in crate::sink) fn on_written(&mut self, bytes: u64) {
        self.at += bytes;
    }

    /// Reserves more disk space for the next bytes if less than [`MIN_UNUSED_RESERVATION`] of the
    /// reserved space is left.
    pub(in crate::sink) fn reserve_ahead(&mut self, file: &File) {
        if self.reserved >= self.end || self.at + MIN_UNUSED_RESERVATION < self.reserved {
            return;
        }
        let from = self.reserved.max(self.at);
        let step = self.step.min(self.end.saturating_sub(from));
        match allocate(file, from, step) {
            Ok(()) => (self.reserved, self.step) = (from + step, self.step * 2),
            // If there is too little space for the content that does arrive, its write reports the
            // error.
            Err(_) => self.end = self.reserved,
        }
    }
}

/// Returns an error if a file cannot be `length` bytes long, because the disk is too small or this
/// process may not write files of this size. Call this before the first byte is fetched.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] and [`io::ErrorKind::StorageFull`].
#[cfg(unix)]
pub(in crate::sink) fn check_length_fits(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::fstatvfs;
    use rustix::io::Errno;
    use rustix::process::{Resource, geteuid, getrlimit};

    if length < MIN_RESERVED_BODY {
        return Ok(());
    }
    // A write beyond this limit would raise SIGXFSZ, which ends the process.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| length > limit) {
        return Err(Errno::FBIG.into());
    }
    let Ok(system) = fstatvfs(file) else { return Ok(()) };
    let free = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    // A file system that does not report its size has 0 blocks.
    if system.f_blocks > 0 && free.saturating_mul(system.f_frsize) < length {
        return Err(Errno::NOSPC.into());
    }
    Ok(())
}

/// Returns no error, because Windows reports a full disk only when a write fails.
///
/// # Errors
/// None.
#[cfg(windows)]
pub(in crate::sink) fn check_length_fits(_file: &File, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Allocates disk blocks for `length` bytes of a file from the offset `at` on. The file's size does
/// not grow, so an unfinished file is no longer than its content. Does nothing if the file system
/// does not support allocation in advance.
///
/// # Errors
/// No space is left.
#[cfg(linux_calls)]
pub(in crate::sink) fn allocate(file: &File, at: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if length == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, at, length).map_err(io::Error::from) {
        Err(error) if is_full(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(not(linux_calls))]
pub(in crate::sink) fn allocate(_file: &File, _at: u64, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Frees the disk blocks that were reserved for `length` bytes of a file from the offset `at` on.
/// Nothing has been written to this range yet. Does nothing if the file system does not support
/// this.
pub(in crate::sink) fn release_blocks(file: &File, at: u64, length: u64) {
    #[cfg(linux_calls)]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length);
    }
    #[cfg(not(linux_calls))]
    let _ = (file, at, length);
}

/// Returns true if the error means that there is no space on the disk.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
