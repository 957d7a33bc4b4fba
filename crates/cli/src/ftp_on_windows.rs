//! The personas `ftp` and `fetch` on Windows, where they do not exist: `haul ftp` and `haul fetch` are
//! refused.

use std::ffi::OsString;

use haul::ErrorKind;

use crate::file_and_environment_access::print_error_line;

#[path = "ftp/help.rs"]
mod help;

pub(crate) use help::{FETCH as FETCH_HELP, FTP as FTP_HELP};

/// The program whose command line haul would read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtpProgram {
    /// OpenBSD's ftp(1).
    Ftp,
    /// FreeBSD's fetch(1).
    Fetch,
}

impl FtpProgram {
    /// Returns the name of the program: `ftp` or `fetch`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ftp => "ftp",
            Self::Fetch => "fetch",
        }
    }
}

/// Returns the program and its arguments if the command line is `haul ftp ...` or `haul fetch ...`,
/// and `None` otherwise.
#[must_use]
pub fn called_program(words: &[OsString]) -> Option<(FtpProgram, Vec<OsString>)> {
    let word = words.get(1)?;
    let program = [FtpProgram::Ftp, FtpProgram::Fetch].into_iter().find(|program| word == program.name())?;
    Some((program, words[2..].to_vec()))
}

/// Refuses the command line. Returns the exit code of the process.
#[must_use]
pub fn run(program: FtpProgram, _words: Vec<OsString>) -> u8 {
    let (name, code) = (program.name(), ErrorKind::Setup.exit_code());
    print_error_line(&format!("haul: ({code}) Windows has no 'haul {name}'; use haul URL or haul curl"));
    code
}
