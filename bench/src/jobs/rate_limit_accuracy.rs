//! The rate limits `--rate`, `--rate-host` and `--limit-rate-total`, checked against the record of
//! testkit's page server: requests or page bytes a second, from the first request on.
//!
//! haul fetches the pages of a list in parallel, in two stages (each page of the first stage
//! contains the URL of a page of the second), and by `fetch_many` of the Python module. Each run
//! takes about ten seconds.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use testkit::page_server::{PageServer, PageTiming, PortBehavior, page_key};

use super::python::PythonScript;
use super::{BenchJob, JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::fetched_page_check::{ExpectedPages, ExpectedRate, PageCheck, RateUnit, RequiredAndOptionalPages};

pub(super) const JOB: BenchJob = BenchJob {
    name: "rates",
    about: "rates of requests and bytes that haul was told to keep, at the server; parts all, host, bytes",
    set_up,
};

const PARALLEL: &str = "haul";
const STAGES: &str = "haul, stages";
const FETCH_MANY: &str = "haul, fetch_many";
/// The maximum difference between the rate limit and the measured rate, in percent of the limit.
const MAX_DIFFERENCE: f64 = 5.0;
/// The approximate duration of a run in seconds.
const SECONDS: usize = 10;
/// The host in the URLs of all pages.
const HOST: &str = "127.0.0.1";

/// A rate limit, and the pages that are fetched under it.
struct RateLimit {
    part: &'static str,
    /// The option of the haul command that sets the limit.
    option: &'static str,
    /// The argument of `fetch_many` that sets the limit.
    argument: &'static str,
    per_second: usize,
    unit: RateUnit,
    /// The length of each page in bytes.
    len: usize,
    /// The number of servers. Each server has its own port, so haul treats it as a separate host.
    servers: usize,
}

const LIMITS: [RateLimit; 3] = [
    RateLimit {
        part: "all",
        option: "--rate",
        argument: "rate",
        per_second: 50,
        unit: RateUnit::Requests,
        len: 300,
        servers: 1,
    },
    RateLimit {
        part: "host",
        option: "--rate-host",
        argument: "rate_host",
        per_second: 20,
        unit: RateUnit::Requests,
        len: 300,
        servers: 2,
    },
    RateLimit {
        part: "bytes",
        option: "--limit-rate-total",
        argument: "limit_rate_total",
        per_second: 2_000_000,
        unit: RateUnit::Bytes,
        len: 50_000,
        servers: 1,
    },
];

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    LIMITS.iter().map(|limit| limit.new_part(bench)).collect()
}

impl RateLimit {
    fn new_part(&self, bench: &JobEnvironment) -> Result<JobPart> {
        let start = |_| Ok(Arc::new(PageServer::start(vec![PortBehavior::Pages(PageTiming::AT_ONCE)], None)?));
        let servers: Vec<Arc<PageServer>> = (0..self.servers).map(start).collect::<Result<_>>()?;
        let mut entries = vec![self.parallel(bench, &servers)?, self.stages(bench, &servers)?];
        entries.extend(self.fetch_many(bench, &servers));
        let goals = entries
            .iter()
            .flat_map(|entry| {
                [
                    PartGoal::at_most(MetricKind::RateDifference, entry.name, MAX_DIFFERENCE),
                    PartGoal::at_most(MetricKind::MissingPages, entry.name, 0.0),
                ]
            })
            .collect();
        Ok(JobPart {
            part: self.part,
            bench_programs: bench.allowed_programs(entries),
            baseline: PARALLEL,
            limit: None,
            goals,
            rounds: 3,
            warm_up: false,
            one_core: false,
            calls: false,
            server: format!("testkit's page server, pages of {} B", self.len),
            unit: WorkPerRun::Run,
        })
    }

    /// Returns the number of pages of each server in one run.
    fn pages(&self, bench: &JobEnvironment) -> usize {
        if bench.options.smoke {
            return 4;
        }
        match self.unit {
            RateUnit::Requests => SECONDS * self.per_second,
            RateUnit::Bytes => SECONDS * self.per_second / self.len,
        }
    }

