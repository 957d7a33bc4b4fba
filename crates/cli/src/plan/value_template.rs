//! Texts with placeholders: `{}` for the extracted value in a stage after `--then`, or `{name}` for
//! a column of a `--csv-in` list.
//!
//! ```
//! use haul_cli::plan::{ValueTemplate, PlaceholderEncoding};
//!
//! let body = ValueTemplate::with_placeholders(br#"{"name": "{}", "id": {}}"#, PlaceholderEncoding::Json);
//! assert_eq!(body.fill(b"7"), br#"{"name": "7", "id": 7}"#);
//! assert_eq!(body.fill(b"a\"b"), br#"{"name": "a\"b", "id": "a\"b"}"#);
//! ```

use haul_policy::output_name_placeholders::placeholder;
use haul_policy::urlencode;

/// The placeholder that is replaced by a value that `--extract` found.
const PLACEHOLDER: &[u8] = b"{}";

/// The form of the placeholders in a text: `{}` for a value, or `{name}` for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderSyntax {
    /// `{}`: the extracted value, in a stage after `--then`.
    Value,
    /// `{name}`: the column with this name, in a URL group with `--csv-in`. Other text in braces is
    /// not changed.
    Column,
}

/// The encoding of a value that replaces a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderEncoding {
    /// Percent-encoding, with `+` for a blank: for a field of a URL-encoded form.
    Form,
    /// JSON. Inside a string the value is escaped. Outside a string, a number, `true`, `false` and
    /// `null` stay unchanged, and any other value becomes a string.
    Json,
    /// XML or HTML: `&`, `<`, `>` and quotes become character references.
    Markup,
    /// The value is inserted unchanged.
    Plain,
}

/// A part of a [`ValueTemplate`]: fixed text, or a placeholder for an extracted value or for the
/// value in a column of the `--csv-in` list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueTemplatePart {
    Text(Vec<u8>),
    Value(PlaceholderEncoding),
    Column(String, PlaceholderEncoding),
}

/// A text that contains placeholders for an extracted value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ValueTemplate {
    parts: Vec<ValueTemplatePart>,
}

/// Shows only the number of parts, because the texts may be secret.
impl std::fmt::Debug for ValueTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueTemplate({} parts)", self.parts.len())
    }
}

impl ValueTemplate {
    /// Parses a text with placeholders of this syntax. `form` is the encoding of the values that
    /// replace the placeholders.
    pub fn parse(text: &[u8], form: PlaceholderEncoding, syntax: PlaceholderSyntax) -> Self {
        match syntax {
            PlaceholderSyntax::Value => Self::with_placeholders(text, form),
            PlaceholderSyntax::Column => Self::with_columns(text, form),
        }
    }

    fn with_columns(text: &[u8], form: PlaceholderEncoding) -> Self {
        let mut made = Self::default();
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
            made.push_text(&rest[..at]);
            rest = &rest[at..];
            let length = match placeholder(rest) {
                Some((name, length)) => {
                    made.parts.push(ValueTemplatePart::Column(name.to_owned(), form));
                    length
                }
                None => {
                    made.push_text(&rest[..1]);
                    1
                }
            };
            rest = &rest[length..];
        }
        made.push_text(rest);
        made
    }

    /// Parses a text in which each `{}` is a placeholder. `form` is the encoding of the values that
    /// replace the placeholders.
    pub fn with_placeholders(text: &[u8], form: PlaceholderEncoding) -> Self {
        let mut made = Self::default();
        let mut rest = text;
        while let Some(at) = rest.windows(PLACEHOLDER.len()).position(|bytes| bytes == PLACEHOLDER) {
            made.push_text(&rest[..at]);
            made.parts.push(ValueTemplatePart::Value(form));
            rest = &rest[at + PLACEHOLDER.len()..];
        }
        made.push_text(rest);
        made
    }

    /// Returns a template without placeholders, even if the text contains `{}`.
    pub fn literal(text: &[u8]) -> Self {
        let mut made = Self::default();
        made.push_text(text);
        made
    }

    /// Appends a text without placeholders.
    pub fn push_text(&mut self, text: &[u8]) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(ValueTemplatePart::Text(last)) => last.extend_from_slice(text),
            _ => self.parts.push(ValueTemplatePart::Text(text.to_vec())),
        }
    }

    /// Appends the texts and placeholders of another template.
    pub fn append(&mut self, other: ValueTemplate) {
        for part in other.parts {
            match part {
                ValueTemplatePart::Text(text) => self.push_text(&text),
                value => self.parts.push(value),
            }
        }
    }

    /// Returns the template with each fixed text replaced by `change(text)`. Placeholders stay
    /// unchanged.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        for part in &mut self.parts {
            if let ValueTemplatePart::Text(text) = part {
                *text = change(text);
            }
        }
        self
    }

    /// Returns true if the template contains neither text nor placeholders.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the text of the template; `None` if it contains a placeholder.
    pub fn literal_text(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [ValueTemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the text of the template as it was written, with `{}` or `{name}` for each
    /// placeholder.
    pub fn to_source_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &self.parts {
            match part {
                ValueTemplatePart::Text(text) => out.extend_from_slice(text),
                ValueTemplatePart::Value(_) => out.extend_from_slice(PLACEHOLDER),
                ValueTemplatePart::Column(name, _) => out.extend_from_slice(format!("{{{name}}}").as_bytes()),
            }
        }
        out
    }

    /// Returns the text of the template with `value` in place of each placeholder `{}`. The
    /// encoding of the placeholder is applied to the value.
    pub fn fill(&self, value: &[u8]) -> Vec<u8> {
        self.fill_by(|name| name.is_none().then_some(value))
    }

    /// Returns the text with a value in place of each placeholder, in the encoding of the
    /// placeholder (such as that of JSON strings). `value_of` receives the name of a column, or
    /// `None` for `{}`, and returns the value. If it returns `None`, the placeholder stays
    /// unchanged.
    pub fn fill_by<'v>(&self, value_of: impl Fn(Option<&str>) -> Option<&'v [u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut json = JsonStringTracker::default();
        for part in &self.parts {
            let (name, form) = match part {
                ValueTemplatePart::Text(text) => {
                    json.advance_over(text);
                    out.extend_from_slice(text);
                    continue;
                }
                ValueTemplatePart::Value(form) => (None, *form),
                ValueTemplatePart::Column(name, form) => (Some(&**name), *form),
            };
            match (value_of(name), form) {
                (None, _) => {
                    let text = format!("{{{}}}", name.unwrap_or_default());
                    json.advance_over(text.as_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
                (Some(value), PlaceholderEncoding::Form) => {
                    out.extend_from_slice(urlencode::form_encode(value).as_bytes())
                }
                (Some(value), PlaceholderEncoding::Json) => out.extend_from_slice(json.encode_value(value).as_bytes()),
                (Some(value), PlaceholderEncoding::Markup) => push_markup(&mut out, value),
                (Some(value), PlaceholderEncoding::Plain) => out.extend_from_slice(value),
            }
        }
        out
    }
}

/// Tracks whether a position in a JSON text is inside a string.
#[derive(Default)]
struct JsonStringTracker {
    in_string: bool,
    is_escaped: bool,
}

impl JsonStringTracker {
    fn advance_over(&mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }

    fn encode_value(&self, value: &[u8]) -> String {
        let text = String::from_utf8_lossy(value);
        if self.in_string {
            return escaped(&text);
        }
        let is_literal = is_json_number(&text) || matches!(&*text, "true" | "false" | "null");
        if is_literal { text.into_owned() } else { format!("\"{}\"", escaped(&text)) }
    }
}

/// Escapes a text for a JSON string (RFC 8259 section 7), without the quotes around it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out
}

/// Returns true if the text is a JSON number (RFC 8259 section 6). A JSON number has no leading
/// zeros and no plus sign.
fn is_json_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(number, e)| (number, Some(e)));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, part)| (whole, Some(part)));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

