//! Tests of hostile HTTP/2 peers: the client ends with the right error after a bounded number of
//! frames, and never reports success. If the whole connection is at fault, its other transfers
//! fail, too. If only a stream is at fault, they continue.

use crate::common;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use common::{DRIVERS, item, one_thread, run_reading, single_stage, with_prior_knowledge};
use haul::{Client, RequestOptions};
use testkit::frames::{
    Frame, H2Peer, H2ScriptConnection, block, continuation, data, frame, goaway, headers, headers_open, ping, rst,
    settings, window_update,
};

const OK: (&str, &str) = (":status", "200");
const FOREVER: u64 = 200_000;

/// Starts a peer that reads the request on HTTP/2 stream 1, and then attacks the client by calling
/// `worst`.
fn after_request(worst: impl Fn(&mut H2ScriptConnection) -> io::Result<()> + Send + Sync + 'static) -> H2Peer {
    H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        conn.request()?;
        worst(conn)?;
        conn.drain()
    })
}

/// Asserts for both drivers that a transfer from `peer` ends with the exit code `exit`, that the
/// error message contains `says`, and that exactly `delivered` is delivered.
#[track_caller]
fn assert_ends(what: &str, peer: &H2Peer, exit: u8, says: &str, delivered: &[u8]) {
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert_eq!(got.exit, exit, "{what}, {driver:?}: {}", got.message);
        assert!(got.message.contains(says), "{what}, {driver:?}: {}", got.message);
        assert_eq!(got.body, delivered, "{what}, {driver:?}");
    }
}

#[test]
fn frame_floods_end_the_connection() {
    const PAD: &[u8] = &[0; 8];
    for (what, kind, flags, stream, payload, says) in [
        ("PING", Frame::PING, 0, 0, PAD, "PING"),
        ("SETTINGS", Frame::SETTINGS, 0, 0, &[], "SETTINGS"),
        ("empty DATA", Frame::DATA, 0, 1, &[], "DATA"),
        ("WINDOW_UPDATE", Frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1], "WINDOW_UPDATE"),
        ("PRIORITY", Frame::PRIORITY, 0, 1, &[0, 0, 0, 0, 1], "PRIORITY"),
        ("GOAWAY", Frame::GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0], "GOAWAY"),
        ("unknown", 0xee, 0, 1, PAD, "unknown"),
    ] {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            conn.send(headers(1, false, &[OK]))?;
            // The frames sent before the client closed; many of them wait in sockets.
            counted.store(conn.flood(kind, flags, stream, payload, FOREVER), SeqCst);
            Ok(())
        });
        assert_ends(what, &peer, 16, says, b"");
        assert!(sent.load(SeqCst) < FOREVER, "{what}: it was taken to the end");
    }
}

#[test]
fn endless_header_block_ends_the_connection() {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        conn.request()?;
        conn.send(headers_open(1, &block(&[OK])))?;
        counted.store(conn.flood(Frame::CONTINUATION, 0, 1, &[], FOREVER), SeqCst);
        Ok(())
    });
    assert_ends("empty CONTINUATION", &peer, 16, "CONTINUATION", b"");
    assert!(sent.load(SeqCst) < FOREVER);
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        conn.request()?;
        conn.send(headers_open(1, &block(&[OK])))?;
        let field = block(&[("x-a", &"b".repeat(10_000))]);
        counted_flood(conn, &field)
    });
    assert_ends("full CONTINUATION", &peer, 16, "limit", b"");
}

fn counted_flood(conn: &mut H2ScriptConnection, field: &[u8]) -> io::Result<()> {
    let sent = conn.flood(Frame::CONTINUATION, 0, 1, field, FOREVER);
    if sent < FOREVER { Ok(()) } else { Err(io::Error::other("it was taken to the end")) }
}

#[test]
fn hpack_bomb_is_refused() {
    // One field of 4,000 bytes in the table, then referenced ten thousand times by one byte each.
    let peer = after_request(|conn| {
        let mut bomb = vec![0x88, 0x40, 1, b'x', 127];
        let rest = 4_000 - 127;
        bomb.extend([(rest & 127) as u8 | 128, (rest >> 7) as u8]);
        bomb.extend([b'y'; 4_000]);
        bomb.extend([0xbe; 10_000]);
        conn.send(headers_open(1, &[]))?;
        conn.send(continuation(1, true, &bomb))
    });
    assert_ends("HPACK bomb", &peer, 16, "limit", b"");
}

