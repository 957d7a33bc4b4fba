//! A cursor over the rows of a job beside the list of URLs: it tells which URLs of the list need not
//! be fetched.
//!
//! The list is walked in order, and the rows are read in the same order, some thousand at a time.
//! So neither the list nor the rows are ever in memory as a whole.

use std::collections::VecDeque;
use std::path::PathBuf;

use haul::Result;
use rusqlite::{Connection, params};

use super::job_error::{DatabaseResult, database};
use super::schema::NUMBER_BITS;

/// The number of rows that are read at once.
const ROWS: i64 = 4096;

/// The rows of the first stage that end a URL, in the order of the list.
pub(crate) struct UrlCursor {
    connection: Connection,
    path: PathBuf,
    numbers: VecDeque<u64>,
    /// True if no further row follows those in `numbers`.
    is_at_end: bool,
}

impl UrlCursor {
    pub(super) fn new(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path, numbers: VecDeque::new(), is_at_end: false }
    }

    /// Returns true if the URL with this number was finished by an earlier run. The numbers must be
    /// asked for in ascending order.
    ///
    /// # Errors
    /// The job's file cannot be read.
    pub(crate) fn is_finished(&mut self, number: u64) -> Result<bool> {
        while self.numbers.front().is_some_and(|&front| front < number) {
            self.numbers.pop_front();
        }
        if self.numbers.is_empty() && !self.is_at_end {
            self.numbers = self.read(number).map_err(|error| database(&self.path, error))?;
            self.is_at_end = self.numbers.len() < ROWS as usize;
        }
        Ok(self.numbers.front() == Some(&number))
    }

    fn read(&self, from: u64) -> DatabaseResult<VecDeque<u64>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id FROM url WHERE id >= ?1 AND id < ?2 AND state NOT IN ('again') ORDER BY id LIMIT ?3",
        )?;
        let rows = statement.query_map(params![from as i64, 1_i64 << NUMBER_BITS, ROWS], |row| row.get::<_, i64>(0))?;
        rows.map(|id| id.map(|id| id as u64)).collect()
    }
}
