//! The encoding of URL queries in a page, which depends on the charset of the page: browsers send
//! `?q=é` in a page in ISO-8859-1 as `?q=%E9` (WHATWG URL, "percent-encode after encoding").

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding};

/// Percent-encodes the non-ASCII characters in the query of a URL that was found in a page.
/// `charset` is the charset of the page, in which the characters are encoded. The rest of the URL
/// is unchanged. A URL with a scheme other than http and https is returned unchanged.
pub(super) fn with_encoded_query<'r>(reference: &'r str, charset: &'static Encoding) -> Cow<'r, str> {
    // In UTF-8 and UTF-16 the query is UTF-8, as everywhere else.
    let charset = charset.output_encoding();
    if charset == encoding_rs::UTF_8 || reference.is_ascii() || !may_be_web(reference) {
        return Cow::Borrowed(reference);
    }
    let end = reference.find('#').unwrap_or(reference.len());
    let Some(start) = reference[..end].find('?') else { return Cow::Borrowed(reference) };
    let mut encoded = String::with_capacity(reference.len() * 2);
    encoded.push_str(&reference[..start]);
    push_encoded(&mut encoded, &reference[start..end], charset);
    encoded.push_str(&reference[end..]);
    Cow::Owned(encoded)
}

/// Appends `query` to `out`, with its non-ASCII characters encoded in `charset`. A character that
/// `charset` cannot represent becomes a character reference.
fn push_encoded(out: &mut String, query: &str, charset: &'static Encoding) {
    let mut encoder = charset.new_encoder();
    let mut rest = query;
    let mut bytes = [0; 256];
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        for byte in &bytes[..written] {
            // The second byte of a character may be ASCII, as in Shift_JIS. An escape of
            // ISO-2022-JP cannot be in a URL.
            if byte.is_ascii() && *byte != 0x1b {
                out.push(char::from(*byte));
            } else {
                push_escape(out, *byte);
            }
        }
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                out.push_str("%26%23");
                out.push_str(&u32::from(c).to_string());
                out.push_str("%3B");
            }
        }
    }
}

fn push_escape(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Returns true if the URL reference is relative, or has the scheme http or https.
fn may_be_web(reference: &str) -> bool {
    let text = reference.trim_start_matches(|c: char| c <= ' ');
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    let is_web = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    end == 0 || !text[end..].starts_with(':') || is_web(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn encodes(reference: &str, label: &str, expected: &str) {
        let charset = Encoding::for_label(label.as_bytes()).unwrap();
        assert_eq!(with_encoded_query(reference, charset), expected, "{reference} in {label}");
    }

    #[test]
    fn url_query_is_encoded_in_the_page_charset() {
        encodes("/\u{e9}?q=\u{e9}#\u{e9}", "windows-1252", "/\u{e9}?q=%E9#\u{e9}");
        encodes("?q=\u{43f}\u{440} x&y=%20", "windows-1251", "?q=%EF%F0 x&y=%20");
        encodes("?q=\u{65e5}", "shift_jis", "?q=%93%FA");
        encodes("?q=\u{65e5}", "euc-jp", "?q=%C6%FC");
        encodes("?q=\u{20ac}\u{65e5}", "windows-1252", "?q=%80%26%2326085%3B");
        encodes("?q=\u{e9}", "utf-8", "?q=\u{e9}");
        encodes("?q=\u{e9}", "utf-16le", "?q=\u{e9}");
        encodes(&format!("?{}", "\u{e9}".repeat(1000)), "latin1", &format!("?{}", "%E9".repeat(1000)));
        for unchanged in ["\u{e9}", "#?\u{e9}", "mailto:x?subject=\u{e9}", "?q=e", ""] {
            encodes(unchanged, "windows-1252", unchanged);
        }
        encodes(" HTTP://h/?\u{e9}", "latin1", " HTTP://h/?%E9");
    }
}
