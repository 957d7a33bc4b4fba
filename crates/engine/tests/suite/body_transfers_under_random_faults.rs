//! Compares the transfer of one body with a model, under random faults made from a seed. After a
//! success, the output is one complete version of the content. After a failure, a pipe has received
//! a prefix of one version, and a file is unchanged; the next run completes the file.
//!
//! `HAUL_MODELS=1000` runs more seeds, `HAUL_MODELS=17..18` repeats the seed 17.

use crate::common;
use crate::support::ranges;
use crate::support::seeds;

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::{retrying, trusting_ca, with_h2_alpn, with_prior_knowledge};
use haul::request::{SpeedLimit, SplitDownloadOptions};
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::file::FileSink;
use haul::transfer::TransferOutcome;
use haul::{Client, RequestOptions};
use ranges::{NonRestartableSink, exit_code, fetch, origin};
use seeds::{each, one_of};
use tempfile::TempDir;
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{
    BodyBreak, BodyBreakOffset, BreakKind, ContentChangeTrigger, EtagKind, FaultPlan, FaultyOrigin, WrongContentRange,
};
use testkit::rng::Rng;

/// The rates in bytes per second to which the origin limits a connection: fast enough for a test,
/// and slow enough for a split download.
const RATES: [u64; 3] = [512 << 10, 2 << 20, 8 << 20];

fn a_break(rng: &mut Rng, size: u64) -> BodyBreak {
    let how = one_of(
        rng,
        &[
            BreakKind::Reset,
            BreakKind::Close,
            BreakKind::Stall,
            BreakKind::Rst,
            BreakKind::GoAway,
            BreakKind::GoAwayCut,
        ],
    );
    let place = rng.below(size.max(1));
    let place = if rng.below(3) == 0 { BodyBreakOffset::After(place / 4) } else { BodyBreakOffset::At(place) };
    BodyBreak { how, place, times: one_of(rng, &[Some(1), Some(1), Some(2), Some(5), None]) }
}

fn a_lie(rng: &mut Rng) -> WrongContentRange {
    one_of(
        rng,
        &[
            WrongContentRange::Start(1),
            WrongContentRange::Start(-1),
            WrongContentRange::End(-1),
            WrongContentRange::End(3),
            WrongContentRange::Total(5),
            WrongContentRange::Unit,
            WrongContentRange::Missing,
        ],
    )
}

fn a_change(rng: &mut Rng, size: u64) -> ContentChangeTrigger {
    match rng.below(3) {
        0 => ContentChangeTrigger::Bytes(rng.below(size.max(1))),
        1 => ContentChangeTrigger::Requests(1 + rng.below(8)),
        _ => ContentChangeTrigger::Time(Duration::from_millis(rng.below(1500))),
    }
}

/// Returns a random plan of faults for the transfer of one body.
fn a_plan(rng: &mut Rng) -> FaultPlan {
    let size = one_of(rng, &[0, 1, 5_000, 200_000, 1 << 20, (1 << 20) + 1, 3 << 20, 5_000_000]);
    let mut plan = FaultPlan { size, seed: 1 + rng.below(1 << 40), ..FaultPlan::default() };
    plan.rate = one_of(rng, &[None, Some(RATES[0]), Some(RATES[1]), Some(RATES[1]), Some(RATES[2])]);
    plan.breaks = (0..one_of(rng, &[0, 0, 1, 2, 6])).map(|_| a_break(rng, size)).collect();
    plan.stall = Some(Duration::from_millis(one_of(rng, &[50, 700])));
    plan.etag = one_of(
        rng,
        &[EtagKind::Strong, EtagKind::Strong, EtagKind::Strong, EtagKind::Strong, EtagKind::Weak, EtagKind::None],
    );
    if rng.below(4) == 0 {
        plan.change = Some(a_change(rng, size));
        plan.new_size = one_of(rng, &[None, Some(size / 2), Some(size + 7_777)]);
    }
    plan.chunked = rng.below(5) == 0;
    match rng.below(24) {
        0 => plan.ignore_range = true,
        1 => plan.ignore_if_range = true,
        2 => plan.content_range = Some(a_lie(rng)),
        3 => plan.short = 1 + rng.below(3_000),
        4 => plan.part_length = one_of(rng, &[-10, 10]),
        5 => plan.gzip = true,
        6 => plan.garbage = 1 + rng.below(40),
        7 => plan.range_rate = one_of(rng, &[Some(RATES[0] / 2), Some(RATES[2])]),
        8 => plan.unavailable = one_of(rng, &[1, 3, 1 << 40]),
        9 => plan.refuse_416 = one_of(rng, &[1, 3, 1 << 40]),
        10 => plan.connections = Some(1 + rng.below(4)),
        11 => plan.refuse = 1 + rng.below(3),
        _ => {}
    }
    plan
}

/// Returns the versions of the content that an origin with this fault plan may serve.
fn versions(plan: &FaultPlan) -> Vec<Vec<u8>> {
    let version = |number, size| BytePattern::new(plan.seed + number).slice(0, size as usize);
    let mut all = vec![version(0, plan.size)];
    if plan.change.is_some() {
        all.push(version(1, plan.new_size.unwrap_or(plan.size)));
    }
    all
}

