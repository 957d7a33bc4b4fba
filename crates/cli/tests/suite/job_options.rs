//! Tests of the options of a job (`--job`): options that a later run repeats, options that name the
//! job's own file, and what the commands `haul job …` print about processes and output.

use crate::common;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use common::small_site::SmallSite;
use common::{CommandOutput, haul, run, run_in};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};

fn pages() -> SmallSite {
    SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())))
}

/// Runs haul in the directory `dir`. Its standard output is appended to the file `out` there.
fn appending(dir: &Path, args: &[&str]) -> CommandOutput {
    let out = OpenOptions::new().create(true).append(true).open(dir.join("out")).unwrap();
    let ended = haul(args).current_dir(dir).stdout(out).output().unwrap();
    CommandOutput {
        code: ended.status.code().unwrap_or(-1),
        stdout: ended.stdout,
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

#[test]
fn rerun_job_needs_its_secret_fields_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let origin = common::origin();
    let url = origin.url("/echo");
    let fields = ["-H", "X-Api-Key: first", "-H", "Authorization: second"];
    run_in(dir, common::HAUL, &[&["--job", "j", "-o", "a", &url][..], &fields].concat()).ok();
    run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    let refused = run_in(dir, common::HAUL, &["--job", "j", "-H", "Authorization: x"]);
    assert!(refused.failed(2).contains("begun with --header 'x-api-key', whose value is a secret"));
    let again = ["--job", "j", "-H", "authorization: tok", "-H", "X-Api-Key: key"];
    let refused = run_in(dir, common::HAUL, &[&again[..], &["-H", "Cookie: a=b"]].concat());
    assert!(refused.failed(2).contains("--header 'cookie' is no option of the job"), "{}", refused.stderr);
    run_in(dir, common::HAUL, &again).ok();
    let echo = fs::read_to_string(dir.join("a")).unwrap().to_ascii_lowercase();
    assert!(echo.contains("key") && echo.contains("tok"), "{echo}");
}

#[test]
fn options_without_url_continue_the_job() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    run_in(dir, common::HAUL, &["--job", "j", "-sS", "-o", "f#1", &site.url("/[1-2]")]).ok();
    fs::remove_file(dir.join("f1")).unwrap();
    run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    run_in(dir, common::HAUL, &["--job", "j", "-sS", "-o", "f#1"]).ok();
    assert_eq!(fs::read_to_string(dir.join("f1")).unwrap(), "page /1\n");
    fs::create_dir(dir.join("sub")).unwrap();
    for (place, args, text) in [
        (dir, &["--job", "j", "--jsonl"][..], "--jsonl is no option of the job; leave it out to go on with the job"),
        (dir, &["--job", "j", "-o", "g"], "--output is no option of the job"),
        (dir, &["--job", "other", "--jsonl"], "there is no such job; give the URLs to begin one"),
        (&dir.join("sub"), &["--job", "../j", "-o", "f#1"], "the job was begun in"),
    ] {
        let refused = run_in(place, common::HAUL, args);
        assert!(refused.failed(2).contains(text), "{args:?}: {}", refused.stderr);
    }
    assert_eq!(site.requests().len(), 4);
}

#[test]
fn job_lock_error_names_only_a_live_process() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let args = ["--job", "j", "-sS", "-o", "a", &site.url("/1")];
    run_in(dir, common::HAUL, &args).ok();
    // As if the run had been killed, and its number belonged to no process.
    let unended = "UPDATE run SET process = 2147483647, ended = NULL";
    Connection::open(dir.join("j")).and_then(|job| job.execute(unended, [])).unwrap();
    let lock = File::open(dir.join("j")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    for command in [&args[..], &["job", "retry", "j"], &["job", "vacuum", "j"]] {
        let refused = run_in(dir, common::HAUL, command);
        let text = refused.failed(2);
        assert!(text.contains("another process is using this job, such as 'haul job retry'"), "{text}");
    }
    let status = run_in(dir, common::HAUL, &["job", "status", "j"]).text();
    assert!(status.contains("state      complete"), "{status}");
    drop(lock);
    run_in(dir, common::HAUL, &args).ok();
}

#[test]
fn job_status_takes_no_lock() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let args = ["--job", "j", "-sS", "-o", "a", &site.url("/1")];
    run_in(dir, common::HAUL, &args).ok();
    if !common::can_trace("the locks of haul job status") {
        return;
    }
    let traced = run_in(dir, "strace", &["-f", "-e", "trace=flock", common::HAUL, "job", "status", "j"]);
    assert_eq!(traced.code, 0, "{}", traced.stderr);
    assert!(!traced.stderr.contains("flock("), "{}", traced.stderr);
}

