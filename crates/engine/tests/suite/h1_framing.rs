//! Tests of violations of HTTP/1 framing: both drivers refuse them, and never report success.

use crate::common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use common::{DRIVERS, OK, TEST_TIMEOUT, following, start_origin, trusting_ca};
use haul::transfer_facts::TransferPhase;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

/// Asserts that the response that `script` sends is refused, and that its connection is not reused:
/// the next request opens a second connection, which serves a valid response. `delivered`, if
/// given, is the part of the body that is delivered before the error.
fn assert_refused(name: &str, script: &[ScriptStep], kind: ErrorKind, exit: u8, delivered: Option<&str>) {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![script.to_vec(), vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
        let client = Client::new();
        let got = driver.get(&client, &peer.url("/"), &RequestOptions::default());
        assert_eq!((got.kind, got.exit), (Some(kind), exit), "{driver:?} {name}: {}", got.message);
        if let Some(delivered) = delivered {
            assert_eq!(String::from_utf8_lossy(&got.body), delivered, "{driver:?} {name}");
        }
        let got = driver.get(&client, &peer.url("/"), &RequestOptions::default());
        assert_eq!(got.ok(), b"ok", "{driver:?} {name}: afterwards");
        assert_eq!(peer.connections(), 2, "{driver:?} {name}: the connection was used again");
    }
}

/// Asserts that `reply` is refused ([`assert_refused`]) if the connection stays open after it.
fn assert_reply_refused(reply: &str, kind: ErrorKind, exit: u8, delivered: Option<&str>) {
    assert_refused(
        reply,
        &[ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd],
        kind,
        exit,
        delivered,
    );
}

/// Asserts that `reply` is refused ([`assert_refused`]) if the connection closes after it.
fn assert_cut_reply_refused(reply: &str, kind: ErrorKind, exit: u8, delivered: Option<&str>) {
    assert_refused(reply, &[ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Close], kind, exit, delivered);
}

#[test]
fn invalid_content_lengths_are_refused() {
    for length in ["42, 30", "42,30", "-1", "+5", "42s", "0x10", " ", "", "18446744073709551616", "1 2"] {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello");
        assert_reply_refused(&reply, ErrorKind::Protocol, 8, Some(""));
    }
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!";
    assert_reply_refused(two, ErrorKind::Protocol, 8, Some(""));
}

#[test]
fn invalid_chunks_are_refused() {
    let chunks = [
        ("zz\r\nhello\r\n0\r\n\r\n", ""),
        ("-5\r\nhello\r\n0\r\n\r\n", ""),
        (" 5\r\nhello\r\n0\r\n\r\n", ""),
        ("0x5\r\nhello\r\n0\r\n\r\n", ""),
        ("10000000000000005\r\nhello\r\n0\r\n\r\n", ""),
        ("5\r\nhelloworld\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\n\r\n0\r\n\r\n", "hello"),
    ];
    for (body, delivered) in chunks {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_reply_refused(&reply, ErrorKind::Receive, 56, Some(delivered));
    }
}

#[test]
fn unsupported_transfer_codings_are_refused() {
    for coding in ["chunked, chunked", "gzip, chunked", "gzip", "chunked;q=1", "xchunked"] {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        assert_reply_refused(&reply, ErrorKind::ContentCoding, 61, Some(""));
    }
}

#[test]
fn transfer_coding_requested_by_te_is_decoded() {
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
    let reply = [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"[..],
        format!("{:x}\r\n", gzip.len()).as_bytes(),
        gzip,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send(&reply[..]),
            ScriptStep::ReadHead,
            ScriptStep::send(OK),
        ]]);
        let client = Client::new();
        let fields = vec![("TE".to_owned(), b"gzip".to_vec()), ("Connection".to_owned(), b"TE".to_vec())];
        let got = driver.get(&client, &peer.url("/"), &RequestOptions { fields, ..RequestOptions::default() });
        assert_eq!(got.ok(), b"hello", "{driver:?}");
        let got = driver.get(&client, &peer.url("/"), &RequestOptions::default());
        assert_eq!((got.ok(), peer.connections()), (&b"ok"[..], 1), "{driver:?}");
    }
}

