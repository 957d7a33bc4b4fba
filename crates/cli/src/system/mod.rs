//! The parts of Unix and Windows that differ, under the same names, so that other modules need no
//! condition. The functions for files are in `haul::system::file_metadata_and_flags`.
//!
//! | module | contents |
//! |---|---|
//! | `os_text` | bytes as names of files and as arguments |
//! | `output_path_rules` | which paths name the same file, or a descriptor |
//! | `standard_streams` | standard input and output, redirected standard error, passwords |
//! | `terminal` | the terminal of standard error |
//! | `disk_sync` | writes of file systems to the disk |
//! | `process_liveness_and_limits` | other processes, limits of this one |
//! | `extended_attributes` | attributes of files for `--xattr` |
//!
//! Signals have their twins beside their only user (`run/transfers`), and so have the permissions of
//! jobs (`job`). The agent, ftp and apt do not exist on Windows: `agent_on_windows.rs`,
//! `ftp_on_windows.rs` and `apt_on_windows.rs` refuse them.

#[cfg_attr(windows, path = "disk_sync_windows.rs")]
pub(crate) mod disk_sync;
#[cfg_attr(windows, path = "extended_attributes_windows.rs")]
pub(crate) mod extended_attributes;
#[cfg_attr(windows, path = "os_text_windows.rs")]
pub(crate) mod os_text;
#[cfg_attr(windows, path = "output_path_rules_windows.rs")]
pub(crate) mod output_path_rules;
#[cfg_attr(windows, path = "process_liveness_and_limits_windows.rs")]
pub(crate) mod process_liveness_and_limits;
#[cfg_attr(windows, path = "standard_streams_windows.rs")]
pub(crate) mod standard_streams;
#[cfg_attr(windows, path = "terminal_windows.rs")]
pub(crate) mod terminal;
/// Conversions that only Windows needs, compiled everywhere for their tests.
#[cfg(any(windows, test))]
mod wtf8;
