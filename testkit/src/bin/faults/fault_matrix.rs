//! Runs every fault × HTTP/1, 2 or 3 × plain or TLS × pipe or file × one stream or split, at random
//! offsets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::faulty::FaultPlan;
use testkit::rng::{Rng, mix};

use crate::content_checker::{self, ContentChecker};
use crate::fault_cases::{FAULTS, FaultCase, FaultRandomChoices, TestedVersion};
use crate::run_haul_with_time_limit::{ChildOutcome, HaulCommand};
use crate::{FaultRunner, Result, report};

/// The content of the output file before haul runs. The file exists only in every second run.
const EARLIER_CONTENT: &[u8] = b"what was there before\n";
/// The versions of HTTP, each with a number that becomes part of the random seed of a run. Runs of
/// the same fault over different versions thus make different random choices.
const VERSIONS: [(TestedVersion, u64); 3] =
    [(TestedVersion::Http1, 0), (TestedVersion::Http2, 1 << 32), (TestedVersion::Http3, 2 << 32)];
/// The maximum number of failed runs of a row of the report (a fault under the same conditions)
/// whose messages are kept.
const MAX_SHOWN_SEEDS: usize = 5;

/// A row of the report: a fault of the fault table ([`FAULTS`]), and the conditions under which
/// haul runs with this fault (HTTP version, TLS, output to a file or a pipe, one stream or a split
/// download).
struct FaultRunConditions {
    fault: &'static FaultCase,
    /// The index of the fault in [`FAULTS`]. It is part of the random seed of each run, so that the
    /// random choices of a row do not depend on which other rows are run.
    number: u64,
    version: TestedVersion,
    /// The number of the HTTP version in [`VERSIONS`]. The random seed of each run depends on it.
    version_seed: u64,
    tls: bool,
    file: bool,
    one_stream: bool,
}

/// The results of all runs of one row of the report.
#[derive(Default)]
pub(crate) struct FaultRowTally {
    pub(crate) name: String,
    pub(crate) tried: u64,
    /// The number of runs with exit code 0 and correct output.
    pub(crate) survived: u64,
    /// The number of runs that failed with an acceptable exit code and did no harm. No harm means
    /// that the pipe received a prefix of a correct body, or that the output file is unchanged.
    pub(crate) refused: u64,
    /// The number of runs with exit code 0, but wrong output.
    pub(crate) false_successes: u64,
    /// The number of failed runs that did harm: the pipe received bytes that are not a prefix of a
    /// correct body, or the output file changed.
    pub(crate) wrong_bytes: u64,
    /// The number of failed runs with an exit code that is not acceptable for the fault, but
    /// without wrong bytes: the pipe received a prefix of a correct body, or the output file is
    /// unchanged.
    pub(crate) unexpected: u64,
    pub(crate) hangs: u64,
    /// The number of runs in which haul fetched parts over several connections.
    pub(crate) parallel: u64,
    codes: BTreeMap<i32, u64>,
    /// The messages of this row's first failed runs.
    pub(crate) failures: Vec<String>,
}

impl FaultRowTally {
    pub(crate) fn is_right(&self) -> bool {
        self.false_successes + self.wrong_bytes + self.unexpected + self.hangs == 0
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "row": self.name,
            "tried": self.tried,
            "survived": self.survived,
            "refused": self.refused,
            "false_successes": self.false_successes,
            "wrong_bytes": self.wrong_bytes,
            "unexpected": self.unexpected,
            "hangs": self.hangs,
            "parallel": self.parallel,
            "codes": self.codes.iter().map(|(code, count)| (code.to_string(), json!(count))).collect::<serde_json::Map<_, _>>(),
            "failures": self.failures,
        })
    }
}

/// The verdict on one run of haul for one row of the fault table.
enum FaultRowVerdict {
    Survived,
    Refused,
    FalseSuccess,
    WrongBytes,
    Unexpected,
    Hung,
}

struct FaultRowTry {
    verdict: FaultRowVerdict,
    code: i32,
    parallel: bool,
    description: String,
}

