//! Tests of the fault origin: each fault does what its documentation says. The tests use plain
//! sockets and parse replies themselves.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{PlainReply, get, parse, unchunked};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, ContentChangeTrigger, EtagKind, FaultPlan, FaultyOrigin, WrongContentRange};

const SIZE: u64 = 100_000;

fn origin() -> FaultyOrigin {
    FaultyOrigin::builder().start().unwrap()
}

fn small(plan: FaultPlan) -> FaultPlan {
    FaultPlan { size: SIZE, ..plan }
}

/// Returns `len` bytes of the body that the fault origin serves, starting at the offset `start`.
/// `version` is 0 for the content before its change, and 1 after it.
fn source(start: u64, len: u64, version: u64) -> Vec<u8> {
    BytePattern::new(1 + version).slice(start, len as usize)
}

fn range(origin: &FaultyOrigin, path: &str, range: &str) -> PlainReply {
    get(origin.http_addr(), path, &format!("Range: bytes={range}\r\n"))
}

/// Sends a GET for `path` with these additional request fields. Returns all bytes up to the end of
/// the connection, and true if the connection ended with a reset.
fn raw(origin: &FaultyOrigin, path: &str, fields: &str) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => (bytes, false),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            (bytes, true)
        }
    }
}

#[test]
fn faultless_origin_answers_correctly() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan::default()));
    let whole = get(origin.http_addr(), &path, "");
    assert_eq!((whole.status, &whole.body), (200, &source(0, SIZE, 0)));
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    assert_eq!(whole.field("content-length"), Some("100000"));
    assert!(whole.field("date").is_some());
    let (tag, date) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
    assert!(tag.starts_with('"'));

    for (asked, start, len) in [("5-9", 5, 5), ("99990-", 99_990, 10), ("-7", 99_993, 7), ("0-999999", 0, SIZE)] {
        let part = range(&origin, &path, asked);
        assert_eq!((part.status, &part.body), (206, &source(start, len, 0)), "{asked}");
        let expected = format!("bytes {start}-{}/{SIZE}", start + len - 1);
        assert_eq!(part.field("content-range"), Some(expected.as_str()));
        assert_eq!(part.field("etag"), Some(tag));
    }
    let beyond = range(&origin, &path, "100000-");
    assert_eq!((beyond.status, beyond.field("content-range")), (416, Some("bytes */100000")));

    for (condition, status) in [(tag, 206), (date, 206), ("\"other\"", 200), ("Mon, 01 Jan 2001 00:00:00 GMT", 200)] {
        let reply = get(origin.http_addr(), &path, &format!("Range: bytes=1-1\r\nIf-Range: {condition}\r\n"));
        assert_eq!(reply.status, status, "{condition}");
    }
    assert_eq!(get(origin.http_addr(), "/other", "").status, 404);
    assert_eq!(get(origin.http_addr(), "/f/b?sice=1", "").text(), "cannot read sice=1");
}

#[test]
fn query_of_url_is_the_fault_plan() {
    let origin = origin();
    let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
    let one = "GET /f/q?size=10&seed=7 HTTP/1.1\r\nHost: x\r\n";
    let requests = format!("{one}\r\n{one}Range: bytes=3-4\r\n\r\n{one}Connection: close\r\n\r\n");
    stream.write_all(requests.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let expected = BytePattern::new(7).slice(0, 10);
    assert_eq!(bytes.windows(10).filter(|window| *window == expected).count(), 2);

    let seen = origin.seen("q");
    assert_eq!((seen.connections, seen.requests.len(), seen.sent(), seen.twice()), (1, 3, 22, 12));
    assert_eq!(seen.requests[1].range.as_deref(), Some("bytes=3-4"));
    assert_eq!(seen.requests.iter().map(|r| r.status).collect::<Vec<_>>(), [200, 206, 200]);
    assert_eq!(seen.sent_within(3..4), 3);
    let shown = get(origin.http_addr(), "/seen/q", "").text();
    assert!(shown.contains("\"twice\":12") && shown.contains("\"range\":\"bytes=3-4\""), "{shown}");
    origin.remove_plan("q");
    assert_eq!(origin.seen("q").requests.len(), 0);
}

#[test]
fn tls_port_serves_the_same_content() {
    let origin = origin();
    let path = origin.serve("t", small(FaultPlan::default()));
    let config = testkit::test_certificates::client_config(origin.ca_pem());
    let session = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(origin.https_addr()).unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=9-\r\nConnection: close\r\n\r\n");
    let reply = common::talk(&mut stream, request.as_bytes());
    assert_eq!((reply.status, reply.body), (206, source(9, SIZE - 9, 0)));
    assert!(origin.https_url(&path).starts_with("https://localhost:"));
}

#[test]
fn ignore_range_sends_the_whole_body() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan { ignore_range: true, ..FaultPlan::default() }));
    let reply = range(&origin, &path, "5-9");
    assert_eq!((reply.status, reply.body.len() as u64), (200, SIZE));
}

