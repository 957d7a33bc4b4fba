//! The files of an archive: whole records are appended, one after the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use haul::{Error, ErrorKind, Result};

use super::file_name::ArchiveName;
use super::message::{RecordBytes, RecordPart};

/// The current file of an archive.
#[derive(Debug)]
pub(super) struct ArchiveFile {
    name: ArchiveName,
    /// The size that a file does not exceed if it has more than one exchange.
    max_size: Option<u64>,
    is_private: bool,
    file: File,
    number: u32,
    /// The length of the file: the end of its last whole record.
    length: u64,
    /// The length of the file's first record.
    opening: u64,
}

impl ArchiveFile {
    /// Creates the first file of an archive. `opening` makes the first record of a file.
    ///
    /// # Errors
    /// The archive has files already, or the file cannot be created.
    pub(super) fn create(
        name: ArchiveName,
        max_size: Option<u64>,
        is_private: bool,
        opening: impl FnOnce(&std::path::Path) -> RecordBytes,
    ) -> Result<Self> {
        let others = std::fs::read_dir(name.directory()).into_iter().flatten().flatten();
        if let Some(other) = others.map(|other| other.file_name()).find(|other| name.has_file(other)) {
            return Err(existing(name.directory().join(other)));
        }
        let path = name.of_file(0);
        let file = open(&path, is_private)?;
        let mut archive = Self { name, max_size, is_private, file, number: 0, length: 0, opening: 0 };
        archive.write(opening(&path))?;
        archive.opening = archive.length;
        Ok(archive)
    }

    /// Returns the path of the current file.
    pub(super) fn path(&self) -> PathBuf {
        self.name.of_file(self.number)
    }

    /// Returns the length of the current file: the end of its last whole record.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends the records of one exchange, in the next file if they do not fit into this one.
    ///
    /// # Errors
    /// The file cannot be written. It is cut back to its last whole record.
    pub(super) fn append(
        &mut self,
        records: RecordBytes,
        opening: impl FnOnce(&std::path::Path) -> RecordBytes,
    ) -> Result<()> {
        let is_full = |limit| self.length > self.opening && self.length + records.length() > limit;
        if self.max_size.is_some_and(is_full) {
            self.number += 1;
            let path = self.path();
            self.file = open(&path, self.is_private)?;
            self.length = 0;
            self.write(opening(&path))?;
            self.opening = self.length;
        }
        self.write(records)
    }

    fn write(&mut self, records: RecordBytes) -> Result<()> {
        let length = records.length();
        match self.write_parts(records) {
            Ok(()) => {
                self.length += length;
                Ok(())
            }
            Err(cause) => {
                let path = self.path();
                let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
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

    fn write_parts(&mut self, records: RecordBytes) -> io::Result<()> {
        for part in records.parts {
            match part {
                RecordPart::Memory(bytes) => self.file.write_all(&bytes)?,
                RecordPart::File(mut content, bytes) => {
                    content.rewind()?;
                    if io::copy(&mut content.take(bytes), &mut self.file)? != bytes {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Creates a file that does not exist yet. With `is_private`, only its owner may read it.
fn open(path: &std::path::Path, is_private: bool) -> Result<File> {
    let mode = if is_private { 0o600 } else { 0o666 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => existing(path.to_owned()),
        _ => Error::with_source(ErrorKind::Write, format!("the archive {} cannot be created", path.display()), cause),
    })
}

/// Makes the error for a file of the archive that exists already.
fn existing(path: PathBuf) -> Error {
    let message = format!(
        "the archive file {} exists, and nothing is added to it; remove it, or choose another name for --warc",
        path.display()
    );
    Error::new(ErrorKind::Write, message)
}
