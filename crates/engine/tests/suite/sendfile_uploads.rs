//! Tests of request content from files that are large enough for the kernel to send them directly.
//! The kernel sends them over a Unix socket; over TCP to this machine they are read and copied.

use crate::common;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use common::with_time_limit;
use haul::body::upload::{BodyPiece, RequestBody};
use haul::net::local_address::UnixSocketAddress;
use haul::{Client, Error, ErrorKind};
use tempfile::TempDir;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::unix_relay::UnixRelay;

/// The size of the uploaded file in bytes: larger than a socket's buffers.
const SIZE: usize = 9_000_000;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn file(dir: &TempDir, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = dir.path().join(name);
    File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

fn body(path: &Path) -> RequestBody {
    RequestBody::file(path).unwrap()
}

/// Sends content over TCP and over a Unix socket, each with both drivers: the blocking one, and the
/// one with an event loop. Returns the four responses, in the order of their connections.
fn by_all_ways(peer: &H1Peer, body: &RequestBody) -> Vec<Result<(u16, Vec<u8>), Error>> {
    let relay = UnixRelay::to(peer.addr()).unwrap();
    let socket = UnixSocketAddress::Path(relay.path().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut outcomes = Vec::new();
    for unix_socket in [None, Some(socket)] {
        let client = Client::new();
        let put = || {
            let put = client.put(peer.url("/")).header("Expect", "").body(body.clone());
            put.options(|options| options.connect.unix_socket.clone_from(&unix_socket))
        };
        outcomes.push(put().send().and_then(|response| Ok((response.status(), response.bytes()?))));
        outcomes.push(runtime.block_on(async {
            let response = put().send_async().await?;
            Ok((response.status(), response.bytes().await?))
        }));
    }
    outcomes
}

/// Starts a peer that reads one request with a body of `size` bytes on each connection, and
/// responds.
fn reader(size: usize) -> H1Peer {
    let ends = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(size), ScriptStep::send(ends)])
}

/// Returns the body of the request that was received on a connection.
fn received(peer: &H1Peer, connection: usize) -> Vec<u8> {
    let bytes = peer.received(connection);
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    bytes[head..].to_vec()
}

#[test]
fn large_file_upload_arrives_whole() {
    with_time_limit("a large file", || {
        let dir = TempDir::new().unwrap();
        let sent = content(SIZE);
        let path = file(&dir, "file", &sent);
        let peer = reader(SIZE);
        for (connection, outcome) in by_all_ways(&peer, &body(&path)).into_iter().enumerate() {
            assert_eq!(outcome.unwrap(), (200, b"ok".to_vec()));
            assert!(received(&peer, connection) == sent, "connection {connection}");
        }
    });
}

#[test]
fn files_between_other_pieces_arrive_in_order() {
    with_time_limit("files and other pieces", || {
        let dir = TempDir::new().unwrap();
        let (large, small) = (content(3_000_000), content(1000));
        let text = |text: &str| BodyPiece::Bytes(text.as_bytes().into());
        let of = |name: &str, bytes: &[u8]| BodyPiece::file(file(&dir, name, bytes)).unwrap();
        let middle = |offset: u64, length: u64| BodyPiece::File { path: dir.path().join("large"), offset, length };
        let pieces = RequestBody::pieces([
            of("large", &large),
            text("--1--"),
            of("small", &small),
            of("empty", b""),
            middle(100, 2_000_000),
            middle(2_999_990, 10),
            text("--2--"),
        ]);
        let end = &large[2_999_990..];
        let sent = [&large, &b"--1--"[..], &small, &large[100..2_000_100], end, b"--2--"].concat();
        let peer = reader(sent.len());
        for (connection, outcome) in by_all_ways(&peer, &pieces).into_iter().enumerate() {
            assert_eq!(outcome.unwrap().0, 200);
            assert!(received(&peer, connection) == sent, "connection {connection}");
        }
    });
}

#[test]
fn connection_is_reused_after_a_file_upload() {
    with_time_limit("two files", || {
        let dir = TempDir::new().unwrap();
        let sent = content(1_000_000);
        let path = file(&dir, "file", &sent);
        let put = [ScriptStep::ReadHead, ScriptStep::ReadBytes(sent.len()), ScriptStep::send(OK)];
        let peer = H1Peer::start(vec![[put.clone(), put].concat()]);
        let client = Client::new();
        for _ in 0..2 {
            let response = client.put(peer.url("/")).header("Expect", "").body(body(&path)).send().unwrap();
            assert_eq!(response.text().unwrap(), "ok");
        }
        assert_eq!(peer.connections(), 1);
    });
}

#[test]
fn file_that_became_shorter_fails_the_upload_at_once() {
    with_time_limit("a shorter file", || {
        let dir = TempDir::new().unwrap();
        let path = file(&dir, "file", &content(SIZE));
        let announced = body(&path);
        File::options().write(true).open(&path).unwrap().set_len(1_000_000).unwrap();
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
        for (way, outcome) in by_all_ways(&peer, &announced).into_iter().enumerate() {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Read, "way {way}");
            assert!(error.to_string().contains("the file has become shorter"), "{error}");
        }
    });
}

#[test]
fn bytes_appended_during_upload_are_not_sent() {
    with_time_limit("a longer file", || {
        let dir = TempDir::new().unwrap();
        let sent = content(1_000_000);
        let path = file(&dir, "file", &sent);
        let announced = body(&path);
        File::options().append(true).open(&path).unwrap().write_all(&content(500_000)).unwrap();
        let peer = reader(sent.len());
        for (connection, outcome) in by_all_ways(&peer, &announced).into_iter().enumerate() {
            assert_eq!(outcome.unwrap().0, 200);
            assert!(received(&peer, connection) == sent);
        }
    });
}

#[test]
fn early_response_to_a_file_upload_is_delivered() {
    with_time_limit("an early response", || {
        let dir = TempDir::new().unwrap();
        let path = file(&dir, "file", &content(SIZE));
        let early = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
        let steps = vec![ScriptStep::ReadHead, ScriptStep::send(early), ScriptStep::ReadToEnd];
        let peer = H1Peer::always(steps);
        for outcome in by_all_ways(&peer, &body(&path)) {
            assert_eq!(outcome.unwrap(), (413, b"no".to_vec()));
        }
    });
}

#[test]
fn reset_during_file_upload_raises_no_signal() {
    with_time_limit("a closed connection", || {
        let dir = TempDir::new().unwrap();
        let path = file(&dir, "file", &content(SIZE));
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Reset]);
        for outcome in by_all_ways(&peer, &body(&path)) {
            let kind = outcome.unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::Send | ErrorKind::Receive | ErrorKind::EmptyReply), "{kind:?}");
        }
    });
}

#[test]
fn redirect_sends_file_again_from_its_beginning() {
    with_time_limit("a redirect", || {
        let dir = TempDir::new().unwrap();
        let sent = content(1_000_000);
        let path = file(&dir, "file", &sent);
        let moved = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
        let put = |reply: &str| vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(sent.len()), ScriptStep::send(reply)];
        let peer = H1Peer::start(vec![put(moved), put(OK)]);
        let put = Client::new().put(peer.url("/a")).header("Expect", "").body(body(&path));
        assert_eq!(put.send().unwrap().status(), 200);
        assert!(peer.received(1).starts_with(b"PUT /b HTTP/1.1\r\n"));
        assert!(received(&peer, 0) == sent && received(&peer, 1) == sent);
    });
}
