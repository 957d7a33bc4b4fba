//! Tests of request bodies with both drivers: files, forms and readers, Expect: 100-continue, and
//! sending a body a second time.

use crate::common;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, thread};

use common::{DRIVERS, OK, following, http2_origin, start_origin, trusting_ca, with_time_limit};
use haul::body::upload::{BodyPiece, RequestBody};
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::multipart::{FormNameEscape, FormPart, FormPartContent, MultipartBoundary, MultipartLayout};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

fn sending(method: &str, body: impl Into<RequestBody>) -> RequestOptions {
    RequestOptions { method: method.into(), body: Some(body.into()), ..following() }
}

/// A reader that returns few bytes at a time.
struct DribblingReader(Vec<u8>);

impl Read for DribblingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(777).min(buffer.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0.drain(..n);
        Ok(n)
    }
}

/// An endless reader that counts the bytes it has returned.
struct EndlessReader(Arc<AtomicU64>);

impl Read for EndlessReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(buffer.len())
    }
}

#[test]
fn content_with_announced_length_zero_is_error() {
    for driver in DRIVERS {
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
        let with_length = |body: &'static [u8]| RequestOptions {
            fields: vec![("Content-Length".into(), b"0".to_vec())],
            ..sending("PUT", RequestBody::reader(body))
        };
        let got = driver.get(&Client::new(), &peer.url("/"), &with_length(b"hello"));
        assert_eq!(got.kind, Some(ErrorKind::Read), "{driver:?}: {}", got.message);
        assert!(got.message.contains("longer than its announced length of 0 bytes"), "{}", got.message);
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(OK)]);
        let got = driver.get(&Client::new(), &peer.url("/"), &with_length(b""));
        assert_eq!(got.ok(), b"ok", "{driver:?}");
    }
}

#[test]
fn upload_to_unread_connection_reads_bounded_content() {
    let identity = TestCertificates::generate();
    let (trusting, _file) = trusting_ca(identity.ca_pem());
    let script = vec![ScriptStep::ReadHead, ScriptStep::Await(1)];
    for driver in DRIVERS {
        for is_secure in [false, true] {
            let peer = match is_secure {
                true => H1Peer::start_tls(vec![script.clone()], &identity, &[]),
                false => H1Peer::start(vec![script.clone()]),
            };
            let read = Arc::new(AtomicU64::new(0));
            let options = RequestOptions {
                expect_timeout: Duration::ZERO,
                write_timeout: Some(Duration::from_millis(500)),
                tls: trusting.tls.clone(),
                ..sending("PUT", RequestBody::reader(EndlessReader(Arc::clone(&read))))
            };
            let url = if is_secure { peer.url("/").replace("http:", "https:") } else { peer.url("/") };
            let got = driver.get(&Client::new(), &url, &options);
            peer.release();
            assert_eq!(got.kind, Some(ErrorKind::Timeout), "{driver:?} TLS {is_secure}: {}", got.message);
            // The send and receive buffers of the sockets have at most 10 MiB.
            let read = read.load(Ordering::Relaxed);
            assert!((1..32 << 20).contains(&read), "{driver:?} TLS {is_secure}: {read} bytes");
        }
    }
}

#[test]
fn file_and_reader_bodies_arrive_whole() {
    let origin = start_origin();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("content");
    for driver in DRIVERS {
        let client = Client::new();
        let (trusted, _ca) = trusting_ca(origin.ca_pem());
        for size in [0, 1, 16_384, 65_536, 3_000_000] {
            let content = origin.pattern().slice(0, size);
            fs::write(&path, &content).unwrap();
            for (url, chunked) in [
                (origin.url("/echo"), false),
                (origin.https_url("/echo"), false),
                (origin.url("/redirect/307?to=/echo"), false),
                (origin.url("/echo"), true),
            ] {
                origin.forget();
                let body = if chunked {
                    RequestBody::reader(DribblingReader(content.clone()))
                } else {
                    RequestBody::file(&path).unwrap()
                };
                let options = RequestOptions { tls: trusted.tls.clone(), ..sending("PUT", body) };
                let got = driver.get(&client, &url, &options);
                assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {url} {size} {}", got.message);
                let seen = origin.log().pop().unwrap();
                let length = seen.header("content-length").map(str::to_owned);
                assert_eq!(length, (!chunked).then(|| size.to_string()), "{driver:?} {url} {size}");
                assert!(seen.body == content, "{driver:?} {url} {size}");
                let asked = seen.header("expect").is_some();
                assert_eq!(asked, chunked || size > 1 << 20, "{driver:?} {url} {size}");
            }
        }
    }
}

