//! Contestants, rounds, and what comes of them.
//!
//! All contestants of a round run one after the other, so that each round's figures share the machine's mood. What
//! counts is the median of the rounds, and the median of each round's ratio to the baseline.

use std::fs::File;

use crate::digest::Print;
use crate::jobs::Bench;
use crate::measure::{self, Figures};
use crate::{Result, report};

/// A job, set up: who runs, how often, against whom, to what end.
pub(crate) struct Card {
    pub(crate) contestants: Vec<Contestant>,
    /// The contestant whose figures are 1.00.
    pub(crate) baseline: &'static str,
    pub(crate) goals: Vec<Goal>,
    pub(crate) rounds: usize,
    /// Whether a round that does not count goes first.
    pub(crate) warm_up: bool,
    /// What the server is.
    pub(crate) server: String,
    /// How many requests every run makes, for figures a request; none if it differs.
    pub(crate) requests: Option<usize>,
}

/// One way to do the job.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<String>,
    pub(crate) check: Check,
}

/// How a contestant's answer is checked.
pub(crate) enum Check {
    /// Its output, in every round.
    Output(Print),
    /// Its output goes nowhere: once, before the rounds, this shell command shows what the same options fetch.
    Proof(String, Print),
}

/// A figure to reach: `what` of contestant `of`, as a ratio to that of `against`, is at most `at_most`.
pub(crate) struct Goal {
    pub(crate) what: What,
    pub(crate) of: &'static str,
    pub(crate) against: &'static str,
    pub(crate) at_most: f64,
}

/// One of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Wall,
    Cpu,
    Rss,
}

impl What {
    pub(crate) fn of(self, figures: &Figures) -> f64 {
        match self {
            What::Wall => figures.wall,
            What::Cpu => figures.cpu(),
            What::Rss => figures.rss,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Wall => "wall",
            What::Cpu => "CPU",
            What::Rss => "peak memory",
        }
    }
}

/// What a contestant did. A round that failed or answered wrongly has no figures.
pub(crate) struct Score {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Result<Figures, String>>,
    /// System calls of one more run, under strace, which no time is taken of.
    pub(crate) calls: Option<u64>,
}

/// A job, done.
pub(crate) struct Outcome {
    pub(crate) scores: Vec<Score>,
    pub(crate) baseline: &'static str,
    pub(crate) goals: Vec<Goal>,
    pub(crate) server: String,
    pub(crate) requests: Option<usize>,
    pub(crate) rounds: usize,
}

/// Runs the rounds of a card.
pub(crate) fn run(bench: &Bench, card: Card, rounds: usize) -> Result<Outcome> {
    let Card { contestants, baseline, goals, warm_up, server, requests, .. } = card;
    println!("{}: {rounds} rounds, {server}", bench.job);
    let mut proofs = Vec::new();
    for contestant in &contestants {
        proofs.push(prove(bench, contestant)?);
    }
    let new = |contestant| Score { contestant, runs: Vec::new(), calls: None };
    let mut scores: Vec<Score> = contestants.into_iter().map(new).collect();
    for round in 0..rounds + usize::from(warm_up) {
        for (score, proof) in scores.iter_mut().zip(&proofs) {
            let ran = match proof {
                Ok(()) => compete(bench, &score.contestant)?,
                Err(why) => Err(why.clone()),
            };
            report::progress(&score.contestant, &ran);
            if round > 0 || !warm_up {
                score.runs.push(ran);
            }
        }
    }
    for score in scores.iter_mut().filter(|score| score.fault().is_none()) {
        score.calls = count_calls(bench, &score.contestant)?;
    }
    report::end_of_progress();
    Ok(Outcome { scores, baseline, goals, server, requests, rounds })
}

/// Whether the proof, if the check has one, shows the right bytes.
fn prove(bench: &Bench, contestant: &Contestant) -> Result<Result<(), String>> {
    let Check::Proof(shell, expected) = &contestant.check else { return Ok(Ok(())) };
    let argv = ["sh".to_owned(), "-c".to_owned(), shell.clone()];
    let path = bench.work.join("proof");
    let ran = measure::run(bench, &argv, File::create(&path)?)?;
    let verdict = ran.and_then(|_| compare(&Print::of_file(&path).map_err(|e| e.to_string())?, expected));
    std::fs::remove_file(path)?;
    Ok(verdict)
}

fn compete(bench: &Bench, contestant: &Contestant) -> Result<Result<Figures, String>> {
    match &contestant.check {
        Check::Proof(..) => measure::run(bench, &contestant.argv, File::create("/dev/null")?),
        Check::Output(expected) => {
            let path = bench.work.join("output");
            let ran = measure::run(bench, &contestant.argv, File::create(&path)?)?;
            let print = Print::of_file(&path)?;
            Ok(ran.and_then(|figures| compare(&print, expected).map(|()| figures)))
        }
    }
}

