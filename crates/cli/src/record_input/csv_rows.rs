//! Reads CSV and TSV lists with a header line, row by row (RFC 4180).
//!
//! The crate `csv-core` parses the rows. This reader limits their size. The crate `csv` has no
//! limit: a quote that is never closed would make it read the rest of the list into memory.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// The maximum size of a CSV row in bytes: 8 MiB. A larger row is an error ([`CsvFault::TooLong`]),
/// and no further row of the list is read.
const MAX_ROW: usize = 8 << 20;
const MAX_FIELDS: usize = 1 << 16;

/// A CSV list, whose header line has been read.
///
/// ```
/// use haul_cli::record_input::CsvRows;
///
/// let mut rows = CsvRows::open("id,name\n7,\"Ann, B.\"\n8\n".as_bytes(), b',').unwrap();
/// assert_eq!(rows.columns(), ["id", "name"]);
/// let row = rows.next_row().unwrap().unwrap();
/// assert_eq!((row.line, row.field(1)), (2, &b"Ann, B."[..]));
/// let row = rows.next_row().unwrap().unwrap();
/// assert_eq!((row.line, row.len()), (3, 1));
/// assert!(rows.next_row().unwrap().is_none());
/// ```
pub struct CsvRows<R> {
    reader: R,
    core: Reader,
    columns: Vec<String>,
    is_over: bool,
}

/// A row of a CSV list: its fields, and its line number.
#[derive(Debug, Default)]
pub struct CsvRow {
    /// The number of the line at which the row begins, from 1.
    pub line: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl CsvRow {
    /// Returns the number of fields in the row.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the row has no field.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the field of the column with this index. The result is empty if the row has no such
    /// field.
    pub fn field(&self, index: usize) -> &[u8] {
        let Some(&end) = self.ends.get(index) else { return b"" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }
}

/// The reason why a CSV list cannot be read any further.
#[derive(Debug)]
pub enum CsvFault {
    /// The list cannot be read, because a system call failed.
    Unreadable(io::Error),
    /// The row that begins at this line is too long, for example because a quote is never closed.
    TooLong(u64),
    /// The list ends within a quoted field of the row that begins at this line.
    OpenQuote(u64),
    /// The list is empty, so that it has no header line.
    NoHeader,
    /// The header line contains the name of a column that is not UTF-8.
    HeaderNotUtf8,
    /// Two columns in the header line have this name.
    DuplicateColumn(String),
}

impl fmt::Display for CsvFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CsvFault::Unreadable(error) => error.fmt(f),
            CsvFault::TooLong(line) => {
                let limit = MAX_ROW >> 20;
                write!(
                    f,
                    "line {line}: the row is longer than {limit} MiB; a quote that is not closed may be the cause"
                )
            }
            CsvFault::OpenQuote(line) => write!(f, "line {line}: a quote of the row is not closed; close it"),
            CsvFault::NoHeader => f.write_str("there is no header line with the names of the columns"),
            CsvFault::HeaderNotUtf8 => f.write_str("line 1: the name of a column is not UTF-8"),
            CsvFault::DuplicateColumn(name) => write!(f, "line 1: two columns have the name {name:?}"),
        }
    }
}

