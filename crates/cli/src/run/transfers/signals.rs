//! Handles SIGINT and SIGTERM in runs that print something at their end: the statistics of
//! `--stats`, or sorted values.
//!
//! Other runs do not use this module, and a signal ends them immediately. In this module, the
//! signals are blocked, and a thread waits for them. The first signal ends the transfers; after the
//! last output, the process ends by this signal. A second signal ends the process immediately.
//! Signals that were ignored when the program started, as for a background job of a shell, stay
//! ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use haul::interrupt::InterruptCallback;
use nix::sys::signal::{SigSet, Signal, raise};

/// The signals that this process blocks, and the first one of them that arrived.
pub(crate) struct Signals {
    set: SigSet,
    /// The number of the signal that arrived; 0 if none has.
    caught: Arc<AtomicI32>,
}

impl Signals {
    /// Blocks SIGINT and SIGTERM, and starts the thread that waits for them. Returns `None` if both
    /// are ignored or the thread cannot be started.
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

    /// Returns a function with which the engine ends its waits once a signal has arrived.
    pub(crate) fn interrupt(&self) -> InterruptCallback {
        let caught = Arc::clone(&self.caught);
        InterruptCallback::new(move || caught.load(Ordering::SeqCst) != 0)
    }

    /// Returns a function with which the engine ends its waits once a signal has arrived, or
    /// `must_stop` returns true.
    pub(crate) fn interrupt_or(&self, must_stop: impl Fn() -> bool + Send + Sync + 'static) -> InterruptCallback {
        let caught = Arc::clone(&self.caught);
        InterruptCallback::new(move || caught.load(Ordering::SeqCst) != 0 || must_stop())
    }

    /// Returns true if a signal has arrived.
    pub(crate) fn has_come(&self) -> bool {
        self.caught.load(Ordering::SeqCst) != 0
    }

    /// Ends the process by the signal that has arrived. Does nothing if none has.
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

/// Returns the bit mask of the signals that the process ignores. `status` is the text of
/// `/proc/self/status`. Returns `None` if it has no such mask.
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
