//! Tests of failures. Each has curl's exit code, and prints one line with the URL and the cause.
//! Other transfers continue, and no secret is printed.

use crate::common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use common::{HAUL, REFUSED, bash, haul, list, origin, page, run, run_haul, run_in, short_body};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn failure_prints_code_url_and_cause() {
    let (origin, short) = (origin(), short_body());
    let silent = H1Peer::always(vec![ScriptStep::ReadHead]);
    let babble = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send("what is this?\r\n\r\n")]);
    let url = |path: &str| origin.url(path);
    for (url, code, cause) in [
        (format!("{REFUSED}/x"), 7, "onnection refused"),
        ("http://haul-test.invalid/x".into(), 6, "could not resolve host"),
        ("http://".into(), 3, "malformed"),
        ("http://127.0.0.1:99999/".into(), 3, "port"),
        ("ftp://127.0.0.1/".into(), 1, "not supported"),
        ("file:///etc/passwd".into(), 1, "not supported"),
        (url("/status/404"), 22, "404"),
        (url("/status/501"), 22, "501"),
        (url("/nothing"), 22, "404"),
        (short.url("/x"), 18, ""),
        (silent.url("/x"), 52, ""),
        (babble.url("/x"), 1, "not HTTP"),
        (url("/redirect/302?to=ftp://127.0.0.1/x"), 1, "not supported"),
        (url("/chain/51"), 47, "redirects"),
    ] {
        // Alone, and as one of many, which other code looks after.
        for together in [&[][..], &[url.as_str()]] {
            let ran = run_haul(["--retry", "0", "-g", &url].iter().chain(together));
            assert_eq!(ran.code, code, "{url}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1 + together.len(), "{url}: {}", ran.stderr);
            for line in ran.stderr.lines() {
                let expected = if url.contains("redirect/") { "ftp://127.0.0.1/x" } else { &url };
                assert!(line.starts_with(&format!("haul: ({code}) ")) && line.contains(expected), "{url}: {line}");
                assert!(line.contains(cause) && !line.ends_with(": "), "{url}: {line}");
            }
            match code {
                18 => assert_eq!(ran.stdout, b"abc".repeat(1 + together.len()), "the exact prefix"),
                _ => assert_eq!(ran.stdout, b"", "{url}"),
            }
        }
    }
}

#[test]
fn long_url_does_not_hide_the_cause() {
    let url = format!("{REFUSED}/{}", "x".repeat(2000));
    let ran = run_haul([&url]);
    assert!(ran.failed(7).contains(&url) && ran.stderr.contains("onnection refused"), "{}", ran.stderr);
}

#[test]
fn silent_prints_errors_only_with_show_error() {
    let url = format!("{REFUSED}/x");
    for args in [&["-s", &url][..], &["-s", &url, &url]] {
        let ran = run_haul(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (7, ""));
    }
    let ran = run_haul(["-sS", &url]);
    ran.failed(7);
}

#[test]
fn http_error_body_is_hidden_by_default() {
    let origin = origin();
    let url = origin.url("/status/404");
    assert_eq!(run_haul([&url]).stdout, b"");
    assert_eq!(run_haul(["--no-fail", &url]).text(), "404 Not Found\n");
    assert_eq!(run_haul(["--no-fail", &url, &url]).text(), "404 Not Found\n404 Not Found\n");
}

#[test]
fn max_time_ends_a_waiting_request() {
    let origin = origin();
    let url = origin.url("/delay/600000/small");
    for args in [&["-m", "0.2", "--retry", "0", &url][..], &["-m", "0.2", "--retry", "0", &url, &url]] {
        let ran = run_haul(args);
        assert_eq!(ran.code, 28, "{}", ran.stderr);
        assert!(ran.stderr.lines().all(|line| line.contains(&url)), "{}", ran.stderr);
    }
}

