//! 1,000 uploads of small files over a round trip of 50 ms, each to a URL of its own.

use std::fs;

use super::item_echo_server::{ItemEchoServer, item};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "upload-list", about: "1,000 uploads of small files at 50 ms round trip", set_up };

const FILES: usize = 1_000;
const HAUL: &str = "haul -Z";
const AS_CURL: &str = "haul as curl -Z";
const CURL: &str = "curl -Z";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = bench.count(FILES);
    let list = ItemEchoServer::start(bench, files)?;
    let url = &list.url;
    fs::create_dir_all(bench.work.join("files"))?;
    for n in 0..files {
        fs::write(bench.work.join(format!("files/{n}")), item(n) + "\n")?;
    }
    let entry = |n, output: &str| format!("url = \"{url}\"\nupload-file = \"files/{n}\"{output}");
    bench.write_lines("null.cfg", (0..files).map(|n| entry(n, "\noutput = \"/dev/null\"")))?;
    bench.write_lines("stdout.cfg", (0..files).map(|n| entry(n, "")))?;
    let bench_program = |name, command: &str| {
        list.bench_program(name, &format!("{command} -K null.cfg"), &format!("{command} -K stdout.cfg"))
    };
    let entries = vec![
        bench_program(HAUL, "$HAUL -s -Z"),
        bench_program(AS_CURL, "$HAUL curl -s -Z"),
        bench_program(CURL, "$CURL -s -Z"),
    ];
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: CURL,
        limit: None,
        // Both have 50 requests at a time, so the round trips set the time.
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, AS_CURL, CURL, 1.0),
            PartGoal::ratio(MetricKind::Cpu, AS_CURL, CURL, 0.7),
        ],
        rounds: 5,
        warm_up: false,
        one_core: false,
        calls: false,
        server: list.server,
        unit: WorkPerRun::Requests(files),
    }])
}
