//! Runs the rounds of all programs.
//!
//! In each round, all programs run one after the other, so that the machine is in the same state
//! for their results. The reported values are the median over the rounds, and the median of each
//! round's ratio to the baseline.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench_results_file::{PartResult, ProgramRuns, RecordedRun};
use crate::compared_programs_and_goals::{BenchProgram, JobPart, MetricKind, OutputCheck, ProgramRole, WorkPerRun};
use crate::jobs::JobEnvironment;
use crate::measure::{self, RunMetrics, RunOutputDestination};
use crate::one_core::SingleCoreGuard;
use crate::output_digest::OutputDigest;
use crate::{Result, terminal_table};

/// The desired minimum number of rounds of a part of a job. Until so many rounds are done, the time
/// limit for all rounds of the part ([`RoundLimits::until`]) is longer by half.
const MIN_ROUNDS: usize = 3;
/// The duration of a run, in seconds, up to which the bench never skips a program. A program with
/// longer runs is skipped after its first round if a competitor is more than twice as fast.
const LONG_RUN_SECONDS: f64 = 1.0;
/// The longest duration of a run whose system calls are counted. strace makes a run many times
/// slower.
const MAX_TRACED_RUN: Duration = Duration::from_millis(500);
/// The time limit of a run under strace. A longer run is killed.
const TRACE_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The limits on the rounds of one part of a benchmark job, in number and time. In a round, each
/// compared program runs once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundLimits {
    /// The maximum number of measured rounds.
    pub(crate) rounds: usize,
    /// The time after which no further round begins; `None` for no limit. Until [`MIN_ROUNDS`]
    /// rounds are done, the time from the start to this limit is longer by half.
    pub(crate) until: Option<Instant>,
}

impl RoundLimits {
    /// Returns `true` if another round may begin after `done` rounds. `each` is the duration of one
    /// round. The first round always runs. Until [`MIN_ROUNDS`] rounds are done, the time limit is
    /// longer by half.
    fn allows_another(self, done: usize, each: Duration, start: Instant, now: Instant) -> bool {
        let Some(until) = self.until.filter(|_| done > 0) else { return done < self.rounds };
        let allowed = if done < MIN_ROUNDS { until + until.duration_since(start) / 2 } else { until };
        done < self.rounds && now + each <= allowed
    }
}

/// Runs one part of a benchmark job: several rounds, in each of which the compared programs run
/// once. Returns the results of all programs.
pub(crate) fn run(bench: &JobEnvironment, job_part: JobPart, time: RoundLimits) -> Result<PartResult> {
    let JobPart { part, bench_programs, baseline, limit, goals, warm_up, one_core, calls, server, unit, .. } = job_part;
    let _turns = one_core.then(SingleCoreGuard::restrict_thread).transpose()?;
    let start = Instant::now();
    // A proof warms the server up as a round would.
    let is_proven = |bench_program: &BenchProgram| {
        matches!(bench_program.check, OutputCheck::CheckedOnce(..) | OutputCheck::PrintedLength(Some(_), _))
    };
    // A page server reads nothing from disk.
    let has_pages =
        |bench_program: &BenchProgram| matches!(bench_program.check, OutputCheck::Pages(_) | OutputCheck::Replies(_));
    let is_cold = !bench.options.smoke && !bench_programs.iter().any(|entry| is_proven(entry) || has_pages(entry));
    let warm_up = warm_up && is_cold;
    let mut part_result = PartResult {
        job: bench.job.name.to_owned(),
        part: part.to_owned(),
        about: bench.job.about.to_owned(),
        server: if one_core { format!("{server}, on the clients' core") } else { server },
        unit,
        rounds: 0,
        warm_up,
        baseline: baseline.to_owned(),
        limit: limit.map(str::to_owned),
        entries: Vec::new(),
        goals: goals.iter().map(|goal| goal.to_job_goal()).collect(),
    };
    println!("{}: {}", part_result.name(), part_result.server);
    let mut proofs = Vec::new();
    for bench_program in &bench_programs {
        proofs.push(check_output_of(bench, bench_program)?);
        part_result.entries.push(ProgramRuns {
            name: bench_program.name.to_owned(),
            role: ProgramRole::from_name(bench_program.name, limit),
            command: bench_program.argv.clone(),
            system_calls: None,
            runs: Vec::new(),
        });
    }
    if is_cold
        && !warm_up
        && let Some(first) = bench_programs.first()
    {
        // Without this run, the first program alone would have to read the server's files from
        // disk. A failure shows in the rounds.
        let _ = measure_program(bench, first)?;
    }
    let mut warm = !warm_up;
    let mut each = Duration::ZERO;
    let mut skipped = vec![false; bench_programs.len()];
    while time.allows_another(part_result.rounds, each, start, Instant::now()) {
        let took = round(bench, &bench_programs, &mut proofs, &skipped, warm.then_some(&mut part_result.entries))?;
        if warm && time.until.is_some() {
            skipped = programs_to_skip(&part_result);
        }
        each = took.iter().zip(&skipped).filter(|(_, skipped)| !**skipped).map(|(took, _)| *took).sum();
        part_result.rounds += usize::from(warm);
        warm = true;
    }
    if calls && !bench.options.smoke {
        let is_quick = |entry: &ProgramRuns| {
            let wall = entry.median(MetricKind::Wall);
            wall.is_some_and(|wall| wall < MAX_TRACED_RUN.as_secs_f64()) && unit != WorkPerRun::Run
        };
        for (bench_program, entry) in
            bench_programs.iter().zip(&mut part_result.entries).filter(|(_, entry)| is_quick(entry))
        {
            entry.system_calls = count_calls(bench, bench_program)?;
        }
    }
    terminal_table::end_of_progress();
    Ok(part_result)
}

