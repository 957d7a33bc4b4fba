//! The thread that writes a job's file. It takes the ends of transfers from a channel, and commits
//! all that wait at once.
//!
//! ```text
//!  workers ─▶ channel ─▶ waiting (not yet in the output) ─▶ passed on ─▶ written ─▶ batch ─▶ commit
//!                    └──────────────── a file of its own ───────────────────────────┘
//! ```
//!
//! A commit is a write without a sync, which survives the end of the process. The module
//! [`durability`](super::durability) syncs once a second.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::Error;
use rusqlite::{Connection, params};

use super::durability::{DurableState, SyncTargets};
use super::job_error::{DatabaseResult, database};
use super::stage_values::{self, StageValue};
use super::url_row::UrlRow;

/// The shortest time between two commits. A slow run commits each row at once; a fast one commits
/// those of this time together, since a commit costs some 50 µs.
const COMMIT_INTERVAL: Duration = Duration::from_millis(5);

/// The number of rows that are committed together at most.
const MAX_BATCH: usize = 4096;

/// An event for the writer of a job.
pub(super) enum JobEvent {
    /// A transfer has ended. If `waits` is true, its row is written only after its output.
    Finished { row: Box<UrlRow>, waits: bool },
    /// A value became the transfer with this number of a later stage.
    Queued { stage: usize, number: u64, value: Vec<u8> },
    /// A stage has a value that is noted with the next page that it passes on.
    Value(StageValue),
    /// All output of a transfer has been passed on, up to this position in the output of the run.
    PassedOn { stage: usize, number: u64, end: u64 },
    /// The output of the run has been written up to this position.
    Written(u64),
    /// The run's output begins at this offset of the output file, with a header of so many bytes.
    OutputBegins { header: u64, at: u64 },
    /// A part of a piped list. The text of the last part may be empty.
    ListText { source: i64, chunk: u64, text: Vec<u8>, is_last: bool },
    /// The list has come to its end, and has this number of URLs.
    ListEnded(u64),
    /// Everything up to this state is on the disk.
    Durable(DurableState),
    /// The run is over: commit what waits, and end the thread.
    End { exit_code: u8 },
}

/// The first error of a job's threads.
#[derive(Default)]
pub(super) struct JobFailure(Mutex<Option<Error>>);

impl JobFailure {
    pub(super) fn set(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The number of committed parts of each piped list, for the threads that wait for them.
#[derive(Default)]
pub(super) struct CommittedLists {
    chunks: Mutex<HashMap<i64, CopiedList>>,
    changed: Condvar,
}

/// The committed parts of a piped list.
#[derive(Clone, Copy, Default)]
pub(super) struct CopiedList {
    pub(super) chunks: u64,
    pub(super) is_complete: bool,
}

impl CommittedLists {
    pub(super) fn set(&self, source: i64, list: CopiedList) {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).insert(source, list);
        self.changed.notify_all();
    }

    /// Waits until the part with this number is committed. Returns false if the list ends before.
    pub(super) fn wait_for(&self, source: i64, chunk: u64) -> bool {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let list = chunks.get(&source).copied().unwrap_or_default();
            if list.chunks > chunk || list.is_complete {
                return list.chunks > chunk;
            }
            chunks = self.changed.wait(chunks).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends all waits, because the job's file can no longer be written.
    fn end(&self) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.values_mut().for_each(|list| list.is_complete = true);
        self.changed.notify_all();
    }
}

/// The shared state of a job's threads.
#[derive(Default)]
pub(super) struct JobShared {
    pub(super) failure: JobFailure,
    pub(super) lists: CommittedLists,
    /// The state after the last commit.
    pub(super) committed: Mutex<DurableState>,
    pub(super) targets: SyncTargets,
}

/// The writer of a job's file.
pub(super) struct JobWriter {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) shared: Arc<JobShared>,
    /// The number of the next commit.
    pub(super) commit: u64,
    /// The offset in the output file of the end of the last committed output.
    pub(super) output_end: u64,
    pub(super) run: i64,
    /// The number of refreshes that have begun.
    pub(super) refresh_round: u64,
    pub(super) state: WriterState,
}

