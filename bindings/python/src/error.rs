//! Errors for Python: one exception with the kind, which `haul.exceptions` turns into requests'
//! tree.
//!
//! ```python
//! try: client.send(plan, "GET", "http://127.0.0.1:9/")
//! except Failure as failure: kind, message, url, phase = failure.args
//! ```

use std::cell::RefCell;

use haul::{Error, ErrorKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    haul._haul,
    Failure,
    PyException,
    "What the engine says of a request that failed: (kind, message, url, phase)."
);

/// The progress of a request. Requests distinguishes time limits by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No request was sent, as there was no connection.
    Connect,
    /// The request was sent, but no head was received.
    Wait,
    /// In the body.
    Body,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Wait => "wait",
            Self::Body => "body",
        }
    }
}

/// The exception for an error of the engine. `ErrorKind`'s own names are the kinds; and `TlsRefused`, for what a server of TLS 1.3
/// says to our certificate once the handshake is over.
pub(crate) fn failure(error: &Error, phase: Phase) -> PyErr {
    let kind = match error.kind() {
        ErrorKind::Receive if error.is_tls() => "TlsRefused".to_owned(),
        kind => format!("{kind:?}"),
    };
    Failure::new_err((kind, error.cause(), error.url().map(str::to_owned), phase.name()))
}

/// The exception for a request refused before anything was sent.
pub(crate) fn refused(kind: ErrorKind, message: impl Into<String>) -> PyErr {
    failure(&Error::new(kind, message), Phase::Connect)
}

thread_local! {
    /// The exception that a signal handler raised in this thread while a call waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps what a signal handler raised, for the call that it ends.
pub(crate) fn keep_interrupt(raised: PyErr) {
    RAISED.with_borrow_mut(|kept| *kept = Some(raised));
}

/// Returns the exception that a signal handler raised, if this error stands for one.
pub(crate) fn interrupted(error: &Error) -> Option<PyErr> {
    let raised = RAISED.with_borrow_mut(Option::take);
    raised.filter(|_| error.kind() == ErrorKind::Interrupted)
}
