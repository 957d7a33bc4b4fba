//! Tests of tunnels through HTTP/2 proxies (RFC 9113 section 8.5). A scripted proxy also plays the
//! origin, and may violate the protocol. `proxy_third_party.rs` tests tunnels through nghttpx.

use crate::common;

use std::io;

use common::{DRIVERS, FetchOutcome};
use haul::net::proxy::ProxyOptions;
use haul::{Client, RequestOptions};
use haul_policy::proxy::Proxy;
use testkit::frames::{
    Frame, H2Peer, H2PeerRequest, H2ScriptConnection, data, frame, goaway, headers, rst, window_update,
};
use testkit::test_certificates::TestCertificates;

const OK: (&str, &str) = (":status", "200");
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Starts a scripted HTTP/2 proxy that serves each connection by calling `serve`.
fn proxy(
    serve: impl Fn(&mut H2ScriptConnection) -> io::Result<()> + Send + Sync + 'static,
) -> (H2Peer, tempfile::TempDir) {
    let identity = TestCertificates::generate();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca"), identity.ca_pem()).unwrap();
    (H2Peer::start_tls(&identity, move |_, conn| serve(conn)), folder)
}

/// Accepts a CONNECT, and reads the head of a request from the tunnel. Returns the CONNECT request.
fn opened(conn: &mut H2ScriptConnection) -> io::Result<H2PeerRequest> {
    let asked = conn.request()?;
    conn.send(headers(asked.stream, false, &[OK]))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(conn.frame_of(Frame::DATA)?.payload);
    }
    Ok(asked)
}

/// Fetches `http://origin.test/` through the proxy with each driver, and returns both results.
/// `with` changes the request options.
fn through(peer: &(H2Peer, tempfile::TempDir), with: impl Fn(&mut RequestOptions)) -> Vec<FetchOutcome> {
    let mut proxy = ProxyOptions::default();
    let url = format!("https://user:word@localhost:{}", peer.0.addr().port());
    proxy.proxy = Some(Proxy::parse(&url).unwrap());
    proxy.tls.ca_file = Some(peer.1.path().join("ca"));
    (proxy.tunnel, proxy.http2) = (true, true);
    let mut options = RequestOptions { proxy: Some(proxy), ..RequestOptions::default() };
    with(&mut options);
    DRIVERS.map(|driver| driver.get(&Client::new(), "http://origin.test/", &options)).into()
}

/// Asserts for both drivers that a transfer through the proxy ends with the exit code `exit`, that
/// the error message contains `says`, and that exactly `delivered` is delivered.
#[track_caller]
fn assert_ends(peer: &(H2Peer, tempfile::TempDir), exit: u8, says: &str, delivered: &[u8]) {
    for got in through(peer, |_| ()) {
        assert_eq!(got.exit, exit, "{}", got.message);
        assert!(got.message.contains(says), "{}", got.message);
        assert_eq!(got.body, delivered);
    }
}

#[test]
fn http2_tunnel_delivers_only_data_payload() {
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let asked = opened(conn)?;
        for byte in ANSWER {
            // One byte with three bytes of padding, and unrelated frames between.
            conn.send(frame(Frame::DATA, Frame::PADDED, asked.stream, &[3, *byte, 0, 0, 0]))?;
            conn.send(frame(Frame::PING, 0, 0, &[7; 8]))?;
        }
        conn.drain()
    });
    for got in through(&peer, |_| ()) {
        assert_eq!((got.status, got.ok()), (200, &b"hello"[..]));
    }
    for asked in peer.0.requests() {
        assert_eq!((asked.get(":method"), asked.get(":authority")), (Some("CONNECT"), Some("origin.test:80")));
        assert_eq!((asked.get(":scheme"), asked.get(":path"), asked.ends), (None, None, false));
        assert_eq!(asked.get("proxy-authorization"), Some("Basic dXNlcjp3b3Jk"));
    }
}

#[test]
fn data_sent_with_connect_response_does_not_hang() {
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        // The server sends before the request, as a mail server would.
        conn.send([headers(asked.stream, false, &[OK]), data(asked.stream, false, ANSWER)].concat())?;
        conn.drain()
    });
    for got in through(&peer, |_| ()) {
        // A response before its request may be refused.
        assert_ne!(got.exit, 28, "{}", got.message);
    }
}