#[test]
fn max_time_covers_all_tries_and_pauses() {
    let closing = || H1Peer::always(vec![ScriptStep::ReadHead]);
    let silent = || H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1)]);
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n";
    let busy = || H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(busy)]);
    let cases: [(H1Peer, &[&str], i32); 3] = [
        (closing(), &["-m", "9", "--retry-delay", "30"], 52),
        (silent(), &["-m", "0.2", "--retry-delay", "1"], 28),
        (busy(), &["-m", "9"], 22),
    ];
    for (peer, args, code) in cases {
        // Alone, and in a list.
        for times in [1, 2] {
            let before = peer.connections();
            let urls: Vec<_> = (0..times).map(|n| peer.url(&format!("/{n}"))).collect();
            let ran = run(haul(args).args(&urls));
            assert_eq!(ran.code, code, "{}", ran.stderr);
            assert_eq!(peer.connections() - before, times, "no try begins that there is no time for: {}", ran.stderr);
        }
    }
}

#[test]
fn max_time_covers_lookup_and_redirects() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let servers = silent.local_addr().unwrap().to_string();
    let to_itself = "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let circle = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(to_itself)]);
    for (option, value, url) in
        [("--dns-servers", &*servers, "http://h.test/".to_owned()), ("--max-redirs", "-1", circle.url("/"))]
    {
        for times in [1, 2] {
            let ran = run(haul(["-m", "0.3", "--retry", "0", option, value]).args(vec![&url; times]));
            assert_eq!(ran.code, 28, "{option}: {}", ran.stderr);
        }
    }
}

#[test]
fn retry_reaches_another_mirror_within_max_time() {
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1)]);
    let good =
        H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]);
    let to = |peer: &H1Peer| {
        let location = peer.url("/f");
        let reply =
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        vec![ScriptStep::ReadHead, ScriptStep::send(reply)]
    };
    let args = ["-m", "8", "--retry-delay", "0.1"];
    let first = H1Peer::start(vec![to(&silent), to(&good)]);
    assert_eq!(run(haul(args).arg(first.url("/"))).text(), "ok");
    let first = H1Peer::start(vec![to(&silent), to(&good)]);
    assert_eq!(run(haul(args).args([first.url("/"), good.url("/")])).text(), "okok");
}

/// Checks that a mirror (the target of a redirect) may use all the time of `-m` once its response
/// head has arrived. The limit of a silent mirror, a quarter of the 8 s, passes before the body.
#[test]
fn mirror_that_responds_gets_all_of_max_time() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let pause = ScriptStep::Sleep(Duration::from_millis(2300));
    let slow = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head), pause, ScriptStep::send("ok")]);
    let location = slow.url("/f");
    let reply = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let first = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    assert_eq!(run(haul(["-m", "8", "--retry-delay", "0.1"]).arg(first.url("/"))).text(), "ok");
    assert_eq!(slow.connections(), 1);
}

#[test]
fn long_retry_pause_is_announced() {
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(busy)]);
    for times in [1, 2] {
        let urls = vec![peer.url("/x"); times];
        let mut child = haul([""; 0]).args(&urls).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let expected = format!("Warning: {}: the server answered 503 Busy; the next try is in 30 s\n", peer.url("/x"));
        assert_eq!(line, expected);
    }
}

#[test]
fn error_shows_url_and_then_redirect_target() {
    let (origin, other) = (origin(), origin());
    let target = other.url("/status/404");
    let url = origin.url(&format!("/redirect/302?to={target}"));
    for together in [&[][..], &[url.as_str()]] {
        let ran = run_haul([url.as_str()].iter().chain(together));
        let line = format!("haul: (22) {url} (redirected to {target}): the server answered 404 Not Found; ");
        assert!(ran.stderr.lines().all(|said| said.starts_with(&line)) && ran.code == 22, "{}", ran.stderr);
    }
}

#[test]
fn max_time_ends_waiting_for_upload_data() {
    let origin = origin();
    let url = origin.url("/echo");
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let refusing = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(refusal)]);
    for sends in [&["-T", "-"][..], &["-F", "a=@-"]] {
        // The pipe stays open, and silent.
        let (silent, _writer) = std::io::pipe().unwrap();
        let run_with = |args: &[&str]| run(haul(sends).args(args).stdin(silent.try_clone().unwrap()));
        let ran = run_with(&["-m", "0.2", "--retry", "0", &url]);
        assert_eq!(ran.code, 28, "{}", ran.stderr);
        let ran = run_with(&["-m", "0.2", "--retry", "0", "--expect100-timeout", "0.01", &url, "--next", &url]);
        assert_eq!(ran.code, 28, "{}", ran.stderr);
        // Nor has the server to wait for it.
        assert_eq!(run_with(&["--no-fail", &refusing.url("/")]).text(), "no");
    }
}

