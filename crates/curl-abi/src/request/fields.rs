//! The header fields and the content codings of a request.

use haul::RequestOptions;

use super::set_time_condition;
use crate::options::{EasyOptions, curlopt_numbers as opt};

/// A line of `CURLOPT_HTTPHEADER`.
enum HeaderLine {
    /// The name and the value of a field to send.
    Set(String, Vec<u8>),
    /// The name of a field that must not be sent.
    Remove(String),
}

impl HeaderLine {
    /// Parses `Name: value`, `Name:` (the field is not sent) or `Name;` (the field is sent without
    /// a value). Returns `None` for any other line.
    fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(|b| matches!(b, b':' | b';'))?;
        let name = std::str::from_utf8(&line[..end]).ok()?.trim().to_owned();
        if name.is_empty() {
            return None;
        }
        let value = line[end + 1..].trim_ascii();
        // Text after a line end would be another field.
        if value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return None;
        }
        match (line[end], value.is_empty()) {
            (b':', true) => Some(Self::Remove(name)),
            (b':', false) => Some(Self::Set(name, value.to_vec())),
            (_, true) => Some(Self::Set(name, Vec::new())),
            _ => None,
        }
    }
}

/// Separates lines of an option such as `CURLOPT_HTTPHEADER` into the fields to send (name and
/// value), and the names of fields that must not be sent.
pub(super) fn parse_header_lines(lines: &[Box<[u8]>]) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let (mut fields, mut without) = (Vec::new(), Vec::new());
    for line in lines {
        match HeaderLine::parse(line) {
            Some(HeaderLine::Set(name, value)) => fields.push((name, value)),
            Some(HeaderLine::Remove(name)) => without.push(name),
            None => {}
        }
    }
    (fields, without)
}

/// Copies the header fields in the options to a request.
pub(super) fn set_fields(options: &EasyOptions, request: &mut RequestOptions) {
    (request.fields, request.without) = parse_header_lines(options.string_list(opt::HTTPHEADER));
    request.deviations.upgraded = request.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("upgrade"));
    let has =
        |fields: &[(String, Vec<u8>)], wanted: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if let Some(codings) = options.bytes(opt::ACCEPT_ENCODING) {
        request.decode = options.number(opt::HTTP_CONTENT_DECODING) != Some(0);
        let codings = if codings.is_empty() { haul::body::accept_encoding().as_bytes() } else { codings };
        if !has(&request.fields, "accept-encoding") {
            request.fields.push(("Accept-Encoding".to_owned(), codings.to_vec()));
        }
    }
    set_time_condition(options, request);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_set_and_remove_fields() {
        let lines: Vec<Box<[u8]>> =
            [&b"X-A: 1"[..], b"Accept:", b"X-Empty;", b"nonsense", b"X-Evil: a\r\nHost: b", b" : x", b"X-B:  2 "]
                .map(Box::from)
                .to_vec();
        let (fields, without) = parse_header_lines(&lines);
        let pairs: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        assert_eq!(pairs, [("X-A", &b"1"[..]), ("X-Empty", b""), ("X-B", b"2")]);
        assert_eq!(without, ["Accept"]);
    }
}
