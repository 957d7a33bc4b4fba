//! The table of results on the terminal, and the progress line.

use std::io::{IsTerminal, Write};

use crate::Result;
use crate::bench_results_file::{JobGoal, PartResult, ProgramRuns};
use crate::compared_programs_and_goals::{BenchProgram, MetricKind, ProgramRole, WorkPerRun};
use crate::measure::RunMetrics;

/// Shows which program has just run, if standard error is a terminal.
pub(crate) fn progress(bench_program: &BenchProgram, ran: &Result<RunMetrics, String>) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let text = match ran {
            Ok(figures) => format!("{:.3} s", figures.wall),
            Err(why) => why.chars().take(60).collect(),
        };
        let _ = write!(err, "\r\x1b[K  {}: {text}", bench_program.name);
    }
}

/// Removes the progress line, which [`progress`] has drawn, from the terminal.
pub(crate) fn end_of_progress() {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}

/// Prints the medians, ratios and goals of one part of a job.
pub(crate) fn print(part_result: &PartResult) {
    let table = ResultTable::from_part(part_result);
    let name_width = part_result.entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = table
        .columns
        .iter()
        .map(|(title, cells)| cells.iter().chain([title]).map(|text| text.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |name: &str, cells: Vec<&String>| {
        let cells: String = cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        println!("{name:name_width$}{cells}");
    };
    line(&format!("{} rounds", part_result.rounds), table.columns.iter().map(|(title, _)| title).collect());
    for (row, entry) in part_result.entries.iter().enumerate() {
        match first_fault_line(entry) {
            None => line(&entry.name, table.columns.iter().map(|(_, cells)| &cells[row]).collect()),
            Some(why) => println!("{:name_width$}  {why}", entry.name),
        }
    }
    for aim in &part_result.goals {
        println!("goal: {}", verdict(part_result, aim));
    }
    println!();
}

/// Prints for each program whether its output was right, for smoke runs.
pub(crate) fn print_right(part_result: &PartResult) {
    for entry in &part_result.entries {
        println!("  {}: {}", entry.name, first_fault_line(entry).unwrap_or_else(|| "right".to_owned()));
    }
}

/// Returns a line about the program's first fault, or about the fact that it did not run; `None` if
/// all runs were right.
pub(crate) fn first_fault_line(entry: &ProgramRuns) -> Option<String> {
    let fault = entry.fault().or_else(|| entry.runs.is_empty().then_some("did not run"))?;
    let cost = |figures: &RunMetrics| {
        let (wall, cpu, memory) = (figures.wall, figures.cpu(), figures.rss / 1024.0);
        format!(", in {wall:.1} s with {cpu:.1} s of CPU and {memory:.1} MB")
    };
    let first = entry.runs.iter().find(|run| !run.right);
    let cost = first.and_then(|run| run.figures.as_ref()).map(cost).unwrap_or_default();
    Some(format!("WRONG in {} of {}: {fault}{cost}", entry.runs.len() - entry.right_runs(), entry.runs.len()))
}

/// A table of results. A cell without a result contains `-`.
pub(crate) struct ResultTable {
    /// The columns. Each has a title and a cell for each program.
    pub(crate) columns: Vec<(String, Vec<String>)>,
}

impl ResultTable {
    /// Creates the table of the results of one part of a benchmark job, with a row for each
    /// program. Columns without any result are left out.
    pub(crate) fn from_part(part_result: &PartResult) -> ResultTable {
        let columns = columns(part_result)
            .into_iter()
            .filter(|(_, cells)| cells.iter().any(Option::is_some))
            .map(|(title, cells)| {
                (title, cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect())
            })
            .collect();
        ResultTable { columns }
    }
}

/// Returns the name of the program whose result of the kind `what` is 1.00 in the ratios of a part:
/// the competitor of haul with the lowest result, or [`PartResult::baseline`] if none has a result.
pub(crate) fn measure_of(part_result: &PartResult, what: MetricKind) -> &str {
    part_result.best_peer(what).map_or(part_result.baseline.as_str(), |entry| &entry.name)
}

fn columns(part_result: &PartResult) -> Vec<(String, Vec<Option<String>>)> {
    let quick = part_result.entries.iter().all(|entry| entry.median(MetricKind::Wall).is_none_or(|wall| wall < 0.1));
    let (time, scale) = if quick { ("ms", 1e3) } else { ("s", 1.0) };
    let column = |title: String, cell: &dyn Fn(&ProgramRuns) -> Option<String>| {
        (
            title,
            part_result.entries.iter().map(|entry| cell(entry).filter(|_| entry.fault().is_none())).collect::<Vec<_>>(),
        )
    };
    let median = |title: String, what: MetricKind, factor: f64, digits: usize| {
        column(title, &|entry| Some(format!("{:.digits$}", entry.median(what)? * factor)))
    };
    let calls = |title: &str, by: f64| {
        column(title.to_owned(), &|entry| Some(format!("{:.1}", entry.system_calls? as f64 / by)))
    };
    let ratio = |title: String, what: MetricKind, against: Option<&str>| {
        column(title, &|entry| Some(format!("{:.2}", part_result.ratio(what, &entry.name, against?)?)))
    };
    let best = |what: MetricKind| {
        let against = measure_of(part_result, what);
        let whose =
            if part_result.entries.iter().any(|entry| entry.role == ProgramRole::Peer) { "best peer" } else { against };
        ratio(format!("{} × {whose}", what.name()), what, Some(against))
    };
    let mut columns = vec![
        median(format!("wall {time}"), MetricKind::Wall, scale, 3),
        median(format!("CPU {time}"), MetricKind::Cpu, scale, 3),
    ];
    match part_result.unit {
        WorkPerRun::Requests(requests) => {
            columns.push(median("CPU µs/req".to_owned(), MetricKind::Cpu, 1e6 / requests as f64, 1));
            columns.push(calls("calls/req", requests as f64));
        }
        WorkPerRun::Bytes(bytes) => {
            let gigabytes = bytes as f64 / 1e9;
            let speed = |entry: &ProgramRuns| Some(format!("{:.0}", gigabytes * 1e3 / entry.median(MetricKind::Wall)?));
            columns.push(column("MB/s".to_owned(), &speed));
            columns.push(median("CPU s/GB".to_owned(), MetricKind::Cpu, 1.0 / gigabytes, 3));
            columns.push(median("client s/GB".to_owned(), MetricKind::Client, 1.0 / gigabytes, 3));
            columns.push(calls("calls/MB", gigabytes * 1e3));
        }
        WorkPerRun::Run => {}
    }
    columns.extend([
        median("1st byte ms".to_owned(), MetricKind::FirstByte, 1e3, 2),
        median("RSS MB".to_owned(), MetricKind::Rss, 1.0 / 1024.0, 1),
        median("last page s".to_owned(), MetricKind::LastPage, 1.0, 3),
        median("connections".to_owned(), MetricKind::Connections, 1.0, 0),
        median("full handshakes".to_owned(), MetricKind::FullHandshakes, 1.0, 0),
        median("peak".to_owned(), MetricKind::PeakRequests, 1.0, 0),
        median("off rate %".to_owned(), MetricKind::RateDifference, 1.0, 2),
        best(MetricKind::Wall),
        best(MetricKind::Cpu),
    ]);
    if part_result.entries.iter().any(|entry| entry.median(MetricKind::Client).is_some()) {
        columns.push(best(MetricKind::Client));
    }
    let limit = part_result.limit.as_deref();
    columns.extend([
        ratio("wall × limit".to_owned(), MetricKind::Wall, limit),
        ratio("CPU × limit".to_owned(), MetricKind::Cpu, limit),
    ]);
    columns
}

/// Returns a line that contains a goal, the result, and whether the result meets the goal.
fn verdict(part_result: &PartResult, aim: &JobGoal) -> String {
    let bound = match &aim.against {
        Some(against) => format!("{:.2} of {against}", aim.at_most),
        None if aim.what.is_count() => format!("{:.0}", aim.at_most),
        None => format!("{:.2} {}", aim.at_most, aim.what.in_readable_unit(aim.at_most, part_result.unit).1),
    };
    let digits = if aim.what.is_count() { 0 } else { 3 };
    let verdict = match part_result.value_of_goal(aim) {
        Some((figure, unit)) if figure <= aim.at_most => format!("{figure:.digits$} {unit}, reached"),
        Some((figure, unit)) => format!("{figure:.digits$} {unit}, MISSED"),
        None => "no figures".to_owned(),
    };
    format!("{} of {} at most {bound}: {}", aim.what.name(), aim.of, verdict.replace(" ,", ","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result};
    use crate::compared_programs_and_goals::BEST_PEER;

    #[test]
    fn wrong_output_has_no_measurements() {
        let mut part_result = part_result(vec![
            entry("haul", vec![Ok(figures(1.0)), Ok(figures(1.0))]),
            entry("curl", vec![Ok(figures(2.0)), Ok(figures(2.0))]),
            entry("quick", vec![Ok(figures(0.1)), Err("wrong answer: 1 bytes".to_owned())]),
        ]);
        part_result.limit = Some("curl".to_owned());
        assert_eq!(first_fault_line(&part_result.entries[2]).unwrap(), "WRONG in 1 of 2: wrong answer: 1 bytes");
        let table = ResultTable::from_part(&part_result);
        let cells = |title: &str| &table.columns.iter().find(|(name, _)| name == title).unwrap().1;
        assert_eq!(cells("wall × best peer"), &["0.50", "1.00", "-"]);
        assert_eq!(cells("CPU × limit"), &["0.50", "1.00", "-"]);
        assert!(table.columns.iter().all(|(title, _)| !title.contains("calls")), "none were counted");
    }

    #[test]
    fn goal_text_says_met_or_missed() {
        let part_result =
            part_result(vec![entry("haul", vec![Ok(figures(1.0))]), entry("curl", vec![Ok(figures(2.0))])]);
        let aim = |against: Option<&str>, at_most| JobGoal {
            what: MetricKind::Wall,
            of: "haul".to_owned(),
            against: against.map(str::to_owned),
            at_most,
        };
        assert_eq!(verdict(&part_result, &aim(Some("curl"), 0.5)), "wall of haul at most 0.50 of curl: 0.500, reached");
        assert_eq!(verdict(&part_result, &aim(Some("curl"), 0.4)), "wall of haul at most 0.40 of curl: 0.500, MISSED");
        assert_eq!(verdict(&part_result, &aim(None, 1.5)), "wall of haul at most 1.50 s: 1.000 s, reached");
        assert_eq!(
            verdict(&part_result, &aim(Some(BEST_PEER), 0.5)),
            "wall of haul at most 0.50 of the best peer: 0.500, reached"
        );
        assert_eq!(verdict(&part_result, &aim(Some("wget"), 1.0)), "wall of haul at most 1.00 of wget: no figures");
    }
}