fn push_markup(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, form: PlaceholderEncoding, value: &str) -> String {
        String::from_utf8(ValueTemplate::with_placeholders(text.as_bytes(), form).fill(value.as_bytes())).unwrap()
    }

    #[test]
    fn template_encodes_the_value_for_its_position() {
        use PlaceholderEncoding::{Form, Json, Markup, Plain};
        for (text, form, value, expected) in [
            ("a={}&b={}", Form, "x y&z=\u{e9}", "a=x+y%26z%3D%C3%A9&b=x+y%26z%3D%C3%A9"),
            ("{}", Json, "12", "12"),
            ("{}", Json, "-0.5e+3", "-0.5e+3"),
            ("{}", Json, "007", "\"007\""),
            ("{}", Json, "+1", "\"+1\""),
            ("[{}]", Json, "null", "[null]"),
            ("{\"a\":\"\\\"{}\"}", Json, "\"},\"x\n", "{\"a\":\"\\\"\\\"},\\\"x\\u000a\"}"),
            ("{\"a\":\"x\",\"{}\":1}", Json, "k", "{\"a\":\"x\",\"k\":1}"),
            ("<a b='{}'>", Markup, "'><x&", "<a b='&#39;&gt;&lt;x&amp;'>"),
            ("id {}", Plain, "a b", "id a b"),
            ("{", Plain, "x", "{"),
        ] {
            assert_eq!(filled(text, form, value), expected, "{text} {value}");
        }
    }

    #[test]
    fn csv_columns_replace_their_placeholders() {
        let value = |name: Option<&str>| match name? {
            "name" => Some(&b"A \"B\""[..]),
            "id" => Some(&b"7"[..]),
            _ => None,
        };
        for (text, form, expected) in [
            (
                "{\"name\": \"{name}\", \"id\": {id}}",
                PlaceholderEncoding::Json,
                "{\"name\": \"A \\\"B\\\"\", \"id\": 7}",
            ),
            ("n={name}&x={other}", PlaceholderEncoding::Form, "n=A+%22B%22&x={other}"),
            ("{ user(id: {id}) { name } } {}{", PlaceholderEncoding::Plain, "{ user(id: 7) { name } } {}{"),
            ("[{\"a\":{id}},{\"{name}\":1}]", PlaceholderEncoding::Json, "[{\"a\":7},{\"A \\\"B\\\"\":1}]"),
        ] {
            let template = ValueTemplate::parse(text.as_bytes(), form, PlaceholderSyntax::Column);
            assert_eq!(String::from_utf8(template.fill_by(value)).unwrap(), expected, "{text}");
            assert_eq!(template.to_source_text(), text.as_bytes());
        }
    }

    #[test]
    fn literal_template_has_no_placeholder() {
        let mut all = ValueTemplate::literal(b"{}");
        assert_eq!(all.literal_text(), Some(&b"{}"[..]));
        all.push_text(b"&");
        all.append(ValueTemplate::with_placeholders(b"a={}", PlaceholderEncoding::Form));
        assert_eq!((all.literal_text(), all.to_source_text()), (None, b"{}&a={}".to_vec()));
        assert_eq!(all.fill(b"1"), b"{}&a=1");
    }
}
