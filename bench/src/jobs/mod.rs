//! The jobs of the bench, one in each file, and the code that they share.

mod adaptive_connections;
pub(crate) mod c_requests;
mod cold_start;
mod cost_growth_curves;
mod css_selectors;
mod five_parallel_bodies;
mod h2_fifty_parallel_bodies;
mod h2_site;
mod h2_small;
mod http3;
mod item_echo_server;
mod jsonl_records;
mod language_client_jobs;
mod large_body_common;
mod large_get;
mod large_get_tls;
mod libcurl_replacement;
mod memory_for_million_urls;
mod million_url_job_report;
mod option_parsing;
pub(crate) mod package_fetcher;
mod perl;
mod pipelining;
mod post_list;
mod process_per_file_cost;
mod python;
mod rate_limit_accuracy;
mod rate_limited_connections;
mod refresh_changed_pages;
mod resumable_job_overhead;
mod site_pages;
mod small_replies;
mod split_on_full_link;
mod thousands_of_hosts;
mod two_stage_extraction;
mod upload;
mod upload_list;
pub(crate) mod warc;

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use testkit::byte_pattern::BytePattern;
use testkit::site::GeneratedSite;

use crate::compared_programs_and_goals::{BenchProgram, JobPart, OutputCheck, ProgramRole};
use crate::options::BenchOptions;
use crate::output_digest::{OutputDigest, OutputDigester};
use crate::server::SiteServer;
use crate::{Result, installed_programs};

/// A job of the bench: a comparison of haul with other programs at one kind of work. It has one
/// part or several, which are measured separately.
pub(crate) struct BenchJob {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) set_up: fn(&mut JobEnvironment) -> Result<Vec<JobPart>>,
}

/// All jobs, in the order in which they run.
pub(crate) const ALL: &[&BenchJob] = &[
    &two_stage_extraction::JOB,
    &css_selectors::JOB,
    &site_pages::JOB,
    &warc::JOB,
    &small_replies::JOB,
    &pipelining::JOB,
    &post_list::JOB,
    &upload_list::JOB,
    &jsonl_records::JOB,
    &resumable_job_overhead::JOB,
    &refresh_changed_pages::JOB,
    &million_url_job_report::JOB,
    &cold_start::JOB,
    &option_parsing::JOB,
    &package_fetcher::JOB,
    &process_per_file_cost::JOB,
    &memory_for_million_urls::JOB,
    &large_get::JOB,
    &large_get_tls::JOB,
    &five_parallel_bodies::JOB,
    &rate_limited_connections::JOB,
    &split_on_full_link::JOB,
    &upload::JOB,
    &h2_fifty_parallel_bodies::JOB,
    &h2_small::JOB,
    &h2_site::JOB,
    &c_requests::JOB,
    &perl::JOB,
    &python::JOB,
    &libcurl_replacement::JOB,
    &cost_growth_curves::JOB,
    &thousands_of_hosts::JOB,
    &adaptive_connections::JOB,
    &rate_limit_accuracy::JOB,
    &http3::JOB,
];

/// The names of the programs that scripts/bench-peers.sh builds.
const PEERS: [&str; 4] = ["easyget", "gofetch", "htcat", "quicgo-client"];

/// The number of times that a program which takes only milliseconds is started in each run.
const CALLS_IN_A_ROW: u32 = 20;

/// The length in bytes of the responses in the jobs with small responses.
const SMALL_BODY_LENGTH: usize = 300;

/// Returns the directory of this package, which contains `results/` and `work/`.
pub(crate) fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The environment in which a job runs: the command-line options of the bench, the working
/// directory, and the servers.
pub(crate) struct JobEnvironment<'a> {
    pub(crate) job: &'static BenchJob,
    pub(crate) options: &'a BenchOptions,
    /// The working directory of all commands of the job, so that their arguments contain no
    /// absolute path.
    pub(crate) work: PathBuf,
    held: Vec<Box<dyn Any>>,
    /// The messages about programs that are left out. Each is printed once.
    skipped: RefCell<BTreeSet<String>>,
}

