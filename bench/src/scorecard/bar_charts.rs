//! Bar charts: the results of each program of a job, compared with the best competitor of haul.
//!
//! ```text
//!  part                 wall                          CPU
//!           haul  ███ 0.100 s · 0.15×           ██ …
//!           curl  ████████████████ 0.652 s · 1.00×
//!          other  wrong answer
//! ```

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart_style::{CUT_BAR_MARK, DrawResult, FRAME, HAUL, LIMIT, MIN_SHOWN_RATIO, PEER, TEXT, bold_font, font};
use crate::bench_results_file::{PartResult, ProgramRuns};
use crate::compared_programs_and_goals::{MetricKind, ProgramRole};
use crate::terminal_table;

/// The width of the chart, in pixels.
const WIDTH: u32 = 1000;
const NAMES: i32 = 270;
const PANEL: i32 = 360;
/// The length of the longest bar, in pixels. The remaining width of the column is for the number
/// beside the bar.
const LONGEST_BAR: f64 = 200.0;
const ROW: i32 = 24;
const HEAD: i32 = 58;
/// The largest result that is drawn in full, as a multiple of the result with which it is compared.
/// The bars of larger results are cut off.
const MAX_SHOWN_RATIO: f64 = 8.0;

/// Draws the results of a job's parts as SVG bar charts, one below the other.
pub(super) fn chart(part_results: &[&PartResult]) -> DrawResult<String> {
    let rows: usize = part_results.iter().map(|part_result| part_result.entries.len()).sum();
    let height = i32::try_from(rows)? * ROW + i32::try_from(part_results.len())? * (HEAD + 10) + 34;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, u32::try_from(height)?)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut top = 6;
        legend(&area, top)?;
        top += 28;
        for part_result in part_results {
            panel(&area, part_result, top)?;
            top += HEAD + 10 + i32::try_from(part_result.entries.len())? * ROW;
        }
        area.present()?;
    }
    Ok(svg)
}

type BarArea<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn legend(area: &BarArea<'_>, top: i32) -> DrawResult<()> {
    let mut left = NAMES;
    for (role, text) in [
        (ProgramRole::Haul, "haul"),
        (ProgramRole::Peer, "peer"),
        (ProgramRole::Limit, "limit: the least anyone could do"),
    ] {
        area.draw(&Rectangle::new([(left, top + 4), (left + 14, top + 16)], colour(role).filled()))?;
        area.draw(&Text::new(text.to_owned(), (left + 20, top + 10), font(13, TEXT, HPos::Left)))?;
        left += 100;
    }
    Ok(())
}

fn panel(area: &BarArea<'_>, part_result: &PartResult, top: i32) -> DrawResult<()> {
    area.draw(&Text::new(part_result.name(), (10, top + 12), bold_font(15, HPos::Left)))?;
    area.draw(&Text::new(part_result.server.clone(), (NAMES, top + 12), font(12, FRAME, HPos::Left)))?;
    let rows = top + HEAD - 10;
    for (row, entry) in part_result.entries.iter().enumerate() {
        let middle = rows + i32::try_from(row)? * ROW + ROW / 2;
        let style =
            if entry.role == ProgramRole::Haul { bold_font(13, HPos::Right) } else { font(13, TEXT, HPos::Right) };
        area.draw(&Text::new(entry.name.clone(), (NAMES - 10, middle), style))?;
    }
    for (at, what) in [MetricKind::Wall, cpu_of(part_result)].into_iter().enumerate() {
        let left = NAMES + i32::try_from(at)? * PANEL;
        let against = terminal_table::measure_of(part_result, what);
        let title = format!("{}, × {against}", what.name());
        area.draw(&Text::new(title, (left, top + 36), font(12, TEXT, HPos::Left)))?;
        let best = part_result.entries.iter().filter_map(|entry| entry.median(what)).fold(f64::MAX, f64::min);
        let longest = part_result.entries.iter().filter_map(|entry| entry.median(what)).fold(0.0, f64::max);
        // The limit may be far below all other results, which must remain visible.
        let reference = part_result.bench_program(against).and_then(|entry| entry.median(what)).unwrap_or(best);
        let scale = LONGEST_BAR / longest.min(MAX_SHOWN_RATIO * reference).max(f64::MIN_POSITIVE);
        for (row, entry) in part_result.entries.iter().enumerate() {
            let middle = rows + i32::try_from(row)? * ROW + ROW / 2;
            bar(area, part_result, entry, what, (left, middle), scale)?;
        }
        let bottom = rows + i32::try_from(part_result.entries.len())? * ROW;
        area.draw(&PathElement::new(vec![(left, rows), (left, bottom)], FRAME.stroke_width(1)))?;
    }
    Ok(())
}

