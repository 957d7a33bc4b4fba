//! One processor for a client and a server that take turns.
//!
//! Where each waits for the other, a second processor does none of the work. But whether the scheduler puts them on one or on
//! two, and what it takes to wake the other, which in a virtual machine is a call to its host, then decides more than
//! the clients do, and differs from process to process.
//!
//! ```ignore
//! let _turns = OneCore::hold()?;
//! let server = Server::start(site, root, work, embedded)?;
//! ```

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// While it lives, this thread, and every process and thread that it starts, has one processor.
pub(crate) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    /// The first of those that this thread may run on.
    pub(crate) fn hold() -> io::Result<OneCore> {
        let before = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        if let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)) {
            one.set(first);
        }
        sched_setaffinity(None, &one)?;
        Ok(OneCore { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // Those that it had before cannot all have gone.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_while_held_and_all_after() {
        let count = || sched_getaffinity(None).unwrap().count();
        let before = count();
        let held = OneCore::hold().unwrap();
        assert_eq!(count(), 1);
        assert_eq!(std::thread::spawn(count).join().unwrap(), 1, "threads started meanwhile");
        drop(held);
        assert_eq!(count(), before);
    }
}
