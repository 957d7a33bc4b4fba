//! `StreamedBody`: a response body that the program reads piece by piece.
//!
//! A thread that waits for the body uses a [`Response`]. An event loop polls an [`AsyncResponse`],
//! which a thread of the engine receives; the descriptor of its batch wakes the event loop
//! (`async_exchange`).

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use haul::body::BodyDecoder;
use haul::response::ResponseInfo;
use haul::{AsyncResponse, Error, ErrorKind, ProtocolVersion, Response, ResponseHead};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::batch::PyBatch;
use crate::bytes_sink::decoder_for;
use crate::error::{FailurePhase, interrupted, to_exception};
use crate::python_str_and_http_bytes::from_latin1;
use crate::received_response::{ConnectionAndTimingFacts, ReceivedResponse, TrailerField, trailer_fields};
use crate::request_body::BodySourceException;
use crate::signals_and_stop_flag::{StopFlag, run_signal_handlers};

/// The default for the maximum number of bytes that a read returns.
const PIECE: usize = 64 << 10;

/// The interval at which a waiting thread runs the handlers of pending signals, such as SIGINT. The
/// thread waits for bytes of the body, or for the end of another thread's read of the same body.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A response body that is being received. Closing it before its end also closes the connection.
///
/// A thread that reads takes the [`StreamedBodyReader`] out of the [`ReaderSlot`], so it holds no
/// lock while it waits for the network. A thread that closes the body, or asks whether the body has
/// ended, holds the interpreter lock and must not wait for the network.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct StreamedBody {
    /// True if the method `piece` returns bytes as they arrive, even fewer than requested. This is
    /// the case for a chunked body.
    returns_early: bool,
    /// The flag that is set when the body is closed. A thread that waits for bytes then stops
    /// waiting.
    stop: StopFlag,
    /// True after the program has read the body to its end.
    is_over: AtomicBool,
    /// True while an event loop waits for more bytes of the body.
    is_awaited: AtomicBool,
    slot: Mutex<ReaderSlot>,
    /// The condition variable that is notified when a thread has put the reader back into its slot.
    returned: Condvar,
    /// The exception that the program raised while it produced the request body.
    exception: BodySourceException,
}

/// The response from which a body is read: one that the reading thread receives itself, or one that
/// a thread of the engine receives.
enum BodySource {
    /// A response that the reading thread itself receives, waiting for the network.
    Waiting(Box<Response>),
    /// A response that a thread of the engine receives, and the waker of the reader.
    Polled(Box<AsyncResponse>, Waker),
}

impl BodySource {
    /// Returns the next bytes of the body; an empty slice at its end. If none have arrived, waits,
    /// or fails with `WouldBlock` for [`BodySource::Polled`].
    fn fill(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Waiting(response) => response.fill_buf(),
            Self::Polled(response, waker) => match response.poll_fill(&mut Context::from_waker(waker)) {
                Poll::Ready(filled) => Ok(if filled? { response.ready() } else { &[] }),
                Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            },
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Waiting(response) => response.consume(amount),
            Self::Polled(response, _) => response.consume(amount),
        }
    }

    fn info(&self) -> &ResponseInfo {
        match self {
            Self::Waiting(response) => response,
            Self::Polled(response, _) => response,
        }
    }
}

/// A waker that unparks a thread, which waits for further bytes of a body.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The place where the reader of a body is kept while no thread reads.
struct ReaderSlot {
    /// The reader of the body; `None` during a read, and after the body was closed.
    reader: Option<StreamedBodyReader>,
    /// The thread that is reading, and has taken the reader out; `None` if no thread is reading.
    taken_by: Option<ThreadId>,
}

