//! The command line of `hostile`.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::{Long, Short};

pub(crate) const USAGE: &str = "\
hostile --haul PATH [options]: haul against replies that no honest server sends

  --haul PATH      the program
  --seed N         where all chance comes from (default 1)
  --replies N      how many (default 10000)
  --only N         the reply of this number alone, told in full
  --jobs N         runs at once (default 8)
  --limit SECONDS  a run that takes longer hangs (default 40)
  --memory MIB     the most that a run may have at its peak (default 64)
  --json FILE      figures (default bench/results/hostile-DATE.json; empty: none)
  --work DIR       where outputs are written (default: the system's directory for such)

Exit 1 if anything was false.
";

pub(crate) struct HostileOptions {
    pub(crate) haul: PathBuf,
    pub(crate) seed: u64,
    pub(crate) replies: u64,
    pub(crate) only: Option<u64>,
    pub(crate) jobs: usize,
    pub(crate) limit: Duration,
    /// The largest allowed peak memory of a run of haul, in bytes.
    pub(crate) memory: u64,
    pub(crate) json: Option<PathBuf>,
    pub(crate) work: PathBuf,
}

/// Parses the command line of `hostile`; returns `None` if `--help` was given.
pub(crate) fn parse() -> Result<Option<HostileOptions>, Box<dyn std::error::Error + Send + Sync>> {
    let mut options = HostileOptions {
        haul: PathBuf::new(),
        seed: 1,
        replies: 10_000,
        only: None,
        jobs: 8,
        limit: Duration::from_secs(40),
        memory: 64 << 20,
        json: None,
        work: std::env::temp_dir(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        use lexopt::ValueExt;
        match argument {
            Long("haul") => options.haul = parser.value()?.into(),
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("replies") => options.replies = parser.value()?.parse()?,
            Long("only") => options.only = Some(parser.value()?.parse()?),
            Long("jobs") => options.jobs = parser.value()?.parse::<usize>()?.max(1),
            Long("limit") => options.limit = Duration::from_secs(parser.value()?.parse()?),
            Long("memory") => options.memory = parser.value()?.parse::<u64>()? << 20,
            Long("json") => options.json = Some(parser.value()?.into()),
            Long("work") => options.work = parser.value()?.into(),
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.haul.as_os_str().is_empty() {
        return Err("--haul PATH is missing".into());
    }
    // The runs start in another directory.
    options.haul = options.haul.canonicalize().map_err(|error| format!("{}: {error}", options.haul.display()))?;
    Ok(Some(options))
}
