//! Tests of the fault origin over HTTP/3.

#[path = "common/h3_client.rs"]
mod h3_client;

use std::time::Duration;

use h3_client::{H3Client, H3Reply};
use http::Request;
use quinn::ConnectionError;
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, BodyBreakOffset, BreakKind, FaultPlan, FaultyOrigin};
use testkit::http3::Http3Settings;

fn start() -> FaultyOrigin {
    FaultyOrigin::builder().http3(Http3Settings::new()).start().unwrap()
}

fn connect(origin: &FaultyOrigin) -> H3Client {
    H3Client::connect(origin.https_addr(), origin.ca_pem()).unwrap()
}

fn broken(client: &H3Client, origin: &FaultyOrigin, name: &str, how: BreakKind) -> Result<H3Reply, String> {
    let breaks = vec![BodyBreak { place: BodyBreakOffset::At(100_000), how, times: Some(1) }];
    let plan = FaultPlan { size: 300_000, breaks, stall: Some(Duration::from_millis(20)), ..FaultPlan::default() };
    client.get(&origin.serve(name, plan)).map_err(|error| error.to_string())
}

#[test]
fn whole_bodies_and_ranges_are_served() {
    let origin = start();
    let client = connect(&origin);
    let path = origin.serve("whole", FaultPlan { size: 200_000, ..FaultPlan::default() });
    let pattern = BytePattern::new(FaultPlan::default().seed);
    let reply = client.get(&path).unwrap();
    assert_eq!(reply.field("content-length"), Some("200000"));
    assert_eq!(reply.body, pattern.slice(0, 200_000));
    let request = Request::get(format!("https://localhost{path}")).header("range", "bytes=1000-1999");
    let part = client.fetch(request, b"", None).unwrap();
    assert_eq!((part.head.status().as_u16(), part.body), (206, pattern.slice(1000, 1000)));
    assert_eq!(origin.seen("whole").requests.len(), 2);
    assert_eq!(client.get("/other").unwrap().head.status(), 404);
}

#[test]
fn planned_breaks_end_streams_or_connections() {
    let origin = start();
    let client = connect(&origin);
    let reset = broken(&client, &origin, "rst", BreakKind::Rst).err().unwrap();
    assert!(reset.contains("H3_INTERNAL_ERROR"), "{reset}");
    assert_eq!(broken(&client, &origin, "stall", BreakKind::Stall).unwrap().body.len(), 300_000);
    assert_eq!(broken(&client, &origin, "goaway", BreakKind::GoAway).unwrap().body.len(), 300_000);
    // GoAwayCut is not tested, because quinn sometimes sends no CONNECTION_CLOSE after it.
    for how in [BreakKind::Reset, BreakKind::Close] {
        let reason = close_reason(&origin, how);
        let is_by_peer = matches!(reason, ConnectionError::ApplicationClosed(_) | ConnectionError::Reset);
        assert!(is_by_peer, "{how:?}: {reason}");
    }
}

/// Requests a body in which the origin makes the break `how`. Returns the error with which quinn's
/// connection ends. The response is not awaited, since the crate h3 sometimes misses the end of the
/// connection.
fn close_reason(origin: &FaultyOrigin, how: BreakKind) -> ConnectionError {
    let client = connect(origin);
    let breaks = vec![BodyBreak { place: BodyBreakOffset::At(100_000), how, times: Some(1) }];
    let path = origin.serve(&format!("{how:?}"), FaultPlan { size: 300_000, breaks, ..FaultPlan::default() });
    let (mut requests, connection) = (client.requests.clone(), client.connection.clone());
    client.runtime.spawn(async move {
        let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
        let mut stream = requests.send_request(request).await.unwrap();
        stream.finish().await.unwrap();
        let _ = h3_client::read(stream).await;
    });
    let limit = Duration::from_secs(30);
    let closed = client.runtime.block_on(async { tokio::time::timeout(limit, connection.closed()).await });
    closed.expect("the origin closes the connection")
}

#[test]
fn refused_request_gets_h3_request_rejected() {
    let origin = start();
    let client = connect(&origin);
    let path = origin.serve("refused", FaultPlan { refuse: 1, size: 10, ..FaultPlan::default() });
    let error = client.get(&path).err().unwrap().to_string();
    assert!(error.contains("H3_REQUEST_REJECTED"), "{error}");
    assert_eq!(client.get(&path).unwrap().body.len(), 10);
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let origin = FaultyOrigin::builder().connection_limit(1).http3(Http3Settings::new()).start().unwrap();
    let _first = connect(&origin);
    let error = H3Client::connect(origin.https_addr(), origin.ca_pem()).err().unwrap();
    assert!(error.to_string().contains("refused"), "{error}");
}
