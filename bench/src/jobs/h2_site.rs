//! The pages of the site over one HTTP/2 connection: all discarded, or all in list order.

use super::large_body_common::LIBCURL;
use super::{BenchJob, H2LOAD, JobEnvironment, SiteFiles, command_program, h2load, pages_in_order};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob = BenchJob { name: "h2-site", about: "5,703 pages over one HTTP/2 connection", set_up };

const PARALLEL: &str = "curl -Z --http2";
const HAUL: &str = "haul";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("https://{}", server.h2), &paths)?;
    let pages = files.pages(&paths);
    let proof = |line: &str| OutputCheck::CheckedOnce(line.to_owned(), pages.clone());
    let curl = "-s -Z --http2 --parallel-max 50 --cacert ca.pem -K";
    let easyget = "easyget --http2 --parallel 50 --cacert ca.pem";
    let entries = vec![
        // -Z writes each body to its own file, in any order.
        command_program(
            HAUL,
            "haul -s --threads 1 --parallel-max 50 --cacert ca.pem -K null.cfg",
            proof(&pages_in_order("$HAUL -s --threads 1 --parallel-max 50 --cacert ca.pem -K files.cfg")),
        ),
        command_program(
            "haul, in order",
            "haul -s --cacert ca.pem --input-file list",
            proof("$HAUL -s --cacert ca.pem --input-file list"),
        ),
        command_program(
            PARALLEL,
            &format!("curl {curl} null.cfg"),
            proof(&pages_in_order(&format!("$CURL {curl} files.cfg"))),
        ),
        command_program(
            LIBCURL,
            &format!("{easyget} --discard --say --list list"),
            OutputCheck::PrintedLength(
                Some(format!(
                    "{easyget} --to page. --list list && seq -f page.%.0f {0} | xargs cat; rm page.*",
                    paths.len()
                )),
                pages.clone(),
            ),
        ),
        h2load(paths.len(), "-i list", pages.clone()),
    ];
    let server_name = format!("{}, HTTP/2", server.name);
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: PARALLEL,
        limit: Some(H2LOAD),
        goals: vec![PartGoal::ratio(MetricKind::Cpu, HAUL, PARALLEL, 0.7)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(paths.len()),
    }])
}
