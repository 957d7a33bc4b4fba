//! Option parsing and the set-up of the output: one small plain HTTP request with twenty options.
//! The difference from the job `cold` is the cost of the options.

use super::{BenchJob, JobEnvironment, SiteFiles, repeated_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "startup", about: "twenty options, one small plain request; 20 in a row", set_up };

/// The options of a typical script. Their values contain no blanks, since the command line is split
/// at blanks.
const OPTIONS: &str = "-q -fsSL --retry 3 --retry-delay 1 --connect-timeout 5 --max-time 30 -A agent/1.0 -H Accept:application/json \
                       -H X-Request:1 -H Cache-Control:no-cache -b a=b -e http://from.example/ --max-redirs 5 \
                       --limit-rate 100M -u user:secret --http1.1 --tcp-nodelay --no-keepalive --proto =http,https";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let _turns = SingleCoreGuard::restrict_thread()?;
    let server = files.serve(bench)?;
    let host = server.addr;
    let line = |tool: &str, output: &str| format!("{tool} {OPTIONS} -o {output} http://{host}/small");
    let proof = |tool: &str| OutputCheck::CheckedOnce(line(tool, "-"), OutputDigest::from_bytes(b"small\n"));
    let entries = vec![
        repeated_program("haul", &line("haul curl", "/dev/null"), proof("$HAUL curl")),
        repeated_program("curl", &line("curl", "/dev/null"), proof("$CURL")),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: "curl",
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Cpu, "haul", "curl", 1.0)],
        rounds: 30,
        warm_up: true,
        one_core: true,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(1),
    }])
}
