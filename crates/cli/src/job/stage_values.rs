//! The values of a job's stages: what the stages of this run note, and what they recall of earlier
//! runs.
//!
//! | value | where | noted |
//! |---|---|---|
//! | became a URL of the next stage | a row of `url` with the state `queued` | at once |
//! | kept until the end of its stage, or printed once | a row of `value` | with its page |
//!
//! A value that is noted with its page is not known if the page is fetched again, so that it is
//! printed again after the output was cut back.

use std::collections::VecDeque;
use std::path::PathBuf;

use haul::fleet::{RecalledKind, StageMemory, UnfinishedTransfers};
use haul::{Result, Target};
use haul_policy::target::Origin;
use rusqlite::{Connection, OptionalExtension, params};

use super::job_error::{DatabaseResult, database};
use super::job_run::JobRun;
use super::schema::{LATER_STAGES, NUMBER_BITS};
use super::url_row::row_id;
use super::writer::JobEvent;

/// The number of rows that are read at once.
const ROWS: i64 = 1024;

/// A value that is noted with its page.
#[derive(Debug)]
pub(super) struct StageValue {
    pub(super) stage: usize,
    pub(super) is_printed: bool,
    pub(super) value: Vec<u8>,
}

impl StageValue {
    pub(super) fn write(&self, connection: &Connection, commit: u64) -> DatabaseResult<()> {
        let insert = "INSERT INTO value (stage, is_printed, value, commit_number) VALUES (?1, ?2, ?3, ?4)";
        let values = params![self.stage as i64, self.is_printed, self.value, commit as i64];
        connection.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }
}

/// Writes the row of a value that became a URL of a later stage.
pub(super) fn write_queued(
    connection: &Connection,
    (stage, number): (usize, u64),
    value: &[u8],
    commit: u64,
) -> DatabaseResult<()> {
    let insert = "INSERT OR IGNORE INTO url (id, state, url, attempts, redirects, ended, commit_number, queued_commit, \
                  value) VALUES (?1, 'queued', '', 0, 0, 0, ?2, ?2, ?3)";
    connection.prepare_cached(insert)?.execute(params![row_id(stage, number), commit as i64, value])?;
    Ok(())
}

impl StageMemory for JobRun {
    fn queued(&self, stage: usize, number: u64, value: &[u8]) {
        self.send(JobEvent::Queued { stage, number, value: value.to_vec() });
    }

    fn skipped(&self, stage: usize, number: u64) {
        self.skipped_in(stage, number);
    }

    fn kept(&self, stage: usize, value: &[u8]) {
        self.send(JobEvent::Value(StageValue { stage, is_printed: false, value: value.to_vec() }));
    }

    fn printed(&self, stage: usize, value: &[u8]) {
        self.send(JobEvent::Value(StageValue { stage, is_printed: true, value: value.to_vec() }));
    }

    fn recall(&self, stage: usize, kind: RecalledKind, value: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let connection = self.connection()?;
        let of_stage = "SELECT value FROM value WHERE stage = ?1 AND is_printed = ?2 ORDER BY id";
        let (select, parameters) = match kind {
            RecalledKind::Queued => (
                "SELECT value FROM url WHERE id BETWEEN ?1 AND ?2 AND value IS NOT NULL ORDER BY id",
                [row_id(stage, 0), row_id(stage + 1, 0) - 1],
            ),
            RecalledKind::Kept => (of_stage, [stage as i64, 0]),
            RecalledKind::Printed => (of_stage, [stage as i64, 1]),
        };
        let failed = |error| database(self.path(), error);
        let mut statement = connection.prepare(select).map_err(failed)?;
        let mut rows = statement.query(parameters).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            value(row.get_ref(0).map_err(failed)?.as_blob().unwrap_or_default())?;
        }
        Ok(())
    }

    fn unfinished(&self, stage: usize) -> Box<dyn UnfinishedTransfers> {
        Box::new(UnfinishedRows {
            connection: self.connection(),
            path: self.path().to_owned(),
            stage,
            next: 0,
            rows: VecDeque::new(),
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
    /// Returns the origin of the first URL, if an earlier run has fetched that URL.
    pub(crate) fn first_origin(&self) -> Option<Origin> {
        let first = "SELECT url FROM url WHERE id < ?1 AND state NOT IN ('again', 'skipped') ORDER BY id LIMIT 1";
        let connection = self.connection().ok()?;
        let url = connection.query_row(first, [LATER_STAGES], |row| row.get::<_, String>(0));
        Some(Target::parse(&url.optional().ok()??).ok()?.origin())
    }
}

/// The unfinished transfers of a stage, read some at a time.
struct UnfinishedRows {
    connection: Result<Connection>,
    path: PathBuf,
    stage: usize,
    /// The number from which on rows are read next.
    next: u64,
    rows: VecDeque<(u64, Vec<u8>)>,
}

impl UnfinishedRows {
    fn read(connection: &Connection, stage: usize, from: u64) -> DatabaseResult<VecDeque<(u64, Vec<u8>)>> {
        let mut statement = connection.prepare_cached(
            "SELECT id, value FROM url WHERE id >= ?1 AND id < ?2 AND state IN ('queued', 'again') \
             AND value IS NOT NULL ORDER BY id LIMIT ?3",
        )?;
        let mask = (1_u64 << NUMBER_BITS) - 1;
        let rows = statement.query_map(params![row_id(stage, from), row_id(stage + 1, 0), ROWS], |row| {
            Ok((row.get::<_, i64>(0)? as u64 & mask, row.get(1)?))
        })?;
        rows.collect()
    }
}

impl UnfinishedTransfers for UnfinishedRows {
    fn next_transfer(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        if self.rows.is_empty() {
            let connection = match &self.connection {
                Ok(connection) => connection,
                Err(error) => return Err(error.again()),
            };
            let rows = Self::read(connection, self.stage, self.next);
            self.rows = rows.map_err(|error| database(&self.path, error))?;
        }
        let next = self.rows.pop_front();
        if let Some((number, _)) = &next {
            self.next = number + 1;
        }
        Ok(next)
    }
}
