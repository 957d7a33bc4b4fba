//! The task of the job `site` with CSS selectors: the links of the indexes, and the CIDR blocks in
//! the table cells of their pages. The baseline does the same with regular expressions alone.

use super::{BenchJob, JobEnvironment, SiteFiles, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "select", about: "the whole job by CSS selectors instead of regular expressions", set_up };

const SELECT: &str = "haul --select";
const EXTRACT: &str = "haul --extract";

/// The regular expression that finds CIDR blocks.
const BLOCK: &str = "[0-9.]{7,15}/[0-9]{1,2}";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let host = server.addr;
    let check = || OutputCheck::Output(files.answer.clone());
    let haul = |name, options: &[&str]| {
        let first = ["haul".to_owned(), "-s".to_owned(), format!("http://{host}/[1-3]")];
        let rest = options.iter().chain(&["--extract", BLOCK, "--unique", "--sort"]).map(|word| (*word).to_owned());
        BenchProgram { name, argv: first.into_iter().chain(rest).collect(), piped: false, times: 1, check: check() }
    };
    let then = format!("http://{host}/{{}}");
    let links = format!("$CURL -s 'http://{host}/[1-3]' | pup 'a[href^=\"/AS\"] attr{{href}}' | sort -u");
    let entries = vec![
        haul(SELECT, &["--select", "a[href^='/AS']@href", "--then", "{}", "--select", "td"]),
        haul(EXTRACT, &["--extract", "AS[0-9]{1,9}", "--then", &then]),
        shell_program(
            "curl, a config, pup",
            format!(
                "{links} | sed 's#.*#url = \"http://{host}&\"#' | $CURL -s -K - | pup 'td text{{}}' | grep -oE \
                 '{BLOCK}' | sort -u"
            ),
            check(),
        ),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: EXTRACT,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Wall, SELECT, EXTRACT, 1.5)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: false,
        server: server_name,
        unit: WorkPerRun::Requests(bench.options.pages + testkit::site::INDEXES),
    }])
}
