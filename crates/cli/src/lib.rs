//! The command line of `haul`: from arguments to a plan.
//!
//! ```text
//!  argv ─► parse ─► LowArgs ─► resolve ─► Plan ─► (the engine's side)
//!           │  ▲                  │
//!           ▼  │ -K               └─ reads -d @, -H @, -w @
//!         flags (one table: names, help, examples, effects)
//! ```
//!
//! * [`flags`]: the table of flags, one file each; `--help` comes from it ([`help`]).
//! * [`parse`]: curl's grammar; [`config`]: the text of config files.
//! * [`persona`]: whose defaults and manners there are, haul's own or curl's.
//! * [`args`]: what was read; [`resolve`]: files read, defaults filled; [`plan`]: what is done.
//! * [`write_out`]: the format of `-w`; [`checksum`]: that of `--checksum` and of lists of checksums.
//!
//! Out of scope: anything that touches the network. That a URL, a regular expression or a
//! certificate is any good is found by those who use it.

pub mod agent;
pub mod apt;
pub mod args;
pub mod base64;
pub mod checksum;
pub mod completions;
pub mod config;
pub mod date;
pub mod files;
pub mod flags;
pub mod form;
pub mod ftp;
pub mod generated;
pub mod help;
pub mod man;
pub mod parse;
pub mod persona;
pub mod plan;
pub mod resolve;
pub mod run;
pub mod urls;
pub mod usage;
pub mod value;
pub mod variables;
pub mod write_out;
