//! Tests of retries: which failures are retried, the delays, and requests that are never sent
//! twice.

use crate::common;

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use common::{DRIVERS, DriverKind, FetchOutcome, OK, assert_fails, get, retrying, start_origin, with_time_limit};
use haul::body::delivery::BodyDelivery;
use haul::buffer_pool::OfferedBodyBytes;
use haul::request::SpeedLimit;
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::memory::MemorySink;
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};
use haul::transfer::{ExchangeFailurePoint, Transfer, TransferStep};
use haul::{Client, Error, ErrorKind, RequestOptions, Target};
use haul_policy::redirect::RedirectRules;
use haul_proto::h1::{H1Config, H1Event, H1Machine};
use haul_proto::time::MonotonicTimestamp;
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn transient_statuses_are_retried() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let got = get(driver, &origin.url("/flaky/2/small/1"), &retrying(2));
        assert_eq!((got.ok(), got.facts.retries, got.facts.requests), (&b"small 1\n"[..], 2, 3), "{driver:?}");
        let got = get(driver, &origin.url("/flaky/3/small/2"), &retrying(2));
        assert_eq!((got.ok(), got.status), (&b"not yet\n"[..], 503), "{driver:?}");
        let failing = RequestOptions { fail: true, ..retrying(1) };
        assert_fails(&get(driver, &origin.url("/flaky/9/small/3"), &failing), ErrorKind::Status, 22);
        // A POST is not retried.
        let mut posting = retrying(2);
        posting.method = "POST".into();
        assert_eq!(get(driver, &origin.url("/flaky/1/small/4"), &posting).status, 503);
        assert_eq!(origin.hits("/flaky/1/small/4"), 1);
    }
}

#[test]
fn retry_after_delay_is_honoured_and_capped() {
    let origin = start_origin();
    for driver in DRIVERS {
        origin.forget();
        let began = Instant::now();
        assert_eq!(get(driver, &origin.url("/retry-after/1/small/1"), &retrying(1)).ok(), b"small 1\n");
        assert!(began.elapsed() >= Duration::from_secs(1), "{driver:?}");
        let mut capped = retrying(1);
        capped.retry.cap = Duration::from_millis(1);
        for seconds in ["3600", "18446744073709551615", "99999999999999999999999"] {
            let peer = H1Peer::start(vec![vec![
                ScriptStep::ReadHead,
                ScriptStep::send(format!("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: {seconds}\r\n\r\n")),
                ScriptStep::ReadHead,
                ScriptStep::send(OK),
            ]]);
            assert_eq!(get(driver, &peer.url("/"), &capped).ok(), b"ok", "{driver:?} {seconds}");
        }
        // Without retries the field has no effect.
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: 18446744073709551615\r\n\r\n"),
        ]]);
        assert_eq!(get(driver, &peer.url("/"), &RequestOptions::default()).status, 429, "{driver:?}");
    }
}

/// Checks that a response without a head (HTTP/0.9) is accepted only on a new connection. On a
/// reused connection, the bytes may be the rest of another response.
#[test]
fn headless_response_is_accepted_only_on_new_connections() {
    for driver in DRIVERS {
        for (method, exit, connections) in [("GET", 0, 2), ("POST", 8, 1)] {
            let headless = [ScriptStep::ReadHead, ScriptStep::send("no head"), ScriptStep::Close];
            let used = [vec![ScriptStep::ReadHead, ScriptStep::send(OK)], headless.to_vec()].concat();
            let peer = H1Peer::start(vec![used, headless.to_vec()]);
            let client = Client::new();
            let mut options = RequestOptions { method: method.into(), ..RequestOptions::default() };
            options.deviations.http09 = true;
            assert_eq!(driver.get(&client, &peer.url("/"), &options).ok(), b"ok");
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!((got.exit, peer.connections()), (exit, connections), "{driver:?} {method}: {}", got.message);
            if exit == 0 {
                assert_eq!(got.ok(), b"no head", "{driver:?}");
            }
        }
    }
}

