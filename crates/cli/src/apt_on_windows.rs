//! The method of apt on Windows, where apt does not exist: `haul apt-method` is refused.

use std::ffi::OsString;

use haul::ErrorKind;

use crate::file_and_environment_access::print_error_line;

/// Returns true if the command line is `haul apt-method`.
#[must_use]
pub fn is_apt_method_call(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "apt-method")
}

/// Prints an error message: Windows has no apt. Returns the exit code of the process.
#[must_use]
pub fn run() -> u8 {
    let code = ErrorKind::Setup.exit_code();
    print_error_line(&format!("haul: ({code}) Windows has no apt, so there is no 'haul apt-method'"));
    code
}
