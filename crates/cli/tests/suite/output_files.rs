//! Tests of output files: names, replacement, links, signals, resuming, and equal names. Also
//! checks that requests match those of curl.

use crate::common;

use std::fs::{self, File};
use std::io::Read;

use common::{
    HAUL, RunningCommand, answering, as_curl, bash, haul, installed, names, origin, page, program, run_haul, run_in,
    short_body, skipped,
};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn output_names_come_from_globs_urls_and_directories() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let dir = dir.path();
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let glob = origin.url("/small/[1-3]?{a,b}");
    run_in(dir, HAUL, &["-o", "page-#1-#2-#3", &glob]).ok();
    let mut expected: Vec<String> = (1..=3).flat_map(|n| ["a", "b"].map(|l| format!("page-{n}-{l}-#3"))).collect();
    expected.sort();
    assert_eq!(names(dir), expected);
    assert_eq!(read("page-2-b-#3"), "small 2\n");
    for name in names(dir) {
        fs::remove_file(dir.join(name)).unwrap();
    }

    let urls = [origin.url("/small/4?x/y#z"), origin.url("/bytes/5")];
    run_in(dir, HAUL, &["-O", &urls[0], "-O", &urls[1]]).ok();
    run_in(dir, HAUL, &["--remote-name-all", "--output-dir", "a/b", "--create-dirs", &urls[0]]).ok();
    run_in(dir, HAUL, &["-o", "c/d/#1", "--create-dirs", &origin.url("/small/[6-7]")]).ok();
    assert_eq!(names(dir), ["4", "5", "a", "c"]);
    assert_eq!(
        (read("4"), fs::read(dir.join("5")).unwrap().len(), read("a/b/4")),
        ("small 4\n".into(), 5, "small 4\n".into())
    );
    assert_eq!(names(&dir.join("c/d")), ["6", "7"]);

    let ran = run_in(dir, HAUL, &["-o", "no/such/dir", &urls[0]]);
    assert!(ran.failed(23).contains("no/such/dir"), "{}", ran.stderr);
    let ran = run_in(dir, HAUL, &["-O", &origin.url("/")]);
    assert_eq!(ran.code, 23, "no name in it: {}", ran.stderr);
    assert_eq!(names(dir), ["4", "5", "a", "c"]);
}

#[test]
fn time_cond_drops_older_bodies_of_many_urls() {
    let dir = tempfile::tempdir().unwrap();
    let reply = "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 5\r\n\r\nhello";
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(reply),
        ScriptStep::ReadHead,
        ScriptStep::send(reply),
    ]);
    let (one, other) = (peer.url("/1"), peer.url("/2"));
    let run = |options: &[&str]| {
        let told = ["-s", "-S", "-R", "-w", "%{http_code} %{filename_effective}\n"];
        run_in(dir.path(), HAUL, &[&told, options].concat()).text()
    };
    assert_eq!(run(&["-z", "1990-01-01", &one, &other]), "hello200 \nhello200 \n");
    for since in ["2000-01-01", "-1990-01-01"] {
        assert_eq!(run(&["-z", since, &one]), "304 \n");
        assert_eq!(run(&["-z", since, &one, &other]), "304 \n304 \n");
        assert_eq!(run(&["-z", since, "--unordered", "--remote-name-all", &one, &other]), "304 \n304 \n");
        let ran = run(&["-z", since, "-i", &one, &other]);
        assert_eq!((ran.matches("200 OK").count(), ran.matches("hello").count()), (2, 0));
        assert_eq!(run(&["-z", since, "--extract", "h", &one, &other]), "304 \n304 \n");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn etag_options_with_many_urls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let glob = origin().url("/small/[1-2]");
    for option in ["--etag-save", "--etag-compare"] {
        for urls in [&[&glob[..]][..], &["--input-file", "-"]] {
            let ran = run_in(dir.path(), HAUL, &[&[option, "tag"], urls].concat());
            assert_eq!((ran.code, ran.stderr.contains("single URL")), (2, true), "{}", ran.stderr);
        }
    }
    run_in(dir.path(), HAUL, &["-s", "--etag-save", "tag", &origin().url("/small/[1-1]")]).ok();
}