/// Runs each program once, except those whose entry in `skipped` is true. Returns the time that
/// each program took. Stores the results in `entries`; without `entries`, the round is not
/// recorded.
fn round(
    bench: &JobEnvironment,
    bench_programs: &[BenchProgram],
    proofs: &mut [Result<(), String>],
    skipped: &[bool],
    mut entries: Option<&mut Vec<ProgramRuns>>,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    for (at, (bench_program, proof)) in bench_programs.iter().zip(proofs).enumerate() {
        let began = Instant::now();
        if !skipped[at] {
            let ran = match proof {
                Ok(()) => measure_program(bench, bench_program)?,
                Err(why) => Err(why.clone()),
            };
            // After one wrong output, the program does not run again.
            *proof = ran.as_ref().map(|_| ()).map_err(String::clone);
            terminal_table::progress(bench_program, &ran);
            if let Some(entries) = &mut entries {
                entries[at].runs.push(RecordedRun::new(ran, bench_program.check.len()));
            }
        }
        took.push(began.elapsed());
    }
    Ok(took)
}

/// Returns for each program whether it is left out after its first round. This is true if the
/// program takes more than twice as long as the fastest competitor of haul, and longer than
/// [`LONG_RUN_SECONDS`]. It is false for the first program in the list, and for the program that
/// does only the minimum of work ([`ProgramRole::Limit`]).
fn programs_to_skip(part_result: &PartResult) -> Vec<bool> {
    let wall = |entry: &ProgramRuns| entry.median(MetricKind::Wall);
    let peers = part_result.entries.iter().filter(|entry| entry.role == ProgramRole::Peer);
    let quickest = peers.filter_map(wall).min_by(f64::total_cmp);
    let enough = quickest.map_or(f64::INFINITY, |quickest| (2.0 * quickest).max(LONG_RUN_SECONDS));
    let is_long =
        |entry: &ProgramRuns| entry.role != ProgramRole::Limit && wall(entry).is_some_and(|wall| wall > enough);
    part_result.entries.iter().enumerate().map(|(at, entry)| at > 0 && is_long(entry)).collect()
}

/// Runs the shell command that shows once, before the rounds, that a program's output is right
/// ([`OutputCheck::CheckedOnce`], [`OutputCheck::PrintedLength`]). The inner result is a message if
/// the command fails, or if its output differs from the expected digest. A program without such a
/// command passes. The digest is computed while the output arrives, since there may be gigabytes.
fn check_output_of(bench: &JobEnvironment, bench_program: &BenchProgram) -> Result<Result<(), String>> {
    let (OutputCheck::CheckedOnce(shell, expected) | OutputCheck::PrintedLength(Some(shell), expected)) =
        &bench_program.check
    else {
        return Ok(Ok(()));
    };
    let argv = ["sh".to_owned(), "-c".to_owned(), shell.clone()];
    let (mut reader, writer) = io::pipe()?;
    let digest = thread::spawn(move || OutputDigest::from_reader(&mut reader));
    let ran = measure::run(bench, &argv, RunOutputDestination::To(OwnedFd::from(writer).into()))?;
    let print = digest.join().map_err(|_| "the digest panicked")??;
    Ok(ran.and_then(|_| compare(&print, expected)))
}

