//! 20,000 responses of 300 bytes: the cost of a request that has almost no body.

use super::{BenchJob, JobEnvironment, SMALL_BODY_LENGTH, SiteFiles, command_program, small_body};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob = BenchJob { name: "small", about: "20,000 replies of 300 bytes", set_up };

const REPLIES: usize = 20_000;
const PARALLEL: &str = "curl -Z";
const HAUL: &str = "haul --unordered";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let host = server.addr;
    let replies = bench.count(REPLIES);
    let urls: Vec<String> = (0..replies).map(|n| format!("http://{host}/bytes/{SMALL_BODY_LENGTH}?{n}")).collect();
    bench.write_url_lists(&urls)?;
    let all = OutputDigest::from_bytes(&small_body(bench.options.seed).repeat(replies));
    let proof = |line: &str| OutputCheck::CheckedOnce(line.to_owned(), all.clone());
    let entries = vec![
        command_program(
            HAUL,
            "haul -s --unordered -o /dev/null --input-file list",
            proof("$HAUL -s --unordered --input-file list"),
        ),
        command_program("haul, in order", "haul -s --input-file list", proof("$HAUL -s --input-file list")),
        // The bodies are equal, so it does not matter in which order -Z writes them.
        command_program(PARALLEL, "curl -s -Z -K null.cfg", proof("$CURL -s -Z -K stdout.cfg")),
        command_program("curl serial", "curl -s -K null.cfg", proof("$CURL -s -K stdout.cfg")),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: PARALLEL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Cpu, HAUL, PARALLEL, 0.6)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(replies),
    }])
}
