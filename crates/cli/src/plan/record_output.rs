//! The records that the last stage prints instead of bodies (`--jsonl`, `--csv`).
//!
//! ```
//! use haul_cli::plan::RecordOutputFormat;
//!
//! assert_eq!(RecordOutputFormat::Jsonl { bodies: false }.option(), "--jsonl");
//! ```

/// The format of the records that are printed instead of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOutputFormat {
    /// `--jsonl`: a JSON object on one line for each URL.
    Jsonl {
        /// True to include bodies; false for `--jsonl=no-body`.
        bodies: bool,
    },
    /// `--csv`: the extracted values as rows of CSV.
    Csv,
}

impl RecordOutputFormat {
    /// Returns the command-line option that selects this format, such as `--jsonl`.
    pub fn option(self) -> &'static str {
        match self {
            RecordOutputFormat::Jsonl { .. } => "--jsonl",
            RecordOutputFormat::Csv => "--csv",
        }
    }
}

/// The settings for the records (`--jsonl`, `--csv`) that a stage prints instead of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOutputArgs {
    /// The format of the records, such as JSON lines.
    pub format: RecordOutputFormat,
    /// True if records contain bodies. A body that is written to a file is left out.
    pub keeps_bodies: bool,
    /// True if bodies are written to files in addition to the records: at least one URL has a file
    /// of its own, as with `-O`. False if all URLs share one output, such as standard output or
    /// `-o all.jsonl`. This output receives only the records.
    pub has_files: bool,
}

impl RecordOutputArgs {
    /// Returns true if every record contains the body of its response, and no body goes to a file.
    /// Requests then ask for compressed content, which haul decodes, and the bodies of error
    /// responses (4xx, 5xx) are kept, too.
    pub fn has_all_bodies(self) -> bool {
        self.keeps_bodies && !self.has_files
    }
}
