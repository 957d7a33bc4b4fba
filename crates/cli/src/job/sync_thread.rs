//! The thread that makes a job durable: once a second it syncs the job's output, then the files of
//! the committed URLs, then the job's file.
//!
//! After a loss of power, the next run relies only on synced data: it resets all URLs that were
//! committed after the last sync, and truncates the output to the synced length. So it repeats at
//! most the transfers that were running and those of the last second. A restart of the computer is
//! detected by the identifier of the boot, which the job's file stores.
//!
//! The files of `-o` are synced together by `syncfs`, once for each file system, because syncing
//! each of a hundred thousand files separately would take longer than fetching them.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haul::sink::temporary_and_final_names::directory_of;
use haul::system::file_metadata_and_flags::{MetadataExt, OwnedFile};
use rusqlite::{Connection, params};

use super::event_queue::EventQueue;
use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error, sync_error};
use super::writer::{JobEvent, JobShared};
use crate::job_types_in_every_build::ArchivePosition;
use crate::system::disk_sync::{open_to_sync, sync_content, sync_file_system};

/// The time between two syncs. A loss of power costs at most the work of this time.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The length of the write-ahead log, in pages, at which the log is restarted from its beginning.
/// 8192 pages are 32 MiB.
const MAX_LOG_PAGES: i64 = 8192;

/// The maximum number of directories of output files that are examined to find the file systems to
/// sync. A file in a further directory is synced only if its file system was already found, which
/// in practice is the case.
const MAX_DIRECTORIES: usize = 1024;

/// The state of a job after a commit. A power failure may undo the commit until the job is synced
/// to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommittedJobState {
    /// The sequence number of the job's last commit.
    pub(super) commit: u64,
    /// The end of the last committed output, as an offset in the output file.
    pub(super) output: u64,
    /// The end of the job's WARC archive after the last commit.
    pub(super) archive: ArchivePosition,
}

impl CommittedJobState {
    /// Records in the job's file that this state is on the disk.
    pub(super) fn write(&self, connection: &Connection) -> DatabaseResult<()> {
        let update = "UPDATE job SET durable_commit = ?1, durable_output = ?2, durable_archive_number = ?3, \
                      durable_archive_end = ?4";
        let ArchivePosition { number, offset } = self.archive;
        let values = params![self.commit as i64, self.output as i64, number, offset as i64];
        connection.prepare_cached(update)?.execute(values).map(drop)
    }
}

/// The data that a job (`--job`) must sync to the disk: its output file, and the file systems of
/// its other files.
#[derive(Default)]
pub(super) struct SyncTargets(Mutex<FileSystemsToSync>);

/// The output file of a run, and the file systems on which the run's other files are stored.
#[derive(Default)]
struct FileSystemsToSync {
    output: Option<Arc<File>>,
    /// The directories whose file systems are already in `file_systems`.
    directories: HashSet<PathBuf>,
    /// The file systems to sync. Each is given by its device number and an open directory on it.
    file_systems: Vec<(u64, Arc<File>)>,
}

impl SyncTargets {
    fn lock(&self) -> MutexGuard<'_, FileSystemsToSync> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the output file to sync. It must be a regular file, because other outputs need no sync.
    pub(super) fn set_output(&self, output: OwnedFile) {
        self.lock().output = Some(Arc::new(output.into()));
    }

    /// Adds the file systems on which these files are stored.
    pub(super) fn add<'p>(&self, files: impl Iterator<Item = &'p Path>) {
        let mut set = self.lock();
        for file in files {
            let parent = directory_of(file);
            if set.directories.contains(parent) || set.directories.len() >= MAX_DIRECTORIES {
                continue;
            }
            set.directories.insert(parent.to_owned());
            let Ok(directory) = File::open(parent) else { continue };
            let Ok(metadata) = directory.metadata() else { continue };
            if !set.file_systems.iter().any(|(device, _)| *device == metadata.dev()) {
                set.file_systems.push((metadata.dev(), Arc::new(directory)));
            }
        }
    }

    /// Syncs the output file, and the file systems on which the run's other files are stored.
    fn sync(&self) -> std::io::Result<()> {
        let (output, directories) = {
            let set = self.lock();
            let directories: Vec<_> = set.file_systems.iter().map(|(_, directory)| Arc::clone(directory)).collect();
            (set.output.clone(), directories)
        };
        if let Some(output) = output {
            sync_content(&output)?;
        }
        directories.iter().try_for_each(|directory| sync_file_system(directory))
    }
}

/// The thread that syncs to the disk what the writer thread has committed to the job's file
/// (`--job`), and the output files of the run.
pub(super) struct Syncer {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) shared: Arc<JobShared>,
    pub(super) events: Arc<EventQueue>,
}

impl Syncer {
    /// Syncs once a second if there was a commit, until `stop` is closed.
    pub(super) fn run(self, stop: &Receiver<()>) {
        let mut last = *self.shared.committed.lock().unwrap_or_else(PoisonError::into_inner);
        while stop.recv_timeout(SYNC_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let state = *self.shared.committed.lock().unwrap_or_else(PoisonError::into_inner);
            if state.commit == last.commit {
                continue;
            }
            last = state;
            if self.sync() && !self.events.send(JobEvent::Durable(state)) {
                return;
            }
            // The note itself is a commit, which needs no other.
            last.commit += 1;
        }
    }

    /// Syncs to the disk the output, the other files that transfers wrote, and the job's file.
    /// Returns false after an error, which ends the run.
    fn sync(&self) -> bool {
        if self.shared.failure.is_set() {
            return false;
        }
        if let Err(error) = sync_targets(&self.shared).and_then(|()| sync_log(&self.path)) {
            self.shared.failure.set(sync_error(&self.path, error));
            return false;
        }
        match checkpoint(&self.connection, "PASSIVE") {
            Ok(pages) if pages >= MAX_LOG_PAGES => self.events.send(JobEvent::LongLog),
            Ok(_) => true,
            Err(error) => {
                self.shared.failure.set(database_error(&self.path, error));
                false
            }
        }
    }
}

/// Syncs the write-ahead log of the job's file, which contains the newest commits. A checkpoint
/// syncs the log, too, but may do nothing while another connection reads the database.
fn sync_log(path: &Path) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    match open_to_sync(Path::new(&name)) {
        Ok(log) => log.sync_data(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Copies the content of the write-ahead log into the job's file. `mode` is the mode of SQLite's
/// checkpoint. Returns the number of pages in the log.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> DatabaseResult<i64> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(1))
}

/// Syncs to the disk the output of a run, the other files that the run wrote, and the run's WARC
/// archive if there is one.
pub(super) fn sync_targets(shared: &JobShared) -> std::io::Result<()> {
    shared.targets.sync()?;
    shared.archive.get().map_or(Ok(()), |archive| archive.sync())
}
