//! The sink that writes a body to a file.
//!
//! A regular file is first written in its target's directory, under another name or without a name.
//! The file is renamed to the target when the body is complete. So no reader sees a partial file,
//! and a failure leaves the old file unchanged. A large body whose content has a strong validator
//! is written to a [partial] file, which a later run can complete. Any other body is written to a
//! file without a name (`O_TMPFILE`), so that not even a signal leaves a file behind. On systems
//! without such files, the body is written to a file with a temporary name. That file is created
//! exclusively, so that no link is followed. A device, a FIFO or `/dev/fd/N` is written in place.
//! The content of a file that cannot be replaced by a rename is copied into it when it is complete
//! (`existing_file_replacement.rs`).
//!
//! The rejected alternative is to remove named files in handlers of SIGINT and SIGTERM. These would
//! miss SIGKILL, and a library should not take over the program's signals.
//!
//! ```no_run
//! use haul::sink::file::FileSink;
//! let sink = FileSink::new("page.html");
//! ```

mod beneath_errors;
mod checksum_while_writing;
mod complete;
pub(in crate::sink) mod disk_space_reservation;
mod existing_file_replacement;
mod file_sink_descriptor;
mod open;
#[cfg_attr(windows, path = "open_beneath_windows.rs")]
mod open_beneath;
mod options;

use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_policy::file_names_by_system::OsFamily;
use haul_policy::filename;
use haul_policy::target::Target;
#[cfg(unix)]
use rustix::fd::BorrowedFd;

use super::checksum::{ChecksumHasher, ExpectedChecksum, HashAlgorithm};
use super::partial::{self, PartialFile};
use super::temporary_and_final_names::{self, ClobberMode};
use super::{ExistingPartialContent, ResponseForSink, Sink};
use crate::buffer_pool::OfferedBodyBytes;
use crate::fleet::FinishedTransferContent;
use crate::system::file_metadata_and_flags::{MetadataExt, OwnedFile};
use crate::{Error, ErrorKind, Result};
use checksum_while_writing::WrittenFileChecksum;
use disk_space_reservation::{DiskSpaceReservation, check_length_fits};
use existing_file_replacement::FileOwnership;
pub use file_sink_descriptor::OpenDeviceCache;
use file_sink_descriptor::OutputFileState;
pub use options::{AppendPosition, FileOptions, directory_mode};

/// A sink that writes the body of one response to the file at a path.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    options: FileOptions,
    clobber: ClobberMode,
    devices: Option<Arc<OpenDeviceCache>>,
    /// The partial file from an earlier run of the program, until a response shows whether it can
    /// be completed. `None` if there is no such file.
    left: Option<Arc<PartialFile>>,
    hasher: Option<ChecksumHasher>,
    /// The checksum of the written file for the transfer's record; `None` if the record needs no
    /// checksum.
    record: Option<Box<WrittenFileChecksum>>,
    state: OutputFileState,
    space: DiskSpaceReservation,
    /// The path to which the complete file is renamed. `None` if `FileSink::find_existing` was not
    /// called yet, or if no file can be renamed to that path.
    target: Option<PathBuf>,
    /// The owner and the permissions of the existing file that is replaced. `None` if no file is
    /// replaced.
    replaced: Option<FileOwnership>,
    /// True if the user did not choose the name of the file: it comes from a response, a URL or a
    /// list. The sink then does not write to links, FIFOs and devices.
    is_guarded: bool,
    /// The path that [`FileOptions::name_check`] has accepted; `None` before the check.
    taken: Option<PathBuf>,
    /// True if this transfer has opened the file in place, and the body is not complete yet.
    is_begun: bool,
    /// True if the response has an error status, and its body is written to the file nevertheless.
    is_failure: bool,
    /// The length in bytes that the existing file had before this body was appended to it. `None`
    /// if the body is not appended.
    was_long: Option<u64>,
    /// True if the response is a 304, which means that the existing file is still valid. As in
    /// curl, the sink then writes only the response head, and only if it was requested.
    shows_unchanged: bool,
}

