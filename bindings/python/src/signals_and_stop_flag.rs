//! The two methods to end a waiting call: Python's signal handlers, and [`StopFlag`], which another
//! thread sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::interrupt_callback::InterruptCallback;
use pyo3::prelude::*;

/// A flag that ends the calls to which it was passed, within about 50 ms. It is for callers that
/// cannot interrupt the waiting thread, such as a cancelled asyncio task.
#[pyclass(frozen, module = "haul._haul")]
#[derive(Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

#[pymethods]
impl StopFlag {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Sets the flag. This ends the current and future calls to which the flag was passed. Never
    /// waits.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns a callback for the engine's waits. The callback runs signal handlers, and ends the
    /// wait if a handler has raised an exception or this flag is set.
    pub(crate) fn or_signals(&self) -> InterruptCallback {
        let stop = self.clone();
        InterruptCallback::new(move || stop.is_set() || run_signal_handlers() || stop.is_set())
    }
}

/// Returns the function that the engine calls during a wait. The function runs Python's signal
/// handlers, which Python allows only in its main thread. If a handler raises an exception, such as
/// `KeyboardInterrupt`, the waiting call ends and raises it.
pub(crate) fn signals() -> InterruptCallback {
    InterruptCallback::new(run_signal_handlers)
}

/// Runs the handlers of pending signals. Returns `true` if the call has to end, because a handler
/// raised an exception or because the interpreter has ended.
pub(crate) fn run_signal_handlers() -> bool {
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
