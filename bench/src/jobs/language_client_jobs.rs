//! Code that the jobs `perl` and `python` share. A program in the language sends requests one at a
//! time with different clients. Its arguments are `CLIENT HOST PORT PATH COUNT [FORM]`, where
//! CLIENT is the name of a client. The C program of the job `c-requests` shows the lower limit of
//! the CPU time.

use std::process::{Command, Stdio};

use super::c_requests::{self, FORM, PAGE};
use super::{JobEnvironment, home};
use crate::Result;
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::server::SiteServer;

/// An HTTP client of a programming language: the displayed name, the argument that selects the
/// client in the benchmark's script, and the module that the client needs.
pub(super) type LanguageClient = (&'static str, &'static str, &'static str);

/// The displayed name of the program that shows the lower limit of the CPU time.
const LIMIT: &str = "send + recv, C";

/// The settings of a job in which a program of some language sends requests one at a time.
pub(super) struct SequentialRequestsJob<'a> {
    /// The interpreter and the path of the program.
    pub(super) script: &'a [&'a str],
    /// The clients that are installed and take part in the job.
    pub(super) clients: &'a [LanguageClient],
    /// The displayed name of haul's client. Each goal of the job, except that of `replaced`, is a
    /// maximum ratio of this client's CPU time to that of another program.
    pub(super) haul: &'static str,
    /// The number of requests of each of the parts `small`, `page` and `post`, and the goal of the
    /// part: the maximum CPU time of haul's client, as a multiple of the CPU time of the program
    /// with the name [`LIMIT`].
    pub(super) parts: [(usize, f64); 3],
    /// The displayed name of a client whose POST requests are very slow. This client does not take
    /// part in `post`. Instead, the part `post-few`, with a twentieth of the requests, compares it
    /// with haul. `None` if no client is so slow; there is then no part `post-few`.
    pub(super) slow_to_post: Option<&'static str>,
    /// The goal for a library whose requests haul can send, such as Python's requests: the library
    /// with haul, the library without haul, and the maximum ratio of their CPU times. `None` if no
    /// such library takes part.
    pub(super) replaced: Option<(&'static str, &'static str, f64)>,
}

impl SequentialRequestsJob<'_> {
    /// Creates the parts of the job. Their servers run until the job is over.
    pub(super) fn new_parts(&self, bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
        c_requests::compile(&bench.work)?;
        let bodies = LargeBodyFiles::new(&home().join("work"), bench.options.seed)?;
        let (small, page) = (bodies.prepare(super::SMALL_BODY_LENGTH as u64)?, bodies.prepare(PAGE)?);
        let site = testkit::site::GeneratedSite::scaled(1, 12);
        let _turns = SingleCoreGuard::restrict_thread()?;
        let files = SiteServer::start(&site, bodies.root(), &bench.work, bench.options.embedded)?;
        // nginx does not answer a POST to a file.
        let forms = SiteServer::embedded(site, &bench.work)?;
        let [of_small, of_page, of_post] = self.parts.map(|(count, goal)| (count, Some(goal)));
        let is_slow = |client: &LanguageClient| self.slow_to_post == Some(client.0);
        let (slow, quick): (Vec<_>, Vec<_>) = self.clients.iter().copied().partition(is_slow);
        let mut job_parts = vec![
            self.new_part(bench, "small", &files, small.len, of_small, None),
            self.new_part(bench, "page", &files, page.len, of_page, None),
            SequentialRequestsJob { clients: &quick, ..*self }.new_part(
                bench,
                "post",
                &forms,
                small.len,
                of_post,
                Some(FORM),
            ),
        ];
        if !slow.is_empty() {
            let beside = quick.iter().filter(|(name, ..)| *name == self.haul);
            let clients: Vec<_> = beside.chain(&slow).copied().collect();
            let few = SequentialRequestsJob { clients: &clients, replaced: None, ..*self };
            job_parts.push(few.new_part(bench, "post-few", &forms, small.len, (of_post.0 / 20, None), Some(FORM)));
        }
        bench.keep_running(files);
        bench.keep_running(forms);
        Ok(job_parts)
    }

    fn new_part(
        &self,
        bench: &JobEnvironment,
        part: &'static str,
        server: &SiteServer,
        length: u64,
        (count, goal): (usize, Option<f64>),
        form: Option<&str>,
    ) -> JobPart {
        let count = bench.count(count);
        let all = OutputDigest { len: length * count as u64, sha256: String::new() };
        let bench_program = |name, program: &[&str], way: &str| {
            let (host, port) = (server.addr.ip().to_string(), server.addr.port().to_string());
            let mut argv: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
            argv.extend([way.to_owned(), host, port, LargeBodyFiles::path(length), count.to_string()]);
            argv.extend(form.map(str::to_owned));
            BenchProgram { name, argv, piped: false, times: 1, check: OutputCheck::PrintedLength(None, all.clone()) }
        };
        let mut bench_programs: Vec<_> =
            self.clients.iter().map(|&(name, way, _)| bench_program(name, self.script, way)).collect();
        bench_programs.push(bench_program(LIMIT, &["./requests"], "limit"));
        let mut goals: Vec<_> =
            goal.map(|goal| PartGoal::ratio(MetricKind::Cpu, self.haul, LIMIT, goal)).into_iter().collect();
        goals.extend(peers(self.clients).map(|peer| PartGoal::ratio(MetricKind::Cpu, self.haul, peer, 1.0)));
        goals.extend(self.replaced.map(|(with, without, most)| PartGoal::ratio(MetricKind::Cpu, with, without, most)));
        JobPart {
            part,
            bench_programs,
            baseline: LIMIT,
            limit: Some(LIMIT),
            goals,
            rounds: 5,
            // Loading the module has shown that it is installed.
            warm_up: false,
            one_core: true,
            calls: true,
            server: server.name.clone(),
            unit: WorkPerRun::Requests(count),
        }
    }
}

/// Returns the names of the clients that do not use haul.
pub(super) fn peers(clients: &[LanguageClient]) -> impl Iterator<Item = &'static str> {
    clients.iter().filter(|(_, way, _)| !way.contains("haul")).map(|&(name, ..)| name)
}

/// Returns the clients whose module is installed, and prints the names of the other clients. `asks`
/// returns the command that checks whether a module is installed.
pub(super) fn installed(clients: &[LanguageClient], asks: impl Fn(&str) -> Command) -> Vec<LanguageClient> {
    let has = |(name, _, module): &LanguageClient| {
        let found =
            asks(module).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !found {
            println!("{name}: skipped, the module {module} is not installed");
        }
        found
    };
    clients.iter().copied().filter(has).collect()
}
