//! Tests of jobs (`--job`): continuing after a run has ended in any manner, the identity of a job,
//! its lists, its output, and the commands `haul job …`.

use crate::common;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::gated_site::GatedSite;
use common::small_site::SmallSite;
use common::{CommandOutput, RunningCommand, eventually, haul, list, names, run, run_in};
use rusqlite::Connection;
use rustix::process::{Signal, kill_process};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn pages(count: usize) -> SmallSite {
    SmallSite::start(move |target| {
        let number: usize = target.trim_start_matches('/').parse().ok()?;
        (number < count).then(|| ("text/plain", format!("page {number}\n").into_bytes()))
    })
}

/// Returns the concatenated bodies that `pages` and [`GatedSite`] serve at the first `count`
/// targets, `/0`, `/1` and so on.
fn bodies(count: usize) -> String {
    (0..count).map(|number| format!("page {number}\n")).collect()
}

/// Returns a command that runs haul in the directory `dir`. Its standard output is appended to the
/// file `out` there.
fn appending(dir: &Path, args: &[&str]) -> Command {
    let out = OpenOptions::new().create(true).append(true).open(dir.join("out")).unwrap();
    let mut command = haul(args);
    command.current_dir(dir).stdout(out).stderr(Stdio::piped());
    command
}

fn end(command: &mut Command) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn out(dir: &Path) -> String {
    fs::read_to_string(dir.join("out")).unwrap()
}

fn number(job: &Path, query: &str) -> i64 {
    Connection::open(job).and_then(|job| job.query_row(query, [], |row| row.get(0))).unwrap()
}

fn done(dir: &Path) -> i64 {
    match dir.join("j").exists() {
        true => Connection::open(dir.join("j"))
            .and_then(|job| job.query_row("SELECT count(*) FROM url WHERE state = 'done'", [], |row| row.get(0)))
            .unwrap_or(0),
        false => 0,
    }
}

#[test]
fn killed_job_repeats_only_requests_in_flight() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(20));
    let dir = dir.path();
    let list = gated.list(dir, 40);
    let args = ["--job", "j", "--parallel-max", "4", "--parallel-max-host", "4", "--input-file", &list];
    let mut child = appending(dir, &args).spawn().unwrap();
    eventually("four requests wait", || gated.site.requests().len() == 24);
    eventually("the others are noted", || done(dir) == 20);
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    // Whatever a killed write may have left is cut off.
    OpenOptions::new().append(true).open(dir.join("out")).unwrap().write_all(b"page 2").unwrap();
    end(&mut appending(dir, &["--job", "j"])).ok();
    assert_eq!(out(dir), bodies(40));
    assert_eq!(gated.site.requests().len(), 24 + 20);
    let text = end(&mut appending(dir, &args)).ok();
    assert!(text.is_empty());
    assert_eq!((out(dir), gated.site.requests().len()), (bodies(40), 44), "a complete job fetches nothing");
}

#[test]
fn killed_job_does_not_fetch_files_again() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(10));
    let dir = dir.path();
    let url = gated.site.url("/[0-19]");
    let args = ["--job", "j", "--parallel-max", "5", "--parallel-max-host", "5", "-o", "f#1", &url];
    let mut child = appending(dir, &args).spawn().unwrap();
    eventually("five requests wait", || gated.site.requests().len() == 15);
    eventually("the others are noted", || done(dir) == 10);
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    end(&mut appending(dir, &args)).ok();
    assert_eq!(gated.site.requests().len(), 15 + 10);
    for number in 0..20 {
        assert_eq!(fs::read_to_string(dir.join(format!("f{number}"))).unwrap(), format!("page {number}\n"));
    }
    assert_eq!(done(dir), 20);
}

