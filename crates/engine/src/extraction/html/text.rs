//! The text of selected elements as it is output: one line, with decoded character references.
//!
//! ASCII white space between words becomes one space, and is removed at both ends. The beginning
//! and end of a block, a cell and a list item, and a line break, separate words as spaces do. In
//! preformatted text (`<pre>`, `<script>`), spaces are kept, and only line breaks become spaces.

use memchr::{memchr, memchr2};

use super::tag_parser::is_space;

/// The maximum length in bytes of the beginning of a named character reference, such as `&am` of
/// `&amp;`. No known reference is longer.
const MAX_NAMED_REFERENCE: usize = 40;

/// The collected text of the outermost open element whose text a query selects. The texts of
/// selected elements inside it are ranges of this text.
#[derive(Debug, Default)]
pub(super) struct ElementText {
    bytes: Vec<u8>,
    /// The possible beginning of a character reference at the end of the last piece of text, from
    /// its `&` on. It is kept until the next piece shows where the reference ends. Empty if there
    /// is none.
    partial_reference: Vec<u8>,
    /// True if white space follows the last word, so that a space is due before the next word.
    is_separated: bool,
    /// True if the last byte was a carriage return. A line feed directly after it belongs to the
    /// same line break.
    is_after_return: bool,
}

impl ElementText {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 16);
        self.partial_reference.clear();
        self.is_separated = false;
        self.is_after_return = false;
    }

    /// Returns the number of bytes that the text keeps.
    pub(super) fn memory_in_use(&self) -> usize {
        self.bytes.len() + self.partial_reference.len()
    }

    /// Returns the length of the collected text so far, in bytes.
    pub(super) fn position(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes the next word begin after a space.
    pub(super) fn separate_next_word(&mut self) {
        self.is_separated = true;
    }

    /// Returns true if a space is due before the next word.
    pub(super) fn is_separated(&self) -> bool {
        self.is_separated
    }

    /// Sets whether a space is due before the next word.
    pub(super) fn set_separated(&mut self, is_separated: bool) {
        self.is_separated = is_separated;
    }

    /// Adds a piece of text. If `has_references` is true, its character references are decoded. If
    /// `is_preformatted` is true, its spaces are kept. Otherwise, successive blanks become one
    /// space.
    pub(super) fn push(&mut self, text: &[u8], has_references: bool, is_preformatted: bool) {
        if !has_references {
            self.push_plain(text, is_preformatted);
        } else if !self.partial_reference.is_empty() {
            let mut whole = std::mem::take(&mut self.partial_reference);
            whole.extend_from_slice(text);
            self.push_with_references(&whole, is_preformatted);
        } else if is_preformatted {
            self.push_with_references(text, is_preformatted);
        } else {
            let plain = self.push_words(text, Some(b'&'));
            if plain < text.len() {
                self.push_with_references(&text[plain..], is_preformatted);
            }
        }
    }

    /// Ends a text before a tag or comment. If it ends with an incomplete character reference, such
    /// as `&am`, decodes that as it is, since it cannot continue. `is_preformatted` is true if
    /// white space in the text is kept.
    pub(super) fn end_text_node(&mut self, is_preformatted: bool) {
        if !self.partial_reference.is_empty() {
            self.end_reference(is_preformatted);
        }
        self.is_after_return = false;
    }

    #[cold]
    fn end_reference(&mut self, is_preformatted: bool) {
        let reference = std::mem::take(&mut self.partial_reference);
        self.push_decoded(&reference, is_preformatted);
    }

    fn push_with_references(&mut self, text: &[u8], is_preformatted: bool) {
        let end = reference_start(text).unwrap_or(text.len());
        self.push_decoded(&text[..end], is_preformatted);
        self.partial_reference.extend_from_slice(&text[end..]);
        shorten(&mut self.partial_reference);
    }

    fn push_decoded(&mut self, text: &[u8], is_preformatted: bool) {
        if memchr(b'&', text).is_none() {
            return self.push_plain(text, is_preformatted);
        }
        let text = htmlize::unescape_bytes_in(text, htmlize::Context::General);
        self.push_plain(&text, is_preformatted);
    }

    fn push_plain(&mut self, text: &[u8], is_preformatted: bool) {
        if is_preformatted {
            self.push_preformatted(text);
        } else {
            self.push_words(text, None);
        }
    }

    /// Adds text in which several blanks become one space. Stops before the first byte `end`, if
    /// one is given. Returns the number of bytes read.
    fn push_words(&mut self, text: &[u8], end: Option<u8>) -> usize {
        let mut rest = text;
        while let Some(&first) = rest.first() {
            if Some(first) == end {
                break;
            } else if first == 0 {
                rest = &rest[1..];
            } else if is_space(first) {
                let length = rest.iter().take_while(|byte| is_space(**byte)).count();
                self.is_separated = true;
                self.is_after_return = rest[length - 1] == b'\r';
                rest = &rest[length..];
            } else {
                let length = words_length(rest, end);
                self.push_separator();
                self.bytes.extend_from_slice(&rest[..length]);
                self.is_after_return = false;
                rest = &rest[length..];
            }
        }
        text.len() - rest.len()
    }

    /// Adds text whose spaces are kept. Line breaks become spaces.
    fn push_preformatted(&mut self, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            let length = memchr2(0, b'\r', rest).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(length);
            self.push_preformatted_part(part);
            rest = after;
        }
    }

    /// Adds a part of preformatted text. Only its last byte may be a null byte or a carriage
    /// return.
    fn push_preformatted_part(&mut self, part: &[u8]) {
        let after_return = self.is_after_return && part[0] == b'\n';
        let part = if after_return { &part[1..] } else { part };
        let part = part.strip_suffix(b"\0").unwrap_or(part);
        if after_return {
            self.is_after_return = false;
        }
        let Some(last) = part.last() else { return };
        self.push_separator();
        self.is_after_return = *last == b'\r';
        let start = self.bytes.len();
        self.bytes.extend_from_slice(part);
        // Without branches, so that the compiler uses vector instructions.
        for byte in &mut self.bytes[start..] {
            let is_break = (*byte == b'\n') | (*byte == b'\r') | (*byte == 0x0c);
            *byte = if is_break { b' ' } else { *byte };
        }
    }

    /// Adds a space if one is due before the next word and the text is not empty.
    fn push_separator(&mut self) {
        if self.is_separated && !self.bytes.is_empty() {
            self.bytes.push(b' ');
        }
        self.is_separated = false;
    }
}

