//! What ends a call that waits: Python's handlers of signals, and the word of another thread ([`Stop`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::interrupt::Interrupt;
use pyo3::prelude::*;

/// Ends the calls that were given it, within some 50 ms. For who cannot interrupt the thread that waits: a task that is cancelled.
#[pyclass(frozen, module = "haul._haul")]
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// From now on. Never waits.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The hook that looks at signals and at this. It is looked at once more behind a handler, which may have set it.
    pub(crate) fn or_signals(&self) -> Interrupt {
        let stop = self.clone();
        Interrupt::new(move || stop.is_set() || has_signal() || stop.is_set())
    }
}

/// The hook that is asked while a call waits: Python's own handlers of signals, which run in its main thread alone. What one
/// raises, such as `KeyboardInterrupt`, ends the call and is raised by it.
pub(crate) fn signals() -> Interrupt {
    Interrupt::new(has_signal)
}

/// Runs the handlers of signals that have come. Whether the call is to end: one has raised something, or the interpreter is gone, and
/// with it who waits for the result.
pub(crate) fn has_signal() -> bool {
    let checked = Python::try_attach(|py| py.check_signals());
    match checked {
        Some(Ok(())) => false,
        Some(Err(raised)) => {
            crate::error::keep_interrupt(raised);
            true
        }
        None => true,
    }
}
