//! The thread that writes a job's file. It takes finished transfers from a queue, and commits all
//! waiting ones together.
//!
//! ```text
//!  workers ─▶ queue ─▶ waiting (not yet in the output) ─▶ passed on ─▶ written ─▶ batch ─▶ commit
//!                    └─────────────── its body is a separate file ─────────────────┘
//! ```
//!
//! A commit writes without a sync. It survives the end of the process. The module
//! [`sync_thread`](super::sync_thread) syncs once a second.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use haul::{Error, ErrorKind};
use rusqlite::{CachedStatement, Connection, params};

use super::event_queue::EventQueue;
use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error};
use super::stage_values::{self, ExtractedPageValues};
use super::sync_thread::{CommittedJobState, SyncTargets, checkpoint};
use super::url_row::{self, UrlRow, UrlState};
use super::warc_end_and_payloads;
use crate::job_types_in_every_build::{ArchivedPayload, HeldBackRecordsArchive};

/// The minimum time between two commits to a job's file. In a slow run, each row (the result of one
/// URL) is committed as soon as its output is written. In a fast run, all rows of this time are
/// committed together, because a commit costs about 50 µs.
const COMMIT_INTERVAL: Duration = Duration::from_millis(5);

/// An event that the threads of a run send to the thread that writes the file of the job (`--job`).
pub(super) enum JobEvent {
    /// A transfer has ended. If `waits` is true, the transfer's `row` is written to the job's file
    /// only after the output of the transfer.
    Finished { row: Box<UrlRow>, waits: bool },
    /// An extracted value became the URL with the number `number` in the later stage `stage` (after
    /// a `--then`).
    Queued { stage: usize, number: u64, value: Vec<u8> },
    /// A stage has extracted values from a page. The values are committed together with the row of
    /// this page, which the next [`JobEvent::PassedOn`] of the same stage names.
    Values(ExtractedPageValues),
    /// All output of a transfer has been handed to the output stream, which may not have written it
    /// yet. `end` is the length in bytes of the run's output up to the end of this transfer's
    /// output.
    PassedOn { stage: usize, number: u64, end: u64 },
    /// Output of this run has been written. The number is the count of written bytes since the
    /// beginning of the run.
    Written(u64),
    /// The run's output begins at the offset `at` of the output file, with a header of `header`
    /// bytes.
    OutputBegins { header: u64, at: u64 },
    /// The chunk number `chunk` of the list `source`, which comes from a pipe. The text of the last
    /// chunk may be empty.
    ListText { source: i64, chunk: u64, text: Vec<u8>, is_last: bool },
    /// All lists have been read to their ends. The field is the number of URLs in all lists.
    ListEnded(u64),
    /// The job's data are on the disk up to this state.
    Durable(CommittedJobState),
    /// The write-ahead log is long, and should be restarted.
    LongLog,
    /// The run has ended: the writer commits the waiting rows and ends.
    End { exit_code: u8 },
}

impl JobEvent {
    /// Returns the size, in bytes, of the event's extracted values, or of its chunk of a URL list's
    /// text. Returns 0 for an event with neither.
    pub(super) fn bytes(&self) -> usize {
        match self {
            JobEvent::Queued { value, .. } => value.len(),
            JobEvent::Values(values) => values.lines.len(),
            JobEvent::ListText { text, .. } => text.len(),
            _ => 0,
        }
    }
}

/// The first error that one of a run's threads has reported. The error ends the run.
#[derive(Default)]
pub(super) struct FirstJobError {
    error: Mutex<Option<Error>>,
    is_set: AtomicBool,
}

