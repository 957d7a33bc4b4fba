//! One GET over a link whose rate one connection already uses up. It measures the cost of trying
//! more connections.

use std::time::Duration;

use testkit::relay::Relay;

use super::large_body_common::{
    BulkClient, BulkOutput, HAUL, HAUL_ONE, LargeBodyServer, LargeBodyToFetch, length_that_fits,
};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob = BenchJob {
    name: "unlimited",
    about: "default against --split 1 where one stream fills the link; parts null, file, tls, shared",
    set_up,
};

const LEN: u64 = 1 << 30;
/// The link that all connections share: its round-trip time, its rate in bytes per second, and the
/// length of the body to fetch.
const SHARED: (Duration, u64, u64) = (Duration::from_millis(20), 100_000_000, 300_000_000);

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let len = bench.length(LEN);
    let job_part = |part, body: &LargeBodyToFetch, sink, len, server| JobPart {
        part,
        bench_programs: bench
            .allowed_programs(body.bench_programs(sink, &[BulkClient::Haul, BulkClient::HaulOne, BulkClient::Curl])),
        baseline: HAUL_ONE,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Wall, HAUL, HAUL_ONE, 1.05)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: false,
        server,
        unit: WorkPerRun::Bytes(len),
    };
    let server = &store.server;
    let (plain, tls) = (store.plain(server.addr, len)?, store.tls(server.tls, len)?);
    let (rtt, rate, shared_len) = SHARED;
    let shared_len = length_that_fits(bench, shared_len);
    let relay = Relay::to(server.addr).rtt(rtt).handshake(true).total_rate(rate).start()?;
    let shared = store.plain(relay.addr(), shared_len)?;
    let relayed =
        format!("{}, behind a relay of {} ms, {} MB/s in all", server.name, rtt.as_millis(), rate / 1_000_000);
    let job_parts = vec![
        job_part("null", &plain, BulkOutput::Null, len, server.name.clone()),
        job_part("file", &plain, BulkOutput::File, len, server.name.clone()),
        job_part("tls", &tls, BulkOutput::Null, len, format!("{}, TLS 1.3", server.name)),
        job_part("shared", &shared, BulkOutput::Null, shared_len, relayed),
    ];
    bench.keep_running(relay);
    bench.keep_running(store.server);
    Ok(job_parts)
}
