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
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::{NamedTempFile, TempPath};

use super::{Begin, Sink};
use crate::buffer::Lease;
use crate::{Error, ErrorKind, Result};

/// Writes one body to a path.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    create_dirs: bool,
    devices: Option<Arc<Devices>>,
    state: State,
}

/// The character device that was opened last, for those who write to it next: thousands of bodies for `/dev/null` need
/// not open it thousands of times. (A FIFO is not kept: its reader waits for the end that closing it is.)
#[derive(Debug, Default)]
pub struct Devices {
    last: Mutex<Option<(PathBuf, Arc<File>)>>,
}

impl Devices {
    fn find(&self, path: &Path) -> Option<Arc<File>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(name, _)| name == path).map(|(_, file)| Arc::clone(file))
    }

    fn keep(&self, path: &Path, file: &Arc<File>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), Arc::clone(file)));
    }
}

#[derive(Debug)]
enum State {
    Closed,
    Beside(File, TempPath),
    InPlace(Arc<File>),
}

impl FileSink {
    /// A sink for this path. Nothing is opened before a response that will be delivered has begun.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), create_dirs: false, devices: None, state: State::Closed }
    }

    /// Makes missing directories of the path too.
    #[must_use]
    pub fn create_dirs(mut self, yes: bool) -> Self {
        self.create_dirs = yes;
        self
    }

    /// Devices are opened once for all sinks that share these.
    #[must_use]
    pub fn sharing(mut self, devices: &Arc<Devices>) -> Self {
        self.devices = Some(Arc::clone(devices));
        self
    }

    /// Opens it for somebody who writes to the descriptor; [`Sink::finish`] gives the file its name.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] when it cannot be opened.
    pub fn open_descriptor(&mut self) -> Result<OwnedFd> {
        self.state = self.open().map_err(|error| self.error(error))?;
        match &self.state {
            State::Beside(file, _) => file.try_clone().map(OwnedFd::from),
            State::InPlace(file) => file.try_clone().map(OwnedFd::from),
            State::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
        .map_err(|error| self.error(error))
    }

    fn open(&self) -> io::Result<State> {
        if let Some(file) = self.devices.as_ref().and_then(|devices| devices.find(&self.path)) {
            return Ok(State::InPlace(file));
        }
        if let Ok(metadata) = fs::metadata(&self.path)
            && !metadata.is_file()
        {
            let file = Arc::new(OpenOptions::new().write(true).open(&self.path)?);
            if let Some(devices) = self.devices.as_ref().filter(|_| metadata.file_type().is_char_device()) {
                devices.keep(&self.path, &file);
            }
            return Ok(State::InPlace(file));
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
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
            // As a plain creation would give (the umask applies), or what the replaced file has.
            options.mode(fs::metadata(&target).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777));
        }
        // Opened here, for tempfile's own errors hide the system's, and a lack of descriptors is worth a wait.
        let named =
            tempfile::Builder::new().prefix(".haul-").suffix(".part").make_in(parent, |path| options.open(path))?;
        let (file, path) = NamedTempFile::into_parts(named);
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
            State::Beside(file, _) => file.write_all(lease.bytes()),
            State::InPlace(file) => (&**file).write_all(lease.bytes()),
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
