//! The checks of a job's file, of its directory, and of the files that SQLite creates beside it.
//!
//! ```text
//!  NAME            the job                     ◀─┐ SQLite copies their content
//!  NAME-journal    a transaction to roll back  ──┤ into the job, and trusts
//!  NAME-wal, -shm  transactions to add         ──┘ them whoever owns them
//! ```
//!
//! So a user who can create files in the directory can replace the job and its command line. The
//! sticky bit does not prevent that, because it protects only existing files. A check of the files
//! alone would not suffice, because they could appear between the check and the time when SQLite
//! opens them.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haul::Result;
use haul::sink::temporary_and_final_names::directory_of;

use rustix::fs::{Access, access};

use super::job_error_from_sqlite_or_io::{io_error, job_error};

/// The suffixes of the files that SQLite creates next to a database.
const DATABASE_FILE_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Refuses a job in a directory in which other users can create files, and a job whose SQLite files
/// (journal, write-ahead log) other users could have written.
///
/// This user, root and, if the job exists, its owner are trusted. (The owner is another user only
/// if root reads the job.) The members of a group that can write to the directory are trusted, too.
///
/// # Errors
/// The error names the path, the reason and the remedy.
pub(super) fn check_directory(job: &Path) -> Result<()> {
    // SQLite follows links to the job and keeps its files beside the file at their end.
    let real = match fs::canonicalize(job) {
        Ok(real) => real,
        Err(_) => {
            let directory = directory_of(job);
            fs::canonicalize(directory).map_err(|error| io_error(job, error))?.join(job.file_name().unwrap_or_default())
        }
    };
    let mut trusted = vec![0, rustix::process::geteuid().as_raw()];
    trusted.extend(fs::metadata(&real).map(|metadata| metadata.uid()));
    let directory = directory_of(&real);
    let metadata = fs::metadata(directory).map_err(|error| io_error(job, error))?;
    let cause = if !trusted.contains(&metadata.uid()) {
        Some(format!("belongs to another user ({})", metadata.uid()))
    } else {
        (metadata.mode() & 0o002 != 0).then(|| "is writable for all users".to_owned())
    };
    if let Some(cause) = cause {
        let text = format!(
            "its directory {} {cause}, who could replace the job and its command line; put the job into a directory of \
             your own",
            directory.display()
        );
        return Err(job_error(job, text));
    }
    DATABASE_FILE_SUFFIXES.iter().try_for_each(|suffix| check_beside(job, &path_with_suffix(&real, suffix), &trusted))
}

/// Returns the path of the file with this suffix that SQLite creates beside a job's file.
fn path_with_suffix(job: &Path, suffix: &str) -> PathBuf {
    let mut name = job.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn check_beside(job: &Path, path: &Path, trusted: &[u32]) -> Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(path, error)),
    };
    let cause = if metadata.is_symlink() {
        "is a link".to_owned()
    } else if !metadata.is_file() {
        "is no regular file".to_owned()
    } else if !trusted.contains(&metadata.uid()) {
        format!("belongs to another user ({})", metadata.uid())
    } else if metadata.mode() & 0o022 != 0 {
        "is writable for others".to_owned()
    } else {
        return Ok(());
    };
    let text = format!(
        "{} beside it {cause} and could replace its command line; see who made it, and remove it",
        path.display()
    );
    Err(job_error(job, text))
}

/// Refuses to read a job that belongs to another user. root may read any user's job.
pub(super) fn check_reader(job: &Path, metadata: &Metadata) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user && user != 0 {
        let owner = metadata.uid();
        return Err(job_error(job, format!("it belongs to another user ({owner}); its command line is theirs")));
    }
    Ok(())
}

/// Refuses to run a job that another user owns or could have written, because that user could have
/// changed its command line.
pub(super) fn check_owner(job: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let owner = metadata.uid();
        return Err(job_error(job, format!("it belongs to another user ({owner}), and so does its command line")));
    }
    if metadata.len() > 0 && metadata.mode() & 0o022 != 0 {
        return Err(job_error(job, "other users can write it, and so its command line; 'chmod 600' makes it private"));
    }
    Ok(())
}

/// Returns true if this process can create files in the directory of the job's file `job`.
pub(super) fn can_write_beside(job: &Path) -> bool {
    access(directory_of(job), Access::WRITE_OK).is_ok()
}
