//! Tests of requests for the first bytes of a body, and for the rest of it.

use crate::common::BufferSink;

use std::sync::Arc;

use haul::request::WantedContentRange;
use haul::transfer::TransferOutcome;
use haul::{Client, RequestOptions, Target};
use haul_policy::range::validator::Validator;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

fn fetch(client: &Client, url: &str, span: WantedContentRange) -> (TransferOutcome, Vec<u8>) {
    let bytes = BufferSink::default();
    let options = RequestOptions { span: Some(span), ..RequestOptions::default() };
    let sink = Box::new(bytes.clone());
    let outcome = client.fetch(Target::parse(url).unwrap(), Arc::new(options), sink);
    (outcome, bytes.bytes())
}

fn rest(from: u64, to: Option<u64>, total: u64, tag: &str) -> WantedContentRange {
    WantedContentRange::Rest { from, to, total, validator: Validator::from_bytes(tag.as_bytes()).unwrap() }
}

#[test]
fn body_prefix_and_rest_make_the_whole_body() {
    let origin = Origin::builder().start().unwrap();
    let client = Client::new();
    for bytes in [0_u64, 1, 999, 1000, 1001, 300_000] {
        let url = origin.url(&format!("/bytes/{bytes}"));
        let (outcome, mut body) = fetch(&client, &url, WantedContentRange::Opening(1000));
        outcome.result.unwrap();
        assert_eq!(body.len() as u64, bytes.min(1000));
        if bytes > 1000 {
            let tag = String::from_utf8(outcome.head.unwrap().get("etag").unwrap().to_vec()).unwrap();
            let (outcome, part) = fetch(&client, &url, rest(1000, Some(1001), bytes, &tag));
            outcome.result.unwrap();
            assert_eq!(part.len(), 1);
            body.extend(part);
            if bytes > 1001 {
                let (outcome, part) = fetch(&client, &url, rest(1001, None, bytes, &tag));
                outcome.result.unwrap();
                body.extend(part);
            }
        }
        assert!(body == origin.pattern().slice(0, usize::try_from(bytes).unwrap()), "{bytes}");
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn prefix_request_without_range_support_gets_whole_body() {
    let origin = Origin::builder().start().unwrap();
    for kind in ["chunked", "close"] {
        let (outcome, body) =
            fetch(&Client::new(), &origin.url(&format!("/{kind}/5000")), WantedContentRange::Opening(10));
        outcome.result.unwrap();
        assert_eq!((outcome.facts.status, body.len()), (200, 5000));
    }
    let (outcome, body) = fetch(&Client::new(), &origin.url("/status/404"), WantedContentRange::Opening(1000));
    outcome.result.unwrap();
    assert_eq!((outcome.facts.status, &body[..]), (404, &b"404 Not Found\n"[..]));
}

#[test]
fn prefix_without_validator_is_fetched_whole() {
    // The response has no validator.
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-2/6\r\nContent-Length: 3\r\n\r\nabc";
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nABCDEF";
    let peer = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::send(part),
        ScriptStep::ReadHead,
        ScriptStep::send(whole),
    ]]);
    let (outcome, body) = fetch(&Client::new(), &peer.url("/"), WantedContentRange::Opening(3));
    outcome.result.unwrap();
    assert_eq!(body, b"ABCDEF");
    assert!(!String::from_utf8(peer.received(0)).unwrap().ends_with("Range: bytes=0-2\r\n\r\n"));
}

#[test]
fn resuming_changed_or_misplaced_content_fails() {
    let origin = Origin::builder().start().unwrap();
    let url = origin.url("/bytes/5000");
    let (outcome, body) = fetch(&Client::new(), &url, rest(100, None, 5000, "\"other\""));
    assert_eq!((outcome.result.unwrap_err().exit_code(), body.len()), (36, 0));
    for (range, code) in [("100-199/500", 36), ("101-199/200", 33), ("100-198/200", 33)] {
        let reply = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes {range}\r\nContent-Length: 99\r\n\r\n{}",
            "x".repeat(99)
        );
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
        let (outcome, body) = fetch(&Client::new(), &peer.url("/"), rest(100, None, 200, "\"a\""));
        assert_eq!((outcome.result.unwrap_err().exit_code(), body.len()), (code, 0), "{range}");
    }
}
