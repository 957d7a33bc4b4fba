//! The files of `-D`, `--trace` and similar options, which are written while transfers run.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use haul::system::file_metadata_and_flags::{create_for_appending, is_file_at, is_same_file};
use haul::{Error, ErrorKind, Result};

use crate::file_and_environment_access::Stdout;
use crate::system::standard_streams;

/// A file to which response heads or a trace are written while transfers run.
pub(crate) struct HeaderOrTraceFile {
    out: Mutex<Box<dyn Write + Send>>,
    name: String,
    /// The first error of a write to this file, after which bytes are missing; empty if all writes
    /// succeeded.
    failed: OnceLock<Error>,
    is_terminal: bool,
}

impl HeaderOrTraceFile {
    /// Creates or truncates the file; the path `-` means standard output, and `%` standard error.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if the file cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(match path.as_os_str().as_encoded_bytes() {
            b"-" => {
                Self { is_terminal: std::io::stdout().is_terminal(), ..Self::new("standard output", Box::new(Stdout)) }
            }
            b"%" => Self::stderr(),
            _ => {
                let name = path.display();
                let cannot = |error| Error::with_source(ErrorKind::Write, format!("failed to open {name}"), error);
                // Content may go to the same file (-D FILE -o FILE): each write appends to whatever
                // the file has.
                Self::new(name.to_string(), Box::new(create_for_appending(path).map_err(cannot)?))
            }
        })
    }

    pub(crate) fn stderr() -> Self {
        Self::new("standard error", Box::new(std::io::stderr()))
    }

    /// Returns true if the file that `path` selects, as for [`open`](Self::open), is the same file
    /// as standard output: `-`, or `%` if the two streams have one file.
    pub(crate) fn is_stdout(path: &Path) -> bool {
        let Ok(stdout) = standard_streams::stdout_file() else { return false };
        match path.as_os_str().as_encoded_bytes() {
            b"-" => true,
            b"%" => standard_streams::stderr_file().is_ok_and(|stderr| is_same_file(&stdout, &stderr).unwrap_or(false)),
            _ => is_file_at(&stdout, path).unwrap_or(false),
        }
    }

    fn new(name: impl Into<String>, out: Box<dyn Write + Send>) -> Self {
        Self { out: Mutex::new(out), name: name.into(), failed: OnceLock::new(), is_terminal: false }
    }

    /// Returns true if this file is standard output, and standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes the bytes and flushes the file. Stores the first error, which
    /// [`failure`](Self::failure) returns.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            let lost = || Error::with_source(ErrorKind::Write, format!("failed to write {}", self.name), error);
            self.failed.get_or_init(lost);
        }
    }

    /// Returns the first error of a write to this file; `None` if all writes succeeded.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.get().map(Error::duplicate)
    }
}