/// Returns the kind of CPU time that the chart of a part compares: the CPU time of the client alone
/// if it was measured, else the CPU time of all processes. The client's time is measured separately
/// if another program reads the client's output.
fn cpu_of(part_result: &PartResult) -> MetricKind {
    if part_result.entries.iter().any(|entry| entry.median(MetricKind::Client).is_some()) {
        MetricKind::Client
    } else {
        MetricKind::Cpu
    }
}

fn bar(
    area: &BarArea<'_>,
    part_result: &PartResult,
    entry: &ProgramRuns,
    what: MetricKind,
    (left, middle): (i32, i32),
    scale: f64,
) -> DrawResult<()> {
    let Some(value) = entry.median(what) else {
        let why = if entry.fault().is_some_and(|fault| fault.starts_with("wrong")) { "wrong answer" } else { "failed" };
        let why = if entry.fault().is_some() { why } else { "–" };
        area.draw(&Text::new(why.to_owned(), (left + 6, middle), font(12, CUT_BAR_MARK, HPos::Left)))?;
        return Ok(());
    };
    let length = value * scale;
    let is_cut = length > LONGEST_BAR + 0.5;
    let right = left + length.clamp(1.0, LONGEST_BAR).round() as i32;
    let (up, down) = (middle - 8, middle + 8);
    area.draw(&Rectangle::new([(left, up), (right, down)], colour(entry.role).filled()))?;
    if is_cut {
        // A gap across the bar shows that it was cut off.
        let gap = vec![(right - 16, down), (right - 10, up), (right - 6, up), (right - 12, down)];
        area.draw(&Polygon::new(gap, WHITE.filled()))?;
    }
    let figure = what.to_text(value, part_result.unit);
    let ratio = part_result.ratio(what, &entry.name, terminal_table::measure_of(part_result, what));
    let compared = ratio.filter(|ratio| *ratio >= MIN_SHOWN_RATIO);
    let text = compared.map_or(figure.clone(), |ratio| format!("{figure} · {ratio:.2}×"));
    let style = font(12, TEXT, HPos::Left).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(text, (right + 6, middle), style))?;
    Ok(())
}

fn colour(role: ProgramRole) -> RGBColor {
    match role {
        ProgramRole::Haul => HAUL,
        ProgramRole::Peer => PEER,
        ProgramRole::Limit => LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result};

    #[test]
    fn bar_chart_shows_every_program_with_its_ratio() {
        let part_result = part_result(vec![
            entry("haul", vec![Ok(figures(1.0))]),
            entry("curl <x>", vec![Ok(figures(4.0))]),
            entry("slow", vec![Ok(figures(400.0))]),
            entry("bad", vec![Err("wrong answer: 1 bytes".to_owned())]),
        ]);
        let svg = chart(&[&part_result]).unwrap();
        for part in ["haul", "curl &lt;x&gt;", "1.000 s · 0.25×", "4.000 s · 1.00×", "· 100.00×", "wrong answer"]
        {
            assert!(svg.contains(part), "{part}");
        }
        // No bar is longer than its space.
        assert!(!svg.contains("x=\"-"));
    }
}