#[test]
fn interrupted_job_records_finished_urls() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(5));
    let dir = dir.path();
    let list = gated.list(dir, 8);
    let args = ["--job", "j", "--jsonl=no-body", "--input-file", &list];
    let child = appending(dir, &args).spawn().unwrap();
    eventually("all others wait", || gated.site.requests().len() == 8 && out(dir).lines().count() == 5);
    kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("goes on with it"), "{ended:?}");
    gated.open();
    let status = run_in(dir, common::HAUL, &["job", "status", "j"]).text();
    assert!(status.contains("done       5") && status.contains("stopped"), "{status}");
    end(&mut appending(dir, &args)).ok();
    assert_eq!(out(dir).lines().count(), 8);
    for (number, line) in out(dir).lines().enumerate() {
        assert!(line.contains(&format!("/{number}\"")), "{line}");
    }
}

#[test]
fn second_process_cannot_run_the_same_job() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(0));
    let dir = dir.path();
    let url = gated.site.url("/1");
    let mut child = appending(dir, &["--job", "j", &url]).spawn().unwrap();
    eventually("it has begun", || gated.site.requests().len() == 1);
    let second = run_in(dir, common::HAUL, &["--job", "j", &url]);
    let text = second.failed(2);
    assert!(text.contains(&format!("another process ({}) is running this job", child.id())), "{text}");
    for command in ["retry", "vacuum"] {
        let refused = run_in(dir, common::HAUL, &["job", command, "j"]);
        assert!(refused.failed(2).contains("is running this job"), "{}", refused.stderr);
    }
    let status = run_in(dir, common::HAUL, &["job", "status", "j"]).text();
    assert!(status.contains(&format!("running, process {}", child.id())), "{status}");
    gated.open();
    assert!(child.wait().unwrap().success());
    end(&mut appending(dir, &["--job", "j"])).ok();
}

#[test]
fn different_command_line_error_names_the_difference() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(9));
    let dir = dir.path();
    let (url, other) = (site.url("/1"), site.url("/2"));
    run_in(dir, common::HAUL, &["-s", "--job", "j", "--jsonl", &url, "-o", "a"]).ok();
    for (args, difference) in [
        (&["--job", "j", "--jsonl", &url, "-o", "b"][..], "--output is 'b', and was 'a'"),
        (&["--job", "j", "--jsonl", &url], "--output is missing, which was 'a'"),
        (&["--job", "j", "--jsonl", &url, "-o", "a", "-L"], "--location is given, and was not given"),
        (&["--job", "j", "--jsonl", &other, "-o", "a"], "the URL is"),
    ] {
        let refused = run_in(dir, common::HAUL, args);
        assert!(refused.failed(2).contains(difference), "{args:?}: {}", refused.stderr);
    }
    // Neither the order of options nor limits nor verbosity make another job.
    run_in(dir, common::HAUL, &["-s", "--job", "j", &url, "-o", "a", "--jsonl", "--rate", "9/s", "-m", "9"]).ok();
    assert_eq!(site.requests(), ["/1"]);
    fs::create_dir(dir.join("sub")).unwrap();
    let refused = run_in(&dir.join("sub"), common::HAUL, &["--job", "../j", "--jsonl", &url, "-o", "a"]);
    assert!(refused.failed(2).contains("the job was begun in"), "{}", refused.stderr);
    run_in(&dir.join("sub"), common::HAUL, &["-s", "--job", "../j"]).ok();
}

#[test]
fn job_secrets_are_not_stored_but_required_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let origin = common::origin();
    let url = origin.url("/echo");
    run_in(dir, common::HAUL, &["--job", "j", "-u", "me:pass-word", "-H", "X-Api-Key: to-ken", "-o", "a", &url]).ok();
    assert!(fs::read_to_string(dir.join("a")).unwrap().contains("to-ken"));
    let stored = fs::read(dir.join("j")).unwrap();
    for secret in ["pass-word", "to-ken"] {
        assert!(!stored.windows(secret.len()).any(|text| text == secret.as_bytes()), "{secret} is in the job");
    }
    assert_eq!(fs::metadata(dir.join("j")).unwrap().permissions().mode() & 0o777, 0o600);
    run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    let refused = run_in(dir, common::HAUL, &["--job", "j"]);
    assert!(refused.failed(2).contains("--user, whose value is a secret and not stored"), "{}", refused.stderr);
    run_in(dir, common::HAUL, &["--job", "j", "-u", "me:other", "-H", "X-Api-Key: new"]).ok();
    let echo = fs::read_to_string(dir.join("a")).unwrap();
    assert!(echo.contains("new") && !echo.contains("to-ken"), "{echo}");
    let login = origin.url("/small").replace("://", "://me:pw@");
    let refused = run_in(dir, common::HAUL, &["--job", "k", &login]);
    assert!(refused.failed(2).contains("does not store the credentials in a URL"), "{}", refused.stderr);
}

