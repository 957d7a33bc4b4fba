//! A sink that receives a body into a Python `bytes` object. If the length is known, it writes
//! directly into the object.
//!
//! The interpreter lock is not held while a body arrives. It is acquired once to allocate the
//! object, and only for large bodies. A small body is collected outside the interpreter, and copied
//! when the lock is acquired for the result. If the body fills much of a read buffer, the sink
//! keeps the buffer itself, so that the body is copied only once.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul::body::{BodyDecoder, DecodeLimits, meaningful_codings};
use haul::buffer_pool::{KeptBodyBytes, OfferedBodyBytes, should_receive_via_buffer};
use haul::sink::memory::receive_into;
use haul::sink::{ReceivedIntoSink, ResponseForSink, Sink};
use haul::{Error, ErrorKind, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::fd::BorrowedFd;
use rustix::net::{RecvFlags, recv};

/// The shortest body, in bytes, for which the Python object is allocated before the body arrives.
/// Copying a shorter body costs less than waiting for the interpreter lock, which other threads may
/// hold for milliseconds.
const MIN_PREALLOCATED: u64 = 64 << 10;

/// The longest body, in bytes, for which the Python object is allocated before the body arrives. A
/// limit is needed, because a server may announce any length.
const MAX_PREALLOCATED: u64 = 1 << 30;

/// The longest body of a batch request, in bytes, for which a thread of the program allocates the
/// Python object. Such a thread may run the only request in progress. The engine's thread receives
/// a longer body.
const MAX_PREALLOCATED_IN_LOOP: u64 = 512 << 10;

/// The largest number of bytes reserved for a collected body before it arrives.
const MAX_RESERVED: u64 = 16 << 20;

/// The maximum number of buffers in [`SpareBuffers`]. Together with [`MAX_SPARE_LENGTH`], this
/// limits the memory of the buffers to 8 MiB.
const MAX_SPARE_BUFFERS: usize = 64;
const MAX_SPARE_LENGTH: usize = 128 << 10;

/// The maximum number of read buffers that the bodies of a batch may keep. A read buffer has 128
/// KiB, however short the body in it is, so these buffers take at most 8 MiB. Further bodies are
/// copied.
const MAX_KEPT_READ_BUFFERS: usize = 64;

/// A `bytes` object that no other code can see yet, and the number of bytes written to it.
struct BytesObject {
    bytes: Py<PyBytes>,
    start: AtomicPtr<u8>,
    length: usize,
    filled: usize,
}

impl BytesObject {
    /// Allocates an object of `length` bytes. Returns `None` if memory is exhausted, or if the
    /// interpreter has ended, which can happen in a daemon thread.
    fn new(length: usize) -> Option<Self> {
        Python::try_attach(|py| {
            let size = ffi::Py_ssize_t::try_from(length).ok()?;
            // SAFETY: with a null pointer the object's content is uninitialised, which is allowed
            // until the first read; the result is an owned reference, or null with an exception
            // set.
            let object = unsafe {
                let raw = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
                Bound::from_owned_ptr_or_err(py, raw).ok()?.cast_into_unchecked::<PyBytes>()
            };
            // SAFETY: `object` is a bytes object; its content does not move while `bytes` keeps it
            // alive.
            let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>();
            Some(Self { bytes: object.unbind(), start: AtomicPtr::new(start), length, filled: 0 })
        })?
    }

    /// Appends bytes. Returns `false`, and appends nothing, if the object is too small.
    fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.length - self.filled {
            return false;
        }
        // SAFETY: no other code has the object yet, there is room for so many bytes behind
        // `filled`, and `bytes` cannot overlap them.
        unsafe {
            let to = self.start.load(Ordering::Relaxed).add(self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.filled += bytes.len();
        true
    }

    /// Receives at most `most` bytes from a socket by one system call, and appends them. Returns
    /// `None`, without a system call, if the object is full, or if receiving into a read buffer and
    /// copying from there would be faster.
    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let room = (self.length - self.filled).min(most);
        if room == 0 || should_receive_via_buffer(self.start.load(Ordering::Relaxed), room) {
            return None;
        }
        // SAFETY: no other code has the object yet, and there is room for so many bytes behind
        // `filled`; the slice's type says that they are not initialised.
        let spare = unsafe {
            let to = self.start.load(Ordering::Relaxed).add(self.filled);
            std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<u8>>(), room)
        };
        let received =
            recv(socket, spare, RecvFlags::empty()).map(|(filled, _)| filled.0.len()).map_err(io::Error::from);
        if let Ok(n) = received {
            self.filled += n;
        }
        Some(received.map(|n| ReceivedIntoSink::new(n, room)))
    }
}

