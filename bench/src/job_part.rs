//! The parts of a job: contestants, how their answers are checked, and the goals.
//!
//! A job has one card, or several parts with a card each (`get:null`, `get:pipe`): only contestants
//! on one card are compared.

use serde::{Deserialize, Serialize};

use crate::digest::OutputDigest;
use crate::measure::RunFigures;
use crate::record::JobGoal;

/// A job or a part of one, set up: the contestants, the rounds, the server and the goals.
pub(crate) struct JobPart {
    /// The part of the job; empty for the whole job.
    pub(crate) part: &'static str,
    pub(crate) contestants: Vec<Contestant>,
    /// The contestant whose figures count as 1.00.
    pub(crate) baseline: &'static str,
    /// The contestant that does the least anyone could do; its figures are a column of their own.
    pub(crate) limit: Option<&'static str>,
    pub(crate) goals: Vec<CardGoal>,
    pub(crate) rounds: usize,
    /// True if an uncounted warm-up round goes first; if not, only the first contestant runs once.
    pub(crate) warm_up: bool,
    /// True if clients and server take turns and so share one processor:
    /// [`OneCore`](crate::cores::OneCore).
    pub(crate) one_core: bool,
    /// True if system calls are counted, in one more run of each contestant.
    pub(crate) calls: bool,
    /// The server's name and version.
    pub(crate) server: String,
    pub(crate) unit: WorkUnit,
}

/// The unit of work of every run of a card, by which figures can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkUnit {
    /// The number of requests.
    Requests(usize),
    /// The number of bytes of bodies.
    Bytes(u64),
    /// The runs differ: a figure for each request would be wrong.
    Run,
}

/// A contestant: one way to do the job.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<String>,
    /// True if the output goes through a pipe to `cat >/dev/null`.
    pub(crate) piped: bool,
    /// The number of starts in a row, for a [`AnswerCheck::Proof`] that is not piped; the figures
    /// are those of one start.
    pub(crate) times: u32,
    pub(crate) check: AnswerCheck,
}

/// A contestant's role in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContestantRole {
    Haul,
    Peer,
    Limit,
}

impl ContestantRole {
    /// Determined by the name: haul's names contain its own. `limit` is that of the card.
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

/// The check of a contestant's answer.
pub(crate) enum AnswerCheck {
    /// The output is checked, in every round.
    Output(OutputDigest),
    /// The file of this name that it writes, in every round; removed after each.
    File(&'static str, OutputDigest),
    /// The output is discarded. This shell command prints once, before the rounds, what the same
    /// options fetch.
    Proof(String, OutputDigest),
    /// Like [`Proof`](AnswerCheck::Proof); in every round the client also prints how many bytes it
    /// received. Without a command only that number is checked.
    Told(Option<String>, OutputDigest),
    /// The output is checked, in every round, by a reader that also records the time of the first
    /// byte.
    Watched(OutputDigest),
}

impl AnswerCheck {
    /// The length of the right answer.
    pub(crate) fn len(&self) -> u64 {
        let (AnswerCheck::Output(print)
        | AnswerCheck::File(_, print)
        | AnswerCheck::Proof(_, print)
        | AnswerCheck::Told(_, print)
        | AnswerCheck::Watched(print)) = self;
        print.len
    }
}

/// A goal for a figure of contestant `of`.
pub(crate) struct CardGoal {
    pub(crate) what: FigureKind,
    pub(crate) of: &'static str,
    pub(crate) bound: GoalBound,
}

/// The upper bound of the figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalBound {
    /// A ratio to the figure of another contestant in the same round.
    Of(&'static str, f64),
    /// An absolute bound: CPU in s/GB, memory in MB, times in s.
    Most(f64),
}

impl CardGoal {
    /// At most `at_most` of what `against` takes.
    pub(crate) fn ratio(what: FigureKind, of: &'static str, against: &'static str, at_most: f64) -> CardGoal {
        CardGoal { what, of, bound: GoalBound::Of(against, at_most) }
    }

    /// At most this figure.
    pub(crate) fn most(what: FigureKind, of: &'static str, at_most: f64) -> CardGoal {
        CardGoal { what, of, bound: GoalBound::Most(at_most) }
    }

