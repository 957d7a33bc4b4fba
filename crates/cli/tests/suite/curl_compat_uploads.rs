//! The curl persona uploads files and ranges of content as curl 8.22 does.

use crate::common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{
    HAUL, RunningCommand, curl, curl_in, eventually, origin, page, program, received, reply_steps, run, skipped,
};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn upload_name_is_appended_to_directory_without_query() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (connection, (path, line)) in
        [("?q", "/?q"), ("/a/?q", "/a/?q"), ("/a/.", "/a/up"), ("/a/..#f", "/up"), ("/a", "/a")].into_iter().enumerate()
    {
        let url = format!("{}{path}", peer.url("/").trim_end_matches('/'));
        curl_in(dir.path(), &["-s", "-T", "up", &url]).ok();
        let sent = received(&peer, connection);
        assert!(sent.starts_with(&format!("PUT {line} HTTP/1.1\r\n")), "{path}: {sent}");
    }
}

#[test]
fn piped_upload_takes_a_range_but_no_resume() {
    let dir = tempfile::tempdir().unwrap();
    let peer = page("");
    let url = peer.url("/");
    let piped = |args: &[&str]| {
        let mut command = program("sh");
        command.args(["-c", "printf abcdef | exec \"$@\"", "sh", HAUL, "curl", "-q", "-s", "-T", "-"]).args(args);
        run(command.arg(&url).current_dir(dir.path()))
    };
    let ran = piped(&["-C", "3"]);
    assert_eq!((ran.code, peer.connections()), (2, 0), "all of it was sent as if it were the rest: {ran:?}");
    piped(&["-r", "2-7"]).ok();
    assert!(received(&peer, 0).contains("\r\nContent-Range: bytes 2-7/*\r\n"), "{}", received(&peer, 0));
}

#[test]
fn piped_upload_longer_than_content_length_fails() {
    // It answers when it has the whole content.
    let origin = origin();
    for (text, code) in [("hello", 0), ("hello-world", 26)] {
        let mut command = program("sh");
        let script = format!("printf {text} | exec \"$@\"");
        command.args(["-c", &script, "sh", HAUL, "curl", "-q", "-sS", "-H", "Content-Length: 5", "-H", "Expect:"]);
        let ran = run(command.args(["-T", "-", &origin.url("/echo")]));
        assert_eq!(ran.code, code, "{text}: {}", ran.stderr);
        let names_remedy = ran.stderr.contains("announced length of 5 bytes; correct Content-Length or leave it out");
        assert_eq!(names_remedy, code != 0, "{text}: {}", ran.stderr);
    }
}

