//! A body that the program reads piece by piece.

use std::io::{self, BufRead};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul::body::Decoder;
use haul::{Head, Response, Version};
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
    /// Whether its bytes are given as they come, and not held back until there are as many as were asked for.
    is_prompt: bool,
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
        let is_prompt = is_of_chunks(response.head());
        let state = State { response: Some(response), decoder, ready: Vec::new(), at: 0, ended: false };
        Self { is_prompt, state: Mutex::new(state) }
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

    /// The next bytes, as many as have come, but at most `size`; none at the end.
    #[pyo3(signature = (size=None, decode=true))]
    fn read_some<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.state().take_some(size, decode));
        given(py, bytes)
    }

    /// The next piece for who goes through the body: of chunks, or without a size, as many bytes as have come; else `size` of
    /// them. So has requests it: a chunk may be an event that somebody waits for.
    #[pyo3(signature = (size=None, decode=true))]
    fn piece<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| match size {
            Some(size) if !self.is_prompt => self.state().take(size, decode),
            _ => self.state().take_some(size, decode),
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

/// Whether the server sends as it has something to send: in chunks, or in HTTP/2's frames without a length.
fn is_of_chunks(head: &Head) -> bool {
    match head.version() {
        Version::Http2 => head.get("content-length").is_none(),
        _ => head.get_all("transfer-encoding").any(|codings| codings.to_ascii_lowercase().ends_with(b"chunked")),
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

    /// Sees to it that something is ready, if anything is to come, and takes at most `size` of it.
    fn take_some(&mut self, size: Option<usize>, decode: bool) -> io::Result<Vec<u8>> {
        while size != Some(0) && self.ready.len() == self.at && self.more(decode)? {}
        Ok(self.split(size.unwrap_or(PIECE)))
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
