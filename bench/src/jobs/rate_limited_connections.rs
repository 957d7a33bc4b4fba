//! One GET over connections whose rate the server limits, as object stores do. It measures the gain
//! from more connections.
//!
//! nginx's `limit_rate` would limit each request, so a relay limits the connections instead. The
//! relay also delays the TCP handshake by a round trip.

use std::time::Duration;

use testkit::relay::Relay;

use super::large_body_common::{ARIA2, BulkClient, BulkOutput, CURL, HAUL, HTCAT, LargeBodyServer, length_that_fits};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob = BenchJob {
    name: "limited",
    about: "each connection held to a rate, 20 ms round trip; parts tls-5, plain-36",
    set_up,
};

const RTT: Duration = Duration::from_millis(20);

/// The settings of one part of the job: whether the connections use TLS, their maximum rate, and
/// the length of the fetched body in bytes.
struct RateLimitedLink {
    part: &'static str,
    tls: bool,
    /// The rate of each connection, in bytes per second.
    rate: u64,
    len: u64,
}

const LINKS: [RateLimitedLink; 2] = [
    RateLimitedLink { part: "tls-5", tls: true, rate: 5_000_000, len: 100_000_000 },
    RateLimitedLink { part: "plain-36", tls: false, rate: 36_000_000, len: 500_000_000 },
];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let (mut job_parts, mut relays) = (Vec::new(), Vec::new());
    for link in LINKS {
        let len = length_that_fits(bench, link.len);
        let to = if link.tls { store.server.tls } else { store.server.addr };
        let relay = Relay::to(to).rtt(RTT).handshake(true).rate(link.rate).start()?;
        let body = if link.tls { store.tls(relay.addr(), len)? } else { store.plain(relay.addr(), len)? };
        relays.push(relay);
        let mut bench_programs = body.bench_programs(
            BulkOutput::PipeWithFirstByteTime,
            &[BulkClient::Haul, BulkClient::Curl, BulkClient::Htcat],
        );
        // aria2 can only write to a file. At these rates, the disk does not matter.
        bench_programs.extend(body.bench_programs(BulkOutput::File, &[BulkClient::Aria2]));
        job_parts.push(JobPart {
            part: link.part,
            bench_programs: bench.allowed_programs(bench_programs),
            baseline: CURL,
            limit: None,
            goals: vec![
                PartGoal::ratio(MetricKind::Wall, HAUL, CURL, 0.25),
                PartGoal::ratio(MetricKind::Wall, HAUL, HTCAT, 1.0),
                PartGoal::ratio(MetricKind::Wall, HAUL, ARIA2, 1.0),
                PartGoal::ratio(MetricKind::FirstByte, HAUL, CURL, 1.1),
            ],
            rounds: 3,
            warm_up: false,
            // Under strace the transfer takes twice as long, and its calls depend on how the pieces
            // arrive.
            one_core: false,
            calls: false,
            server: format!(
                "{}{}, behind a relay of {} ms, {} MB/s a connection",
                store.server.name,
                if link.tls { ", TLS 1.3" } else { "" },
                RTT.as_millis(),
                link.rate / 1_000_000
            ),
            unit: WorkPerRun::Bytes(len),
        });
    }
    bench.keep_running(relays);
    bench.keep_running(store.server);
    Ok(job_parts)
}
