//! Tests of downloads that break off: they resume on a new connection at the exact byte, or fail
//! with the reason.

use crate::common;
use crate::support::ranges;

use common::{DRIVERS, DriverKind, assert_same, get, retrying};
use haul::sink::file::FileSink;
use haul::{Client, RequestOptions};
use ranges::{MIB, NonRestartableSink, SIZE, assert_success, content, exit_code, fetch, origin, ranges};
use tempfile::TempDir;
use testkit::faulty::{
    BodyBreak, BodyBreakOffset, BreakKind, ContentChangeTrigger, FaultPlan, FaultyOrigin, WrongContentRange,
};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn after(bytes: u64) -> BodyBreak {
    BodyBreak { how: BreakKind::Close, place: BodyBreakOffset::After(bytes), times: None }
}

fn once(origin: &FaultyOrigin, path: &str, options: &RequestOptions) -> (u8, Vec<u8>) {
    let sink = NonRestartableSink::default();
    let outcome = fetch(&Client::new(), &origin.url(path), options, sink.clone());
    let got = sink.taken();
    assert_eq!(outcome.facts.body_bytes, got.len() as u64, "{:?}", outcome.result);
    (exit_code(&outcome), got)
}

#[test]
fn broken_body_resumes_at_the_exact_byte() {
    let origin = origin();
    let places = [1, 70_001, MIB + 17, SIZE - 1];
    let plan = FaultPlan {
        breaks: places.iter().map(|&at| BodyBreak::close_at(at).times(1)).collect(),
        ..FaultPlan::default()
    };
    let expected: Vec<String> = places.iter().map(|at| format!("bytes={at}-")).collect();

    let path = origin.serve("once", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(4));
    assert_eq!(code, 0);
    assert_same(&got, &content(&plan, 0));

    let path = origin.serve("file", plan.clone());
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    assert_success(&fetch(&Client::new(), &origin.url(&path), &retrying(4), FileSink::new(&file)));
    assert_same(&std::fs::read(&file).unwrap(), &content(&plan, 0));

    let (options, _file) = common::trusting_ca(origin.ca_pem());
    let options = RequestOptions { tls: options.tls, ..retrying(4) };
    let path = origin.serve("tls", plan.clone());
    let sink = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), &origin.https_url(&path), &options, sink.clone()));
    assert_same(&sink.taken(), &content(&plan, 0));

    for name in ["once", "file", "tls"] {
        let seen = origin.seen(name);
        assert_eq!(ranges(&seen), expected, "{name}");
        assert!(seen.requests[1..].iter().all(|request| request.if_range.as_deref() == Some("\"1-0\"")));
        assert_eq!((seen.twice(), seen.sent()), (0, SIZE), "{name}");
    }
}

#[test]
fn received_bytes_restore_all_retries() {
    let origin = origin();
    let plan = FaultPlan { breaks: vec![after(400 << 10)], ..FaultPlan::default() };
    let path = origin.serve("far", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(1));
    assert_eq!(code, 0);
    assert_same(&got, &content(&plan, 0));
    assert_eq!(origin.seen("far").requests.len(), 11, "each brings 400 KiB of 4 MiB");

    let plan = FaultPlan { breaks: vec![after(100 << 10)], ..FaultPlan::default() };
    let path = origin.serve("near", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(2));
    assert_eq!(code, 18);
    assert_same(&got, &content(&plan, 0)[..300 << 10]);
    assert_eq!(origin.seen("near").requests.len(), 3);
}

#[test]
fn full_response_is_skipped_to_the_resume_offset() {
    let origin = origin();
    let plan =
        FaultPlan { ignore_range: true, breaks: vec![BodyBreak::close_at(MIB + 3).times(1)], ..FaultPlan::default() };
    let path = origin.serve("whole", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(1));
    assert_eq!(code, 0);
    assert_same(&got, &content(&plan, 0));
    let seen = origin.seen("whole");
    assert_eq!((seen.requests.len(), seen.requests[1].status), (2, 200));
}

