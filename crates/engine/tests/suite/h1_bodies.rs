//! Tests of HTTP/1 bodies with every framing, plain and over TLS, with both drivers, on as few
//! connections as possible.

use crate::common;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{DRIVERS, DriverKind, following, one_thread, run, start_origin, trusting_ca, with_time_limit};
use haul::buffer_pool::OfferedBodyBytes;
use haul::fleet::FleetOptions;
use haul::sink::{ReceivedIntoSink, Sink, TransferWaker};
use haul::{Client, RequestOptions, Target};
use rustix::net::RecvFlags;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

const SIZES: [usize; 8] = [0, 1, 4095, 4096, 65_537, 131_072, 1 << 20, 5_000_001];

/// Runs `check` with request options and URLs for plain HTTP, and again for HTTPS.
fn both_schemes(origin: &Origin, check: impl Fn(&RequestOptions, &dyn Fn(&str) -> String)) {
    check(&RequestOptions::default(), &|path| origin.url(path));
    let (options, _ca) = trusting_ca(origin.ca_pem());
    check(&options, &|path| origin.https_url(path));
}

#[test]
fn bodies_of_every_framing_and_size_arrive_whole() {
    let origin = start_origin();
    both_schemes(&origin, |options, url| {
        for driver in DRIVERS {
            let client = Client::new();
            for size in SIZES {
                let expected = origin.pattern().slice(0, size);
                for path in ["bytes", "chunked", "close"] {
                    let got = driver.get(&client, &url(&format!("/{path}/{size}")), options);
                    assert!(got.ok() == expected, "{driver:?} {} differs", got.url);
                    assert_eq!((got.status, got.facts.body_bytes), (200, size as u64), "{}", got.url);
                }
                let got = driver.get(&client, &url(&format!("/chunked/{size}?trailer=1")), options);
                assert!(got.ok() == expected, "{driver:?} {} differs", got.url);
            }
        }
    });
}

#[test]
fn sequential_transfers_share_one_connection() {
    let origin = start_origin();
    let mut opened = 0;
    both_schemes(&origin, |options, url| {
        for driver in DRIVERS {
            let before = origin.connections();
            let client = Client::new();
            for path in
                ["/small/1", "/bytes/200000", "/chunked/70000?trailer=1", "/status/204", "/status/404", "/small/2"]
            {
                assert_eq!(driver.get(&client, &url(path), options).exit, 0);
            }
            let head = RequestOptions { method: "HEAD".into(), ..options.clone() };
            assert_eq!(driver.get(&client, &url("/bytes/12345"), &head).ok(), b"");
            assert_eq!(driver.get(&client, &url("/small/3"), options).ok(), b"small 3\n");
            assert_eq!(origin.connections() - before, 1, "{driver:?}");
        }
    });
    opened += origin.connections();
    assert_eq!(opened, 4);
}

#[test]
fn drivers_share_pooled_connections() {
    let origin = start_origin();
    let client = Client::new();
    let options = RequestOptions::default();
    for round in 0..4 {
        for driver in DRIVERS {
            let got = driver.get(&client, &origin.url(&format!("/bytes/{}", 100_000 + round)), &options);
            assert_eq!(got.ok().len(), 100_000 + round);
        }
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn redirect_reuses_the_connection() {
    let origin = start_origin();
    for driver in DRIVERS {
        let before = origin.connections();
        let got = driver.get(&Client::new(), &origin.url("/chain/5"), &following());
        assert_eq!(got.ok(), b"end of chain\n");
        assert_eq!((got.facts.redirects, got.facts.requests, got.facts.connects), (5, 6, 1), "{driver:?}");
        assert_eq!(origin.connections() - before, 1, "{driver:?}");
    }
}

#[test]
fn bodiless_responses_ignore_announced_length() {
    for driver in DRIVERS {
        let answers: [(&str, &str); 4] = [
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
            ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
            ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"),
        ];
        let mut script = Vec::new();
        for (_, answer) in answers {
            script.extend([ScriptStep::ReadHead, ScriptStep::send(answer)]);
        }
        script.extend([ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]);
        let peer = H1Peer::start(vec![script]);
        let client = Client::new();
        for (method, answer) in answers {
            let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!(got.ok(), b"", "{driver:?} {answer:?}");
        }
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
        assert_eq!(peer.connections(), 1, "{driver:?}");
    }
}

#[test]
fn interim_responses_are_skipped() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send(interim),
            ScriptStep::send_bytewise(format!("{interim}{last}")),
            ScriptStep::ReadHead,
            ScriptStep::send(format!("{interim}{last}")),
        ]]);
        let client = Client::new();
        for _ in 0..2 {
            let got = driver.get(&client, &peer.url("/"), &RequestOptions::default());
            assert_eq!((got.ok(), got.status), (&b"hello"[..], 200), "{driver:?}");
        }
        assert_eq!(peer.connections(), 1, "{driver:?}");
    }
}

