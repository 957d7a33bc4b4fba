//! Tests of HTTP/1.1 pipelining: the output is the same at any depth, and no response is lost when
//! a connection breaks.

use crate::common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{FleetRunResult, one_thread, run, single_stage, start_origin};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};

fn pipelined(depth: usize, per_host: usize) -> FleetOptions {
    FleetOptions { pipeline: depth, per_host: Some(per_host), ..one_thread() }
}

fn go(options: FleetOptions, request: &RequestOptions, urls: impl IntoIterator<Item = String>) -> FleetRunResult {
    run(&Client::new(), single_stage(request), options, urls)
}

fn small(count: usize) -> String {
    (0..count).map(|i| format!("small {i}\n")).collect()
}

#[test]
fn pipelined_output_is_the_same_at_any_depth() {
    let origin = start_origin();
    let sizes: Vec<usize> = (0..300).map(|i| if i % 40 == 3 { 400_000 + i } else { i * 31 % 9000 }).collect();
    let expected: Vec<u8> = sizes.iter().flat_map(|&size| origin.pattern().slice(0, size)).collect();
    for (depth, per_host, memory) in [(2, 6, 64 << 20), (8, 6, 64 << 20), (8, 1, 64 << 20), (32, 2, 256 << 10)] {
        let before = origin.connections();
        let options = FleetOptions { max_memory: memory, ..pipelined(depth, per_host) };
        let kinds = ["bytes", "chunked"];
        let urls = sizes.iter().enumerate().map(|(i, size)| origin.url(&format!("/{}/{size}", kinds[i % 2])));
        let run = go(options, &RequestOptions::default(), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed), (300, 0), "{:?}", run.summary().causes);
        assert!(run.output == expected, "{depth} deep");
        let opened = origin.connections() - before;
        // A connection ends with its turn of requests.
        assert!(opened < 100, "{depth} deep: {opened} connections");
    }
}

#[test]
fn pipelined_redirects_and_retries_keep_order() {
    // Redirected and retried requests must not wait behind requests that wait for them in the
    // output.
    let origin = start_origin();
    for memory in [64 << 20, 64 << 10] {
        origin.forget();
        let urls = (0..200).map(|i| match i % 4 {
            0 => origin.url(&format!("/redirect/302?to=/small/{i}")),
            1 => origin.url(&format!("/flaky/1/small/{i}")),
            _ => origin.url(&format!("/small/{i}")),
        });
        let mut request = common::following();
        request.retry = common::retrying(2).retry;
        let options = FleetOptions { max_memory: memory, ..pipelined(8, 2) };
        let run = go(options, &request, urls);
        assert_eq!((run.summary().succeeded, run.summary().failed), (200, 0));
        assert_eq!(String::from_utf8(run.output).unwrap(), small(200));
    }
    // Bodies far larger than the memory, so that each stops until it is first in the output.
    let sizes: Vec<usize> = (0..60).map(|i| 300_000 + i).collect();
    let expected: Vec<u8> = sizes.iter().flat_map(|&size| origin.pattern().slice(0, size)).collect();
    let urls = sizes.iter().enumerate().map(|(i, size)| match i % 3 {
        0 => origin.url(&format!("/redirect/302?to=/bytes/{size}")),
        _ => origin.url(&format!("/bytes/{size}")),
    });
    let run = go(FleetOptions { max_memory: 1 << 18, ..pipelined(8, 2) }, &common::following(), urls);
    assert_eq!(run.summary().succeeded, 60, "{:?}", run.summary().causes);
    assert!(run.output == expected);
}

#[test]
fn post_and_put_are_never_pipelined() {
    for method in ["POST", "PUT"] {
        let server = PipelineServer::start(|_, _| PipelineReply { body: None, close: CloseMode::No });
        let request =
            RequestOptions { method: method.into(), body: Some(b"x=1".as_slice().into()), ..RequestOptions::default() };
        let urls = (0..40).map(|i| server.url(i));
        assert_eq!(go(pipelined(8, 2), &request, urls).summary().succeeded, 40);
        assert_eq!(server.deepest(), 1, "{method}");
    }
}

#[test]
fn server_announcing_close_is_still_pipelined() {
    let server = PipelineServer::start(|_, served| PipelineReply {
        body: None,
        close: if served == 5 { CloseMode::Announced } else { CloseMode::No },
    });
    let run = go(pipelined(8, 1), &RequestOptions::default(), (0..60).map(|i| server.url(i)));
    assert_eq!((run.summary().succeeded, run.summary().failed), (60, 0));
    assert_eq!(String::from_utf8(run.output).unwrap(), small(60));
    // The first URL of the output may have its own connection.
    assert!((12..=13).contains(&server.connections()), "60 requests in fives: {}", server.connections());
    assert!(server.deepest_on_later_connections() > 1);
}