impl<'a> JobEnvironment<'a> {
    pub(crate) fn new(job: &'static BenchJob, options: &'a BenchOptions) -> Result<JobEnvironment<'a>> {
        let work = home().join("work").join(job.name);
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        Ok(JobEnvironment { job, options, work, held: Vec::new(), skipped: RefCell::default() })
    }

    /// Keeps a server or a relay running until the job is done.
    fn keep_running(&mut self, server: impl Any) {
        self.held.push(Box::new(server));
    }

    /// Returns the path of the program with this name; `None` if it is not installed.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        match name {
            "curl" if self.options.curl.is_some() => self.options.curl.clone(),
            "haul" if self.options.haul.is_some() => self.options.haul.clone(),
            "haul" if self.options.smoke => {
                installed_programs::built_haul_path().or_else(|| installed_programs::find(name))
            }
            "bench" => std::env::current_exe().ok(),
            SYSTEM_CURL => installed_programs::find_installed("curl"),
            _ if name.contains('/') => Some(self.work.join(name)).filter(|file| file.is_file()),
            _ => installed_programs::find(name),
        }
    }

    /// Returns the versions of haul and of its competitors that are installed.
    pub(crate) fn versions(&self) -> BTreeMap<String, String> {
        let version = |(name, flag)| Some((name, installed_programs::version(&self.program(name)?, flag)));
        let peers = ["haul", "curl", SYSTEM_CURL, "wget", "wget2", "easyget", "aria2c", H2LOAD, "perl", "python3"];
        let flags = [("htcat", "-version"), ("gofetch", "-version"), ("quicgo-client", "-version"), ("nginx", "-v")];
        let all = peers.into_iter().map(|name| (name, "--version")).chain(flags);
        all.filter_map(version).map(|(name, version)| (name.to_owned(), version)).collect()
    }

    /// Returns the length of a large body: `full`, or the size given on the command line.
    fn length(&self, full: u64) -> u64 {
        self.options.size.unwrap_or(full)
    }

    /// Returns the number of requests or files of a job: `full`, or only a few in a smoke run.
    fn count(&self, full: usize) -> usize {
        if self.options.smoke { full.div_ceil(1000).max(20) } else { full }
    }

    /// Returns `job_part` with the programs that this run starts: in a smoke run, only haul.
    pub(crate) fn with_allowed_programs(&self, mut job_part: JobPart) -> JobPart {
        if self.options.smoke {
            job_part.bench_programs.retain(|bench_program| {
                ProgramRole::from_name(bench_program.name, job_part.limit) == ProgramRole::Haul
            });
            job_part.goals.clear();
        }
        job_part
    }

    /// Returns the benchmark programs that are installed. For each of the others, prints that it is
    /// skipped. The executable to look for is guessed from the command line.
    fn allowed_programs(&self, entries: Vec<BenchProgram>) -> Vec<BenchProgram> {
        let installed = |entry: &BenchProgram| {
            let shell = entry.argv.last().filter(|_| entry.argv[0] == "sh");
            let needs = match shell {
                Some(shell) if shell.contains("$HAUL") => "haul",
                Some(shell) if shell.contains("$SYSTEM_CURL") => SYSTEM_CURL,
                Some(shell) if shell.contains("$BENCH") => "bench",
                Some(shell) if shell.contains("quicgo-client") => "quicgo-client",
                Some(shell) if shell.contains("| pup ") => "pup",
                Some(shell) if shell.contains("| jq ") => "jq",
                Some(shell) if shell.starts_with(H2LOAD) => H2LOAD,
                Some(shell) if shell.contains("wget ") => "wget",
                Some(_) => "curl",
                // `env -i NAME=VALUE program`
                None => {
                    let is_program = |word: &&String| *word != "env" && *word != "-i" && !word.contains('=');
                    entry.argv.iter().find(is_program).map_or("", String::as_str)
                }
            };
            let found = self.program(needs).is_some();
            if !found {
                let how = if PEERS.contains(&needs) { ": sh scripts/bench-peers.sh" } else { "" };
                self.print_skipped(format!("{}: skipped, {needs} is not installed{how}", entry.name));
            }
            found
        };
        entries.into_iter().filter(installed).collect()
    }

    /// Prints why a program is left out, once for all parts of the job. Prints nothing in a smoke
    /// run, which leaves out all programs but haul.
    fn print_skipped(&self, message: String) {
        if !self.options.smoke && !self.skipped.borrow().contains(&message) {
            println!("{message}");
            self.skipped.borrow_mut().insert(message);
        }
    }

    /// Writes a text file in the working directory, with a line for each item.
    fn write_lines(&self, name: &str, lines: impl IntoIterator<Item = String>) -> Result<()> {
        let mut file = std::io::BufWriter::new(fs::File::create(self.work.join(name))?);
        for line in lines {
            writeln!(file, "{line}")?;
        }
        Ok(file.flush()?)
    }

    /// Writes a URL list, `list`, and two config files for curl with the same URLs: `null.cfg`
    /// writes each body to /dev/null, `stdout.cfg` to standard output.
    fn write_url_lists(&self, urls: &[String]) -> Result<()> {
        self.write_lines("list", urls.iter().cloned())?;
        self.write_lines("stdout.cfg", urls.iter().map(|url| format!("url = \"{url}\"")))?;
        self.write_lines("null.cfg", urls.iter().map(|url| format!("url = \"{url}\"\noutput = \"/dev/null\"")))
    }

    /// Calls [`write_url_lists`](JobEnvironment::write_url_lists) for pages of the site. Also
    /// writes `files.cfg`, which writes each body to a file under `pages/`, and the names of these
    /// files to `names`.
    fn write_page_lists(&self, base: &str, paths: &[String]) -> Result<()> {
        let urls: Vec<String> = paths.iter().map(|path| format!("{base}{path}")).collect();
        self.write_url_lists(&urls)?;
        self.write_lines("names", paths.iter().map(|path| path.trim_start_matches('/').to_owned()))?;
        let outputs = paths.iter().zip(&urls).map(|(path, url)| format!("url = \"{url}\"\noutput = \"pages{path}\""));
        self.write_lines("files.cfg", outputs)
    }
}

