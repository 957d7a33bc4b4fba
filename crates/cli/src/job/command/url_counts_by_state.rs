//! The counts of a job's URLs by state and by cause.

use rusqlite::{Connection, OptionalExtension};

use crate::job::job_error_from_sqlite_or_io::DatabaseResult;
use crate::job::schema::FIRST_LATER_STAGE_ID;

/// The numbers of a job's URLs, by the state of the URLs.
#[derive(Debug, Default)]
pub(super) struct JobCounts {
    pub(super) done: u64,
    pub(super) failed: u64,
    /// The number of URLs that were fetched before and that the next run fetches again.
    pub(super) again: u64,
    /// The number of URLs of the command line and its lists (the first stage) that are done, failed
    /// or skipped.
    pub(super) finished: u64,
    /// The number of unfinished URLs that were made from extracted values, in the stages after a
    /// `--then`. Pages that are still to be fetched may add further URLs.
    pub(super) queued: u64,
    pub(super) skipped: u64,
    /// The sum of the body sizes, in bytes, of the URLs that are done.
    pub(super) bytes: u64,
    /// The counts of the failed URLs, one for each pair of exit code and status.
    pub(super) causes: Vec<FailureGroup>,
    pub(super) last_run: Option<LatestJobRun>,
}

/// The failed URLs that have the same exit code and status.
#[derive(Debug)]
pub(super) struct FailureGroup {
    pub(super) exit_code: u8,
    pub(super) status: Option<u16>,
    pub(super) count: u64,
    /// The error message of one of the failed URLs, as an example.
    pub(super) error: String,
}

/// The latest run of a job, which may still be in progress.
#[derive(Debug)]
pub(super) struct LatestJobRun {
    pub(super) process: i64,
    pub(super) started: u64,
    pub(super) ended: Option<u64>,
    pub(super) exit_code: Option<u8>,
    /// The number of URLs that the run has finished so far.
    pub(super) finished: u64,
    pub(super) last: Option<u64>,
}

impl JobCounts {
    pub(super) fn read(connection: &Connection) -> DatabaseResult<Self> {
        let mut counts = Self::default();
        let mut states =
            connection.prepare("SELECT state, count(*), sum(size), id < ?1 FROM url GROUP BY state, id < ?1")?;
        let mut rows = states.query([FIRST_LATER_STAGE_ID])?;
        while let Some(row) = rows.next()? {
            let count = row.get::<_, i64>(1)? as u64;
            let is_first: bool = row.get(3)?;
            match row.get_ref(0)?.as_str().unwrap_or_default() {
                "done" => {
                    counts.done += count;
                    counts.bytes += row.get::<_, Option<i64>>(2)?.unwrap_or(0) as u64;
                }
                "failed" => counts.failed += count,
                "again" => counts.again += count,
                "queued" => {}
                _ => counts.skipped += count,
            }
            match row.get_ref(0)?.as_str().unwrap_or_default() {
                "again" | "queued" if is_first => {}
                "again" | "queued" => counts.queued += count,
                _ if is_first => counts.finished += count,
                _ => {}
            }
        }
        let mut causes = connection.prepare(
            "SELECT exit_code, status, count(*), max(error) FROM url WHERE state IN ('failed', 'again') \
             AND exit_code > 0 GROUP BY exit_code, status ORDER BY count(*) DESC LIMIT 50",
        )?;
        let causes = causes.query_map([], |row| {
            Ok(FailureGroup {
                exit_code: row.get(0)?,
                status: row.get(1)?,
                count: row.get::<_, i64>(2)? as u64,
                error: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            })
        })?;
        counts.causes = causes.collect::<DatabaseResult<_>>()?;
        counts.last_run = Self::last_run(connection)?;
        Ok(counts)
    }

    fn last_run(connection: &Connection) -> DatabaseResult<Option<LatestJobRun>> {
        let last = connection.query_row(
            "SELECT process, started, ended, exit_code FROM run ORDER BY id DESC LIMIT 1",
            [],
            |row| {
                Ok(LatestJobRun {
                    process: row.get(0)?,
                    started: row.get::<_, i64>(1)? as u64,
                    ended: row.get::<_, Option<i64>>(2)?.map(|ended| ended as u64),
                    exit_code: row.get(3)?,
                    finished: 0,
                    last: None,
                })
            },
        );
        let Some(last) = last.optional()? else { return Ok(None) };
        let finished = "SELECT count(*), max(ended) FROM url WHERE ended >= ?1";
        connection.query_row(finished, [last.started as i64], |row| {
            let ended = row.get::<_, Option<i64>>(1)?.map(|ended| ended as u64);
            Ok(Some(LatestJobRun { finished: row.get::<_, i64>(0)? as u64, last: ended, ..last }))
        })
    }

    /// Returns the number of URLs that are not finished. `total` is the number of URLs in the job's
    /// lists.
    pub(super) fn unfinished_urls(&self, total: u64) -> u64 {
        total.saturating_sub(self.finished) + self.queued
    }
}