    /// The goal in the form that is stored with the figures.
    pub(crate) fn aim(&self) -> JobGoal {
        let (against, at_most) = match self.bound {
            GoalBound::Of(against, at_most) => (Some(against.to_owned()), at_most),
            GoalBound::Most(at_most) => (None, at_most),
        };
        JobGoal { what: self.what, of: self.of.to_owned(), against, at_most }
    }
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FigureKind {
    #[serde(rename = "wall_s")]
    Wall,
    /// User and system time of the whole process tree.
    #[serde(rename = "cpu_s")]
    Cpu,
    /// CPU time of the client without the reader of its pipe.
    #[serde(rename = "client_cpu_s")]
    Client,
    #[serde(rename = "rss_kib")]
    Rss,
    /// From the client's start until its first byte of output. Measured by the reader of its pipe,
    /// not by the client: clients differ in what they measure, and one that takes the time too
    /// early would win.
    #[serde(rename = "first_byte_s")]
    FirstByte,
}

impl FigureKind {
    /// The figure of a run, in seconds or KiB; `None` if the run has no such figure.
    pub(crate) fn of(self, figures: &RunFigures) -> Option<f64> {
        match self {
            FigureKind::Wall => Some(figures.wall),
            FigureKind::Cpu => Some(figures.cpu()),
            FigureKind::Client => figures.client,
            FigureKind::Rss => Some(figures.rss),
            FigureKind::FirstByte => figures.first_byte,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FigureKind::Wall => "wall",
            FigureKind::Cpu => "CPU",
            FigureKind::Client => "CPU without the reader",
            FigureKind::Rss => "peak memory",
            FigureKind::FirstByte => "first byte",
        }
    }

    /// The figure with a readable unit: CPU for each GB if the runs are counted in bytes.
    pub(crate) fn readable(self, value: f64, unit: WorkUnit) -> (f64, &'static str) {
        match (self, unit) {
            (FigureKind::Cpu | FigureKind::Client, WorkUnit::Bytes(bytes)) => (value * 1e9 / bytes as f64, "s/GB"),
            (FigureKind::Rss, _) => (value / 1024.0, "MB"),
            _ => (value, "s"),
        }
    }

    /// The figure and its unit in words: CPU for each request if many are counted.
    pub(crate) fn words(self, value: f64, unit: WorkUnit) -> String {
        if let (FigureKind::Cpu | FigureKind::Client, WorkUnit::Requests(requests @ 2..)) = (self, unit) {
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
    fn haul_and_limit_are_recognised() {
        for name in ["haul", "Haul", "libhaul", "LWP, haul", "haul, 10,000 URLs"] {
            assert_eq!(ContestantRole::of(name, Some("send + recv")), ContestantRole::Haul);
        }
        assert_eq!(ContestantRole::of("send + recv", Some("send + recv")), ContestantRole::Limit);
        assert_eq!(ContestantRole::of("limit: recv", Some("limit: splice")), ContestantRole::Limit);
        assert_eq!(ContestantRole::of("curl -Z", None), ContestantRole::Peer);
    }

    #[test]
    fn cpu_is_per_gigabyte_for_byte_jobs() {
        assert_eq!(FigureKind::Cpu.readable(0.5, WorkUnit::Bytes(2_000_000_000)), (0.25, "s/GB"));
        assert_eq!(FigureKind::Cpu.readable(0.5, WorkUnit::Requests(2)), (0.5, "s"));
        assert_eq!(FigureKind::Rss.readable(2048.0, WorkUnit::Run), (2.0, "MB"));
        assert_eq!(FigureKind::Cpu.words(0.5, WorkUnit::Requests(10_000)), "50.0 µs a request");
        assert_eq!(FigureKind::Cpu.words(0.0015, WorkUnit::Requests(1)), "1.50 ms");
        assert_eq!(FigureKind::Wall.words(0.5, WorkUnit::Requests(10_000)), "0.500 s");
        assert_eq!(FigureKind::Rss.words(2048.0, WorkUnit::Run), "2.0 MB");
    }
}
