//! Wraps long messages of the curl persona at the width of the terminal, as curl does.
//!
//! ```
//! use haul_cli::wrap_message::wrapped;
//!
//! assert_eq!(wrapped("Warning: ", "one two three", 18), "Warning: one two \nWarning: three");
//! assert_eq!(wrapped("Warning: ", "short", 79), "Warning: short");
//! ```

/// The width in columns if the output is not a terminal.
const COLUMNS: usize = 79;

/// Returns the width of the terminal in columns, as in curl: the value of the environment variable
/// `COLUMNS`, or else the width of the terminal of standard error. A width of 20 or less is
/// ignored.
pub fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 20);
    let has = || crate::system::terminal::size_of_stderr().map(|(columns, _)| columns);
    said.or_else(has).filter(|&columns| columns > 20).unwrap_or(COLUMNS)
}

/// Returns `text` in lines that begin with `prefix` and have at most `columns` columns. A line ends
/// after a blank, or within a word that is longer than a line.
pub fn wrapped(prefix: &str, text: &str, columns: usize) -> String {
    let width = columns.saturating_sub(prefix.len()).max(1);
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.len() > width {
        let within = &rest.as_bytes()[..width];
        let cut = match within.iter().rposition(|byte| matches!(byte, b' ' | b'\t')) {
            None | Some(0) => (width..rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len()),
            Some(blank) => blank + 1,
        };
        let (line, left) = rest.split_at(cut);
        lines.push(format!("{prefix}{line}"));
        rest = left;
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(format!("{prefix}{rest}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_longer_than_a_line_are_split() {
        assert_eq!(wrapped("> ", "abcdefgh ij", 6), "> abcd\n> efgh\n>  ij");
        assert_eq!(wrapped("> ", "\u{e4}\u{e4}\u{e4}", 5), "> \u{e4}\u{e4}\n> \u{e4}");
        assert_eq!(wrapped("> ", "", 5), "> ");
    }
}
