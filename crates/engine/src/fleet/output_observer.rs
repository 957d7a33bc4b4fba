//! The observer of a fleet's output: it learns when the content of a transfer has left the fleet,
//! and how much of it has been written. A program that can be killed and started again notes it.
//!
//! ```text
//!  transfer ─▶ report ─▶ window ─▶ output's buffer ─▶ descriptor
//!                            │ passed_on(stage, number, end)  │ written(end)
//! ```

use std::fmt;

/// Observes the output of a fleet ([`FleetOptions::output_observer`](super::FleetOptions)). Workers
/// call the methods while they hold a lock of the fleet, so a method must not wait for the fleet.
pub trait OutputObserver: Send + Sync {
    /// Reports that everything that belongs to a transfer has been passed on: its body, its values
    /// and the text of its report. `stage` and `number` are those of its
    /// [`FleetJob`](super::FleetJob). In the last stage, `end` is the number of bytes that the fleet
    /// has passed to its output so far, which may still wait in the output's buffer. In other stages
    /// `end` is 0, and the next stage has the values.
    fn passed_on(&self, stage: usize, number: u64, end: u64);

    /// Reports that the first `end` bytes of the output have been written to its descriptor.
    fn written(&self, end: u64);
}

impl fmt::Debug for dyn OutputObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputObserver(..)")
    }
}

/// The progress of a stage's sink in the output of the fleet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputPosition {
    /// The number of bytes that the sink has received.
    pub(super) passed: u64,
    /// The number of bytes that the sink has written to the descriptor of the output.
    pub(super) written: u64,
}