/// The events that are not committed yet.
#[derive(Default)]
pub(super) struct WriterState {
    /// The rows of transfers whose output has not been passed on.
    waiting: HashMap<(usize, u64), Box<UrlRow>>,
    /// The values of each stage that wait for their pages.
    values: HashMap<usize, Vec<StageValue>>,
    /// The rows whose output has been passed on, in its order.
    passed: VecDeque<PassedRow>,
    written: u64,
    batch: Vec<BatchEntry>,
    batch_end: Option<u64>,
    lists: Vec<(i64, u64, Vec<u8>, bool)>,
    total: Option<u64>,
    durable: Option<DurableState>,
    /// The offset in the output file of the first byte that the transfers of this run pass on.
    output_base: u64,
    /// The offset at which the output of this run begins, if that is not noted yet.
    output_begin: Option<u64>,
}

/// A row whose output has been passed on, up to the position `end`, with the values of its page.
struct PassedRow {
    row: Option<Box<UrlRow>>,
    values: Vec<StageValue>,
    end: u64,
}

/// A row to commit.
enum BatchEntry {
    Url(Box<UrlRow>),
    Queued { stage: usize, number: u64, value: Vec<u8> },
    Value(StageValue),
}

impl BatchEntry {
    fn write(&self, connection: &Connection, commit: u64, round: u64) -> DatabaseResult<()> {
        match self {
            BatchEntry::Url(row) => row.write(connection, commit, round),
            BatchEntry::Queued { stage, number, value } => {
                stage_values::write_queued(connection, (*stage, *number), value, commit)
            }
            BatchEntry::Value(value) => value.write(connection, commit),
        }
    }

    /// Returns the file of a URL, if this is a URL with a file.
    fn file(&self) -> Option<&Path> {
        match self {
            BatchEntry::Url(row) => row.file(),
            BatchEntry::Queued { .. } | BatchEntry::Value(_) => None,
        }
    }
}

impl WriterState {
    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.lists.is_empty() && self.total.is_none() && self.durable.is_none()
    }

    fn apply(&mut self, event: JobEvent) -> Option<u8> {
        match event {
            JobEvent::Finished { row, waits: false } => self.batch.push(BatchEntry::Url(row)),
            JobEvent::Finished { row, waits: true } => match self.waiting.entry(row.key()) {
                Entry::Occupied(first) => first.into_mut().add_page(*row),
                Entry::Vacant(entry) => drop(entry.insert(row)),
            },
            JobEvent::Queued { stage, number, value } => self.batch.push(BatchEntry::Queued { stage, number, value }),
            JobEvent::Value(value) => self.values.entry(value.stage).or_default().push(value),
            JobEvent::PassedOn { stage, number, end } => {
                let row = self.waiting.remove(&(stage, number));
                let values = self.values.remove(&stage).unwrap_or_default();
                if row.is_some() || !values.is_empty() {
                    self.passed.push_back(PassedRow { row, values, end });
                    self.take_written();
                }
            }
            JobEvent::Written(end) => {
                // The windows of several stages report it.
                self.written = self.written.max(end);
                self.take_written();
            }
            JobEvent::OutputBegins { header, at } => {
                (self.output_base, self.output_begin) = (at + header, Some(at));
            }
            JobEvent::ListText { source, chunk, text, is_last } => self.lists.push((source, chunk, text, is_last)),
            JobEvent::ListEnded(total) => self.total = Some(total),
            JobEvent::Durable(state) => self.durable = Some(state),
            JobEvent::End { exit_code } => return Some(exit_code),
        }
        None
    }

    /// Moves the rows whose output is written to the batch.
    fn take_written(&mut self) {
        while self.passed.front().is_some_and(|passed| passed.end <= self.written) {
            let Some(PassedRow { row, values, end }) = self.passed.pop_front() else { return };
            self.batch_end = Some(end);
            self.batch.extend(values.into_iter().map(BatchEntry::Value));
            self.batch.extend(row.map(BatchEntry::Url));
        }
    }
}

