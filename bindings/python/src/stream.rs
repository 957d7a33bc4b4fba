//! A body that the program reads piece by piece.

use std::io::{self, BufRead};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul::Response;
use haul::body::Decoder;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Phase, failure, interrupted};
use crate::sink::decoder_for;

/// How much of a body is taken at once where nobody says how much.
const PIECE: usize = 64 << 10;

/// A body under way. Closed before its end, it takes its connection along.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Stream {
    state: Mutex<State>,
}

struct State {
    response: Option<Response>,
    decoder: Option<Decoder>,
    /// Bytes that were decoded, or received, and not asked for yet; and how many of them are gone.
    ready: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Stream {
    pub(crate) fn new(response: Response) -> Self {
        let decoder = if response.content_length() == Some(0) { None } else { decoder_for(response.head()) };
        let state = State { response: Some(response), decoder, ready: Vec::new(), at: 0, ended: false };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Stream {
    /// The next bytes: `size` of them unless the body ends before; without a size, all of it. Decoded as the response says, if
    /// that is asked for.
    #[pyo3(signature = (size=None, decode=true))]
    fn read<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.state().take(size.unwrap_or(usize::MAX), decode));
        given(py, bytes)
    }

    /// The next bytes, as many as have come; none at the end.
    #[pyo3(signature = (decode=true))]
    fn read_some<'py>(&self, py: Python<'py>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let mut state = self.state();
            while state.ready.len() == state.at && state.more(decode)? {}
            Ok(state.split(PIECE))
        });
        given(py, bytes)
    }

    /// Lets go of the connection: it serves again if the body was read to its end.
    fn close(&self, py: Python<'_>) {
        let response = {
            let mut state = self.state();
            state.ended = true;
            state.response.take()
        };
        py.detach(|| drop(response));
    }

    /// Whether there is nothing more.
    #[getter]
    fn ended(&self) -> bool {
        let state = self.state();
        state.ended && state.ready.len() == state.at
    }
}

fn given(py: Python<'_>, bytes: io::Result<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    match bytes {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(PyMemoryError::new_err(())),
        Err(error) => {
            let error = match error.downcast::<haul::Error>() {
                Ok(error) => error,
                Err(other) => haul::Error::with_source(haul::ErrorKind::Receive, "the body cannot be read", other),
            };
            Err(interrupted(&error).unwrap_or_else(|| failure(&error, Phase::Body)))
        }
    }
}

impl State {
    /// Sees to it that `size` bytes are ready, if there are so many, and takes them.
    fn take(&mut self, size: usize, decode: bool) -> io::Result<Vec<u8>> {
        while self.ready.len() - self.at < size && self.more(decode)? {}
        Ok(self.split(size))
    }

    fn split(&mut self, size: usize) -> Vec<u8> {
        let end = self.ready.len().min(self.at.saturating_add(size));
        let taken = self.ready[self.at..end].to_vec();
        self.at = end;
        if self.at == self.ready.len() {
            self.ready.clear();
            self.at = 0;
        }
        taken
    }

    /// Takes what has come next; `false` at the end.
    fn more(&mut self, decode: bool) -> io::Result<bool> {
        let Some(response) = self.response.as_mut().filter(|_| !self.ended) else { return Ok(false) };
        let came = match response.fill_buf() {
            Ok(came) => came,
            Err(error) => {
                self.ended = true;
                self.response = None;
                return Err(error);
            }
        };
        if came.is_empty() {
            self.ended = true;
            self.response = None;
            if let Some(decoder) = self.decoder.as_mut().filter(|_| decode) {
                decoder.finish().map_err(io::Error::other)?;
            }
            return Ok(false);
        }
        let n = came.len().min(PIECE);
        if self.at > 0 {
            self.ready.drain(..self.at);
            self.at = 0;
        }
        let ready = &mut self.ready;
        match &mut self.decoder {
            Some(decoder) if decode => decoder
                .push(&came[..n], &mut |piece| {
                    ready.extend_from_slice(piece);
                    Ok(())
                })
                .map_err(io::Error::other)?,
            _ => ready.extend_from_slice(&came[..n]),
        }
        response.consume(n);
        Ok(true)
    }
}