#[test]
fn broken_pipeline_loses_nothing_and_stops_pipelining() {
    for how in [CloseMode::Silent, CloseMode::Reset, CloseMode::Within] {
        // Breaks once, in the middle of a pipeline.
        let broken = AtomicUsize::new(0);
        let server = PipelineServer::start(move |_, served| {
            let breaks = served == 7 && broken.fetch_add(1, Ordering::SeqCst) == 0;
            PipelineReply { body: None, close: if breaks { how } else { CloseMode::No } }
        });
        let run = go(pipelined(8, 1), &common::retrying(1), (0..100).map(|i| server.url(i)));
        let failed = run.summary().failed;
        // The first body of the output may have been delivered in part, and cannot restart.
        assert!(failed <= u64::from(how == CloseMode::Within), "{how:?}: {:?}", run.summary().causes);
        assert_eq!(run.reports.len(), 100);
        if failed == 0 {
            assert_eq!(String::from_utf8(run.output).unwrap(), small(100), "{how:?}");
        }
        // Requests after the break are sent one at a time.
        assert!(server.connections() <= 3, "{how:?}: {}", server.connections());
        assert_eq!(server.deepest_on_later_connections(), 1, "{how:?}");
    }
}

#[test]
fn surplus_response_is_never_used_for_another_url() {
    // The surplus appears after the last expected response, which may take a while.
    let shifts = AtomicUsize::new(0);
    let server = PipelineServer::start(move |_, served| {
        let repeats = served == 5 && shifts.fetch_add(1, Ordering::SeqCst) < 2;
        PipelineReply { body: None, close: if repeats { CloseMode::Repeats } else { CloseMode::No } }
    });
    let run = go(pipelined(8, 2), &RequestOptions::default(), (0..120).map(|i| server.url(i)));
    let lines = String::from_utf8(run.output.clone()).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((run.reports.len(), lines.len()), (120, 120));
    for report in &run.reports {
        let number: usize = report.url.rsplit('/').next().unwrap().parse().unwrap();
        let line = lines[number];
        assert!(report.exit == 56 || report.exit == 0 && line == format!("small {number}"), "{report:?}: {line}");
    }
    // Delivered bytes cannot be fetched again: at most the first body of the output.
    assert!(run.summary().failed <= 2, "{:?}", run.summary().causes);
    // From then on the peer gets one request at a time.
    assert!(server.connections() > 2);
}

#[test]
fn surplus_response_leaves_one_request_for_each_connection() {
    // A surplus response that comes late would answer the next request of a kept connection.
    let shifts = AtomicUsize::new(0);
    let server = PipelineServer::start(move |_, served| {
        let repeats = served == 5 && shifts.fetch_add(1, Ordering::SeqCst) == 0;
        PipelineReply { body: None, close: if repeats { CloseMode::Repeats } else { CloseMode::No } }
    });
    let run = go(pipelined(8, 1), &RequestOptions::default(), (0..40).map(|i| server.url(i)));
    assert_eq!(run.reports.len(), 40);
    assert_eq!(server.deepest_on_later_connections(), 1);
    // Only the first response of a pipeline is accepted at once.
    assert!(server.connections() >= 39, "{}", server.connections());
}

#[test]
fn content_of_a_204_does_not_affect_later_urls() {
    // The content of the 204 stands where the head of the next response should be.
    let server = PipelineServer::start(|_, served| PipelineReply {
        body: None,
        close: if served == 3 { CloseMode::ContentOf204 } else { CloseMode::No },
    });
    let run = go(pipelined(8, 1), &RequestOptions::default(), (0..40).map(|i| server.url(i)));
    // A body that the output has already passed on cannot be fetched again.
    assert!(run.reports.iter().all(|report| report.exit == 0 || report.exit == 56), "{:?}", run.summary().causes);
    assert!(run.summary().failed <= 1, "{:?}", run.summary().causes);
    let lines: Vec<String> = String::from_utf8(run.output).unwrap().lines().map(str::to_owned).collect();
    let sent: Vec<String> = small(40).lines().map(str::to_owned).collect();
    // Only pages that were a 204 are missing.
    assert!(lines.iter().all(|line| sent.contains(line)), "{lines:?}");
    assert!(lines.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{lines:?}");
}

fn number(line: &str) -> usize {
    line.strip_prefix("small ").unwrap().parse().unwrap()
}

#[test]
fn pipelining_survives_closes_after_each_response() {
    for how in [CloseMode::Announced, CloseMode::Silent, CloseMode::Reset] {
        let server = PipelineServer::start(move |_, _| PipelineReply { body: None, close: how });
        let run = go(pipelined(8, 2), &common::retrying(3), (0..60).map(|i| server.url(i)));
        assert_eq!((run.summary().succeeded, run.summary().failed), (60, 0), "{how:?} {:?}", run.summary().causes);
        assert_eq!(String::from_utf8(run.output).unwrap(), small(60), "{how:?}");
    }
}

#[test]
fn silent_server_fails_every_pipelined_request() {
    let server = PipelineServer::start(|_, _| PipelineReply { body: Some(Vec::new()), close: CloseMode::Silent });
    let run = go(pipelined(8, 2), &RequestOptions::default(), (0..50).map(|i| server.url(i)));
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (0, 50, 52));
}

