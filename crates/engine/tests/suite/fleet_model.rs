//! Compares fleets with a serial model. Faults, memory limits and output order are made from a
//! seed. The output must equal that of a serial run.
//!
//! `HAUL_MODELS=1000` runs more seeds, `HAUL_MODELS=17..18` repeats the seed 17.

use crate::common;
use crate::support::seeds;

use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use common::{item, retrying, run_reading, single_stage, trusting_ca, with_h2_alpn, with_prior_knowledge};
use haul::fleet::FleetOptions;
use haul::{Client, RequestOptions};
use seeds::{each, one_of};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::rng::Rng;

/// Creates a random page on the origin, and returns its path and content.
fn page(rng: &mut Rng, origin: &FaultyOrigin, number: u64) -> (String, Vec<u8>) {
    let size = one_of(rng, &[0, 40, 3_000, 3_000, 20_000, 70_000, 300_000]);
    let place = rng.below(size.max(1));
    let breaks = match rng.below(12) {
        0 => vec![BodyBreak::rst_at(place).times(1)],
        1 => vec![BodyBreak::close_at(place).times(1)],
        2 => vec![BodyBreak::reset_at(place).times(1)],
        _ => Vec::new(),
    };
    let chunked = rng.below(3) == 0;
    let refuse = u64::from(rng.below(12) == 0);
    let plan = FaultPlan { size, seed: number + 1, chunked, breaks, refuse, ..FaultPlan::default() };
    (origin.serve(&number.to_string(), plan), BytePattern::new(number + 1).slice(0, size as usize))
}

fn way_to_run(rng: &mut Rng) -> FleetOptions {
    FleetOptions {
        parallel: one_of(rng, &[1, 2, 7, 64, 200]),
        per_host: one_of(rng, &[Some(1), Some(3), Some(6), Some(50), None]),
        pipeline: one_of(rng, &[1, 1, 2, 8]),
        threads: Some(one_of(rng, &[1, 2, 4])),
        max_memory: one_of(rng, &[1, 64 << 10, 1 << 20, 64 << 20]),
        unordered: rng.below(2) == 0,
        ..FleetOptions::default()
    }
}

/// Reads the whole output of the fleet. If `is_slow` is true, pauses between reads.
fn read(mut pipe: io::PipeReader, is_slow: bool) -> Vec<u8> {
    let (mut output, mut piece) = (Vec::new(), vec![0; if is_slow { 4 << 10 } else { 1 << 20 }]);
    loop {
        match pipe.read(&mut piece).unwrap() {
            0 => return output,
            n => output.extend_from_slice(&piece[..n]),
        }
        if is_slow && output.len().is_multiple_of(5) {
            thread::sleep(Duration::from_micros(300));
        }
    }
}

/// Returns true if `output` consists of these bodies, each complete and exactly once, in any order.
fn is_made_of(mut output: &[u8], mut bodies: Vec<Vec<u8>>) -> bool {
    bodies.retain(|body| !body.is_empty());
    while let Some(next) = bodies.iter().position(|body| output.starts_with(body)) {
        output = &output[bodies.swap_remove(next).len()..];
    }
    output.is_empty() && bodies.is_empty()
}

fn try_one(seed: u64) {
    let mut rng = Rng::new(seed);
    let origin = FaultyOrigin::builder().http2().start().unwrap();
    let (trusting, _ca) = trusting_ca(origin.ca_pem());
    let count = one_of(&mut rng, &[1, 3, 10, 40, 130]);
    let (paths, bodies): (Vec<_>, Vec<_>) = (0..count).map(|number| page(&mut rng, &origin, number)).unzip();
    // Requests that share a connection with a broken one are retried with it.
    let retry = retrying(100).retry;
    let (is_secure, options) = match rng.below(4) {
        0 => (false, RequestOptions::default()),
        1 => (true, trusting),
        2 => (true, with_h2_alpn(trusting)),
        _ => (false, with_prior_knowledge(RequestOptions::default())),
    };
    let options = RequestOptions { retry, ..options };
    let urls: Vec<_> =
        paths.iter().map(|path| if is_secure { origin.https_url(path) } else { origin.url(path) }).collect();
    let (way, is_slow) = (way_to_run(&mut rng), rng.below(3) == 0);
    let items: Vec<_> = urls.into_iter().map(|url| Ok(item(url))).collect();
    let unordered = way.unordered;
    let run = run_reading(&Client::new(), single_stage(&options), way, Box::new(items.into_iter()), move |pipe| {
        read(pipe, is_slow)
    });
    let failed: Vec<_> = run.reports.iter().filter(|got| got.exit != 0).map(|got| &got.message).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(run.summary().succeeded, count);
    if unordered {
        assert!(is_made_of(&run.output, bodies), "{} bytes that are not the bodies, whole", run.output.len());
    } else {
        assert!(run.output == bodies.concat(), "{} bytes that are not the bodies in order", run.output.len());
    }
}

#[test]
fn fleet_output_equals_a_serial_run() {
    each(40, 1, try_one);
}
