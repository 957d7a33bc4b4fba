//! Kills jobs at random moments, as often as it takes, and compares what they leave with a run that
//! was not killed: nothing may be missing, and nothing may be there twice.
//!
//! `HAUL_JOB_KILLS=1000` sets the number of kills (`make job-kills`), and `HAUL_SEED` the seed.

use crate::common;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{haul, list};
use testkit::origin::Origin;
use testkit::rng::Rng;

/// The number of URLs of each job.
const URLS: usize = 150;

/// A kind of job: its options, and whether its list comes from a pipe.
struct JobShape {
    name: &'static str,
    options: &'static [&'static str],
    is_piped: bool,
}

const SHAPES: &[JobShape] = &[
    JobShape { name: "bodies", options: &["--input-file", "list"], is_piped: false },
    JobShape { name: "files", options: &["-o", "f-{name}", "--input-file", "list"], is_piped: false },
    JobShape { name: "records", options: &["--jsonl", "--input-file", "list"], is_piped: false },
    JobShape {
        name: "unordered records",
        options: &["--jsonl", "--unordered", "--input-file", "list"],
        is_piped: false,
    },
    JobShape { name: "records of files", options: &["--jsonl", "-O", "--input-file", "list"], is_piped: false },
    JobShape { name: "a record file", options: &["--jsonl", "-o", "out", "--input-file", "list"], is_piped: false },
    JobShape { name: "piped bodies", options: &["--input-file", "-"], is_piped: true },
    JobShape { name: "values", options: &["--extract", "small [0-9]+", "--input-file", "list"], is_piped: false },
];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// Starts a run of the job in `dir`.
fn start(dir: &Path, shape: &JobShape, lines: &str) -> Child {
    let mut command: Command = haul(["--job", "j", "-s", "--parallel-max", "16", "--max-memory", "1M"]);
    command.args(shape.options).current_dir(dir).stderr(Stdio::piped());
    let appended = if shape.options.contains(&"-o") { "unused" } else { "out" };
    command.stdout(OpenOptions::new().create(true).append(true).open(dir.join(appended)).unwrap());
    if !shape.is_piped {
        return command.spawn().unwrap();
    }
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let (mut pipe, lines) = (child.stdin.take().unwrap(), lines.to_owned());
    // The reader may be killed before it has read all lines.
    std::thread::spawn(move || pipe.write_all(lines.as_bytes()));
    child
}

/// Returns what the job has left, in a form that does not depend on the order or on times.
fn left(dir: &Path, shape: &JobShape) -> Vec<String> {
    let text = fs::read_to_string(dir.join("out")).unwrap_or_default();
    let is_json = shape.options.contains(&"--jsonl");
    let line = |line: &str| {
        if !is_json {
            return line.to_owned();
        }
        let record: serde_json::Value = serde_json::from_str(line).expect("a whole record");
        format!("{} {} {}", record["url"], record["body"], record["sha256"])
    };
    let mut left: Vec<String> = text.lines().map(line).collect();
    for entry in fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !["j", "j-wal", "j-shm", "list", "out", "unused"].contains(&name.as_str()) {
            left.push(format!("{name}: {}", fs::read_to_string(dir.join(&name)).unwrap()));
        }
    }
    if shape.options.contains(&"--unordered") || !is_json {
        left.sort();
    }
    left
}

#[test]
fn killed_jobs_leave_what_whole_ones_do() {
    let kills = setting("HAUL_JOB_KILLS", 30);
    let mut random = Rng::new(setting("HAUL_SEED", 1));
    let origin = Origin::builder().record(false).start().unwrap();
    let path = |number: usize| match number % 10 {
        3 => format!("/delay/{}/small/{number}", number % 7),
        _ => format!("/small/{number}"),
    };
    let lines: String = (0..URLS).map(|number| origin.url(&path(number)) + "\n").collect();
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        let shape = &SHAPES[round % SHAPES.len()];
        let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for dir in [whole.path(), dir.path()] {
            list(dir, "list", lines.lines());
        }
        let ended = start(whole.path(), shape, &lines).wait_with_output().unwrap();
        assert!(ended.status.success(), "{}: {ended:?}", shape.name);
        let mut runs = 0;
        loop {
            runs += 1;
            let mut child = start(dir.path(), shape, &lines);
            // After many kills the job may end, so that the next one has its turn.
            if runs <= 12 {
                std::thread::sleep(Duration::from_micros(random.below(60_000)));
                if child.try_wait().unwrap().is_none() {
                    child.kill().unwrap();
                }
            }
            let ended = child.wait_with_output().unwrap();
            if ended.status.code().is_none() {
                killed += 1;
                continue;
            }
            assert!(ended.status.success(), "{}, run {runs}: {ended:?}", shape.name);
            break;
        }
        let (expected, found) = (left(whole.path(), shape), left(dir.path(), shape));
        assert!(expected.len() >= URLS, "{}: {} lines", shape.name, expected.len());
        assert_eq!(found, expected, "{}, after {runs} runs, {killed} kills", shape.name);
        round += 1;
    }
}
