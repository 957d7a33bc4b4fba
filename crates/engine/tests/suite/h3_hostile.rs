//! Tests of HTTP/3 servers that violate the protocol on purpose. The client closes the connection
//! or the stream with the right error code (RFC 9114 section 8.1, RFC 9204 section 6), and the
//! request fails with the right kind of error.

use crate::common;

use std::io;

use common::{DRIVERS, assert_fails, trusting_ca};
use haul::request::Http3Policy;
use haul::{Client, ErrorKind};
use testkit::h3_peer::{self, H3Peer, H3Request, H3ScriptConnection};

const OK: &[(&str, &str)] = &[(":status", "200")];

const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const EXCESSIVE_LOAD: u64 = 0x107;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const VERSION_FALLBACK: u64 = 0x110;
const QPACK_DECOMPRESSION_FAILED: u64 = 0x200;
const QPACK_ENCODER_STREAM_ERROR: u64 = 0x201;

type Script = fn(&mut H3ScriptConnection) -> io::Result<()>;

/// A protocol violation: its name, the error code with which the client closes the connection, and
/// the server's script.
type ViolationCase = (&'static str, u64, Script);

/// Opens the control stream, and waits for the request.
fn asked(conn: &mut H3ScriptConnection) -> io::Result<H3Request> {
    conn.greet(&[])?;
    conn.request()
}

/// Sends these bytes on the stream of the request.
fn answer(conn: &mut H3ScriptConnection, bytes: &[u8]) -> io::Result<()> {
    let request = asked(conn)?;
    conn.send(request.stream, bytes)
}

/// Waits for the request, and then opens a unidirectional stream of this type and sends these bytes
/// on it.
fn open(conn: &mut H3ScriptConnection, kind: u64, bytes: &[u8]) -> io::Result<()> {
    asked(conn)?;
    conn.open(kind, bytes).map(|_| ())
}

const VIOLATIONS: &[ViolationCase] = &[
    ("a frame of HTTP/2", FRAME_UNEXPECTED, |conn| answer(conn, &h3_peer::frame(0x6, b"12345678"))),
    ("DATA before HEADERS", FRAME_UNEXPECTED, |conn| answer(conn, &h3_peer::data(b"early"))),
    ("SETTINGS on a request stream", FRAME_UNEXPECTED, |conn| answer(conn, &h3_peer::settings(&[]))),
    ("PUSH_PROMISE", ID_ERROR, |conn| answer(conn, &h3_peer::frame(h3_peer::PUSH_PROMISE, &[0, 0, 0]))),
    ("a push stream", ID_ERROR, |conn| open(conn, h3_peer::PUSH_STREAM, &[0])),
    ("a second control stream", 0x103, |conn| open(conn, h3_peer::CONTROL_STREAM, &h3_peer::settings(&[]))),
    ("the end of the control stream", CLOSED_CRITICAL_STREAM, |conn| {
        let control = conn.greet(&[])?;
        conn.request()?;
        conn.finish(control)
    }),
    ("giant SETTINGS", EXCESSIVE_LOAD, |conn| {
        let header = [h3_peer::varint(h3_peer::SETTINGS), h3_peer::varint(1 << 40)].concat();
        conn.request()?;
        conn.open(h3_peer::CONTROL_STREAM, header).map(|_| ())
    }),
    ("a setting of HTTP/2", SETTINGS_ERROR, |conn| {
        conn.request()?;
        conn.greet(&[(0x2, 1)]).map(|_| ())
    }),
    ("no SETTINGS", MISSING_SETTINGS, |conn| {
        conn.request()?;
        conn.open(h3_peer::CONTROL_STREAM, h3_peer::goaway(0)).map(|_| ())
    }),
    ("endless unknown frames", EXCESSIVE_LOAD, |conn| {
        let request = asked(conn)?;
        conn.flood(request.stream, &h3_peer::frame(0x21, b""), 100_000);
        Ok(())
    }),
    ("endless streams", EXCESSIVE_LOAD, |conn| {
        asked(conn)?;
        while let Ok(stream) = conn.open(0x21, b"") {
            if conn.finish(stream).is_err() {
                break;
            }
        }
        Ok(())
    }),
    ("a reference to a missing entry", QPACK_DECOMPRESSION_FAILED, |conn| {
        // Required Insert Count 0, and an indexed field of the dynamic table.
        answer(conn, &h3_peer::frame(h3_peer::HEADERS, &[0, 0, 0x80]))
    }),
    ("a table above the limit", QPACK_ENCODER_STREAM_ERROR, |conn| {
        open(conn, h3_peer::ENCODER_STREAM, &h3_peer::capacity(1 << 30))
    }),
    ("an entry above the capacity", QPACK_ENCODER_STREAM_ERROR, |conn| {
        open(conn, h3_peer::ENCODER_STREAM, &h3_peer::insert("name", "value"))
    }),
];

/// Starts a peer that runs this script and then waits until the client closes the connection.
fn peer(script: Script) -> H3Peer {
    H3Peer::start(move |_, conn| {
        // The client may have closed the connection in the middle.
        let _ = script(conn);
        conn.wait_closed()
    })
}

fn only_http3(peer: &H3Peer) -> (haul::RequestOptions, tempfile::NamedTempFile) {
    let (options, ca) = trusting_ca(peer.ca_pem());
    (haul::RequestOptions { http3: Http3Policy::Only, ..options }, ca)
}

#[test]
fn http3_violations_close_the_connection_with_their_code() {
    for (name, code, script) in VIOLATIONS {
        for driver in DRIVERS {
            let peer = peer(*script);
            let (options, _ca) = only_http3(&peer);
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Http3), 95), "{driver:?}, {name}: {}", got.message);
            assert_eq!(peer.close_code(0), Some(*code), "{driver:?}, {name}: {}", got.message);
            assert_eq!(peer.connections(), 1, "{driver:?}, {name}: a server at fault is not asked again");
        }
    }
}

