//! The file of a job: opens and locks it, and reads its settings.
//!
//! Only one process at a time can run a job. It holds a lock (`flock`) on the file until it ends,
//! even if it is killed. Readers such as `haul job status` need no lock.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use haul::system::file_metadata_and_flags::{self, OpenOptionsExt};
use haul::{Error, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error, io_error, job_error};
use super::permissions::{can_write_beside, check_directory, check_owner, check_reader};
use super::schema::{self, VERSION};
use super::url_row::now_ms;
use super::{output_file, stored_command_line};
use crate::given_option::GivenOption;
use crate::job_file_names::APPLICATION_ID;
use crate::job_types_in_every_build::ArchivePosition;
use crate::program_persona;
use crate::system::os_text::{OsStrExt, os_str};
use crate::system::process_liveness_and_limits;

/// The open SQLite file of a job, which this process has locked.
pub(super) struct JobFile {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    /// The descriptor that holds the lock. It is closed last, because closing any descriptor of the
    /// file releases the locks of SQLite in this process.
    lock: File,
}

/// The settings of a job: the row of the table `job`.
#[derive(Clone, Debug)]
pub(super) struct StoredJobSettings {
    pub(super) directory: PathBuf,
    pub(super) command: Vec<GivenOption>,
    /// The number of URLs in all lists of the job; `None` until a run has read the lists to their
    /// ends.
    pub(super) total: Option<u64>,
    /// The identity of the output file; `None` if the output is not a regular file.
    pub(super) output: Option<output_file::JobOutputIdentity>,
    pub(super) output_start: u64,
    pub(super) output_end: u64,
    pub(super) last_commit: u64,
    pub(super) durable_commit: u64,
    pub(super) durable_output: u64,
    /// The end of the job's WARC archive; `None` until a run has begun the archive.
    pub(super) archive: Option<ArchivePosition>,
    pub(super) durable_archive: ArchivePosition,
    pub(super) boot: Option<String>,
    pub(super) is_clean: bool,
    pub(super) created: u64,
    /// The number of refreshes (`--refresh`) that have begun in all runs of the job.
    pub(super) refresh_round: u64,
    pub(super) refresh_is_complete: bool,
}

impl JobFile {
    /// Opens and locks the file of a job. Creates the file if it does not exist and `creates` is
    /// true. The second returned value is true if the job existed already.
    pub(super) fn open(path: &Path, creates: bool) -> Result<(Self, bool)> {
        check_directory(path)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(creates).truncate(false).mode(0o600).open(path);
        let file = file.map_err(|error| io_error(path, error))?;
        check_file(path, &file)?;
        check_owner(path, &file.metadata().map_err(|error| io_error(path, error))?)?;
        // A link to a file that did not exist now shows its directory.
        check_directory(path)?;
        if let Err(error) = file_metadata_and_flags::try_lock(&file) {
            return Err(match error.kind() {
                std::io::ErrorKind::WouldBlock => in_use_error(path),
                _ => io_error(path, error),
            });
        }
        // An empty file may be anybody's to read. SQLite gives its mode to the log.
        if file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            file_metadata_and_flags::set_mode(&file, 0o600).map_err(|error| io_error(path, error))?;
        }
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let exists = has_tables(&connection, path)?;
        if !exists && !creates {
            return Err(job_error(path, "it is no job of haul"));
        }
        Ok((Self { path: path.to_owned(), connection, lock: file }, exists))
    }

    /// Creates the tables of a new job. Only the header of the file is synced: if the computer
    /// stops within the first second, the job may be lost.
    pub(super) fn create(&self, directory: &Path, command: &[GivenOption]) -> Result<()> {
        self.begin_log()?;
        let make = || {
            let transaction = self.connection.unchecked_transaction()?;
            schema::create(&transaction)?;
            transaction.execute(
                "INSERT INTO job (id, haul_version, created, directory, command) \
                 VALUES (1, ?1, ?2, CAST(?3 AS TEXT), ?4)",
                params![
                    program_persona::VERSION,
                    now_ms() as i64,
                    directory.as_os_str().as_bytes(),
                    stored_command_line::to_json(command)
                ],
            )?;
            transaction.commit()?;
            self.connection.execute_batch("PRAGMA synchronous = NORMAL")
        };
        make().map_err(|error| database_error(&self.path, error))
    }

    /// Turns on SQLite's write-ahead log for a new job, and syncs the job's file, which stores this
    /// setting. Turns off SQLite's syncs. [`JobFile::create`] turns them on again after it has made
    /// the tables.
    fn begin_log(&self) -> Result<()> {
        let begin = || {
            self.connection.execute_batch("PRAGMA synchronous = OFF")?;
            self.connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
        };
        match begin().map_err(|error| database_error(&self.path, error))?.as_str() {
            "wal" => self.lock.sync_all().map_err(|error| io_error(&self.path, error)),
            _ => Err(job_error(&self.path, "its file system cannot hold a job; put it on a local disk")),
        }
    }

    /// Reads the settings of the job.
    pub(super) fn settings(&self) -> Result<StoredJobSettings> {
        read_settings(&self.connection, &self.path)
    }

    /// Opens another connection to the job's file, for another thread.
    pub(super) fn another_connection(&self) -> Result<Connection> {
        connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// After a loss of power, takes back the commits that were not known to be on the disk: their
    /// URLs are fetched again. Does nothing if the last run ended normally, or in the current boot
    /// of the computer, which `boot` identifies.
    pub(super) fn recover(&self, settings: &mut StoredJobSettings, boot: Option<&str>) -> Result<()> {
        if settings.is_clean || settings.boot.as_deref() == boot {
            return Ok(());
        }
        settings.output_end = settings.output_end.min(settings.durable_output.max(settings.output_start));
        settings.archive = settings.archive.map(|_| settings.durable_archive);
        let set_back = || {
            let transaction = self.connection.unchecked_transaction()?;
            let durable = params![settings.durable_commit as i64];
            transaction.execute("DELETE FROM stage_values WHERE commit_number > ?1", durable)?;
            transaction.execute("DELETE FROM payload WHERE commit_number > ?1", durable)?;
            transaction.execute("DELETE FROM url WHERE queued_commit > ?1", durable)?;
            // A file may be lost, too, so its validators no longer help.
            let set_back = "UPDATE url SET state = 'again', etag = NULL, last_modified = NULL, refresh_round = 0 \
                            WHERE commit_number > ?1";
            transaction.execute(set_back, durable)?;
            let cut = "UPDATE job SET output_end = ?1, archive_number = ?2, archive_end = ?3";
            let (number, end) = settings.archive.map_or((None, 0), |end| (Some(end.number), end.offset as i64));
            transaction.execute(cut, params![settings.output_end as i64, number, end])?;
            transaction.commit()
        };
        set_back().map_err(|error| database_error(&self.path, error))
    }
}