#[test]
fn curl_remote_name_keeps_a_leading_dot() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = |name: &str| peer.url(name);
    as_curl(dir.path(), &["-O", &url("/.vimrc")]).ok();
    as_curl(dir.path(), &["-O", &url("/at-12:30.tar")]).ok();
    assert_eq!(names(dir.path()), [".vimrc", "at-12:30.tar"]);
    // haul itself may have had its URLs from anyone.
    run_in(dir.path(), HAUL, &["-s", "-O", &url("/.vimrc")]).ok();
    run_in(dir.path(), HAUL, &["-s", "-O", &url("/at-12:45.tar")]).ok();
    assert_eq!(names(dir.path()), [".vimrc", "_vimrc", "at-12:30.tar", "at-12:45.tar"]);
}

#[test]
fn outputs_pair_with_urls_like_curls() {
    let Some(curl) = installed("curl", "pairing of -o with URLs") else { return };
    let origin = origin();
    let (one, two, three) = (origin.url("/small/1"), origin.url("/small/[2-3]"), origin.url("/small/4"));
    let args = ["-s", &one, "-o", "x", &two, "-o", "y#1", &three];
    let results = [HAUL, curl].map(|program| {
        let dir = tempfile::tempdir().unwrap();
        let stdout = run_in(dir.path(), program, &args).ok();
        let files = names(dir.path()).into_iter().map(|name| {
            let body = fs::read_to_string(dir.path().join(&name)).unwrap();
            (name, body)
        });
        (stdout, files.collect::<Vec<_>>())
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].1.len(), 3);
}

#[test]
fn special_files_are_written_in_place() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (small, dir) = (origin.url("/small"), dir.path());
    assert_eq!(run_haul(["-o", "/dev/fd/1", &small]).ok(), b"small\n");
    assert_eq!(run_haul(["-o", "/dev/stdout", &small, &small]).ok(), b"small\nsmall\n");
    let ran = bash(HAUL, &format!("$GET -o /dev/fd/7 {small} 7>{}/seven", dir.display()));
    ran.ok();
    assert_eq!(fs::read(dir.join("seven")).unwrap(), b"small\n");
    let fifo = dir.join("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let running = RunningCommand::start(&mut haul(["-o", fifo.to_str().unwrap(), &origin.url("/bytes/300000")]));
    let mut got = Vec::new();
    File::open(&fifo).unwrap().read_to_end(&mut got).unwrap();
    running.wait().ok();
    assert!(got == origin.pattern().slice(0, 300_000));
    assert_eq!(names(dir), ["fifo", "seven"]);
    run_haul(["-o", "/dev/null", &small]).ok();
}

#[test]
fn output_replaces_the_target_of_a_symlink() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let dir = dir.path();
    fs::write(dir.join("old"), "old\n").unwrap();
    fs::hard_link(dir.join("old"), dir.join("twin")).unwrap();
    std::os::unix::fs::symlink("old", dir.join("link")).unwrap();
    run_in(dir, HAUL, &["-o", "link", &origin.url("/small")]).ok();
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!((read("old"), read("twin")), ("small\n".into(), "old\n".into()));
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
    assert_eq!(names(dir), ["link", "old", "twin"]);
}

#[test]
fn output_creates_the_target_of_dangling_symlink() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let dir = dir.path();
    fs::create_dir(dir.join("there")).unwrap();
    std::os::unix::fs::symlink("there/one", dir.join("first")).unwrap();
    std::os::unix::fs::symlink("first", dir.join("link")).unwrap();
    run_in(dir, HAUL, &["-o", "link", &origin.url("/small")]).ok();
    assert_eq!(fs::read_to_string(dir.join("there/one")).unwrap(), "small\n");
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
    // A name that the server suggests leads nowhere.
    let naming =
        answering("HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=trap\r\nContent-Length: 2\r\n\r\nhi");
    std::os::unix::fs::symlink("there/two", dir.join("trap")).unwrap();
    let ran = run_in(dir, HAUL, &["--retry", "0", "-OJ", &naming.url("/x")]);
    assert_eq!((ran.code, names(&dir.join("there"))), (23, vec!["one".to_owned()]), "{}", ran.stderr);
}

