//! Requests of a Python program: one at a time on a warm connection, and the site's pages side by side. haul, requests with
//! and without it, what else there is for Python, and the least there is (the C program of `c-requests`).
//!
//! The programs are those of `bench/python`. They run in the environment that `scripts/bench-python.sh` makes of the pinned
//! peers and of what `make python` has left.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Bench, Job, SiteFiles, c_requests, home};
use crate::Result;
use crate::bodies::Bodies;
use crate::card::{Card, Check, Contestant, Goal, Unit, What};
use crate::digest::Print;
use crate::server::Server;

pub(super) const JOB: Job = Job {
    name: "python",
    about: "requests of a Python program, one at a time and many; parts small, page, post, pages",
    set_up,
};

const HAUL: &str = "haul";
const ADAPTER: &str = "requests, haul";
const REQUESTS: &str = "requests";
const AIOHTTP: &str = "aiohttp";
const LIMIT: &str = "send + recv, C";

/// A client: the name shown, what the programs call it, the module that must be there.
type Client = (&'static str, &'static str, &'static str);

/// Those of `one_by_one.py`.
const ONE_BY_ONE: [Client; 11] = [
    (HAUL, "haul", "haul"),
    ("haul, async", "haul-async", "haul"),
    (ADAPTER, "requests+haul", "requests"),
    (REQUESTS, "requests", "requests"),
    ("niquests", "niquests", "niquests"),
    ("httpx", "httpx", "httpx"),
    ("urllib3", "urllib3", "urllib3"),
    ("http.client", "http.client", "http.client"),
    (AIOHTTP, "aiohttp", "aiohttp"),
    ("curl_cffi", "curl_cffi", "curl_cffi"),
    ("pycurl", "pycurl", "pycurl"),
];

/// Those of `pages.py`.
const PAGES: [Client; 14] = [
    (HAUL, "haul", "haul"),
    ("haul, unordered", "haul-unordered", "haul"),
    ("haul, async", "haul-async", "haul"),
    ("haul, uvloop", "haul-async/uvloop", "uvloop"),
    ("requests, haul", "requests+haul", "requests"),
    (REQUESTS, "requests", "requests"),
    ("niquests", "niquests", "niquests"),
    ("httpx", "httpx", "httpx"),
    ("urllib3", "urllib3", "urllib3"),
    ("http.client", "http.client", "http.client"),
    (AIOHTTP, "aiohttp", "aiohttp"),
    ("aiohttp, uvloop", "aiohttp/uvloop", "uvloop"),
    ("curl_cffi", "curl_cffi", "curl_cffi"),
    ("pycurl", "pycurl", "pycurl"),
];

/// A page of the first job that is larger than most.
const PAGE: u64 = 335_114;
const FORM: &str = "user=somebody&password=secret&remember=yes";
/// The interpreter, seen from where commands run.
const PYTHON: &str = "environment/bin/python";

fn set_up(bench: &mut Bench) -> Result<Vec<Card>> {
    // Beside the directory that this program was built into.
    let built = std::env::current_exe()?.parent().and_then(Path::parent).map(|target| target.join("py-bench"));
    let Some(built) = built.filter(|built| built.join("bin/python").exists()) else {
        return Err("python needs its peers: make python, then sh scripts/bench-python.sh".into());
    };
    symlink(built, bench.work.join("environment"))?;
    c_requests::compile(&bench.work)?;
    let mut cards = one_by_one(bench)?;
    cards.push(pages(bench)?);
    Ok(cards)
}

fn one_by_one(bench: &mut Bench) -> Result<Vec<Card>> {
    let clients = installed(&bench.work, &ONE_BY_ONE);
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
        let script = [PYTHON, "../../python/one_by_one.py"];
        let mut contestants: Vec<_> = clients.iter().map(|&(name, way, _)| contestant(name, &script, way)).collect();
        contestants.push(contestant(LIMIT, &["./requests"], "limit"));
        let mut goals = vec![Goal::ratio(What::Cpu, HAUL, LIMIT, goal)];
        goals.extend(peers(&clients).map(|peer| Goal::ratio(What::Cpu, HAUL, peer, 1.0)));
        goals.push(Goal::ratio(What::Cpu, ADAPTER, REQUESTS, 1.0 / 1.5));
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
    // The goals are 30, 80 and 33 µs where this limit was at 20, 45 and 20; the interpreter's start is counted along.
    let cards = vec![
        part("small", &files, small.len, 10_000, None, 1.5),
        part("page", &files, page.len, 4_000, None, 1.78),
        part("post", &forms, small.len, 10_000, Some(FORM), 1.65),
    ];
    bench.hold(files);
    bench.hold(forms);
    Ok(cards)
}

fn pages(bench: &mut Bench) -> Result<Card> {
    let clients = installed(&bench.work, &PAGES);
    let files = SiteFiles::prepare(bench.options)?;
    let server = files.serve(bench)?;
    let paths = files.site.as_paths();
    bench.write_lines("list", paths.iter().map(|path| format!("http://{}{path}", server.addr)))?;
    let all = files.pages(&paths);
    let contestants = clients
        .iter()
        .map(|&(name, way, _)| Contestant {
            name,
            argv: [PYTHON, "../../python/pages.py", way, "list"].map(str::to_owned).to_vec(),
            piped: false,
            check: Check::Told(None, all.clone()),
        })
        .collect();
    let mut goals = vec![Goal::ratio(What::Wall, HAUL, AIOHTTP, 0.25), Goal::ratio(What::Cpu, HAUL, AIOHTTP, 0.25)];
    goals.extend(peers(&clients).map(|peer| Goal::ratio(What::Cpu, HAUL, peer, 1.0)));
    let card = Card {
        part: "pages",
        contestants,
        baseline: AIOHTTP,
        limit: None,
        goals,
        rounds: 5,
        warm_up: true,
        calls: true,
        server: server.name.clone(),
        unit: Unit::Requests(paths.len()),
    };
    bench.hold(server);
    Ok(card)
}

/// The names of those that are not haul in one way or another.
fn peers(clients: &[Client]) -> impl Iterator<Item = &'static str> {
    clients.iter().filter(|(_, way, _)| !way.contains("haul")).map(|&(name, ..)| name)
}

/// Those whose module the interpreter has; says which it has not.
fn installed(work: &Path, clients: &[Client]) -> Vec<Client> {
    let has = |(name, _, module): &Client| {
        let found = Command::new(PYTHON)
            .current_dir(work)
            .args(["-c", &format!("import sys; sys.path.append(sys.prefix + '/apart'); import {module}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !found {
            println!("{name}: skipped, the module {module} is not installed");
        }
        found
    };
    clients.iter().copied().filter(has).collect()
}
