//! The check that a list of URLs from a pipe has no credentials, because the job stores the list.

use haul_policy::secret_fields::drop_userinfo;
use serde_json::Value;

use crate::record_input::RecordInputFormat;
use crate::url_sources::{to_text, url_in_line};

/// Returns true if a line of a list has a URL with credentials. `format` is the format of the list;
/// `None` if each line is a URL. In other formats, a URL without a scheme counts as a text.
pub(super) fn has_credentials(line: &[u8], format: Option<RecordInputFormat>) -> bool {
    match format {
        // JSON may escape the characters, and may be invalid.
        Some(RecordInputFormat::JsonLines) => {
            String::from_utf8_lossy(line).replace("\\/", "/").split('"').any(has_credentials_in_text)
                || serde_json::from_slice(line).is_ok_and(|value| has_credentials_in_value(&value))
        }
        _ if !line.contains(&b'@') => false,
        Some(RecordInputFormat::Csv) => fields(line, b',').any(has_credentials_in_field),
        Some(RecordInputFormat::Tsv) => fields(line, b'\t').any(has_credentials_in_field),
        None => url_in_line(line).is_some_and(|url| {
            let url = to_text(url);
            drop_userinfo(&url) != url
        }),
    }
}

/// Returns true if a text of a JSON value, or a key, has a URL with credentials.
fn has_credentials_in_value(value: &Value) -> bool {
    match value {
        Value::String(text) => has_credentials_in_text(text),
        Value::Array(values) => values.iter().any(has_credentials_in_value),
        Value::Object(members) => {
            members.iter().any(|(key, value)| has_credentials_in_text(key) || has_credentials_in_value(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn has_credentials_in_field(field: &[u8]) -> bool {
    has_credentials_in_text(&String::from_utf8_lossy(field))
}

/// Returns true if a text has a URL with credentials. Any number of slashes may follow the scheme.
fn has_credentials_in_text(text: &str) -> bool {
    text.match_indices(":/").any(|(colon, _)| {
        let rest = text[colon + 1..].trim_start_matches('/');
        let is_end = |c: char| matches!(c, '/' | '\\' | '?' | '#') || c.is_whitespace();
        rest.split(is_end).next().is_some_and(|authority| authority.contains('@'))
    })
}

/// Splits a row into its fields. A field in quotes may contain the delimiter.
fn fields(row: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    row.split(move |&byte| {
        is_quoted ^= byte == b'"';
        byte == delimiter && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_in_lines_of_each_format() {
        use RecordInputFormat::{Csv, JsonLines, Tsv};
        for (format, line) in [
            (None, &b"http://me:pw@h/\n"[..]),
            (None, b"http:/me:pw@h/"),
            (None, b" http:///me:pw@h/ "),
            (None, b"me:pw@h/a"),
            (None, b"http://me:p\xff@h/"),
            (Some(JsonLines), br#"{"url":"http://me:pw@h/"}"#),
            (Some(JsonLines), br#"{"a/b":1,"url":"http:\/\/me:pw@h\/a"}"#),
            (Some(JsonLines), br#"{"url":"http://me:pw\u0040h/"}"#),
            (Some(JsonLines), br#"{"url":"http:\/\/me:pw@h/""#),
            (Some(Csv), b"1,http://me:p\"w@h/"),
            (Some(Csv), b"1,\"http://me:p,w@h/\""),
            (Some(Tsv), b"1\thttp:/me:pw@h/"),
        ] {
            assert!(has_credentials(line, format), "{}", String::from_utf8_lossy(line));
        }
        for (format, line) in [
            (None, &b"http://h/a@b\n"[..]),
            (None, b"# http://me:pw@h/"),
            (None, b"http://h/?to=http://a@b"),
            (Some(JsonLines), br#"{"url":"@types/node"}"#),
            (Some(JsonLines), br#"{"url":"http:\/\/h\/a@b"}"#),
            (Some(Csv), b"1,http://h,joe@h"),
            (Some(Tsv), b"joe@h\thttp://h"),
        ] {
            assert!(!has_credentials(line, format), "{}", String::from_utf8_lossy(line));
        }
    }
}
