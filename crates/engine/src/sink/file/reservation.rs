//! Reserves disk space for a file's content, step by step as it arrives.
//!
//! ```text
//!  0        written      reserved                                announced
//!  ├───────────┼────────────┤ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┤
//!              └── less than 1 MiB left: the next step, twice as long
//! ```
//!
//! Blocks that are allocated at once are written three times as fast. The rejected alternative
//! reserves the announced length before the first byte: a server that announces a terabyte and
//! sends a byte then fills the disk, and on tmpfs the memory.

use std::fs::File;
use std::io;

use rustix::fs::fstatvfs;
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

/// Shorter bodies are written in a few calls, and gain nothing.
pub(super) const WORTH_RESERVING: u64 = 1 << 20;
/// Size of the first step.
const FIRST_STEP: u64 = 16 << 20;
/// Remaining space of the last step at which the next step is reserved.
const MARGIN: u64 = 1 << 20;

/// The reserved blocks ahead of a writer.
#[derive(Debug, Default)]
pub(in crate::sink) struct SpaceReservation {
    /// Offset of the writer.
    at: u64,
    reserved: u64,
    /// Offset at which the writer will end.
    end: u64,
    step: u64,
}

impl SpaceReservation {
    /// Makes a reservation for bytes from `at` to `end`. Reserves nothing before
    /// [`SpaceReservation::ahead`].
    pub(in crate::sink) fn new(at: u64, end: u64) -> Self {
        let end = if end.saturating_sub(at) < WORTH_RESERVING { at } else { end };
        Self { at, reserved: at, end, step: FIRST_STEP }
    }

    /// Counts bytes that were written.
    pub(in crate::sink) fn wrote(&mut self, bytes: u64) {
        self.at += bytes;
    }

    /// Reserves the next step when the last one is nearly used up.
    pub(in crate::sink) fn ahead(&mut self, file: &File) {
        if self.reserved >= self.end || self.at + MARGIN < self.reserved {
            return;
        }
        let from = self.reserved.max(self.at);
        let step = self.step.min(self.end.saturating_sub(from));
        match allocate(file, from, step) {
            Ok(()) => (self.reserved, self.step) = (from + step, self.step * 2),
            // The write itself says whether there is room for what does come.
            Err(_) => self.end = self.reserved,
        }
    }
}

/// Checks that a file can have this length. Finds out before the first byte is fetched that the
/// disk is too small, or that this process may not make a file so large.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] and [`io::ErrorKind::StorageFull`].
pub(in crate::sink) fn fits(file: &File, length: u64) -> io::Result<()> {
    if length < WORTH_RESERVING {
        return Ok(());
    }
    // Found out by writing it would be by SIGXFSZ, which ends the process.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| length > limit) {
        return Err(Errno::FBIG.into());
    }
    let Ok(system) = fstatvfs(file) else { return Ok(()) };
    let free = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    // A file system that knows no size says 0.
    if system.f_blocks > 0 && free.saturating_mul(system.f_frsize) < length {
        return Err(Errno::NOSPC.into());
    }
    Ok(())
}

/// Allocates blocks. The file's size remains that of the written content, so an unfinished file is
/// no longer than its content.
///
/// # Errors
/// There is no room. Any other refusal means that the file system cannot do it, and is passed over.
#[cfg(target_os = "linux")]
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

#[cfg(not(target_os = "linux"))]
pub(in crate::sink) fn allocate(_file: &File, _at: u64, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Releases the blocks of a span without content, if the file system can do that.
pub(in crate::sink) fn release_blocks(file: &File, at: u64, length: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, at, length);
}

/// Returns whether there is no room for a file of this length.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