pub(crate) fn run_all(bench: &FaultRunner) -> Result<Vec<FaultRowTally>> {
    let rows = rows(&bench.options.rows);
    let tries = bench.options.offsets;
    if tries == 0 {
        return Ok(Vec::new());
    }
    report::print_head();
    let next = AtomicUsize::new(0);
    let tallies: Vec<_> =
        rows.iter().map(|row| FaultRowTally { name: row.name(), ..FaultRowTally::default() }).collect();
    let shared = Mutex::new((tallies, 0));
    let work = || -> Result<()> {
        loop {
            let job = next.fetch_add(1, SeqCst);
            let (row, number) = (job / tries as usize, job as u64 % tries);
            let Some(cell) = rows.get(row) else { return Ok(()) };
            let result = cell.run(bench, number)?;
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (tallies, printed) = &mut *shared;
            tallies[row].add(result);
            // In the order of the table, whichever row is done first.
            while tallies.get(*printed).is_some_and(|tally| tally.tried == tries) {
                report::print_row(&tallies[*printed], bench.options.quiet);
                *printed += 1;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..bench.options.jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}

fn rows(wanted: &[String]) -> Vec<FaultRunConditions> {
    let mut rows = Vec::new();
    for (number, fault) in (0..).zip(FAULTS) {
        for (version, version_seed) in VERSIONS.into_iter().filter(|(version, _)| fault.over.contain(*version)) {
            for bits in 0..8 {
                let (tls, file, one_stream) = (bits & 4 != 0, bits & 2 != 0, bits & 1 != 0);
                if tls || version != TestedVersion::Http3 {
                    rows.push(FaultRunConditions { fault, number, version, version_seed, tls, file, one_stream });
                }
            }
        }
    }
    rows.retain(|row| wanted.is_empty() || wanted.iter().any(|part| row.name().contains(part.as_str())));
    rows
}

impl FaultRunConditions {
    fn name(&self) -> String {
        let choose = |set, yes, no| if set { yes } else { no };
        let (link, sink) = (choose(self.tls, "tls", "plain"), choose(self.file, "file", "pipe"));
        let version = match self.version {
            TestedVersion::Http1 => "",
            TestedVersion::Http2 => "-h2",
            TestedVersion::Http3 => "-h3",
        };
        format!("{}/{link}{version}/{sink}/{}", self.fault.name, choose(self.one_stream, "one", "split"))
    }

    /// Performs the run of this row with the index `number`. Equal seeds and numbers give equal
    /// runs.
    fn run(&self, bench: &FaultRunner, number: u64) -> Result<FaultRowTry> {
        let options = &bench.options;
        let bits = u64::from(self.tls) << 2 | u64::from(self.file) << 1 | u64::from(self.one_stream);
        let seed = mix(options.seed, mix((self.number << 3 | bits) + self.version_seed, number));
        let mut plan =
            FaultPlan { size: options.body, rate: Some(options.rate), seed: seed >> 32, ..FaultPlan::default() };
        let mut chance = FaultRandomChoices::new(Rng::new(seed), plan.size);
        (self.fault.make)(&mut chance, &mut plan);

        let name = format!("{}-{number}", self.name().replace('/', "-"));
        let origin = match self.version {
            TestedVersion::Http1 => &bench.origin,
            TestedVersion::Http2 => &bench.origin_h2,
            TestedVersion::Http3 => &bench.origin_h3,
        };
        let path = origin.serve(&name, plan.clone());
        let dir = tempfile::tempdir_in(bench.work.path())?;
        let file = dir.path().join("out");
        let before = number % 2 == 1;
        if self.file && before {
            std::fs::write(&file, EARLIER_CONTENT)?;
        }
        let job = HaulCommand {
            url: if self.tls { origin.https_url(&path) } else { origin.url(&path) },
            file: self.file.then(|| file.clone()),
            more: Vec::new(),
            version: self.version,
            one_stream: self.one_stream,
            // haul's own time limit is shorter, because a run that the hard limit ends counts as a
            // hang.
            max_time: self.fault.max_time.unwrap_or(Duration::MAX).min(options.limit * 2 / 3),
            limit: options.limit,
            reader: None,
        };
        let mut checker = ContentChecker::for_plan(&plan);
        let outcome = bench.haul.run(&job, |bytes| checker.add(bytes))?;
        let verdict = if self.file {
            self.judge_file(&outcome, checker, &plan, &file, before)?
        } else {
            self.judge_pipe(&outcome, checker, &plan)
        };
        let seen = origin.seen(&name);
        origin.remove_plan(&name);
        let code = outcome.code.unwrap_or(-1);
        Ok(FaultRowTry {
            code,
            parallel: seen.connections > 1 && requested_parts_with_end(&seen),
            description: format!(
                "try {number}: {} → exit {code}: {}; asked {}",
                plan.query(),
                outcome.error_output,
                requests_text(&seen)
            ),
            verdict,
        })
    }

    fn judge_pipe(&self, outcome: &ChildOutcome, checker: ContentChecker, plan: &FaultPlan) -> FaultRowVerdict {
        let found = checker.finish();
        let right = found.whole
            && (!has_one_content(plan) || found.sha256.as_ref() == content_checker::source_digest(plan).as_ref());
        self.judge(outcome, right, found.prefix)
    }

    fn judge_file(
        &self,
        outcome: &ChildOutcome,
        mut checker: ContentChecker,
        plan: &FaultPlan,
        file: &Path,
        before: bool,
    ) -> Result<FaultRowVerdict> {
        if outcome.code == Some(0) && file.exists() {
            checker.add_file(file)?;
            return Ok(self.judge_pipe(outcome, checker, plan));
        }
        let untouched =
            if before { std::fs::read(file).is_ok_and(|held| held == EARLIER_CONTENT) } else { !file.exists() };
        Ok(self.judge(outcome, false, untouched))
    }

    fn judge(&self, outcome: &ChildOutcome, right: bool, harmless: bool) -> FaultRowVerdict {
        match outcome.code {
            _ if outcome.hung => FaultRowVerdict::Hung,
            Some(0) if right => FaultRowVerdict::Survived,
            Some(0) => FaultRowVerdict::FalseSuccess,
            _ if !harmless => FaultRowVerdict::WrongBytes,
            Some(code) if self.fault.allows(code, self.version) => FaultRowVerdict::Refused,
            _ => FaultRowVerdict::Unexpected,
        }
    }
}

/// Returns `true` if the fault plan (the faults that the server simulates) allows only one correct
/// content, so that the hash of haul's output can be compared.
fn has_one_content(plan: &FaultPlan) -> bool {
    plan.change.is_none() && plan.whole_length >= 0
}

/// Returns `true` if the client requested ranges with an end, as a split download does for its
/// parts. (A resumed download requests a range without an end.)
fn requested_parts_with_end(seen: &testkit::faulty::FaultyRequestLog) -> bool {
    let ends = seen.requests.iter().filter_map(|asking| asking.range.as_deref());
    // A resumed download requests all remaining bytes; a split one requests ranges with an end.
    ends.filter(|range| !range.ends_with('-')).count() > 0
}

fn requests_text(seen: &testkit::faulty::FaultyRequestLog) -> String {
    let one = |asking: &testkit::faulty::AnsweredRequest| {
        format!("{}={}", asking.range.as_deref().unwrap_or("all"), asking.status)
    };
    seen.requests.iter().take(12).map(one).collect::<Vec<_>>().join(" ")
}

impl FaultRowTally {
    fn add(&mut self, result: FaultRowTry) {
        self.tried += 1;
        self.parallel += u64::from(result.parallel);
        *self.codes.entry(result.code).or_default() += 1;
        let (count, what) = match result.verdict {
            FaultRowVerdict::Survived => (&mut self.survived, None),
            FaultRowVerdict::Refused => (&mut self.refused, None),
            FaultRowVerdict::FalseSuccess => (&mut self.false_successes, Some("false success")),
            FaultRowVerdict::WrongBytes => (&mut self.wrong_bytes, Some("wrong bytes")),
            FaultRowVerdict::Unexpected => (&mut self.unexpected, Some("unexpected exit")),
            FaultRowVerdict::Hung => (&mut self.hangs, Some("hang")),
        };
        *count += 1;
        if let Some(what) = what
            && self.failures.len() < MAX_SHOWN_SEEDS
        {
            self.failures.push(format!("{what}: {}", result.description));
        }
    }
}
