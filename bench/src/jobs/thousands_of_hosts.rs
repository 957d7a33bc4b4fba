//! URLs of thousands of hosts, some of them broken. Each host is looked up at the job's own name
//! server.
//!
//! testkit's network runs in this process: a server for all hosts on one thread, and a name server
//! on another. The output must contain each page complete and exactly once, in any order. A client
//! that misses healthy pages is wrong; its time is shown, but does not count.
//!
//! | client | looks names up |
//! |---|---|
//! | haul | by `--dns-servers` |
//! | `curl -Z` | by the system's resolver, in a mount namespace with a resolv.conf of its own (needs root) |
//! | Go (bench/go) | by `net.Resolver` with `Dial` |
//! | aiohttp (bench/python/hosts.py) | by aiodns |

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use testkit::host_network::{FaultShares, HostBehaviour, HostMix, HostNetwork, PAGE_LEN, PageOnHost};

use super::python::PythonScript;
use super::{BenchJob, JobEnvironment, command_program, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, PartGoal, WorkPerRun};
use crate::fetched_page_check::{ExpectedPages, PageCheck, RequiredAndOptionalPages};
use crate::tls_files::CA;

pub(super) const JOB: BenchJob = BenchJob {
    name: "hosts",
    about: "URLs of many hosts, a quarter of them broken; parts main, late-names, tls, slow, unanswered, reuse, fair, \
            memory, hosts, dead",
    set_up,
};

const HAUL: &str = "haul";
const HAUL_300: &str = "haul, 300 at a time";
const HAUL_RETRIES: &str = "haul, 300 and retries";
const FEW_HOSTS: &str = "haul, 10,000 hosts";
const MANY_HOSTS: &str = "haul, 100,000 hosts";
const CURL_Z: &str = "curl -Z";
const GO: &str = "Go";
const AIOHTTP: &str = "aiohttp";

/// The number of URLs of each host in most parts of the job.
const URLS_A_HOST: usize = 4;
/// The number of concurrent requests in most parts of the job.
const PARALLEL: usize = 300;
/// The number of concurrent requests of the competitors in the parts `reuse`, `fair` and
/// `unanswered` of the job, where haul uses its default number. It is the default of curl's
/// `--parallel-max`.
const CURL_DEFAULT_PARALLEL: usize = 50;
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(5);
/// The name of the file in the working directory that replaces `/etc/resolv.conf` for clients in a
/// namespace.
const RESOLV_CONF: &str = "resolv.conf";

/// The parts of the job that vary the number of hosts: the name of each part, and the number. Each
/// part is a point of one curve in a chart.
const HOSTS: [(&str, usize); 4] =
    [("hosts@100", 100), ("hosts@1000", 1_000), ("hosts@5000", 5_000), ("hosts@20000", 20_000)];
/// The parts of the job that vary the share of broken hosts: the name of each part, and the share
/// in percent. Each part is a point of one curve in a chart.
const DEAD: [(&str, usize); 5] = [("dead@0", 0), ("dead@10", 10), ("dead@20", 20), ("dead@30", 30), ("dead@40", 40)];
const DEAD_HOSTS: usize = 1_000;

/// A list of URLs, and the settings with which clients fetch it.
struct ManyHostsWorkload {
    part: &'static str,
    hosts: usize,
    mix: HostMix,
    tls: bool,
    urls: UrlOrder,
    parallel: usize,
    limit: Duration,
}

/// The order of the URLs in the list. The number in each variant is the number of URLs.
#[derive(Clone, Copy)]
enum UrlOrder {
    Shuffled(usize),
    InTurn(usize),
    /// The URLs of broken hosts come before those of good hosts.
    BrokenFirst(usize),
}

impl ManyHostsWorkload {
    /// Creates a workload with [`URLS_A_HOST`] URLs of each host, in random order.
    fn shuffled(part: &'static str, hosts: usize, shares: FaultShares, limit: Duration) -> ManyHostsWorkload {
        let mix = HostMix::Shares(shares);
        let urls = UrlOrder::Shuffled(URLS_A_HOST * hosts);
        ManyHostsWorkload { part, hosts, mix, tls: false, urls, parallel: PARALLEL, limit }
    }
}

