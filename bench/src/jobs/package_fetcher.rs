//! The fetch program of a package manager: an index of 2.5 MB and the first bytes of 70 packages,
//! with a new process for each file, at a round trip of 20 ms.
//!
//! ```text
//! bench read-packages PARTS BASE COMMAND...    reads as pkg_add does, by COMMAND -o - URL; prints how many bytes were read
//! ```
//!
//! The parts are plain HTTP and TLS, each with and without a round trip for the TCP handshake. The
//! CPU time is that of the started processes only, because the agent is not a child of the measured
//! process.

use std::fs;
use std::time::Duration;

use testkit::packages::{NeededPackagePart, PackageCatalogue, PackageMirror, PkgAddEmulator};
use testkit::relay::Relay;
use testkit::test_certificates::TestCertificates;

use super::{BenchJob, JobEnvironment, shell_program, with_agent};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;
use crate::tls_files::CA;

pub(super) const JOB: BenchJob = BenchJob {
    name: "fetcher",
    about: "a process a file, as a package manager calls it, 20 ms round trip; parts plain, tls, plain-far, tls-far",
    set_up,
};

const RTT: Duration = Duration::from_millis(20);
const PACKAGES: usize = 70;

/// One part of the benchmark of package fetchers: the connection to the mirror (with or without
/// TLS, with or without a delayed handshake), and the limit for the wall time of haul.
struct MirrorConnectionCase {
    part: &'static str,
    tls: bool,
    /// True if the TCP handshake takes a simulated round trip.
    far: bool,
    /// The maximum wall time, as a fraction of curl's.
    goal: f64,
}

const MIRROR_ACCESSES: [MirrorConnectionCase; 4] = [
    MirrorConnectionCase { part: "plain", tls: false, far: false, goal: 1.0 },
    MirrorConnectionCase { part: "tls", tls: true, far: false, goal: 1.0 / 2.3 },
    MirrorConnectionCase { part: "plain-far", tls: false, far: true, goal: 1.0 },
    MirrorConnectionCase { part: "tls-far", tls: true, far: true, goal: 1.0 / 3.0 },
];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let catalogue = PackageCatalogue::new(bench.options.seed, bench.count(PACKAGES));
    let needed_parts = catalogue.needed_parts();
    bench.write_lines("parts", needed_parts.iter().map(NeededPackagePart::to_line))?;
    let identity = TestCertificates::generate();
    fs::write(bench.work.join(CA), identity.ca_pem())?;
    let floors = catalogue.packages().iter().map(|package| package.min_sent_bytes() as u64);
    let expected = catalogue.index().len() as u64 + floors.sum::<u64>();
    let mut job_parts = Vec::new();
    for way in MIRROR_ACCESSES {
        let mirror = PackageMirror::start(catalogue.clone(), way.tls.then_some(&identity))?;
        let relay = Relay::to(mirror.addr()).rtt(RTT).handshake(way.far).start()?;
        let base = mirror.url_by(relay.addr(), "");
        let read = |command: &str| format!("$BENCH read-packages parts {base} {command}");
        let (curl_ca, ftp_ca) = if way.tls {
            (format!(" --cacert {CA}"), format!(" -S cafile={CA}"))
        } else {
            (String::new(), String::new())
        };
        let agent = with_agent(&read(&format!("$HAUL ftp --agent=$dir/a{ftp_ca}")));
        let check = || OutputCheck::PrintedLength(None, OutputDigest { len: expected, sha256: String::new() });
        let entries = vec![
            shell_program("haul agent", agent, check()),
            shell_program("haul", read(&format!("$HAUL ftp{ftp_ca}")), check()),
            shell_program("curl", read(&format!("$CURL -L -s -q -N{curl_ca}")), check()),
        ];
        job_parts.push(JobPart {
            part: way.part,
            bench_programs: bench.allowed_programs(entries),
            baseline: "curl",
            limit: None,
            goals: vec![PartGoal::ratio(MetricKind::Wall, "haul agent", "curl", way.goal)],
            rounds: 5,
            // The mirror has everything in memory, and the machine is idle most of the time.
            warm_up: false,
            one_core: false,
            calls: false,
            server: format!(
                "testkit's mirror{}, behind a relay of {} ms{}",
                if way.tls { ", TLS 1.3" } else { "" },
                RTT.as_millis(),
                if way.far { " that charges the handshake" } else { "" }
            ),
            unit: WorkPerRun::Requests(needed_parts.len()),
        });
        bench.keep_running((mirror, relay));
    }
    Ok(job_parts)
}

/// Runs `bench read-packages`: reads packages from a mirror as pkg_add does. `arguments` are the
/// words of the command line after `read-packages`.
pub(crate) fn read(arguments: &[String]) -> Result<()> {
    let [parts, base, fetcher @ ..] = arguments else { return Err("read-packages PARTS BASE COMMAND...".into()) };
    let parts: Option<Vec<NeededPackagePart>> =
        fs::read_to_string(parts)?.lines().map(NeededPackagePart::from_line).collect();
    let run = PkgAddEmulator { fetcher, base }.run(&parts.ok_or("not a list of parts of packages")?)?;
    if !run.error_output.is_empty() {
        return Err(format!("the fetcher said: {}", run.error_output).into());
    }
    println!("{}", run.read);
    Ok(())
}
