//! The curl persona retries the same failures as curl 8.22, with the same messages and output
//! files.

use crate::common;

use std::fs;

use common::{curl, curl_in, page, received, reply_steps};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn retry_all_errors_retries_only_reported_errors() {
    let dir = tempfile::tempdir().unwrap();
    let retrying = ["--retry", "2", "--retry-all-errors", "--retry-delay", "0.001", "--no-progress-meter"];
    let with = |args: &[&str]| curl_in(dir.path(), &[&retrying, args].concat());
    // A 404 without -f is no error.
    let missing = H1Peer::always(reply_steps("404 Not Found", "gone"));
    assert_eq!((with(&[&missing.url("/")]).ok(), missing.connections()), (b"gone".to_vec(), 1));
    let ran = with(&["-f", &missing.url("/")]);
    assert_eq!((ran.code, missing.connections()), (22, 4));
    assert!(
        ran.stderr.contains("\nWarning: Problem (retrying all errors). Retrying in 0.001 seconds. 2 retries left.\n")
    );
    // A write error is retried, and so is a response that does not continue the file.
    fs::write(dir.path().join("file"), "").unwrap();
    let there = page("x");
    let ran = with(&["--no-clobber", "--output-dir", "file", "-OJ", &there.url("/x")]);
    assert_eq!((ran.code, there.connections()), (23, 3), "{}", ran.stderr);
    fs::write(dir.path().join("part"), "abc").unwrap();
    let part = reply_steps("206 Partial Content\r\nContent-Range: bytes 3-5/6", "def");
    let peer = H1Peer::start(vec![reply_steps("404 Not Found", "none"), reply_steps("200 OK", "other"), part]);
    assert_eq!(with(&["-C", "-", "-o", "part", &peer.url("/")]).code, 0);
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), "abcdef");
    assert!((0..3).all(|at| received(&peer, at).contains("Range: bytes=3-\r\n")));
}

/// Tests a retry that requests the missing bytes and gets the whole content. Some servers compare
/// only dates with If-Range, and ignore that the ETag is the same.
#[test]
fn retry_with_continue_at_uses_a_whole_response() {
    let dir = tempfile::tempdir().unwrap();
    let head =
        "HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nETag: \"v\"\r\nContent-Length: 6\r\nConnection: close\r\n\r\n";
    let reply = |body: &str| vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}{body}"))];
    let peer = H1Peer::start(vec![reply("abc"), reply("abcdef")]);
    let retrying = ["--retry", "2", "--retry-all-errors", "--retry-delay", "0.001"];
    let ran = curl_in(dir.path(), &[&["-sS", "-C", "-", "-o", "part"][..], &retrying, &[&peer.url("/")]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), "abcdef");
    assert!(received(&peer, 1).contains("Range: bytes=3-\r\n"), "{}", received(&peer, 1));
}

#[test]
fn each_failed_attempt_prints_its_error() {
    let with = |args: &[&str]| curl(&[&["--retry", "2", "--retry-delay", "0.001"][..], args].concat()).stderr;
    let busy = H1Peer::always(reply_steps("503 Busy", "no"));
    let (url, line) = (busy.url("/"), "curl: (22) The requested URL returned error: 503\n");
    assert_eq!(with(&["-sSf", &url]), line.repeat(3));
    assert_eq!(with(&["-sS", "--fail-with-body", &url]), line.repeat(3));
    assert_eq!(with(&["-sS", &url]) + &with(&["-sf", &url]), "");
    let said = with(&["-f", "--no-progress-meter", &url]);
    assert!(
        said.starts_with(&format!("{line}Warning: Problem : HTTP error. Retrying in 0.001 seconds. 2 retries left.\n"))
    );
    let refused = with(&["-sS", "--retry-connrefused", "http://127.0.0.1:1/"]);
    assert_eq!(refused.matches("curl: (7) Failed to connect to 127.0.0.1:1 after ").count(), 3, "{refused}");
    let short = common::short_body();
    let line = "curl: (18) end of response with 7 bytes missing\n";
    assert_eq!(with(&["-sS", "--retry-all-errors", "-o", "/dev/null", &short.url("/")]), line.repeat(3));
}

#[test]
fn retry_overwrites_the_file_of_the_first_try() {
    for option in ["--skip-existing", "--no-clobber"] {
        let dir = tempfile::tempdir().unwrap();
        let peer = H1Peer::start(vec![reply_steps("503 Later", "ok"), reply_steps("200 OK\r\nX: second", "ok")]);
        let args = ["-s", option, "--retry", "1", "--retry-delay", "0.01", "-i", "-o", "file", &peer.url("/")];
        curl_in(dir.path(), &args).ok();
        let written = fs::read_to_string(dir.path().join("file")).unwrap();
        assert!(written.contains("X: second"), "{option}: {written}");
    }
    // The name from Content-Disposition belongs to an existing file.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("named"), "old").unwrap();
    let named = reply_steps("200 OK\r\nContent-Disposition: attachment; filename=named", "ok");
    let peer = H1Peer::start(vec![reply_steps("503 Later", "ok"), named]);
    let args = ["-s", "-OJ", "--retry", "1", "--retry-delay", "0.01", &peer.url("/page")];
    assert_eq!(curl_in(dir.path(), &args).code, 23);
    assert_eq!(fs::read_to_string(dir.path().join("named")).unwrap(), "old");
}

/// curl retries each name without an address, not only a failed lookup.
#[test]
fn unresolved_names_are_retried() {
    let retrying = ["--retry", "2", "--retry-delay", "0.001", "--no-progress-meter"];
    let with = |args: &[&str]| curl(&[&retrying[..], args].concat());
    for (args, code, line) in [
        (&["http://none.invalid/"][..], 6, "curl: (6) Could not resolve host: none.invalid\n"),
        (&["-X", "POST", "http://none.invalid/"], 6, "curl: (6) Could not resolve host: none.invalid\n"),
        (&["-x", "http://none.invalid/", "http://h.test/"], 5, "curl: (5) Could not resolve proxy: none.invalid\n"),
    ] {
        let ran = with(args);
        let notice = |left| format!("Warning: Problem : timeout. Retrying in 0.001 seconds. {left} left.\n");
        let said = [line, &notice("2 retries"), line, &notice("1 retry"), line].concat();
        assert_eq!((ran.code, ran.stderr), (code, said), "{args:?}");
    }
    // Under haul's own name only a failed lookup is retried.
    let ran = common::run_haul([&retrying[..], &["-v", "http://none.invalid/"]].concat());
    assert!(ran.code == 6 && !ran.stderr.contains("etry"), "{}", ran.stderr);
}
