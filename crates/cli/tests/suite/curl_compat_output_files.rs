//! The curl persona writes output files as curl 8.22 does, with the same names, dates and content.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{HAUL, answering, curl_in, curl_quiet, names, page, program, received, reply_steps, run};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn remote_name_all_applies_to_following_urls_only() {
    let peer = page("x");
    let (one, two) = (peer.url("/one"), peer.url("/two"));
    let written = |args: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let printed = curl_in(dir.path(), args).text();
        (names(dir.path()).join(" "), printed)
    };
    for (args, files, printed) in [
        (&["-s", &one, "--remote-name-all", &two][..], "two", "x"),
        (&["-s", "--remote-name-all", &one, "--no-remote-name-all", &two], "one", "x"),
        (&["-s", "--remote-name-all", &one, &two], "one two", ""),
        // The place that an -o opens is a URL's, too.
        (&["-s", "-o", "o", "-o", "-", "--remote-name-all", &one, &two], "o", "x"),
        (&["-s", "--remote-name-all", "--no-remote-name", &one, &two], "two", "x"),
        // There is nothing to undo.
        (&["-s", "--no-remote-name", "-o", "o", &one], "o", ""),
    ] {
        assert_eq!(written(args), (files.to_owned(), printed.to_owned()), "{args:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    run(program(HAUL).args(["-s", &one, "--remote-name-all"]).current_dir(dir.path())).ok();
    assert_eq!(names(dir.path()), ["one"], "in haul's own name all of them");
}

#[test]
fn absolute_output_name_stays_below_output_dir() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::create_dir(dir.path().join("into")).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    let (name, url) = (elsewhere.to_str().unwrap(), peer.url("/"));
    assert_eq!(curl_in(dir.path(), &["-s", "--output-dir", "into", "-o", name, &url]).code, 23);
    let told = ["-s", "--output-dir", "into", "-o", "/file", "-w", "%{filename_effective}", &url];
    assert_eq!(curl_in(dir.path(), &told).text(), "into//file");
    assert_eq!(
        (names(dir.path()).join(" "), names(&dir.path().join("into")).join(" ")),
        ("into".into(), "file".into())
    );
}

#[test]
fn remote_name_keeps_the_spelling_of_the_url() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    for (url, name) in [("/ünï?x#y", "ünï"), ("/a%20b", "a%20b"), ("/dä/", "dä")] {
        curl_in(dir.path(), &["-s", "-O", &peer.url(url)]).ok();
        assert_eq!(names(dir.path()), [name]);
        fs::remove_file(dir.path().join(name)).unwrap();
    }
}

#[test]
fn file_names_may_be_any_bytes() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    let in_latin1 = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let with = |args: &[&OsStr]| run(program(HAUL).args(["curl", "-q", "-s"]).args(args).current_dir(dir));
    let glob = peer.url("/[1-2]");
    with(&["-o".as_ref(), &in_latin1(b"\xfc#1"), glob.as_ref()]).ok();
    assert!(dir.join(in_latin1(b"\xfc1")).exists() && dir.join(in_latin1(b"\xfc2")).exists(), "{:?}", names(dir));
    assert_eq!(with(&["-o".as_ref(), &in_latin1(b"\xfc/"), glob.as_ref()]).code, 23);

    fs::write(dir.join(in_latin1(b"up\xfc")), "sent").unwrap();
    let peer = page("x");
    with(&["-T".as_ref(), &in_latin1(b"up\xfc"), peer.url("/").as_ref()]).ok();
    let sent = received(&peer, 0);
    assert!(sent.starts_with("PUT /up%FC ") && sent.ends_with("sent"), "{sent}");
}

#[test]
fn remote_header_name_falls_back_to_redirect_url() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let to = |place: &str, last: Vec<ScriptStep>| {
        H1Peer::start(vec![reply_steps(&format!("302 Found\r\nLocation: {place}"), ""), last])
    };
    for (place, last, name) in [
        ("/d/two?x#y", reply_steps("200 OK", "x"), "two"),
        ("/d/", reply_steps("200 OK", "x"), "one"),
        ("/d/three", reply_steps("200 OK\r\nContent-Disposition: attachment; filename=own", "x"), "own"),
        ("/d/.four", reply_steps("200 OK", "x"), "_four"),
        // The Content-Disposition of an error page does not name the file.
        ("/d/five", reply_steps("404 Not Found\r\nContent-Disposition: attachment; filename=gone", "x"), "five"),
    ] {
        let peer = to(place, last);
        curl_in(dir, &["-s", "-L", "-O", "-J", &peer.url("/one")]).ok();
        assert_eq!(names(dir), [name], "{place}");
        fs::remove_file(dir.join(name)).unwrap();
    }
    fs::write(dir.join("two"), "mine").unwrap();
    let peer = to("/two", reply_steps("200 OK", "x"));
    assert_eq!(curl_in(dir, &["-s", "-L", "-O", "-J", &peer.url("/one")]).code, 23);
    assert_eq!(fs::read_to_string(dir.join("two")).unwrap(), "mine");
}

