//! The text of a `--jsonl` line in pieces, so that a large body needs no second copy in memory.

use haul::body::decoded_text::BodyTextPieces;
use haul::fleet::{RecordTextIterator, WholeOrPiecewiseText};
use haul::sink::extracted_value_list::ExtractedValues;

use haul_policy::terminal_text::escape_json;

use crate::base64;

/// The maximum size, in bytes, of the body or values in a `--jsonl` line that is formatted at once.
/// A line with more content is formatted in pieces.
const MAX_WHOLE_TEXT: usize = 256 << 10;
/// The number of extracted values in one piece of a `--jsonl` line.
const VALUES_PER_PIECE: usize = 1024;
const BINARY_BYTES_PER_PIECE: usize = 48 << 10;

/// The last member of the JSON object in a `--jsonl` line: the body or the extracted values, which
/// may be large.
pub(super) enum JsonlContentMember {
    /// The line has neither values nor a body.
    Nothing,
    /// `body`: the text of a body.
    Text(BodyTextPieces),
    /// `body_base64`: a body that is not text.
    Binary(Vec<u8>),
    /// `values`: the extracted values, as a list.
    Values(ExtractedValues),
    /// `values`: the extracted values, as an object with a list of values for each name in the
    /// `Vec`. The n-th name belongs to the values of the n-th expression, such as
    /// `--select name=...`.
    NamedValues(ExtractedValues, Vec<String>),
}

/// A `--jsonl` line in pieces: the beginning of the object, pieces of the content, and the end.
struct JsonlLinePieceIterator {
    start: Option<Vec<u8>>,
    content: JsonlContentMember,
    /// The index of the next extracted value to write or, for a binary body, of the next byte.
    at: usize,
    /// The index in `NamedValues` of the name whose list of values is written next.
    name: usize,
    /// True if a value was already written to the JSON list of the current name (`name`), so that a
    /// comma must precede the next value.
    has_value: bool,
    is_over: bool,
}

/// Returns a complete line of JSON. It consists of `start`, which is a JSON object without its
/// closing brace, and the last member `content`.
pub(super) fn record_line(start: Vec<u8>, content: JsonlContentMember) -> WholeOrPiecewiseText {
    let size = match &content {
        JsonlContentMember::Nothing => 0,
        JsonlContentMember::Text(text) => text.len(),
        JsonlContentMember::Binary(body) => body.len(),
        JsonlContentMember::Values(values) | JsonlContentMember::NamedValues(values, _) => values.memory_size(),
    };
    let cost = size + start.len();
    let mut pieces =
        JsonlLinePieceIterator { start: Some(start), content, at: 0, name: 0, has_value: false, is_over: false };
    if size > MAX_WHOLE_TEXT {
        return WholeOrPiecewiseText::Pieces(RecordTextIterator { pieces: Box::new(pieces), cost });
    }
    let mut text = pieces.start.take().unwrap_or_default();
    text.reserve(size + size / 8 + 32);
    pieces.append_opening(&mut text);
    while pieces.append_content(&mut text) {}
    pieces.append_closing(&mut text);
    WholeOrPiecewiseText::Whole(text)
}

impl JsonlLinePieceIterator {
    /// Appends the key of the line's last member (the values or the body) and the opening of its
    /// value, such as a bracket.
    fn append_opening(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(match &self.content {
            JsonlContentMember::Nothing => b"",
            JsonlContentMember::Text(_) => b",\"body\":\"",
            JsonlContentMember::Binary(_) => b",\"body_base64\":\"",
            JsonlContentMember::Values(_) => b",\"values\":[",
            JsonlContentMember::NamedValues(..) => b",\"values\":{",
        });
    }

    /// Appends the next piece of `content`: of a body, or of extracted values. Returns false at the
    /// end of the content.
    fn append_content(&mut self, into: &mut Vec<u8>) -> bool {
        let at = self.at;
        match &mut self.content {
            JsonlContentMember::Nothing => false,
            JsonlContentMember::Text(text) => match text.next_piece() {
                Some(piece) => {
                    append_string_piece(&piece, into);
                    true
                }
                None => false,
            },
            JsonlContentMember::Binary(body) => {
                self.at = body.len().min(at + BINARY_BYTES_PER_PIECE);
                into.extend_from_slice(base64::encode(&body[at..self.at]).as_bytes());
                at < self.at
            }
            JsonlContentMember::Values(values) => {
                self.at = values.len().min(at + VALUES_PER_PIECE);
                for index in at..self.at {
                    into.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
                    append_string_piece(&String::from_utf8_lossy(values.get(index)), into);
                    into.push(b'"');
                }
                at < self.at
            }
            JsonlContentMember::NamedValues(values, names) => {
                let (Some(name), expression) = (names.get(self.name), self.name) else { return false };
                if at == 0 {
                    into.extend_from_slice(if expression == 0 { b"\"" } else { b",\"" });
                    append_string_piece(name, into);
                    into.extend_from_slice(b"\":[");
                    self.has_value = false;
                }
                self.at = values.len().min(at + VALUES_PER_PIECE);
                for index in (at..self.at).filter(|index| values.expression(*index) == expression) {
                    into.extend_from_slice(if self.has_value { b",\"" } else { b"\"" });
                    self.has_value = true;
                    append_string_piece(&String::from_utf8_lossy(values.get(index)), into);
                    into.push(b'"');
                }
                if self.at == values.len() {
                    into.push(b']');
                    (self.at, self.name) = (0, expression + 1);
                }
                true
            }
        }
    }

