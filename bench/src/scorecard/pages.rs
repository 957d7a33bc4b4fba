//! The contents of `docs/benchmarks.md`, of the file of rows, and of the HTML page.

use super::anchors;
use super::causes::Causes;
use super::document::{self, Block, Table};
use super::verdict::{End, Verdict};
use super::{bars, curves, overview, readme};
use crate::Result;
use crate::card::Unit;
use crate::record::{Record, Sheet};
use crate::report;

/// The job whose sheets are points of curves.
const CURVES: &str = "curves";

/// The file with the rows of every job, relative to the root of the repository.
pub(super) const ROWS_FILE: &str = "bench/results/rows.md";

/// `docs/benchmarks.md`: the summary, charts, goals and how it is measured.
pub(super) fn markdown(record: &Record, causes: &Causes) -> Result<String> {
    let made = "<!-- Made by `make scorecard` from bench/results; causes are from bench/causes.md. -->\n\n";
    Ok(made.to_owned() + &document::markdown(&blocks(record, causes)?, "benchmarks"))
}

/// [`ROWS_FILE`]: a row for each contestant of each job.
pub(super) fn rows_markdown(record: &Record) -> String {
    let made = "<!-- Made by `make scorecard` from the newest whole run in this directory. -->\n\n";
    let title = Block::Heading(1, format!("Benchmarks: every contestant, {}", record.date));
    let mut blocks = vec![title];
    blocks.extend(rows(record));
    made.to_owned() + &document::markdown(&blocks, "../../docs/benchmarks")
}

/// One page with everything.
pub(super) fn html(record: &Record, causes: &Causes) -> Result<String> {
    let mut blocks = blocks(record, causes)?;
    blocks.push(Block::Heading(2, "Every contestant".to_owned()));
    blocks.extend(rows(record));
    Ok(document::html(&format!("haul: benchmarks, {}", record.date), &blocks))
}

/// All charts by their names.
pub(super) fn charts(record: &Record) -> Result<Vec<(String, String)>> {
    let mut charts: Vec<(String, String)> = Vec::new();
    charts.extend(overview::chart(record)?.map(|svg| ("overview".to_owned(), svg)));
    for (job, sheets) in jobs(record) {
        charts.push((job.to_owned(), bars::chart(&sheets)?));
    }
    for curve in &curves::ALL {
        charts.extend(curves::chart(curve, record)?.map(|svg| (format!("curve-{}", curve.name), svg)));
    }
    Ok(charts)
}

/// The sheets of each job except the curves, in the order in which they ran.
fn jobs(record: &Record) -> Vec<(&str, Vec<&Sheet>)> {
    let mut jobs: Vec<(&str, Vec<&Sheet>)> = Vec::new();
    for sheet in record.sheets.iter().filter(|sheet| sheet.job != CURVES && !sheet.entries.is_empty()) {
        match jobs.last_mut().filter(|(job, _)| *job == sheet.job) {
            Some((_, sheets)) => sheets.push(sheet),
            None => jobs.push((&sheet.job, vec![sheet])),
        }
    }
    jobs
}

fn blocks(record: &Record, causes: &Causes) -> Result<Vec<Block>> {
    let mut blocks = vec![Block::Heading(1, "Benchmarks".to_owned())];
    blocks.extend(summary(record));
    if let Some(svg) = overview::chart(record)? {
        let shows = "What haul takes of the best peer's wall time and CPU in each job".to_owned();
        blocks.push(Block::Chart { name: "overview".to_owned(), shows, svg });
    }
    blocks.push(Block::Heading(2, "The jobs".to_owned()));
    for (job, sheets) in jobs(record) {
        blocks.push(Block::Heading(3, job.to_owned()));
        blocks.push(Block::Paragraph(format!("{}.", sheets[0].about)));
        let shows = format!("Wall time and CPU of each contestant of the job {job}");
        blocks.push(Block::Chart { name: job.to_owned(), shows, svg: bars::chart(&sheets)? });
    }
    let mut headed = false;
    for curve in &curves::ALL {
        let Some(svg) = curves::chart(curve, record)? else { continue };
        if !headed {
            blocks.push(Block::Heading(2, "How cost grows".to_owned()));
            headed = true;
        }
        let shows = format!("{}: wall time, CPU and peak memory", curve.title);
        blocks.push(Block::Chart { name: format!("curve-{}", curve.name), shows, svg });
    }
    let verdicts: Vec<Verdict> = anchors::ALL.iter().map(|anchor| Verdict::of(anchor, record)).collect();
    blocks.extend(goals(&verdicts));
    blocks.extend(misses(&verdicts, causes));
    blocks.extend(method(record));
    Ok(blocks)
}

