//! The extracted values of a job's stages. A run records its values, and reads those of earlier
//! runs.
//!
//! | value | stored in | committed |
//! |---|---|---|
//! | became a URL of the next stage | a row of `url` with the state `queued` | at once |
//! | waits for the end of its stage | a line in a row of `stage_values` | with its page |
//! | was printed by a stage with `--unique` | a line in a row of `stage_values` | with its page |
//!
//! The commit of a page contains the page's row and its values in `stage_values`. It follows after
//! the output of the page is written. If a run is killed before this commit, the next run truncates
//! the output to the last commit, fetches the page again, and prints its values again.
//! fetches the page again, and prints the value again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul::Result;
use haul::fleet::{EarlierQueuedTransfer, RecalledValueKind, StageValueStore, UnfinishedTransferIterator};
use rusqlite::{Connection, Statement, params};

use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error};
use super::job_run::JobRun;
use super::schema::{FIRST_LATER_STAGE_ID, NUMBER_BITS};
use super::url_row::row_id;
use super::values_as_escaped_lines;
use super::writer::JobEvent;
use crate::job_types_in_every_build::EarlierFetch;
use crate::system::os_text::os_str;

/// The number of rows that one query reads from the job's file.
const ROWS_PER_READ: i64 = 1024;

/// The size, in bytes, at which the values of a page are sent as a separate row to the thread that
/// writes the job's file, before the page ends.
const ROW_FLUSH_BYTES: usize = 64 << 10;

/// The SQL statement that writes a row with the extracted values of a page to the file of a job
/// (`--job`).
pub(super) const INSERT_VALUES: &str =
    "INSERT INTO stage_values (stage, is_printed, lines, commit_number) VALUES (?1, ?2, ?3, ?4)";

/// The SQL statement that adds a row to the job's file for a URL of a later stage that is known but
/// not requested yet.
pub(super) const INSERT_QUEUED: &str = "INSERT OR IGNORE INTO url (id, state, url, attempts, redirects, ended, \
     commit_number, queued_commit, value) VALUES (?1, 'queued', '', 0, 0, 0, ?2, ?2, ?3)";

/// The values that a stage (`--then` separates stages) has extracted from one page. They are
/// committed to the job's file together with the page.
#[derive(Debug)]
pub(super) struct ExtractedPageValues {
    pub(super) stage: usize,
    pub(super) is_printed: bool,
    /// The values as lines, in the format of
    /// [`values_as_escaped_lines`](super::values_as_escaped_lines).
    pub(super) lines: Vec<u8>,
}

impl ExtractedPageValues {
    /// Writes the values to the job's file. `statement` is the prepared statement
    /// [`INSERT_VALUES`], and `commit` is the sequence number of the commit.
    pub(super) fn write(&self, statement: &mut Statement<'_>, commit: u64) -> DatabaseResult<()> {
        statement.execute(params![self.stage as i64, self.is_printed, self.lines, commit as i64])?;
        Ok(())
    }
}

/// The extracted values of pages whose output has not been handed to the output stream yet. The
/// values of each stage (`--then` begins a further stage) are kept separately.
#[derive(Default)]
pub(super) struct PendingPageValues(Mutex<Vec<ExtractedPageValues>>);

impl PendingPageValues {
    fn lock(&self) -> MutexGuard<'_, Vec<ExtractedPageValues>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a value to those that were collected for the same stage and the same use. `is_printed`
    /// is true if the stage has printed the value, and false if it keeps the value until it ends.
    /// If the values of this stage and use then have [`ROW_FLUSH_BYTES`] bytes, removes and returns
    /// them; otherwise returns `None`.
    fn add(&self, stage: usize, is_printed: bool, value: &[u8]) -> Option<ExtractedPageValues> {
        let mut pages = self.lock();
        let index = pages.iter().position(|page| page.stage == stage && page.is_printed == is_printed);
        let index = index.unwrap_or_else(|| {
            pages.push(ExtractedPageValues { stage, is_printed, lines: Vec::new() });
            pages.len() - 1
        });
        values_as_escaped_lines::append(&mut pages[index].lines, value);
        (pages[index].lines.len() >= ROW_FLUSH_BYTES).then(|| pages.swap_remove(index))
    }