/// The received part of a body, in a Python object or in memory outside Python.
#[derive(Default)]
enum CollectedBytes {
    #[default]
    Empty,
    Gathered(Vec<u8>),
    ReadBuffer(KeptReadBuffer),
    BytesObject(BytesObject),
}

/// The memory of bodies that the program has received, kept for later bodies. Newly allocated
/// memory would cost a page fault for each page.
#[derive(Default)]
pub(crate) struct SpareBuffers {
    unused: Mutex<Vec<Vec<u8>>>,
    /// The number of read buffers that existing bodies hold ([`KeptReadBuffer`]), at most
    /// [`MAX_KEPT_READ_BUFFERS`].
    kept_read_buffers: AtomicUsize,
}

impl SpareBuffers {
    /// Returns an empty buffer for at least this many bytes.
    fn take_buffer(&self, bytes: usize) -> Vec<u8> {
        let spare = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.filter(|buffer| buffer.capacity() >= bytes).unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    /// Keeps the memory of a buffer for later bodies. Frees the memory if the buffer is longer than
    /// [`MAX_SPARE_LENGTH`], or if [`MAX_SPARE_BUFFERS`] buffers are kept already.
    fn return_buffer(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= MAX_SPARE_LENGTH && unused.len() < MAX_SPARE_BUFFERS {
            unused.push(buffer);
        }
    }
}

/// A complete body in the read buffer in which it arrived. Dropping the value releases the buffer.
struct KeptReadBuffer {
    kept: KeptBodyBytes,
    /// The batch that counts such buffers to limit their number; `None` if the body is not of a
    /// batch.
    counted_by: Option<Arc<SpareBuffers>>,
}

impl KeptReadBuffer {
    /// Takes over the read buffer that contains the whole body `offered`, so that the body need not
    /// be copied. Returns the unchanged `offered` as the error if the caller has to copy the body
    /// instead. This is the case if the body fills less than a quarter of the buffer, if the buffer
    /// is still needed, or if the bodies of the batch already hold [`MAX_KEPT_READ_BUFFERS`]
    /// buffers.
    fn take_from<'a>(
        offered: OfferedBodyBytes<'a>,
        batch: Option<&Arc<SpareBuffers>>,
    ) -> Result<Self, OfferedBodyBytes<'a>> {
        if !offered.gives_buffer() {
            return Err(offered);
        }
        if let Some(batch) = batch {
            // At most two threads increase the number, the batch's and the one that runs a lone
            // request. A check followed by an addition exceeds the limit by no more than one.
            if batch.kept_read_buffers.load(Ordering::Relaxed) >= MAX_KEPT_READ_BUFFERS {
                return Err(offered);
            }
            batch.kept_read_buffers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Self { kept: offered.into_kept_bytes(), counted_by: batch.cloned() })
    }

    fn bytes(&self) -> &[u8] {
        self.kept.bytes()
    }
}