/// Opens the file of a job (`--job`) only for reading. This does not disturb a process that runs
/// the job.
pub(super) fn open_to_read(path: &Path) -> Result<(Connection, StoredJobSettings)> {
    let file = File::open(path).map_err(|error| io_error(path, error))?;
    check_file(path, &file)?;
    drop(file);
    check_directory(path)?;
    // Reading a database with a write-ahead log may have to write its index.
    let opened =
        connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| with_settings(connection, path));
    match opened {
        Err(_) if is_at_rest(path) => with_settings(connect_at_rest(path)?, path),
        opened => opened,
    }
}

fn with_settings(connection: Connection, path: &Path) -> Result<(Connection, StoredJobSettings)> {
    if !has_tables(&connection, path)? {
        return Err(job_error(path, "it is no job of haul"));
    }
    let settings = read_settings(&connection, path)?;
    Ok((connection, settings))
}

/// Returns true if a job can be read without a lock. This requires that its write-ahead log is
/// empty or missing, as after a complete run. This process must also be unable to create files in
/// the job's directory, so that it cannot create those that SQLite needs for a lock.
fn is_at_rest(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(Path::new(&log)).map_or(true, |log| log.len() == 0) && !can_write_beside(path)
}

/// Opens the file of a job for reading without a lock, because no process writes this file.
fn connect_at_rest(path: &Path) -> Result<Connection> {
    let absolute = std::path::absolute(path).map_err(|error| io_error(path, error))?;
    let escaped = |&byte: &u8| match byte {
        b'/' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let name: String = absolute.as_os_str().as_bytes().iter().map(escaped).collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags);
    opened.map_err(|error| database_error(path, error))
}

/// Returns the ID of the process that runs the job; `None` if no process runs it.
///
/// The lock alone is no proof of a run, because `haul job retry` locks the job, too. A row of the
/// table `run` without an end is no proof either, because the process may have been killed.
pub(super) fn running_process(path: &Path, connection: &Connection) -> Option<i64> {
    let last = "SELECT process, ended IS NULL FROM run ORDER BY id DESC LIMIT 1";
    let (process, is_open) = connection.query_row(last, [], |row| Ok((row.get(0)?, row.get::<_, bool>(1)?))).ok()?;
    let exists = i32::try_from(process).is_ok_and(process_liveness_and_limits::is_running);
    (is_open && exists && is_locked(path)).then_some(process)
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file_metadata_and_flags::is_locked(&file))
}