#[test]
fn endless_interim_responses_are_refused() {
    let peer = after_request(|conn| {
        let interim = block(&[(":status", "103"), ("link", "</a>")]);
        let sent = conn.flood(Frame::HEADERS, Frame::END_HEADERS, 1, &interim, FOREVER);
        if sent < FOREVER { Ok(()) } else { Err(io::Error::other("it was taken to the end")) }
    });
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert!(matches!(got.exit, 16 | 92), "{driver:?}: {} {}", got.exit, got.message);
        assert!(got.message.contains("limit"), "{}", got.message);
    }
}

#[test]
fn protocol_violations_end_the_connection() {
    type PeerAction = fn(&mut H2ScriptConnection) -> io::Result<()>;
    let cases: [(&str, PeerAction, &str); 22] = [
        ("a window above 2^31-1", |conn| conn.send(window_update(0, 0x7fff_ffff)), "window"),
        ("a window raised by nothing", |conn| conn.send(window_update(0, 0)), "nothing"),
        ("a push", |conn| conn.send(frame(Frame::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82])), "push"),
        ("DATA on stream 0", |conn| conn.send(data(0, false, b"x")), "stream 0"),
        ("HEADERS on stream 0", |conn| conn.send(headers(0, true, &[OK])), "stream 0"),
        ("PING on a stream", |conn| conn.send(frame(Frame::PING, 0, 1, &[0; 8])), ""),
        ("SETTINGS on a stream", |conn| conn.send(frame(Frame::SETTINGS, 0, 1, &[])), ""),
        ("GOAWAY on a stream", |conn| conn.send(frame(Frame::GOAWAY, 0, 1, &[0; 8])), ""),
        ("PING of seven bytes", |conn| conn.send(frame(Frame::PING, 0, 0, &[0; 7])), "length"),
        ("SETTINGS of seven bytes", |conn| conn.send(frame(Frame::SETTINGS, 0, 0, &[0; 7])), "length"),
        ("RST_STREAM of three bytes", |conn| conn.send(frame(Frame::RST_STREAM, 0, 1, &[0; 3])), "length"),
        ("a frame above the limit", |conn| conn.send(data(1, false, &vec![0; 100_000])), "length"),
        ("a window setting above 2^31-1", |conn| conn.send(settings(&[(4, 1 << 31)])), "setting"),
        ("a frame size below the least", |conn| conn.send(settings(&[(5, 100)])), "setting"),
        ("push switched on", |conn| conn.send(settings(&[(2, 1)])), ""),
        ("an even stream", |conn| conn.send(headers(2, true, &[OK])), "never opened"),
        ("a stream never opened", |conn| conn.send(headers(99, true, &[OK])), "never opened"),
        ("CONTINUATION of nothing", |conn| conn.send(continuation(1, true, &[])), "continuation"),
        (
            "PING within a block",
            |conn| conn.send([headers_open(1, &[]), ping([0; 8])].concat()),
            "within a header block",
        ),
        (
            "an HPACK index beyond the table",
            |conn| conn.send(frame(Frame::HEADERS, 5, 1, &[0xff, 0xff, 0x7f])),
            "header",
        ),
        ("a cut HPACK block", |conn| conn.send(frame(Frame::HEADERS, 5, 1, &[0x40, 5, b'a'])), "header"),
        (
            "padding above the payload",
            |conn| {
                conn.send(headers(1, false, &[OK]))?;
                conn.send(frame(Frame::DATA, Frame::PADDED, 1, &[200, 0, 0]))
            },
            "padding",
        ),
    ];
    for (what, worst, says) in cases {
        assert_ends(what, &after_request(worst), 16, says, b"");
    }
}

