//! The results of a run as they are stored, in one JSON file. `results/README.md` documents the
//! file. Tables, charts, documents and the README's figures are generated from it.
//!
//! The file contains no value that can be computed from its other values. The methods here compute
//! medians and ratios from the runs. The result of a program is the median over the rounds. A ratio
//! is the median over the rounds of the program's ratio to another program in the same round.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compared_programs_and_goals::{BEST_PEER, MetricKind, ProgramRole, WorkPerRun};
use crate::measure::RunMetrics;

/// The version of the file format. It changes when a reader of the old format would misread the new
/// one.
pub(crate) const SCHEMA: u32 = 1;

/// The end of the name of a results file while the run of the bench has not finished.
const UNFINISHED: &str = "-unfinished";

/// The results of one run of the bench, with all jobs or only some. A job compares programs at one
/// kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BenchRunResults {
    pub(crate) schema: u32,
    /// The date in the format of `date +%F`.
    pub(crate) date: String,
    pub(crate) host: MachineInfo,
    /// The installed programs, each with the first line that its version option prints.
    pub(crate) tools: BTreeMap<String, String>,
    /// The seed from which the pages of the test site and the large bodies are generated.
    pub(crate) seed: u64,
    /// True if every job was requested, in full size and with the number of rounds that the
    /// scorecard needs.
    pub(crate) whole: bool,
    /// The duration of the whole run of the bench, in seconds.
    pub(crate) seconds: f64,
    /// The jobs that could not run on this computer, each with the reason.
    pub(crate) skipped: BTreeMap<String, String>,
    #[serde(rename = "sheets")]
    pub(crate) part_results: Vec<PartResult>,
}

/// The computer on which the bench ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineInfo {
    pub(crate) name: String,
    pub(crate) cpus: usize,
    pub(crate) cpu: String,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
}

/// The results of all programs in one part of a benchmark job. The parts of a job differ in
/// conditions such as the length of the bodies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartResult {
    pub(crate) job: String,
    /// The name of the part; empty if the job has only one part. A part that is a point of a curve
    /// in a line chart is named `CURVE@X`.
    pub(crate) part: String,
    /// A description of the job in one line, for the report.
    pub(crate) about: String,
    pub(crate) server: String,
    pub(crate) unit: WorkPerRun,
    /// The number of measured rounds, without the warm-up round.
    pub(crate) rounds: usize,
    /// True if a warm-up round, which is not measured, came first.
    pub(crate) warm_up: bool,
    /// The program with which the others are compared if haul has no competitor in this part. Its
    /// results are shown as 1.00.
    pub(crate) baseline: String,
    /// The name of the program that does only the minimum of work that the part needs, such as
    /// reading the body from the socket. It shows the lower limit of the cost. `None` if there is
    /// no such program.
    pub(crate) limit: Option<String>,
    pub(crate) entries: Vec<ProgramRuns>,
    pub(crate) goals: Vec<JobGoal>,
}

/// The runs of one program in a part of a job, one for each round (repetition of the measurement).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgramRuns {
    pub(crate) name: String,
    pub(crate) role: ProgramRole,
    pub(crate) command: Vec<String>,
    /// The number of system calls in an additional run that is not timed; `None` if system calls
    /// were not counted.
    pub(crate) system_calls: Option<u64>,
    pub(crate) runs: Vec<RecordedRun>,
}

/// The run of a program in one round.
///
/// * Correct output: `figures` has the measurements.
/// * A failed run or wrong output: `figures` is `None`.
/// * Pages missing from the output: `figures` is present, but only [`MetricKind::MissingPages`] is
///   taken from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedRun {
    /// True if the output of the run was right, by length and SHA-256 or by another check of the
    /// job.
    pub(crate) right: bool,
    /// The reason why the run failed or its output was wrong; `None` if the output was right.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) fault: Option<String>,
    /// The length of the correct output in bytes, whether or not this run's output was right.
    pub(crate) bytes: u64,
    #[serde(flatten)]
    pub(crate) figures: Option<RunMetrics>,
}

/// A goal of a benchmark job: the result `what` of the program `of` must be at most `at_most`. If
/// `against` names another program, `at_most` limits the ratio of the result to that program's
/// result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobGoal {
    pub(crate) what: MetricKind,
    pub(crate) of: String,
    pub(crate) against: Option<String>,
    pub(crate) at_most: f64,
}

