//! Handles SIGINT and SIGTERM in runs that print something at their end: the statistics of
//! `--stats`, or sorted values. On systems where an unfinished file has a name, signals are also
//! handled in runs that write files, so that no unfinished file remains.
//!
//! Other runs do not use this module, and a signal ends them immediately. In this module, the
//! signals are blocked, and a thread waits for them. The first signal ends the transfers. After the
//! last output is written, the process ends itself with the same signal. A second signal ends the
//! process immediately. Signals that were ignored when the program started, as for a background job
//! of a shell, stay ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use haul::interrupt_callback::{InterruptCallback, is_signal_ignored};
use nix::sys::signal::{SigSet, Signal, raise};

/// The blocked signals SIGINT and SIGTERM, and the first of them that has arrived.
pub(crate) struct BlockedSignals {
    set: SigSet,
    /// The number of the signal that arrived; 0 if none has arrived.
    caught: Arc<AtomicI32>,
}

impl BlockedSignals {
    /// Blocks SIGINT and SIGTERM, and starts the thread that waits for them. Returns `None` if the
    /// thread cannot be started.
    pub(crate) fn install_handlers() -> Option<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            if !is_signal_ignored(signal as i32) {
                set.add(signal);
            }
        }
        set.thread_block().ok()?;
        let caught = Arc::new(AtomicI32::new(0));
        let (waited, seen) = (set, Arc::clone(&caught));
        let started = std::thread::Builder::new().name("haul-signals".to_owned()).spawn(move || {
            while let Ok(signal) = waited.wait() {
                if seen.swap(signal as i32, Ordering::SeqCst) != 0 {
                    raise_default(waited, signal);
                }
            }
        });
        if started.is_err() {
            let _ = set.thread_unblock();
            return None;
        }
        Some(Self { set, caught })
    }

    /// Returns a callback for the engine's waits. The callback returns true, which ends the wait,
    /// if a signal has arrived.
    pub(crate) fn interrupt_callback(&self) -> InterruptCallback {
        let caught = Arc::clone(&self.caught);
        InterruptCallback::new(move || caught.load(Ordering::SeqCst) != 0)
    }

    /// Returns a callback for the engine's waits. The callback returns true, which ends the wait,
    /// if a signal has arrived or `must_stop` returns true.
    pub(crate) fn interrupt_callback_or(
        &self,
        must_stop: impl Fn() -> bool + Send + Sync + 'static,
    ) -> InterruptCallback {
        let caught = Arc::clone(&self.caught);
        InterruptCallback::new(move || caught.load(Ordering::SeqCst) != 0 || must_stop())
    }

    /// Returns true if a signal has arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.caught.load(Ordering::SeqCst) != 0
    }

    /// Ends the process with the signal that has arrived. Does nothing if none has arrived.
    pub(crate) fn end_process_by_signal(self) {
        if let Ok(signal) = Signal::try_from(self.caught.load(Ordering::SeqCst)) {
            raise_default(self.set, signal);
        }
    }
}

fn raise_default(set: SigSet, signal: Signal) {
    let _ = set.thread_unblock();
    let _ = raise(signal);
}
