//! Redirects, retries, limits and failures, by both drivers.

use crate::common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use common::{DRIVERS, Driver, Got, bounded, following, impatient, retrying, start_origin};
use haul::net::dns::{DnsOptions, Resolver};
use haul::request::CurlCompat;
use haul::sink::output::{BlockingOutputSink, DescriptorWriter};
use haul::{Client, ErrorKind, RequestOptions, Target};
use testkit::origin::Origin;
use testkit::raw::{RawPeer, Step};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn get(driver: Driver, url: &str, options: &RequestOptions) -> Got {
    driver.get(&Client::new(), url, options)
}

#[track_caller]
fn fails(got: &Got, kind: ErrorKind, exit: u8) {
    assert_eq!((got.kind, got.exit), (Some(kind), exit), "{}: {}", got.url, got.message);
    assert!(got.message.contains(got.last.as_str()), "the message names the URL: {}", got.message);
}

fn post(content: &str) -> RequestOptions {
    RequestOptions { method: "POST".into(), body: Some(content.as_bytes().into()), ..following() }
}

/// What the last request was: method, content, content type.
fn last(origin: &Origin) -> (String, String, Option<String>) {
    let request = origin.log().pop().expect("a request");
    let content = String::from_utf8(request.body.to_vec()).unwrap();
    (request.method.clone(), content, request.header("content-type").map(str::to_owned))
}

#[test]
fn redirects_keep_or_change_method_and_content() {
    let origin = start_origin();
    for driver in DRIVERS {
        for (status, method, kept) in
            [(301, "GET", false), (302, "GET", false), (303, "GET", false), (307, "POST", true), (308, "POST", true)]
        {
            let url = origin.url(&format!("/redirect/{status}?to=/echo"));
            let mut options = post("a=1");
            options.fields.push(("Content-Type".into(), b"text/x-form".to_vec()));
            assert_eq!(get(driver, &url, &options).exit, 0);
            let (content, media) = if kept { ("a=1", Some("text/x-form".to_owned())) } else { ("", None) };
            assert_eq!(last(&origin), (method.to_owned(), content.to_owned(), media), "{driver:?} {status}");

            let got = get(driver, &url, &following());
            assert_eq!((got.exit, got.facts.redirects, got.last), (0, 1, origin.url("/echo")), "{driver:?} {status}");
            let unfollowed = get(driver, &url, &RequestOptions::default());
            assert_eq!((unfollowed.ok(), unfollowed.status), (&b"elsewhere\n"[..], status), "{driver:?}");
        }
    }
}

#[test]
fn redirects_are_resolved_against_the_target() {
    let (origin, other) = (start_origin(), start_origin());
    let elsewhere = other.url("/small/9");
    for driver in DRIVERS {
        for (from, to, expected) in [
            ("/redirect/302?to=../small/1", "", "small 1\n"),
            ("/redirect/302?to=/small/2%23fragment", "", "small 2\n"),
            ("/redirect/302?to=//", "", ""),
            ("/redirect/302?to=", elsewhere.as_str(), "small 9\n"),
        ] {
            if expected.is_empty() {
                fails(&get(driver, &origin.url(from), &following()), ErrorKind::Url, 3);
            } else {
                assert_eq!(get(driver, &origin.url(&format!("{from}{to}")), &following()).ok(), expected.as_bytes());
            }
        }
    }
}

#[test]
fn redirects_end_somewhere() {
    let origin = start_origin();
    for driver in DRIVERS {
        let mut options = following();
        options.redirects.max = 3;
        assert_eq!(get(driver, &origin.url("/chain/3"), &options).ok(), b"end of chain\n");
        fails(&get(driver, &origin.url("/chain/4"), &options), ErrorKind::TooManyRedirects, 47);
        for to in ["ftp://h/", "file:///etc/passwd", "javascript:alert(1)"] {
            let url = origin.url(&format!("/redirect/302?to={to}"));
            fails(&get(driver, &url, &following()), ErrorKind::UnsupportedScheme, 1);
        }
    }
}

