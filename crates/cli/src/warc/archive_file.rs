//! The files of an archive, to which only complete records are appended.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::system::file_metadata_and_flags::OpenOptionsExt;
use haul::{Error, ErrorKind, Result};

use super::file_name::ArchiveName;
use super::message_spool::EncodedRecords;
use crate::job_types_in_every_build::ArchivePosition;

/// The file of the archive that is being written.
#[derive(Debug)]
pub(super) struct ArchiveFile {
    name: ArchiveName,
    /// The maximum size of one archive file in bytes; `None` is no limit. An exchange (a request
    /// with its response) that is larger gets a file to itself.
    max_size: Option<u64>,
    is_private: bool,
    file: Arc<File>,
    /// The archive's files before `file` that were completed since the last sync to the disk.
    /// `None` without a job (`--job`), because only a job syncs its archive.
    unsynced: Option<Vec<Arc<File>>>,
    number: u32,
    /// The length of the file in bytes, which is the end of its last complete record.
    length: u64,
    /// The length, in bytes, of the file's first record (warcinfo).
    opening: u64,
}

impl ArchiveFile {
    /// Creates the first file of an archive. `opening` makes the first record (warcinfo) of the
    /// file at the given path.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub(super) fn create(
        name: ArchiveName,
        max_size: Option<u64>,
        is_private: bool,
        opening: impl FnOnce(&Path) -> EncodedRecords,
    ) -> Result<Self> {
        let file = create(&name.file_path(0), is_private, OpenOptions::new().create_new(true))?;
        Self::at_position(name, max_size, is_private, file, ArchivePosition::default()).begin_file(opening)
    }

    /// Opens the archive of a job (`--job`) to continue it at `position`. Removes everything after
    /// that position: the rest of the file, and the later files of the archive. The removed records
    /// belong to transfers that the job's file does not contain, because an interruption ended the
    /// last run.
    ///
    /// # Errors
    /// The file at `position` is missing, is shorter than `position`, or cannot be opened.
    pub(super) fn reopen(
        name: ArchiveName,
        max_size: Option<u64>,
        is_private: bool,
        position: ArchivePosition,
        opening: impl FnOnce(&Path) -> EncodedRecords,
    ) -> Result<Self> {
        let ArchivePosition { number, offset } = position;
        let path = name.file_path(number);
        let file = match offset {
            0 => create(&path, is_private, OpenOptions::new().create(true))?,
            _ => OpenOptions::new().write(true).open(&path).map_err(|cause| unusable_file_error(&path, cause))?,
        };
        let length = file.metadata().map_err(|cause| unusable_file_error(&path, cause))?.len();
        if length < offset {
            let message = format!(
                "the archive {} has {length} bytes, but the job has written {offset}; restore it, or begin a new job",
                path.display()
            );
            return Err(Error::new(ErrorKind::Setup, message));
        }
        truncate_at(&file, offset).map_err(|cause| unusable_file_error(&path, cause))?;
        if max_size.is_some() {
            let later = (number + 1..).map(|number| name.file_path(number));
            for path in later.take_while(|path| path.symlink_metadata().is_ok()) {
                std::fs::remove_file(&path).map_err(|cause| unusable_file_error(&path, cause))?;
            }
        }
        let archive = Self::at_position(name, max_size, is_private, file, position);
        Self { unsynced: Some(Vec::new()), ..archive }.begin_file(opening)
    }

    fn at_position(
        name: ArchiveName,
        max_size: Option<u64>,
        is_private: bool,
        file: File,
        ArchivePosition { number, offset }: ArchivePosition,
    ) -> Self {
        Self { name, max_size, is_private, file: Arc::new(file), unsynced: None, number, length: offset, opening: 0 }
    }

    /// Writes the first record, which `opening` returns, if the file is empty.
    fn begin_file(mut self, opening: impl FnOnce(&Path) -> EncodedRecords) -> Result<Self> {
        if self.length == 0 {
            self.write(opening(&self.path()))?;
            self.opening = self.length;
        }
        Ok(self)
    }

    fn path(&self) -> PathBuf {
        self.name.file_path(self.number)
    }

    /// Returns the position of the end of the last complete record.
    pub(super) fn position(&self) -> ArchivePosition {
        ArchivePosition { number: self.number, offset: self.length }
    }

    /// Returns the files of a job's archive that were written since the last call.
    pub(super) fn unsynced(&mut self) -> Vec<Arc<File>> {
        let mut files = self.unsynced.as_mut().map(std::mem::take).unwrap_or_default();
        files.push(Arc::clone(&self.file));
        files
    }

    /// Appends the records of a request and its response (an exchange). Begins the next file if the
    /// records do not fit into the current one.
    ///
    /// # Errors
    /// The file cannot be written. It is then truncated to its last complete record.
    pub(super) fn append(
        &mut self,
        records: EncodedRecords,
        opening: impl FnOnce(&Path) -> EncodedRecords,
    ) -> Result<()> {
        let is_full = |limit| self.length > self.opening && self.length + records.length() > limit;
        if self.max_size.is_some_and(is_full) {
            self.number += 1;
            let path = self.path();
            let file = create(&path, self.is_private, OpenOptions::new().create_new(true))?;
            let full = std::mem::replace(&mut self.file, Arc::new(file));
            self.unsynced.iter_mut().for_each(|unsynced| unsynced.push(Arc::clone(&full)));
            self.length = 0;
            self.write(opening(&path))?;
            self.opening = self.length;
        }
        self.write(records)
    }

    fn write(&mut self, records: EncodedRecords) -> Result<()> {
        let length = records.length();
        match self.write_parts(records) {
            Ok(()) => {
                self.length += length;
                Ok(())
            }
            Err(cause) => {
                let path = self.path();
                let cut = truncate_at(&self.file, self.length);
                let rest =
                    if cut.is_ok() { "" } else { ", and its last record, which is incomplete, cannot be removed" };
                Err(Error::with_source(
                    ErrorKind::Write,
                    format!("the archive {} cannot be written{rest}", path.display()),
                    cause,
                ))
            }
        }
    }

    fn write_parts(&mut self, records: EncodedRecords) -> io::Result<()> {
        records.parts.into_iter().try_for_each(|part| part.write_to(&self.file))
    }
}

