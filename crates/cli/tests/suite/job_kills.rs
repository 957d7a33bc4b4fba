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

use common::small_site::SmallSite;
use common::{haul, list, names};
use testkit::rng::Rng;

/// The number of URLs in the list of a job without stages.
const URLS: usize = 150;

/// A kind of job: its options, in which `$site` stands for the server, and its list.
struct JobShape {
    name: &'static str,
    options: &'static [&'static str],
    list: JobList,
}

/// The list of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobList {
    Pages,
    PipedPages,
    /// Pages with links to other pages.
    Indexes,
    /// Listings of several pages.
    Listings,
}

const LIST: &str = "list";

const SHAPES: &[JobShape] = &[
    JobShape { name: "bodies", options: &[], list: JobList::Pages },
    JobShape { name: "files", options: &["-o", "f-{name}"], list: JobList::Pages },
    JobShape { name: "records", options: &["--jsonl"], list: JobList::Pages },
    JobShape { name: "unordered records", options: &["--jsonl", "--unordered"], list: JobList::Pages },
    JobShape { name: "records of files", options: &["--jsonl", "-O"], list: JobList::Pages },
    JobShape { name: "a record file", options: &["--jsonl", "-o", "out"], list: JobList::Pages },
    JobShape { name: "piped bodies", options: &[], list: JobList::PipedPages },
    JobShape { name: "values", options: &["--extract", "page [0-9]+"], list: JobList::Pages },
    JobShape { name: "stages", options: &["--extract", "/page/[0-9]+", "--then", "{}"], list: JobList::Indexes },
    JobShape {
        name: "files of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "-o", "f-#1"],
        list: JobList::Indexes,
    },
    JobShape {
        name: "records of a stage",
        options: &["--unordered", "--jsonl", "--extract", ">([0-9]+)<", "--then", "$site/page/{}"],
        list: JobList::Indexes,
    },
    JobShape { name: "unique values", options: &["--extract", ">([0-9]+)<", "--unique"], list: JobList::Indexes },
    JobShape {
        name: "sorted values",
        options: &["--extract", ">([0-9]+)<", "--unique", "--sort"],
        list: JobList::Indexes,
    },
    JobShape {
        name: "values of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "--extract", "[0-9]", "--unique"],
        list: JobList::Indexes,
    },
    JobShape { name: "listings", options: &["--paginate-query", "page"], list: JobList::Listings },
    JobShape {
        name: "files of listings",
        options: &["--paginate-query", "page", "-o", "f-{name}-{page}"],
        list: JobList::Listings,
    },
];

/// Starts the server of the jobs. Some of its pages take some milliseconds.
fn site() -> SmallSite {
    SmallSite::start(|target| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (kind, number) = path.strip_prefix('/')?.split_once('/')?;
        let number: usize = number.parse().ok()?;
        if number % 10 == 3 {
            std::thread::sleep(Duration::from_millis(number as u64 % 7));
        }
        let link = |to: usize| format!("<a href=\"/page/{to}\">{to}</a>\n");
        let text = match kind {
            "page" if number < 1000 => format!("page {number}, {}, /page/{}\n", number * 7919, number + 1000),
            "page" => format!("page {number}\n"),
            "index" => (0..20).map(|link_number| link(number * 7 + link_number)).collect(),
            "listing" => {
                let page: usize = query.strip_prefix("page=")?.parse().ok()?;
                (page <= 1 + number % 5).then(|| format!("listing {number}, page {page}\n"))?
            }
            _ => return None,
        };
        Some(("text/html", text.into_bytes()))
    })
}

/// Returns the lines of a list.
fn lines(site: &SmallSite, list: JobList) -> String {
    let (count, path): (usize, fn(usize) -> String) = match list {
        JobList::Pages | JobList::PipedPages => (URLS, |number| format!("/page/{number}")),
        JobList::Indexes => (20, |number| format!("/index/{number}")),
        JobList::Listings => (40, |number| format!("/listing/{number}?page=1")),
    };
    (0..count).map(|number| site.url(&path(number)) + "\n").collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// Starts a run of the job in `dir`.
fn start(dir: &Path, shape: &JobShape, site: &SmallSite, lines: &str) -> Child {
    let is_piped = shape.list == JobList::PipedPages;
    let mut command: Command = haul(["--job", "j", "-s", "--parallel-max", "16", "--max-memory", "1M"]);
    command.args(["--input-file", if is_piped { "-" } else { LIST }]);
    let options = shape.options.iter().map(|option| option.replace("$site", &site.url("")));
    command.args(options).current_dir(dir).stderr(Stdio::piped());
    let has_file = shape.options.ends_with(&["-o", "out"]);
    let appended = if has_file { "unused" } else { "out" };
    command.stdout(OpenOptions::new().create(true).append(true).open(dir.join(appended)).unwrap());
    if !is_piped {
        return command.spawn().unwrap();
    }
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let (mut pipe, lines) = (child.stdin.take().unwrap(), lines.to_owned());
    // The reader may be killed before it has read all lines.
    std::thread::spawn(move || pipe.write_all(lines.as_bytes()));
    child
}

/// Returns what the job has left, in a form that does not depend on times: the lines of the output in
/// their order, unless the job has none, and the files by name.
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
    if shape.options.contains(&"--unordered") {
        left.sort();
    }
    let other = ["j", "j-wal", "j-shm", LIST, "out", "unused"];
    // A kill may come just before a file with such a name is renamed to its own.
    let is_temporary = |name: &str| name.starts_with(".haul-") && name.ends_with(".part");
    for name in names(dir).into_iter().filter(|name| !other.contains(&name.as_str()) && !is_temporary(name)) {
        left.push(format!("{name}: {}", fs::read_to_string(dir.join(&name)).unwrap()));
    }
    left
}

#[test]
fn killed_jobs_leave_what_whole_ones_do() {
    let kills = setting("HAUL_JOB_KILLS", 30);
    let mut random = Rng::new(setting("HAUL_SEED", 1));
    let site = site();
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        let shape = &SHAPES[round % SHAPES.len()];
        let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lines = lines(&site, shape.list);
        for dir in [whole.path(), dir.path()] {
            list(dir, LIST, lines.lines());
        }
        let ended = start(whole.path(), shape, &site, &lines).wait_with_output().unwrap();
        assert!(ended.status.success(), "{}: {ended:?}", shape.name);
        let mut runs = 0;
        loop {
            runs += 1;
            let mut child = start(dir.path(), shape, &site, &lines);
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
        assert!(expected.len() >= 10, "{}: {} lines", shape.name, expected.len());
        assert_eq!(found, expected, "{}, after {runs} runs, {killed} kills", shape.name);
        round += 1;
    }
}
