//! Handles SIGINT and SIGTERM for runs that print something at their end: the statistics of
//! `--stats`, or sorted values.
//!
//! A signal ends any other run at once, without this module. Here the signals are blocked, and a
//! separate thread waits for them. The first signal ends the transfers, and after the last output
//! the process ends by the same signal. A second one ends the process at once. Signals that were
//! ignored when the program started, as in a shell's background job, stay ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use haul::interrupt::Interrupt;
use nix::sys::signal::{SigSet, Signal, raise};

/// The signals that a run waits for.
pub(crate) struct Signals {
    set: SigSet,
    /// The number of the received signal; 0 before one was received.
    caught: Arc<AtomicI32>,
}

impl Signals {
    /// Begins to wait for signals. Returns `None` if all of them are ignored.
    pub(crate) fn watch() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let ignored = ignored(&status)?;
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            if ignored & 1 << (signal as i32 - 1) == 0 {
                set.add(signal);
            }
        }
        set.thread_block().ok()?;
        let caught = Arc::new(AtomicI32::new(0));
        let (waited, seen) = (set, Arc::clone(&caught));
        let started = std::thread::Builder::new().name("haul-signals".to_owned()).spawn(move || {
            while let Ok(signal) = waited.wait() {
                if seen.swap(signal as i32, Ordering::SeqCst) != 0 {
                    end_by(waited, signal);
                }
            }
        });
        if started.is_err() {
            let _ = set.thread_unblock();
            return None;
        }
        Some(Self { set, caught })
    }

    /// Returns a hook that ends every wait once a signal was received.
    pub(crate) fn interrupt(&self) -> Interrupt {
        let caught = Arc::clone(&self.caught);
        Interrupt::new(move || caught.load(Ordering::SeqCst) != 0)
    }

    /// Returns true once a signal was received.
    pub(crate) fn has_come(&self) -> bool {
        self.caught.load(Ordering::SeqCst) != 0
    }

    /// Ends the process by the received signal, if there is one.
    pub(crate) fn end(self) {
        if let Ok(signal) = Signal::try_from(self.caught.load(Ordering::SeqCst)) {
            end_by(self.set, signal);
        }
    }
}

fn end_by(set: SigSet, signal: Signal) {
    let _ = set.thread_unblock();
    let _ = raise(signal);
}

/// Returns the mask of ignored signals in the text of `/proc/self/status`.
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_of_ignored_signals_is_read() {
        assert_eq!(ignored("Name:\thaul\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n"), Some(0x1002));
        assert_eq!(ignored("Name:\thaul\n"), None);
    }
}
