//! Runs `faults` on download programs with known flaws, and checks that it finds each flaw.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

/// The beginning of every fake download program, which is a shell script. It sets `$out` to the
/// file name after `-o`, or to an empty text if the output goes to a pipe.
const OPTIONS: &str = r#"#!/bin/sh
case "$1" in --version) echo "made up 1"; exit ;; --help) echo "  --split N"; exit ;; esac
out=
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
"#;

/// A lock that is held while a fake program is written, and while a process is started. Without it,
/// a new process could inherit the file that is still open for writing, and starting the fake
/// program would fail with ETXTBSY.
static STARTING: Mutex<()> = Mutex::new(());

fn program(dir: &Path, body: &str) -> PathBuf {
    let _starting = STARTING.lock();
    let program = dir.join("haul");
    std::fs::write(&program, format!("{OPTIONS}{body}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Runs `faults` with one row of the fault table on a fake download program, a shell script with
/// this body. Returns the results of the row, and true if `faults` found nothing wrong.
fn run(body: &str, row: &str) -> (Vec<Value>, bool) {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), body);
    let json = dir.path().join("figures.json");
    let output = faults(&program, &["--offsets", "2", "--row", row, "--limit", "2"], &json);
    let figures: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    (figures["rows"].as_array().unwrap().clone(), output)
}

fn faults(program: &Path, options: &[&str], json: &Path) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faults"));
    command.arg("--haul").arg(program).args(options).arg("--json").arg(json);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let starting = STARTING.lock();
    let child = command.spawn().unwrap();
    drop(starting);
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn wrong_bytes_with_exit_0_are_reported() {
    for body in ["echo other > ${out:-/dev/stdout}", "exit 0"] {
        let (rows, content) = run(body, "reset-always/");
        assert_eq!((rows.len(), sum(&rows, "tried"), sum(&rows, "false_successes")), (20, 40, 40), "{body}");
        assert!(!content);
    }
}

#[test]
fn wrong_content_is_reported_even_with_failing_exit_code() {
    let (rows, content) = run("echo other > ${out:-/dev/stdout}; exit 18", "reset-always/");
    assert_eq!(sum(&rows, "wrong_bytes"), 40);
    assert!(!content);
    let (rows, _) = run("[ -n \"$out\" ] && rm -f $out; exit 18", "reset-always/");
    assert_eq!((sum(&rows, "wrong_bytes"), sum(&rows, "refused")), (10, 30), "a file that was there is gone");
}

#[test]
fn exit_code_is_accepted_only_for_matching_fault() {
    let (rows, content) = run("exit 18", "reset-always/");
    assert_eq!((sum(&rows, "refused"), content), (40, true));
    let (rows, content) = run("exit 3", "reset-always/");
    assert_eq!((sum(&rows, "unexpected"), content), (40, false));
    let (rows, content) = run("exit 18", "reset-once/");
    assert_eq!((sum(&rows, "unexpected"), content), (40, false), "that has to be survived");
    let (rows, _) = run("kill -9 $$", "reset-always/plain/pipe/one");
    assert_eq!((sum(&rows, "unexpected"), &rows[0]["codes"]["-1"]), (2, &Value::from(2)));
}

#[test]
fn program_that_never_ends_is_reported_as_hung() {
    let (rows, content) = run("exec sleep 100", "honest/plain/file");
    assert_eq!((sum(&rows, "hangs"), content), (4, false));
}

#[test]
fn failing_download_and_wrong_size_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "printf x > ${out:-/dev/stdout}");
    let json = dir.path().join("figures.json");
    let options = ["--offsets", "0", "--kills", "2", "--kill-body", "100", "--sizes", "2", "--limit", "2"];
    assert!(!faults(&program, &options, &json));
    let figures: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!((&figures["kills"]["wrong_hash"], &figures["kills"]["survived"]), (&2.into(), &0.into()));
    let sizes = figures["sizes"].as_array().unwrap();
    assert_eq!((sizes.len(), sizes.iter().filter(|size| size["equal"] == true).count()), (8, 0));
    assert!(sizes.iter().all(|size| size["rss_bytes"].as_u64() > Some(0)));
}
