//! Tests of servers that limit requests: per connection, in parallel, or for some time. Every
//! request succeeds, and few are sent in vain.

use crate::common;
use crate::support::http2_replies;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use common::{DRIVERS, FleetRunResult, one_thread, retrying, run, single_stage, with_prior_knowledge};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};
use http2_replies::{MAX_CONCURRENT_STREAMS, answer, answer_all, defaults};
use testkit::frames::{H2Peer, H2ScriptConnection, goaway, settings};

const MANY: usize = 2000;

/// Fetches the paths `/0`, `/1` and so on by a fleet, and asserts that the body of each response is
/// its path.
fn fetch_many(client: &Client, options: &RequestOptions, fleet: FleetOptions, base: &str) {
    let FleetRunResult { result, output, reports } =
        run(client, single_stage(options), fleet, (0..MANY).map(|n| format!("{base}/{n}")));
    let summary = result.expect("the run goes to its end");
    assert_eq!((summary.succeeded, summary.failed), (MANY as u64, 0), "{:?}", summary.causes);
    let expected: String = (0..MANY).map(|n| format!("/{n}")).collect();
    assert!(output == expected.as_bytes(), "{reports:?}");
}

/// Returns a copy of the options without retries. A request that the server has not processed is
/// still sent again, since that does not count as a retry.
fn once(mut options: RequestOptions) -> RequestOptions {
    options.retry.max = 0;
    options
}

/// Answers `count` requests on a connection that allows `at_once` concurrent streams, one request
/// at a time. If `says` is true, announces the last answer by a GOAWAY; otherwise, closes the
/// connection without notice.
fn answer_few(conn: &mut H2ScriptConnection, at_once: u32, count: usize, says: bool) -> io::Result<()> {
    conn.greet(&[(MAX_CONCURRENT_STREAMS, at_once)])?;
    for n in 1..=count {
        let asked = conn.request()?;
        if n == count && says {
            conn.send(goaway(asked.stream, 0))?;
        }
        answer(conn, &asked)?;
    }
    if says { conn.drain() } else { Ok(()) }
}

#[test]
fn limited_http2_connections_waste_few_requests() {
    for (at_once, count, says) in
        [(100, 1, true), (1, 3, true), (100, 3, true), (100, 20, true), (1, 3, false), (100, 20, false)]
    {
        let peer = H2Peer::start(move |_, conn| answer_few(conn, at_once, count, says));
        let client = Client::new();
        // A server that closes without GOAWAY may lose sent responses.
        let options = if says { once(defaults()) } else { with_prior_knowledge(retrying(3)) };
        fetch_many(&client, &options, one_thread(), &peer.url(""));
        let sent = client.stats().totals().requests as usize;
        let most = if says { MANY * 3 / 2 } else { MANY * 2 };
        assert!(sent <= most, "{at_once} at once, {count} a connection, announced: {says}: {sent}");
        if says {
            assert_eq!(peer.connections(), MANY.div_ceil(count), "each connection is used up");
        }
    }
}

#[test]
fn next_connection_gets_more_requests_after_early_close() {
    let peer = H2Peer::start(|number, conn| match number {
        0 => answer_few(conn, 100, 1, true),
        _ => {
            conn.greet(&[])?;
            answer_all(conn)
        }
    });
    let client = Client::new();
    fetch_many(&client, &once(defaults()), one_thread(), &peer.url(""));
    assert_eq!(peer.connections(), 2);
    assert!(client.stats().totals().requests as usize <= MANY + 100);
}

#[test]
fn lost_requests_are_sent_on_one_new_connection() {
    let peer = H2Peer::start(|number, conn| {
        conn.greet(&[])?;
        if number > 0 {
            return answer_all(conn);
        }
        let asked = (0..30).map(|_| conn.request()).collect::<io::Result<Vec<_>>>()?;
        answer(conn, &asked[0])
    });
    let run =
        run(&Client::new(), single_stage(&once(defaults())), one_thread(), (0..30).map(|n| peer.url(&format!("/{n}"))));
    assert_eq!(run.summary().failed, 0, "{:?}", run.summary().causes);
    assert_eq!((peer.connections(), peer.requests().len()), (2, 59));
}

/// Checks that the client waits for a server that begins with a limit of 0 streams, raises the
/// limit, and lowers it a few times.
#[test]
fn client_waits_for_a_zero_stream_limit() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[(MAX_CONCURRENT_STREAMS, 0)])?;
        conn.send(settings(&[(MAX_CONCURRENT_STREAMS, 100)]))?;
        for n in 1.. {
            let asked = conn.request()?;
            answer(conn, &asked)?;
            if n % (MANY / 4) == 0 {
                for limit in [0, 1, 100] {
                    conn.send(settings(&[(MAX_CONCURRENT_STREAMS, limit)]))?;
                }
            }
        }
        Ok(())
    });
    fetch_many(&Client::new(), &once(defaults()), one_thread(), &peer.url(""));
    assert_eq!((peer.connections(), peer.requests().len()), (1, MANY));
}