#[test]
fn response_sent_bytewise_is_parsed() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
        4;ext=1\r\nwiki\r\n5\r\npedia\r\n0\r\nX: y\r\n\r\n";
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send_bytewise(chunked)]]);
        let got = driver.get(&Client::new(), &peer.url("/"), &RequestOptions::default());
        assert_eq!(got.ok(), b"wikipedia", "{driver:?}");
    }
}

#[test]
fn request_body_arrives_whole() {
    let origin = start_origin();
    both_schemes(&origin, |options, url| {
        for driver in DRIVERS {
            let client = Client::new();
            for size in [0, 1, 3000, 65_536, 2_000_000] {
                origin.forget();
                let content = origin.pattern().slice(0, size);
                let post =
                    RequestOptions { method: "POST".into(), body: Some(content.clone().into()), ..options.clone() };
                let got = driver.get(&client, &url("/echo"), &post);
                assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {size}: {}", got.message);
                let seen = origin.log().pop().unwrap();
                assert_eq!(seen.header("content-length"), Some(size.to_string().as_str()));
                assert!(seen.body == content, "{driver:?} {size}");
            }
        }
    });
    assert_eq!(origin.connections(), 4, "one a driver and scheme");
}

#[test]
fn early_error_response_is_delivered() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n"),
            ScriptStep::HalfClose,
            ScriptStep::ReadToEnd,
        ]]);
        let post = RequestOptions {
            method: "POST".into(),
            body: Some(vec![b'x'; 20 << 20].into()),
            ..RequestOptions::default()
        };
        let got = driver.get(&Client::new(), &peer.url("/"), &post);
        assert_eq!((got.exit, got.status, &got.body[..]), (0, 413, &b"no\n"[..]), "{driver:?} {}", got.message);
    }
}

/// Checks that a successful response that arrives during an upload does not end the upload if the
/// connection stays open: the server reads the rest of the request body.
#[test]
fn early_success_does_not_stop_the_upload() {
    const LEN: usize = 20 << 20;
    let early = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n";
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nearly";
    for driver in DRIVERS {
        let put = |script: Vec<ScriptStep>, wait: Duration| {
            let peer = H1Peer::start(vec![script]);
            let options = RequestOptions {
                method: "PUT".into(),
                body: Some(vec![b'x'; LEN].into()),
                expect_timeout: wait,
                ..RequestOptions::default()
            };
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            (got, peer)
        };
        let (asked, unasked) = (Duration::from_secs(1), Duration::ZERO);
        for (script, wait) in [
            (
                vec![
                    ScriptStep::ReadHead,
                    ScriptStep::ReadBytes(100_000),
                    ScriptStep::send(early),
                    ScriptStep::ReadBytes(LEN - 100_000),
                ],
                unasked,
            ),
            // A final response instead of 100: the upload continues.
            (vec![ScriptStep::ReadHead, ScriptStep::send(early), ScriptStep::ReadBytes(LEN)], asked),
            (
                vec![
                    ScriptStep::ReadHead,
                    ScriptStep::send(chunked),
                    ScriptStep::ReadBytes(LEN),
                    ScriptStep::send("0\r\n\r\n"),
                ],
                asked,
            ),
            // The server closes after the request body. The body is sent after the timeout, or at
            // once without Expect.
            (
                vec![ScriptStep::ReadHead, ScriptStep::send(closing), ScriptStep::ReadBytes(LEN), ScriptStep::Close],
                Duration::from_millis(20),
            ),
            (
                vec![ScriptStep::ReadHead, ScriptStep::send(closing), ScriptStep::ReadBytes(LEN), ScriptStep::Close],
                unasked,
            ),
        ] {
            let (got, peer) = put(script, wait);
            assert_eq!((got.exit, &got.body[..]), (0, &b"early"[..]), "{driver:?} {}", got.message);
            assert!(peer.finished(1) && peer.received(0).len() > LEN, "{driver:?} {}", peer.received(0).len());
        }
        for end in [ScriptStep::Close, ScriptStep::Reset] {
            let (got, _) =
                put(vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(100_000), ScriptStep::send(early), end], unasked);
            assert!(matches!(got.exit, 55 | 56), "{driver:?} {} {}", got.exit, got.message);
        }
    }
}

#[test]
fn fleet_opens_at_most_per_host_connections() {
    let origin = start_origin();
    let client = Client::new();
    for round in 0..2 {
        let urls: Vec<String> = (0..200).map(|i| origin.url(&format!("/bytes/{}", i * 37))).collect();
        let options = FleetOptions { per_host: Some(6), ..one_thread() };
        let run = run(&client, common::single_stage(&RequestOptions::default()), options, urls);
        assert_eq!(run.summary().succeeded, 200);
        assert!(origin.connections() <= 6, "round {round}: {} connections", origin.connections());
    }
    let opened = origin.connections();
    let got = DriverKind::Blocking.get(&client, &origin.url("/small"), &RequestOptions::default());
    assert_eq!(got.ok(), b"small\n");
    assert_eq!(origin.connections(), opened, "the blocking driver takes a connection that the fleet left");
}

