//! Tests of `--events`, and of the progress line of SIGUSR1.

use crate::common;

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use common::gated_site::GatedSite;
use common::{
    HAUL, REFUSED, RunningCommand, as_curl, bash, eventually, haul, list, origin, program, reply_steps, run, run_haul,
    run_in,
};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use testkit::h1_peer::H1Peer;

/// Asserts that each line is a valid event by the published schema. Returns the events.
#[track_caller]
fn events(text: &[u8]) -> Vec<Value> {
    static SCHEMA: OnceLock<(Schemas, SchemaIndex)> = OnceLock::new();
    let (schemas, index) = SCHEMA.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.schema.json");
        let mut schemas = Schemas::new();
        let schema = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource("http://haul.test/events", schema).unwrap();
        let index = compiler.compile("http://haul.test/events", &mut schemas).unwrap();
        (schemas, index)
    });
    let text = std::str::from_utf8(text).expect("UTF-8");
    assert!(text.ends_with('\n'), "a line is cut");
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        schemas.validate(&value, *index).unwrap_or_else(|error| panic!("{error}: {line}"));
        value
    };
    text.lines().map(parse).collect()
}

/// Reads and checks the events in a file; see [`events`].
#[track_caller]
fn events_in(file: &Path) -> Vec<Value> {
    events(&fs::read(file).unwrap())
}

/// Returns the names of the events, without the progress events, whose number depends on time.
fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).filter(|name| *name != "progress").collect()
}

/// Returns the number of events with the name `name` for the URL `url`.
fn count(events: &[Value], url: &str, name: &str) -> usize {
    events.iter().filter(|event| event["url"] == *url && event["event"] == *name).count()
}

#[test]
fn each_url_and_retry_has_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let urls = [origin.url("/small"), origin.url("/flaky/1/small/7"), origin.url("/status/404"), format!("{REFUSED}/")];
    let file = list(dir.path(), "list", &urls);
    let (file, log) = (file.to_str().unwrap(), dir.path().join("events"));
    for (number, option) in
        [["--no-parallel"].as_slice(), &["--threads", "2"], &["--unordered"]].into_iter().enumerate()
    {
        let retried = origin.url(&format!("/flaky/1/small/{}", 7 + number));
        list(dir.path(), "list", [&urls[0], &retried, &urls[2], &urls[3]]);
        let options = ["-s", "--retry", "1", "--retry-delay", "0", "--input-file", file, "--events"];
        let ran = run_haul([&options[..], &[log.to_str().unwrap()], option].concat());
        assert_eq!(ran.code, 22, "{}", ran.stderr);
        let events = events_in(&log);
        assert_eq!((events[0]["event"].as_str(), &events[0]["total"]), (Some("start"), &4.into()));
        let all = [&urls[0], &retried, &urls[2], &urls[3]];
        assert_eq!(all.map(|url| count(&events, url, "done")), [1, 1, 0, 0]);
        assert_eq!(all.map(|url| count(&events, url, "failed")), [0, 0, 1, 1]);
        assert_eq!(all.map(|url| count(&events, url, "retry")), [0, 1, 0, 0]);
        let failed = events.iter().find(|event| event["url"] == *urls[2] && event["event"] == "failed").unwrap();
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&404.into(), &22.into()));
        let refused = events.iter().find(|event| event["url"] == *urls[3]).unwrap();
        assert_eq!((&refused["status"], &refused["effective_url"]), (&Value::Null, &Value::Null));
        let end = events.last().unwrap();
        assert_eq!((end["event"].as_str(), &end["done"], &end["failed"]), (Some("end"), &2.into(), &2.into()));
        assert_eq!(end["exit_code"], 22);
    }
}

#[test]
fn single_url_has_events_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = H1Peer::always(reply_steps("200 OK", "hello"));
    let log = dir.path().join("events");
    for args in [&["-s", "-o", "body", "--events", "events"][..], &["curl", "-s", "-o", "body", "--events", "events"]] {
        let url = server.url("/").replace("http://", "http://me:secret@");
        run(haul(args.iter().chain(&[&*url])).current_dir(dir.path())).ok();
        let events = events_in(&log);
        assert_eq!(names(&events), ["start", "done", "end"]);
        assert_eq!((&events[1]["url"], &events[1]["file"]), (&server.url("/").into(), &"body".into()));
        assert_eq!((&events[1]["bytes"], &events[1]["attempts"]), (&5.into(), &1.into()));
        assert_eq!(events[1]["effective_url"], server.url("/"));
        assert!(!fs::read_to_string(&log).unwrap().contains("secret"));
    }
}

