//! The table of the job `adapt`: for each server, haul's default compared with the best fixed
//! number of connections and with `curl -Z`.

use super::markdown_and_html::{DocumentBlock, DocumentTable};
use crate::bench_results_file::{BenchRunResults, PartResult, ProgramRuns};
use crate::compared_programs_and_goals::{MetricKind, ProgramRole};

const JOB: &str = "adapt";
const CURL_Z: &str = "curl -Z";

/// Creates the heading, the description and the table; an empty list if the job did not run.
pub(super) fn blocks(record: &BenchRunResults) -> Vec<DocumentBlock> {
    let part_results: Vec<&PartResult> =
        record.part_results.iter().filter(|part_result| part_result.job == JOB).collect();
    let Some(first) = part_results.first() else { return Vec::new() };
    let head = ["point", "haul, s", "best fixed", "× best fixed", "× curl -Z", "peak after 1 s"];
    let rows = part_results.iter().map(|part_result| row(part_result)).collect();
    vec![
        DocumentBlock::Heading(3, JOB.to_owned()),
        DocumentBlock::Paragraph(format!("{}.", first.about)),
        DocumentBlock::Paragraph(
            "A point is the treatment of requests beyond those that the server bears, their number, the length of a \
             page, and the round trip in ms. \"fixed at N\" is haul with `--parallel-max-host N`. The peak is the \
             largest number of requests at the server at a time after the first second."
                .to_owned(),
        ),
        DocumentBlock::Table(DocumentTable { text_columns: 1, head: head.map(str::to_owned).to_vec(), rows }),
    ]
}

fn row(part_result: &PartResult) -> Vec<String> {
    let Some(haul) = part_result.entries.iter().find(|entry| entry.role == ProgramRole::Haul) else {
        return vec![part_result.part.clone()];
    };
    let shown = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    let ratio = |against: &str| shown(part_result.ratio(MetricKind::Wall, &haul.name, against), 2);
    let best = best_fixed(part_result).map(|entry| entry.name.as_str());
    vec![
        part_result.part.clone(),
        shown(haul.median(MetricKind::Wall), 3),
        best.unwrap_or("-").to_owned(),
        best.map_or("-".to_owned(), ratio),
        ratio(CURL_Z),
        shown(haul.median(MetricKind::PeakRequests), 0),
    ]
}

/// Returns the runs of the program that has the shortest wall time among those with a fixed number
/// of connections; `None` if no such program has a right result.
fn best_fixed(part_result: &PartResult) -> Option<&ProgramRuns> {
    let fixed = part_result.entries.iter().filter(|entry| entry.role == ProgramRole::Peer && entry.name != CURL_Z);
    let ranked = fixed.filter_map(|entry| Some((entry.median(MetricKind::Wall)?, entry)));
    ranked.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    #[test]
    fn adapt_table_shows_best_fixed_connection_count() {
        let mut point = part_result(vec![
            entry("haul", vec![Ok(figures(1.2))]),
            entry("fixed at 6", vec![Ok(figures(3.0))]),
            entry("fixed at 20", vec![Ok(figures(1.0))]),
            entry("curl -Z", vec![Ok(figures(0.8))]),
        ]);
        (point.job, point.part) = (JOB.to_owned(), "queue-32-300@20".to_owned());
        assert_eq!(row(&point), ["queue-32-300@20", "1.200", "fixed at 20", "1.20", "1.50", "-"]);
        assert_eq!(blocks(&record(vec![point])).len(), 4);
        assert!(blocks(&record(vec![part_result(Vec::new())])).is_empty());
    }
}
