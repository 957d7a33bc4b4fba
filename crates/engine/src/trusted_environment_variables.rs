//! The environment variables that haul reads. It ignores them in a process whose caller has fewer
//! rights than the process itself.
//!
//! A set-user-ID or set-group-ID program, or a program with file capabilities, gets its environment
//! from a caller with fewer rights. That caller could otherwise choose the CAs that the program
//! trusts (`SSL_CERT_FILE`), the file that it writes (`SSLKEYLOGFILE`), and the proxy that it uses
//! (`https_proxy`).
//!
//! ```
//! assert_eq!(haul::trusted_environment_variables::variable("PATH"), std::env::var_os("PATH"));
//! ```

use std::ffi::{OsStr, OsString};

/// Returns the value of an environment variable. Returns `None` if the variable is not set, or if
/// the environment is not trusted ([`is_environment_trusted`]).
#[must_use]
pub fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name).filter(|_| is_environment_trusted())
}

/// Returns false if this program has rights that its caller does not have (`AT_SECURE` on Linux,
/// `issetugid` on other systems). haul then ignores the environment.
#[must_use]
pub fn is_environment_trusted() -> bool {
    !has_additional_rights()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_additional_rights() -> bool {
    // SAFETY: the function reads a table that the kernel made for this process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(windows)]
fn has_additional_rights() -> bool {
    // A program gets the rights of its caller, or the user has agreed to more.
    false
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn has_additional_rights() -> bool {
    // SAFETY: the function only returns a flag of this process.
    unsafe { libc::issetugid() != 0 }
}