/// The reader that receives and decodes the body, and buffers the bytes that the program has not
/// read.
struct StreamedBodyReader {
    /// The response that is being received; `None` after the end of the body.
    response: Option<BodySource>,
    /// The facts about the transfer, as of the end of the body; `None` before the end.
    last_facts: Option<ConnectionAndTimingFacts>,
    /// The trailer fields after the body.
    trailers: Vec<TrailerField>,
    decoder: Option<BodyDecoder>,
    /// The received (and decoded) bytes. The program has read the first `at` of them.
    ready: Vec<u8>,
    at: usize,
    ended: bool,
    /// True after bytes of the body were read with decoding.
    has_decoded: bool,
    /// The failure that ended the body early; `None` without a failure. Further reads report the
    /// failure again.
    failure: Option<SavedEngineError>,
    /// The flag that ends a wait for bytes. It is set when the [`StreamedBody`] is closed.
    stop: StopFlag,
}

/// An error of the engine that can be reported more than once.
struct SavedEngineError {
    kind: ErrorKind,
    cause: String,
    url: Option<String>,
}

impl SavedEngineError {
    fn from_error(error: &Error) -> Self {
        Self { kind: error.kind(), cause: error.cause(), url: error.url().map(str::to_owned) }
    }

    fn to_io_error(&self) -> io::Error {
        let error = Error::new(self.kind, self.cause.clone());
        io::Error::other(if let Some(url) = &self.url { error.with_url(url.clone()) } else { error })
    }
}

impl StreamedBody {
    /// Creates a body from a response and the stop flag of its request.
    pub(crate) fn new(response: Response, stop: StopFlag) -> Self {
        let is_empty = response.content_length() == Some(0);
        let head = response.head().clone();
        Self::from_source(
            BodySource::Waiting(Box::new(response)),
            &head,
            is_empty,
            stop,
            BodySourceException::default(),
        )
    }

    /// Creates a body that an event loop polls. `waker` is woken when a poll may return bytes.
    pub(crate) fn polled(response: AsyncResponse, waker: Waker, exception: BodySourceException) -> Self {
        let is_empty = response.content_length() == Some(0);
        let head = response.head().clone();
        Self::from_source(
            BodySource::Polled(Box::new(response), waker),
            &head,
            is_empty,
            StopFlag::default(),
            exception,
        )
    }

    fn from_source(
        source: BodySource,
        head: &ResponseHead,
        is_empty: bool,
        stop: StopFlag,
        exception: BodySourceException,
    ) -> Self {
        let decoder = if is_empty { None } else { decoder_for(head) };
        let reader = StreamedBodyReader {
            response: Some(source),
            last_facts: None,
            trailers: Vec::new(),
            decoder,
            ready: Vec::new(),
            at: 0,
            ended: false,
            has_decoded: false,
            failure: None,
            stop: stop.clone(),
        };
        Self {
            returns_early: is_chunked(head),
            exception,
            stop,
            is_over: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            slot: Mutex::new(ReaderSlot { reader: Some(reader), taken_by: None }),
            returned: Condvar::new(),
        }
    }

