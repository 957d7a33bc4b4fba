//! The number of connections to one host: haul's default compared with fixed numbers and with `curl
//! -Z`, for several round-trip times, page lengths, and numbers of concurrent requests that the
//! server allows.
//!
//! The round trip is a delay in the server (testkit's page server): each response is sent this much
//! later, and the first response on a connection twice as much. Requests above the server's limit
//! wait (`queue`) or are answered with 503 (`refuse`). haul is compared with haul with a fixed
//! `--parallel-max-host`, named "fixed at N", and with `curl -Z`.
//!
//! Each combination is a part, `queue-LIMIT-LENGTH@ROUNDTRIP` or `refuse-…`.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use testkit::page_server::{OverloadPolicy, PageServer, PageTiming, PortBehavior};

use super::{BenchJob, JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::fetched_page_check::{ExpectedPages, PageCheck};

pub(super) const JOB: BenchJob = BenchJob {
    name: "adapt",
    about: "connections to one host: the default against fixed numbers; parts (queue|refuse)-BEARS-LENGTH@MS",
    set_up,
};

const HAUL: &str = "haul";
const CURL_Z: &str = "curl -Z";
/// The option with which each client prints the length of each page.
const WRITE_OUT_SIZE: &str = r"-w '%{size_download}\n'";
/// The programs with a fixed number of connections: the displayed name, and the number of
/// connections.
const FIXED_CONNECTIONS: [(&str, usize); 7] = [
    ("fixed at 1", 1),
    ("fixed at 2", 2),
    ("fixed at 4", 4),
    ("fixed at 6", 6),
    ("fixed at 10", 10),
    ("fixed at 20", 20),
    ("fixed at 50", 50),
];
/// The round-trip times to the servers, in milliseconds.
const ROUND_TRIPS: [u64; 4] = [0, 1, 20, 100];
const LENGTHS: [usize; 2] = [300, 50_000];
/// The numbers of concurrent requests that the servers can handle. A server queues or refuses the
/// requests that exceed its number.
const SERVER_CAPACITIES: [usize; 3] = [4, 32, 1_000];
const PAGES: usize = 500;
/// The number of pages that a program fetches from a server with a round-trip time of 1 ms. With
/// only [`PAGES`] pages, the run would be too short to be measured well.
const PAGES_NEARBY: usize = 5_000;
/// The number of pages that a program fetches from a server with a round-trip time of 0 ms.
const PAGES_WITHOUT_DELAY: usize = 30_000;
/// The number of concurrent requests by which haul may exceed the server's capacity without missing
/// the goal.
const OVERLOAD_MARGIN: usize = 2;
/// The longest expected duration of a run with a fixed number of connections. A program that would
/// take longer is left out, unless `--slow` is given.
const MAX_TIME: Duration = Duration::from_secs(15);
/// The haul options for a server that answers with 503 above its capacity. With the default of 3
/// retries, pages would be missing.
const RETRIES: &str = " --retry 20 --retry-delay 1";

/// A combination of parameters that is measured: a server (its round trip, its capacity, and its
/// treatment of requests above the capacity), and the length of its pages.
struct AdaptiveServerParameters {
    overload: OverloadPolicy,
    capacity: usize,
    len: usize,
    round_trip: Duration,
}

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let mut job_parts = Vec::new();
    for len in LENGTHS {
        for overload in [OverloadPolicy::Queue, OverloadPolicy::Unavailable] {
            for capacity in SERVER_CAPACITIES {
                for milliseconds in ROUND_TRIPS {
                    let point = AdaptiveServerParameters {
                        overload,
                        capacity,
                        len,
                        round_trip: Duration::from_millis(milliseconds),
                    };
                    if point.is_measured(bench) {
                        job_parts.push(point.new_part(bench)?);
                    }
                }
            }
        }
    }
    Ok(job_parts)
}

