//! Character classes and lists shared by all HTTP versions (RFC 9110 §5.6).

use alloc::vec::Vec;

/// Returns `true` if the byte may occur in a token (`tchar`, RFC 9110 §5.6.2).
pub(crate) const fn is_tchar(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

/// The result of [`is_tchar`] for each byte. A look-up in this table takes a quarter of the time
/// that the comparisons take.
const TCHARS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_tchar(byte as u8);
        byte += 1;
    }
    table
};

/// Returns `true` if the text is a token: one or more `tchar` (RFC 9110 §5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| TCHARS[usize::from(byte)])
}

/// Returns `true` if the letters and digits of a name contain "content-length" or
/// "transfer-encoding", as in `Content_Length`. A lenient parser could take such a field for the
/// framing field.
pub(crate) fn resembles_framing_field(name: &[u8]) -> bool {
    let plain: Vec<u8> = name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    let spells = |framing: &[u8]| plain.windows(framing.len()).any(|part| part == framing);
    spells(b"contentlength") || spells(b"transferencoding")
}

/// Returns `true` if a field name equals `lower`, a name in lower case. The case of letters does
/// not matter. Collecting the differences takes a third of the instructions of
/// `eq_ignore_ascii_case`, which branches at each byte.
#[inline]
pub(crate) fn equals_lower_case(name: &[u8], lower: &[u8]) -> bool {
    let differences = || {
        name.iter().zip(lower).fold(0, |differences, (byte, lower)| {
            let case_bit = if lower.is_ascii_lowercase() { 0x20 } else { 0 };
            differences | ((byte | case_bit) ^ lower)
        })
    };
    name.len() == lower.len() && differences() == 0
}

/// Returns the text without spaces and tabs at both ends.
pub(crate) fn trim_ows(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Iterates over the elements of a comma-separated list, without empty elements (RFC 9110
/// §5.6.1.2). A comma in a quoted string is part of its element (RFC 9110 §5.6.4). A quoted string
/// without an end contains the rest of the value.
///
/// ```
/// let elements: Vec<_> = haul_proto::list_elements(b"close, , a=\"b, c\"").collect();
/// assert_eq!(elements, [&b"close"[..], b"a=\"b, c\""]);
/// ```
pub fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_separator = move |&byte: &u8| {
        if is_escaped {
            is_escaped = false;
        } else if byte == b'"' {
            is_quoted = !is_quoted;
        } else {
            is_escaped = is_quoted && byte == b'\\';
        }
        byte == b',' && !is_quoted
    };
    value.split(is_separator).map(trim_ows).filter(|element| !element.is_empty())
}

/// Parses a decimal number (`1*DIGIT`) that fits in 64 bits. Fails for anything else, such as a
/// sign or an empty text.
pub(crate) fn parse_decimal(text: &[u8]) -> Result<u64, DecimalFault> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(DecimalFault::NotANumber);
    }
    text.iter().try_fold(0u64, |number, &digit| {
        number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit - b'0')))
            .ok_or(DecimalFault::TooLarge)
    })
}

/// The reason why [`parse_decimal`] cannot parse a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum DecimalFault {
    NotANumber,
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_parsed() {
        assert_eq!(parse_decimal(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_decimal(b"0"), Ok(0));
        assert_eq!(parse_decimal(b"18446744073709551616"), Err(DecimalFault::TooLarge));
        for bad in [&b""[..], b"+5", b"-1", b"42s", b"0x10", b" 5", b"5 ", b"4_2", b"1e3"] {
            assert_eq!(parse_decimal(bad), Err(DecimalFault::NotANumber), "{bad:?}");
        }
    }

    #[test]
    fn comma_separated_lists_skip_empty_elements() {
        let elements: Vec<&[u8]> = list_elements(b" , a,\tb ,,c d, ").collect();
        assert_eq!(elements, [&b"a"[..], b"b", b"c d"]);
    }

    #[test]
    fn commas_in_quoted_strings_do_not_separate_elements() {
        for (value, expected) in [
            (&br#"a;b="c, d", e"#[..], &[&br#"a;b="c, d""#[..], b"e"][..]),
            (br#""\", a", b"#, &[br#""\", a""#, b"b"]),
            (br#""\\", a"#, &[br#""\\""#, b"a"]),
            (br"a\, b", &[br"a\", b"b"]),
            (br#"a, "b, c"#, &[b"a", br#""b, c"#]),
        ] {
            assert_eq!(list_elements(value).collect::<Vec<_>>(), expected, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn lower_case_name_equals_any_case_of_letters() {
        for equal in [&b"content-length"[..], b"Content-Length", b"CONTENT-LENGTH"] {
            assert!(equals_lower_case(equal, b"content-length"), "{}", equal.escape_ascii());
        }
        // The case bit makes no hyphen of a carriage return, and no digit of a control character.
        for other in [&b"content\rlength"[..], b"content-lengt", b"content-lengthh", b"content-lengtH\0", b""] {
            assert!(!equals_lower_case(other, b"content-length"), "{}", other.escape_ascii());
        }
        assert!(!equals_lower_case(b"a\x11", b"a1") && !equals_lower_case(b"[", b"{"));
    }

    #[test]
    fn tokens_are_recognised() {
        assert!(is_token(b"X-Funny!#$%&'*+-.^_`|~9"));
        for bad in [&b""[..], b"a b", b"a:", b"\xc3\xa9", b"a\0", b"(", b"a\r"] {
            assert!(!is_token(bad), "{bad:?}");
        }
    }
}
