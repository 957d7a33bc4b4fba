//! Checks SHA-256 and peak memory for bodies of many sizes, and with a slow reader.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::faulty::FaultPlan;

use crate::content_checker::{self, ContentChecker};
use crate::fault_cases::TestedVersion;
use crate::run_haul_with_time_limit::HaulCommand;
use crate::{FaultRunner, Result, report};

/// The largest allowed peak memory of a run of haul, in bytes.
pub(crate) const MAX_RSS: u64 = 32 << 20;
/// The rate at which a slow reader reads haul's output, in bytes a second.
const SLOW_RATE: u64 = 1_000_000;

/// The result of one download by haul: exit code, output and peak memory.
pub(crate) struct CheckedDownloadResult {
    pub(crate) name: String,
    pub(crate) equal: bool,
    pub(crate) code: Option<i32>,
    pub(crate) hung: bool,
    pub(crate) rss: u64,
    sha256: String,
    error_output: String,
}

impl CheckedDownloadResult {
    pub(crate) fn is_right(&self) -> bool {
        self.equal && self.code == Some(0) && self.rss <= MAX_RSS
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "run": self.name,
            "equal": self.equal,
            "exit": self.code,
            "hung": self.hung,
            "rss_bytes": self.rss,
            "sha256": self.sha256,
            "error_output": self.error_output,
        })
    }
}

pub(crate) fn run_all(bench: &FaultRunner) -> Result<Vec<CheckedDownloadResult>> {
    let mut out = Vec::new();
    for &size in &bench.options.sizes {
        let plan = FaultPlan { size, seed: size, ..FaultPlan::default() };
        let source = content_checker::hex(&content_checker::source_digest(&plan));
        for bits in 0..8 {
            let size = run_once(bench, &plan, &source, bits, None)?;
            report::print_size(&size, bench.options.quiet);
            out.push(size);
        }
    }
    if bench.options.slow_body > 0 {
        let plan = FaultPlan { size: bench.options.slow_body, seed: bench.options.slow_body, ..FaultPlan::default() };
        let source = content_checker::hex(&content_checker::source_digest(&plan));
        // These runs are concurrent, because they only wait.
        let slow = thread::scope(|scope| {
            let (plan, source) = (&plan, &source);
            let runs: Vec<_> = [0, 1, 4, 5]
                .map(|bits| scope.spawn(move || run_once(bench, plan, source, bits, Some(SLOW_RATE))))
                .into();
            runs.into_iter().map(|run| run.join().map_err(|_| "a run panicked")?).collect::<Result<Vec<_>>>()
        })?;
        slow.iter().for_each(|size| report::print_size(size, bench.options.quiet));
        out.extend(slow);
    }
    Ok(out)
}

/// Downloads the body with the faults that `plan` describes once, and compares the SHA-256 of the
/// output with `source`, the SHA-256 of the correct body in hex. `reader` is the rate in bytes a
/// second at which the output pipe is read; `None` means no limit.
///
/// `bits` is the sum of these numbers:
/// * 4: over TLS
/// * 2: to a file instead of a pipe
/// * 1: with a single stream
fn run_once(
    bench: &FaultRunner,
    plan: &FaultPlan,
    source: &str,
    bits: u8,
    reader: Option<u64>,
) -> Result<CheckedDownloadResult> {
    let (tls, to_file, one_stream) = (bits & 4 != 0, bits & 2 != 0, bits & 1 != 0);
    let name = format!("{}-{bits}-{}", plan.size, reader.unwrap_or(0));
    let path = bench.origin.serve(&name, plan.clone());
    let dir = tempfile::tempdir_in(bench.work.path())?;
    let file = dir.path().join("out");
    // A loaded machine moves 10 MB/s.
    let max_time = Duration::from_secs(60 + plan.size / reader.map_or(10_000_000, |rate| rate / 3));
    let job = HaulCommand {
        url: if tls { bench.origin.https_url(&path) } else { bench.origin.url(&path) },
        file: to_file.then(|| file.clone()),
        more: Vec::new(),
        version: TestedVersion::Http1,
        one_stream,
        max_time,
        limit: max_time + Duration::from_secs(10),
        reader,
    };
    let mut checker = ContentChecker::for_plan(plan);
    let outcome = bench.haul.run(&job, |bytes| checker.add(bytes))?;
    if to_file && file.exists() {
        checker.add_file(&file)?;
    }
    let sha256 = content_checker::hex(&checker.finish().sha256);
    bench.origin.remove_plan(&name);
    Ok(CheckedDownloadResult {
        name: format!(
            "{} bytes/{}/{}/{}{}",
            plan.size,
            if tls { "tls" } else { "plain" },
            if to_file { "file" } else { "pipe" },
            if one_stream { "one" } else { "split" },
            if reader.is_some() { "/slow reader" } else { "" },
        ),
        equal: sha256 == source,
        code: outcome.code,
        hung: outcome.hung,
        rss: outcome.rss,
        sha256,
        error_output: outcome.error_output,
    })
}
