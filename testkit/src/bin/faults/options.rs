//! The command line of `faults`.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};

pub(crate) const USAGE: &str = "\
faults --haul PATH [options]: haul against an origin with faults

  --haul PATH       the program
  --seed N          where all chance comes from (default 1)
  --row NAME        only rows whose name has this in it; may be given often
  --quiet           print only what is false, and the sums
  --list            print the names of the rows and what they do

  --offsets N       tries of each row, each at another offset (default 100; 0: no rows)
  --body BYTES      body of the rows (default 6000011)
  --rate BYTES      bytes a second of each body there, so that splitting helps (default 12M)
  --jobs N          runs at once (default 8)
  --limit SECONDS   a run that takes longer hangs; its --max-time is two thirds of it (default 30; more where
                    others work on the machine)

  --kills N         kill -9 at so many random moments (default 0)
  --kill-body BYTES (default 64M), --kill-rate BYTES of each connection (default 25M)

  --sizes LIST      SHA-256 and peak memory for bodies of these sizes (1,4.6M,13M,100M,1G,5G)
  --slow-body BYTES the same with a reader that takes 1 MB/s (default 0: none)

  --json FILE       raw figures (default bench/results/faults-DATE.json; empty: none)
  --work DIR        where outputs are written (default: the system's directory for such)

BYTES may end in K, M or G (10³, 10⁶, 10⁹) or Ki, Mi, Gi. Exit 1 if anything was false.
";

pub(crate) struct FaultOptions {
    pub(crate) haul: PathBuf,
    pub(crate) seed: u64,
    pub(crate) rows: Vec<String>,
    pub(crate) quiet: bool,
    pub(crate) list: bool,
    pub(crate) offsets: u64,
    pub(crate) body: u64,
    pub(crate) rate: u64,
    pub(crate) jobs: usize,
    pub(crate) limit: Duration,
    pub(crate) kills: u64,
    pub(crate) kill_body: u64,
    pub(crate) kill_rate: u64,
    pub(crate) sizes: Vec<u64>,
    pub(crate) slow_body: u64,
    pub(crate) json: Option<PathBuf>,
    pub(crate) work: PathBuf,
}

impl FaultOptions {
    /// Returns the command line of `faults` for the report, without the paths, which differ between
    /// computers.
    pub(crate) fn command(&self) -> String {
        let mut words = format!(
            "faults --seed {} --offsets {} --body {} --rate {} --jobs {} --limit {} --kills {} --kill-body {} --kill-rate {} \
             --slow-body {}",
            self.seed,
            self.offsets,
            self.body,
            self.rate,
            self.jobs,
            self.limit.as_secs(),
            self.kills,
            self.kill_body,
            self.kill_rate,
            self.slow_body,
        );
        if !self.sizes.is_empty() {
            let sizes: Vec<_> = self.sizes.iter().map(u64::to_string).collect();
            words += &format!(" --sizes {}", sizes.join(","));
        }
        self.rows.iter().for_each(|row| words += &format!(" --row {row}"));
        words
    }
}

/// Parses the command line of `faults`; returns `None` if `--help` was given.
pub(crate) fn parse() -> Result<Option<FaultOptions>, lexopt::Error> {
    let mut options = FaultOptions {
        haul: PathBuf::new(),
        seed: 1,
        rows: Vec::new(),
        quiet: false,
        list: false,
        offsets: 100,
        body: 6_000_011,
        rate: 12_000_000,
        jobs: 8,
        limit: Duration::from_secs(30),
        kills: 0,
        kill_body: 64_000_000,
        kill_rate: 25_000_000,
        sizes: Vec::new(),
        slow_body: 0,
        json: None,
        work: std::env::temp_dir(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("body") => options.body = parser.value()?.parse_with(bytes)?,
            Long("rate") => options.rate = parser.value()?.parse_with(bytes)?,
            Long("kill-body") => options.kill_body = parser.value()?.parse_with(bytes)?,
            Long("kill-rate") => options.kill_rate = parser.value()?.parse_with(bytes)?,
            Long("slow-body") => options.slow_body = parser.value()?.parse_with(bytes)?,
            Long("haul") => options.haul = parser.value()?.into(),
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("row") => options.rows.push(parser.value()?.string()?),
            Long("quiet") => options.quiet = true,
            Long("list") => options.list = true,
            Long("offsets") => options.offsets = parser.value()?.parse()?,
            Long("jobs") => options.jobs = parser.value()?.parse::<usize>()?.max(1),
            Long("limit") => options.limit = Duration::from_secs(parser.value()?.parse()?),
            Long("kills") => options.kills = parser.value()?.parse()?,
            Long("sizes") => {
                options.sizes =
                    parser.value()?.parse_with(|list| list.split(',').map(bytes).collect::<Result<_, _>>())?
            }
            Long("json") => options.json = Some(parser.value()?.into()),
            Long("work") => options.work = parser.value()?.into(),
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if options.haul.as_os_str().is_empty() && !options.list {
        return Err("--haul PATH is missing".into());
    }
    Ok(Some(options))
}

/// Parses a number of bytes with an optional unit, such as `4.6M`. K, M and G are powers of 1,000;
/// Ki, Mi and Gi are powers of 1,024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 6] =
        [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1));
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(|| format!("{text} is too many"));
    }
    match number.parse::<f64>() {
        Ok(number) if number >= 0.0 && unit > 1 => Ok((number * unit as f64).round() as u64),
        _ => Err(format!("{text} is no number of bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn byte_counts_accept_units() {
        for (text, expected) in [("1", 1), ("4.6M", 4_600_000), ("5Gi", 5 << 30), ("64K", 64_000), ("0", 0)] {
            assert_eq!(bytes(text), Ok(expected));
        }
        for bad in ["", "1.5", "-1", "x", "1T", "99999999999G"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
