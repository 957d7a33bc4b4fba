//! Sorted runs of values on disk, and their merge.
//!
//! A run is an unlinked temporary file of records (a length of 4 bytes, then the bytes) in bytewise
//! order. The level of a run is the number of merges that its values have gone through. As soon as
//! there are [`RUNS_PER_MERGE`] runs of one level, they are merged into one run of the next level.
//! So every record is copied once for each level, and fewer than `RUNS_PER_MERGE` files are open
//! for each level.
//!
//! The crate `extsort` was considered instead: it limits its memory by a number of items, not of
//! bytes, allocates every item, opens all its runs at once, cannot drop repeated values, and has
//! its own thread pool.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, binary_heap::PeekMut},
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

use crate::{Error, ErrorKind, Result};

/// The number of sorted runs (sorted files on disk) that one merge combines. It limits the number
/// of files that are open at the same time.
const RUNS_PER_MERGE: usize = 16;
const BUFFER: usize = 64 * 1024;

/// The sorted runs (sorted files) that one sorter has written to disk.
#[derive(Debug)]
pub(super) struct SpilledRuns {
    dir: PathBuf,
    unique: bool,
    /// The sorted runs on disk. The runs that went through the most merges come first.
    runs: Vec<SpilledRun>,
}

/// A sorted run (a sorted file of values) on disk. Its level is the number of merges that its
/// values have gone through.
#[derive(Debug)]
struct SpilledRun {
    level: u32,
    file: File,
}

impl SpilledRuns {
    pub(super) fn new(dir: PathBuf, unique: bool) -> Self {
        Self { dir, unique, runs: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes values, which must be sorted already, to disk as a new sorted run of level 0. Then,
    /// as long as [`RUNS_PER_MERGE`] runs have the same level, merges them into one run of the next
    /// level.
    pub(super) fn add<'a>(&mut self, values: impl IntoIterator<Item = &'a [u8]>) -> Result<()> {
        let mut writer = self.create()?;
        for value in values {
            write_record(&mut writer, value).map_err(|cause| spill_error(&self.dir, cause))?;
        }
        self.close(writer, 0)?;
        while let Some(merged) = self.full_level() {
            let level = merged[0].level + 1;
            let mut merge = SortedRunMerge::new(self.dir.clone(), self.unique, merged)?;
            let mut writer = self.create()?;
            while let Some(value) = merge.next_value()? {
                write_record(&mut writer, value).map_err(|cause| spill_error(&self.dir, cause))?;
            }
            self.close(writer, level)?;
        }
        Ok(())
    }

    /// Removes and returns the last [`RUNS_PER_MERGE`] runs if they must be merged now, because all
    /// of them have the same level (the number of merges that a run has gone through). Otherwise
    /// returns `None`.
    fn full_level(&mut self) -> Option<Vec<SpilledRun>> {
        let from = self.runs.len().checked_sub(RUNS_PER_MERGE)?;
        (self.runs[from].level == self.runs.last()?.level).then(|| self.runs.split_off(from))
    }

    /// Merges all runs on disk, and returns a reader of their values in order.
    pub(super) fn merge(self) -> Result<SortedRunMerge> {
        SortedRunMerge::new(self.dir, self.unique, self.runs)
    }

    fn create(&self) -> Result<BufWriter<File>> {
        let file = tempfile::tempfile_in(&self.dir).map_err(|cause| spill_error(&self.dir, cause))?;
        Ok(BufWriter::with_capacity(BUFFER, file))
    }

    fn close(&mut self, writer: BufWriter<File>, level: u32) -> Result<()> {
        let close = || -> io::Result<File> {
            let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        };
        let file = close().map_err(|cause| spill_error(&self.dir, cause))?;
        self.runs.push(SpilledRun { level, file });
        Ok(())
    }
}

fn spill_error(dir: &Path, cause: io::Error) -> Error {
    Error::with_source(ErrorKind::Write, format!("temporary file in {} failed", dir.display()), cause)
}

fn write_record(writer: &mut impl Write, value: &[u8]) -> io::Result<()> {
    let length = u32::try_from(value.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(value)
}

/// Reads the next value of a sorted run into `value`. Returns false at the end of the run.
fn read_record(reader: &mut BufReader<File>, value: &mut Vec<u8>) -> io::Result<bool> {
    if reader.fill_buf()?.is_empty() {
        return Ok(false);
    }
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    value.resize(u32::from_le_bytes(length) as usize, 0);
    reader.read_exact(value)?;
    Ok(true)
}

/// A merge of several sorted runs into one sequence of values.
#[derive(Debug)]
pub(super) struct SortedRunMerge {
    dir: PathBuf,
    unique: bool,
    readers: Vec<BufReader<File>>,
    heads: BinaryHeap<MergeHead>,
    current: Option<Vec<u8>>,
}

/// The next value of one of the sorted runs that are being merged.
#[derive(Debug, PartialEq, Eq)]
struct MergeHead {
    value: Vec<u8>,
    reader: usize,
}

impl Ord for MergeHead {
    /// Compares two values in reverse order, because a `BinaryHeap` pops its greatest element, but
    /// the merge needs the smallest value.
    fn cmp(&self, other: &Self) -> Ordering {
        other.value.cmp(&self.value).then(other.reader.cmp(&self.reader))
    }
}

impl PartialOrd for MergeHead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SortedRunMerge {
    fn new(dir: PathBuf, unique: bool, runs: Vec<SpilledRun>) -> Result<Self> {
        let mut merge =
            Self { dir, unique, readers: Vec::new(), heads: BinaryHeap::with_capacity(runs.len()), current: None };
        for (reader, run) in runs.into_iter().enumerate() {
            merge.readers.push(BufReader::with_capacity(BUFFER, run.file));
            let mut value = Vec::new();
            if read_record(&mut merge.readers[reader], &mut value).map_err(|cause| spill_error(&merge.dir, cause))? {
                merge.heads.push(MergeHead { value, reader });
            }
        }
        Ok(merge)
    }

    pub(super) fn next_value(&mut self) -> Result<Option<&[u8]>> {
        loop {
            let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
            let repeated = self.unique && self.current.as_ref().is_some_and(|current| *current == head.value);
            let current = self.current.get_or_insert_default();
            std::mem::swap(current, &mut head.value);
            let reader = &mut self.readers[head.reader];
            if !read_record(reader, &mut head.value).map_err(|cause| spill_error(&self.dir, cause))? {
                PeekMut::pop(head);
            }
            if !repeated {
                return Ok(self.current.as_deref());
            }
        }
    }
}
