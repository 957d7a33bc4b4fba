//! Makes the engine's errors from errors of SQLite and of system calls on a job's file.

use std::path::Path;

use haul::{Error, ErrorKind};

/// The result of a call of SQLite, with the error type of `rusqlite`.
pub(super) type DatabaseResult<T> = Result<T, rusqlite::Error>;

/// Returns an error about a job: the name of its file, and the reason.
pub(super) fn job_error(file: &Path, reason: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::Setup, format!("{}: {}", file.display(), reason.as_ref()))
}

/// Returns the error of a call of SQLite that read or wrote the job's file.
pub(super) fn database_error(file: &Path, error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let (kind, reason) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => (ErrorKind::Setup, "it is no job of haul"),
        Some(ErrorCode::DatabaseCorrupt) => (ErrorKind::Read, "the job's file is damaged; restore it, or begin again"),
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Write, "there is no space for the job's file; free some, and run the job again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Setup, "another program holds the job's file open for writing")
        }
        _ => (ErrorKind::Write, "the job's file cannot be read or written"),
    };
    Error::with_source(kind, format!("{}: {reason}", file.display()), error)
}

/// Returns the error of a system call on the job's file.
pub(super) fn io_error(file: &Path, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Write, format!("failed to open the job {}", file.display()), error)
}

/// Returns the error for output, files or a write-ahead log that could not be synced.
pub(super) fn sync_error(job: &Path, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Write, format!("failed to sync what the job {} has written", job.display()), error)
}
