//! An index from 64-bit hashes to numbers, with bounded memory: most entries are in temporary
//! files.
//!
//! ```text
//!  insert ─▶ recent entries, in memory ─▶ full: sorted into a run, a file ─▶ 8 runs: merged into one
//!  get ────▶ recent entries ─▶ the filter of each run ─▶ one block of the run
//! ```
//!
//! The memory contains, for each run, a Bloom filter of ten bits per entry and the first hash of
//! each block. For 98 of 100 new hashes, the filter shows without a read that they are new. Ten
//! million entries take 15 MB of memory and 160 MB of temporary files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use haul::system::file_metadata_and_flags::FileExt;

/// The maximum number of entries in memory. When it is reached, the entries are written to a sorted
/// run: a temporary file in which they are sorted.
const MAX_RECENT: usize = 64 << 10;
/// The number of sorted runs of the same level that are merged into one run of the next level.
const RUNS_PER_MERGE: usize = 8;
/// The size, in bytes, of an entry in a sorted run (a file of sorted entries): a 64-bit hash, and
/// the 64-bit number that was inserted for this hash.
const ENTRY_SIZE: usize = 16;
/// The number of entries in a block of a sorted run (a file of entries sorted by their hashes). A
/// lookup reads one block.
const ENTRIES_PER_BLOCK: usize = 256;
/// The number of bits in a sorted run's Bloom filter for each of its entries.
const FILTER_BITS_PER_ENTRY: usize = 10;
/// The number of bits that each entry sets in the Bloom filter of its sorted run.
const FILTER_PROBES: u32 = 6;

/// A map from 64-bit hashes to 64-bit numbers. It needs little memory, because most of its entries
/// are in temporary files.
#[derive(Debug)]
pub(super) struct OnDiskHashIndex {
    recent: HashMap<u64, u64>,
    runs: Vec<SortedRun>,
    max_recent: usize,
}

impl Default for OnDiskHashIndex {
    fn default() -> Self {
        Self::with_memory(MAX_RECENT)
    }
}

impl OnDiskHashIndex {
    fn with_memory(max_recent: usize) -> Self {
        Self { recent: HashMap::new(), runs: Vec::new(), max_recent }
    }

    /// Returns the number that was inserted with this hash; `None` if the map does not contain the
    /// hash.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub(super) fn get(&self, hash: u64) -> io::Result<Option<u64>> {
        if let Some(&number) = self.recent.get(&hash) {
            return Ok(Some(number));
        }
        for run in self.runs.iter().rev().filter(|run| run.filter.may_have(hash)) {
            if let Some(number) = run.get(hash)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Adds a hash that the map does not contain, with its number.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub(super) fn insert(&mut self, hash: u64, number: u64) -> io::Result<()> {
        self.recent.insert(hash, number);
        if self.recent.len() < self.max_recent {
            return Ok(());
        }
        let mut entries: Vec<_> = self.recent.iter().map(|(&hash, &number)| (hash, number)).collect();
        entries.sort_unstable();
        let mut run = SortedRunWriter::new(0, entries.len())?;
        entries.iter().try_for_each(|&entry| run.push(entry))?;
        self.runs.push(run.finish()?);
        // Its memory is kept for the next entries.
        self.recent.clear();
        self.merge()
    }

    /// Merges the last `RUNS_PER_MERGE` sorted runs into one run of the next level. Repeats this
    /// while the last `RUNS_PER_MERGE` runs have the same level.
    fn merge(&mut self) -> io::Result<()> {
        while let Some(first) = self.runs.len().checked_sub(RUNS_PER_MERGE)
            && self.runs[first].level == self.runs[self.runs.len() - 1].level
        {
            let merged = merge_runs(&mut self.runs[first..])?;
            self.runs.truncate(first);
            self.runs.push(merged);
        }
        Ok(())
    }
}

/// A sorted run: entries sorted by their hashes, in an unnamed temporary file.
#[derive(Debug)]
struct SortedRun {
    file: File,
    level: u32,
    entries: usize,
    filter: BloomFilter,
    /// The first hash of each block of `ENTRIES_PER_BLOCK` entries.
    firsts: Vec<u64>,
}

impl SortedRun {
    fn get(&self, hash: u64) -> io::Result<Option<u64>> {
        let Some(block) = self.firsts.partition_point(|&first| first <= hash).checked_sub(1) else { return Ok(None) };
        let count = ENTRIES_PER_BLOCK.min(self.entries - block * ENTRIES_PER_BLOCK);
        let mut bytes = [0; ENTRIES_PER_BLOCK * ENTRY_SIZE];
        let bytes = &mut bytes[..count * ENTRY_SIZE];
        self.file.read_exact_at(bytes, (block * ENTRIES_PER_BLOCK * ENTRY_SIZE) as u64)?;
        let (entries, _) = bytes.as_chunks::<ENTRY_SIZE>();
        let found = entries.binary_search_by_key(&hash, |bytes| decode_entry(bytes).0);
        Ok(found.ok().map(|at| decode_entry(&entries[at]).1))
    }
}

fn decode_entry(bytes: &[u8; ENTRY_SIZE]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    (number(0), number(8))
}

/// Merges sorted runs of the same level into one sorted run of the next level.
fn merge_runs(runs: &mut [SortedRun]) -> io::Result<SortedRun> {
    let entries = runs.iter().map(|run| run.entries).sum();
    let mut writer = SortedRunWriter::new(runs[0].level + 1, entries)?;
    let mut readers = Vec::with_capacity(runs.len());
    for run in runs {
        run.file.rewind()?;
        let mut reader = BufReader::with_capacity(64 << 10, &run.file);
        readers.push((next_entry(&mut reader)?, reader));
    }
    loop {
        let next = readers.iter_mut().filter_map(|(head, reader)| Some((head.as_ref().copied()?, head, reader)));
        let Some((least, head, reader)) = next.min_by_key(|(entry, ..)| *entry) else { break };
        writer.push(least)?;
        *head = next_entry(reader)?;
    }
    writer.finish()
}

fn next_entry(reader: &mut impl Read) -> io::Result<Option<(u64, u64)>> {
    let mut bytes = [0; ENTRY_SIZE];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(decode_entry(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a sorted run (entries sorted by their hashes) to a temporary file, entry by entry.
struct SortedRunWriter {
    file: BufWriter<File>,
    level: u32,
    entries: usize,
    filter: BloomFilter,
    firsts: Vec<u64>,
}

impl SortedRunWriter {
    fn new(level: u32, entries: usize) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::with_capacity(64 << 10, tempfile::tempfile()?),
            level,
            entries: 0,
            filter: BloomFilter::new(entries),
            firsts: Vec::with_capacity(entries.div_ceil(ENTRIES_PER_BLOCK)),
        })
    }

    /// Appends an entry. Its hash must be greater than the hashes of all earlier entries.
    fn push(&mut self, (hash, number): (u64, u64)) -> io::Result<()> {
        if self.entries.is_multiple_of(ENTRIES_PER_BLOCK) {
            self.firsts.push(hash);
        }
        self.entries += 1;
        self.filter.add(hash);
        self.file.write_all(&hash.to_le_bytes())?;
        self.file.write_all(&number.to_le_bytes())
    }

    fn finish(self) -> io::Result<SortedRun> {
        let Self { file, level, entries, filter, firsts } = self;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(SortedRun { file, level, entries, filter, firsts })
    }
}

/// A Bloom filter in parts of 512 bits, so that each lookup accesses only one cache line.
#[derive(Debug)]
struct BloomFilter(Vec<[u64; 8]>);

impl BloomFilter {
    fn new(entries: usize) -> Self {
        Self(vec![[0; 8]; (entries * FILTER_BITS_PER_ENTRY).div_ceil(512).max(1)])
    }

