//! Processes: whether another one runs, and limits of this one.

use rustix::process::{Pid, Resource, getrlimit, setrlimit, test_kill_process};

/// Returns true if a process with this ID exists.
pub(crate) fn is_running(process: i32) -> bool {
    Pid::from_raw(process).is_some_and(|process| test_kill_process(process) != Err(rustix::io::Errno::SRCH))
}

/// Raises the soft limit on open files to the hard limit, because a run over many hosts keeps a
/// connection to each host. If the system refuses, the run keeps fewer connections.
pub(crate) fn raise_open_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
