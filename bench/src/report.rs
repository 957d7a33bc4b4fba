//! The table on the terminal and the raw figures in a file.
//!
//! The file names no host: the number of processors and the kernel say enough to compare.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use crate::card::{Bound, Contestant, Goal, Unit, What};
use crate::contest::{Outcome, Score};
use crate::jobs::Bench;
use crate::measure::Figures;
use crate::{Result, tools};

/// Shows on a terminal what was last run.
pub(crate) fn progress(contestant: &Contestant, ran: &Result<Figures, String>) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let text = match ran {
            Ok(figures) => format!("{:.3} s", figures.wall),
            Err(why) => why.chars().take(60).collect(),
        };
        let _ = write!(err, "\r\x1b[K  {}: {text}", contestant.name);
    }
}

/// Takes the progress line away.
pub(crate) fn end_of_progress() {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}

/// Prints medians, ratios and goals.
pub(crate) fn print(outcome: &Outcome) {
    let right: Vec<&Score> = outcome.scores.iter().filter(|score| score.median(What::Wall).is_some()).collect();
    let columns: Vec<(String, Vec<String>)> = columns(outcome, &right)
        .into_iter()
        .filter(|(_, cells)| cells.iter().any(Option::is_some))
        .map(|(title, cells)| (title, cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect()))
        .collect();
    let name_width = outcome.scores.iter().map(|score| score.contestant.name.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns
        .iter()
        .map(|(title, cells)| cells.iter().chain([title]).map(|text| text.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |name: &str, cells: Vec<&String>| {
        let cells: String = cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        println!("{name:name_width$}{cells}");
    };
    line("", columns.iter().map(|(title, _)| title).collect());
    let mut row = 0;
    for score in &outcome.scores {
        let name = score.contestant.name;
        if score.median(What::Wall).is_some() {
            line(name, columns.iter().map(|(_, cells)| &cells[row]).collect());
            row += 1;
        } else {
            let right = score.runs.iter().filter(|run| run.is_ok()).count();
            let fault = score.fault().unwrap_or("did not run");
            println!("{name:name_width$}  right in {right} of {}: {fault}", score.runs.len());
        }
    }
    for goal in &outcome.goals {
        println!("goal: {}", verdict(outcome, goal));
    }
}

/// Titles and cells, one a score; a column without any cell is not shown.
fn columns(outcome: &Outcome, scores: &[&Score]) -> Vec<(String, Vec<Option<String>>)> {
    let quick = scores.iter().all(|score| score.median(What::Wall).is_none_or(|wall| wall < 0.1));
    let (time, scale) = if quick { ("ms", 1e3) } else { ("s", 1.0) };
    let column = |title: String, cell: &dyn Fn(&Score) -> Option<String>| {
        (title, scores.iter().map(|score| cell(score)).collect::<Vec<_>>())
    };
    let median = |title: String, what: What, factor: f64, digits: usize| {
        column(title, &|score| Some(format!("{:.digits$}", score.median(what)? * factor)))
    };
    let calls =
        |title: &str, by: f64| column(title.to_owned(), &|score| Some(format!("{:.1}", score.calls? as f64 / by)));
    let ratio = |title: &str, what: What, against: Option<&str>| {
        column(title.to_owned(), &|score| Some(format!("{:.2}", outcome.ratio(what, score.contestant.name, against?)?)))
    };
    let (baseline, limit) = (Some(outcome.baseline), outcome.limit);
    let mut columns =
        vec![median(format!("wall {time}"), What::Wall, scale, 3), median(format!("CPU {time}"), What::Cpu, scale, 3)];
    match outcome.unit {
        Unit::Requests(requests) => {
            columns.push(median("CPU µs/req".to_owned(), What::Cpu, 1e6 / requests as f64, 1));
            columns.push(calls("calls/req", requests as f64));
        }
        Unit::Bytes(bytes) => {
            let gigabytes = bytes as f64 / 1e9;
            let speed = |score: &Score| Some(format!("{:.0}", gigabytes * 1e3 / score.median(What::Wall)?));
            columns.push(column("MB/s".to_owned(), &speed));
            columns.push(median("CPU s/GB".to_owned(), What::Cpu, 1.0 / gigabytes, 3));
            columns.push(median("client s/GB".to_owned(), What::Client, 1.0 / gigabytes, 3));
            columns.push(calls("calls/MB", gigabytes * 1e3));
        }
        Unit::Run => {}
    }
    columns.extend([
        median("1st byte ms".to_owned(), What::FirstByte, 1e3, 2),
        median("RSS MB".to_owned(), What::Rss, 1.0 / 1024.0, 1),
        ratio("wall ×", What::Wall, baseline),
        ratio("CPU ×", What::Cpu, baseline),
        ratio("client ×", What::Client, baseline),
        ratio("wall × limit", What::Wall, limit),
        ratio("CPU × limit", What::Cpu, limit),
    ]);
    columns
}

/// The goal in words, and how far it was reached.
fn verdict(outcome: &Outcome, goal: &Goal) -> String {
    let reached = outcome.reached(goal);
    let (bound, most) = match goal.bound {
        Bound::Of(against, most) => (format!("{most:.2} of {against}"), most),
        Bound::Most(most) => (format!("{most:.2} {}", goal.what.readable(most, outcome.unit).1), most),
    };
    let verdict = match reached {
        Some((figure, unit)) if figure <= most => format!("{figure:.3} {unit}, reached"),
        Some((figure, unit)) => format!("{figure:.3} {unit}, MISSED"),
        None => "no figures".to_owned(),
    };
    format!("{} of {} at most {bound}: {}", goal.what.name(), goal.of, verdict.replace(" ,", ","))
}

/// Writes the raw figures; gives the file's path.
pub(crate) fn save(bench: &Bench, outcome: &Outcome) -> Result<String> {
    let date = bench.options.date.clone().unwrap_or_else(|| tools::said("date", &["+%F"]));
    std::fs::create_dir_all(&bench.options.results)?;
    let path = bench.options.results.join(format!("{date}-{}.json", outcome.name.replace(':', "-")));
    let text = serde_json::to_string_pretty(&raw(bench, outcome, &date))?;
    std::fs::write(&path, text + "\n")?;
    Ok(path.display().to_string())
}

fn raw(bench: &Bench, outcome: &Outcome, date: &str) -> Value {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let contestants: Vec<Value> = outcome.scores.iter().map(|score| contestant(outcome, score)).collect();
    let goals: Vec<Value> = outcome
        .goals
        .iter()
        .map(|goal| {
            let (against, most) = match goal.bound {
                Bound::Of(against, most) => (Some(against), most),
                Bound::Most(most) => (None, most),
            };
            let (figure, unit) = outcome.reached(goal).unzip();
            json!({
                "what": goal.what.name(), "of": goal.of, "against": against, "at_most": most,
                "figure": figure, "unit": unit,
            })
        })
        .collect();
    let (requests, bytes) = match outcome.unit {
        Unit::Requests(requests) => (Some(requests), None),
        Unit::Bytes(bytes) => (None, Some(bytes)),
        Unit::Run => (None, None),
    };
    json!({
        "job": outcome.name,
        "date": date,
        "host": { "cpus": cpus, "kernel": kernel },
        "server": outcome.server,
        "tools": bench.versions(),
        "rounds": outcome.rounds,
        "requests_a_run": requests,
        "bytes_a_run": bytes,
        "baseline": outcome.baseline,
        "limit": outcome.limit,
        "contestants": contestants,
        "goals": goals,
    })
}

fn contestant(outcome: &Outcome, score: &Score) -> Value {
    let name = score.contestant.name;
    let runs: Vec<Value> = score
        .runs
        .iter()
        .map(|run| match run {
            Ok(figures) => figures.to_json(),
            Err(why) => json!({ "fault": why }),
        })
        .collect();
    json!({
        "name": name,
        "command": score.contestant.argv,
        "median": figures(&|what| score.median(what)),
        "ratio": figures(&|what| outcome.ratio(what, name, outcome.baseline)),
        "system_calls": score.calls,
        "runs": runs,
    })
}

/// A figure of each kind that there is, by its name.
fn figures(of: &dyn Fn(What) -> Option<f64>) -> Value {
    let found = What::ALL.iter().filter_map(|what| Some((what.key().to_owned(), of(*what)?.into())));
    found.collect::<serde_json::Map<_, _>>().into()
}
