//! Memory for long lists: compares ten thousand URLs with a million URLs, whose tiny bodies are
//! written in list order.

use super::{BenchJob, JobEnvironment, command_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::{OutputDigest, OutputDigester};
use crate::server::SiteServer;
use testkit::site::GeneratedSite;

pub(super) const JOB: BenchJob =
    BenchJob { name: "million", about: "peak memory of 10,000 and 1,000,000 URLs", set_up };

const FEW: &str = "haul, 10,000 URLs";
const MANY: &str = "haul, 1,000,000 URLs";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let server = SiteServer::embedded(GeneratedSite::scaled(bench.options.seed, 1), &bench.work)?;
    let host = server.addr;
    let (few, many) = (bench.count(10_000), bench.count(1_000_000));
    for (name, count) in [("few", few), ("many", many)] {
        bench.write_lines(name, (0..count).map(|n| format!("http://{host}/small/{n}")))?;
    }
    let entries = vec![
        command_program(FEW, "haul -s --input-file few", OutputCheck::Output(replies(few))),
        command_program(MANY, "haul -s --input-file many", OutputCheck::Output(replies(many))),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: FEW,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Rss, MANY, FEW, 1.2)],
        rounds: 1,
        warm_up: false,
        one_core: false,
        calls: false,
        server: server_name,
        unit: WorkPerRun::Run,
    }])
}

fn replies(count: usize) -> OutputDigest {
    let mut printer = OutputDigester::new();
    for n in 0..count {
        printer.add(format!("small {n}\n").as_bytes());
    }
    printer.finish()
}
