//! Requests to each kind of port of the page server, over plain sockets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::*;

const MANY_SECONDS: Duration = Duration::from_secs(60);

fn connect(server: &PageServer, port: usize) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.9", server.port(port))).unwrap();
    stream.set_read_timeout(Some(MANY_SECONDS)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
}

/// Reads a response whose content has `len` bytes. Returns its status line and its content.
fn response(stream: &mut TcpStream, len: usize) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let mut content = vec![0; len];
    stream.read_exact(&mut content).unwrap();
    let head = String::from_utf8(head).unwrap();
    (head.lines().next().unwrap_or_default().to_owned(), content)
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = PageServer::start(vec![PortBehavior::Pages(PageTiming::AT_ONCE)], None).unwrap();
    let mut stream = connect(&server, 0);
    for page in 0..100 {
        ask(&mut stream, &format!("/50000/{page}"));
    }
    for number in 0..100 {
        let (status, content) = response(&mut stream, 50_000);
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(content == page("a.test", &format!("/50000/{number}")), "page {number}");
    }
    let counts = server.counts();
    assert_eq!((counts.connections, counts.requests, counts.pages, counts.refusals), (1, 100, 100, 0));
    assert_eq!(counts.page_bytes, 100 * 50_000);
    assert!(counts.first_request < counts.last_request && counts.last_request <= counts.last_page);
    server.start_run();
    assert_eq!(server.counts(), ServerCounts::default());
}

#[test]
fn requests_over_the_limit_wait_or_get_503() {
    let limited = |overload| PortBehavior::Pages(PageTiming::remote(Duration::from_secs(1), 1, overload));
    let services = vec![limited(OverloadPolicy::Queue), limited(OverloadPolicy::Unavailable)];
    let server = PageServer::start(services, None).unwrap();
    let expected = [("HTTP/1.1 200 OK", 300), ("HTTP/1.1 503 Service Unavailable", 0)];
    for (port, second) in expected.into_iter().enumerate() {
        let mut streams = [connect(&server, port), connect(&server, port)];
        for stream in &mut streams {
            ask(stream, "/300/1");
        }
        assert_eq!(response(&mut streams[0], 300).0, "HTTP/1.1 200 OK");
        assert_eq!(response(&mut streams[1], second.1).0, second.0);
    }
    assert_eq!((server.counts().pages, server.counts().refusals), (3, 1));
}

#[test]
fn closed_connection_frees_its_slot_for_queued_request() {
    let timing = PageTiming::remote(Duration::from_millis(100), 1, OverloadPolicy::Queue);
    let server = PageServer::start(vec![PortBehavior::Pages(timing)], None).unwrap();
    let mut streams = vec![connect(&server, 0), connect(&server, 0), connect(&server, 0)];
    for stream in &mut streams {
        ask(stream, "/300/1");
    }
    // The last request is served regardless of whether the others are in transit, served or queued.
    streams.truncate(2);
    let mut last = connect(&server, 0);
    ask(&mut last, "/300/2");
    drop(streams);
    assert_eq!(response(&mut last, 300).1, page("a.test", "/300/2"));
}

#[test]
fn silent_and_resetting_ports_send_no_response() {
    let services = vec![PortBehavior::Silent, PortBehavior::ResetAccepted, PortBehavior::ResetRequest];
    let server = PageServer::start(services, None).unwrap();
    let mut silent = connect(&server, 0);
    ask(&mut silent, "/300/1");
    silent.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(connect(&server, 1).read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let mut resetting = connect(&server, 2);
    ask(&mut resetting, "/300/1");
    assert_eq!(resetting.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!((server.counts().connections, server.counts().pages), (3, 0));
}