impl Drop for KeptReadBuffer {
    fn drop(&mut self) {
        if let Some(batch) = &self.counted_by {
            batch.kept_read_buffers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Collects one response body. Decodes it if the response has a content coding that haul knows.
#[derive(Default)]
pub(crate) struct BytesSink {
    store: CollectedBytes,
    decoder: Option<BodyDecoder>,
    /// The number of bytes of the body; 0 if it is unknown, or above [`MAX_RESERVED`].
    expected: usize,
    /// The spare memory in which a thread of the engine collects a body without the interpreter
    /// lock. `None` if any thread may acquire that lock, so that a large body is received into a
    /// `bytes` object.
    spare: Option<Arc<SpareBuffers>>,
}

impl CollectedBytes {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::BytesObject(object) => object
                .push(bytes)
                .then_some(())
                .ok_or_else(|| Error::new(ErrorKind::Receive, "the body is longer than was announced")),
            Self::Gathered(gathered) => {
                gathered.extend_from_slice(bytes);
                Ok(())
            }
            Self::ReadBuffer(kept) => {
                *self = Self::Gathered([kept.bytes(), bytes].concat());
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
    /// Creates a sink for which no thread of the engine acquires the interpreter lock: the engine's
    /// threads collect bodies outside Python. If a thread of the program receives the beginning of
    /// a body of [`MIN_PREALLOCATED`] to [`MAX_PREALLOCATED_IN_LOOP`] bytes, that thread allocates
    /// the `bytes` object at once. Otherwise, a copy of the body would exist beside the object, and
    /// the C library would return the memory of both to the kernel after each body.
    pub(crate) fn outside_interpreter(spare: &Arc<SpareBuffers>) -> Self {
        Self { spare: Some(Arc::clone(spare)), ..Self::default() }
    }

    /// Returns the bytes of a body that a thread of the engine has received into a sink from
    /// [`outside_interpreter`](Self::outside_interpreter). Other bodies may be in a Python `bytes`
    /// object, for which this method must not be called.
    #[cfg(feature = "arrow")]
    pub(crate) fn into_vec(self) -> Vec<u8> {
        debug_assert!(!matches!(self.store, CollectedBytes::BytesObject(_)));
        match self.store {
            CollectedBytes::Gathered(bytes) => bytes,
            CollectedBytes::ReadBuffer(kept) => kept.bytes().to_vec(),
            CollectedBytes::Empty | CollectedBytes::BytesObject(_) => Vec::new(),
        }
    }

    /// Returns the complete body. The body of a request in a batch is still outside Python: it is
    /// copied into a `bytes` object only when the program reads the body.
    pub(crate) fn into_body(self, py: Python<'_>) -> ReceivedBody {
        let state = match self {
            Self { store: CollectedBytes::Gathered(bytes), spare: Some(spare), .. } => {
                ReceivedBodyStorage::Gathered(bytes, spare)
            }
            Self { store: CollectedBytes::ReadBuffer(kept), spare: Some(_), .. } => {
                ReceivedBodyStorage::ReadBuffer(kept)
            }
            sink => ReceivedBodyStorage::BytesObject(sink.into_bytes(py)),
        };
        ReceivedBody(Mutex::new(state))
    }

    /// Allocates the memory for the body, if its length is known and nothing of it has arrived yet.
    fn allocate_buffer(&mut self) {
        if self.expected > 0 && matches!(self.store, CollectedBytes::Empty) {
            // A vector that grows while the body arrives is copied at each doubling.
            self.store = CollectedBytes::Gathered(match &self.spare {
                Some(spare) => spare.take_buffer(self.expected),
                None => Vec::with_capacity(self.expected),
            });
        }
    }

    /// Returns the body as a `bytes` object.
    fn into_bytes(self, py: Python<'_>) -> Py<PyBytes> {
        match self.store {
            CollectedBytes::Empty => PyBytes::new(py, b"").unbind(),
            CollectedBytes::Gathered(bytes) => PyBytes::new(py, &bytes).unbind(),
            CollectedBytes::ReadBuffer(kept) => PyBytes::new(py, kept.bytes()).unbind(),
            CollectedBytes::BytesObject(object) if object.filled == object.length => object.bytes,
            // The body ended early, which the transfer reports. The received bytes are kept.
            CollectedBytes::BytesObject(object) => {
                PyBytes::new(py, &object.bytes.as_bytes(py)[..object.filled]).unbind()
            }
        }
    }
}

/// A complete body. If the request belonged to a batch, the `bytes` object is created only when the
/// program uses it. Otherwise, the objects of many results would exist at once: they would not fit
/// into the CPU caches, nor into the memory that the allocator keeps for reuse.
pub(crate) struct ReceivedBody(Mutex<ReceivedBodyStorage>);

/// The memory that holds a complete body: a buffer outside Python, which later bodies use again, or
/// a `bytes` object.
enum ReceivedBodyStorage {
    Gathered(Vec<u8>, Arc<SpareBuffers>),
    ReadBuffer(KeptReadBuffer),
    BytesObject(Py<PyBytes>),
}

impl From<Py<PyBytes>> for ReceivedBody {
    fn from(bytes: Py<PyBytes>) -> Self {
        Self(Mutex::new(ReceivedBodyStorage::BytesObject(bytes)))
    }
}

impl ReceivedBody {
    /// Returns the body as a `bytes` object. All calls return the same object.
    pub(crate) fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            ReceivedBodyStorage::BytesObject(bytes) => bytes.bind(py).clone(),
            ReceivedBodyStorage::Gathered(gathered, spare) => {
                let object = PyBytes::new(py, gathered);
                spare.return_buffer(std::mem::take(gathered));
                *state = ReceivedBodyStorage::BytesObject(object.clone().unbind());
                object
            }
            ReceivedBodyStorage::ReadBuffer(kept) => {
                let object = PyBytes::new(py, kept.bytes());
                *state = ReceivedBodyStorage::BytesObject(object.clone().unbind());
                object
            }
        }
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let ReceivedBodyStorage::Gathered(gathered, spare) = state {
            spare.return_buffer(std::mem::take(gathered));
        }
    }
}

/// Returns true if Python code runs in this thread, so that the thread may acquire the interpreter
/// lock. Returns false in the engine's threads.
fn is_thread_of_interpreter() -> bool {
    // SAFETY: the function reads a variable of the thread; it needs no lock and no interpreter.
    !unsafe { ffi::PyGILState_GetThisThreadState() }.is_null()
}

/// Returns the decoder for the content codings of a response. Returns `None` for an unknown coding:
/// the program then gets the body as it was sent, as in the Python package requests.
pub(crate) fn decoder_for(head: &haul::ResponseHead) -> Option<BodyDecoder> {
    let mut codings = head.get_all("content-encoding").peekable();
    codings.peek()?;
    let codings: Vec<&[u8]> = codings.collect();
    let mut limits = DecodeLimits::default();
    // urllib3 ignores bytes behind the end of the coded content, too.
    limits.passes_over_rest = true;
    BodyDecoder::new(&meaningful_codings(&codings.join(&b", "[..])), limits).ok().flatten()
}

impl Sink for BytesSink {
    fn takes_encoded(&mut self, _coding: &[u8]) -> bool {
        true
    }

    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.decoder = if begin.length == Some(0) { None } else { decoder_for(begin.head) };
        let known = begin.length.filter(|_| self.decoder.is_none()).unwrap_or(0);
        let allocates_object = (MIN_PREALLOCATED..=MAX_PREALLOCATED).contains(&known)
            && (self.spare.is_none() || (known <= MAX_PREALLOCATED_IN_LOOP && is_thread_of_interpreter()));
        let object = if allocates_object { usize::try_from(known).ok().and_then(BytesObject::new) } else { None };
        self.store = object.map_or(CollectedBytes::Empty, CollectedBytes::BytesObject);
        self.expected = usize::try_from(known).ok().filter(|_| known <= MAX_RESERVED).unwrap_or(0);
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        if self.decoder.is_some() {
            return None;
        }
        self.allocate_buffer();
        match &mut self.store {
            CollectedBytes::BytesObject(object) => object.receive(socket, most),
            CollectedBytes::Gathered(gathered) => receive_into(gathered, socket, most),
            CollectedBytes::Empty | CollectedBytes::ReadBuffer(_) => None,
        }
    }

    fn bytes(&mut self, mut offered: OfferedBodyBytes<'_>) -> Result<()> {
        let Self { store, decoder: Some(decoder), .. } = self else {
            if matches!(self.store, CollectedBytes::Empty) && offered.bytes().len() == self.expected {
                offered = match KeptReadBuffer::take_from(offered, self.spare.as_ref()) {
                    Ok(kept) => {
                        self.store = CollectedBytes::ReadBuffer(kept);
                        return Ok(());
                    }
                    Err(offered) => offered,
                };
            }
            self.allocate_buffer();
            return self.store.push(offered.bytes());
        };
        decoder.push(offered.bytes(), &mut |piece| store.push(piece))
    }

    fn restart(&mut self) -> bool {
        self.store = CollectedBytes::Empty;
        true
    }

    fn finish(&mut self) -> Result<()> {
        self.decoder.as_mut().map_or(Ok(()), BodyDecoder::finish)
    }
}
