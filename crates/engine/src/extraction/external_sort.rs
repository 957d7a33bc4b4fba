//! Sorts values, even if they do not all fit into memory.
//!
//! Values are collected in memory. When they reach the memory budget, they are sorted and written
//! to disk as a run. At the end, all runs are merged. With `unique`, a table of the values in
//! memory drops repeated values: if thousands of pages contain the same few values, the repetitions
//! use neither memory nor disk.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
};

use hashbrown::HashTable;

use super::sorted_runs_on_disk::{SortedRunMerge, SpilledRuns};
use crate::{Error, ErrorKind, Result};

/// A sorter that compares values byte by byte, like `LC_ALL=C sort`. With `unique`, it also drops
/// repeated values, like `sort -u`.
///
/// ```
/// use haul::extraction::Sorter;
///
/// let mut sorter = Sorter::new(1 << 20, std::env::temp_dir(), true);
/// for value in ["b", "a", "b"] {
///     sorter.push(value.as_bytes())?;
/// }
/// let mut sorted = sorter.finish()?;
/// assert_eq!(sorted.next_value()?, Some(&b"a"[..]));
/// assert_eq!(sorted.next_value()?, Some(&b"b"[..]));
/// assert_eq!(sorted.next_value()?, None);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
pub struct Sorter {
    memory: u64,
    unique: bool,
    arena: SortArena,
    runs: SpilledRuns,
}

impl Sorter {
    /// Makes a sorter that keeps about `memory` bytes in memory (more if a single value is larger)
    /// and writes the other values to temporary files in the directory `dir`. No file is created
    /// before the memory is full. `unique` drops repeated values.
    #[must_use]
    pub fn new(memory: u64, dir: impl Into<PathBuf>, unique: bool) -> Self {
        Self { memory, unique, arena: SortArena::default(), runs: SpilledRuns::new(dir.into(), unique) }
    }

    /// Adds a value to the sorter.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if a temporary file cannot be written.
    pub fn push(&mut self, value: &[u8]) -> Result<()> {
        // A page often names a value twice in a row: as the address of a link and as its text.
        if self.unique && self.arena.entries.last().is_some_and(|last| self.arena.value(last) == value) {
            return Ok(());
        }
        let hash = self.unique.then(|| self.arena.hash(value));
        if hash.is_some_and(|hash| self.arena.contains(hash, value)) {
            return Ok(());
        }
        if !self.arena.has_room(value.len(), self.unique, self.memory) && !self.arena.entries.is_empty() {
            self.spill()?;
        }
        self.arena.insert(hash, value)
    }

    /// Ends the input, and returns the sorted values.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if a temporary file cannot be written or read.
    pub fn finish(mut self) -> Result<SortedValues> {
        if self.runs.is_empty() {
            self.arena.sort();
            self.arena.known = HashTable::new();
            return Ok(SortedValues { source: SortedValueStorage::Memory { arena: self.arena, next: 0 } });
        }
        self.spill()?;
        Ok(SortedValues { source: SortedValueStorage::Runs(self.runs.merge()?) })
    }

    fn spill(&mut self) -> Result<()> {
        self.arena.sort();
        self.runs.add(self.arena.entries.iter().map(|entry| self.arena.value(entry)))?;
        self.arena.clear();
        Ok(())
    }
}

/// The values of a [`Sorter`] in sorted order, to be read one by one.
#[derive(Debug)]
pub struct SortedValues {
    source: SortedValueStorage,
}

/// The storage of the sorted values: all in memory, or in several sorted files on disk.
#[derive(Debug)]
enum SortedValueStorage {
    Memory { arena: SortArena, next: usize },
    Runs(SortedRunMerge),
}

impl SortedValues {
    /// Returns the next value, or `None` at the end. (The value is borrowed from the buffer, so
    /// this is not an `Iterator`.)
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if a temporary file cannot be read.
    pub fn next_value(&mut self) -> Result<Option<&[u8]>> {
        match &mut self.source {
            SortedValueStorage::Memory { arena, next } => {
                *next += 1;
                Ok(arena.entries.get(*next - 1).map(|entry| arena.value(entry)))
            }
            SortedValueStorage::Runs(merge) => merge.next_value(),
        }
    }
}

