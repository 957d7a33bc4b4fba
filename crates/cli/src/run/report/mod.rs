//! The reports of a run: error lines, the output of `-w`, traces, progress, statistics, and the
//! metadata of files.

pub(crate) mod error_message;
pub(crate) mod events;
pub(crate) mod file_metadata;
mod header_or_trace_file;
mod moving_average_rate;
pub(crate) mod progress;
pub(crate) mod records;
pub(crate) mod remedy;
pub(crate) mod reporter;
pub(crate) mod run_counts;
pub(crate) mod statistics;
pub(crate) mod transfer_report;
pub(crate) mod urlnum_variable;
pub(crate) mod verbose_and_trace_output;