#[test]
fn job_refuses_changed_list() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(9));
    let dir = dir.path();
    let path = list(dir, "list", (0..3).map(|number| site.url(&format!("/{number}"))));
    let args = ["--job", "j", "-O", "--remote-name-all", "--input-file", "list"];
    run_in(dir, common::HAUL, &args).ok();
    let text = fs::read_to_string(&path).unwrap();
    // The same content with another time is the same list.
    fs::write(&path, &text).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    run_in(dir, common::HAUL, &args).ok();
    for other in [text.replace("/2", "/4"), text.clone() + &site.url("/3\n")] {
        fs::write(&path, other).unwrap();
        let refused = run_in(dir, common::HAUL, &args);
        assert!(refused.failed(2).contains("list has changed since the job began"), "{}", refused.stderr);
    }
    assert_eq!(site.requests(), ["/0", "/1", "/2"]);
}

/// Runs haul in `dir` with this text as its standard input.
fn piped(dir: &Path, args: &[&str], text: &str) -> CommandOutput {
    let mut child = appending(dir, args).stdin(Stdio::piped()).spawn().unwrap();
    // It need not read all of it.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: Vec::new(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn piped_list_is_copied_into_the_job() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(3));
    let dir = dir.path();
    let lines: String = (0..12).map(|number| gated.site.url(&format!("/{number}\n"))).collect();
    let args = ["--job", "j", "--input-file", "-", "--parallel-max", "2", "--parallel-max-host", "2"];
    let mut child = appending(dir, &args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    eventually("the list is copied", || {
        dir.join("j").exists()
            && Connection::open(dir.join("j"))
                .and_then(|job| job.query_row("SELECT is_complete FROM list", [], |row| row.get(0)))
                .unwrap_or(false)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    end(&mut appending(dir, &["--job", "j"])).ok();
    assert_eq!(out(dir), bodies(12));
    let copy = "SELECT group_concat(CAST(text AS TEXT), '') FROM (SELECT text FROM list_text ORDER BY id)";
    let copied: String =
        Connection::open(dir.join("j")).and_then(|job| job.query_row(copy, [], |row| row.get(0))).unwrap();
    assert_eq!(copied, lines);
}

#[test]
fn job_stores_no_secrets_of_lists_and_variables() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(1));
    let dir = dir.path();
    let url = site.url("/0").replace("http://", "http://me:word@");
    let refused =
        piped(dir, &["--job", "j", "--out-null", "--input-file", "-"], &format!("{}\n{url}\n", site.url("/0")));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("line 2 of the list from standard input has credentials"), "{}", refused.stderr);
    let has_secret = |job: &str| {
        let files = names(dir).into_iter().filter(|name| name.starts_with(job));
        let contents: Vec<u8> = files.flat_map(|name| fs::read(dir.join(name)).unwrap()).collect();
        contents.windows(4).any(|window| window == b"word")
    };
    assert!(!has_secret("j"));
    let header = ["--variable", "token=word", "--expand-header", "X-Api-Key: {{token}}", "-e", "http://u:word@h/"];
    let url = site.url("/0");
    let args = [&["--job", "k", "-s", "--out-null"][..], &header, &[&url]].concat();
    run_in(dir, common::HAUL, &args).ok();
    assert!(!has_secret("k"));
    let refused = run_in(dir, common::HAUL, &["--job", "k", "-sS"]);
    assert!(refused.code == 2 && refused.stderr.contains("is a secret and not stored"), "{}", refused.stderr);
    run_in(dir, common::HAUL, &[&["--job", "k", "-s"], &header[..]].concat()).ok();
}

