//! A cursor over the stored URLs of a job. For each URL of the lists, it returns whether the URL
//! must be fetched.
//!
//! The lists are read in order, and the stored URLs are read in the same order, some thousand at a
//! time. So neither the lists nor the stored URLs are ever in memory as a whole.

use std::collections::VecDeque;
use std::path::PathBuf;

use haul::Result;
use rusqlite::{Connection, params};

use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error};
use super::schema::FIRST_LATER_STAGE_ID;
use crate::job_types_in_every_build::{EarlierFetch, UrlRunState};

/// The number of rows that one query reads from the job's file.
const ROWS_PER_READ: i64 = 4096;

/// A cursor over the states that a job (`--job`) has stored for the URLs that the user gave as
/// arguments or in files, in the order in which the user gave them.
pub(crate) struct UrlCursor {
    connection: Connection,
    path: PathBuf,
    rows: VecDeque<(u64, Option<EarlierFetch>)>,
    /// True if the job contains no further row after `rows`.
    is_at_end: bool,
    /// The number of the refresh (`--refresh`: requests all URLs again) that this run performs or
    /// continues, counted from 1 over all runs of the job. `None` if this run does not refresh.
    refresh: Option<u64>,
}

impl UrlCursor {
    pub(super) fn new(connection: Connection, path: PathBuf, refresh: Option<u64>) -> Self {
        Self { connection, path, rows: VecDeque::new(), is_at_end: false, refresh }
    }

    /// Returns the state of the URL with the index `number` in the lists. Each call must have a
    /// higher index than the call before.
    ///
    /// # Errors
    /// The job's file cannot be read.
    pub(crate) fn state_of_url(&mut self, number: u64) -> Result<UrlRunState> {
        while self.rows.front().is_some_and(|(front, _)| *front < number) {
            self.rows.pop_front();
        }
        if self.rows.is_empty() && !self.is_at_end {
            self.rows = self.read(number).map_err(|error| database_error(&self.path, error))?;
            self.is_at_end = self.rows.len() < ROWS_PER_READ as usize;
        }
        Ok(match self.rows.front().is_some_and(|(front, _)| *front == number) {
            false => UrlRunState::New,
            true => match self.rows.pop_front() {
                Some((_, Some(known))) => UrlRunState::Known(known),
                _ => UrlRunState::Finished,
            },
        })
    }

    /// Reads the next rows of the job's file, for URLs with the index `from` or a higher one. A row
    /// contains the index of a URL. If the URL needs a conditional request, the row also contains
    /// the stored result of its earlier fetch. If the URL needs no request, the row contains `None`
    /// instead. Skips URLs that need an unconditional request.
    fn read(&self, from: u64) -> DatabaseResult<VecDeque<(u64, Option<EarlierFetch>)>> {
        let ends = params![from as i64, FIRST_LATER_STAGE_ID, ROWS_PER_READ, self.refresh.map(|round| round as i64)];
        let select = "SELECT id, state <> 'again' AND refresh_round IS ?4, etag, last_modified, size, file FROM url \
                      WHERE id >= ?1 AND id < ?2 AND (state <> 'again' AND (?4 IS NULL OR refresh_round = ?4) \
                      OR ?4 IS NOT NULL AND (etag IS NOT NULL OR last_modified IS NOT NULL)) ORDER BY id LIMIT ?3";
        let mut statement = self.connection.prepare_cached(select)?;
        let rows = statement.query_map(ends, |row| {
            let number = row.get::<_, i64>(0)? as u64;
            if self.refresh.is_none() || row.get(1)? {
                return Ok((number, None));
            }
            Ok((number, Some(EarlierFetch::from_row(row, 2)?)))
        })?;
        rows.collect()
    }
}
