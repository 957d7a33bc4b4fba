//! Request bodies: `bytes`, text, and data that the program produces while it is sent (a file, a
//! generator).
//!
//! An exception in the program's code while it produces the body is stored in a
//! [`BodySourceException`], and the call that sends the request raises it. It is not reported as a
//! network error.
//!
//! A body longer than its `Content-Length` is an error: the server would take the beginning for the
//! whole body. To detect it, the last announced bytes are sent only after the program has ended the
//! body. A file with a descriptor is not checked, but only read up to the announced length: a log
//! may have grown, and a socket may never end. A file object that decompresses, such as one of
//! `gzip.open`, is checked although it has a descriptor.
//!
//! A seekable file is sent from the same position each time: after a redirect, after an
//! authentication challenge, or when a reused connection turns out to be closed.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul::body::upload::{BodyPiece, RepeatableSource, RequestBody};
use haul::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::async_exchange::Upload;
use crate::error::{FailurePhase, to_exception};
use crate::python_str_and_http_bytes::TextOrBytes;

/// The beginning of the error message for a body that is longer than its `Content-Length`.
pub(crate) const LONGER_BODY: &str = "request body is longer than its announced length of";

/// The exception that the program's code raised while it produced a body; `None` if it raised none.
#[derive(Clone, Default)]
pub(crate) struct BodySourceException(Arc<Mutex<Option<PyErr>>>);

impl BodySourceException {
    /// Removes and returns the exception that the program raised; `None` if there is none.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Stores the exception that the program raised, and returns the I/O error with which the body
    /// ends.
    pub(crate) fn store(&self, error: PyErr) -> io::Error {
        let text = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other(text)
    }
}

/// Converts a Python object into a request body. The object is bytes, text, an object with `read`,
/// or an iterable of pieces. `announced` is the value of the request's `Content-Length`; `None` if
/// the program has not set one.
pub(crate) fn to_request_body(
    given: &Bound<'_, PyAny>,
    announced: Option<u64>,
) -> PyResult<(RequestBody, BodySourceException)> {
    let exception = BodySourceException::default();
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok((bytes.as_bytes().into(), exception));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok((text.to_str()?.into(), exception));
    }
    if let Ok(upload) = given.cast::<Upload>() {
        return Ok(upload.get().body(announced));
    }
    let source = match given.getattr_opt(pyo3::intern!(given.py(), "read"))? {
        // Checked before it is used as bytes: an mmap is sent from its position, as in requests.
        Some(read) => UploadSource::File(read.unbind()),
        None => {
            if let Some(octets) = TextOrBytes::from_python(given) {
                return Ok((octets.into_bytes().into(), exception));
            }
            let pieces = given.try_iter().map_err(|_| {
                PyTypeError::new_err(format!(
                    "a body has to be bytes, text, a file or an iterable, not {}",
                    given.get_type()
                ))
            })?;
            UploadSource::Pieces(pieces.into_any().unbind())
        }
    };
    let confirms_end = announced.is_some() && (matches!(source, UploadSource::Pieces(_)) || !is_plain_file(given)?);
    let remaining = announced.map(|length| RemainingLength { length, bytes: length, confirms_end });
    let mut reader = UploadReader::new(source, remaining, exception.clone());
    if announced == Some(0) {
        // The engine does not read an empty body.
        let end = reader.check_end();
        end.map_err(|error| exception.take().unwrap_or_else(|| to_exception(&unreadable(error), FailurePhase::Wait)))?;
    }
    Ok((rewindable(given, remaining, &exception).unwrap_or_else(|| RequestBody::reader(reader)), exception))
}

/// Returns true if an object has a descriptor and gives the content of that file or socket. A file
/// that decompresses has a descriptor, too, but gives other content.
fn is_plain_file(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = given.py().import(pyo3::intern!(given.py(), "haul._request_body"))?;
    module.call_method1(pyo3::intern!(given.py(), "is_plain_file"), (given,))?.extract()
}

/// Converts an I/O error from reading the body to the engine's error.
fn unreadable(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Read, "the content to send cannot be read", error)
}

/// Creates a body from a seekable file. Each attempt to send the body begins at the file position
/// at the time of this call. Returns `None` if the object has no `read`, `seek` or `tell`, or if
/// one of these fails: such a file can be read only once.
fn rewindable(
    given: &Bound<'_, PyAny>,
    remaining: Option<RemainingLength>,
    exception: &BodySourceException,
) -> Option<RequestBody> {
    let py = given.py();
    let method = |name| given.getattr_opt(name).ok().flatten();
    let (read, seek) = (method(pyo3::intern!(py, "read"))?.unbind(), method(pyo3::intern!(py, "seek"))?.unbind());
    if let Some(seekable) = method(pyo3::intern!(py, "seekable"))
        && !seekable.call0().ok()?.is_truthy().ok()?
    {
        return None;
    }
    let position = given.call_method0(pyo3::intern!(py, "tell")).ok()?.cast_into::<PyInt>().ok()?.unbind();
    let file =
        Arc::new(RewindableFile { read, seek, position, attempts: AtomicU64::new(0), read_lock: Mutex::new(()) });
    let exception = exception.clone();
    // A worker thread calls this, which must not wait for the interpreter.
    let open = move || {
        let number = file.attempts.fetch_add(1, Ordering::SeqCst) + 1;
        let attempt = FileSendAttempt { file: Arc::clone(&file), number, is_begun: false };
        Ok(Box::new(UploadReader::new(UploadSource::RewindableFile(attempt), remaining, exception.clone()))
            as Box<dyn Read + Send>)
    };
    Some(RequestBody::pieces([BodyPiece::Source(RepeatableSource::new(None, open))]))
}