#[test]
fn files_of_the_job_are_refused_as_outputs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let site = SmallSite::start(|_| Some(("text/plain", b"content".to_vec())));
    list(dir, "list", [site.url("/j")]);
    let text = fs::read_to_string(dir.join("list")).unwrap();
    let (url, list_args) = (site.url("/j"), ["--input-file", "list"]);
    for (args, owner) in [
        (&["-o", "j", &url][..], "j is the job of this run"),
        (&["-o", "j-wal", &url], "j-wal is a part of the job of this run"),
        (&["-o", "j-journal", &url], "j-journal is a part of the job of this run"),
        (&["-O", list_args[0], list_args[1], "--remote-name-all"], "j is the job of this run"),
        (&["--jsonl", "-o", "list", list_args[0], list_args[1]], "list is the list of this run"),
        (&["--warc", "a.warc", "-o", "a.warc", &url], "a.warc is the archive of this run"),
    ] {
        let refused = run_in(dir, common::HAUL, &[&["--job", "j", "-sS"], args].concat());
        assert_eq!(refused.code, 23, "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(owner), "{args:?}: {}", refused.stderr);
        assert_eq!(fs::read_to_string(dir.join("list")).unwrap(), text);
        Connection::open(dir.join("j")).and_then(|job| job.execute("DELETE FROM run", [])).unwrap();
        for name in names(dir).iter().filter(|name| *name != "list") {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
}

#[test]
fn job_replaces_only_its_own_response_named_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let reply = |number: usize| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Disposition: attachment; filename=";
        vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}f{number}\r\nContent-Length: 4\r\n\r\nbody"))]
    };
    let server = H1Peer::start([1, 2, 1, 1].into_iter().map(reply).collect());
    fs::write(dir.join("f2"), "a stranger's").unwrap();
    list(dir, "list", [server.url("/1"), server.url("/2")]);
    let args = ["--job", "j", "-sS", "-J", "--remote-name-all", "--parallel-max", "1", "--input-file", "list"];
    let ran = run_in(dir, common::HAUL, &args);
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    assert_eq!(fs::read_to_string(dir.join("f2")).unwrap(), "a stranger's");
    // As if the run had been killed after the file had got its name.
    Connection::open(dir.join("j")).and_then(|job| job.execute("DELETE FROM url WHERE number = 0", [])).unwrap();
    fs::write(dir.join("f1"), "older").unwrap();
    fs::remove_file(dir.join("f2")).unwrap();
    let ran = run_in(dir, common::HAUL, &args);
    assert_eq!(fs::read_to_string(dir.join("f1")).unwrap(), "body", "{}", ran.stderr);
    // The second URL suggests the name of the first one now.
    assert_eq!(ran.code, 23);
    assert!(ran.stderr.contains("f1 is the output of"), "{}", ran.stderr);
}

#[test]
fn finished_job_is_readable_without_write_access() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(2));
    let dir = dir.path();
    fs::create_dir(dir.join("a?b%")).unwrap();
    let inner = dir.join("a?b%");
    run_in(&inner, common::HAUL, &["--job", "j", "-s", "--out-null", &site.url("/[0-1]")]).ok();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o555)).unwrap();
    let listed = run_in(&inner, common::HAUL, &["job", "list", "j"]);
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(listed.text().lines().count(), 2);
}

