//! Reads the `--input-file` lists line by line: URLs, requests (`--jsonl-in`), or rows
//! (`--csv-in`).

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use haul::{Error, ErrorKind, Result};

use crate::file_and_environment_access::stdin;
use crate::record_input::{CsvFault, CsvRow, CsvRows, JsonlRequest, RecordInputFormat};
use crate::url_sources;

/// The maximum length of a line in a list, without its line end: 8 MiB.
pub(super) const MAX_LINE: u64 = 8 << 20;

/// An `--input-file` list that is being read.
pub(crate) struct ListReader {
    reader: Box<dyn BufRead + Send>,
    name: Arc<str>,
    /// The number of the line that was read last, from 1.
    line: u64,
}

/// A record of a list, with its position in the list. The id of the record is known even if the
/// record is invalid.
pub(crate) struct NumberedRecord {
    pub(crate) position: ListLineNumber,
    pub(crate) id: Option<Box<str>>,
    pub(crate) record: Result<JsonlRequest>,
}

/// The name of a list and the number of a line in it, for messages.
pub(crate) struct ListLineNumber {
    list: Arc<str>,
    line: u64,
}

impl fmt::Display for ListLineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = if &*self.list == "-" { "standard input" } else { &self.list };
        write!(f, "{list}, line {}", self.line)
    }
}

impl ListReader {
    /// Opens the list with this name; `-` is standard input.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let reader: std::io::Result<Box<dyn BufRead + Send>> = match name {
            "-" => stdin().map(|stdin| Box::new(BufReader::with_capacity(64 << 10, stdin)) as _),
            name => File::open(name).map(|file| Box::new(BufReader::with_capacity(64 << 10, file)) as _),
        };
        let reader = reader.map_err(|error| unreadable(name, error))?;
        Ok(Self { reader, name: name.into(), line: 0 })
    }

    /// Creates the reader of a list from `reader`. `name` is the name of the list in messages.
    pub(crate) fn from_reader(reader: Box<dyn BufRead + Send>, name: &str) -> Self {
        Self { reader, name: name.into(), line: 0 }
    }

    /// Returns the next URL of the list, without surrounding blanks. Skips lines without a URL. For
    /// a line that is too long, returns an error in place of the URL; the next call returns the URL
    /// of a later line. Returns `None` at the end of the list.
    ///
    /// # Errors
    /// The list cannot be read. It has no further lines.
    pub(crate) fn next_url(&mut self) -> Result<Option<Result<String>>> {
        loop {
            let line = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(LineReadError::TooLong { is_comment: true }) => continue,
                Err(fault @ LineReadError::TooLong { .. }) => return Ok(Some(Err(self.error(fault)))),
                Err(fault) => return Err(self.error(fault)),
            };
            if let Some(text) = url_sources::url_in_line(url_sources::without_byte_order_mark(&line, self.line)) {
                return Ok(Some(Ok(url_sources::to_text(text).into_owned())));
            }
        }
    }

    /// Returns the record in the next line that is not blank. Returns `None` at the end of the
    /// list.
    pub(crate) fn next_record(&mut self) -> Result<Option<NumberedRecord>> {
        loop {
            let line = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(fault @ LineReadError::TooLong { .. }) => {
                    let (position, record) = (self.position(), Err(self.error(fault)));
                    return Ok(Some(NumberedRecord { position, id: None, record }));
                }
                Err(fault) => return Err(self.error(fault)),
            };
            let text = url_sources::without_byte_order_mark(&line, self.line).trim_ascii_end();
            if text.trim_ascii_start().is_empty() {
                continue;
            }
            let position = self.position();
            return Ok(Some(match JsonlRequest::parse(text) {
                Ok(mut record) => NumberedRecord { position, id: record.id.take(), record: Ok(record) },
                Err(error) => {
                    let record = Err(Error::new(ErrorKind::Read, format!("{position}: {error}")));
                    NumberedRecord { position, id: JsonlRequest::parse_id(text), record }
                }
            }));
        }
    }

    /// Returns the position of the line that was read last.
    fn position(&self) -> ListLineNumber {
        ListLineNumber { list: Arc::clone(&self.name), line: self.line }
    }

    fn error(&self, fault: LineReadError) -> Error {
        match fault {
            LineReadError::Unreadable(error) => unreadable(&self.name, error),
            LineReadError::TooLong { .. } => {
                let message = format!("{}: the line is longer than {} MiB", self.position(), MAX_LINE >> 20);
                Error::new(ErrorKind::Read, message)
            }
        }
    }

    /// Reads the header line of a `--csv-in` or `--tsv-in` list. Returns the opened list, whose
    /// next row is the one after the header line.
    pub(crate) fn into_rows(self, format: RecordInputFormat) -> Result<OpenCsvList> {
        let name = if &*self.name == "-" { "standard input".to_owned() } else { self.name.to_string() };
        match CsvRows::open(self.reader, format.delimiter(&self.name)) {
            Ok(rows) => Ok(OpenCsvList { rows, name }),
            Err(fault) => Err(csv_error(&name, fault)),
        }
    }

    /// Returns the next line, with its line end. Returns `None` at the end of the list. Skips the
    /// rest of a line that is too long.
    fn next_line(&mut self) -> std::result::Result<Option<Vec<u8>>, LineReadError> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let read = read.map_err(LineReadError::Unreadable)?;
        self.line += 1;
        if read as u64 > MAX_LINE && line.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n').map_err(LineReadError::Unreadable)?;
            let start = url_sources::without_byte_order_mark(&line, self.line);
            return Err(LineReadError::TooLong { is_comment: start.trim_ascii_start().starts_with(b"#") });
        }
        Ok((read > 0).then_some(line))
    }
}

/// A `--csv-in` or `--tsv-in` list whose header line has been read.
pub(crate) struct OpenCsvList {
    rows: CsvRows<Box<dyn BufRead + Send>>,
    name: String,
}

impl OpenCsvList {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn columns(&self) -> &[String] {
        self.rows.columns()
    }

    /// Returns the next row of the list. Returns `None` at the end of the list.
    pub(crate) fn next_row(&mut self) -> Result<Option<CsvRow>> {
        self.rows.next_row().map_err(|fault| csv_error(&self.name, fault))
    }

    /// Adds the name of the list and the line number of the row to an error that the row caused.
    pub(crate) fn error_at_row(&self, row: &CsvRow, error: &Error) -> Error {
        let message = format!("{}, line {}: {}", self.name, row.line, error.cause());
        let placed = Error::new(error.kind(), message);
        match error.url() {
            Some(url) => placed.with_url(url),
            None => placed,
        }
    }
}

fn csv_error(name: &str, fault: CsvFault) -> Error {
    match fault {
        CsvFault::Unreadable(error) => unreadable(name, error),
        fault => Error::new(ErrorKind::Read, format!("{name}: {fault}")),
    }
}

/// The reason why a line of a list cannot be read.
enum LineReadError {
    Unreadable(std::io::Error),
    /// The line is longer than [`MAX_LINE`]. `is_comment` is true if it is a comment in a list of
    /// URLs.
    TooLong {
        is_comment: bool,
    },
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Read, format!("failed to read the list {name}"), error)
}