/// The values that a sorter keeps in memory, one after another in one buffer.
#[derive(Default)]
struct SortArena {
    bytes: Vec<u8>,
    entries: Vec<ArenaEntry>,
    known: HashTable<ValueHashEntry>,
    /// The hash function for the values. Its key is random, so that pages cannot choose values
    /// whose hashes collide.
    hasher: RandomState,
}

/// The position of one value in the buffer of a [`SortArena`], and the value's first bytes.
struct ArenaEntry {
    /// The first 8 bytes of the value, big-endian and padded with zeros. Most comparisons of two
    /// values need only these.
    prefix: u64,
    offset: usize,
    length: u32,
}

/// An entry of a [`SortArena`]'s hash table: the index of a value in `entries`, and the value's
/// hash. With the stored hash, the table can grow without hashing the values again, and most
/// different values can be distinguished without reading them.
struct ValueHashEntry {
    index: u32,
    hash: u32,
}

impl ValueHashEntry {
    /// Extends a 32-bit hash to 64 bits, with the same bits in both halves. The table uses the low
    /// bits to select the bucket, and the highest seven bits to distinguish entries.
    fn mix_hash(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

impl SortArena {
    fn hash(&self, value: &[u8]) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(value);
        hasher.finish() as u32
    }

    fn value(&self, entry: &ArenaEntry) -> &[u8] {
        &self.bytes[entry.offset..entry.offset + entry.length as usize]
    }

    fn contains(&self, hash: u32, value: &[u8]) -> bool {
        let is_it =
            |known: &ValueHashEntry| known.hash == hash && self.value(&self.entries[known.index as usize]) == value;
        self.known.find(ValueHashEntry::mix_hash(hash), is_it).is_some()
    }

    /// Returns true if another value of `length` bytes fits into the memory budget of `memory`
    /// bytes. This takes into account that a full buffer or table doubles in size. `unique` is true
    /// if each value also gets an entry in the hash table `known`.
    fn has_room(&self, length: usize, unique: bool, memory: u64) -> bool {
        let doubled =
            |capacity: usize, needed: usize| if needed > capacity { (2 * capacity).max(needed) } else { capacity };
        let bytes = doubled(self.bytes.capacity(), self.bytes.len() + length);
        let entries = doubled(self.entries.capacity(), self.entries.len() + 1) * size_of::<ArenaEntry>();
        // A table is at most 7/8 full and has a control byte a bucket: 10.3 bytes for each value.
        let known = if unique { doubled(self.known.capacity(), self.known.len() + 1) * 11 } else { 0 };
        (bytes + entries + known) as u64 <= memory && self.entries.len() < u32::MAX as usize
    }

    fn insert(&mut self, hash: Option<u32>, value: &[u8]) -> Result<()> {
        let length = u32::try_from(value.len())
            .map_err(|_| Error::new(ErrorKind::TooLarge, "a value to sort is longer than 4 GiB"))?;
        let entry = ArenaEntry { prefix: prefix(value), offset: self.bytes.len(), length };
        self.bytes.extend_from_slice(value);
        if let Some(hash) = hash {
            let known = ValueHashEntry { index: self.entries.len() as u32, hash };
            self.known
                .insert_unique(ValueHashEntry::mix_hash(hash), known, |known| ValueHashEntry::mix_hash(known.hash));
        }
        self.entries.push(entry);
        Ok(())
    }

    fn sort(&mut self) {
        let Self { bytes, entries, .. } = self;
        let value = |entry: &ArenaEntry| &bytes[entry.offset..entry.offset + entry.length as usize];
        entries.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| value(a).cmp(value(b))));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.known.clear();
    }
}

impl fmt::Debug for SortArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("values", &self.entries.len())
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

fn prefix(value: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = value.len().min(8);
    first[..length].copy_from_slice(&value[..length]);
    u64::from_be_bytes(first)
}