    /// Locks the reader slot. No thread holds this lock while it waits for the network.
    fn slot(&self) -> MutexGuard<'_, ReaderSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the closure `read` without the interpreter lock, and waits until `read` returns bytes.
    /// Returns an empty `bytes` object if the body is closed.
    fn read_detached<'py>(
        &self,
        py: Python<'py>,
        mut read: impl FnMut(&mut StreamedBodyReader) -> io::Result<Vec<u8>> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            loop {
                let Some(mut reader) = self.take_reader()? else { return Ok(Vec::new()) };
                let waker = reader.replace_waker(|| Waker::from(Arc::new(ThreadWaker(thread::current()))));
                let bytes = read(&mut reader);
                waker.map(|waker| reader.replace_waker(|| waker));
                self.put_back(reader);
                match bytes {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        thread::park_timeout(SIGNAL_CHECK_INTERVAL)
                    }
                    bytes => return bytes,
                }
                if run_signal_handlers() {
                    return Err(interruption("it was interrupted"));
                }
            }
        });
        self.result_of(py, bytes)
    }

    /// Returns the next piece of the body for an iterator: exactly `size` bytes, or fewer at the
    /// end. Without a size, or for a chunked body, returns the bytes that have arrived.
    fn take_piece(&self, reader: &mut StreamedBodyReader, size: Option<usize>, decode: bool) -> io::Result<Vec<u8>> {
        match size {
            Some(size) if !self.returns_early => reader.take_exactly(size, decode),
            _ => reader.take_some(size, decode),
        }
    }

    /// Calls the closure `read` without the interpreter lock, and returns the bytes that it reads.
    /// Returns `None` if no bytes have arrived. The body's waker is woken when bytes arrive.
    ///
    /// If the body is closed, does not call `read`, and returns an empty `bytes` object. If the
    /// previous call returned `None`, a caller waits for bytes, and gets an exception instead.
    fn poll_detached<'py>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&mut StreamedBodyReader) -> io::Result<Vec<u8>> + Send,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let was_awaited = self.is_awaited.swap(false, Ordering::AcqRel);
        let bytes = py.detach(|| {
            let Some(mut reader) = self.take_reader()? else {
                return if was_awaited { Err(interruption("the response was closed")) } else { Ok(Vec::new()) };
            };
            let bytes = read(&mut reader);
            self.put_back(reader);
            bytes
        });
        match bytes {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_awaited.store(true, Ordering::Release);
                Ok(None)
            }
            bytes => self.result_of(py, bytes).map(Some),
        }
    }

    /// Converts the result of a read into `bytes`, or into the exception to raise.
    fn result_of<'py>(&self, py: Python<'py>, bytes: io::Result<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
        into_python(py, bytes).map_err(|error| self.exception.take().unwrap_or(error))
    }

    /// Removes the reader from its slot and returns it. Waits while another thread has the reader.
    /// Returns `None` if the body is closed.
    fn take_reader(&self) -> io::Result<Option<StreamedBodyReader>> {
        let me = thread::current().id();
        let mut slot = self.slot();
        while !self.stop.is_set() {
            if let Some(reader) = slot.reader.take() {
                slot.taken_by = Some(me);
                return Ok(Some(reader));
            }
            if slot.taken_by == Some(me) {
                // A signal handler of the reading thread would wait for itself.
                return Err(io::ErrorKind::Deadlock.into());
            }
            let (again, waited) =
                self.returned.wait_timeout(slot, SIGNAL_CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            slot = again;
            if waited.timed_out() {
                drop(slot);
                if run_signal_handlers() {
                    return Err(interruption("it was interrupted"));
                }
                slot = self.slot();
            }
        }
        Ok(None)
    }

    fn put_back(&self, reader: StreamedBodyReader) {
        let is_over = reader.has_ended();
        self.is_over.store(is_over, Ordering::Release);
        let mut slot = self.slot();
        slot.taken_by = None;
        // If the body was closed meanwhile, `close` found no reader to drop.
        let closed = if self.stop.is_set() { Some(reader) } else { slot.reader.replace(reader) };
        drop(slot);
        self.returned.notify_one();
        drop(closed);
    }
}

