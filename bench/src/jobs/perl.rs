//! Requests of a Perl program, one at a time on a warm connection: Haul, LWP with and without it, what else there is for
//! Perl, and the least there is (the C program of `c-requests`). And all pages of the site, six at once, by those that can.
//!
//! The programs are those of `bench/perl/requests.pl`; Haul is what `make bindings` has left in `bindings/perl/blib`.

use std::process::{Command, Stdio};

use super::{Bench, Job, SiteFiles, c_requests, home};
use crate::Result;
use crate::bodies::Bodies;
use crate::card::{Card, Check, Contestant, Goal, Unit, What};
use crate::digest::Print;
use crate::server::Server;

pub(super) const JOB: Job = Job {
    name: "perl",
    about: "requests of a Perl program, one at a time and side by side; parts small, page, post, pages",
    set_up,
};

const HAUL: &str = "Haul";
const LWP_HAUL: &str = "LWP, haul";
const LWP: &str = "LWP";
const LIMIT: &str = "send + recv, C";
/// The clients: the name shown, what requests.pl calls it, the module that must be there.
const CLIENTS: [(&str, &str, &str); 8] = [
    (HAUL, "haul", "Carp"),
    (LWP_HAUL, "lwp+haul", "LWP::UserAgent"),
    (LWP, "lwp", "LWP::UserAgent"),
    ("HTTP::Tiny", "tiny", "HTTP::Tiny"),
    ("Furl", "furl", "Furl"),
    ("WWW::Curl", "curl", "WWW::Curl::Easy"),
    ("Hijk", "hijk", "Hijk"),
    ("Mojo", "mojo", "Mojo::UserAgent"),
];
/// A page of the first job that is larger than most.
const PAGE: u64 = 335_114;
const FORM: &str = "user=somebody&password=secret&remember=yes";

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    if !home().join("../bindings/perl/blib/arch/auto/Haul").is_dir() {
        return Err("perl needs the Perl module: make bindings".into());
    }
    c_requests::compile(&bench.work)?;
    let clients: Vec<_> = CLIENTS.into_iter().filter(|(name, _, module)| is_installed(name, module)).collect();
    let bodies = Bodies::new(&home().join("work"), bench.options.seed)?;
    let (small, page) = (bodies.prepare(super::SMALL as u64)?, bodies.prepare(PAGE)?);
    let files = Server::start(&testkit::site::Site::scaled(1, 12), bodies.root(), &bench.work, bench.options.embedded)?;
    // nginx answers no POST of a file.
    let forms = Server::embedded(testkit::site::Site::scaled(1, 12), &bench.work)?;
    let part = |part, server: &Server, length: u64, count: usize, form: Option<&str>, goal: f64| {
        let all = Print { len: length * count as u64, sha256: String::new() };
        let contestant = |name, program: &[&str], way: &str| {
            let (host, port) = (server.addr.ip().to_string(), server.addr.port().to_string());
            let mut argv: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
            argv.extend([way.to_owned(), host, port, Bodies::path(length), count.to_string()]);
            argv.extend(form.map(str::to_owned));
            Contestant { name, argv, piped: false, check: Check::Told(None, all.clone()) }
        };
        let script = ["perl", "../../perl/requests.pl"];
        let mut contestants: Vec<_> = clients.iter().map(|(name, way, _)| contestant(name, &script, way)).collect();
        contestants.push(contestant(LIMIT, &["./requests"], "limit"));
        let mut goals = vec![Goal::ratio(What::Cpu, HAUL, LIMIT, goal)];
        goals.extend(
            clients
                .iter()
                .filter(|(_, way, _)| !way.contains("haul"))
                .map(|(of, ..)| Goal::ratio(What::Cpu, HAUL, of, 1.0)),
        );
        if clients.iter().any(|(name, ..)| *name == LWP) {
            goals.push(Goal::ratio(What::Cpu, LWP_HAUL, LWP, 0.5));
        }
        Card {
            part,
            contestants,
            baseline: LIMIT,
            limit: Some(LIMIT),
            goals,
            rounds: 5,
            warm_up: true,
            calls: true,
            server: server.name.clone(),
            unit: Unit::Requests(count),
        }
    };
    let cards = vec![
        part("small", &files, small.len, 10_000, None, 1.3),
        part("page", &files, page.len, 2_000, None, 1.6),
        part("post", &forms, small.len, 5_000, Some(FORM), 1.4),
        pages(bench, &clients)?,
    ];
    bench.hold(files);
    bench.hold(forms);
    Ok(cards)
}

/// All pages of the site, six at once: by Haul's `each`, and by what other clients have for it.
fn pages(bench: &mut Bench, clients: &[(&'static str, &'static str, &'static str)]) -> Result<Card> {
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_page_lists(&format!("http://{}", server.addr), &paths)?;
    let all = Print { sha256: String::new(), ..files.pages(&paths) };
    let able = clients.iter().filter(|(_, way, _)| ["haul", "curl", "mojo"].contains(way));
    let contestants: Vec<_> = able
        .map(|&(name, way, _)| Contestant {
            name,
            argv: ["perl", "../../perl/requests.pl", "pages", way, "list"].map(str::to_owned).to_vec(),
            piped: false,
            check: Check::Told(None, all.clone()),
        })
        .collect();
    let peers = contestants.iter().map(|contestant| contestant.name).filter(|&name| name != HAUL);
    let goals = peers.map(|of| Goal::ratio(What::Cpu, HAUL, of, 1.0)).collect();
    let server_name = server.name.clone();
    bench.hold(server);
    Ok(Card {
        part: "pages",
        contestants,
        baseline: HAUL,
        limit: None,
        goals,
        rounds: 5,
        warm_up: true,
        calls: true,
        server: server_name,
        unit: Unit::Requests(paths.len()),
    })
}

/// Whether perl has the module; says which it has not.
fn is_installed(name: &str, module: &str) -> bool {
    let found = Command::new("perl")
        .args([&format!("-M{module}"), "-e1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        println!("{name}: skipped, {module} is not installed");
    }
    found
}
