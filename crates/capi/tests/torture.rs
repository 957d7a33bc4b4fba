//! A C program (`tests/c/torture.c`) that repeats a task while the system refuses its n-th
//! descriptor or allocation, for each n. With `HAUL_TORTURE=all` (`make torture`), all 56 cases run
//! with every allocation. Without it, every fifth case runs with every nineteenth allocation.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{BuildDirectory, crate_dir};
use testkit::origin::Origin;

/// Returns the last two arguments of the C program. `["19", "5"]` means that every 19th allocation
/// is refused, in every fifth case. `["1", "1"]` leaves out no allocation and no case.
fn extent() -> [String; 2] {
    let is_whole = std::env::var("HAUL_TORTURE").is_ok_and(|value| value == "all");
    (if is_whole { ["1", "1"] } else { ["19", "5"] }).map(str::to_owned)
}

/// Compiles and runs the C program. `what` names what the system refuses: `descriptors` or
/// allocations. The program prints its own failures.
fn torture(directory: &BuildDirectory, what: &str, preload: Option<&str>) {
    let origin = Origin::builder().http2(100).start().unwrap();
    let ca = directory.path("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let program = directory.compile("tests/c/torture.c");
    let mut command = Command::new(program.path());
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.args([origin.url(""), origin.https_url("")]).arg(ca).arg(what).args(extent());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}{err}", output.status);
    println!("{what}: {}", out.trim());
}

#[test]
fn refused_descriptor_ends_in_reply_or_error() {
    let Some(directory) = BuildDirectory::new() else { return };
    torture(&directory, "descriptors", None);
}

#[test]
fn refused_allocation_ends_in_reply_or_error() {
    let Some(directory) = BuildDirectory::new() else { return };
    let library = directory.path("refuse.so");
    let source = crate_dir().join("../cli/tests/torture/refuse.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).stderr(Stdio::null());
    if !cc.status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: refused allocations: the C library here is not glibc");
        return;
    }
    torture(&directory, "allocations", library.to_str());
}