#[test]
fn failed_download_leaves_the_old_file() {
    let (origin, short, dir) = (origin(), short_body(), tempfile::tempdir().unwrap());
    let dir = dir.path();
    fs::write(dir.join("old"), "old\n").unwrap();
    let (short, missing) = (short.url("/x"), origin.url("/status/404"));
    for (url, code) in [(&short, 18), (&missing, 22)] {
        for name in ["old", "new"] {
            let ran = run_in(dir, HAUL, &["--retry", "0", "-o", name, url]);
            assert_eq!(ran.code, code, "{}", ran.stderr);
            // The same as one of many.
            let args = ["--retry", "0", "-o", name, url, "-o", "good", &origin.url("/small")];
            assert_eq!(run_in(dir, HAUL, &args).code, code);
            assert_eq!(names(dir), ["good", "old"]);
            assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old\n");
        }
    }
}

#[test]
fn signal_leaves_no_partial_files() {
    let flags = OFlags::TMPFILE | OFlags::WRONLY;
    let dir = tempfile::tempdir().unwrap();
    if cfg!(linux_calls) && rustix::fs::open(dir.path(), flags, Mode::RUSR | Mode::WUSR).is_err() {
        return skipped("what a signal leaves: the file system has no O_TMPFILE");
    }
    // Nothing can remove a file with a name after SIGKILL.
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::KILL, 137)];
    let signals = &signals[..if cfg!(linux_calls) { 3 } else { 2 }];
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(50_000))),
        ScriptStep::ReadToEnd,
    ]);
    fs::write(dir.path().join("old"), "old\n").unwrap();
    for &(signal, code) in signals {
        for outputs in [&["old"][..], &["new"], &["old", "new", "newer"]] {
            let url = peer.url("/");
            let args = outputs.iter().flat_map(|name| ["-o", name, &url]);
            // A shell ignores SIGINT in its background processes and their children: the tests, and
            // haul.
            let mut command = program("env");
            command.args(["--default-signal=INT", HAUL]).args(args).current_dir(dir.path());
            let running = RunningCommand::start(&mut command);
            let descriptors = format!("/proc/{}/fd", running.pid().as_raw_nonzero());
            let open = || {
                let links =
                    fs::read_dir(&descriptors).unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
                links.filter(|to| to.starts_with(dir.path())).count() >= outputs.len()
            };
            common::eventually("the files are open", open);
            kill_process(running.pid(), signal).unwrap();
            let ran = running.wait();
            assert_eq!((ran.code, ran.stderr.as_str()), (code, ""));
            assert_eq!(names(dir.path()), ["old"]);
            assert_eq!(fs::read_to_string(dir.path().join("old")).unwrap(), "old\n");
        }
    }
}

/// Parses the request that the server echoes as JSON. Removes what may differ: the field
/// `User-Agent` and the number of the connection.
fn echoed(json: &[u8]) -> Value {
    let mut seen: Value = serde_json::from_slice(json).expect("what /echo says");
    let own = |name: &str| name == "user-agent";
    let mut fields: Vec<Value> = seen["headers"].as_array().unwrap().clone();
    fields.retain(|field| !own(field[0].as_str().unwrap()));
    fields.sort_by_key(ToString::to_string);
    seen["headers"] = fields.into();
    seen["connection"] = Value::Null;
    seen
}

