//! The goals of the project, and the results with which they are compared.
//!
//! The jobs have other goals, which their authors chose. The goals here are the project's promises,
//! in the original words. Each has a table row even if its job does not exist.

use crate::compared_programs_and_goals::MetricKind;

/// A goal of the project, and the proof that it is met.
pub(super) struct ProjectGoal {
    /// The number of the goal, such as `3.2`: the number of its section in [`SECTIONS`], a dot, and
    /// the number within the section. `bench/causes.md` refers to goals by these numbers.
    pub(super) id: &'static str,
    pub(super) goal: &'static str,
    pub(super) proof: GoalProof,
}

/// The way in which the project proves that a goal is met.
pub(super) enum GoalProof {
    /// A result of the bench shows whether the goal is met: in the part `part` of a benchmark job
    /// (`JOB` or `JOB:PART`), the result of kind `what` of the program `of` must be within `bound`.
    Figure { part: &'static str, of: &'static str, what: MetricKind, bound: ProjectGoalBound },
    /// The goal is proved by tests. The text names them.
    Tests(&'static str),
}

/// The limit that a goal of the project sets on a result of the bench, such as a CPU time or a
/// ratio.
pub(super) enum ProjectGoalBound {
    /// The maximum ratio of the result to the result of another program, which the text names, in
    /// the same round.
    RatioTo(&'static str, f64),
    /// The maximum ratio of the result to the result of haul's best competitor.
    RatioToBestPeer(f64),
    /// The maximum, in the displayed unit: s/GB, MB or s.
    AtMost(f64),
    /// The maximum number of microseconds per request.
    Micros(f64),
    /// The goal is a rate of at least this many MB/s, computed from the measured wall time.
    Speed(f64),
}

/// The numbers and headings of the sections of goals.
pub(super) const SECTIONS: [(&str, &str); 6] = [
    ("1", "Many small pages"),
    ("2", "Requests from a program, one at a time on a warm connection"),
    ("3", "One big GET"),
    ("4", "Many streams"),
    ("5", "A fetcher called once a file"),
    ("6", "Thousands of hosts, and hosts far away"),
];

const fn measured_goal(
    id: &'static str,
    goal: &'static str,
    part: &'static str,
    of: &'static str,
    what: MetricKind,
    bound: ProjectGoalBound,
) -> ProjectGoal {
    ProjectGoal { id, goal, proof: GoalProof::Figure { part, of, what, bound } }
}

const fn tested_goal(id: &'static str, goal: &'static str, tests: &'static str) -> ProjectGoal {
    ProjectGoal { id, goal, proof: GoalProof::Tests(tests) }
}

use MetricKind::{
    Client, Connections, Cpu, FirstByte, FullHandshakes, LastPage, MissingPages as Missing, PeakRequests, Rss, Wall,
};
use ProjectGoalBound::{AtMost, Micros, RatioTo, RatioToBestPeer, Speed};

/// All goals of the project, in the order of their numbers.
pub(super) const ALL: &[ProjectGoal] = &[
    measured_goal(
        "1.1",
        "whole job at least 4× as fast as the best right shell way",
        "site",
        "haul",
        Wall,
        RatioToBestPeer(0.25),
    ),
    measured_goal("1.2", "then 5×", "site", "haul", Wall, RatioToBestPeer(0.2)),
    measured_goal(
        "1.3",
        "fetch only: at most 0.7 of `curl -Z`'s wall time",
        "fetch",
        UNORDERED,
        Wall,
        RatioTo(CURL_Z, 0.7),
    ),
    measured_goal("1.4", "and of its CPU", "fetch", UNORDERED, Cpu, RatioTo(CURL_Z, 0.7)),
    measured_goal(
        "1.5",
        "small replies: at most 0.6 of `curl -Z`'s CPU",
        "small",
        UNORDERED,
        Cpu,
        RatioTo(CURL_Z, 0.6),
    ),
    measured_goal(
        "1.6",
        "memory flat in the number of URLs: a million against ten thousand",
        "million",
        "haul, 1,000,000 URLs",
        Rss,
        RatioTo("haul, 10,000 URLs", 1.2),
    ),
    measured_goal("2.1", "Perl, GET 300 B: at most 25 µs", "perl:small", PERL, Cpu, Micros(25.0)),
    measured_goal("2.2", "Perl, GET 335,114 B: at most 70 µs", "perl:page", PERL, Cpu, Micros(70.0)),
    measured_goal("2.3", "Perl under every peer: GET 300 B", "perl:small", PERL, Cpu, RatioToBestPeer(1.0)),
    measured_goal("2.4", "Perl under every peer: GET 335,114 B", "perl:page", PERL, Cpu, RatioToBestPeer(1.0)),
    measured_goal("2.5", "Perl under every peer: POST a small form", "perl:post", PERL, Cpu, RatioToBestPeer(1.0)),
    measured_goal("2.6", "Python, GET 300 B: at most 30 µs", "python:small", PYTHON, Cpu, Micros(30.0)),
    measured_goal("2.7", "Python, GET 335,114 B: at most 80 µs", "python:page", PYTHON, Cpu, Micros(80.0)),
    measured_goal("2.8", "Python under every peer: GET 300 B", "python:small", PYTHON, Cpu, RatioToBestPeer(1.0)),
    measured_goal("2.9", "Python under every peer: GET 335,114 B", "python:page", PYTHON, Cpu, RatioToBestPeer(1.0)),
    measured_goal(
        "2.10",
        "Python under every peer: POST a small form",
        "python:post",
        PYTHON,
        Cpu,
        RatioToBestPeer(1.0),
    ),
    measured_goal(
        "2.11",
        "LWP with one line more: at least twice as cheap",
        "perl:small",
        LWP_HAUL,
        Cpu,
        RatioTo("LWP", 0.5),
    ),
    tested_goal(
        "2.12",
        "cookies shared, a cookie file, gzip, HTTP::Response objects: all in one program",
        "`make perl-test` (bindings/perl/t)",
    ),
    measured_goal("3.1", "plain to /dev/null: at most 0.12 CPU s/GB", "get:null", HAUL, Cpu, AtMost(0.12)),
    measured_goal("3.2", "at least 5× under curl's", "get:null", HAUL, Cpu, RatioTo(CURL, 0.2)),
    measured_goal(
        "3.3",
        "plain to a pipe: at most 0.12 CPU s/GB, without the reader's",
        "get:pipe",
        HAUL,
        Client,
        AtMost(0.12),
    ),
    measured_goal("3.4", "at least 5× under curl's", "get:pipe", HAUL, Client, RatioTo(CURL, 0.2)),
    measured_goal("3.5", "TLS to /dev/null: at most 0.25 CPU s/GB", "get-tls:null", HAUL, Cpu, AtMost(0.25)),
    measured_goal("3.6", "at least 2.8× under curl's", "get-tls:null", HAUL, Cpu, RatioTo(CURL, 1.0 / 2.8)),
    measured_goal("3.7", "to a file: at least 2.5× as fast as curl", "get:file", HAUL, Wall, RatioTo(CURL, 0.4)),
    measured_goal("3.8", "at most 32 MB resident, plain", "get:pipe", HAUL, Rss, AtMost(32.0)),
    measured_goal("3.9", "at most 32 MB resident, TLS", "get-tls:null", HAUL, Rss, AtMost(32.0)),
    measured_goal("3.10", "at most 32 MB resident, 10 GB", "curves:body@10000000000", HAUL, Rss, AtMost(32.0)),
    // Six connections at the rate of one.
    measured_goal(
        "3.11",
        "5 MB/s a connection, TLS: within 10 % of 6 × that",
        "limited:tls-5",
        HAUL,
        Wall,
        Speed(27.0),
    ),
    measured_goal("3.12", "at least 4× as fast as curl", "limited:tls-5", HAUL, Wall, RatioTo(CURL, 0.25)),
    measured_goal("3.13", "first byte no later than curl's", "limited:tls-5", HAUL, FirstByte, RatioTo(CURL, 1.0)),
    measured_goal(
        "3.14",
        "36 MB/s a connection, plain: within 10 % of 6 × that",
        "limited:plain-36",
        HAUL,
        Wall,
        Speed(194.4),
    ),
    measured_goal("3.15", "at least 4× as fast as curl", "limited:plain-36", HAUL, Wall, RatioTo(CURL, 0.25)),
    measured_goal("3.16", "first byte no later than curl's", "limited:plain-36", HAUL, FirstByte, RatioTo(CURL, 1.0)),
    measured_goal("4.1", "50 × 100 MB, HTTP/2 + TLS: at most 0.32 CPU s/GB", "h2-bulk", HAUL, Cpu, AtMost(0.32)),
    measured_goal("4.2", "at least 2.7× under curl's", "h2-bulk", HAUL, Cpu, RatioTo(CURL, 1.0 / 2.7)),
    measured_goal("4.3", "5 plain HTTP/1 bodies in one thread: at most 0.10 CPU s/GB", "five", HAUL, Cpu, AtMost(0.10)),
    measured_goal(
        "4.4",
        "small HTTP/2 requests within 1.3× of h2load's rate",
        "h2-small",
        UNORDERED,
        Wall,
        RatioTo("h2load", 1.3),
    ),
    measured_goal("5.1", "a cold plain request: at most 1.5 ms", "cold:plain", HAUL, Wall, AtMost(0.0015)),
    measured_goal(
        "5.2",
        "70 calls by the agent at 20 ms, plain: at most 1.55 s",
        "prefix:plain",
        AGENT,
        Wall,
        AtMost(1.55),
    ),
    measured_goal("5.3", "the same by TLS: at most 1.55 s", "prefix:tls", AGENT, Wall, AtMost(1.55)),
    tested_goal("5.4", "over one connection in all", "crates/cli/tests: agent, package_managers"),
    tested_goal(
        "5.5",
        "at most 64 KiB wasted a package that is closed early",
        "crates/cli/tests: agent, package_managers",
    ),
    measured_goal(
        "5.6",
        "500 pages over 6 connections with `--pipeline` no slower than curl's 50",
        "pipeline",
        "haul --pipeline 32, 6 connections",
        Wall,
        RatioTo("curl -Z, 50 connections", 1.0),
    ),
    measured_goal(
        "6.1",
        "5,000 hosts, a quarter broken: no healthy page is missing",
        "hosts:main",
        HAUL_300,
        Missing,
        AtMost(0.0),
    ),
    measured_goal("6.2", "the same with names that take 3 s", "hosts:late-names", HAUL_300, Missing, AtMost(0.0)),
    measured_goal(
        "6.3",
        "at most 1.1 of a Go client's wall time",
        "hosts:late-names",
        HAUL_300,
        Wall,
        RatioTo(GO, 1.1),
    ),
    measured_goal("6.4", "at most 0.7 of its CPU", "hosts:late-names", HAUL_300, Cpu, RatioTo(GO, 0.7)),
    measured_goal("6.5", "at most 32 MB resident", "hosts:late-names", HAUL_300, Rss, AtMost(32.0)),
    measured_goal(
        "6.6",
        "with retries, healthy pages at most 1.5× as late",
        "hosts:late-names",
        "haul, 300 and retries",
        LastPage,
        RatioTo(HAUL_300, 1.5),
    ),
    measured_goal(
        "6.7",
        "300 healthy pages behind 60 names without an answer",
        "hosts:unanswered",
        HAUL,
        Missing,
        AtMost(0.0),
    ),
    measured_goal(
        "6.8",
        "2,000 pages of 400 TLS hosts: 400 connections",
        "hosts:reuse",
        HAUL,
        Connections,
        AtMost(400.0),
    ),
    measured_goal("6.9", "and 400 full handshakes", "hosts:reuse", HAUL, FullHandshakes, AtMost(400.0)),
    measured_goal(
        "6.10",
        "pages behind failing hosts: at most 1.5× as late as `curl -Z`",
        "hosts:fair",
        HAUL,
        LastPage,
        RatioTo(CURL_Z, 1.5),
    ),
    measured_goal(
        "6.11",
        "500 pages at 100 ms: within 1.2× of the best fixed number of connections",
        "adapt:queue-1000-300@100",
        HAUL,
        Wall,
        RatioToBestPeer(1.2),
    ),
    measured_goal(
        "6.12",
        "at a server that bears 4 requests: at most 6 after the first second",
        "adapt:queue-4-300@100",
        HAUL,
        PeakRequests,
        AtMost(6.0),
    ),
];

const HAUL: &str = "haul";
const UNORDERED: &str = "haul --unordered";
const CURL: &str = "curl";
const CURL_Z: &str = "curl -Z";
const HAUL_300: &str = "haul, 300 at a time";
const GO: &str = "Go";
const PERL: &str = "Haul";
const LWP_HAUL: &str = "LWP, haul";
const PYTHON: &str = "haul";
const AGENT: &str = "haul agent";
