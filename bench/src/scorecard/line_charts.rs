//! Line charts: wall time, CPU time and memory, plotted against a parameter.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::chart_style::{DrawResult, FRAME, GRID, HAUL, HAUL_VARIANT, PEERS, TEXT, bold_font, font};
use crate::bench_results_file::BenchRunResults;
use crate::compared_programs_and_goals::{MetricKind, ProgramRole};

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 340;

/// A curve in a line chart. Its points are the parts of the job `job` that are named `NAME@X`,
/// where NAME is `name` and X the value on the axis.
pub(super) struct ScalingCurve {
    job: &'static str,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    axis: &'static str,
    /// True if the X values grow by factors, so that the axis is logarithmic.
    by_factors: bool,
}

/// All curves of the line charts, in the order of the charts.
pub(super) const ALL: [ScalingCurve; 7] = [
    ScalingCurve { job: CURVES, name: "pages", title: "More pages", axis: "pages of the site", by_factors: true },
    ScalingCurve { job: CURVES, name: "body", title: "A longer body", axis: "bytes", by_factors: true },
    ScalingCurve {
        job: CURVES,
        name: "parallel",
        title: "More connections at once",
        axis: "connections, 10,000 small replies",
        by_factors: true,
    },
    ScalingCurve {
        job: CURVES,
        name: "rtt",
        title: "A longer round trip",
        axis: "ms of round trip, 300 pages",
        by_factors: false,
    },
    ScalingCurve {
        job: CURVES,
        name: "cores",
        title: "More cores for the client",
        axis: "cores, the whole first job",
        by_factors: false,
    },
    ScalingCurve {
        job: "hosts",
        name: "hosts",
        title: "More hosts",
        axis: "hosts, 4 URLs each, 25 % broken",
        by_factors: true,
    },
    ScalingCurve {
        job: "hosts",
        name: "dead",
        title: "More broken hosts",
        axis: "% of 1,000 hosts, 4 URLs each",
        by_factors: false,
    },
];

/// The name of the benchmark job whose parts are the points of the curves in line charts.
const CURVES: &str = "curves";

/// The points of one program in a line chart.
struct CurveSeries {
    name: String,
    look: ChartLineOwner,
    points: Vec<(f64, f64)>,
}

/// Draws the chart of a curve. Returns `None` if the results contain no point of the curve.
pub(super) fn chart(curve: &ScalingCurve, record: &BenchRunResults) -> DrawResult<Option<String>> {
    let panels: Vec<(String, Vec<CurveSeries>)> =
        [(MetricKind::Wall, "wall, s"), (MetricKind::Cpu, "CPU, s"), (MetricKind::Rss, "peak memory, MB")]
            .into_iter()
            .map(|(what, title)| (title.to_owned(), curve_series(curve, record, what)))
            .collect();
    if panels.iter().all(|(_, lines)| lines.is_empty()) {
        return Ok(None);
    }
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(44);
        head.draw(&Text::new(curve.title.to_owned(), (10, 16), bold_font(15, HPos::Left)))?;
        let mut left = 270;
        for line in &panels[0].1 {
            head.draw(&PathElement::new(vec![(left, 16), (left + 30, 16)], line.look.colour().stroke_width(2)))?;
            line.look.draw_mark(&head, (left + 15, 16))?;
            head.draw(&Text::new(line.name.clone(), (left + 38, 16), font(13, TEXT, HPos::Left)))?;
            left += 70 + 8 * i32::try_from(line.name.chars().count())?;
        }
        for (area, (title, lines)) in body.split_evenly((1, panels.len())).iter().zip(&panels) {
            if lines.is_empty() {
                continue;
            }
            let values =
                |of: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|line| line.points.iter().map(of)).collect();
            let (xs, ys): (Vec<f64>, Vec<f64>) = (values(|point| point.0), values(|point| point.1));
            let x = if curve.by_factors { ChartAxis::by_factors(&xs, 1.0) } else { ChartAxis::by_steps(&xs) };
            panel(area, curve, title, lines, x, ChartAxis::by_factors(&ys, 1.25))?;
        }
        area.present()?;
    }
    Ok(Some(svg))
}