/// Returns an error if `directory`, the directory of this run, is not the directory in which the
/// job was begun.
pub(super) fn check_same_directory(path: &Path, settings: &StoredJobSettings, directory: &Path) -> Result<()> {
    if settings.directory == directory {
        return Ok(());
    }
    let text = format!(
        "the job was begun in {}, to which its file names refer; run it there, or by its name alone",
        settings.directory.display()
    );
    Err(job_error(path, text))
}

/// Refuses a file that is not a job, or that this user may not read.
fn check_file(path: &Path, file: &File) -> Result<()> {
    let metadata = file.metadata().map_err(|error| io_error(path, error))?;
    if !metadata.is_file() {
        return Err(job_error(path, "it is no regular file, which a job must be"));
    }
    check_reader(path, &metadata)?;
    let mut magic = [0; 16];
    let mut reader = file;
    if metadata.len() > 0 && (reader.read_exact(&mut magic).is_err() || &magic != b"SQLite format 3\0") {
        return Err(job_error(path, "it is no job of haul; name another file"));
    }
    Ok(())
}

/// Returns the error for a job that another process has locked.
fn in_use_error(path: &Path) -> Error {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).ok();
    let process = connection.and_then(|connection| running_process(path, &connection));
    let text = match process {
        Some(process) => format!("another process ({process}) is running this job; wait for it, or end it"),
        None => "another process is using this job, such as 'haul job retry'; wait until it has ended".to_owned(),
    };
    job_error(path, text)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let open = || {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(16);
        connection.execute_batch(
            "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -1024; \
             PRAGMA temp_store = FILE; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;",
        )?;
        Ok(connection)
    };
    open().map_err(|error| database_error(path, error))
}

/// Returns true if the file contains the tables of a job, and false if it is empty.
fn has_tables(connection: &Connection, path: &Path) -> Result<bool> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let numbers = || -> DatabaseResult<(i32, i32, i64)> {
        let tables = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables))
    };
    match numbers().map_err(|error| database_error(path, error))? {
        (0, 0, 0) => Ok(false),
        (APPLICATION_ID, VERSION, _) => Ok(true),
        (APPLICATION_ID, version, _) => Err(job_error(
            path,
            format!("its version {version} is not that of this haul ({VERSION}); go on with the haul that made it"),
        )),
        _ => Err(job_error(path, "it is a database of another program; name another file")),
    }
}

fn read_settings(connection: &Connection, path: &Path) -> Result<StoredJobSettings> {
    let number = |row: &Row<'_>, name: &str| row.get::<_, i64>(name).map(|number| number as u64);
    let settings = connection.query_row("SELECT * FROM job", [], |row| {
        let output = match (row.get::<_, Option<i64>>("output_device")?, row.get::<_, Option<i64>>("output_inode")?) {
            (Some(device), Some(inode)) => {
                Some(output_file::JobOutputIdentity { device: device as u64, inode: inode as u64 })
            }
            _ => None,
        };
        Ok(StoredJobSettings {
            // A name need not be UTF-8; SQLite keeps its bytes.
            directory: os_str(row.get_ref("directory")?.as_bytes()?).into_owned().into(),
            command: stored_command_line::from_json(&row.get::<_, String>("command")?).unwrap_or_default(),
            total: row.get::<_, Option<i64>>("total")?.map(|total| total as u64),
            output,
            output_start: number(row, "output_start")?,
            output_end: number(row, "output_end")?,
            last_commit: number(row, "last_commit")?,
            durable_commit: number(row, "durable_commit")?,
            durable_output: number(row, "durable_output")?,
            archive: match row.get::<_, Option<u32>>("archive_number")? {
                Some(file) => Some(ArchivePosition { number: file, offset: number(row, "archive_end")? }),
                None => None,
            },
            durable_archive: ArchivePosition {
                number: row.get("durable_archive_number")?,
                offset: number(row, "durable_archive_end")?,
            },
            boot: row.get("boot")?,
            is_clean: row.get("is_clean")?,
            created: number(row, "created")?,
            refresh_round: number(row, "refresh_round")?,
            refresh_is_complete: row.get("refresh_is_complete")?,
        })
    });
    let settings = settings.optional().map_err(|error| database_error(path, error))?;
    settings.ok_or_else(|| job_error(path, "it has no settings; name another file"))
}

/// Returns an identifier of the current boot of this computer; `None` if it is unknown.
pub(super) fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