impl FileSink {
    /// Makes a sink for this path with the default options. The file is opened only when a response
    /// with a body to deliver arrives.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with_options(path, FileOptions::default())
    }

    /// Makes a sink that writes to this path with these options. The file is opened only when a
    /// response with a body to deliver arrives.
    pub fn with_options(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        Self {
            path: path.into(),
            clobber: options.clobber,
            is_guarded: options.beneath.is_some(),
            options,
            devices: None,
            left: None,
            hasher: None,
            record: None,
            state: OutputFileState::Closed,
            space: DiskSpaceReservation::default(),
            target: None,
            replaced: None,
            taken: None,
            is_begun: false,
            is_failure: false,
            was_long: None,
            shows_unchanged: false,
        }
    }

    /// Makes this sink share the open devices in `devices` with other sinks, so that each device is
    /// opened only once.
    pub fn share_devices(&mut self, devices: &Arc<OpenDeviceCache>) {
        self.devices = Some(Arc::clone(devices));
    }

    /// Makes this sink compute the checksum of the file while it is written, for the transfer's
    /// record ([`FinishedTransferContent::file_checksum`]). The checksum is computed only for a
    /// regular file that is written from its first byte to its last. `None` turns the checksum off.
    #[must_use]
    pub fn with_record_checksum(mut self, algorithm: Option<HashAlgorithm>) -> Self {
        self.record = algorithm.map(|algorithm| Box::new(WrittenFileChecksum::new(algorithm)));
        self
    }

    /// Returns true if the file is a regular file without content, so that all its bytes will be
    /// written in order.
    fn is_written_in_order(&self, begin: &ResponseForSink<'_>) -> bool {
        let is_new = match &self.state {
            OutputFileState::Due | OutputFileState::Beside(..) | OutputFileState::Elsewhere(_) => true,
            #[cfg(linux_calls)]
            OutputFileState::Unnamed(_) => true,
            OutputFileState::Partial(writer) => writer.partial().present_ranges().byte_count() == 0,
            OutputFileState::InPlace(_) | OutputFileState::Null(_) | OutputFileState::Closed => false,
        };
        is_new && begin.offset == 0
    }

    fn stop_record_checksum(&mut self) {
        if let Some(record) = &mut self.record {
            record.stop();
        }
    }

    /// Opens the file, and returns a descriptor to write to. [`Sink::finish`] then completes the
    /// file.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if the file cannot be opened.
    pub fn open_descriptor(&mut self) -> Result<OwnedFile> {
        self.state = self.open(None).map_err(|error| self.error(error))?;
        match self.state.file() {
            Some(file) => file.try_clone().map(OwnedFile::from),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
        .map_err(|error| self.error(error))
    }

    /// Opens the file if its opening was postponed until now, when the first byte is written.
    fn open_postponed(&mut self) -> Result<()> {
        if matches!(self.state, OutputFileState::Due) {
            let file = self.open_in_place().map_err(|error| self.error(error))?;
            self.state = OutputFileState::InPlace(Arc::new(file));
        }
        Ok(())
    }

    fn reserve_ahead(&mut self) {
        let Self { state, space, .. } = self;
        if let Some(file) = state.file() {
            space.reserve_ahead(file);
        }
    }

    /// Removes the content that this transfer has written or an earlier run of the program has
    /// left.
    fn remove(&mut self) {
        if std::mem::take(&mut self.is_begun) {
            let _ = fs::remove_file(&self.path);
        }
        if let OutputFileState::Partial(writer) = std::mem::replace(&mut self.state, OutputFileState::Closed) {
            writer.partial().remove();
        }
        if let Some(left) = self.left.take() {
            left.remove();
        }
    }

    fn error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Write, format!("failed to write {}", self.path.display()), error)
    }
}

/// Returns the file name that a response suggests, in this order, as in curl:
/// 1. the name in Content-Disposition, unless the status is an error;
/// 2. the name in the Location of a redirect;
/// 3. the name in the URL of this response, if redirects led to it.
///
/// The name follows the rules of this system.
fn suggested_file_name(begin: &ResponseForSink<'_>) -> Option<String> {
    let own = begin.head.get("content-disposition").filter(|_| begin.head.status() < 400);
    let name = own
        .and_then(filename::from_disposition)
        .or_else(|| {
            let is_redirect = begin.head.status() / 100 == 3;
            filename::from_location(begin.head.get("location").filter(|_| is_redirect)?)
        })
        .or_else(|| {
            let is_elsewhere = begin.facts.redirects > 0 && !begin.place.path().ends_with('/');
            filename::from_target(begin.place).ok().filter(|_| is_elsewhere).and_then(|name| filename::sanitise(&name))
        })?;
    Some(String::from_utf8_lossy(&OsFamily::CURRENT.file_name(name.as_bytes())).into_owned())
}

/// Returns true if the path is a regular file that was created or changed after `time`.
fn is_changed_after(path: &Path, time: SystemTime) -> bool {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    path.symlink_metadata().is_ok_and(|metadata| {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        metadata.is_file() && changed > (since.as_secs().cast_signed(), i64::from(since.subsec_nanos()))
    })
}

