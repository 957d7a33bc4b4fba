//! The data about a job's archive (`--warc`) that the job's file stores: the length of the archive,
//! and the payloads that it contains. The next run truncates the archive to this length, so that
//! the archive contains the exchanges of each recorded transfer exactly once.

use std::sync::Arc;

use haul::Result;
use rusqlite::{Connection, params};

use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error};
use super::job_run::JobRun;
use super::sync_thread::checkpoint;
use crate::job_types_in_every_build::{ArchivePosition, ArchivedPayload, HeldBackRecordsArchive};

/// Writes the position of the archive's end, and the payloads that were added to the archive, to
/// the job's file. `commit` is the sequence number of the present commit of the job's file.
pub(super) fn write_position_and_payloads(
    connection: &Connection,
    position: ArchivePosition,
    payloads: &[ArchivedPayload],
    commit: u64,
) -> DatabaseResult<()> {
    let update = "UPDATE job SET archive_number = ?1, archive_end = ?2";
    connection.prepare_cached(update)?.execute(params![position.number, position.offset as i64])?;
    if payloads.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO payload (digest, record, url, date, commit_number) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = connection.prepare_cached(insert)?;
    for ArchivedPayload { digest, record, url, date } in payloads {
        insert.execute(params![digest, record, url, *date as i64, commit as i64])?;
    }
    Ok(())
}

#[cfg_attr(not(feature = "warc"), expect(dead_code, reason = "without archives, no job has one"))]
impl JobRun {
    /// Returns the end of the job's WARC archive. If no earlier run has begun an archive, calls
    /// `begin` and then records that the archive has begun.
    ///
    /// # Errors
    /// The error of `begin`, or an error if the job's file cannot be written.
    pub(crate) fn archive_position(&self, begin: impl FnOnce() -> Result<()>) -> Result<ArchivePosition> {
        if let Some(position) = self.noted_archive() {
            return Ok(position);
        }
        begin()?;
        let connection = self.connection()?;
        // It must be on the disk before the archive is, which would otherwise be refused as
        // another's.
        let noted = write_position_and_payloads(&connection, ArchivePosition::default(), &[], 0)
            .and_then(|()| checkpoint(&connection, "PASSIVE").map(drop));
        noted.map_err(|error| database_error(self.path(), error))?;
        Ok(ArchivePosition::default())
    }

    /// Calls `each` with the last `most` payloads of the job's WARC archive, in the order of the
    /// archive.
    ///
    /// # Errors
    /// The job's file cannot be read.
    pub(crate) fn archived_payloads(&self, most: u64, mut each: impl FnMut(ArchivedPayload)) -> Result<()> {
        let connection = self.connection()?;
        let mut read = || -> DatabaseResult<()> {
            let select = "SELECT digest, record, url, date FROM payload \
                          WHERE id > (SELECT max(id) FROM payload) - ?1 ORDER BY id";
            let mut select = connection.prepare(select)?;
            let mut rows = select.query(params![i64::try_from(most).unwrap_or(i64::MAX)])?;
            while let Some(row) = rows.next()? {
                let url = row.get::<_, String>(2)?.into_boxed_str();
                let date = row.get::<_, i64>(3)? as u64;
                each(ArchivedPayload { digest: row.get(0)?, record: row.get(1)?, url, date });
            }
            Ok(())
        };
        read().map_err(|error| database_error(self.path(), error))
    }

    /// Sets the WARC archive. When the job's writer records a transfer, it also appends the
    /// transfer's requests and responses to this archive.
    pub(crate) fn set_archive(&self, archive: Arc<dyn HeldBackRecordsArchive>) {
        self.shared().set_archive(archive);
    }
}