fn set_up(bench: &mut JobEnvironment) -> Result<Vec<JobPart>> {
    let mut job_parts = Vec::new();
    let broken = FaultShares::COMMON;
    let hosts = |full: usize| if bench.options.smoke { 100 } else { full };
    let main = ManyHostsWorkload::shuffled("main", hosts(5_000), broken, SHORT);
    let tls = ManyHostsWorkload { tls: true, ..ManyHostsWorkload::shuffled("tls", hosts(1_000), broken, SHORT) };
    job_parts.push(main_part(bench, main)?);
    job_parts.push(broken_hosts_part(bench, tls)?);
    job_parts.push(reuse_part(bench)?);
    job_parts.push(fairness_part(bench)?);
    if bench.options.smoke {
        return Ok(job_parts);
    }
    let late = FaultShares { bad_name: 0, late_name: 5, ..broken };
    job_parts.push(main_part(bench, ManyHostsWorkload::shuffled("late-names", 5_000, late, LONG))?);
    job_parts.push(unanswered_part(bench)?);
    job_parts.push(broken_hosts_part(
        bench,
        ManyHostsWorkload::shuffled("slow", 1_000, FaultShares { slow: 5, ..broken }, SHORT),
    )?);
    if bench.options.slow {
        job_parts.push(memory_part(bench)?);
    }
    for (part, hosts) in HOSTS {
        job_parts.push(dead_hosts_part(bench, ManyHostsWorkload::shuffled(part, hosts, broken, SHORT))?);
    }
    for (part, dead) in DEAD {
        job_parts.push(dead_hosts_part(
            bench,
            ManyHostsWorkload::shuffled(part, DEAD_HOSTS, FaultShares::dead(dead), SHORT),
        )?);
    }
    Ok(job_parts)
}

/// Makes the part of the job to which the goals apply. haul runs in three variants: with as many
/// concurrent requests as its competitors, once without and once with retries, and with its default
/// number of concurrent requests.
fn main_part(bench: &mut JobEnvironment, load: ManyHostsWorkload) -> Result<JobPart> {
    let run = HostNetworkWithLists::start(bench, load)?;
    let parallel = format!("--parallel-max {PARALLEL}");
    let mut entries = vec![run.haul(HAUL_300, &format!("{parallel} --retry 0")), run.haul(HAUL_RETRIES, &parallel)];
    // With 64 requests at a time, haul waits a minute or two for silent hosts.
    if run.load.limit < LONG || bench.options.slow {
        entries.push(run.haul(HAUL, "--retry 0"));
    }
    entries.extend(run.peers(bench));
    let mut goals = vec![
        PartGoal::ratio(MetricKind::Wall, HAUL_300, GO, 1.1),
        PartGoal::ratio(MetricKind::Cpu, HAUL_300, GO, 0.7),
        PartGoal::ratio(MetricKind::LastPage, HAUL_RETRIES, HAUL_300, 1.5),
    ];
    for name in [HAUL, HAUL_300, HAUL_RETRIES] {
        goals.push(PartGoal::at_most(MetricKind::MissingPages, name, 0.0));
        goals.push(PartGoal::at_most(MetricKind::Rss, name, 32.0));
    }
    run.new_part(bench, entries, goals, 3)
}

/// Makes the part of the job in which some hosts are broken. Its workload is smaller than that of
/// the main part.
fn broken_hosts_part(bench: &mut JobEnvironment, load: ManyHostsWorkload) -> Result<JobPart> {
    let run = HostNetworkWithLists::start(bench, load)?;
    let mut entries =
        vec![run.haul(HAUL_300, &format!("--parallel-max {PARALLEL} --retry 0")), run.haul(HAUL, "--retry 0")];
    entries.extend(run.peers(bench));
    let goals = vec![
        PartGoal::ratio(MetricKind::Wall, HAUL_300, GO, 1.1),
        PartGoal::ratio(MetricKind::Cpu, HAUL_300, GO, 0.7),
        PartGoal::at_most(MetricKind::MissingPages, HAUL, 0.0),
        PartGoal::at_most(MetricKind::MissingPages, HAUL_300, 0.0),
    ];
    run.new_part(bench, entries, goals, 3)
}