fn way_to_fetch(
    rng: &mut Rng,
    origin: &FaultyOrigin,
    plan: &FaultPlan,
) -> (bool, RequestOptions, tempfile::NamedTempFile) {
    let (trusting, ca) = trusting_ca(origin.ca_pem());
    let (is_secure, options) = match rng.below(6) {
        0 => (true, trusting),
        1 => (true, with_h2_alpn(trusting)),
        2 => (false, with_prior_knowledge(RequestOptions::default())),
        _ => (false, RequestOptions::default()),
    };
    let split = SplitDownloadOptions {
        connections: one_of(rng, &[1, 2, 6, 6, 16]),
        memory: one_of(rng, &[64 << 10, 1 << 20, 16 << 20]),
    };
    // Endless breaks with many retries would take minutes.
    let ends = plan.breaks.iter().all(|it| it.times.is_some());
    let retry = retrying(one_of(rng, if ends { &[0, 3, 100] } else { &[0, 3] })).retry;
    // No plan stalls this long; only a fault of the engine would.
    let speed_limit = Some(SpeedLimit { bytes_per_second: 1, time: Duration::from_secs(20) });
    (is_secure, RequestOptions { split, retry, speed_limit, ..options }, ca)
}

fn slow_reader(mut pipe: io::PipeReader, pause: Duration) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match pipe.read(&mut piece).unwrap() {
            0 => return all,
            n => all.extend_from_slice(&piece[..n]),
        }
        thread::sleep(pause);
    }
}

/// Asserts that the output `got` is one complete version of the content or, after a failure, a
/// prefix of one version.
fn check_output(outcome: &TransferOutcome, got: &[u8], versions: &[Vec<u8>]) {
    let is_right = |version: &Vec<u8>| match exit_code(outcome) {
        0 => got == version,
        _ => version.starts_with(got),
    };
    assert!(versions.iter().any(is_right), "{} bytes are no content, {:?}", got.len(), outcome.result);
}

/// Asserts that a file contains one complete version of the content or, after a failure, that it
/// still has the content `before`.
fn check_file(outcome: &TransferOutcome, file: &Path, before: Option<&[u8]>, versions: &[Vec<u8>]) {
    let got = fs::read(file).ok();
    match exit_code(outcome) {
        0 => {
            let got = got.expect("a success has its file");
            assert!(versions.contains(&got), "{} bytes are no content", got.len());
        }
        _ => assert!(got.as_deref() == before, "the file of a failure is another: {:?}", outcome.result),
    }
}

/// Returns true if the transfer must succeed despite the faults of the plan.
fn must_succeed(plan: &FaultPlan, options: &RequestOptions, can_restart: bool) -> bool {
    let is_provable = plan.etag == EtagKind::Strong && plan.change.is_none();
    let is_honest = FaultPlan { breaks: Vec::new(), ..plan.clone() }
        == FaultPlan { size: plan.size, seed: plan.seed, rate: plan.rate, stall: plan.stall, ..FaultPlan::default() };
    options.retry.max == 100 && is_honest && (is_provable || can_restart)
}

fn try_one(seed: u64) {
    let mut rng = Rng::new(seed);
    let origin = origin();
    let plan = a_plan(&mut rng);
    let (is_secure, options, _ca) = way_to_fetch(&mut rng, &origin, &plan);
    let versions = versions(&plan);
    let url = |path: &str| if is_secure { origin.https_url(path) } else { origin.url(path) };
    let path = origin.serve("body", plan.clone());
    let client = Client::new();
    let to = rng.below(4);
    let outcome = match to {
        0 => {
            let once = NonRestartableSink::default();
            let outcome = fetch(&client, &url(&path), &options, once.clone());
            check_output(&outcome, &once.taken(), &versions);
            outcome
        }
        1 => {
            let (reader, writer) = io::pipe().unwrap();
            let pause = Duration::from_millis(one_of(&mut rng, &[0, 0, 3, 20]));
            let reading = thread::spawn(move || slow_reader(reader, pause));
            let outcome = fetch(
                &client,
                &url(&path),
                &options,
                BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None),
            );
            check_output(&outcome, &reading.join().unwrap(), &versions);
            outcome
        }
        _ => {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("file");
            let before = (rng.below(2) == 0).then(|| b"what was there".to_vec());
            if let Some(before) = &before {
                fs::write(&file, before).unwrap();
            }
            let mut outcome = fetch(&client, &url(&path), &options, FileSink::new(&file));
            check_file(&outcome, &file, before.as_deref(), &versions);
            if exit_code(&outcome) != 0 {
                // A repaired server: the same content, or another if its validator says so.
                let seed = plan.seed + if plan.etag == EtagKind::Strong { rng.below(2) } else { 0 };
                let well = FaultPlan { size: plan.size, seed, etag: plan.etag, ..FaultPlan::default() };
                let path = origin.serve("body", well.clone());
                outcome = fetch(&client, &url(&path), &options, FileSink::new(&file));
                assert_eq!(exit_code(&outcome), 0, "{:?}", outcome.result);
                check_file(&outcome, &file, None, &self::versions(&well));
            }
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing lies beside the file");
            outcome
        }
    };
    if must_succeed(&plan, &options, to > 1) {
        assert_eq!(exit_code(&outcome), 0, "{:?}", outcome.result);
    }
}

#[test]
fn delivered_body_is_never_a_mix_of_versions() {
    each(40, 8, try_one);
}