#[test]
fn idempotent_request_on_stale_connection_is_resent_once() {
    for driver in DRIVERS {
        for (method, expected) in [("GET", 0), ("POST", 52)] {
            let peer = H1Peer::start(vec![
                // The server reads the second request and closes.
                vec![ScriptStep::ReadHead, ScriptStep::send(OK), ScriptStep::ReadHead, ScriptStep::Close],
                vec![ScriptStep::ReadHead, ScriptStep::send(OK)],
            ]);
            let client = Client::new();
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
            let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!(got.exit, expected, "{driver:?} {method}: {}", got.message);
            assert_eq!((got.facts.retries, peer.connections()), (0, if expected == 0 { 2 } else { 1 }), "{driver:?}");
        }
        // `any_method` permits resending a POST.
        let peer = H1Peer::start(vec![
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send(OK),
                ScriptStep::ReadHead,
                ScriptStep::ReadBytes(3),
                ScriptStep::Close,
            ],
            vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(3), ScriptStep::send(OK)],
        ]);
        let client = Client::new();
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
        let body = Some("a=1".into());
        let mut options = RequestOptions { method: "POST".into(), body, ..RequestOptions::default() };
        (options.retry.max, options.retry.any_method) = (0, true);
        assert_eq!(driver.get(&client, &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
        assert!(peer.received(1).ends_with(b"a=1"), "{driver:?}");
        // A new connection that fails like this is not replaced.
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Close]);
        assert_eq!(get(driver, &peer.url("/"), &RequestOptions::default()).exit, 52, "{driver:?}");
        assert_eq!(peer.connections(), 1, "{driver:?}");
    }
}

#[test]
fn broken_response_is_retried_when_retries_are_set() {
    for driver in DRIVERS {
        let broken = [
            vec![ScriptStep::ReadHead, ScriptStep::Reset],
            vec![ScriptStep::ReadHead, ScriptStep::Close],
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"),
                ScriptStep::Close,
            ],
            vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 20"), ScriptStep::Close],
        ];
        for script in broken {
            let peer = H1Peer::start(vec![script.clone(), vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
            let got = if driver == DriverKind::Blocking {
                get(driver, &peer.url("/"), &retrying(1))
            } else {
                fetch_behind_a_slow_url(&peer.url("/"), &retrying(1))
            };
            assert_eq!((got.ok(), got.facts.retries), (&b"ok"[..], 1), "{driver:?} {script:?}");
        }
    }
}

/// Checks that a body without a validator is fetched from the beginning at each retry, and that
/// received bytes do not restore the number of retries.
#[test]
fn body_that_always_breaks_off_exhausts_retries() {
    let half = [b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n".to_vec(), vec![b'x'; 300_000]].concat();
    let broken = vec![ScriptStep::ReadHead, ScriptStep::Send(half), ScriptStep::Close];
    let whole = vec![ScriptStep::ReadHead, ScriptStep::send(OK)];
    let peer = H1Peer::start(vec![broken.clone(), broken.clone(), broken, whole]);
    // The sink of this test can restart.
    let got = get(DriverKind::Blocking, &peer.url("/"), &retrying(2));
    assert_eq!((got.exit, got.facts.retries), (18, 2), "{}", got.message);
}

/// Fetches a URL as the second URL of a fleet. The body of the first URL is streamed to the output,
/// while the body of the second URL is buffered and can be restarted.
fn fetch_behind_a_slow_url(url: &str, options: &RequestOptions) -> FetchOutcome {
    let slow = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::Await(1),
        ScriptStep::send("HTTP/1.1 204 No Content\r\n\r\n"),
    ]]);
    let (urls, url) = ([slow.url("/"), url.to_owned()], url.to_owned());
    let (done, is_done) = channel();
    let client = Client::new();
    let stages = common::single_stage(options);
    let items = Box::new(urls.into_iter().map(|url| Ok(common::item(url))));
    thread::spawn(move || {
        // Released when the other URL has been reported, or when the test times out.
        let _ = is_done.recv_timeout(common::TEST_TIMEOUT);
        slow.release();
        slow.finished(1);
    });
    let notes = NotifyingReporter { notes: common::RecordingReporter::default(), url: url.clone(), done };
    let seen = notes.notes.clone();
    let output = with_time_limit("the fleet", move || {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fleet = haul::fleet::Fleet::new(stages, common::one_thread());
        fleet.run(&client, items, DescriptorWriter::new(writer.into()), notes).unwrap();
        let mut output = Vec::new();
        reader.read_to_end(&mut output).unwrap();
        output
    });
    let got = seen.all().into_iter().find(|got| got.url == url).unwrap();
    FetchOutcome { body: output, ..got }
}

