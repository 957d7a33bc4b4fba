//! The parts of a job: contestants (programs that do the same work), checks of their output, and
//! goals.
//!
//! A job has one part, or several with names (`get:null`, `get:pipe`). Only contestants of the same
//! part are compared.

use serde::{Deserialize, Serialize};

use crate::bench_record::JobGoal;
use crate::digest::OutputDigest;
use crate::measure::RunMetrics;

/// A part of a job that is ready to run: the contestants, the rounds, the server and the goals.
pub(crate) struct JobPart {
    /// The name of the part; empty if the job has only one.
    pub(crate) part: &'static str,
    pub(crate) contestants: Vec<Contestant>,
    /// The contestant whose results count as 1.00.
    pub(crate) baseline: &'static str,
    /// The contestant that does the minimum of work. Its results are a separate column.
    pub(crate) limit: Option<&'static str>,
    pub(crate) goals: Vec<PartGoal>,
    pub(crate) rounds: usize,
    /// True if the first round is a warm-up that does not count. If false, only the first
    /// contestant runs once before the rounds.
    pub(crate) warm_up: bool,
    /// True if clients and server run on one processor, because they take turns
    /// ([`SingleCoreGuard`](crate::one_core::SingleCoreGuard)).
    pub(crate) one_core: bool,
    /// True if system calls are counted. Each contestant runs once more for that.
    pub(crate) calls: bool,
    /// The name and version of the server that the contestants use.
    pub(crate) server: String,
    pub(crate) unit: WorkPerRun,
}

/// The unit of work of each run, for results per unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkPerRun {
    /// Each run sends this number of requests.
    Requests(usize),
    /// Each run receives this number of body bytes.
    Bytes(u64),
    /// The runs do different work, so a result for each request would be wrong.
    Run,
}

/// A contestant: a program with its arguments that does the work of the part.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<String>,
    /// True if the output goes through a pipe to `cat >/dev/null`.
    pub(crate) piped: bool,
    /// The number of times that the program is started in one run, for an [`OutputCheck::Proof`]
    /// without a pipe. The results are the mean of one start.
    pub(crate) times: u32,
    pub(crate) check: OutputCheck,
}

/// The role of a contestant in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContestantRole {
    Haul,
    Peer,
    Limit,
}

impl ContestantRole {
    /// Returns the role of the contestant with this name. The names of haul's contestants contain
    /// `haul`; `limit` is [`JobPart::limit`].
    pub(crate) fn of(name: &str, limit: Option<&str>) -> ContestantRole {
        if limit == Some(name) || name.starts_with("limit") {
            ContestantRole::Limit
        } else if name.to_ascii_lowercase().contains("haul") {
            ContestantRole::Haul
        } else {
            ContestantRole::Peer
        }
    }
}

/// The check of a contestant's output.
pub(crate) enum OutputCheck {
    /// The output is compared with this digest in every round.
    Output(OutputDigest),
    /// The contestant writes a file of this name, which is compared with the digest and removed in
    /// every round.
    File(&'static str, OutputDigest),
    /// The output is discarded. This shell command fetches the same bytes with the same options; it
    /// runs once before the rounds, and its output is checked.
    Proof(String, OutputDigest),
    /// The output is discarded as with [`Proof`](OutputCheck::Proof), but the client also prints
    /// the number of bytes that it received. That number is checked in every round. Without a
    /// command, nothing else is checked.
    Told(Option<String>, OutputDigest),
    /// The output is checked in every round. The reader of the output also records the time of its
    /// first byte.
    Watched(OutputDigest),
}

impl OutputCheck {
    /// Returns the length of the correct output in bytes.
    pub(crate) fn len(&self) -> u64 {
        let (OutputCheck::Output(print)
        | OutputCheck::File(_, print)
        | OutputCheck::Proof(_, print)
        | OutputCheck::Told(_, print)
        | OutputCheck::Watched(print)) = self;
        print.len
    }
}

/// A goal: an upper bound on the result `what` of the contestant `of`.
pub(crate) struct PartGoal {
    pub(crate) what: MetricKind,
    pub(crate) of: &'static str,
    pub(crate) bound: GoalBound,
}

/// The upper bound of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalBound {
    /// The ratio to the result of this other contestant in the same round.
    Of(&'static str, f64),
    /// An absolute value: CPU in s/GB, memory in MB, times in s.
    Most(f64),
}

impl PartGoal {
    /// Creates the goal that a result is at most `at_most` times the result of `against`.
    pub(crate) fn ratio(what: MetricKind, of: &'static str, against: &'static str, at_most: f64) -> PartGoal {
        PartGoal { what, of, bound: GoalBound::Of(against, at_most) }
    }

