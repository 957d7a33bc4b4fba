//! The job that writes one JSON record, body included, for each of 20,000 URLs. haul's `--jsonl` is
//! compared with curl and jq: curl writes metadata (`%{json}`) and bodies to files, which jq joins.

use testkit::origin::Origin;

use super::{BenchJob, JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob =
    BenchJob { name: "records", about: "20,000 URLs to JSON lines with facts and bodies", set_up };

const REQUESTS: usize = 20_000;
const HAUL: &str = "haul --jsonl";
const CURL: &str = "curl -Z -w %{json}, jq";

/// The last commands of a shell pipeline: they read haul's JSON records, and print the URL, status
/// and body of each record, sorted.
const EXTRACT_URL_STATUS_BODY: &str =
    r#"| sed -E 's/^\{"url":("[^"]*").*"status":([0-9]+).*,"body":(".*")\}$/{"url":\1,"status":\2,"body":\3}/' | sort"#;

/// A shell command that joins the JSON facts that curl wrote to the file `facts` with the bodies in
/// `pages/`. Each body is a file of one line. (jq's `INDEX` would take time that grows with the
/// square of the number of bodies.)
const JOIN: &str = "jq -Rc '{file: input_filename, body: (. + \"\\n\")}' pages/* | jq -cn --slurpfile facts facts \
    '(reduce inputs as $one ({}; .[$one.file] = $one.body)) as $bodies | $facts[] | {url, status: .http_code, body: \
     $bodies[.filename_effective]}'";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let requests = bench.count(REQUESTS);
    let origin = Origin::builder().record(false).start()?;
    let url = |number| origin.url(&format!("/api/offset?size=1&total={requests}&offset={number}"));
    bench.write_lines("list", (0..requests).map(url))?;
    let group = |number| format!("url = \"{}\"\noutput = \"pages/{number}\"", url(number));
    bench.write_lines("files.cfg", (0..requests).map(group))?;
    let record = |number| {
        let body = format!("[{{\\\"id\\\":{number},\\\"name\\\":\\\"item {number}\\\"}}]\\n");
        format!("{{\"url\":\"{}\",\"status\":200,\"body\":\"{body}\"}}\n", url(number))
    };
    let mut records: Vec<String> = (0..requests).map(record).collect();
    records.sort();
    let digest = OutputDigest::from_bytes(records.concat().as_bytes());
    let haul = "$HAUL -s --jsonl --input-file list";
    let curl = format!(
        "rm -rf pages && mkdir pages && $CURL -s -Z -K files.cfg -w '%{{json}}\\n' >facts && {JOIN} && rm -r pages"
    );
    let entries = vec![
        shell_program(
            HAUL,
            format!("exec {haul}"),
            OutputCheck::CheckedOnce(format!("{haul} {EXTRACT_URL_STATUS_BODY}"), digest.clone()),
        ),
        shell_program(CURL, curl.clone(), OutputCheck::CheckedOnce(format!("({curl}) | sort"), digest)),
    ];
    bench.keep_running(origin);
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: CURL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, 0.25)],
        rounds: 5,
        warm_up: true,
        one_core: false,
        calls: false,
        server: "embedded origin".to_owned(),
        unit: WorkPerRun::Requests(requests),
    }])
}