    /// Removes and returns the collected values of a stage.
    pub(super) fn take_stage_values(&self, stage: usize) -> Vec<ExtractedPageValues> {
        self.lock().extract_if(.., |page| page.stage == stage).collect()
    }
}

/// Adds a row to the job's file for a URL of a later stage that was made from an extracted value.
/// `statement` is the prepared statement [`INSERT_QUEUED`].
pub(super) fn write_queued(
    statement: &mut Statement<'_>,
    (stage, number): (usize, u64),
    value: &[u8],
    commit: u64,
) -> DatabaseResult<()> {
    statement.execute(params![row_id(stage, number), commit as i64, value])?;
    Ok(())
}

impl StageValueStore for JobRun {
    fn on_queued(&self, stage: usize, number: u64, value: &[u8]) {
        self.send(JobEvent::Queued { stage, number, value: value.to_vec() });
    }

    fn on_skipped(&self, stage: usize, number: u64) {
        self.skipped_in(stage, number);
    }

    fn on_kept(&self, stage: usize, value: &[u8]) {
        self.add_value(stage, false, value);
    }

    fn on_printed(&self, stage: usize, value: &[u8]) {
        self.add_value(stage, true, value);
    }

    fn recall_values(
        &self,
        stage: usize,
        kind: RecalledValueKind,
        value: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let connection = self.connection()?;
        let of_stage = "SELECT lines FROM stage_values WHERE stage = ?1 AND is_printed = ?2 ORDER BY id";
        let (select, parameters) = match kind {
            RecalledValueKind::Queued => (
                "SELECT value FROM url WHERE id BETWEEN ?1 AND ?2 AND value IS NOT NULL ORDER BY id",
                [row_id(stage, 0), row_id(stage + 1, 0) - 1],
            ),
            RecalledValueKind::Kept => (of_stage, [stage as i64, 0]),
            RecalledValueKind::Printed => (of_stage, [stage as i64, 1]),
        };
        let failed = |error| database_error(self.path(), error);
        let mut statement = connection.prepare(select).map_err(failed)?;
        let mut rows = statement.query(parameters).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let bytes = row.get_ref(0).map_err(failed)?.as_bytes().unwrap_or_default();
            match kind {
                RecalledValueKind::Queued => value(bytes)?,
                RecalledValueKind::Kept | RecalledValueKind::Printed => {
                    values_as_escaped_lines::for_each(bytes, &mut *value)?
                }
            }
        }
        Ok(())
    }

    fn unfinished_transfers(&self, stage: usize) -> Box<dyn UnfinishedTransferIterator> {
        Box::new(UnfinishedTransferReader {
            connection: self.connection(),
            path: self.path().to_owned(),
            stage,
            next: 0,
            rows: VecDeque::new(),
            refresh: self.refresh(),
            is_conditional: self.is_conditional(stage),
        })
    }

    fn next_number(&self, stage: usize) -> u64 {
        let last = "SELECT max(id) FROM url WHERE id BETWEEN ?1 AND ?2";
        let ends = params![row_id(stage, 0), row_id(stage + 1, 0) - 1];
        let last = self
            .connection()
            .ok()
            .and_then(|connection| connection.query_row(last, ends, |row| row.get::<_, Option<i64>>(0)).ok().flatten());
        last.map_or(0, |id| (id as u64 & ((1 << NUMBER_BITS) - 1)) + 1)
    }
}

impl JobRun {
    fn add_value(&self, stage: usize, is_printed: bool, value: &[u8]) {
        if let Some(values) = self.page_values().add(stage, is_printed, value) {
            self.send(JobEvent::Values(values));
        }
    }