#[test]
fn empty_job_file_becomes_private() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(1));
    let job = dir.path().join("j");
    fs::write(&job, "").unwrap();
    fs::set_permissions(&job, fs::Permissions::from_mode(0o644)).unwrap();
    run_in(dir.path(), common::HAUL, &["--job", "j", "-s", "--out-null", &site.url("/0")]).ok();
    assert_eq!(fs::metadata(&job).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn partly_copied_list_must_be_given_again() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(0));
    let dir = dir.path();
    let lines: String = (0..6).map(|number| gated.site.url(&format!("/{number}\n"))).collect();
    let (first, _) = lines.split_at(lines.match_indices('\n').nth(2).unwrap().0 + 1);
    let args = ["--job", "j", "--input-file", "-"];
    let mut child = appending(dir, &args).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(first.as_bytes()).unwrap();
    eventually("three requests wait", || gated.site.requests().len() == 3);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(pipe);
    gated.open();
    let other = lines.replace("/1\n", "/5\n");
    let refused = piped(dir, &args, &other);
    assert!(refused.stderr.contains("differs in line 2 from the one that the job has copied"), "{}", refused.stderr);
    let short = piped(dir, &args, &lines[..9]);
    assert!(short.stderr.contains("ends at line 1"), "{}", short.stderr);
    piped(dir, &args, &lines).ok();
    assert_eq!(out(dir), bodies(6));
    // Now it is complete: no list need be given, but no other one may be.
    piped(dir, &args, "").ok();
    let refused = piped(dir, &args, "http://nonesuch.invalid/");
    assert!(refused.stderr.contains("differs in line 1 from the one that the job has copied; "), "{}", refused.stderr);
}

#[test]
fn failed_urls_are_listed_and_retried() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let origin = common::origin();
    let urls = ["/small/0", "/status/404", "/flaky/1/small", "/status/410"].map(|path| origin.url(path));
    list(dir, "list", &urls);
    let args = ["--job", "j", "-s", "--retry", "0", "--jsonl=no-body", "--input-file", "list"];
    assert_eq!(end(&mut appending(dir, &args)).code, 22);
    let failed = |options: &[&str]| run_in(dir, common::HAUL, &[&["job", "list"], options, &["j"]].concat()).text();
    assert_eq!(failed(&["--failed"]), format!("{}\n{}\n{}\n", urls[1], urls[2], urls[3]));
    assert!(failed(&[]).starts_with(&format!("done\t200\t0\t{}\t\n", urls[0])), "{}", failed(&[]));
    let status = run_in(dir, common::HAUL, &["job", "status", "j"]).text();
    assert!(status.contains("failed     3") && status.contains("1 × (22, status 404)"), "{status}");
    assert!(status.contains("complete") && status.contains("left       0"), "{status}");
    // A failure is an end: the next run does not try again, and says so by its exit code.
    assert_eq!(end(&mut appending(dir, &args)).code, 22);
    assert_eq!(origin.hits("/status/404"), 1);
    let retried = run_in(dir, common::HAUL, &["job", "retry", "--status", "5xx", "j"]).text();
    assert!(retried.contains("1 URLs are set back"), "{retried}");
    assert_eq!(end(&mut appending(dir, &args)).code, 22);
    assert_eq!((origin.hits("/flaky/1/small"), origin.hits("/status/404")), (2, 1));
    assert_eq!(out(dir).lines().count(), 5, "the new record is at the end");
    let json = run_in(dir, common::HAUL, &["job", "status", "--json", "j"]).text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["done"], &json["failed"], &json["total"]), (&2.into(), &2.into(), &4.into()));
    assert_eq!(number(&dir.join("j"), "SELECT attempts FROM url WHERE number = 2"), 2);
    for (options, count) in [(&["--cause", "22"][..], 2), (&["--url", "410"], 0), (&["--all"], 2)] {
        let text = run_in(dir, common::HAUL, &[&["job", "retry"], options, &["j"]].concat()).text();
        let expected = if count == 0 { "no URL is set back".to_owned() } else { format!("{count} URLs are set back") };
        assert!(text.contains(&expected), "{options:?}: {text}");
    }
    run_in(dir, common::HAUL, &["job", "vacuum", "j"]).text();
}