#[test]
fn wrong_content_range_has_the_correct_body() {
    let lies = [
        (WrongContentRange::Start(2), Some("bytes 7-9/100000")),
        (WrongContentRange::End(-1), Some("bytes 5-8/100000")),
        (WrongContentRange::Total(-10), Some("bytes 5-9/99990")),
        (WrongContentRange::Unit, Some("octets 5-9/100000")),
        (WrongContentRange::Missing, None),
    ];
    let origin = origin();
    for (number, (lie, expected)) in lies.into_iter().enumerate() {
        let plan = FaultPlan { content_range: Some(lie), ..FaultPlan::default() };
        let path = origin.serve(&number.to_string(), small(plan));
        let reply = range(&origin, &path, "5-9");
        assert_eq!((reply.status, reply.field("content-range")), (206, expected));
        assert_eq!(reply.body, source(5, 5, 0));
        assert_eq!(get(origin.http_addr(), &path, "").field("content-range"), None, "a whole has none");
    }
}

#[test]
fn parts_have_the_planned_wrong_lengths() {
    // (short, part-length) → (Content-Length, bytes sent)
    let cases = [((3, 0), (100, 97)), ((0, -4), (96, 96)), ((0, 4), (104, 100)), ((7, -4), (96, 93))];
    let origin = origin();
    for (number, ((short, part_length), (announced, sent))) in cases.into_iter().enumerate() {
        let path = origin.serve(&number.to_string(), small(FaultPlan { short, part_length, ..FaultPlan::default() }));
        let (bytes, reset) = raw(&origin, &path, "Range: bytes=100-199\r\nConnection: close\r\n");
        let reply = parse(&bytes);
        assert_eq!(reply.field("content-range"), Some("bytes 100-199/100000"));
        assert_eq!(reply.field("content-length"), Some(announced.to_string().as_str()));
        assert_eq!((reply.body, reset), (source(100, sent, 0), false));
        assert_eq!(get(origin.http_addr(), &path, "").body, source(0, SIZE, 0));
    }
}

#[test]
fn wrong_length_ends_the_connection() {
    let origin = origin();
    for lie in [-10_i64, 10] {
        let path = origin.serve(&lie.to_string(), small(FaultPlan { whole_length: lie, ..FaultPlan::default() }));
        let (bytes, _) = raw(&origin, &path, "");
        let reply = parse(&bytes);
        assert_eq!(reply.field("content-length"), Some(SIZE.saturating_add_signed(lie).to_string().as_str()));
        assert_eq!(reply.body, source(0, SIZE, 0));
    }
}

#[test]
fn unasked_206_sends_part_without_range_request() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan { unasked_206: Some(10), ..FaultPlan::default() }));
    let reply = get(origin.http_addr(), &path, "");
    assert_eq!((reply.status, reply.field("content-range")), (206, Some("bytes 10-99999/100000")));
    assert_eq!(reply.body, source(10, SIZE - 10, 0));
    assert_eq!(range(&origin, &path, "5-9").field("content-range"), Some("bytes 5-9/100000"));
}

