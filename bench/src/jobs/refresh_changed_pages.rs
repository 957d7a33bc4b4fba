//! The second day of a job: 100,000 pages of which 1 % have changed, and 2,999 pages of which none
//! has changed. The server counts the content bytes that it sends.

use std::rc::Rc;

use super::{BenchJob, JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::versioned_site::{ReplyCheck, ServedReplyCounts, VersionedSite};

pub(super) const JOB: BenchJob =
    BenchJob { name: "refresh", about: "--refresh of a job on the second day; parts changed, unchanged", set_up };

const FIRST: &str = "haul, first day";
const SECOND: &str = "haul --refresh";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let changed = VersionedSite::start(bench.count(100_000) as u64, Some(100))?;
    let unchanged = VersionedSite::start(bench.count(2_999) as u64, None)?;
    let served = PartGoal::ratio(MetricKind::ServedBytes, SECOND, FIRST, 0.02);
    let wall = PartGoal::at_most(MetricKind::Wall, SECOND, 0.3);
    Ok(vec![new_part(bench, "changed", changed, served)?, new_part(bench, "unchanged", unchanged, wall)?])
}

/// Makes a part of the job with two programs, which run one after the other in each round. The
/// first program fetches all pages of the site to files. The second program begins the next day of
/// the site, on which some pages may have changed, and fetches the pages again by `--refresh`.
fn new_part(bench: &JobEnvironment, name: &'static str, site: VersionedSite, goal: PartGoal) -> Result<JobPart> {
    let (host, pages, changing) = (site.addr, site.pages(), site.changing());
    bench.write_lines(name, (0..pages).map(|number| format!("http://{host}/{number}")))?;
    let site = Rc::new(site);
    let check = |whole: u64| {
        let replies = ServedReplyCounts { whole, unchanged: pages - whole, ..ServedReplyCounts::default() };
        OutputCheck::Replies(Rc::new(ReplyCheck { site: Rc::clone(&site), replies, files: format!("{name}.d").into() }))
    };
    let first = format!(
        "rm -rf {name}.d {name}.job* && exec $HAUL -s --job {name}.job --create-dirs -o {name}.d/{{name}} \
         --input-file {name}"
    );
    let second = format!("$HAUL -s http://{host}/day && exec $HAUL -s --job {name}.job --refresh");
    Ok(JobPart {
        part: name,
        bench_programs: bench.allowed_programs(vec![
            shell_program(FIRST, first, check(pages)),
            shell_program(SECOND, second, check(changing)),
        ]),
        baseline: FIRST,
        limit: None,
        goals: vec![goal],
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: false,
        server: format!("a site of {pages} pages with entity tags"),
        unit: WorkPerRun::Requests(usize::try_from(pages)?),
    })
}
