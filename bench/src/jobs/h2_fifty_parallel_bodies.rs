//! Fifty concurrent bodies on one TLS connection: the cost of multiplexing and decryption.

use super::large_body_common::{CURL, HAUL, LIBCURL, LargeBodyServer, length_that_fits};
use super::{BenchJob, H2LOAD, JobEnvironment, command_program, h2load};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "h2-bulk", about: "50 parallel bodies of 100 MB over one HTTP/2 connection", set_up };

const LEN: u64 = 100_000_000;
/// The length in bytes of the bodies whose content is checked. It is much shorter than the [`LEN`]
/// bytes of a measured body: writing and reading such files would take longer than the measurement.
const PROOF_LEN: u64 = 4_000_000;
const BODIES: usize = 50;

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let store = LargeBodyServer::open(bench)?;
    let len = length_that_fits(bench, LEN);
    let url = store.tls(store.server.h2, len)?.url;
    let all = store.repeated(len, BODIES)?;
    bench.write_url_lists(&vec![url.clone(); BODIES])?;
    let short_len = length_that_fits(bench, PROOF_LEN);
    let short = store.tls(store.server.h2, short_len)?.url;
    let all_short = store.repeated(short_len, BODIES)?;
    bench.write_lines("short", vec![short.clone(); BODIES])?;
    bench.write_lines("files.cfg", (1..=BODIES).map(|n| format!("url = \"{short}\"\noutput = \"body.{n}\"")))?;
    // Separate files would reveal mixed-up bodies.
    let proof = |fetch: &str| {
        let files = (1..=BODIES).map(|n| format!("body.{n}")).collect::<Vec<_>>().join(" ");
        OutputCheck::CheckedOnce(
            format!("{fetch} && cat {files}; status=$?; rm -f {files}; exit $status"),
            all_short.clone(),
        )
    };
    let haul = "-s --threads 1 --parallel-max 50 --cacert ca.pem -K";
    let curl = "-s -Z --http2 --parallel-max 50 --cacert ca.pem -K";
    let easyget = "easyget --multi --http2 --cacert ca.pem";
    let bench_programs = vec![
        command_program(HAUL, &format!("haul {haul} null.cfg"), proof(&format!("$HAUL {haul} files.cfg"))),
        command_program(CURL, &format!("curl {curl} null.cfg"), proof(&format!("$CURL {curl} files.cfg"))),
        command_program(
            LIBCURL,
            &format!("{easyget} --discard --list list"),
            proof(&format!("{easyget} --to body. --list short")),
        ),
        h2load(BODIES, &format!("'{url}'"), all.clone()),
    ];
    let server = format!("{}, HTTP/2", store.server.name);
    bench.keep_running(store.server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: CURL,
        limit: Some(H2LOAD),
        goals: vec![
            PartGoal::at_most(MetricKind::Cpu, HAUL, 0.32),
            PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, 1.0 / 2.7),
            PartGoal::ratio(MetricKind::Wall, HAUL, LIBCURL, 1.0),
        ],
        // A round moves 20 GB: with a fourth one, or a warm-up, the job would take longer than all
        // others.
        rounds: 3,
        warm_up: false,
        one_core: false,
        calls: true,
        server,
        unit: WorkPerRun::Bytes(len * BODIES as u64),
    }])
}
