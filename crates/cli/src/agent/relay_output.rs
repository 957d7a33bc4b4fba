//! The outputs to which a caller of the agent copies the body of a response.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use haul::sink::Sink;
use haul::sink::file::FileSink;
use haul::{Error, ErrorKind, Result};

/// The output to which this process copies the body that the agent writes to a pipe.
pub enum RelayOutput<'a> {
    /// An open descriptor.
    Open(BorrowedFd<'a>),
    /// A file that is opened for the first byte of the body. A response without a body therefore
    /// leaves an existing file unchanged.
    Postponed {
        /// The file.
        file: &'a mut FileSink,
        /// The descriptor of the file once it is open.
        descriptor: Option<OwnedFd>,
    },
}

impl fmt::Debug for RelayOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RelayOutput").field(&self.descriptor()).finish()
    }
}

impl<'a> RelayOutput<'a> {
    /// Returns an output that opens `file` for the first byte of the body.
    pub fn postponed(file: &'a mut FileSink) -> Self {
        RelayOutput::Postponed { file, descriptor: None }
    }

    /// Returns the descriptor; `None` for a file that has not been opened.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            RelayOutput::Open(out) => Some(*out),
            RelayOutput::Postponed { descriptor, .. } => descriptor.as_ref().map(AsFd::as_fd),
        }
    }

    /// Opens the file if it has not been opened.
    ///
    /// # Errors
    /// The error of [`FileSink::open_descriptor`].
    pub fn open(&mut self) -> Result<BorrowedFd<'_>> {
        match self {
            RelayOutput::Open(out) => Ok(*out),
            RelayOutput::Postponed { file, descriptor } => {
                if descriptor.is_none() {
                    *descriptor = Some(file.open_descriptor()?);
                }
                descriptor.as_ref().map(AsFd::as_fd).ok_or_else(|| file.write_error(io::ErrorKind::NotConnected.into()))
            }
        }
    }

    /// Returns the error of a transfer whose body cannot be written to this output.
    #[must_use]
    pub fn write_error(&self, error: io::Error) -> Error {
        match self {
            RelayOutput::Open(_) => Error::with_source(ErrorKind::Write, "failed to write the output", error),
            RelayOutput::Postponed { file, .. } => file.write_error(error),
        }
    }
}

/// An observer of a body that this process copies to its output.
pub trait RelayObserver {
    /// Reports that the body begins. `length` is the number of bytes that will arrive; `None` if it
    /// is unknown.
    fn body_begins(&self, length: Option<u64>);

    /// Reports that `bytes` more bytes of the body were copied.
    fn body_bytes(&self, bytes: usize);
}