impl std::error::Error for CsvFault {}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header line of a list.
    ///
    /// # Errors
    /// The list cannot be read, or has no usable header line.
    pub fn open(reader: R, delimiter: u8) -> Result<Self, CsvFault> {
        let core = ReaderBuilder::new().delimiter(delimiter).build();
        let mut rows = Self { reader, core, columns: Vec::new(), is_over: false };
        let header = rows.next_row()?.ok_or(CsvFault::NoHeader)?;
        let mut known = HashSet::with_capacity(header.len());
        for index in 0..header.len() {
            let name = str::from_utf8(header.field(index)).map_err(|_| CsvFault::HeaderNotUtf8)?;
            // csv-core removes a byte order mark only if it comes with the first read.
            let name = if index == 0 { name.trim_start_matches('\u{feff}') } else { name }.trim();
            if !name.is_empty() && !known.insert(name) {
                return Err(CsvFault::DuplicateColumn(name.to_owned()));
            }
            rows.columns.push(name.to_owned());
        }
        Ok(rows)
    }

    /// Returns the names of the columns, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the next row that is not blank. Returns `None` at the end of the list.
    ///
    /// # Errors
    /// The list cannot be read any further.
    pub fn next_row(&mut self) -> Result<Option<CsvRow>, CsvFault> {
        if self.is_over {
            return Ok(None);
        }
        let first_line = self.core.line();
        let mut row = CsvRow { line: 0, bytes: vec![0; 256], ends: vec![0; 16] };
        let (mut length, mut fields) = (0, 0);
        let mut ends_with_line_feed = false;
        loop {
            let input = self.reader.fill_buf().map_err(CsvFault::Unreadable)?;
            // A line feed after the list ends its last row, unless a quote is open.
            let is_end = input.is_empty();
            let text: &[u8] = if is_end { b"\n" } else { input };
            let (result, read, written, ended) =
                self.core.read_record(text, &mut row.bytes[length..], &mut row.ends[fields..]);
            ends_with_line_feed = if read > 0 { text[read - 1] == b'\n' } else { ends_with_line_feed };
            self.reader.consume(if is_end { 0 } else { read });
            (length, fields) = (length + written, fields + ended);
            match result {
                ReadRecordResult::InputEmpty if is_end => {
                    self.is_over = true;
                    return if written > 0 { Err(CsvFault::OpenQuote(first_line)) } else { Ok(None) };
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if row.bytes.len() < MAX_ROW => {
                    row.bytes.resize(row.bytes.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull if row.ends.len() < MAX_FIELDS => {
                    row.ends.resize(row.ends.len() * 2, 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    self.is_over = true;
                    return Err(CsvFault::TooLong(first_line));
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => {
                    self.is_over = true;
                    return Ok(None);
                }
            }
        }
        row.bytes.truncate(length);
        row.ends.truncate(fields);
        let last_line = self.core.line() - u64::from(ends_with_line_feed);
        row.line = last_line - row.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(Some(row))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    /// A test reader that returns one byte at a time.
    struct OneByteReader<'a>(&'a [u8]);

    impl Read for OneByteReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn all(reader: impl BufRead, delimiter: u8) -> Result<Vec<(u64, Vec<String>)>, CsvFault> {
        let mut rows = CsvRows::open(reader, delimiter)?;
        let mut found = vec![(1, rows.columns().to_vec())];
        while let Some(row) = rows.next_row()? {
            let fields = (0..row.len()).map(|at| String::from_utf8_lossy(row.field(at)).into_owned());
            found.push((row.line, fields.collect()));
        }
        Ok(found)
    }

    #[test]
    fn csv_rows_do_not_depend_on_read_boundaries() {
        let text = "\u{feff} id ,name\r\n1,\"a\"\"b, c\"\r\n\r\n2,\"two\nlines\"\n3,\n\n4,last";
        let expected: Vec<(u64, Vec<String>)> =
            [(1, ["id", "name"]), (2, ["1", "a\"b, c"]), (4, ["2", "two\nlines"]), (6, ["3", ""]), (8, ["4", "last"])]
                .map(|(line, fields)| (line, fields.map(str::to_owned).to_vec()))
                .to_vec();
        assert_eq!(all(text.as_bytes(), b',').unwrap(), expected);
        assert_eq!(all(BufReader::with_capacity(1, OneByteReader(text.as_bytes())), b',').unwrap(), expected);
        for end in 0..text.len() {
            let _ = all(&text.as_bytes()[..end], b',');
        }
    }

    #[test]
    fn tabs_separate_the_fields_of_tsv() {
        let rows = all("a\tb\n1,2\t\"x y\"\n".as_bytes(), b'\t').unwrap();
        assert_eq!(rows[1].1, ["1,2", "x y"]);
    }

    #[test]
    fn unusable_csv_lists_are_errors_with_a_reason() {
        let fault = |text: &[u8]| all(text, b',').unwrap_err().to_string();
        assert_eq!(fault(b""), "there is no header line with the names of the columns");
        assert_eq!(fault(b"a,\xff\n"), "line 1: the name of a column is not UTF-8");
        assert_eq!(fault(b"a,b,a\n"), "line 1: two columns have the name \"a\"");
        for text in ["a,b\n1,2\n3,\"4\n5,6\n", "a,b\n1,2\n\"", "a,b\n1,2\n3,\"\"\"", "a,b\n1,2\n3,\"4\r\n"] {
            assert_eq!(fault(text.as_bytes()), "line 3: a quote of the row is not closed; close it", "{text}");
        }
        for text in
            ["a,b\n1,\"2\"", "a,b\n1,\"2\"\"\"", "a,b\n1,2\"", "a,b\r\n1,\"\"\r\n", "a,b\n1,2\r", "a\n", "\"a\""]
        {
            all(text.as_bytes(), b',').unwrap();
        }
        let open = [b"a,b\n1,\"".as_slice(), &vec![b'x'; MAX_ROW + 10]].concat();
        assert!(fault(&open).starts_with("line 2: the row is longer than 8 MiB"), "{}", fault(&open));
        let wide = [b"a\n".as_slice(), &vec![b','; MAX_FIELDS + 10]].concat();
        assert!(fault(&wide).starts_with("line 2: "));
    }
}
