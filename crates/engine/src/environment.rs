//! The environment variables that haul obeys, except in a process whose caller has fewer rights
//! than the process itself.
//!
//! A set-user-ID or set-group-ID program, or one with file capabilities, gets its environment from
//! a caller with fewer rights. `SSL_CERT_FILE` would let that caller choose whom the program trusts,
//! `SSLKEYLOGFILE` which file it makes, and `https_proxy` whom it talks to.
//!
//! ```
//! assert_eq!(haul::environment::variable("PATH"), std::env::var_os("PATH"));
//! ```

use std::ffi::{OsStr, OsString};

/// Returns the value of an environment variable. Returns `None` if it is not set, and if the caller
/// of this process has fewer rights ([`is_environment_trusted`]).
#[must_use]
pub fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name).filter(|_| is_environment_trusted())
}

/// Returns false if this program has rights that its caller does not have (`AT_SECURE` on Linux,
/// `issetugid` on other systems). The environment is then not obeyed.
#[must_use]
pub fn is_environment_trusted() -> bool {
    !has_additional_rights()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_additional_rights() -> bool {
    // SAFETY: the function reads a table that the kernel made for this process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn has_additional_rights() -> bool {
    // SAFETY: the function only returns a flag of this process.
    unsafe { libc::issetugid() != 0 }
}
