//! Read buffers and their pool. A sink that keeps bytes can take the whole buffer that contains
//! them.
//!
//! Each buffer is aligned to 64 bytes, since large receives into other addresses can be slow
//! ([`should_receive_via_buffer`]).
//!
//! A body is received into a worker's buffer. If the sink passes the bytes on at once, the buffer
//! is used again. A sink that must keep the bytes (in an ordered output, until earlier bodies are
//! complete) takes the whole buffer without a copy, and the worker takes another buffer from the
//! pool. Small amounts of bytes are copied instead, because they would waste most of a buffer.
//!
//! ```
//! use haul::buffer_pool::{BufferPool, OfferedBodyBytes};
//! let pool = BufferPool::new(4096);
//! let mut buffer = pool.take_buffer();
//! buffer[..5].copy_from_slice(b"hello");
//! let kept = OfferedBodyBytes::new(&mut buffer, 0..5).into_kept_bytes();
//! assert_eq!(kept.bytes(), b"hello");
//! ```

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, OnceLock};

use crate::ignore_poison::IgnorePoison;

/// Returns true if receiving `room` bytes into a read buffer and copying them to `place` is faster
/// than receiving them at `place` directly. That is the case if `room` is at least 16 KiB and
/// `place` is 1 to 31 bytes past the start of a page.
///
/// A server sends a file in pages. Copying a page to such an address takes the processor three
/// times as long (each load seems to wait for the store of the bytes before it). `malloc` places
/// each large block 16 bytes past the start of a page. Receiving 335 kB took 190 µs at such an
/// address, 70 µs at any other address, and 85 µs into a read buffer with a copy from there (AMD
/// EPYC, Linux 6.18).
#[must_use]
pub fn should_receive_via_buffer(place: *const u8, room: usize) -> bool {
    room >= MIN_LARGE_RECEIVE && is_just_after_page_start(place)
}

/// The minimum length, in bytes, of a receive that is worth a detour through a read buffer if its
/// destination is a slow address ([`should_receive_via_buffer`]).
const MIN_LARGE_RECEIVE: usize = 16 << 10;

fn is_just_after_page_start(place: *const u8) -> bool {
    matches!(place.addr() % PAGE_SIZE, 1..32)
}

const PAGE_SIZE: usize = 4096;

/// The alignment of the start of each buffer, in bytes. Large receives into addresses with a
/// smaller alignment can be slow ([`should_receive_via_buffer`]).
const ALIGNMENT: usize = 64;

/// A store for unused read buffers of one size.
#[derive(Debug)]
pub struct BufferPool {
    free: Mutex<Vec<Box<[u8]>>>,
    size: usize,
    /// The maximum number of unused buffers that the pool keeps. If the pool is full, a returned
    /// buffer is freed.
    max_free: usize,
    /// The pool of larger buffers ([`BULK_BUFFER_SIZE`]), for bodies that arrive fast. It is
    /// created on first use.
    bulk: OnceLock<Arc<BufferPool>>,
}

/// The maximum number of unused buffers that a pool keeps. A pool of bulk buffers
/// ([`BULK_BUFFER_SIZE`]) has the limit [`MAX_FREE_BULK`] instead.
const MAX_FREE: usize = 64;

/// The size in bytes of the larger buffers, for bodies that arrive fast.
pub const BULK_BUFFER_SIZE: usize = 4 << 20;

/// The maximum number of unused buffers that a pool of bulk buffers ([`BULK_BUFFER_SIZE`]) keeps:
/// one for each worker thread on most machines. A thread that finds the pool empty must allocate a
/// new buffer, which takes longer than copying as many bytes.
const MAX_FREE_BULK: usize = 8;

impl BufferPool {
    /// Makes a pool for buffers of `size` bytes. No memory is allocated before the first
    /// [`BufferPool::take_buffer`].
    #[must_use]
    pub fn new(size: usize) -> Arc<Self> {
        Self::with_max_free(size, MAX_FREE)
    }