#[test]
fn range_replies_are_chunked_or_gzipped_if_planned() {
    let origin = origin();
    let path = origin.serve("c", small(FaultPlan { chunked: true, short: 1, ..FaultPlan::default() }));
    let reply = range(&origin, &path, "5-90004");
    assert_eq!((reply.field("content-length"), reply.field("transfer-encoding")), (None, Some("chunked")));
    assert_eq!(unchunked(&reply.body).0, source(5, 89_999, 0), "short by one, the chunks complete");

    let path = origin.serve("g", small(FaultPlan { gzip: true, ..FaultPlan::default() }));
    let reply = range(&origin, &path, "5-90004");
    assert_eq!(reply.field("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&unchunked(&reply.body).0[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, source(5, 90_000, 0));
    assert_eq!(get(origin.http_addr(), &path, "").field("content-encoding"), None);
}

#[test]
fn garbage_bytes_follow_the_body() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan { garbage: 3, ..FaultPlan::default() }));
    let reply = range(&origin, &path, "5-9");
    assert_eq!(reply.field("content-length"), Some("5"));
    assert_eq!(reply.body, [source(5, 5, 0), b"~~~".to_vec()].concat());
}

#[test]
fn content_changes_after_bytes_requests_or_time() {
    let origin = origin();
    for change in [
        ContentChangeTrigger::Bytes(SIZE),
        ContentChangeTrigger::Requests(1),
        ContentChangeTrigger::Time(Duration::ZERO),
    ] {
        let plan = FaultPlan { change: Some(change), new_size: Some(SIZE + 5), ..FaultPlan::default() };
        let path = origin.serve("a", small(plan));
        let old = get(origin.http_addr(), &path, "");
        assert_eq!(old.body, source(0, SIZE, 0));
        let new = get(origin.http_addr(), &path, "");
        assert_eq!(new.body, source(0, SIZE + 5, 1));
        assert_ne!(old.field("etag"), new.field("etag"));
        assert_ne!(old.field("last-modified"), new.field("last-modified"));
        let fields = format!("Range: bytes=5-9\r\nIf-Range: {}\r\n", old.field("etag").unwrap());
        assert_eq!(get(origin.http_addr(), &path, &fields).status, 200);
        assert_eq!(origin.seen("a").bodies.iter().map(|body| body.version).collect::<Vec<_>>(), [0, 1, 1]);
    }
    let plan =
        FaultPlan { change: Some(ContentChangeTrigger::Requests(1)), ignore_if_range: true, ..FaultPlan::default() };
    let path = origin.serve("b", small(plan));
    let old = get(origin.http_addr(), &path, "");
    let fields = format!("Range: bytes=5-9\r\nIf-Range: {}\r\n", old.field("etag").unwrap());
    let part = get(origin.http_addr(), &path, &fields);
    assert_eq!((part.status, &part.body), (206, &source(5, 5, 1)));
    assert_ne!(part.field("etag"), old.field("etag"));
}

#[test]
fn etags_can_be_weak_or_absent() {
    let origin = origin();
    let path = origin.serve("w", small(FaultPlan { etag: EtagKind::Weak, ..FaultPlan::default() }));
    let reply = get(origin.http_addr(), &path, "");
    let tag = reply.field("etag").unwrap();
    assert!(tag.starts_with("W/\""));
    let fields = format!("Range: bytes=5-9\r\nIf-Range: {tag}\r\n");
    assert_eq!(get(origin.http_addr(), &path, &fields).status, 200, "good for no range");
    let path = origin.serve("n", small(FaultPlan { etag: EtagKind::None, ..FaultPlan::default() }));
    assert_eq!(get(origin.http_addr(), &path, "").field("etag"), None);
}

#[test]
fn body_closes_at_the_planned_offset() {
    let origin = origin();
    let path = origin
        .serve("a", small(FaultPlan { breaks: vec![BodyBreak::close_at(50_000).times(2)], ..FaultPlan::default() }));
    assert_eq!(get(origin.http_addr(), &path, "").body.len(), 50_000);
    assert_eq!(range(&origin, &path, "0-49999").body.len(), 50_000, "the offset is not in it");
    assert_eq!(range(&origin, &path, "50000-").body.len(), 0, "it begins there");
    let rest = range(&origin, &path, "50000-");
    assert_eq!(rest.body, source(50_000, 50_000, 0), "the third time it goes on");
    let path = origin.serve("b", small(FaultPlan::parse("size=100000&close-after=10").unwrap()));
    for start in [0, 10, 70_000] {
        assert_eq!(range(&origin, &path, &format!("{start}-")).body, source(start, 10, 0));
    }
}