/// Sends a head with this field and a part of a body. Waits until the client has read the head,
/// whose field is an entry of the dynamic table, so that the client acknowledges it.
fn start_response(conn: &mut H3ScriptConnection, (name, value): (&str, &str)) -> io::Result<()> {
    let request = asked(conn)?;
    conn.open(h3_peer::ENCODER_STREAM, [h3_peer::capacity(4_096), h3_peer::insert(name, value)].concat())?;
    // `:status: 200` of the static table, and the last entry of the dynamic one.
    let section = [h3_peer::section_prefix(2, 0), vec![0xd9, 0x80]].concat();
    conn.send(request.stream, [h3_peer::frame(h3_peer::HEADERS, &section), h3_peer::data(b"a part")].concat())?;
    conn.wait_section_acknowledged(request.stream);
    Ok(())
}

#[test]
fn http3_connection_close_is_a_receive_error() {
    let before_response: Script = |conn| asked(conn).map(drop);
    let in_response: Script = |conn| start_response(conn, ("x", "1"));
    let in_content: Script = |conn| start_response(conn, ("content-length", "100"));
    // Each code is an error while a response is incomplete, as in curl: 95 is for violations that
    // the client finds.
    for (code, name) in [(0x100, "H3_NO_ERROR"), (0x102, "H3_INTERNAL_ERROR")] {
        for (script, stage) in [
            (before_response, "no response arrived"),
            (in_response, "the response is incomplete"),
            (in_content, "the response is incomplete"),
        ] {
            for driver in DRIVERS {
                let peer = H3Peer::start(move |_, conn| {
                    script(conn)?;
                    conn.close(code);
                    conn.wait_closed()
                });
                let (options, _ca) = only_http3(&peer);
                let got = driver.get(&Client::new(), &peer.url("/"), &options);
                assert_fails(&got, ErrorKind::Receive, 56);
                let message = format!("{}: {stage}: the server closed the connection with {name}", peer.url("/"));
                assert!(got.message.contains(&message), "{driver:?}, {code:#x}: {}", got.message);
            }
        }
    }
}

