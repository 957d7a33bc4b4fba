//! Requests of a Python program: one at a time on a warm connection, and the site's pages
//! concurrently. The clients are haul, requests with and without haul, other clients, and the C
//! program of the job `c-requests`, which shows the lower limit.
//!
//! The programs are in `bench/python`. They run in the environment that `scripts/bench-python.sh`
//! creates, with pinned versions of the competitors, and haul from `make python`.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::language_client_jobs::{self, LanguageClient, SequentialRequestsJob, peers};
use super::{BenchJob, JobEnvironment, SiteFiles};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::output_digest::OutputDigest;

pub(super) const JOB: BenchJob = BenchJob {
    name: "python",
    about: "requests of a Python program, one at a time and many; parts small, page, post, pages",
    set_up,
};

const HAUL: &str = "haul";
const ASYNC: &str = "haul, async";
/// The displayed name of the client that makes a synchronous call of haul in each asyncio task.
const TASK: &str = "haul, task";
const ADAPTER: &str = "requests, haul";
const REQUESTS: &str = "requests";
const AIOHTTP: &str = "aiohttp";
const HTTPX: &str = "httpx";
const PYCURL: &str = "pycurl";

/// The clients that `one_by_one.py` supports.
const ONE_BY_ONE: [LanguageClient; 12] = [
    (HAUL, "haul", "haul"),
    (ASYNC, "haul-async", "haul"),
    (TASK, "haul-task", "haul"),
    (ADAPTER, "requests+haul", "requests"),
    (REQUESTS, "requests", "requests"),
    ("niquests", "niquests", "niquests"),
    (HTTPX, "httpx", "httpx"),
    ("urllib3", "urllib3", "urllib3"),
    ("http.client", "http.client", "http.client"),
    (AIOHTTP, "aiohttp", "aiohttp"),
    ("curl_cffi", "curl_cffi", "curl_cffi"),
    (PYCURL, "pycurl", "pycurl"),
];

/// The clients that `pages.py` supports.
const PAGES: [LanguageClient; 14] = [
    (HAUL, "haul", "haul"),
    ("haul, unordered", "haul-unordered", "haul"),
    (ASYNC, "haul-async", "haul"),
    ("haul, uvloop", "haul-async/uvloop", "uvloop"),
    ("requests, haul", "requests+haul", "requests"),
    (REQUESTS, "requests", "requests"),
    ("niquests", "niquests", "niquests"),
    (HTTPX, "httpx", "httpx"),
    ("urllib3", "urllib3", "urllib3"),
    ("http.client", "http.client", "http.client"),
    (AIOHTTP, "aiohttp", "aiohttp"),
    ("aiohttp, uvloop", "aiohttp/uvloop", "uvloop"),
    ("curl_cffi", "curl_cffi", "curl_cffi"),
    (PYCURL, "pycurl", "pycurl"),
];

/// The path of the Python interpreter, relative to the working directory of the commands.
const PYTHON: &str = "environment/bin/python";
/// The command that runs Python without environment variables. The Python package `requests` reads
/// all variables twice for each request. With the seventy variables of a CI system, this took half
/// of the package's time.
const CLEAN: [&str; 3] = ["env", "-i", PYTHON];

/// A Python program in `bench/python`, and the modules that it needs.
pub(super) struct PythonScript {
    pub(super) file: &'static str,
    /// The Python modules that the program needs, separated by commas and blanks.
    pub(super) modules: &'static str,
}