/// A reporter that sends a message when the transfer of one given URL has finished.
struct NotifyingReporter {
    notes: common::RecordingReporter,
    url: String,
    done: std::sync::mpsc::Sender<()>,
}

impl haul::fleet::TransferReporter for NotifyingReporter {
    fn finished(&self, job: &haul::fleet::FleetJob, outcome: &haul::transfer::TransferOutcome) -> Option<Vec<u8>> {
        if job.url == self.url {
            let _ = self.done.send(());
        }
        self.notes.finished(job, outcome)
    }
}

#[test]
fn delivered_output_is_not_fetched_again() {
    let script = vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"),
        ScriptStep::Close,
    ];
    let peer = H1Peer::always(script.clone());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let (url, options) = (peer.url("/"), Arc::new(retrying(3)));
    let outcome = with_time_limit("fetch", move || {
        let sink = BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None);
        Client::new().fetch(Target::parse(&url).unwrap(), options, Box::new(sink))
    });
    assert_eq!(outcome.result.unwrap_err().exit_code(), 18);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    assert_eq!((output.as_str(), peer.connections()), ("wrong", 1));

    // The first URL of a fleet streams as well.
    let peer = H1Peer::always(script);
    let got = get(DriverKind::Reactor, &peer.url("/"), &retrying(3));
    assert_eq!((got.exit, &got.body[..], peer.connections()), (18, &b"wrong"[..], 1));
}

#[test]
fn timeout_is_retried_when_retries_are_set() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd],
            vec![ScriptStep::ReadHead, ScriptStep::send(OK)],
        ]);
        let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..retrying(1) };
        assert_eq!(get(driver, &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
    }
}

#[test]
fn protocol_violation_is_not_retried() {
    for driver in DRIVERS {
        for (reply, asked, kind) in [
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 1, ErrorKind::Receive),
            ("HTTP/1.1 200 OK\r\nContent-Length: 42, 30\r\n\r\n", 1, ErrorKind::Protocol),
            ("HTTP/1.1 200 OK\nno colon\n\n", 1, ErrorKind::Protocol),
            // A truncated response may be whole the next time.
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 4, ErrorKind::PartialBody),
            ("HTTP/1.1 200 OK\r\nContent-", 4, ErrorKind::Receive),
        ] {
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Close]);
            // The reactor's output could not restart.
            let got = match driver {
                DriverKind::Blocking => driver.get(&Client::new(), &peer.url("/"), &retrying(3)),
                DriverKind::Reactor if kind == ErrorKind::PartialBody => continue,
                DriverKind::Reactor => driver.get(&Client::new(), &peer.url("/"), &retrying(3)),
            };
            assert_eq!((got.kind, peer.connections()), (Some(kind), asked), "{driver:?} {reply:?} {}", got.message);
        }
    }
}

/// Makes a transfer send its request without a connection, and passes the response head `reply` to
/// the transfer.
fn answered(transfer: &mut Transfer, reply: &str) {
    let mut conn = H1Machine::new(H1Config::default());
    transfer.enqueue(&mut conn, Instant::now()).unwrap();
    conn.advance_output(conn.output().len());
    let step = conn.step(MonotonicTimestamp(0), &mut reply.as_bytes().to_vec()).unwrap();
    let H1Event::Head { head, framing, .. } = step.event else { panic!("{:?}", step.event) };
    transfer.on_head(head, framing, Instant::now());
}

fn transfer(options: RequestOptions) -> Box<Transfer> {
    let target = Target::parse("http://a.test/").unwrap();
    Transfer::new(target, Arc::new(options), BodyDelivery::new(Box::new(MemorySink::default())), Instant::now(), 0)
}

