//! Read buffers: owned by the workers, lent to the drivers, and handed over whole to a sink that has to keep bytes.
//!
//! Where memory begins matters for a large receive ([`is_worth_a_detour`]); buffers begin at a multiple of 64.
//!
//! A body is received into a worker's buffer. When its sink can pass the bytes on at once, the buffer is used again;
//! when it must keep them (an ordered output whose turn has not come), it takes the whole buffer and the worker goes on
//! with another one from the shelf: no byte is copied. Only what would waste most of a buffer is copied instead.
//!
//! ```
//! use haul::buffer::{Lease, Shelf};
//! let shelf = Shelf::new(4096);
//! let mut buffer = shelf.take();
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
pub fn is_worth_a_detour(place: *const u8, room: usize) -> bool {
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
pub struct Shelf {
    free: Mutex<Vec<Box<[u8]>>>,
    size: usize,
}

/// Maximum number of unused buffers on a shelf. Further ones go back to the allocator.
const KEPT: usize = 64;

impl Shelf {
    /// Makes a shelf for buffers of `size` bytes. Allocates nothing before the first
    /// [`Shelf::take`].
    #[must_use]
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()), size })
    }

    /// Takes a buffer: the last one put back (its memory is warm), or a new one.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Buffer {
        let bytes = self.free.lock().ignore_poison().pop();
        let bytes = bytes.unwrap_or_else(|| vec![0; self.size + ALIGNMENT].into_boxed_slice());
        Buffer { start: bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT, bytes, shelf: Arc::clone(self) }
    }
}

/// One read buffer; it goes back to its shelf when dropped.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    /// Index in `bytes` of the first aligned byte, at which the buffer begins.
    start: usize,
    shelf: Arc<Shelf>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.shelf.size]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.shelf.size]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.shelf.free.lock().ignore_poison();
        if free.len() < KEPT {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Body bytes offered to a sink, which may read them now or keep them.
#[derive(Debug)]
pub struct Lease<'a> {
    held: Held<'a>,
    range: Range<usize>,
}

#[derive(Debug)]
enum Held<'a> {
    /// The rest of the buffer is no longer needed, so the sink may take the buffer.
    Whole(&'a mut Buffer),
    /// The buffer is still needed, or is not a read buffer.
    Part(&'a [u8]),
}

/// A sink takes the buffer itself if the bytes fill at least this fraction of it; less is copied.
const WORTH_KEEPING: usize = 4;

impl<'a> Lease<'a> {
    /// Makes a lease of bytes that are the only ones still needed of `buffer`.
    pub fn new(buffer: &'a mut Buffer, range: Range<usize>) -> Self {
        Self { held: Held::Whole(buffer), range }
    }

    /// Makes a lease of bytes in memory that stays with its owner.
    #[must_use]
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Self { range: 0..bytes.len(), held: Held::Part(bytes) }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.held {
            Held::Whole(buffer) => &buffer[self.range.clone()],
            Held::Part(bytes) => &bytes[self.range.clone()],
        }
    }

    /// Keeps the bytes beyond the call, without a copy where that pays.
    #[must_use]
    pub fn keep(self) -> Chunk {
        match self.held {
            Held::Whole(buffer) if self.range.len() >= buffer.len() / WORTH_KEEPING => {
                let fresh = buffer.shelf.take();
                Chunk::Buffer(std::mem::replace(buffer, fresh), self.range)
            }
            Held::Whole(buffer) => Chunk::Copied(buffer[self.range].to_vec()),
            Held::Part(bytes) => Chunk::Copied(bytes[self.range].to_vec()),
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
    fn buffers_begin_where_copying_to_is_fast() {
        let shelf = Shelf::new(100);
        let buffers: Vec<_> = (0..8).map(|_| shelf.take()).collect();
        assert!(buffers.iter().all(|buffer| !is_slow(buffer.as_ptr()) && buffer.len() == 100));
        let page = std::ptr::without_provenance(PAGE);
        let slow: Vec<_> = (0..PAGE).filter(|&at| is_slow(<*const u8>::wrapping_add(page, at))).collect();
        assert_eq!(slow, Vec::from_iter(1..32));
    }

    #[test]
    fn a_full_buffer_is_kept_without_a_copy() {
        let shelf = Shelf::new(64);
        let mut buffer = shelf.take();
        let place = buffer.as_ptr();
        let kept = Lease::new(&mut buffer, 8..64).keep();
        assert_eq!(kept.bytes().as_ptr(), place.wrapping_add(8));
        assert_eq!(kept.cost(), 64);
        assert_ne!(buffer.as_ptr(), place);
    }

    #[test]
    fn a_few_bytes_are_copied() {
        let shelf = Shelf::new(64);
        let mut buffer = shelf.take();
        let place = buffer.as_ptr();
        assert_eq!(Lease::new(&mut buffer, 0..3).keep().cost(), 3);
        assert_eq!(buffer.as_ptr(), place);
    }

    #[test]
    fn a_dropped_buffer_is_used_again() {
        let shelf = Shelf::new(64);
        let place = shelf.take().as_ptr();
        assert_eq!(shelf.take().as_ptr(), place);
    }
}
