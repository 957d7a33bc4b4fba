//! Kills downloads to files with SIGKILL at random moments, then runs the same command again until
//! it succeeds.
//!
//! Three kinds of runs are killed in turn: one file in parts, one file in one stream, and many
//! files in parallel. With many files, `--skip-existing` and the checkpoints in unfinished files
//! record which files are complete.
//!
//! The moment of a kill is a number of bytes sent, not a time, so it does not depend on the load of
//! the machine. The origin limits the rate of each connection, and a relay adds a round trip. Few
//! bytes are then in flight, so the number of bytes sent is close to the number of bytes received.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::faulty::{FaultPlan, FaultyRequestLog};
use testkit::relay::Relay;
use testkit::rng::{Rng, mix};

use crate::content_checker::{self, ContentChecker};
use crate::fault_cases::TestedVersion;
use crate::run_haul_with_time_limit::HaulCommand;
use crate::{FaultRunner, Result};

/// The largest size in bytes of a part: a range that a split download fetches on one connection.
const PART: u64 = 16 << 20;
/// The largest number of bytes that may be in flight on a connection when haul is killed: sent by
/// the origin, but not received. haul may fetch this many bytes twice without a failure of the
/// test.
const MAX_IN_FLIGHT: u64 = 1 << 20;
/// The interval at which the runner checks how many bytes the origin has sent.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The maximum number of times that a command is run again after its last kill. The test has failed
/// if the command does not succeed (exit code 0) in one of these runs.
const MAX_RUNS: u32 = 3;
/// The kinds of downloads that the test kills, one kind after the other.
const KINDS: [&str; 3] = ["split", "one stream", "many files"];
/// The number of files in a download of the kind "many files". Their total length equals the length
/// of the single file of the other kinds.
const MANY_FILES: u64 = 8;

/// The results of all tries. A try is a command that is killed and run again until it succeeds.
#[derive(Default)]
pub(crate) struct KillTally {
    pub(crate) tried: u64,
    /// For each kind of download in [`KINDS`]: the number of tries, and the number of tries that
    /// ended with the right hashes of all files.
    kinds: [(u64, u64); KINDS.len()],
    /// The number of processes that were killed. A process that ends before the planned moment of
    /// its kill is not counted.
    pub(crate) killed: u64,
    /// The number of tries that ended with the right hashes of all files.
    pub(crate) survived: u64,
    pub(crate) wrong_hash: u64,
    pub(crate) not_done: u64,
    /// The number of tries in which the origin sent too many bytes more than once:
    /// [`KillTry::twice`] is larger than [`KillTry::bound`].
    pub(crate) over_limit: u64,
    /// The total number of connections that the killed processes had opened.
    connections: u64,
    pub(crate) twice: u64,
    most_twice: u64,
    /// The error messages of the first failed tries.
    pub(crate) failures: Vec<String>,
}

impl KillTally {
    pub(crate) fn is_right(&self) -> bool {
        self.survived == self.tried && self.over_limit == 0
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tried": self.tried,
            "kinds": KINDS.iter().zip(self.kinds).map(|(kind, (tried, survived))| {
                json!({ "kind": kind, "tried": tried, "survived": survived })
            }).collect::<Vec<_>>(),
            "killed": self.killed,
            "survived": self.survived,
            "wrong_hash": self.wrong_hash,
            "not_done": self.not_done,
            "over_bound": self.over_limit,
            "connections_killed": self.connections,
            "bytes_twice": self.twice,
            "most_bytes_twice": self.most_twice,
            "failures": self.failures,
        })
    }
}

/// The result of one try: a command that was killed, then run again until it succeeded or failed.
struct KillTry {
    /// The index of the try's kind in [`KINDS`].
    kind: usize,
    killed: u64,
    connections: u64,
    /// True if a run after the kills succeeded (exit code 0).
    done: bool,
    /// True if haul succeeded and all files have the right hashes.
    equal: bool,
    /// The number of repeated bytes among the bytes that the origin sent. A byte that was sent
    /// three times counts as two.
    twice: u64,
    /// The largest accepted value of `twice`, as a sum:
    /// * for each connection of a killed process, the length of a part (the longest range that haul
    ///   requested, at most [`PART`]),
    /// * for each connection of any process of the try, [`MAX_IN_FLIGHT`].
    bound: u64,
    /// A description of the try for the report of a failure.
    description: String,
}

pub(crate) fn run_all(bench: &FaultRunner) -> Result<KillTally> {
    let count = bench.options.kills;
    if count == 0 {
        return Ok(KillTally::default());
    }
    // A link without a rate may hold 16 MiB for a program that gets no CPU time: that would count
    // as fetched.
    let rate = bench.options.kill_rate;
    let relay = |to| Relay::to(to).rtt(Duration::from_millis(4)).jitter(Duration::from_millis(1)).rate(rate).start();
    let (plain, tls) = (relay(bench.origin.http_addr())?, relay(bench.origin.https_addr())?);
    let next = AtomicU64::new(0);
    let kills = Mutex::new(KillTally::default());
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, SeqCst);
            if number >= count {
                return Ok(());
            }
            let base = match number / KINDS.len() as u64 % 2 {
                0 => format!("http://{}", plain.addr()),
                _ => format!("https://localhost:{}", tls.addr().port()),
            };
            let tried = run_once(bench, number, &base)?;
            kills.lock().unwrap_or_else(PoisonError::into_inner).add(tried);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..bench.options.jobs.min(4)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(kills.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The output files of one try (a command that is killed and run again): for each file, its name at
/// the origin, the faults that the origin simulates for it, and its path.
struct KilledRunFiles<'a> {
    bench: &'a FaultRunner,
    files: Vec<(String, FaultPlan, PathBuf)>,
}