#[test]
fn retry_after_pauses_the_host_only_once() {
    let mut transfer = transfer(retrying(5));
    answered(&mut transfer, "HTTP/1.1 503 X\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(transfer.host_pause(), Some(Duration::from_secs(100)));
    assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Again(_)));
    // The next attempt breaks, without another Retry-After.
    transfer.enqueue(&mut H1Machine::new(H1Config::default()), Instant::now()).unwrap();
    let broken = Error::new(ErrorKind::EmptyReply, "closed");
    assert!(matches!(
        transfer.on_failure(broken, ExchangeFailurePoint::BeforeResponse, Instant::now()),
        TransferStep::Again(_)
    ));
    assert_eq!(transfer.host_pause(), None);
}

#[test]
fn broken_error_body_is_retried_once() {
    let mut options = retrying(5);
    options.curl_compat.retries_whole = true;
    let mut transfer = transfer(options);
    answered(&mut transfer, "HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n");
    let broken = Error::new(ErrorKind::PartialBody, "closed");
    assert!(matches!(
        transfer.on_failure(broken, ExchangeFailurePoint::InResponse, Instant::now()),
        TransferStep::Again(_)
    ));
    // The retry that the status was due was this one.
    answered(&mut transfer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Done(Ok(()))));
}

#[test]
fn retry_after_does_not_pause_the_redirecting_host() {
    let options = RequestOptions { redirects: RedirectRules::default(), ..retrying(5) };
    let mut transfer = transfer(options);
    answered(&mut transfer, "HTTP/1.1 302 X\r\nLocation: http://b.test/\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Again(Duration::ZERO)));
    answered(&mut transfer, "HTTP/1.1 503 X\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(transfer.host_pause(), None);
    // The transfer itself waits.
    assert!(
        matches!(transfer.on_complete(Instant::now()), TransferStep::Again(wait) if wait == Duration::from_secs(100))
    );
}

/// Checks a server that sends the forbidden content of a 204, 304 or HEAD response only after the
/// next request: its bytes are no response to that request.
#[test]
fn late_surplus_bytes_repeat_the_request() {
    for driver in DRIVERS {
        for (method, first) in [
            ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
            ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n"),
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        ] {
            let late = ScriptStep::send("hello\r\n\r\n");
            let used = vec![
                ScriptStep::ReadHead,
                ScriptStep::send(first),
                ScriptStep::ReadHead,
                late.clone(),
                ScriptStep::Close,
            ];
            let peer = H1Peer::start(vec![used.clone(), vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
            let client = Client::new();
            let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
            assert_eq!(driver.get(&client, &peer.url("/"), &options).exit, 0);
            assert_eq!(
                driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(),
                b"ok",
                "{driver:?} {first}"
            );
            // A new connection has no earlier response, and a POST may not be repeated.
            let peer = H1Peer::start(vec![used.clone(), vec![ScriptStep::ReadHead, late, ScriptStep::Close]]);
            let client = Client::new();
            assert_eq!(driver.get(&client, &peer.url("/"), &options).exit, 0);
            assert_ne!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).exit, 0, "{driver:?} {first}");
            assert_eq!(peer.connections(), 2);
            let peer = H1Peer::start(vec![used, vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
            let client = Client::new();
            let post = RequestOptions { method: "POST".into(), ..RequestOptions::default() };
            assert_eq!(driver.get(&client, &peer.url("/"), &options).exit, 0);
            assert_ne!(driver.get(&client, &peer.url("/"), &post).exit, 0, "{driver:?} {first}");
        }
    }
}

/// Checks that each target of a transfer may answer 421 once on a reused connection.
#[test]
fn status_421_is_repeated_for_each_target() {
    let script = |last: String| {
        let wrong = ScriptStep::send("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n");
        let used = vec![ScriptStep::ReadHead, ScriptStep::send(OK), ScriptStep::ReadHead, wrong];
        vec![used, vec![ScriptStep::ReadHead, ScriptStep::send(last)]]
    };
    for driver in DRIVERS {
        let second = H1Peer::start(script(OK.to_owned()));
        let to = second.url("/");
        let first = H1Peer::start(script(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")));
        let client = Client::new();
        for peer in [&first, &second] {
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok");
        }
        let got = driver.get(&client, &first.url("/"), &common::following());
        assert_eq!((got.status, got.ok()), (200, &b"ok"[..]), "{driver:?}");
    }
}

/// Checks a server whose nonces are valid for one request: each attempt may answer challenges
/// again.
#[test]
fn challenges_are_counted_for_each_attempt() {
    let mut options = retrying(5);
    options.auth = AuthOptions {
        allowed: AllowedAuthSchemes { digest: true, ..AllowedAuthSchemes::NONE },
        ..AuthOptions::user(Credentials::new("me", "secret").unwrap())
    };
    let mut transfer = transfer(options);
    for attempt in 0..5 {
        let challenge = format!(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"{attempt}\", stale=true\r\n\
             Content-Length: 0\r\n\r\n"
        );
        answered(&mut transfer, &challenge);
        assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Again(_)), "{attempt}");
        answered(&mut transfer, "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n");
        assert!(matches!(transfer.on_complete(Instant::now()), TransferStep::Again(_)), "{attempt}");
    }
    assert_eq!(transfer.facts.retries, 5);
}

/// Makes a transfer with a minimum speed, whose first response broke off after 100,000 bytes.
fn broken_transfer_with_minimum_speed() -> Box<Transfer> {
    let mut options = retrying(5);
    options.speed_limit = Some(SpeedLimit { bytes_per_second: 1000, time: Duration::from_secs(10) });
    let mut transfer = transfer(options);
    answered(&mut transfer, "HTTP/1.1 200 X\r\nETag: \"a\"\r\nContent-Length: 200000\r\n\r\n");
    transfer.on_body(OfferedBodyBytes::borrowed(&[b'x'; 100_000]), false, Instant::now()).unwrap();
    let broken = Error::new(ErrorKind::PartialBody, "closed");
    let step = transfer.on_failure(broken, ExchangeFailurePoint::InResponse, Instant::now());
    assert!(matches!(step, TransferStep::Again(_)), "{step:?}");
    transfer
}

#[test]
fn speed_of_resumed_attempt_excludes_earlier_bytes() {
    let mut transfer = broken_transfer_with_minimum_speed();
    let range = "Content-Range: bytes 100000-199999/200000\r\nContent-Length: 100000";
    answered(&mut transfer, &format!("HTTP/1.1 206 X\r\nETag: \"a\"\r\n{range}\r\n\r\n"));
    let resumed = Instant::now();
    let slow_at = (1..30).find(|second| transfer.check_speed(resumed + Duration::from_secs(*second)).is_some());
    assert_eq!(slow_at, Some(10));
}

#[test]
fn speed_of_resumed_attempt_includes_skipped_bytes() {
    let mut transfer = broken_transfer_with_minimum_speed();
    answered(&mut transfer, "HTTP/1.1 200 X\r\nETag: \"a\"\r\nContent-Length: 200000\r\n\r\n");
    let resumed = Instant::now();
    for second in 1..30 {
        let now = resumed + Duration::from_secs(second);
        transfer.on_body(OfferedBodyBytes::borrowed(&[b'x'; 2000]), false, now).unwrap();
        assert!(transfer.check_speed(now).is_none(), "{second}");
    }
}

#[test]
fn late_surplus_bytes_after_a_redirect_repeat_no_post() {
    for driver in DRIVERS {
        let moved = "HTTP/1.1 303 See Other\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n";
        let used = vec![
            ScriptStep::ReadHead,
            ScriptStep::send(moved),
            ScriptStep::ReadHead,
            ScriptStep::send("hello\r\n\r\n"),
            ScriptStep::Close,
        ];
        let peer = H1Peer::start(vec![used, vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
        let post = RequestOptions { method: "POST".into(), body: Some(b"".as_slice().into()), ..common::following() };
        assert_eq!(driver.get(&Client::new(), &peer.url("/form"), &post).ok(), b"ok", "{driver:?}");
        assert!(peer.saw(1, b"GET /done "), "{driver:?}");
        assert_eq!(peer.connections(), 2);
    }
}
