//! A body written to a file.
//!
//! A regular file is written in its target's directory and given its name when the body is complete: nobody ever sees
//! half a file, and a failure leaves what was there. Until then it has no name at all where the system can do that
//! (`O_TMPFILE`), so that not even a signal leaves litter; elsewhere it has one of its own, created exclusively, so that no
//! link is followed. What is not a regular file (a device, a FIFO, `/dev/fd/N`) is written in place.
//!
//! Handlers that remove named files at SIGINT and SIGTERM were the alternative. They miss SIGKILL, and a library that
//! takes the program's signals is a bad guest.
//!
//! ```no_run
//! use haul::sink::file::FileSink;
//! let sink = FileSink::new("page.html");
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
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
    /// Gone unless it is given a name.
    #[cfg(target_os = "linux")]
    Unnamed(File),
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
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => file.try_clone().map(OwnedFd::from),
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
        let parent = directory_of(&target);
        if self.create_dirs {
            fs::create_dir_all(parent)?;
        }
        // As a plain creation would give (the umask applies), or what the replaced file has.
        let mode = fs::metadata(&target).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777);
        // Whatever speaks against it, the other way says why if it matters there too.
        #[cfg(target_os = "linux")]
        if let Ok(file) = unnamed::create(parent, mode) {
            return Ok(State::Unnamed(file));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        // Opened here, for tempfile's own errors hide the system's, and a lack of descriptors is worth a wait.
        let (file, path) = with_temporary_name(parent, |path| options.open(path))?;
        Ok(State::Beside(file, path))
    }

    fn error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Write, format!("failed to write {}", self.path.display()), error)
    }
}

/// Shorter bodies are written in a few calls, and gain nothing.
const WORTH_RESERVING: u64 = 1 << 20;

/// Allocates a file's blocks at once: 1 GiB is written three times as fast then, and a disk that is too small is known
/// before a byte is fetched for nothing. The size stays what was written, so a file that remains unfinished is no longer
/// than its content.
#[cfg(target_os = "linux")]
fn reserve(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    if length < WORTH_RESERVING {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length) {
        Err(error @ (Errno::NOSPC | Errno::FBIG | Errno::DQUOT)) => Err(error.into()),
        // Any other refusal means that the file system cannot do it.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _length: u64) -> io::Result<()> {
    Ok(())
}

impl Sink for FileSink {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.state = self.open().map_err(|error| self.error(error))?;
        match (&self.state, begin.length) {
            #[cfg(target_os = "linux")]
            (State::Unnamed(file), Some(length)) => reserve(file, length),
            (State::Beside(file, _), Some(length)) => reserve(file, length),
            _ => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        match &mut self.state {
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => file.write_all(lease.bytes()),
            State::Beside(file, _) => file.write_all(lease.bytes()),
            State::InPlace(file) => (&**file).write_all(lease.bytes()),
            State::Closed => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        match &mut self.state {
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => write_all(file, pieces),
            State::Beside(file, _) => write_all(file, pieces),
            State::InPlace(file) => write_all(file, pieces),
            State::Closed => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => Some(file.as_fd()),
            State::Beside(file, _) => Some(file.as_fd()),
            State::InPlace(file) => Some(file.as_fd()),
            State::Closed => None,
        }
    }

    fn cannot_write(&self, error: io::Error) -> Error {
        self.error(error)
    }

    fn restart(&mut self) -> bool {
        !matches!(std::mem::replace(&mut self.state, State::Closed), State::InPlace(_))
    }

    fn finish(&mut self) -> Result<()> {
        let target = || fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        match std::mem::replace(&mut self.state, State::Closed) {
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => unnamed::give_name(&file, &target()),
            State::Beside(_, beside) => beside.persist(target()).map_err(io::Error::from),
            State::InPlace(_) | State::Closed => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn file_name(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

fn write_all(mut file: &File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut pieces, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes something under a new name in `dir`; it is removed unless it is given another.
fn with_temporary_name<T>(dir: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, TempPath)> {
    let named = tempfile::Builder::new().prefix(".haul-").suffix(".part").make_in(dir, make)?;
    Ok(NamedTempFile::into_parts(named))
}

/// Files without a name.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::sync::OnceLock;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
    use rustix::io::Errno;

    /// Where the system shows a process its descriptors: only through this may anyone but root name one.
    const DESCRIPTORS: &str = "/proc/self/fd";

    pub(super) fn create(dir: &Path, mode: u32) -> io::Result<File> {
        static NAMEABLE: OnceLock<bool> = OnceLock::new();
        if !NAMEABLE.get_or_init(|| fs::metadata(DESCRIPTORS).is_ok()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(mode))?))
    }

    /// Links it as `target`. A link cannot take another file's place, a rename can, so there the file has another name for
    /// the moment between the two.
    pub(super) fn give_name(file: &File, target: &Path) -> io::Result<()> {
        let own = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
        let link = |name: &Path| linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW);
        match link(target) {
            Err(Errno::EXIST) => {
                let name = |name: &Path| link(name).map_err(io::Error::from);
                let ((), beside) = super::with_temporary_name(super::directory_of(target), name)?;
                beside.persist(target).map_err(io::Error::from)
            }
            linked => linked.map_err(io::Error::from),
        }
    }
}