#[test]
fn job_retry_all_replaces_the_earlier_output() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    fs::write(dir.join("out"), "of others\n").unwrap();
    let (url, expected) = (site.url("/[1-2]"), "of others\npage /1\npage /2\n");
    appending(dir, &["--job", "j", &url]).ok();
    for _ in 0..2 {
        run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
        appending(dir, &["--job", "j"]).ok();
        assert_eq!(fs::read_to_string(dir.join("out")).unwrap(), expected);
    }
    run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    fs::write(dir.join("out"), "").unwrap();
    appending(dir, &["--job", "j"]).ok();
    assert_eq!(fs::read_to_string(dir.join("out")).unwrap(), "page /1\npage /2\n");
    let named = ["--job", "k", "-sS", "--extract", "[0-9]", "-o", "values", &url];
    run_in(dir, common::HAUL, &named).ok();
    run_in(dir, common::HAUL, &["job", "retry", "--all", "k"]).text();
    fs::rename(dir.join("values"), dir.join("older")).unwrap();
    fs::write(dir.join("values"), "a stranger's\n").unwrap();
    run_in(dir, common::HAUL, &named).ok();
    assert_eq!(fs::read_to_string(dir.join("values")).unwrap(), "1\n2\n");
}

#[test]
fn job_directory_need_not_be_utf8() {
    let (outer, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = outer.path().join(OsStr::from_bytes(b"d\xff"));
    if fs::create_dir(&dir).is_err() {
        return common::skipped("a directory whose name is not UTF-8: the file system has none");
    }
    let args = ["--job", "j", "-sS", "-o", "f#1", &site.url("/[1-2]")];
    run_in(&dir, common::HAUL, &args).ok();
    run_in(&dir, common::HAUL, &args).ok();
    run_in(&dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    fs::remove_file(dir.join("f1")).unwrap();
    run(haul(["--job"]).arg(dir.join("j")).current_dir(outer.path())).ok();
    assert_eq!(fs::read_to_string(dir.join("f1")).unwrap(), "page /1\n");
    assert_eq!(site.requests().len(), 4);
}

#[test]
fn refresh_finds_files_whose_names_are_not_utf8() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = common::daily_site::DailySite::start(|target, _| Some(target.to_owned()));
    let url = site.url("/page/1");
    fs::write(dir.join("config"), [b"output = \"f\xff\"\nurl = ", url.as_bytes(), b"\n"].concat()).unwrap();
    run_in(dir, common::HAUL, &["--job", "j", "-sS", "-K", "config"]).ok();
    let refreshed = run_in(dir, common::HAUL, &["--job", "j", "--refresh"]);
    assert_eq!(refreshed.code, 0, "{}", refreshed.stderr);
    assert!(refreshed.stderr.contains("1 fresh"), "{}", refreshed.stderr);
}

#[test]
fn other_options_naming_the_job_file_are_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let url = site.url("/1");
    fs::write(dir.join("list"), format!("{url}\n")).unwrap();
    let written: [&[&str]; 12] = [
        &["-c", "./j"],
        &["-b", "j"],
        &["--hsts", "j"],
        &["--alt-svc", "j"],
        &["-D", "j"],
        &["--etag-save", "j"],
        &["--events", "j"],
        &["--warc", "j"],
        &["--stderr", "j-wal"],
        &["--trace", "j"],
        &["-w", "%output{j}x"],
        &["--input-file", "j"],
    ];
    for args in written {
        let refused = run_in(dir, common::HAUL, &[&["--job", "j", "-sS"], args, &[&url]].concat());
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("of this run; name another file"), "{args:?}: {}", refused.stderr);
        assert_eq!(common::names(dir), ["list"], "{args:?}");
    }
    run_in(dir, common::HAUL, &["--job", "j", "-sS", "-o", "a", &url]).ok();
    let job = fs::read(dir.join("j")).unwrap();
    std::os::unix::fs::symlink("j", dir.join("link")).unwrap();
    let read: [&[&str]; 5] =
        [&["-T", "link"], &["-F", "a=@j"], &["--data-binary", "@link"], &["-K", "j"], &["--events", "link"]];
    for args in read {
        let refused = run_in(dir, common::HAUL, &[&["--job", "j", "-sS"], args, &["-o", "a", &url]].concat());
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(fs::read(dir.join("j")).unwrap() == job, "{args:?} changes the job");
    }
    let out = OpenOptions::new().append(true).open(dir.join("j")).unwrap();
    let refused = haul(["--job", "j", "-sS", &url]).current_dir(dir).stdout(out).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("standard output is the job of this run"));
    assert!(fs::read(dir.join("j")).unwrap() == job);
}

#[test]
fn archive_and_events_require_separate_files() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let url = site.url("/1");
    fs::write(dir.join("list"), format!("{url}\n")).unwrap();
    for (args, text) in [
        (&["--warc", "a", "--events", "a"][..], "a is the archive of this run"),
        (&["--events", "list", "--input-file", "list"], "list is the file of --events of this run"),
        (&["--events", "e", "-c", "e"], "e is the file of --events of this run"),
    ] {
        let refused = run_in(dir, common::HAUL, &[args, &["-o", "o", &url]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(text), "{args:?}: {}", refused.stderr);
    }
    assert_eq!(fs::read_to_string(dir.join("list")).unwrap(), format!("{url}\n"));
    let both = haul(["--events", "/dev/stdout", "-sS", "-o", "o", &url]).current_dir(dir).output().unwrap();
    assert!(both.status.success());
}
