//! Temporary files for extracted values that exceed the memory budget of an output window. A file
//! keeps the values of one slot until the window outputs them.
//!
//! One piece of a page can yield megabytes of values, because nested values contain each other. The
//! piece has already been received, so the window must store all its values. Bodies need no file:
//! when the budget is used up, their transfers stop receiving.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::sink::extracted_value_list::{ExtractedValues, ValueInputPosition};
use crate::{Error, ErrorKind, Result};

/// The number of bytes by which the extracted values in memory may exceed the memory budget of an
/// output window (an ordered queue of bodies). Further values are written to a file.
pub(super) const MAX_BYTES_OVER_BUDGET: usize = 1 << 20;

/// The temporary file for the extracted values of one body in an output window (an ordered queue of
/// bodies). The file has no name, so the system deletes it when the body's slot is dropped.
#[derive(Debug)]
pub(super) struct OverflowFile {
    file: Arc<File>,
    end: u64,
}

/// The position of a block of values in an [`OverflowFile`], the temporary file for the values that
/// were extracted from one body.
#[derive(Debug)]
pub(super) struct StoredValuesPosition {
    file: Arc<File>,
    at: u64,
    position: Option<ValueInputPosition>,
    /// The number of bytes by which the stored values count towards the output window's memory
    /// budget: as many as if they were in memory. Moving values to the file thus makes no room for
    /// further received bytes.
    cost: usize,
}

impl OverflowFile {
    /// Makes an unnamed temporary file in the directory `dir`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        Ok(Self { file: Arc::new(tempfile::tempfile_in(dir)?), end: 0 })
    }

    /// Writes values at the end of the file.
    ///
    /// # Errors
    /// The disk is full, or another error of the file system.
    pub(super) fn store(&mut self, values: &ExtractedValues) -> io::Result<StoredValuesPosition> {
        let at = self.end;
        self.end = values.write_at(&self.file, at)?;
        let position = values.place.clone();
        Ok(StoredValuesPosition { file: Arc::clone(&self.file), at, position, cost: values.memory_size() })
    }
}

impl StoredValuesPosition {
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Reads the values back into memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(self) -> Result<ExtractedValues> {
        let mut values = ExtractedValues::read_at(&self.file, self.at).map_err(|error| {
            Error::with_source(ErrorKind::Write, "the temporary file with values cannot be read", error)
        })?;
        values.place = self.position;
        Ok(values)
    }
}