/// Checks that a request without a body announces a length of 0, if its method defines a meaning
/// for a body (RFC 9110 section 8.6). Also checks that a one-shot body of known length does not
/// wait for 100 (Continue).
#[test]
fn empty_post_sends_content_length_zero() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let asked = |driver: DriverKind, change: &dyn Fn(&mut RequestOptions)| {
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
        let mut options = RequestOptions::default();
        change(&mut options);
        driver.get(&Client::new(), &peer.url("/"), &options).ok();
        String::from_utf8_lossy(&peer.received(0)).to_ascii_lowercase()
    };
    for driver in DRIVERS {
        for (method, says) in [("POST", true), ("PUT", true), ("PATCH", true), ("GET", false), ("DELETE", false)] {
            let head = asked(driver, &|options| options.method = method.into());
            assert_eq!(head.contains("content-length: 0\r\n"), says, "{head}");
        }
        let curl_compat = asked(driver, &|options| {
            (options.method, options.curl_compat.omits_zero_content_length) = ("POST".into(), true)
        });
        assert!(!curl_compat.contains("content-length"), "{curl_compat}");
        for spares in [false, true] {
            let once = asked(driver, &|options| {
                options.method = "POST".into();
                options.fields.push(("Content-Length".into(), b"3".to_vec()));
                options.body = Some(haul::body::upload::RequestBody::reader(&b"abc"[..]));
                options.curl_compat.expect_for_one_shot_content = spares;
            });
            assert_eq!((once.contains("content-length: 3\r\n"), once.contains("expect")), (true, spares), "{once}");
        }
    }
}

/// A sink that accepts only a few bytes at a time, and records the size of each piece that it gets.
#[derive(Clone, Default)]
struct SmallCreditSink(Arc<Mutex<Vec<usize>>>);

impl Sink for SmallCreditSink {
    fn credit(&mut self, _: Option<&Arc<dyn TransferWaker>>, _: usize) -> u64 {
        1000
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        self.0.lock().unwrap().push(offered.bytes().len());
        Ok(())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// Checks that the sink's limit also applies to body bytes that arrive together with a head.
/// Otherwise, 400 connections would keep 128 KiB each.
#[test]
fn body_received_with_head_respects_sink_credit() {
    const LEN: usize = 100_000;
    let response = [format!("HTTP/1.1 200 OK\r\nContent-Length: {LEN}\r\n\r\n").as_bytes(), &[b'x'; LEN]].concat();
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(&response)]);
    let (given, target) = (SmallCreditSink::default(), Target::parse(&peer.url("/")).unwrap());
    let sink = Box::new(given.clone());
    let outcome = with_time_limit("the transfer", move || Client::new().fetch(target, Arc::default(), sink));
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    let given = given.0.lock().unwrap();
    assert_eq!(given.iter().sum::<usize>(), LEN);
    assert!(given.iter().all(|&piece| piece <= 4096), "{given:?}");
}

/// A sink with memory for a body. It counts the bytes that were copied to it from a read buffer.
#[derive(Clone, Default)]
struct CopyCountingSink {
    copied: Arc<Mutex<usize>>,
    body: Arc<Mutex<Vec<u8>>>,
}

impl Sink for CopyCountingSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        *self.copied.lock().unwrap() += offered.bytes().len();
        self.body.lock().unwrap().extend_from_slice(offered.bytes());
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let mut piece = vec![0; most];
        // The size of a piece must not depend on how fast the peer sends.
        let received = rustix::net::recv(socket, &mut piece[..], RecvFlags::WAITALL);
        let received = received.map(|(n, _)| n).map_err(io::Error::from);
        self.body.lock().unwrap().extend_from_slice(&piece[..*received.as_ref().unwrap_or(&0)]);
        Some(received.map(|bytes| ReceivedIntoSink::new(bytes, most)))
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// Checks that few bytes of a page are copied if the page before it was as large.
#[test]
fn large_body_after_large_body_is_hardly_copied() {
    const LEN: usize = 300_000;
    let origin = start_origin();
    let expected = origin.pattern().slice(0, LEN);
    let client = Client::new();
    let copied: Vec<_> = (0..8)
        .map(|_| {
            let target = Target::parse(&origin.url(&format!("/bytes/{LEN}"))).unwrap();
            let (given, client) = (CopyCountingSink::default(), client.clone());
            let sink = Box::new(given.clone());
            let outcome = with_time_limit("the transfer", move || client.fetch(target, Arc::default(), sink));
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
            assert!(*given.body.lock().unwrap() == expected);
            *given.copied.lock().unwrap()
        })
        .collect();
    assert_eq!(origin.connections(), 1);
    assert!(copied[1..].iter().all(|&copied| copied <= 8 << 10), "{copied:?}");
}
