//! Tests of retries: the failures that are retried, and the bodies and requests that are not sent
//! twice.

use crate::common;

use std::fs;

use common::{names, origin, run_haul};
use testkit::h1_peer::{H1Peer, PeerScript, ScriptStep};

/// Returns the script of a server that announces ten bytes of body, and closes the connection after
/// `len` of them.
fn cut_after(len: usize) -> PeerScript {
    let body = &"0123456789"[..len];
    vec![ScriptStep::ReadHead, ScriptStep::send(format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{body}"))]
}

#[test]
fn unavailable_server_is_retried() {
    let origin = origin();
    let url = origin.url("/flaky/2/small");
    for urls in [&[&url][..], &[&url, &url]] {
        origin.forget();
        let retry = ["--retry", "4", "--retry-delay", "0.01"];
        let got = run_haul(retry.into_iter().chain(urls.iter().map(|url| url.as_str()))).text();
        assert_eq!(got, "small\n".repeat(urls.len()));
        assert_eq!(origin.hits("/flaky/2/small") as usize, 2 + urls.len());
    }
    origin.forget();
    run_haul(["--retry", "1", "--retry-delay", "0.01", &url]).failed(22);
    assert_eq!(origin.hits("/flaky/2/small"), 2);
    origin.forget();
    run_haul(["--retry", "0", &url]).failed(22);
    assert_eq!(origin.hits("/flaky/2/small"), 1);
}

#[test]
fn post_is_not_retried() {
    let origin = origin();
    run_haul(["--retry-delay", "0.01", "-d", "x", &origin.url("/flaky/1/echo")]).failed(22);
    assert_eq!(origin.requests(), 1);
    let peer = H1Peer::always(vec![ScriptStep::ReadHead]);
    run_haul(["--retry-delay", "0.01", "-d", "", &peer.url("/")]).failed(52);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn curl_resends_post_lost_on_reused_connection() {
    let answer = || ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (persona, code, connections) in [("curl", 0, 2), ("--silent", 52, 1)] {
        let lost =
            vec![ScriptStep::ReadHead, answer(), ScriptStep::ReadHead, ScriptStep::ReadBytes(3), ScriptStep::Close];
        let peer = H1Peer::start(vec![lost, vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(3), answer()]]);
        let args = [persona, "-s", "--retry", "0", &peer.url("/"), "--next", "-s", "-d", "a=1", &peer.url("/")];
        let ran = run_haul(args);
        assert_eq!((ran.code, peer.connections()), (code, connections), "{persona}: {}", ran.stderr);
        let last = peer.received(connections - 1);
        assert!(last.ends_with(b"\r\n\r\na=1"), "{persona}: {}", String::from_utf8_lossy(&last));
    }
    // A fresh connection that does the same is no reason for another.
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(3), ScriptStep::Close]);
    run_haul(["curl", "-sS", "-d", "a=1", &peer.url("/")]).failed(52);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn truncated_body_is_retried_unless_already_printed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let args = ["--retry-delay", "0.01", "-o", file.to_str().unwrap()];
    for also in [None, Some("--no-parallel")] {
        // A glob takes the way of many URLs.
        let path = if also.is_some() { "/[1-1]" } else { "/" };
        let peer = H1Peer::start(vec![cut_after(3), cut_after(0), cut_after(9), cut_after(10)]);
        run_haul(args.into_iter().chain(also).chain([&*peer.url(path)])).ok();
        assert_eq!(fs::read(&file).unwrap(), b"0123456789", "each byte once");
        assert_eq!(names(dir.path()), ["file"]);
        fs::remove_file(&file).unwrap();
    }
    let peer = H1Peer::start(vec![cut_after(3), cut_after(10)]);
    let ran = run_haul(["--retry-delay", "0.01", &peer.url("/")]);
    ran.failed(18);
    assert_eq!((&ran.stdout[..], peer.connections()), (&b"012"[..], 1));
}
