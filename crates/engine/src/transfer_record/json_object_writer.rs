//! A writer of JSON objects, member by member. Strings are written by serde_json. Characters in
//! them that could control a terminal are then escaped.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use haul_policy::terminal_text::escape_json;

/// A writer of JSON text, with the text that it has written so far.
#[derive(Debug)]
pub(super) struct JsonObjectWriter {
    text: Vec<u8>,
    /// True if the object or array that is being written has no member or element yet.
    is_first: bool,
}

impl JsonObjectWriter {
    /// Makes a writer that appends members of an object to `text`. `is_first` is true if the object
    /// has no member yet.
    pub(super) fn members(text: Vec<u8>, is_first: bool) -> Self {
        Self { text, is_first }
    }

    /// Returns the JSON text.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Begins the next element of an array.
    fn begin_element(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.text.push(b',');
        }
    }

    /// Writes the name of the next member. The value must follow.
    pub(super) fn member_name(&mut self, name: &str) {
        self.begin_element();
        self.string_value(name);
        self.text.push(b':');
    }

    /// Writes a string as a value.
    fn string_value(&mut self, text: &str) {
        let from = self.text.len();
        serde_json::to_writer(&mut self.text, text).expect("a vector takes every write");
        escape_json(&mut self.text, from);
    }

    /// Writes a member whose value is a string, or null if there is no value.
    pub(super) fn text_member<'t>(&mut self, name: &str, value: impl Into<Option<&'t str>>) {
        self.member_name(name);
        match value.into() {
            Some(value) => self.string_value(value),
            None => self.text.extend_from_slice(b"null"),
        }
    }

    /// Writes a member whose value is a number, a boolean, or any other JSON text.
    pub(super) fn display_member(&mut self, name: &str, value: impl Display) {
        self.member_name(name);
        write!(self.text, "{value}").expect("a vector takes every write");
    }

    /// Writes a member whose value is a number, or null if there is no value.
    pub(super) fn number_member(&mut self, name: &str, value: Option<u16>) {
        match value {
            Some(value) => self.display_member(name, value),
            None => self.display_member(name, "null"),
        }
    }

    /// Writes a member whose value is a time in seconds.
    pub(super) fn seconds_member(&mut self, name: &str, time: Duration) {
        self.display_member(name, format_args!("{}.{:06}", time.as_secs(), time.subsec_micros()));
    }

    /// Writes a string as an element of an array.
    pub(super) fn text_element(&mut self, value: &str) {
        self.begin_element();
        self.string_value(value);
    }

    /// Writes a member whose value is an object. `write` writes its members.
    pub(super) fn object_member(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.member_name(name);
        self.nested(b'{', b'}', write);
    }

    /// Writes a member whose value is an array. `write` writes its elements.
    pub(super) fn array_member(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.member_name(name);
        self.nested(b'[', b']', write);
    }

    /// Writes an object as an element of an array. `write` writes its members.
    pub(super) fn object_element(&mut self, write: impl FnOnce(&mut Self)) {
        self.begin_element();
        self.nested(b'{', b'}', write);
    }

    fn nested(&mut self, open: u8, close: u8, write: impl FnOnce(&mut Self)) {
        self.text.push(open);
        self.is_first = true;
        write(self);
        self.text.push(close);
        self.is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_writer_puts_commas_between_members_and_elements() {
        let mut json = JsonObjectWriter::members(b"{".to_vec(), true);
        json.text_member("a", "\"\n");
        json.display_member("n", 7);
        json.number_member("none", None);
        json.array_member("list", |list| {
            list.text_element("x");
            list.object_element(|object| object.seconds_member("t", Duration::from_micros(1_000_002)));
        });
        json.object_member("empty", |_| {});
        let mut text = json.into_text();
        text.push(b'}');
        let expected = r#"{"a":"\"\n","n":7,"none":null,"list":["x",{"t":1.000002}],"empty":{}}"#;
        assert_eq!(String::from_utf8(text).expect("UTF-8"), expected);
    }
}
