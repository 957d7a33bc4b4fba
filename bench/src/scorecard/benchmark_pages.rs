//! The contents of `docs/benchmarks.md`, of [`ROWS_FILE`], and of the HTML page.

use super::goal_causes::GoalCauses;
use super::goal_verdict::{GoalStatus, GoalTableRow};
use super::markdown_and_html::{self, DocumentBlock, DocumentTable};
use super::project_goals;
use super::{adaptive_connections_table, bar_charts, line_charts, overview_chart, readme_figures};
use crate::Result;
use crate::bench_results_file::{BenchRunResults, PartResult};
use crate::compared_programs_and_goals::WorkPerRun;
use crate::terminal_table;

/// The file with a table for every job, relative to the root of the repository.
pub(super) const ROWS_FILE: &str = "bench/results/rows.md";

/// Renders `docs/benchmarks.md`: the summary, charts, goals, and the method.
pub(super) fn markdown(record: &BenchRunResults, causes: &GoalCauses) -> Result<String> {
    let made = "<!-- Made by `make scorecard` from bench/results; causes are from bench/causes.md. -->\n\n";
    Ok(made.to_owned() + &markdown_and_html::markdown(&blocks(record, causes)?, "benchmarks"))
}

/// Renders the Markdown file [`ROWS_FILE`]: a table for each job, with a row for each program.
pub(super) fn rows_markdown(record: &BenchRunResults) -> String {
    let made = "<!-- Made by `make scorecard` from the newest whole run in this directory. -->\n\n";
    let title = DocumentBlock::Heading(1, format!("Benchmarks: every contestant, {}", record.date));
    let mut blocks = vec![title];
    blocks.extend(rows(record));
    made.to_owned() + &markdown_and_html::markdown(&blocks, "../../docs/benchmarks")
}

/// Renders one HTML page with all results.
pub(super) fn html(record: &BenchRunResults, causes: &GoalCauses) -> Result<String> {
    let mut blocks = blocks(record, causes)?;
    blocks.push(DocumentBlock::Heading(2, "Every contestant".to_owned()));
    blocks.extend(rows(record));
    Ok(markdown_and_html::html(&format!("haul: benchmarks, {}", record.date), &blocks))
}

/// Draws all charts. Returns the name and the SVG of each.
pub(super) fn charts(record: &BenchRunResults) -> Result<Vec<(String, String)>> {
    let mut charts: Vec<(String, String)> = Vec::new();
    charts.extend(overview_chart::chart(record)?.map(|svg| ("overview".to_owned(), svg)));
    for (job, part_results) in jobs(record) {
        charts.push((job.to_owned(), bar_charts::chart(&part_results)?));
    }
    for curve in &line_charts::ALL {
        charts.extend(line_charts::chart(curve, record)?.map(|svg| (format!("curve-{}", curve.name), svg)));
    }
    Ok(charts)
}

/// Returns the jobs of a run of the bench, each with the results of its parts, in the order in
/// which they ran. The parts of a job measure the same kind of work under different conditions.
/// Parts with the name `CURVE@X` are left out, since line charts show them.
fn jobs(record: &BenchRunResults) -> Vec<(&str, Vec<&PartResult>)> {
    let mut jobs: Vec<(&str, Vec<&PartResult>)> = Vec::new();
    for part_result in record
        .part_results
        .iter()
        .filter(|part_result| !part_result.part.contains('@') && !part_result.entries.is_empty())
    {
        match jobs.last_mut().filter(|(job, _)| *job == part_result.job) {
            Some((_, part_results)) => part_results.push(part_result),
            None => jobs.push((&part_result.job, vec![part_result])),
        }
    }
    jobs
}

fn blocks(record: &BenchRunResults, causes: &GoalCauses) -> Result<Vec<DocumentBlock>> {
    let mut blocks = vec![DocumentBlock::Heading(1, "Benchmarks".to_owned())];
    if let Some(svg) = overview_chart::chart(record)? {
        let shows = "What haul takes of the best peer's wall time and CPU in each job".to_owned();
        blocks.push(DocumentBlock::Chart { name: "overview".to_owned(), shows, svg });
    }
    blocks.extend(summary(record));
    blocks.push(DocumentBlock::Heading(2, "The jobs".to_owned()));
    for (job, part_results) in jobs(record) {
        blocks.push(DocumentBlock::Heading(3, job.to_owned()));
        blocks.push(DocumentBlock::Paragraph(format!("{}.", part_results[0].about)));
        let shows = format!("Wall time and CPU of each contestant of the job {job}");
        blocks.push(DocumentBlock::Chart { name: job.to_owned(), shows, svg: bar_charts::chart(&part_results)? });
    }
    blocks.extend(adaptive_connections_table::blocks(record));
    let mut headed = false;
    for curve in &line_charts::ALL {
        let Some(svg) = line_charts::chart(curve, record)? else { continue };
        if !headed {
            blocks.push(DocumentBlock::Heading(2, "How cost grows".to_owned()));
            headed = true;
        }
        let shows = format!("{}: wall time, CPU and peak memory", curve.title);
        blocks.push(DocumentBlock::Chart { name: format!("curve-{}", curve.name), shows, svg });
    }
    let verdicts: Vec<GoalTableRow> =
        project_goals::ALL.iter().map(|anchor| GoalTableRow::new(anchor, record)).collect();
    blocks.extend(goals(&verdicts));
    blocks.extend(misses(&verdicts, causes));
    blocks.extend(method(record));
    Ok(blocks)
}