#[test]
fn multipart_body_has_its_announced_length() {
    let origin = start_origin();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.txt");
    fs::write(&path, "the file").unwrap();
    let source = FormPartContent::Source { index: 0, length: Some(8) };
    let parts = [FormPart::field("who", "me"), FormPart::file("what", "a.txt", source)];
    let layout = MultipartLayout::new(&parts, &MultipartBoundary::new([3; 16]), FormNameEscape::Percent).unwrap();
    for driver in DRIVERS {
        let body = RequestBody::multipart(&layout, &[BodyPiece::file(&path).unwrap()]).unwrap();
        let mut options = sending("POST", body);
        options.fields.push(("Content-Type".into(), layout.content_type.clone().into_bytes()));
        assert_eq!(driver.get(&Client::new(), &origin.url("/echo"), &options).exit, 0, "{driver:?}");
        let seen = origin.log().pop().unwrap();
        assert_eq!(Some(seen.body.len() as u64), layout.length);
        assert!(
            String::from_utf8_lossy(&seen.body)
                .contains("filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nthe file\r\n")
        );
    }
}

#[test]
fn one_shot_reader_is_not_sent_again() {
    for driver in DRIVERS {
        let redirect = "HTTP/1.1 307 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n";
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 100 Continue\r\n\r\n"),
            ScriptStep::ReadBytes(13),
            ScriptStep::send(redirect),
        ]]);
        let options = sending("PUT", RequestBody::reader(&b"abc"[..]));
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Rewind), 65), "{driver:?} {}", got.message);
        // The same options again: the reader is consumed now, which is not an empty body.
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(OK)]);
        assert_eq!(driver.get(&Client::new(), &peer.url("/"), &options).exit, 65, "{driver:?}");
    }
}

#[test]
fn file_shrinking_during_upload_is_a_read_error() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("content");
    for driver in DRIVERS {
        for (before, after) in [(3000, 2000), (300_000, 200_000)] {
            fs::write(&path, vec![b'x'; before]).unwrap();
            let options = sending("PUT", RequestBody::file(&path).unwrap());
            fs::write(&path, vec![b'x'; after]).unwrap();
            let peer = H1Peer::always(vec![ScriptStep::ReadToEnd]);
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::Read), 26), "{driver:?} {before} {}", got.message);
            assert!(got.message.contains("shorter"), "{}", got.message);
        }
    }
    assert!(RequestBody::file(place.path()).is_err() && RequestBody::file("/nonexistent").is_err());
}

#[test]
fn large_body_is_announced_with_expect_100_continue() {
    const SIZE: usize = (1 << 20) + 1;
    for driver in DRIVERS {
        let refused = "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n";
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::send(refused), ScriptStep::ReadToEnd],
            vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(SIZE), ScriptStep::send(OK), ScriptStep::Close],
        ]);
        let options = sending("POST", vec![b'x'; SIZE]);
        assert_eq!(driver.get(&Client::new(), &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
        let (asked, unasked) = (peer.received(0), peer.received(1));
        assert!(asked.ends_with(b"Expect: 100-continue\r\n\r\n"), "no content follows a no");
        assert!(unasked.len() > SIZE && !unasked.windows(7).take(500).any(|w| w == b"Expect:"));

        // A silent server gets the body after the timeout, or at once if it is not asked.
        for (wait, is_asked) in [(Duration::from_millis(20), true), (Duration::ZERO, false)] {
            let peer = H1Peer::start(vec![vec![
                ScriptStep::ReadHead,
                ScriptStep::ReadBytes(SIZE),
                ScriptStep::send(OK),
                ScriptStep::Close,
            ]]);
            let options = RequestOptions { expect_timeout: wait, ..options.clone() };
            assert_eq!(driver.get(&Client::new(), &peer.url("/"), &options).ok(), b"ok", "{driver:?} {wait:?}");
            assert_eq!(peer.received(0).windows(7).take(500).any(|w| w == b"Expect:"), is_asked);
        }
    }
}

