//! A run of a job: it records the finished transfers, and knows which URLs need not be fetched.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use haul::fleet::{BodyDestination, FleetJob, OutputObserver};
use haul::system::file_metadata_and_flags::OwnedFile;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, Result};
use rusqlite::{OptionalExtension, params};

use super::event_queue::EventQueue;
use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error, job_error, sync_error};
use super::leftover_files::LeftoverFiles;
use super::list_change_check::{JobInputFile, JobInputFileStates};
use super::list_copy::{self, CopiedListReader, ListCopier};
use super::open_and_lock_job_file::{JobFile, StoredJobSettings, boot_id, check_same_directory};
use super::output_file::{EarlierOutput, PreparedJobRunOutput, named_file, standard_output};
use super::stage_values::PendingPageValues;
use super::stored_url_state_cursor::UrlCursor;
use super::sync_thread::{CommittedJobState, Syncer, checkpoint, sync_targets};
use super::url_row::{UrlRow, now_ms};
use super::writer::{CommittedListChunks, JobEvent, JobShared, JobWriter};
use super::{refresh, stored_command_line};
use crate::given_option::GivenOption;
use crate::job_types_in_every_build::ArchivePosition;
use crate::plan::{ResumableJobArgs, UrlGroup, UrlSource};
use crate::record_input::RecordInputFormat;

/// A run of a job (`--job`). It records finished transfers in the job's file, and knows which URLs
/// need not be fetched. All threads of the run share it.
pub(crate) struct JobRun {
    path: PathBuf,
    shared: Arc<JobShared>,
    events: Arc<EventQueue>,
    state: Mutex<JobFileAndWriterThreads>,
    leftovers: LeftoverFiles,
    values: PendingPageValues,
    /// The state of the list files at the beginning of the run.
    lists: JobInputFileStates,
    /// True if an earlier run of the job has committed anything.
    is_resumed: bool,
    /// True if the command line of this run names the lists again, so that a list from a pipe is
    /// compared with its copy even if the copy is complete.
    compares_complete_lists: bool,
    /// The number of the refresh (`--refresh`: requests all URLs again) that this run performs or
    /// continues, counted from 1 over all runs of the job. `None` if this run does not refresh.
    refresh: Option<u64>,
    /// For each stage (`--then` begins a further stage), true if a run with `--refresh` may make
    /// the stage's requests conditional (`If-None-Match`, `If-Modified-Since`).
    conditional_stages: Vec<bool>,
}