    fn with_max_free(size: usize, max_free: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()), size, max_free, bulk: OnceLock::new() })
    }

    /// Removes and returns the buffer that was returned to the pool last, because its memory is
    /// probably in the processor's cache. If the pool is empty, makes a new buffer.
    #[must_use]
    pub fn take_buffer(self: &Arc<Self>) -> Buffer {
        let bytes = self.free.lock().ignore_poison().pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.size + ALIGNMENT].into_boxed_slice());
        Buffer { start: bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT, bytes, pool: Arc::clone(self) }
    }
}

/// A read buffer. When it is dropped, its memory returns to the pool that made it.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    /// The index in `bytes` of the first aligned byte, where the buffer begins.
    start: usize,
    pool: Arc<BufferPool>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.pool.size]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.pool.size]
    }
}

impl Buffer {
    /// Returns a buffer of [`BULK_BUFFER_SIZE`] bytes, for a body that arrives fast. The buffer
    /// comes from a second pool, which belongs to the pool of this buffer. If the second pool is
    /// empty, makes a new buffer.
    #[must_use]
    pub fn take_bulk_buffer(&self) -> Self {
        self.pool.bulk.get_or_init(|| BufferPool::with_max_free(BULK_BUFFER_SIZE, MAX_FREE_BULK)).take_buffer()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().ignore_poison();
        if free.len() < self.pool.max_free {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Body bytes that are offered to a sink (the receiver of a response body) in a call of
/// [`Sink::bytes`](crate::sink::Sink::bytes). The sink may read them during the call, or take them
/// with [`into_kept_bytes`](Self::into_kept_bytes).
#[derive(Debug)]
pub struct OfferedBodyBytes<'a> {
    held: WholeOrPartBuffer<'a>,
    range: Range<usize>,
}

/// The memory with the body bytes that are offered to a sink: a whole read buffer, or a part of
/// one.
#[derive(Debug)]
enum WholeOrPartBuffer<'a> {
    /// Bytes in a read buffer that contains nothing else of use, so the sink may take the whole
    /// buffer.
    Whole(&'a mut Buffer),
    /// Bytes in a read buffer that the worker thread still needs, or bytes outside any read buffer.
    /// A sink can keep them only by a copy.
    Part(&'a [u8]),
}

/// The divisor that decides whether a sink takes a whole buffer. A sink takes the buffer if the
/// bytes to keep fill at least a quarter (the inverse of this number) of the buffer. Fewer bytes
/// are copied, because they would waste most of the buffer.
const MIN_KEPT_DIVISOR: usize = 4;

impl<'a> OfferedBodyBytes<'a> {
    /// Offers the bytes in `range` of a read buffer. The other bytes of the buffer are not needed
    /// any more, so a sink may take the whole buffer.
    pub fn new(buffer: &'a mut Buffer, range: Range<usize>) -> Self {
        Self { held: WholeOrPartBuffer::Whole(buffer), range }
    }

    /// Offers bytes that remain in the memory of their owner. A sink that wants to keep the bytes
    /// copies them.
    #[must_use]
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Self { range: 0..bytes.len(), held: WholeOrPartBuffer::Part(bytes) }
    }

    /// Returns the offered body bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.held {
            WholeOrPartBuffer::Whole(buffer) => &buffer[self.range.clone()],
            WholeOrPartBuffer::Part(bytes) => &bytes[self.range.clone()],
        }
    }

    /// Returns true if [`into_kept_bytes`](Self::into_kept_bytes) gives the read buffer itself,
    /// without a copy. This requires that the bytes fill at least a quarter of the buffer, and that
    /// the buffer contains nothing else of use.
    #[must_use]
    pub fn gives_buffer(&self) -> bool {
        matches!(&self.held, WholeOrPartBuffer::Whole(buffer) if self.range.len() >= buffer.len() / MIN_KEPT_DIVISOR)
    }

