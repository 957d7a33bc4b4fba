//! Removes repeated values in bounded memory, and keeps the order in which values first appeared.
//!
//! The values seen so far are stored as two keyed hashes, 128 bits together. (Two values with equal
//! hashes are practically impossible, even if an adversary chooses the values.) When the table of
//! hashes has reached its memory budget, it does not grow. Values whose hashes it contains are
//! still dropped at once. All other values are *deferred*: written to disk with a sequence number,
//! and returned at the end, each once.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
};

use hashbrown::{HashTable, hash_table::Entry};

use super::external_sort::{SortedValues, Sorter};
use crate::Result;

/// The result of [`Distinct::push`], which drops repeated values: the value is new, has occurred
/// before, or is kept on disk until the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistinctResult {
    /// The value has not occurred before. The caller can pass it on immediately.
    New,
    /// The value has occurred before, and is dropped.
    Old,
    /// The memory is full, so the value was written to disk. [`Distinct::finish`] returns it at the
    /// end, if it has not occurred before.
    Deferred,
}

/// A filter that drops repeated values from a stream.
///
/// ```
/// use haul::extraction::{Distinct, DistinctResult};
///
/// let mut distinct = Distinct::new(1 << 20, std::env::temp_dir());
/// assert_eq!(distinct.push(b"AS1")?, DistinctResult::New);
/// assert_eq!(distinct.push(b"AS1")?, DistinctResult::Old);
/// assert_eq!(distinct.finish()?.next_value()?, None);
/// # Ok::<(), haul::Error>(())
/// ```
pub struct Distinct {
    known: HashTable<u128>,
    keys: [RandomState; 2],
    memory: u64,
    deferred: Option<Sorter>,
    /// The number of values that were deferred (written to disk) so far.
    count: u64,
    dir: PathBuf,
    record: Vec<u8>,
}

impl Distinct {
    /// Makes a filter that uses about `memory` bytes of memory. If that is not enough, the filter
    /// writes further values to temporary files in the directory `dir`.
    #[must_use]
    pub fn new(memory: u64, dir: impl Into<PathBuf>) -> Self {
        Self {
            known: HashTable::new(),
            keys: [RandomState::new(), RandomState::new()],
            memory,
            deferred: None,
            count: 0,
            dir: dir.into(),
            record: Vec::new(),
        }
    }

    /// Adds a value to the filter. Returns whether the value is new, old, or deferred until the end
    /// because the memory is full.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if a temporary file cannot be written.
    pub fn push(&mut self, value: &[u8]) -> Result<DistinctResult> {
        let fingerprint = self.fingerprint(value);
        let low = fingerprint as u64;
        if self.is_full() {
            if self.known.find(low, |&known| known == fingerprint).is_some() {
                return Ok(DistinctResult::Old);
            }
            self.defer(value)?;
            return Ok(DistinctResult::Deferred);
        }
        match self.known.entry(low, |&known| known == fingerprint, |&known| known as u64) {
            Entry::Occupied(_) => Ok(DistinctResult::Old),
            Entry::Vacant(entry) => {
                entry.insert(fingerprint);
                Ok(DistinctResult::New)
            }
        }
    }

    /// Marks a value as known, because an earlier run of the program has already used it. The
    /// filter then drops the value. It remembers the value even if the memory is full.
    pub fn recall_known(&mut self, value: &[u8]) {
        let fingerprint = self.fingerprint(value);
        let entry = self.known.entry(fingerprint as u64, |&known| known == fingerprint, |&known| known as u64);
        if let Entry::Vacant(entry) = entry {
            entry.insert(fingerprint);
        }
    }

    /// Adds a value that an earlier run of the program deferred (wrote to disk). If the filter
    /// already contains the value, drops it. Otherwise defers it again, even if there is memory for
    /// it now.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if a temporary file cannot be written.
    pub fn recall_deferred(&mut self, value: &[u8]) -> Result<()> {
        let fingerprint = self.fingerprint(value);
        match self.known.find(fingerprint as u64, |&known| known == fingerprint) {
            Some(_) => Ok(()),
            None => self.defer(value),
        }
    }

    /// Ends the input. Returns the deferred values (those that were written to disk because the
    /// memory was full), each once, in the order in which they first appeared.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if a temporary file cannot be written or read.
    pub fn finish(self) -> Result<DistinctOverflowValues> {
        let Some(deferred) = self.deferred else { return Ok(DistinctOverflowValues { sorted: None }) };
        drop(self.known);
        let mut by_value = deferred.finish()?;
        let mut by_number = Sorter::new(self.memory / 2, self.dir, false);
        let (mut previous, mut record) = (Vec::new(), self.record);
        while let Some(found) = by_value.next_value()? {
            let (value, number) = found.split_at(found.len() - 8);
            if value != previous {
                previous.clear();
                previous.extend_from_slice(value);
                record.clear();
                record.extend_from_slice(number);
                record.extend_from_slice(&value[8..]);
                by_number.push(&record)?;
            }
        }
        drop(by_value);
        Ok(DistinctOverflowValues { sorted: Some(by_number.finish()?) })
    }

    fn fingerprint(&self, value: &[u8]) -> u128 {
        let [low, high] = self.keys.each_ref().map(|key| {
            let mut hasher = key.build_hasher();
            hasher.write(value);
            hasher.finish()
        });
        u128::from(high) << 64 | u128::from(low)
    }

    /// Returns true if the table of hashes is full and must not grow. While the table grows, the
    /// old table and a new one of twice the size are in memory. Both together must fit into three
    /// quarters of the memory budget.
    fn is_full(&self) -> bool {
        self.known.len() == self.known.capacity()
            && 3 * (self.known.allocation_size() as u64).max(64) > self.memory / 4 * 3
    }

    /// Writes a value to disk, because the memory is full, or was full in an earlier run of the
    /// program. The record is the value's length, the value, and a sequence number. After the
    /// records are sorted byte by byte, records of equal values are adjacent, the earliest first.
    /// Without the length, the record of `a\0` could be sorted between two records of `a`.
    fn defer(&mut self, value: &[u8]) -> Result<()> {
        self.record.clear();
        self.record.extend_from_slice(&(value.len() as u64).to_be_bytes());
        self.record.extend_from_slice(value);
        self.record.extend_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        self.deferred.get_or_insert_with(|| Sorter::new(self.memory / 4, &self.dir, false)).push(&self.record)
    }
}

impl fmt::Debug for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distinct")
            .field("known", &self.known.len())
            .field("deferred", &self.count)
            .finish_non_exhaustive()
    }
}

/// The new values for which a [`Distinct`] had no room in memory, in the order of their first
/// occurrences. They were written to disk, and sorted to remove repeated values.
/// [`Distinct::finish`] returns them.
#[derive(Debug)]
pub struct DistinctOverflowValues {
    sorted: Option<SortedValues>,
}

impl DistinctOverflowValues {
    /// Returns the values of these sorted records, to be read one by one. Each record is an 8-byte
    /// sequence number, which increases from value to value, and then the value.
    pub(crate) fn numbered(records: SortedValues) -> Self {
        Self { sorted: Some(records) }
    }

    /// Returns the next value, or `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if a temporary file cannot be read.
    pub fn next_value(&mut self) -> Result<Option<&[u8]>> {
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        Ok(sorted.next_value()?.map(|record| &record[8..]))
    }
}
