//! One large GET over plain HTTP: discarded, into a pipe, or to a file.

use super::large_body_common::{ARIA2, BulkClient, BulkOutput, CURL, HAUL, HTCAT, LargeBodyServer, MEMORY_MB, limits};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob = BenchJob { name: "get", about: "1 GiB, plain; parts null, pipe, file", set_up };

const LEN: u64 = 1 << 30;
const ALL: [BulkClient; 4] = [BulkClient::Haul, BulkClient::Curl, BulkClient::Libcurl, BulkClient::Htcat];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let len = bench.length(LEN);
    let body = store.plain(store.server.addr, len)?;
    let job_part = |part, mut bench_programs: Vec<BenchProgram>, limit: Vec<BenchProgram>, mut goals: Vec<PartGoal>| {
        // The last program of the list does the least work.
        let least = limit.last().map(|bench_program| bench_program.name);
        bench_programs.extend(limit);
        goals.push(PartGoal::at_most(MetricKind::Rss, HAUL, MEMORY_MB));
        JobPart {
            part,
            bench_programs: bench.allowed_programs(bench_programs),
            baseline: CURL,
            limit: least,
            goals,
            rounds: 7,
            warm_up: true,
            one_core: false,
            calls: true,
            server: store.server.name.clone(),
            unit: WorkPerRun::Bytes(len),
        }
    };
    let job_parts = vec![
        job_part(
            "null",
            body.bench_programs(BulkOutput::Null, &ALL),
            vec![limits::recv(&body), limits::splice(&body)],
            vec![
                PartGoal::at_most(MetricKind::Cpu, HAUL, 0.12),
                PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, 0.2),
                PartGoal::ratio(MetricKind::Wall, HAUL, HTCAT, 1.0),
            ],
        ),
        job_part(
            "pipe",
            body.bench_programs(BulkOutput::Pipe, &ALL),
            vec![limits::splice_pipe(&body)],
            vec![
                PartGoal::at_most(MetricKind::Client, HAUL, 0.12),
                PartGoal::ratio(MetricKind::Client, HAUL, CURL, 0.2),
            ],
        ),
        job_part(
            "file",
            body.bench_programs(BulkOutput::File, &[&ALL[..], &[BulkClient::Aria2]].concat()),
            vec![limits::splice_file(&body)],
            vec![
                PartGoal::ratio(MetricKind::Wall, HAUL, CURL, 0.4),
                PartGoal::ratio(MetricKind::Wall, HAUL, ARIA2, 1.0),
            ],
        ),
    ];
    bench.keep_running(store.server);
    Ok(job_parts)
}
