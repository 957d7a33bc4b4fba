//! The settings of lists whose lines describe requests.

use crate::record_input::RecordInputFormat;

/// The settings of `--jsonl-in` and `--csv-in`: input files in which each line or row describes a
/// request. `Debug` does not show the URLs, which may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordInputArgs {
    /// The format of the lines or rows in the input files.
    pub format: RecordInputFormat,
    /// The URLs of the command line. With JSON lines there is at most one, to which the URLs of the
    /// records are relative. With CSV, these URLs are templates with the names of columns. Only the
    /// origins of these URLs may receive the credentials of the command line.
    pub urls: Vec<String>,
    /// `--allow-body-files`: a record may name a file that is sent.
    pub allow_body_files: bool,
}

impl std::fmt::Debug for RecordInputArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordInputArgs")
            .field("format", &self.format)
            .field("urls", &self.urls.len())
            .field("allow_body_files", &self.allow_body_files)
            .finish()
    }
}
