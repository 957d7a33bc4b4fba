//! The memory that the values of a JSON document take, counted before it is allocated.
//!
//! The counts are those of the types that [`serde_json`] uses: a list is a `Vec`, an object a
//! vector of entries with a hash table of their positions (`indexmap`). Each block counts with the
//! header and the rounding of a usual allocator. When a block grows, its old and its new size count
//! together for a moment, because the allocator may copy the block.

use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::ignore_poison::IgnorePoison;

/// The values of a document are large if they have at least this number of bytes together.
const LARGE_DOCUMENT: usize = 1 << 20;

/// The lock for large values, so that only one thread at a time has them.
static LARGE_VALUES: Mutex<()> = Mutex::new(());

/// The size of an entry of an object: the hash of the name, the name, and the value.
const OBJECT_ENTRY_SIZE: usize = size_of::<(u64, String, Value)>();
/// The number of bytes that the hash table of an object needs in addition to its slots.
const TABLE_OVERHEAD: usize = 16;
/// A list of at least this size grows by a quarter. A smaller list doubles.
const LONG_LIST: usize = 64 << 10;

/// Returns the memory that an allocator takes for a block of `size` bytes.
const fn allocated_size(size: usize) -> usize {
    let rounded = (size + 8).next_multiple_of(16);
    match size {
        0 => 0,
        _ if rounded < 32 => 32,
        _ => rounded,
    }
}

/// The reason why no more memory may be taken: the budget is used up.
#[derive(Debug)]
pub(super) struct OutOfBudget;

/// The budget for the values of one document.
#[derive(Debug)]
pub(super) struct ValueBudget {
    whole: usize,
    left: usize,
    /// The length of the longest text that the parser had to copy.
    copied: usize,
    is_exceeded: bool,
    /// The lock for large values, once the values are large.
    large: Option<MutexGuard<'static, ()>>,
}

impl ValueBudget {
    pub(super) fn new(memory: usize) -> Self {
        Self { whole: memory, left: memory, copied: 0, is_exceeded: false, large: None }
    }

    /// Returns true if more memory was needed than the budget has.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Counts `bytes` as taken. From [`LARGE_DOCUMENT`] values on, waits until no other thread has
    /// any.
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

    /// Counts `bytes` as free again.
    pub(super) fn release(&mut self, bytes: usize) {
        self.left += bytes;
    }

    /// Counts the parser's buffer for a text of `length` bytes that it copies: a string with escapes,
    /// or the digits of a number. The buffer stays for later texts, and may have twice the size of
    /// the longest one.
    pub(super) fn reserve_parser_copy(&mut self, length: usize) -> Result<(), OutOfBudget> {
        if length > self.copied {
            self.reserve(2 * (length - self.copied))?;
            self.copied = length;
        }
        Ok(())
    }

    /// Counts a string of `length` bytes.
    pub(super) fn reserve_string(&mut self, length: usize) -> Result<(), OutOfBudget> {
        self.reserve(allocated_size(length))
    }

    /// Counts the copies of the parser as free, which has ended.
    pub(super) fn end_parsing(&mut self) {
        let copied = std::mem::take(&mut self.copied);
        self.release(2 * copied);
    }

    /// Makes room for more elements in a list that is full.
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

/// The capacity of an object that grows: the number of slots in its hash table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectCapacity(usize);

impl ObjectCapacity {
    /// Returns the maximum number of members. A small table keeps one slot empty. A larger table
    /// keeps an eighth of its slots empty.
    pub(super) fn members(self) -> usize {
        if self.0 <= 8 { self.0.saturating_sub(1) } else { self.0 / 8 * 7 }
    }

    /// Returns the next capacity.
    pub(super) fn grown(self) -> Self {
        Self((2 * self.0).max(4))
    }

    /// Returns the memory of an object with this capacity, without names and values.
    pub(super) fn memory(self) -> usize {
        let table = if self.0 == 0 { 0 } else { self.0 * (size_of::<usize>() + 1) + TABLE_OVERHEAD };
        allocated_size(self.members() * OBJECT_ENTRY_SIZE) + allocated_size(table)
    }
}

/// The parser's copy of a number's digits counts in the budget if the number has at least this
/// number of bytes.
const LONG_NUMBER: usize = 64 << 10;

/// Returns the length of the longest number of a text; 0 if none has [`LONG_NUMBER`] bytes.
///
/// A number that long has a byte at a multiple of that length, so only those are looked at. Digits
/// in a string may count, too.
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
