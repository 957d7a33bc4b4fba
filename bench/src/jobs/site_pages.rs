//! The pages of the site, without extraction: all bodies discarded, or all bodies in list order
//! through a pipe.

use std::fs::File;

use super::{BenchJob, JobEnvironment, SiteFiles, command_program, pages_in_order, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::measure::{self, RunOutputDestination};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "fetch", about: "5,703 pages to /dev/null, and in order to a pipe", set_up };

const PARALLEL: &str = "curl -Z";
const ANY_ORDER: &str = "haul --unordered";
const IN_ORDER: &str = "haul | cat";
const SERIAL_PIPE: &str = "curl serial | cat";
/// The displayed name of `curl -Z` with output to a pipe. curl then mixes pieces of several pages,
/// so the output does not consist of whole pages.
const PARALLEL_PIPE: &str = "curl -Z | cat, pages mixed";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let pages = files.pages(&paths);
    let proof = |line: &str| OutputCheck::CheckedOnce(line.to_owned(), pages.clone());
    let length = OutputDigest::from_bytes(format!("{}\n", pages.len).as_bytes());
    let lines = sorted_lines(bench, &files)?;
    let entries = vec![
        command_program(
            ANY_ORDER,
            "haul -s --unordered -o /dev/null --input-file list",
            // Pages in any order: their lines, sorted, are always the same.
            OutputCheck::CheckedOnce("$HAUL -s --unordered --input-file list | sort".to_owned(), lines),
        ),
        shell_program(
            IN_ORDER,
            "$HAUL -s --input-file list | cat >/dev/null",
            proof("$HAUL -s --input-file list | cat"),
        ),
        command_program(PARALLEL, "curl -s -Z -K null.cfg", proof(&pages_in_order("$CURL -s -Z -K files.cfg"))),
        shell_program(
            PARALLEL_PIPE,
            "$CURL -s -Z -K stdout.cfg | cat >/dev/null",
            OutputCheck::CheckedOnce("$CURL -s -Z -K stdout.cfg | wc -c".to_owned(), length),
        ),
        command_program("curl serial", "curl -s -K null.cfg", proof(&pages_in_order("$CURL -s -K files.cfg"))),
        shell_program(SERIAL_PIPE, "$CURL -s -K stdout.cfg | cat >/dev/null", proof("$CURL -s -K stdout.cfg | cat")),
        command_program(
            "wget2, 10 threads",
            "wget2 -q -O /dev/null --max-threads=10 -i list",
            proof(&pages_in_order("wget2 -q -P pages --max-threads=10 -i list")),
        ),
    ];
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: PARALLEL,
        limit: None,
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, ANY_ORDER, PARALLEL, 0.7),
            PartGoal::ratio(MetricKind::Cpu, ANY_ORDER, PARALLEL, 0.7),
            PartGoal::ratio(MetricKind::Wall, IN_ORDER, SERIAL_PIPE, 0.5),
            PartGoal::ratio(MetricKind::Wall, IN_ORDER, PARALLEL_PIPE, 0.7),
            PartGoal::ratio(MetricKind::Cpu, IN_ORDER, PARALLEL_PIPE, 0.8),
        ],
        rounds: 9,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(paths.len()),
    }])
}

/// Returns the digest of all lines of all pages, sorted by the `sort` program that the compared
/// programs use.
fn sorted_lines(bench: &JobEnvironment, files: &SiteFiles) -> Result<OutputDigest> {
    let path = bench.work.join("sorted");
    let root = files.root().display();
    let argv = ["sh".to_owned(), "-c".to_owned(), format!("(cd '{root}' && xargs cat) < names | sort")];
    measure::run(bench, &argv, RunOutputDestination::To(File::create(&path)?))??;
    let print = OutputDigest::from_file(&path)?;
    std::fs::remove_file(path)?;
    Ok(print)
}