/// Creates the table of jobs with haul's ratios to its best competitors, and the text that says
/// where the numbers come from.
fn summary(record: &BenchRunResults) -> Vec<DocumentBlock> {
    let host = &record.host;
    let rows = readme_figures::job_rows(record);
    let head = readme_figures::JOB_HEAD.map(str::to_owned).to_vec();
    let mut blocks = vec![DocumentBlock::Paragraph(
        "haul and its peers do the same job in turn, on one machine. The table shows haul's share of the best peer's wall time \
         and CPU: 0.25 is a quarter, and above 1 haul is behind."
            .to_owned(),
    )];
    if !rows.is_empty() {
        let rows = rows.into_iter().map(Vec::from).collect();
        blocks.push(DocumentBlock::Table(DocumentTable { text_columns: 4, head, rows }));
    }
    blocks.push(DocumentBlock::Paragraph(format!(
        "Measured on {} with {} cores of {}. `make bench` repeats it. The figures of every contestant are in \
         [{ROWS_FILE}](../{ROWS_FILE}), those of every round in the files beside it.",
        record.date, host.cpus, host.cpu
    )));
    blocks
}

/// Creates the tables of all jobs, with a row for each program.
fn rows(record: &BenchRunResults) -> Vec<DocumentBlock> {
    let mut blocks = vec![DocumentBlock::Paragraph(
        "Figures are medians of the rounds. A ratio is the median of the rounds' ratios, each within its round."
            .to_owned(),
    )];
    for (job, part_results) in jobs(record) {
        blocks.push(DocumentBlock::Heading(2, job.to_owned()));
        blocks.push(DocumentBlock::Paragraph(format!("{}.", part_results[0].about)));
        for part_result in part_results {
            blocks.extend(figures(part_result));
        }
    }
    blocks
}

/// Creates the description of the measurement, the machine and the programs.
fn method(record: &BenchRunResults) -> Vec<DocumentBlock> {
    let host = &record.host;
    let mut blocks = vec![DocumentBlock::Heading(2, "How it is measured".to_owned())];
    let rules = [
        "The contestants run in turn, A B C A B C, against a server on loopback. A time counts only if the answer is right; a \
         contestant with a wrong answer is listed as wrong.",
        "Compare ratios, not times: times differ from machine to machine and from day to day. A ratio compares two runs of the \
         same round.",
        "CPU is user and system time of the client's whole process tree.",
        "The limit is a plain loop that does the least work possible for the job.",
        "Where client and server take turns, both have the same core. On two cores, the time to wake the other core would count \
         more than the clients do.",
    ];
    blocks.extend(rules.into_iter().map(|rule| DocumentBlock::Paragraph(rule.to_owned())));
    blocks.push(DocumentBlock::Paragraph(format!(
        "The machine has {} cores of {}, {} MiB of memory and {}. The run took {} minutes. `bench JOB` runs one job.",
        host.cpus,
        host.cpu,
        host.memory_mib,
        host.kernel,
        (record.seconds / 60.0).ceil()
    )));
    let skipped: Vec<String> = record.skipped.iter().map(|(job, why)| format!("`{job}` ({why})")).collect();
    if !skipped.is_empty() {
        blocks.push(DocumentBlock::Paragraph(format!("Not run: {}.", skipped.join(", "))));
    }
    let rows = record.tools.iter().map(|(name, version)| vec![name.clone(), version.clone()]).collect();
    let head = vec!["program".to_owned(), "version".to_owned()];
    blocks.push(DocumentBlock::Table(DocumentTable { text_columns: 2, head, rows }));
    blocks
}

