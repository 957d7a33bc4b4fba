//! 2,000 POST requests over a round trip of 50 ms, each with a different body. haul reads them from
//! JSON lines or from a config file with `next`; curl and haul's curl mode run `curl -Z`.
//!
//! An HTTP/1.1 connection carries one POST request in a round trip. So the number of connections
//! determines the time: with 50 connections, 2,000 requests take 40 round trips, or 2.0 s; with 128
//! connections they take 16 round trips, or 0.8 s. By default haul opens at most 50 connections to
//! a host, as many as `curl -Z`.

use super::item_echo_server::{ItemEchoServer, item};
use super::{BenchJob, JobEnvironment};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "post-list", about: "2,000 POST requests with a body each at 50 ms round trip", set_up };

const REQUESTS: usize = 2_000;
const HAUL: &str = "haul --jsonl-in";
const HAUL_128: &str = "haul --jsonl-in, 128 at a time";
const CURL_128: &str = "curl -Z, next, 128 at a time";
const AS_CURL: &str = "haul as curl -Z, next";
const CURL: &str = "curl -Z, next";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let requests = bench.count(REQUESTS);
    let list = ItemEchoServer::start(bench, requests)?;
    let url = &list.url;
    let numbers = || 0..requests;
    bench.write_lines("list.jsonl", numbers().map(|n| format!("{{\"form\":{{\"item\":{n}}}}}")))?;
    let group = |n, output: &str| format!("next\nurl = \"{url}\"\ndata = \"{}\"{output}", item(n));
    bench.write_lines("null.cfg", numbers().map(|n| group(n, "\noutput = \"/dev/null\"")))?;
    bench.write_lines("stdout.cfg", numbers().map(|n| group(n, "")))?;
    let bench_program = |name, measured: String, checked: String| list.bench_program(name, &measured, &checked);
    let jsonl = format!("$HAUL -s --jsonl-in --input-file list.jsonl {url}");
    let entries = vec![
        bench_program(HAUL, format!("{jsonl} -o /dev/null"), jsonl),
        bench_program("haul -K, next", "$HAUL -s -K null.cfg".to_owned(), "$HAUL -s -K stdout.cfg".to_owned()),
        bench_program(
            HAUL_128,
            format!(
                "$HAUL -s --parallel-max 128 --parallel-max-host 128 --jsonl-in --input-file list.jsonl {url} -o /dev/null"
            ),
            format!("$HAUL -s --parallel-max 128 --parallel-max-host 128 --jsonl-in --input-file list.jsonl {url}"),
        ),
        bench_program(AS_CURL, "$HAUL curl -s -Z -K null.cfg".to_owned(), "$HAUL curl -s -Z -K stdout.cfg".to_owned()),
        bench_program(
            CURL_128,
            "$CURL -s -Z --parallel-max 128 -K null.cfg".to_owned(),
            "$CURL -s -Z --parallel-max 128 -K stdout.cfg".to_owned(),
        ),
        bench_program(CURL, "$CURL -s -Z -K null.cfg".to_owned(), "$CURL -s -Z -K stdout.cfg".to_owned()),
    ];
    Ok(vec![JobPart {
        part: "",
        bench_programs: bench.allowed_programs(entries),
        baseline: CURL,
        limit: None,
        // With the same number of connections, the round trips set the time of both.
        goals: vec![
            PartGoal::ratio(MetricKind::Wall, HAUL, CURL, 1.05),
            PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, 0.5),
            PartGoal::ratio(MetricKind::Wall, HAUL_128, CURL, 0.5),
            PartGoal::ratio(MetricKind::Wall, HAUL_128, CURL_128, 1.05),
            PartGoal::ratio(MetricKind::Wall, AS_CURL, CURL, 1.0),
            PartGoal::ratio(MetricKind::Cpu, AS_CURL, CURL, 0.7),
        ],
        rounds: 5,
        warm_up: false,
        one_core: false,
        calls: false,
        server: list.server,
        unit: WorkPerRun::Requests(requests),
    }])
}
