//! Splits the value of `-F` into words, media types and parameters.

/// A reader of the words in the value of `-F`. It keeps the part of the value that is still unread.
pub(super) struct FormValueScanner<'t> {
    rest: &'t [u8],
}

impl<'t> FormValueScanner<'t> {
    pub(super) fn new(rest: &'t [u8]) -> Self {
        FormValueScanner { rest }
    }

    /// Skips the next byte of the `-F` value if it equals `byte`. Returns true if it was skipped.
    pub(super) fn skip_byte(&mut self, byte: u8) -> bool {
        self.skip_prefix(&[byte])
    }

    /// Skips blanks of the `-F` value, and then this prefix in any letter case. Returns true if the
    /// prefix was there and was skipped.
    pub(super) fn skip_blanks_and_prefix(&mut self, prefix: &[u8]) -> bool {
        self.skip_blanks();
        self.skip_prefix(prefix)
    }

    /// Skips blanks of the `-F` value. Line ends are not skipped, because the content may begin
    /// with a line end.
    fn skip_blanks(&mut self) {
        let blanks = self.rest.iter().take_while(|&byte| is_blank(byte)).count();
        self.rest = &self.rest[blanks..];
    }

    fn skip_prefix(&mut self, prefix: &[u8]) -> bool {
        match self.rest.split_at_checked(prefix.len()) {
            Some((front, rest)) if front.eq_ignore_ascii_case(prefix) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Parses a word of the `-F` value, and removes the quotes or blanks around it. A word without
    /// quotes ends at `;`. If `listed` is true, it also ends at `,`.
    pub(super) fn read_word(&mut self, listed: bool, warnings: &mut Vec<String>) -> Vec<u8> {
        self.skip_blanks();
        match parse_quoted(self.rest) {
            Some((word, rest)) => {
                self.rest = rest;
                if !self.read_unquoted(listed).trim_ascii().is_empty() {
                    warnings.push("text behind a quoted word of a form field is left out".to_owned());
                }
                word
            }
            None => trim_blanks_end(self.read_unquoted(listed)).to_vec(),
        }
    }

    /// Reads a media type of the `-F` value with its own parameters, such as `;charset=`. The media
    /// type ends at the next parameter of `-F`, such as `;filename=`.
    pub(super) fn read_media_type(&mut self, listed: bool) -> &'t [u8] {
        self.skip_blanks();
        let text = self.rest;
        let mut end = self.read_unquoted(listed).len();
        while self.rest.first() == Some(&b';') && !is_parameter_of_option(&self.rest[1..]) {
            self.rest = &self.rest[1..];
            end += 1 + self.read_unquoted(listed).len();
        }
        text[..end].trim_ascii_end()
    }

    /// Reads the text of the `-F` value before the next `;`. If `listed` is true, a `,` also ends
    /// it.
    fn read_unquoted(&mut self, listed: bool) -> &'t [u8] {
        let is_end = |byte: &u8| *byte == b';' || (listed && *byte == b',');
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_blanks_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

/// Returns true if `text` begins with a parameter of `-F`, such as `filename=`. Any other parameter
/// belongs to the media type.
fn is_parameter_of_option(text: &[u8]) -> bool {
    let mut words = FormValueScanner::new(text);
    [&b"type="[..], b"filename=", b"headers=", b"encoder="].iter().any(|name| words.skip_blanks_and_prefix(name))
}

/// Parses a word in double quotes at the beginning of the text. Returns the word and the text after
/// it. Returns `None` if the opening or the closing double quote is missing: the word then counts
/// as unquoted, and a double quote is an ordinary character of the word.
fn parse_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut word = Vec::new();
    loop {
        match rest {
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [b'"', after @ ..] => return Some((word, after)),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}