#[test]
fn job_refuses_truncated_output() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(3));
    let dir = dir.path();
    let args = ["--job", "j", &site.url("/[0-2]")];
    end(&mut appending(dir, &args)).ok();
    File::create(dir.join("out")).unwrap();
    let refused = end(&mut appending(dir, &args));
    assert!(refused.failed(2).contains("has 0 bytes, but the job has written 21"), "{}", refused.stderr);
    run_in(dir, common::HAUL, &["job", "retry", "--all", "j"]).text();
    end(&mut appending(dir, &args)).ok();
    assert_eq!(out(dir), bodies(3));
}

#[test]
fn piped_output_warns_that_records_may_repeat() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(3));
    let dir = dir.path();
    let args = ["--job", "j", &site.url("/[0-2]")];
    let ran = run_in(dir, common::HAUL, &args);
    assert_eq!((ran.code, ran.stdout), (0, bodies(3).into_bytes()));
    assert!(ran.stderr.contains("records may appear there twice; redirect it with >> FILE"), "{}", ran.stderr);
    let silent = run_in(dir, common::HAUL, &["--job", "k", "-s", &site.url("/[0-2]")]);
    assert_eq!(silent.text(), bodies(3));
}

#[test]
fn job_continues_shared_output_file_without_repeats() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(4));
    let dir = dir.path();
    let list = gated.list(dir, 6);
    fs::write(dir.join("values"), "old\n").unwrap();
    let args = ["--job", "j", "--extract", "page ([0-9])", "-o", "values", "--input-file", &list];
    let mut child = haul(args).current_dir(dir).spawn().unwrap();
    eventually("four are noted", || done(dir) == 4);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(dir.join("values")).unwrap(), "0\n1\n2\n3\n");
    gated.open();
    run_in(dir, common::HAUL, &args).ok();
    assert_eq!(fs::read_to_string(dir.join("values")).unwrap(), "0\n1\n2\n3\n4\n5\n");
}

#[test]
fn csv_header_is_written_once() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(2));
    let dir = dir.path();
    let list = gated.list(dir, 4);
    let args = ["--job", "j", "--csv", "--extract", "n=page ([0-9])", "--input-file", &list];
    let mut child = appending(dir, &args).spawn().unwrap();
    eventually("two are noted", || done(dir) == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    end(&mut appending(dir, &args)).ok();
    assert_eq!(out(dir).replace('\r', ""), "n\n0\n1\n2\n3\n");
}

#[test]
fn urls_lost_in_power_failure_are_fetched_again() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(6));
    let dir = dir.path();
    let list = gated.list(dir, 8);
    let args = ["--job", "j", "--input-file", &list];
    let mut child = appending(dir, &args).spawn().unwrap();
    eventually("six are noted", || done(dir) == 6);
    child.kill().unwrap();
    child.wait().unwrap();
    gated.open();
    // As if the computer had stopped when two rows were on the disk.
    let connection = Connection::open(dir.join("j")).unwrap();
    connection.execute("UPDATE url SET commit_number = iif(number < 2, 1, 2)", []).unwrap();
    let set = "UPDATE job SET boot = 'another', durable_commit = 1, durable_output = ?1";
    connection.execute(set, [bodies(2).len() as i64]).unwrap();
    drop(connection);
    end(&mut appending(dir, &args)).ok();
    assert_eq!(out(dir), bodies(8));
    let requests = gated.site.requests();
    let first = requests.iter().filter(|target| *target == "/0").count();
    let last = requests.iter().filter(|target| *target == "/5").count();
    assert_eq!((first, last), (1, 2));
}