/// Makes a part of the job in which haul and its competitors fetch the URLs of `load`. Some of the
/// hosts may be broken. In the chart, each part is one point: the time for a number of hosts
/// ([`HOSTS`]), or for a share of broken hosts ([`DEAD`]).
fn dead_hosts_part(bench: &mut JobEnvironment, load: ManyHostsWorkload) -> Result<JobPart> {
    let run = HostNetworkWithLists::start(bench, load)?;
    let mut entries = vec![run.haul(HAUL_300, &format!("--parallel-max {PARALLEL} --retry 0"))];
    entries.extend(run.peers(bench));
    let goals = vec![PartGoal::at_most(MetricKind::MissingPages, HAUL_300, 0.0)];
    run.new_part(bench, entries, goals, 1)
}

/// Makes a part of the job that fetches pages from TLS hosts. Each host needs one connection and
/// one full handshake.
fn reuse_part(bench: &mut JobEnvironment) -> Result<JobPart> {
    // Even in a smoke run, there are more hosts than concurrent requests, or a host would need two
    // connections.
    let hosts = if bench.options.smoke { 200 } else { 400 };
    let load = ManyHostsWorkload {
        part: "reuse",
        hosts,
        mix: HostMix::Shares(FaultShares::default()),
        tls: true,
        urls: UrlOrder::InTurn(5 * hosts),
        parallel: CURL_DEFAULT_PARALLEL,
        limit: Duration::ZERO,
    };
    let run = HostNetworkWithLists::start(bench, load)?;
    let mut entries = vec![run.haul(HAUL, "")];
    entries.extend(run.peers(bench));
    let goals = vec![
        PartGoal::at_most(MetricKind::Connections, HAUL, hosts as f64),
        PartGoal::at_most(MetricKind::FullHandshakes, HAUL, hosts as f64),
    ];
    run.new_part(bench, entries, goals, 3)
}

/// Makes a part of the job in which the pages of good hosts are queued after pages of hosts that
/// always answer with 503.
fn fairness_part(bench: &mut JobEnvironment) -> Result<JobPart> {
    let load = ManyHostsWorkload {
        part: "fair",
        hosts: 40,
        mix: HostMix::First(20, HostBehaviour::Unavailable),
        tls: false,
        urls: UrlOrder::BrokenFirst(400),
        parallel: CURL_DEFAULT_PARALLEL,
        limit: Duration::ZERO,
    };
    let run = HostNetworkWithLists::start(bench, load)?;
    let retries = if bench.options.smoke { 1 } else { 3 };
    let mut entries = vec![run.haul(HAUL, &format!("--retry {retries}"))];
    entries.extend(run.curl(bench, &format!("--retry {retries}")));
    let goals = vec![PartGoal::ratio(MetricKind::LastPage, HAUL, CURL_Z, 1.5)];
    run.new_part(bench, entries, goals, 3)
}

/// Makes a part of the job with healthy pages, and with host names for which the name server never
/// answers.
fn unanswered_part(bench: &mut JobEnvironment) -> Result<JobPart> {
    let load = ManyHostsWorkload {
        part: "unanswered",
        hosts: 360,
        mix: HostMix::First(60, HostBehaviour::NameUnanswered),
        tls: false,
        urls: UrlOrder::InTurn(360),
        parallel: CURL_DEFAULT_PARALLEL,
        limit: LONG,
    };
    let run = HostNetworkWithLists::start(bench, load)?;
    let mut entries = vec![run.haul(HAUL, "")];
    entries.extend(run.peers(bench));
    let goals = vec![PartGoal::at_most(MetricKind::MissingPages, HAUL, 0.0)];
    run.new_part(bench, entries, goals, 3)
}

/// Makes a part of the job in which haul runs twice: with 1,000,000 URLs of 100,000 hosts, and with
/// 100,000 URLs of 10,000 hosts. The goal limits the ratio of the peak memory of the two runs.
fn memory_part(bench: &mut JobEnvironment) -> Result<JobPart> {
    let load = ManyHostsWorkload {
        part: "memory",
        hosts: 100_000,
        mix: HostMix::Shares(FaultShares::default()),
        tls: false,
        urls: UrlOrder::InTurn(1_000_000),
        parallel: PARALLEL,
        limit: Duration::ZERO,
    };
    let run = HostNetworkWithLists::start(bench, load)?;
    let few = run.with_hosts(bench, "memory-few", |host| host < 10_000)?;
    let options = format!("--parallel-max {PARALLEL}");
    let entries = vec![few.haul(FEW_HOSTS, &options), run.haul(MANY_HOSTS, &options)];
    let goals = vec![PartGoal::ratio(MetricKind::Rss, MANY_HOSTS, FEW_HOSTS, 1.3)];
    let mut job_part = run.new_part(bench, entries, goals, 1)?;
    job_part.unit = WorkPerRun::Run;
    Ok(job_part)
}

