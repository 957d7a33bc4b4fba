//! Where a user of curl, or a script written for it, counts on what curl 8.22 does with an option: each case was found beside it.

mod common;

use std::fs;
use std::path::Path;

use common::{HAUL, Ran, names, page, program, run};
use testkit::raw::{RawPeer, Step};

/// haul in curl's place, in this directory.
fn curl_in(dir: &Path, args: &[&str]) -> Ran {
    run(program(HAUL).arg("curl").arg("-q").args(args).current_dir(dir))
}

fn curl(args: &[&str]) -> Ran {
    curl_in(Path::new("/"), args)
}

/// The request that came over a connection.
fn received(peer: &RawPeer, connection: usize) -> String {
    String::from_utf8_lossy(&peer.received(connection)).into_owned()
}

fn answer(head: &str) -> Vec<Step> {
    vec![Step::ReadHead, Step::send(format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))]
}

#[test]
fn what_w_tells_may_get_lost_in_curls_place_and_content_may_not() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let to_full = |first: &[&str], args: &[&str]| {
        let mut command = program("sh");
        command.args(["-c", "exec \"$@\" >/dev/full", "sh", HAUL]).args(first).args(args).current_dir(dir.path());
        run(&mut command)
    };
    let told = ["-s", "-S", "-o", "file", "-w", "%{http_code}", &url];
    let ran = to_full(&["curl", "-q"], &told);
    assert!(ran.code == 0 && ran.stderr.starts_with("Warning: failed to write"), "{ran:?}");
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
    assert_eq!(to_full(&["curl", "-q"], &["-s", "-w", "%{http_code}", &url]).code, 23);
    assert_eq!(to_full(&[], &told).code, 23, "in haul's own name it is what was asked for");
}

#[test]
fn remote_name_all_is_about_the_urls_that_follow_it() {
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
fn content_in_chunks_that_nobody_gave_is_their_end() {
    for method in ["POST", "PUT", "DELETE"] {
        let peer = page("x");
        curl(&["-s", "-X", method, "-H", "Transfer-Encoding: chunked", &peer.url("/")]).ok();
        let sent = received(&peer, 0);
        assert!(sent.starts_with(&format!("{method} / ")) && sent.ends_with("\r\n\r\n0\r\n\r\n"), "{sent}");
        assert!(sent.contains("\r\nTransfer-Encoding: chunked\r\n") && !sent.contains("Content-Type"), "{sent}");
    }
}
