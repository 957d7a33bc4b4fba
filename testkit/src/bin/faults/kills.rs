//! kill -9 at random moments of a download to a file, then the same command again until it is done.
//!
//! The moment is a number of bytes sent, not a time, so a loaded machine is no other machine. Each connection is held
//! to a rate, by the origin, behind a relay with a round trip: little is under way between the two ends then, and what
//! was sent is what was fetched.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::faulty::Plan;
use testkit::relay::Relay;
use testkit::rng::{Rng, mix};

use crate::check::{self, Checker};
use crate::haul::Job;
use crate::{Bench, Result};

/// The most that a part may hold.
const PART: u64 = 16 << 20;
/// What may be under way on a connection: sent, but not received by the program that was killed.
const UNDER_WAY: u64 = 1 << 20;
/// How often the bytes sent are looked at.
const GLANCE: Duration = Duration::from_millis(1);
/// Runs after the last kill before it is given up.
const MOST_RUNS: u32 = 3;

/// What came of all kills.
#[derive(Default)]
pub(crate) struct Kills {
    pub(crate) tried: u64,
    /// Processes killed; some end before their moment comes.
    pub(crate) killed: u64,
    /// The hash is equal in the end.
    pub(crate) survived: u64,
    pub(crate) wrong_hash: u64,
    pub(crate) not_done: u64,
    /// More was fetched twice than one part a connection for each kill.
    pub(crate) over_bound: u64,
    /// Connections of the runs that were killed.
    connections: u64,
    pub(crate) twice: u64,
    most_twice: u64,
    /// The first failures, in full.
    pub(crate) failures: Vec<String>,
}

impl Kills {
    pub(crate) fn right(&self) -> bool {
        self.survived == self.tried && self.over_bound == 0
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tried": self.tried,
            "killed": self.killed,
            "survived": self.survived,
            "wrong_hash": self.wrong_hash,
            "not_done": self.not_done,
            "over_bound": self.over_bound,
            "connections_killed": self.connections,
            "bytes_twice": self.twice,
            "most_bytes_twice": self.most_twice,
            "failures": self.failures,
        })
    }
}

/// What came of one.
struct Tried {
    killed: u64,
    connections: u64,
    done: bool,
    equal: bool,
    twice: u64,
    bound: u64,
    told: String,
}

pub(crate) fn all(bench: &Bench) -> Result<Kills> {
    let count = bench.options.kills;
    if count == 0 {
        return Ok(Kills::default());
    }
    let relay = |to| Relay::to(to).rtt(Duration::from_millis(4)).jitter(Duration::from_millis(1)).start();
    let (plain, tls) = (relay(bench.origin.http_addr())?, relay(bench.origin.https_addr())?);
    let next = AtomicU64::new(0);
    let kills = Mutex::new(Kills::default());
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, SeqCst);
            if number >= count {
                return Ok(());
            }
            let base = match number % 2 {
                0 => format!("http://{}", plain.addr()),
                _ => format!("https://localhost:{}", tls.addr().port()),
            };
            let tried = one(bench, number, &base)?;
            kills.lock().unwrap_or_else(PoisonError::into_inner).add(tried);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..bench.options.jobs.min(4)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(kills.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn one(bench: &Bench, number: u64, base: &str) -> Result<Tried> {
    let options = &bench.options;
    let mut rng = Rng::new(mix(options.seed ^ 0x6b69_6c6c, number));
    let plan = Plan { size: options.kill_body, rate: Some(options.kill_rate), seed: number, ..Plan::default() };
    let name = format!("kill-{number}");
    let path = bench.origin.serve(&name, plan.clone());
    let dir = tempfile::tempdir_in(bench.work.path())?;
    let file: PathBuf = dir.path().join("out");
    let job = Job {
        url: format!("{base}{path}"),
        file: Some(file.clone()),
        one_stream: false,
        max_time: options.limit,
        limit: options.limit + Duration::from_secs(5),
        reader: None,
    };
    let (mut killed, mut connections, mut seen_before) = (0, 0, 0);
    let kills = 1 + u64::from(rng.below(4) == 0);
    for _ in 0..kills {
        let sent = bench.origin.seen(&name).sent();
        let moment = sent + rng.below(plan.size.saturating_sub(sent).max(1));
        let hit = kill_at(bench, &job, &name, moment)?;
        let now = bench.origin.seen(&name).connections;
        if hit {
            killed += 1;
            connections += now - seen_before;
        }
        seen_before = now;
    }
    let mut done = false;
    let mut told = String::new();
    for _ in 0..MOST_RUNS {
        let outcome = bench.haul.run(&job, |_| {})?;
        if outcome.code == Some(0) {
            done = true;
            break;
        }
        told = format!("exit {}: {}", outcome.code.unwrap_or(-1), outcome.said);
    }
    let mut equal = false;
    if done && file.exists() {
        let mut checker = Checker::of(&plan);
        checker.add_file(&file)?;
        equal = checker.finish().sha256.as_ref() == check::source(&plan).as_ref();
    }
    let seen = bench.origin.seen(&name);
    bench.origin.forget(&name);
    let part = seen.longest_part().unwrap_or(PART).min(PART);
    Ok(Tried {
        killed,
        connections,
        done,
        equal,
        twice: seen.twice(),
        bound: connections * part + seen.connections * UNDER_WAY,
        told: format!("kill {number}: {killed} killed, {connections} connections, part {part}; {told}"),
    })
}

/// Starts the program and kills it once so many bytes were sent; false if it ended before.
fn kill_at(bench: &Bench, job: &Job, name: &str, moment: u64) -> Result<bool> {
    let mut child = bench.haul.spawn(job)?;
    let end = Instant::now() + job.limit;
    loop {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        if bench.origin.seen(name).sent() >= moment || Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(true);
        }
        thread::sleep(GLANCE);
    }
}

impl Kills {
    fn add(&mut self, tried: Tried) {
        self.tried += 1;
        self.killed += tried.killed;
        self.connections += tried.connections;
        self.survived += u64::from(tried.equal);
        self.not_done += u64::from(!tried.done);
        self.wrong_hash += u64::from(tried.done && !tried.equal);
        let over = tried.twice > tried.bound;
        self.over_bound += u64::from(over);
        self.twice += tried.twice;
        self.most_twice = self.most_twice.max(tried.twice);
        if (over || !tried.equal) && self.failures.len() < 5 {
            self.failures.push(format!("{}; {} bytes twice, bound {}", tried.told, tried.twice, tried.bound));
        }
    }
}
