//! The names of the files that SQLite keeps for a job (`--job`): the job's file, and the log and
//! the journal beside it. SQLite reads a log or a journal that it finds into the job. So whoever
//! chooses the content of such a file chooses the command line of the next run.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::system::os_text::{OsStrExt, os_str};

/// The ends of the names of the files that SQLite keeps beside a database.
const SIDE_FILE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The first bytes of an SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The application ID in the header of a job's file, by which a job is recognized: `haul` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x6861_756c;

/// Returns the names of a job's files, each with its role in error messages: `job`, `job-wal`,
/// `job-shm` and `job-journal`. If `job` is a symbolic link to `real`, SQLite uses `real-wal` and
/// so on, and these names are returned, too. The names beside the link are needed so that callers
/// refuse them without [`job_with_file`]. That function would open and close the job, and the close
/// would remove the locks that SQLite holds for this process.
pub(crate) fn files_of_job(job: &Path) -> Vec<(PathBuf, &'static str)> {
    let side_files = |job: &Path| {
        SIDE_FILE_SUFFIXES.map(|suffix| {
            let mut name = job.to_owned().into_os_string();
            name.push(suffix);
            (PathBuf::from(name), "a part of the job")
        })
    };
    let mut files = vec![(job.to_owned(), "the job")];
    files.extend(side_files(job));
    if job.is_symlink()
        && let Ok(linked) = job.canonicalize()
    {
        files.extend(side_files(&linked));
    }
    files
}

/// Returns the existing job to which the file `path` belongs, or would belong if it were created.
/// Returns `None` if the file belongs to no job.
pub(crate) fn job_with_file(path: &Path) -> Option<PathBuf> {
    if is_job(path) { Some(path.to_owned()) } else { job_beside_file(path) }
}

/// Returns the existing job (`--job`) whose log or journal has, or would have, the name `path`: the
/// job `x` for `x-wal`, `x-shm` and `x-journal`. Ignores the case of these suffixes, as some file
/// systems do.
pub(crate) fn job_beside_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.as_bytes();
    let has_suffix = |suffix: &&str| {
        let at = name.len().saturating_sub(suffix.len());
        at > 0 && name[at..].eq_ignore_ascii_case(suffix.as_bytes())
    };
    let suffix = SIDE_FILE_SUFFIXES.into_iter().find(has_suffix)?;
    let job = path.with_file_name(os_str(&name[..name.len() - suffix.len()]));
    is_job(&job).then_some(job)
}

/// Returns true if the file is a job: an SQLite database with haul's application ID. A database of
/// one page without an ID counts as a job, too: the ID and the tables of a new job are at first
/// only in the log beside it.
fn is_job(path: &Path) -> bool {
    // A FIFO is not opened, because that would wait for a writer.
    let Some(length) = path.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len()) else {
        return false;
    };
    let mut header = [0; 100];
    if File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_err() || !header.starts_with(MAGIC) {
        return false;
    }
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => u64::from(size),
    };
    match i32::from_be_bytes([header[68], header[69], header[70], header[71]]) {
        0 => length <= page_size,
        id => id == APPLICATION_ID,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_of_linked_job_are_beside_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::write(dir.join("real"), "").unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        let files: Vec<_> = files_of_job(&dir.join("link")).into_iter().map(|(path, _)| path).collect();
        let names = ["link", "link-wal", "link-shm", "link-journal", "real-wal", "real-shm", "real-journal"];
        assert_eq!(files, names.map(|name| dir.join(name)));
    }

    #[test]
    fn job_file_is_recognized_by_its_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let database = |id: i32, length: usize| {
            let mut bytes = vec![0; length];
            bytes[..16].copy_from_slice(MAGIC);
            bytes[16..18].copy_from_slice(&4096_u16.to_be_bytes());
            bytes[68..72].copy_from_slice(&id.to_be_bytes());
            bytes
        };
        for (name, content) in [
            ("job", database(APPLICATION_ID, 8192)),
            ("new", database(0, 4096)),
            ("other", database(0, 8192)),
            ("short", MAGIC.to_vec()),
            ("text", vec![b'x'; 8192]),
        ] {
            std::fs::write(path(name), content).unwrap();
        }
        for (file, job) in [
            ("job", Some("job")),
            ("job-journal", Some("job")),
            ("new-wal", Some("new")),
            ("new-shm", Some("new")),
            ("new-WAL", Some("new")),
            ("job-journals", None),
            ("job-wal-wal", None),
            ("other-journal", None),
            ("short-wal", None),
            ("text-wal", None),
            ("missing-wal", None),
            ("-wal", None),
        ] {
            assert_eq!(job_with_file(&path(file)), job.map(path), "{file}");
        }
    }
}