#[test]
fn planned_reset_resets_the_connection() {
    let origin = origin();
    let path =
        origin.serve("a", small(FaultPlan { breaks: vec![BodyBreak::reset_at(300).times(1)], ..FaultPlan::default() }));
    let (bytes, reset) = raw(&origin, &path, "");
    assert!(reset);
    assert!(source(0, 300, 0).starts_with(body_of(&bytes)));
    assert_eq!(origin.seen("a").sent(), 300);
    assert_eq!(get(origin.http_addr(), &path, "").body.len() as u64, SIZE);
}

/// Returns the bytes after the head of a response. The response may be truncated.
fn body_of(bytes: &[u8]) -> &[u8] {
    bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(&[], |at| &bytes[at + 4..])
}

#[test]
fn stall_ends_after_its_time_or_on_disconnect() {
    let origin = origin();
    let stall = Some(Duration::from_millis(80));
    let path =
        origin.serve("a", small(FaultPlan { breaks: vec![BodyBreak::stall_at(10)], stall, ..FaultPlan::default() }));
    let start = Instant::now();
    assert_eq!(get(origin.http_addr(), &path, "").body, source(0, SIZE, 0));
    assert!(start.elapsed() >= Duration::from_millis(80));

    let path =
        origin.serve("b", small(FaultPlan { breaks: vec![BodyBreak::stall_at(10).times(1)], ..FaultPlan::default() }));
    let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    while body_of(&bytes).len() < 10 {
        let mut piece = [0; 1000];
        let len = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..len]);
    }
    stream.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "nothing more comes");
    assert_eq!(body_of(&bytes), source(0, 10, 0));
    assert_eq!(get(origin.http_addr(), &path, "").body.len() as u64, SIZE, "others go on meanwhile");
    drop(stream);
}

#[test]
fn bodies_and_parts_are_sent_at_limited_rates() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan { range_rate: Some(1_000_000), ..FaultPlan::default() }));
    let start = Instant::now();
    assert_eq!(range(&origin, &path, "0-").body.len() as u64, SIZE);
    assert!(start.elapsed() >= Duration::from_millis(90));
    let path = origin.serve("b", small(FaultPlan { rate: Some(1_000_000), ..FaultPlan::default() }));
    let start = Instant::now();
    assert_eq!(get(origin.http_addr(), &path, "").body.len() as u64, SIZE);
    assert!(start.elapsed() >= Duration::from_millis(90));
}

#[test]
fn first_range_requests_are_refused_as_planned() {
    let origin = origin();
    let plan = FaultPlan { unavailable: 2, retry_after: Some(1), refuse_416: 1, ..FaultPlan::default() };
    let path = origin.serve("a", small(plan));
    let statuses: Vec<u16> = (0..4)
        .map(|_| {
            assert_eq!(get(origin.http_addr(), &path, "").status, 200);
            let reply = range(&origin, &path, "5-9");
            assert_eq!(reply.field("retry-after"), (reply.status == 503).then_some("1"));
            assert_eq!(reply.field("content-range") == Some("bytes */100000"), reply.status == 416);
            reply.status
        })
        .collect();
    assert_eq!(statuses, [503, 503, 416, 206]);
}

#[test]
fn connections_beyond_a_limit_are_reset() {
    let origin = origin();
    let plan =
        FaultPlan { breaks: vec![BodyBreak::stall_at(0).times(1)], connections: Some(1), ..FaultPlan::default() };
    let path = origin.serve("a", small(plan));
    let mut first = TcpStream::connect(origin.http_addr()).unwrap();
    write!(first, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 16]).unwrap();
    assert_eq!(raw(&origin, &path, ""), (Vec::new(), true));
    assert_eq!(origin.seen("a").requests[1].status, 0);

    let origin = FaultyOrigin::builder().connection_limit(1).start().unwrap();
    let path = origin.serve("a", small(FaultPlan::default()));
    let mut first = TcpStream::connect(origin.http_addr()).unwrap();
    write!(first, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 16]).unwrap();
    let mut second = TcpStream::connect(origin.http_addr()).unwrap();
    let asked = write!(second, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let lost = asked.and_then(|()| second.read(&mut [0])).unwrap_err().kind();
    assert!(matches!(lost, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe));
    assert_eq!(origin.connections(), 2);
}

#[test]
fn dropping_the_origin_ends_its_connections() {
    let origin = origin();
    let path = origin.serve("a", small(FaultPlan { breaks: vec![BodyBreak::stall_at(5)], ..FaultPlan::default() }));
    let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    drop(origin);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 1000);
}