impl BenchRunResults {
    /// Reads the results from a file that [`write`](BenchRunResults::write) wrote.
    pub(crate) fn read(path: &Path) -> Result<BenchRunResults> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let record: BenchRunResults =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if record.schema != SCHEMA {
            return Err(format!("{}: schema {}, not {SCHEMA}", path.display(), record.schema).into());
        }
        Ok(record)
    }

    /// Writes the results to `DATE-HOST.json` in `dir`, or to `DATE-HOST-JOB.json` if only some
    /// jobs ran, and returns the path. Removes the file that
    /// [`write_so_far`](BenchRunResults::write_so_far) wrote.
    pub(crate) fn write(&self, dir: &Path) -> Result<PathBuf> {
        let path = if self.whole {
            self.path(dir, "")
        } else {
            let mut jobs: Vec<&str> = self.part_results.iter().map(|part_result| part_result.job.as_str()).collect();
            jobs.dedup();
            self.path(dir, &format!("-{}", jobs.join("-")))
        };
        self.write_to(&path)?;
        match std::fs::remove_file(self.path(dir, UNFINISHED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(path),
        }
    }

    /// Writes the results so far to `DATE-HOST-unfinished.json`, so that they are not lost if the
    /// run is interrupted.
    pub(crate) fn write_so_far(&self, dir: &Path) -> Result<()> {
        self.write_to(&self.path(dir, UNFINISHED))
    }

    fn path(&self, dir: &Path, suffix: &str) -> PathBuf {
        dir.join(format!("{}-{}{suffix}.json", self.date, self.host.name))
    }

    fn write_to(&self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(path.parent().ok_or("a file without a directory")?)?;
        Ok(std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// Returns the results of the part of a job with this full name (`JOB` or `JOB:PART`, see
    /// [`PartResult::name`]); `None` if that part did not run.
    pub(crate) fn part(&self, name: &str) -> Option<&PartResult> {
        self.part_results.iter().find(|part_result| part_result.name() == name)
    }
}

impl PartResult {
    /// Returns the full name of the part: `JOB`, or `JOB:PART` if the job has several.
    pub(crate) fn name(&self) -> String {
        if self.part.is_empty() { self.job.clone() } else { format!("{}:{}", self.job, self.part) }
    }

    pub(crate) fn bench_program(&self, name: &str) -> Option<&ProgramRuns> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the competitor of haul with the lowest result of this kind; `None` if there is no
    /// competitor. Competitors with a failed or wrong run are left out.
    pub(crate) fn best_peer(&self, what: MetricKind) -> Option<&ProgramRuns> {
        let peers = self.entries.iter().filter(|entry| entry.role == ProgramRole::Peer);
        let ranked = peers.filter_map(|entry| Some((entry.median(what)?, entry)));
        ranked.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, entry)| entry)
    }

    /// Returns the ratio of the result of the program `of` to the result of the program `against`,
    /// as the median over the rounds; `None` if any run of the two failed or had wrong output.
    pub(crate) fn ratio(&self, what: MetricKind, of: &str, against: &str) -> Option<f64> {
        median(self.ratios(what, of, against)?)
    }

    /// Returns the ratio of the result of the program `of` to the result of the program `against`
    /// in each round; `None` if any run of the two failed or had wrong output.
    pub(crate) fn ratios(&self, what: MetricKind, of: &str, against: &str) -> Option<Vec<f64>> {
        let pairs = self.bench_program(of)?.runs.iter().zip(&self.bench_program(against)?.runs);
        pairs.map(|(run, base)| Some(run.metric(what)? / base.metric(what)?)).collect()
    }

    /// Returns the value that the goal `aim` limits (the result of a program, or the ratio of two
    /// results), and its unit. Returns `None` if the value is missing, for example because a run
    /// failed or had wrong output.
    pub(crate) fn value_of_goal(&self, aim: &JobGoal) -> Option<(f64, &'static str)> {
        match aim.against.as_deref() {
            Some(BEST_PEER) => Some((self.ratio(aim.what, &aim.of, &self.best_peer(aim.what)?.name)?, "")),
            Some(against) => Some((self.ratio(aim.what, &aim.of, against)?, "")),
            None => Some(aim.what.in_readable_unit(self.bench_program(&aim.of)?.median(aim.what)?, self.unit)),
        }
    }
}

impl ProgramRuns {
    /// Returns the median of the program's results of this kind over the rounds; `None` if a run
    /// has no such result, because it failed or its output was wrong.
    pub(crate) fn median(&self, what: MetricKind) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.runs.iter().map(|run| run.metric(what)).collect();
        figures.and_then(median)
    }

    /// Returns the error message of the program's first faulty run; `None` if all runs were right.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.fault.as_deref())
    }

    /// Returns the number of the program's runs whose output was right.
    pub(crate) fn right_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.right).count()
    }
}

impl RecordedRun {
    pub(crate) fn new(ran: Result<RunMetrics, String>, bytes: u64) -> RecordedRun {
        match ran {
            Ok(figures) => {
                let fault = figures.pages.and_then(|pages| pages.fault());
                RecordedRun { right: fault.is_none(), fault, bytes, figures: Some(figures) }
            }
            Err(why) => RecordedRun { right: false, fault: Some(why), bytes, figures: None },
        }
    }

    fn metric(&self, what: MetricKind) -> Option<f64> {
        let counts = self.right || what == MetricKind::MissingPages;
        self.figures.as_ref().filter(|_| counts).and_then(|figures| what.metric_of_run(figures))
    }
}