#[test]
fn impossible_upload_fails_before_sending_anything() {
    let peer = H1Peer::start(vec![reply_steps("", "ok")]);
    let ran = curl(&["-0", "-T", "-", &peer.url("/")]);
    assert_eq!((ran.code, peer.received(0).len()), (25, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("HTTP/1.0 cannot send a body of unknown length"), "{}", ran.stderr);
    let ran = curl(&["-T", "there-is-none", "http://127.0.0.1:1/a b"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = curl(&["-T", "there-is-none", "http://127.0.0.1:1/ab"]);
    assert_eq!(ran.code, 26, "{}", ran.stderr);
}

#[test]
fn missing_upload_file_ends_all_transfers() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    fs::write(dir.join("up"), "1").unwrap();
    let url = peer.url("/");
    let lines: [&[&str]; 3] = [
        &["-s", "-T", "{none,up}", &url],
        &["-s", "-T", "none", &url, "-T", "up", &url],
        &["-s", "-T", "none", &url, "--next", "-s", &url],
    ];
    for line in lines {
        let ran = curl_in(dir, line);
        assert_eq!((ran.code, ran.stdout.as_slice()), (26, &b""[..]), "{line:?}");
    }
    // The uploads before it were sent.
    let ran = curl_in(dir, &["-s", "-T", "{up,none}", &url]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (26, &b"x"[..]));
}

#[test]
fn range_with_data_sends_content_range() {
    let send = |args: &[&str]| {
        let peer = page("x");
        curl(&[&["-s"], args, &[&peer.url("/")]].concat()).ok();
        String::from_utf8(peer.received(0)).unwrap().to_ascii_lowercase()
    };
    for (args, part) in [
        (&["-r", "1-2", "-d", "abc"][..], Some("content-range: bytes 1-2/3\r\n")),
        (&["-r", "5", "--json", "{}"], Some("content-range: bytes 5-/2\r\n")),
        (&["-r", "1-2", "-F", "a=b"], None),
        // Options for files in a .curlrc do not affect standard output.
        (&["-C", "-", "-d", "abc"], None),
        (&["-C", "-", "-d", "abc", "-o", "/dev/null"], None),
        (&["-C", "0", "-F", "a=b"], None),
    ] {
        let request = send(args);
        assert!(!request.contains("\r\nrange:"), "{args:?}: {request}");
        assert_eq!(request.contains("content-range:"), part.is_some(), "{args:?}: {request}");
        assert!(part.is_none_or(|part| request.contains(part)), "{args:?}: {request}");
    }
    assert!(send(&["-r", "1-2"]).contains("\r\nrange: bytes=1-2\r\n"));
    assert!(
        send(&["-r", "x"]).contains("\r\nrange: bytes=x\r\n"),
        "a range without a dash is only made whole of a number"
    );
    for args in [["-C", "5", "-d", "a"], ["-C", "5", "-F", "a=b"]] {
        assert_eq!(curl(&[&args[..], &["http://127.0.0.1:1/"]].concat()).code, 2, "{args:?}");
    }
}

#[test]
fn resume_with_data_requires_an_empty_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/page");
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::write(dir.path().join("part"), "old").unwrap();
    for args in [&["-d", "a", "-o", "new"][..], &["-F", "a=b", "-O"], &["--json", "1", "-o", "empty"]] {
        curl_in(dir.path(), &[&["-s", "-C", "-"], args, &[&url]].concat()).ok();
    }
    assert_eq!(["new", "page", "empty"].map(|name| fs::read_to_string(dir.path().join(name)).unwrap()), ["x"; 3]);
    let there = peer.connections();
    let args = ["-s", "-C", "-", "-d", "a", "-o", "part", &url];
    assert_eq!(curl_in(dir.path(), &[&args[..], &["-Z"]].concat()).code, 2);
    assert_eq!(curl_in(dir.path(), &[&args[..], &["-o", "never", &url]].concat()).code, 2, "it ends all");
    assert_eq!((peer.connections(), fs::read_to_string(dir.path().join("part")).unwrap()), (there, "old".into()));
}

#[test]
fn parallel_uploads_and_posts_run_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..3 {
        fs::write(dir.path().join(n.to_string()), n.to_string()).unwrap();
    }
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let steps = vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(1), ScriptStep::Await(1), ScriptStep::send(reply)];
    for (args, method) in [(&["-T", "[0-2]"][..], "PUT /"), (&["-d", "x"], "POST /")] {
        let peer = H1Peer::always(steps.clone());
        let urls = if method == "PUT /" { vec![peer.url("/")] } else { vec![peer.url("/a"); 3] };
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let mut command = program(HAUL);
        command.args(["curl", "-q", "-sS", "-Z"]).args(args).args(urls).current_dir(dir.path());
        let running = RunningCommand::start(&mut command);
        eventually("all requests arrive", || peer.connections() == 3);
        peer.release();
        running.wait().ok();
        assert!((0..3).all(|connection| received(&peer, connection).starts_with(method)));
    }
}

#[test]
fn write_out_reports_already_complete_upload() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let url = peer.url("/");
    let ran = curl_in(dir.path(), &["-sS", "-C", "4", "-T", "up", "-w", "%{url_effective} %{exitcode}", &url]);
    assert_eq!((ran.code, &*ran.stderr), (18, "curl: (18) File already completely uploaded\n"));
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("{url}up 18"));
    assert_eq!(peer.connections(), 0);
}

