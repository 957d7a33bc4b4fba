//! Lists of extracted matches: many short values in one allocation. In this form, a sink receives
//! the values that were extracted from a body ([`Sink::records`](super::Sink::records)).
//!
//! ```
//! use haul::sink::extracted_value_list::ExtractedValues;
//! let mut records = ExtractedValues::default();
//! records.push(b"AS1");
//! records.push(b"AS22");
//! assert_eq!(records.to_lines(), b"AS1\nAS22\n");
//! ```

use std::fs::File;
use std::io;
use std::sync::Arc;

use haul_policy::terminal_text::escape_for_terminal;

use crate::system::file_metadata_and_flags::FileExt;

/// The maximum number of bytes of memory that a cleared list keeps for further values.
const MAX_IDLE_CAPACITY: usize = 128 << 10;

/// The number of bytes that each value takes in the index written by [`ExtractedValues::write_at`]:
/// the offset of the value's end, and the number of the search expression that found the value.
const INDEX_ENTRY: usize = size_of::<u64>() + size_of::<u16>();

/// A list of values that were extracted from bodies, in the order in which they were found.
#[derive(Debug, Default, Clone)]
pub struct ExtractedValues {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// For each value, the number of the search expression that found it: its index in the query,
    /// from 0.
    expressions: Vec<u16>,
    /// The position of the list's first value, by which the values of several transfers can be
    /// sorted into input order. `None` if the values are not sorted.
    pub place: Option<ValueInputPosition>,
}

/// The position of a list of extracted values in the order of a [fleet](crate::fleet)'s input. The
/// lists of many transfers are sorted by this position. A fleet has stages: each later stage
/// requests URLs that are made from the values of the previous stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueInputPosition {
    /// The numbers of the transfers that led to the values, one for each stage of the fleet,
    /// beginning with the first stage. The body of the last of these transfers contains the values.
    pub order: Arc<[u64]>,
    /// The number of values that were found in the same body before the first value of the list.
    pub before: u64,
}

impl ValueInputPosition {
    /// Returns the position in input order of the value at `index` in the list.
    #[must_use]
    pub fn order_of_match(&self, index: usize) -> Vec<u64> {
        let mut order = self.order.to_vec();
        order.push(self.before + index as u64);
        order
    }
}

impl ExtractedValues {
    /// Adds a value at the end of the list. The number of the search expression that found the
    /// value ([`expression`](Self::expression)) is then 0.
    pub fn push(&mut self, value: &[u8]) {
        self.push_found(0, value);
    }

    /// Adds a value at the end of the list. `expression` is the number of the search expression
    /// that found the value.
    pub fn push_found(&mut self, expression: usize, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        self.expressions.push(u16::try_from(expression).unwrap_or(u16::MAX));
    }

    /// Moves all values of `other` to the end of this list, and leaves `other` empty.
    pub fn append(&mut self, other: &mut Self) {
        let base = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.ends.extend(other.ends.drain(..).map(|end| end + base));
        self.expressions.append(&mut other.expressions);
    }

