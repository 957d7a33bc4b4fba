//! Ends calls that wait: Python's signal handlers do so, and another thread ([`Stop`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::interrupt::Interrupt;
use pyo3::prelude::*;

/// Ends the calls that it was passed to, within some 50 ms: for callers that cannot interrupt the waiting thread, such as a cancelled task.
#[pyclass(frozen, module = "haul._haul")]
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends them from now on. Never waits.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The hook that checks signals and this flag. It is checked once more after a handler, which may have set it.
    pub(crate) fn or_signals(&self) -> Interrupt {
        let stop = self.clone();
        Interrupt::new(move || stop.is_set() || has_signal() || stop.is_set())
    }
}

/// The hook that is asked while a call waits: Python's own signal handlers, which run only in its main thread. What one raises, such as
/// `KeyboardInterrupt`, ends the call and is raised by it.
pub(crate) fn signals() -> Interrupt {
    Interrupt::new(has_signal)
}

/// Runs the handlers of pending signals. Returns whether the call has to end: one has raised something, or the interpreter is gone, and nobody waits
/// for the result.
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