    fn block_index(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.0.len() as u128) >> 64) as usize
    }

    /// Returns the bits that a hash sets in its 512-bit part of the filter. Each bit is given as
    /// the index of a 64-bit word in that part, and a mask for the word.
    fn bits(hash: u64) -> impl Iterator<Item = (usize, u64)> {
        // The part was chosen by the upper bits, so the others are mixed into all.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = mixed ^ mixed >> 32;
        (0..FILTER_PROBES).map(move |probe| {
            let bit = mixed >> (9 * probe) & 511;
            ((bit >> 6) as usize, 1 << (bit & 63))
        })
    }

    fn add(&mut self, hash: u64) {
        let part = self.block_index(hash);
        Self::bits(hash).for_each(|(word, mask)| self.0[part][word] |= mask);
    }

    /// Returns false if the hash was certainly not added to the filter. For a hash that was not
    /// added, returns true in one or two of a hundred cases.
    fn may_have(&self, hash: u64) -> bool {
        let part = &self.0[self.block_index(hash)];
        Self::bits(hash).all(|(word, mask)| part[word] & mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a hash for tests: `number`, spread over all 64 bits.
    fn hash(number: u64) -> u64 {
        let mixed = (number + 1).wrapping_mul(0xd134_2543_de82_ef95);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn hash_index_finds_entries_in_memory_and_files() {
        let mut index = OnDiskHashIndex::with_memory(64);
        for number in 0..20_000 {
            assert_eq!(index.get(hash(number)).unwrap(), None);
            index.insert(hash(number), number).unwrap();
        }
        for number in 0..20_000 {
            assert_eq!(index.get(hash(number)).unwrap(), Some(number));
        }
        assert!(index.recent.len() < 64);
        let levels: Vec<u32> = index.runs.iter().map(|run| run.level).collect();
        assert!(levels.is_sorted_by(|a, b| a >= b) && levels.len() < 4 * RUNS_PER_MERGE, "{levels:?}");
        let entries: usize = index.runs.iter().map(|run| run.entries).sum();
        assert_eq!(entries + index.recent.len(), 20_000);
    }

    #[test]
    fn bloom_filter_excludes_nearly_all_absent_hashes() {
        let mut filter = BloomFilter::new(10_000);
        (0..10_000).for_each(|number| filter.add(hash(number)));
        assert!((0..10_000).all(|number| filter.may_have(hash(number))));
        let others = (10_000..110_000).filter(|&number| filter.may_have(hash(number))).count();
        assert!(others < 4_000, "{others} of 100000");
    }

    #[test]
    fn hash_index_needs_two_bytes_memory_per_entry() {
        let mut index = OnDiskHashIndex::with_memory(1 << 10);
        (0..200_000).for_each(|number| index.insert(hash(number), number).unwrap());
        let bytes: usize = index.runs.iter().map(|run| run.filter.0.len() * 64 + run.firsts.len() * 8).sum();
        assert!(bytes < 2 * 200_000, "{bytes}");
    }
}
