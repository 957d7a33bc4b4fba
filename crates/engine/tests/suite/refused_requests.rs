//! Tests of requests that the server refuses without processing them: how soon they are sent again,
//! and what becomes of content that can be sent only once.

use crate::common;
use crate::support::http2_replies::{REFUSED_STREAM, defaults};

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{DRIVERS, FetchOutcome};
use haul::body::upload::RequestBody;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::frames::{Frame, H2Peer, goaway, rst};

/// The pause that the options of these tests set.
const PAUSE: Duration = Duration::from_millis(300);

/// The times of the requests that a peer has received.
type Times = Arc<Mutex<Vec<Instant>>>;

fn note(times: &Times) {
    times.lock().unwrap().push(Instant::now());
}

fn posting(options: RequestOptions, body: RequestBody) -> RequestOptions {
    let mut options = RequestOptions { method: "POST".into(), body: Some(body), ..options };
    options.retry.max = 1;
    options.retry.delay = Some(PAUSE);
    options
}

/// Asserts that a request was sent four times, with a pause before each repetition but the first.
#[track_caller]
fn assert_paused(times: &Times) {
    let times = times.lock().unwrap();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    assert!(pauses[1..].iter().all(|pause| *pause >= PAUSE), "{pauses:?}");
}

/// Asserts that a transfer failed because its content cannot be sent again.
#[track_caller]
fn assert_spent(got: &FetchOutcome, cause: &str) {
    assert_eq!((got.kind, got.exit), (Some(ErrorKind::Rewind), 65), "{}", got.message);
    assert!(got.message.contains(cause) && got.message.contains("cannot be sent again"), "{}", got.message);
}

#[test]
fn repeatedly_refused_stream_is_sent_after_pauses() {
    for driver in DRIVERS {
        let times = Times::default();
        let notes = Arc::clone(&times);
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            loop {
                let asked = conn.request()?;
                note(&notes);
                conn.send(rst(asked.stream, REFUSED_STREAM))?;
            }
        });
        let options = posting(defaults(), b"again"[..].into());
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!(got.exit, 92, "{driver:?}: {}", got.message);
        assert_paused(&times);
    }
}

#[test]
fn pause_beyond_time_limit_ends_the_transfer() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            loop {
                let asked = conn.request()?;
                conn.send(rst(asked.stream, REFUSED_STREAM))?;
            }
        });
        let mut options = posting(defaults(), b"again"[..].into());
        options.max_time = Some(Duration::from_secs(30));
        options.retry.delay = Some(Duration::from_secs(3600));
        let got = driver.get(&Client::new(), &peer.url("/"), &options);
        assert_eq!((got.exit, peer.requests().len()), (92, 2), "{driver:?}: {}", got.message);
    }
}

#[test]
fn refused_one_shot_content_opens_no_connection() {
    for driver in DRIVERS {
        for goes_away in [false, true] {
            let peer = H2Peer::start(move |_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                conn.frame_of(Frame::DATA)?;
                conn.send(if goes_away { goaway(0, 0) } else { rst(asked.stream, REFUSED_STREAM) })?;
                conn.drain()
            });
            let options = posting(defaults(), RequestBody::reader(&b"once"[..]));
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_spent(&got, if goes_away { "went away" } else { "REFUSED_STREAM" });
            assert_eq!(peer.connections(), 1, "{driver:?} {goes_away}");
        }
    }
}

#[cfg(feature = "http3")]
mod http3 {
    use haul::request::Http3Policy;
    use testkit::h3_peer::H3Peer;

    use super::*;
    use crate::common::trusting_ca;

    const REQUEST_REJECTED: u64 = 0x10b;

    #[test]
    fn repeatedly_rejected_request_is_sent_after_pauses() {
        for driver in DRIVERS {
            let times = Times::default();
            let notes = Arc::clone(&times);
            let peer = H3Peer::start(move |_, conn| {
                conn.greet(&[])?;
                loop {
                    let asked = conn.request()?;
                    note(&notes);
                    conn.reset(asked.stream, REQUEST_REJECTED)?;
                }
            });
            let (options, _ca) = trusting_ca(peer.ca_pem());
            let options = RequestOptions { http3: Http3Policy::Only, ..options };
            let got = driver.get(&Client::new(), &peer.url("/"), &posting(options, b"again"[..].into()));
            assert_eq!(got.exit, 95, "{driver:?}: {}", got.message);
            assert_paused(&times);
        }
    }

    #[test]
    fn rejected_one_shot_content_opens_no_connection() {
        for driver in DRIVERS {
            let peer = H3Peer::start(|_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                conn.read_to_end(asked.stream)?;
                conn.reset(asked.stream, REQUEST_REJECTED)?;
                conn.wait_closed()
            });
            let (options, _ca) = trusting_ca(peer.ca_pem());
            let options = RequestOptions { http3: Http3Policy::Only, ..options };
            let options = posting(options, RequestBody::reader(&b"once"[..]));
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_spent(&got, "H3_REQUEST_REJECTED");
            assert_eq!(peer.connections(), 1, "{driver:?}");
        }
    }
}
