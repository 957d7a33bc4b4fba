//! Splits the value of `-F` into words.

/// Reads words from the unread rest of a `-F` value.
pub(super) struct FormValueScanner<'t> {
    rest: &'t [u8],
}

impl<'t> FormValueScanner<'t> {
    pub(super) fn new(rest: &'t [u8]) -> Self {
        FormValueScanner { rest }
    }

    /// Skips this byte if it is the next one. Returns true if it was skipped.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.take_bytes(&[byte])
    }

    /// Skips blanks, and then this prefix in any letter case. Returns true if the prefix was
    /// skipped.
    pub(super) fn take_prefix(&mut self, prefix: &[u8]) -> bool {
        self.pass_blanks();
        self.take_bytes(prefix)
    }

    /// Skips blanks, but no line ends, with which a content may begin.
    fn pass_blanks(&mut self) {
        let blanks = self.rest.iter().take_while(|&byte| is_blank(byte)).count();
        self.rest = &self.rest[blanks..];
    }

    fn take_bytes(&mut self, prefix: &[u8]) -> bool {
        match self.rest.split_at_checked(prefix.len()) {
            Some((front, rest)) if front.eq_ignore_ascii_case(prefix) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Reads a word and removes its quotes, or the blanks around it. A word without quotes ends at
    /// `;`, and if `listed` is true also at `,`.
    pub(super) fn word(&mut self, listed: bool, warnings: &mut Vec<String>) -> Vec<u8> {
        self.pass_blanks();
        match quoted(self.rest) {
            Some((word, rest)) => {
                self.rest = rest;
                if !self.bare(listed).trim_ascii().is_empty() {
                    warnings.push("text behind a quoted word of a form field is left out".to_owned());
                }
                word
            }
            None => trim_blanks_end(self.bare(listed)).to_vec(),
        }
    }

    /// Reads a media type with its own parameters, up to the next parameter of `-F`, such as
    /// `;filename=`.
    pub(super) fn media_type(&mut self, listed: bool) -> &'t [u8] {
        self.pass_blanks();
        let text = self.rest;
        let mut end = self.bare(listed).len();
        while self.rest.first() == Some(&b';') && !is_parameter_of_option(&self.rest[1..]) {
            self.rest = &self.rest[1..];
            end += 1 + self.bare(listed).len();
        }
        text[..end].trim_ascii_end()
    }

    /// Reads the text before the next `;`, or if `listed` is true also before the next `,`.
    fn bare(&mut self, listed: bool) -> &'t [u8] {
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

/// Returns true if the text begins with a parameter of `-F`, such as `filename=`. Other parameters
/// belong to the media type.
fn is_parameter_of_option(text: &[u8]) -> bool {
    let mut words = FormValueScanner::new(text);
    [&b"type="[..], b"filename=", b"headers=", b"encoder="].iter().any(|name| words.take_prefix(name))
}

/// Splits a word in double quotes off the text. Returns `None` if a quote is missing: the other
/// quote is then part of the text.
fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
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