/// A running network of test hosts, and the files with the URLs that the clients fetch from it.
struct HostNetworkWithLists {
    load: ManyHostsWorkload,
    network: Rc<HostNetwork>,
    list: String,
    /// The name of curl's config file (`curl -K`). It contains the same URLs as the file `list`.
    config: String,
    urls: Vec<PageOnHost>,
}

impl HostNetworkWithLists {
    fn start(bench: &JobEnvironment, load: ManyHostsWorkload) -> Result<HostNetworkWithLists> {
        let network = HostNetwork::builder(load.hosts).mix(load.mix.clone()).tls(load.tls).start()?;
        let urls = match load.urls {
            UrlOrder::Shuffled(count) => network.urls_shuffled(count, bench.options.seed),
            UrlOrder::InTurn(count) => network.urls_in_turn(count),
            UrlOrder::BrokenFirst(count) => {
                let mut urls = network.urls_in_turn(count);
                urls.sort_by_key(|url| url.behaviour == HostBehaviour::Good);
                urls
            }
        };
        if let Some(pem) = network.ca_pem() {
            fs::write(bench.work.join(ca_of(load.part)), pem)?;
        }
        HostNetworkWithLists::write(bench, load.part, load, Rc::new(network), urls)
    }

    fn write(
        bench: &JobEnvironment,
        name: &str,
        load: ManyHostsWorkload,
        network: Rc<HostNetwork>,
        urls: Vec<PageOnHost>,
    ) -> Result<HostNetworkWithLists> {
        let [list, config] = ["list", "cfg"].map(|kind| format!("{name}.{kind}"));
        bench.write_lines(&list, urls.iter().map(|url| url.url.clone()))?;
        bench.write_lines(&config, urls.iter().map(|url| format!("url = \"{}\"", url.url)))?;
        Ok(HostNetworkWithLists { load, network, list, config, urls })
    }

    /// Returns the same network with fewer URLs: only those of the hosts for whose index `has`
    /// returns true. Writes these URLs to new files that are named after `name`. The list
    /// `self.urls` must have the order [`UrlOrder::InTurn`]: one URL of each host, then again from
    /// the first host on.
    fn with_hosts(
        &self,
        bench: &JobEnvironment,
        name: &str,
        has: impl Fn(usize) -> bool,
    ) -> Result<HostNetworkWithLists> {
        let hosts = self.load.hosts;
        let urls = self.urls.iter().enumerate().filter(|(index, _)| has(index % hosts));
        let load = ManyHostsWorkload { mix: self.load.mix.clone(), ..self.load };
        HostNetworkWithLists::write(
            bench,
            name,
            load,
            Rc::clone(&self.network),
            urls.map(|(_, url)| url.clone()).collect(),
        )
    }

    fn check(&self) -> OutputCheck {
        // Zero means no limit.
        let limit = if self.load.limit.is_zero() { Duration::MAX } else { self.load.limit };
        let keys = |has: &dyn Fn(HostBehaviour) -> bool| -> HashSet<u64> {
            self.urls.iter().filter(|url| has(url.behaviour)).map(|url| url.key).collect()
        };
        let required = keys(&|behaviour| behaviour.is_healthy(limit));
        let optional = keys(&|behaviour| behaviour == HostBehaviour::LateName && !behaviour.is_healthy(limit));
        OutputCheck::Pages(Rc::new(PageCheck {
            len: (required.len() * PAGE_LEN) as u64,
            expected: ExpectedPages::Pages(RequiredAndOptionalPages { required, optional }),
            pages: Arc::clone(self.network.pages()),
            network: Some(Rc::clone(&self.network)),
            tls: self.load.tls,
            rate: None,
        }))
    }

    /// Makes the benchmark program for a command whose exit code may report failed URLs. An exit
    /// code of 100 or more, as after a signal, is a failure of the program.
    fn command(&self, name: &'static str, line: &str) -> BenchProgram {
        shell_program(name, format!("{line}; [ $? -lt 100 ]"), self.check())
    }