#[test]
fn a_long_body_on_a_redirect_is_not_waited_for() {
    for driver in DRIVERS {
        let peer = RawPeer::start(vec![
            vec![
                Step::ReadHead,
                Step::send("HTTP/1.1 302 Found\r\nLocation: /2\r\nContent-Length: 900000000\r\n\r\n"),
                Step::ReadToEnd,
            ],
            vec![Step::ReadHead, Step::send(OK)],
        ]);
        assert_eq!(get(driver, &peer.url("/1"), &following()).ok(), b"ok", "{driver:?}");
        assert_eq!(peer.connections(), 2);
    }
}

#[test]
fn transient_statuses_are_tried_again() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let got = get(driver, &origin.url("/flaky/2/small/1"), &retrying(2));
        assert_eq!((got.ok(), got.facts.retries, got.facts.requests), (&b"small 1\n"[..], 2, 3), "{driver:?}");
        let got = get(driver, &origin.url("/flaky/3/small/2"), &retrying(2));
        assert_eq!((got.ok(), got.status), (&b"not yet\n"[..], 503), "{driver:?}");
        let failing = RequestOptions { fail: true, ..retrying(1) };
        fails(&get(driver, &origin.url("/flaky/9/small/3"), &failing), ErrorKind::Status, 22);
        // What is not idempotent is not repeated.
        let mut posting = retrying(2);
        posting.method = "POST".into();
        assert_eq!(get(driver, &origin.url("/flaky/1/small/4"), &posting).status, 503);
        assert_eq!(origin.hits("/flaky/1/small/4"), 1);
    }
}

#[test]
fn retry_after_is_waited_for_and_capped() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let began = Instant::now();
        assert_eq!(get(driver, &origin.url("/retry-after/1/small/1"), &retrying(1)).ok(), b"small 1\n");
        assert!(began.elapsed() >= Duration::from_secs(1), "{driver:?}");
        let mut capped = retrying(1);
        capped.retry.cap = Duration::from_millis(1);
        for seconds in ["3600", "18446744073709551615", "99999999999999999999999"] {
            let peer = RawPeer::start(vec![vec![
                Step::ReadHead,
                Step::send(format!("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: {seconds}\r\n\r\n")),
                Step::ReadHead,
                Step::send(OK),
            ]]);
            assert_eq!(get(driver, &peer.url("/"), &capped).ok(), b"ok", "{driver:?} {seconds}");
        }
        // Without retries it must not upset anything either.
        let peer = RawPeer::start(vec![vec![
            Step::ReadHead,
            Step::send("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: 18446744073709551615\r\n\r\n"),
        ]]);
        assert_eq!(get(driver, &peer.url("/"), &RequestOptions::default()).status, 429, "{driver:?}");
    }
}