impl AdaptiveServerParameters {
    /// Returns true if this combination is measured. A server that refuses requests is measured
    /// only with a small capacity, a round trip of at least 20 ms and the shorter pages; other
    /// combinations show nothing new.
    fn is_measured(&self, bench: &JobEnvironment) -> bool {
        let is_quick = self.round_trip == Duration::from_millis(1) && self.capacity == 4;
        let refuses = self.overload == OverloadPolicy::Unavailable;
        let meets = self.round_trip >= Duration::from_millis(20) && self.capacity < 1_000 && self.len == LENGTHS[0];
        if bench.options.smoke { is_quick && !refuses } else { meets || !refuses }
    }

    /// Returns the least possible time for fetching this number of pages over this number of
    /// connections.
    fn least_time(&self, pages: usize, connections: usize) -> Duration {
        self.round_trip * u32::try_from(pages.div_ceil(connections.min(self.capacity))).unwrap_or(u32::MAX)
    }

    fn new_part(&self, bench: &JobEnvironment) -> Result<JobPart> {
        let timing = PageTiming::remote(self.round_trip, self.capacity, self.overload);
        let server = Arc::new(PageServer::start(vec![PortBehavior::Pages(timing)], None)?);
        let milliseconds = self.round_trip.as_millis();
        let pages = bench.count(match milliseconds {
            0 => PAGES_WITHOUT_DELAY,
            1 => PAGES_NEARBY,
            _ => PAGES,
        });
        let kind = if self.overload == OverloadPolicy::Queue { "queue" } else { "refuse" };
        // Leaked on purpose: the names of all other parts are static, too.
        let part: &'static str = format!("{kind}-{}-{}@{milliseconds}", self.capacity, self.len).leak();
        let paths: Vec<String> = (0..pages).map(|page| format!("/{}/{page}", self.len)).collect();
        let urls = || paths.iter().map(|path| format!("http://127.0.0.1:{}{path}", server.port(0)));
        let [list, config] = ["list", "cfg"].map(|kind| format!("{part}.{kind}"));
        bench.write_lines(&list, urls())?;
        bench.write_lines(&config, urls().map(|url| format!("url = \"{url}\"\noutput = \"/dev/null\"")))?;
        let check = Rc::new(PageCheck {
            expected: ExpectedPages::Lengths { count: pages, len: self.len },
            len: (self.len * pages) as u64,
            pages: Arc::clone(&server),
            network: None,
            tls: false,
            rate: None,
        });
        let refuses = self.overload == OverloadPolicy::Unavailable;
        let retry = if refuses { RETRIES } else { "" };
        let bench_program = |name: &'static str, line: String| -> BenchProgram {
            shell_program(name, format!("exec {line}"), OutputCheck::Pages(Rc::clone(&check)))
        };
        let haul = format!("$HAUL -s --unordered -o /dev/null {WRITE_OUT_SIZE}{retry} --input-file {list}");
        let mut entries = vec![bench_program(HAUL, haul.clone())];
        for (name, connections) in FIXED_CONNECTIONS {
            // With far more connections than the server allows, retries would take minutes.
            let is_quick = self.least_time(pages, connections) <= MAX_TIME && !(refuses && connections > 10);
            if bench.options.slow || is_quick {
                entries.push(bench_program(name, format!("{haul} --parallel-max-host {connections}")));
            }
        }
        entries.push(bench_program(CURL_Z, format!("$CURL -s -Z {WRITE_OUT_SIZE}{retry} -K {config}")));
        let mut goals = vec![PartGoal::ratio_to_best_peer(MetricKind::Wall, HAUL, 1.2)];
        goals.push(PartGoal::ratio(MetricKind::Wall, HAUL, CURL_Z, 1.0));
        if self.least_time(pages, 50) > Duration::from_secs(1) {
            goals.push(PartGoal::at_most(MetricKind::PeakRequests, HAUL, (self.capacity + OVERLOAD_MARGIN) as f64));
        }
        Ok(JobPart {
            part,
            bench_programs: bench.allowed_programs(entries),
            baseline: CURL_Z,
            limit: None,
            goals,
            rounds: 3,
            warm_up: false,
            one_core: false,
            calls: false,
            server: format!(
                "testkit's page server, {milliseconds} ms round trip, {} requests at a time, others {}",
                self.capacity,
                if refuses { "get 503" } else { "wait" }
            ),
            unit: WorkPerRun::Requests(pages),
        })
    }
}