#[test]
fn closed_output_pipe_exits_23_silently() {
    let origin = origin();
    let big = origin.url("/bytes/20000000");
    for urls in [big.clone(), format!("{big} {big}"), format!("--unordered {big} {big}")] {
        let ran = bash(HAUL, &format!("$GET {urls} | head -c1 | wc -c; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (23, ""), "{urls}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "1");
    }
    let ran =
        bash(HAUL, &format!("$GET {} --extract . | head -c1; exit ${{PIPESTATUS[0]}}", origin.url("/text/9000000")));
    assert_eq!((ran.code, ran.stderr.as_str()), (23, ""));
}

#[test]
fn full_disk_exits_23_and_is_named() {
    let origin = origin();
    let small = origin.url("/small");
    for args in
        [&[&*small][..], &[&small, &small], &[&small, "--extract", "s"], &["-w", "x", &small], &["-o/dev/full", &small]]
    {
        let mut command = haul(args);
        command.stdout(File::create("/dev/full").unwrap()).stderr(Stdio::piped());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(23), "{args:?}: {stderr}");
        assert!(stderr.contains("No space left"), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    }
}

#[test]
fn list_continues_and_exits_with_first_failure() {
    let (origin, short) = (origin(), short_body());
    let dir = tempfile::tempdir().unwrap();
    let bad = |slow_first: bool| {
        let mut bad = vec![
            (22, origin.url("/status/404")),
            (7, format!("{REFUSED}/")),
            (18, short.url("/")),
            (3, "http://[x".to_owned()),
            (6, "http://haul-test.invalid/".to_owned()),
        ];
        if slow_first {
            bad.insert(0, (22, origin.url("/delay/100/status/410")));
        }
        bad
    };
    for round in 0..10 {
        let mut failures = bad(round % 2 == 1);
        let len = failures.len();
        // A slow failure stays first; a quicker one after it must not be reported instead.
        if round % 2 == 0 {
            failures.rotate_left(round / 2 % len);
        }
        let mut lines: Vec<String> = (0..40).map(|n| origin.url(&format!("/small/{n}"))).collect();
        for (n, (_, url)) in failures.iter().enumerate() {
            lines.insert(3 + 7 * n, url.clone());
        }
        let file = list(dir.path(), "list", &lines);
        let ran = run_haul(["--retry", "0", "--input-file", file.to_str().unwrap()]);
        assert_eq!(ran.code, failures[0].0, "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), len, "{}", ran.stderr);
        for (code, url) in &failures {
            let told = ran.stderr.lines().filter(|line| line.contains(&format!("({code}) {url}"))).count();
            assert_eq!(told, 1, "{url}: {}", ran.stderr);
        }
        let expected: String = lines
            .iter()
            .map(|line| match line.rsplit_once("/small/") {
                Some((_, n)) => format!("small {n}\n"),
                None if *line == short.url("/") => "abc".to_owned(),
                None => String::new(),
            })
            .collect();
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected);
    }
}

#[test]
fn fail_early_starts_no_further_transfer() {
    let origin = origin();
    let args = ["--fail-early", "--no-parallel", &origin.url("/status/404"), &origin.url("/small")];
    assert_eq!(run_haul(args).code, 22);
    assert_eq!(origin.hits("/small"), 0);
}

#[test]
fn unreadable_lists_and_configs_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let missing = missing.to_str().unwrap();
    let ran = run_haul(["--input-file", missing]);
    assert!(ran.failed(26).contains(missing) && ran.stderr.contains("No such file"), "{}", ran.stderr);
    assert_eq!(run_haul(["--input-file", dir.path().to_str().unwrap()]).code, 26, "a directory is no list");
    let ran = run_haul(["-K", missing]);
    assert!(ran.code == 26 && ran.stderr.contains(missing), "{}", ran.stderr);
    let config = list(dir.path(), "config", ["url = http://h/", "no-such-thing = hunter2"]);
    let ran = run_haul(["-K", config.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains(":2: ") && ran.stderr.contains("no-such-thing"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    assert_eq!(run_haul([""; 0]).code, 2, "no URL");
    assert_eq!(run_haul(["--no-such-thing"]).code, 2);
}

#[test]
fn garbage_lines_in_a_list_are_reported() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("list");
    let mut bytes = vec![0xff, 0xfe, b'\n', b'#', b' ', b'x', b'\n', b'\r', b'\n', 0, 1, 2, b'\n'];
    bytes.extend(
        format!("  {}\r\n\x1b[31mred\nhttp://h/\x07 x\n{}", origin.url("/small/1"), origin.url("/small/2")).bytes(),
    );
    fs::write(&file, bytes).unwrap();
    let ran = run_haul(["--input-file", file.to_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "small 1\nsmall 2\n");
    assert_eq!(ran.stderr.lines().count(), 4, "{}", ran.stderr);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", ran.stderr);
}

#[test]
fn piped_list_starts_before_its_end() {
    let origin = origin();
    let mut child = haul(["--input-file", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", origin.url("/small/1")).unwrap();
    common::eventually("the first page is fetched", || origin.hits("/small/1") == 1);
    writeln!(input, "{}", origin.url("/small/2")).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "small 1\nsmall 2\n");
}

#[test]
fn secrets_never_appear_on_stderr() {
    let origin = origin();
    let cookies = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(
            "HTTP/1.1 200 OK\r\nSet-Cookie: sid=hunter2\r\nset-cookie: b=hunter2\r\nContent-Length: 0\r\n\r\n",
        ),
    ]);
    let away = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 302 Found\r\nLocation: ftp://u:hunter2@h/\r\nContent-Length: 0\r\n\r\n"),
    ]);
    let away = away.addr().to_string();
    let links = page("<http://u:hunter2@127.0.0.1/> <http://u:hunter2@[> <u:hunter2@x>");
    let dir = tempfile::tempdir().unwrap();
    let with = |authority: &str, path: &str| format!("http://user:hunter2@{authority}{path}");
    let good = origin.http_addr().to_string();
    let urls = [
        with(&good, "/small"),
        with(&good, "/status/404"),
        with(&good, "/redirect/302?to=/small"),
        with(&away, "/"),
        with("127.0.0.1:1", "/"),
        with("haul-test.invalid", "/"),
        with("h:99999", "/"),
        with("[x", "/"),
        with("h", "/[1-"),
        with("h", "/{a"),
        "ftp://user:hunter2@h/".to_owned(),
        "user:hunter2@h:x".to_owned(),
        "http://user:a?hunter2@h/".to_owned(),
        "http://user:a#hunter2@h/".to_owned(),
        cookies.url("/"),
    ];
    let secrets =
        ["-u", "user:hunter2", "-b", "sid=hunter2", "-H", "X-Api-Key: hunter2", "-H", "Authorization: hunter2"];
    let check = |args: &[&str]| {
        let ran = run(&mut haul(args));
        for secret in ["hunter2", "dXNlcjpodW50ZXIy"] {
            assert!(!ran.stderr.contains(secret), "{args:?}: {}", ran.stderr);
        }
        ran
    };
    for url in &urls {
        for extra in [&[][..], &["-v"], &["-v", "--stats"], &["-w", "%{stderr}%{errormsg} %{url_effective} %{url}"]] {
            check(&[&["--retry", "0", url], extra].concat());
            check(&[&["--retry", "0", url, url], extra, &secrets].concat());
        }
        let file = list(dir.path(), "list", [url]);
        check(&["--retry", "0", "-v", "--input-file", file.to_str().unwrap()]);
    }
    check(&["-v", &links.url("/"), "--extract", "<([^>]*)>", "--then", "{}"]);
    check(&["-u", "hunter2\r\n", &urls[0]]);
    check(&["-H", "Authorization: a\nhunter2", &urls[0]]);
    check(&["--oauth2-bearer", "hunter2\r\n", &urls[0]]);
    check(&["-b", "a=hunter2\r\nx: y", &urls[0]]);
    let config = list(dir.path(), "config", ["user = \"u:hunter2", "header = \"Cookie: hunter2\" hunter2"]);
    check(&["-K", config.to_str().unwrap(), &urls[0]]);
    let shown = check(&["-v", "-u", "user:hunter2", &origin.url("/small")]).stderr;
    assert!(shown.contains("> GET /small HTTP/1.1") && shown.contains("< HTTP/1.1 200 OK"), "{shown}");
    assert!(shown.to_ascii_lowercase().contains("authorization: [redacted]"), "{shown}");
    let shown = check(&["-v", &cookies.url("/")]).stderr;
    assert!(shown.contains("< Set-Cookie: [redacted]") && shown.contains("< set-cookie: [redacted]"), "{shown}");
}