#[test]
fn requests_match_those_of_curl() {
    let Some(curl) = installed("curl", "requests as curl sends them") else { return };
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let url = origin.url("/echo/a%20b/../c?q=1&r=%41#fragment");
    fs::write(dir.path().join("data"), "a=1\r\nb=2\n").unwrap();
    fs::write(dir.path().join("fields"), "X-One: 1\nX-Two: 2\n").unwrap();
    for args in [
        &[][..],
        &["-d", "a=1", "-d", "b=2"],
        &["-d", "@data"],
        &["--data-binary", "@data"],
        &["--data-raw", "@data"],
        &["-d", ""],
        &["--json", r#"{"a":"#, "--json", "1}"],
        &["-X", "PUT", "-d", "x"],
        &["-X", "DELETE"],
        &["-H", "X-Mine: yes", "-H", "Accept:", "-H", "X-Empty;", "-H", "Host: other.example"],
        &["-H", "@fields"],
        &["-d", "x", "-H", "Content-Type: text/plain"],
        &["-e", "http://before.example/x", "-b", "a=1; b=2"],
        &["-u", "user:pass:word"],
        &["-u", "user:"],
        &["--oauth2-bearer", "token"],
        &["-r", "0-99"],
        &["-L", "-e", "http://before.example/;auto"],
        &["-A", "mine/1"],
        &["--compressed", "-H", "Accept-Encoding: gzip"],
        &["--path-as-is"],
    ] {
        let args = [&["-s", &url], args].concat();
        let [haul, curl] = [HAUL, curl].map(|program| echoed(&run_in(dir.path(), program, &args).ok()));
        assert_eq!(haul, curl, "{args:?}");
    }
    run_haul(["-s", "-A", "mine/1", &url]).ok();
    assert_eq!(origin.log().last().unwrap().header("user-agent"), Some("mine/1"));
    run_haul(["-s", "-A", "", &url]).ok();
    assert_eq!(origin.log().last().unwrap().header("user-agent"), None);
}

#[test]
fn redirected_requests_match_those_of_curl() {
    let Some(curl) = installed("curl", "redirected requests as curl sends them") else { return };
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    for code in [301, 302, 303, 307, 308] {
        let url = origin.url(&format!("/redirect/{code}?to=/echo/x"));
        for args in
            [&[][..], &["-d", "a=1"], &["-X", "PUT", "-d", "a=1"], &["-u", "a:b", "-b", "c=d"], &["-e", ";auto"]]
        {
            if code <= 303 && args.contains(&"PUT") {
                // curl repeats the method without the content, which would empty the resource.
                continue;
            }
            let args = [&["-sL", &url], args].concat();
            let [haul, curl] = [HAUL, curl].map(|program| echoed(&run_in(dir.path(), program, &args).ok()));
            assert_eq!(haul, curl, "{args:?}");
        }
    }
}

#[test]
fn secrets_stay_with_their_origin_along_redirects() {
    let (first, other) = (origin(), origin());
    let away = first.url(&format!("/redirect/302?to={}", other.url("/echo")));
    let secrets = ["-u", "user:hunter2", "-b", "sid=hunter2", "-H", "X-Api-Key: hunter2", "-H", "X-Other: kept"];
    for urls in [&[&away][..], &[&away, &away]] {
        run_haul(secrets.iter().copied().chain(urls.iter().map(|url| url.as_str()))).ok();
    }
    assert_eq!(other.requests(), 3);
    for request in other.log() {
        let told: Vec<_> = request.headers.iter().filter(|(_, value)| value.contains("hunter2")).collect();
        assert!(told.is_empty() && request.header("authorization").is_none(), "{request:?}");
        assert_eq!(request.header("x-other"), Some("kept"));
    }
    assert!(first.log().iter().all(|request| request.header("authorization").is_some()));
}

#[test]
fn skip_existing_keeps_file_named_by_content_disposition() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=taken\r\nContent-Length: 3\r\nConnection: close\r\n\r\nnew",
        ),
    ]);
    for many in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("taken"), "old").unwrap();
        let args = ["--output-dir", dir.path().to_str().unwrap(), "-J", "--remote-name-all"];
        let urls = [peer.url("/x"), peer.url("/y")];
        let urls = &urls[..if many { 2 } else { 1 }];
        let ran = run_haul(args.iter().copied().chain(["--skip-existing"]).chain(urls.iter().map(String::as_str)));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{many}");
        // Without --skip-existing it is a failure, and the existing file stays.
        let ran = run_haul(args.iter().copied().chain(urls.iter().map(String::as_str)));
        assert_eq!(ran.code, 23, "{many}");
        assert_eq!(fs::read_to_string(dir.path().join("taken")).unwrap(), "old");
        assert_eq!(common::names(dir.path()), ["taken"], "{many}");
    }
}

#[test]
fn resume_before_file_end_truncates_the_tail() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-6/7\r\nContent-Length: 3\r\nConnection: close\r\n\r\nnew",
        ),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    for (before, after) in [("0123456789", "0123new"), ("0123", "0123new"), ("0123456", "0123new")] {
        fs::write(&file, before).unwrap();
        assert_eq!(run_haul(["-C", "4", "-o", file.to_str().unwrap(), &peer.url("/x")]).code, 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), after, "{before}");
    }
}