/// The server's treatment of the connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseMode {
    No,
    /// Closes the connection, as the response has announced by `Connection: close`.
    Announced,
    /// Closes the connection after the response, without announcing it.
    Silent,
    /// Resets the connection after the response.
    Reset,
    /// Closes the connection in the middle of the response's body.
    Within,
    /// Keeps the connection open, sends the response twice, and sends later responses slowly.
    Repeats,
    /// Keeps the connection open, and sends the status 204 with content.
    ContentOf204,
}

/// A response of a [`PipelineServer`], and the end of its connection.
struct PipelineReply {
    /// The body of the response; `None` for the line `small N`, where N is the number in the path
    /// of the request. For an empty body, the server sends no response at all, not even a head.
    body: Option<Vec<u8>>,
    close: CloseMode,
}

/// A server that records how many requests it has received but not answered, for each connection.
struct PipelineServer {
    address: SocketAddr,
    /// The maximum number of requests that were received but not answered at the same time, for
    /// each connection.
    depths: Arc<Mutex<Vec<usize>>>,
}

impl PipelineServer {
    fn start(reply: impl Fn(usize, usize) -> PipelineReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let depths: Arc<Mutex<Vec<usize>>> = Arc::default();
        let (seen, reply) = (Arc::clone(&depths), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(0);
                    seen.len() - 1
                };
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                thread::spawn(move || serve(stream.unwrap(), number, &seen, &*reply));
            }
        });
        Self { address, depths }
    }

    fn url(&self, number: usize) -> String {
        format!("http://{}/{number}", self.address)
    }

    fn connections(&self) -> usize {
        self.depths.lock().unwrap().len()
    }

    fn deepest(&self) -> usize {
        self.depths.lock().unwrap().iter().copied().max().unwrap_or(0)
    }

    fn deepest_on_later_connections(&self) -> usize {
        self.depths.lock().unwrap().iter().skip(1).copied().max().unwrap_or(0)
    }
}

/// Answers the requests of a connection in order. It reads all received bytes before each response,
/// so that it can count the requests without a response yet.
fn serve(
    mut stream: TcpStream,
    number: usize,
    seen: &Mutex<Vec<usize>>,
    reply: &dyn Fn(usize, usize) -> PipelineReply,
) {
    let mut ahead = Vec::new();
    let mut buffer = [0; 65_536];
    let mut is_slow = false;
    for served in 1.. {
        let (path, end) = loop {
            if let Some(request) = first_request(&ahead) {
                break request;
            }
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(n) => ahead.extend_from_slice(&buffer[..n]),
            }
        };
        {
            let mut seen = seen.lock().unwrap();
            let waiting = ahead.windows(9).filter(|window| window == b"HTTP/1.1\r").count();
            seen[number] = seen[number].max(waiting);
        }
        ahead.drain(..end);
        let PipelineReply { body, close } = reply(number, served);
        let answers = body.as_ref().is_none_or(|body| !body.is_empty());
        let body = body.unwrap_or_else(|| format!("small {path}\n").into_bytes());
        let field = if close == CloseMode::Announced { "Connection: close\r\n" } else { "" };
        let status = if close == CloseMode::ContentOf204 { "204 No Content" } else { "200 OK" };
        let head = format!("HTTP/1.1 {status}\r\n{field}Content-Length: {}\r\n\r\n", body.len());
        let sent = if close == CloseMode::Within { &body[..1] } else { &body };
        if is_slow {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        if answers && stream.write_all(&[head.as_bytes(), sent].concat()).is_err() {
            return;
        }
        if close == CloseMode::Repeats {
            let _ = stream.write_all(&[head.as_bytes(), sent].concat());
            is_slow = true;
            continue;
        }
        if !matches!(close, CloseMode::No | CloseMode::ContentOf204) {
            if close == CloseMode::Reset {
                // The client must have read the response, because a reset overtakes it.
                thread::sleep(std::time::Duration::from_millis(20));
                socket_linger(&stream);
            } else {
                let _ = stream.shutdown(std::net::Shutdown::Write);
                // Unread bytes would turn the close into a reset.
                while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
            }
            return;
        }
    }
}

fn socket_linger(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO)).unwrap();
}

/// Returns the number in the path of the first request in `bytes`, and the length of that request.
/// Returns `None` if the request is incomplete.
fn first_request(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length: usize =
        head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |length| length.parse().unwrap());
    let path = head.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    (bytes.len() >= end + length).then_some((path, end + length))
}
