//! The cost of a new process for each file, in addition to its round trip. 70 processes, one after
//! the other, fetch the first 4 KiB of a file each, at a round trip of 20 ms.
//!
//! The job has a part for plain HTTP and a part for TLS. The relay does not delay the TCP
//! handshake. The CPU time does not include haul's agent, because the agent is not a child of the
//! measured process.

use std::fs;
use std::time::Duration;

use testkit::packages::{PackageCatalogue, PackageMirror, SignedGzipPackage};
use testkit::relay::Relay;
use testkit::test_certificates::TestCertificates;

use super::{BenchJob, JobEnvironment, shell_program, with_agent};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;
use crate::tls_files::CA;

pub(super) const JOB: BenchJob =
    BenchJob { name: "prefix", about: "4 KiB of 70 files, a process each, 20 ms round trip; parts plain, tls", set_up };

const RTT: Duration = Duration::from_millis(20);
const CALLS: usize = 70;
const PREFIX: usize = 4 << 10;

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let catalogue = PackageCatalogue::new(bench.options.seed, bench.count(CALLS));
    let packages = catalogue.packages();
    bench.write_lines("names", packages.iter().map(|package| package.name.clone()))?;
    let prefixes: Vec<u8> = packages.iter().flat_map(prefix).copied().collect();
    let identity = TestCertificates::generate();
    fs::write(bench.work.join(CA), identity.ca_pem())?;
    let mut job_parts = Vec::new();
    for (part, tls) in [("plain", false), ("tls", true)] {
        let mirror = PackageMirror::start(catalogue.clone(), tls.then_some(&identity))?;
        let relay = Relay::to(mirror.addr()).rtt(RTT).start()?;
        let base = mirror.url_by(relay.addr(), "");
        let trust = if tls { format!(" --cacert {CA}") } else { String::new() };
        let calls = |tool: &str| {
            format!("while read -r name; do {tool} -s{trust} -r 0-{} {base}$name; done <names", PREFIX - 1)
        };
        let agent = with_agent(&calls("$HAUL --agent=$dir/a"));
        let entries = vec![
            shell_program("haul agent", agent, OutputCheck::Output(OutputDigest::from_bytes(&prefixes))),
            shell_program("haul", calls("$HAUL"), OutputCheck::Output(OutputDigest::from_bytes(&prefixes))),
            shell_program("curl", calls("$CURL"), OutputCheck::Output(OutputDigest::from_bytes(&prefixes))),
            shell_program(
                "curl, system",
                calls("$SYSTEM_CURL"),
                OutputCheck::Output(OutputDigest::from_bytes(&prefixes)),
            ),
        ];
        job_parts.push(JobPart {
            part,
            bench_programs: bench.allowed_programs(entries),
            baseline: "curl",
            limit: None,
            goals: vec![PartGoal::ratio(MetricKind::Wall, "haul agent", "curl", if tls { 1.0 / 2.3 } else { 1.0 })],
            rounds: 3,
            warm_up: false,
            one_core: false,
            calls: false,
            server: format!(
                "testkit's mirror{}, behind a relay of {} ms",
                if tls { ", TLS 1.3" } else { "" },
                RTT.as_millis()
            ),
            unit: WorkPerRun::Requests(packages.len()),
        });
        bench.keep_running((mirror, relay));
    }
    Ok(job_parts)
}

fn prefix(package: &SignedGzipPackage) -> &[u8] {
    &package.bytes[..PREFIX.min(package.bytes.len())]
}