/// A seekable file that is the body of a request.
struct RewindableFile {
    read: Py<PyAny>,
    seek: Py<PyAny>,
    position: Py<PyInt>,
    /// The number of attempts to send the file so far. It is also the number of the current
    /// attempt. A thread that still reads the file for an earlier attempt compares this number with
    /// its own, and stops.
    attempts: AtomicU64,
    /// The lock that a thread holds while it reads the file. A thread that holds the interpreter
    /// lock never waits for this lock.
    read_lock: Mutex<()>,
}

/// One attempt to send a seekable file as a request body.
struct FileSendAttempt {
    file: Arc<RewindableFile>,
    number: u64,
    is_begun: bool,
}

impl FileSendAttempt {
    /// Seeks to the start of the body. The first attempt need not seek.
    fn seek_to_start(&mut self, py: Python<'_>) -> PyResult<()> {
        if !std::mem::replace(&mut self.is_begun, true) && self.number > 1 {
            self.file.seek.bind(py).call1((self.file.position.bind(py),))?;
        }
        Ok(())
    }
}

/// The Python object that produces the body of a request.
enum UploadSource {
    /// The `read` method of a file object.
    File(Py<PyAny>),
    RewindableFile(FileSendAttempt),
    /// A Python iterator that yields the body piece by piece.
    Pieces(Py<PyAny>),
}

/// Reads a body from a Python object, for the thread that sends it.
struct UploadReader {
    source: UploadSource,
    /// The last piece that the object produced, whose first `at` bytes were sent.
    piece: Vec<u8>,
    at: usize,
    remaining: Option<RemainingLength>,
    exception: BodySourceException,
}

/// The announced length of a body, and the number of bytes that were not sent yet.
#[derive(Clone, Copy)]
struct RemainingLength {
    length: u64,
    bytes: u64,
    /// True if the end of the body must be checked: after the last announced byte, the program is
    /// asked for more, and must not produce any.
    confirms_end: bool,
}

impl UploadReader {
    fn new(source: UploadSource, remaining: Option<RemainingLength>, exception: BodySourceException) -> Self {
        Self { source, piece: Vec::new(), at: 0, remaining, exception }
    }

    /// Reads the next piece of the body from the Python object; `None` at the end. The piece has at
    /// most `room` bytes, unless the object produces more than requested.
    fn next_piece(&mut self, room: usize) -> io::Result<Option<Vec<u8>>> {
        let file = if let UploadSource::RewindableFile(attempt) = &self.source {
            Some(Arc::clone(&attempt.file))
        } else {
            None
        };
        let _read_lock = file.as_ref().map(|file| file.read_lock.lock().unwrap_or_else(PoisonError::into_inner));
        if let (Some(file), UploadSource::RewindableFile(attempt)) = (&file, &self.source)
            && file.attempts.load(Ordering::SeqCst) != attempt.number
        {
            return Err(io::Error::other("the file is being sent anew"));
        }
        // The interpreter may have ended: a daemon thread still sends meanwhile.
        let piece = Python::try_attach(|py| self.read_piece(py, room).map_err(|error| self.exception.store(error)));
        piece.unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
    }

    fn read_piece(&mut self, py: Python<'_>, room: usize) -> PyResult<Option<Vec<u8>>> {
        let piece = match &mut self.source {
            UploadSource::File(read) => read.bind(py).call1((room,))?,
            UploadSource::RewindableFile(attempt) => {
                attempt.seek_to_start(py)?;
                attempt.file.read.bind(py).call1((room,))?
            }
            UploadSource::Pieces(pieces) => match pieces.bind(py).cast::<pyo3::types::PyIterator>()?.clone().next() {
                Some(piece) => piece?,
                None => return Ok(None),
            },
        };
        let octets = TextOrBytes::from_python(&piece).ok_or_else(|| {
            PyTypeError::new_err(format!("a piece of a body has to be bytes or text, not {}", piece.get_type()))
        })?;
        let bytes = octets.into_bytes();
        // A file ends with an empty piece; a generator may give one in between.
        Ok(if bytes.is_empty() && !matches!(self.source, UploadSource::Pieces(_)) { None } else { Some(bytes) })
    }

    /// Returns an error if the program has produced more bytes than it announced.
    fn check_end(&mut self) -> io::Result<()> {
        let Some(RemainingLength { length, confirms_end, .. }) = self.remaining else { return Ok(()) };
        while confirms_end && self.at == self.piece.len() {
            match self.next_piece(1)? {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => break,
            }
        }
        if self.at == self.piece.len() {
            return Ok(());
        }
        Err(io::Error::other(format!("{LONGER_BODY} {length} bytes")))
    }
}

impl Read for UploadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A thread that reads ahead may ask for more than the announced length.
        let left = self
            .remaining
            .as_ref()
            .map_or(usize::MAX, |remaining| usize::try_from(remaining.bytes).unwrap_or(usize::MAX));
        let most = buffer.len().min(left);
        let buffer = &mut buffer[..most];
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.at == self.piece.len() {
            match self.next_piece(buffer.len())? {
                Some(piece) => (self.piece, self.at) = (piece, 0),
                None => return Ok(0),
            }
        }
        let n = buffer.len().min(self.piece.len() - self.at);
        buffer[..n].copy_from_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        if let Some(remaining) = &mut self.remaining {
            remaining.bytes -= n as u64;
            if remaining.bytes == 0 {
                self.check_end()?;
            }
        }
        Ok(n)
    }
}
