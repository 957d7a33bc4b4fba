//! Tests of curl's behaviours that options enable: retries of the whole redirect chain, output of
//! heads only, partial uploads.

use crate::common;
use crate::support::ranges::NonRestartableSink;

use std::sync::Arc;
use std::time::Duration;

use common::{DRIVERS, following, with_time_limit};
use haul::{Client, RequestOptions, Target};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn reply(status: &str, fields: &str, body: &str) -> ScriptStep {
    ScriptStep::send(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()))
}

/// Starts a server that redirects to a resource. The first response of the resource is a 503; the
/// next one is a success.
fn busy_once() -> H1Peer {
    let moved = || [ScriptStep::ReadHead, ScriptStep::ReadBytes(3), reply("302 Found", "Location: /b\r\n", "moved")];
    let busy = [ScriptStep::ReadHead, reply("503 Busy", "", "busy")];
    let fine = [ScriptStep::ReadHead, reply("200 OK", "", "fine")];
    H1Peer::start(vec![moved().into_iter().chain(busy).chain(moved()).chain(fine).collect()])
}

fn posting() -> RequestOptions {
    let mut options = RequestOptions { method: "POST".into(), body: Some("a=1".into()), ..following() };
    options.curl_compat.retries_whole = true;
    options.retry.max = 1;
    options.retry.delay = Some(Duration::ZERO);
    options.retry.any_method = true;
    options
}

fn lines(peer: &H1Peer) -> Vec<String> {
    let text = String::from_utf8(peer.received(0)).unwrap();
    text.split("\r\n").filter(|line| line.ends_with(" HTTP/1.1")).map(|line| line.replace("a=1", "")).collect()
}

#[test]
fn curl_mode_retry_repeats_the_whole_redirect_chain() {
    for driver in DRIVERS {
        let peer = busy_once();
        let got = driver.get(&Client::new(), &peer.url("/a"), &posting());
        assert_eq!((got.status, got.facts.retries, got.facts.redirects), (200, 1, 1), "{driver:?}");
        assert_eq!(lines(&peer), ["POST /a HTTP/1.1", "GET /b HTTP/1.1", "POST /a HTTP/1.1", "GET /b HTTP/1.1"]);
        // The figures are those of the last try, which reused the first one's connection.
        assert_eq!((got.facts.connects, got.facts.requests), (0, 4), "{driver:?}");
        assert!(got.facts.request_bytes < peer.received(0).len() as u64, "{driver:?}");
    }
}

#[test]
fn retry_all_errors_retries_statuses_only_with_fail() {
    for driver in DRIVERS {
        for (fail, retries) in [(false, 0), (true, 1)] {
            let once = vec![
                ScriptStep::ReadHead,
                reply("401 Who", "", "who"),
                ScriptStep::ReadHead,
                reply("401 Who", "", "who"),
            ];
            let peer = H1Peer::start(vec![once]);
            let mut options = RequestOptions { fail, ..RequestOptions::default() };
            (options.retry.max, options.retry.delay, options.retry.all_errors) = (1, Some(Duration::ZERO), true);
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.status, got.facts.retries), (401, retries), "{driver:?}");
        }
    }
}

#[test]
fn curl_mode_retry_appends_to_delivered_output() {
    let peer = busy_once();
    let (pipe, url) = (NonRestartableSink::default(), peer.url("/a"));
    let sink = Box::new(pipe.clone());
    let outcome =
        with_time_limit("it", move || Client::new().fetch(Target::parse(&url).unwrap(), Arc::new(posting()), sink));
    outcome.result.unwrap();
    assert_eq!(pipe.taken(), b"busyfine");
}

#[test]
fn head_only_get_delivers_no_body() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, reply("200 OK", "X: 1\r\n", "hello")]]);
        let options = RequestOptions { include_head: true, head_only: true, ..RequestOptions::default() };
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!(got.ok(), b"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 5\r\n\r\n", "{driver:?}");
        assert!(peer.received(0).starts_with(b"GET / "), "{driver:?}");
    }
}

#[test]
fn partial_upload_sends_content_range() {
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, reply("200 OK", "", "")]]);
    let options = RequestOptions {
        method: "PUT".into(),
        body: Some("".into()),
        content_range: Some("5-9/10".into()),
        ..RequestOptions::default()
    };
    assert_eq!(DRIVERS[0].get(&Client::new(), &peer.url("/"), &options).exit, 0);
    let sent = String::from_utf8(peer.received(0)).unwrap();
    assert!(sent.contains("\r\nContent-Range: bytes 5-9/10\r\n"), "{sent}");
}