#[test]
fn refused_tunnel_exits_7_except_curl_with_fail() {
    for (answer, of_curl) in [("302 Found\r\nLocation: http://127.0.0.1/", 7), ("403 Forbidden", 22), ("502 Bad", 22)] {
        let proxy = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::send(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n")),
            ScriptStep::Close,
        ]);
        let proxy_url = proxy.url("/");
        let through = ["-sS", "-p", "-x", proxy_url.as_str(), "http://127.0.0.1:1/"];
        let ran = run_haul(&through);
        assert!(ran.failed(7).contains("CONNECT tunnel failed"), "{answer}: {}", ran.stderr);
        run_haul([&["curl", "-f"][..], &through].concat()).failed(of_curl);
        run_haul([&["curl"][..], &through].concat()).failed(7);
    }
}

#[test]
fn errors_name_the_remedy() {
    let origin = origin();
    let marked = format!("\u{feff}{}", origin.url("/small/1"));
    let untrusted = origin.https_url("/small");
    for (args, code, remedy) in [
        (vec!["http:///"], 3, "write http://HOST/PATH"),
        (vec![marked.as_str()], 3, "byte order mark: save the file without one"),
        (vec!["--extract", "a(b", REFUSED], 2, "write \\( for the character ( itself"),
        (vec!["--retry", "0", untrusted.as_str()], 60, "with --cacert FILE, or skip verification with -k"),
    ] {
        let ran = run_haul(&args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(remedy), "{args:?}: {}", ran.stderr);
    }
}