impl PythonScript {
    /// Creates a benchmark program that runs Python with these arguments. If a module is missing,
    /// prints a message and returns `None`.
    pub(super) fn bench_program(
        &self,
        bench: &JobEnvironment,
        name: &'static str,
        words: &str,
        check: OutputCheck,
    ) -> Option<BenchProgram> {
        let has_modules = || {
            let mut python = Command::new(PYTHON);
            python.current_dir(&bench.work).args(["-c", &format!("import {}", self.modules)]);
            python.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        if link_environment(bench).is_err() || !has_modules() {
            bench.print_skipped(format!("{name}: skipped, no {} for Python: sh scripts/bench-python.sh", self.modules));
            return None;
        }
        let file = format!("../../python/{}", self.file);
        let argv = CLEAN.into_iter().chain([file.as_str()]).chain(words.split(' ')).map(str::to_owned).collect();
        Some(BenchProgram { name, argv, piped: false, times: 1, check })
    }
}

/// Links the directory that contains the Python interpreter and the packages for the bench into the
/// job's working directory. Fails if that interpreter is not installed.
fn link_environment(bench: &JobEnvironment) -> Result<()> {
    let link = bench.work.join("environment");
    if link.exists() {
        return Ok(());
    }
    // The directory is beside the build directory of this program.
    let built = std::env::current_exe()?.parent().and_then(Path::parent).map(|target| target.join("py-bench"));
    let Some(built) = built.filter(|built| built.join("bin/python").exists()) else {
        return Err("python needs its peers: make python, then sh scripts/bench-python.sh".into());
    };
    Ok(symlink(built, link)?)
}

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    link_environment(bench)?;
    // The goals are 30, 80 and 33 µs, and this limit was 20, 45 and 20 µs; the interpreter's start
    // is included.
    let one_by_one = SequentialRequestsJob {
        script: &[CLEAN.as_slice(), &["../../python/one_by_one.py"]].concat(),
        clients: &installed(&bench.work, &ONE_BY_ONE),
        haul: HAUL,
        parts: [(4_000, 1.5), (2_000, 1.78), (4_000, 1.65)],
        slow_to_post: None,
        replaced: Some((ADAPTER, REQUESTS, 0.6)),
    };
    let mut job_parts = one_by_one.new_parts(bench)?;
    for job_part in &mut job_parts {
        job_part.goals.push(PartGoal::ratio(MetricKind::Cpu, ASYNC, TASK, 1.3));
    }
    job_parts.push(pages(bench)?);
    Ok(job_parts)
}

fn pages(bench: &mut JobEnvironment) -> Result<JobPart> {
    let mut clients = installed(&bench.work, &PAGES);
    // HTTPX takes half a minute per round, as long as all others together.
    clients.retain(|client| bench.options.slow || client.0 != HTTPX);
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_lines("list", paths.iter().map(|path| format!("http://{}{path}", server.addr)))?;
    let all = files.pages(&paths);
    let bench_programs = clients
        .iter()
        .map(|&(name, way, _)| BenchProgram {
            name,
            argv: CLEAN.into_iter().chain(["../../python/pages.py", way, "list"]).map(str::to_owned).collect(),
            piped: false,
            times: 1,
            check: OutputCheck::PrintedLength(None, all.clone()),
        })
        .collect();
    let mut goals = vec![
        PartGoal::ratio(MetricKind::Wall, HAUL, AIOHTTP, 0.25),
        PartGoal::ratio(MetricKind::Cpu, HAUL, AIOHTTP, 0.25),
    ];
    let most = |peer| if peer == PYCURL { 0.7 } else { 1.0 };
    goals.extend(peers(&clients).map(|peer| PartGoal::ratio(MetricKind::Cpu, HAUL, peer, most(peer))));
    let job_part = JobPart {
        part: "pages",
        bench_programs,
        baseline: AIOHTTP,
        limit: None,
        goals,
        rounds: 3,
        // A round of all clients takes a minute.
        warm_up: false,
        one_core: false,
        calls: true,
        server: server.name.clone(),
        unit: WorkPerRun::Requests(paths.len()),
    };
    bench.keep_running(server);
    Ok(job_part)
}

/// Creates a benchmark program for each of `clients` whose module is installed. The program is the
/// Python script `file` in `bench/python`; its arguments are the name that selects the client in
/// the script, and `words`.
pub(super) fn bench_programs(
    bench: &JobEnvironment,
    file: &str,
    clients: &[LanguageClient],
    words: &str,
    all: &OutputDigest,
) -> Vec<BenchProgram> {
    if let Err(error) = link_environment(bench) {
        println!("{}: no client for Python: {error}", bench.job.name);
        return Vec::new();
    }
    let file = format!("../../python/{file}");
    let bench_program = |(name, way, _): LanguageClient| {
        let arguments = [file.as_str(), way].into_iter().chain(words.split(' '));
        let argv = CLEAN.into_iter().chain(arguments).map(str::to_owned).collect();
        BenchProgram { name, argv, piped: false, times: 1, check: OutputCheck::PrintedLength(None, all.clone()) }
    };
    installed(&bench.work, clients).into_iter().map(bench_program).collect()
}

/// Returns the clients whose module the interpreter [`PYTHON`] can import. `work` is the working
/// directory of the interpreter.
fn installed(work: &Path, clients: &[LanguageClient]) -> Vec<LanguageClient> {
    language_client_jobs::installed(clients, |module| {
        let mut python = Command::new(PYTHON);
        let script = format!("import sys; sys.path.append(sys.prefix + '/apart'); import {module}");
        python.current_dir(work).args(["-c", &script]);
        python
    })
}
