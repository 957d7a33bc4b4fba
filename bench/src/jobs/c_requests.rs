//! Requests of a C program, one at a time on a warm connection, with libhaul, libcurl, and the
//! minimum of system calls.
//!
//! The program is `bench/c/requests.c`. It is compiled here with the library that `make bindings`
//! has put into `target/capi`.

use std::path::Path;
use std::process::Command;

use super::{BenchJob, JobEnvironment, home};
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::server::SiteServer;
use crate::{Result, installed_programs};

pub(super) const JOB: BenchJob =
    BenchJob { name: "c-requests", about: "requests of a C program, one at a time; parts small, page, post", set_up };

const HAUL: &str = "libhaul";
const CURL: &str = "libcurl";
const LIMIT: &str = "send + recv";
/// The length in bytes of a large page of the job `site`.
pub(super) const PAGE: u64 = 335_114;
pub(crate) const FORM: &str = "user=somebody&password=secret&remember=yes";

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    compile(&bench.work)?;
    let bodies = LargeBodyFiles::new(&home().join("work"), bench.options.seed)?;
    let (small, page) = (bodies.prepare(super::SMALL_BODY_LENGTH as u64)?, bodies.prepare(PAGE)?);
    let _turns = SingleCoreGuard::restrict_thread()?;
    let files = SiteServer::start(
        &testkit::site::GeneratedSite::scaled(1, 12),
        bodies.root(),
        &bench.work,
        bench.options.embedded,
    )?;
    // nginx does not answer a POST to a file. The answer has a fixed length: one that described the
    // request would include the connection's number.
    let forms = SiteServer::embedded(testkit::site::GeneratedSite::scaled(1, 12), &bench.work)?;
    let part = |part, server: &SiteServer, path: &str, length: u64, count: usize, form: Option<&str>, goal: f64| {
        let count = bench.count(count);
        let all = OutputDigest { len: length * count as u64, sha256: String::new() };
        let bench_program = |name, way: &str| {
            let argv = program_command(way, server, path, count, form);
            BenchProgram { name, argv, piped: false, times: 1, check: OutputCheck::PrintedLength(None, all.clone()) }
        };
        JobPart {
            part,
            bench_programs: vec![
                bench_program(HAUL, "haul"),
                bench_program(CURL, "curl"),
                bench_program(LIMIT, "limit"),
            ],
            baseline: CURL,
            limit: Some(LIMIT),
            goals: vec![
                PartGoal::ratio(MetricKind::Cpu, HAUL, LIMIT, goal),
                PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, 1.0),
            ],
            rounds: 7,
            warm_up: false,
            one_core: true,
            calls: true,
            server: server.name.clone(),
            unit: WorkPerRun::Requests(count),
        }
    };
    let job_parts = vec![
        part("small", &files, &LargeBodyFiles::path(small.len), small.len, 20_000, None, 1.3),
        part("page", &files, &LargeBodyFiles::path(page.len), page.len, 4_000, None, 1.6),
        part("post", &forms, &LargeBodyFiles::path(small.len), small.len, 10_000, Some(FORM), 1.4),
    ];
    bench.keep_running(files);
    bench.keep_running(forms);
    Ok(job_parts)
}

/// Returns the command line with which haul sends `count` requests. With `form`, the requests are
/// POST requests with this content.
pub(crate) fn argv(server: &SiteServer, path: &str, count: usize, form: Option<&str>) -> Vec<String> {
    program_command("haul", server, path, count, form)
}

fn program_command(way: &str, server: &SiteServer, path: &str, count: usize, form: Option<&str>) -> Vec<String> {
    let (host, port) = (server.addr.ip().to_string(), server.addr.port().to_string());
    let mut argv = vec!["./requests".to_owned(), way.to_owned(), host, port, path.to_owned(), count.to_string()];
    argv.extend(form.map(str::to_owned));
    argv
}

/// Compiles the C program to the file `requests` in the working directory.
pub(crate) fn compile(work: &Path) -> Result<()> {
    let Some(cc) = installed_programs::find("cc") else { return Err("c-requests needs a C compiler".into()) };
    // The directory is beside the build directory of this program.
    let built = std::env::current_exe()?.parent().and_then(Path::parent).map(|target| target.join("capi"));
    let Some(built) = built.filter(|built| built.join("lib/libhaul.so").exists()) else {
        return Err("c-requests needs libhaul: make bindings".into());
    };
    let library = built.join("lib");
    let output = Command::new(cc)
        .args(["-O2", "-D_GNU_SOURCE", "-Wall", "-o"])
        .arg(work.join("requests"))
        .arg(home().join("c/requests.c"))
        .arg("-I")
        .arg(built.join("include"))
        .arg("-L")
        .arg(&library)
        .args(["-lhaul", "-ldl"])
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()?;
    if !output.status.success() {
        return Err(format!("requests.c: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}
