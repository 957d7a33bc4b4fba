//! The command line of `haul`: parses the arguments into a plan, and runs the plan with the engine.
//!
//! ```text
//!  argv ─► parse ─► ParsedArgs ─► resolve ─► RunPlan ─► run (the engine's side)
//!           │  ▲                  │
//!           ▼  │ -K               └─ reads -d @, -H @, -w @
//!         flags (one table: names, help, examples, effects)
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`flags`] | the table of flags, one file each |
//! | [`help`], [`man`], [`completions`], [`generated_files`] | made from the table of flags |
//! | [`parse`], [`config_file`], [`expand_variables`] | curl's grammar |
//! | `home_files` | the places of `.curlrc` and `.netrc` |
//! | [`form`], [`flag_value`], [`date`] | the grammars of option values |
//! | [`program_persona`] | the program that a run acts as: haul or curl |
//! | [`parsed_args`], [`build_plan`], [`plan`] | the parsed command line; its files and defaults; the plan |
//! | [`did_you_mean`], [`guide_section_index`] | suggestions for misspelt options; the sections of the guides |
//! | [`url_sources`], [`file_and_environment_access`], [`usage_error`] | sources of URLs; files; usage errors |
//! | [`record_input`] | lists whose lines describe requests |
//! | [`extracted_value_name`] | the names of extracted values |
//! | [`write_out`], [`checksum`], [`base64`] | the format of `-w`; `--checksum` and lists of checksums |
//! | [`run`] | runs a plan with the engine |
//! | `system` | the parts of Unix and Windows that differ |
//! | [`stderr_terminal`] | the terminal of standard error: its size, and the colours of messages |
//! | [`job`], [`given_option`] | runs with a memory on disk, which go on after a kill |
//! | `warc` | the archive of `--warc` (feature `warc`) |
//! | [`agent`] | the background process that keeps connections open between runs |
//! | [`secret_arguments`] | overwrites secrets in the arguments, which other users can read |
//! | [`doctor`] | `haul doctor URL`: one page about what happens when a URL is fetched |
//! | [`ftp`], [`apt`] | the command lines of ftp(1) and fetch(1), and apt's protocol |
//!
//! Only [`run`], [`doctor`], [`agent`], [`ftp`] and [`apt`] use the network. The syntax of URLs,
//! regular expressions and certificates is checked by the modules that use them.

#[cfg_attr(windows, path = "agent_on_windows.rs")]
pub mod agent;
#[cfg_attr(windows, path = "apt_on_windows.rs")]
pub mod apt;
pub mod base64;
pub mod build_plan;
pub mod checksum;
pub mod completions;
pub mod config_file;
pub mod date;
pub mod did_you_mean;
pub mod doctor;
pub mod expand_variables;
pub mod extracted_value_name;
pub mod file_and_environment_access;
pub mod flag_value;
pub mod flags;
pub mod form;
#[cfg_attr(windows, path = "ftp_on_windows.rs")]
pub mod ftp;
pub mod generated_files;
pub mod given_option;
pub mod guide_section_index;
pub mod help;
mod home_files;
#[cfg(feature = "job")]
pub mod job;
#[cfg(not(feature = "job"))]
#[path = "job_disabled.rs"]
pub mod job;
mod job_file_names;
mod job_types_in_every_build;
pub mod man;
pub mod parse;
pub mod parsed_args;
pub mod plan;
pub mod program_persona;
pub mod record_input;
pub mod run;
pub mod secret_arguments;
pub mod stderr_terminal;
mod system;
pub mod url_sources;
pub mod usage_error;
#[cfg(feature = "warc")]
pub mod warc;
#[cfg(not(feature = "warc"))]
#[path = "warc_disabled.rs"]
pub mod warc;
pub mod wrap_message;
pub mod write_out;

#[cfg(windows)]
pub use system::terminal::Utf8Console;
