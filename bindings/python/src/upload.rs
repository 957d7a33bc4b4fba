//! Bodies: `bytes` and text, and what a program produces while it is sent (a file, a generator).
//!
//! An exception of the program's own code while it produces the next piece is kept ([`Raised`]) and raised again by the sending call: it is not an
//! error of the network.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use haul::body::upload::Body;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::text::Octets;

/// What the program raised while it produced more.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Takes it.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, error: PyErr) -> io::Error {
        let text = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other(text)
    }
}

/// The body given as a Python object: bytes, text, something with `read`, or an iterable of pieces.
pub(crate) fn body_of(given: &Bound<'_, PyAny>) -> PyResult<(Body, Raised)> {
    let raised = Raised::default();
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok((bytes.as_bytes().into(), raised));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok((text.to_str()?.into(), raised));
    }
    let source = match given.getattr_opt(pyo3::intern!(given.py(), "read"))? {
        // Checked before it is used as bytes: an mmap is sent from its position, as in requests.
        Some(read) => Source::File(read.unbind()),
        None => {
            if let Some(octets) = Octets::of(given) {
                return Ok((octets.into_bytes().into(), raised));
            }
            let pieces = given.try_iter().map_err(|_| {
                PyTypeError::new_err(format!(
                    "a body has to be bytes, text, a file or an iterable, not {}",
                    given.get_type()
                ))
            })?;
            Source::Pieces(pieces.into_any().unbind())
        }
    };
    let reader = Reader { source, rest: Vec::new(), at: 0, raised: raised.clone() };
    Ok((Body::reader(reader), raised))
}

enum Source {
    /// Its `read`.
    File(Py<PyAny>),
    Pieces(Py<PyAny>),
}

struct Reader {
    source: Source,
    /// What was produced but did not fit yet.
    rest: Vec<u8>,
    at: usize,
    raised: Raised,
}

impl Reader {
    /// The next piece; `None` at the end.
    fn next(&self, room: usize) -> io::Result<Option<Vec<u8>>> {
        // The interpreter may be gone: a daemon thread goes on sending while it ends.
        let piece = Python::try_attach(|py| self.piece(py, room).map_err(|error| self.raised.keep(error)));
        piece.unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
    }

    fn piece(&self, py: Python<'_>, room: usize) -> PyResult<Option<Vec<u8>>> {
        let piece = match &self.source {
            Source::File(read) => read.bind(py).call1((room,))?,
            Source::Pieces(pieces) => match pieces.bind(py).cast::<pyo3::types::PyIterator>()?.clone().next() {
                Some(piece) => piece?,
                None => return Ok(None),
            },
        };
        let octets = Octets::of(&piece).ok_or_else(|| {
            PyTypeError::new_err(format!("a piece of a body has to be bytes or text, not {}", piece.get_type()))
        })?;
        let bytes = octets.into_bytes();
        // A file ends with an empty piece; a generator may give one in between.
        Ok(if bytes.is_empty() && matches!(self.source, Source::File(_)) { None } else { Some(bytes) })
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.at == self.rest.len() {
            match self.next(buffer.len())? {
                Some(piece) => (self.rest, self.at) = (piece, 0),
                None => return Ok(0),
            }
        }
        let n = buffer.len().min(self.rest.len() - self.at);
        buffer[..n].copy_from_slice(&self.rest[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