fn measure_program(bench: &JobEnvironment, bench_program: &BenchProgram) -> Result<Result<RunMetrics, String>> {
    let run = |out| measure::run(bench, &bench_program.argv, out);
    match &bench_program.check {
        OutputCheck::CheckedOnce(..) if bench_program.piped => run(RunOutputDestination::Cat),
        OutputCheck::CheckedOnce(..) => {
            run(RunOutputDestination::ToRepeatedly(File::create("/dev/null")?, bench_program.times))
        }
        OutputCheck::PrintedLength(_, expected) => {
            let path = bench.work.join("output");
            let ran = run(RunOutputDestination::To(File::create(&path)?))?;
            let said = std::fs::read_to_string(&path)?;
            Ok(ran.and_then(|figures| check_printed_sizes(&said, expected).map(|()| figures)))
        }
        OutputCheck::OutputWithFirstByteTime(expected) => {
            let path = bench.work.join("seen");
            let ran = run(RunOutputDestination::Watch(path.clone()))?;
            let seen = std::fs::read_to_string(path).unwrap_or_default();
            Ok(ran.and_then(|figures| {
                compare(&OutputDigest::parse(&seen).ok_or("nothing seen")?, expected).map(|()| figures)
            }))
        }
        OutputCheck::Output(expected) => {
            let path = bench.work.join("output");
            let ran = run(RunOutputDestination::To(File::create(&path)?))?;
            digest_and_remove(&path, ran, expected)
        }
        OutputCheck::Pages(check) => {
            let path = bench.work.join("output");
            check.start_run();
            let ran = run(RunOutputDestination::To(File::create(&path)?))?;
            let pages = check.check_output(&path)?;
            std::fs::remove_file(path)?;
            Ok(ran.and_then(|figures| Ok(RunMetrics { pages: Some(pages?), ..figures })))
        }
        OutputCheck::Replies(check) => {
            check.site.start_run();
            let ran = run(RunOutputDestination::To(File::create("/dev/null")?))?;
            Ok(ran.and_then(|figures| check.check_replies(figures, &bench.work)))
        }
        OutputCheck::File(name, expected) => {
            let ran = run(RunOutputDestination::To(File::create("/dev/null")?))?;
            digest_and_remove(&bench.work.join(name), ran, expected)
        }
    }
}

/// Compares the file that a program wrote with the expected digest, and removes the file. Returns
/// the measurements `ran`, or a message if the file is wrong. If the file stayed, the next program
/// would find a file to overwrite, or a disk that is still writing the file.
fn digest_and_remove(
    path: &Path,
    ran: Result<RunMetrics, String>,
    expected: &OutputDigest,
) -> Result<Result<RunMetrics, String>> {
    let answered = ran.and_then(|figures| {
        let print = OutputDigest::from_file(path).map_err(|error| error.to_string())?;
        compare(&print, expected).map(|()| figures)
    });
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(answered),
    }
}

/// Checks that a client printed the right number of bytes, in one line or in a line for each
/// transfer.
fn check_printed_sizes(said: &str, expected: &OutputDigest) -> Result<(), String> {
    let lines: Result<Vec<u64>, _> = said.lines().map(str::parse).collect();
    match lines {
        Ok(lines) if lines.iter().sum::<u64>() == expected.len => Ok(()),
        Ok(lines) => Err(format!("wrong answer: {} bytes, not {}", lines.iter().sum::<u64>(), expected.len)),
        Err(_) => Err(format!("said {:?}, not {}", said.trim(), expected.len)),
    }
}

