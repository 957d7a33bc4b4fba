//! The results of all runs of haul against hostile replies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};
use testkit::hostile::HostileProtocol;

use crate::Result;
use crate::options::HostileOptions;

/// The number of failed runs that the report shows in full.
const MAX_SHOWN: usize = 40;

/// The verdict on one run of haul against one hostile reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyVerdict {
    Survived,
    /// haul refused a reply that it should have accepted. The number is the length of the reply's
    /// body in bytes.
    Refused(usize),
    Panic,
    Signal,
    Hung,
    Memory,
    WrongBytes,
    FalseSuccess,
    /// haul wrote a file outside the allowed directory.
    Escaped,
}

impl ReplyVerdict {
    fn name(self) -> &'static str {
        match self {
            ReplyVerdict::Survived => "survived",
            ReplyVerdict::Refused(_) => "refused",
            ReplyVerdict::Panic => "panics",
            ReplyVerdict::Signal => "signals",
            ReplyVerdict::Hung => "hangs",
            ReplyVerdict::Memory => "over_memory",
            ReplyVerdict::WrongBytes => "wrong_bytes",
            ReplyVerdict::FalseSuccess => "false_successes",
            ReplyVerdict::Escaped => "escaped",
        }
    }
}

/// The names of all verdicts on a run of haul against a hostile reply. The report prints 0 for a
/// verdict that never occurred.
const NAMES: [&str; 9] =
    ["survived", "refused", "panics", "signals", "hangs", "over_memory", "wrong_bytes", "false_successes", "escaped"];

/// The result of one run of haul against one hostile reply.
pub(crate) struct ReplyTry {
    pub(crate) verdict: ReplyVerdict,
    pub(crate) code: Option<i32>,
    pub(crate) rss: u64,
    pub(crate) protocol: HostileProtocol,
    pub(crate) promise: &'static str,
    pub(crate) description: String,
}

/// The number of runs with each verdict.
#[derive(Default)]
pub(crate) struct VerdictCounts {
    tried: u64,
    verdicts: BTreeMap<&'static str, u64>,
    kinds: BTreeMap<String, u64>,
    codes: BTreeMap<i32, u64>,
    rss: u64,
    /// A description of the run that used the most memory, for the report.
    largest: String,
    failures: Vec<String>,
}

impl VerdictCounts {
    pub(crate) fn add(&mut self, tried: ReplyTry, in_full: bool) {
        self.tried += 1;
        *self.verdicts.entry(tried.verdict.name()).or_default() += 1;
        *self.kinds.entry(format!("{:?} {}", tried.protocol, tried.promise).to_lowercase()).or_default() += 1;
        *self.codes.entry(tried.code.unwrap_or(-1)).or_default() += 1;
        if tried.rss > self.rss {
            (self.rss, self.largest) = (tried.rss, tried.description.clone());
        }
        let is_false = tried.verdict != ReplyVerdict::Survived;
        if in_full || is_false && self.failures.len() < MAX_SHOWN {
            println!("{}: {}", tried.verdict.name(), tried.description);
        }
        if is_false && self.failures.len() < MAX_SHOWN {
            self.failures.push(format!("{}: {}", tried.verdict.name(), tried.description));
        }
    }

    pub(crate) fn is_right(&self) -> bool {
        self.verdicts.keys().all(|name| *name == "survived")
    }

    fn count(&self, name: &str) -> u64 {
        self.verdicts.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn print(&self) {
        let counts: Vec<_> =
            NAMES.iter().map(|name| format!("{} {}", self.count(name), name.replace('_', " "))).collect();
        println!("{} replies: {}; peak memory {:.1} MiB", self.tried, counts.join(", "), self.rss as f64 / 1_048_576.0);
        let list = |entries: Vec<(String, u64)>| {
            entries.into_iter().map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join(", ")
        };
        println!("most memory: {}", self.largest);
        println!("kinds: {}", list(self.kinds.clone().into_iter().collect()));
        println!("exit codes: {}", list(self.codes.iter().map(|(code, count)| (code.to_string(), *count)).collect()));
        println!("{}", if self.is_right() { "all true" } else { "FALSE" });
    }

    /// Writes the results as JSON to the file that the options name, by default a dated file in
    /// bench/results. An empty file name turns this off.
    pub(crate) fn write(&self, options: &HostileOptions, version: &str) -> Result<()> {
        let said = |program: &str, args: &[&str]| -> Result<String> {
            Ok(String::from_utf8(Command::new(program).args(args).output()?.stdout)?.trim().to_owned())
        };
        let date = said("date", &["+%F"])?;
        let path = options.json.clone().unwrap_or_else(|| PathBuf::from(format!("bench/results/hostile-{date}.json")));
        if path.as_os_str().is_empty() || options.only.is_some() {
            return Ok(());
        }
        let counted = |counts: Vec<(String, u64)>| -> Value {
            counts.into_iter().map(|(name, count)| (name, json!(count))).collect::<Map<_, _>>().into()
        };
        let value = json!({
            "date": date,
            "haul": version,
            "machine": said("uname", &["-srm"])?,
            "command": format!("hostile --seed {} --replies {}", options.seed, options.replies),
            "replies": self.tried,
            "verdicts": counted(NAMES.iter().map(|name| ((*name).to_owned(), self.count(name))).collect()),
            "kinds": counted(self.kinds.clone().into_iter().collect()),
            "exit_codes": counted(self.codes.iter().map(|(code, count)| (code.to_string(), *count)).collect()),
            "peak_rss_bytes": self.rss,
            "most_memory": self.largest,
            "failures": self.failures,
        });
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::write(&path, serde_json::to_string_pretty(&value)? + "\n")?;
        println!("figures: {}", path.display());
        Ok(())
    }
}
