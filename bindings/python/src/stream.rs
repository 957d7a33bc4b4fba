//! A body that the program reads piece by piece.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use haul::body::BodyDecoder;
use haul::{Error, ErrorKind, Head, Response, Version};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Phase, failure, interrupted};
use crate::sink::decoder_for;
use crate::stop::{Stop, has_signal};

/// Default number of bytes of a body that are read at once.
const PIECE: usize = 64 << 10;

/// Time that a reader waits for another reader before it checks for signals.
const TICK: Duration = Duration::from_millis(50);

/// A body being received. If it is closed before its end, its connection is closed, too.
///
/// A reader takes the state out of its place meanwhile, so that no lock is held while waiting for the network: a thread that closes the stream, or
/// asks whether it has ended, holds the interpreter, and must not wait for the network with it.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Stream {
    /// Bytes are returned as they arrive, not held back until there are as many as requested.
    is_prompt: bool,
    /// Set when the stream is closed, so that a reader returns soon.
    stop: Stop,
    /// The body was read to its end, and all of it was taken.
    is_over: AtomicBool,
    place: Mutex<Place>,
    /// A reader has returned.
    returned: Condvar,
}

struct Place {
    /// `None` during a read, and once it is closed.
    state: Option<State>,
    reader: Option<ThreadId>,
}

struct State {
    response: Option<Response>,
    decoder: Option<BodyDecoder>,
    /// Bytes that were decoded or received and not read yet, and how many of them were taken.
    ready: Vec<u8>,
    at: usize,
    ended: bool,
    /// Some of it was decoded.
    decodes: bool,
    /// The failure that ended the body early. Further reads report it again instead of the end.
    broken: Option<Broken>,
    /// The stream's.
    stop: Stop,
}

struct Broken {
    kind: ErrorKind,
    cause: String,
    url: Option<String>,
}

impl Broken {
    fn by(error: &Error) -> Self {
        Self { kind: error.kind(), cause: error.cause(), url: error.url().map(str::to_owned) }
    }

    fn again(&self) -> io::Error {
        let error = Error::new(self.kind, self.cause.clone());
        io::Error::other(if let Some(url) = &self.url { error.with_url(url.clone()) } else { error })
    }
}

impl Stream {
    /// `stop` is that of the request.
    pub(crate) fn new(response: Response, stop: Stop) -> Self {
        let decoder = if response.content_length() == Some(0) { None } else { decoder_for(response.head()) };
        let is_prompt = is_of_chunks(response.head());
        let state = State {
            response: Some(response),
            decoder,
            ready: Vec::new(),
            at: 0,
            ended: false,
            decodes: false,
            broken: None,
            stop: stop.clone(),
        };
        Self {
            is_prompt,
            stop,
            is_over: AtomicBool::new(false),
            place: Mutex::new(Place { state: Some(state), reader: None }),
            returned: Condvar::new(),
        }
    }

    /// Never held during a wait.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads with the interpreter released. A closed stream has nothing left to read.
    fn reading<'py>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&mut State) -> io::Result<Vec<u8>> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let Some(mut state) = self.take()? else { return Ok(Vec::new()) };
            let bytes = read(&mut state);
            self.put_back(state);
            bytes
        });
        given(py, bytes)
    }

    /// Takes the state out of its place, waiting for another reader. `None` if it is closed.
    fn take(&self) -> io::Result<Option<State>> {
        let me = thread::current().id();
        let mut place = self.place();
        while !self.stop.is_set() {
            if let Some(state) = place.state.take() {
                place.reader = Some(me);
                return Ok(Some(state));
            }
            if place.reader == Some(me) {
                // A signal handler, which would wait for the thread that runs it.
                return Err(io::ErrorKind::Deadlock.into());
            }
            let (again, waited) = self.returned.wait_timeout(place, TICK).unwrap_or_else(PoisonError::into_inner);
            place = again;
            if waited.timed_out() {
                drop(place);
                if has_signal() {
                    return Err(ended("it was interrupted"));
                }
                place = self.place();
            }
        }
        Ok(None)
    }

    fn put_back(&self, state: State) {
        let is_over = state.is_over();
        self.is_over.store(is_over, Ordering::Release);
        let mut place = self.place();
        place.reader = None;
        // A close meanwhile found nothing to release.
        let closed = if self.stop.is_set() { Some(state) } else { place.state.replace(state) };
        drop(place);
        self.returned.notify_one();
        drop(closed);
    }
}

