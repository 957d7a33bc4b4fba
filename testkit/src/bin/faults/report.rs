//! Prints the report of `faults` and writes the file of raw results.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::Result;
use crate::body_digest_and_memory::CheckedDownloadResult;
use crate::fault_matrix::FaultRowTally;
use crate::kills::KillTally;
use crate::options::FaultOptions;

pub(crate) fn print_head() {
    println!(
        "{:38} {:>6} {:>9} {:>8} {:>15} {:>11} {:>10} {:>6} {:>8}",
        "row", "tried", "survived", "refused", "false-successes", "wrong-bytes", "unexpected", "hangs", "parallel"
    );
}

pub(crate) fn print_row(tally: &FaultRowTally, quiet: bool) {
    if quiet && tally.is_right() {
        return;
    }
    println!(
        "{:38} {:>6} {:>9} {:>8} {:>15} {:>11} {:>10} {:>6} {:>8}{}",
        tally.name,
        tally.tried,
        tally.survived,
        tally.refused,
        tally.false_successes,
        tally.wrong_bytes,
        tally.unexpected,
        tally.hangs,
        tally.parallel,
        if tally.is_right() { "" } else { "  FALSE" },
    );
    if let Some(failure) = tally.failures.first() {
        println!("    {failure}");
    }
}

pub(crate) fn print_size(size: &CheckedDownloadResult, quiet: bool) {
    if quiet && size.is_right() {
        return;
    }
    let code = size.code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
    println!(
        "{:44} sha256 {:5} exit {code:6} peak {:5.1} MiB{}",
        size.name,
        if size.equal { "equal" } else { "OTHER" },
        size.rss as f64 / f64::from(1 << 20),
        if size.is_right() { "" } else { "  FALSE" },
    );
}

pub(crate) fn print_summary(rows: &[FaultRowTally], kills: &KillTally, sizes: &[CheckedDownloadResult], right: bool) {
    if kills.tried > 0 {
        println!(
            "kills: {} tried, {} killed, {} survived, {} wrong hash, {} not done, {} over bound, {} bytes twice",
            kills.tried, kills.killed, kills.survived, kills.wrong_hash, kills.not_done, kills.over_limit, kills.twice
        );
        kills.failures.iter().for_each(|failure| println!("    {failure}"));
    }
    let sum = |count: fn(&FaultRowTally) -> u64| rows.iter().map(count).sum::<u64>();
    println!(
        "{} rows, {} tried: {} survived, {} refused, {} false successes, {} wrong bytes, {} unexpected, {} hangs; {} sizes, {} false",
        rows.len(),
        sum(|tally| tally.tried),
        sum(|tally| tally.survived),
        sum(|tally| tally.refused),
        sum(|tally| tally.false_successes),
        sum(|tally| tally.wrong_bytes),
        sum(|tally| tally.unexpected),
        sum(|tally| tally.hangs),
        sizes.len(),
        sizes.iter().filter(|size| !size.is_right()).count(),
    );
    println!("{}", if right { "all true" } else { "FALSE" });
}

/// Writes the results as JSON to the file that the options name, by default a dated file in
/// bench/results. An empty file name turns this off.
pub(crate) fn write(options: &FaultOptions, mut value: Value) -> Result<()> {
    let said = |program: &str, argument: &str| -> Result<String> {
        Ok(String::from_utf8(Command::new(program).arg(argument).output()?.stdout)?.trim().to_owned())
    };
    let date = said("date", "+%F")?;
    let path = options.json.clone().unwrap_or_else(|| PathBuf::from(format!("bench/results/faults-{date}.json")));
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    value["date"] = date.into();
    value["machine"] = said("uname", "-srm")?.into();
    value["command"] = options.command().into();
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(&path, serde_json::to_string_pretty(&value)? + "\n")?;
    println!("raw figures: {}", path.display());
    Ok(())
}
