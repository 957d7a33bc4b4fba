//! Parses the command line.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};

use crate::Result;
use crate::measure::{MeasuredCommand, OutputReaderKind};

pub(crate) const USAGE: &str = "\
bench JOB[:PART]... [options]: haul and its peers in turn; each answer is checked before its time counts
bench all [options]: every job, within a budget of time
bench limit MODE ...: the least anyone could do, as a peer of its own (bench limit says which modes)
bench scorecard [--check] [FILE]: documents, charts and the README's figures from a file of results (default: the
    newest of the whole); --check only compares them
bench instructions [--update]: the instructions of fixed cases against those of bench/instructions.json
bench engines [--python FILE] [--rows N] [--bytes N] [--hosts N] [--rounds N] [--parallel N] [--ways TEXT]: tables of
     URLs in Ray Data, with haul and its peers
bench partition [--urls N] [--hosts N] [--tasks N] [--seed N]: a simulation of tasks that share a list of URLs

  --list           name the jobs
  --rounds N       counted rounds (default: the job's own), after one of warming up
  --budget SECONDS begin no further round of a job when its share of so many seconds is used (default for all: 1440)
  --smoke          haul alone, everything tiny, one round, from the embedded origin: only whether its answers are right
  --haul PATH      which haul (default: a copy of that beside this program, else from PATH)
  --curl PATH      which curl (default: from PATH)
  --pages N        pages of the site (default 5703); figures of other numbers are kept only with --results
  --size BYTES     bytes of the large bodies, with K, M or G for KiB, MiB or GiB (default: the job's own); figures
                   of other sizes are kept only with --results
  --seed N         which site (default 1)
  --embedded       serve from the embedded origin even if nginx is installed
  --slow           also run the contestants that take tens of seconds a round
  --date DATE      the date of the raw figures (default: what `date +%F` says)
  --host NAME      the name of this machine in the raw figures (default: its own)
  --results DIR    where the raw figures go (default: bench/results)
  --no-save        keep no raw figures
";

/// The number of pages of the generated site in a smoke run (haul alone, with tiny sizes).
const SMOKE_PAGES: usize = 40;
const SMOKE_SIZE: u64 = 300_000;

/// The action that the command line of `bench` selects.
pub(crate) enum BenchCommand {
    Help,
    List,
    /// Runs one command and writes its cost to a file. The bench starts itself with this command as
    /// the helper process; see [`crate::measure`].
    Measure(MeasuredCommand),
    /// Compares instruction counts with the baseline. The values are the command-line arguments;
    /// see [`crate::instruction_counts`].
    Instructions(Vec<String>),
    /// Runs `bench limit`: a program that does only the minimum of work for a transfer, such as
    /// reading the body from the socket. Its cost is the lower limit with which other programs are
    /// compared. The values are the command-line arguments; see [`crate::lower_limit_programs`].
    LowerLimit(Vec<String>),
    /// Runs `bench engines`: measures haul and its competitors while they fetch the URLs in tables
    /// within Ray Data, a Python library that processes tables in parallel. The values are the
    /// command-line arguments; see [`crate::ray_data_comparison`].
    RayDataComparison(Vec<String>),
    /// Simulates tasks that share a list of URLs. The values are the command-line arguments; see
    /// [`crate::url_partition_simulation`].
    Partition(Vec<String>),
    /// Fetches URLs over HTTP/3 with quinn and h3. The values are the command-line arguments; see
    /// [`crate::quinn_client`].
    QuinnClient(Vec<String>),
    /// Reads packages from a mirror. The values are the command-line arguments; see
    /// [`crate::jobs::package_fetcher`].
    ReadPackages(Vec<String>),
    /// Checks a web archive, and prints its digests. The values are the command-line arguments; see
    /// [`crate::jobs::warc`].
    ReadWarc(Vec<String>),
    /// Generates documents from results. The values are the command-line arguments; see
    /// [`crate::scorecard`].
    Render(Vec<String>),
    Run(BenchOptions),
}

/// The settings of a run of the bench.
pub(crate) struct BenchOptions {
    pub(crate) jobs: Vec<String>,
    pub(crate) rounds: Option<usize>,
    /// The time that all jobs together may take. `None` means the default time for `all`, and no
    /// limit for single jobs.
    pub(crate) budget: Option<Duration>,
    /// True for a smoke run: only haul runs, and the sites and bodies are tiny.
    pub(crate) smoke: bool,
    pub(crate) haul: Option<PathBuf>,
    pub(crate) curl: Option<PathBuf>,
    pub(crate) pages: usize,
    /// The size of large bodies in bytes; `None` means each job's own size.
    pub(crate) size: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) embedded: bool,
    pub(crate) slow: bool,
    pub(crate) date: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) results: PathBuf,
    pub(crate) save: bool,
}