/// Returns the number of bytes at the beginning of `text` that can be copied to the output
/// unchanged: words with single spaces between them. If `end` is given, the words end before the
/// first byte with this value. `text` must begin with a word.
fn words_length(text: &[u8], end: Option<u8>) -> usize {
    let end = end.unwrap_or(0);
    let mut at = skip_words::<16>(text, 1, end);
    at = skip_words::<8>(text, at, end);
    while let Some(&byte) = text.get(at) {
        let before = text[at - 1];
        // Other control characters are part of words.
        if may_end_words(before, byte, end) && (byte == 0 || byte == end || is_space(byte)) {
            return at - usize::from(before == b' ');
        }
        at += 1;
    }
    text.len() - usize::from(text.ends_with(b" "))
}

/// Returns true if the words that can be copied unchanged may end before `byte`: at a control
/// character, at the byte value `end`, or at the second of two spaces. `before` is the byte before
/// `byte`.
fn may_end_words(before: u8, byte: u8, end: u8) -> bool {
    (byte < b' ') | (byte == end) | (byte == b' ') & (before == b' ')
}

/// Skips bytes of words that can be copied to the output unchanged, from the index `at` on. Tests
/// `STEP` bytes at once, and stops before such a group if the words may end at one of its bytes
/// ([`may_end_words`]). Returns the index after the last group skipped; `at` if no group was
/// skipped or `text` has at most `STEP` bytes.
#[inline(always)]
fn skip_words<const STEP: usize>(text: &[u8], mut at: usize, end: u8) -> usize {
    while at < text.len() {
        // The last step may have bytes of the one before.
        let from = at.min(text.len().saturating_sub(STEP)).max(1);
        let step = &text[from - 1..];
        let (Some(before), Some(bytes)) = (step.first_chunk::<STEP>(), step[1..].first_chunk::<STEP>()) else { break };
        if before.iter().zip(bytes).fold(false, |any, (before, byte)| any | may_end_words(*before, *byte, end)) {
            break;
        }
        at = from + STEP;
    }
    at
}

/// Returns the index of an `&` near the end of `text` that may begin an incomplete character
/// reference; `None` if there is none.
fn reference_start(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let end = text.iter().rposition(|byte| !is_part(byte))?;
    let tail = &text[end..];
    let is_open = tail[0] == b'&' && (tail.len() <= MAX_NAMED_REFERENCE || digits_start(tail).is_some());
    is_open.then_some(end)
}

/// Returns the index of the first digit of the numeric character reference `reference`. Returns
/// `None` if the text is no such reference, or if anything but digits follows.
fn digits_start(reference: &[u8]) -> Option<usize> {
    let (start, is_digit): (_, fn(&u8) -> bool) = match reference {
        [b'&', b'#', b'x' | b'X', ..] => (3, u8::is_ascii_hexdigit),
        [b'&', b'#', ..] => (2, u8::is_ascii_digit),
        _ => return None,
    };
    reference[start..].iter().all(is_digit).then_some(start)
}

/// The number of significant digits that are kept of a numeric character reference. A number with
/// so many digits is larger than the code of any character, so further digits do not matter.
const MAX_DIGITS: usize = 8;

/// Drops digits of an unfinished numeric character reference, such as `&#0000065`, that cannot
/// change the decoded character: leading zeros, and digits after the first [`MAX_DIGITS`].
fn shorten(reference: &mut Vec<u8>) {
    let Some(start) = digits_start(reference).filter(|start| reference.len() > start + MAX_DIGITS) else { return };
    let zeros = reference[start..].iter().take_while(|digit| **digit == b'0').count();
    reference.drain(start..start + zeros.min(reference.len() - start - 1));
    reference.truncate(start + MAX_DIGITS);
}
