//! Finds and replaces the characters with which text from a peer could control a terminal or
//! deceive its reader.
//!
//! ```
//! use haul_policy::terminal_text::{escape_for_terminal, is_unsafe_on_terminal};
//!
//! assert!(is_unsafe_on_terminal('\u{9b}') && is_unsafe_on_terminal('\u{202e}') && !is_unsafe_on_terminal('é'));
//! assert_eq!(escape_for_terminal(b"Server: a\x1b[2J\r\n"), b"Server: a?[2J\r\n");
//! ```

/// Returns `true` if a character controls a terminal (C0, DEL and C1 of ISO 6429), or changes the
/// direction of the text around it (UAX #9). Such a change can make a name look like another name.
pub fn is_unsafe_on_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text with `?` in place of each [unsafe character](is_unsafe_on_terminal). Tabs and
/// line ends are kept. Bytes that are not UTF-8 are kept, except 0x80 to 0x9f: they become `?`,
/// because they are C1 control characters in Latin-1.
pub fn escape_for_terminal(lines: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(lines.len());
    for chunk in lines.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(c) = characters.next() {
            let is_line_end = c == '\n' || c == '\r' && characters.peek() == Some(&'\n');
            let kept = if is_unsafe_on_terminal(c) && c != '\t' && !is_line_end { '?' } else { c };
            shown.extend_from_slice(kept.encode_utf8(&mut [0; 4]).as_bytes());
        }
        shown.extend(chunk.invalid().iter().map(|byte| if matches!(byte, 0x80..=0x9f) { b'?' } else { *byte }));
    }
    shown
}

/// Replaces each [unsafe character](is_unsafe_on_terminal) at or after the offset `from` of a JSON
/// text by its `\u` escape. The value of the JSON text stays the same, because such characters
/// occur in strings only.
///
/// ```
/// let mut text = "{\"a\":\"\u{9b}2J\u{202e}é\"}".as_bytes().to_vec();
/// haul_policy::terminal_text::escape_json(&mut text, 0);
/// assert_eq!(text, "{\"a\":\"\\u009b2J\\u202eé\"}".as_bytes());
/// ```
pub fn escape_json(text: &mut Vec<u8>, from: usize) {
    // The first bytes of DEL, of C1 and of the marks in UTF-8.
    if !text[from..].iter().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2)) {
        return;
    }
    let added = text.split_off(from);
    for chunk in added.utf8_chunks() {
        for c in chunk.valid().chars() {
            // C0 is escaped by every writer of JSON, except for line ends between values.
            if is_unsafe_on_terminal(c) && !c.is_ascii() || c == '\x7f' {
                text.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            } else {
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        text.extend_from_slice(chunk.invalid());
    }
}

/// Returns a JSON text in which [`escape_json`] has escaped all unsafe characters.
#[must_use]
pub fn escaped_json(text: String) -> String {
    let mut bytes = text.into_bytes();
    escape_json(&mut bytes, 0);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_has_same_value_without_unsafe_characters() {
        let all: String = (0x7f..0x2100u32).filter_map(char::from_u32).collect();
        let mut text = format!("[\n\"{all}\"]").into_bytes();
        let whole = text.clone();
        escape_json(&mut text, 0);
        let text = String::from_utf8(text).unwrap();
        assert!(!text.chars().any(|c| is_unsafe_on_terminal(c) && c != '\n'));
        let mut read = String::new();
        let mut pieces = text.split("\\u");
        read.push_str(pieces.next().unwrap());
        for piece in pieces {
            read.push(u32::from_str_radix(&piece[..4], 16).ok().and_then(char::from_u32).unwrap());
            read.push_str(&piece[4..]);
        }
        assert_eq!(read.as_bytes(), whole);
        let mut kept = "\u{9b}\u{9b}".as_bytes().to_vec();
        escape_json(&mut kept, 2);
        assert_eq!(kept, "\u{9b}\\u009b".as_bytes());
    }

    #[test]
    fn unsafe_terminal_characters_become_question_marks() {
        for (lines, shown) in [
            (&b"A: b\tc\r\n\r\n"[..], &b"A: b\tc\r\n\r\n"[..]),
            (b"A: \x1b[31m\x07\x7f\r\n", b"A: ?[31m??\r\n"),
            (b"A: 1\rB: 2\r\n", b"A: 1?B: 2\r\n"),
            ("A: \u{9b}2J \u{202e}x\u{2069}\r\n".as_bytes(), b"A: ?2J ?x?\r\n"),
            ("A: caf\u{e9} \u{65e5}\r\n".as_bytes(), "A: caf\u{e9} \u{65e5}\r\n".as_bytes()),
            (b"A: \x9b2J caf\xe9\r\n", b"A: ?2J caf\xe9\r\n"),
        ] {
            assert_eq!(escape_for_terminal(lines), shown, "{}", String::from_utf8_lossy(lines));
        }
    }

    #[test]
    fn json_before_the_offset_is_unchanged() {
        for (text, expected) in [("\u{9b}plain", "\u{9b}plain"), ("\u{9b}\u{9b}", "\u{9b}\\u009b")] {
            let mut bytes = text.as_bytes().to_vec();
            escape_json(&mut bytes, 2);
            assert_eq!(bytes, expected.as_bytes());
        }
    }
}
