//! Lists of requests: `--jsonl-in`, where each line of an `--input-file` is a JSON object that
//! describes one request, and `--csv-in`, where the columns of each row fill placeholders.
//!
//! A list may come from an untrusted source. So a record cannot name an output file outside of the
//! output directory, and it can name a file as request content only with `--allow-body-files`.
//! [`crate::run`] decides which credentials of the command line a record's request may have.
//!
//! ```
//! use haul_cli::record_input::{RecordBody, JsonlRequest};
//!
//! let record = JsonlRequest::parse(br#"{"url": "http://h/", "json": {"a": 1}, "id": [7]}"#).unwrap();
//! assert_eq!((record.url.as_deref(), record.id.as_deref()), (Some("http://h/"), Some("[7]")));
//! assert!(matches!(record.body, Some(RecordBody::Bytes { bytes, .. }) if bytes == br#"{"a": 1}"#));
//!
//! let error = JsonlRequest::parse(br#"{"url": "http://h/", "timeout": "soon"}"#).err().unwrap();
//! assert_eq!(error.to_string(), "key \"timeout\": expected a number of seconds above 0, not a string");
//! ```

mod csv_rows;
mod json_object_members;
mod jsonl_request;
mod output_path_check;

pub use csv_rows::{CsvFault, CsvRow, CsvRows};
pub use jsonl_request::{JsonlRequest, RecordAuth, RecordBody, RecordError};
pub use output_path_check::{OutputPathFault, parse_output_path};

/// The format of those input files of a URL group whose lines describe requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordInputFormat {
    /// `--jsonl-in`: one JSON object per line.
    JsonLines,
    /// `--csv-in`: a header line with the names of the columns, and a row for each request. In a
    /// file whose name ends in `.tsv` or `.tab`, tabs separate the fields.
    Csv,
    /// `--tsv-in`: a list as for `--csv-in`, with tabs between the fields.
    Tsv,
}

impl RecordInputFormat {
    /// Returns the option that selects the format.
    pub fn option(self) -> &'static str {
        match self {
            RecordInputFormat::JsonLines => "--jsonl-in",
            RecordInputFormat::Csv => "--csv-in",
            RecordInputFormat::Tsv => "--tsv-in",
        }
    }

    /// Returns true if the columns of a row fill the placeholders of the command line.
    pub fn has_columns(self) -> bool {
        matches!(self, RecordInputFormat::Csv | RecordInputFormat::Tsv)
    }

    /// Returns the byte that separates the fields of the list with this file name.
    pub fn delimiter(self, name: &str) -> u8 {
        let is_tsv = || [".tsv", ".tab"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        if self == RecordInputFormat::Tsv || is_tsv() { b'\t' } else { b',' }
    }
}