/// Returns the median of the values; `None` for an empty list. With an even number of values, the
/// median is the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn figures(wall: f64) -> RunMetrics {
        RunMetrics {
            wall,
            user: wall / 2.0,
            sys: 0.0,
            rss: 2048.0,
            client: None,
            first_byte: None,
            pages: None,
            served_bytes: None,
        }
    }

    pub(crate) fn entry(name: &str, runs: Vec<Result<RunMetrics, String>>) -> ProgramRuns {
        let runs = runs.into_iter().map(|run| RecordedRun::new(run, 7)).collect();
        ProgramRuns {
            name: name.to_owned(),
            role: ProgramRole::from_name(name, None),
            command: Vec::new(),
            system_calls: None,
            runs,
        }
    }

    pub(crate) fn part_result(entries: Vec<ProgramRuns>) -> PartResult {
        PartResult {
            job: "job".to_owned(),
            part: String::new(),
            about: String::new(),
            server: String::new(),
            unit: WorkPerRun::Bytes(500_000_000),
            rounds: 3,
            warm_up: true,
            baseline: "b".to_owned(),
            limit: None,
            entries,
            goals: Vec::new(),
        }
    }

    pub(crate) fn record(part_results: Vec<PartResult>) -> BenchRunResults {
        BenchRunResults {
            schema: SCHEMA,
            date: "2026-01-02".to_owned(),
            host: MachineInfo {
                name: "host".to_owned(),
                cpus: 2,
                cpu: "CPU".to_owned(),
                memory_mib: 1024,
                kernel: "6".to_owned(),
            },
            tools: BTreeMap::from([("curl".to_owned(), "curl 8".to_owned())]),
            seed: 1,
            whole: true,
            seconds: 3.0,
            skipped: BTreeMap::new(),
            part_results,
        }
    }

    #[test]
    fn median_of_odd_even_and_empty_lists() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn ratio_with_any_wrong_run_is_none() {
        let part_result = part_result(vec![
            entry("haul", vec![Ok(figures(1.0)), Ok(figures(8.0)), Ok(figures(3.0))]),
            entry("b", vec![Ok(figures(2.0)), Ok(figures(4.0)), Ok(figures(6.0))]),
            entry("c", vec![Ok(figures(0.1)), Err("wrong answer".to_owned()), Ok(figures(0.1))]),
        ]);
        assert_eq!(part_result.ratio(MetricKind::Wall, "haul", "b"), Some(0.5));
        assert_eq!(part_result.ratio(MetricKind::Cpu, "haul", "b"), Some(0.5));
        assert_eq!(part_result.ratio(MetricKind::Wall, "c", "b"), None);
        assert_eq!(part_result.entries[2].median(MetricKind::Wall), None);
        assert_eq!(part_result.entries[2].fault(), Some("wrong answer"));
        assert_eq!(part_result.entries[2].right_runs(), 2);
        assert_eq!(part_result.ratio(MetricKind::Wall, "haul", "nobody"), None);
        assert_eq!(part_result.ratio(MetricKind::FirstByte, "haul", "b"), None);
        // The fastest program has a wrong run, so it is not the best competitor.
        assert_eq!(part_result.best_peer(MetricKind::Wall).map(|entry| entry.name.as_str()), Some("b"));
        let aim = |what, of: &str, against: Option<&str>| JobGoal {
            what,
            of: of.to_owned(),
            against: against.map(str::to_owned),
            at_most: 1.0,
        };
        assert_eq!(part_result.value_of_goal(&aim(MetricKind::Wall, "haul", Some("b"))), Some((0.5, "")));
        assert_eq!(part_result.value_of_goal(&aim(MetricKind::Cpu, "haul", None)), Some((3.0, "s/GB")));
        assert_eq!(part_result.value_of_goal(&aim(MetricKind::Rss, "b", None)), Some((2.0, "MB")));
        assert_eq!(part_result.value_of_goal(&aim(MetricKind::Rss, "c", None)), None);
    }

    #[test]
    fn written_record_is_read_back() {
        let part_results = vec![part_result(vec![entry("haul", vec![Ok(figures(1.0)), Err("exit 7".to_owned())])])];
        let record = record(part_results);
        let dir = std::env::temp_dir().join(format!("haul-bench-record-{}", std::process::id()));
        record.write_so_far(&dir).unwrap();
        assert_eq!(BenchRunResults::read(&dir.join("2026-01-02-host-unfinished.json")).unwrap(), record);
        let path = record.write(&dir).unwrap();
        assert!(path.ends_with("2026-01-02-host.json"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        assert_eq!(BenchRunResults::read(&path).unwrap(), record);
        let newer = std::fs::read_to_string(&path).unwrap().replace("\"schema\": 1", "\"schema\": 2");
        std::fs::write(&path, newer).unwrap();
        assert!(BenchRunResults::read(&path).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
