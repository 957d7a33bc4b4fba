//! Instructions of fixed cases, by callgrind, against what is recorded in `bench/instructions.json`: a guard against cost that
//! creeps in, which no other load of the machine can set off.
//!
//! ```text
//! bench instructions              fails if a case takes 3 % more than recorded
//! bench instructions --record     writes down what it takes now
//! ```
//!
//! Counts are those of one compiler on one kind of processor: against a record of another one nothing is compared, and
//! that is said. Without valgrind, too. The cases run against the embedded origin of another process, which nothing counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};
use testkit::origin::Origin;

use crate::jobs::home;
use crate::{Result, tools};

/// How much more is still the same.
const TOLERANCE: f64 = 0.03;
/// Runs of a case, of which the least counts: how the pieces of a body arrive is not the same each time.
const RUNS: usize = 3;
/// The length of the larger body.
const BODY: u64 = 8 << 20;
const MANY: usize = 1_000;

/// What was counted, and where.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Counts {
    /// What `rustc -V` said.
    compiler: String,
    /// The kind of processor, in the words of its vendor: libraries choose their code by it.
    processor: String,
    cases: BTreeMap<String, u64>,
}

/// Does what `arguments` say; they are those after `instructions`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let record = match arguments {
        [] => false,
        [word] if word == "--record" => true,
        _ => return Err("instructions [--record]".into()),
    };
    let path = home().join("instructions.json");
    let Some(valgrind) = tools::find("valgrind") else {
        println!("instructions: skipped: valgrind is not installed");
        return Ok(ExitCode::SUCCESS);
    };
    let (compiler, processor) = (tools::said("rustc", &["-V"]), crate::host::this(None).cpu);
    let old: Option<Counts> = std::fs::read(&path).ok().map(|text| serde_json::from_slice(&text)).transpose()?;
    if !record && let Some(old) = &old
        && (&old.compiler, &old.processor) != (&compiler, &processor)
    {
        println!(
            "instructions: skipped: recorded with {} on {}, not {compiler} on {processor}",
            old.compiler, old.processor
        );
        return Ok(ExitCode::SUCCESS);
    }
    let new = Counts { compiler, processor, cases: count(&valgrind)? };
    if record {
        std::fs::write(&path, serde_json::to_string_pretty(&new)? + "\n")?;
        println!("recorded in {}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let old = old.ok_or("nothing is recorded yet: bench instructions --record")?;
    let wrong = compare(&old.cases, &new.cases);
    for line in &wrong {
        eprintln!("instructions: {line}");
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is not as it was: more than before, or cases of one side alone.
fn compare(old: &BTreeMap<String, u64>, new: &BTreeMap<String, u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (case, &now) in new {
        match old.get(case) {
            None => wrong.push(format!("{case} is not recorded: bench instructions --record")),
            Some(&then) => {
                let change = (now as f64 / then as f64 - 1.0) * 100.0;
                println!("{case:24} {now:>12}  {change:+.1} %");
                if now as f64 > then as f64 * (1.0 + TOLERANCE) {
                    wrong.push(format!("{case}: {now} instructions, {change:.1} % more than the {then} recorded"));
                } else if (now as f64) < then as f64 * (1.0 - TOLERANCE) {
                    println!("{case} takes less than recorded: bench instructions --record keeps it so");
                }
            }
        }
    }
    wrong.extend(old.keys().filter(|case| !new.contains_key(*case)).map(|case| format!("{case} is no longer counted")));
    wrong
}

/// Runs every case.
fn count(valgrind: &Path) -> Result<BTreeMap<String, u64>> {
    let origin = Origin::builder().record(false).start()?;
    let work = home().join("work").join("instructions");
    std::fs::create_dir_all(&work)?;
    let (ca, list) = (work.join("ca.pem"), work.join("list"));
    std::fs::write(&ca, origin.ca_pem())?;
    let urls: Vec<String> = (0..MANY).map(|n| origin.url(&format!("/small/{n}")) + "\n").collect();
    std::fs::write(&list, urls.concat())?;
    let (ca, list) = (ca.display().to_string(), list.display().to_string());
    let body = format!("/bytes/{BODY}");
    let get = |url: String| ["-s", "-o", "/dev/null", "--cacert", &ca, &url].map(str::to_owned).to_vec();
    let cases = [
        ("startup", vec!["--version".to_owned()]),
        ("get", get(origin.url("/small"))),
        ("get-tls", get(origin.https_url("/small"))),
        (
            "get-1000",
            ["-s", "--threads", "1", "--unordered", "-o", "/dev/null", "--input-file", &list].map(str::to_owned).to_vec(),
        ),
        ("get-8MiB", [vec!["--split".to_owned(), "1".to_owned()], get(origin.url(&body))].concat()),
        ("get-8MiB-tls", [vec!["--split".to_owned(), "1".to_owned()], get(origin.https_url(&body))].concat()),
    ];
    let haul = haul()?;
    let mut counts = BTreeMap::new();
    for (case, arguments) in cases {
        let runs: Result<Vec<u64>> = (0..RUNS).map(|_| instructions(valgrind, &haul, &arguments)).collect();
        counts.insert(case.to_owned(), runs?.into_iter().min().unwrap_or(0));
    }
    Ok(counts)
}

/// The haul that was built along with this program.
fn haul() -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("haul");
    if beside.is_file() { Ok(beside) } else { Err(format!("{} is not built", beside.display()).into()) }
}

fn instructions(valgrind: &Path, haul: &Path, arguments: &[String]) -> Result<u64> {
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(haul)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("haul {}: {said}", arguments.join(" ")).into());
    }
    collected(&said).ok_or_else(|| format!("callgrind did not say how many: {said}").into())
}

/// The number in `==1== Collected : 1234`.
fn collected(said: &str) -> Option<u64> {
    said.lines().find(|line| line.contains("Collected"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_says_is_read() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 812345\n"), Some(812_345));
        assert_eq!(collected("==7== no\n"), None);
    }

    #[test]
    fn three_in_a_hundred_is_the_same_and_four_is_more() {
        let counts = |now| BTreeMap::from([("get".to_owned(), now)]);
        let old = counts(1_000);
        for same in [1_000, 1_030, 500] {
            assert!(compare(&old, &counts(same)).is_empty(), "{same}");
        }
        assert_eq!(compare(&old, &counts(1_040)), ["get: 1040 instructions, 4.0 % more than the 1000 recorded"]);
        assert_eq!(compare(&BTreeMap::new(), &old).len(), 1);
        assert_eq!(compare(&old, &BTreeMap::new()).len(), 1);
    }
}