impl FirstJobError {
    pub(super) fn set(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.is_set.store(true, Ordering::Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// For each list of URLs that comes from a pipe, the number of chunks that are committed to the
/// job's file. Threads can wait for further chunks.
#[derive(Default)]
pub(super) struct ListCopyProgress {
    chunks: Mutex<HashMap<i64, CommittedListChunks>>,
    changed: Condvar,
}

/// The progress of copying a list of URLs from a pipe into the job's file: the number of chunks of
/// the list's text that are committed, and whether these chunks are the complete list.
#[derive(Clone, Copy, Default)]
pub(super) struct CommittedListChunks {
    pub(super) chunks: u64,
    pub(super) is_complete: bool,
}

impl ListCopyProgress {
    pub(super) fn set(&self, source: i64, list: CommittedListChunks) {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).insert(source, list);
        self.changed.notify_all();
    }

    /// Waits until the chunk with this number is committed. Returns false if the list ends before
    /// that chunk.
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

    /// Ends all waits for chunks, because the job's file can no longer be written.
    fn end_waits(&self) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.values_mut().for_each(|list| list.is_complete = true);
        self.changed.notify_all();
    }
}

/// The state that the threads of a job's run share.
#[derive(Default)]
pub(super) struct JobShared {
    /// The first error of the threads, after which no further results are committed to the job's
    /// file.
    pub(super) failure: FirstJobError,
    /// The error that stops the run: no further URL is fetched. Finished URLs are committed.
    pub(super) stop: FirstJobError,
    pub(super) lists: ListCopyProgress,
    /// The state of the job after the last commit. A power failure may undo this commit until the
    /// job is synced to the disk.
    pub(super) committed: Mutex<CommittedJobState>,
    pub(super) targets: SyncTargets,
    /// The archive of the run; not set if the run has none.
    pub(super) archive: OnceLock<Arc<dyn HeldBackRecordsArchive>>,
}

impl JobShared {
    /// Sets the WARC archive to which the run writes.
    pub(super) fn set_archive(&self, archive: Arc<dyn HeldBackRecordsArchive>) {
        let _ = self.archive.set(archive);
    }
}

/// A guard of the writer thread. When it is dropped, also by a panic, it closes the writer's queue
/// and ends the waits of other threads for the writer.
struct WriterEndGuard<'a> {
    queue: &'a EventQueue,
    shared: &'a JobShared,
}

impl Drop for WriterEndGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "the thread that writes the job's file panicked";
            self.shared.failure.set(Error::new(ErrorKind::Panicked, text));
        }
        self.queue.close();
        self.shared.lists.end_waits();
    }
}

/// The writer of the file of a job (`--job`), which runs in a separate thread.
pub(super) struct JobWriter {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) shared: Arc<JobShared>,
    /// The sequence number that the next commit of the job's file gets.
    pub(super) commit: u64,
    /// The offset in the output file up to which the job's file has recorded (committed) the
    /// output.
    pub(super) output_end: u64,
    pub(super) run: i64,
    /// The number of refreshes (`--refresh`) that all runs of the job have begun.
    pub(super) refresh_round: u64,
    pub(super) state: UncommittedJobEvents,
}

/// The events that the writer of a job (`--job`) has received, but has not committed to the job's
/// file yet.
#[derive(Default)]
pub(super) struct UncommittedJobEvents {
    /// The rows of finished transfers whose output has not been handed to the output stream yet.
    /// The key is the index of the transfer's stage (`--then` separates stages), and the number of
    /// the transfer in that stage.
    waiting: HashMap<(usize, u64), Box<UrlRow>>,
    /// The extracted values that wait for the end of their page. The key is the index of the stage.
    values: HashMap<usize, Vec<ExtractedPageValues>>,
    /// The rows of finished transfers whose output has been handed to the output stream but not
    /// written yet, in the order of the output.
    passed: VecDeque<RowAwaitingOutput>,
    written: u64,
    batch: Vec<JobFileChange>,
    batch_end: Option<u64>,
    lists: Vec<(i64, u64, Vec<u8>, bool)>,
    total: Option<u64>,
    durable: Option<CommittedJobState>,
    has_long_log: bool,
    /// The offset in the output file at which the output of this run begins, after any header.
    output_base: u64,
    /// The offset in the output file at which the output of this run begins, before any header.
    /// `None` once this offset is committed.
    output_begin: Option<u64>,
}

/// The results of a finished transfer whose output has been handed to the output stream, but may
/// not be written yet: the transfer's row (`None` if there are only values), and the values
/// extracted from its response. The results are committed once the run has written `end` bytes of
/// output.
struct RowAwaitingOutput {
    row: Option<Box<UrlRow>>,
    values: Vec<ExtractedPageValues>,
    end: u64,
}

/// A change to a row of the job's file, which the next commit writes.
enum JobFileChange {
    Url(Box<UrlRow>),
    Queued { stage: usize, number: u64, value: Vec<u8> },
    Values(ExtractedPageValues),
}

/// The prepared SQL statements, one for each kind of [`JobFileChange`].
struct JobFileStatements<'c> {
    url: CachedStatement<'c>,
    queued: CachedStatement<'c>,
    values: CachedStatement<'c>,
}

