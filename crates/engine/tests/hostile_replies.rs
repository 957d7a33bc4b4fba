//! Tests of the library with hostile responses. A generator makes them from a seed, and a server
//! sends each to both drivers. Nothing may panic or hang, memory is bounded, and the result must be
//! the one that the generator predicts.
//!
//! `HAUL_HOSTILE_REPLIES=10000` tests more responses (`make hostile`).

mod common;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use common::{DRIVERS, retrying, with_prior_knowledge};
use haul::{Client, RequestOptions};
use testkit::hostile::{AllowedResult, HostileProtocol, HostileReply, HostileServer};
use testkit::rng::{Rng, mix};

/// The seed from which all hostile responses are made.
const SEED: u64 = 2;
/// The allowed peak memory of the test process in KiB: the 64 MiB that `make hostile` allows for
/// the client, and half as much again for the servers, which run in the same process.
const MAX_MEMORY_KIB: u64 = 96 << 10;
/// The number of hostile responses that are tested in parallel.
const WORKERS: usize = 2;
/// The number of hostile responses that one client receives. Each response has a separate server,
/// which runs as long as there is an idle connection to it.
const OF_ONE_CLIENT: usize = 50;

/// Returns the request options for a hostile response: the defaults with a retry if the response
/// has a predicted result, and random options if any result is allowed.
fn options(reply: &HostileReply, rng: &mut Rng) -> RequestOptions {
    let mut options = retrying(u32::from(!reply.may_stall()));
    // A server may ask for an hour in Retry-After.
    options.retry.cap = Duration::from_millis(10);
    // A time limit that only a silent server reaches.
    options.max_time = Some(Duration::from_secs(if reply.may_stall() { 1 } else { 20 }));
    if reply.promise == AllowedResult::Nothing {
        options.decode = rng.below(2) == 0;
        options.include_head = rng.below(4) == 0;
        options.fail = rng.below(2) == 0;
        options.redirects.follow = rng.below(2) == 0;
        options.redirects.max = 4;
        options.max_size = (rng.below(4) == 0).then_some(10_000);
        options.resume_from = (rng.below(8) == 0).then_some(5);
        options.method = ["GET", "GET", "GET", "HEAD", "POST"][rng.below(5) as usize].to_owned();
    }
    if reply.protocol == HostileProtocol::Http2 { with_prior_knowledge(options) } else { options }
}

/// Returns the peak resident memory of this process, in KiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// Fetches the hostile response with this number by both drivers, and checks the predicted result.
/// Returns the type of the prediction: 0 for a body, 1 for a failure, 2 for any result.
fn play(client: &Client, number: u64) -> usize {
    let seed = mix(SEED, number);
    let reply = HostileReply::from_seed(seed);
    let server = HostileServer::start(reply.clone()).unwrap();
    for driver in DRIVERS {
        let got = driver.get(client, &server.url(), &options(&reply, &mut Rng::new(seed)));
        let told = || format!("reply {number} {driver:?} {:?}: {} {}", reply.made_of, got.exit, got.message);
        match &reply.promise {
            AllowedResult::Body(body) => {
                assert_eq!(got.exit, 0, "{}", told());
                assert!(got.body == *body, "other bytes: {}", told());
            }
            AllowedResult::Failure => assert_ne!(got.exit, 0, "{}", told()),
            AllowedResult::Nothing => {}
        }
    }
    match reply.promise {
        AllowedResult::Body(_) => 0,
        AllowedResult::Failure => 1,
        AllowedResult::Nothing => 2,
    }
}

#[test]
fn hostile_responses_cause_no_panic_or_false_success() {
    let count = std::env::var("HAUL_HOSTILE_REPLIES").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    let (next, kinds) = (AtomicU64::new(0), [const { AtomicU64::new(0) }; 3]);
    let numbers = || Some(next.fetch_add(1, SeqCst)).filter(|&number| number < count);
    // Several at the same time, because a few replies only stall.
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let mut numbers = std::iter::from_fn(numbers).peekable();
                while numbers.peek().is_some() {
                    let client = Client::new();
                    for number in numbers.by_ref().take(OF_ONE_CLIENT) {
                        kinds[play(&client, number)].fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    println!("{count} replies by two drivers: {kinds:?} whole, broken, unsure; peak {:?} KiB", peak());
    assert!(kinds.iter().all(|kind| kind.load(SeqCst) > 5), "each kind is there: {kinds:?}");
    assert!(peak().is_none_or(|peak| peak <= MAX_MEMORY_KIB), "{:?} KiB", peak());
}