#[test]
fn a_stale_connection_is_replaced_once_for_what_may_be_repeated() {
    for driver in DRIVERS {
        for (method, expected) in [("GET", 0), ("POST", 52)] {
            let peer = RawPeer::start(vec![
                // The second request is read, and then nothing comes.
                vec![Step::ReadHead, Step::send(OK), Step::ReadHead, Step::Close],
                vec![Step::ReadHead, Step::send(OK)],
            ]);
            let client = Client::new();
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
            let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!(got.exit, expected, "{driver:?} {method}: {}", got.message);
            assert_eq!((got.facts.retries, peer.connections()), (0, if expected == 0 { 2 } else { 1 }), "{driver:?}");
        }
        // Who allows any method to be tried again has a POST sent again, too.
        let peer = RawPeer::start(vec![
            vec![Step::ReadHead, Step::send(OK), Step::ReadHead, Step::ReadBytes(3), Step::Close],
            vec![Step::ReadHead, Step::ReadBytes(3), Step::send(OK)],
        ]);
        let client = Client::new();
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
        let body = Some("a=1".into());
        let mut options = RequestOptions { method: "POST".into(), body, ..RequestOptions::default() };
        (options.retry.max, options.retry.any_method) = (0, true);
        assert_eq!(driver.get(&client, &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
        assert!(peer.received(1).ends_with(b"a=1"), "{driver:?}");
        // A fresh connection that does the same is no reason for another.
        let peer = RawPeer::always(vec![Step::ReadHead, Step::Close]);
        assert_eq!(get(driver, &peer.url("/"), &RequestOptions::default()).exit, 52, "{driver:?}");
        assert_eq!(peer.connections(), 1, "{driver:?}");
    }
}

#[test]
fn a_reset_connection_is_tried_again_where_asked_for() {
    for driver in DRIVERS {
        let broken = [
            vec![Step::ReadHead, Step::Reset],
            vec![Step::ReadHead, Step::Close],
            vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"), Step::Close],
            vec![Step::ReadHead, Step::send("HTTP/1.1 20"), Step::Close],
        ];
        for script in broken {
            let peer = RawPeer::start(vec![script.clone(), vec![Step::ReadHead, Step::send(OK)]]);
            let got = if driver == Driver::Blocking {
                get(driver, &peer.url("/"), &retrying(1))
            } else {
                behind_a_slower_one(&peer.url("/"), &retrying(1))
            };
            assert_eq!((got.ok(), got.facts.retries), (&b"ok"[..], 1), "{driver:?} {script:?}");
        }
    }
}

/// What cannot be resumed begins anew, however far it got: a server that always breaks off there is given up.
#[test]
fn a_long_body_that_always_breaks_off_is_not_tried_for_ever() {
    let half = [b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n".to_vec(), vec![b'x'; 300_000]].concat();
    let broken = vec![Step::ReadHead, Step::Send(half), Step::Close];
    let whole = vec![Step::ReadHead, Step::send(OK)];
    let peer = RawPeer::start(vec![broken.clone(), broken.clone(), broken, whole]);
    // Its sink can take back what it has.
    let got = get(Driver::Blocking, &peer.url("/"), &retrying(2));
    assert_eq!((got.exit, got.facts.retries), (18, 2), "{}", got.message);
}

/// The first URL of a fleet streams, so what it delivered stands; the second's can be taken back.
fn behind_a_slower_one(url: &str, options: &RequestOptions) -> Got {
    let slow =
        RawPeer::start(vec![vec![Step::ReadHead, Step::Await(1), Step::send("HTTP/1.1 204 No Content\r\n\r\n")]]);
    let (urls, url) = ([slow.url("/"), url.to_owned()], url.to_owned());
    let (done, is_done) = channel();
    let client = Client::new();
    let stages = common::fetching(options);
    let items = Box::new(urls.into_iter().map(|url| Ok(common::item(url))));
    thread::spawn(move || {
        // Released when the other has been reported, or at last by the test's patience.
        let _ = is_done.recv_timeout(common::PATIENCE);
        slow.release();
        slow.finished(1);
    });
    let notes = Tell { notes: common::Notes::default(), url: url.clone(), done };
    let seen = notes.notes.clone();
    let output = bounded("the fleet", move || {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fleet = haul::fleet::Fleet::new(stages, common::one_thread());
        fleet.run(&client, items, DescriptorWriter::new(writer.into()), notes).unwrap();
        let mut output = Vec::new();
        reader.read_to_end(&mut output).unwrap();
        output
    });
    let got = seen.all().into_iter().find(|got| got.url == url).unwrap();
    Got { body: output, ..got }
}

/// Keeps notes, and tells when one URL is over.
struct Tell {
    notes: common::Notes,
    url: String,
    done: std::sync::mpsc::Sender<()>,
}

impl haul::fleet::Report for Tell {
    fn finished(&self, job: &haul::fleet::Job, outcome: &haul::transfer::Outcome) -> Option<Vec<u8>> {
        if job.url == self.url {
            let _ = self.done.send(());
        }
        self.notes.finished(job, outcome)
    }
}

#[test]
fn what_has_gone_out_is_not_sent_again() {
    let script = vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"), Step::Close];
    let peer = RawPeer::always(script.clone());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let (url, options) = (peer.url("/"), Arc::new(retrying(3)));
    let outcome = bounded("fetch", move || {
        let sink = BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None);
        Client::new().fetch(Target::parse(&url).unwrap(), options, Box::new(sink))
    });
    assert_eq!(outcome.result.unwrap_err().exit_code(), 18);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    assert_eq!((output.as_str(), peer.connections()), ("wrong", 1));

    // The head of a fleet's line streams too.
    let peer = RawPeer::always(script);
    let got = get(Driver::Reactor, &peer.url("/"), &retrying(3));
    assert_eq!((got.exit, &got.body[..], peer.connections()), (18, &b"wrong"[..], 1));
}

#[test]
fn a_body_that_comes_with_its_head_is_held_to_the_rate_too() {
    for driver in DRIVERS {
        let body = "x".repeat(100_000);
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let peer = RawPeer::start(vec![vec![Step::ReadHead, Step::send(whole)]]);
        let options = RequestOptions { limit_rate: Some(200_000), ..RequestOptions::default() };
        let got = get(driver, &peer.url("/"), &options);
        let total = got.facts.total;
        assert_eq!(got.ok(), body.as_bytes());
        // Half a second, but for what is there at first and what comes with the head.
        assert!(total > Duration::from_millis(400), "{driver:?}: {total:?}");
    }
}

#[test]
fn a_silent_server_is_given_up() {
    for driver in DRIVERS {
        for script in [
            vec![Step::ReadHead, Step::ReadToEnd],
            vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), Step::ReadToEnd],
            vec![Step::ReadHead, Step::SendSlowly(vec![b'H'; 1 << 20], Duration::from_millis(5))],
        ] {
            let peer = RawPeer::start(vec![script.clone(), vec![Step::ReadHead, Step::send(OK)]]);
            let client = Client::new();
            let options = RequestOptions { max_time: Some(Duration::from_millis(300)), ..RequestOptions::default() };
            let got = driver.get(&client, &peer.url("/"), &options);
            // The last script is no HTTP at all, which is found out before the time is.
            if !matches!(script.last(), Some(Step::SendSlowly(..))) {
                fails(&got, ErrorKind::Timeout, 28);
            }
            assert_ne!(got.exit, 0);
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        }
        // A body that drips never looks silent.
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n";
        let drip = Step::SendSlowly(vec![b'x'; 900_000], Duration::from_millis(5));
        let peer = RawPeer::start(vec![vec![Step::ReadHead, Step::send(head), drip]]);
        let options = RequestOptions { max_time: Some(Duration::from_millis(300)), ..RequestOptions::default() };
        fails(&get(driver, &peer.url("/"), &options), ErrorKind::Timeout, 28);
    }
}

