//! Runs the program haul against the fault origin, row by row, and reports the results.
//!
//! ```text
//! faults --haul target/release/haul --offsets 100 --kills 200 --sizes 1,13M,5G
//! ```
//!
//! The runner uses haul only as a program, given by its path. It has three parts. *Rows* run each
//! fault × HTTP/1, 2 or 3 × plain or TLS × pipe or file × split or not, at random offsets. *Kills*
//! kill haul with SIGKILL in the middle of a download, and run the same command again. *Sizes*
//! check SHA-256 and peak memory.

mod body_digest_and_memory;
mod content_checker;
mod fault_cases;
mod fault_matrix;
mod kills;
mod options;
mod report;
mod run_haul_with_time_limit;

use std::error::Error;
use std::process::ExitCode;

use serde_json::json;
use testkit::faulty::FaultyOrigin;
use testkit::http3::Http3Settings;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The settings and servers that the three parts of the program share: the fault table, the kills
/// of haul, and the body sizes.
struct FaultRunner {
    options: options::FaultOptions,
    haul: run_haul_with_time_limit::HaulProgram,
    origin: FaultyOrigin,
    origin_h2: FaultyOrigin,
    origin_h3: FaultyOrigin,
    work: tempfile::TempDir,
}

fn main() -> Result<ExitCode> {
    let Some(options) = options::parse()? else {
        print!("{}", options::USAGE);
        return Ok(ExitCode::SUCCESS);
    };
    if options.list {
        fault_cases::print_faults();
        return Ok(ExitCode::SUCCESS);
    }
    let work = tempfile::Builder::new().prefix("haul-faults").tempdir_in(&options.work)?;
    let origin = FaultyOrigin::builder().start()?;
    let origin_h2 = FaultyOrigin::builder().http2().start()?;
    let origin_h3 = FaultyOrigin::builder().http3(Http3Settings::new()).start()?;
    let trusted = [&origin, &origin_h2, &origin_h3].map(FaultyOrigin::ca_pem).concat();
    let haul = run_haul_with_time_limit::HaulProgram::probe(&options.haul, work.path(), &trusted)?;
    println!("{} · seed {} · {} offsets a row", haul.version, options.seed, options.offsets);
    if !haul.splits {
        println!("this haul has no --split: the rows of it are run as it is");
    }
    let bench = FaultRunner { options, haul, origin, origin_h2, origin_h3, work };

    // The sizes run first, while this process is small: see `ChildOutcome::rss`.
    let sizes = body_digest_and_memory::run_all(&bench)?;
    let rows = fault_matrix::run_all(&bench)?;
    let kills = kills::run_all(&bench)?;
    let right = sizes.iter().all(body_digest_and_memory::CheckedDownloadResult::is_right)
        && rows.iter().all(fault_matrix::FaultRowTally::is_right)
        && kills.is_right();
    let value = json!({
        "haul": bench.haul.version,
        "split": bench.haul.splits,
        "seed": bench.options.seed,
        "body": bench.options.body,
        "rate": bench.options.rate,
        "sizes": sizes.iter().map(body_digest_and_memory::CheckedDownloadResult::to_json).collect::<Vec<_>>(),
        "rows": rows.iter().map(fault_matrix::FaultRowTally::to_json).collect::<Vec<_>>(),
        "kills": kills.to_json(),
        "right": right,
    });
    report::write(&bench.options, value)?;
    report::print_summary(&rows, &kills, &sizes, right);
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
