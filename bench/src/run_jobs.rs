//! Runs the requested jobs one after the other, and writes the file of their results.
//!
//! `all` stands for all jobs of the scorecard. They share the available time: each job gets a share
//! of the time that remains when it starts. A fast job leaves time for later ones, and a slow job
//! runs fewer rounds.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::bench_results_file::{BenchRunResults, PartResult, SCHEMA};
use crate::jobs::{self, BenchJob, JobEnvironment};
use crate::options::BenchOptions;
use crate::rounds::{self, RoundLimits};
use crate::{Result, installed_programs, machine_info, terminal_table};

/// The name that selects all jobs.
pub(crate) const ALL: &str = "all";
/// The default time limit for all jobs together. `scripts/bench.sh` sets a lower limit if the
/// remaining time of the script is shorter.
const TIME_BUDGET: Duration = Duration::from_secs(24 * 60);

/// The names of some jobs, each with the approximate time in seconds that it needs. Each of the
/// other jobs needs about [`DEFAULT_SHARE`]. The time limit for all jobs is divided in these
/// proportions.
const SHARES: [(&str, f64); 19] = [
    ("site", 60.0),
    ("fetch", 45.0),
    ("fetcher", 80.0),
    ("prefix", 30.0),
    ("get", 80.0),
    ("get-tls", 40.0),
    ("five", 40.0),
    ("limited", 180.0),
    ("job", 120.0),
    ("refresh", 90.0),
    ("h2-bulk", 50.0),
    ("c-requests", 40.0),
    ("perl", 80.0),
    ("python", 150.0),
    ("curves", 80.0),
    ("hosts", 330.0),
    ("adapt", 200.0),
    ("rates", 300.0),
    ("h3", 120.0),
];
const DEFAULT_SHARE: f64 = 20.0;