#[test]
fn resume_never_mixes_two_responses() {
    const HEAD: &str = "Connection: close\r\n";
    let answer = |status: &str, fields: &str, body: &str| {
        let text = format!("HTTP/1.1 {status}\r\n{HEAD}{fields}Content-Length: {}\r\n\r\n{body}", body.len());
        vec![ScriptStep::ReadHead, ScriptStep::send(text)]
    };
    let busy = answer("503 Busy", "", "busy page");
    let rest = answer("206 Partial Content", "Content-Range: bytes 4-9/10\r\n", "456789");
    let silent = vec![ScriptStep::ReadHead];
    let cut = vec![
        ScriptStep::ReadHead,
        ScriptStep::send(format!(
            "HTTP/1.1 206 Part\r\n{HEAD}Content-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n45"
        )),
    ];
    let behind =
        |fields: &str| answer("206 Partial Content", &format!("Content-Range: bytes 6-9/10\r\n{fields}"), "6789");
    let cut_whole = |fields: &str| {
        let head = format!("HTTP/1.1 200 OK\r\n{HEAD}{fields}Content-Length: 10\r\n\r\n");
        vec![ScriptStep::ReadHead, ScriptStep::send(head + "012345")]
    };
    let (ranges, tagged) = ("Accept-Ranges: bytes\r\n", "Accept-Ranges: bytes\r\nETag: \"a\"\r\n");
    let same_whole = answer("200 OK", "ETag: \"a\"\r\n", "0123456789");
    let (whole, nothing) = (Some("0123456789"), "");
    let no: &[&str] = &[];
    // The file before, the server's answers in turn, further arguments; then the exit code and the
    // file after, as with curl 8.22.
    let cases = [
        ("0123", vec![busy.clone(), busy.clone(), rest.clone()], &["-f"][..], 0, whole),
        (nothing, vec![busy.clone(), busy.clone(), answer("200 OK", "", "0123456789")], no, 0, whole),
        ("0123", vec![silent, rest.clone()], &["--retry-all-errors"], 0, whole),
        // The bytes received before the break are not fetched again.
        ("0123", vec![cut.clone(), behind("")], &["--retry-all-errors"], 0, whole),
        ("0123", vec![cut.clone(), busy.clone()], &["--retry-all-errors", "-f", "--retry", "1"], 22, Some("012345")),
        ("0123", vec![cut, rest], &["--retry-all-errors", "--retry", "1"], 33, Some("012345")),
        (nothing, vec![cut_whole(ranges), behind("")], &["--retry-all-errors"], 0, whole),
        (nothing, vec![cut_whole(""), answer("200 OK", "", "0123456789")], &["--retry-all-errors"], 0, whole),
        (nothing, vec![cut_whole(tagged), behind("ETag: \"a\"\r\n")], &["--retry-all-errors"], 0, whole),
        // A server that knows If-Range by dates alone: curl, which sends none, gets the part.
        (nothing, vec![cut_whole(tagged), same_whole], &["--retry-all-errors"], 0, whole),
        // Another content by then: curl adds it.
        (nothing, vec![cut_whole(tagged), behind("ETag: \"b\"\r\n")], &["--retry-all-errors"], 36, Some("012345")),
        ("0123", vec![busy.clone()], no, 33, None),
        ("0123", vec![answer("404 No", "", "not found page")], no, 33, None),
        ("0123", vec![answer("404 No", "", "not found page")], &["-f"], 22, None),
        ("0123", vec![answer("302 Found", "Location: /x\r\n", "moved")], no, 33, None),
        // The error body is as long as the file: curl takes the file for complete.
        ("0123", vec![answer("404 No", "", "four")], no, 0, None),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (before, answers, args, code, after) in cases {
        let peer = H1Peer::start(answers);
        let file = dir.path().join("file");
        let _ = fs::remove_file(&file);
        if !before.is_empty() {
            fs::write(&file, before).unwrap();
        }
        let (url, fixed) = (peer.url("/x"), ["--retry", "3", "--retry-delay", "0.01", "-C", "-", "-o", "file"]);
        let ran = as_curl(dir.path(), &[&fixed, args, &[&url]].concat());
        let now = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!((ran.code, now.as_str()), (code, after.unwrap_or(before)), "{before} {args:?} {}", ran.stderr);
    }
}

#[test]
fn error_body_counts_zero_and_directories_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let ran = as_curl(dir.path(), &["-f", "-w", "%{size_download}", &origin.url("/status/404")]);
    assert_eq!((ran.code, String::from_utf8_lossy(&ran.stdout).as_ref()), (22, "0"));
    let files = ["-o", "a/b/file", "-D", "c/d/heads", "--etag-save", "e/f/tag"];
    as_curl(dir.path(), &[&["--create-dirs"], &files[..], &[&origin.url("/small")]].concat()).ok();
    for name in ["a", "a/b", "c", "c/d", "e", "e/f"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & !0o750, 0, "{name} {mode:o}");
    }
}