#[test]
fn foreign_or_newer_job_files_are_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages(3));
    let dir = dir.path();
    let url = site.url("/1");
    fs::write(dir.join("text"), "This is a text, and no job.\n").unwrap();
    Connection::open(dir.join("other")).and_then(|other| other.execute_batch("CREATE TABLE t (a)")).unwrap();
    run_in(dir, common::HAUL, &["--job", "newer", "-o", "a", &url]).ok();
    Connection::open(dir.join("newer")).and_then(|newer| newer.pragma_update(None, "user_version", 99)).unwrap();
    fs::create_dir(dir.join("dir")).unwrap();
    for (name, text) in [
        ("text", "it is no job of haul"),
        ("other", "it is a database of another program"),
        ("newer", "its version 99 is not that of this haul"),
    ] {
        let before = fs::read(dir.join(name)).unwrap();
        let refused = run_in(dir, common::HAUL, &["--job", name, "-o", "a", &url]);
        assert!(refused.failed(2).contains(text), "{name}: {}", refused.stderr);
        let refused = run_in(dir, common::HAUL, &["job", "status", name]);
        assert!(refused.failed(2).contains(text), "{name}: {}", refused.stderr);
        assert!(fs::read(dir.join(name)).unwrap() == before, "{name} has changed");
    }
    let refused = run_in(dir, common::HAUL, &["--job", "dir", &url]);
    assert!(refused.failed(23).contains("failed to open the job dir"), "{}", refused.stderr);
    let refused = run_in(dir, common::HAUL, &["--job", "nonesuch"]);
    assert!(refused.failed(2).contains("there is no such job; give the URLs"), "{}", refused.stderr);
    assert!(!names(dir).contains(&"nonesuch".to_owned()));
}

#[test]
fn job_refuses_options_that_cannot_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    for (options, text) in [
        (&["--no-clobber", "-O"][..], "--no-clobber would number a file twice"),
        (&["-C", "-", "-O"], "a job goes on by itself"),
        (&["-d", "@-"], "standard input cannot be read again"),
        (&["http://h/2", "--next"], "a job has one group of URLs"),
    ] {
        let args = [&["--job", "j"], options, &["http://h/"]].concat();
        let refused = run(haul(&args).current_dir(dir.path()));
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(text), "{args:?}: {}", refused.stderr);
    }
    fs::write(dir.path().join("config"), "job = j\n").unwrap();
    let refused = run(haul(["-K", "config", "http://h/"]).current_dir(dir.path()));
    assert!(refused.stderr.contains("it belongs on the command line"), "{}", refused.stderr);
    assert_eq!(names(dir.path()), ["config"]);
    let curl = run(haul(["curl", "-q", "--job", "j", "http://h/"]).current_dir(dir.path()));
    assert!(curl.stderr.contains("curl has no jobs"), "{}", curl.stderr);
}

#[test]
fn invalid_job_commands_name_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (args, text) in [
        (&["job", "start", "j"][..], "no such command of 'haul job', which has status"),
        (&["job", "status"], "no job specified; name its file"),
        (&["job", "status", "a", "b"], "one job at a time"),
        (&["job", "status", "--failed", "a"], "option --failed: is unknown to this command"),
        (&["job", "retry", "--status", "x", "a"], "expected a status such as 503"),
        (&["job", "retry", "--cause"], "option --cause: requires a value"),
    ] {
        let refused = run_in(dir.path(), common::HAUL, args);
        assert!(refused.failed(2).contains(text), "{args:?}: {}", refused.stderr);
    }
    let missing = run_in(dir.path(), common::HAUL, &["job", "status", "j"]);
    assert!(missing.failed(23).contains("failed to open the job j"), "{}", missing.stderr);
    assert!(run_in(dir.path(), common::HAUL, &["job"]).text().starts_with("Usage: haul job"));
    assert_eq!(names(dir.path()).len(), 0);
}

#[test]
fn hostile_job_texts_are_harmless_on_terminals() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let peer = common::answering("HTTP/1.1 500 \x1b[31mred\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let url = peer.url("/\u{202e}x");
    assert_eq!(run_in(dir, common::HAUL, &["--job", "j", "-s", "--retry", "0", "-o", "a", &url]).code, 22);
    for command in [&["job", "status", "j"][..], &["job", "list", "j"]] {
        let text = run_in(dir, common::HAUL, command).text();
        assert!(!text.contains('\x1b'), "{text:?}");
    }
    drop(RunningCommand::start(&mut haul(["job", "list", "--failed", "j"])).wait());
}
