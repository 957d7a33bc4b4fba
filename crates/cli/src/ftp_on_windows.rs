//! The personas `ftp` and `fetch` on Windows, where they do not exist: `haul ftp` and `haul fetch` are
//! refused.

use std::ffi::OsString;

use haul::ErrorKind;

use crate::file_and_environment_access::print_error_line;

#[path = "ftp/ftp_or_fetch_program.rs"]
mod ftp_or_fetch_program;
#[path = "ftp/help.rs"]
mod help;

pub use ftp_or_fetch_program::FtpProgram;
pub(crate) use help::{FETCH as FETCH_HELP, FTP as FTP_HELP};

/// Returns the program and its arguments if the command line is `haul ftp ...` or `haul fetch ...`,
/// and `None` otherwise.
#[must_use]
pub fn called_program(words: &[OsString]) -> Option<(FtpProgram, Vec<OsString>)> {
    FtpProgram::from_word(words.get(1)?).map(|program| (program, words[2..].to_vec()))
}

/// Refuses the command line. Returns the exit code of the process.
#[must_use]
pub fn run(program: FtpProgram, _words: Vec<OsString>) -> u8 {
    let (name, code) = (program.name(), ErrorKind::Setup.exit_code());
    print_error_line(&format!("haul: ({code}) Windows has no 'haul {name}'; use haul URL or haul curl"));
    code
}
