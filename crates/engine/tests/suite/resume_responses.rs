//! Tests of the responses to requests for the rest of a body: only bytes of the same content may
//! follow the delivered ones.

use crate::common;
use crate::support::ranges;

use common::{DRIVERS, get, retrying};
use haul::sink::file::FileSink;
use haul::{Client, RequestOptions};
use ranges::{NonRestartableSink, exit_code, fetch};
use tempfile::TempDir;
use testkit::h1_peer::{H1Peer, PeerScript, ScriptStep};

/// Returns a script that answers one request with a response with the ETag `"a"`, and closes the
/// connection.
fn reply(status: &str, fields: &str, length: usize, body: &str) -> PeerScript {
    let head = format!("HTTP/1.1 {status}\r\nETag: \"a\"\r\n{fields}Content-Length: {length}\r\n\r\n");
    vec![ScriptStep::ReadHead, ScriptStep::send(head + body), ScriptStep::Close]
}

/// Returns a script that answers one request with the bytes of `0123456789` from the offset `at`.
fn rest_from(at: usize) -> PeerScript {
    let body = &"0123456789"[at..];
    reply("206 Part", &format!("Content-Range: bytes {at}-9/10\r\n"), body.len(), body)
}

/// Fetches from peers with these scripts with each driver, and into a sink that cannot restart and
/// a file. Returns the exit codes and the delivered bytes.
fn outcomes(scripts: &[PeerScript], options: &RequestOptions) -> Vec<(u8, Vec<u8>)> {
    let mut outcomes = Vec::new();
    for driver in DRIVERS {
        let got = get(driver, &H1Peer::start(scripts.to_vec()).url("/"), options);
        outcomes.push((got.exit, got.body));
    }
    let sink = NonRestartableSink::default();
    let outcome = fetch(&Client::new(), &H1Peer::start(scripts.to_vec()).url("/"), options, sink.clone());
    outcomes.push((exit_code(&outcome), sink.taken()));
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    let outcome = fetch(&Client::new(), &H1Peer::start(scripts.to_vec()).url("/"), options, FileSink::new(&file));
    outcomes.push((exit_code(&outcome), std::fs::read(&file).unwrap_or_default()));
    outcomes
}

#[test]
fn broken_full_response_skips_nothing_later() {
    for sent in ["", "01"] {
        let scripts = [reply("200 OK", "", 10, "0123"), reply("200 OK", "", 10, sent), rest_from(4), rest_from(8)];
        for outcome in outcomes(&scripts, &retrying(4)) {
            assert_eq!(outcome, (0, b"0123456789".to_vec()), "{sent:?}");
        }
    }
}

#[test]
fn other_status_is_never_appended_to_body() {
    for status in ["403 Gone", "503 Busy", "203 Other", "302 Found", "300 Choices"] {
        for fail in [false, true] {
            let options = RequestOptions { fail, ..retrying(1) };
            for first in [
                reply("200 OK", "", 10, "01234"),
                vec![
                    ScriptStep::ReadHead,
                    ScriptStep::send(
                        "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n",
                    ),
                ],
            ] {
                // The rest must not follow the error page.
                for (code, body) in outcomes(&[first, reply(status, "", 4, "gone"), rest_from(9)], &options) {
                    assert!(matches!(code, 18 | 22), "{status} {fail}: {code}");
                    assert!(b"01234".starts_with(&body), "{status} {fail}: {body:?}");
                }
            }
        }
    }
    let empty = vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 204 No Content\r\n\r\n"), ScriptStep::Close];
    for (code, body) in outcomes(&[reply("200 OK", "", 10, "01234"), empty], &retrying(1)) {
        assert_eq!(code, 18);
        assert!(b"01234".starts_with(&body), "{body:?}");
    }
}

#[test]
fn other_status_while_resuming_is_retried() {
    for fail in [false, true] {
        let mut options = RequestOptions { fail, ..retrying(3) };
        options.retry.all_errors = true;
        for status in ["403 Gone", "503 Busy", "203 Other"] {
            let scripts = [reply("200 OK", "", 10, "01234"), reply(status, "", 4, "gone"), rest_from(5)];
            for outcome in outcomes(&scripts, &options) {
                assert_eq!(outcome, (0, b"0123456789".to_vec()), "{status} {fail}");
            }
        }
    }
}
