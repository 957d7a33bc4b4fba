//! Tests of limits on concurrent HTTP/2 streams: limits that are announced late or changed, and
//! limits that the server enforces by refusing streams.

use crate::common;

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::{
    TEST_TIMEOUT, http2_origin, item, one_thread, run, run_reading, single_stage, trusting_ca, with_h2_alpn,
    with_prior_knowledge,
};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};
use testkit::byte_pattern::BytePattern;
use testkit::frames::{Frame, H2Peer, H2PeerRequest, H2ScriptConnection, data, headers, rst, settings};
use testkit::test_certificates::TestCertificates;

const MAX_CONCURRENT_STREAMS: u16 = 3;
const REFUSED_STREAM: u32 = 7;

fn defaults() -> RequestOptions {
    RequestOptions { max_time: Some(Duration::from_secs(20)), ..with_prior_knowledge(RequestOptions::default()) }
}

fn side_by_side(max_memory: u64) -> FleetOptions {
    FleetOptions { per_host: Some(64), max_memory, ..one_thread() }
}

fn head(conn: &mut H2ScriptConnection, asked: &H2PeerRequest, length: usize) -> io::Result<()> {
    conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &length.to_string())]))
}

/// Sends bytes of a body in DATA frames on a stream. `ends` is true if the last frame ends the
/// stream.
fn pieces(conn: &mut H2ScriptConnection, stream: u32, bytes: &[u8], ends: bool) -> io::Result<()> {
    let mut left = bytes.len();
    bytes.chunks(10_000).try_for_each(|piece| {
        left -= piece.len();
        conn.send(data(stream, ends && left == 0, piece))
    })
}

/// Answers a request. The body of the response is the request's path.
fn answer(conn: &mut H2ScriptConnection, asked: &H2PeerRequest) -> io::Result<()> {
    head(conn, asked, asked.path().len())?;
    conn.send(data(asked.stream, true, asked.path().as_bytes()))
}

/// Answers every request on the connection. The body of each response is the path of its request.
fn answer_all(conn: &mut H2ScriptConnection) -> io::Result<()> {
    loop {
        let asked = conn.request()?;
        answer(conn, &asked)?;
    }
}

fn requests(conn: &mut H2ScriptConnection, count: usize) -> io::Result<Vec<H2PeerRequest>> {
    (0..count).map(|_| conn.request()).collect()
}

#[test]
fn raised_stream_limit_is_used() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[(MAX_CONCURRENT_STREAMS, 1)])?;
        let first = conn.request()?;
        conn.send(settings(&[(MAX_CONCURRENT_STREAMS, 100)]))?;
        let others = requests(conn, 4)?;
        answer(conn, &first)?;
        others.iter().try_for_each(|asked| answer(conn, asked))?;
        answer_all(conn)
    });
    let run = run(&Client::new(), single_stage(&defaults()), one_thread(), (0..5).map(|n| peer.url(&format!("/{n}"))));
    // The first requests leave before the limit is known; this peer does not refuse them.
    assert_eq!(String::from_utf8_lossy(&run.output), "/0/1/2/3/4");
    assert_eq!(peer.connections(), 1);
}

#[test]
fn refused_requests_wait_for_a_free_stream() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        let asked = requests(conn, 8)?;
        conn.send(settings(&[(MAX_CONCURRENT_STREAMS, 2)]))?;
        let (refused, taken) = asked.split_at(6);
        refused.iter().try_for_each(|asked| conn.send(rst(asked.stream, REFUSED_STREAM)))?;
        taken.iter().try_for_each(|asked| answer(conn, asked))?;
        answer_all(conn)
    });
    let urls = (0..8).map(|n| peer.url(&format!("/{n}")));
    let run = run(&Client::new(), single_stage(&defaults()), side_by_side(64 << 20), urls);
    assert_eq!(String::from_utf8_lossy(&run.output), "/0/1/2/3/4/5/6/7");
    assert_eq!((peer.connections(), peer.requests().len()), (1, 14), "on the same connection, once more");
}