/// The job's file, its settings, and the handles of two threads: one writes the file, the other
/// syncs it. A run uses them only at its beginning and at its end.
struct JobFileAndWriterThreads {
    file: Option<JobFile>,
    settings: StoredJobSettings,
    writer: Option<JoinHandle<()>>,
    syncer: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The output of a job's run: the opened output file or standard output, and the offset at which
/// this run continues to write.
pub(crate) struct JobRunOutput {
    /// The descriptor to which the output of the run is written.
    pub(crate) descriptor: OwnedFile,
    /// True if the job has written no output yet. A header line must then be written, for example
    /// for CSV.
    pub(crate) is_new: bool,
    /// The offset in the output file, in bytes, at which this run continues to write.
    end: u64,
    /// A message about the output for the user; `None` if there is none.
    pub(crate) note: Option<String>,
}

impl JobRun {
    /// Opens the job of a run, or creates it. `refreshes` is true if the run requests all URLs of
    /// the job again (`--refresh`). Refuses a command line that differs from the job's, a file of
    /// URLs or a config file that has changed since the job read it, and a job that another process
    /// runs.
    pub(crate) fn open(args: &ResumableJobArgs, group: &UrlGroup, refreshes: bool) -> Result<Arc<Self>> {
        let (file, exists) = JobFile::open(&args.file, true)?;
        if exists {
            check_same_command(&file, args)?;
        } else {
            file.create(&args.directory, &args.command)?;
        }
        let mut settings = file.settings()?;
        let boot = boot_id();
        file.recover(&mut settings, boot.as_deref())?;
        let guarded = guarded_files(&file, group, &args.command)?;
        let lists = JobInputFileStates::read(&guarded);
        guarded.iter().try_for_each(|guarded| file.check_guarded_file(guarded))?;
        let begins = refreshes && settings.refresh_is_complete;
        settings.refresh_round += u64::from(begins);
        let begin = || -> DatabaseResult<i64> {
            if begins {
                let round = "UPDATE job SET refresh_round = refresh_round + 1, refresh_is_complete = 0";
                file.connection.execute(round, [])?;
            }
            file.connection.execute("UPDATE job SET boot = ?1, is_clean = 0", params![boot])?;
            let insert = "INSERT INTO run (process, started) VALUES (?1, ?2)";
            file.connection.execute(insert, params![std::process::id(), now_ms() as i64])?;
            Ok(file.connection.last_insert_rowid())
        };
        let run = begin().map_err(|error| database_error(&args.file, error))?;
        let leftovers = LeftoverFiles::from_earlier_runs(&file.connection, run);
        let leftovers = leftovers.map_err(|error| database_error(&args.file, error))?;
        let is_resumed = settings.last_commit > 0;
        let shared = Arc::new(JobShared::default());
        let archive = settings.archive.unwrap_or_default();
        let noted = CommittedJobState { commit: settings.last_commit, output: settings.output_end, archive };
        *shared.committed.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        let events = Arc::<EventQueue>::default();
        let writer = JobWriter {
            connection: file.another_connection()?,
            path: args.file.clone(),
            shared: Arc::clone(&shared),
            commit: settings.last_commit + 1,
            output_end: settings.output_end,
            refresh_round: settings.refresh_round,
            run,
            state: super::writer::UncommittedJobEvents::default(),
        };
        let no_thread = |error| Error::with_source(ErrorKind::Write, "no thread for the job's file", error);
        let queue = Arc::clone(&events);
        let writer = std::thread::Builder::new().name("haul-job".to_owned()).spawn(move || writer.run(&queue));
        let syncer = Syncer {
            connection: file.another_connection()?,
            path: args.file.clone(),
            shared: Arc::clone(&shared),
            events: Arc::clone(&events),
        };
        let (stop, stopped) = channel();
        let synced = std::thread::Builder::new().name("haul-job-sync".to_owned()).spawn(move || syncer.run(&stopped));
        let refresh = refreshes.then_some(settings.refresh_round);
        let state = JobFileAndWriterThreads {
            file: Some(file),
            settings,
            writer: Some(writer.map_err(no_thread)?),
            syncer: Some((stop, synced.map_err(no_thread)?)),
        };
        Ok(Arc::new(Self {
            path: args.file.clone(),
            shared,
            events,
            state: Mutex::new(state),
            leftovers,
            values: PendingPageValues::default(),
            lists,
            is_resumed,
            compares_complete_lists: !args.is_stored_command,
            refresh,
            conditional_stages: group.stages.iter().map(|stage| stage.request.method == "GET").collect(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, JobFileAndWriterThreads> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of the job's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the state that the threads of the run share.
    pub(super) fn shared(&self) -> &JobShared {
        &self.shared
    }

    /// Returns the extracted values of pages whose output has not been handed to the output stream
    /// yet.
    pub(super) fn page_values(&self) -> &PendingPageValues {
        &self.values
    }

    /// Returns the number of the refresh (`--refresh`: requests all URLs again) that this run
    /// performs or continues, counted from 1 over all runs of the job. Returns `None` if this run
    /// does not refresh.
    pub(super) fn refresh(&self) -> Option<u64> {
        self.refresh
    }

    /// Returns true if a run with `--refresh` may make the requests of the stage with the index
    /// `stage` conditional (`If-None-Match`, `If-Modified-Since`).
    pub(super) fn is_conditional(&self, stage: usize) -> bool {
        self.conditional_stages.get(stage).is_some_and(|&is_conditional| is_conditional)
    }

    /// Returns the time when the job was begun.
    pub(crate) fn created(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.lock().settings.created)
    }

    /// Returns the end of the archive, as earlier runs have recorded it; `None` if no run has begun
    /// an archive.
    pub(super) fn noted_archive(&self) -> Option<ArchivePosition> {
        self.lock().settings.archive
    }

    /// Opens a further connection to the job's SQLite file, for another thread.
    pub(super) fn connection(&self) -> Result<rusqlite::Connection> {
        match &self.lock().file {
            Some(file) => file.another_connection(),
            None => Err(Error::new(ErrorKind::Interrupted, "the run is over")),
        }
    }

    /// Returns true if the run must end, because the job's file can no longer be written or a disk
    /// is full.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.failure.is_set() || self.shared.stop.is_set()
    }

    /// Returns a cursor over the URLs that the user gave as arguments or in files. For each URL,
    /// the cursor returns the state that the job has stored, such as finished.
    pub(crate) fn cursor(&self) -> Result<UrlCursor> {
        Ok(UrlCursor::new(self.connection()?, self.path.clone(), self.refresh))
    }

    /// Returns a reader of the lines that the job has copied from a list on a pipe so far, and
    /// whether they are the whole list. Returns `None` if the list is a regular file.
    pub(crate) fn copied_lines(&self, source: usize) -> Result<Option<(Box<dyn BufRead + Send>, bool)>> {
        let source = source as i64;
        if self.lists.has(source) {
            return Ok(None);
        }
        let connection = self.connection()?;
        let is_whole =
            list_copy::is_complete(&connection, source).map_err(|error| database_error(&self.path, error))?;
        let reader = CopiedListReader::new(connection, source, None);
        Ok(Some((Box::new(BufReader::new(reader)), is_whole.unwrap_or(false))))
    }

    /// Returns a reader for a list of URLs that must be copied into the job because it comes from a
    /// pipe. Returns `None` if the list is a regular file, which later runs can read again.
    /// `format` is the format of its lines; `None` if each line is a URL.
    pub(crate) fn open_list(
        &self,
        source: usize,
        name: &str,
        format: Option<RecordInputFormat>,
    ) -> Result<Option<Box<dyn BufRead + Send>>> {
        let source = source as i64;
        if self.lists.has(source) {
            return Ok(None);
        }
        let connection = self.connection()?;
        let copied =
            list_copy::begin_copy(&connection, source, name).map_err(|error| database_error(&self.path, error))?;
        if copied.is_complete && !(self.compares_complete_lists && can_be_read_again(name)) {
            self.shared.lists.set(source, copied);
        } else {
            let unreadable =
                |error| Error::with_source(ErrorKind::Read, format!("failed to read the list {name}"), error);
            let input: Box<dyn Read + Send> = match name {
                "-" => Box::new(crate::file_and_environment_access::stdin().map_err(unreadable)?),
                name => Box::new(File::open(name).map_err(unreadable)?),
            };
            self.shared.lists.set(source, CommittedListChunks::default());
            let copier = ListCopier {
                input,
                name: if name == "-" { "standard input".to_owned() } else { name.to_owned() },
                source,
                format,
                copied,
                connection: self.connection()?,
                path: self.path.clone(),
                shared: Arc::clone(&self.shared),
                events: Arc::clone(&self.events),
            };
            // It is not joined: a read that never returns must not keep the program from ending.
            let started = std::thread::Builder::new().name("haul-job-list".to_owned()).spawn(move || copier.run());
            started.map_err(|error| Error::with_source(ErrorKind::Read, "no thread for the list", error))?;
        }
        let reader = CopiedListReader::new(connection, source, Some(Arc::clone(&self.shared)));
        Ok(Some(Box::new(BufReader::with_capacity(64 << 10, reader))))
    }

    /// Prepares the output of the run: the file of `-o` that all transfers share, or standard
    /// output. If an interrupted run has written uncommitted output at the end of the file, removes
    /// that output.
    pub(crate) fn open_output(&self, file: Option<(&Path, Option<u32>)>) -> Result<JobRunOutput> {
        let state = self.lock();
        let settings = &state.settings;
        let earlier =
            EarlierOutput { identity: settings.output, start: settings.output_start, end: settings.output_end };
        let prepared = match file {
            Some((path, mode)) => named_file(path, mode, earlier)?,
            None => standard_output(earlier)?,
        };
        let PreparedJobRunOutput { descriptor, identity, start, end, note } = prepared;
        if let Some(file) = &state.file {
            let note = file.connection.execute(
                "UPDATE job SET output_device = ?1, output_inode = ?2, output_start = ?3, output_end = ?4",
                params![
                    identity.map(|identity| identity.device as i64),
                    identity.map(|identity| identity.inode as i64),
                    start as i64,
                    end as i64
                ],
            );
            // A file must be known on the disk before it has output, which would otherwise be kept
            // as another's.
            let note = note.and_then(|_| match identity {
                Some(_) => checkpoint(&file.connection, "PASSIVE").map(drop),
                None => Ok(()),
            });
            note.map_err(|error| database_error(&self.path, error))?;
        }
        if identity.is_some() {
            let copy = descriptor.try_clone();
            let copy =
                copy.map_err(|error| Error::with_source(ErrorKind::Write, "no descriptor for the output", error))?;
            self.shared.targets.set_output(copy);
        }
        let is_new = match identity {
            Some(_) => start == end,
            None => !self.is_resumed,
        };
        Ok(JobRunOutput { descriptor, is_new, end, note })
    }

    /// Records that the output begins with a header of `header` bytes, which does not belong to any
    /// transfer.
    pub(crate) fn output_begins(&self, output: &JobRunOutput, header: usize) {
        self.send(JobEvent::OutputBegins { header: header as u64, at: output.end });
    }

    /// Records a finished transfer. `sha256` is the checksum of its file; `None` if it is unknown.
    /// `prints` is true if the transfer writes to the shared output or has values for the next
    /// stage (after `--then`).
    pub(crate) fn finished(&self, job: &FleetJob, outcome: &TransferOutcome, sha256: Option<&str>, prints: bool) {
        if let BodyDestination::File { path, .. } = &job.destination {
            self.leftovers.remove_beside(path);
        }
        if let Some(error) = outcome.result.as_ref().err().filter(|error| is_disk_full(error)) {
            self.shared.stop.set(error.duplicate());
        }
        let waits = prints || job.destination == BodyDestination::Output || job.is_page_of_listing();
        self.send(JobEvent::Finished {
            row: Box::new(UrlRow::new(job, outcome, sha256, self.refresh.is_some())),
            waits,
        });
    }

    /// Records a URL that `--skip-existing` skipped.
    pub(crate) fn skipped(&self, number: u64) {
        self.skipped_in(0, number);
    }

    pub(super) fn skipped_in(&self, stage: usize, number: u64) {
        self.send(JobEvent::Finished { row: Box::new(UrlRow::skipped(stage, number)), waits: false });
    }

    /// Records the number of URLs in all lists of the job.
    pub(crate) fn list_ended(&self, total: u64) {
        match self.lists.check(&self.path) {
            Ok(()) => self.send(JobEvent::ListEnded(total)),
            Err(error) => self.shared.failure.set(error),
        }
    }

    /// Sends an event to the writer thread. Ignores the event if the writer has ended after a
    /// failure, because the run then ends as well.
    pub(super) fn send(&self, event: JobEvent) {
        self.events.send(event);
    }

    /// Ends the run, after everything is committed and synced. Returns `exit_code` or, if that is
    /// 0, the exit code of the job's first failed URL, which may have failed in an earlier run. In
    /// a run with `--refresh` (requests all URLs again), also returns the number of URLs for each
    /// result, such as `changed`, as a text for the user; `None` in any other run.
    pub(crate) fn end(&self, exit_code: u8) -> Result<(u8, Option<String>)> {
        let mut state = self.lock();
        self.send(JobEvent::End { exit_code });
        let joined = state.writer.take().is_none_or(|writer| writer.join().is_ok());
        if let Some((stop, syncer)) = state.syncer.take() {
            drop(stop);
            let _ = syncer.join();
        }
        if let Some(error) = self.shared.failure.take_error() {
            return Err(error);
        }
        if !joined {
            return Err(Error::new(ErrorKind::Panicked, "the thread that writes the job's file panicked"));
        }
        // Its message was printed with its URL.
        let exit_code = self.shared.stop.take_error().map_or(exit_code, |error| error.exit_code());
        let Some(file) = state.file.take() else { return Ok((exit_code, None)) };
        if let Err(error) = sync_targets(&self.shared) {
            return Err(sync_error(&self.path, error));
        }
        let finish = || -> DatabaseResult<Option<u8>> {
            file.connection.execute(
                "UPDATE job SET is_clean = 1, durable_commit = last_commit, durable_output = output_end, \
                 durable_archive_number = coalesce(archive_number, 0), durable_archive_end = archive_end",
                [],
            )?;
            checkpoint(&file.connection, "TRUNCATE")?;
            let first = "SELECT exit_code FROM url WHERE state IN ('failed', 'again') AND exit_code > 0 \
                         ORDER BY id LIMIT 1";
            file.connection.query_row(first, [], |row| row.get(0)).optional()
        };
        let first = finish().map_err(|error| database_error(&self.path, error))?;
        let found = self.refresh.map(|round| refresh::end_refresh(&file.connection, round)).transpose();
        let found = found.map_err(|error| database_error(&self.path, error))?;
        Ok((if exit_code == 0 { first.unwrap_or(0) } else { exit_code }, found))
    }
}

/// Reports to the writer of the job's file which output the output stream has received, and which
/// is written. The writer stores a URL as finished only after its output is written.
impl OutputObserver for JobRun {
    fn on_passed_to_sink(&self, stage: usize, number: u64, end: u64) {
        for values in self.values.take_stage_values(stage) {
            self.send(JobEvent::Values(values));
        }
        self.send(JobEvent::PassedOn { stage, number, end });
    }

    fn on_written(&self, end: u64) {
        self.send(JobEvent::Written(end));
    }
}

/// Returns true if the error says that the disk is full or a quota is exceeded. The run then stops,
/// because every further file would fail as well.
fn is_disk_full(error: &Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let source = error.io_source().map(std::io::Error::kind);
    error.kind() == ErrorKind::Write && matches!(source, Some(StorageFull | QuotaExceeded))
}

/// Refuses a command line that differs from the one that is stored in the job.
fn check_same_command(file: &JobFile, args: &ResumableJobArgs) -> Result<()> {
    let settings = file.settings()?;
    if let Some(text) = stored_command_line::first_difference(&settings.command, &args.command) {
        let text = format!(
            "the job was begun with another command line: {text}; 'haul --job {}' alone goes on with its own, and \
             another file begins another job",
            args.file.display()
        );
        return Err(job_error(&args.file, text));
    }
    check_same_directory(&args.file, &settings, &args.directory)
}

/// Returns the list and config files that must not change between two runs of a job: the regular
/// files. For a file that the job has recorded, its kind at that time counts. A list that was a
/// regular file is returned even if it is missing now or is a pipe. A list that the job copies from
/// a pipe is not returned, even if it is a regular file now.
fn guarded_files<'a>(file: &JobFile, group: &'a UrlGroup, command: &'a [GivenOption]) -> Result<Vec<JobInputFile<'a>>> {
    let lists = group.urls.iter().enumerate().filter_map(|(source, url)| match url {
        UrlSource::InputFile(name) => Some(JobInputFile { source: source as i64, name }),
        UrlSource::Argument(_) => None,
    });
    let after = group.urls.len() as i64;
    let configs = command.iter().filter(|option| option.name == "config").enumerate().filter_map(|(at, option)| {
        let name = std::str::from_utf8(option.value.as_deref()?).ok()?;
        Some(JobInputFile { source: after + at as i64, name })
    });
    let mut guarded = Vec::new();
    for input in lists.chain(configs) {
        let is_copied = file.is_copied(input.source)?;
        if is_copied.map_or_else(|| is_file(input.name), |is_copied| !is_copied) {
            guarded.push(input);
        }
    }
    Ok(guarded)
}

/// Returns true if `name` names a regular file, which a later run of the job can read again.
/// Returns false for `-` (standard input).
fn is_file(name: &str) -> bool {
    name != "-" && std::fs::metadata(name).is_ok_and(|metadata| metadata.is_file())
}

/// Returns true if a list that the job has copied completely can be read to compare it with the
/// copy. Returns false for a list that is missing, for a terminal, and for a named FIFO, because
/// these may wait for input that never comes.
fn can_be_read_again(name: &str) -> bool {
    use haul::system::file_metadata_and_flags::FileTypeExt;
    use std::io::IsTerminal;

    if name == "-" {
        return !std::io::stdin().is_terminal();
    }
    let is_descriptor = name.starts_with("/dev/") || name.starts_with("/proc/");
    let Ok(metadata) = std::fs::metadata(name) else { return false };
    (is_descriptor || !metadata.file_type().is_fifo()) && File::open(name).is_ok_and(|file| !file.is_terminal())
}
