//! Tests of the fault origin over HTTP/2 with an independent client (the crate h2): the fault plans
//! of HTTP/1, and faults that only exist in HTTP/2.

use bytes::Bytes;
use h2::{Reason, RecvStream, client};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, BreakKind, FaultPlan, FaultyOrigin};
use tokio::net::TcpStream;

const SIZE: u64 = 300_000;

/// The response to one request, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct H2Response {
    status: u16,
    length: Option<u64>,
    range: Option<String>,
    body: Vec<u8>,
    /// The reason why the response ended early: `Some(Some(code))` is an error code from the
    /// server, `Some(None)` a closed connection. `None` if the response is complete.
    error: Option<Option<Reason>>,
}

/// Sends requests for `path` on one HTTP/2 connection, one after the other: one for each item of
/// `ranges`. An item is the value of the Range field, or `None` for a request without that field.
fn get(origin: &FaultyOrigin, path: &str, ranges: &[Option<&str>]) -> Vec<H2Response> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(origin.http_addr()).await.unwrap();
        let (mut sender, connection) = client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut all = Vec::new();
        for range in ranges {
            let mut request = http::Request::get(origin.url(path));
            if let Some(range) = range {
                request = request.header("range", *range);
            }
            all.push(one(&mut sender, request.body(()).unwrap()).await);
        }
        all
    })
}

async fn one(sender: &mut client::SendRequest<Bytes>, request: http::Request<()>) -> H2Response {
    let mut got = H2Response::default();
    let sent = match sender.send_request(request, true) {
        Ok((response, _)) => response.await,
        Err(error) => Err(error),
    };
    match sent {
        Err(error) => got.error = Some(error.reason()),
        Ok(response) => {
            let field = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            got.status = response.status().as_u16();
            got.length = field("content-length").map(|length| length.parse().unwrap());
            got.range = field("content-range");
            assert_eq!(field("transfer-encoding"), None);
            read(response.into_body(), &mut got).await;
        }
    }
    got
}

async fn read(mut body: RecvStream, got: &mut H2Response) {
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                body.flow_control().release_capacity(piece.len()).unwrap();
                got.body.extend(piece);
            }
            Err(error) => {
                got.error = Some(error.reason());
                return;
            }
        }
    }
}

fn origin() -> FaultyOrigin {
    FaultyOrigin::builder().start().unwrap()
}

fn plan(breaks: Vec<BodyBreak>) -> FaultPlan {
    FaultPlan { size: SIZE, breaks, ..FaultPlan::default() }
}

fn source(start: u64, end: u64) -> Vec<u8> {
    BytePattern::new(1).slice(start, (end - start) as usize)
}

#[test]
fn whole_bodies_and_ranges_are_served_over_http2() {
    let origin = origin();
    let path = origin.serve("a", plan(vec![]));
    let got = get(&origin, &path, &[None, Some("bytes=5-9"), Some("bytes=300000-"), Some("bytes=-7")]);
    assert_eq!((got[0].status, got[0].length, &got[0].error), (200, Some(SIZE), &None));
    assert!(got[0].body == source(0, SIZE));
    assert_eq!((got[1].status, got[1].range.as_deref()), (206, Some("bytes 5-9/300000")));
    assert_eq!((&got[1].body, got[2].status), (&source(5, 10), 416));
    assert_eq!(got[3].body, source(SIZE - 7, SIZE));
    let seen = origin.seen("a");
    assert_eq!((seen.connections, seen.requests.len(), seen.sent()), (1, 4, SIZE + 12));
}

#[test]
fn planned_rst_stream_breaks_only_its_stream() {
    let origin = origin();
    let path = origin.serve("a", plan(vec![BodyBreak::rst_at(123_457).times(1)]));
    let got = get(&origin, &path, &[None, Some("bytes=123457-")]);
    assert_eq!((got[0].status, &got[0].error), (200, &Some(Some(Reason::INTERNAL_ERROR))));
    // h2 may drop bytes that it holds when the stream is reset; those it delivers are right.
    assert!(source(0, 123_457).starts_with(&got[0].body));
    assert_eq!((got[1].status, &got[1].error), (206, &None));
    assert!(got[1].body == source(123_457, SIZE));
    assert_eq!(origin.seen("a").twice(), 0);
}

#[test]
fn request_succeeds_after_refused_streams() {
    let origin = origin();
    let path = origin.serve("a", FaultPlan { refuse: 2, ..plan(vec![]) });
    let got = get(&origin, &path, &[None, None, None]);
    let refused = || H2Response { error: Some(Some(Reason::REFUSED_STREAM)), ..H2Response::default() };
    assert_eq!(got[..2], [refused(), refused()]);
    assert_eq!((got[2].status, got[2].body.len() as u64), (200, SIZE));
}

#[test]
fn open_streams_finish_after_goaway() {
    let origin = origin();
    let path = origin.serve("a", plan(vec![BodyBreak { how: BreakKind::GoAway, ..BodyBreak::rst_at(1000) }]));
    let got = get(&origin, &path, &[None, None]);
    assert_eq!(got[0].error, None);
    assert!(got[0].body == source(0, SIZE));
    assert!(got[1].error.is_some(), "nothing new is taken: {:?}", got[1].status);
}

#[test]
fn planned_close_or_reset_ends_all_streams() {
    for how in [BreakKind::GoAwayCut, BreakKind::Close, BreakKind::Reset] {
        let origin = origin();
        let path = origin.serve("a", plan(vec![BodyBreak { how, ..BodyBreak::rst_at(100_001) }]));
        let got = get(&origin, &path, &[None, None]);
        assert!(got[0].error.is_some() && got[1].error.is_some(), "{how:?}");
        assert!(source(0, 100_001).starts_with(&got[0].body), "{how:?}");
    }
}

#[test]
fn wrong_content_length_resets_the_stream() {
    let origin = origin();
    let path = origin.serve("a", FaultPlan { part_length: 5, ..plan(vec![]) });
    let got = get(&origin, &path, &[Some("bytes=10-19")]);
    assert_eq!((got[0].status, got[0].length), (206, Some(15)));
    assert_eq!(got[0].error, Some(Some(Reason::PROTOCOL_ERROR)), "h2 sees that itself");
}