/// Refuses the first two of four requests on the first connection. The bodies of the other two
/// requests are so large that the client cannot buffer them while it waits for the first two.
fn refuse_first_two(connection: usize, conn: &mut H2ScriptConnection, body: &[u8]) -> io::Result<()> {
    const FIRST: usize = 140_000;
    conn.greet(&[])?;
    if connection > 0 {
        return answer_all(conn);
    }
    let asked = requests(conn, 4)?;
    conn.send(settings(&[(MAX_CONCURRENT_STREAMS, 2)]))?;
    for refused in &asked[..2] {
        conn.send(rst(refused.stream, REFUSED_STREAM))?;
    }
    for taken in &asked[2..] {
        head(conn, taken, body.len())?;
        pieces(conn, taken.stream, &body[..FIRST], false)?;
    }
    let mut stopped = vec![asked[2].stream, asked[3].stream];
    while !stopped.is_empty() {
        let opened = conn.frame_of(Frame::WINDOW_UPDATE)?.stream;
        if stopped.contains(&opened) {
            stopped.retain(|stream| *stream != opened);
            pieces(conn, opened, &body[FIRST..], true)?;
        }
    }
    conn.drain()
}

#[test]
fn first_body_in_output_order_gets_own_connection() {
    let body = BytePattern::new(3).slice(0, 200_000);
    let identity = TestCertificates::generate();
    // With TLS, the full connection could be shared, because certificate and address match.
    for is_secure in [false, true] {
        let served = body.clone();
        let script = move |connection, conn: &mut H2ScriptConnection| refuse_first_two(connection, conn, &served);
        let (trusting, _ca) = trusting_ca(identity.ca_pem());
        let limit = Some(Duration::from_secs(20));
        let (peer, options) = match is_secure {
            false => (H2Peer::start(script), defaults()),
            true => {
                let peer = H2Peer::start_tls(&identity, script);
                (peer, RequestOptions { max_time: limit, ..with_h2_alpn(trusting) })
            }
        };
        let base = if is_secure { format!("https://localhost:{}", peer.addr().port()) } else { peer.url("") };
        let urls = (0..4).map(|n| format!("{base}/{n}"));
        let run = run(&Client::new(), single_stage(&options), side_by_side(64 << 10), urls);
        assert!(run.output == [b"/0/1", &body[..], &body[..]].concat(), "TLS: {is_secure}, {:?}", run.reports);
        assert_eq!((peer.connections(), peer.requests().len()), (2, 6), "TLS: {is_secure}");
    }
}

#[test]
fn ordered_bodies_with_few_streams_use_one_connection() {
    let origin = http2_origin(3);
    let lengths: Vec<usize> = (0..60).map(|n| if n % 7 == 0 { 400_000 } else { n * 100 }).collect();
    for max_memory in [1 << 20, 64 << 20] {
        let before = origin.connections();
        let urls = lengths.iter().map(|length| origin.url(&format!("/bytes/{length}")));
        let run = run(&Client::new(), single_stage(&defaults()), side_by_side(max_memory), urls);
        let expected: Vec<u8> = lengths.iter().flat_map(|length| origin.pattern().slice(0, *length)).collect();
        assert!(run.output == expected, "{:?}", run.reports);
        assert_eq!(origin.connections() - before, 1, "{max_memory}");
    }
}

#[test]
fn paused_http2_bodies_are_delivered_without_new_data() {
    const STREAMS: usize = 20;
    const LENGTH: usize = 100_000;
    let body = BytePattern::new(5).slice(0, LENGTH);
    let served = body.clone();
    let (tell, told) = channel();
    let told = Mutex::new(told);
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = requests(conn, STREAMS)?;
        asked.iter().try_for_each(|asked| head(conn, asked, LENGTH))?;
        let (first, rest) = served.split_at(LENGTH / 2);
        // So many bytes, so fast, that the client waits for more; then only the rest of the first
        // body.
        asked.iter().try_for_each(|asked| pieces(conn, asked.stream, first, false))?;
        pieces(conn, asked[0].stream, rest, true)?;
        told.lock().unwrap().recv_timeout(TEST_TIMEOUT).map_err(io::Error::other)?;
        asked[1..].iter().try_for_each(|asked| pieces(conn, asked.stream, rest, true))?;
        conn.drain()
    });
    let items: Vec<_> = (0..STREAMS).map(|n| Ok(item(peer.url(&format!("/{n}"))))).collect();
    let (client, options) = (Client::new(), side_by_side(64 << 20));
    let run = run_reading(&client, single_stage(&defaults()), options, Box::new(items.into_iter()), move |mut pipe| {
        let mut output = vec![0; LENGTH];
        pipe.read_exact(&mut output).unwrap();
        tell.send(()).unwrap();
        pipe.read_to_end(&mut output).unwrap();
        output
    });
    assert!(run.output == body.repeat(STREAMS), "{:?}", run.reports);
}
