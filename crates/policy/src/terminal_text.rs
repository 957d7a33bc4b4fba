//! Finds and replaces the characters with which text from a peer could control a terminal or
//! deceive its reader.
//!
//! ```
//! use haul_policy::terminal_text::{for_terminal, is_hazard};
//!
//! assert!(is_hazard('\u{9b}') && is_hazard('\u{202e}') && !is_hazard('é'));
//! assert_eq!(for_terminal(b"Server: a\x1b[2J\r\n"), b"Server: a?[2J\r\n");
//! ```

/// Returns `true` if a character controls a terminal (C0, DEL and C1 of ISO 6429) or turns the
/// direction of the text around it (UAX #9), so that a name looks like another one.
pub fn is_hazard(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text with `?` in place of each [hazard](is_hazard). Tabs and line ends are kept. A
/// byte that is not UTF-8 is kept too, unless a terminal that reads Latin-1 would treat it as a C1
/// control.
pub fn for_terminal(lines: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(lines.len());
    for chunk in lines.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(c) = characters.next() {
            let is_line_end = c == '\n' || c == '\r' && characters.peek() == Some(&'\n');
            let kept = if is_hazard(c) && c != '\t' && !is_line_end { '?' } else { c };
            shown.extend_from_slice(kept.encode_utf8(&mut [0; 4]).as_bytes());
        }
        shown.extend(chunk.invalid().iter().map(|byte| if matches!(byte, 0x80..=0x9f) { b'?' } else { *byte }));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_direction_marks_become_question_marks() {
        for (lines, shown) in [
            (&b"A: b\tc\r\n\r\n"[..], &b"A: b\tc\r\n\r\n"[..]),
            (b"A: \x1b[31m\x07\x7f\r\n", b"A: ?[31m??\r\n"),
            (b"A: 1\rB: 2\r\n", b"A: 1?B: 2\r\n"),
            ("A: \u{9b}2J \u{202e}x\u{2069}\r\n".as_bytes(), b"A: ?2J ?x?\r\n"),
            ("A: caf\u{e9} \u{65e5}\r\n".as_bytes(), "A: caf\u{e9} \u{65e5}\r\n".as_bytes()),
            (b"A: \x9b2J caf\xe9\r\n", b"A: ?2J caf\xe9\r\n"),
        ] {
            assert_eq!(for_terminal(lines), shown, "{}", String::from_utf8_lossy(lines));
        }
    }
}