#[test]
fn large_tunnelled_upload_waits_for_flow_control_windows() {
    let peer = proxy(|conn| {
        // An initial window of 1,000 bytes, then small increments.
        conn.greet(&[(4, 1_000)])?;
        let asked = conn.request()?;
        conn.send(headers(asked.stream, false, &[OK]))?;
        let mut left = 300_000;
        let mut head = Vec::new();
        while left > 0 {
            let piece = conn.frame_of(Frame::DATA)?.payload;
            let increment = u32::try_from(piece.len()).map_err(io::Error::other)?;
            if increment > 0 {
                conn.send([window_update(0, increment), window_update(asked.stream, increment)].concat())?;
            }
            head.extend_from_slice(&piece);
            let at = head.windows(4).position(|four| four == b"\r\n\r\n");
            left = at.map_or(left, |at| 300_000 - (head.len() - at - 4));
        }
        conn.send(data(asked.stream, false, ANSWER))?;
        conn.drain()
    });
    let put = |options: &mut RequestOptions| {
        options.method = "PUT".into();
        options.body = Some(vec![b'x'; 300_000].into());
        options.expect_timeout = std::time::Duration::ZERO;
    };
    for got in through(&peer, put) {
        assert_eq!(got.ok(), b"hello");
    }
}

#[test]
fn refused_http2_connect_is_a_proxy_error() {
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(headers(asked.stream, true, &[(":status", "403")]))?;
        conn.drain()
    });
    assert_ends(&peer, 7, "response 403", b"");
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(rst(asked.stream, 10))?;
        conn.drain()
    });
    assert_ends(&peer, 56, "CONNECT_ERROR", b"");
}

#[test]
fn proxy_challenge_is_answered_on_the_same_connection() {
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let mut asked = conn.request()?;
        if asked.get("proxy-authorization").is_none() {
            let asks = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";
            conn.send(headers(asked.stream, false, &[(":status", "407"), ("proxy-authenticate", asks)]))?;
            conn.send(data(asked.stream, true, b"who are you?"))?;
            asked = conn.request()?;
        }
        let is_answer = asked.get("proxy-authorization").is_some_and(|answer| answer.starts_with("Digest "));
        conn.send(headers(asked.stream, false, &[(":status", if is_answer { "200" } else { "403" })]))?;
        conn.frame_of(Frame::DATA)?;
        conn.send(data(asked.stream, false, ANSWER))?;
        conn.drain()
    });
    let digest = |options: &mut RequestOptions| {
        if let Some(proxy) = &mut options.proxy {
            proxy.auth = haul::net::proxy::ProxyAuthScheme::Digest;
            proxy.memory = haul::net::proxy::ProxyAuthCache::default();
        }
    };
    for got in through(&peer, digest) {
        assert_eq!(got.ok(), b"hello");
    }
    let connections: Vec<_> = peer.0.requests().iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 0, 1], "the answer goes by the same connection, and is remembered");
}

#[test]
fn broken_http2_tunnel_is_an_error() {
    let half: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let cut = |end: fn(&mut H2ScriptConnection, u32) -> io::Result<()>| {
        proxy(move |conn| {
            conn.greet(&[])?;
            let asked = opened(conn)?;
            conn.send(data(asked.stream, false, half))?;
            end(conn, asked.stream)?;
            conn.drain()
        })
    };
    assert_ends(&cut(|conn, stream| conn.send(data(stream, true, b""))), 18, "", b"hello");
    assert_ends(&cut(|conn, stream| conn.send(rst(stream, 8))), 56, "closed the tunnel", b"hello");
    assert_ends(&cut(|conn, _| conn.close_without_notify()), 18, "", b"hello");
    // A protocol violation by the proxy breaks the tunnels.
    assert_ends(&cut(|conn, _| conn.send(window_update(0, 0))), 56, "nothing", b"hello");
}

#[test]
fn body_until_close_ends_with_the_tunnels_stream() {
    let partial: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npartial";
    let ending = |end: fn(&mut H2ScriptConnection, u32) -> io::Result<()>| {
        proxy(move |conn| {
            conn.greet(&[])?;
            let asked = opened(conn)?;
            conn.send(data(asked.stream, false, partial))?;
            end(conn, asked.stream)
        })
    };
    assert_ends(&ending(|conn, stream| conn.send(data(stream, true, b""))), 0, "", b"partial");
    // The connection to the proxy is closed with close_notify, but the tunnel is open.
    assert_ends(&ending(|_, _| Ok(())), 56, "without its end mark", b"partial");
    assert_ends(&ending(|conn, stream| conn.send(goaway(stream, 0))), 56, "without its end mark", b"partial");
    assert_ends(&ending(|conn, stream| conn.send(goaway(stream, 2))), 56, "without its end mark", b"partial");
    let trailers = |conn: &mut H2ScriptConnection, stream| conn.send(headers(stream, true, &[("a", "b")]));
    assert_ends(&ending(trailers), 56, "a header block in a tunnel", b"partial");
}

#[test]
fn goaway_of_proxy_leaves_open_tunnels_running() {
    let peer = proxy(|conn| {
        conn.greet(&[])?;
        let asked = opened(conn)?;
        conn.send(goaway(asked.stream, 0))?;
        conn.send(data(asked.stream, true, ANSWER))?;
        conn.drain()
    });
    for got in through(&peer, |_| ()) {
        assert_eq!(got.ok(), b"hello");
    }
}