#[test]
fn data_beyond_the_window_ends_the_connection() {
    // The reader has stopped, so the window stays closed, but the peer continues to send.
    const FRAME: usize = 16_000;
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        conn.request()?;
        conn.send(headers(1, false, &[OK]))?;
        counted.store(conn.flood(Frame::DATA, 0, 1, &[b'x'; FRAME], FOREVER), SeqCst);
        Ok(())
    });
    let (watched, items) = (Arc::clone(&sent), vec![Ok(item(peer.url("/")))]);
    let options = with_prior_knowledge(RequestOptions::default());
    let run = run_reading(
        &Client::new(),
        single_stage(&options),
        one_thread(),
        Box::new(items.into_iter()),
        move |mut pipe| {
            while watched.load(SeqCst) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let mut output = Vec::new();
            pipe.read_to_end(&mut output).unwrap();
            output
        },
    );
    assert_eq!(run.exits()[0].1, 16, "{}", run.reports[0].message);
    assert!(run.reports[0].message.contains("more than the window allowed"), "{}", run.reports[0].message);
    // The pipe holds 1 MiB, the window 1 MiB, and a read was in progress.
    assert!(run.output.len() <= 3 << 20 && run.output.iter().all(|&byte| byte == b'x'), "{}", run.output.len());
    assert!(sent.load(SeqCst) < FOREVER, "it was taken to the end");
}

#[test]
fn non_http2_response_is_named_in_the_error() {
    for (what, bytes, says) in [
        ("HTTP/1.1", &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], "HTTP/1"),
        ("noise", &b"220 mail.example ESMTP ready for you\r\n"[..], "not HTTP/2"),
        ("no SETTINGS first", &b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0"[..], ""),
    ] {
        let peer = H2Peer::start(move |_, conn| {
            conn.preface()?;
            conn.send(bytes)?;
            conn.drain()
        });
        assert_ends(what, &peer, 16, says, b"");
    }
}

#[test]
fn malformed_http2_responses_end_their_stream() {
    type ResponseFields = &'static [(&'static str, &'static str)];
    let cases: [(&str, ResponseFields); 14] = [
        ("no status", &[("content-length", "0")]),
        ("two", &[OK, OK]),
        ("a late one", &[("a", "b"), OK]),
        ("a request's", &[OK, (":path", "/")]),
        ("an unknown one", &[OK, (":x", "/")]),
        ("no number", &[(":status", "abc")]),
        ("101", &[(":status", "101")]),
        ("upper case", &[OK, ("Content-Type", "x")]),
        ("Connection", &[OK, ("connection", "close")]),
        ("Transfer-Encoding", &[OK, ("transfer-encoding", "chunked")]),
        ("CR and LF", &[OK, ("a", "b\r\nset-cookie: c=d")]),
        ("NUL", &[OK, ("a", "b\0c")]),
        ("two lengths", &[OK, ("content-length", "1"), ("content-length", "2")]),
        ("no length", &[OK, ("content-length", "-1")]),
    ];
    for (what, fields) in cases {
        let peer = after_request(move |conn| {
            conn.send(headers(1, false, fields))?;
            conn.send(data(1, true, b"x"))
        });
        assert_ends(what, &peer, 92, "server sent", b"");
        assert!(peer.saw(|_, frame| frame.kind == Frame::RST_STREAM), "{what}: the server is told");
    }
}

#[test]
fn content_length_mismatch_is_an_error() {
    // A body that ends early is delivered as far as it came; a frame beyond the end is not.
    let cases =
        [("short", "10", &b"hello"[..], &b"abchello"[..]), ("long", "6", b"hello", b"abc"), ("none", "4", b"", b"abc")];
    for (what, length, body, got) in cases {
        let peer = after_request(move |conn| {
            conn.send(headers(1, false, &[OK, ("content-length", length)]))?;
            conn.send(data(1, false, b"abc"))?;
            conn.send(data(1, true, body))
        });
        assert_ends(what, &peer, 92, "announced", got);
    }
    let peer = after_request(|conn| conn.send(headers(1, true, &[OK, ("content-length", "3")])));
    assert_ends("a head alone", &peer, 92, "announced", b"");
}