#[test]
fn failed_response_without_body_keeps_old_file() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    let (short, chunks) = ("Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nx\r\n");
    let garbled = "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain";
    for (rest, code, expected) in [
        (short, 18, "OLD"),
        (chunks, 56, "OLD"),
        (garbled, 61, "OLD"),
        ("Content-Length: 5\r\n\r\nab", 18, "ab"),
        ("Content-Length: 0\r\n\r\n", 0, ""),
    ] {
        let peer = answering(format!("{head}{rest}"));
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "OLD").unwrap();
        let ran = as_curl(dir.path(), &["--compressed", "-o", "f", &peer.url("/")]);
        assert_eq!((ran.code, &*fs::read_to_string(dir.path().join("f")).unwrap()), (code, expected), "{rest}");
        as_curl(dir.path(), &["--compressed", "--no-clobber", "-o", "f", &peer.url("/")]);
        assert_eq!(names(dir.path()).len(), if expected == "OLD" { 1 } else { 2 }, "{rest}");
        let ran = as_curl(dir.path(), &["--compressed", "-o", "new", &peer.url("/")]);
        assert_eq!((ran.code, dir.path().join("new").exists()), (code, expected != "OLD"), "{rest}");
    }
}

#[test]
fn remove_on_error_removes_a_delivered_error_page() {
    let peer = answering("HTTP/1.1 404 N\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    for name in ["curl", "haul"] {
        let dir = tempfile::tempdir().unwrap();
        let get = |args: &[&str]| {
            let url = peer.url("/");
            let args = [args, &["-o", "f", &url]].concat();
            if name == "curl" { as_curl(dir.path(), &args) } else { run_in(dir.path(), HAUL, &args) }.code
        };
        assert_eq!((get(&["--fail-with-body", "--remove-on-error"]), names(dir.path()).len()), (22, 0), "{name}");
        assert_eq!((get(&["--fail-with-body"]), names(dir.path()).len()), (22, 1), "{name}");
    }
}

#[test]
fn requested_101_response_is_shown_with_its_data() {
    let reply = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nDATA";
    let peer = answering(reply);
    let dir = tempfile::tempdir().unwrap();
    let asks = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket"];
    let ran = as_curl(dir.path(), &[&["-i", "-w", "%{http_code}"], &asks[..], &[&peer.url("/")]].concat());
    assert_eq!(ran.text(), format!("{reply}101"));
    assert_eq!(as_curl(dir.path(), &[&peer.url("/")]).code, 8, "nobody asked");
}

#[test]
fn resume_accepts_unknown_total_and_status_200_with_range() {
    let part = "HTTP/1.1 206 P\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 5\r\nConnection: close\r\n\r\n56789";
    let whole = "HTTP/1.1 200 O\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\nConnection: close\r\n\r\n56789";
    let other = whole.replace("5-9", "4-9");
    for (reply, expected) in [(part, (0, "0123456789")), (whole, (0, "0123456789")), (&*other, (33, "01234"))] {
        let (peer, dir) = (answering(reply), tempfile::tempdir().unwrap());
        fs::write(dir.path().join("f"), "01234").unwrap();
        let ran = as_curl(dir.path(), &["-C", "-", "-o", "f", &peer.url("/")]);
        assert_eq!((ran.code, &*fs::read_to_string(dir.path().join("f")).unwrap()), expected);
    }
}