/// Returns the number of system calls of the program; `None` without strace. Also returns `None`
/// for a shell command, since the calls of the shell's other programs would be counted too.
fn count_calls(bench: &JobEnvironment, bench_program: &BenchProgram) -> Result<Option<u64>> {
    let [name, arguments @ ..] = bench_program.argv.as_slice() else { return Ok(None) };
    let (Some(strace), Some(program)) = (bench.program("strace"), bench.program(name).filter(|_| name != "sh")) else {
        return Ok(None);
    };
    let words = ["-f", "-c", "-o", "calls"].map(str::to_owned);
    let argv = [vec![strace.display().to_string()], words.to_vec(), vec![program.display().to_string()]].concat();
    let out = if bench_program.piped {
        RunOutputDestination::Cat
    } else {
        RunOutputDestination::To(File::create("/dev/null")?)
    };
    let ran = measure::run_within(bench, &[&argv, arguments].concat(), out, TRACE_TIME_LIMIT)?;
    if let OutputCheck::File(written, _) = bench_program.check {
        // Missing if the run failed, which the next line notices.
        let _ = std::fs::remove_file(bench.work.join(written));
    }
    let table = std::fs::read_to_string(bench.work.join("calls")).unwrap_or_default();
    Ok(total_calls(&table).filter(|_| ran.is_ok()))
}

/// Returns the column `calls` of the last line that `strace -c` prints. `None` if the line has no
/// such column.
fn total_calls(table: &str) -> Option<u64> {
    let total = table.lines().rfind(|line| line.ends_with(" total"))?;
    total.split_whitespace().nth(3)?.parse().ok()
}

fn compare(print: &OutputDigest, expected: &OutputDigest) -> Result<(), String> {
    if print == expected {
        return Ok(());
    }
    let short = |print: &OutputDigest| format!("{} bytes {}…", print.len, &print.sha256[..12]);
    Err(format!("wrong answer: {}, not {}", short(print), short(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result};

    #[test]
    fn rounds_stop_when_time_runs_out() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let free = RoundLimits { rounds: 7, until: None };
        assert!(
            free.allows_another(0, second, start, start)
                && free.allows_another(6, second, start, start + 1000 * second)
        );
        assert!(!free.allows_another(7, second, start, start));
        let held = RoundLimits { rounds: 7, until: Some(start + 10 * second) };
        assert!(held.allows_another(0, second, start, start + 100 * second), "one there must be");
        assert!(held.allows_another(3, second, start, start + 9 * second));
        assert!(!held.allows_another(3, 2 * second, start, start + 9 * second), "it would not end in time");
        assert!(held.allows_another(2, 2 * second, start, start + 11 * second), "two are few");
        assert!(!held.allows_another(2, 2 * second, start, start + 14 * second));
        assert!(!held.allows_another(7, second, start, start));
    }

    #[test]
    fn slow_programs_run_only_one_round() {
        let ran = |wall: f64| vec![Ok(figures(wall))];
        let part_result = part_result(vec![
            entry("haul", ran(30.0)),
            entry("curl", ran(3.0)),
            entry("slow", ran(6.1)),
            entry("limit: least", ran(30.0)),
            entry("wrong", vec![Err("wrong answer".to_owned())]),
            entry("requests, haul", ran(6.1)),
        ]);
        assert_eq!(programs_to_skip(&part_result), [false, false, true, false, false, true]);
    }

    #[test]
    fn wrong_printed_length_is_refused() {
        let expected = OutputDigest::from_bytes(b"ab");
        for right in ["2", "2\n", "1\n1\n", "0\n2\n"] {
            assert_eq!(check_printed_sizes(right, &expected), Ok(()));
        }
        for wrong in ["3", "", "x", "2,2", "2\n2"] {
            assert!(check_printed_sizes(wrong, &expected).is_err(), "{wrong}");
        }
    }

    #[test]
    fn strace_total_is_parsed() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     100.00    0.000000           0         1           write\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.012345           3     14250         7 total\n";
        assert_eq!(total_calls(table), Some(14_250));
        assert_eq!(total_calls("strace: cannot trace\n"), None);
    }

    #[test]
    fn outputs_are_compared_by_length_and_digest() {
        assert!(compare(&OutputDigest::from_bytes(b"ab"), &OutputDigest::from_bytes(b"ab")).is_ok());
        assert!(
            compare(&OutputDigest::from_bytes(b"ab"), &OutputDigest::from_bytes(b"ba"))
                .unwrap_err()
                .starts_with("wrong answer: 2 bytes")
        );
    }
}
