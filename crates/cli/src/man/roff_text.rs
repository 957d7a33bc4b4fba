//! Text in roff, the language of man pages.

/// Returns a line of text in roff. Escapes a first character that would make the line a roff
/// request.
pub(super) fn text_line(text: &str) -> String {
    let escaped = escaped(text);
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Escapes a text for roff, for any position except the beginning of a line, where further
/// characters are special.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Returns a block of lines that roff does not fill, such as a command.
pub(super) fn literal_block<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    let lines: String = lines.into_iter().map(|text| text_line(text) + "\n").collect();
    format!(".sp\n.RS 4\n.nf\n{lines}.fi\n.RE\n")
}
