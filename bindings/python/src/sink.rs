//! The destination of a body that is wanted as a whole: the `bytes` object itself, if the length is known.
//!
//! The interpreter is not held while a body arrives. It is entered once to allocate the object, and only for bodies so large that copying them would
//! cost more: a small one is collected outside and copied at the end, when the interpreter is entered anyway.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicPtr, Ordering};

use haul::body::{BodyDecoder, DecodeLimits};
use haul::buffer::Lease;
use haul::sink::{Begin, Sink};
use haul::{Error, ErrorKind, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::net::{RecvFlags, recv};

/// From this length on the object is allocated first. Below it a copy costs less than entering the interpreter once more, which other
/// threads may hold for milliseconds.
const WORTH_ENTERING: u64 = 64 << 10;

/// Longer bodies are collected as they arrive, whatever length a server announces.
const TRUSTED: u64 = 1 << 30;

/// The most memory reserved at once for a collected body, whatever length a server announces.
const RESERVED: u64 = 16 << 20;

/// A `bytes` object that nobody else has yet, and how much of it is written.
struct Object {
    bytes: Py<PyBytes>,
    start: AtomicPtr<u8>,
    length: usize,
    filled: usize,
}

impl Object {
    /// `None` if there is no memory, or no interpreter any more: a daemon thread goes on receiving while it shuts down.
    fn new(length: usize) -> Option<Self> {
        Python::try_attach(|py| {
            let size = ffi::Py_ssize_t::try_from(length).ok()?;
            // SAFETY: with a null pointer the object's content is uninitialised, which is allowed until somebody reads it;
            // the result is an owned reference or null with an exception set.
            let object = unsafe {
                let raw = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
                Bound::from_owned_ptr_or_err(py, raw).ok()?.cast_into_unchecked::<PyBytes>()
            };
            // SAFETY: it is a bytes object; its content stays where it is as long as the object lives, which `bytes` sees to.
            let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>();
            Some(Self { bytes: object.unbind(), start: AtomicPtr::new(start), length, filled: 0 })
        })?
    }

    /// Appends; `false` if there is no room.
    fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.length - self.filled {
            return false;
        }
        // SAFETY: nobody else has the object yet, there is room for so many bytes behind `filled`, and what is written cannot
        // overlap what a socket was read into.
        unsafe {
            let to = self.start.load(Ordering::Relaxed).add(self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.filled += bytes.len();
        true
    }

    /// Receives once, appending.
    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        let room = (self.length - self.filled).min(most);
        if room == 0 {
            return None;
        }
        // SAFETY: nobody else has the object yet, and there is room for so many bytes behind `filled`; that they are not initialised
        // the type says.
        let spare = unsafe {
            let to = self.start.load(Ordering::Relaxed).add(self.filled);
            std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<u8>>(), room)
        };
        let received =
            recv(socket, spare, RecvFlags::empty()).map(|(filled, _)| filled.0.len()).map_err(io::Error::from);
        if let Ok(n) = received {
            self.filled += n;
        }
        Some(received)
    }
}

#[derive(Default)]
enum Store {
    #[default]
    Empty,
    Gathered(Vec<u8>),
    Object(Object),
}

/// Collects one body, decoded as the response says.
#[derive(Default)]
pub(crate) struct BytesSink {
    store: Store,
    decoder: Option<BodyDecoder>,
    /// The interpreter must not be entered.
    stays_out: bool,
}

impl Store {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Object(object) => object
                .push(bytes)
                .then_some(())
                .ok_or_else(|| Error::new(ErrorKind::Receive, "the body is longer than was announced")),
            Self::Gathered(gathered) => {
                gathered.extend_from_slice(bytes);
                Ok(())
            }
            Self::Empty => {
                *self = Self::Gathered(bytes.to_vec());
                Ok(())
            }
        }
    }
}

impl BytesSink {
    /// One that is filled on a thread which must not wait for the interpreter.
    pub(crate) fn gathering() -> Self {
        Self { stays_out: true, ..Self::default() }
    }

    /// The object that the program gets.
    pub(crate) fn into_bytes(self, py: Python<'_>) -> Py<PyBytes> {
        match self.store {
            Store::Empty => PyBytes::new(py, b"").unbind(),
            Store::Gathered(bytes) => PyBytes::new(py, &bytes).unbind(),
            Store::Object(object) if object.filled == object.length => object.bytes,
            // It ended early, which the transfer reports; the received bytes are kept.
            Store::Object(object) => PyBytes::new(py, &object.bytes.as_bytes(py)[..object.filled]).unbind(),
        }
    }
}

/// The decoder for a response. An unknown coding is left to the program, as in requests.
pub(crate) fn decoder_for(head: &haul::Head) -> Option<BodyDecoder> {
    let mut codings = head.get_all("content-encoding").peekable();
    codings.peek()?;
    let codings: Vec<&[u8]> = codings.collect();
    let mut limits = DecodeLimits::default();
    // As by urllib3.
    limits.passes_over_rest = true;
    BodyDecoder::new(&codings.join(&b", "[..]), limits).ok().flatten()
}

impl Sink for BytesSink {
    fn takes_coded(&mut self, _coding: &[u8]) -> bool {
        true
    }

    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.decoder = if begin.length == Some(0) { None } else { decoder_for(begin.head) };
        let known = begin.length.filter(|_| self.decoder.is_none()).unwrap_or(0);
        let object = if !self.stays_out && (WORTH_ENTERING..=TRUSTED).contains(&known) {
            usize::try_from(known).ok().and_then(Object::new)
        } else {
            None
        };
        self.store = match object {
            Some(object) => Store::Object(object),
            // If it grew while arriving, each doubling would copy it.
            None if (1..=RESERVED).contains(&known) => {
                Store::Gathered(Vec::with_capacity(usize::try_from(known).unwrap_or_default()))
            }
            None => Store::Empty,
        };
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        let Store::Object(object) = &mut self.store else { return None };
        object.receive(socket, most)
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        let Self { store, decoder, .. } = self;
        match decoder {
            Some(decoder) => decoder.push(lease.bytes(), &mut |piece| store.push(piece)),
            None => store.push(lease.bytes()),
        }
    }

    fn restart(&mut self) -> bool {
        self.store = Store::Empty;
        true
    }

    fn finish(&mut self) -> Result<()> {
        self.decoder.as_mut().map_or(Ok(()), BodyDecoder::finish)
    }
}
