//! A body written to a file.
//!
//! A regular file is written in its target's directory and given its name when the body is complete: nobody ever sees
//! half a file, and a failure leaves what was there. A large one whose content can be told from every other is
//! [partial](super::partial) until then, and a later run completes it. Any other has no name at all where the system can
//! do that (`O_TMPFILE`), so that not even a signal leaves litter; elsewhere it has one of its own, created exclusively, so
//! that no link is followed. What is not a regular file (a device, a FIFO, `/dev/fd/N`) is written in place.
//!
//! Handlers that remove named files at SIGINT and SIGTERM were the alternative. They miss SIGKILL, and a library that
//! takes the program's signals is a bad guest.
//!
//! ```no_run
//! use haul::sink::file::FileSink;
//! let sink = FileSink::new("page.html");
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haul_policy::filename;
use haul_policy::target::Target;
use tempfile::TempPath;

use super::checksum::{Checksum, Hasher};
use super::naming::{self, Clobber};
use super::null::is_null;
use super::partial::{PartWriter, PartialFile};
use super::{Begin, Partial, Sink};
use crate::buffer::Lease;
use crate::{Error, ErrorKind, Result};

/// How a file is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Make missing directories of the path too. Default no.
    pub create_dirs: bool,
    /// The name that a Content-Disposition suggests, made harmless, takes the place of the path's last part (curl's `-J`).
    /// Default no.
    pub named_by_response: bool,
    /// What happens if there is a file of that name. Default: it is replaced, unless the response suggested the name.
    pub clobber: Clobber,
    /// Bytes and name are on the disk before it is done. Default no.
    pub sync: bool,
    /// Permission bits of a new file, before the umask. Default `0o666`.
    pub mode: Option<u32>,
    /// Leave nothing of a transfer that failed. Default no: a later run can complete it.
    pub remove_on_error: bool,
    /// The bytes are added to the file in place (curl's `-C`). Default no.
    pub append: Option<Append>,
    /// Bytes go where they belong at once: the file is opened under its own name, cut to nothing and written there, links
    /// are followed, and what came of a transfer that fails stays (curl's way). Default no. Hazard: who reads meanwhile
    /// reads half a file.
    pub in_place: bool,
    /// The content must have this checksum; if not, the file does not get its name.
    pub checksum: Option<Checksum>,
}

/// Where bytes are added to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// From this byte on.
    At(u64),
    /// At its end.
    AtEnd,
}

/// Writes one body to a path.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    options: FileOptions,
    clobber: Clobber,
    devices: Option<Arc<Devices>>,
    /// What an earlier run left, until a response says whether it is good.
    left: Option<Arc<PartialFile>>,
    hasher: Option<Hasher>,
    state: State,
    /// It was opened in place, by this run, and is not complete.
    is_begun: bool,
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
    Partial(PartWriter),
    InPlace(Arc<File>),
    /// Open, but what is written to it is gone.
    Null(Arc<File>),
}

impl State {
    /// What is no regular file.
    fn in_place(file: Arc<File>) -> Self {
        if is_null(&file) { Self::Null(file) } else { Self::InPlace(file) }
    }

    fn file(&self) -> Option<&File> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => Some(file),
            Self::Beside(file, _) => Some(file),
            Self::InPlace(file) | Self::Null(file) => Some(file),
            Self::Partial(_) | Self::Closed => None,
        }
    }
}

