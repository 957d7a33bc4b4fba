//! Detects gradually growing work: counts the instructions of fixed cases with callgrind, and
//! compares them with a baseline in the repository (`bench/instructions.json`). Unlike times, the
//! counts are the same on a busy machine.
//!
//! ```text
//! bench instructions            compare; more than 3 % above the baseline is a failure
//! bench instructions --update   write the present counts as the new baseline
//! ```
//!
//! The cost of one request is the difference between two runs with different numbers of requests.
//! With another compiler or C library the counts differ. In that case they are printed, and the
//! comparison cannot fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use crate::jobs::{c_requests, home};
use crate::server::SiteServer;
use crate::{Result, installed_programs, tls_files};

/// The largest accepted increase of an instruction count over the baseline, as a fraction. A
/// decrease of more than this fraction is reported.
const TOLERANCE: f64 = 0.03;

/// The number of runs of each case. The smallest count of these runs is used. Counts vary, because
/// one read of a socket may return more or fewer bytes.
const RUNS: usize = 3;

/// A case of `bench instructions`: a command whose instructions are counted.
struct InstructionCountCase {
    name: &'static str,
    about: &'static str,
    /// Returns the command line for fetching this number of pages from the server. Its first word
    /// is the path of a program, or a name in PATH.
    argv: fn(&SiteServer, usize) -> Vec<String>,
    /// The numbers of requests in a short run and a long run. The instructions of one request are
    /// computed from the difference of the two runs. If the first number is 0, only the long run is
    /// made, and all its instructions are the result.
    requests: (usize, usize),
}

const CASES: &[InstructionCountCase] = &[
    InstructionCountCase { name: "startup", about: "haul --version", argv: version, requests: (0, 1) },
    InstructionCountCase { name: "get", about: "haul: one GET of 6 B", argv: get, requests: (0, 1) },
    InstructionCountCase { name: "get-tls", about: "haul: one GET of 6 B by TLS", argv: get_tls, requests: (0, 1) },
    InstructionCountCase {
        name: "get-many",
        about: "haul: each of many small GETs",
        argv: get_many,
        requests: (100, 1100),
    },
    InstructionCountCase { name: "body", about: "haul: 8 MiB, thrown away", argv: body, requests: (0, 1) },
    InstructionCountCase {
        name: "body-tls",
        about: "haul: 8 MiB by TLS, thrown away",
        argv: body_tls,
        requests: (0, 1),
    },
    InstructionCountCase {
        name: "c-first",
        about: "libhaul: loaded, one GET of 300 B, freed",
        argv: c_small,
        requests: (0, 1),
    },
    InstructionCountCase {
        name: "c-small",
        about: "libhaul: GET of 300 B on a warm connection",
        argv: c_small,
        requests: (100, 600),
    },
    InstructionCountCase {
        name: "c-post",
        about: "libhaul: POST of a form of 42 B",
        argv: c_post,
        requests: (100, 600),
    },
    InstructionCountCase { name: "c-large", about: "libhaul: GET of 1 MB", argv: c_large, requests: (5, 25) },
];

/// The length in bytes of the large body that the haul command fetches.
const BODY: usize = 8 << 20;

fn version(_: &SiteServer, _: usize) -> Vec<String> {
    haul(&["--version"])
}

fn get(server: &SiteServer, _: usize) -> Vec<String> {
    haul(&["-s", "-o", "/dev/null", &format!("http://{}/small", server.addr)])
}

fn get_tls(server: &SiteServer, _: usize) -> Vec<String> {
    haul(&["-s", "-o", "/dev/null", "--cacert", tls_files::CA, &format!("https://{}/small", server.tls)])
}

/// Returns the command line with which haul fetches `count` pages in one thread. With two threads,
/// the division of the work between them would vary.
fn get_many(server: &SiteServer, count: usize) -> Vec<String> {
    let urls = format!("http://{}/small/[1-{count}]", server.addr);
    haul(&["-s", "--threads", "1", "--unordered", "-o", "/dev/null", &urls])
}

fn body(server: &SiteServer, _: usize) -> Vec<String> {
    haul(&["-s", "--split", "1", "-o", "/dev/null", &format!("http://{}/bytes/{BODY}", server.addr)])
}

fn body_tls(server: &SiteServer, _: usize) -> Vec<String> {
    let url = format!("https://{}/bytes/{BODY}", server.tls);
    haul(&["-s", "--split", "1", "-o", "/dev/null", "--cacert", tls_files::CA, &url])
}

/// Returns the command line of the haul that was built together with the bench program.
fn haul(arguments: &[&str]) -> Vec<String> {
    std::iter::once(installed_programs::built_haul_path().unwrap_or_default().display().to_string())
        .chain(arguments.iter().map(|&word| word.to_owned()))
        .collect()
}

fn c_small(server: &SiteServer, count: usize) -> Vec<String> {
    c_requests::argv(server, "/bytes/300", count, None)
}

fn c_post(server: &SiteServer, count: usize) -> Vec<String> {
    c_requests::argv(server, "/bytes/300", count, Some(c_requests::FORM))
}

fn c_large(server: &SiteServer, count: usize) -> Vec<String> {
    c_requests::argv(server, "/bytes/1000000", count, None)
}