#[test]
fn frames_in_wrong_order_are_refused() {
    let peer = after_request(|conn| conn.send(data(1, true, b"early")));
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert!(matches!(got.exit, 16 | 92) && got.body.is_empty(), "{driver:?}: {} {}", got.exit, got.message);
    }
    let peer = after_request(|conn| {
        conn.send(headers(1, false, &[OK]))?;
        conn.send(data(1, false, b"abc"))?;
        conn.send(headers(1, false, &[("x", "y")]))
    });
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert!(matches!(got.exit, 16 | 92) && got.body == b"abc", "{driver:?}: {} {}", got.exit, got.message);
    }
}

#[test]
fn endless_goaways_and_resets_end_with_an_error() {
    // Each connection announces at once that it processed nothing.
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        conn.request()?;
        conn.send(goaway(0, 0))?;
        conn.drain()
    });
    for driver in DRIVERS {
        let before = peer.connections();
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert_eq!(got.exit, 92, "{driver:?}: {}", got.message);
        assert!(peer.connections() - before <= 5, "{}", peer.connections());
    }
    // Rapid reset by the server: streams that were reset are reset again.
    let peer = after_request(|conn| {
        conn.send(rst(1, 8))?;
        let sent = conn.flood(Frame::RST_STREAM, 0, 1, &[0, 0, 0, 8], FOREVER);
        if sent < FOREVER { Ok(()) } else { Err(io::Error::other("it was taken to the end")) }
    });
    assert_ends("RST_STREAM", &peer, 92, "CANCEL", b"");
}

#[test]
fn connection_close_after_preface_is_an_error() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| conn.preface());
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert!(matches!(got.exit, 52 | 56), "{driver:?}: {} {}", got.exit, got.message);
        assert!(peer.connections() <= 5);
    }
}

#[test]
fn request_waiting_for_a_stream_obeys_max_time() {
    // The peer lowers its stream limit to 0 before its first response, so later requests wait on
    // the open connection.
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(settings(&[(3, 0)]))?;
        conn.send(headers(asked.stream, true, &[OK]))?;
        conn.drain()
    });
    let client = Client::new();
    let mut options = with_prior_knowledge(RequestOptions::default());
    options.max_time = Some(std::time::Duration::from_secs(1));
    let urls = |from: usize, to: usize| (from..to).map(|n| peer.url(&format!("/{n}"))).collect::<Vec<_>>();
    let fleet = haul::fleet::FleetOptions { parallel: 1, ..one_thread() };
    // One by one, so that the second request finds the connection of the first.
    let run = common::run(&client, single_stage(&options), fleet, urls(0, 3));
    let mut exits: Vec<_> = run.exits().into_iter().map(|(_, exit)| exit).collect();
    exits.sort_unstable();
    assert_eq!(exits, [0, 28, 28]);
    assert_eq!((peer.connections(), peer.requests().len()), (1, 1));
}

#[test]
fn zero_max_streams_waits_until_max_time() {
    let mut options = with_prior_knowledge(RequestOptions::default());
    options.max_time = Some(std::time::Duration::from_secs(1));
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[(3, 0)])?;
        conn.drain()
    });
    for driver in DRIVERS {
        assert_eq!(driver.get(&Client::new(), &peer.url("/"), &options).exit, 28, "{driver:?}");
    }
}

#[test]
fn goaway_reaches_a_peer_that_keeps_sending() {
    const PROTOCOL_ERROR: u32 = 1;
    for driver in DRIVERS {
        let ended = Arc::new(AtomicU64::new(0));
        let how = Arc::clone(&ended);
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            // DATA on stream 0, and many bytes after it that nobody reads.
            conn.send(data(0, false, b"x"))?;
            conn.send(vec![0; 300_000])?;
            conn.wait(1);
            let end = loop {
                if let Err(error) = conn.next_frame() {
                    break error.kind();
                }
            };
            how.store(if end == io::ErrorKind::UnexpectedEof { 1 } else { 2 }, SeqCst);
            Ok(())
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(RequestOptions::default()));
        assert_eq!(got.exit, 16, "{driver:?}: {}", got.message);
        peer.release();
        let is_told =
            |_, frame: &Frame| frame.kind == Frame::GOAWAY && frame.payload[4..8] == PROTOCOL_ERROR.to_be_bytes();
        assert!(peer.saw(is_told), "{driver:?}");
        while ended.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(ended.load(SeqCst), 1, "{driver:?}: it was reset");
    }
}