impl FileSink {
    /// A sink for this path. Nothing is opened before a response that will be delivered has begun.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with(path, FileOptions::default())
    }

    /// The same, written so.
    pub fn with(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        Self {
            path: path.into(),
            clobber: options.clobber,
            options,
            devices: None,
            left: None,
            hasher: None,
            state: State::Closed,
            is_begun: false,
        }
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
        self.state = self.open(None).map_err(|error| self.error(error))?;
        match self.state.file() {
            Some(file) => file.try_clone().map(OwnedFd::from),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
        .map_err(|error| self.error(error))
    }

    /// Where the file itself is: a link to a file stays a link, what it points to is replaced.
    fn target(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    fn open(&mut self, begin: Option<&Begin<'_>>) -> io::Result<State> {
        if let Some(file) = self.devices.as_ref().and_then(|devices| devices.find(&self.path)) {
            return Ok(State::in_place(file));
        }
        let metadata = fs::metadata(&self.path).ok();
        if let Some(metadata) = metadata.as_ref().filter(|metadata| !metadata.is_file()) {
            let file = Arc::new(OpenOptions::new().write(true).open(&self.path)?);
            if let Some(devices) = self.devices.as_ref().filter(|_| metadata.file_type().is_char_device()) {
                devices.keep(&self.path, &file);
            }
            return Ok(State::in_place(file));
        }
        if self.options.in_place && self.options.append.is_none() {
            return self.open_in_place().map(|file| State::InPlace(Arc::new(file)));
        }
        let target = self.target();
        let parent = naming::directory_of(&target);
        if self.options.create_dirs {
            fs::create_dir_all(parent)?;
        }
        // As a plain creation would give (the umask applies), or what the replaced file has.
        let asked = self.options.mode.unwrap_or(0o666);
        let mode = metadata.map_or(asked, |metadata| metadata.permissions().mode() & 0o777);
        if self.options.append.is_some() {
            let mut options = OpenOptions::new();
            // Read where the whole of it is to be held against a checksum.
            options.create(true).truncate(false).write(true).read(self.options.checksum.is_some()).mode(mode);
            let mut file = options.open(&self.path)?;
            // curl adds to the end whatever the offset; haul puts each byte at its place.
            file.seek(match self.options.in_place {
                true => SeekFrom::End(0),
                false => SeekFrom::Start(begin.map_or(0, |begin| begin.offset)),
            })?;
            return Ok(State::InPlace(Arc::new(file)));
        }
        if let Some(partial) = begin.and_then(|begin| self.partial_for(begin, &target, mode).transpose()) {
            return partial.map(State::Partial);
        }
        // Whatever speaks against it, the other way says why if it matters there too.
        #[cfg(target_os = "linux")]
        if let Ok(file) = naming::unnamed::create(parent, mode) {
            return Ok(State::Unnamed(file));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode);
        // Opened here, for tempfile's own errors hide the system's, and a lack of descriptors is worth a wait.
        let (file, path) = naming::with_temporary_name(parent, |path| options.open(path))?;
        Ok(State::Beside(file, path))
    }

    fn open_in_place(&mut self) -> io::Result<File> {
        if self.options.create_dirs {
            fs::create_dir_all(naming::directory_of(&self.path))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).read(self.options.checksum.is_some()).mode(self.options.mode.unwrap_or(0o666));
        // A second try writes the file that the first one has made.
        let is_own = self.is_begun || matches!(self.clobber, Clobber::Own | Clobber::Replace);
        if is_own {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        for name in naming::names(&self.path.clone(), self.clobber) {
            match options.open(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    self.path = name;
                    self.is_begun = opened.is_ok();
                    return opened;
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The partial file for this response, if it is worth one.
    fn partial_for(&mut self, begin: &Begin<'_>, target: &Path, mode: u32) -> io::Result<Option<PartWriter>> {
        if let Some(left) = self.left.take() {
            // By the status: the first gap may well begin at the first byte.
            if begin.head.status() == 206 {
                return left.writer(begin.offset).map(Some);
            }
            left.remove();
        }
        let (Some(total), Some(validator), Some(path)) =
            (begin.total.filter(|&total| total >= WORTH_RESERVING), begin.validator, PartialFile::beside(target))
        else {
            return Ok(None);
        };
        if begin.length != Some(total) {
            return Ok(None);
        }
        match PartialFile::create(&path, mode, begin.target, total, validator, self.options.sync) {
            Ok(partial) => Arc::new(partial).writer(0).map(Some),
            Err(error) if is_full(&error) => Err(error),
            // Whatever speaks against it, the file can be written all the same.
            Err(_) => Ok(None),
        }
    }

    fn give_name(&mut self, state: State) -> io::Result<()> {
        let target = self.target();
        let clobber = self.clobber;
        let named = match state {
            #[cfg(target_os = "linux")]
            State::Unnamed(file) => {
                self.sync_content(&file)?;
                naming::unnamed::give_name(&file, &target, clobber)?
            }
            State::Beside(file, beside) => {
                self.sync_content(&file)?;
                naming::give_name(&beside, &target, clobber)?
            }
            State::Partial(writer) => naming::give_name(writer.partial().path(), &target, clobber)?,
            State::InPlace(file) => {
                self.cut_behind(&file)?;
                return self.sync_content(&file);
            }
            State::Null(file) => return self.sync_content(&file),
            State::Closed => return Ok(()),
        };
        if self.options.sync {
            File::open(naming::directory_of(&named))?.sync_all()?;
        }
        if named != target {
            self.path = named;
        }
        Ok(())
    }

    /// A file that was gone on with before its end, and got less than it had there, has no old bytes behind the new ones.
    fn cut_behind(&self, mut file: &File) -> io::Result<()> {
        if !matches!(self.options.append, Some(Append::At(_))) || !self.adds_to_file() {
            return Ok(());
        }
        let end = file.stream_position()?;
        if end < file.metadata()?.len() { file.set_len(end) } else { Ok(()) }
    }

    fn sync_content(&self, file: &File) -> io::Result<()> {
        // What cannot be synced (a device, a pipe) says so by EINVAL.
        match if self.options.sync { file.sync_all() } else { Ok(()) } {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }

    /// Whether it goes on with a regular file.
    fn adds_to_file(&self) -> bool {
        self.options.append.is_some() && fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file())
    }

    /// Holds the content against its checksum.
    fn check(&mut self) -> Result<()> {
        let Some(checksum) = &self.options.checksum else { return Ok(()) };
        let found = match (self.hasher.take(), &self.state) {
            (Some(hasher), _) => Ok(hasher.finish()),
            (None, State::Partial(writer)) => checksum.of(writer.partial().file()),
            // Nothing was missing: no response has begun.
            (None, State::Closed) if self.adds_to_file() => File::open(&self.path).and_then(|file| checksum.of(&file)),
            (None, state) => match state.file() {
                Some(file) => checksum.of(file),
                None => return Ok(()),
            },
        };
        let found = found.map_err(|error| self.error(error))?;
        checksum.agrees(&found).inspect_err(|_| {
            // What can be looked at is kept, but not under the name of what it should have been.
            let Some(beside) = PartialFile::beside(&self.target()).filter(|_| !self.options.remove_on_error) else {
                return;
            };
            match &self.state {
                #[cfg(target_os = "linux")]
                State::Unnamed(file) => {
                    let _ = naming::unnamed::give_name(file, &beside, Clobber::Replace);
                }
                State::Beside(_, path) => {
                    let _ = fs::rename(path, beside);
                }
                State::Partial(_) | State::InPlace(_) | State::Null(_) | State::Closed => {}
            }
        })
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
pub(super) fn reserve(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if length < WORTH_RESERVING {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length).map_err(io::Error::from) {
        Err(error) if is_full(&error) => Err(error),
        // Any other refusal means that the file system cannot do it.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reserve(_file: &File, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Whether there is no room for a file of this length.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl Sink for FileSink {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        // What is there already is what the server means (RFC 9110 section 15.4.5).
        if begin.head.status() == 304 {
            return Ok(());
        }
        if self.options.named_by_response {
            let suggested = begin.head.get("content-disposition").and_then(filename::from_disposition);
            if let Some(name) = suggested {
                self.path.set_file_name(name);
                if self.clobber == Clobber::Own {
                    self.clobber = Clobber::Refuse;
                }
            }
        }
        if matches!(self.clobber, Clobber::Refuse | Clobber::Skip) && self.path.is_file() {
            return Err(self.error(io::ErrorKind::AlreadyExists.into()));
        }
        self.state = self.open(Some(begin)).map_err(|error| self.error(error))?;
        // What is added to is read at the end, from its beginning.
        let in_passing = matches!(self.state, State::InPlace(_) | State::Null(_)) && !self.adds_to_file();
        self.hasher = self.options.checksum.as_ref().filter(|_| in_passing).map(Checksum::hasher);
        match (&self.state, begin.length) {
            #[cfg(target_os = "linux")]
            (State::Unnamed(file), Some(length)) => reserve(file, length),
            (State::Beside(file, _), Some(length)) => reserve(file, length),
            _ => Ok(()),
        }
        .map_err(|error| self.error(error))
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(lease.bytes());
        }
        match (&mut self.state, lease.bytes()) {
            (State::Null(_), _) => Ok(()),
            (State::Partial(writer), bytes) => writer.write(bytes),
            (state, bytes) => state.file().map_or(Ok(()), |mut file| file.write_all(bytes)),
        }
        .map_err(|error| self.error(error))
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if let Some(hasher) = &mut self.hasher {
            pieces.iter().for_each(|piece| hasher.update(piece));
        }
        match &mut self.state {
            State::Null(_) => Ok(()),
            State::Partial(writer) => writer.write_pieces(pieces),
            state => state.file().map_or(Ok(()), |file| write_all(file, pieces)),
        }
        .map_err(|error| self.error(error))
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            _ if self.hasher.is_some() => None,
            State::Partial(writer) => Some(writer.as_fd()),
            state => state.file().map(File::as_fd),
        }
    }

    fn moved(&mut self, bytes: u64) {
        if let State::Partial(writer) = &mut self.state {
            writer.moved(bytes);
        }
    }

    fn cannot_write(&self, error: io::Error) -> Error {
        self.error(error)
    }

    fn partial(&mut self, target: &Target) -> Option<Partial> {
        if self.options.named_by_response {
            return None;
        }
        if self.options.in_place && self.options.append.is_none() {
            return None;
        }
        if let Some(append) = self.options.append {
            let at = match append {
                Append::At(offset) => offset,
                Append::AtEnd => fs::metadata(&self.path).map_or(0, |metadata| metadata.len()),
            };
            return (at > 0).then_some(Partial { gap: at..u64::MAX, known: None });
        }
        let left = PartialFile::open(&PartialFile::beside(&self.target())?, target, self.options.sync)?;
        let partial = left.partial();
        self.left = Some(Arc::new(left));
        partial
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        let State::Partial(writer) = &mut self.state else { return None };
        let partial = Arc::clone(writer.partial());
        let gap = partial.gap(0)?;
        *writer = partial.writer(gap.start).ok()?;
        Some(gap)
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        match &self.state {
            State::Partial(writer) => Some(Arc::clone(writer.partial())),
            _ => None,
        }
    }

    fn restart(&mut self) -> bool {
        if let Some(left) = self.left.take() {
            left.remove();
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Partial(writer) => {
                writer.partial().remove();
                true
            }
            State::InPlace(_) => self.is_begun,
            State::Null(_) => false,
            _ => true,
        }
    }

    fn finish(&mut self) -> Result<()> {
        // All of it was there: no response has begun.
        if let (State::Closed, Some(left)) = (&self.state, self.left.take()) {
            let writer = left.writer(left.total()).map_err(|error| self.error(error))?;
            self.state = State::Partial(writer);
        }
        if let State::Partial(writer) = &self.state {
            writer.partial().complete().map_err(|error| self.error(error))?;
        }
        self.check()?;
        let state = std::mem::replace(&mut self.state, State::Closed);
        self.give_name(state).map_err(|error| self.error(error))?;
        self.is_begun = false;
        Ok(())
    }

    fn file_name(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if !self.options.remove_on_error {
            return;
        }
        if self.is_begun {
            let _ = fs::remove_file(&self.path);
        }
        if let State::Partial(writer) = &self.state {
            writer.partial().remove();
        }
        if let Some(left) = &self.left {
            left.remove();
        }
    }
}

pub(super) fn write_all(mut file: &File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
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