/// Returns the lines of the chart of a curve for one kind of result. Each line shows one program.
/// The lines are in the order in which the programs ran, and the points of a line are in ascending
/// order of their X values, such as the number of pages.
fn curve_series(curve: &ScalingCurve, record: &BenchRunResults, what: MetricKind) -> Vec<CurveSeries> {
    let mut lines: Vec<CurveSeries> = Vec::new();
    for part_result in &record.part_results {
        let Some((name, x)) = part_result.part.split_once('@').filter(|_| part_result.job == curve.job) else {
            continue;
        };
        let Some(x) = x.parse::<f64>().ok().filter(|_| name == curve.name) else { continue };
        for entry in &part_result.entries {
            let Some(value) = entry.median(what) else { continue };
            let value = if what == MetricKind::Rss { value / 1024.0 } else { value };
            let at = lines.iter().position(|line| line.name == entry.name).unwrap_or_else(|| {
                let look = match entry.role {
                    ProgramRole::Haul if lines.iter().any(|line| line.look == ChartLineOwner::Haul) => {
                        ChartLineOwner::HaulVariant
                    }
                    ProgramRole::Haul => ChartLineOwner::Haul,
                    ProgramRole::Peer | ProgramRole::Limit => {
                        let peers = lines.iter().filter(|line| matches!(line.look, ChartLineOwner::Peer(_)));
                        ChartLineOwner::Peer(peers.count() % PEERS.len())
                    }
                };
                lines.push(CurveSeries { name: entry.name.clone(), look, points: Vec::new() });
                lines.len() - 1
            });
            lines[at].points.push((x, value.max(1e-6)));
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// An axis with marks at given positions. (The crate `plotters` chooses the positions itself, and
/// would place a mark at 1.2 cores.)
struct ChartAxis {
    range: Range<f64>,
    by_factors: bool,
    marks: Vec<f64>,
}

impl ChartAxis {
    /// Creates a logarithmic axis that extends beyond the values by the factor `room`. The axis has
    /// marks at powers of ten and, if its range contains few of them, also at their multiples by 2
    /// and 5.
    fn by_factors(values: &[f64], room: f64) -> ChartAxis {
        let (low, high) = (least(values) / room, most(values) * room);
        // A smaller range than a power of ten would exaggerate differences.
        let wider = (10.0 * low / high).max(1.0).sqrt();
        let range = low / wider..high * wider;
        let span = (range.end / range.start).log10();
        let steps: &[f64] = if span > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let every = if span > 6.5 { 2 } else { 1 };
        let (low, high) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
        let powers = (low..=high).filter(|power| power.rem_euclid(every) == 0);
        let marks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        let marks = marks.filter(|mark| (range.start * 0.999..=range.end * 1.001).contains(mark)).collect();
        ChartAxis { range, by_factors: true, marks }
    }

    /// Creates a linear axis that has marks at the values, except where labels would overlap.
    fn by_steps(values: &[f64]) -> ChartAxis {
        let span = most(values) - least(values);
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut marks: Vec<f64> = Vec::new();
        for value in sorted {
            if marks.last().is_none_or(|last| value - last > span * 0.08) {
                marks.push(value);
            }
        }
        let margin = span.max(1.0) * 0.06;
        ChartAxis { range: least(values) - margin..most(values) + margin, by_factors: false, marks }
    }

    /// Returns the position of a value on the axis: 0 at the start, 1 at the end.
    fn position_of(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        let (start, end, value) =
            if self.by_factors { (start.ln(), end.ln(), value.ln()) } else { (start, end, value) };
        if end > start { (value - start) / (end - start) } else { 0.5 }
    }
}

impl Ranged for ChartAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first + (self.position_of(*value) * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MAX, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MIN, f64::max)
}

type PlotArea<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn panel(
    area: &PlotArea<'_>,
    curve: &ScalingCurve,
    title: &str,
    lines: &[CurveSeries],
    x: ChartAxis,
    y: ChartAxis,
) -> DrawResult<()> {
    let mut chart = ChartBuilder::on(area)
        .caption(title, font(13, TEXT, HPos::Left))
        .margin_right(26)
        .margin_left(6)
        .x_label_area_size(46)
        .y_label_area_size(50)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .axis_style(FRAME)
        .label_style(font(11, TEXT, HPos::Left))
        .axis_desc_style(font(12, TEXT, HPos::Left))
        .x_desc(curve.axis)
        .x_label_formatter(&|x| short_number(*x))
        .y_label_formatter(&|y| short_number(*y))
        .draw()?;
    for line in lines {
        chart.draw_series(LineSeries::new(line.points.iter().copied(), line.look.colour().stroke_width(2)))?;
        for point in &line.points {
            let middle = chart.backend_coord(point);
            let (left, top) = area.get_base_pixel();
            line.look.draw_mark(area, (middle.0 - left, middle.1 - top))?;
        }
    }
    Ok(())
}

/// The program that a line of a chart shows. It determines the colour and the marker of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChartLineOwner {
    Haul,
    /// A competitor of haul. The number is its index in [`PEERS`].
    Peer(usize),
    /// A further program of haul in the chart, which runs haul with other options.
    HaulVariant,
}

impl ChartLineOwner {
    fn colour(self) -> RGBColor {
        match self {
            ChartLineOwner::Haul => HAUL,
            ChartLineOwner::Peer(number) => PEERS[number],
            ChartLineOwner::HaulVariant => HAUL_VARIANT,
        }
    }

    fn draw_mark(self, area: &PlotArea<'_>, (x, y): (i32, i32)) -> DrawResult<()> {
        let style = self.colour().filled();
        match self {
            ChartLineOwner::Haul => area.draw(&Circle::new((x, y), 4, style))?,
            ChartLineOwner::Peer(_) => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], style))?,
            ChartLineOwner::HaulVariant => area.draw(&TriangleMarker::new((x, y), 6, style))?,
        }
        Ok(())
    }
}

