//! The parts of a job: programs that do the same work, checks of their output, and goals.
//!
//! A job has one part, or several with names (`get:null`, `get:pipe`). Only programs of the same
//! part are compared.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::bench_results_file::JobGoal;
use crate::fetched_page_check::{FetchedPageCounts, PageCheck};
use crate::measure::RunMetrics;
use crate::output_digest::OutputDigest;
use crate::versioned_site::ReplyCheck;

/// A part of a benchmark job that is ready to run: the programs to compare, the rounds, the server
/// and the goals.
pub(crate) struct JobPart {
    /// The name of the part; empty if the job has only one part.
    pub(crate) part: &'static str,
    pub(crate) bench_programs: Vec<BenchProgram>,
    /// The program with which the others are compared if haul has no competitor in this part. Its
    /// results are then shown as 1.00.
    pub(crate) baseline: &'static str,
    /// The program that does only the minimum of work that the part needs. Its results show the
    /// lower limit of the cost, in a separate column. `None` if there is no such program.
    pub(crate) limit: Option<&'static str>,
    pub(crate) goals: Vec<PartGoal>,
    pub(crate) rounds: usize,
    /// True if all programs run once before the first measured round. If false, only the first
    /// program does, which brings the server's files into the page cache.
    pub(crate) warm_up: bool,
    /// True if the clients and the server share one processor
    /// ([`SingleCoreGuard`](crate::one_core::SingleCoreGuard)).
    pub(crate) one_core: bool,
    /// True if system calls are counted, in one additional run of each program.
    pub(crate) calls: bool,
    /// The name and version of the server to which the programs connect.
    pub(crate) server: String,
    pub(crate) unit: WorkPerRun,
}

/// The work that a program does in each run of one part of a benchmark job. Results are divided by
/// this work, for example to CPU time per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkPerRun {
    /// Each run sends this number of requests.
    Requests(usize),
    /// Each run receives this number of body bytes.
    Bytes(u64),
    /// The runs do different amounts of work, so results are given per run.
    Run,
}

/// A program that takes part in a comparison, and its arguments.
pub(crate) struct BenchProgram {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<String>,
    /// True if the program's output goes through a pipe to `cat >/dev/null`.
    pub(crate) piped: bool,
    /// The number of times that the program is started in one run. The results of the run are the
    /// means over these starts. If `times` is above 1, `check` must be [`OutputCheck::CheckedOnce`]
    /// and `piped` false.
    pub(crate) times: u32,
    pub(crate) check: OutputCheck,
}

/// The role of a program in the comparison: haul or a variant of haul, a competitor (peer), or a
/// program that does only the minimum of work (limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgramRole {
    Haul,
    Peer,
    Limit,
}

impl ProgramRole {
    /// Returns the role of the program with this name. A name that contains `haul` belongs to a
    /// variant of haul. `limit` is the name of the program with the minimum of work
    /// ([`JobPart::limit`]).
    pub(crate) fn from_name(name: &str, limit: Option<&str>) -> ProgramRole {
        if limit == Some(name) || name.starts_with("limit") {
            ProgramRole::Limit
        } else if name.to_ascii_lowercase().contains("haul") {
            ProgramRole::Haul
        } else {
            ProgramRole::Peer
        }
    }
}

/// The method by which a program's output is checked.
pub(crate) enum OutputCheck {
    /// In every round, the output is compared with this digest.
    Output(OutputDigest),
    /// In every round, the program writes a file of this name, which is compared with the digest
    /// and then removed.
    File(&'static str, OutputDigest),
    /// The output of the program is discarded. Instead, the shell command in the first field
    /// fetches the same bytes once before the rounds, and its output is compared with the digest.
    CheckedOnce(String, OutputDigest),
    /// The program discards the body, and prints the number of bytes that it received. In every
    /// round, this number is compared with the length in the digest. The first field is an optional
    /// shell command that runs once before the rounds. The command fetches and outputs the same
    /// bytes, which are compared with the digest.
    PrintedLength(Option<String>, OutputDigest),
    /// In every round, the output is compared with this digest. The reader of the output also
    /// records the time of the first byte.
    OutputWithFirstByteTime(OutputDigest),
    /// In every round, the output must consist of these pages in any order. If pages are missing,
    /// the output is wrong, and the number of missing pages is recorded.
    Pages(Rc<PageCheck>),
    /// In every round, the server must have sent the expected numbers of pages and of 304 replies,
    /// and the client's files must contain the pages as the server has them at the end of the run.
    /// The number of content bytes that the server sent is recorded.
    Replies(Rc<ReplyCheck>),
}

impl OutputCheck {
    /// Returns the length of the correct output in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            OutputCheck::Output(print)
            | OutputCheck::File(_, print)
            | OutputCheck::CheckedOnce(_, print)
            | OutputCheck::PrintedLength(_, print)
            | OutputCheck::OutputWithFirstByteTime(print) => print.len,
            OutputCheck::Pages(check) => check.len,
            OutputCheck::Replies(_) => 0,
        }
    }
}

