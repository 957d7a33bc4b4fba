//! The settings of traces, which print the events of transfers.
//!
//! ```
//! use haul_cli::plan::{TraceArgs, TraceFormat};
//!
//! assert_eq!(TraceArgs::default().form, TraceFormat::Off);
//! ```

use std::path::PathBuf;

/// The options for the trace of transfers: `-v`, `--trace`, `--trace-ascii` and similar options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceArgs {
    /// The format of the trace; [`TraceFormat::Off`] writes no trace.
    pub form: TraceFormat,
    /// The file to which the trace is written; `-` is standard output, `%` and `None` are standard
    /// error.
    pub file: Option<PathBuf>,
    /// `--trace-time`: prints the time before each line.
    pub time: bool,
    /// `--trace-ids`: prints the ids of the transfer and of the connection before each line.
    pub ids: bool,
}

impl TraceArgs {
    /// Adds what the `count`-th `-v` in one argument (`-vv`) adds to the first, as in curl: the
    /// second prints ids and times, the third the contents.
    pub(crate) fn add_repeated_verbose(&mut self, count: usize) {
        match count {
            0 | 1 => {}
            2 => (self.ids, self.time) = (true, true),
            _ => self.form = TraceFormat::Ascii,
        }
    }
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceFormat {
    /// No trace.
    #[default]
    Off,
    /// `-v`: the lines of request and response heads.
    Lines,
    /// `--trace-ascii`: heads and bodies as text.
    Ascii,
    /// `--trace`: heads and bodies as hexadecimal digits and text.
    Hex,
}
