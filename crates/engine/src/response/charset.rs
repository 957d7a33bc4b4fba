//! Reads the `charset` parameter of a Content-Type, and decodes a body by it.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

/// Returns the charset parameter of a `Content-Type` value (RFC 9110 section 8.3.2); `None` without
/// such a parameter.
///
/// ```
/// use haul::response::charset;
/// assert_eq!(charset(b"text/html; a=\"b;charset=x\"; Charset=\"latin1\""), Some("latin1".into()));
/// assert_eq!(charset(b"text/html"), None);
/// ```
#[must_use]
pub fn charset(content_type: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content_type);
    let mut rest = &text[text.find(';')?..];
    while let Some(parameter) = rest.strip_prefix(';') {
        let (name, after) = parameter.split_at(parameter.find(['=', ';']).unwrap_or(parameter.len()));
        let Some(after) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let (value, behind) = parse_parameter_value(after);
        if name.trim().eq_ignore_ascii_case("charset") {
            return Some(value);
        }
        rest = &behind[behind.find(';').unwrap_or(behind.len())..];
    }
    None
}

/// Parses the value of a parameter at the beginning of `text`: a token or a quoted string. Returns
/// the value and the text after it.
fn parse_parameter_value(text: &str) -> (String, &str) {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, behind) = text.split_at(text.find(';').unwrap_or(text.len()));
        return (value.trim().to_owned(), behind);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    (value, "")
}

/// Decodes `bytes` as text. The byte order mark decides the encoding. Without such a mark,
/// `charset` decides; without `charset`, the encoding is UTF-8. Invalid bytes become U+FFFD.
pub(super) fn decode(bytes: Vec<u8>, charset: Option<&str>) -> String {
    let encoding = charset.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    let (text, _, _) = encoding.decode(&bytes);
    match text {
        // Most bodies are valid UTF-8, and are not copied.
        Cow::Borrowed(text) if text.len() == bytes.len() => {
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        text => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charset_is_parsed_from_malformed_parameters() {
        for (field, wanted) in [
            ("text/html;charset=UTF-8", Some("UTF-8")),
            ("text/html; CHARSET = utf-8 ; x", Some("utf-8")),
            ("text/html;x;charset=a", Some("a")),
            ("text/html;charset=\"a\\\"b\"", Some("a\"b")),
            ("text/html;charset=\"a", Some("a")),
            ("text/html;x=\"y;charset=b\";charset=c", Some("c")),
            ("charset=a", None),
            (";;;=;charset", None),
            ("", None),
        ] {
            for end in 0..=field.len() {
                let _ = charset(&field.as_bytes()[..end]);
            }
            assert_eq!(charset(field.as_bytes()).as_deref(), wanted, "{field}");
        }
    }

    #[test]
    fn text_decoding_prefers_byte_order_mark_over_charset() {
        assert_eq!(decode(b"\xe9".to_vec(), Some("latin1")), "\u{e9}");
        assert_eq!(decode("\u{feff}\u{e9}".into(), Some("latin1")), "\u{e9}");
        assert_eq!(decode(b"\xff\xfea\0".to_vec(), None), "a");
        assert_eq!(decode("\u{e9}".into(), None), "\u{e9}");
        assert_eq!(decode(b"a\xff".to_vec(), Some("no-such")), "a\u{fffd}");
    }
}