/// A goal of one part of a benchmark job: an upper bound on a result of one program. `what` is the
/// kind of the result, and `of` the name of the program.
pub(crate) struct PartGoal {
    pub(crate) what: MetricKind,
    pub(crate) of: &'static str,
    pub(crate) bound: GoalMaximum,
}

/// The name in [`JobGoal::against`] that stands for the best competitor of haul.
pub(crate) const BEST_PEER: &str = "the best peer";

/// The upper bound that a goal sets on a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalMaximum {
    /// The maximum ratio to the result of this other program in the same round.
    RatioTo(&'static str, f64),
    /// The maximum ratio to the result of the best competitor of haul.
    RatioToBestPeer(f64),
    /// The maximum of the result itself: CPU time in s/GB, memory in MB, times in s, or a count.
    AtMost(f64),
}

impl PartGoal {
    /// Creates the goal that the result of `of` is at most `at_most` times the result of `against`.
    pub(crate) fn ratio(what: MetricKind, of: &'static str, against: &'static str, at_most: f64) -> PartGoal {
        PartGoal { what, of, bound: GoalMaximum::RatioTo(against, at_most) }
    }

    /// Creates the goal that the result of the program `of` is at most `at_most` times the result
    /// of the best competitor of haul.
    pub(crate) fn ratio_to_best_peer(what: MetricKind, of: &'static str, at_most: f64) -> PartGoal {
        PartGoal { what, of, bound: GoalMaximum::RatioToBestPeer(at_most) }
    }

    /// Creates the goal that the result of `of` is at most `at_most`.
    pub(crate) fn at_most(what: MetricKind, of: &'static str, at_most: f64) -> PartGoal {
        PartGoal { what, of, bound: GoalMaximum::AtMost(at_most) }
    }

    /// Returns the goal in the format in which it is stored with the results.
    pub(crate) fn to_job_goal(&self) -> JobGoal {
        let (against, at_most) = match self.bound {
            GoalMaximum::RatioTo(against, at_most) => (Some(against.to_owned()), at_most),
            GoalMaximum::RatioToBestPeer(at_most) => (Some(BEST_PEER.to_owned()), at_most),
            GoalMaximum::AtMost(at_most) => (None, at_most),
        };
        JobGoal { what: self.what, of: self.of.to_owned(), against, at_most }
    }
}

/// A kind of measured result of a program's run, such as its CPU time or its peak memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MetricKind {
    #[serde(rename = "wall_s")]
    Wall,
    /// The user and system CPU time of all processes of the program.
    #[serde(rename = "cpu_s")]
    Cpu,
    /// The CPU time of the client, without the CPU time of the program that reads the client's
    /// output from a pipe.
    #[serde(rename = "client_cpu_s")]
    Client,
    #[serde(rename = "rss_kib")]
    Rss,
    /// The time from the client's start to its first byte of output. The reader of the client's
    /// pipe measures it, since clients measure such times in different ways.
    #[serde(rename = "first_byte_s")]
    FirstByte,
    /// The number of pages that the client should have got, but did not get. This number is
    /// recorded even if the run counts as wrong, because pages are missing.
    #[serde(rename = "missing_pages")]
    MissingPages,
    /// The time from the client's start to the last page that the server sent.
    #[serde(rename = "last_page_s")]
    LastPage,
    /// The number of connections that the server accepted.
    #[serde(rename = "connections")]
    Connections,
    /// The number of full TLS handshakes, in which the server sends its certificates.
    #[serde(rename = "full_handshakes")]
    FullHandshakes,
    /// The largest number of requests that the server handled at the same time, measured after the
    /// first second.
    #[serde(rename = "peak_requests")]
    PeakRequests,
    /// The largest difference between the rate set for the client and the rate measured at a
    /// server, in percent of the rate that was set.
    #[serde(rename = "rate_difference")]
    RateDifference,
    /// The bytes of content that the server sent.
    #[serde(rename = "served_bytes")]
    ServedBytes,
}

impl MetricKind {
    /// Returns the result of this kind from the measurements of one run, in seconds, KiB or a
    /// count. `None` if the measurements do not contain it.
    pub(crate) fn metric_of_run(self, figures: &RunMetrics) -> Option<f64> {
        let of_pages = |figure: fn(&FetchedPageCounts) -> Option<f64>| figures.pages.as_ref().and_then(figure);
        match self {
            MetricKind::Wall => Some(figures.wall),
            MetricKind::Cpu => Some(figures.cpu()),
            MetricKind::Client => figures.client,
            MetricKind::Rss => Some(figures.rss),
            MetricKind::FirstByte => figures.first_byte,
            MetricKind::MissingPages => of_pages(|pages| Some((pages.required - pages.fetched) as f64)),
            MetricKind::LastPage => of_pages(|pages| Some(pages.last_page_us as f64 / 1e6)),
            MetricKind::Connections => of_pages(|pages| Some(pages.connections as f64)),
            MetricKind::FullHandshakes => of_pages(|pages| pages.full_handshakes.map(|count| count as f64)),
            MetricKind::PeakRequests => of_pages(|pages| pages.peak_later.map(|count| count as f64)),
            MetricKind::RateDifference => of_pages(|pages| pages.rate_difference),
            MetricKind::ServedBytes => figures.served_bytes.map(|bytes| bytes as f64),
        }
    }

