//! 2,000 POST requests over a round trip of 50 ms, each with a body of its own: from JSON lines, from
//! a config file with `next`, and with `curl -Z`.

use std::time::Duration;

use testkit::origin::Origin;
use testkit::relay::Relay;

use super::{BenchJob, JobEnvironment, shell};
use crate::Result;
use crate::digest::OutputDigest;
use crate::job_part::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "post-list", about: "2,000 POST requests with a body each at 50 ms round trip", set_up };

const REQUESTS: usize = 2_000;
const RTT: Duration = Duration::from_millis(50);
const HAUL: &str = "haul --jsonl-in";
const CURL: &str = "curl -Z, next";

/// The end of a command line that prints only the bodies that the server has received, sorted.
const BODIES: &str = "| grep -oE 'item=[0-9]+' | sort";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let requests = bench.count(REQUESTS);
    let origin = Origin::builder().record(false).start()?;
    let relay = Relay::to(origin.http_addr()).rtt(RTT).handshake(true).start()?;
    let url = format!("http://{}/echo", relay.addr());
    let numbers = || 0..requests;
    bench.write_lines("list.jsonl", numbers().map(|n| format!("{{\"form\":{{\"item\":{n}}}}}")))?;
    let group = |n, output: &str| format!("next\nurl = \"{url}\"\ndata = \"item={n}\"{output}");
    bench.write_lines("null.cfg", numbers().map(|n| group(n, "\noutput = \"/dev/null\"")))?;
    bench.write_lines("stdout.cfg", numbers().map(|n| group(n, "")))?;
    let mut bodies: Vec<String> = numbers().map(|n| format!("item={n}\n")).collect();
    bodies.sort();
    let digest = OutputDigest::of(bodies.concat().as_bytes());
    let contestant = |name: &'static str, null: String, proof: String| {
        shell(name, format!("exec {null}"), OutputCheck::Proof(format!("{proof} {BODIES}"), digest.clone()))
    };
    let jsonl = format!("$HAUL -s --jsonl-in --input-file list.jsonl {url}");
    let entries = vec![
        contestant(HAUL, format!("{jsonl} -o /dev/null"), jsonl),
        contestant("haul -K, next", "$HAUL -s -K null.cfg".to_owned(), "$HAUL -s -K stdout.cfg".to_owned()),
        contestant(
            "haul --jsonl-in, 128 at a time",
            format!(
                "$HAUL -s --parallel-max 128 --parallel-max-host 128 --jsonl-in --input-file list.jsonl {url} -o /dev/null"
            ),
            format!("$HAUL -s --parallel-max 128 --parallel-max-host 128 --jsonl-in --input-file list.jsonl {url}"),
        ),
        contestant(CURL, "$CURL -s -Z -K null.cfg".to_owned(), "$CURL -s -Z -K stdout.cfg".to_owned()),
    ];
    bench.hold(origin);
    bench.hold(relay);
    Ok(vec![JobPart {
        part: "",
        contestants: bench.entries(entries),
        baseline: CURL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Wall, HAUL, CURL, 0.5)],
        rounds: 5,
        warm_up: false,
        one_core: false,
        calls: false,
        server: format!("embedded origin, behind a relay of {} ms", RTT.as_millis()),
        unit: WorkPerRun::Requests(requests),
    }])
}
