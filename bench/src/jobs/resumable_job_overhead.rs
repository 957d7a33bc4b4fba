//! The cost of `--job`: 200,000 small URLs, the 5,703 pages of the site, and the whole task of the
//! job `site`, each with `--job` and without it.

use testkit::site::{GeneratedSite, INDEXES};

use super::{BenchJob, JobEnvironment, SiteFiles, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::{OutputDigest, OutputDigester};
use crate::server::SiteServer;

pub(super) const JOB: BenchJob =
    BenchJob { name: "job", about: "the same run with --job and without; parts small, pages, site", set_up };

const WITHOUT_JOB: &str = "haul";
const WITH_JOB: &str = "haul --job";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let small = SiteServer::embedded(GeneratedSite::scaled(bench.options.seed, 1), &bench.work)?;
    let count = bench.count(200_000);
    bench.write_lines("small", (0..count).map(|number| format!("http://{}/small/{number}", small.addr)))?;
    let mut replies = OutputDigester::new();
    (0..count).for_each(|number| replies.add(format!("small {number}\n").as_bytes()));
    let replies = replies.finish();
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let (host, paths) = (server.addr, files.site.as_paths());
    bench.write_page_lists(&format!("http://{host}"), &paths)?;
    let pages = files.pages(&paths);
    let site = format!(
        "'http://{host}/[1-3]' --extract 'AS[0-9]{{1,9}}' --then 'http://{host}/{{}}' --extract \
         '[0-9.]{{7,15}}/[0-9]{{1,2}}' --unique --sort"
    );
    let parts = vec![
        new_part(bench, "small", "--input-file small", &small.name, count, |_| OutputCheck::Output(replies.clone())),
        new_part(bench, "pages", "-o /dev/null --input-file list", &server.name, paths.len(), |job| {
            OutputCheck::CheckedOnce(format!("{job} --input-file list"), pages.clone())
        }),
        new_part(bench, "site", &site, &server.name, bench.options.pages + INDEXES, |_| {
            OutputCheck::Output(OutputDigest::clone(&files.answer))
        }),
    ];
    bench.keep_running(small);
    bench.keep_running(server);
    Ok(parts)
}

/// Makes a part of the benchmark job that compares two commands: haul with the arguments `words`,
/// and the same command with `--job` and a new job file. `check` makes the check of a command's
/// output. Its argument is the command line before `words`, such as `$HAUL -s `.
fn new_part(
    bench: &JobEnvironment,
    name: &'static str,
    words: &str,
    server: &str,
    requests: usize,
    check: impl Fn(&str) -> OutputCheck,
) -> JobPart {
    let bench_program = |bench_program: &'static str, before: &str, begin: &str| -> BenchProgram {
        let begin = format!("$HAUL -s {begin}");
        shell_program(bench_program, format!("{before}exec {begin} {words}"), check(&format!("{before}{begin}")))
    };
    let entries =
        vec![bench_program(WITHOUT_JOB, "", ""), bench_program(WITH_JOB, "rm -f j j-wal j-shm && ", "--job j")];
    JobPart {
        part: name,
        bench_programs: bench.allowed_programs(entries),
        baseline: WITHOUT_JOB,
        limit: None,
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, WITH_JOB, WITHOUT_JOB, 1.3),
            PartGoal::ratio(MetricKind::Cpu, WITH_JOB, WITHOUT_JOB, 1.5),
        ],
        rounds: 5,
        warm_up: true,
        one_core: false,
        calls: false,
        server: server.to_owned(),
        unit: WorkPerRun::Requests(requests),
    }
}
