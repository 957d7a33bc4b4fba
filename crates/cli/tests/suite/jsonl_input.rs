//! Tests of `--jsonl-in`: each line of a list describes a request, and the list may come from an
//! untrusted source.

use crate::common;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use common::peak_memory::peak_memory;
use common::{CommandOutput, HAUL, RunningCommand, eventually, haul, names, program, received, run_haul};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::{LoggedRequest, Origin};

use crate::jsonl_output::records;

fn origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// Runs haul in a directory with the list `list.jsonl`, which contains these lines. Returns its
/// output.
fn run_list(dir: &Path, lines: &[&str], args: &[&str]) -> CommandOutput {
    fs::write(dir.join("list.jsonl"), lines.join("\n")).unwrap();
    let mut command = program(HAUL);
    command.current_dir(dir).args(["--jsonl-in", "--input-file", "list.jsonl"]).args(args);
    common::run(&mut command)
}

/// Returns the requests that a server received, sorted by their targets.
fn log(origin: &Origin) -> Vec<LoggedRequest> {
    let mut log = origin.log();
    log.sort_by(|one, other| one.target.cmp(&other.target));
    log
}

#[test]
fn records_take_precedence_over_the_command_line() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url("/echo?n=");
    let lines = [
        format!(r#"{{"url":"{url}0"}}"#),
        format!(r#"{{"url":"{url}1","json":{{"a":[1,"x"]}},"headers":{{"X-A":"own","X-B":null,"X-C":["1",2]}}}}"#),
        format!(r#"{{"url":"{url}2","method":"PUT","body":"line\nbreak","query":{{"q":"a b&c"}}}}"#),
        format!(r#"{{"url":"{url}3","form":{{"a":"x y","b":[1,2]}},"auth":"me:word"}}"#),
        format!(r#"{{"url":"{url}4","method":"DELETE","body_base64":"AP8=","auth":{{"bearer":"tok"}}}}"#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let printed = run_list(
        dir.path(),
        &lines,
        &["-H", "X-A: shared", "-H", "X-B: shared", "-w", "%{method}\n", "-o", "/dev/null"],
    );
    assert_eq!(printed.text(), "GET\nPOST\nPUT\nPOST\nDELETE\n");
    let log = log(&origin);
    let field = |at: usize, name: &str| log[at].header(name).unwrap_or("none");
    assert_eq!((field(0, "x-a"), field(0, "x-b"), log[0].body.len()), ("shared", "shared", 0));
    assert_eq!((field(1, "x-a"), field(1, "x-b"), field(1, "content-type")), ("own", "none", "application/json"));
    assert_eq!(log[1].headers.iter().filter(|(name, _)| name == "x-c").count(), 2);
    assert_eq!(&log[1].body[..], br#"{"a":[1,"x"]}"#);
    assert_eq!((&log[2].body[..], field(2, "content-type")), (&b"line\nbreak"[..], "none"));
    assert_eq!(log[2].target, "/echo?n=2&q=a+b%26c");
    assert_eq!((&log[3].body[..], field(3, "authorization")), (&b"a=x+y&b=1&b=2"[..], "Basic bWU6d29yZA=="));
    assert_eq!((&log[4].body[..], field(4, "authorization")), (&b"\x00\xff"[..], "Bearer tok"));
}

#[test]
fn command_line_url_is_the_base_of_records() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let lines = [r#"{"json":1}"#, r#"{"url":"/small/7"}"#, r#"{"url":"2?x=http://h/"}"#, r#"{"url":null,"body":"b"}"#];
    let ran = run_list(dir.path(), &lines, &[&origin.url("/small/1"), "-w", "%{method} %{url}\n"]);
    let url = |path: &str| origin.url(path);
    let expected = format!(
        "small 1\nPOST {}\nsmall 7\nGET {}\nsmall 2\nGET {}\nsmall 1\nPOST {}\n",
        url("/small/1"),
        url("/small/7"),
        url("/small/2?x=http://h/"),
        url("/small/1")
    );
    assert_eq!(ran.text(), expected);
    assert_eq!(origin.requests(), 4, "the base itself is not fetched");
}

#[test]
fn records_with_bodies_run_in_parallel() {
    const REQUESTS: usize = 6;
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
    let read = vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(1), ScriptStep::Await(1), ScriptStep::send(reply)];
    let peer = H1Peer::always(read);
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..REQUESTS).map(|n| format!("{{\"json\":{n}}}")).collect();
    let file = common::list(dir.path(), "list", &lines).display().to_string();
    let running = RunningCommand::start(&mut haul(["--jsonl-in", "--input-file", &file, &peer.url("/")]));
    eventually("all requests arrive", || peer.connections() == REQUESTS);
    peer.release();
    assert_eq!(running.wait().text(), "ok\n".repeat(REQUESTS));
    let mut bodies: Vec<char> = (0..REQUESTS).map(|n| received(&peer, n).chars().last().unwrap()).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, ['0', '1', '2', '3', '4', '5']);
}

#[test]
fn invalid_record_fails_alone_and_names_its_line() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let good = format!(r#"{{"url":"{}"}}"#, origin.url("/small/1"));
    let long = format!(r#"{{"body":"{}"}}"#, "x".repeat(9 << 20));
    for (wrong, message) in [
        ("{", "list.jsonl, line 3: not valid JSON: EOF while parsing an object at column 1"),
        ("[]", "line 3: expected a JSON object, not a list"),
        (r#"{"url":"http://h/","metod":"GET"}"#, "line 3: key \"metod\": the key is unknown; known are url, method"),
        (r#"{"url":["http://h/"]}"#, "line 3: key \"url\": expected a string, not a list"),
        (r#"{"url":"http://h/","body":"a","form":{}}"#, "line 3: key \"form\": the record has a body already"),
        (r#"{"headers":{"A":"b\r\nEvil: 1"}}"#, "line 3: key \"headers\": the value of header \"A\" has CR, LF or NUL"),
        (r#"{"body":"x"}"#, "line 3: key \"url\": the key is missing, and the command line names no URL"),
        (
            r#"{"url":"http://h/","body_file":"/etc/passwd"}"#,
            "line 3: key \"body_file\": a list may name files to send",
        ),
        (&long, "list.jsonl, line 3: the line is longer than 8 MiB"),
    ] {
        let ran = run_list(dir.path(), &["\u{feff}", &good, wrong, "", &format!("  {good}\r")], &[]);
        assert!(ran.failed(26).contains(message), "{}", ran.stderr);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "small 1\nsmall 1\n");
    }
    let ran = run_list(dir.path(), &[r#"{"url":"http://[x/"}"#, &good], &[]);
    assert!(ran.failed(3).contains("http://[x/"), "{}", ran.stderr);
}

#[test]
fn record_output_stays_inside_the_output_directory() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let record =
        |n: u8, output: &str| format!(r#"{{"url":"{}","output":"{output}"}}"#, origin.url(&format!("/small/{n}")));
    let absolute = dir.path().join("x").display().to_string();
    for bad in ["../x", "a/../../x", "", "out/", ".bashrc", "a/.ssh/keys", &*absolute, "a\\u0000b", "a\\nb"] {
        let ran = run_list(dir.path(), &[&record(1, bad)], &["--output-dir", "out", "--create-dirs"]);
        assert!(ran.failed(26).contains("key \"output\": "), "{bad}: {}", ran.stderr);
    }
    assert_eq!(names(dir.path()), ["list.jsonl"]);
    let lines = [record(1, "a/b.txt"), record(2, "c.txt"), record(3, "c.txt")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ran = run_list(dir.path(), &lines, &["--output-dir", "out", "--create-dirs"]);
    assert!(ran.failed(23).contains("c.txt is the output of"), "{}", ran.stderr);
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert_eq!((read("a/b.txt"), read("c.txt")), ("small 1\n".into(), "small 2\n".into()));
    assert_eq!(names(&dir.path().join("out")), ["a", "c.txt"]);
}

#[test]
fn body_file_is_sent_only_if_allowed() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("content"), "0123456789").unwrap();
    let line = format!(r#"{{"url":"{}","body_file":"content"}}"#, origin.url("/echo"));
    let ran = run_list(dir.path(), &[&line], &[]);
    assert!(ran.failed(26).contains("--allow-body-files"), "{}", ran.stderr);
    assert_eq!(origin.requests(), 0);
    run_list(dir.path(), &[&line], &["--allow-body-files", "-o", "/dev/null"]).ok();
    assert_eq!((&*log(&origin)[0].method, &log(&origin)[0].body[..]), ("POST", &b"0123456789"[..]));
    let missing = line.replace("content", "nothing");
    let ran = run_list(dir.path(), &[&missing], &["--allow-body-files"]);
    assert!(ran.failed(26).contains("line 1: key \"body_file\": failed to read nothing"), "{}", ran.stderr);
}

#[test]
fn credentials_go_only_to_the_command_lines_origin() {
    let (own, strange) = (origin(), origin());
    let dir = tempfile::tempdir().unwrap();
    let mut lines = vec![r#"{"url":"/echo?own","json":1}"#.to_owned()];
    lines.extend([&own, &strange].map(|origin| format!(r#"{{"url":"{}"}}"#, origin.url("/echo?plain"))));
    lines.push(format!(r#"{{"url":"{}","auth":"list:own"}}"#, strange.url("/echo?with")));
    lines.push(format!(r#"{{"url":"//{}/echo?relative"}}"#, strange.http_addr()));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let secrets = ["-u", "me:word", "-b", "sid=1", "-H", "X-Api-Key: k", "-H", "Host: virtual", "-H", "X-Plain: p"];
    let ran = run_list(dir.path(), &lines, &[&secrets[..], &["-o", "/dev/null", &own.url("/echo")]].concat());
    ran.ok();
    let sent = |origin: &Origin, name: &str| -> Vec<String> {
        log(origin).iter().map(|request| request.header(name).unwrap_or("none").to_owned()).collect()
    };
    for (name, value) in
        [("authorization", "Basic bWU6d29yZA=="), ("cookie", "sid=1"), ("x-api-key", "k"), ("host", "virtual")]
    {
        assert_eq!(sent(&own, name), [value, value], "{name}");
    }
    assert_eq!(sent(&own, "x-plain"), ["p", "p"]);
    assert_eq!(sent(&strange, "x-plain"), ["p", "p", "p"]);
    assert_eq!(sent(&strange, "authorization"), ["none", "none", "Basic bGlzdDpvd24="]);
    for name in ["cookie", "x-api-key"] {
        assert_eq!(sent(&strange, name), ["none", "none", "none"], "{name}");
    }
    assert!(!sent(&strange, "host").contains(&"virtual".to_owned()));
}

#[test]
fn credentials_without_a_url_are_not_sent() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let line = format!(r#"{{"url":"{}"}}"#, origin.url("/small/1"));
    let ran = run_list(dir.path(), &[&line], &["-u", "me:word"]);
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b"small 1\n"[..]));
    assert!(ran.stderr.contains("Warning: the credentials of the command line are not sent"), "{}", ran.stderr);
    assert_eq!(log(&origin)[0].header("authorization"), None);
}

#[test]
fn later_stages_send_no_credentials_to_listed_origins() {
    let strange = origin();
    let index = common::page(&format!("<{}>", strange.url("/echo?later")));
    let dir = tempfile::tempdir().unwrap();
    let lines =
        [format!(r#"{{"url":"{}"}}"#, strange.url("/echo?first")), format!(r#"{{"url":"{}"}}"#, index.url("/"))];
    let then = ["--extract", "<(http://[^>]+)>", "--then", "{}", "-u", "me:word", "-o", "/dev/null"];
    run_list(dir.path(), &[&lines[0], &lines[1]], &then).ok();
    let later = log(&strange).into_iter().find(|request| request.target == "/echo?later").unwrap();
    assert_eq!(later.header("authorization"), None);
}

#[test]
fn content_type_of_the_body_key_is_sent() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let line = format!(r#"{{"url":"{}","form":{{"a":1}}}}"#, origin.url("/echo"));
    let form = "application/x-www-form-urlencoded";
    for (args, expected) in
        [(&[][..], form), (&["--json", "{}"], form), (&["-H", "Content-Type: text/own"], "text/own")]
    {
        origin.forget();
        run_list(dir.path(), &[&line], &[args, &["-s", "-o", "/dev/null"]].concat()).ok();
        assert_eq!(log(&origin)[0].header("content-type"), Some(expected), "{args:?}");
        assert_eq!(&log(&origin)[0].body[..], b"a=1");
    }
}

#[test]
fn timeout_of_a_record_ends_its_transfer() {
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1)]);
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        format!(r#"{{"url":"{}","timeout":0.2}}"#, silent.url("/")),
        format!(r#"{{"url":"{}"}}"#, origin.url("/small/1")),
    ];
    let ran = run_list(dir.path(), &[&lines[0], &lines[1]], &["--retry", "0"]);
    assert_eq!((ran.code, &ran.stdout[..]), (28, &b"small 1\n"[..]), "{}", ran.stderr);
    silent.release();
}

#[test]
fn invalid_use_of_jsonl_in_is_refused() {
    for (args, message) in [
        (&["--jsonl-in", "http://h/"][..], "there is no list"),
        (&["--jsonl-in", "--input-file", "x", "http://h/", "http://i/"], "only one URL can be the base"),
        (&["--jsonl-in", "--input-file", "x", "-T", "Cargo.toml"], "-T cannot be used with --jsonl-in;"),
        (&["--allow-body-files", "http://h/"], "it needs --jsonl-in"),
    ] {
        let ran = run_haul(args);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

#[test]
fn memory_does_not_grow_with_jsonl_records() {
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url("/small/1");
    let peak = |count: usize, length: usize| {
        let body = "x".repeat(length);
        let line = |n| format!(r#"{{"id":{n},"method":"POST","body":"{body}"}}"#);
        let file = common::list(dir.path(), "list", (0..count).map(line)).display().to_string();
        peak_memory(&["--jsonl-in", "--input-file", &file, &url], |mut from| {
            assert_eq!(std::io::copy(&mut from, &mut std::io::sink()).unwrap(), 8 * count as u64);
        })
    };
    let (few, many) = (peak(500, 10), peak(20_000, 10));
    assert!(many < few + (8 << 10), "{few} KiB, {many} KiB");
    let large = peak(400, 1 << 20);
    assert!(large < 96 << 10, "{large} KiB for 400 MiB of bodies");
}

#[test]
fn records_from_stdin_are_sent_as_they_arrive() {
    let origin = origin();
    let mut child = haul(["--jsonl-in", "--input-file", "-", &origin.url("/echo")])
        .args(["-o", "/dev/null", "-w", "%{http_code}\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut list = child.stdin.take().unwrap();
    list.write_all(b"{\"json\":1}\n").unwrap();
    eventually("the first request is sent before the list ends", || origin.requests() == 1);
    list.write_all(b"{\"json\":2}").unwrap();
    drop(list);
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(printed, "200\n200\n");
}

#[test]
fn record_id_of_any_type_is_repeated_unchanged() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let ids =
        ["7", "-1.50e2", "12345678901234567890123", "\"a\\u00e9\\n\"", "null", "true", "[1, {\"x\": 2.50}]", "{}"];
    let url = origin.url("/small/1");
    let mut lines: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":{id},"url":"{url}"}}"#)).collect();
    // A line without an id, and lines that fail: by the server, and by an unknown key after the id.
    lines.push(format!(r#"{{"url":"{url}"}}"#));
    lines.push(format!(r#"{{"url":"{}","id":[404]}}"#, origin.url("/status/404")));
    lines.push(format!(r#"{{"id":{{"bad":1}},"url":"{url}","metod":"GET"}}"#));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ran = run_list(dir.path(), &lines, &["--jsonl", "-s"]);
    assert_eq!(ran.code, 22);
    records(&ran.stdout);
    let printed = String::from_utf8(ran.stdout).unwrap();
    let starts = ids.iter().map(|id| format!("{{\"id\":{id},\"url\":"));
    let starts =
        starts.chain(["{\"url\":".into(), "{\"id\":[404],\"url\":".into(), "{\"id\":{\"bad\":1},\"url\":".into()]);
    for (line, start) in printed.lines().zip(starts) {
        assert!(line.starts_with(&start), "{start}: {line}");
    }
    assert_eq!(printed.lines().count(), lines.len());
}

#[test]
fn record_output_key_names_the_file() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let line = |id: u8, path: &str, more: &str| format!(r#"{{"id":{id},"url":"{}"{more}}}"#, origin.url(path));
    let lines = [
        line(1, "/small/1", r#","output":"a/1.txt""#),
        line(2, "/small/2", ""),
        line(3, "/status/404", r#","output":"3.txt""#),
        line(4, "/status/404", ""),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ran = run_list(dir.path(), &lines, &["--jsonl", "-s", "--create-dirs"]);
    assert_eq!(ran.code, 22);
    let found = records(&ran.stdout);
    assert_eq!((&found[0]["file"], &found[0]["size"], found[0].get("body")), (&"a/1.txt".into(), &8.into(), None));
    assert_eq!((found[1].get("file"), &found[1]["body"]), (None, &"small 2\n".into()));
    assert_eq!((&found[2]["status"], found[2].get("file"), found[2].get("body")), (&404.into(), None, None));
    assert!(found[3]["body"].is_string());
    assert_eq!(names(dir.path()), ["a", "list.jsonl"]);
    assert_eq!(fs::read_to_string(dir.path().join("a/1.txt")).unwrap(), "small 1\n");
    // With extraction, the file has the values.
    let ran = run_list(dir.path(), &lines[..2], &["--extract", "[0-9]", "--create-dirs"]);
    assert_eq!(ran.text(), "2\n");
    assert_eq!(fs::read_to_string(dir.path().join("a/1.txt")).unwrap(), "1\n");
}

#[test]
fn record_with_host_field_gets_no_credentials() {
    let own = origin();
    let (url, authority) = (own.url("/echo?base"), own.http_addr());
    let with_user = url.replace("http://", "http://me:word@");
    let dir = tempfile::tempdir().unwrap();
    let netrc = dir.path().join("netrc");
    fs::write(&netrc, "machine 127.0.0.1 login me password word\n").unwrap();
    let netrc = netrc.display().to_string();
    let jar = dir.path().join("jar");
    fs::write(&jar, "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t1\n").unwrap();
    let jar = jar.display().to_string();
    let field = |number: usize, field: &str| format!(r#"{{"url":"/echo?{number}","headers":{{{field}}}}}"#);
    let fields = [
        format!(r#""Host":"{authority}""#),
        r#""Host":"evil.example""#.to_owned(),
        r#""host":null"#.to_owned(),
        r#""X-Forwarded-Host":"evil.example""#.to_owned(),
        r#""Forwarded":"host=evil.example""#.to_owned(),
    ];
    let mut lines: Vec<String> = fields.iter().enumerate().map(|(number, text)| field(number, text)).collect();
    lines.push(r#"{"headers":{"HOST":["evil.example"]}}"#.to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (secrets, base) in [
        (&["-u", "me:word", "-b", "sid=1", "-H", "X-Api-Key: k"][..], &url),
        (&["-b", &*jar], &with_user),
        (&["--netrc-file", &*netrc], &url),
    ] {
        own.forget();
        run_list(dir.path(), &lines, &[secrets, &["-o", "/dev/null", base]].concat()).ok();
        let log = log(&own);
        assert_eq!(log.len(), 6);
        for request in log {
            let is_own = request.target == "/echo?0";
            for name in ["authorization", "cookie", "x-api-key"] {
                let sent = request.header(name).is_some();
                assert!(is_own || !sent, "{secrets:?} {}: {name}", request.target);
            }
            let has_any = request.header("authorization").or(request.header("cookie")).is_some();
            assert_eq!(has_any, is_own, "{secrets:?} {}", request.target);
        }
    }
}

#[test]
fn command_line_query_and_content_stay_with_origin() {
    let (own, strange) = (origin(), origin());
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"url":"/echo?a"}"#.to_owned(),
        r#"{"url":""}"#.to_owned(),
        r#"{"url":"/echo?own","body":"mine"}"#.to_owned(),
        format!(r#"{{"url":"{}"}}"#, strange.url("/echo?x")),
        format!(r#"{{"url":"{}","body":"theirs"}}"#, strange.url("/echo?y")),
        r#"{"url":"/echo?z","headers":{"Host":"evil.example"}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let args = ["--url-query", "key=secret", "-d", "password=hunter2", "-o", "/dev/null"];
    run_list(dir.path(), &lines, &[&args[..], &[&own.url("/echo?base")]].concat()).ok();
    let sent = |origin: &Origin| -> Vec<(String, String, String)> {
        let body = |request: &LoggedRequest| String::from_utf8_lossy(&request.body).into_owned();
        log(origin).iter().map(|request| (request.method.clone(), request.target.clone(), body(request))).collect()
    };
    let request = |method: &str, target: &str, body: &str| (method.to_owned(), target.to_owned(), body.to_owned());
    assert_eq!(
        sent(&own),
        [
            request("POST", "/echo?a&key=secret", "password=hunter2"),
            request("POST", "/echo?base&key=secret", "password=hunter2"),
            request("POST", "/echo?own&key=secret", "mine"),
            request("GET", "/echo?z", ""),
        ]
    );
    assert_eq!(sent(&strange), [request("GET", "/echo?x", ""), request("POST", "/echo?y", "theirs")]);
    let ran = run_list(dir.path(), &lines[3..4], &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("Warning: the query and the content of the command line are not sent"),
        "{}",
        ran.stderr
    );
}

#[test]
fn record_output_with_sort_or_unique_is_refused() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let line = |n: u8, more: &str| format!(r#"{{"url":"{}"{more}}}"#, origin.url(&format!("/small/{n}")));
    let lines = [line(1, r#","output":"one""#), line(2, "")];
    for option in ["--sort", "--unique"] {
        let ran = run_list(dir.path(), &[&lines[0], &lines[1]], &["--extract", "[0-9]", option]);
        let text = format!("line 1: key \"output\": with {option} all values go to one output");
        assert!(ran.failed(26).contains(&text), "{}", ran.stderr);
        assert_eq!(ran.stdout, b"2\n");
    }
    assert_eq!(names(dir.path()), ["list.jsonl"]);
}

#[test]
fn record_output_does_not_follow_symlinks() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("real");
    fs::create_dir(&out).unwrap();
    fs::create_dir(dir.path().join("outside")).unwrap();
    fs::write(dir.path().join("outside/secret"), "old").unwrap();
    for (link, to) in
        [("dir", "../outside"), ("f", "../outside/secret"), ("new", "../outside/new"), ("null", "/dev/null")]
    {
        std::os::unix::fs::symlink(to, out.join(link)).unwrap();
    }
    std::os::unix::fs::symlink("real", dir.path().join("out")).unwrap();
    let line =
        |n: usize, output: &str| format!(r#"{{"url":"{}","output":"{output}"}}"#, origin.url(&format!("/small/{n}")));
    for output in ["dir/x", "dir/deep/x", "f", "new", "null"] {
        for more in [&[][..], &["--create-dirs"], &["--jsonl"], &["--clobber"]] {
            let ran = run_list(dir.path(), &[&line(1, output)], &[&["--output-dir", "out", "-sS"][..], more].concat());
            assert_eq!(ran.code, 23, "{output} {more:?}: {}", ran.stderr);
            assert!(more == ["--jsonl"] || ran.stderr.contains("link"), "{output}: {}", ran.stderr);
        }
    }
    assert_eq!(fs::read_to_string(dir.path().join("outside/secret")).unwrap(), "old");
    assert_eq!(names(&dir.path().join("outside")), ["secret"]);
    // The directory of the command line may be a link.
    run_list(dir.path(), &[&line(2, "a/b")], &["--output-dir", "out", "--create-dirs"]).ok();
    assert_eq!(fs::read_to_string(out.join("a/b")).unwrap(), "small 2\n");
}
