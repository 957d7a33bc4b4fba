//! Tests of the lists of a job (`--job`) that are missing or of another kind in a later run, and of
//! secrets in lists from pipes.

use crate::common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::small_site::SmallSite;
use common::{HAUL, haul, list, run_in};
use rustix::fs::{CWD, Mode, mkfifoat};

fn pages() -> SmallSite {
    SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())))
}

/// Runs haul in the directory `dir` with `text` as its standard input. Returns its exit code, and
/// its standard error.
fn piped(dir: &Path, args: &[&str], text: &[u8]) -> (Option<i32>, String) {
    let mut command = haul(args);
    command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It need not read all of it.
    let _ = child.stdin.take().unwrap().write_all(text);
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn job_refuses_missing_or_replaced_list_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    list(dir, "list", [site.url("/0"), site.url("/1")]);
    fs::write(dir.join("config"), "silent\n").unwrap();
    let args = ["--job", "j", "-sS", "-K", "config", "-O", "--remote-name-all", "--input-file", "list"];
    run_in(dir, HAUL, &args).ok();
    let text = "list has changed since the job began (it was a regular file, and is none)";
    fs::rename(dir.join("list"), dir.join("moved")).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert!(refused.failed(26).contains("failed to read the list list"), "{}", refused.stderr);
    mkfifoat(CWD, dir.join("list"), Mode::RUSR | Mode::WUSR).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert!(refused.failed(2).contains(text), "{}", refused.stderr);
    fs::remove_file(dir.join("list")).unwrap();
    fs::rename(dir.join("moved"), dir.join("list")).unwrap();
    run_in(dir, HAUL, &args).ok();
    fs::remove_file(dir.join("config")).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert_ne!(refused.code, 0, "{}", refused.stderr);
}

#[test]
fn copied_list_may_become_a_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let args = ["--job", "j", "-sS", "-O", "--remote-name-all", "--input-file", "/dev/stdin"];
    let (code, errors) = piped(dir, &args, format!("{}\n", site.url("/0")).as_bytes());
    assert_eq!(code, Some(0), "{errors}");
    let other = list(dir, "other", [site.url("/1")]);
    let ran = haul(&args).current_dir(dir).stdin(fs::File::open(other).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "the copy is complete, so the list is not read again");
    assert_eq!(site.requests(), ["/0"]);
}