/// Creates a benchmark program that runs without a shell. `words` is the command line, which is
/// split at blanks.
fn command_program(name: &'static str, words: &str, check: OutputCheck) -> BenchProgram {
    BenchProgram { name, argv: words.split(' ').map(str::to_owned).collect(), piped: false, times: 1, check }
}

/// Creates a benchmark program that is started [`CALLS_IN_A_ROW`] times in each run.
fn repeated_program(name: &'static str, words: &str, check: OutputCheck) -> BenchProgram {
    BenchProgram { times: CALLS_IN_A_ROW, ..command_program(name, words, check) }
}

/// Creates a benchmark program that runs a shell command.
fn shell_program(name: &'static str, line: impl Into<String>, check: OutputCheck) -> BenchProgram {
    BenchProgram { name, argv: vec!["sh".to_owned(), "-c".to_owned(), line.into()], piped: false, times: 1, check }
}

/// Returns a shell command that runs `calls`, and then stops haul's agent at the socket `$dir/a`.
/// The first haul command in `calls` starts the agent. The socket is in the new directory `$dir`,
/// because the path of a socket must be short, and the path of the working directory may be long.
fn with_agent(calls: &str) -> String {
    format!("dir=$(mktemp -d) && {calls}; code=$?; $HAUL --agent=$dir/a --agent-stop >&2; rm -r $dir; exit $code")
}

/// The name of the system's curl. It takes part if [`JobEnvironment::program`] returns another curl
/// that was built for the bench. The system's curl starts more slowly.
pub(crate) const SYSTEM_CURL: &str = "system-curl";

/// The name of nghttp2's load generator. It discards bodies without checking them, so it shows the
/// limit of one connection.
const H2LOAD: &str = "h2load";

/// Creates a benchmark program that runs h2load with `requests` requests on one connection, 50 at a
/// time. `what` is a quoted URL, or `-i` and a file of URLs. h2load prints the number of body
/// bytes, which is checked.
fn h2load(requests: usize, what: &str, all: OutputDigest) -> BenchProgram {
    let data = r"sed -n 's/^traffic.*(\([0-9]*\)) data$/\1/p'";
    shell_program(
        H2LOAD,
        format!("{H2LOAD} -n{requests} -c1 -m50 {what} | {data}"),
        OutputCheck::PrintedLength(None, all),
    )
}

/// Returns a shell command that runs `fetch`, which writes pages to files in parallel, and then
/// prints these files in the order of the names in the file `names`.
fn pages_in_order(fetch: &str) -> String {
    format!("rm -rf pages && mkdir pages && {fetch} && cd pages && xargs cat < ../names && cd .. && rm -r pages")
}

/// The site's files on disk, and the digest of all CIDR blocks in its pages (the correct output of
/// the job `site`).
struct SiteFiles {
    site: GeneratedSite,
    root: PathBuf,
    answer: OutputDigest,
}

impl SiteFiles {
    /// Writes the site's files to a directory that all jobs share, if they do not exist yet.
    fn prepare(options: &BenchOptions) -> Result<SiteFiles> {
        let site = GeneratedSite::scaled(options.seed, options.pages);
        let root = home().join("work").join(format!("site-{}-{}", options.seed, options.pages));
        let answer = site.known_answer();
        let marker = root.join("complete");
        if fs::read_to_string(&marker).ok().as_deref() != Some(&answer.sha256) {
            println!("laying out {} pages, {} MiB", options.pages, site.total_len() >> 20);
            let _ = fs::remove_dir_all(&root);
            site.write_to(&root)?;
            fs::create_dir_all(root.join("bytes"))?;
            fs::write(root.join("bytes").join(SMALL_BODY_LENGTH.to_string()), small_body(options.seed))?;
            fs::write(root.join("small"), "small\n")?;
            fs::write(marker, &answer.sha256)?;
        }
        Ok(SiteFiles { answer: OutputDigest::from_bytes(&answer.text), site, root })
    }

    /// Starts a server for the files.
    fn serve(&self, bench: &JobEnvironment) -> Result<SiteServer> {
        SiteServer::start(&self.site, &self.root, &bench.work, bench.options.embedded)
    }

    /// Returns the digest of these pages, concatenated.
    fn pages(&self, paths: &[String]) -> OutputDigest {
        let mut printer = OutputDigester::new();
        for path in paths {
            printer.add(&self.site.page(path).expect("the site has the paths it lists"));
        }
        printer.finish()
    }

    /// Returns the directory with the pages.
    fn root(&self) -> &Path {
        &self.root
    }
}

/// Returns the body of `/bytes/300`, which is the same on nginx and on the embedded server.
fn small_body(seed: u64) -> Vec<u8> {
    BytePattern::new(seed).slice(0, SMALL_BODY_LENGTH)
}
