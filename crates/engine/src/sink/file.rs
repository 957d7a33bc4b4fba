//! A body written to a file.
//!
//! A regular file is written beside its target under a name of its own (created exclusively, so no link is followed)
//! and renamed over it when the body is complete: nobody ever sees half a file, and a failure leaves what was there.
//! What is not a regular file (a device, a FIFO, `/dev/fd/N`) is written in place.
//!
//! ```no_run
//! use haul::sink::file::FileSink;
//! let sink = FileSink::new("page.html");
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use super::{Begin, Sink};
use crate::buffer::Lease;
use crate::{Error, ErrorKind, Result};

/// Writes one body to a path.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    create_dirs: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed,
    Beside(File, TempPath),
    InPlace(File),
}

impl FileSink {
    /// A sink for this path. Nothing is opened before a response that will be delivered has begun.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), create_dirs: false, state: State::Closed }
    }

    /// Makes missing directories of the path too.
    #[must_use]
    pub fn create_dirs(mut self, yes: bool) -> Self {
        self.create_dirs = yes;
        self
    }

    /// Opens it for somebody who writes to the descriptor; [`Sink::finish`] gives the file its name.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] when it cannot be opened.
    pub fn open_descriptor(&mut self) -> Result<OwnedFd> {
        self.state = self.open().map_err(|error| self.error(error))?;
        match &self.state {
            State::Beside(file, _) | State::InPlace(file) => file.try_clone().map(OwnedFd::from),
            State::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
        .map_err(|error| self.error(error))
    }

    fn open(&self) -> io::Result<State> {
        if fs::metadata(&self.path).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(State::InPlace(OpenOptions::new().write(true).open(&self.path)?));
        }
        // A link to a file stays a link: what it points to is replaced.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if self.create_dirs {
            fs::create_dir_all(parent)?;
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".haul-").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As a plain creation would give (the umask applies), or what the replaced file has.
            let mode = fs::metadata(&target).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777);
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let (file, path) = NamedTempFile::into_parts(builder.tempfile_in(parent)?);
        Ok(State::Beside(file, path))
    }

    fn error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Write, format!("failed to write {}", self.path.display()), error)
    }
}

impl Sink for FileSink {
    fn begin(&mut self, _begin: &Begin<'_>) -> Result<()> {
        self.state = self.open().map_err(|error| self.error(error))?;
        Ok(())
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        match &mut self.state {
            State::Beside(file, _) | State::InPlace(file) => file.write_all(lease.bytes()),
            State::Closed => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn restart(&mut self) -> bool {
        !matches!(std::mem::replace(&mut self.state, State::Closed), State::InPlace(_))
    }

    fn finish(&mut self) -> Result<()> {
        if let State::Beside(_, beside) = std::mem::replace(&mut self.state, State::Closed) {
            let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            beside.persist(target).map_err(|error| self.error(error.error))?;
        }
        Ok(())
    }

    fn file_name(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
