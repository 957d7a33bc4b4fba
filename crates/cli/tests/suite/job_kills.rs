//! Kills jobs at random times until each job is complete, and compares the results with those of an
//! uninterrupted run: nothing may be missing or occur twice.
//!
//! `HAUL_JOB_KILLS=1000` sets the number of kills (`make job-kills`), and `HAUL_SEED` the seed.

use crate::common;

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::daily_site::DailySite;
use common::small_site::SmallSite;
use common::{haul, list, names};
use testkit::rng::Rng;
use testkit::warc_reader::read;

/// The number of URLs in the list of a job without stages.
const URLS: usize = 150;

/// A type of job: its options, in which `$site` stands for the server, and the contents of its
/// list.
struct KilledJobSetup {
    name: &'static str,
    options: &'static [&'static str],
    list: UrlListContents,
}

/// The contents of a job's list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlListContents {
    Pages,
    PipedPages,
    /// The list contains pages with links to other pages.
    Indexes,
    /// The list contains paginated listings, each with several pages.
    Listings,
    /// The list contains many pages with equal content, some after a redirect.
    Copies,
}

const LIST: &str = "list";

/// The name of the job's archive, to whose files numbers may be added.
const ARCHIVE: &str = "a.warc.gz";

const SHAPES: &[KilledJobSetup] = &[
    KilledJobSetup { name: "bodies", options: &[], list: UrlListContents::Pages },
    KilledJobSetup { name: "files", options: &["-o", "f-{name}"], list: UrlListContents::Pages },
    KilledJobSetup { name: "records", options: &["--jsonl"], list: UrlListContents::Pages },
    KilledJobSetup { name: "unordered records", options: &["--jsonl", "--unordered"], list: UrlListContents::Pages },
    KilledJobSetup { name: "records of files", options: &["--jsonl", "-O"], list: UrlListContents::Pages },
    KilledJobSetup { name: "a record file", options: &["--jsonl", "-o", "out"], list: UrlListContents::Pages },
    KilledJobSetup { name: "piped bodies", options: &[], list: UrlListContents::PipedPages },
    KilledJobSetup { name: "values", options: &["--extract", "page [0-9]+"], list: UrlListContents::Pages },
    KilledJobSetup {
        name: "stages",
        options: &["--extract", "/page/[0-9]+", "--then", "{}"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "files of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "-o", "f-#1"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "records of a stage",
        options: &["--unordered", "--jsonl", "--extract", ">([0-9]+)<", "--then", "$site/page/{}"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "unique values",
        options: &["--extract", ">([0-9]+)<", "--unique"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "sorted values",
        options: &["--extract", ">([0-9]+)<", "--unique", "--sort"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "values of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "--extract", "[0-9]", "--unique"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup { name: "listings", options: &["--paginate-query", "page"], list: UrlListContents::Listings },
    KilledJobSetup {
        name: "files of listings",
        options: &["--paginate-query", "page", "-o", "f-{name}-{page}"],
        list: UrlListContents::Listings,
    },
    KilledJobSetup {
        name: "archive of files",
        options: &["--warc", ARCHIVE, "-o", "f-{name}"],
        list: UrlListContents::Pages,
    },
    KilledJobSetup {
        name: "plain archive of records",
        options: &["--warc", "a.warc", "--jsonl"],
        list: UrlListContents::Copies,
    },
    KilledJobSetup {
        name: "archive of copies",
        options: &["-L", "--warc", ARCHIVE, "--out-null"],
        list: UrlListContents::Copies,
    },
    KilledJobSetup {
        name: "numbered archive",
        options: &["-L", "--warc", ARCHIVE, "--warc-max-size", "8K", "-o", "f-{name}"],
        list: UrlListContents::Copies,
    },
    KilledJobSetup {
        name: "numbered archive of bodies from a pipe",
        options: &["--warc", "a.warc", "--warc-max-size", "8K"],
        list: UrlListContents::PipedPages,
    },
    KilledJobSetup {
        name: "archive of stages",
        options: &["--warc", ARCHIVE, "--extract", ">([0-9]+)<", "--then", "$site/page/{}", "-o", "f-#1"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "archive of listings",
        options: &["--warc", ARCHIVE, "--paginate-query", "page"],
        list: UrlListContents::Listings,
    },
];

/// Starts the server for the jobs. Some of its pages take a few milliseconds.
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
            "copy" if number % 5 == 4 => return Some(("redirect", format!("/copy/{}", number - 4).into_bytes())),
            "copy" => format!("copy {}\n", number % 7).repeat(40),
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

/// Returns the lines of a job's list.
fn lines(site: &SmallSite, list: UrlListContents) -> String {
    let (count, path): (usize, fn(usize) -> String) = match list {
        UrlListContents::Pages | UrlListContents::PipedPages => (URLS, |number| format!("/page/{number}")),
        UrlListContents::Indexes => (20, |number| format!("/index/{number}")),
        UrlListContents::Listings => (40, |number| format!("/listing/{number}?page=1")),
        UrlListContents::Copies => (URLS, |number| format!("/copy/{number}")),
    };
    (0..count).map(|number| site.url(&path(number)) + "\n").collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// Starts a run of the job in `dir`.
fn start(dir: &Path, shape: &KilledJobSetup, site: &SmallSite, lines: &str) -> Child {
    let is_piped = shape.list == UrlListContents::PipedPages;
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

/// Returns the results of the job without anything that depends on time: the lines of the output
/// (sorted if the output is unordered), the exchanges in the archive, and the files sorted by name.
fn job_results(dir: &Path, shape: &KilledJobSetup) -> Vec<String> {
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
    let files = names(dir).into_iter().filter(|name| !other.contains(&name.as_str()));
    let (archives, files): (Vec<String>, Vec<String>) = files.partition(|name| name.contains(".warc"));
    left.extend(exchanges(dir, &archives));
    for name in files {
        left.push(format!("{name}: {}", fs::read_to_string(dir.join(&name)).unwrap()));
    }
    left
}

/// Returns the URLs and digests of the exchanges in an archive, sorted. A response may be stored as
/// a response record or a revisit record, depending on time. Asserts that each file is complete,
/// that requests and responses are paired, and that each revisit record refers to a response with
/// the same payload.
fn exchanges(dir: &Path, archives: &[String]) -> Vec<String> {
    let (mut responses, mut revisits, mut exchanges) = (HashSet::new(), Vec::new(), Vec::new());
    for name in archives {
        let records = read(&fs::read(dir.join(name)).unwrap()).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(records[0].field("WARC-Filename"), Some(name.as_str()));
        let (pairs, alone) = records[1..].as_chunks::<2>();
        assert!(alone.is_empty(), "{name}");
        for [request, response] in pairs {
            assert_eq!(request.field("WARC-Concurrent-To"), response.field("WARC-Record-ID"), "{name}");
            let field = |name: &str| response.field(name).unwrap_or_default().to_owned();
            exchanges.push(format!("{} {}", field("WARC-Target-URI"), field("WARC-Payload-Digest")));
            match response.field("WARC-Type") {
                Some("response") => drop(responses.insert((field("WARC-Record-ID"), field("WARC-Payload-Digest")))),
                _ => revisits.push((field("WARC-Refers-To"), field("WARC-Payload-Digest"))),
            }
        }
    }
    assert!(revisits.iter().all(|revisit| responses.contains(revisit)), "a revisit record refers to nothing");
    exchanges.sort();
    exchanges
}

/// Returns the maximum number of times that the test kills one job. The test then lets the job
/// complete, and goes on with the next type of job. `kills` is the number of kills of all jobs.
fn most_kills(kills: u64) -> u64 {
    if kills > 500 { 12 } else { 2 }
}

/// Kills a run after a random time, unless it has already ended or `may_kill` is false. Returns
/// true if it was killed.
fn killed(mut child: Child, random: &mut Rng, may_kill: bool, name: &str) -> bool {
    if may_kill {
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
        }
    }
    let ended = child.wait_with_output().unwrap();
    if ended.status.code().is_some() {
        assert!(ended.status.success(), "{name}: {ended:?}");
    }
    ended.status.code().is_none()
}

#[test]
fn killed_jobs_have_same_results_as_uninterrupted_ones() {
    let kills = setting("HAUL_JOB_KILLS", SHAPES.len() as u64);
    let mut random = Rng::new(setting("HAUL_SEED", 1));
    let site = site();
    let (mut count, mut round) = (0, 0);
    while count < kills {
        let shape = &SHAPES[round % SHAPES.len()];
        let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lines = lines(&site, shape.list);
        for dir in [whole.path(), dir.path()] {
            list(dir, LIST, lines.lines());
        }
        let ended = start(whole.path(), shape, &site, &lines).wait_with_output().unwrap();
        assert!(ended.status.success(), "{}: {ended:?}", shape.name);
        let mut of_job = 0;
        while killed(start(dir.path(), shape, &site, &lines), &mut random, of_job < most_kills(kills), shape.name) {
            of_job += 1;
        }
        count += of_job;
        let (expected, found) = (job_results(whole.path(), shape), job_results(dir.path(), shape));
        assert!(expected.len() >= 10, "{}: {} lines", shape.name, expected.len());
        assert_eq!(found, expected, "{}, after {of_job} kills, {count} in all", shape.name);
        round += 1;
    }
}

/// The types of jobs that are refreshed. Their lists contain the indexes of [`daily_site`].
const REFRESHED: &[KilledJobSetup] = &[
    KilledJobSetup { name: "refreshed files", options: &["-o", "f-{name}"], list: UrlListContents::Indexes },
    KilledJobSetup { name: "refreshed records", options: &["--jsonl"], list: UrlListContents::Indexes },
    KilledJobSetup {
        name: "refreshed files of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "-o", "f-#1"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "refreshed values of a stage",
        options: &["--extract", ">([0-9]+)<", "--then", "$site/page/{}", "--extract", "page.*", "--unique"],
        list: UrlListContents::Indexes,
    },
    KilledJobSetup {
        name: "refreshed archive",
        options: &["--warc", ARCHIVE, "--extract", ">([0-9]+)<", "--then", "$site/page/{}", "-o", "f-#1"],
        list: UrlListContents::Indexes,
    },
];

/// Starts a server whose pages change on the second day. On that day, some indexes have other
/// links, and some pages no longer exist.
fn daily_site() -> DailySite {
    DailySite::start(|target, day| {
        let (kind, number) = target.strip_prefix('/')?.split_once('/')?;
        let number: usize = number.parse().ok()?;
        if number % 10 == 3 {
            std::thread::sleep(Duration::from_millis(number as u64 % 7));
        }
        let version = if number.is_multiple_of(4) { day } else { 1 };
        match kind {
            "page" => (day == 1 || number % 9 != 8).then(|| format!("page {number}, version {version}\n")),
            "index" => Some((0..10 + version).map(|link| format!("<a>{}</a>\n", number * 7 + link)).collect()),
            _ => None,
        }
    })
}

/// Starts a run of one of the jobs in [`REFRESHED`], in `dir`.
fn start_refreshed(dir: &Path, shape: &KilledJobSetup, site: &DailySite, refreshes: bool) -> Child {
    let mut command: Command = haul(["--job", "j", "-s", "--parallel-max", "16", "--input-file", LIST]);
    command.args(shape.options.iter().map(|option| option.replace("$site", &site.url(""))));
    command.args(refreshes.then_some("--refresh")).current_dir(dir).stderr(Stdio::piped());
    command.stdout(OpenOptions::new().create(true).append(true).open(dir.join("out")).unwrap());
    command.spawn().unwrap()
}

/// Returns the kinds of changes that the last refresh found, each with its number of URLs; `None`
/// if the refresh is not complete yet.
fn refresh_results(dir: &Path) -> Option<Vec<(Option<String>, i64)>> {
    let job = rusqlite::Connection::open(dir.join("j")).unwrap();
    let ended = "SELECT refresh_round = 1 AND refresh_is_complete FROM job";
    if !job.query_row(ended, [], |row| row.get::<_, bool>(0)).unwrap() {
        return None;
    }
    let mut changes = job.prepare("SELECT change, count(*) FROM url GROUP BY change ORDER BY change").unwrap();
    let rows = changes.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    Some(rows.map(Result::unwrap).collect())
}

#[test]
fn killed_refreshes_have_results_of_uninterrupted_ones() {
    let kills = setting("HAUL_JOB_KILLS", 4 * REFRESHED.len() as u64) / 4;
    let mut random = Rng::new(setting("HAUL_SEED", 1));
    let site = daily_site();
    let (mut count, mut round) = (0, 0);
    while count < kills {
        let shape = &REFRESHED[round % REFRESHED.len()];
        let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        site.set_day(1);
        for dir in [whole.path(), dir.path()] {
            list(dir, LIST, (0..20).map(|number| site.url(&format!("/index/{number}"))));
            let ended = start_refreshed(dir, shape, &site, false).wait_with_output().unwrap();
            assert!(ended.status.success(), "{}: {ended:?}", shape.name);
        }
        site.set_day(2);
        start_refreshed(whole.path(), shape, &site, true).wait_with_output().unwrap();
        let mut of_job = 0;
        while refresh_results(dir.path()).is_none() {
            let mut child = start_refreshed(dir.path(), shape, &site, true);
            if of_job < most_kills(kills) {
                std::thread::sleep(Duration::from_micros(random.below(60_000)));
                child.kill().unwrap();
            }
            of_job += u64::from(child.wait_with_output().unwrap().status.code().is_none());
        }
        count += of_job;
        let (expected, found) = (job_results(whole.path(), shape), job_results(dir.path(), shape));
        assert_eq!(found, expected, "{}, after {of_job} kills, {count} in all", shape.name);
        assert_eq!(refresh_results(dir.path()), refresh_results(whole.path()), "{}", shape.name);
        round += 1;
    }
}