/// The README's table, and where the figures below it come from.
fn summary(record: &Record) -> Vec<Block> {
    let host = &record.host;
    let rows = readme::job_rows(record);
    let head = readme::JOB_HEAD.map(str::to_owned).to_vec();
    let mut blocks = vec![Block::Paragraph(
        "haul and its peers do the same job in turn, on one machine. The table shows haul's share of the best peer's wall time \
         or CPU: 0.25 is a quarter."
            .to_owned(),
    )];
    if !rows.is_empty() {
        let rows = rows.into_iter().map(Vec::from).collect();
        blocks.push(Block::Table(Table { text_columns: 5, head, rows }));
    }
    blocks.push(Block::Paragraph(format!(
        "Measured on {} with {} cores of {}. `make bench` repeats it. The figures of every contestant are in \
         [{ROWS_FILE}](../{ROWS_FILE}), those of every round in the files beside it.",
        record.date, host.cpus, host.cpu
    )));
    blocks
}

/// The table of each job, a row for each contestant.
fn rows(record: &Record) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(
        "Figures are medians of the rounds. A ratio is the median of the rounds' ratios, each within its round."
            .to_owned(),
    )];
    for (job, sheets) in jobs(record) {
        blocks.push(Block::Heading(2, job.to_owned()));
        blocks.push(Block::Paragraph(format!("{}.", sheets[0].about)));
        for sheet in sheets {
            blocks.extend(figures(sheet));
        }
    }
    blocks
}

/// The rules of the measurement, the machine and the programs.
fn method(record: &Record) -> Vec<Block> {
    let host = &record.host;
    let mut blocks = vec![Block::Heading(2, "How it is measured".to_owned())];
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
    blocks.extend(rules.into_iter().map(|rule| Block::Paragraph(rule.to_owned())));
    blocks.push(Block::Paragraph(format!(
        "The machine has {} cores of {}, {} MiB of memory and {}. The run took {} minutes. `bench JOB` runs one job.",
        host.cpus,
        host.cpu,
        host.memory_mib,
        host.kernel,
        (record.seconds / 60.0).ceil()
    )));
    let skipped: Vec<String> = record.skipped.iter().map(|(job, why)| format!("`{job}` ({why})")).collect();
    if !skipped.is_empty() {
        blocks.push(Block::Paragraph(format!("Not run: {}.", skipped.join(", "))));
    }
    let rows = record.tools.iter().map(|(name, version)| vec![name.clone(), version.clone()]).collect();
    let head = vec!["program".to_owned(), "version".to_owned()];
    blocks.push(Block::Table(Table { text_columns: 2, head, rows }));
    blocks
}