#[test]
fn remote_header_name_uses_unfollowed_location() {
    let named = |location: &str| {
        let dir = tempfile::tempdir().unwrap();
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 1\r\n\r\nx");
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
        curl_in(dir.path(), &["-s", "-O", "-J", &peer.url("/from")]).ok();
        names(dir.path()).join(" ")
    };
    assert_eq!(named("/a/to%20x?q=/y#f"), "to%20x");
    assert_eq!(named("to.txt"), "to.txt");
    // curl fails for want of a name then.
    assert_eq!(named("/a/"), "from");
}

#[test]
fn remote_time_may_be_before_1970() {
    let (dir, date) = (tempfile::tempdir().unwrap(), "Wed, 09 Oct 1940 16:45:49 +0100");
    let peer = H1Peer::always(reply_steps(&format!("200 OK\r\nLast-Modified: {date}"), "x"));
    curl_in(dir.path(), &["-s", "-R", "-o", "old", &peer.url("/")]).ok();
    let modified = fs::metadata(dir.path().join("old")).unwrap().modified().unwrap();
    let before = std::time::UNIX_EPOCH.duration_since(modified).unwrap();
    assert_eq!(before.as_secs(), 922_349_651);
}

#[test]
fn not_modified_response_keeps_the_file_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "mine").unwrap();
    fs::write(dir.path().join("tag"), "\"v\"\n").unwrap();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    let peer = H1Peer::always(reply_steps("304 Not Modified\r\nLast-Modified: Tue, 05 Mar 2024 10:20:30 GMT", "ok"));
    let url = peer.url("/");
    curl_in(dir.path(), &["-s", "-R", "--etag-compare", "tag", "-o", "file", &url]).ok();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    let ran = curl_in(dir.path(), &["-sS", "-R", "--etag-compare", "tag", "-o", "other", &url]);
    assert_eq!((ran.code, ran.stderr), (0, String::new()), "there is no file to stamp");
}

#[test]
fn upload_response_never_overwrites_the_sent_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("reply"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (url, name) in [(peer.url("/dir/"), "dir"), (peer.url("/"), "curl_response"), (peer.url("/place"), "place")] {
        curl_in(dir.path(), &["-s", "-T", "up", "-O", &url]).ok();
        assert_eq!(fs::read_to_string(dir.path().join("up")).unwrap(), "sent", "{url}");
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "reply", "{url}");
    }
    run(program(HAUL).args(["-s", "-T", "up", "-O", &peer.url("/dir/")]).current_dir(dir.path())).ok();
    assert_eq!(fs::read_to_string(dir.path().join("up")).unwrap(), "sent", "under haul's own name");
}

#[test]
fn out_null_writes_no_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("hello"));
    let told = ["-s", "-w", "[%{filename_effective}] %{size_download}\n", "--out-null"];
    for option in ["--skip-existing", "--no-clobber", "-R"] {
        let ran = curl_in(dir.path(), &[&told[..], &[option, &peer.url("/")]].concat());
        assert_eq!((ran.code, &*ran.stdout), (0, &b"[] 5\n"[..]), "{option}: {}", ran.stderr);
    }
    assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
}

#[test]
fn dump_header_appends_to_shared_output_file() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let (one, two) = (peer.url("/1"), peer.url("/2"));
    assert_eq!(curl_in(dir.path(), &["-s", "-D", "file", "-o", "file", &one, &two]).text(), "x");
    let written = fs::read_to_string(dir.path().join("file")).unwrap();
    assert!(written.starts_with("xHTTP/1.1 200 OK\r\n") && !written.contains('\0'), "{written:?}");
}

#[test]
fn folded_header_fields_are_shown_on_one_line() {
    let peer = answering("HTTP/1.1 200 OK\r\nServer: a/\t\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n");
    let url = peer.url("/");
    let head = "HTTP/1.1 200 OK\r\nServer: a/ b c\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(curl_quiet(&["-i", &url]).text(), head);
    assert_eq!(curl_quiet(&["-D", "-", &url]).text(), head);
    assert_eq!(curl_quiet(&["-w", "%header{server} %{size_header}", &url]).text(), format!("a/ b c {}", head.len()));
}

