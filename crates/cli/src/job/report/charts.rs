//! The charts of a job's report, as SVG. They contain text from outside, such as URLs, only in
//! `<title>`, where it is escaped. The numbers on their axes are HTML, which stays readable when a
//! chart is narrow.

use super::collect::{MAX_WATERFALL_BARS, TIMELINE_POINTS, ThroughputTimeline, WaterfallBar};
use super::html::{HtmlPage, group_digits, time_text};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 160.0;
/// The height of a bar in the waterfall chart, including the gap below it, in pixels.
const BAR: f64 = 7.0;

/// Adds the chart of the throughput, in URLs per second, over the active time of all runs.
pub(super) fn throughput_chart(page: &mut HtmlPage, timeline: &ThroughputTimeline) {
    let seconds = timeline.seconds_of_point();
    let most = timeline.done.iter().zip(&timeline.failed).map(|(done, failed)| done + failed).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let most_bytes = timeline.bytes.iter().max().copied().unwrap_or(0) as f64 / seconds;
    page.push_html("<h2>Throughput</h2>\n<p class=\"key\">");
    chart_key(page, &[("good", "done"), ("bad", "failed")]);
    page.push_html(format_args!(
        "At most {} URLs and {} of bodies a second.{}</p>\n",
        group_digits((most as f64 / seconds).round() as u64),
        indicatif::HumanBytes(most_bytes as u64),
        if timeline.later_runs().next().is_some() { " A dashed line is the start of another run." } else { "" }
    ));
    begin_chart(page, HEIGHT, "URLs a second over the time of the runs");
    let (point, scale) = (WIDTH / TIMELINE_POINTS as f64, (HEIGHT - 4.0) / most as f64);
    for (number, (&done, &failed)) in timeline.done.iter().zip(&timeline.failed).enumerate() {
        let x = number as f64 * point;
        let mut top = HEIGHT;
        for (class, count) in [("bad", failed), ("good", done)] {
            let height = count as f64 * scale;
            top -= height;
            if count > 0 {
                rectangle(page, class, [x, top, point * 0.85, height]);
            }
        }
    }
    page.push_html(format_args!("<line class=\"axis\" x1=\"0\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\"/>"));
    for start in timeline.later_runs().take(200) {
        let x = WIDTH * start as f64 / timeline.length.max(1) as f64;
        page.push_html(format_args!("<line class=\"run\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{HEIGHT}\"/>"));
    }
    page.push_html("</svg>\n");
    time_axis(page, timeline.length * 1000);
}

/// Adds a waterfall chart to the page. Each bar shows the phases of one transfer.
pub(super) fn waterfall_chart(page: &mut HtmlPage, bars: &[WaterfallBar]) {
    let Some(begin) = bars.iter().map(|bar| bar.start).min() else { return };
    // A URL that a later run fetched would make the others too small to see.
    let mut starts: Vec<u64> = bars.iter().map(|bar| bar.start - begin + bar.times[4]).collect();
    starts.sort_unstable();
    let end = starts[(starts.len() - 1) * 98 / 100].max(1);
    match bars.len() {
        MAX_WATERFALL_BARS => page.push_html(format_args!("<h2>The first {MAX_WATERFALL_BARS} transfers</h2>\n")),
        _ => page.push_html("<h2>The transfers</h2>\n"),
    }
    page.push_html("<p class=\"key\">");
    chart_key(
        page,
        &[
            ("dns", "name"),
            ("connect", "connection"),
            ("tls", "TLS"),
            ("wait", "waiting"),
            ("receive", "receiving"),
            ("bad", "receiving, failed"),
        ],
    );
    page.push_html("</p>\n");
    time_axis(page, end);
    begin_chart(page, bars.len() as f64 * BAR + 4.0, "The phases of each transfer");
    let scale = WIDTH / end as f64;
    for (number, bar) in bars.iter().enumerate() {
        let y = number as f64 * BAR;
        page.push_html("<g><title>");
        page.push_text(&bar.url);
        page.push_html(format_args!(": {}</title>", time_text(bar.times[4])));
        let start = bar.start - begin;
        let mut from = 0;
        let classes = ["dns", "connect", "tls", "wait", if bar.failed { "bad" } else { "receive" }];
        for (class, &until) in classes.iter().zip(&bar.times) {
            let until = until.max(from);
            let (x, width) = ((start + from) as f64 * scale, (until - from) as f64 * scale);
            if until > from && x < WIDTH {
                rectangle(page, class, [x, y, width.max(0.5), BAR - 2.0]);
            }
            from = until;
        }
        page.push_html("</g>\n");
    }
    page.push_html("</svg>\n");
}

fn rectangle(page: &mut HtmlPage, class: &str, [x, y, width, height]: [f64; 4]) {
    page.push_html(format_args!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
    ));
}

/// Begins a chart that is as wide as the page and has a fixed height in pixels.
fn begin_chart(page: &mut HtmlPage, height: f64, name: &str) {
    page.push_html(format_args!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" height=\"{height:.0}\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{name}\">\n"
    ));
}

/// Adds the labels at both ends of the time axis: 0 and `end`, in microseconds.
fn time_axis(page: &mut HtmlPage, end: u64) {
    page.push_html(format_args!("<p class=\"ends\"><span>0</span><span>{}</span></p>\n", time_text(end)));
}

fn chart_key(page: &mut HtmlPage, entries: &[(&str, &str)]) {
    for (class, name) in entries {
        page.push_html(format_args!(
            "<span><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"10\" \
             height=\"10\"/></svg> {name}</span>"
        ));
    }
}