    /// Returns the command-line options that haul and curl both get: silence, the time limit of a
    /// request, and the CA certificate if the hosts use TLS.
    fn common_options(&self) -> String {
        let cacert = if self.load.tls { format!(" --cacert {}", ca_of(self.load.part)) } else { String::new() };
        format!("-s -m {}{cacert}", self.load.limit.as_secs())
    }

    fn haul(&self, name: &'static str, options: &str) -> BenchProgram {
        let server = self.network.name_server();
        let common_options = self.common_options();
        let line =
            format!("$HAUL {common_options} --dns-servers {server} --unordered {options} --input-file {}", self.list);
        self.command(name, &line)
    }

    /// Makes the benchmark program `curl -Z`. It runs in a mount namespace in which
    /// `/etc/resolv.conf` names the job's name server. Returns `None` if this process may not
    /// create a mount namespace, or if the name server's port is not 53.
    fn curl(&self, bench: &JobEnvironment, options: &str) -> Option<BenchProgram> {
        let server = self.network.name_server();
        if server.port() != 53 || !has_namespaces() {
            if !bench.options.smoke {
                println!("{CURL_Z}: skipped, a resolv.conf of its own needs root");
            }
            return None;
        }
        let conf =
            format!("echo nameserver {} >{RESOLV_CONF} && mount --bind {RESOLV_CONF} /etc/{RESOLV_CONF}", server.ip());
        let curl = format!(
            "$CURL {} -Z --parallel-max {} {options} -K {}",
            self.common_options(),
            self.load.parallel,
            self.config
        );
        Some(self.command(CURL_Z, &format!("unshare -m sh -c '{conf} && exec {curl}'")))
    }

    /// Makes the benchmark programs for haul's competitors that are installed.
    fn peers(&self, bench: &JobEnvironment) -> Vec<BenchProgram> {
        let ManyHostsWorkload { part, tls, parallel, limit, .. } = self.load;
        let (server, seconds, list) = (self.network.name_server(), limit.as_secs(), &self.list);
        let cacert = if tls { format!(" -cacert {}", ca_of(part)) } else { String::new() };
        let go = format!("gofetch -list {list} -parallel {parallel} -max-time {seconds}s -dns-server {server}{cacert}");
        let mut peers = vec![command_program(GO, &go, self.check())];
        peers.extend(self.curl(bench, ""));
        // aiohttp, like curl, takes 0 for no limit.
        let ca = if tls { format!(" {}", ca_of(part)) } else { String::new() };
        let words = format!("{list} {parallel} {seconds} {} {}{ca}", server.ip(), server.port());
        let script = PythonScript { file: "hosts.py", modules: "aiohttp, aiodns" };
        peers.extend(script.bench_program(bench, AIOHTTP, &words, self.check()));
        peers
    }

    fn new_part(
        &self,
        bench: &JobEnvironment,
        entries: Vec<BenchProgram>,
        mut goals: Vec<PartGoal>,
        rounds: usize,
    ) -> Result<JobPart> {
        let bench_programs = bench.allowed_programs(entries);
        let has = |name: &str| bench_programs.iter().any(|bench_program| bench_program.name == name);
        goals.retain(|goal| has(goal.of));
        let baseline = bench_programs.last().map_or(HAUL, |bench_program| bench_program.name);
        Ok(JobPart {
            part: self.load.part,
            bench_programs,
            baseline,
            limit: None,
            goals,
            rounds,
            warm_up: false,
            one_core: false,
            calls: false,
            server: format!(
                "testkit's network of {} hosts{}, {} URLs, limit {}",
                self.load.hosts,
                if self.load.tls { ", TLS 1.3" } else { "" },
                self.urls.len(),
                if self.load.limit.is_zero() { "none".to_owned() } else { format!("{} s", self.load.limit.as_secs()) }
            ),
            unit: WorkPerRun::Requests(self.urls.len()),
        })
    }
}

/// Returns the name of the file with the CA certificate for the part `part` of the benchmark. Each
/// part has its own network of hosts, and each network its own CA.
fn ca_of(part: &str) -> String {
    format!("{part}-{CA}")
}

/// Returns true if this program may create a mount namespace and mount files in it.
fn has_namespaces() -> bool {
    let line = format!("mount --bind /dev/null /etc/{RESOLV_CONF}");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &line]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
