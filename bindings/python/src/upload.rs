//! Bodies: `bytes` and text, and what a program produces while it is sent (a file, a generator).
//!
//! An exception of the program's own code while it produces the next piece is kept ([`Raised`]) and raised again by the sending call: it is not an
//! error of the network.
//!
//! With a `Content-Length`, what the program gives beyond it is an error, too: it would be left out, and the server would take a part for the whole.
//! So the last bytes wait until the program has said that they are the last. Something with a descriptor is only read up to its length: a log
//! may have grown meanwhile, and a socket would wait for ever.
//!
//! A file that can be rewound is sent from the same position each time: behind a redirect, after a challenge, on a fresh connection.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul::body::upload::{BodyPiece, BodySource as Repeatable, RequestBody};
use haul::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::error::{Phase, failure};
use crate::text::Octets;

/// The exception that the program raised while it produced more.
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

/// The body given as a Python object: bytes, text, something with `read`, or an iterable of pieces; and the value of its `Content-Length`.
pub(crate) fn body_of(given: &Bound<'_, PyAny>, announced: Option<u64>) -> PyResult<(RequestBody, Raised)> {
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
    let knows_more = announced.is_some() && (matches!(source, Source::Pieces(_)) || !has_descriptor(given));
    let left = announced.map(|length| Left { length, bytes: length, knows_more });
    let mut reader = Reader::new(source, left, raised.clone());
    if announced == Some(0) {
        // Nothing of it will be read.
        let end = reader.end();
        end.map_err(|error| raised.take().unwrap_or_else(|| failure(&unreadable(error), Phase::Wait)))?;
    }
    Ok((rewindable(given, left, &raised).unwrap_or_else(|| RequestBody::reader(reader)), raised))
}

fn has_descriptor(given: &Bound<'_, PyAny>) -> bool {
    given.call_method0(pyo3::intern!(given.py(), "fileno")).is_ok()
}

/// As the engine says of a body.
fn unreadable(error: io::Error) -> Error {
    Error::with_source(ErrorKind::Read, "the content to send cannot be read", error)
}

/// A file that is sent from its position any number of times. `None` for what can be read only once: without `read`, `seek` and
/// `tell`, or where one of them fails.
fn rewindable(given: &Bound<'_, PyAny>, left: Option<Left>, raised: &Raised) -> Option<RequestBody> {
    let py = given.py();
    let method = |name| given.getattr_opt(name).ok().flatten();
    let (read, seek) = (method(pyo3::intern!(py, "read"))?.unbind(), method(pyo3::intern!(py, "seek"))?.unbind());
    if let Some(seekable) = method(pyo3::intern!(py, "seekable"))
        && !seekable.call0().ok()?.is_truthy().ok()?
    {
        return None;
    }
    let position = given.call_method0(pyo3::intern!(py, "tell")).ok()?.cast_into::<PyInt>().ok()?.unbind();
    let file = Arc::new(Rewindable { read, seek, position, sendings: AtomicU64::new(0), turn: Mutex::new(()) });
    let raised = raised.clone();
    // Does not enter the interpreter: a worker calls it, which must not wait for that.
    let open = move || {
        let number = file.sendings.fetch_add(1, Ordering::SeqCst) + 1;
        let sending = Sending { file: Arc::clone(&file), number, is_begun: false };
        Ok(Box::new(Reader::new(Source::Sending(sending), left, raised.clone())) as Box<dyn Read + Send>)
    };
    Some(RequestBody::pieces([BodyPiece::Source(Repeatable::new(None, open))]))
}

/// The file of a body that can be sent again.
struct Rewindable {
    read: Py<PyAny>,
    seek: Py<PyAny>,
    position: Py<PyInt>,
    /// Number of sendings begun. A thread may still read ahead for an earlier sending, and would
    /// take bytes away from the last.
    sendings: AtomicU64,
    /// Held during a read, and never waited for with the interpreter held.
    turn: Mutex<()>,
}

/// One sending of it.
struct Sending {
    file: Arc<Rewindable>,
    number: u64,
    is_begun: bool,
}

impl Sending {
    /// Goes to where the body begins, which at the first sending is where the file is.
    fn begin(&mut self, py: Python<'_>) -> PyResult<()> {
        if !std::mem::replace(&mut self.is_begun, true) && self.number > 1 {
            self.file.seek.bind(py).call1((self.file.position.bind(py),))?;
        }
        Ok(())
    }
}

enum Source {
    /// The `read` method of a file object.
    File(Py<PyAny>),
    Sending(Sending),
    Pieces(Py<PyAny>),
}

struct Reader {
    source: Source,
    /// Bytes that were produced but did not fit yet.
    rest: Vec<u8>,
    at: usize,
    left: Option<Left>,
    raised: Raised,
}

/// The part of the announced length that is still to be sent.
#[derive(Clone, Copy)]
struct Left {
    length: u64,
    bytes: u64,
    /// The program may be asked for more bytes than that.
    knows_more: bool,
}

impl Reader {
    fn new(source: Source, left: Option<Left>, raised: Raised) -> Self {
        Self { source, rest: Vec::new(), at: 0, left, raised }
    }

    /// The next piece; `None` at the end.
    fn next(&mut self, room: usize) -> io::Result<Option<Vec<u8>>> {
        let file = if let Source::Sending(sending) = &self.source { Some(Arc::clone(&sending.file)) } else { None };
        let _turn = file.as_ref().map(|file| file.turn.lock().unwrap_or_else(PoisonError::into_inner));
        if let (Some(file), Source::Sending(sending)) = (&file, &self.source)
            && file.sendings.load(Ordering::SeqCst) != sending.number
        {
            return Err(io::Error::other("the file is being sent anew"));
        }
        // The interpreter may be gone: a daemon thread goes on sending while it ends.
        let piece = Python::try_attach(|py| self.piece(py, room).map_err(|error| self.raised.keep(error)));
        piece.unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
    }

    fn piece(&mut self, py: Python<'_>, room: usize) -> PyResult<Option<Vec<u8>>> {
        let piece = match &mut self.source {
            Source::File(read) => read.bind(py).call1((room,))?,
            Source::Sending(sending) => {
                sending.begin(py)?;
                sending.file.read.bind(py).call1((room,))?
            }
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
        Ok(if bytes.is_empty() && !matches!(self.source, Source::Pieces(_)) { None } else { Some(bytes) })
    }

    /// An error if there is more than was announced.
    fn end(&mut self) -> io::Result<()> {
        let Some(Left { length, knows_more, .. }) = self.left else { return Ok(()) };
        while knows_more && self.at == self.rest.len() {
            match self.next(1)? {
                Some(piece) => (self.rest, self.at) = (piece, 0),
                None => break,
            }
        }
        if self.at == self.rest.len() {
            return Ok(());
        }
        Err(io::Error::other(format!("request body is longer than its announced length of {length} bytes")))
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A thread that reads ahead asks for more than is to be sent.
        let left = self.left.as_ref().map_or(usize::MAX, |left| usize::try_from(left.bytes).unwrap_or(usize::MAX));
        let most = buffer.len().min(left);
        let buffer = &mut buffer[..most];
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
        if let Some(left) = &mut self.left {
            left.bytes -= n as u64;
            if left.bytes == 0 {
                self.end()?;
            }
        }
        Ok(n)
    }
}
