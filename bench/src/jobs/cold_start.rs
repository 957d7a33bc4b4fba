//! One small plain HTTP request, measured from the start of the process to its end.

use super::{BenchJob, JobEnvironment, SYSTEM_CURL, SiteFiles, repeated_program};
use crate::Result;
use crate::compared_programs_and_goals::{JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::tls_files::write_roots;

pub(super) const JOB: BenchJob = BenchJob {
    name: "cold",
    about: "one small request, a process each, 20 in a row; parts plain, tls, tls-roots",
    set_up,
};

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let files = SiteFiles::prepare(bench.options)?;
    let _turns = SingleCoreGuard::restrict_thread()?;
    let server = files.serve(bench)?;
    let job_part = |part, url: String, options: &str, name: String| {
        let line = |tool: &str, output: &str| format!("{tool} -s {options}{output}{url}");
        let entry = |name: &'static str, tool: &str, program: &str| {
            let proof = OutputCheck::CheckedOnce(line(program, ""), OutputDigest::from_bytes(b"small\n"));
            repeated_program(name, &line(tool, "-o /dev/null "), proof)
        };
        let mut entries = vec![entry("haul", "haul", "$HAUL"), entry("curl", "curl", "$CURL")];
        entries.push(entry("curl, system", SYSTEM_CURL, "$SYSTEM_CURL"));
        if part == "plain" {
            let proof =
                |line: &str| OutputCheck::CheckedOnce(format!("{line} {url}"), OutputDigest::from_bytes(b"small\n"));
            entries.push(repeated_program("wget2", &format!("wget2 -q -O /dev/null {url}"), proof("wget2 -q -O -")));
            entries.push(repeated_program("htcat", &format!("htcat {url}"), proof("htcat")));
        }
        JobPart {
            part,
            bench_programs: bench.allowed_programs(entries),
            baseline: "curl",
            limit: None,
            goals: vec![
                PartGoal::ratio(MetricKind::Cpu, "haul", "curl", 1.0),
                PartGoal::ratio(MetricKind::Wall, "haul", "curl", 1.0),
                PartGoal::ratio(MetricKind::Cpu, "haul", "curl, system", if part == "plain" { 0.5 } else { 0.6 }),
            ],
            rounds: 30,
            warm_up: true,
            one_core: true,
            calls: true,
            server: name,
            unit: WorkPerRun::Requests(1),
        }
    };
    let url = format!("https://{}/small", server.tls);
    let mut job_parts = vec![
        job_part("plain", format!("http://{}/small", server.addr), "", server.name.clone()),
        job_part("tls", url.clone(), "--cacert ca.pem ", format!("{}, TLS 1.3", server.name)),
    ];
    if write_roots(&bench.work)? {
        let name = format!("{}, TLS 1.3, its root trusted beside the system's", server.name);
        job_parts.push(job_part("tls-roots", url, "--cacert roots.pem ", name));
    }
    bench.keep_running(server);
    Ok(job_parts)
}