#[test]
fn malformed_chunk_lines_are_tolerated_but_close_the_connection() {
    for (coding, body) in [
        ("chunked", "5 \r\nhello\r\n0\r\n\r\n"),
        ("chunked", "5\nhello\n0\n\n"),
        ("identity, chunked", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n{body}");
        assert_delivered_and_closed(&reply);
    }
}

#[test]
fn chunked_overrides_content_length_and_closes_the_connection() {
    assert_delivered_and_closed(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
}

/// Asserts that the body `hello` of `reply` is delivered, and that the next request uses a new
/// connection.
fn assert_delivered_and_closed(reply: &str) {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd],
            vec![ScriptStep::ReadHead, ScriptStep::send(OK)],
        ]);
        let client = Client::new();
        for body in ["hello", "ok"] {
            let got = driver.get(&client, &peer.url("/"), &RequestOptions::default());
            assert_eq!(got.ok(), body.as_bytes(), "{driver:?} {reply:?}");
        }
        assert_eq!(peer.connections(), 2, "{driver:?} {reply:?}");
    }
}

#[test]
fn truncated_bodies_are_partial_body_errors() {
    assert_cut_reply_refused(
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        ErrorKind::PartialBody,
        18,
        Some("hello"),
    );
    assert_cut_reply_refused("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", ErrorKind::PartialBody, 18, Some(""));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    assert_cut_reply_refused(chunked, ErrorKind::PartialBody, 18, Some("hello"));
    assert_cut_reply_refused(&format!("{chunked}0\r\n"), ErrorKind::PartialBody, 18, Some("hello"));
    assert_cut_reply_refused(&format!("{chunked}0\r\nX: y\r\n"), ErrorKind::PartialBody, 18, Some("hello"));
}

#[test]
fn truncated_heads_are_errors() {
    assert_refused("nothing", &[ScriptStep::ReadHead, ScriptStep::Close], ErrorKind::EmptyReply, 52, Some(""));
    assert_refused("reset", &[ScriptStep::ReadHead, ScriptStep::Reset], ErrorKind::Receive, 56, Some(""));
    assert_cut_reply_refused("HTTP/1.1 200 OK\r\nContent-Le", ErrorKind::Receive, 56, Some(""));
    assert_cut_reply_refused("HTTP/1.1 103 Early Hints\r\n\r\n", ErrorKind::EmptyReply, 52, Some(""));
}

#[test]
fn reset_does_not_end_a_body_successfully() {
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked", "Connection: close"] {
        let reply = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhello");
        let script = [ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Await(1), ScriptStep::Reset];
        for driver in DRIVERS {
            let peer = H1Peer::start(vec![script.to_vec()]);
            // The reset follows the sent reply; whether the client has read it by then does not
            // matter.
            peer.release();
            let got = driver.get(&Client::new(), &peer.url("/"), &RequestOptions::default());
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Receive), 56), "{driver:?} {head}: {}", got.message);
        }
    }
}

#[test]
fn malformed_heads_are_refused() {
    // The first line is not HTTP; curl reports the same.
    for reply in
        ["SSH-2.0-OpenSSH_9.6\r\n", "<html>hello</html>\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n"]
    {
        assert_reply_refused(reply, ErrorKind::UnsupportedScheme, 1, Some(""));
    }
    for reply in [
        "HTTP/2 200\r\n\r\n",
        "HTTP/3.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        assert_reply_refused(reply, ErrorKind::Protocol, 8, Some(""));
    }
}

#[test]
fn endless_heads_and_trailers_are_refused() {
    let endless = |start: &str, more: &str| {
        [ScriptStep::ReadHead, ScriptStep::send(start), ScriptStep::SendRepeatedly(more.repeat(100).into(), 1 << 20)]
    };
    let head = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (name, script) in [
        ("interim", endless("", "HTTP/1.1 103 Early Hints\r\n\r\n")),
        ("fields", endless(head, "X-Filler: 0123456789\r\n")),
        ("one field", endless(&format!("{head}X: "), "0123456789")),
        ("status line", endless("HTTP/1.1 200 ", "very ok ")),
        ("trailers", endless(&format!("{chunked}0\r\n"), "X-Filler: 0123456789\r\n")),
        ("chunk line", endless(&format!("{chunked}5;"), "extension")),
        ("extensions", endless(chunked, &format!("1;{}\r\nx\r\n", "e".repeat(200)))),
    ] {
        assert_refused(name, &script, ErrorKind::Receive, 56, None);
    }
}

