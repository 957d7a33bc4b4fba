//! Runs a command line with haul and with curl, and compares the results.

use std::ffi::OsStr;

use crate::common::{CommandOutput, installed, program, run, run_haul};

/// Runs haul and, if it is installed, curl with these arguments. Asserts that both have the same
/// exit code and output, and returns haul's output. Both get `-L` and `-f`, which are defaults of
/// haul.
#[track_caller]
pub fn both<A: AsRef<OsStr>>(args: &[A]) -> CommandOutput {
    both_with(args, |ran| String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Runs haul and, if it is installed, curl with these arguments. Asserts that the exit codes are
/// equal, and the parts of the outputs that `look` returns. Returns haul's output.
#[track_caller]
pub fn both_with<A: AsRef<OsStr>>(args: &[A], look: impl Fn(&CommandOutput) -> String) -> CommandOutput {
    let all: Vec<&OsStr> =
        ["-s", "-S", "-L", "-f"].iter().map(OsStr::new).chain(args.iter().map(AsRef::as_ref)).collect();
    let ours = run_haul(&all);
    if let Some(curl) = installed("curl", "the comparison with curl") {
        let theirs = run(program(curl).args(&all));
        // Debian 12's curl breaks on a second request of a connection of HTTP/2; then there is
        // nothing to compare with.
        let is_h2 = all.iter().any(|arg| arg.as_encoded_bytes().starts_with(b"--http2"));
        if is_h2 && matches!(theirs.code, 16 | 52 | 92) {
            return ours;
        }
        assert_eq!(
            (ours.code, look(&ours)),
            (theirs.code, look(&theirs)),
            "{all:?}: {} / {}",
            ours.stderr,
            theirs.stderr
        );
    }
    ours
}

/// Asserts that the command succeeded, and returns its standard output as text.
#[track_caller]
pub fn text(ran: &CommandOutput) -> String {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    String::from_utf8(ran.stdout.clone()).expect("text")
}