impl KilledRunFiles<'_> {
    fn seen(&self) -> impl Iterator<Item = FaultyRequestLog> {
        self.files.iter().map(|(name, ..)| self.bench.origin.seen(name))
    }

    fn sum(&self, count: fn(&FaultyRequestLog) -> u64) -> u64 {
        self.seen().map(|seen| count(&seen)).sum()
    }

    fn are_equal(&self) -> Result<bool> {
        for (_, plan, file) in &self.files {
            let mut checker = ContentChecker::for_plan(plan);
            if !file.exists() {
                return Ok(false);
            }
            checker.add_file(file)?;
            if checker.finish().sha256.as_ref() != content_checker::source_digest(plan).as_ref() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for KilledRunFiles<'_> {
    fn drop(&mut self) {
        self.files.iter().for_each(|(name, ..)| self.bench.origin.remove_plan(name));
    }
}

fn run_once(bench: &FaultRunner, number: u64, base: &str) -> Result<KillTry> {
    let options = &bench.options;
    let mut rng = Rng::new(mix(options.seed ^ 0x6b69_6c6c, number));
    let kind = (number % KINDS.len() as u64) as usize;
    let count = if kind == 2 { MANY_FILES } else { 1 };
    let size = options.kill_body / count;
    let dir = tempfile::tempdir_in(bench.work.path())?;
    let mut files = KilledRunFiles { bench, files: Vec::new() };
    let mut targets = Vec::new();
    for file in 0..count {
        let name = format!("kill-{number}-{file}");
        let plan = FaultPlan { size, rate: Some(options.kill_rate), seed: number << 3 | file, ..FaultPlan::default() };
        let path = dir.path().join(format!("out{file}"));
        targets.push((format!("{base}{}", bench.origin.serve(&name, plan.clone())), path.clone()));
        files.files.push((name, plan, path));
    }
    let (url, file) = targets.remove(0);
    let job = HaulCommand {
        url,
        file: Some(file),
        more: targets,
        version: TestedVersion::Http1,
        one_stream: kind == 1,
        max_time: options.limit,
        limit: options.limit + Duration::from_secs(5),
        reader: None,
    };
    let (mut killed, mut connections, mut seen_before) = (0, 0, 0);
    let kills = 1 + u64::from(rng.below(4) == 0);
    for _ in 0..kills {
        let sent = files.sum(FaultyRequestLog::sent);
        let moment = sent + rng.below((size * count).saturating_sub(sent).max(1));
        let hit = kill_at(bench, &job, moment, || files.sum(FaultyRequestLog::sent))?;
        let now = files.sum(|seen| seen.connections);
        if hit {
            killed += 1;
            connections += now - seen_before;
        }
        seen_before = now;
    }
    let mut done = false;
    let mut description = String::new();
    for _ in 0..MAX_RUNS {
        let outcome = bench.haul.run(&job, |_| {})?;
        if outcome.code == Some(0) {
            done = true;
            break;
        }
        description = format!("exit {}: {}", outcome.code.unwrap_or(-1), outcome.error_output);
    }
    let part = files.seen().filter_map(|seen| seen.longest_part()).max().unwrap_or(PART).min(PART).min(size);
    Ok(KillTry {
        kind,
        killed,
        connections,
        done,
        equal: done && files.are_equal()?,
        twice: files.sum(FaultyRequestLog::twice),
        bound: connections * part + files.sum(|seen| seen.connections) * MAX_IN_FLIGHT,
        description: format!(
            "kill {number}, {}: {killed} killed, {connections} connections, part {part}; {description}",
            KINDS[kind]
        ),
    })
}

/// Starts haul, and kills it when the origin has sent `moment` bytes or the time limit of `job` has
/// passed. `sent` returns the number of bytes that the origin has sent so far. Returns `false` if
/// haul ended before the kill.
fn kill_at(bench: &FaultRunner, job: &HaulCommand, moment: u64, sent: impl Fn() -> u64) -> Result<bool> {
    let mut child = bench.haul.spawn(job)?;
    let end = Instant::now() + job.limit;
    loop {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        if sent() >= moment || Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(true);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

impl KillTally {
    fn add(&mut self, tried: KillTry) {
        self.tried += 1;
        self.kinds[tried.kind].0 += 1;
        self.kinds[tried.kind].1 += u64::from(tried.equal);
        self.killed += tried.killed;
        self.connections += tried.connections;
        self.survived += u64::from(tried.equal);
        self.not_done += u64::from(!tried.done);
        self.wrong_hash += u64::from(tried.done && !tried.equal);
        let over = tried.twice > tried.bound;
        self.over_limit += u64::from(over);
        self.twice += tried.twice;
        self.most_twice = self.most_twice.max(tried.twice);
        if (over || !tried.equal) && self.failures.len() < 5 {
            self.failures.push(format!("{}; {} bytes twice, bound {}", tried.description, tried.twice, tried.bound));
        }
    }
}