    /// Returns true if results of this kind are counts, without a unit.
    pub(crate) fn is_count(self) -> bool {
        use MetricKind::{Connections, FullHandshakes, MissingPages, PeakRequests};

        matches!(self, Connections | FullHandshakes | MissingPages | PeakRequests)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            MetricKind::Wall => "wall",
            MetricKind::Cpu => "CPU",
            MetricKind::Client => "CPU without the reader",
            MetricKind::Rss => "peak memory",
            MetricKind::FirstByte => "first byte",
            MetricKind::MissingPages => "missing pages",
            MetricKind::LastPage => "last page",
            MetricKind::Connections => "connections",
            MetricKind::FullHandshakes => "full handshakes",
            MetricKind::PeakRequests => "requests at a time",
            MetricKind::RateDifference => "difference from the rate",
            MetricKind::ServedBytes => "content sent by the server",
        }
    }

    /// Converts a result of this kind to a readable unit, and returns the value and the unit. If
    /// the work is counted in bytes, CPU time becomes s/GB.
    pub(crate) fn in_readable_unit(self, value: f64, unit: WorkPerRun) -> (f64, &'static str) {
        match (self, unit) {
            (MetricKind::Cpu | MetricKind::Client, WorkPerRun::Bytes(bytes)) => (value * 1e9 / bytes as f64, "s/GB"),
            (MetricKind::Rss, _) => (value / 1024.0, "MB"),
            (MetricKind::RateDifference, _) => (value, "%"),
            (MetricKind::ServedBytes, _) => (value / 1e6, "MB"),
            _ if self.is_count() => (value, ""),
            _ => (value, "s"),
        }
    }

    /// Returns a result of this kind with its unit as text. If the work is counted in requests, CPU
    /// time is shown per request.
    pub(crate) fn to_text(self, value: f64, unit: WorkPerRun) -> String {
        if let (MetricKind::Cpu | MetricKind::Client, WorkPerRun::Requests(requests @ 2..)) = (self, unit) {
            return format!("{:.1} µs a request", value * 1e6 / requests as f64);
        }
        match self.in_readable_unit(value, unit) {
            (value, "s") if value < 0.1 => format!("{:.2} ms", value * 1e3),
            (value, unit @ "MB") => format!("{value:.1} {unit}"),
            (value, "") => format!("{value:.0}"),
            (value, unit) => format!("{value:.3} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_is_derived_from_the_program_name() {
        for name in ["haul", "Haul", "libhaul", "LWP, haul", "haul, 10,000 URLs"] {
            assert_eq!(ProgramRole::from_name(name, Some("send + recv")), ProgramRole::Haul);
        }
        assert_eq!(ProgramRole::from_name("send + recv", Some("send + recv")), ProgramRole::Limit);
        assert_eq!(ProgramRole::from_name("limit: recv", Some("limit: splice")), ProgramRole::Limit);
        assert_eq!(ProgramRole::from_name("curl -Z", None), ProgramRole::Peer);
    }

    #[test]
    fn cpu_is_per_gigabyte_for_byte_jobs() {
        assert_eq!(MetricKind::Cpu.in_readable_unit(0.5, WorkPerRun::Bytes(2_000_000_000)), (0.25, "s/GB"));
        assert_eq!(MetricKind::Cpu.in_readable_unit(0.5, WorkPerRun::Requests(2)), (0.5, "s"));
        assert_eq!(MetricKind::Rss.in_readable_unit(2048.0, WorkPerRun::Run), (2.0, "MB"));
        assert_eq!(MetricKind::Cpu.to_text(0.5, WorkPerRun::Requests(10_000)), "50.0 µs a request");
        assert_eq!(MetricKind::Cpu.to_text(0.0015, WorkPerRun::Requests(1)), "1.50 ms");
        assert_eq!(MetricKind::Wall.to_text(0.5, WorkPerRun::Requests(10_000)), "0.500 s");
        assert_eq!(MetricKind::Rss.to_text(2048.0, WorkPerRun::Run), "2.0 MB");
        assert_eq!(MetricKind::RateDifference.to_text(1.25, WorkPerRun::Run), "1.250 %");
        assert_eq!(MetricKind::Connections.to_text(400.0, WorkPerRun::Run), "400");
    }
}
