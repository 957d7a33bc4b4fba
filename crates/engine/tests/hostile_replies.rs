//! Replies that no honest server sends, met by the library: by both drivers, over the connections of one client. Nothing
//! panics or hangs, memory is bounded, and what the reply's grammar promises holds.
//!
//! `HAUL_HOSTILE_REPLIES=10000` asks for more of them (`make hostile`).

mod common;

use std::time::Duration;

use common::{DRIVERS, knowing, retrying};
use haul::{Client, RequestOptions};
use testkit::hostile::{Promise, Protocol, Reply, Server};
use testkit::rng::{Rng, mix};

/// Where all chance comes from.
const SEED: u64 = 2;
/// The most memory that this process, the servers' side included, may have at its peak.
const MOST_KIB: u64 = 64 << 10;

/// Options that take a reply as it is, or, where it promises nothing, any.
fn options(reply: &Reply, rng: &mut Rng) -> RequestOptions {
    let mut options = retrying(1);
    // A limit that only silence reaches.
    options.max_time = Some(Duration::from_secs(if reply.may_stall() { 1 } else { 20 }));
    if reply.promise == Promise::Nothing {
        options.decode = rng.below(2) == 0;
        options.include_head = rng.below(4) == 0;
        options.fail = rng.below(2) == 0;
        options.redirects.follow = rng.below(2) == 0;
        options.redirects.max = 4;
        options.max_size = (rng.below(4) == 0).then_some(10_000);
        options.resume_from = (rng.below(8) == 0).then_some(5);
        options.method = ["GET", "GET", "GET", "HEAD", "POST"][rng.below(5) as usize].to_owned();
    }
    if reply.protocol == Protocol::Http2 { knowing(options) } else { options }
}

/// The peak of this process's resident memory, in KiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn hostile_replies_are_survived_and_taken_for_what_they_are() {
    let count = std::env::var("HAUL_HOSTILE_REPLIES").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    let client = Client::new();
    let mut counts = [0; 3];
    for number in 0..count {
        let seed = mix(SEED, number);
        let reply = Reply::of(seed);
        let server = Server::start(reply.clone()).unwrap();
        for driver in DRIVERS {
            let got = driver.get(&client, &server.url(), &options(&reply, &mut Rng::new(seed)));
            let told = || format!("reply {number} {driver:?} {:?}: {} {}", reply.made_of, got.exit, got.message);
            match &reply.promise {
                Promise::Body(body) => {
                    assert_eq!(got.exit, 0, "{}", told());
                    assert!(got.body == *body, "other bytes: {}", told());
                }
                Promise::Failure => assert_ne!(got.exit, 0, "{}", told()),
                Promise::Nothing => {}
            }
        }
        counts[match reply.promise {
            Promise::Body(_) => 0,
            Promise::Failure => 1,
            Promise::Nothing => 2,
        }] += 1;
    }
    assert!(counts.iter().all(|&kind| kind > 10), "each kind is there: {counts:?}");
    if let Some(peak) = peak() {
        assert!(peak <= MOST_KIB, "{peak} KiB");
    }
    println!("{count} replies by two drivers: {counts:?} whole, broken, unsure; peak {:?} KiB", peak());
}
