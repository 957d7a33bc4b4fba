//! Tests of the number of connections to one host: it grows for a distant host, does not change for
//! a near host, and falls for a host that refuses requests.

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{FleetRunResult, one_thread, run, single_stage, start_origin};
use haul::batch::BatchOptions;
use haul::fleet::FleetOptions;
use haul::request::RetryRules;
use haul::{Client, RequestOptions};

/// A server that answers a limited number of requests at a time, each after a delay, and refuses
/// all others.
struct RequestLimitServer {
    address: String,
    counts: Arc<BoundedServerCounts>,
}

/// The numbers of requests in progress, served and refused.
#[derive(Default)]
struct BoundedServerCounts {
    working: AtomicUsize,
    served: AtomicUsize,
    refused: AtomicUsize,
    /// The largest number of requests that were in progress at the same time.
    most: AtomicUsize,
}

/// The reaction of a [`RequestLimitServer`] to a request beyond its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverloadReaction {
    Unavailable,
    Close,
}

impl RequestLimitServer {
    fn start(bears: usize, delay: Duration, refusal: OverloadReaction) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let counts = Arc::new(BoundedServerCounts::default());
        let of_server = Arc::clone(&counts);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = Arc::clone(&of_server);
                thread::spawn(move || counts.serve(&stream, bears, delay, refusal));
            }
        });
        Self { address, counts }
    }

    fn urls(&self, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{}/{number}", self.address)).collect()
    }
}

impl BoundedServerCounts {
    fn serve(&self, stream: &TcpStream, bears: usize, delay: Duration, refusal: OverloadReaction) {
        let mut lines = BufReader::new(stream).lines();
        while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
            let working = self.working.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(working, Ordering::SeqCst);
            let is_refused = working > bears;
            if is_refused {
                self.refused.fetch_add(1, Ordering::SeqCst);
            } else {
                thread::sleep(delay);
                self.served.fetch_add(1, Ordering::SeqCst);
            }
            self.working.fetch_sub(1, Ordering::SeqCst);
            let head = match (is_refused, refusal) {
                (true, OverloadReaction::Close) => return,
                (true, OverloadReaction::Unavailable) => "503 Service Unavailable",
                (false, _) => "200 OK",
            };
            let reply = format!("HTTP/1.1 {head}\r\nContent-Length: 3\r\n\r\nok\n");
            if (&mut &*stream).write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn fetch(options: FleetOptions, urls: Vec<String>) -> FleetRunResult {
    run(&Client::new(), single_stage(&RequestOptions::default()), options, urls)
}

#[test]
fn distant_host_gets_up_to_fifty_connections() {
    for (parallel, range) in [(64, 7..=50), (20, 7..=20)] {
        let origin = start_origin();
        let urls: Vec<_> = (0..400).map(|number| origin.url(&format!("/delay/60/small/{number}"))).collect();
        let got = fetch(FleetOptions { parallel, ..one_thread() }, urls);
        assert_eq!(got.summary().succeeded, 400);
        assert!(range.contains(&origin.peak_requests()), "{} at a time", origin.peak_requests());
    }
}

#[test]
fn user_set_per_host_limit_is_not_adapted() {
    let origin = start_origin();
    let urls: Vec<_> = (0..100).map(|number| origin.url(&format!("/delay/30/small/{number}"))).collect();
    let got = fetch(FleetOptions { per_host: Some(6), ..one_thread() }, urls);
    assert_eq!(got.summary().succeeded, 100);
    // The first URL of the output may use one more.
    assert!(origin.peak_requests() <= 7, "{} at a time", origin.peak_requests());
}

#[test]
fn batch_opens_more_connections_to_a_distant_host() {
    let origin = start_origin();
    let client = Client::new();
    let requests =
        (0..400).map(|number| client.get(&origin.url(&format!("/delay/60/small/{number}"))).build().unwrap());
    let replies = client.fetch_all(requests, BatchOptions::default());
    assert_eq!(replies.filter(|(_, reply)| reply.is_ok()).count(), 400);
    assert!((7..=50).contains(&origin.peak_requests()), "{} at a time", origin.peak_requests());
}

#[test]
fn requests_refused_by_overloaded_host_are_repeated() {
    for (bears, refusal, retries) in
        [(12, OverloadReaction::Unavailable, 0), (12, OverloadReaction::Close, 0), (3, OverloadReaction::Close, 10)]
    {
        let server = RequestLimitServer::start(bears, Duration::from_millis(40), refusal);
        let retry = RetryRules { max: retries, ..RetryRules::default() };
        let options = RequestOptions { retry, ..RequestOptions::default() };
        let got = run(&Client::new(), single_stage(&options), one_thread(), server.urls(400));
        let counts = &server.counts;
        let case = format!("{bears}, {refusal:?}");
        assert_eq!(got.summary().succeeded, 400, "{case}: {:?}", got.summary().causes);
        // A request that is refused at each of its tries keeps the last 503, which is rare.
        let least = if refusal == OverloadReaction::Unavailable { 390 } else { 400 };
        assert!((least..=400).contains(&counts.served.load(Ordering::SeqCst)), "{case}");
        // At most those of one step from 6 to 50, and a few by probes.
        let refused = counts.refused.load(Ordering::SeqCst);
        assert!(refused <= 120, "{case}: {refused} refused");
        assert!(counts.most.load(Ordering::SeqCst) <= 52, "{case}");
    }
}

#[test]
fn refused_request_at_initial_limit_is_not_repeated() {
    let server = RequestLimitServer::start(2, Duration::from_millis(40), OverloadReaction::Unavailable);
    let retry = RetryRules { max: 0, ..RetryRules::default() };
    let options = RequestOptions { fail: true, retry, ..RequestOptions::default() };
    // Without an order, no URL of the output runs beyond the limit, which would count as growth.
    let fleet = FleetOptions { unordered: true, ..one_thread() };
    let got = run(&Client::new(), single_stage(&options), fleet, server.urls(40));
    let refused = server.counts.refused.load(Ordering::SeqCst);
    let failed = got.summary().failed as usize;
    assert!(failed > 0 && failed <= refused, "{failed} failed of {refused} refused");
}
