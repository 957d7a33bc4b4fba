//! 1,000 uploads of small files over a round trip of 50 ms, each to a URL of its own.

use std::fs;
use std::time::Duration;

use testkit::origin::Origin;
use testkit::relay::Relay;

use super::{BenchJob, JobEnvironment, shell};
use crate::Result;
use crate::digest::OutputDigest;
use crate::job_part::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob =
    BenchJob { name: "upload-list", about: "1,000 uploads of small files at 50 ms round trip", set_up };

const FILES: usize = 1_000;
const RTT: Duration = Duration::from_millis(50);
const HAUL: &str = "haul -Z";
const AS_CURL: &str = "haul as curl -Z";
const CURL: &str = "curl -Z";

/// The end of a command line that prints only the files that the server has received, sorted.
const BODIES: &str = "| grep -oE 'item=[0-9]+' | sort";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = bench.count(FILES);
    let origin = Origin::builder().record(false).start()?;
    let relay = Relay::to(origin.http_addr()).rtt(RTT).handshake(true).start()?;
    let url = format!("http://{}/echo", relay.addr());
    fs::create_dir_all(bench.work.join("files"))?;
    for n in 0..files {
        fs::write(bench.work.join(format!("files/{n}")), format!("item={n}\n"))?;
    }
    let entry = |n, output: &str| format!("url = \"{url}\"\nupload-file = \"files/{n}\"{output}");
    bench.write_lines("null.cfg", (0..files).map(|n| entry(n, "\noutput = \"/dev/null\"")))?;
    bench.write_lines("stdout.cfg", (0..files).map(|n| entry(n, "")))?;
    let mut bodies: Vec<String> = (0..files).map(|n| format!("item={n}\n")).collect();
    bodies.sort();
    let digest = OutputDigest::of(bodies.concat().as_bytes());
    let contestant = |name: &'static str, command: &str| {
        let check = OutputCheck::Proof(format!("{command} -K stdout.cfg {BODIES}"), digest.clone());
        shell(name, format!("exec {command} -K null.cfg"), check)
    };
    let entries =
        vec![contestant(HAUL, "$HAUL -s -Z"), contestant(AS_CURL, "$HAUL curl -s -Z"), contestant(CURL, "$CURL -s -Z")];
    bench.hold(origin);
    bench.hold(relay);
    Ok(vec![JobPart {
        part: "",
        contestants: bench.entries(entries),
        baseline: CURL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Wall, AS_CURL, CURL, 0.7)],
        rounds: 5,
        warm_up: false,
        one_core: false,
        calls: false,
        server: format!("embedded origin, behind a relay of {} ms", RTT.as_millis()),
        unit: WorkPerRun::Requests(files),
    }])
}
