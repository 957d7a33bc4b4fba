//! 500 pages over a round trip of 20 ms: a few connections with pipelining, compared with many
//! connections without it.

use std::time::Duration;

use testkit::relay::Relay;

use super::{BenchJob, JobEnvironment, SiteFiles, command_program, pages_in_order};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "pipeline", about: "500 pages at 20 ms round trip: --pipeline 32 against 50 connections", set_up };

const PAGES: usize = 500;
const RTT: Duration = Duration::from_millis(20);
const CURL: &str = "curl -Z, 50 connections";
const PIPELINED: &str = "haul --pipeline 32, 6 connections";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let relay = Relay::to(server.addr).rtt(RTT).start()?;
    let mut paths = files.site.as_paths();
    paths.truncate(PAGES);
    bench.write_page_lists(&format!("http://{}", relay.addr()), &paths)?;
    let pages = files.pages(&paths);
    let proof = |line: &str| OutputCheck::CheckedOnce(line.to_owned(), pages.clone());
    let entries = vec![
        command_program(
            PIPELINED,
            "haul -s --pipeline 32 --parallel-max-host 6 -o /dev/null --input-file list",
            proof("$HAUL -s --pipeline 32 --parallel-max-host 6 --input-file list"),
        ),
        command_program(
            "haul, 6 connections",
            "haul -s --parallel-max-host 6 -o /dev/null --input-file list",
            proof("$HAUL -s --parallel-max-host 6 --input-file list"),
        ),
        command_program(
            CURL,
            "curl -s -Z --parallel-max 50 -K null.cfg",
            proof(&pages_in_order("$CURL -s -Z --parallel-max 50 -K files.cfg")),
        ),
    ];
    let server_name = format!("{}, behind a relay of {} ms", server.name, RTT.as_millis());
    bench.keep_running(server);
    bench.keep_running(relay);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: CURL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Wall, PIPELINED, CURL, 1.0)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(paths.len()),
    }])
}