/// Standard input may be non-blocking, because another process that shares the descriptor can make
/// it so. haul must wait until there is input.
#[test]
fn non_blocking_stdin_is_waited_for() {
    let origin = origin();
    let (echo, small) = (origin.url("/echo"), origin.url("/small/7"));
    for (args, content, printed) in [
        (vec!["-d", "@-", echo.as_str()], "a=b", "a=b".to_owned()),
        (vec!["-T", "-", echo.as_str()], "a=b", "a=b".to_owned()),
        (vec!["-T", ".", echo.as_str()], "a=b", "a=b".to_owned()),
        (vec!["-K", "-"], "url = URL\n", "small 7\n".to_owned()),
        (vec!["--input-file", "-"], "URL\n", "small 7\n".to_owned()),
        (vec!["-b", "-", small.as_str()], "\n", "small 7\n".to_owned()),
        (vec!["-H", "@-", small.as_str()], "X: y\n", "small 7\n".to_owned()),
    ] {
        let (ours, mut theirs) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let running = common::RunningCommand::start(haul([&["-sS"][..], &args].concat()).stdin(Stdio::from(ours)));
        // Time enough to find nothing there.
        std::thread::sleep(std::time::Duration::from_millis(300));
        theirs.write_all(content.replace("URL", &small).as_bytes()).unwrap();
        drop(theirs);
        let ran = running.wait();
        let told = format!("{args:?}: {}", ran.stderr);
        assert!(ran.text().contains(&printed), "{told}");
    }
}

#[test]
fn too_long_list_line_fails_alone() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x\n"));
    let url = |path: &str, len: usize| {
        let url = peer.url(path);
        let blanks = " ".repeat(len.saturating_sub(url.len()));
        url + &blanks
    };
    let comment = format!("# {}", "x".repeat(9 << 20));
    // Blanks after a URL belong to its line.
    let lines = [comment, url("/1", (8 << 20) + 1), url("/2", 0), url("/3", 8 << 20)].join("\n");
    fs::write(dir.path().join("list"), lines).unwrap();
    let ran = run_in(dir.path(), HAUL, &["-sS", "--input-file", "list"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "x\nx\n");
    let message = ran.failed(26);
    assert!(message.contains("list, line 2: the line is longer than 8 MiB"), "{message}");
    assert_eq!(message.matches("longer").count(), 1, "{message}");
}
