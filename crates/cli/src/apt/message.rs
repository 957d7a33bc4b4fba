//! The messages that apt and its methods exchange. A message is a line with a number and a text,
//! then fields, then an empty line.
//!
//! ```
//! use haul_cli::apt::message::AptMessage;
//!
//! let text = "600 URI Acquire\nURI: http://mirror/x.deb\nFilename: /tmp/x.deb\n\n";
//! let message = AptMessage::read(&mut text.as_bytes()).unwrap().unwrap();
//! assert_eq!((message.number, message.get("uri")), (600, Some("http://mirror/x.deb")));
//! let answer = AptMessage::new(200, "URI Start").with_field("URI", "http://mirror/x.deb").to_text();
//! assert_eq!(answer, "200 URI Start\nURI: http://mirror/x.deb\n\n");
//! ```

use std::fmt::Write;
use std::io::{self, BufRead, Read};

/// The length limit of one message from apt, 4 MiB. The longest message of apt is a configuration
/// with some thousand items.
const MAX_MESSAGE: u64 = 4 << 20;

/// A message that apt sends to an apt method such as haul, or that the method sends to apt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptMessage {
    /// The number of the message, which names its kind, such as 600.
    pub number: u16,
    text: String,
    fields: Vec<(String, String)>,
}

impl AptMessage {
    /// Returns a message without fields. `text` follows the number on the first line.
    #[must_use]
    pub fn new(number: u16, text: &str) -> Self {
        Self { number, text: text.to_owned(), fields: Vec::new() }
    }

    /// Appends a field to the message. Line ends in the value are replaced by blanks.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let value = value.as_ref().replace(['\r', '\n'], " ");
        self.fields.push((name.to_owned(), value));
        self
    }

    /// Appends a field to the message if `value` is not `None`.
    #[must_use]
    pub fn with_optional_field(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with_field(name, value),
            None => self,
        }
    }

    /// Returns the value of the message's first field with this name, in any letter case. Returns
    /// `None` if the message has no field with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the values of all fields of the message with this name, in order.
    pub fn all_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter_map(move |(field, value)| field.eq_ignore_ascii_case(name).then_some(value.as_str()))
    }

    /// Returns the text of the message: its first line, its fields and the empty line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{} {}\n", self.number, self.text);
        for (name, value) in &self.fields {
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
        text
    }

    /// Reads the next message from a stream. Returns `None` at the end of the stream.
    ///
    /// # Errors
    /// The error of the stream, or [`io::ErrorKind::InvalidData`] for a malformed message.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut from = from.take(MAX_MESSAGE);
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            if from.read_line(&mut line)? == 0 {
                return Ok(None);
            }
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let (number, text) = line.trim_end().split_once(' ').ok_or_else(invalid)?;
        let mut message = Self::new(number.parse().map_err(|_| invalid())?, text);
        loop {
            line.clear();
            let count = from.read_line(&mut line)?;
            let field = line.trim_end();
            if field.is_empty() {
                return if count == 0 { Err(invalid()) } else { Ok(Some(message)) };
            }
            let (name, value) = field.split_once(':').ok_or_else(invalid)?;
            message.fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\n\n601 Configuration\nConfig-Item: a=b:c\nConfig-Item:d=\n\n600 URI Acquire\nURI:x\n\n";

    #[test]
    fn apt_messages_are_read_one_by_one() {
        let mut from = TEXT.as_bytes();
        let first = AptMessage::read(&mut from).unwrap().unwrap();
        assert_eq!((first.number, first.all_values("config-item").collect::<Vec<_>>()), (601, vec!["a=b:c", "d="]));
        assert_eq!(AptMessage::read(&mut from).unwrap().unwrap().get("URI"), Some("x"));
        assert_eq!(AptMessage::read(&mut from).unwrap(), None);
    }

    #[test]
    fn truncated_apt_message_is_refused() {
        let whole = "600 URI Acquire\nURI: x\n\n";
        for cut in 1..whole.len() {
            let read = AptMessage::read(&mut &whole.as_bytes()[..cut]);
            assert!(read.is_err(), "{cut}: {read:?}");
        }
        for bad in ["x y\n\n", "600\n\n", "600 a\nno field\n\n", "99999 a\n\n"] {
            assert!(AptMessage::read(&mut bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn apt_field_values_cannot_add_lines() {
        let text = AptMessage::new(400, "URI Failure").with_field("Message", "a\nURI: b\r\n\nc").to_text();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