/// Checks that a challenge is answered on a new connection if the server may not have read the body
/// of the request. A server like Squid reads neither that body nor a later request on the
/// connection, although the socket buffers can hold both completely.
#[test]
fn challenge_with_unread_body_gets_new_connection() {
    let challenge = "HTTP/1.1 401 Who\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n";
    for driver in DRIVERS {
        for len in [100_000, 900_000] {
            let unread = vec![
                ScriptStep::ReadHead,
                ScriptStep::send(format!("{challenge}Content-Length: 0\r\n\r\n")),
                ScriptStep::Await(1),
            ];
            let peer = H1Peer::start(vec![
                unread,
                vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(len), ScriptStep::send(OK)],
            ]);
            let user = Credentials::new("me", "secret").unwrap();
            let auth = AuthOptions { allowed: AllowedAuthSchemes::DIGEST, ..AuthOptions::user(user) };
            let options = RequestOptions { auth, ..sending("PUT", vec![b'x'; len]) };
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {len} {}", got.message);
            peer.release();
        }
    }
}

/// Checks that the connection stays open when a server refuses a request with a small body, even if
/// the body comes from a reader. Otherwise, NTLM, which authenticates a connection, would not work.
#[test]
fn refused_small_reader_body_keeps_the_connection() {
    let refused = "HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n";
    let content = b"5\r\nhello\r\n0\r\n\r\n";
    let exchange =
        |answer: &str| [ScriptStep::ReadHead, ScriptStep::ReadBytes(content.len()), ScriptStep::send(answer)];
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![[exchange(refused), exchange(OK)].concat()]);
        let client = Client::new();
        for status in [401, 200] {
            let body = RequestBody::reader(DribblingReader(b"hello".to_vec()));
            let options = RequestOptions { expect_timeout: Duration::ZERO, ..sending("POST", body) };
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!((got.exit, got.status), (0, status), "{driver:?} {}", got.message);
        }
    }
}

#[test]
fn ntlm_requests_with_large_bodies_share_a_connection() {
    const MUCH: usize = 200_000;
    let exchange = |answer: &str| [ScriptStep::ReadHead, ScriptStep::ReadBytes(MUCH), ScriptStep::send(answer)];
    let challenge = "HTTP/1.1 401 Who\r\nWWW-Authenticate: NTLM abc\r\nContent-Length: 0\r\n\r\n";
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![[exchange(challenge), exchange(OK)].concat()]);
        let client = Client::new();
        for (leg, status) in [("NTLM one", 401), ("NTLM two", 200)] {
            let fields = vec![("Authorization".to_owned(), leg.into())];
            let expect_timeout = Duration::ZERO;
            let options = RequestOptions { fields, expect_timeout, ..sending("POST", vec![b'x'; MUCH]) };
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!((got.exit, got.status), (0, status), "{driver:?} {}", got.message);
        }
    }
}

/// Checks that chunked coding is not sent to an HTTP/1.0 server (RFC 9112 section 6.1).
#[test]
fn chunked_body_is_not_sent_to_http10_server() {
    let challenge = "HTTP/1.0 401 Who\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n\
                     Content-Length: 0\r\nConnection: keep-alive\r\n\r\n";
    let digest = || AuthOptions {
        allowed: AllowedAuthSchemes::DIGEST,
        ..AuthOptions::user(Credentials::new("me", "secret").unwrap())
    };
    for driver in DRIVERS {
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(challenge), ScriptStep::ReadToEnd]);
        let unknown = || RequestBody::reader(&b"abc"[..]);
        let options = RequestOptions { auth: digest(), ..sending("PUT", unknown()) };
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Upload), 25), "{driver:?} {}", got.message);
        assert!(got.message.contains("HTTP/1.0"), "{}", got.message);
        let sent = peer.received(0);
        assert!(
            sent.ends_with(b"\r\n\r\n") && !sent.windows(7).any(|w| w == b"chunked"),
            "the login asks without content"
        );
        assert!(peer.received(1).is_empty());

        // A known length permits the upload, and so does an explicit `Transfer-Encoding: chunked`.
        for (field, value, size) in [("Content-Length", "3", 3), ("Transfer-Encoding", "chunked", 13)] {
            let peer = H1Peer::start(vec![
                vec![
                    ScriptStep::ReadHead,
                    ScriptStep::send(challenge.replace("keep-alive", "close")),
                    ScriptStep::Close,
                ],
                vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(size), ScriptStep::send(OK), ScriptStep::Close],
            ]);
            let expect_timeout = Duration::ZERO;
            let mut options = RequestOptions { auth: digest(), expect_timeout, ..sending("PUT", unknown()) };
            options.fields.push((field.into(), value.into()));
            assert_eq!(driver.get(&Client::new(), &peer.url("/"), &options).ok(), b"ok", "{driver:?} {field}");
        }

        // The version of one origin does not apply to another.
        let other = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::ReadBytes(13),
            ScriptStep::send(OK),
            ScriptStep::Close,
        ]]);
        let redirect = format!("HTTP/1.0 307 Go\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url("/"));
        for (to, exit) in [(redirect.clone(), 65), (redirect.replace(&other.url("/"), "/x"), 25)] {
            let peer = H1Peer::always(vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 100 Continue\r\n\r\n"),
                ScriptStep::ReadBytes(13),
                ScriptStep::send(to),
            ]);
            let got = driver.get(&Client::new(), &peer.url("/"), &sending("PUT", unknown()));
            assert_eq!(got.exit, exit, "{driver:?} {}", got.message);
        }
    }
}

