//! Tests of disk faults while a job runs: each write to the job's file and to the output fails
//! because the disk is full, and the job's write-ahead log is torn at many offsets. The next run
//! must complete the job.

use crate::common;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use common::gated_site::GatedSite;
use common::{CommandOutput, HAUL, can_trace, eventually, haul, list, program};
use testkit::origin::Origin;
use testkit::rng::Rng;

const URLS: usize = 12;

/// Runs the job in `dir` to its end, and returns its output. `command` gets haul's arguments, and
/// the file `out` as standard output.
fn job(mut command: Command, dir: &Path) -> CommandOutput {
    command.args(["--job", "j", "-sS", "--retry", "0", "--parallel-max", "2", "--input-file", "list"]);
    let out = OpenOptions::new().create(true).append(true).open(dir.join("out")).unwrap();
    let output = command.current_dir(dir).stdout(out).stderr(Stdio::piped()).output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: Vec::new(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn prepare(origin: &Origin) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    // A delay, so that rows are committed one by one.
    list(dir.path(), "list", (0..URLS).map(|number| origin.url(&format!("/delay/2/small/{number}"))));
    dir
}

fn expected() -> String {
    (0..URLS).map(|number| format!("small {number}\n")).collect()
}

/// For each n, runs a job in which all writes to `file` from the n-th on fail, and then completes
/// the job in a second run. `calls` are the names of the system calls that write the file.
fn fill_the_disk_at_each_write(file: &str, calls: &str) {
    if !can_trace("a disk without space") {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let mut failures = 0;
    for number in 1.. {
        assert!(number < 500, "the writes never end");
        let dir = prepare(&origin);
        let path = dir.path().join(file);
        // strace resolves the path when it starts, so the file must be there.
        if file == "out" {
            fs::write(&path, "").unwrap();
        }
        let mut command = program("strace");
        let inject = format!("inject={calls}:error=ENOSPC:when={number}+");
        command.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(&path);
        command.args(["-e", &format!("trace={calls}"), "-e", &inject, HAUL]);
        let full = job(command, dir.path());
        if full.code == 0 {
            break;
        }
        failures += 1;
        assert_eq!(full.code, 23, "write {number}: {}", full.stderr);
        assert!(!full.stderr.is_empty() && full.stderr.lines().count() <= 2, "write {number}: {}", full.stderr);
        let again = job(haul::<&str>([]), dir.path());
        assert_eq!((again.code, again.stderr.as_str()), (0, ""), "after a failure of write {number}");
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), expected(), "write {number}");
    }
    assert!(failures > 0, "no write of {file} failed");
}

#[test]
fn job_survives_full_disk_at_any_write() {
    fill_the_disk_at_each_write("j-wal", "pwrite64");
}

#[test]
fn job_file_survives_full_disk_at_any_write() {
    fill_the_disk_at_each_write("j", "pwrite64");
}

#[test]
fn job_output_survives_full_disk_at_any_write() {
    fill_the_disk_at_each_write("out", "write,writev,pwrite64,pwritev,pwritev2");
}

#[test]
fn torn_write_ahead_log_loses_no_output() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(URLS));
    let killed = dir.path();
    gated.list(killed, URLS + 1);
    let args = ["--job", "j", "-sS", "--parallel-max", "2", "--input-file", "list"];
    let out = OpenOptions::new().create(true).append(true).open(killed.join("out")).unwrap();
    let mut child = haul(args).current_dir(killed).stdout(out).spawn().unwrap();
    let whole: String = (0..=URLS).map(|number| format!("page {number}\n")).collect();
    let length = whole.find(&format!("page {URLS}")).unwrap() as u64;
    eventually("the other bodies are written", || {
        fs::metadata(killed.join("out")).is_ok_and(|out| out.len() == length)
    });
    eventually("all of them are noted", || {
        let count = "SELECT count(*) FROM url";
        rusqlite::Connection::open(killed.join("j"))
            .and_then(|job| job.query_row(count, [], |row| row.get::<_, i64>(0)))
            .is_ok_and(|count| count == URLS as i64)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    let log = fs::read(killed.join("j-wal")).unwrap();
    let mut random = Rng::new(7);
    let mut cuts: Vec<u64> = (0..24).map(|_| random.below(log.len() as u64)).collect();
    cuts.extend([0, 1, 32, log.len() as u64]);
    for (number, cut) in cuts.into_iter().enumerate() {
        // A torn write ends early, or is followed by what was in its place before.
        let mut torn = log[..cut as usize].to_vec();
        if number % 2 == 1 {
            torn.resize(log.len(), 0);
        }
        for (name, content) in [("j", fs::read(killed.join("j")).unwrap()), ("j-wal", torn)] {
            fs::write(killed.join(format!("{name}.torn")), content).unwrap();
        }
        let copy = tempfile::tempdir_in(killed).unwrap();
        fs::rename(killed.join("j.torn"), copy.path().join("j")).unwrap();
        fs::rename(killed.join("j-wal.torn"), copy.path().join("j-wal")).unwrap();
        // The output is the same file, as the job knows it.
        fs::hard_link(killed.join("out"), copy.path().join("out")).unwrap();
        fs::write(killed.join("out"), &whole[..length as usize]).unwrap();
        // The stored directory is that of the killed run, whose list the job reads.
        let out = OpenOptions::new().append(true).open(copy.path().join("out")).unwrap();
        let job = copy.path().join("j");
        let mut again = haul(["--job", job.to_str().unwrap(), "-sS"]);
        let ran = again.stdout(out).stderr(Stdio::piped()).output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "cut at {cut}: {ran:?}");
        assert_eq!(fs::read_to_string(killed.join("out")).unwrap(), whole, "cut at {cut}");
    }
}