    /// Calls `each` with the file and the URL of each finished transfer of a later stage (after
    /// `--then`), so that the caller can reserve the file's name. If `has_first` is true, also
    /// calls it for transfers of the first stage. Does nothing in a run with `--refresh`, because
    /// its transfers reserve their file names themselves.
    pub(crate) fn finished_files(
        &self,
        has_first: bool,
        mut each: impl FnMut(&Path, &str) -> Result<()>,
    ) -> Result<()> {
        if self.refresh().is_some() {
            return Ok(());
        }
        let connection = self.connection()?;
        let failed = |error| database_error(self.path(), error);
        let select = "SELECT file, url FROM url WHERE id >= ?1 AND file IS NOT NULL AND state <> 'again'";
        let mut select = connection.prepare(select).map_err(failed)?;
        let mut rows = select.query([if has_first { 0 } else { FIRST_LATER_STAGE_ID }]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let text = |column: usize| row.get_ref(column).and_then(|text| Ok(text.as_bytes()?)).unwrap_or_default();
            each(Path::new(&os_str(text(0))), std::str::from_utf8(text(1)).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// An iterator over the unfinished transfers of a later stage (after a `--then`), read in batches
/// from the job's file. In a run with `--refresh`, these are the transfers that this run has not
/// requested yet.
struct UnfinishedTransferReader {
    connection: Result<Connection>,
    path: PathBuf,
    stage: usize,
    /// The number, within the stage, of the next transfer to read.
    next: u64,
    rows: VecDeque<UnfinishedTransfer>,
    /// The number of the refresh (`--refresh`: requests all URLs again) that this run performs or
    /// continues, counted from 1 over all runs of the job. `None` if this run does not refresh.
    refresh: Option<u64>,
    /// True if a run with `--refresh` may make the requests of the stage conditional
    /// (`If-None-Match`, `If-Modified-Since`).
    is_conditional: bool,
}

/// A transfer of a later stage (after a `--then`) that the run must still request: its number in
/// the stage, and the extracted value from which its URL is made. `known` has the validators of an
/// earlier fetch, if there was one.
struct UnfinishedTransfer {
    number: u64,
    value: Vec<u8>,
    known: EarlierFetch,
}

impl UnfinishedTransferReader {
    fn read(&self, connection: &Connection) -> DatabaseResult<VecDeque<UnfinishedTransfer>> {
        let mut statement = connection.prepare_cached(
            "SELECT id, value, etag, last_modified, size, file FROM url WHERE id >= ?1 AND id < ?2 \
             AND (state IN ('queued', 'again') OR refresh_round <> ?4) AND value IS NOT NULL ORDER BY id LIMIT ?3",
        )?;
        let ends = (row_id(self.stage, self.next), row_id(self.stage + 1, 0));
        let round = self.refresh.map(|round| round as i64);
        let rows = statement.query_map(params![ends.0, ends.1, ROWS_PER_READ, round], |row| {
            let number = row.get::<_, i64>(0)? as u64 & ((1 << NUMBER_BITS) - 1);
            Ok(UnfinishedTransfer { number, value: row.get(1)?, known: EarlierFetch::from_row(row, 2)? })
        })?;
        rows.collect()
    }
}

impl UnfinishedTransferIterator for UnfinishedTransferReader {
    fn next_transfer(&mut self) -> Result<Option<EarlierQueuedTransfer>> {
        if self.rows.is_empty() {
            let connection = match &self.connection {
                Ok(connection) => connection,
                Err(error) => return Err(error.duplicate()),
            };
            self.rows = self.read(connection).map_err(|error| database_error(&self.path, error))?;
        }
        let Some(UnfinishedTransfer { number, value, known }) = self.rows.pop_front() else { return Ok(None) };
        self.next = number + 1;
        // The existing file is that of the job, also if the response chose its name.
        let replaces_file = self.refresh.is_some() && known.file.is_some();
        let is_conditional = self.refresh.is_some() && self.is_conditional;
        let fields = if is_conditional { known.conditions() } else { Vec::new() };
        Ok(Some(EarlierQueuedTransfer { number, value, fields, replaces_file }))
    }
}
