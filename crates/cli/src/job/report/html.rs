//! Writes the HTML of a job's report: escaped texts, tables, and charts as SVG.

use std::fmt::{Display, Write};

use crate::usage_error::remove_control_characters;

/// The HTML page of a job's report under construction.
#[derive(Default)]
pub(super) struct HtmlPage {
    text: String,
}

/// A cell of a table in the report.
pub(super) enum TableCell<'a> {
    /// A text, which is escaped in the HTML.
    Text(&'a str),
    /// A short text, which is escaped in the HTML and not broken into lines.
    Word(&'a str),
    /// A number: its text, and the value by which the column is sorted.
    Number(String, f64),
}

impl<'a> TableCell<'a> {
    pub(super) fn count(count: u64) -> Self {
        TableCell::Number(group_digits(count), count as f64)
    }

    pub(super) fn bytes(bytes: u64) -> Self {
        TableCell::Number(indicatif::HumanBytes(bytes).to_string(), bytes as f64)
    }

    /// Returns a table cell that shows a time, given in microseconds.
    pub(super) fn time(micros: u64) -> Self {
        TableCell::Number(time_text(micros), micros as f64)
    }

    pub(super) fn percent(part: u64, whole: u64) -> Self {
        let percent = part as f64 * 100.0 / whole.max(1) as f64;
        TableCell::Number(format!("{percent:.1} %"), percent)
    }

    pub(super) fn text(text: &'a str) -> Self {
        TableCell::Text(text)
    }
}

impl HtmlPage {
    /// Appends HTML unchanged. It must not contain text from outside, such as URLs.
    pub(super) fn push_html(&mut self, html: impl Display) {
        let _ = write!(self.text, "{html}");
    }

    /// Appends a text, which is escaped, without its control characters.
    pub(super) fn push_text(&mut self, text: &str) {
        for character in remove_control_characters(text).chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&#39;"),
                other => self.text.push(other),
            }
        }
    }

    /// Begins a table with these column names. A name that begins with `#` marks a column of
    /// numbers.
    pub(super) fn begin_table(&mut self, columns: &[&str]) {
        self.push_html("<div class=\"wide\"><table><thead><tr>");
        for column in columns {
            match column.strip_prefix('#') {
                Some(name) => self.push_html(format_args!("<th class=\"n\" scope=\"col\">{name}</th>")),
                None => self.push_html(format_args!("<th scope=\"col\">{column}</th>")),
            }
        }
        self.push_html("</tr></thead><tbody>\n");
    }

    pub(super) fn push_row(&mut self, cells: &[TableCell<'_>]) {
        self.push_html("<tr>");
        for cell in cells {
            match cell {
                TableCell::Text(text) => {
                    self.push_html("<td class=\"t\">");
                    self.push_text(text);
                }
                TableCell::Word(text) => {
                    self.push_html("<td class=\"w\">");
                    self.push_text(text);
                }
                TableCell::Number(text, value) => {
                    self.push_html(format_args!("<td class=\"n\" data-v=\"{value}\">"));
                    self.push_text(text);
                }
            }
            self.push_html("</td>");
        }
        self.push_html("</tr>\n");
    }

    pub(super) fn end_table(&mut self) {
        self.push_html("</tbody></table></div>\n");
    }

    /// Appends a number in large type with its name below it.
    pub(super) fn push_named_number(&mut self, name: &str, value: &str) {
        self.push_html("<div><b>");
        self.push_text(value);
        self.push_html(format_args!("</b><span class=\"soft\">{name}</span></div>\n"));
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Formats a number with a comma between groups of three digits.
pub(super) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = (at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(',');
        comma.into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(group).collect()
}

/// Formats a time, given in microseconds, with a suitable unit: µs, ms or s.
pub(super) fn time_text(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        _ => format!("{:.0} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_text_is_escaped_in_html() {
        let mut page = HtmlPage::default();
        page.push_row(&[TableCell::text("<script>alert(1)</script>\"'&\u{202e}\u{1b}[31m")]);
        let html = page.into_text();
        assert_eq!(html, "<tr><td class=\"t\">&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;??[31m</td></tr>\n");
    }

    #[test]
    fn report_digits_are_grouped_by_three() {
        let texts = [0, 999, 1_000, 123_456, 1_234_567].map(group_digits);
        assert_eq!(texts, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn report_times_are_rounded_to_three_digits() {
        let texts = [7, 1_234, 12_345, 1_234_567, 123_456_789].map(time_text);
        assert_eq!(texts, ["7 µs", "1.23 ms", "12 ms", "1.23 s", "123 s"]);
    }
}