impl Sink for FileSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.stop_record_checksum();
        // The server refers to the existing file (RFC 9110 section 15.4.5).
        if begin.head.status() == 304 {
            self.shows_unchanged = self.options.in_place;
            return Ok(());
        }
        self.is_guarded |= self.options.named_by_response && !self.options.in_place;
        if self.options.named_by_response
            && let Some(name) = suggested_file_name(begin)
        {
            self.is_guarded = true;
            let named = self.path.with_file_name(name);
            if named != self.path {
                self.path = named;
                self.is_begun = false;
            }
            self.clobber = match self.clobber {
                ClobberMode::OwnSince(time) if is_changed_after(&self.path, time) => ClobberMode::Replace,
                ClobberMode::Own | ClobberMode::OwnSince(_) => ClobberMode::Refuse,
                other => other,
            };
        }
        if let Some(check) = self.options.name_check.as_ref().filter(|_| self.options.named_by_response)
            && self.taken.as_ref() != Some(&self.path)
        {
            check.check(&self.path, begin.target)?;
            self.taken = Some(self.path.clone());
        }
        // A file begun by an earlier attempt belongs to this run.
        let is_taken =
            || if self.is_guarded { self.path.is_symlink() || self.path.exists() } else { self.path.is_file() };
        if !self.is_begun && matches!(self.clobber, ClobberMode::Refuse | ClobberMode::Skip) && is_taken() {
            return Err(self.error(io::ErrorKind::AlreadyExists.into()));
        }
        self.state = self.open(Some(begin)).map_err(|error| self.error(error))?;
        // A file that is appended to is read from its beginning once it is complete.
        let in_passing =
            matches!(self.state, OutputFileState::Due | OutputFileState::InPlace(_) | OutputFileState::Null(_))
                && !self.appends_to_file();
        self.is_failure = self.options.statuses_fail && begin.head.status() >= 400;
        self.hasher = self.options.checksum.as_ref().filter(|_| in_passing).map(ExpectedChecksum::hasher);
        let in_order = self.is_written_in_order(begin);
        if let Some(record) = self.record.as_mut().filter(|_| in_order) {
            record.begin();
        }
        self.space = DiskSpaceReservation::default();
        let gathers = match &self.state {
            #[cfg(linux_calls)]
            OutputFileState::Unnamed(_) => true,
            OutputFileState::Beside(..) | OutputFileState::Elsewhere(_) => true,
            _ => false,
        };
        if let (Some(file), Some(length)) = (self.state.file().filter(|_| gathers), begin.length) {
            check_length_fits(file, length).map_err(|error| self.error(error))?;
            self.space = DiskSpaceReservation::new(0, length);
        }
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(offered.bytes());
        }
        if let Some(record) = &mut self.record {
            record.update(offered.bytes());
        }
        if self.shows_unchanged && !offered.bytes().is_empty() {
            self.shows_unchanged = false;
            self.state = self.open(None).map_err(|error| self.error(error))?;
        }
        if !offered.bytes().is_empty() {
            self.open_postponed()?;
        }
        self.reserve_ahead();
        self.space.on_written(offered.bytes().len() as u64);
        match (&mut self.state, offered.bytes()) {
            (OutputFileState::Null(_), _) => Ok(()),
            (OutputFileState::Partial(writer), bytes) => writer.write(bytes),
            (OutputFileState::Elsewhere(_), bytes) => self.write_temporary(bytes),
            (state, bytes) => state.file().map_or(Ok(()), |mut file| file.write_all(bytes)),
        }
        .map_err(|error| self.error(error))
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.open_postponed()?;
        if let Some(hasher) = &mut self.hasher {
            pieces.iter().for_each(|piece| hasher.update(piece));
        }
        if let Some(record) = &mut self.record {
            pieces.iter().for_each(|piece| record.update(piece));
        }
        self.reserve_ahead();
        self.space.on_written(pieces.iter().map(|piece| piece.len() as u64).sum());
        match &mut self.state {
            OutputFileState::Null(_) => Ok(()),
            OutputFileState::Partial(writer) => writer.write_pieces(pieces),
            OutputFileState::Elsewhere(_) => pieces.iter().try_for_each(|piece| self.write_temporary(piece)),
            state => state.file().map_or(Ok(()), |file| write_all(file, pieces)),
        }
        .map_err(|error| self.error(error))
    }

    #[cfg(unix)]
    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        use rustix::fd::AsFd;

        self.reserve_ahead();
        match &mut self.state {
            _ if self.hasher.is_some() || self.record.as_ref().is_some_and(|record| record.is_running()) => None,
            OutputFileState::Partial(writer) => Some(writer.descriptor()),
            OutputFileState::Elsewhere(_) => None,
            state => state.file().map(File::as_fd),
        }
    }

    fn moved(&mut self, bytes: u64) {
        self.space.on_written(bytes);
        if let OutputFileState::Partial(writer) = &mut self.state {
            writer.on_moved_bytes(bytes);
        }
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.error(error)
    }

    fn partial(&mut self, target: &Target) -> Option<ExistingPartialContent> {
        if self.options.named_by_response {
            return None;
        }
        if self.options.in_place && self.options.append.is_none() {
            return None;
        }
        if let Some(append) = self.options.append {
            let at = match append {
                AppendPosition::At(offset) => offset,
                AppendPosition::AtEnd => fs::metadata(&self.path).map_or(0, |metadata| metadata.len()),
                AppendPosition::WholeAtEnd => return None,
            };
            return (at > 0).then_some(ExistingPartialContent { gap: at..u64::MAX, known: None });
        }
        // A device never has partial content, and looking for it would take three system calls for
        // each of thousands of bodies.
        if self.devices.as_ref().is_some_and(|devices| devices.find(&self.path).is_some()) {
            return None;
        }
        if let Some(base) = &self.options.beneath {
            open_beneath::check_beneath(base, temporary_and_final_names::directory_of(&self.path), None).ok()?;
        }
        self.find_existing(false).ok()?;
        let beside = self.target.as_deref().and_then(PartialFile::partial_path)?;
        let left = PartialFile::open(&beside, target, self.options.sync)?;
        let partial = left.existing_content();
        self.left = Some(Arc::new(left));
        partial
    }

    fn keeps_in_memory(&self) -> bool {
        false
    }

    fn continues_file(&self) -> bool {
        matches!(self.options.append, Some(AppendPosition::At(_) | AppendPosition::AtEnd))
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        let OutputFileState::Partial(writer) = &mut self.state else { return None };
        let partial = Arc::clone(writer.partial());
        let gap = partial.next_gap(0)?;
        if let Some(record) = &mut self.record {
            record.stop();
        }
        *writer = partial.writer(gap.clone()).ok()?;
        Some(gap)
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.stop_record_checksum();
        match &self.state {
            OutputFileState::Partial(writer) => Some(Arc::clone(writer.partial())),
            _ => None,
        }
    }

    fn keeps(&mut self) -> bool {
        let adds = self.options.in_place && matches!(self.options.append, Some(AppendPosition::AtEnd));
        let is_kept = adds && matches!(self.state, OutputFileState::InPlace(_)) && self.was_long.is_some();
        if is_kept {
            self.stop_record_checksum();
            (self.state, self.was_long) = (OutputFileState::Closed, None);
        }
        is_kept
    }

    fn restart(&mut self) -> bool {
        if let Some(left) = self.left.take() {
            left.remove();
        }
        match std::mem::replace(&mut self.state, OutputFileState::Closed) {
            OutputFileState::Partial(writer) => {
                writer.partial().remove();
                true
            }
            // The appended bytes are removed.
            OutputFileState::InPlace(file) => {
                self.was_long.map_or(self.is_begun, |length| file.set_len(length).is_ok())
            }
            _ => true,
        }
    }

    fn finish(&mut self) -> Result<()> {
        // The file was complete before: no response has begun.
        if let (OutputFileState::Closed, Some(left)) = (&self.state, self.left.take()) {
            let writer = left.writer(left.total()..left.total()).map_err(|error| self.error(error))?;
            self.state = OutputFileState::Partial(writer);
        }
        if let OutputFileState::Partial(writer) = &self.state {
            writer.partial().complete().map_err(|error| self.error(error))?;
        }
        if self.is_failure && self.options.remove_on_error {
            self.stop_record_checksum();
            self.remove();
            return Ok(());
        }
        // An empty body makes an empty file.
        self.open_postponed()?;
        self.check_checksum()?;
        let state = std::mem::replace(&mut self.state, OutputFileState::Closed);
        self.rename_to_target(state).map_err(|error| self.error(error))?;
        (self.is_begun, self.was_long) = (false, None);
        if let Some(record) = &mut self.record {
            record.finish();
        }
        Ok(())
    }

    fn take_record(&mut self) -> Option<FinishedTransferContent> {
        let file_checksum = self.record.as_mut()?.take_checksum();
        Some(FinishedTransferContent {
            is_complete: file_checksum.is_some(),
            file_checksum,
            ..FinishedTransferContent::default()
        })
    }

    fn file_name(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if self.options.remove_on_error {
            self.remove();
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
