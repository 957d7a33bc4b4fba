//! The contents of `docs/benchmarks.md` and of the HTML page.

use super::anchors;
use super::causes::Causes;
use super::document::{self, Block, Table};
use super::verdict::{End, Verdict};
use super::{bars, curves, overview};
use crate::Result;
use crate::card::Unit;
use crate::record::{Record, Sheet};
use crate::report;

/// The job whose sheets are points of curves.
const CURVES: &str = "curves";

pub(super) fn markdown(record: &Record, causes: &Causes) -> Result<String> {
    let made = "<!-- Made by `make scorecard` from bench/results; causes are from bench/causes.md. -->\n\n";
    Ok(made.to_owned() + &document::markdown(&blocks(record, causes)?, "benchmarks"))
}

pub(super) fn html(record: &Record, causes: &Causes) -> Result<String> {
    Ok(document::html(&format!("haul: benchmarks, {}", record.date), &blocks(record, causes)?))
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
    blocks.extend(introduction(record));
    if let Some(svg) = overview::chart(record)? {
        let shows = "What haul takes of the best peer's wall time and CPU in each job".to_owned();
        blocks.push(Block::Chart { name: "overview".to_owned(), shows, svg });
    }
    let verdicts: Vec<Verdict> = anchors::ALL.iter().map(|anchor| Verdict::of(anchor, record)).collect();
    blocks.extend(goals(&verdicts));
    blocks.extend(misses(&verdicts, causes));
    blocks.push(Block::Heading(2, "The jobs".to_owned()));
    blocks.push(Block::Paragraph(
        "Medians of the rounds. A ratio is the median of the rounds' ratios, each within its round. `bench JOB` runs one of \
         them."
            .to_owned(),
    ));
    for (job, sheets) in jobs(record) {
        blocks.push(Block::Heading(3, job.to_owned()));
        blocks.push(Block::Paragraph(format!("{}.", sheets[0].about)));
        let shows = format!("Wall time and CPU of each contestant of the job {job}");
        blocks.push(Block::Chart { name: job.to_owned(), shows, svg: bars::chart(&sheets)? });
        for sheet in sheets {
            blocks.extend(figures(sheet));
        }
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
    Ok(blocks)
}

fn introduction(record: &Record) -> Vec<Block> {
    let host = &record.host;
    let mut paragraphs = vec![
        "haul and its peers do the same job in turn, A B C A B C, on loopback, and each answer is checked before its time \
         counts; a wrong one is shown as wrong. Absolute times drift from machine to machine and from day to day: what counts \
         is the ratio to a peer in the same round. CPU is user and system time of the client's whole process tree. The limit is \
         a plain loop that does the least anyone could do. Where client and server take turns (one request at a time, one small \
         request a process) both have the same core: on which of two a server is woken, and what that takes, would decide more \
         than the clients do."
            .to_owned(),
        format!(
            "{}, {} cores of {}, {} MiB, {}; {} minutes in all. `make bench` repeats it, and `bench/results/README.md` says what \
             is in its file of raw figures.",
            record.date,
            host.cpus,
            host.cpu,
            host.memory_mib,
            host.kernel,
            (record.seconds / 60.0).ceil()
        ),
    ];
    let skipped: Vec<String> = record.skipped.iter().map(|(job, why)| format!("`{job}` ({why})")).collect();
    if !skipped.is_empty() {
        paragraphs.push(format!("Not run: {}.", skipped.join(", ")));
    }
    let rows = record.tools.iter().map(|(name, version)| vec![name.clone(), version.clone()]).collect();
    let mut blocks: Vec<Block> = paragraphs.into_iter().map(Block::Paragraph).collect();
    let head = vec!["program".to_owned(), "version".to_owned()];
    blocks.push(Block::Table(Table { text_columns: 2, head, rows }));
    blocks
}

fn goals(verdicts: &[Verdict]) -> Vec<Block> {
    let count = |wanted: fn(&End) -> bool| verdicts.iter().filter(|verdict| wanted(&verdict.end)).count();
    let mut blocks = vec![
        Block::Heading(2, "Goals".to_owned()),
        Block::Paragraph(format!(
            "{} met, {} missed, {} not measured; {} are for tests to show. The last column says in how many rounds the goal \
             held.",
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
        assert!(text.contains("xargs -P20 curl (WRONG in 1 of 1: wrong answer: 3 bytes)"));
        assert!(markdown(&record, &Causes::read("")).unwrap().contains("not known yet"));
        assert!(html(&record, &Causes::read("")).unwrap().contains("<svg"));
        let names: Vec<String> = charts(&record).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["overview", "site"]);
    }
}
