//! Requests of a Perl program, one at a time on a warm connection. The clients are HTTP::Haul, LWP
//! with and without HTTP::Haul, other Perl clients, and the C program of the job `c-requests`,
//! which shows the lower limit. The clients that support parallel requests also fetch all pages of
//! the site, six at a time.
//!
//! In further parts, Search::Elasticsearch reads and writes documents of 100 B to 300 kB in turn,
//! with each of its connection classes.
//!
//! The programs are in `bench/perl`. They use the HTTP::Haul that `make bindings` has
//! built in `bindings/perl/blib`.

use std::process::Command;

use super::language_client_jobs::{LanguageClient, SequentialRequestsJob, installed};
use super::{BenchJob, JobEnvironment, SiteFiles, home};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::server::SiteServer;

pub(super) const JOB: BenchJob = BenchJob {
    name: "perl",
    about: "requests of a Perl program, one at a time and side by side; parts small, page, post, post-few, pages, search, search-few",
    set_up,
};

const HAUL: &str = "Haul";
const LWP_HAUL: &str = "LWP, haul";
const LWP: &str = "LWP";
const TINY: &str = "HTTP::Tiny";
/// The clients that `requests.pl` supports.
const CLIENTS: [LanguageClient; 8] = [
    (HAUL, "haul", "Carp"),
    (LWP_HAUL, "lwp+haul", "LWP::UserAgent"),
    (LWP, "lwp", "LWP::UserAgent"),
    (TINY, "tiny", "HTTP::Tiny"),
    ("Furl", "furl", "Furl"),
    ("WWW::Curl", "curl", "WWW::Curl::Easy"),
    ("Hijk", "hijk", "Hijk"),
    ("Mojo", "mojo", "Mojo::UserAgent"),
];

/// The connection classes of Search::Elasticsearch that `search.pl` supports: displayed name, class
/// and module.
const CONNECTIONS: [LanguageClient; 5] = [
    (HAUL, "Haul", "Search::Elasticsearch"),
    (LWP, "LWP", "Search::Elasticsearch::Cxn::LWP"),
    (TINY, "HTTPTiny", "Search::Elasticsearch::Cxn::HTTPTiny"),
    ("NetCurl", "NetCurl", "Search::Elasticsearch::Cxn::NetCurl"),
    ("Hijk", "Hijk", "Search::Elasticsearch::Cxn::Hijk"),
];
/// The sizes of the documents in `search.pl`, in bytes.
const DOCUMENTS: [u64; 5] = [100, 1_000, 10_000, 100_000, 300_000];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    if !home().join("../bindings/perl/blib/arch/auto/HTTP/Haul").is_dir() {
        return Err("perl needs the Perl module: make bindings".into());
    }
    let clients = installed(&CLIENTS, loads);
    let one_by_one = SequentialRequestsJob {
        script: &["perl", "../../perl/requests.pl"],
        clients: &clients,
        haul: HAUL,
        parts: [(5_000, 1.3), (1_500, 1.6), (4_000, 1.4)],
        // HTTP::Tiny sends head and content separately, so the content waits for an acknowledgement
        // (Nagle's algorithm): 25 requests a second.
        slow_to_post: Some(TINY),
        replaced: clients.iter().any(|(name, ..)| *name == LWP).then_some((LWP_HAUL, LWP, 0.4)),
    };
    let mut job_parts = one_by_one.new_parts(bench)?;
    job_parts.push(pages(bench, &clients)?);
    job_parts.extend(search(bench)?);
    Ok(job_parts)
}

/// Returns the command that checks whether Perl has a module.
fn loads(module: &str) -> Command {
    let mut perl = Command::new("perl");
    perl.args([&format!("-M{module}"), "-e1"]);
    perl
}

/// Creates the parts `search` and `search-few`, in which the Perl module Search::Elasticsearch
/// alternately writes and reads documents, by haul or by another HTTP client. HTTP::Tiny takes part
/// only in `search-few`, which has fewer documents: it sends the head and the content of a request
/// separately, and waits for a TCP acknowledgement between them.
fn search(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let connections = installed(&CONNECTIONS, loads);
    if !connections.iter().any(|(name, ..)| *name == HAUL) {
        return Ok(Vec::new());
    }
    let _turns = SingleCoreGuard::restrict_thread()?;
    let server = SiteServer::embedded(testkit::site::GeneratedSite::scaled(1, 12), &bench.work)?;
    let few = bench.count(40);
    let many = bench.count(300);
    let is_in = |part: &str, name: &str| name == HAUL || (part == "search-few") == (name == TINY);
    let job_part = |(part, rounds): (&'static str, usize)| {
        let all = (DOCUMENTS.iter().sum::<u64>() + 100 * DOCUMENTS.len() as u64) * rounds as u64;
        let here: Vec<_> = connections.iter().copied().filter(|(name, ..)| is_in(part, name)).collect();
        let bench_program = |&(name, class, _): &LanguageClient| {
            let (host, port) = (server.addr.ip().to_string(), server.addr.port().to_string());
            let argv = ["perl", "../../perl/search.pl", class, &host, &port, &rounds.to_string()];
            let check = OutputCheck::PrintedLength(None, OutputDigest { len: all, sha256: String::new() });
            BenchProgram { name, argv: argv.map(str::to_owned).to_vec(), piped: false, times: 1, check }
        };
        let peers = here.iter().map(|(name, ..)| *name).filter(|&name| name != HAUL);
        JobPart {
            part,
            bench_programs: here.iter().map(bench_program).collect(),
            baseline: HAUL,
            limit: None,
            goals: peers.map(|peer| PartGoal::ratio(MetricKind::Cpu, HAUL, peer, 1.0)).collect(),
            rounds: 5,
            warm_up: false,
            one_core: true,
            calls: true,
            server: server.name.clone(),
            unit: WorkPerRun::Requests(2 * DOCUMENTS.len() * rounds),
        }
    };
    let job_parts = [("search", many), ("search-few", few)]
        .map(job_part)
        .into_iter()
        .filter(|job_part| job_part.bench_programs.len() > 1);
    let job_parts = job_parts.collect();
    bench.keep_running(server);
    Ok(job_parts)
}

/// Creates the part of the job that fetches all pages of the site, six at a time. HTTP::Haul uses
/// its method `each`; each of the other clients uses the method that it has for many URLs.
fn pages(bench: &mut JobEnvironment, clients: &[LanguageClient]) -> Result<JobPart> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let all = OutputDigest { sha256: String::new(), ..files.pages(&paths) };
    let able = clients.iter().filter(|(_, way, _)| ["haul", "curl", "mojo"].contains(way));
    let bench_programs: Vec<_> = able
        .map(|&(name, way, _)| BenchProgram {
            name,
            argv: ["perl", "../../perl/requests.pl", "pages", way, "list"].map(str::to_owned).to_vec(),
            piped: false,
            times: 1,
            check: OutputCheck::PrintedLength(None, all.clone()),
        })
        .collect();
    let names = bench_programs.iter().map(|bench_program| bench_program.name).filter(|&name| name != HAUL);
    let goals = names.map(|of| PartGoal::ratio(MetricKind::Cpu, HAUL, of, 1.0)).collect();
    let server_name = server.name.clone();
    bench.keep_running(server);
    Ok(JobPart {
        part: "pages",
        bench_programs,
        baseline: HAUL,
        limit: None,
        goals,
        rounds: 5,
        warm_up: true,
        one_core: false,
        calls: true,
        server: server_name,
        unit: WorkPerRun::Requests(paths.len()),
    })
}
