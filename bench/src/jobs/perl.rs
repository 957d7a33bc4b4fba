//! Requests of a Perl program, one at a time on a warm connection. The clients are HTTP::Haul, LWP
//! with and without it, other Perl clients, and the lower limit (the C program of `c-requests`).
//! The clients that support it also fetch all pages of the site, six at a time.
//!
//! The programs are in `bench/perl/requests.pl`. They use the HTTP::Haul that `make bindings` has
//! built in `bindings/perl/blib`.

use std::process::Command;

use super::language_clients::{LanguageClient, SequentialRequestsJob, installed};
use super::{BenchJob, JobEnvironment, SiteFiles, home};
use crate::Result;
use crate::digest::OutputDigest;
use crate::job_part::{Contestant, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};

pub(super) const JOB: BenchJob = BenchJob {
    name: "perl",
    about: "requests of a Perl program, one at a time and side by side; parts small, page, post, post-few, pages",
    set_up,
};

const HAUL: &str = "Haul";
const LWP_HAUL: &str = "LWP, haul";
const LWP: &str = "LWP";
/// The clients that `requests.pl` supports.
const CLIENTS: [LanguageClient; 8] = [
    (HAUL, "haul", "Carp"),
    (LWP_HAUL, "lwp+haul", "LWP::UserAgent"),
    (LWP, "lwp", "LWP::UserAgent"),
    ("HTTP::Tiny", "tiny", "HTTP::Tiny"),
    ("Furl", "furl", "Furl"),
    ("WWW::Curl", "curl", "WWW::Curl::Easy"),
    ("Hijk", "hijk", "Hijk"),
    ("Mojo", "mojo", "Mojo::UserAgent"),
];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    if !home().join("../bindings/perl/blib/arch/auto/HTTP/Haul").is_dir() {
        return Err("perl needs the Perl module: make bindings".into());
    }
    let clients = installed(&CLIENTS, |module| {
        let mut perl = Command::new("perl");
        perl.args([&format!("-M{module}"), "-e1"]);
        perl
    });
    let one_by_one = SequentialRequestsJob {
        script: &["perl", "../../perl/requests.pl"],
        clients: &clients,
        haul: HAUL,
        parts: [(5_000, 1.3), (1_500, 1.6), (4_000, 1.4)],
        // It sends head and content separately, so that the content waits for an acknowledgement
        // (Nagle): 25 a second.
        slow_to_post: Some("HTTP::Tiny"),
        replaced: clients.iter().any(|(name, ..)| *name == LWP).then_some((LWP_HAUL, LWP, 0.5)),
    };
    let mut cards = one_by_one.cards(bench)?;
    cards.push(pages(bench, &clients)?);
    Ok(cards)
}

/// Creates the part that fetches all pages of the site, six at a time. HTTP::Haul uses its method
/// `each`, the other clients what they have instead.
fn pages(bench: &mut JobEnvironment, clients: &[LanguageClient]) -> Result<JobPart> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let all = OutputDigest { sha256: String::new(), ..files.pages(&paths) };
    let able = clients.iter().filter(|(_, way, _)| ["haul", "curl", "mojo"].contains(way));
    let contestants: Vec<_> = able
        .map(|&(name, way, _)| Contestant {
            name,
            argv: ["perl", "../../perl/requests.pl", "pages", way, "list"].map(str::to_owned).to_vec(),
            piped: false,
            times: 1,
            check: OutputCheck::Told(None, all.clone()),
        })
        .collect();
    let names = contestants.iter().map(|contestant| contestant.name).filter(|&name| name != HAUL);
    let goals = names.map(|of| PartGoal::ratio(MetricKind::Cpu, HAUL, of, 1.0)).collect();
    let server_name = server.name.clone();
    bench.hold(server);
    Ok(JobPart {
        part: "pages",
        contestants,
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
