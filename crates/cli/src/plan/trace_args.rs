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
    /// The level of `-v` so far: the number of letters in `-vvv`; 0 without the option.
    pub verbosity: u8,
    /// True if `--trace-config` is given, whose times and ids a later `-v` keeps.
    pub is_configured: bool,
}

impl TraceArgs {
    /// Applies `--verbose`, or the first letter of an argument such as `-vv`. As in curl, it sets
    /// the level of earlier arguments back, with the times and ids that this level has added. In
    /// curl's place (`is_curl`) it also ends `--trace-time` and `--trace-ids`. `--trace-config`
    /// keeps its times and ids.
    pub(crate) fn set_verbose(&mut self, is_on: bool, is_curl: bool) {
        if !is_on || !self.is_configured && (is_curl || self.verbosity > 1) {
            (self.ids, self.time) = (false, false);
        }
        self.verbosity = 0;
        match is_on {
            true => self.raise_verbosity(),
            false => (self.form, self.file) = (TraceFormat::Off, None),
        }
    }

    /// Applies a `v` that is not the first letter of its argument (`-vv`, but also `-sv`). As in
    /// curl, it raises the level of the letters before it: the second prints ids and times, the
    /// third the contents.
    pub(crate) fn raise_verbosity(&mut self) {
        self.verbosity = self.verbosity.saturating_add(1);
        match self.verbosity {
            1 => (self.form, self.file) = (TraceFormat::Lines, None),
            2 => (self.ids, self.time) = (true, true),
            3 => self.form = TraceFormat::Ascii,
            _ => {}
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
