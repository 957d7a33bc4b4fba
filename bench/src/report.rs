//! The table on the terminal and the raw figures in a file.
//!
//! The file names no host: the number of processors and the kernel say enough to compare.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use crate::contest::{Contestant, Outcome, Score, What};
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
    let name_of = |score: &Score| score.contestant.name.chars().count();
    let width = outcome.scores.iter().map(name_of).max().unwrap_or(0);
    let quick = outcome.scores.iter().all(|score| score.median(What::Wall).is_none_or(|wall| wall < 0.1));
    let (unit, scale) = if quick { ("ms", 1e3) } else { ("s", 1.0) };
    println!(
        "{:width$} {:>9} {:>9} {:>10} {:>9} {:>8} {:>8} {:>8}",
        "",
        format!("wall {unit}"),
        format!("CPU {unit}"),
        "CPU µs/req",
        "calls/req",
        "RSS MB",
        "wall ×",
        "CPU ×"
    );
    for score in &outcome.scores {
        let name = score.contestant.name;
        let medians = [What::Wall, What::Cpu, What::Rss].map(|what| score.median(what));
        let [Some(wall), Some(cpu), Some(rss)] = medians else {
            let right = score.runs.iter().filter(|run| run.is_ok()).count();
            let fault = score.fault().unwrap_or("did not run");
            println!("{name:width$} right in {right} of {}: {fault}", score.runs.len());
            continue;
        };
        let ratio = |what| match outcome.ratio(what, name, outcome.baseline) {
            Some(ratio) => format!("{ratio:.2}"),
            None => "-".to_owned(),
        };
        let a_request = |total: f64| match outcome.requests {
            Some(requests) => format!("{:.1}", total / requests as f64),
            None => "-".to_owned(),
        };
        let calls = score.calls.map_or_else(|| "-".to_owned(), |calls| a_request(calls as f64));
        let cpu_a_request = a_request(cpu * 1e6);
        let (wall, cpu, rss) = (wall * scale, cpu * scale, rss / 1024.0);
        let (wall_ratio, cpu_ratio) = (ratio(What::Wall), ratio(What::Cpu));
        println!(
            "{name:width$} {wall:9.3} {cpu:9.3} {cpu_a_request:>10} {calls:>9} {rss:8.1} {wall_ratio:>8} {cpu_ratio:>8}"
        );
    }
    for goal in &outcome.goals {
        let (what, of, against, bound) = (goal.what.name(), goal.of, goal.against, goal.at_most);
        let verdict = match outcome.ratio(goal.what, of, against) {
            Some(ratio) if ratio <= bound => format!("{ratio:.2}, reached"),
            Some(ratio) => format!("{ratio:.2}, MISSED"),
            None => "no figures".to_owned(),
        };
        println!("goal: {what} of {of} at most {bound:.2} of {against}: {verdict}");
    }
}

/// Writes the raw figures; gives the file's path.
pub(crate) fn save(bench: &Bench, outcome: &Outcome) -> Result<String> {
    let date = bench.options.date.clone().unwrap_or_else(|| tools::said("date", &["+%F"]));
    std::fs::create_dir_all(&bench.options.results)?;
    let path = bench.options.results.join(format!("{date}-{}.json", bench.job));
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
            json!({
                "what": goal.what.name(), "of": goal.of, "against": goal.against, "at_most": goal.at_most,
                "ratio": outcome.ratio(goal.what, goal.of, goal.against),
            })
        })
        .collect();
    json!({
        "job": bench.job,
        "date": date,
        "host": { "cpus": cpus, "kernel": kernel },
        "server": outcome.server,
        "tools": bench.versions(),
        "rounds": outcome.rounds,
        "requests_a_run": outcome.requests,
        "baseline": outcome.baseline,
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
        "median": {
            "wall_s": score.median(What::Wall),
            "cpu_s": score.median(What::Cpu),
            "rss_kib": score.median(What::Rss),
        },
        "ratio": {
            "wall": outcome.ratio(What::Wall, name, outcome.baseline),
            "cpu": outcome.ratio(What::Cpu, name, outcome.baseline),
        },
        "system_calls": score.calls,
        "runs": runs,
    })
}
