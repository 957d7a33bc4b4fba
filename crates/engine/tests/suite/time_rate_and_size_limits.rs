//! Tests of limits on time, rate and size.

use crate::common;

use std::time::Duration;

use common::{
    DRIVERS, DriverKind, OK, assert_fails, following, get, one_thread, run, single_stage, start_origin, trusting_ca,
    with_connect_timeout,
};
use haul::fleet::FleetOptions;
use haul::interrupt_callback::InterruptCallback;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

#[test]
fn limit_rate_covers_body_received_with_head() {
    for driver in DRIVERS {
        let body = "x".repeat(100_000);
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(whole)]]);
        let options = RequestOptions { limit_rate: Some(200_000), ..RequestOptions::default() };
        let got = get(driver, &peer.url("/"), &options);
        let total = got.facts.total;
        assert_eq!(got.ok(), body.as_bytes());
        // Half a second, less the initial allowance and the bytes received with the head.
        assert!(total > Duration::from_millis(400), "{driver:?}: {total:?}");
    }
}

/// Checks that the callback is called while a rate limit of one byte a second delays a transfer.
#[test]
fn interrupt_callback_ends_rate_limited_transfer() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n";
    let download = vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::send(vec![b'x'; 900_000])];
    let upload = vec![ScriptStep::ReadToEnd];
    let content = Some(vec![b'x'; 900_000].into());
    for (script, body) in [(download, None), (upload, content)] {
        let interrupt = || Some(InterruptCallback::new(|| true));
        let method = if body.is_some() { "PUT" } else { "GET" };
        let mut options =
            RequestOptions { method: method.into(), body, limit_rate: Some(1), ..RequestOptions::default() };
        options.expect_timeout = Duration::ZERO;
        let peer = H1Peer::always(script);
        let fleet_options = FleetOptions { interrupt: interrupt(), ..one_thread() };
        let fleet = run(&Client::new(), single_stage(&options), fleet_options, [peer.url("/")]);
        assert_eq!(fleet.result.unwrap_err().kind(), ErrorKind::Interrupted, "{method}");
        options.interrupt = interrupt();
        let got = get(DriverKind::Blocking, &peer.url("/"), &options);
        assert_eq!(got.kind, Some(ErrorKind::Interrupted), "{method}: {}", got.message);
    }
}

#[test]
fn max_time_ends_a_silent_or_dripping_server() {
    for driver in DRIVERS {
        for script in [
            vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd],
            vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
                ScriptStep::ReadToEnd,
            ],
            vec![ScriptStep::ReadHead, ScriptStep::SendSlowly(vec![b'H'; 1 << 20], Duration::from_millis(5))],
        ] {
            let peer = H1Peer::start(vec![script.clone(), vec![ScriptStep::ReadHead, ScriptStep::send(OK)]]);
            let client = Client::new();
            let options = RequestOptions { max_time: Some(Duration::from_millis(300)), ..RequestOptions::default() };
            let got = driver.get(&client, &peer.url("/"), &options);
            // The last script is not HTTP, which is noticed before the time limit.
            if !matches!(script.last(), Some(ScriptStep::SendSlowly(..))) {
                assert_fails(&got, ErrorKind::Timeout, 28);
            }
            assert_ne!(got.exit, 0);
            assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        }
        // A dripping body is never silent.
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n";
        let drip = ScriptStep::SendSlowly(vec![b'x'; 900_000], Duration::from_millis(5));
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(head), drip]]);
        let options = RequestOptions { max_time: Some(Duration::from_millis(300)), ..RequestOptions::default() };
        assert_fails(&get(driver, &peer.url("/"), &options), ErrorKind::Timeout, 28);
    }
}

#[test]
fn max_time_does_not_apply_to_next_transfer() {
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send(OK),
            ScriptStep::ReadHead,
            ScriptStep::Sleep(Duration::from_millis(2300)),
            ScriptStep::send(OK),
        ]]);
        let client = Client::new();
        let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..RequestOptions::default() };
        assert_eq!(driver.get(&client, &peer.url("/"), &options).ok(), b"ok");
        assert_eq!(driver.get(&client, &peer.url("/"), &RequestOptions::default()).ok(), b"ok", "{driver:?}");
        assert_eq!(peer.connections(), 1);
    }
}