#[test]
fn content_changed_while_resuming_is_an_error_or_restart() {
    let origin = origin();
    let plan = FaultPlan {
        change: Some(ContentChangeTrigger::Requests(1)),
        breaks: vec![BodyBreak::close_at(MIB + 3).times(1)],
        ..FaultPlan::default()
    };
    let path = origin.serve("once", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(3));
    assert_eq!(code, 36);
    assert_same(&got, &content(&plan, 0)[..MIB as usize + 3]);

    let path = origin.serve("file", plan.clone());
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    let outcome = fetch(&Client::new(), &origin.url(&path), &retrying(3), FileSink::new(&file));
    assert_success(&outcome);
    assert_eq!(outcome.facts.body_bytes, SIZE);
    assert_same(&std::fs::read(&file).unwrap(), &content(&plan, 1));
    assert_eq!(origin.seen("file").requests.len(), 2, "the answer that tells of the change is the new start");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn wrong_range_in_a_206_is_never_delivered() {
    let lies = [
        WrongContentRange::Start(1),
        WrongContentRange::End(-1),
        WrongContentRange::Total(5),
        WrongContentRange::Unit,
        WrongContentRange::Missing,
    ];
    let cut = |plan: FaultPlan| FaultPlan { breaks: vec![BodyBreak::close_at(MIB + 3).times(1)], ..plan };
    let mut plans: Vec<_> =
        lies.map(|lie| cut(FaultPlan { content_range: Some(lie), ..FaultPlan::default() })).into_iter().collect();
    plans.push(cut(FaultPlan { part_length: 7, ..FaultPlan::default() }));
    plans.push(cut(FaultPlan { gzip: true, ..FaultPlan::default() }));
    plans.push(cut(FaultPlan { refuse_416: u64::MAX / 2, ..FaultPlan::default() }));
    for (number, plan) in plans.into_iter().enumerate() {
        let origin = origin();
        let path = origin.serve("once", plan.clone());
        let (code, got) = once(&origin, &path, &retrying(3));
        assert!(matches!(code, 18 | 36), "{number}: {code}");
        assert_same(&got, &content(&plan, 0)[..MIB as usize + 3]);

        let path = origin.serve("file", plan.clone());
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("file");
        assert_success(&fetch(&Client::new(), &origin.url(&path), &retrying(3), FileSink::new(&file)));
        assert_same(&std::fs::read(&file).unwrap(), &content(&plan, 0));
    }
}

#[test]
fn status_503_while_resuming_is_retried() {
    let origin = origin();
    let plan =
        FaultPlan { unavailable: 2, breaks: vec![BodyBreak::close_at(MIB + 3).times(1)], ..FaultPlan::default() };
    let path = origin.serve("busy", plan.clone());
    let (code, got) = once(&origin, &path, &retrying(3));
    assert_eq!(code, 0);
    assert_same(&got, &content(&plan, 0));
    let statuses: Vec<u16> = origin.seen("busy").requests.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [200, 503, 503, 206]);
}

#[test]
fn resume_from_delivers_bytes_from_the_offset() {
    let origin = origin();
    let from = |offset| RequestOptions { resume_from: Some(offset), fail: true, ..retrying(1) };
    let path = origin.serve("from", FaultPlan::default());
    let all = content(&FaultPlan::default(), 0);
    let (code, got) = once(&origin, &path, &from(MIB + 5));
    assert_eq!(code, 0);
    assert_same(&got, &all[MIB as usize + 5..]);
    assert_eq!(once(&origin, &path, &from(SIZE)), (0, Vec::new()), "all of it is there");
    assert_eq!(once(&origin, &path, &from(SIZE + 1)), (33, Vec::new()), "there is no such byte");
    assert_eq!(ranges(&origin.seen("from")), ["bytes=1048581-", "bytes=4194304-", "bytes=4194305-"]);

    let path = origin.serve("whole", FaultPlan { ignore_range: true, ..FaultPlan::default() });
    assert_eq!(once(&origin, &path, &from(10)), (33, Vec::new()));
    let path = origin.serve("refused", FaultPlan { refuse_416: 100, ..FaultPlan::default() });
    assert_eq!(once(&origin, &path, &from(10)), (33, Vec::new()));

    // A broken body resumes within the requested part.
    let breaks = vec![BodyBreak::close_at(2 * MIB).times(1)];
    let path = origin.serve("broken", FaultPlan { breaks, ..FaultPlan::default() });
    let (code, got) = once(&origin, &path, &from(MIB));
    assert_eq!(code, 0);
    assert_same(&got, &all[MIB as usize..]);
    assert_eq!(origin.seen("broken").twice(), 0);
}

