//! One large GET over TLS 1.3: discarded, or into a pipe.

use super::large_body_common::{BulkClient, BulkOutput, CURL, HAUL, HTCAT, LargeBodyServer, MEMORY_MB, limits};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "get-tls", about: "1 GiB over TLS 1.3, AES-128-GCM; parts null, pipe", set_up };

const LEN: u64 = 1 << 30;
const ALL: [BulkClient; 4] = [BulkClient::Haul, BulkClient::Curl, BulkClient::Libcurl, BulkClient::Htcat];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let len = bench.length(LEN);
    let body = store.tls(store.server.tls, len)?;
    let job_part = |part, sink, what| {
        let mut bench_programs = body.bench_programs(sink, &ALL);
        bench_programs.push(limits::aes(&body));
        JobPart {
            part,
            bench_programs: bench.allowed_programs(bench_programs),
            baseline: CURL,
            limit: Some(limits::AES),
            goals: vec![
                PartGoal::at_most(what, HAUL, 0.25),
                PartGoal::ratio(what, HAUL, CURL, 1.0 / 2.8),
                PartGoal::ratio(MetricKind::Wall, HAUL, HTCAT, 1.0),
                PartGoal::at_most(MetricKind::Rss, HAUL, MEMORY_MB),
            ],
            rounds: 7,
            warm_up: true,
            one_core: false,
            calls: true,
            server: format!("{}, TLS 1.3", store.server.name),
            unit: WorkPerRun::Bytes(len),
        }
    };
    let job_parts = vec![
        job_part("null", BulkOutput::Null, MetricKind::Cpu),
        job_part("pipe", BulkOutput::Pipe, MetricKind::Client),
    ];
    bench.keep_running(store.server);
    Ok(job_parts)
}