#[test]
fn missing_upload_file_creates_empty_etag_file() {
    let dir = tempfile::tempdir().unwrap();
    let ran = curl_in(dir.path(), &["-s", "-T", "none", "--etag-save", "tag", "http://127.0.0.1:1/"]);
    assert_eq!((ran.code, fs::read(dir.path().join("tag")).unwrap()), (26, Vec::new()));
}

/// curl opens the output file of an upload with `-C` for appending.
#[test]
fn resumed_upload_appends_response_to_output_file() {
    let dir = tempfile::tempdir().unwrap();
    let (out, second) = (dir.path().join("out"), dir.path().join("second"));
    fs::write(dir.path().join("up"), "abcdef").unwrap();
    for name in [&["curl", "-q"][..], &[]] {
        for (from, urls, parallel) in [("-", 1, false), ("2", 1, false), ("-", 2, false), ("2", 2, true)] {
            fs::write(&out, "old ").unwrap();
            let _ = fs::remove_file(&second);
            let peer = H1Peer::always(reply_steps("200 OK", "new"));
            let url = peer.url("/");
            let mut args = [name, &["-s", "-C", from, "-T", "up", "-o", "out", &url]].concat();
            if urls == 2 {
                args.extend(["-T", "up", "-o", "second", &url]);
            }
            args.extend(parallel.then_some("-Z"));
            run(program(HAUL).args(args).current_dir(dir.path())).ok();
            assert_eq!(fs::read_to_string(&out).unwrap(), "old new", "{name:?} {from} {urls} {parallel}");
            assert_eq!(second.exists(), urls == 2);
            assert!(!received(&peer, 0).contains("\r\nRange: "), "{}", received(&peer, 0));
        }
    }
}

#[test]
fn parallel_run_with_unreadable_upload_sends_nothing() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let url = peer.url("/");
    for args in [&["-T", "none", "-O", &url, &url][..], &["-T", "up", &url, "-T", "none", &url]] {
        let ran = curl_in(dir.path(), &[&["-s", "-Z"], args].concat());
        assert_eq!((ran.code, peer.connections()), (26, 0), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(curl_in(dir.path(), &["-s", "-Z", "-T", "none", "http://h:99999/", &url]).code, 3);
}

#[test]
fn missing_parallel_upload_reports_prepared_transfers() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let url = peer.url("/");
    let report = ["-sS", "-D", "head", "--etag-save", "tag", "-w", "%{urlnum} %{http_code} %{exitcode}\n"];
    for (uploads, lines) in [("none", 1), ("{up,none,up}", 2), ("{up,up,none}", 3)] {
        let ran = curl_in(dir.path(), &[&["-Z"], &report[..], &["-T", uploads, &url, "--next", &url]].concat());
        assert_eq!((ran.code, peer.connections()), (26, 0), "{ran:?}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "0 000 26\n".repeat(lines), "{uploads}");
        assert_eq!(ran.stderr.matches("curl: (26) ").count(), lines, "{ran:?}");
        for name in ["tag", "head"] {
            fs::remove_file(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let ran = curl_in(dir.path(), &["-Z", "-s", "-w", "%{urlnum}\n", &url, "--next", "-T", "none", &url]);
    assert_eq!((ran.code, &*ran.stdout, peer.connections()), (26, &b"0\n"[..], 0));
}

#[test]
fn unreadable_parallel_upload_ends_run_before_requests() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    let mut file = dir.path().join("up");
    if rustix::process::geteuid().is_root() {
        // Root reads every file, but for those of the kernel that nobody can read.
        file = "/sys/bus/cpu/uevent".into();
        if !file.exists() {
            return skipped("a file that cannot be read: root reads every file");
        }
    } else {
        fs::write(&file, "sent").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let url = peer.url("/a");
    let ran = curl_in(dir.path(), &["-Z", "-s", &url, "-T", file.to_str().unwrap(), &url]);
    assert_eq!((ran.code, peer.connections()), (26, 0), "{ran:?}");
}
