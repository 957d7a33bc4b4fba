//! Programs that were written for libcurl, run with libcurl and with haul's replacement library: a
//! Perl program with WWW::Curl, a Python program with pycurl, and a C program with the multi
//! interface.
//!
//! `scripts/bench-libcurl.sh` builds libcurl in the version of `bench/libcurl/Cargo.lock` and
//! pycurl. `make libcurl` builds haul's library.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::large_body_common::{LargeBodyServer, length_that_fits};
use super::{BenchJob, JobEnvironment, SMALL_BODY_LENGTH, home};
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::{Result, installed_programs};

pub(super) const JOB: BenchJob = BenchJob {
    name: "libcurl",
    about: "programs written for libcurl; parts perl-small, perl-large, python-small, python-large, multi",
    set_up,
};

const HAUL: &str = "over haul";
const CURL: &str = "over libcurl";
/// The two compared libraries: the displayed name, and the link in the working directory to the
/// library's directory.
const LIBRARIES: [(&str, &str); 2] = [(HAUL, "haul-library"), (CURL, "curl-library")];
/// The length in bytes of the large bodies that are fetched one at a time.
const LARGE: u64 = 256 << 20;
/// The length in bytes of the bodies that the C program fetches in parallel.
const PARALLEL: u64 = 1 << 30;
const BODIES: usize = 5;

/// A part of the job in which a Perl or Python program sends its requests one after the other.
struct SequentialPartSettings {
    name: &'static str,
    program: &'static [&'static str],
    length: u64,
    count: usize,
    /// The goal for haul's CPU time as a multiple of libcurl's.
    goal: f64,
}

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let built = std::env::current_exe()?.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    link(&built.join("libcurl"), &bench.work.join("haul-library"), "make libcurl")?;
    let peers = built.join("libcurl-peers");
    link(&peers.join("lib"), &bench.work.join("curl-library"), "sh scripts/bench-libcurl.sh")?;
    link(&peers.join("python"), &bench.work.join("environment"), "sh scripts/bench-libcurl.sh")?;
    compile(&bench.work)?;
    let large = length_that_fits(bench, LARGE);
    const PERL: &[&str] = &["perl", "../../perl/requests.pl"];
    const PYTHON: &[&str] = &["environment/bin/python", "../../python/one_by_one.py"];
    let part = |name, program, length, count, goal| SequentialPartSettings { name, program, length, count, goal };
    let small = SMALL_BODY_LENGTH as u64;
    // Starting the interpreter takes as long as about 3,000 requests.
    let requests = bench.count(20_000);
    let parts = [
        (part("perl-small", PERL, small, requests, 0.8), "curl"),
        (part("perl-large", PERL, large, 4, 0.6), "curl-file"),
        (part("python-small", PYTHON, small, requests, 0.8), "pycurl"),
        (part("python-large", PYTHON, large, 4, 0.6), "pycurl-file"),
    ];
    let store = {
        let _turns = SingleCoreGuard::restrict_thread()?;
        LargeBodyServer::open(bench)?
    };
    let mut job_parts = Vec::new();
    for (part, way) in &parts {
        job_parts.push(sequential_part(bench, &store, part, way)?);
    }
    job_parts.push(multi_part(bench, &store)?);
    bench.keep_running(store.server);
    Ok(job_parts)
}

/// Creates the symbolic link `link` to a directory, so that command lines have no absolute paths.
/// If the directory does not exist, the error names the command `how`, which creates it.
fn link(directory: &Path, link: &Path, how: &str) -> Result<()> {
    if !directory.is_dir() {
        return Err(format!("libcurl needs {}: {how}", directory.display()).into());
    }
    Ok(symlink(directory, link)?)
}

/// Returns a benchmark program for each of the two compared libraries: libcurl, and haul's
/// replacement for it. Both programs run the command line `words`.
fn bench_programs(words: &[String], all: &OutputDigest) -> Vec<BenchProgram> {
    let bench_program = |(name, library): (&'static str, &str)| {
        let argv = ["env".to_owned(), format!("LD_LIBRARY_PATH={library}")].into_iter().chain(words.to_vec()).collect();
        BenchProgram { name, argv, piped: false, times: 1, check: OutputCheck::PrintedLength(None, all.clone()) }
    };
    LIBRARIES.into_iter().map(bench_program).collect()
}

fn sequential_part(
    bench: &JobEnvironment,
    store: &LargeBodyServer,
    part: &SequentialPartSettings,
    way: &str,
) -> Result<JobPart> {
    let SequentialPartSettings { name, program, length, count, goal } = *part;
    store.plain(store.server.addr, length)?;
    let (host, port) = (store.server.addr.ip().to_string(), store.server.addr.port().to_string());
    let words = [way.to_owned(), host, port, LargeBodyFiles::path(length), count.to_string()];
    let words: Vec<String> = program.iter().map(|&word| word.to_owned()).chain(words).collect();
    let all = OutputDigest { len: length * count as u64, sha256: String::new() };
    let is_small = length == SMALL_BODY_LENGTH as u64;
    let unit = if is_small { WorkPerRun::Requests(count) } else { WorkPerRun::Bytes(all.len) };
    Ok(new_part(bench, store, name, bench_programs(&words, &all), goal, unit, is_small))
}

fn multi_part(bench: &JobEnvironment, store: &LargeBodyServer) -> Result<JobPart> {
    let length = bench.length(PARALLEL);
    let url = store.plain(store.server.addr, length)?.url;
    let words: Vec<String> = std::iter::once("./multi".to_owned()).chain(vec![url; BODIES]).collect();
    let all = OutputDigest { len: length * BODIES as u64, sha256: String::new() };
    Ok(new_part(bench, store, "multi", bench_programs(&words, &all), 0.3, WorkPerRun::Bytes(all.len), false))
}

fn new_part(
    bench: &JobEnvironment,
    store: &LargeBodyServer,
    part: &'static str,
    bench_programs: Vec<BenchProgram>,
    goal: f64,
    unit: WorkPerRun,
    one_core: bool,
) -> JobPart {
    JobPart {
        part,
        bench_programs: bench.allowed_programs(bench_programs),
        baseline: CURL,
        limit: None,
        goals: vec![PartGoal::ratio(MetricKind::Cpu, HAUL, CURL, goal)],
        rounds: 5,
        warm_up: true,
        one_core,
        calls: true,
        server: store.server.name.clone(),
        unit,
    }
}

/// Compiles the C program with the libcurl header of the system.
fn compile(work: &Path) -> Result<()> {
    let Some(cc) = installed_programs::find("cc") else { return Err("libcurl needs a C compiler".into()) };
    let source: PathBuf = home().join("c/multi.c");
    let mut compiler = Command::new(cc);
    compiler.args(["-O2", "-Wall", "-o"]).arg(work.join("multi")).arg(source).arg("-lcurl");
    let output = compiler.output()?;
    if !output.status.success() {
        return Err(format!("multi.c: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}