#[test]
fn a_limit_of_one_transfer_does_not_bind_the_next() {
    for driver in DRIVERS {
        let peer = RawPeer::start(vec![vec![
            Step::ReadHead,
            Step::send(OK),
            Step::ReadHead,
            Step::Sleep(Duration::from_millis(2300)),
            Step::send(OK),
        ]]);
        let client = Client::new();
        let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..RequestOptions::default() };
        assert_eq!(driver.get(&client, &peer.url("/"), &options).ok(), b"ok");
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        assert_eq!(peer.connections(), 1);
    }
}

#[test]
fn a_timeout_is_tried_again_where_asked_for() {
    for driver in DRIVERS {
        let peer = RawPeer::start(vec![vec![Step::ReadHead, Step::ReadToEnd], vec![Step::ReadHead, Step::send(OK)]]);
        let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..retrying(1) };
        assert_eq!(get(driver, &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
    }
}

#[test]
fn connections_that_cannot_be_made() {
    // Bound and listening, but its queue is full: a SYN gets no answer.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queue: Vec<_> = (0..4)
        .map(|_| {
            let socket = haul::net::socket::Socket::open(&address, true).unwrap();
            let _ = socket.connect(&address);
            socket
        })
        .collect();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    // Accepts and says nothing: TLS waits for its handshake.
    let silent = RawPeer::always(vec![Step::ReadToEnd]);
    let not_tls = RawPeer::always(vec![Step::ReadBytes(1), Step::send("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    for driver in DRIVERS {
        let soon = impatient(Duration::from_millis(200));
        fails(&get(driver, &format!("http://{address}/"), &soon), ErrorKind::Timeout, 28);
        let options = RequestOptions { max_time: Some(Duration::from_millis(200)), ..RequestOptions::default() };
        fails(&get(driver, &format!("http://{address}/"), &options), ErrorKind::Timeout, 28);
        fails(&get(driver, &format!("http://{closed}/"), &RequestOptions::default()), ErrorKind::Connect, 7);
        fails(&get(driver, &format!("https://{}/", silent.addr()), &soon), ErrorKind::Timeout, 28);
        let got = get(driver, &format!("https://{}/", not_tls.addr()), &RequestOptions::default());
        fails(&got, ErrorKind::TlsHandshake, 35);
        let origin = start_origin();
        fails(&get(driver, &origin.https_url("/"), &RequestOptions::default()), ErrorKind::PeerCertificate, 60);
        let mut options = RequestOptions::default();
        options.tls.ca_file = Some("/nonexistent/ca.pem".into());
        fails(&get(driver, &origin.https_url("/"), &options), ErrorKind::CaFile, 77);
    }
}

#[test]
fn names_are_looked_up_and_may_have_no_address() {
    let origin = start_origin();
    for driver in DRIVERS {
        let resolver = Resolver::with_lookup(DnsOptions::default(), |name| match name {
            "known.test" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            _ => Err(std::io::Error::other("no such name")),
        });
        let client = Client::with_resolver(resolver);
        let port = origin.http_addr().port();
        let url = format!("http://known.test:{port}/small");
        assert_eq!(driver.get(&client, &url, &RequestOptions::default()).ok(), b"small\n", "{driver:?}");
        let got = driver.get(&client, &format!("http://unknown.test:{port}/"), &RequestOptions::default());
        fails(&got, ErrorKind::Resolve, 6);
    }
}

#[test]
fn fail_delivers_no_body_and_keeps_the_connection() {
    let origin = start_origin();
    for driver in DRIVERS {
        let before = origin.connections();
        let client = Client::new();
        let options = RequestOptions { fail: true, ..RequestOptions::default() };
        for status in [400, 404, 500, 503] {
            let got = driver.get(&client, &origin.url(&format!("/status/{status}")), &options);
            fails(&got, ErrorKind::Status, 22);
            assert_eq!((got.status, &got.body[..]), (status, &b""[..]), "{driver:?}");
            assert!(got.message.contains(&status.to_string()), "{}", got.message);
        }
        assert_eq!(driver.get(&client, &origin.url("/status/304"), &options).ok(), b"");
        assert_eq!(origin.connections() - before, 1, "{driver:?}");
    }
}

#[test]
fn no_body_is_larger_than_allowed() {
    let origin = start_origin();
    for driver in DRIVERS {
        let options = RequestOptions { max_size: Some(100_000), ..RequestOptions::default() };
        for path in ["bytes", "chunked", "close"] {
            let got = get(driver, &origin.url(&format!("/{path}/100000")), &options);
            assert_eq!(got.ok().len(), 100_000);
            let got = get(driver, &origin.url(&format!("/{path}/100001")), &options);
            fails(&got, ErrorKind::TooLarge, 63);
            let most = if path == "bytes" { 0 } else { 100_000 };
            assert!(got.body.len() <= most, "{driver:?} {path}: {}", got.body.len());
        }
        assert_eq!(get(driver, &origin.url("/chain/1"), &RequestOptions { max_size: Some(0), ..following() }).exit, 63);
    }
}

#[test]
fn a_request_that_cannot_be_said_is_not_sent() {
    let origin = start_origin();
    for driver in DRIVERS {
        for (name, value) in [("X", "a\r\nEvil: 1"), ("X\r\nEvil", "1"), ("X Y", "1"), ("", "1"), ("X", "a\0b")] {
            let mut options = RequestOptions::default();
            options.fields.push((name.into(), value.into()));
            assert_eq!(get(driver, &origin.url("/echo"), &options).exit, 2, "{driver:?} {name:?}");
        }
        let options = RequestOptions { method: "GET / HTTP/1.1\r\nX:".into(), ..RequestOptions::default() };
        assert_eq!(get(driver, &origin.url("/echo"), &options).exit, 2, "{driver:?}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn coded_content_is_decoded() {
    let origin = start_origin();
    let text = testkit::pattern::text(origin.site().seed(), 300_000);
    for driver in DRIVERS {
        let client = Client::new();
        let decoding = RequestOptions { decode: true, ..RequestOptions::default() };
        for path in ["/gzip/300000", "/deflate/300000", "/rawdeflate/300000", "/br/300000", "/zstd/300000"] {
            assert!(driver.get(&client, &origin.url(path), &decoding).ok() == text, "{driver:?} {path}");
            assert!(driver.get(&client, &origin.url(path), &RequestOptions::default()).ok() != text, "{path}");
        }
        for stack in ["gzip,br", "zstd,gzip,deflate", "auto"] {
            let got = driver.get(&client, &origin.url(&format!("/text/300000?enc={stack}")), &decoding);
            assert!(got.ok() == text, "{driver:?} {stack}");
            assert!(got.facts.body_bytes < 300_000, "it came coded");
        }
        let head = RequestOptions { method: "HEAD".into(), ..decoding.clone() };
        assert_eq!(driver.get(&client, &origin.url("/gzip/300000"), &head).ok(), b"");
    }
}

#[test]
fn coded_content_that_is_broken() {
    let coded = testkit::coding::ContentCoding::Gzip.encode(&testkit::pattern::text(1, 100_000));
    let head = |length: usize, coding: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Encoding: {coding}\r\n\r\n").into_bytes()
    };
    let decoding = RequestOptions {
        decode: true,
        curl_compat: CurlCompat { decodes_all: true, ..CurlCompat::default() },
        ..RequestOptions::default()
    };
    let half = coded.len() / 2;
    let mut flipped = coded.clone();
    flipped[half] ^= 0x55;
    for (reply, exit) in [
        ([head(half, "gzip"), coded[..half].to_vec()].concat(), 61),
        ([head(flipped.len(), "gzip"), flipped].concat(), 61),
        ([head(coded.len(), "br"), coded.clone()].concat(), 61),
        ([head(5, "x-unknown"), b"hello".to_vec()].concat(), 61),
        ([head(coded.len(), "gzip,gzip,gzip,gzip,gzip,gzip"), coded.clone()].concat(), 61),
        ([head(0, "gzip")].concat(), 0),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n0\r\n\r\n".to_vec(), 0),
    ] {
        for driver in DRIVERS {
            let peer = RawPeer::start(vec![vec![Step::ReadHead, Step::send(&reply)]]);
            let got = get(driver, &peer.url("/"), &decoding);
            assert_eq!(
                got.exit,
                exit,
                "{driver:?} {:?}: {}",
                String::from_utf8_lossy(&reply[..90.min(reply.len())]),
                got.message
            );
        }
    }
    let origin = start_origin();
    for driver in DRIVERS {
        let got = get(driver, &origin.url("/bomb/500"), &decoding);
        fails(&got, ErrorKind::TooLarge, 63);
        assert!(got.body.len() <= 8 << 20, "{}", got.body.len());
    }
}

#[test]
fn no_secret_is_in_a_message() {
    for driver in DRIVERS {
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let got = get(driver, &format!("http://user:hunter2@{closed}/"), &RequestOptions::default());
        assert_eq!(got.exit, 7);
        assert!(!got.message.contains("hunter2"), "{}", got.message);
    }
    for url in [
        "http://user:hunter2@[::1/",
        "http://user:hunter2@h:99999/",
        "http://user:hunter2@a b/",
        "gopher://u:hunter2@h/",
    ] {
        let run =
            common::run(&Client::new(), common::fetching(&RequestOptions::default()), common::one_thread(), [url]);
        assert!(!run.reports[0].message.contains("hunter2"), "{}", run.reports[0].message);
    }
}

#[test]
fn a_peer_that_is_only_half_there_is_written_to() {
    // The peer stops reading for a while: a request larger than the socket's buffers goes out in parts.
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
        let mut options = post("");
        options.body = Some(vec![b'x'; 8 << 20].into());
        assert_eq!(get(driver, &url, &options).ok(), b"ok", "{driver:?}");
    }
    serving.join().unwrap();
}

/// Programs that give each request what is left of a deadline have one connection all the same.
#[test]
fn requests_that_give_a_connection_different_times_share_it() {
    let exchange = || [Step::ReadHead, Step::send(OK)];
    for driver in DRIVERS {
        let peer = RawPeer::start(vec![[exchange(), exchange(), exchange()].concat()]);
        let client = Client::new();
        for seconds in [30, 20, 25] {
            let mut options = RequestOptions::default();
            options.connect.timeout = Duration::from_secs(seconds);
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {seconds} {}", got.message);
        }
    }
}
