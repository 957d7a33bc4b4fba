//! The original task: fetch indexes, extract AS numbers, fetch their pages, extract CIDR blocks,
//! and print them sorted and unique.
//!
//! The shell recipes are those that people write: one curl with a config of URLs, `xargs -P20`, and
//! both combined: 20 curl processes with 287 URLs each. The two parallel recipes mix up their
//! outputs, so their result is wrong. They are run to show this.

use super::{BenchJob, JobEnvironment, SiteFiles, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "site", about: "3 indexes, 5,703 pages, CIDR blocks sorted unique: the whole job", set_up };

const CONFIG: &str = "curl, a config";
const HAUL: &str = "haul";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let host = server.addr;
    let check = || OutputCheck::Output(files.answer.clone());
    let numbers = format!("$CURL -s 'http://{host}/[1-3]' | grep -oE 'AS[0-9]{{1,9}}' | sort -u");
    let urls = format!("{numbers} | sed 's#^#http://{host}/#'");
    let blocks = "grep -oE '[0-9.]{7,15}/[0-9]{1,2}' | sort -u";
    let haul = BenchProgram {
        name: HAUL,
        argv: [
            "haul",
            "-s",
            &format!("http://{host}/[1-3]"),
            "--extract",
            "AS[0-9]{1,9}",
            "--then",
            &format!("http://{host}/{{}}"),
            "--extract",
            "[0-9.]{7,15}/[0-9]{1,2}",
            "--unique",
            "--sort",
        ]
        .map(str::to_owned)
        .to_vec(),
        piped: false,
        times: 1,
        check: check(),
    };
    let mut entries = vec![
        haul,
        shell_program(
            CONFIG,
            format!("{numbers} | sed 's#.*#url = \"http://{host}/&\"#' | $CURL -s -K - | {blocks}"),
            check(),
        ),
        shell_program(
            "hybrid, xargs -L287 -P20 curl",
            format!("{urls} | xargs -L287 -P20 $CURL -s | {blocks}"),
            check(),
        ),
        shell_program("xargs -P20 curl", format!("{urls} | xargs -n1 -P20 $CURL -s | {blocks}"), check()),
    ];
    if bench.options.slow {
        entries.push(shell_program("a curl a page", format!("{urls} | xargs -n1 $CURL -s | {blocks}"), check()));
    }
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: CONFIG,
        limit: None,
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, HAUL, CONFIG, 0.25),
            PartGoal::ratio(MetricKind::Wall, HAUL, CONFIG, 0.20),
            PartGoal::ratio(MetricKind::Cpu, HAUL, CONFIG, 0.5),
        ],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(bench.options.pages + testkit::site::INDEXES),
    }])
}