    /// Creates the goal that a result is at most `at_most`.
    pub(crate) fn most(what: MetricKind, of: &'static str, at_most: f64) -> PartGoal {
        PartGoal { what, of, bound: GoalBound::Most(at_most) }
    }

    /// Returns the goal in the form in which it is stored with the results.
    pub(crate) fn aim(&self) -> JobGoal {
        let (against, at_most) = match self.bound {
            GoalBound::Of(against, at_most) => (Some(against.to_owned()), at_most),
            GoalBound::Most(at_most) => (None, at_most),
        };
        JobGoal { what: self.what, of: self.of.to_owned(), against, at_most }
    }
}

/// A kind of result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MetricKind {
    #[serde(rename = "wall_s")]
    Wall,
    /// The user and system time of all processes of the contestant.
    #[serde(rename = "cpu_s")]
    Cpu,
    /// The CPU time of the client, without that of the program that reads from its pipe.
    #[serde(rename = "client_cpu_s")]
    Client,
    #[serde(rename = "rss_kib")]
    Rss,
    /// The time from the client's start to its first byte of output. The reader of its pipe
    /// measures it, since clients differ in how they measure it themselves.
    #[serde(rename = "first_byte_s")]
    FirstByte,
}

impl MetricKind {
    /// Returns the result of this kind of a run, in seconds or KiB; `None` if the run has none.
    pub(crate) fn of(self, figures: &RunMetrics) -> Option<f64> {
        match self {
            MetricKind::Wall => Some(figures.wall),
            MetricKind::Cpu => Some(figures.cpu()),
            MetricKind::Client => figures.client,
            MetricKind::Rss => Some(figures.rss),
            MetricKind::FirstByte => figures.first_byte,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            MetricKind::Wall => "wall",
            MetricKind::Cpu => "CPU",
            MetricKind::Client => "CPU without the reader",
            MetricKind::Rss => "peak memory",
            MetricKind::FirstByte => "first byte",
        }
    }

    /// Converts a result to a readable unit, and returns both. CPU time becomes s/GB if the work is
    /// counted in bytes.
    pub(crate) fn readable(self, value: f64, unit: WorkPerRun) -> (f64, &'static str) {
        match (self, unit) {
            (MetricKind::Cpu | MetricKind::Client, WorkPerRun::Bytes(bytes)) => (value * 1e9 / bytes as f64, "s/GB"),
            (MetricKind::Rss, _) => (value / 1024.0, "MB"),
            _ => (value, "s"),
        }
    }

    /// Returns a result and its unit as text. CPU time is shown for each request if the work is
    /// counted in requests.
    pub(crate) fn words(self, value: f64, unit: WorkPerRun) -> String {
        if let (MetricKind::Cpu | MetricKind::Client, WorkPerRun::Requests(requests @ 2..)) = (self, unit) {
            return format!("{:.1} µs a request", value * 1e6 / requests as f64);
        }
        match self.readable(value, unit) {
            (value, "s") if value < 0.1 => format!("{:.2} ms", value * 1e3),
            (value, unit @ "MB") => format!("{value:.1} {unit}"),
            (value, unit) => format!("{value:.3} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestant_role_follows_from_its_name() {
        for name in ["haul", "Haul", "libhaul", "LWP, haul", "haul, 10,000 URLs"] {
            assert_eq!(ContestantRole::of(name, Some("send + recv")), ContestantRole::Haul);
        }
        assert_eq!(ContestantRole::of("send + recv", Some("send + recv")), ContestantRole::Limit);
        assert_eq!(ContestantRole::of("limit: recv", Some("limit: splice")), ContestantRole::Limit);
        assert_eq!(ContestantRole::of("curl -Z", None), ContestantRole::Peer);
    }

    #[test]
    fn cpu_is_per_gigabyte_for_byte_jobs() {
        assert_eq!(MetricKind::Cpu.readable(0.5, WorkPerRun::Bytes(2_000_000_000)), (0.25, "s/GB"));
        assert_eq!(MetricKind::Cpu.readable(0.5, WorkPerRun::Requests(2)), (0.5, "s"));
        assert_eq!(MetricKind::Rss.readable(2048.0, WorkPerRun::Run), (2.0, "MB"));
        assert_eq!(MetricKind::Cpu.words(0.5, WorkPerRun::Requests(10_000)), "50.0 µs a request");
        assert_eq!(MetricKind::Cpu.words(0.0015, WorkPerRun::Requests(1)), "1.50 ms");
        assert_eq!(MetricKind::Wall.words(0.5, WorkPerRun::Requests(10_000)), "0.500 s");
        assert_eq!(MetricKind::Rss.words(2048.0, WorkPerRun::Run), "2.0 MB");
    }
}