#[pymethods]
impl StreamedBody {
    /// Returns the next `size` bytes, or fewer at the end of the body. Without a size, returns all
    /// remaining bytes. With `decode`, the content coding is removed.
    #[pyo3(signature = (size=None, decode=true))]
    fn read<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.read_detached(py, |reader| reader.take_exactly(size.unwrap_or(usize::MAX), decode))
    }

    /// Returns the bytes that have arrived, at most `size`. Waits if no byte has arrived. Returns
    /// an empty object at the end.
    #[pyo3(signature = (size=None, decode=true))]
    fn read_some<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.read_detached(py, |reader| reader.take_some(size, decode))
    }

    /// Returns the next piece of the body for an iterator: exactly `size` bytes, or fewer at the
    /// end of the body. Without a size, or for a body of unannounced length, returns the bytes that
    /// have arrived, since the program may need each chunk at once; the package requests does so,
    /// too.
    #[pyo3(signature = (size=None, decode=true))]
    fn piece<'py>(&self, py: Python<'py>, size: Option<usize>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.read_detached(py, |reader| self.take_piece(reader, size, decode))
    }

    /// Returns the next piece of the body, like `piece`, but returns `None` if no bytes have
    /// arrived. When bytes arrive, `PyBatch::woken_tasks` returns the task id that the program
    /// passed to `PyBatch::open` or `attach`. At the end of the body, returns an empty object.
    #[pyo3(signature = (size=None, decode=true))]
    fn poll_piece<'py>(
        &self,
        py: Python<'py>,
        size: Option<usize>,
        decode: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.poll_detached(py, |reader| self.take_piece(reader, size, decode))
    }

    /// Returns the next `size` bytes of the body (fewer at its end), but never waits: returns
    /// `None` if fewer have arrived. Without a size, returns the whole rest of the body.
    #[pyo3(signature = (size=None, decode=true))]
    fn poll_read<'py>(
        &self,
        py: Python<'py>,
        size: Option<usize>,
        decode: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.poll_detached(py, |reader| reader.take_exactly(size.unwrap_or(usize::MAX), decode))
    }

    /// Registers a task of the program (asyncio) that waits for this body. When the next poll of
    /// the body may return bytes, `PyBatch::woken_tasks` of `batch` returns the id `task`.
    fn attach(&self, py: Python<'_>, batch: &PyBatch, task: u64) -> PyResult<()> {
        let waker = batch.batch.task_waker(task);
        let attached = py.detach(|| {
            if let Some(mut reader) = self.take_reader()? {
                reader.replace_waker(|| waker);
                self.put_back(reader);
            }
            Ok(())
        });
        attached.map_err(|error: io::Error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Returns a copy of the response `reply` with the body `body`, which the program has read to
    /// its end from this object. The copy has the trailer fields and the final facts of the
    /// transfer.
    fn complete(&self, reply: &ReceivedResponse, body: Py<PyBytes>) -> ReceivedResponse {
        let mut slot = self.slot();
        let (facts, trailers) = match &mut slot.reader {
            Some(reader) => (reader.last_facts.take(), std::mem::take(&mut reader.trailers)),
            None => (None, Vec::new()),
        };
        drop(slot);
        reply.completed(body, facts, trailers)
    }

    /// Returns the names and values of the trailer fields; an empty list before the end of the
    /// body.
    fn trailers<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyString>)> {
        let trailers = self.slot().reader.as_ref().map(|reader| reader.trailers.clone()).unwrap_or_default();
        trailers.into_iter().map(|(name, value)| (name, from_latin1(py, &value))).collect()
    }

    /// Releases the connection, which can be reused if the body was read to its end. Never waits:
    /// if another thread is reading, that thread releases the connection.
    fn close(&self, py: Python<'_>) {
        self.stop.set();
        let reader = self.slot().reader.take();
        self.returned.notify_all();
        let waker = reader.as_ref().and_then(StreamedBodyReader::waker);
        py.detach(|| drop(reader));
        // An event loop that waits finds that the body is closed.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns whether the program has read the body to its end, or has closed it.
    #[getter]
    fn ended(&self) -> bool {
        self.stop.is_set() || self.is_over.load(Ordering::Acquire)
    }
}

/// Returns true if the length of the body was not announced: the body is sent in HTTP/1.1 chunks,
/// or in frames of HTTP/2 or HTTP/3 without Content-Length.
fn is_chunked(head: &ResponseHead) -> bool {
    match head.version() {
        ProtocolVersion::Http2 | ProtocolVersion::Http3 => head.get("content-length").is_none(),
        _ => head.get_all("transfer-encoding").any(|codings| codings.to_ascii_lowercase().ends_with(b"chunked")),
    }
}

/// Creates the I/O error for a read that was interrupted.
fn interruption(why: &str) -> io::Error {
    io::Error::other(Error::new(ErrorKind::Interrupted, why))
}

/// Converts the result of a read into `bytes`, or into the exception to raise.
fn into_python(py: Python<'_>, bytes: io::Result<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
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
            Err(interrupted(&error).unwrap_or_else(|| to_exception(&error, FailurePhase::Body)))
        }
    }
}

