//! A document that can be rendered as Markdown for the repository, and as HTML that needs no
//! network.
//!
//! Text is plain, except that both formats render `` `code` `` and `**bold**`.

use std::fmt::Write;

/// A block of a document, such as a paragraph or a table.
pub(super) enum DocumentBlock {
    /// A heading of this level; 1 is the title.
    Heading(u8, String),
    Paragraph(String),
    Table(DocumentTable),
    /// A chart: its name, a description, and the SVG itself.
    Chart {
        name: String,
        shows: String,
        svg: String,
    },
}

/// A table. The first `text_columns` columns contain text, and the other columns numbers.
pub(super) struct DocumentTable {
    pub(super) text_columns: usize,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Renders the document as Markdown. `charts` is the directory of the chart files, relative to the
/// document.
pub(super) fn markdown(blocks: &[DocumentBlock], charts: &str) -> String {
    let mut out = String::new();
    for block in blocks {
        let piece = match block {
            DocumentBlock::Heading(level, text) => format!("{} {text}", "#".repeat((*level).into())),
            DocumentBlock::Paragraph(text) => text.clone(),
            DocumentBlock::Chart { name, shows, .. } => format!("![{shows}]({charts}/{name}.svg)"),
            DocumentBlock::Table(table) => {
                let row = |cells: &[String]| {
                    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
                    format!("| {} |", cells.join(" | "))
                };
                let rule = |at| if at < table.text_columns { "---" } else { "---:" };
                let rules: Vec<&str> = (0..table.head.len()).map(rule).collect();
                let rows = table.rows.iter().map(|cells| row(cells));
                [row(&table.head), format!("|{}|", rules.join("|"))]
                    .into_iter()
                    .chain(rows)
                    .collect::<Vec<_>>()
                    .join("\n")
            }
        };
        out += &piece;
        out += "\n\n";
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Renders the document as one HTML page that contains its charts.
pub(super) fn html(title: &str, blocks: &[DocumentBlock]) -> String {
    let mut body = String::new();
    for block in blocks {
        // Writing to a String cannot fail.
        let _ = match block {
            DocumentBlock::Heading(level, text) => writeln!(body, "<h{level}>{}</h{level}>", inline(text)),
            DocumentBlock::Paragraph(text) => writeln!(body, "<p>{}</p>", inline(text)),
            DocumentBlock::Chart { shows, svg, .. } => {
                writeln!(body, "<figure role=\"img\" aria-label=\"{}\">\n{}\n</figure>", escape(shows), svg.trim())
            }
            DocumentBlock::Table(table) => {
                let cell = |tag: &str, at: usize, text: &str| {
                    let class = if at < table.text_columns { "" } else { " class=\"figure\"" };
                    format!("<{tag}{class}>{}</{tag}>", inline(text))
                };
                let row = |tag: &str, cells: &[String]| {
                    let cells: String = cells.iter().enumerate().map(|(at, text)| cell(tag, at, text)).collect();
                    format!("<tr>{cells}</tr>\n")
                };
                let rows: String = table.rows.iter().map(|cells| row("td", cells)).collect();
                writeln!(
                    body,
                    "<div class=\"table\"><table>\n<thead>{}</thead>\n<tbody>{rows}</tbody>\n</table></div>",
                    row("th", &table.head)
                )
            }
        };
    }
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n{body}</html>\n"
    )
}

/// The style sheet of the HTML page. The page loads no other file, and uses the reader's fonts.
const STYLE: &str = "\
body { font: 16px/1.5 sans-serif; color: #1a1a1a; background: #fff; max-width: 1080px; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc }
.table { overflow-x: auto }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code { background: #f2f2f2; padding: 0 .2em }
figure { margin: 1rem 0 }
figure svg { max-width: 100%; height: auto }
";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Converts text with code and bold marks to HTML.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (at, piece) in text.split('`').enumerate() {
        let piece = escape(piece);
        if at % 2 == 1 {
            out += &format!("<code>{piece}</code>");
            continue;
        }
        for (at, piece) in piece.split("**").enumerate() {
            out += &if at % 2 == 1 { format!("<b>{piece}</b>") } else { piece.to_owned() };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<DocumentBlock> {
        vec![
            DocumentBlock::Heading(1, "Title".to_owned()),
            DocumentBlock::Paragraph("a `b<c>` and **d**".to_owned()),
            DocumentBlock::Table(DocumentTable {
                text_columns: 1,
                head: vec!["who".to_owned(), "s".to_owned()],
                rows: vec![vec!["curl | cat".to_owned(), "1.0".to_owned()]],
            }),
            DocumentBlock::Chart { name: "site".to_owned(), shows: "site".to_owned(), svg: "<svg></svg>".to_owned() },
        ]
    }

    #[test]
    fn markdown_escapes_characters_that_end_a_cell() {
        let expected = "# Title\n\na `b<c>` and **d**\n\n| who | s |\n|---|---:|\n| curl \\| cat | 1.0 |\n\n\
                        ![site](charts/site.svg)\n";
        assert_eq!(markdown(&blocks(), "charts"), expected);
    }

    #[test]
    fn html_page_is_complete_and_self_contained() {
        let page = html("Title", &blocks());
        for part in
            ["<h1>Title</h1>", "<code>b&lt;c&gt;</code> and <b>d</b>", "<td class=\"figure\">1.0</td>", "<svg></svg>"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
        for part in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(part), "{part}");
        }
    }
}
