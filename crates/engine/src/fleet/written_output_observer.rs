//! The observer of a fleet's output. It learns when all content of a transfer has been passed to
//! the output, and how many bytes of the output have been written. A program that can be killed and
//! restarted records this.
//!
//! ```text
//!  transfer ─▶ report ─▶ window ─▶ output's buffer ─▶ descriptor
//!                            │ on_passed_to_sink(stage, number, end)  │ on_written(end)
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// An observer of the output of a fleet ([`FleetOptions::output_observer`](super::FleetOptions)).
/// Worker threads call the methods while they hold a lock of the fleet. Therefore, a method must
/// not wait for the fleet.
pub trait OutputObserver: Send + Sync {
    /// Reports that all output of a transfer has been passed to the output: its body, the values
    /// extracted from its body, and the text of its report. `stage` is the index of the transfer's
    /// stage, and `number` the transfer's number within that stage. `end` is the number of bytes
    /// that the fleet has passed to its output so far. Some of them may still be in the output's
    /// buffer.
    fn on_passed_to_sink(&self, stage: usize, number: u64, end: u64);

    /// Reports that the first `end` bytes of the fleet's output have been written to the output's
    /// descriptor.
    fn on_written(&self, end: u64);
}

impl fmt::Debug for dyn OutputObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputObserver(..)")
    }
}

/// The number of bytes that a fleet has passed to its output, and the number of these bytes that
/// were written to the output's descriptor. The output windows (ordered queues of bodies) of all
/// stages of the fleet share this value.
#[derive(Debug, Default)]
pub(super) struct FleetOutputProgress {
    passed: AtomicU64,
    written: AtomicU64,
}

impl FleetOutputProgress {
    /// Sets the total number of bytes that were passed to the output, and the number of these bytes
    /// that were written to its descriptor.
    pub(super) fn set(&self, passed: u64, written: u64) {
        self.passed.store(passed, Ordering::Relaxed);
        self.written.store(written, Ordering::Relaxed);
    }

    pub(super) fn passed_bytes(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}