impl StreamedBodyReader {
    /// Returns the waker of a response that the program polls ([`BodySource::Polled`]); `None` for
    /// any other response.
    fn waker(&self) -> Option<Waker> {
        match &self.response {
            Some(BodySource::Polled(_, waker)) => Some(waker.clone()),
            _ => None,
        }
    }

    /// Replaces the waker of a response that the program polls ([`BodySource::Polled`]), and
    /// returns the previous one. For any other response, does nothing and returns `None`.
    fn replace_waker(&mut self, new: impl FnOnce() -> Waker) -> Option<Waker> {
        match &mut self.response {
            Some(BodySource::Polled(_, waker)) => Some(std::mem::replace(waker, new())),
            _ => None,
        }
    }

    /// Receives until `size` bytes are ready or the body ends. Removes and returns them.
    fn take_exactly(&mut self, size: usize, decode: bool) -> io::Result<Vec<u8>> {
        self.switch_decoding(decode)?;
        while self.ready.len() - self.at < size && self.receive_more(decode)? {}
        Ok(self.split(size))
    }

    /// Receives until some bytes are ready or the body ends. Removes and returns at most `size` of
    /// them.
    fn take_some(&mut self, size: Option<usize>, decode: bool) -> io::Result<Vec<u8>> {
        self.switch_decoding(decode)?;
        while size != Some(0) && self.ready.len() == self.at && self.receive_more(decode)? {}
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

    /// Returns whether the body has ended and the program has read all of it.
    fn has_ended(&self) -> bool {
        self.ended && self.failure.is_none() && self.ready.len() == self.at
    }

    /// Prepares for reads with or without decoding. When decoding begins, bytes that were received
    /// but not read are decoded, too. Switching decoding off again is an error, as in urllib3.
    fn switch_decoding(&mut self, decode: bool) -> io::Result<()> {
        if self.decoder.is_none() || decode == self.has_decoded || self.has_ended() {
            return Ok(());
        }
        if self.has_decoded {
            let message = "what follows was decoded: it cannot be read as it was sent any more";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let received = self.ready.split_off(self.at);
        self.ready.clear();
        self.at = 0;
        self.has_decoded = !received.is_empty();
        let pushed = push(&received, &mut self.ready, self.decoder.as_mut());
        self.unless_broken(pushed)
    }

    /// Receives more bytes of the body. Returns `false` at its end.
    fn receive_more(&mut self, decode: bool) -> io::Result<bool> {
        if let Some(failure) = &self.failure {
            return Err(failure.to_io_error());
        }
        let received = self.receive(decode);
        self.unless_broken(received)
    }

    fn unless_broken<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &outcome
            && let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>())
        {
            self.failure = Some(SavedEngineError::from_error(error));
            self.ended = true;
            self.response = None;
        }
        outcome
    }

    fn receive(&mut self, decode: bool) -> io::Result<bool> {
        let Some(response) = self.response.as_mut().filter(|_| !self.ended) else { return Ok(false) };
        let filled = if self.stop.is_set() { Err(interruption("the response was closed")) } else { response.fill() };
        let received = match filled {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            Err(error) => {
                self.ended = true;
                self.response = None;
                return Err(if self.stop.is_set() { interruption("the response was closed") } else { error });
            }
        };
        if received.is_empty() {
            self.ended = true;
            let info = response.info();
            self.last_facts = Some(info.facts().into());
            self.trailers = trailer_fields(info.trailers().into_iter().flat_map(|fields| fields.iter_bytes()));
            self.response = None;
            if let Some(decoder) = self.decoder.as_mut().filter(|_| decode) {
                decoder.finish().map_err(io::Error::other)?;
            }
            return Ok(false);
        }
        let n = received.len().min(PIECE);
        if self.at > 0 {
            self.ready.drain(..self.at);
            self.at = 0;
        }
        push(&received[..n], &mut self.ready, self.decoder.as_mut().filter(|_| decode))?;
        self.has_decoded |= decode;
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
