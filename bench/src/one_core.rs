//! Runs a client and a server that take turns on one processor.
//!
//! A second processor is of no use if client and server wait for each other. The scheduler may
//! still use one or two, and waking the second has a cost (in a virtual machine, a call to its
//! host). That cost would exceed the differences between the clients, and it varies from process to
//! process.
//!
//! ```ignore
//! let _turns = SingleCoreGuard::restrict_thread()?;
//! let server = SiteServer::start(site, root, work, embedded)?;
//! ```

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A guard that holds this thread on one processor until it is dropped. Processes and threads that
/// this thread starts run on that processor, too.
pub(crate) struct SingleCoreGuard {
    before: CpuSet,
}

impl SingleCoreGuard {
    /// Restricts this thread to the first of the processors on which it may run.
    pub(crate) fn restrict_thread() -> io::Result<SingleCoreGuard> {
        let before = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        if let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)) {
            one.set(first);
        }
        sched_setaffinity(None, &one)?;
        Ok(SingleCoreGuard { before })
    }
}

impl Drop for SingleCoreGuard {
    fn drop(&mut self) {
        // At least one of the earlier processors still exists, so this does not fail.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_core_guard_restricts_processors_until_dropped() {
        let count = || sched_getaffinity(None).unwrap().count();
        let before = count();
        let held = SingleCoreGuard::restrict_thread().unwrap();
        assert_eq!(count(), 1);
        assert_eq!(std::thread::spawn(count).join().unwrap(), 1, "threads started meanwhile");
        drop(held);
        assert_eq!(count(), before);
    }
}
