//! Tests of jobs with an archive (`--warc`): what the next run adds to the archive, and which
//! archives it refuses. `job_kills.rs` kills such jobs at random times.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::gated_site::GatedSite;
use common::small_site::SmallSite;
use common::{CommandOutput, HAUL, can_trace, eventually, haul, list, names, program, run_in};
use testkit::warc_reader::{WarcRecord, read};

fn count(dir: &Path, query: &str) -> i64 {
    rusqlite::Connection::open(dir.join("j")).and_then(|job| job.query_row(query, [], |row| row.get(0))).unwrap_or(0)
}

#[track_caller]
fn records(dir: &Path, name: &str) -> Vec<WarcRecord> {
    read(&fs::read(dir.join(name)).unwrap()).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// Returns the number of records of each type for each URL.
fn counts(records: &[WarcRecord]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        let field = |name: &str| record.field(name).unwrap_or_default().to_owned();
        *counts.entry((field("WARC-Target-URI"), field("WARC-Type"))).or_default() += 1;
    }
    counts
}

#[test]
fn killed_job_continues_its_archive() {
    for archive in ["a.warc", "a.warc.gz"] {
        let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(10));
        let dir = dir.path();
        gated.list(dir, 20);
        let args =
            ["--job", "j", "-sS", "--parallel-max", "4", "--warc", archive, "-o", "f-{name}", "--input-file", "list"];
        let mut child = haul(args).current_dir(dir).spawn().unwrap();
        eventually("ten pages are noted", || count(dir, "SELECT count(*) FROM url") == 10);
        child.kill().unwrap();
        child.wait().unwrap();
        // The end of a record of a killed run.
        let mut torn = fs::read(dir.join(archive)).unwrap();
        let length = torn.len() as i64;
        assert_eq!(count(dir, "SELECT archive_end FROM job"), length);
        torn.extend_from_slice(b"WARC/1.1\r\nWARC-Type: respon");
        fs::write(dir.join(archive), torn).unwrap();
        gated.open();
        run_in(dir, HAUL, &["--job", "j", "-sS"]).ok();
        let records = records(dir, archive);
        assert_eq!(records.len(), 1 + 2 * 20);
        assert!(counts(&records[1..]).values().all(|&count| count == 1), "{archive}");
    }
}

#[test]
fn payloads_of_earlier_runs_become_revisit_records() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = SmallSite::start(|target| (target != "/late").then(|| ("text/plain", b"the same\n".to_vec())));
    list(dir, "list", [site.url("/1"), site.url("/late")]);
    let args = ["--job", "j", "-sS", "--warc", "a.warc", "--out-null", "--input-file", "list"];
    assert_eq!(run_in(dir, HAUL, &args).code, 22);
    let first = records(dir, "a.warc");
    assert_eq!(first.len(), 5, "the reply 404 is archived, too");
    run_in(dir, HAUL, &["job", "retry", "--all", "j"]).text();
    assert_eq!(run_in(dir, HAUL, &args).code, 22);
    let both = records(dir, "a.warc");
    assert_eq!(both.len(), 9, "nothing of the first run is lost");
    let revisits: Vec<_> = both.iter().filter(|record| record.field("WARC-Type") == Some("revisit")).collect();
    let stored = first.iter().find(|record| record.block.ends_with(b"the same\n")).unwrap();
    assert_eq!(revisits.len(), 1, "the reply 404 has no payload to refer to");
    assert_eq!(revisits[0].field("WARC-Refers-To"), stored.field("WARC-Record-ID"));
    assert_eq!(revisits[0].field("WARC-Refers-To-Date"), stored.field("WARC-Date"));
}

#[test]
fn missing_or_foreign_archive_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = SmallSite::of(&[("/1", "text/plain", "one\n")]);
    list(dir, "list", [site.url("/1")]);
    let args = ["--job", "j", "-sS", "--warc", "a.warc", "--out-null", "--input-file", "list"];
    fs::write(dir.join("a.warc"), "not the job's").unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert_eq!(refused.code, 23);
    assert!(refused.stderr.contains("a.warc exists, and nothing is added to it"), "{}", refused.stderr);
    assert_eq!(fs::read(dir.join("a.warc")).unwrap(), b"not the job's");
    fs::remove_file(dir.join("a.warc")).unwrap();
    run_in(dir, HAUL, &args).ok();
    fs::write(dir.join("a.warc"), "cut").unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("a.warc has 3 bytes, but the job has written"), "{}", refused.stderr);
    fs::remove_file(dir.join("a.warc")).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert_eq!(refused.code, 23);
    assert!(refused.stderr.contains("restore it, or begin a new job"), "{}", refused.stderr);
    assert!(!dir.join("a.warc").exists());
}

#[test]
fn numbered_archive_is_truncated_to_recorded_position() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = SmallSite::start(|target| Some(("text/plain", target.repeat(200).into_bytes())));
    list(dir, "list", (0..20).map(|number| site.url(&format!("/{number}"))));
    let args = ["-sS", "--warc", "a.warc", "--warc-max-size", "4K", "--out-null", "--input-file", "list"];
    let args = [&["--job", "j"][..], &args].concat();
    run_in(dir, HAUL, &args).ok();
    let archives = || names(dir).into_iter().filter(|name| name.ends_with(".warc")).collect::<Vec<_>>();
    let before: Vec<_> = archives().iter().map(|name| (name.clone(), records(dir, name))).collect();
    assert!(before.len() > 2);
    // A file that a killed run has begun, and not noted.
    let next = format!("a-{:05}.warc", before.len());
    fs::write(dir.join(&next), "WARC/1.1\r\n").unwrap();
    run_in(dir, HAUL, &args).ok();
    assert_eq!(archives().iter().map(|name| (name.clone(), records(dir, name))).collect::<Vec<_>>(), before);
}

/// Runs a job with an archive in `dir`. `command` gets haul's arguments.
fn archiving(mut command: Command, dir: &Path) -> CommandOutput {
    command.args(["--job", "j", "-sS", "--retry", "0", "--parallel-max", "2", "--input-file", "list"]);
    command.args(["--warc", "a.warc", "-o", "f-{name}"]);
    let output = command.current_dir(dir).stderr(Stdio::piped()).output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: Vec::new(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn archive_survives_full_disk_at_any_write() {
    if !can_trace("a disk without space") {
        return;
    }
    let site = SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())));
    let mut failures = 0;
    for number in 1.. {
        assert!(number < 100, "the writes never end");
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        list(dir, "list", (0..12).map(|page| site.url(&format!("/{page}"))));
        let mut command = program("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(dir.join("a.warc"));
        command.args(["-e", "trace=write", "-e", &format!("inject=write:error=ENOSPC:when={number}+"), HAUL]);
        let full = archiving(command, dir);
        if full.code == 0 {
            break;
        }
        failures += 1;
        assert_eq!(full.code, 23, "write {number}: {}", full.stderr);
        assert!(full.stderr.contains("a.warc"), "write {number}: {}", full.stderr);
        let again = archiving(haul::<&str>([]), dir);
        assert_eq!((again.code, again.stderr.as_str()), (0, ""), "after a failure of write {number}");
        let records = records(dir, "a.warc");
        assert_eq!(records.len(), 1 + 2 * 12, "write {number}");
        assert!(counts(&records[1..]).values().all(|&count| count == 1), "write {number}");
    }
    assert!(failures > 0, "no write of the archive failed");
}