#[test]
fn bytes_on_an_idle_connection_close_the_connection() {
    for driver in DRIVERS {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (go, may_go) = channel::<()>();
        let (sent, is_sent) = channel();
        let serving = thread::spawn(move || {
            let answer = |stream: &mut TcpStream| {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                stream.write_all(OK.as_bytes()).unwrap();
            };
            let (mut first, _) = listener.accept().unwrap();
            answer(&mut first);
            may_go.recv().unwrap();
            first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").unwrap();
            sent.send(()).unwrap();
            let (mut second, _) = listener.accept().unwrap();
            answer(&mut second);
        });
        let client = Client::new();
        assert_eq!(driver.get(&client, &url, &RequestOptions::default()).ok(), b"ok");
        // On loopback, written bytes are readable when the call returns.
        go.send(()).unwrap();
        is_sent.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(driver.get(&client, &url, &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        serving.join().unwrap();
    }
}

#[test]
fn bytes_after_a_response_close_the_connection() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::send(format!("{OK}HTTP/1.1 200 OK\r\n\r\n")), ScriptStep::ReadToEnd],
            vec![ScriptStep::ReadHead, ScriptStep::send(OK)],
        ]);
        let client = Client::new();
        for _ in 0..2 {
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        }
        assert_eq!(peer.connections(), 2, "{driver:?}");
    }
}

#[test]
fn tls_body_until_close_needs_close_notify() {
    let identity = TestCertificates::generate();
    let (options, _ca) = trusting_ca(identity.ca_pem());
    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";
    let known = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    for (reply, end, expected) in [
        (until_close, ScriptStep::Close, 0),
        (until_close, ScriptStep::Cut, 56),
        (known, ScriptStep::Cut, 0),
        (short, ScriptStep::Close, 18),
        (short, ScriptStep::Cut, 18),
    ] {
        for driver in DRIVERS {
            let script = vec![ScriptStep::ReadHead, ScriptStep::send(reply), end.clone()];
            let peer = H1Peer::start_tls(vec![script], &identity, &[b"http/1.1"]);
            let url = format!("https://localhost:{}/", peer.addr().port());
            let got = driver.get(&Client::new(), &url, &options);
            assert_eq!((got.exit, &got.body[..]), (expected, &b"hello"[..]), "{driver:?} {reply:?} {end:?}");
        }
    }
}

#[test]
fn unrequested_206_is_never_requested_again() {
    for fields in ["", "Content-Range: bytes 5-6/9\r\n", "Content-Range: 0-1/9\r\n"] {
        let part = format!("HTTP/1.1 206 Partial Content\r\n{fields}Content-Length: 2\r\n\r\nok");
        for driver in DRIVERS {
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(&part), ScriptStep::Close]);
            let got = driver.get(&Client::new(), &peer.url("/"), &RequestOptions::default());
            assert_eq!((got.ok(), got.status), (&b"ok"[..], 206), "{driver:?} {fields}");
            assert_eq!(peer.connections(), 1, "{driver:?} {fields}");
            let options = RequestOptions { fail: true, ..RequestOptions::default() };
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Range), 33), "{driver:?} {fields}");
            assert!(got.message.contains("asked for no range, the server sent "), "{}", got.message);
            assert_eq!(peer.connections(), 2, "{driver:?} {fields}");
        }
    }
}

#[test]
fn failed_transfer_reports_its_phase() {
    let origin = start_origin();
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::Close],
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
                ScriptStep::Close,
            ],
        ]);
        for (url, phase) in [
            ("http://127.0.0.1:1/".to_owned(), TransferPhase::Connect),
            (peer.url("/closes"), TransferPhase::Wait),
            (peer.url("/breaks"), TransferPhase::Receive),
        ] {
            let got = driver.get(&Client::new(), &origin.url(&format!("/redirect/302?to={url}")), &following());
            assert_eq!((got.facts.redirects, got.facts.phase), (1, phase), "{driver:?} {}", got.message);
            assert_ne!(got.exit, 0);
        }
    }
}