#[test]
fn endless_http3_interim_responses_end_one_request() {
    for driver in DRIVERS {
        let peer = peer(|conn| {
            let request = asked(conn)?;
            conn.flood(request.stream, &h3_peer::headers(&[(":status", "103")]), 100_000);
            let next = conn.request()?;
            conn.send(next.stream, [h3_peer::headers(OK), h3_peer::data(b"ok")].concat())?;
            conn.finish(next.stream)
        });
        let (options, _ca) = only_http3(&peer);
        let client = Client::new();
        let got = driver.get(&client, &peer.url("/"), &options);
        assert_fails(&got, ErrorKind::Http3, 95);
        let got = driver.get(&client, &peer.url("/next"), &options);
        assert_eq!((got.exit, got.body), (0, b"ok".to_vec()), "{driver:?}: {}", got.message);
    }
}

#[test]
fn size_of_decoded_http3_fields_is_limited() {
    for driver in DRIVERS {
        let peer = peer(|conn| {
            conn.greet(&[])?;
            // One entry of 4,000 bytes, named 30,000 times in 30 kB of HEADERS.
            let entry = [h3_peer::capacity(4_096), h3_peer::insert("bomb", &"x".repeat(4_000))].concat();
            conn.open(h3_peer::ENCODER_STREAM, entry)?;
            let request = conn.request()?;
            let section = [h3_peer::section_prefix(2, 0), vec![0x80; 30_000]].concat();
            conn.send(request.stream, h3_peer::frame(h3_peer::HEADERS, &section))
        });
        let (options, _ca) = only_http3(&peer);
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert!(got.exit == 95 || got.exit == 56, "{driver:?}: {} {}", got.exit, got.message);
        assert!(got.message.contains("limit"), "{driver:?}: {}", got.message);
    }
}

#[test]
fn reset_of_an_awaited_http3_response_is_an_error() {
    for driver in DRIVERS {
        let peer = peer(|conn| {
            let request = asked(conn)?;
            // The entry that the response needs never comes.
            let section = [h3_peer::section_prefix(2, 0), vec![0x80]].concat();
            conn.send(request.stream, h3_peer::frame(h3_peer::HEADERS, &section))?;
            conn.reset(request.stream, 0x102)
        });
        let (options, _ca) = only_http3(&peer);
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_fails(&got, ErrorKind::Http3, 95);
    }
}

#[test]
fn http3_version_fallback_without_tcp_is_an_error() {
    let peer = peer(|conn| {
        let request = asked(conn)?;
        conn.reset(request.stream, VERSION_FALLBACK)
    });
    let (options, _ca) = only_http3(&peer);
    let got = DRIVERS[0].get(&Client::new(), &peer.url("/"), &options);
    assert_fails(&got, ErrorKind::Http3, 95);
    assert!(got.message.contains("H3_VERSION_FALLBACK"), "{}", got.message);
}

/// Protocol violations on the control stream, with the client's error codes. The peer sends them as
/// soon as it can.
const EARLY_VIOLATIONS: &[(u64, Script)] = &[
    (SETTINGS_ERROR, |conn| conn.greet(&[(0x2, 1)]).map(|_| ())),
    (MISSING_SETTINGS, |conn| conn.open(h3_peer::CONTROL_STREAM, h3_peer::goaway(0)).map(|_| ())),
    (EXCESSIVE_LOAD, |conn| {
        let header = [h3_peer::varint(h3_peer::SETTINGS), h3_peer::varint(1 << 40)].concat();
        conn.open(h3_peer::CONTROL_STREAM, header).map(|_| ())
    }),
    (ID_ERROR, |conn| conn.open(h3_peer::PUSH_STREAM, [0]).map(|_| ())),
];

#[test]
fn http3_violations_before_the_request_are_detected() {
    for (code, script) in EARLY_VIOLATIONS {
        for driver in DRIVERS {
            let peer = peer(*script);
            let (options, _ca) = only_http3(&peer);
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Http3), 95), "{driver:?}, {code:#x}: {}", got.message);
            assert_eq!(peer.close_code(0), Some(*code), "{driver:?}: {}", got.message);
        }
    }
}