/// Refuses to create an archive if one of its files already exists.
pub(super) fn check_new(name: &ArchiveName) -> Result<()> {
    let others = std::fs::read_dir(name.directory()).into_iter().flatten().flatten();
    match others.map(|other| other.file_name()).find(|other| name.has_file(other)) {
        Some(other) => Err(existing_file_error(&name.directory().join(other))),
        None => Ok(()),
    }
}

/// Returns the error for a file of the archive that already exists.
fn existing_file_error(path: &Path) -> Error {
    let message = format!(
        "the archive file {} exists, and nothing is added to it; remove it, or choose another name for --warc",
        path.display()
    );
    Error::new(ErrorKind::Write, message)
}

/// Creates a file of the archive. With `is_private`, only its owner may read it.
fn create(path: &Path, is_private: bool, options: &mut OpenOptions) -> Result<File> {
    let mode = if is_private { 0o600 } else { 0o666 };
    options.write(true).mode(mode).open(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => existing_file_error(path),
        _ => Error::with_source(ErrorKind::Write, format!("the archive {} cannot be created", path.display()), cause),
    })
}

/// Truncates a file to `length` bytes, and sets the offset to its end.
fn truncate_at(mut file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length)).map(drop)
}

/// Returns the error for a WARC file that a job needs but cannot continue to write.
fn unusable_file_error(path: &Path, cause: io::Error) -> Error {
    let message =
        format!("the archive {} of the job cannot be continued; restore it, or begin a new job", path.display());
    Error::with_source(ErrorKind::Write, message, cause)
}
