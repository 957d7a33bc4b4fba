//! The method for writing to a file on Windows: each write waits until the file has accepted it.
//! Standard output has no call there that does not wait.

use std::fs::File;
use std::io::{self, ErrorKind as IoKind, IoSlice, Write};
use std::os::windows::io::AsHandle;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fd::RawFd;

use super::write_error;
use crate::Result;
use crate::system::file_metadata_and_flags::OwnedFile;

/// The method for writing to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMethod {
    /// A direct write, which blocks until all bytes are written. There is no other method on
    /// Windows.
    Direct,
}

impl WriteMethod {
    /// Returns the only method, which is used for every kind of file.
    pub(super) fn for_file(_file: &File) -> Self {
        Self::Direct
    }
}

/// Duplicates the handle of standard output.
///
/// # Errors
/// The system has no handle left. Without a standard output, this call succeeds, and later writes
/// fail.
pub(super) fn stdout_file() -> io::Result<OwnedFile> {
    io::stdout().as_handle().try_clone_to_owned()
}

/// Returns true, because the kind of a handle is not known here.
pub(super) fn may_be_terminal(_file: &File) -> bool {
    true
}

/// Returns `None`: an output on Windows is never full, because each write blocks until it is done.
pub(super) fn descriptor_to_watch(_file: &File) -> Option<RawFd> {
    None
}

/// Returns true: an output on Windows is never full, because each write blocks until it is done.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(super) fn wait(_file: &File, _deadline: Option<Instant>) -> Result<bool> {
    Ok(true)
}

/// Writes some bytes of `parts`, of which at least one must not be empty. Returns the number of
/// bytes written, and never `None`, because the write blocks.
pub(super) fn try_write(
    mut file: &File,
    _way: WriteMethod,
    _may_enlarge: &AtomicBool,
    parts: &[IoSlice<'_>],
) -> Result<Option<usize>> {
    loop {
        match file.write_vectored(parts) {
            Ok(0) => return Err(write_error(IoKind::WriteZero.into())),
            Ok(n) => return Ok(Some(n)),
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) => return Err(write_error(error)),
        }
    }
}