/// How many system calls the contestant makes; none without strace, and none for a line of shell, whose other programs
/// would count too.
fn count_calls(bench: &Bench, contestant: &Contestant) -> Result<Option<u64>> {
    let [name, arguments @ ..] = contestant.argv.as_slice() else { return Ok(None) };
    let (Some(strace), Some(program)) = (bench.program("strace"), bench.program(name).filter(|_| name != "sh")) else {
        return Ok(None);
    };
    let words = ["-f", "-c", "-o", "calls"].map(str::to_owned);
    let argv = [vec![strace.display().to_string()], words.to_vec(), vec![program.display().to_string()]].concat();
    let ran = measure::run(bench, &[&argv, arguments].concat(), File::create("/dev/null")?)?;
    let table = std::fs::read_to_string(bench.work.join("calls")).unwrap_or_default();
    Ok(total_calls(&table).filter(|_| ran.is_ok()))
}

/// The calls column of the last line of what `strace -c` writes.
fn total_calls(table: &str) -> Option<u64> {
    let total = table.lines().rfind(|line| line.ends_with(" total"))?;
    total.split_whitespace().nth(3)?.parse().ok()
}

fn compare(print: &Print, expected: &Print) -> Result<(), String> {
    if print == expected {
        return Ok(());
    }
    let short = |print: &Print| format!("{} bytes {}…", print.len, &print.sha256[..12]);
    Err(format!("wrong answer: {}, not {}", short(print), short(expected)))
}

impl Score {
    /// The median of a figure; none if any round went wrong.
    pub(crate) fn median(&self, what: What) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.runs.iter().map(|run| run.as_ref().ok().map(|f| what.of(f))).collect();
        figures.and_then(median)
    }

    /// The first thing that went wrong.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.as_ref().err().map(String::as_str))
    }
}

impl Outcome {
    /// The median of the ratios of each round; none if any of either went wrong.
    pub(crate) fn ratio(&self, what: What, of: &str, against: &str) -> Option<f64> {
        let score = |name: &str| self.scores.iter().find(|score| score.contestant.name == name);
        let pairs = score(of)?.runs.iter().zip(&score(against)?.runs);
        let ratios: Option<Vec<f64>> =
            pairs.map(|(run, base)| Some(what.of(run.as_ref().ok()?) / what.of(base.as_ref().ok()?))).collect();
        ratios.and_then(median)
    }
}

/// The middle, or the mean of the two in the middle; none of nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(wall: f64) -> Figures {
        Figures { wall, user: wall / 2.0, sys: 0.0, rss: 1.0 }
    }

    fn score(name: &'static str, runs: Vec<Result<Figures, String>>) -> Score {
        Score {
            contestant: Contestant { name, argv: Vec::new(), check: Check::Output(Print::of(b"")) },
            runs,
            calls: None,
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_a_wrong_answer_has_none() {
        let outcome = Outcome {
            scores: vec![
                score("a", vec![Ok(figures(1.0)), Ok(figures(8.0)), Ok(figures(3.0))]),
                score("b", vec![Ok(figures(2.0)), Ok(figures(4.0)), Ok(figures(6.0))]),
                score("c", vec![Ok(figures(0.1)), Err("wrong answer".to_owned()), Ok(figures(0.1))]),
            ],
            baseline: "b",
            goals: Vec::new(),
            server: String::new(),
            requests: Some(1),
            rounds: 3,
        };
        assert_eq!(outcome.ratio(What::Wall, "a", "b"), Some(0.5));
        assert_eq!(outcome.ratio(What::Cpu, "a", "b"), Some(0.5));
        assert_eq!(outcome.ratio(What::Wall, "c", "b"), None);
        assert_eq!(outcome.scores[2].median(What::Wall), None);
        assert_eq!(outcome.scores[2].fault(), Some("wrong answer"));
        assert_eq!(outcome.ratio(What::Wall, "a", "nobody"), None);
    }

    #[test]
    fn the_total_of_strace() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     100.00    0.000000           0         1           write\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.012345           3     14250         7 total\n";
        assert_eq!(total_calls(table), Some(14_250));
        assert_eq!(total_calls("strace: cannot trace\n"), None);
    }

    #[test]
    fn an_answer_is_compared_by_length_and_digest() {
        assert!(compare(&Print::of(b"ab"), &Print::of(b"ab")).is_ok());
        assert!(compare(&Print::of(b"ab"), &Print::of(b"ba")).unwrap_err().starts_with("wrong answer: 2 bytes"));
    }
}