/// Checks resuming with a server like Apache and lighttpd, which sends 416 without Content-Range. A
/// request for the last byte reveals the length of the content.
#[test]
fn status_416_without_length_probes_the_last_byte() {
    let refused = ScriptStep::send("HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
    let whole = "HTTP/1.1 206 Part\r\nContent-Range: bytes 9-9/10\r\nContent-Length: 1\r\n\r\n9";
    let longer = "HTTP/1.1 206 Part\r\nContent-Range: bytes 9-10/11\r\nContent-Length: 2\r\n\r\n9a";
    let other = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    for (answer, code) in [
        (ScriptStep::send(whole), 0),
        (ScriptStep::send(longer), 36),
        (ScriptStep::send(other), 33),
        (ScriptStep::send("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), 22),
        (refused.clone(), 33),
    ] {
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, refused.clone(), ScriptStep::ReadHead, answer]]);
        let options = RequestOptions { resume_from: Some(10), fail: true, ..RequestOptions::default() };
        let sink = NonRestartableSink::default();
        let outcome = fetch(&Client::new(), &peer.url("/"), &options, sink.clone());
        assert_eq!((exit_code(&outcome), sink.taken()), (code, Vec::new()), "{:?}", outcome.result);
        let requests = String::from_utf8(peer.received(0)).unwrap();
        let asked: Vec<_> = requests.lines().filter(|line| line.starts_with("Range")).collect();
        assert_eq!(asked, ["Range: bytes=10-", "Range: bytes=9-"]);
    }
}

/// Starts a server that redirects to these URLs in turn: the request on each connection to the next
/// URL.
fn redirecting(to: &[String]) -> H1Peer {
    let script = |to: &String| {
        let reply = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        vec![ScriptStep::ReadHead, ScriptStep::send(reply)]
    };
    H1Peer::start(to.iter().map(script).collect())
}

fn following(retries: u32) -> RequestOptions {
    let mut options = retrying(retries);
    options.redirects.follow = true;
    options
}

/// Returns a script step that sends a response with an announced length of ten bytes and the body
/// `body`.
fn ten(status: &str, fields: &str, body: &str) -> ScriptStep {
    ScriptStep::send(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 10\r\n\r\n{body}"))
}

#[test]
fn retry_after_redirect_starts_at_the_first_url() {
    let busy = ScriptStep::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    for driver in DRIVERS {
        let cut = ten("200 OK", "", "01234");
        // Bytes in the output cannot be withdrawn.
        let faults = if driver == DriverKind::Blocking {
            vec![busy.clone(), ScriptStep::Close, cut]
        } else {
            vec![busy.clone(), ScriptStep::Close]
        };
        for fault in faults {
            let bad = H1Peer::always(vec![ScriptStep::ReadHead, fault]);
            let good = H1Peer::always(vec![ScriptStep::ReadHead, ten("200 OK", "", "0123456789")]);
            let first = redirecting(&[bad.url("/f"), good.url("/f")]);
            let options = RequestOptions { fail: true, ..following(1) };
            let got = driver.get(&Client::new(), &first.url("/get"), &options);
            assert_eq!((got.ok(), got.facts.redirects), (&b"0123456789"[..], 1), "{driver:?}");
            assert_eq!((first.connections(), bad.connections()), (2, 1), "{driver:?}");
        }
    }
}

#[test]
fn resume_after_redirect_keeps_the_range() {
    for driver in DRIVERS {
        let once = H1Peer::start(vec![vec![ScriptStep::ReadHead, ten("200 OK", "ETag: \"v\"\r\n", "01234")]]);
        let fields = "ETag: \"v\"\r\nContent-Range: bytes 5-9/10\r\n";
        let part = format!("HTTP/1.1 206 Partial Content\r\n{fields}Content-Length: 5\r\n\r\n56789");
        let other = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(part)]]);
        let first = redirecting(&[once.url("/signed/1"), other.url("/signed/2")]);
        let got = driver.get(&Client::new(), &first.url("/asset"), &following(1));
        assert_eq!(got.ok(), b"0123456789", "{driver:?}");
        for (peer, connection) in [(&first, 1), (&other, 0)] {
            let head = String::from_utf8(peer.received(connection)).unwrap();
            assert!(head.contains("Range: bytes=5-\r\nIf-Range: \"v\"\r\n"), "{driver:?}: {head}");
        }
    }
}