impl BenchOptions {
    /// Returns `true` if the site and the bodies have the full sizes that the scorecard needs.
    pub(crate) fn is_full(&self) -> bool {
        self.pages == testkit::site::PAGES && self.size.is_none()
    }
}

pub(crate) fn parse() -> Result<BenchCommand> {
    let mut options = BenchOptions {
        jobs: Vec::new(),
        rounds: None,
        budget: None,
        smoke: false,
        haul: None,
        curl: None,
        pages: testkit::site::PAGES,
        size: None,
        seed: 1,
        embedded: false,
        slow: false,
        date: None,
        host: None,
        results: crate::jobs::home().join("results"),
        save: true,
    };
    let mut has_results = false;
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("measure") => {
                let figures = parser.value()?.into();
                let limit = Duration::from_secs(parser.value()?.parse()?);
                let mut words = parser.raw_args()?;
                let usage = "--measure FILE SECONDS to|times=N|cat|watch=FILE PROGRAM [ARGUMENT...]";
                let reader = OutputReaderKind::parse(&words.next().ok_or(usage)?.string()?).ok_or(usage)?;
                let program = words.next().ok_or(usage)?;
                return Ok(BenchCommand::Measure(MeasuredCommand {
                    figures,
                    limit,
                    reader,
                    program,
                    arguments: words.collect(),
                }));
            }
            Long("list") => return Ok(BenchCommand::List),
            Long("rounds") => options.rounds = Some(parser.value()?.parse::<usize>()?.max(1)),
            Long("budget") => options.budget = Some(Duration::from_secs(parser.value()?.parse()?)),
            Long("smoke") => options.smoke = true,
            Long("host") => options.host = Some(parser.value()?.string()?),
            Long("haul") => options.haul = Some(std::path::absolute(parser.value()?)?),
            Long("curl") => options.curl = Some(std::path::absolute(parser.value()?)?),
            Long("pages") => options.pages = parser.value()?.parse::<usize>()?.max(1),
            Long("size") => options.size = Some(bytes(&parser.value()?.string()?)?),
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("embedded") => options.embedded = true,
            Long("slow") => options.slow = true,
            Long("date") => options.date = Some(parser.value()?.string()?),
            Long("results") => {
                options.results = parser.value()?.into();
                has_results = true;
            }
            Long("no-save") => options.save = false,
            Long("help") | Short('h') => return Ok(BenchCommand::Help),
            Value(word) => {
                let word = word.string()?;
                let of_its_own = match word.as_str() {
                    "engines" => BenchCommand::RayDataComparison,
                    "instructions" => BenchCommand::Instructions,
                    "limit" => BenchCommand::LowerLimit,
                    "partition" => BenchCommand::Partition,
                    "quinn-client" => BenchCommand::QuinnClient,
                    "read-packages" => BenchCommand::ReadPackages,
                    "read-warc" => BenchCommand::ReadWarc,
                    "scorecard" => BenchCommand::Render,
                    _ => {
                        options.jobs.push(word);
                        continue;
                    }
                };
                if options.jobs.is_empty() {
                    let words: Result<Vec<String>, _> = parser.raw_args()?.map(ValueExt::string).collect();
                    return Ok(words.map(of_its_own)?);
                }
                options.jobs.push(word);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if options.smoke {
        options.pages = SMOKE_PAGES;
        options.size = Some(SMOKE_SIZE);
        options.embedded = true;
    }
    options.save &= options.is_full() || has_results;
    Ok(if options.jobs.is_empty() { BenchCommand::Help } else { BenchCommand::Run(options) })
}

/// Parses a number of bytes with an optional unit K, M or G (KiB, MiB or GiB).
fn bytes(text: &str) -> Result<u64> {
    let (number, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = number.parse::<u64>()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text} bytes are none, or too many").into())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn byte_sizes_are_parsed_with_units() {
        let read = |text| bytes(text).ok();
        assert_eq!(read("100000000"), Some(100_000_000));
        assert_eq!(read("16M"), Some(16 << 20));
        assert_eq!(read("1g"), Some(1 << 30));
        for wrong in ["", "0", "M", "1T", "-1", "99999999999G"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