impl JobFileStatements<'_> {
    fn prepare(connection: &Connection) -> DatabaseResult<JobFileStatements<'_>> {
        Ok(JobFileStatements {
            url: connection.prepare_cached(url_row::UPSERT)?,
            queued: connection.prepare_cached(stage_values::INSERT_QUEUED)?,
            values: connection.prepare_cached(stage_values::INSERT_VALUES)?,
        })
    }

    fn write(&mut self, entry: &JobFileChange, commit: u64, round: u64) -> DatabaseResult<()> {
        match entry {
            JobFileChange::Url(row) => row.write(&mut self.url, commit, round),
            JobFileChange::Queued { stage, number, value } => {
                stage_values::write_queued(&mut self.queued, (*stage, *number), value, commit)
            }
            JobFileChange::Values(values) => values.write(&mut self.values, commit),
        }
    }
}

impl JobFileChange {
    /// Returns the output file of the URL whose row changes. Returns `None` if the URL has no file,
    /// or if the change is not the row of a finished URL.
    fn file(&self) -> Option<&Path> {
        match self {
            JobFileChange::Url(row) => row.file(),
            JobFileChange::Queued { .. } | JobFileChange::Values(_) => None,
        }
    }
}

impl UncommittedJobEvents {
    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.lists.is_empty() && self.total.is_none() && self.durable.is_none()
    }

    fn apply(&mut self, event: JobEvent) -> Option<u8> {
        match event {
            JobEvent::Finished { row, waits: false } => self.batch.push(JobFileChange::Url(row)),
            JobEvent::Finished { row, waits: true } => match self.waiting.entry(row.key()) {
                Entry::Occupied(first) => first.into_mut().add_page(*row),
                Entry::Vacant(entry) => drop(entry.insert(row)),
            },
            JobEvent::Queued { stage, number, value } => {
                self.batch.push(JobFileChange::Queued { stage, number, value })
            }
            JobEvent::Values(values) => self.values.entry(values.stage).or_default().push(values),
            JobEvent::PassedOn { stage, number, end } => {
                let row = self.waiting.remove(&(stage, number));
                let values = self.values.remove(&stage).unwrap_or_default();
                if row.is_some() || !values.is_empty() {
                    self.passed.push_back(RowAwaitingOutput { row, values, end });
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
            JobEvent::LongLog => self.has_long_log = true,
            JobEvent::End { exit_code } => return Some(exit_code),
        }
        None
    }

    /// Moves the rows and values whose output has been written from `passed` to `batch`. `passed`
    /// contains those that wait for their output. `batch` contains the changes of the next commit.
    fn take_written(&mut self) {
        while self.passed.front().is_some_and(|passed| passed.end <= self.written) {
            let Some(RowAwaitingOutput { row, values, end }) = self.passed.pop_front() else { return };
            self.batch_end = Some(end);
            self.batch.extend(values.into_iter().map(JobFileChange::Values));
            self.batch.extend(row.map(JobFileChange::Url));
        }
    }
}

impl JobWriter {
    /// Handles the events of the queue until the run has ended.
    pub(super) fn run(mut self, queue: &EventQueue) {
        let shared = Arc::clone(&self.shared);
        let _end = WriterEndGuard { queue, shared: &shared };
        let mut next_commit = Instant::now();
        let mut exit_code = None;
        let mut events = Vec::new();
        while exit_code.is_none() {
            queue.wait_for_events(&mut events, next_commit);
            for event in events.drain(..) {
                exit_code = self.state.apply(event).or(exit_code);
            }
            if !self.state.is_empty() {
                self.commit();
                next_commit = Instant::now() + COMMIT_INTERVAL;
            }
            if std::mem::take(&mut self.state.has_long_log) {
                self.restart_log();
            }
        }
        if let Some(exit_code) = exit_code {
            self.end_run(exit_code);
        }
    }

    /// Copies the write-ahead log into the job's file, so that SQLite writes the log from its
    /// beginning again. Only this thread can copy the whole log: another thread would miss what
    /// this thread writes meanwhile, and the log would grow without limit.
    fn restart_log(&self) {
        if !self.shared.failure.is_set()
            && let Err(error) = checkpoint(&self.connection, "PASSIVE")
        {
            self.shared.failure.set(database_error(&self.path, error));
        }
    }

    /// Commits all waiting changes. After a failure, drops the changes instead, so that no row is
    /// committed if an earlier row could not be written.
    fn commit(&mut self) {
        if self.shared.failure.is_set() {
            self.shared.lists.end_waits();
            let state = &mut self.state;
            state.batch.clear();
            state.lists.clear();
            (state.total, state.durable, state.batch_end) = (None, None, None);
            return;
        }
        let committed = self
            .archive_batch()
            .and_then(|payloads| self.try_commit(&payloads).map_err(|error| database_error(&self.path, error)));
        if let Err(error) = committed {
            let _ = self.connection.execute_batch("ROLLBACK");
            self.shared.failure.set(error);
            self.shared.lists.end_waits();
        }
    }

    /// Appends the requests and responses of all rows in the current batch, which is committed
    /// next, to the WARC archive. Discards the requests and responses of URLs that will be fetched
    /// again. Returns the payloads that the archive did not contain before.
    fn archive_batch(&self) -> Result<Vec<ArchivedPayload>, Error> {
        let Some(archive) = self.shared.archive.get() else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        for entry in &self.state.batch {
            match entry {
                JobFileChange::Url(row) if row.state == UrlState::Again => archive.discard(&row.records),
                JobFileChange::Url(row) => records.extend_from_slice(&row.records),
                JobFileChange::Queued { .. } | JobFileChange::Values(_) => {}
            }
        }
        archive.append(&records)
    }

    fn try_commit(&mut self, payloads: &[ArchivedPayload]) -> DatabaseResult<()> {
        let state = &mut self.state;
        self.output_end = state.output_begin.take().unwrap_or(self.output_end);
        let end = state.batch_end.take().map_or(self.output_end, |end| state.output_base + end);
        let archive = self.shared.archive.get().map(|archive| archive.position());
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        if !state.batch.is_empty() {
            let mut statements = JobFileStatements::prepare(&self.connection)?;
            for entry in &state.batch {
                statements.write(entry, self.commit, self.refresh_round)?;
            }
        }
        for (source, chunk, text, is_last) in &state.lists {
            super::list_copy::write(&self.connection, *source, *chunk, text, *is_last)?;
        }
        if let Some(total) = state.total {
            self.connection.execute("UPDATE job SET total = ?1", params![total as i64])?;
        }
        if let Some(durable) = state.durable {
            durable.write(&self.connection)?;
        }
        let update = "UPDATE job SET last_commit = ?1, output_end = ?2";
        self.connection.prepare_cached(update)?.execute(params![self.commit as i64, end as i64])?;
        if let Some(position) = archive {
            warc_end_and_payloads::write_position_and_payloads(&self.connection, position, payloads, self.commit)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        let noted = CommittedJobState { commit: self.commit, output: end, archive: archive.unwrap_or_default() };
        // Before the targets are read by the thread that syncs, they must have all files of the
        // rows.
        self.shared.targets.add(state.batch.iter().filter_map(JobFileChange::file));
        *self.shared.committed.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        for (source, chunk, text, is_last) in state.lists.drain(..) {
            let chunks = chunk + u64::from(!text.is_empty());
            self.shared.lists.set(source, CommittedListChunks { chunks, is_complete: is_last });
        }
        state.batch.clear();
        (state.total, state.durable) = (None, None);
        self.output_end = end;
        self.commit += 1;
        Ok(())
    }

    /// Records the end of the run and its exit code in the job's file.
    fn end_run(&mut self, exit_code: u8) {
        if self.shared.failure.is_set() {
            return;
        }
        let noted = self.connection.execute(
            "UPDATE run SET ended = ?1, exit_code = ?2 WHERE id = ?3",
            params![super::url_row::now_ms() as i64, exit_code, self.run],
        );
        if let Err(error) = noted {
            self.shared.failure.set(database_error(&self.path, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(number: u64, waits: bool) -> JobEvent {
        JobEvent::Finished { row: Box::new(UrlRow::skipped(0, number)), waits }
    }

    fn batch(state: &mut UncommittedJobEvents) -> Vec<u64> {
        let number = |entry| match entry {
            JobFileChange::Url(row) => Some(row.number),
            _ => None,
        };
        state.batch.drain(..).filter_map(number).collect()
    }

    #[test]
    fn job_row_is_committed_after_its_output() {
        let mut state = UncommittedJobEvents::default();
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
    fn job_row_without_output_is_committed_at_once() {
        let mut state = UncommittedJobEvents::default();
        state.apply(finished(0, true));
        state.apply(JobEvent::PassedOn { stage: 0, number: 0, end: 0 });
        assert_eq!(batch(&mut state), [0]);
    }
}
