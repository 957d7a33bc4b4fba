//! The charts of a report as SVG. They have no text of others but in `<title>`, which is escaped.

use super::collect::{POINTS, Timeline, WATERFALL, WaterfallBar};
use super::html::{HtmlPage, time_text};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 160.0;
/// The space for the numbers of the axis.
const LEFT: f64 = 64.0;
/// The height of a bar of the waterfall, with its gap.
const BAR: f64 = 7.0;

/// Adds the chart of the URLs a second over the time of the runs.
pub(super) fn throughput(page: &mut HtmlPage, timeline: &Timeline) {
    let seconds = timeline.seconds_of_point();
    let most = timeline.done.iter().zip(&timeline.failed).map(|(done, failed)| done + failed).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let most_bytes = timeline.bytes.iter().max().copied().unwrap_or(0) as f64 / seconds;
    page.raw("<h2>Throughput</h2>\n<p class=\"key\">");
    key(page, &[("good", "done"), ("bad", "failed")]);
    page.raw(format_args!(
        "URLs a second; at most {} of bodies a second. A dashed line is the start of another run.</p>\n",
        indicatif::HumanBytes(most_bytes as u64)
    ));
    page.raw(format_args!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", HEIGHT + 20.0));
    let (point, scale) = ((WIDTH - LEFT) / POINTS as f64, (HEIGHT - 10.0) / most as f64);
    for (number, (&done, &failed)) in timeline.done.iter().zip(&timeline.failed).enumerate() {
        let x = LEFT + number as f64 * point;
        let mut top = HEIGHT;
        for (class, count) in [("bad", failed), ("good", done)] {
            let height = count as f64 * scale;
            top -= height;
            if count > 0 {
                rectangle(page, class, [x, top, point * 0.85, height]);
            }
        }
    }
    page.raw(format_args!("<line class=\"axis\" x1=\"{LEFT}\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\"/>"));
    for start in timeline.later_runs().take(200) {
        let x = LEFT + (WIDTH - LEFT) * start as f64 / timeline.length.max(1) as f64;
        page.raw(format_args!("<line class=\"run\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{HEIGHT}\"/>"));
    }
    label(page, LEFT - 6.0, 14.0, "end", &format!("{:.0}", most as f64 / seconds));
    label(page, LEFT - 6.0, HEIGHT, "end", "0");
    label(page, WIDTH, HEIGHT + 14.0, "end", &time_text(timeline.length * 1000));
    page.raw("</svg>\n");
}

/// Adds the waterfall of the first transfers.
pub(super) fn waterfall(page: &mut HtmlPage, bars: &[WaterfallBar]) {
    let Some(begin) = bars.iter().map(|bar| bar.start).min() else { return };
    // A URL that a later run fetched would make the others too small to see.
    let mut starts: Vec<u64> = bars.iter().map(|bar| bar.start - begin + bar.times[4]).collect();
    starts.sort_unstable();
    let end = starts[(starts.len() - 1) * 98 / 100].max(1);
    page.raw(format_args!("<h2>The first {WATERFALL} transfers</h2>\n<p class=\"key\">"));
    key(
        page,
        &[("dns", "name"), ("connect", "connection"), ("tls", "TLS"), ("wait", "waiting"), ("receive", "receiving")],
    );
    page.raw(format_args!("{} in all.</p>\n", time_text(end)));
    page.raw(format_args!("<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\">\n", bars.len() as f64 * BAR + 4.0));
    let scale = WIDTH / end as f64;
    for (number, bar) in bars.iter().enumerate() {
        let y = number as f64 * BAR;
        page.raw("<g><title>");
        page.text(&bar.url);
        page.raw(format_args!(": {}</title>", time_text(bar.times[4])));
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
        page.raw("</g>\n");
    }
    page.raw("</svg>\n");
}

fn rectangle(page: &mut HtmlPage, class: &str, [x, y, width, height]: [f64; 4]) {
    page.raw(format_args!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
    ));
}

fn label(page: &mut HtmlPage, x: f64, y: f64, anchor: &str, text: &str) {
    page.raw(format_args!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">"));
    page.text(text);
    page.raw("</text>");
}

fn key(page: &mut HtmlPage, entries: &[(&str, &str)]) {
    for (class, name) in entries {
        page.raw(format_args!(
            "<span><svg viewBox=\"0 0 10 10\"><rect class=\"{class}\" width=\"10\" height=\"10\"/></svg> {name}</span>"
        ));
    }
}
