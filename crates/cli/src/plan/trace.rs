//! The trace settings: the events of transfers that are printed while they run.
//!
//! ```
//! use haul_cli::plan::{TraceArgs, TraceForm};
//!
//! assert_eq!(TraceArgs::default().form, TraceForm::Off);
//! ```

use std::path::PathBuf;

/// The options `-v`, `--trace`, `--trace-ascii` and their like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceArgs {
    /// The format of the trace.
    pub form: TraceForm,
    /// The file of the trace; `-` is standard output, `%` and `None` are standard error.
    pub file: Option<PathBuf>,
    /// `--trace-time`: the time before each line.
    pub time: bool,
    /// `--trace-ids`: numbers of transfer and connection before each line.
    pub ids: bool,
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceForm {
    /// No trace.
    #[default]
    Off,
    /// `-v`: lines of heads.
    Lines,
    /// `--trace-ascii`: heads and bodies as text.
    Ascii,
    /// `--trace`: the same, as hexadecimal digits too.
    Hex,
}
