//! Removes the temporary files that killed runs of a job have left beside its output files.
//!
//! The name of a temporary file contains the ID of its process: `.haul-1234-Xy7aBc.part`. A file is
//! removed if that process was a run of this job that did not record its end, and no process has
//! this ID now. A directory is searched when the first URL with a file in it has been fetched.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use haul::sink::temporary_and_final_names::{TEMPORARY_SUFFIX, directory_of, temporary_prefix};
use rusqlite::{Connection, params};

use super::job_error_from_sqlite_or_io::DatabaseResult;
use crate::system::process_liveness_and_limits::is_running;

/// The maximum number of earlier runs whose temporary files are removed.
const MAX_RUNS: i64 = 1000;

/// The maximum number of directories in which temporary files are removed.
const MAX_DIRECTORIES: usize = 64 << 10;

/// The temporary files that earlier runs of a job may have left because they were killed.
pub(super) struct LeftoverFiles {
    /// The prefixes of the names of temporary files, one for each killed run.
    prefixes: Vec<String>,
    /// The hashes of the directories that were already searched.
    directories: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl LeftoverFiles {
    /// Returns the temporary files of the runs before `run` that were killed.
    pub(super) fn from_earlier_runs(connection: &Connection, run: i64) -> DatabaseResult<Self> {
        let select = "SELECT DISTINCT process FROM run WHERE ended IS NULL AND id < ?1 ORDER BY id DESC LIMIT ?2";
        let mut select = connection.prepare(select)?;
        let processes = select.query_map(params![run, MAX_RUNS], |row| row.get::<_, i32>(0))?;
        let processes = processes.collect::<DatabaseResult<Vec<i32>>>()?;
        Ok(Self::from_processes(processes.into_iter().filter(|&process| !is_running(process))))
    }

    fn from_processes(processes: impl Iterator<Item = i32>) -> Self {
        let prefixes = processes.map(|process| temporary_prefix(process.unsigned_abs())).collect();
        Self { prefixes, directories: Mutex::default(), hasher: RandomState::new() }
    }

    /// Removes the leftover temporary files in the directory of an output file, once for each
    /// directory.
    pub(super) fn remove_beside(&self, file: &Path) {
        if self.prefixes.is_empty() {
            return;
        }
        let directory = directory_of(file);
        let hash = self.hasher.hash_one(directory);
        {
            let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
            if directories.len() >= MAX_DIRECTORIES || !directories.insert(hash) {
                return;
            }
        }
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(TEMPORARY_SUFFIX) && self.prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                // What cannot be removed does no harm.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_ended_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let names = [".haul-12-abcdef.part", ".haul-123-abcdef.part", ".haul-12-abcdef", "page", ".page.haul-part"];
        names.iter().for_each(|name| std::fs::write(file(name), "").unwrap());
        let files = LeftoverFiles::from_processes([12].into_iter());
        files.remove_beside(&file("page"));
        let left: Vec<bool> = names.iter().map(|name| file(name).exists()).collect();
        assert_eq!(left, [false, true, true, true, true]);
        std::fs::write(file(names[0]), "").unwrap();
        files.remove_beside(&file("other"));
        assert!(file(names[0]).exists(), "a directory is examined once");
        assert!(is_running(std::process::id().cast_signed()) && !is_running(0));
    }
}