#[pymethods]
impl Stream {
    /// The next bytes: `size` of them unless the body ends before; without a size, the rest. Decoded as the response says, if `decode`.
    #[pyo3(signature = (size=None, decode=true))]
    fn read<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.reading(py, |state| state.take(size.unwrap_or(usize::MAX), decode))
    }

    /// The next bytes, as many as have arrived, but at most `size`; empty at the end.
    #[pyo3(signature = (size=None, decode=true))]
    fn read_some<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.reading(py, |state| state.take_some(size, decode))
    }

    /// The next piece when iterating over the body: with chunks, or without a size, as many bytes as have arrived; otherwise `size` of them. As in
    /// requests, since a chunk may be an event that somebody waits for.
    #[pyo3(signature = (size=None, decode=true))]
    fn piece<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.reading(py, |state| match size {
            Some(size) if !self.is_prompt => state.take(size, decode),
            _ => state.take_some(size, decode),
        })
    }

    /// Releases the connection, which is reused if the body was read to its end. Never waits: a concurrent reader is told that it was closed, and
    /// releases it.
    fn close(&self, py: Python<'_>) {
        self.stop.set();
        let state = self.place().state.take();
        self.returned.notify_all();
        py.detach(|| drop(state));
    }

    /// Returns whether the body has ended.
    #[getter]
    fn ended(&self) -> bool {
        self.stop.is_set() || self.is_over.load(Ordering::Acquire)
    }
}

/// Returns whether the server sends data as it is produced: in chunks, or in HTTP/2 frames without
/// a length.
fn is_of_chunks(head: &Head) -> bool {
    match head.version() {
        Version::Http2 => head.get("content-length").is_none(),
        _ => head.get_all("transfer-encoding").any(|codings| codings.to_ascii_lowercase().ends_with(b"chunked")),
    }
}

/// Makes the error of a read that ends early.
fn ended(why: &str) -> io::Error {
    io::Error::other(Error::new(ErrorKind::Interrupted, why))
}

fn given(py: Python<'_>, bytes: io::Result<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    match bytes {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(PyMemoryError::new_err(())),
        Err(error) if error.kind() == io::ErrorKind::Deadlock => {
            Err(PyRuntimeError::new_err("the body is being read by this very thread"))
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(PyRuntimeError::new_err(error.to_string())),
        Err(error) => {
            let error = match error.downcast::<Error>() {
                Ok(error) => error,
                Err(other) => Error::with_source(ErrorKind::Receive, "the body cannot be read", other),
            };
            Err(interrupted(&error).unwrap_or_else(|| failure(&error, Phase::Body)))
        }
    }
}

impl State {
    /// Makes `size` bytes ready, if there are that many, and takes them.
    fn take(&mut self, size: usize, decode: bool) -> io::Result<Vec<u8>> {
        self.turn(decode)?;
        while self.ready.len() - self.at < size && self.more(decode)? {}
        Ok(self.split(size))
    }

    /// Makes some bytes ready, if any are to come, and takes at most `size` of them.
    fn take_some(&mut self, size: Option<usize>, decode: bool) -> io::Result<Vec<u8>> {
        self.turn(decode)?;
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

    /// All of it was taken.
    fn is_over(&self) -> bool {
        self.ended && self.broken.is_none() && self.ready.len() == self.at
    }

    /// Bytes that were received and not read before are decoded if the rest is to be. The other way round there is no way back, as in urllib3.
    fn turn(&mut self, decode: bool) -> io::Result<()> {
        if self.decoder.is_none() || decode == self.decodes || self.is_over() {
            return Ok(());
        }
        if self.decodes {
            let message = "what follows was decoded: it cannot be read as it was sent any more";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let received = self.ready.split_off(self.at);
        self.ready.clear();
        self.at = 0;
        self.decodes = !received.is_empty();
        let pushed = push(&received, &mut self.ready, self.decoder.as_mut());
        self.unless_broken(pushed)
    }

    /// Takes the next received bytes; `false` at the end.
    fn more(&mut self, decode: bool) -> io::Result<bool> {
        if let Some(broken) = &self.broken {
            return Err(broken.again());
        }
        let received = self.receive(decode);
        self.unless_broken(received)
    }

    fn unless_broken<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &outcome
            && let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>())
        {
            self.broken = Some(Broken::by(error));
            self.ended = true;
            self.response = None;
        }
        outcome
    }

    fn receive(&mut self, decode: bool) -> io::Result<bool> {
        let Some(response) = self.response.as_mut().filter(|_| !self.ended) else { return Ok(false) };
        let filled = if self.stop.is_set() { Err(ended("the response was closed")) } else { response.fill_buf() };
        let came = match filled {
            Ok(came) => came,
            Err(error) => {
                self.ended = true;
                self.response = None;
                return Err(if self.stop.is_set() { ended("the response was closed") } else { error });
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
        push(&came[..n], &mut self.ready, self.decoder.as_mut().filter(|_| decode))?;
        self.decodes |= decode;
        response.consume(n);
        Ok(true)
    }
}

fn push(received: &[u8], ready: &mut Vec<u8>, decoder: Option<&mut BodyDecoder>) -> io::Result<()> {
    let mut add = |piece: &[u8]| {
        ready.extend_from_slice(piece);
        Ok(())
    };
    match decoder {
        Some(decoder) => decoder.push(received, &mut add),
        None => add(received),
    }
    .map_err(io::Error::other)
}