#[test]
fn large_body_reaches_a_slow_reading_server() {
    // The peer pauses its reading, so a body larger than the socket buffers is sent in parts.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        for _ in DRIVERS {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = vec![0; 8 << 20];
            stream.read_exact(&mut all[..1000]).unwrap();
            thread::sleep(Duration::from_millis(50));
            stream.read_exact(&mut all[1000..]).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    for driver in DRIVERS {
        let mut options = sending("POST", Vec::new());
        options.body = Some(vec![b'x'; 8 << 20].into());
        assert_eq!(driver.get(&Client::new(), &url, &options).ok(), b"ok", "{driver:?}");
    }
    serving.join().unwrap();
}

#[test]
fn sending_and_receiving_large_bodies_do_not_deadlock() {
    // More than the kernel buffers in both directions.
    const SIZE: usize = 24 << 20;
    let piece = vec![b'x'; 1 << 16];
    let times = (SIZE / piece.len()) as u64;
    for driver in DRIVERS {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        let script = vec![
            ScriptStep::ReadHead,
            ScriptStep::send(head),
            ScriptStep::SendRepeatedly(piece.clone(), times),
            ScriptStep::ReadBytes(SIZE),
            ScriptStep::Close,
        ];
        let peer = H1Peer::start(vec![script]);
        let body: Arc<[u8]> = vec![b'y'; SIZE].into();
        let options = RequestOptions {
            method: "POST".into(),
            body: Some(body.into()),
            // Both sides must send at once.
            expect_timeout: Duration::ZERO,
            ..RequestOptions::default()
        };
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!(got.ok().len(), SIZE, "{driver:?}");
    }
}

/// A reader that returns the given number of pieces of a kilobyte, and then fails. Each read first
/// sleeps for 15 ms, so that the driver has sent the earlier pieces and waits only for the reader.
struct FailingReader(u32);

impl Read for FailingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_millis(15));
        let Some(left) = self.0.checked_sub(1) else { return Err(io::Error::other("the disk is gone")) };
        self.0 = left;
        let n = buffer.len().min(1024);
        buffer[..n].fill(b'x');
        Ok(n)
    }
}

#[test]
fn content_that_fails_while_it_is_sent_ends_the_request_at_once() {
    let (http1, http2) = (start_origin(), http2_origin(100));
    with_time_limit("a failing reader", move || {
        for driver in DRIVERS {
            for (origin, prior_knowledge) in [(&http1, false), (&http2, true)] {
                for pieces in 2..6 {
                    let body = RequestBody::reader(FailingReader(pieces));
                    let options = RequestOptions { prior_knowledge, ..sending("PUT", body) };
                    let got = driver.get(&Client::new(), &origin.url("/echo"), &options);
                    assert_eq!(
                        got.kind,
                        Some(ErrorKind::Read),
                        "{driver:?} {prior_knowledge} {pieces}: {}",
                        got.message
                    );
                }
            }
        }
    });
}
