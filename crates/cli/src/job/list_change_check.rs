//! The check that a job's list files are unchanged. A list that has changed is refused, because the
//! job identifies a URL by its position in the list.
//!
//! A file counts as unchanged if its size and modification time are the same. If only the time
//! differs, as after a copy, the SHA-256 of the content decides.

use std::fs::File;
use std::path::Path;

use haul::sink::checksum::{HashAlgorithm, hex};
use haul::system::file_metadata_and_flags::MetadataExt;
use haul::{Error, ErrorKind, Result};
use rusqlite::{OptionalExtension, params};

use super::job_error_from_sqlite_or_io::{database_error, job_error};
use super::open_and_lock_job_file::JobFile;

/// A list or config file that a job (`--job`) reads, and that must not change between runs.
pub(super) struct JobInputFile<'a> {
    /// The number that the job stores for the file. For a file of URLs, this is its position, from
    /// 0, among the URL arguments and files of URLs on the command line. Config files follow with
    /// the next higher numbers.
    pub(super) source: i64,
    pub(super) name: &'a str,
}

impl JobFile {
    /// Returns true if the job keeps a copy of the list with the number `source`, because the list
    /// was no regular file (such as a pipe) when the job first read it. Returns false for a regular
    /// file. Returns `None` if the job has not recorded the file.
    pub(super) fn is_copied(&self, source: i64) -> Result<Option<bool>> {
        let select = "SELECT is_copied FROM list WHERE source = ?1";
        let is_copied = self.connection.query_row(select, params![source], |row| row.get(0));
        is_copied.optional().map_err(|error| database_error(&self.path, error))
    }

    /// Checks that a file has not changed since the job recorded its state, and returns an error if
    /// it has. Records the state of a file that is new.
    pub(super) fn check_guarded_file(&self, guarded: &JobInputFile<'_>) -> Result<()> {
        let JobInputFile { source, name } = *guarded;
        let unreadable = |error| Error::with_source(ErrorKind::Read, format!("failed to read the list {name}"), error);
        // A FIFO is not opened, because that would wait for a writer.
        if !std::fs::metadata(name).map_err(unreadable)?.is_file() {
            return Err(changed_file_error(&self.path, name, "it was a regular file, and is none"));
        }
        let file = File::open(name).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        let size = metadata.len() as i64;
        let digest = || {
            let digest = HashAlgorithm::Sha256.hash_file(&file).map_err(unreadable)?;
            Ok::<String, Error>(hex(&digest))
        };
        let noted = self.connection.query_row(
            "SELECT size, modified, sha256 FROM list WHERE source = ?1",
            params![source],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<String>>(2)?)),
        );
        match noted.optional().map_err(|error| database_error(&self.path, error))? {
            Some((old, noted, _)) if old == size && noted == Some(modified) => return Ok(()),
            Some((old, _, sha256)) if old == size && sha256 == Some(digest()?) => {}
            Some((old, ..)) => {
                let what = match old == size {
                    true => "other content".to_owned(),
                    false => format!("{size} bytes, and had {old}"),
                };
                return Err(changed_file_error(&self.path, name, &what));
            }
            None => {}
        }
        let note = self.connection.execute(
            "INSERT OR REPLACE INTO list (source, name, is_copied, is_complete, size, modified, sha256) \
             VALUES (?1, ?2, 0, 1, ?3, ?4, ?5)",
            params![source, name, size, modified, digest()?],
        );
        note.map(drop).map_err(|error| database_error(&self.path, error))
    }
}

/// The states of a job's list and config files at the beginning of the run: the number and the name
/// of each file, and its state, which is `None` if the file cannot be read.
pub(super) struct JobInputFileStates(Vec<(i64, String, Option<FileState>)>);

/// The size of a file in bytes, and its modification time in seconds and nanoseconds.
type FileState = (u64, i64, i64);

impl JobInputFileStates {
    pub(super) fn read(files: &[JobInputFile<'_>]) -> Self {
        Self(files.iter().map(|file| (file.source, file.name.to_owned(), file_state(file.name))).collect())
    }

    /// Returns true if the list or config file with the number `source` is one of these files.
    pub(super) fn has(&self, source: i64) -> bool {
        self.0.iter().any(|(number, ..)| *number == source)
    }

    /// Returns an error if a file has changed since the run began, because the stored positions of
    /// URLs would then be wrong.
    pub(super) fn check(&self, job: &Path) -> Result<()> {
        match self.0.iter().find(|(_, name, before)| file_state(name) != *before) {
            Some((_, name, _)) => Err(job_error(
                job,
                format!(
                    "{name} has changed during the run, so the places in it are no longer known; restore it, or begin a \
                     new job"
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Returns the size and the modification time of a file; `None` if it cannot be read.
fn file_state(name: &str) -> Option<FileState> {
    let metadata = std::fs::metadata(name).ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

fn changed_file_error(job: &Path, name: &str, what: &str) -> Error {
    job_error(
        job,
        format!(
            "{name} has changed since the job began ({what}), so the places in it are no longer known; \
             restore it, or begin a new job"
        ),
    )
}