    /// Returns the limit as text. A limit in requests is followed by `per_second`: `/s` for haul's
    /// option, empty for the argument of `fetch_many`. A limit in bytes stands alone.
    fn value(&self, per_second: &str) -> String {
        let per_second = if self.unit == RateUnit::Requests { per_second } else { "" };
        format!("{}{per_second}", self.per_second)
    }

    /// Returns the check for an output that consists of these pages.
    fn check(&self, paths: &[String], servers: &[Arc<PageServer>]) -> OutputCheck {
        let required: HashSet<u64> = paths.iter().map(|path| page_key(HOST, path)).collect();
        OutputCheck::Pages(Rc::new(PageCheck {
            len: (required.len() * self.len) as u64,
            expected: ExpectedPages::Pages(RequiredAndOptionalPages { required, optional: HashSet::new() }),
            pages: Arc::clone(&servers[0]),
            network: None,
            tls: false,
            rate: Some(ExpectedRate { unit: self.unit, per_second: self.per_second as f64, servers: servers.to_vec() }),
        }))
    }

    /// Writes the list of the URLs that are fetched in parallel; successive URLs are on different
    /// servers. Returns the paths of the URLs.
    fn write_list(&self, bench: &JobEnvironment, servers: &[Arc<PageServer>]) -> Result<Vec<String>> {
        let path = |page: usize| format!("/{}/{page}", self.len);
        let pages = self.pages(bench) * servers.len();
        let url = |page: usize| format!("http://{HOST}:{}{}", servers[page % servers.len()].port(0), path(page));
        bench.write_lines(&format!("{}.list", self.part), (0..pages).map(url))?;
        Ok((0..pages).map(path).collect())
    }

    fn parallel(&self, bench: &JobEnvironment, servers: &[Arc<PageServer>]) -> Result<BenchProgram> {
        let paths = self.write_list(bench, servers)?;
        let (part, option, value) = (self.part, self.option, self.value("/s"));
        let line = format!("exec $HAUL -s --unordered {option} {value} --input-file {part}.list");
        Ok(shell_program(PARALLEL, line, self.check(&paths, servers)))
    }

    /// Creates the benchmark program in which haul runs two stages (`--then`). With one server,
    /// each stage has half of the requests; with two, each stage has its own server.
    fn stages(&self, bench: &JobEnvironment, servers: &[Arc<PageServer>]) -> Result<BenchProgram> {
        let [first, last] = [servers.first(), servers.last()].map(|server| server.map_or(0, |server| server.port(0)));
        let shared = self.unit == RateUnit::Requests && servers.len() == 1;
        let pages = if shared { self.pages(bench) / 2 } else { self.pages(bench) };
        // The first pages are short, so that they do not count in a rate of bytes.
        let urls = (0..pages).map(|page| format!("http://{HOST}:{first}/60/{page}"));
        bench.write_lines(&format!("{}.first", self.part), urls)?;
        let paths: Vec<String> = (0..pages).map(|page| format!("/{}/s{page}", self.len)).collect();
        let (part, option, value, len) = (self.part, self.option, self.value("/s"), self.len);
        let line = format!(
            "exec $HAUL -s --unordered {option} {value} --input-file {part}.first --extract '/60/([0-9]+) ' \
             --then 'http://{HOST}:{last}/{len}/s{{}}'"
        );
        Ok(shell_program(STAGES, line, self.check(&paths, servers)))
    }

    fn fetch_many(&self, bench: &JobEnvironment, servers: &[Arc<PageServer>]) -> Option<BenchProgram> {
        let paths = self.write_list(bench, servers).ok()?;
        let words = format!("{}.list {}={}", self.part, self.argument, self.value(""));
        let script = PythonScript { file: "rates.py", modules: "haul" };
        script.bench_program(bench, FETCH_MANY, &words, self.check(&paths, servers))
    }
}
