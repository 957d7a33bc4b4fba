//! 20,000 responses of 300 bytes on one HTTP/2 connection: the cost of a stream that has almost no
//! body.

use super::large_body_common::LIBCURL;
use super::{BenchJob, H2LOAD, JobEnvironment, SMALL_BODY_LENGTH, SiteFiles, command_program, h2load, small_body};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "h2-small", about: "20,000 replies of 300 bytes on one HTTP/2 connection", set_up };

const REPLIES: usize = 20_000;
const PARALLEL: &str = "curl -Z --http2";
const HAUL: &str = "haul --unordered";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let host = server.h2;
    let urls: Vec<String> = (0..REPLIES).map(|n| format!("https://{host}/bytes/{SMALL_BODY_LENGTH}?{n}")).collect();
    bench.write_url_lists(&urls)?;
    let all = OutputDigest::from_bytes(&small_body(bench.options.seed).repeat(REPLIES));
    let proof = |line: &str| OutputCheck::CheckedOnce(line.to_owned(), all.clone());
    let haul = "-s --threads 1 --unordered --parallel-max 50 --cacert ca.pem";
    let curl = "-s -Z --http2 --parallel-max 50 --cacert ca.pem -K";
    let easyget = "easyget --http2 --parallel 50 --cacert ca.pem";
    let entries = vec![
        command_program(
            HAUL,
            &format!("haul {haul} -o /dev/null --input-file list"),
            proof(&format!("$HAUL {haul} --input-file list")),
        ),
        command_program(
            "haul, in order",
            "haul -s --cacert ca.pem --input-file list",
            proof("$HAUL -s --cacert ca.pem --input-file list"),
        ),
        // The bodies are equal, so it does not matter in which order -Z writes them.
        command_program(PARALLEL, &format!("curl {curl} null.cfg"), proof(&format!("$CURL {curl} stdout.cfg"))),
        command_program(
            LIBCURL,
            &format!("{easyget} --discard --say --list list"),
            OutputCheck::PrintedLength(Some(format!("{easyget} --list list")), all.clone()),
        ),
        h2load(REPLIES, "-i list", all.clone()),
    ];
    let server_name = format!("{}, HTTP/2", server.name);
    bench.keep_running(server);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: PARALLEL,
        limit: Some(H2LOAD),
        goals: vec![PartGoal::ratio(MetricKind::Cpu, HAUL, H2LOAD, 1.3)],
        rounds: 7,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(REPLIES),
    }])
}