#[test]
fn curl_persona_writes_events() {
    let (dir, origin) = (tempfile::tempdir().unwrap(), origin());
    let urls = [origin.url("/small"), origin.url("/status/404")];
    for parallel in ["-Z", "-s"] {
        let args = ["-sf", parallel, "--events", "events", &urls[0], &urls[1]];
        assert_eq!(as_curl(dir.path(), &args).code, 22);
        let events = events_in(&dir.path().join("events"));
        assert_eq!((count(&events, &urls[0], "done"), count(&events, &urls[1], "failed")), (1, 1));
        assert_eq!((events[0]["event"].as_str(), &events.last().unwrap()["exit_code"]), (Some("start"), &22.into()));
    }
}

#[test]
fn secrets_are_left_out_of_events() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let with_login = |path: &str| origin.url(path).replace("http://", "http://me:secret@");
    let urls = ["/small", "/flaky/1/small/3", "/status/500"].map(with_login);
    let broken = "http://me:secret@[bad/".to_owned();
    let file = list(dir.path(), "list", urls.iter().chain([&broken]));
    let args = ["-s", "--retry", "1", "--retry-delay", "0", "-u", "you:secret", "-H", "Authorization: Bearer secret"];
    for more in [vec!["--input-file", file.to_str().unwrap()], vec![&urls[2]], vec![&broken], vec![&urls[0], &broken]] {
        for persona in [&[][..], &["curl"]] {
            let command = [persona, &args, &["--events", "events"], &more].concat();
            run(haul(command).current_dir(dir.path()));
            let text = fs::read_to_string(dir.path().join("events")).unwrap();
            let ended = names(&events(text.as_bytes())).len();
            assert!(ended >= 2 && !text.contains("secret"), "{more:?}: {text}");
        }
    }
}

#[test]
fn hostile_urls_are_escaped_in_events() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let hostile =
        ["/small?a=\"}\\n{\"event\":\"end\"}", "/small?\u{202e}\u{7f}\u{1b}[31m\u{2028}", "/small?\\\"'<script>"];
    let file = list(dir.path(), "list", hostile.map(|path| origin.url(path)));
    let server = H1Peer::always(reply_steps("302 Found\r\nLocation: http://h/\"}\u{1b}\u{7f}{\"event\":\"end\"}", ""));
    let mut lines = fs::read(&file).unwrap();
    lines.extend([b"http://127.0.0.1:1/\xff\xfe\x01\n", server.url("/\n").as_bytes()].concat());
    fs::write(&file, lines).unwrap();
    run(haul(["-sL", "--max-redirs", "0", "--events", "events", "--input-file", "list"]).current_dir(dir.path()));
    let events = events_in(&dir.path().join("events"));
    assert_eq!(names(&events).len(), 2 + 5);
    assert_eq!(names(&events).iter().filter(|name| **name == "end").count(), 1);
}

#[test]
fn urls_of_later_stages_have_events() {
    let dir = tempfile::tempdir().unwrap();
    let site = common::small_site::SmallSite::start(|target| match target {
        "/" => Some(("text/plain", b"/1 /2 /3".to_vec())),
        _ => Some(("text/plain", b"page".to_vec())),
    });
    let first = site.url("/");
    let then = site.url("/{}");
    let args = ["-s", &first, "--extract", "/([0-9])", "--then", &then, "--events", "events"];
    run(haul(args).current_dir(dir.path())).ok();
    let events = events_in(&dir.path().join("events"));
    let stages = |stage: u64| events.iter().filter(|event| event["stage"] == stage).count();
    assert_eq!((stages(0), stages(1), &events[0]["total"]), (1, 3, &Value::Null));
    assert_eq!(events.last().unwrap()["done"], 4);
}