fn goals(verdicts: &[Verdict]) -> Vec<Block> {
    let count = |wanted: fn(&End) -> bool| verdicts.iter().filter(|verdict| wanted(&verdict.end)).count();
    let mut blocks = vec![
        Block::Heading(2, "Goals".to_owned()),
        Block::Paragraph(format!(
            "{} met, {} missed, {} not measured, {} shown by tests. The last column says in how many rounds the goal was met.",
            count(|end| matches!(end, End::Met(..))),
            count(|end| matches!(end, End::Missed(..))),
            count(|end| matches!(end, End::Unmeasured(_))),
            count(|end| matches!(end, End::Tested(_))),
        )),
    ];
    for (section, title) in anchors::SECTIONS {
        blocks.push(Block::Heading(3, format!("{section}. {title}")));
        let of_section = |verdict: &&Verdict| verdict.id.split('.').next() == Some(section);
        let rows = verdicts
            .iter()
            .filter(of_section)
            .map(|verdict| {
                let Verdict { id, goal, best_peer, limit, haul, end } = verdict;
                vec![(*id).to_owned(), (*goal).to_owned(), best_peer.clone(), limit.clone(), haul.clone(), end.words()]
            })
            .collect();
        let head = ["", "goal", "best peer", "limit", "haul", ""].map(str::to_owned).to_vec();
        blocks.push(Block::Table(Table { text_columns: 6, head, rows }));
    }
    blocks
}

fn misses(verdicts: &[Verdict], causes: &Causes) -> Vec<Block> {
    let missed: Vec<&Verdict> = verdicts.iter().filter(|verdict| matches!(verdict.end, End::Missed(..))).collect();
    if missed.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading(2, "Misses".to_owned())];
    for verdict in missed {
        blocks.push(Block::Paragraph(format!("**{}** {}: {}.", verdict.id, verdict.goal, verdict.haul)));
        match causes.of(verdict.id) {
            [] => blocks.push(Block::Paragraph("The cause is not known yet.".to_owned())),
            paragraphs => blocks.extend(paragraphs.iter().cloned().map(Block::Paragraph)),
        }
    }
    blocks
}

/// The table of a sheet, below its description.
fn figures(sheet: &Sheet) -> Vec<Block> {
    let table = report::SheetTable::of(sheet);
    let rows = sheet.entries.iter().enumerate().map(|(row, entry)| {
        let mut cells = vec![entry.name.clone()];
        match report::wrong(entry) {
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
    let amount = match sheet.unit {
        Unit::Requests(requests) => format!(", {requests} requests a run"),
        Unit::Bytes(bytes) => format!(", {bytes} bytes a run"),
        Unit::Run => String::new(),
    };
    vec![
        Block::Paragraph(format!("**{}**: {}, {} rounds{amount}", sheet.name(), sheet.server, sheet.rounds)),
        Block::Table(Table { text_columns: 1, head, rows: rows.collect() }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{entry, figures, record, sheet};

    #[test]
    fn every_goal_is_a_row_with_causes() {
        let mut site = sheet(vec![
            entry("haul", vec![Ok(figures(0.22))]),
            entry("curl, a config", vec![Ok(figures(1.0))]),
            entry("xargs -P20 curl", vec![Err("wrong answer: 3 bytes".to_owned())]),
        ]);
        site.job = "site".to_owned();
        let record = record(vec![site]);
        let text = markdown(&record, &Causes::read("## 1.2\n\nBecause of this.\n")).unwrap();
        for anchor in anchors::ALL {
            assert!(text.contains(&format!("| {} | {} |", anchor.id, anchor.goal)), "{}", anchor.id);
        }
        assert!(text.contains("**met** in 1 of 1") && text.contains("**missed**, met in 0 of 1"));
        assert!(text.contains("Because of this.") && !text.contains("not known yet"));
        let wrong = "xargs -P20 curl (WRONG in 1 of 1: wrong answer: 3 bytes)";
        assert!(rows_markdown(&record).contains(wrong));
        assert!(html(&record, &Causes::read("")).unwrap().contains(wrong));
        assert!(markdown(&record, &Causes::read("")).unwrap().contains("not known yet"));
        assert!(html(&record, &Causes::read("")).unwrap().contains("<svg"));
        let names: Vec<String> = charts(&record).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["overview", "site"]);
    }
}