#[test]
fn curl_overwrites_cookie_jar_it_never_read() {
    let peer = answering("HTTP/1.1 200 OK\r\nSet-Cookie: new=2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let dir = tempfile::tempdir().unwrap();
    let jar = dir.path().join("jar");
    let old = "127.0.0.1\tFALSE\t/\tFALSE\t0\told\t1\n";
    let kept = |curls: bool, args: &[&str]| {
        fs::write(&jar, old).unwrap();
        let url = peer.url("/");
        let args = [args, &["-c", "jar", &url]].concat();
        if curls { as_curl(dir.path(), &args) } else { run_in(dir.path(), HAUL, &args) }.ok();
        let text = fs::read_to_string(&jar).unwrap();
        (text.contains("\told\t"), text.contains("\tnew\t"))
    };
    assert_eq!(kept(true, &[]), (false, true));
    assert_eq!(kept(true, &["-b", "jar"]), (true, true));
    assert_eq!(kept(false, &[]), (true, true), "haul itself keeps what others wrote");
}

#[test]
fn duplicate_output_file_is_refused_naming_both_urls() {
    let origin = origin();
    let urls: Vec<String> = (1..=3).map(|id| origin.url(&format!("/echo/list.php?id={id}"))).collect();
    let dir = tempfile::tempdir().unwrap();
    let list = common::list(dir.path(), "list", &urls).display().to_string();
    let glob = origin.url("/echo/list.php?id=[1-3]");
    let all: Vec<&str> = urls.iter().map(String::as_str).collect();
    let each: Vec<&str> = all.iter().flat_map(|url| ["-o", "./list.php", url]).collect();
    let groups = ["-O", all[0], "--next", "-O", all[1], "--next", "-o", "list.php", all[2]];
    let modes: [&[&str]; 6] = [
        &[&["--remote-name-all"], &all[..]].concat(),
        &["--remote-name-all", "--no-parallel", &glob],
        &["--remote-name-all", "--input-file", &list],
        &["-o", "list.php", &glob],
        &each,
        &groups,
    ];
    for mode in modes {
        let (dir, numbered) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ran = run_in(dir.path(), HAUL, mode);
        assert_eq!((ran.code, ran.stderr.lines().count()), (23, 2), "{mode:?}: {}", ran.stderr);
        for (line, url) in ran.stderr.lines().zip(&urls[1..]) {
            assert!(line.contains(&urls[0]) && line.contains(url) && line.contains("--no-clobber"), "{line}");
        }
        assert_eq!(names(dir.path()), ["list.php"], "{mode:?}");
        assert!(fs::read_to_string(dir.path().join("list.php")).unwrap().contains("id=1"), "{mode:?}");
        if !mode.contains(&"--next") {
            run_in(numbered.path(), HAUL, &[&["--no-clobber"], mode].concat()).ok();
            assert_eq!(names(numbered.path()), ["list.php", "list.php.1", "list.php.2"], "{mode:?}");
        }
        // In curl's place the last one has the file.
        if !mode.contains(&"--input-file") && !mode.contains(&"--no-parallel") && !each.starts_with(&mode[..2]) {
            as_curl(dir.path(), mode);
            assert!(!fs::read_to_string(dir.path().join("list.php")).unwrap().contains("id=1"), "{mode:?}");
        }
    }
}

#[test]
fn many_urls_may_share_a_device_output() {
    let origin = origin();
    run_haul(["-o", "/dev/null", &origin.url("/small/[1-3]")]).ok();
    run_haul(["-o", "/dev/null", &origin.url("/small/1"), "-o", "/dev/null", &origin.url("/small/2")]).ok();
}

#[test]
fn content_disposition_names_are_used_only_once() {
    let peer = |name: &str| {
        let disposition = format!("Content-Disposition: attachment; filename={name}");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n{disposition}\r\n\r\n");
        H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + "x")])
    };
    let (first, second, again) = (peer("a"), peer("b"), peer("a"));
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // That the URLs have one name does not matter.
    let urls = [first.url("/list.php?id=1"), second.url("/list.php?id=2"), again.url("/list.php?id=3")];
    run_in(one.path(), HAUL, &["-J", "--remote-name-all", &urls[0], &urls[1]]).ok();
    assert_eq!(names(one.path()), ["a", "b"]);
    let options = ["-J", "--clobber", "--no-parallel", "--remote-name-all"];
    let ran = run_in(other.path(), HAUL, &[&options[..], &[urls[0].as_str(), urls[2].as_str()]].concat());
    let line = ran.failed(23);
    assert!(line.contains(&urls[0]) && line.contains(&urls[2]), "{line}");
}
