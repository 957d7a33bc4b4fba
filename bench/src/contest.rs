//! Contestants, rounds, and what comes of them.
//!
//! All contestants of a round run one after the other, so that each round's figures share the machine's mood. What
//! counts is the median of the rounds, and the median of each round's ratio to the baseline.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use crate::card::{Bound, Card, Check, Contestant, Goal, Unit, What};
use crate::digest::Print;
use crate::jobs::Bench;
use crate::measure::{self, Figures, Out};
use crate::{Result, report};

/// What a contestant did. A round that failed or answered wrongly has no figures.
pub(crate) struct Score {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Result<Figures, String>>,
    /// System calls of one more run, under strace, which no time is taken of.
    pub(crate) calls: Option<u64>,
}

/// A job, done.
pub(crate) struct Outcome {
    /// Job and part.
    pub(crate) name: String,
    pub(crate) scores: Vec<Score>,
    pub(crate) baseline: &'static str,
    pub(crate) limit: Option<&'static str>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) server: String,
    pub(crate) unit: Unit,
    pub(crate) rounds: usize,
}

/// Runs the rounds of a card.
pub(crate) fn run(bench: &Bench, card: Card, rounds: usize) -> Result<Outcome> {
    let Card { contestants, baseline, limit, goals, warm_up, calls, server, unit, .. } = card;
    let name = if card.part.is_empty() { bench.job.to_owned() } else { format!("{}:{}", bench.job, card.part) };
    println!("{name}: {rounds} rounds, {server}");
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
    if calls {
        for score in scores.iter_mut().filter(|score| score.fault().is_none()) {
            score.calls = count_calls(bench, &score.contestant)?;
        }
    }
    report::end_of_progress();
    Ok(Outcome { name, scores, baseline, limit, goals, server, unit, rounds })
}

/// Whether the proof, if the check has one, shows the right bytes. They are digested as they come: a proof may be of
/// gigabytes.
fn prove(bench: &Bench, contestant: &Contestant) -> Result<Result<(), String>> {
    let (Check::Proof(shell, expected) | Check::Told(Some(shell), expected)) = &contestant.check else {
        return Ok(Ok(()));
    };
    let argv = ["sh".to_owned(), "-c".to_owned(), shell.clone()];
    let (mut reader, writer) = io::pipe()?;
    let digest = thread::spawn(move || Print::of_reader(&mut reader));
    let ran = measure::run(bench, &argv, Out::To(OwnedFd::from(writer).into()))?;
    let print = digest.join().map_err(|_| "the digest panicked")??;
    Ok(ran.and_then(|_| compare(&print, expected)))
}

fn compete(bench: &Bench, contestant: &Contestant) -> Result<Result<Figures, String>> {
    let run = |out| measure::run(bench, &contestant.argv, out);
    match &contestant.check {
        Check::Proof(..) if contestant.piped => run(Out::Cat),
        Check::Proof(..) => run(Out::To(File::create("/dev/null")?)),
        Check::Told(_, expected) => {
            let path = bench.work.join("output");
            let ran = run(Out::To(File::create(&path)?))?;
            let said = std::fs::read_to_string(&path)?;
            Ok(ran.and_then(|figures| told(&said, expected).map(|()| figures)))
        }
        Check::Watched(expected) => {
            let path = bench.work.join("seen");
            let ran = run(Out::Watch(path.clone()))?;
            let seen = std::fs::read_to_string(path).unwrap_or_default();
            Ok(ran.and_then(|figures| compare(&Print::parse(&seen).ok_or("nothing seen")?, expected).map(|()| figures)))
        }
        Check::Output(expected) => {
            let path = bench.work.join("output");
            let ran = run(Out::To(File::create(&path)?))?;
            digest_and_remove(&path, ran, expected)
        }
        Check::File(name, expected) => {
            let ran = run(Out::To(File::create("/dev/null")?))?;
            digest_and_remove(&bench.work.join(name), ran, expected)
        }
    }
}

/// Checks what was written, and takes it away: the next contestant must find no file to overwrite, nor the disk at work
/// on this one's pages.
fn digest_and_remove(path: &Path, ran: Result<Figures, String>, expected: &Print) -> Result<Result<Figures, String>> {
    let answered = ran.and_then(|figures| {
        let print = Print::of_file(path).map_err(|error| error.to_string())?;
        compare(&print, expected).map(|()| figures)
    });
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(answered),
    }
}

