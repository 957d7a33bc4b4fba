//! Converts a guide in Markdown to the body of a man page. The guides use headings, paragraphs,
//! lists, tables, blocks of code, and inline code, emphasis and links.

use super::roff_text::{escaped, literal_block};

/// Returns the text of a guide in roff, without its title.
pub(super) fn to_roff(guide: &str) -> String {
    let mut text = String::from(".SH DESCRIPTION\n");
    let mut paragraph = String::new();
    let mut lines = guide.lines();
    while let Some(source) = lines.next() {
        let rest = source.trim_start_matches('#').trim();
        let is_continued = !source.is_empty() && !source.starts_with(['#', '`', '|', '!']) && !source.starts_with("* ");
        if is_continued {
            let separator = if paragraph.is_empty() || paragraph.ends_with('\n') { "" } else { " " };
            paragraph.push_str(separator);
            paragraph.push_str(source.trim());
            continue;
        }
        end_paragraph(&mut paragraph, &mut text);
        if source.starts_with("```") {
            text.push_str(&literal_block(lines.by_ref().take_while(|line| !line.starts_with("```"))));
        } else if source.starts_with("## ") {
            text.push_str(&format!(".SH {}\n", escaped(&inline_text(rest).to_uppercase())));
        } else if source.starts_with("###") {
            text.push_str(&format!(".SS {}\n", escaped(&inline_text(rest))));
        } else if let Some(item) = source.strip_prefix("* ") {
            paragraph.push_str(".IP \\(bu 2\n");
            paragraph.push_str(item);
        } else if let Some(row) = source.strip_prefix('|') {
            text.push_str(&table_row(row));
        } else if source.is_empty() && !text.ends_with(".PP\n") && !text.ends_with(".SH DESCRIPTION\n") {
            text.push_str(".PP\n");
        }
    }
    end_paragraph(&mut paragraph, &mut text);
    // A break before a heading or at the end breaks nothing.
    text.replace(".PP\n.SH", ".SH").replace(".PP\n.SS", ".SS").trim_end_matches(".PP\n").to_owned()
}

/// Appends a paragraph or a list item, in roff, to `text`. Clears `paragraph`.
fn end_paragraph(paragraph: &mut String, text: &mut String) {
    let (request, words) = match paragraph.split_once('\n') {
        Some((request, words)) => (format!("{request}\n"), words),
        None => (String::new(), paragraph.as_str()),
    };
    if !words.is_empty() {
        text.push_str(&format!("{request}{}\n", inline(words)));
    }
    paragraph.clear();
}

/// Returns a row of a Markdown table as an entry of the man page: the first cell, and below it the
/// other cells. Returns an empty text for the line of dashes below the table's head.
fn table_row(row: &str) -> String {
    let mut cells = row.trim_end_matches('|').split('|').map(str::trim);
    let first = cells.next().unwrap_or_default();
    if first.chars().all(|c| matches!(c, '-' | ':' | ' ')) {
        return String::new();
    }
    let rest: Vec<String> = cells.map(inline).collect();
    format!(".TP\n.B {}\n{}\n", escaped(&inline_text(first)), rest.join("; "))
}

/// Returns a paragraph in roff, with inline code and strong emphasis in bold type.
fn inline(text: &str) -> String {
    let mut roff = String::new();
    let mut is_code = false;
    for (number, part) in without_links(text).split('`').enumerate() {
        if number > 0 {
            is_code = !is_code;
            roff.push_str(if is_code { "\\fB" } else { "\\fR" });
        }
        let mut is_strong = false;
        for (number, part) in part.split("**").enumerate() {
            if number > 0 && !is_code {
                is_strong = !is_strong;
                roff.push_str(if is_strong { "\\fB" } else { "\\fR" });
            } else if number > 0 {
                roff.push_str("**");
            }
            roff.push_str(&escaped(part));
        }
    }
    if roff.starts_with(['.', '\'']) { format!("\\&{roff}") } else { roff }
}

/// Returns a text without the Markdown marks of code, emphasis and links.
fn inline_text(text: &str) -> String {
    without_links(text).replace(['`', '*'], "")
}

/// Replaces each Markdown link by its text.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((label, target)) = link.split_once("](") else { break };
        let Some((_, after)) = target.split_once(')') else { break };
        plain.push_str(before);
        plain.push_str(label);
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_guide_is_converted_to_roff() {
        let guide = "# T\n\nFirst `--a b`,\nand [a *link*](x.md#y).\n\n## A head\n```sh\n.dot \\ x\n```\n```text\nout\n```\n\n\
                     * **one** item\n  goes on\n* two\n\n| a | b |\n|---|---|\n| `c` | d-e |\n\n### Low\nEnd.\n";
        let expected = ".SH DESCRIPTION\nFirst \\fB\\-\\-a b\\fR, and a *link*.\n.SH A HEAD\n\
                        .sp\n.RS 4\n.nf\n\\&.dot \\e x\n.fi\n.RE\n.sp\n.RS 4\n.nf\nout\n.fi\n.RE\n.PP\n\
                        .IP \\(bu 2\n\\fBone\\fR item goes on\n.IP \\(bu 2\ntwo\n.PP\n\
                        .TP\n.B a\nb\n.TP\n.B c\nd\\-e\n.SS Low\nEnd.\n";
        assert_eq!(to_roff(guide), expected);
    }

    #[test]
    fn unfinished_markdown_is_kept_as_text() {
        for text in ["a [b", "a [b](c", "`a", "**a", "|", "```"] {
            to_roff(text);
        }
        assert_eq!(without_links("a [b](c) [d"), "a b [d");
        assert_eq!(inline(".x"), "\\&.x");
    }
}