#[test]
fn events_go_to_an_open_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let (log, url) = (dir.path().join("log"), origin.url("/small"));
    fs::write(&log, "first\n").unwrap();
    let script = format!("$GET -s --events 3 {url} 3>>'{}'", log.display());
    assert_eq!(bash(HAUL, &script).text(), "small\n");
    let text = fs::read(&log).unwrap();
    assert_eq!(names(&events(text.strip_prefix(b"first\n").unwrap())), ["start", "done", "end"]);
    for script in ["--events 3 URL 3>&1 >/dev/null", "--events - -o /dev/null URL", "--events 2 -o /dev/null URL 2>&1"]
    {
        let script = format!("$GET -s {}", script.replace("URL", &url));
        assert_eq!(names(&events(&bash(HAUL, &script).ok())), ["start", "done", "end"], "{script}");
    }
    let ran = bash(HAUL, &format!("$GET -sS --events 9 {url} 9>&-"));
    assert!(ran.failed(23).contains("descriptor 9"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty(), "nothing is fetched");
    let ran = bash(HAUL, &format!("$GET -sS --events 3 {url} 3<'{}'", log.display()));
    assert!(ran.failed(23).contains("reading only"), "{}", ran.stderr);
    assert_eq!(fs::read(&log).unwrap(), text, "a descriptor for reading is not written");
    assert_eq!(bash(HAUL, &format!("$GET -sS --events 99999999999 {url}")).code, 23);
}

#[test]
fn events_are_refused_on_an_unopened_descriptor() {
    let (dir, origin) = (tempfile::tempdir().unwrap(), origin());
    for number in 3..12 {
        let script =
            format!("cd '{}'; $GET -sS --job j --events {number} -o f {}", dir.path().display(), origin.url("/small"));
        let ran = bash(HAUL, &format!("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- 10>&- 11>&-; {script}"));
        assert!(ran.failed(23).contains("descriptor"), "{}", ran.stderr);
    }
    assert!(!dir.path().join("j").exists());
}

#[test]
fn events_file_and_other_files_must_differ() {
    let (dir, origin) = (tempfile::tempdir().unwrap(), origin());
    let dir = dir.path();
    list(dir, "list", [origin.url("/small")]);
    run_in(dir, HAUL, &["-s", "--job", "j", "-o", "f", "--input-file", "list"]).ok();
    std::os::unix::fs::symlink("list", dir.join("link")).unwrap();
    let before = ["list", "j"].map(|name| fs::read(dir.join(name)).unwrap());
    for args in [
        &["--events", "./list", "--input-file", "list"][..],
        &["--events", "link", "--input-file", "list"],
        &["--events", "j", "--job", "j"],
        &["--events", "new", "--job", "new", "--input-file", "list"],
    ] {
        let ran = run_in(dir, HAUL, &[&["-sS"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains("of this run; name another file"), "{}", ran.stderr);
    }
    assert_eq!(["list", "j"].map(|name| fs::read(dir.join(name)).unwrap()), before);
    assert!(!dir.join("new").exists());
    let ran = run_in(dir, HAUL, &["-sS", "--events", "e", "-o", "e", &origin.url("/small")]);
    assert!(ran.failed(23).contains("e is the file of --events"), "{}", ran.stderr);
    assert!(fs::read_to_string(dir.join("e")).unwrap().ends_with("\"exit_code\":23}\n"));
}

#[test]
fn events_go_to_a_socket() {
    let origin = origin();
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut command = haul(["-s", "--events", "2", "-o", "/dev/null", &origin.url("/small")]);
    let status = command.stdout(Stdio::null()).stderr(OwnedFd::from(theirs)).status().unwrap();
    drop(command);
    assert!(status.success());
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut &ours, &mut text).unwrap();
    assert_eq!(names(&events(&text)), ["start", "done", "end"]);
}

#[test]
fn run_continues_when_event_reader_closes() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let file = list(dir.path(), "list", (0..3000).map(|n| origin.url(&format!("/small/{n}"))));
    let script = format!(
        "$GET -s --events 3 -o /dev/null --input-file {} 3>&1 | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        file.display()
    );
    assert_eq!(bash(HAUL, &script).text(), "0\n");
    assert_eq!(origin.requests(), 3000);
}

