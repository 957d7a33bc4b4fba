//! The exception for errors of the engine. `haul.exceptions` converts it into the exceptions of
//! requests.
//!
//! ```python
//! try: client.send(options, "GET", "http://127.0.0.1:9/")
//! except EngineError as error: kind, message, url, phase = error.args[:4]
//! ```

use std::cell::RefCell;

use haul::{Error, ErrorKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    haul._haul,
    EngineError,
    PyException,
    "A failure that the engine reports: (kind, message, url, phase, code, name). The code is curl's exit code, and the \
     name that of the failure in records. A failed request of a batch has the attribute transfer."
);

/// The phase of a request in which it failed. The Python package requests has a separate exception
/// for each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailurePhase {
    /// The request was not sent, because no connection could be made.
    Connect,
    /// The request was sent, but the head of the response did not arrive.
    Wait,
    /// The body did not arrive completely.
    Body,
}

impl FailurePhase {
    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Wait => "wait",
            Self::Body => "body",
        }
    }
}

/// Creates the exception for an error of the engine. The exception's attribute `kind` is the name
/// of the error's `ErrorKind`. If a TLS 1.3 server refuses the client's certificate after the
/// handshake, `kind` is `TlsRefused`.
pub(crate) fn to_exception(error: &Error, phase: FailurePhase) -> PyErr {
    let kind = match error.kind() {
        ErrorKind::Receive if error.is_tls() => "TlsRefused".to_owned(),
        kind => format!("{kind:?}"),
    };
    let url = error.url().map(str::to_owned);
    EngineError::new_err((kind, error.cause(), url, phase.name(), error.exit_code(), error.kind().name()))
}

/// Creates the exception for a request that haul refuses before it sends anything.
pub(crate) fn refused_request_error(kind: ErrorKind, message: impl Into<String>) -> PyErr {
    to_exception(&Error::new(kind, message), FailurePhase::Connect)
}

thread_local! {
    /// The exception that a signal handler raised in this thread while a call waited; `None` if no
    /// handler raised one.
    static RAISED_INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores the exception of a signal handler. The waiting call ends and raises this exception.
pub(crate) fn keep_interrupt(raised: PyErr) {
    RAISED_INTERRUPT.with_borrow_mut(|kept| *kept = Some(raised));
}

/// Returns the exception that a signal handler raised in this thread ([`keep_interrupt`]), if
/// `error` says that the call was interrupted; otherwise `None`. In both cases, the stored
/// exception is removed.
pub(crate) fn interrupted(error: &Error) -> Option<PyErr> {
    let raised = RAISED_INTERRUPT.with_borrow_mut(Option::take);
    raised.filter(|_| error.kind() == ErrorKind::Interrupted)
}

/// Creates the exception for a request that failed before its response. If the program raised an
/// exception while it produced the request body, returns that exception (`raised`) instead.
pub(crate) fn send_failure(error: &Error, raised: Option<PyErr>) -> PyErr {
    let phase = if error.is_connect() { FailurePhase::Connect } else { FailurePhase::Wait };
    raised.or_else(|| interrupted(error)).unwrap_or_else(|| to_exception(error, phase))
}