/// Checks a graceful shutdown by the server (RFC 9113 section 6.8). The server sends a GOAWAY with
/// the highest possible stream ID, and then a GOAWAY with the ID of the last stream that the server
/// has read.
#[test]
fn graceful_goaway_loses_no_request() {
    const TAKES: usize = 100;
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        for n in 1..=TAKES {
            let asked = conn.request()?;
            if n == TAKES {
                conn.send([goaway(0x7fff_ffff, 0), goaway(asked.stream, 0)].concat())?;
            }
            answer(conn, &asked)?;
        }
        conn.drain()
    });
    let client = Client::new();
    fetch_many(&client, &once(defaults()), one_thread(), &peer.url(""));
    assert_eq!(peer.connections(), MANY / TAKES);
    assert!(client.stats().totals().requests as usize <= MANY * 3 / 2);
}

#[test]
fn connection_without_any_answer_is_replaced_once() {
    // The GOAWAY comes at once, or after the first request.
    for reads in [false, true] {
        let start = || {
            H2Peer::start(move |number, conn| {
                conn.greet(&[])?;
                if number > 0 {
                    return answer_all(conn);
                }
                if reads {
                    conn.request()?;
                }
                conn.send(goaway(0, 0))?;
                conn.drain()
            })
        };
        let peer = start();
        fetch_many(&Client::new(), &once(defaults()), one_thread(), &peer.url(""));
        assert_eq!(peer.connections(), 2, "{reads}");
        for driver in DRIVERS {
            let peer = start();
            let options = RequestOptions { method: "POST".into(), ..once(defaults()) };
            assert_eq!(driver.get(&Client::new(), &peer.url("/x"), &options).ok(), b"/x", "{driver:?} {reads}");
            assert_eq!(peer.connections(), 2, "{driver:?} {reads}");
        }
    }
}

#[test]
fn connection_close_after_settings_costs_one_retry() {
    let peer = H2Peer::start(|number, conn| {
        conn.greet(&[])?;
        if number > 0 { answer_all(conn) } else { Ok(()) }
    });
    fetch_many(&Client::new(), &with_prior_knowledge(retrying(1)), one_thread(), &peer.url(""));
    assert!(peer.connections() <= 2, "{}", peer.connections());
}

#[test]
fn limited_pipelined_connections_waste_few_requests() {
    for count in [2, 3, 20] {
        let server = ClosingServer::start(count, "Connection: close\r\n");
        let client = Client::new();
        let fleet = FleetOptions { pipeline: 32, per_host: Some(2), ..one_thread() };
        fetch_many(&client, &once(RequestOptions::default()), fleet, &server.url());
        let sent = client.stats().totals().requests as usize;
        assert!(sent <= MANY * 3 / 2, "{count} a connection: {sent}");
        assert!(server.connections() <= MANY.div_ceil(count) * 11 / 10, "{}", server.connections());
    }
}

/// An HTTP/1.1 server that closes each connection after a given number of responses.
struct ClosingServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl ClosingServer {
    /// Starts a server that closes each connection after `count` responses. The last response on a
    /// connection contains the field line `last`.
    fn start(count: usize, last: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<AtomicUsize> = Arc::default();
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counter.fetch_add(1, SeqCst);
                thread::spawn(move || Self::serve(&mut stream.unwrap(), count, last));
            }
        });
        Self { address, connections }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    fn serve(stream: &mut TcpStream, count: usize, last: &str) -> io::Result<()> {
        let mut ahead = Vec::new();
        for n in 1..=count {
            let path = path_of_next(stream, &mut ahead)?;
            let field = if n == count { last } else { "" };
            write!(stream, "HTTP/1.1 200 OK\r\n{field}Content-Length: {}\r\n\r\n{path}", path.len())?;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // Unread bytes would turn the close into a reset.
        io::copy(stream, &mut io::sink()).map(drop)
    }
}

/// Reads the next request, which has no body, from the connection, and returns its path. `ahead`
/// stores the bytes of further requests.
fn path_of_next(stream: &mut TcpStream, ahead: &mut Vec<u8>) -> io::Result<String> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = ahead.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = ahead.drain(..end + 4).collect();
            return Ok(String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned());
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => ahead.extend_from_slice(&buffer[..n]),
        }
    }
}