fn goals(verdicts: &[GoalTableRow]) -> Vec<DocumentBlock> {
    let count = |wanted: fn(&GoalStatus) -> bool| verdicts.iter().filter(|verdict| wanted(&verdict.end)).count();
    let mut blocks = vec![
        DocumentBlock::Heading(2, "Goals".to_owned()),
        DocumentBlock::Paragraph(format!(
            "{} met, {} missed, {} not measured, {} shown by tests. The last column says in how many rounds the goal was met.",
            count(|end| matches!(end, GoalStatus::Met(..))),
            count(|end| matches!(end, GoalStatus::Missed(..))),
            count(|end| matches!(end, GoalStatus::Unmeasured(_))),
            count(|end| matches!(end, GoalStatus::Tested(_))),
        )),
    ];
    for (section, title) in project_goals::SECTIONS {
        blocks.push(DocumentBlock::Heading(3, format!("{section}. {title}")));
        let of_section = |verdict: &&GoalTableRow| verdict.id.split('.').next() == Some(section);
        let rows = verdicts
            .iter()
            .filter(of_section)
            .map(|verdict| {
                let GoalTableRow { id, goal, best_peer, limit, haul, end } = verdict;
                vec![
                    (*id).to_owned(),
                    (*goal).to_owned(),
                    best_peer.clone(),
                    limit.clone(),
                    haul.clone(),
                    end.to_text(),
                ]
            })
            .collect();
        let head = ["", "goal", "best peer", "limit", "haul", ""].map(str::to_owned).to_vec();
        blocks.push(DocumentBlock::Table(DocumentTable { text_columns: 6, head, rows }));
    }
    blocks
}

fn misses(verdicts: &[GoalTableRow], causes: &GoalCauses) -> Vec<DocumentBlock> {
    let missed: Vec<&GoalTableRow> =
        verdicts.iter().filter(|verdict| matches!(verdict.end, GoalStatus::Missed(..))).collect();
    if missed.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![DocumentBlock::Heading(2, "Misses".to_owned())];
    for verdict in missed {
        blocks.push(DocumentBlock::Paragraph(format!("**{}** {}: {}.", verdict.id, verdict.goal, verdict.haul)));
        match causes.causes_of_goal(verdict.id) {
            [] => blocks.push(DocumentBlock::Paragraph("The cause is not known yet.".to_owned())),
            paragraphs => blocks.extend(paragraphs.iter().cloned().map(DocumentBlock::Paragraph)),
        }
    }
    blocks
}

/// Creates the description and the table of one part of a job.
fn figures(part_result: &PartResult) -> Vec<DocumentBlock> {
    let table = terminal_table::ResultTable::from_part(part_result);
    let rows = part_result.entries.iter().enumerate().map(|(row, entry)| {
        let mut cells = vec![entry.name.clone()];
        match terminal_table::first_fault_line(entry) {
            None => cells.extend(table.columns.iter().map(|(_, cells)| cells[row].clone())),
            Some(why) => {
                cells[0] += &format!(" ({why})");
                cells.extend(table.columns.iter().map(|_| "–".to_owned()));
            }
        }
        cells
    });
    let mut head = vec![String::new()];
    head.extend(table.columns.iter().map(|(title, _)| title.clone()));
    let amount = match part_result.unit {
        WorkPerRun::Requests(requests) => format!(", {requests} requests a run"),
        WorkPerRun::Bytes(bytes) => format!(", {bytes} bytes a run"),
        WorkPerRun::Run => String::new(),
    };
    vec![
        DocumentBlock::Paragraph(format!(
            "**{}**: {}, {} rounds{amount}",
            part_result.name(),
            part_result.server,
            part_result.rounds
        )),
        DocumentBlock::Table(DocumentTable { text_columns: 1, head, rows: rows.collect() }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    #[test]
    fn missed_goals_are_listed_with_their_reasons() {
        let mut site = part_result(vec![
            entry("haul", vec![Ok(figures(0.22))]),
            entry("curl, a config", vec![Ok(figures(1.0))]),
            entry("xargs -P20 curl", vec![Err("wrong answer: 3 bytes".to_owned())]),
        ]);
        site.job = "site".to_owned();
        let record = record(vec![site]);
        let text = markdown(&record, &GoalCauses::read("## 1.2\n\nBecause of this.\n")).unwrap();
        for anchor in project_goals::ALL {
            assert!(text.contains(&format!("| {} | {} |", anchor.id, anchor.goal)), "{}", anchor.id);
        }
        assert!(text.contains("**met** in 1 of 1") && text.contains("**missed**, met in 0 of 1"));
        assert!(text.contains("Because of this.") && !text.contains("not known yet"));
        let wrong = "xargs -P20 curl (WRONG in 1 of 1: wrong answer: 3 bytes)";
        assert!(rows_markdown(&record).contains(wrong));
        assert!(html(&record, &GoalCauses::read("")).unwrap().contains(wrong));
        assert!(markdown(&record, &GoalCauses::read("")).unwrap().contains("not known yet"));
        assert!(html(&record, &GoalCauses::read("")).unwrap().contains("<svg"));
        let names: Vec<String> = charts(&record).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["overview", "site"]);
    }
}