/// Returns a short text for a number, such as `20 k` or `0.05`.
fn short_number(value: f64) -> String {
    let (scaled, suffix) = match value {
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e3 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let rounded = (scaled * 1e4).round() / 1e4;
    format!("{rounded}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};

    #[test]
    fn axis_numbers_are_abbreviated() {
        for (value, text) in
            [(1000.0, "1 k"), (2.5e6, "2.5 M"), (1e10, "10 G"), (0.05, "0.05"), (0.0005, "0.0005"), (20.0, "20")]
        {
            assert_eq!(short_number(value), text);
        }
    }

    #[test]
    fn axis_marks_are_round_numbers_or_data_values() {
        assert_eq!(ChartAxis::by_factors(&[100.0, 1e5], 1.0).marks, [100.0, 1e3, 1e4, 1e5]);
        assert_eq!(ChartAxis::by_factors(&[0.9, 12.0], 1.0).marks, [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(
            ChartAxis::by_factors(&[10.0, 10.0], 1.0).marks,
            [5.0, 10.0, 20.0],
            "of one value there is a surrounding"
        );
        let steps = ChartAxis::by_steps(&[0.0, 1.0, 5.0, 20.0, 50.0, 100.0, 0.0, 100.0]);
        assert_eq!(steps.marks, [0.0, 20.0, 50.0, 100.0]);
        assert_eq!(steps.map(&50.0, (0, 1000)), 500);
        assert_eq!(ChartAxis::by_factors(&[1.0, 100.0], 1.0).map(&10.0, (100, 0)), 50);
    }

    #[test]
    fn curve_connects_points_in_ascending_order() {
        let point = |part: &str, wall| {
            let mut part_result = part_result(vec![
                entry("haul", vec![Ok(figures(wall))]),
                entry("curl", vec![Ok(figures(2.0 * wall))]),
                entry("bad", vec![Err("wrong answer".to_owned())]),
            ]);
            (part_result.job, part_result.part) = ("curves".to_owned(), part.to_owned());
            part_result
        };
        let record =
            record(vec![point("pages@1000", 1.0), point("pages@100", 0.1), point("rtt@0", 0.2), point("rtt@100", 9.0)]);
        let lines = curve_series(&ALL[0], &record, MetricKind::Wall);
        assert_eq!(lines.len(), 2, "one that is wrong has no line");
        assert_eq!(lines[0].points, [(100.0, 0.1), (1000.0, 1.0)]);
        for curve in &ALL {
            let svg = chart(curve, &record).unwrap();
            assert_eq!(svg.is_some(), ["pages", "rtt"].contains(&curve.name));
            assert!(svg.is_none_or(|svg| svg.contains(curve.axis) && svg.contains("curl")));
        }
    }
}
