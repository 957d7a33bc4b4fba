//! The memory budget for the values of a JSON document. Memory is counted before it is allocated.
//!
//! The sizes are those of the types that [`serde_json`] uses: a list is a `Vec`; an object is a
//! vector of entries with a hash table of their positions (`indexmap`). Each block includes the
//! header and the rounding of a typical allocator. While a block grows, its old and its new size
//! both count, because the allocator may copy the block.

use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::ignore_poison::IgnorePoison;

/// The size in bytes of the parsed values of a JSON document above which the document is large.
/// Only one thread at a time may hold the values of a large document (the lock [`LARGE_VALUES`]).
const LARGE_DOCUMENT: usize = 1 << 20;

/// The lock for large documents. At any time, only one thread may hold the values of a large
/// document. This limits the memory of all threads together.
static LARGE_VALUES: Mutex<()> = Mutex::new(());

/// The size in bytes of an entry of an object: the hash of the name, the name, and the value.
const OBJECT_ENTRY_SIZE: usize = size_of::<(u64, String, Value)>();
/// The number of bytes that the hash table of a JSON object needs in addition to its slots.
const TABLE_OVERHEAD: usize = 16;
/// The size in bytes from which a list grows by a quarter when it is full. A smaller list doubles.
const LONG_LIST: usize = 64 << 10;

/// Returns the number of bytes that a typical allocator uses for a block of `size` bytes.
const fn allocated_size(size: usize) -> usize {
    let rounded = (size + 8).next_multiple_of(16);
    match size {
        0 => 0,
        _ if rounded < 32 => 32,
        _ => rounded,
    }
}

/// The error for a JSON document whose memory budget is used up.
#[derive(Debug)]
pub(super) struct OutOfBudget;

/// The limit on the memory that the parsed values of one JSON document may take.
#[derive(Debug)]
pub(super) struct DocumentMemoryBudget {
    whole: usize,
    left: usize,
    /// The length in bytes of the longest text that the parser had to copy into its buffer.
    copied: usize,
    is_exceeded: bool,
    /// The guard of the lock that only one thread with large values may hold ([`LARGE_VALUES`]);
    /// `None` while the values of this document are small.
    large: Option<MutexGuard<'static, ()>>,
}

impl DocumentMemoryBudget {
    pub(super) fn new(memory: usize) -> Self {
        Self { whole: memory, left: memory, copied: 0, is_exceeded: false, large: None }
    }

    /// Returns true if a reservation has failed because the budget was too small.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Takes `bytes` bytes from the budget; fails if fewer bytes are left. When the document needs
    /// more than [`LARGE_DOCUMENT`] bytes in all, waits for the lock [`LARGE_VALUES`], which allows
    /// one large document at a time.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), OutOfBudget> {
        let Some(left) = self.left.checked_sub(bytes) else {
            self.is_exceeded = true;
            return Err(OutOfBudget);
        };
        self.left = left;
        if self.large.is_none() && self.whole - left > LARGE_DOCUMENT {
            self.large = Some(LARGE_VALUES.lock().ignore_poison());
        }
        Ok(())
    }

    /// Returns `bytes` bytes to the budget.
    pub(super) fn release(&mut self, bytes: usize) {
        self.left += bytes;
    }

    /// Takes memory for the parser's buffer from the budget. The parser copies strings with
    /// escapes, and the digits of numbers, into this buffer. `length` is the length in bytes of one
    /// string or number. The buffer is used again for later texts, and may be twice as large as the
    /// longest text.
    pub(super) fn reserve_parser_copy(&mut self, length: usize) -> Result<(), OutOfBudget> {
        if length > self.copied {
            self.reserve(2 * (length - self.copied))?;
            self.copied = length;
        }
        Ok(())
    }

    /// Takes the memory for a string of `length` bytes from the budget.
    pub(super) fn reserve_string(&mut self, length: usize) -> Result<(), OutOfBudget> {
        self.reserve(allocated_size(length))
    }

    /// Returns the parser's buffer to the budget, when parsing has ended.
    pub(super) fn end_parsing(&mut self) {
        let copied = std::mem::take(&mut self.copied);
        self.release(2 * copied);
    }

    /// Makes room in a full list for at least one more element, and takes the memory for the larger
    /// list from the budget.
    pub(super) fn push_reserved<T>(&mut self, list: &mut Vec<T>) -> Result<(), OutOfBudget> {
        let memory = |elements: usize| allocated_size(elements * size_of::<T>());
        let before = list.capacity();
        let after = match before {
            0 => 2,
            elements if memory(elements) < LONG_LIST => 2 * elements,
            elements => elements + elements / 4,
        };
        self.reserve(memory(after))?;
        list.reserve_exact(after - list.len());
        self.release(memory(before));
        Ok(())
    }
}

/// The capacity of a JSON object: the number of slots in its hash table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectHashSlotCount(usize);

impl ObjectHashSlotCount {
    /// Returns the maximum number of members of the object. A hash table of up to 8 slots keeps one
    /// slot empty; a larger table keeps an eighth of its slots empty.
    pub(super) fn members(self) -> usize {
        if self.0 <= 8 { self.0.saturating_sub(1) } else { self.0 / 8 * 7 }
    }

    /// Returns the capacity after the object has grown once.
    pub(super) fn grown(self) -> Self {
        Self((2 * self.0).max(4))
    }

    /// Returns the memory in bytes of an object with this capacity, without its names and values.
    pub(super) fn memory(self) -> usize {
        let table = if self.0 == 0 { 0 } else { self.0 * (size_of::<usize>() + 1) + TABLE_OVERHEAD };
        allocated_size(self.members() * OBJECT_ENTRY_SIZE) + allocated_size(table)
    }
}

/// The length in bytes from which a JSON number counts towards the memory budget, because the
/// parser copies its digits.
const LONG_NUMBER: usize = 64 << 10;

/// Returns the length in bytes of the longest number in a text. Returns 0 if no number has at least
/// [`LONG_NUMBER`] bytes.
///
/// Each number of at least [`LONG_NUMBER`] bytes contains a byte whose index is a multiple of
/// [`LONG_NUMBER`]. Therefore, only the surroundings of these bytes are examined. Digits in a
/// string may be counted as a number, too.
pub(super) fn longest_number(text: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let mut longest = 0;
    let mut at = LONG_NUMBER;
    while at < text.len() {
        if is_part(&text[at]) {
            let before = text[..at].iter().rev().take_while(|byte| is_part(byte)).count();
            let after = text[at..].iter().take_while(|byte| is_part(byte)).count();
            if before + after >= LONG_NUMBER {
                longest = longest.max(before + after);
            }
            at += after;
        }
        at = (at + 1).next_multiple_of(LONG_NUMBER);
    }
    longest
}
