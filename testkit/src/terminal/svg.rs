//! Pictures of a terminal in SVG, which browsers and code hosting sites can display.

use std::fmt::Write as _;

use super::screen::{ScreenSnapshot, TextRun};

/// The width of a column and the height of a row in pixels.
const CELL: (f64, f64) = (8.4, 18.0);

/// The margin around the text, in pixels.
const MARGIN: f64 = 14.0;

/// The colours of a terminal by number, for a dark background.
const COLORS: [&str; 8] = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#e6edf3"];

/// Returns a picture of a screen as SVG, with this number of columns.
pub fn picture(title: &str, columns: u16, screen: &ScreenSnapshot) -> String {
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = screen.rows.len() as f64 * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" \
         font-size=\"14\" fill=\"#e6edf3\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"#0d1117\"/>\n",
        escaped(title)
    );
    for (number, row) in screen.rows.iter().enumerate() {
        svg.push_str(&text_element(row, MARGIN + (number as f64 + 0.75) * CELL.1));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns the SVG text element of one row. It has an explicit length, because fonts differ in the
/// width of their characters.
fn text_element(row: &[TextRun], y: f64) -> String {
    let length = row.iter().map(|run| run.text.chars().count()).sum::<usize>() as f64 * CELL.0;
    if length == 0.0 {
        return String::new();
    }
    let mut element =
        format!("<text x=\"{MARGIN}\" y=\"{y:.1}\" textLength=\"{length:.1}\" style=\"white-space:pre\">");
    for run in row {
        let text = escaped(&run.text);
        let color = run.style.color.map(|color| format!(" fill=\"{}\"", COLORS[usize::from(color % 8)]));
        let weight = if run.style.is_bold { " font-weight=\"bold\"" } else { "" };
        let _ = match (color, weight) {
            (None, "") => write!(element, "{text}"),
            (color, weight) => write!(element, "<tspan{}{weight}>{text}</tspan>", color.unwrap_or_default()),
        };
    }
    element + "</text>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_has_text_at_its_position_and_in_color() {
        let mut parser = super::super::parser_of(20, 4);
        parser.process(b"\x1b[31mred\x1b[0m\r\n  <x>");
        let svg = picture("a & b", 20, &ScreenSnapshot::from_vt100(parser.screen()));
        assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
        assert!(svg.contains("<tspan fill=\"#ff7b72\">red</tspan></text>"), "{svg}");
        assert!(svg.contains("y=\"45.5\" textLength=\"42.0\" style=\"white-space:pre\">  &lt;x&gt;</text>"), "{svg}");
    }
}
