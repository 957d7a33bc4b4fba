//! The first chart: haul compared with its best competitor in each job.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::chart_style::{CUT_BAR_MARK, DrawResult, FRAME, HAUL, MIN_SHOWN_RATIO, PEER, TEXT, bold_font, font};
use crate::bench_results_file::{BenchRunResults, PartResult};
use crate::compared_programs_and_goals::{MetricKind, ProgramRole};

/// The width of the chart, in pixels.
const WIDTH: u32 = 1000;
const NAMES: i32 = 170;
const PANEL: i32 = 410;
/// The length of a bar for the ratio 1.00, in pixels.
const WIDTH_OF_RATIO_ONE: f64 = 180.0;
/// The largest ratio whose bar is drawn in full length. The bar of a larger ratio is cut off there;
/// the text beside the bar shows the ratio.
const MAX_SHOWN_RATIO: f64 = 1.2;
const ROW: i32 = 22;
const HEAD: i32 = 70;

/// Draws a bar chart with a row for each part of a benchmark job in which haul has a competitor.
/// Returns `None` if there is no such part. Parts that are points of a curve are left out.
pub(super) fn chart(record: &BenchRunResults) -> DrawResult<Option<String>> {
    let rows: Vec<(&PartResult, [Option<RatioToBestCompetitor>; 2])> = record
        .part_results
        .iter()
        .filter(|part_result| !part_result.part.contains('@'))
        .map(|part_result| (part_result, [MetricKind::Wall, MetricKind::Cpu].map(|what| ratio(part_result, what))))
        .filter(|(_, ratios)| ratios.iter().any(Option::is_some))
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let bottom = HEAD + i32::try_from(rows.len())? * ROW;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, u32::try_from(bottom)? + 16)).into_drawing_area();
        area.fill(&WHITE)?;
        let title = "What haul takes of the best peer's: shorter is better";
        area.draw(&Text::new(title, (10, 16), bold_font(15, HPos::Left)))?;
        for (at, name) in ["wall", "CPU"].into_iter().enumerate() {
            let left = NAMES + i32::try_from(at)? * PANEL;
            area.draw(&Text::new(name, (left, HEAD - 22), font(13, TEXT, HPos::Left)))?;
            let one = left + WIDTH_OF_RATIO_ONE as i32;
            area.draw(&PathElement::new(vec![(left, HEAD - 8), (left, bottom)], FRAME.stroke_width(1)))?;
            area.draw(&PathElement::new(vec![(one, HEAD - 8), (one, bottom)], PEER.stroke_width(2)))?;
            area.draw(&Text::new("best peer", (one, HEAD - 22), font(12, TEXT, HPos::Center)))?;
        }
        for (row, (part_result, ratios)) in rows.iter().enumerate() {
            let middle = HEAD + i32::try_from(row)? * ROW + ROW / 2;
            area.draw(&Text::new(part_result.name(), (NAMES - 10, middle), font(13, TEXT, HPos::Right)))?;
            for (at, ratio) in ratios.iter().enumerate() {
                let left = NAMES + i32::try_from(at)? * PANEL;
                let Some(ratio) = ratio else { continue };
                let length = ratio.value.min(MAX_SHOWN_RATIO) * WIDTH_OF_RATIO_ONE;
                let corners = [(left, middle - 7), (left + length.max(1.0).round() as i32, middle + 7)];
                area.draw(&Rectangle::new(corners, HAUL.filled()))?;
                let behind = (left + length.max(WIDTH_OF_RATIO_ONE).round() as i32 + 8, middle);
                let colour = if ratio.value > 1.0 { CUT_BAR_MARK } else { TEXT };
                let text = format!("{:.2} × {}", ratio.value, ratio.peer);
                area.draw(&Text::new(text, behind, font(12, colour, HPos::Left)))?;
            }
        }
        area.present()?;
    }
    Ok(Some(svg))
}

/// The ratio of haul's result to the result of its best competitor.
struct RatioToBestCompetitor {
    value: f64,
    peer: String,
}

/// Returns the ratio of haul's result to the result of its best competitor in a part of a job. If
/// the part contains several programs of haul, the first one counts. Returns `None` if an output of
/// haul was wrong, if no competitor has only right outputs, or if the ratio is below
/// [`MIN_SHOWN_RATIO`].
fn ratio(part_result: &PartResult, what: MetricKind) -> Option<RatioToBestCompetitor> {
    let haul = part_result.entries.iter().find(|entry| entry.role == ProgramRole::Haul)?;
    // With a reader at the end of its pipe, only the client is compared.
    let what =
        if what == MetricKind::Cpu && haul.median(MetricKind::Client).is_some() { MetricKind::Client } else { what };
    let peer = &part_result.best_peer(what)?.name;
    let value = part_result.ratio(what, &haul.name, peer)?;
    (value >= MIN_SHOWN_RATIO).then(|| RatioToBestCompetitor { value, peer: peer.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    #[test]
    fn chart_compares_haul_with_its_best_competitor() {
        let named = |job: &str, haul, peer| {
            let mut part_result = part_result(vec![
                entry("haul", vec![Ok(figures(haul))]),
                entry("curl", vec![Ok(figures(peer))]),
                entry("quick", vec![Err("wrong answer".to_owned())]),
            ]);
            part_result.job = job.to_owned();
            part_result
        };
        let mut alone = named("alone", 1.0, 1.0);
        alone.entries.truncate(1);
        let svg = chart(&record(vec![named("site", 1.0, 4.0), named("slow", 6.0, 2.0), alone])).unwrap().unwrap();
        for part in ["site", "0.25 × curl", "slow", "3.00 × curl"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("alone"), "nobody to be compared with");
        let waits = chart(&record(vec![named("waits", 0.001, 40.0)])).unwrap();
        assert!(waits.is_none(), "a peer that waits for a time limit is no comparison");
        assert!(chart(&record(Vec::new())).unwrap().is_none());
    }
}