#[test]
fn full_disk_keeps_whole_event_lines_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let ran = run_haul(["-sS", "--events", "/dev/full", &origin.url("/small")]);
    assert!(ran.failed(23).contains("/dev/full are incomplete: No space left"), "{}", ran.stderr);
    assert_eq!(ran.stdout, b"small\n");
    let file = list(dir.path(), "list", (0..1000).map(|n| origin.url(&format!("/small/{n}"))));
    // A limit on the size of files acts like a full disk, with another error number.
    let script = format!(
        "trap '' XFSZ; ulimit -f 50; cd '{}'; $GET -sS --events log -o /dev/null --input-file {}",
        dir.path().display(),
        file.display()
    );
    let ran = bash(HAUL, &script);
    assert!(ran.failed(23).contains("log are incomplete: File too large"), "{}", ran.stderr);
    let events = events_in(&dir.path().join("log"));
    assert!(!events.is_empty() && !names(&events).contains(&"end"));
    assert_eq!(run_in(dir.path(), HAUL, &["-sS", "--events", "no/such", "http://h/"]).code, 23);
}

#[test]
fn resumed_job_counts_its_finished_urls_as_skipped() {
    let (dir, gated) = (tempfile::tempdir().unwrap(), GatedSite::start(6));
    let dir = dir.path();
    let list = gated.list(dir, 10);
    let args = ["-s", "--job", "j", "--jsonl=no-body", "-o", "f", "--events", "events", "--input-file", &list];
    let running = RunningCommand::start(haul(args).current_dir(dir));
    eventually("six are done", || {
        let text = fs::read_to_string(dir.join("events")).unwrap_or_default();
        text.matches("\"event\":\"done\"").count() == 6
    });
    kill_process(running.pid(), Signal::TERM).unwrap();
    running.wait();
    let stopped = events_in(&dir.join("events"));
    assert_eq!(stopped.last().unwrap()["event"], "end");
    gated.open();
    run_in(dir, HAUL, &["-s", "--job", "j", "--events", "more"]).ok();
    let events = events_in(&dir.join("more"));
    let end = events.last().unwrap();
    assert_eq!((&events[0]["total"], &end["done"], &end["skipped"]), (&10.into(), &4.into(), &6.into()));
}

#[test]
fn signal_ends_wait_for_reader_of_events() {
    let dir = tempfile::tempdir().unwrap();
    mkfifoat(CWD, dir.path().join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // A shell ignores SIGINT in its background processes and their children: the tests, and haul.
        let mut command = program("env");
        command.args(["--default-signal=INT", HAUL, "-sS", "--events", "fifo", &format!("http://{REFUSED}/")]);
        let running = RunningCommand::start(command.current_dir(dir.path()));
        let blocks = || fs::read_to_string(format!("/proc/{}/status", running.pid().as_raw_nonzero()));
        // INT and TERM are the signals 2 and 15. They are blocked before the file is opened.
        eventually("the signals are blocked", || blocks().is_ok_and(|text| text.contains("SigBlk:\t0000000000004002")));
        kill_process(running.pid(), signal).unwrap();
        let ended = running.wait();
        assert_eq!((ended.code, &*ended.stderr), (code, ""));
    }
    // A reader that comes later gets all events.
    let running = RunningCommand::start(haul(["-s", "--events", "fifo", "file:///none"]).current_dir(dir.path()));
    let text = fs::read(dir.path().join("fifo")).unwrap();
    running.wait();
    assert_eq!(events(&text).last().unwrap()["event"], "end");
}

#[test]
fn sigusr1_prints_the_progress() {
    let dir = tempfile::tempdir().unwrap();
    let (said, gated) = (dir.path().join("said"), GatedSite::start(1));
    let list = gated.list(dir.path(), 3);
    let mut command = program(HAUL);
    command.args(["-s", "--input-file", &list]).stderr(File::create(&said).unwrap()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    eventually("the other URLs wait", || gated.site.requests().len() == 3);
    let mut line = String::new();
    eventually("the first URL is counted", || {
        kill_process(rustix::process::Pid::from_child(&child), Signal::USR1).unwrap();
        line = fs::read_to_string(&said).unwrap().lines().last().unwrap_or_default().to_owned();
        line.starts_with("haul: 1 of 3 done, 0 failed, 2 running, ")
    });
    gated.open();
    assert!(child.wait().unwrap().success());
    assert!(line.contains(" URLs/s, 7 B, "), "{line}");
}
