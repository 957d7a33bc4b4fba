//! Read buffers and the pool that they come from. A sink that keeps bytes can take over a whole
//! buffer.
//!
//! The alignment of memory matters for a large receive ([`should_receive_via_buffer`]): buffers
//! begin at a multiple of 64.
//!
//! A body is received into a worker's buffer. If its sink passes the bytes on at once, the buffer
//! is used again. If the sink must keep them (in an ordered output whose turn has not come), it
//! takes the whole buffer without a copy, and the worker takes another one from the pool. A few
//! bytes are copied instead, because they would waste most of a buffer.
//!
//! ```
//! use haul::buffer::{Lease, BufferPool};
//! let pool = BufferPool::new(4096);
//! let mut buffer = pool.take();
//! buffer[..5].copy_from_slice(b"hello");
//! let kept = Lease::new(&mut buffer, 0..5).keep();
//! assert_eq!(kept.bytes(), b"hello");
//! ```

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex};

use crate::sync::IgnorePoison;

/// Returns whether `room` bytes are better received into a read buffer and copied than received
/// directly at `place`. A server sends a file in pages. Copying a page to an address 1 to 31 bytes
/// past a page boundary takes the processor three times as long (each load looks as if it were for
/// bytes just stored, and waits for them). `malloc` places each large block 16 bytes past a page
/// boundary. Receiving 335 kB there took 190 µs, anywhere else 70 µs, and into a read buffer with a
/// copy from there 85 µs (AMD EPYC, Linux 6.18).
#[must_use]
pub fn should_receive_via_buffer(place: *const u8, room: usize) -> bool {
    room >= LARGE && is_slow(place)
}

/// Minimum length for which the detour pays.
const LARGE: usize = 16 << 10;

fn is_slow(place: *const u8) -> bool {
    matches!(place.addr() % PAGE, 1..32)
}

const PAGE: usize = 4096;

/// The alignment of buffers.
const ALIGNMENT: usize = 64;

/// A store for unused buffers of one size.
#[derive(Debug)]
pub struct BufferPool {
    free: Mutex<Vec<Box<[u8]>>>,
    size: usize,
}

/// Maximum number of unused buffers on a pool. Further ones go back to the allocator.
const MAX_FREE: usize = 64;

impl BufferPool {
    /// Makes a pool for buffers of `size` bytes. Allocates nothing before the first
    /// [`BufferPool::take`].
    #[must_use]
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()), size })
    }

    /// Takes a buffer: the last one put back (its memory is warm), or a new one.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Buffer {
        let bytes = self.free.lock().ignore_poison().pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.size + ALIGNMENT].into_boxed_slice());
        Buffer { start: bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT, bytes, pool: Arc::clone(self) }
    }
}

/// One read buffer; it goes back to its pool when dropped.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    /// Index in `bytes` of the first aligned byte, at which the buffer begins.
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

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().ignore_poison();
        if free.len() < MAX_FREE {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Body bytes offered to a sink, which may read them now or keep them.
#[derive(Debug)]
pub struct Lease<'a> {
    held: LeasedBytes<'a>,
    range: Range<usize>,
}

/// The memory that holds the bytes of a lease.
#[derive(Debug)]
enum LeasedBytes<'a> {
    /// The rest of the buffer is no longer needed, so the sink may take the buffer.
    Whole(&'a mut Buffer),
    /// The buffer is still needed, or is not a read buffer.
    Part(&'a [u8]),
}

/// A sink takes the buffer itself if the bytes fill at least this fraction of it; less is copied.
const KEEP_FRACTION: usize = 4;

impl<'a> Lease<'a> {
    /// Makes a lease of bytes that are the only ones still needed of `buffer`.
    pub fn new(buffer: &'a mut Buffer, range: Range<usize>) -> Self {
        Self { held: LeasedBytes::Whole(buffer), range }
    }

    /// Makes a lease of bytes in memory that stays with its owner.
    #[must_use]
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Self { range: 0..bytes.len(), held: LeasedBytes::Part(bytes) }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.held {
            LeasedBytes::Whole(buffer) => &buffer[self.range.clone()],
            LeasedBytes::Part(bytes) => &bytes[self.range.clone()],
        }
    }

    /// Keeps the bytes beyond the call, without a copy where that pays.
    #[must_use]
    pub fn keep(self) -> Chunk {
        match self.held {
            LeasedBytes::Whole(buffer) if self.range.len() >= buffer.len() / KEEP_FRACTION => {
                let fresh = buffer.pool.take();
                Chunk::Buffer(std::mem::replace(buffer, fresh), self.range)
            }
            LeasedBytes::Whole(buffer) => Chunk::Copied(buffer[self.range].to_vec()),
            LeasedBytes::Part(bytes) => Chunk::Copied(bytes[self.range].to_vec()),
        }
    }
}

/// Body bytes that were kept.
#[derive(Debug)]
pub enum Chunk {
    /// A part of a read buffer that was taken over.
    Buffer(Buffer, Range<usize>),
    /// A copy.
    Copied(Vec<u8>),
}

impl Chunk {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Copied(bytes) => bytes,
        }
    }

    /// Returns the size of the memory held, which counts against a budget.
    #[must_use]
    pub fn cost(&self) -> usize {
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
    fn buffers_are_aligned_for_fast_copies() {
        let pool = BufferPool::new(100);
        let buffers: Vec<_> = (0..8).map(|_| pool.take()).collect();
        assert!(buffers.iter().all(|buffer| !is_slow(buffer.as_ptr()) && buffer.len() == 100));
        let page = std::ptr::without_provenance(PAGE);
        let slow: Vec<_> = (0..PAGE).filter(|&at| is_slow(<*const u8>::wrapping_add(page, at))).collect();
        assert_eq!(slow, Vec::from_iter(1..32));
    }

    #[test]
    fn full_buffer_is_kept_without_a_copy() {
        let pool = BufferPool::new(64);
        let mut buffer = pool.take();
        let place = buffer.as_ptr();
        let kept = Lease::new(&mut buffer, 8..64).keep();
        assert_eq!(kept.bytes().as_ptr(), place.wrapping_add(8));
        assert_eq!(kept.cost(), 64);
        assert_ne!(buffer.as_ptr(), place);
    }

    #[test]
    fn few_bytes_are_copied() {
        let pool = BufferPool::new(64);
        let mut buffer = pool.take();
        let place = buffer.as_ptr();
        assert_eq!(Lease::new(&mut buffer, 0..3).keep().cost(), 3);
        assert_eq!(buffer.as_ptr(), place);
    }

    #[test]
    fn dropped_buffer_is_reused() {
        let pool = BufferPool::new(64);
        let place = pool.take().as_ptr();
        assert_eq!(pool.take().as_ptr(), place);
    }
}
