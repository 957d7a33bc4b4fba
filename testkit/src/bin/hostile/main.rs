//! Runs the program haul against thousands of replies that no honest server sends, and reports the
//! results.
//!
//! ```text
//! hostile --haul target/release/haul --replies 10000
//! ```
//!
//! The runner uses haul only as a program, given by its path. Each try consists of a reply of
//! [`testkit::hostile`] and a command line, both derived from one seed. A try fails after a panic,
//! a signal, a hang, or use of more memory than allowed. haul must not succeed with other bytes
//! than the reply's, nor succeed if the reply violates a rule.

mod command_lines;
mod options;
mod verdict_counts;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use testkit::hostile::{AllowedResult, HostileReply, HostileServer};
use testkit::rng::{Rng, mix};
use testkit::run_with_time_limit::{self, ChildOutcome};

use command_lines::{ClientCommandLine, HostileBodyDestination};
use options::HostileOptions;
use verdict_counts::{ReplyTry, ReplyVerdict, VerdictCounts};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The `--max-time` of haul for a reply that may end in silence. For other replies it is
/// [`LONG_TIME_LIMIT`], which haul never reaches.
const SHORT_TIME_LIMIT: Duration = Duration::from_secs(1);
const LONG_TIME_LIMIT: Duration = Duration::from_secs(20);

fn main() -> Result<ExitCode> {
    let Some(options) = options::parse()? else {
        print!("{}", options::USAGE);
        return Ok(ExitCode::SUCCESS);
    };
    let output = Command::new(&options.haul).arg("--version").stdin(Stdio::null()).output()?;
    let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    println!("{version} · seed {} · {} replies", options.seed, options.replies);
    let work = tempfile::Builder::new().prefix("haul-hostile").tempdir_in(&options.work)?;
    let (first, last) = options.only.map_or((0, options.replies), |only| (only, only + 1));
    let (next, tally) = (AtomicU64::new(first), Mutex::new(VerdictCounts::default()));
    let work_off = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, SeqCst);
            if number >= last {
                return Ok(());
            }
            let tried = attempt(&options, work.path(), number)?;
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(tried, options.only.is_some());
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work_off)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.print();
    tally.write(&options, &version)?;
    Ok(if tally.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs haul with the reply of this number, which a seed and the number determine. Equal seeds give
/// equal replies and command lines.
fn attempt(options: &HostileOptions, work: &std::path::Path, number: u64) -> Result<ReplyTry> {
    let seed = mix(options.seed, number);
    let reply = HostileReply::from_seed(seed);
    let server = HostileServer::start(reply.clone())?;
    // Files that a server can make it write must stay in the inner directory.
    let outer = tempfile::tempdir_in(work)?;
    let inner = outer.path().join("inner");
    std::fs::create_dir(&inner)?;
    let line = command_lines::random_command(&mut Rng::new(mix(seed, 1)), reply.protocol, &server.url(), &inner)?;
    let max_time = if reply.may_stall() || line.may_stall { SHORT_TIME_LIMIT } else { LONG_TIME_LIMIT };
    let mut command = Command::new(&options.haul);
    command.env_clear().env("HOME", &inner).env("LC_ALL", "C").current_dir(&inner);
    command.args(&line.args).args(["--max-time", &max_time.as_secs().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut printed = Vec::new();
    let outcome = run_with_time_limit::run(&mut command, options.limit, |bytes| {
        // Output longer than any promised body need not be kept.
        if printed.len() < 4 << 20 {
            printed.extend_from_slice(bytes);
        }
    })?;
    let escaped = std::fs::read_dir(outer.path())?.count() != 1;
    let verdict = if escaped { ReplyVerdict::Escaped } else { judge(options, &reply, &line, &outcome, &printed) };
    let description = format!(
        "reply {number} ({:?}; {}) → exit {:?}, {} KiB, {} connections: {} | haul {}",
        reply.protocol,
        reply.made_of.join(", "),
        outcome.code,
        outcome.rss >> 10,
        server.connections(),
        outcome.error_output,
        line.args.join(" "),
    );
    let promise = match &reply.promise {
        AllowedResult::Body(_) => "whole",
        AllowedResult::Failure => "broken",
        AllowedResult::Nothing => "unsure",
    };
    Ok(ReplyTry { verdict, code: outcome.code, rss: outcome.rss, protocol: reply.protocol, promise, description })
}

fn judge(
    options: &HostileOptions,
    reply: &HostileReply,
    line: &ClientCommandLine,
    outcome: &ChildOutcome,
    printed: &[u8],
) -> ReplyVerdict {
    let Some(code) = outcome.code else {
        return if outcome.hung { ReplyVerdict::Hung } else { ReplyVerdict::Signal };
    };
    if code == 101 || outcome.error_output.contains("panicked at") {
        return ReplyVerdict::Panic;
    }
    if outcome.rss > options.memory {
        return ReplyVerdict::Memory;
    }
    let is_right = |body: &[u8]| match &line.place {
        HostileBodyDestination::Stdout => printed == body,
        HostileBodyDestination::File(path) => std::fs::read(path).is_ok_and(|held| held == body),
        HostileBodyDestination::Unknown => true,
    };
    match &reply.promise {
        _ if matches!(line.place, HostileBodyDestination::Unknown) => ReplyVerdict::Survived,
        AllowedResult::Body(body) if code != 0 => ReplyVerdict::Refused(body.len()),
        AllowedResult::Body(body) if !is_right(body) => ReplyVerdict::WrongBytes,
        AllowedResult::Failure if code == 0 => ReplyVerdict::FalseSuccess,
        _ => ReplyVerdict::Survived,
    }
}