#[test]
fn max_size_bounds_every_body() {
    let origin = start_origin();
    for driver in DRIVERS {
        let options = RequestOptions { max_size: Some(100_000), ..RequestOptions::default() };
        for path in ["bytes", "chunked", "close"] {
            let got = get(driver, &origin.url(&format!("/{path}/100000")), &options);
            assert_eq!(got.ok().len(), 100_000);
            let got = get(driver, &origin.url(&format!("/{path}/100001")), &options);
            assert_fails(&got, ErrorKind::TooLarge, 63);
            let most = if path == "bytes" { 0 } else { 100_000 };
            assert!(got.body.len() <= most, "{driver:?} {path}: {}", got.body.len());
        }
        assert_eq!(get(driver, &origin.url("/chain/1"), &RequestOptions { max_size: Some(0), ..following() }).exit, 63);
    }
}

/// Checks that requests with different connect timeouts share a connection. (A program with a
/// deadline passes a shorter timeout with each request.)
#[test]
fn requests_with_different_connect_timeouts_share_a_connection() {
    let exchange = || [ScriptStep::ReadHead, ScriptStep::send(OK)];
    for driver in DRIVERS {
        let peer = H1Peer::start(vec![[exchange(), exchange(), exchange()].concat()]);
        let client = Client::new();
        for seconds in [30, 20, 25] {
            let mut options = RequestOptions::default();
            options.connect.timeout = Duration::from_secs(seconds);
            let got = driver.get(&client, &peer.url("/"), &options);
            assert_eq!((got.exit, got.status), (0, 200), "{driver:?} {seconds} {}", got.message);
        }
    }
}

#[test]
fn dripping_tls_handshake_ends_at_connect_timeout() {
    // The start of a record that takes a minute at this rate.
    let mut record = vec![0x16, 3, 3, 0x40, 0];
    record.resize(1200, 0);
    for driver in DRIVERS {
        let peer = H1Peer::always(vec![ScriptStep::SendSlowly(record.clone(), Duration::from_millis(50))]);
        let url = peer.url("/").replace("http:", "https:");
        let mut options = with_connect_timeout(Duration::from_millis(400));
        options.tls.verify = false;
        let got = driver.get(&Client::new(), &url, &options);
        assert_eq!(got.kind, Some(ErrorKind::Timeout), "{driver:?} {}", got.message);
    }
}

#[test]
fn maximum_duration_means_no_time_limit() {
    let origin = common::start_origin();
    for driver in DRIVERS {
        let mut options = with_connect_timeout(Duration::MAX);
        options.max_time = Some(Duration::MAX);
        let got = driver.get(&Client::new(), &origin.url("/small"), &options);
        assert_eq!(got.ok(), b"small\n", "{driver:?}");
    }
}

/// Checks that the write timeout ends with the upload: a server may think about a request for
/// longer.
#[test]
fn write_timeout_does_not_apply_after_upload() {
    const SIZE: usize = 16 << 20;
    let slowly = [ScriptStep::ReadBytes(256 << 10), ScriptStep::Sleep(Duration::from_millis(2))];
    let mut script = vec![ScriptStep::ReadHead];
    script.extend(slowly.iter().cycle().take(2 * (SIZE >> 18)).cloned());
    script.extend([ScriptStep::Sleep(Duration::from_millis(1500)), ScriptStep::send(OK)]);
    let identity = TestCertificates::generate();
    let (trusting, _file) = trusting_ca(identity.ca_pem());
    let options = RequestOptions {
        method: "PUT".into(),
        body: Some(vec![b'x'; SIZE].into()),
        expect_timeout: Duration::from_millis(1),
        write_timeout: Some(Duration::from_secs(1)),
        read_timeout: Some(Duration::from_secs(30)),
        ..trusting
    };
    for driver in DRIVERS {
        let peer = H1Peer::start_tls(vec![script.clone()], &identity, &[]);
        let url = peer.url("/").replace("http:", "https:");
        assert_eq!(get(driver, &url, &options).ok(), b"ok", "{driver:?} over TLS");
        let peer = H1Peer::start(vec![script.clone()]);
        assert_eq!(get(driver, &peer.url("/"), &options).ok(), b"ok", "{driver:?}");
    }
}
