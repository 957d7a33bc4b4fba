//! Raises the soft limit on open files, for a run of many URLs.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard limit, because a run over many hosts keeps a
/// connection to each host. If the system refuses, the run keeps fewer connections.
pub(super) fn raise_soft_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