#[test]
fn retry_after_303_requests_only_the_target() {
    for driver in DRIVERS {
        let busy = ScriptStep::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        let target = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            busy,
            ScriptStep::ReadHead,
            ten("200 OK", "", "0123456789"),
        ]]);
        let reply = format!(
            "HTTP/1.1 303 See Other\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            target.url("/done")
        );
        let first = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
        let options = RequestOptions { method: "POST".into(), body: Some("x".into()), fail: true, ..following(1) };
        assert_eq!(driver.get(&Client::new(), &first.url("/"), &options).ok(), b"0123456789", "{driver:?}");
        assert_eq!(first.connections(), 1, "{driver:?}: what was posted is not posted again");
    }
}

#[test]
fn range_other_than_the_requested_one_is_refused() {
    for (asked, sent, is_right) in [
        ("0-4", "bytes 0-4/100", true),
        ("0-4", "bytes 0-4/*", true),
        ("0-9", "bytes 0-4/5", true),
        ("95-", "bytes 95-99/100", true),
        ("-5", "bytes 95-99/100", true),
        ("-9", "bytes 0-4/5", true),
        ("0-4,9-12", "bytes 0-4/100", true),
        ("0-4", "items 0-4/100", true),
        ("0-4", "bytes 50-54/100", false),
        ("0-9", "bytes 0-4/100", false),
        ("0-1", "bytes 0-4/100", false),
        ("90-", "bytes 90-94/100", false),
        ("-5", "bytes 0-4/100", false),
    ] {
        let reply = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nContent-Range: {sent}\r\n\r\nhello");
        let options = RequestOptions { range: Some(asked.into()), ..RequestOptions::default() };
        for driver in DRIVERS {
            let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(&reply)]]);
            let got = get(driver, &peer.url("/"), &options);
            let expected = if is_right { (0, "hello") } else { (33, "") };
            assert_eq!((got.exit, std::str::from_utf8(&got.body).unwrap()), expected, "{driver:?} {asked} {sent}");
        }
    }
}

#[test]
fn body_restarts_count_as_retries() {
    let script = |node: usize, sent: usize| {
        vec![ScriptStep::ReadHead, ten("200 OK", &format!("ETag: \"node{node}\"\r\n"), &"0123456789"[..sent])]
    };
    for (retries, code) in [(3, 0), (2, 18)] {
        let peer = H1Peer::start((0..4).map(|node| script(node, if node < 3 { 5 } else { 10 })).collect());
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("file");
        let outcome = fetch(&Client::new(), &peer.url("/"), &retrying(retries), FileSink::new(&file));
        assert_eq!((exit_code(&outcome), peer.connections()), (code, retries as usize + 1), "{:?}", outcome.result);
        assert_eq!(std::fs::read(&file).ok(), (code == 0).then(|| b"0123456789".to_vec()));
    }
    // Discarded bytes are no progress: a server whose content always changes exhausts the retries.
    let script = |node: usize| {
        let head = format!("HTTP/1.1 200 OK\r\nETag: \"node{node}\"\r\nContent-Length: 600000\r\n\r\n");
        vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Send(vec![b'x'; 400_000])]
    };
    let peer = H1Peer::start((0..12).map(script).collect());
    let outcome = fetch(&Client::new(), &peer.url("/"), &retrying(3), common::BufferSink::default());
    assert_eq!((exit_code(&outcome), peer.connections()), (18, 4), "{:?}", outcome.result);
}