    /// Turns the offered bytes into bytes that the sink may keep after the call: the read buffer
    /// itself ([`gives_buffer`](Self::gives_buffer)), or a copy of the bytes.
    #[must_use]
    pub fn into_kept_bytes(self) -> KeptBodyBytes {
        let gives_buffer = self.gives_buffer();
        match self.held {
            WholeOrPartBuffer::Whole(buffer) if gives_buffer => {
                let fresh = buffer.pool.take_buffer();
                KeptBodyBytes::Buffer(std::mem::replace(buffer, fresh), self.range)
            }
            WholeOrPartBuffer::Whole(buffer) => KeptBodyBytes::Copied(buffer[self.range].to_vec()),
            WholeOrPartBuffer::Part(bytes) => KeptBodyBytes::Copied(bytes[self.range].to_vec()),
        }
    }
}

/// Body bytes that a sink keeps after the call in which it received them.
#[derive(Debug)]
pub enum KeptBodyBytes {
    /// A range of a read buffer. The buffer now belongs to the sink.
    Buffer(Buffer, Range<usize>),
    /// A copy of the bytes in separate memory.
    Copied(Vec<u8>),
}

impl KeptBodyBytes {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Copied(bytes) => bytes,
        }
    }

    /// Returns the number of bytes of memory that the bytes occupy, which counts towards memory
    /// limits.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        match self {
            Self::Buffer(buffer, _) => buffer.len(),
            Self::Copied(bytes) => bytes.capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_begin_just_after_a_page_boundary() {
        let pool = BufferPool::new(100);
        let buffers: Vec<_> = (0..8).map(|_| pool.take_buffer()).collect();
        assert!(buffers.iter().all(|buffer| !is_just_after_page_start(buffer.as_ptr()) && buffer.len() == 100));
        let page = std::ptr::without_provenance(PAGE_SIZE);
        let slow: Vec<_> =
            (0..PAGE_SIZE).filter(|&at| is_just_after_page_start(<*const u8>::wrapping_add(page, at))).collect();
        assert_eq!(slow, Vec::from_iter(1..32));
    }

    #[test]
    fn full_buffer_is_kept_without_a_copy() {
        let pool = BufferPool::new(64);
        let mut buffer = pool.take_buffer();
        let place = buffer.as_ptr();
        let offered = OfferedBodyBytes::new(&mut buffer, 8..64);
        assert!(offered.gives_buffer());
        let kept = offered.into_kept_bytes();
        assert_eq!(kept.bytes().as_ptr(), place.wrapping_add(8));
        assert_eq!(kept.memory_size(), 64);
        assert_ne!(buffer.as_ptr(), place);
    }

    #[test]
    fn few_kept_bytes_are_copied() {
        let pool = BufferPool::new(64);
        let mut buffer = pool.take_buffer();
        let place = buffer.as_ptr();
        let offered = OfferedBodyBytes::new(&mut buffer, 0..3);
        assert!(!offered.gives_buffer());
        assert_eq!(offered.into_kept_bytes().memory_size(), 3);
        assert_eq!(buffer.as_ptr(), place);
    }

    #[test]
    fn dropped_buffer_is_reused() {
        let pool = BufferPool::new(64);
        let place = pool.take_buffer().as_ptr();
        assert_eq!(pool.take_buffer().as_ptr(), place);
    }

    #[test]
    fn bulk_buffers_are_reused_and_limited_in_number() {
        let buffer = BufferPool::new(64).take_buffer();
        let place = {
            let bulk = buffer.take_bulk_buffer();
            assert_eq!(bulk.len(), BULK_BUFFER_SIZE);
            bulk.as_ptr()
        };
        assert_eq!(buffer.take_bulk_buffer().as_ptr(), place);
        drop((0..MAX_FREE_BULK + 3).map(|_| buffer.take_bulk_buffer()).collect::<Vec<_>>());
        let bulk = buffer.pool.bulk.get().unwrap();
        assert_eq!(bulk.free.lock().unwrap().len(), MAX_FREE_BULK);
        assert!(buffer.pool.free.lock().unwrap().is_empty());
    }
}