/// Runs `bench instructions`: compares the counts with the baseline, or writes a new baseline.
/// `arguments` are the words of the command line after `instructions`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let is_update = match arguments {
        [] => false,
        [word] if word == "--update" => true,
        _ => return Err("bench instructions [--update]".into()),
    };
    if installed_programs::find("valgrind").is_none() {
        println!("SKIPPED: instructions cannot be counted, valgrind is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let work = home().join("work").join("instructions");
    fs::create_dir_all(&work)?;
    c_requests::compile(&work)?;
    let server = SiteServer::embedded(testkit::site::GeneratedSite::scaled(1, 12), &work)?;
    let old = InstructionBaseline::load()?;
    let made_by = compiler_version();
    let is_comparable = old.made_by == made_by;
    if !is_comparable && !is_update {
        println!("the baseline is of {}, this is {made_by}: nothing fails", old.made_by);
    }
    let mut counts = BTreeMap::new();
    let mut has_failed = false;
    for case in CASES {
        let before = old.counts.get(case.name).copied().filter(|_| !is_update);
        let mut least = u64::MAX;
        for _ in 0..RUNS {
            least = least.min(case.count(&server, &work)?);
            if before.is_some_and(|before| change(before, least) <= TOLERANCE) {
                break;
            }
        }
        counts.insert(case.name.to_owned(), least);
        let (verdict, is_worse) = compare_with_baseline(before, least);
        println!("{:12} {least:>10}  {verdict:24} {}", case.name, case.about);
        has_failed |= is_worse && is_comparable;
    }
    if is_update {
        InstructionBaseline { made_by, counts }.save()?;
    } else if has_failed {
        println!("more instructions than the baseline: find out why, or bench instructions --update and say why");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

impl InstructionCountCase {
    /// Returns the number of instructions that the case needs for one request. The number is
    /// computed from a short run and a long run. If the short run has 0 requests, only the long run
    /// is made, and the number of all its instructions is returned.
    fn count(&self, server: &SiteServer, work: &std::path::Path) -> Result<u64> {
        let (few, many) = self.requests;
        let all = instructions(&(self.argv)(server, many), work)?;
        if few == 0 {
            return Ok(all);
        }
        let some = instructions(&(self.argv)(server, few), work)?;
        Ok(all.saturating_sub(some) / (many - few) as u64)
    }
}

/// Returns the number of instructions that callgrind counts while `argv` runs in the directory
/// `work`.
fn instructions(argv: &[String], work: &std::path::Path) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(argv)
        .current_dir(work)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match count {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("{} cannot be counted: {said}", argv.join(" ")).into()),
    }
}

/// Returns the increase from `before` to `now`, as a fraction of `before`; negative for a decrease.
fn change(before: u64, now: u64) -> f64 {
    // The quotient minus 1 would exceed 0.03 for 1030 and 1000, because of rounding.
    (now as f64 - before as f64) / before as f64
}

/// Compares a count with its baseline `before`, if there is one. Returns the text to print, and
/// `true` if the count has grown by more than [`TOLERANCE`].
fn compare_with_baseline(before: Option<u64>, now: u64) -> (String, bool) {
    let Some(before) = before else { return ("new".to_owned(), false) };
    let change = change(before, now);
    let percent = format!("{:+.1} %", change * 100.0);
    if change > TOLERANCE {
        (format!("{percent} WORSE than {before}"), true)
    } else if change < -TOLERANCE {
        (format!("{percent}, --update"), false)
    } else {
        (percent, false)
    }
}

/// Returns a text that names everything on which the counts depend: the architecture, and the
/// versions of rustc and the C library.
fn compiler_version() -> String {
    [
        installed_programs::output_of_command("rustc", &["-V"]),
        installed_programs::output_of_command("getconf", &["GNU_LIBC_VERSION"]),
        std::env::consts::ARCH.to_owned(),
    ]
    .join(", ")
}

/// The instruction counts of an earlier run, as stored in the repository.
#[derive(Default)]
struct InstructionBaseline {
    made_by: String,
    counts: BTreeMap<String, u64>,
}

impl InstructionBaseline {
    fn path() -> PathBuf {
        home().join("instructions.json")
    }

    fn load() -> Result<InstructionBaseline> {
        let Ok(text) = fs::read_to_string(InstructionBaseline::path()) else {
            return Ok(InstructionBaseline::default());
        };
        let value: Value = serde_json::from_str(&text)?;
        let counts = value["counts"].as_object().ok_or("the baseline has no counts")?;
        Ok(InstructionBaseline {
            made_by: value["made_by"].as_str().unwrap_or_default().to_owned(),
            counts: counts.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect(),
        })
    }

    fn save(&self) -> Result<()> {
        let value = json!({ "made_by": self.made_by, "counts": self.counts });
        Ok(fs::write(InstructionBaseline::path(), format!("{value:#}\n"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::compare_with_baseline;

    #[test]
    fn instruction_growth_above_three_percent_fails() {
        assert_eq!(compare_with_baseline(Some(1000), 1030), ("+3.0 %".to_owned(), false));
        assert_eq!(compare_with_baseline(Some(1000), 1031), ("+3.1 % WORSE than 1000".to_owned(), true));
        assert_eq!(compare_with_baseline(Some(1000), 960), ("-4.0 %, --update".to_owned(), false));
        assert_eq!(compare_with_baseline(None, 5), ("new".to_owned(), false));
    }
}
