//! Pictures of a terminal in SVG, which browsers and code hosting sites show.

use std::fmt::Write as _;
use std::time::Duration;

use super::screen::{Screen, TextRun};

/// The width of a column and the height of a row, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
/// The margin around the text, in pixels.
const MARGIN: f64 = 14.0;
/// The height of the title bar, in pixels.
const TITLE: f64 = 30.0;

/// The colours of a terminal by their numbers, on a dark background.
const COLORS: [&str; 8] = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#e6edf3"];

/// A screen with the time for which it is shown.
#[derive(Clone, Debug)]
pub struct TimedScreen {
    /// The screen.
    pub screen: Screen,
    /// The time for which it is shown.
    pub time: Duration,
}

/// Returns a picture of a screen as SVG, with this number of rows or more.
pub fn picture(title: &str, screen: &Screen) -> String {
    let mut text = head(title, screen, screen.rows.len());
    text.push_str(&group(screen, ""));
    text.push_str("</svg>\n");
    text
}

/// Returns an animated picture of a terminal as SVG: screens one after the other, from the beginning
/// again after the last. Readers who want no movement see the last screen.
pub fn animation(title: &str, screens: &[TimedScreen]) -> String {
    let Some(last) = screens.last() else { return String::new() };
    let rows = screens.iter().map(|timed| timed.screen.rows.len()).max().unwrap_or(0);
    let whole: f64 = screens.iter().map(|timed| timed.time.as_secs_f64()).sum();
    let mut text = head(title, &last.screen, rows);
    text.push_str("<style>\n.f{visibility:hidden}\n");
    let mut begin = 0.0;
    for (number, timed) in screens.iter().enumerate() {
        let (from, to) = (begin / whole * 100.0, (begin + timed.time.as_secs_f64()) / whole * 100.0);
        begin += timed.time.as_secs_f64();
        let before = if number == 0 { "" } else { "0%{visibility:hidden}" };
        let after = if number + 1 == screens.len() { "100%{visibility:visible}" } else { "" };
        let end = if after.is_empty() { format!("{to:.2}%{{visibility:hidden}}") } else { after.to_owned() };
        let _ = writeln!(text, "@keyframes k{number}{{{before}{from:.2}%{{visibility:visible}}{end}}}");
        let _ = writeln!(text, "#f{number}{{animation:k{number} {whole:.1}s step-end infinite}}");
    }
    let _ = writeln!(
        text,
        "@media (prefers-reduced-motion:reduce){{.f{{animation:none!important}}#f{}{{visibility:visible}}}}\n</style>",
        screens.len() - 1
    );
    for (number, timed) in screens.iter().enumerate() {
        text.push_str(&group(&timed.screen, &format!(" class=\"f\" id=\"f{number}\"")));
    }
    text.push_str("</svg>\n");
    text
}

fn head(title: &str, screen: &Screen, rows: usize) -> String {
    let width = f64::from(screen.columns) * CELL.0 + 2.0 * MARGIN;
    let height = rows as f64 * CELL.1 + TITLE + 1.5 * MARGIN;
    let title = escaped(title);
    let dots = [("#ff5f57", 18), ("#febc2e", 36), ("#28c840", 54)];
    let dots: String =
        dots.iter().map(|(color, at)| format!("<circle cx=\"{at}\" cy=\"15\" r=\"5\" fill=\"{color}\"/>")).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" \
         font-size=\"14\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         {dots}\n"
    )
}

fn group(screen: &Screen, attributes: &str) -> String {
    let mut text = format!("<g{attributes} fill=\"#e6edf3\" xml:space=\"preserve\">\n");
    for (row, runs) in screen.rows.iter().enumerate() {
        for run in runs.iter().filter(|run| !run.text.trim().is_empty()) {
            text.push_str(&element(run, TITLE + MARGIN + row as f64 * CELL.1));
        }
    }
    text.push_str("</g>\n");
    text
}

fn element(run: &TextRun, y: f64) -> String {
    let skipped = run.text.len() - run.text.trim_start().len();
    let x = MARGIN + (f64::from(run.column) + skipped as f64) * CELL.0;
    let content = run.text.trim();
    let width = content.chars().count() as f64 * CELL.0;
    let color = run.style.color.map(|color| format!(" fill=\"{}\"", COLORS[usize::from(color % 8)]));
    let weight = if run.style.is_bold { " font-weight=\"bold\"" } else { "" };
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{width:.1}\"{}{weight}>{}</text>\n",
        color.unwrap_or_default(),
        escaped(content)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(bytes: &[u8]) -> Screen {
        let mut parser = super::super::parser_of(20, 4);
        parser.process(bytes);
        Screen::of(parser.screen())
    }

    #[test]
    fn picture_has_text_in_its_place_and_color() {
        let svg = picture("a & b", &screen(b"\x1b[31mred\x1b[0m\r\n   <x>"));
        assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
        assert!(svg.contains("fill=\"#ff7b72\">red</text>"), "{svg}");
        assert!(svg.contains("<text x=\"39.2\" y=\"62.0\" textLength=\"25.2\">&lt;x&gt;</text>"), "{svg}");
    }

    #[test]
    fn animation_shows_each_screen_for_its_time() {
        let timed = |bytes: &[u8], seconds| TimedScreen { screen: screen(bytes), time: Duration::from_secs(seconds) };
        let svg = animation("t", &[timed(b"one", 1), timed(b"two", 3)]);
        assert!(svg.contains("@keyframes k0{0.00%{visibility:visible}25.00%{visibility:hidden}}"), "{svg}");
        assert!(
            svg.contains("@keyframes k1{0%{visibility:hidden}25.00%{visibility:visible}100%{visibility:visible}}"),
            "{svg}"
        );
        assert!(svg.contains("#f1{animation:k1 4.0s step-end infinite}"), "{svg}");
    }
}
