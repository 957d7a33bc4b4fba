//! The system refuses a call that it mostly grants, which strace plays: what can be done without is done without, and what was
//! asked for and cannot be done is told.

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use common::{HAUL, Ran, program, run, skipped};
use testkit::origin::Origin;

fn origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// The command, in this directory, where the system answers so (`setsockopt:error=ENOPROTOOPT:when=1`); nothing where strace
/// may not trace.
fn refused(dir: &Path, how: &str, args: &[&str]) -> Option<Ran> {
    let works = program("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        skipped("a system that refuses: strace is not installed or may not trace");
        return None;
    }
    let call = how.split(':').next().unwrap();
    let mut command = program("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &format!("inject={how}")]);
    Some(run(command.arg(HAUL).args(args).current_dir(dir)))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn options_of_sockets_that_a_sandbox_lacks_keep_nothing_from_being_fetched() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let small = origin.url("/small");
    for number in 1..9 {
        let how = format!("setsockopt:error=ENOPROTOOPT:when={number}");
        for args in [&["--keepalive-cnt", "3", &small][..], &["--keepalive-cnt", "3", &small, &small]] {
            let Some(ran) = refused(dir.path(), &how, args) else { return };
            assert_eq!(ran.text(), "small\n".repeat(args.len() - 2), "{how}");
        }
    }
}

#[test]
fn where_no_file_can_be_locked_nothing_is_left_beside_the_target() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let args = ["--split", "1", "-o", "out", &origin.url("/bytes/2000000")];
    let Some(ran) = refused(dir.path(), "flock:error=ENOLCK", &args) else { return };
    ran.ok();
    assert_eq!(names(dir.path()), ["out"]);
    assert!(fs::read(dir.path().join("out")).unwrap() == origin.pattern().slice(0, 2_000_000));
}