/// Runs the requested jobs. The exit code is 0 if all outputs of haul were right.
pub(crate) fn run(options: &BenchOptions) -> Result<ExitCode> {
    let start = Instant::now();
    let whole = options.jobs.iter().any(|job| job == ALL);
    let asked = requested_jobs(&options.jobs)?;
    if !options.smoke {
        installed_programs::install_haul()?;
    }
    let until = options.budget.or(whole.then_some(TIME_BUDGET)).filter(|_| !options.smoke).map(|budget| start + budget);
    let mut record = BenchRunResults {
        schema: SCHEMA,
        date: options.date.clone().unwrap_or_else(|| installed_programs::output_of_command("date", &["+%F"])),
        host: machine_info::this_machine(options.host.as_deref()),
        tools: BTreeMap::new(),
        seed: options.seed,
        whole: false,
        seconds: 0.0,
        skipped: BTreeMap::new(),
        part_results: Vec::new(),
    };
    for (at, (job, part)) in asked.iter().enumerate() {
        let share = |(job, _): &(&BenchJob, _)| {
            SHARES.iter().find(|(name, _)| *name == job.name).map_or(DEFAULT_SHARE, |s| s.1)
        };
        let part_of_rest = share(&asked[at]) / asked[at..].iter().map(share).sum::<f64>();
        let mut bench = JobEnvironment::new(job, options)?;
        if at == 0 {
            record.tools = bench.versions();
        }
        match measure_job(&mut bench, *part, until.map(|until| (until, part_of_rest))) {
            Ok(part_results) => record.part_results.extend(part_results),
            // If a job cannot run here, the other jobs are still measured.
            Err(error) if whole => {
                println!("{}: skipped: {error}\n", job.name);
                record.skipped.insert(job.name.to_owned(), error.to_string());
            }
            Err(error) => return Err(error),
        }
        record.seconds = start.elapsed().as_secs_f64();
        if options.save {
            record.write_so_far(&options.results)?;
        }
    }
    record.whole = whole && options.is_full();
    if options.save {
        println!("raw figures: {}", record.write(&options.results)?.display());
    }
    Ok(if haul_is_right(&record.part_results) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the requested jobs, each with the requested part (`None` for all parts).
fn requested_jobs(words: &[String]) -> Result<Vec<(&'static BenchJob, Option<&str>)>> {
    let mut asked = Vec::new();
    for word in words {
        if word == ALL {
            asked.extend(jobs::ALL.iter().map(|job| (*job, None)));
            continue;
        }
        let (name, part) = word.split_once(':').map_or((word.as_str(), None), |(name, part)| (name, Some(part)));
        let job = jobs::ALL.iter().find(|job| job.name == name).ok_or_else(|| format!("no job {name}"))?;
        asked.push((*job, part));
    }
    Ok(asked)
}

/// Runs the parts of a job, or only the given part. `time` is the deadline of all jobs together,
/// and the fraction of the remaining time that this job may use; `None` means no limit. The time of
/// the set-up is not limited, because it may have to write a whole site.
fn measure_job(
    bench: &mut JobEnvironment,
    part: Option<&str>,
    time: Option<(Instant, f64)>,
) -> Result<Vec<PartResult>> {
    let mut job_parts = (bench.job.set_up)(bench)?;
    let until = time.map(|(until, share)| {
        let now = Instant::now();
        now + until.saturating_duration_since(now).mul_f64(share)
    });
    if let Some(part) = part {
        let parts: Vec<&str> = job_parts.iter().map(|job_part| job_part.part).collect();
        let unknown = format!("{} has the parts {}, not {part}", bench.job.name, parts.join(", "));
        job_parts.retain(|job_part| {
            job_part.part == part || job_part.part.split_once('@').is_some_and(|(curve, _)| curve == part)
        });
        if job_parts.is_empty() {
            return Err(unknown.into());
        }
    }
    let mut part_results = Vec::new();
    let mut left = u32::try_from(job_parts.len())?;
    for job_part in job_parts {
        left -= 1;
        // The points of a curve are many, and the others still show its course.
        if until.is_some_and(|until| Instant::now() > until) && job_part.part.contains('@') {
            println!("{}:{}: skipped, the job's time is over", bench.job.name, job_part.part);
            continue;
        }
        let rounds = if bench.options.smoke { 1 } else { bench.options.rounds.unwrap_or(job_part.rounds) };
        let until = until.map(|until| {
            let now = Instant::now();
            now + until.saturating_duration_since(now) / (left + 1)
        });
        let part_result = rounds::run(bench, bench.with_allowed_programs(job_part), RoundLimits { rounds, until })?;
        if bench.options.smoke {
            terminal_table::print_right(&part_result);
        } else {
            terminal_table::print(&part_result);
        }
        part_results.push(part_result);
    }
    Ok(part_results)
}

/// Returns true if every output of haul was right. Outputs of other programs may be wrong.
fn haul_is_right(part_results: &[PartResult]) -> bool {
    let is_haul = |entry: &&crate::bench_results_file::ProgramRuns| {
        entry.role == crate::compared_programs_and_goals::ProgramRole::Haul
    };
    let wrong: Vec<String> = part_results
        .iter()
        .flat_map(|part_result| part_result.entries.iter().map(move |entry| (part_result, entry)))
        .filter(|(_, entry)| is_haul(entry) && entry.fault().is_some())
        .map(|(part_result, entry)| {
            format!("{}: {}: {}", part_result.name(), entry.name, entry.fault().unwrap_or_default())
        })
        .collect();
    for line in &wrong {
        eprintln!("bench: {line}");
    }
    wrong.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result};

    #[test]
    fn job_names_select_jobs_and_parts() {
        assert_eq!(requested_jobs(&["all".to_owned()]).unwrap().len(), jobs::ALL.len());
        let words = ["get:null".to_owned(), "site".to_owned()];
        let asked_for: Vec<_> =
            requested_jobs(&words).unwrap().into_iter().map(|(job, part)| (job.name, part)).collect();
        assert_eq!(asked_for, [("get", Some("null")), ("site", None)]);
        assert!(requested_jobs(&["none".to_owned()]).is_err());
    }

    #[test]
    fn every_time_share_belongs_to_an_existing_job() {
        for (name, _) in SHARES {
            assert!(jobs::ALL.iter().any(|job| job.name == name), "{name}");
        }
    }

    #[test]
    fn run_fails_only_if_haul_output_is_wrong() {
        let wrong = || vec![Ok(figures(1.0)), Err("wrong answer".to_owned())];
        let right = || vec![Ok(figures(1.0)), Ok(figures(1.0))];
        assert!(haul_is_right(&[part_result(vec![entry("haul", right()), entry("curl", wrong())])]));
        assert!(!haul_is_right(&[part_result(vec![entry("haul, in order", wrong()), entry("curl", right())])]));
    }
}
