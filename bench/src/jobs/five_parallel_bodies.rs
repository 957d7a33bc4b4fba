//! Five large bodies at once over plain HTTP, in one thread: the cost of the event loop.

use super::large_body_common::{CURL, HAUL, LIBCURL, LargeBodyServer, MEMORY_MB, length_that_fits};
use super::{BenchJob, JobEnvironment, command_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "five", about: "5 parallel bodies of 1 GiB, plain, in one thread", set_up };

const LEN: u64 = 1 << 30;
/// The length in bytes of the bodies whose content is checked. It is much shorter than the [`LEN`]
/// bytes of a measured body, because the check writes the bodies to files and reads them again.
const PROOF_LEN: u64 = 64 << 20;
const BODIES: usize = 5;

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let len = bench.length(LEN);
    let url = store.plain(store.server.addr, len)?.url;
    let short_len = length_that_fits(bench, PROOF_LEN);
    let short = store.plain(store.server.addr, short_len)?.url;
    let all = store.repeated(short_len, BODIES)?;
    bench.write_url_lists(&vec![url.clone(); BODIES])?;
    bench.write_lines("files.cfg", (1..=BODIES).map(|n| format!("url = \"{short}\"\noutput = \"body.{n}\"")))?;
    let urls = vec![url; BODIES].join(" ");
    // Separate files would reveal mixed-up bodies.
    let proof = |fetch: &str| {
        let files = (1..=BODIES).map(|n| format!("body.{n}")).collect::<Vec<_>>().join(" ");
        OutputCheck::CheckedOnce(format!("{fetch} && cat {files}; status=$?; rm -f {files}; exit $status"), all.clone())
    };
    let bench_programs = vec![
        command_program(HAUL, "haul -s --threads 1 -K null.cfg", proof("$HAUL -s --threads 1 -K files.cfg")),
        command_program(CURL, "curl -s -Z -K null.cfg", proof("$CURL -s -Z -K files.cfg")),
        command_program(
            LIBCURL,
            &format!("easyget --multi --discard {urls}"),
            proof(&format!("easyget --multi --to body. {}", [short.as_str(); BODIES].join(" "))),
        ),
    ];
    let server = store.server.name.clone();
    bench.keep_running(store.server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: CURL,
        limit: None,
        goals: vec![
            PartGoal::at_most(MetricKind::Cpu, HAUL, 0.10),
            PartGoal::at_most(MetricKind::Rss, HAUL, MEMORY_MB),
        ],
        rounds: 5,
        warm_up: true,
        one_core: false,
        calls: true,
        server,
        unit: WorkPerRun::Bytes(len * BODIES as u64),
    }])
}