    /// Returns the values in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let value = &self.bytes[start..end];
            start = end;
            value
        })
    }

    /// Returns the value at `index`.
    ///
    /// # Panics
    /// The list has no value at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// Returns the number of the search expression that found the value at `index`: the index of
    /// the expression in the query, counted from 0.
    ///
    /// # Panics
    /// The list has no value at `index`.
    #[must_use]
    pub fn expression(&self, index: usize) -> usize {
        self.expressions[index].into()
    }

    /// Returns the number of values in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the size in bytes of the list's memory, which counts towards memory limits.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.expressions.capacity() * size_of::<u16>()
    }

    /// Returns the total number of bytes of all values.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the values as lines, each followed by a line feed.
    #[must_use]
    pub fn to_lines(&self) -> Vec<u8> {
        let mut lines = Vec::with_capacity(self.bytes.len() + self.ends.len());
        for value in self.iter() {
            lines.extend_from_slice(value);
            lines.push(b'\n');
        }
        lines
    }

    /// Returns a copy in which the values contain no characters that could control a terminal or
    /// deceive its reader ([`escape_for_terminal`]).
    #[must_use]
    pub fn for_terminal(&self) -> Self {
        let mut shown = Self { place: self.place.clone(), ..Self::default() };
        for (index, value) in self.iter().enumerate() {
            shown.push_found(self.expression(index), &escape_for_terminal(value));
        }
        shown
    }

    /// Writes the list to a file, beginning at the offset `at`: the number of values, an index with
    /// the end and the search expression of each value, and then the values. Returns the offset
    /// after the last written byte. Does not write [`ExtractedValues::place`], the list's position
    /// in input order.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_at(&self, file: &File, at: u64) -> io::Result<u64> {
        let mut index = Vec::with_capacity(8 + INDEX_ENTRY * self.ends.len());
        index.extend_from_slice(&(self.ends.len() as u64).to_le_bytes());
        for (end, expression) in self.ends.iter().zip(&self.expressions) {
            index.extend_from_slice(&(*end as u64).to_le_bytes());
            index.extend_from_slice(&expression.to_le_bytes());
        }
        let bytes = at + index.len() as u64;
        file.write_all_at(&index, at)?;
        file.write_all_at(&self.bytes, bytes)?;
        Ok(bytes + self.bytes.len() as u64)
    }

    /// Reads values that [`ExtractedValues::write_at`] has written at the offset `at`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read_at(file: &File, at: u64) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let mut count = [0; 8];
        file.read_exact_at(&mut count, at)?;
        let size = usize::try_from(u64::from_le_bytes(count)).ok().and_then(|count| count.checked_mul(INDEX_ENTRY));
        let mut index = vec![0; size.ok_or_else(invalid)?];
        file.read_exact_at(&mut index, at + 8)?;
        let mut values = Self::default();
        for entry in index.chunks_exact(INDEX_ENTRY) {
            let (end, expression) = entry.split_first_chunk::<8>().ok_or_else(invalid)?;
            values.ends.push(usize::try_from(u64::from_le_bytes(*end)).map_err(|_| invalid())?);
            values.expressions.push(u16::from_le_bytes(expression.try_into().map_err(|_| invalid())?));
        }
        values.bytes = vec![0; values.ends.last().copied().unwrap_or(0)];
        file.read_exact_at(&mut values.bytes, at + 8 + index.len() as u64)?;
        Ok(values)
    }

    /// Removes all values, and keeps some of the allocated memory for further values.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_IDLE_CAPACITY);
        self.ends.clear();
        self.expressions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_match_lists_keep_value_boundaries() {
        let (mut a, mut b) = (ExtractedValues::default(), ExtractedValues::default());
        a.push(b"x");
        b.push_found(2, b"yy");
        b.push(b"");
        a.append(&mut b);
        assert!(b.is_empty());
        assert_eq!(
            (0..3).map(|index| (a.get(index), a.expression(index))).collect::<Vec<_>>(),
            [(&b"x"[..], 0), (b"yy", 2), (b"", 0)]
        );
        assert_eq!(a.iter().collect::<Vec<_>>(), [&b"x"[..], b"yy", b""]);
    }

    #[test]
    fn match_list_for_terminal_keeps_boundaries_and_expressions() {
        let mut list = ExtractedValues::default();
        list.push_found(3, "\u{9b}2J\u{202e}".as_bytes());
        list.push_found(1, b"\x1b[31mred");
        let shown = list.for_terminal();
        assert_eq!(shown.iter().collect::<Vec<_>>(), [&b"?2J?"[..], b"?[31mred"]);
        assert_eq!([shown.expression(0), shown.expression(1)], [3, 1]);
    }

    #[test]
    fn match_list_is_read_back_from_a_file() {
        let file = tempfile::tempfile().unwrap();
        let mut list = ExtractedValues::default();
        let after_empty = list.write_at(&file, 0).unwrap();
        for (expression, value) in [(0, &b"a"[..]), (7, b""), (65_535, b"\x00\n"), (1, &[b'x'; 70_000])] {
            list.push_found(expression, value);
        }
        let end = list.write_at(&file, after_empty).unwrap();
        assert_eq!(file.metadata().unwrap().len(), end);
        assert!(ExtractedValues::read_at(&file, 0).unwrap().is_empty());
        let again = ExtractedValues::read_at(&file, after_empty).unwrap();
        assert!(again.iter().eq(list.iter()));
        assert!((0..4).all(|index| again.expression(index) == list.expression(index)));
        assert!(ExtractedValues::read_at(&file, end).is_err());
    }
}