    /// Appends the closing of the last member's value, such as a bracket, and the end of the line.
    fn append_closing(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(match &self.content {
            JsonlContentMember::Nothing => b"}\n",
            JsonlContentMember::Text(_) | JsonlContentMember::Binary(_) => b"\"}\n",
            JsonlContentMember::Values(_) => b"]}\n",
            JsonlContentMember::NamedValues(..) => b"}}\n",
        });
    }
}

impl Iterator for JsonlLinePieceIterator {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(mut start) = self.start.take() {
            self.append_opening(&mut start);
            return Some(start);
        }
        let mut piece = Vec::new();
        if self.append_content(&mut piece) {
            return Some(piece);
        }
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        self.append_closing(&mut piece);
        Some(piece)
    }
}

/// Appends a piece of a JSON string, escaped, without quotation marks.
fn append_string_piece(piece: &str, into: &mut Vec<u8>) {
    let from = into.len();
    serde_json::to_writer(&mut *into, piece).expect("a vector takes every write");
    into.pop();
    into.remove(from);
    escape_json(into, from);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: WholeOrPiecewiseText) -> Vec<u8> {
        match text {
            WholeOrPiecewiseText::Whole(text) => text,
            WholeOrPiecewiseText::Pieces(pieces) => pieces.pieces.collect::<Vec<_>>().concat(),
            WholeOrPiecewiseText::Lines(_) => panic!("a line"),
        }
    }

    #[test]
    fn long_and_short_content_give_the_same_line() {
        for count in [0, 1, 5, 70_000, 300_000] {
            let body: Vec<u8> = "a\"é\n".bytes().cycle().take(count * 5).collect();
            let text = BodyTextPieces::new(body.clone(), None).expect("text");
            let line_of = |content| {
                let line = whole(record_line(b"{\"url\":\"x\"".to_vec(), content));
                assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
                serde_json::from_slice::<serde_json::Value>(&line).expect("JSON")
            };
            assert_eq!(line_of(JsonlContentMember::Text(text))["body"].as_str().expect("text").as_bytes(), body);
            let encoded = line_of(JsonlContentMember::Binary(body.clone()));
            let encoded = encoded["body_base64"].as_str().expect("Base64").to_owned();
            assert_eq!(base64::decode(&encoded), Some(body));
            let mut values = ExtractedValues::default();
            (0..count).for_each(|value| values.push(value.to_string().as_bytes()));
            let line = line_of(JsonlContentMember::Values(values));
            let values = line["values"].as_array().expect("a list");
            assert!(values.iter().enumerate().all(|(index, value)| value.as_str() == Some(&*index.to_string())));
            assert_eq!(values.len(), count);
        }
    }

    #[test]
    fn many_named_values_form_one_json_line() {
        // The values of each name are together, as JSONPath finds them, or alternate, or are few.
        for (count, of_name) in [(30_000, 1), (30_000, 2), (30_000, 3), (5, 1), (0, 1)] {
            let mut values = ExtractedValues::default();
            let mut expected = [Vec::new(), Vec::new(), Vec::new()];
            for index in 0..3 * count {
                let name = match of_name {
                    1 => index / count,
                    2 => index % 3,
                    _ => 2 * usize::from(index % 2_500 == 2_499),
                };
                let value = format!("[{index}");
                values.push_found(name, value.as_bytes());
                expected[name].push(value);
            }
            let names = ["a", "b", "c"].map(str::to_owned).to_vec();
            let line = whole(record_line(b"{\"url\":\"x\"".to_vec(), JsonlContentMember::NamedValues(values, names)));
            let line: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
            let [a, b, c] = expected;
            assert_eq!(line["values"], serde_json::json!({"a": a, "b": b, "c": c}), "{count} {of_name}");
        }
    }

    #[test]
    fn pieces_of_a_body_form_one_json_string() {
        let mut text = b"\"".to_vec();
        for piece in ["a\"", "", "\u{1}é"] {
            append_string_piece(piece, &mut text);
        }
        text.push(b'"');
        assert_eq!(serde_json::from_slice::<String>(&text).expect("a string"), "a\"\u{1}é");
    }
}