/// Servers ignore Range with methods other than GET (RFC 9110 section 14.2).
#[test]
fn continue_at_with_any_method_never_appends_whole_response() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("part");
    for method in ["GET", "POST", "PUT", "DELETE", "OTHER"] {
        for (from, status, body) in [("-", "200 OK", "abcdef"), ("3", "200 OK", "abcdef"), ("-", "404 No", "none")] {
            fs::write(&file, "abc").unwrap();
            let peer = H1Peer::always(reply_steps(status, body));
            let ran = curl_in(dir.path(), &["-sS", "-C", from, "-X", method, "-o", "part", &peer.url("/")]);
            assert_eq!((ran.code, fs::read_to_string(&file).unwrap()), (33, "abc".to_owned()), "{method} {from}");
            assert!(received(&peer, 0).contains("Range: bytes=3-\r\n"), "{method} {from}");
            let ran = run(program(HAUL)
                .args(["-C", from, "-X", method, "-o", "part", &peer.url("/")])
                .current_dir(dir.path()));
            assert_ne!(ran.code, 0, "{method} {from}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "abc", "{method} {from} in haul's own name");
        }
        let peer = H1Peer::always(reply_steps("206 Partial\r\nContent-Range: bytes 3-5/6", "def"));
        curl_in(dir.path(), &["-sS", "-C", "-", "-X", method, "-o", "part", &peer.url("/")]).ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), "abcdef", "{method}");
        fs::remove_file(&file).unwrap();
        let peer = H1Peer::always(reply_steps("200 OK", "abcdef"));
        curl_in(dir.path(), &["-sS", "-C", "-", "-X", method, "-o", "part", &peer.url("/")]).ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), "abcdef", "{method} without a file");
        assert!(!received(&peer, 0).contains("Range"), "{method} without a file");
    }
}

#[test]
fn output_name_from_empty_glob_value_ends_run() {
    const TEXT: &str = "Failed writing received data to disk/application";
    let line = format!("curl: (23) {TEXT}\n");
    let report = ["-w", "%{urlnum} %{http_code} %{exitcode} %{errormsg}\n"];
    for parallel in [None, Some("-Z")] {
        let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
        let url = peer.url("/{,b}");
        let ran = curl_in(dir.path(), &[&["-sS", "-o", "#1", &url][..], parallel.as_slice()].concat());
        assert_eq!((ran.code, &*ran.stderr), (23, &*line));
        let named = curl_in(dir.path(), &["-sS", "-o", "x#1", &url]);
        assert_eq!((named.code, dir.path().join("xb").exists()), (0, true));
        let before = peer.connections();
        let glob = peer.url("/{a,,b}");
        let other = peer.url("/z");
        let rest = ["-o", "#1", &glob, &other, "--next", "-o", "next", &other];
        let args = [parallel.as_slice(), &["-sS"], &report, &rest].concat();
        let ran = curl_in(dir.path(), &args);
        let output = String::from_utf8_lossy(&ran.stdout).into_owned();
        let failed = format!("0 000 23 {TEXT}\n");
        let expected = match parallel {
            // The transfer of a is ready, but has not begun.
            Some(_) => (format!("{failed}{failed}"), line.repeat(2), before),
            None => (format!("0 200 0 \n{failed}"), line.clone(), before + 1),
        };
        assert_eq!((ran.code, (output, ran.stderr, peer.connections())), (23, expected), "{parallel:?}");
        assert!(!dir.path().join("next").exists() && !dir.path().join("b").exists());
        let warned = curl_in(dir.path(), &[parallel.as_slice(), &["--no-progress-meter", "-o", "#1", &url]].concat());
        assert!(warned.stderr.starts_with("Warning: output glob produces empty string\ncurl: (23) "), "{warned:?}");
    }
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let ran = curl_in(dir.path(), &["-s", "-o", "#1", &peer.url("/{,b}"), &peer.url("/")]);
    assert_eq!((ran.code, peer.connections()), (23, 0));
}

#[test]
fn parallel_write_out_of_skipped_urls_comes_last() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("have"), "kept").unwrap();
    let url = peer.url("/");
    let skipped = ["-s", "-w", "%{urlnum} %{http_code}\n", "--skip-existing", "-o", "have", &url];
    for next in [&[][..], &["--next", "-w", "%{urlnum} %{http_code}\n"]] {
        let _ = fs::remove_file(dir.path().join("new"));
        let args = [&skipped[..], next, &["-o", "new", &url]].concat();
        assert_eq!(curl_in(dir.path(), &args).text(), "0 000\n1 200\n", "one after the other");
        fs::remove_file(dir.path().join("new")).unwrap();
        assert_eq!(curl_in(dir.path(), &[&["-Z"], &args[..]].concat()).text(), "1 200\n0 000\n", "{next:?}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("have")).unwrap(), "kept");
}

#[test]
fn etag_file_is_created_before_url_is_parsed() {
    let dir = tempfile::tempdir().unwrap();
    for output in [&["--out-null"][..], &[], &["-o", "out"]] {
        let ran = curl_in(dir.path(), &[&["-s", "--etag-save", "tag", "http://127.0.0.1:1/x y"], output].concat());
        assert_eq!((ran.code, fs::remove_file(dir.path().join("tag")).is_ok()), (3, true), "{output:?}");
    }
}
