//! The command line of `haul`: from arguments to a plan.
//!
//! ```text
//!  argv ─► parse ─► ParsedArgs ─► resolve ─► RunPlan ─► run (the engine's side)
//!           │  ▲                  │
//!           ▼  │ -K               └─ reads -d @, -H @, -w @
//!         flags (one table: names, help, examples, effects)
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`flags`] | the table of flags, one file each; [`help`], [`man`], [`completions`] and [`generated_files`] come from it |
//! | [`parse`], [`config_file`], [`expand_variables`], [`form`], [`flag_value`], [`date`] | curl's grammar, and that of what options take |
//! | [`persona`] | whose defaults and manners there are, haul's own or curl's |
//! | [`parsed_args`], [`resolve`], [`plan`] | what was read; files read, defaults filled; what is done |
//! | [`url_list`], [`file_access`], [`usage_error`] | where URLs come from; how files are reached; what is wrong with a command line |
//! | [`write_out`], [`checksum`], [`base64`] | the format of `-w`; `--checksum` and lists of checksums |
//! | [`run`] | carrying a plan out |
//! | [`agent`] | the process that keeps connections between calls |
//! | [`process_list`] | secrets of the command line, blanked where others see it |
//! | [`ftp`], [`apt`] | the grammars of ftp(1) and fetch(1), and apt's protocol |
//!
//! All but [`run`], [`agent`], [`ftp`] and [`apt`] touch no network. That a URL, a regular
//! expression or a certificate is any good is found by those who use it.

pub mod agent;
pub mod apt;
pub mod base64;
pub mod checksum;
pub mod completions;
pub mod config_file;
pub mod date;
pub mod expand_variables;
pub mod file_access;
pub mod flag_value;
pub mod flags;
pub mod form;
pub mod ftp;
pub mod generated_files;
pub mod help;
pub mod man;
pub mod parse;
pub mod parsed_args;
pub mod persona;
pub mod plan;
pub mod process_list;
pub mod resolve;
pub mod run;
pub mod url_list;
pub mod usage_error;
pub mod write_out;
