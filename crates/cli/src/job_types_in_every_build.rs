//! The Rust types for `--job` that also exist in builds without the feature `job`.

use std::io;
use std::path::PathBuf;

use haul::{Error, Result};

use crate::usage_error::UsageError;

/// The reason why a command line with `--job` cannot be run.
#[derive(Debug)]
pub enum JobRefusal {
    /// An option of the command line is wrong.
    Usage(UsageError),
    /// The file of the job cannot be used: for example, it cannot be read, or another process has
    /// locked it.
    Job(Error),
}

/// The state of a URL of a job (`--job`) at the moment when a run of the job reaches the URL.
#[cfg_attr(not(feature = "job"), expect(dead_code, reason = "without jobs, no URL has a place"))]
pub(crate) enum UrlRunState {
    /// No run of the job has fetched the URL.
    New,
    /// The URL needs no request in this run, because an earlier run has fetched or skipped it.
    Finished,
    /// An earlier run has fetched the URL, and this run refreshes it.
    Known(EarlierFetch),
}

/// The validators (entity tag, modification date) and the file of a URL that an earlier run has
/// fetched.
pub(crate) struct EarlierFetch {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// The size of the file in bytes; `None` if the size is not to be checked.
    pub(crate) size: Option<u64>,
    pub(crate) file: Option<PathBuf>,
}

impl EarlierFetch {
    /// Returns the header fields that make a request conditional, so that the server sends the
    /// content only if it has changed. Returns no fields if the file of the earlier fetch no longer
    /// exists.
    pub(crate) fn conditions(self) -> Vec<(String, Vec<u8>)> {
        let is_there = self.file.as_ref().is_none_or(|file| {
            std::fs::metadata(file)
                .is_ok_and(|metadata| metadata.is_file() && self.size.is_none_or(|size| metadata.len() == size))
        });
        let conditions = [("If-None-Match", self.etag), ("If-Modified-Since", self.last_modified)];
        let given = conditions.into_iter().filter(|_| is_there);
        given.filter_map(|(name, value)| Some((name.to_owned(), value?.into_bytes()))).collect()
    }
}

/// A WARC archive that holds back the records of a transfer until the job commits the transfer.
#[cfg_attr(not(feature = "job"), expect(dead_code, reason = "without jobs, no archive is held"))]
pub(crate) trait HeldBackRecordsArchive: Send + Sync {
    /// Appends the records with these ids, in this order. Returns the payloads that are new in the
    /// archive.
    ///
    /// # Errors
    /// The archive cannot be written.
    fn append(&self, records: &[u64]) -> Result<Vec<ArchivedPayload>>;

    /// Drops the records with these ids, because their transfers will be repeated.
    fn discard(&self, records: &[u64]);

    /// Returns the position of the end of the archive, which is the end of its last complete
    /// record.
    fn position(&self) -> ArchivePosition;

    /// Syncs all appended records to the disk.
    ///
    /// # Errors
    /// A file of the archive cannot be synced.
    fn sync(&self) -> io::Result<()>;
}

/// The position in a WARC archive after the last complete record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArchivePosition {
    /// The number of the archive file that is being written.
    pub number: u32,
    /// The offset, in the archive file that is being written, of the end of the last complete
    /// record.
    pub offset: u64,
}

/// A payload in an archive, to which revisit records of later runs can refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedPayload {
    /// The SHA-1 digest of the payload, by which equal payloads are recognised.
    pub digest: [u8; 20],
    /// The 16 bytes of the UUID that identifies the WARC record with this payload.
    pub record: [u8; 16],
    /// The target URL of the WARC record.
    pub url: Box<str>,
    /// The date of the WARC record, in microseconds since 1970-01-01 00:00 UTC.
    pub date: u64,
}