impl JobWriter {
    /// Writes the events of the channel until the run is over.
    pub(super) fn run(mut self, events: &Receiver<JobEvent>) {
        let mut last = Instant::now().checked_sub(COMMIT_INTERVAL).unwrap_or_else(Instant::now);
        let mut exit_code = None;
        while exit_code.is_none() {
            let left = COMMIT_INTERVAL.saturating_sub(last.elapsed());
            let next = match self.state.is_empty() {
                true => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => events.recv_timeout(left),
            };
            match next {
                Ok(event) => exit_code = self.state.apply(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while exit_code.is_none() && self.state.batch.len() < MAX_BATCH {
                let Ok(event) = events.try_recv() else { break };
                exit_code = self.state.apply(event);
            }
            let is_due = last.elapsed() >= COMMIT_INTERVAL || self.state.batch.len() >= MAX_BATCH;
            if !self.state.is_empty() && (is_due || exit_code.is_some()) {
                self.commit();
                last = Instant::now();
            }
        }
        if let Some(exit_code) = exit_code {
            self.end(exit_code);
        }
        self.shared.lists.end();
    }

    /// Commits everything that waits. After a failure nothing more is written, so that the file
    /// holds no row whose earlier row is missing.
    fn commit(&mut self) {
        if self.shared.failure.is_set() {
            self.shared.lists.end();
            let state = &mut self.state;
            state.batch.clear();
            state.lists.clear();
            (state.total, state.durable, state.batch_end) = (None, None, None);
            return;
        }
        if let Err(error) = self.try_commit() {
            let _ = self.connection.execute_batch("ROLLBACK");
            self.shared.failure.set(database(&self.path, error));
            self.shared.lists.end();
        }
    }

    fn try_commit(&mut self) -> DatabaseResult<()> {
        let state = &mut self.state;
        self.output_end = state.output_begin.take().unwrap_or(self.output_end);
        let end = state.batch_end.take().map_or(self.output_end, |end| state.output_base + end);
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for entry in &state.batch {
            entry.write(&self.connection, self.commit, self.refresh_round)?;
        }
        for (source, chunk, text, is_last) in &state.lists {
            super::list_copy::write(&self.connection, *source, *chunk, text, *is_last)?;
        }
        if let Some(total) = state.total {
            self.connection.execute("UPDATE job SET total = ?1", params![total as i64])?;
        }
        if let Some(durable) = state.durable {
            let update = "UPDATE job SET durable_commit = ?1, durable_output = ?2";
            self.connection.prepare_cached(update)?.execute(params![durable.commit as i64, durable.output as i64])?;
        }
        let update = "UPDATE job SET last_commit = ?1, output_end = ?2";
        self.connection.prepare_cached(update)?.execute(params![self.commit as i64, end as i64])?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        let noted = DurableState { commit: self.commit, output: end };
        // Before the targets are read by the thread that syncs, they must have all files of the rows.
        self.shared.targets.add(state.batch.iter().filter_map(BatchEntry::file));
        *self.shared.committed.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        for (source, chunk, text, is_last) in state.lists.drain(..) {
            let chunks = chunk + u64::from(!text.is_empty());
            self.shared.lists.set(source, CopiedList { chunks, is_complete: is_last });
        }
        state.batch.clear();
        (state.total, state.durable) = (None, None);
        self.output_end = end;
        self.commit += 1;
        Ok(())
    }

    /// Notes the end of the run.
    fn end(&mut self, exit_code: u8) {
        if self.shared.failure.is_set() {
            return;
        }
        let noted = self.connection.execute(
            "UPDATE run SET ended = ?1, exit_code = ?2 WHERE id = ?3",
            params![super::url_row::now_ms() as i64, exit_code, self.run],
        );
        if let Err(error) = noted {
            self.shared.failure.set(database(&self.path, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(number: u64, waits: bool) -> JobEvent {
        JobEvent::Finished { row: Box::new(UrlRow::skipped(0, number)), waits }
    }

    fn batch(state: &mut WriterState) -> Vec<u64> {
        let number = |entry| match entry {
            BatchEntry::Url(row) => Some(row.number),
            _ => None,
        };
        state.batch.drain(..).filter_map(number).collect()
    }

    #[test]
    fn row_waits_until_its_output_is_written() {
        let mut state = WriterState::default();
        for event in [finished(0, true), finished(1, true), finished(2, false)] {
            state.apply(event);
        }
        assert_eq!(batch(&mut state), [2]);
        state.apply(JobEvent::PassedOn { stage: 0, number: 0, end: 10 });
        state.apply(JobEvent::PassedOn { stage: 0, number: 2, end: 10 });
        state.apply(JobEvent::Written(9));
        state.apply(JobEvent::PassedOn { stage: 0, number: 1, end: 30 });
        assert_eq!(batch(&mut state), [0_u64; 0]);
        state.apply(JobEvent::Written(29));
        assert_eq!((batch(&mut state), state.batch_end), (vec![0], Some(10)));
        state.apply(JobEvent::Written(40));
        assert_eq!((batch(&mut state), state.batch_end), (vec![1], Some(30)));
    }

    #[test]
    fn row_without_output_passes_at_once() {
        let mut state = WriterState::default();
        state.apply(finished(0, true));
        state.apply(JobEvent::PassedOn { stage: 0, number: 0, end: 0 });
        assert_eq!(batch(&mut state), [0]);
    }
}