/// Whether a client says that it had as many bytes as it should.
fn told(said: &str, expected: &Print) -> Result<(), String> {
    match said.trim().parse::<u64>() {
        Ok(len) if len == expected.len => Ok(()),
        _ => Err(format!("said {:?}, not {}", said.trim(), expected.len)),
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
    let out = if contestant.piped { Out::Cat } else { Out::To(File::create("/dev/null")?) };
    let ran = measure::run(bench, &[&argv, arguments].concat(), out)?;
    if let Check::File(written, _) = contestant.check {
        // Not there if the run went wrong, which the next line sees.
        let _ = std::fs::remove_file(bench.work.join(written));
    }
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
        let figures: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.as_ref().ok().and_then(|f| what.of(f))).collect();
        figures.and_then(median)
    }

    /// The first thing that went wrong.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.as_ref().err().map(String::as_str))
    }
}

impl Outcome {
    /// What a goal is about: a ratio or a figure as it stands, and its unit; none if a run of it went wrong.
    pub(crate) fn reached(&self, goal: &Goal) -> Option<(f64, &'static str)> {
        match goal.bound {
            Bound::Of(against, _) => Some((self.ratio(goal.what, goal.of, against)?, "")),
            Bound::Most(_) => {
                let score = self.scores.iter().find(|score| score.contestant.name == goal.of)?;
                Some(goal.what.readable(score.median(goal.what)?, self.unit))
            }
        }
    }

    /// The median of the ratios of each round; none if any of either went wrong.
    pub(crate) fn ratio(&self, what: What, of: &str, against: &str) -> Option<f64> {
        let score = |name: &str| self.scores.iter().find(|score| score.contestant.name == name);
        let pairs = score(of)?.runs.iter().zip(&score(against)?.runs);
        let ratios: Option<Vec<f64>> =
            pairs.map(|(run, base)| Some(what.of(run.as_ref().ok()?)? / what.of(base.as_ref().ok()?)?)).collect();
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
        Figures { wall, user: wall / 2.0, sys: 0.0, rss: 2048.0, client: None, first_byte: None }
    }

    fn score(name: &'static str, runs: Vec<Result<Figures, String>>) -> Score {
        Score {
            contestant: Contestant { name, argv: Vec::new(), piped: false, check: Check::Output(Print::of(b"")) },
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
            name: String::new(),
            scores: vec![
                score("a", vec![Ok(figures(1.0)), Ok(figures(8.0)), Ok(figures(3.0))]),
                score("b", vec![Ok(figures(2.0)), Ok(figures(4.0)), Ok(figures(6.0))]),
                score("c", vec![Ok(figures(0.1)), Err("wrong answer".to_owned()), Ok(figures(0.1))]),
            ],
            baseline: "b",
            limit: None,
            goals: Vec::new(),
            server: String::new(),
            unit: Unit::Bytes(500_000_000),
            rounds: 3,
        };
        assert_eq!(outcome.ratio(What::Wall, "a", "b"), Some(0.5));
        assert_eq!(outcome.ratio(What::Cpu, "a", "b"), Some(0.5));
        assert_eq!(outcome.ratio(What::Wall, "c", "b"), None);
        assert_eq!(outcome.scores[2].median(What::Wall), None);
        assert_eq!(outcome.scores[2].fault(), Some("wrong answer"));
        assert_eq!(outcome.ratio(What::Wall, "a", "nobody"), None);
        assert_eq!(outcome.ratio(What::FirstByte, "a", "b"), None);
        assert_eq!(outcome.reached(&Goal::ratio(What::Wall, "a", "b", 1.0)), Some((0.5, "")));
        assert_eq!(outcome.reached(&Goal::most(What::Cpu, "a", 1.0)), Some((3.0, "s/GB")));
        assert_eq!(outcome.reached(&Goal::most(What::Rss, "b", 1.0)), Some((2.0, "MB")));
        assert_eq!(outcome.reached(&Goal::most(What::Rss, "c", 1.0)), None);
    }

    #[test]
    fn what_a_client_says_counts_only_with_the_right_length() {
        let expected = Print::of(b"ab");
        assert_eq!(told("2\n", &expected), Ok(()));
        for wrong in ["3", "", "x", "2,2", "2\n2"] {
            assert!(told(wrong, &expected).is_err(), "{wrong}");
        }
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
