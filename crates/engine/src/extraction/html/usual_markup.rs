//! The fast path through common markup: text and tags in the body of an HTML page whose attributes
//! no query needs. It has no states and makes no tokens, but opens and closes the same elements as
//! the tokenizer and the tree builder. All other markup is left to them.

use super::byte_mask::find_near;
use super::open_elements::{MAX_DEPTH, Namespace, OpenElement};
use super::selected_elements::{InsertionMode, TreeBuilder};
use super::tag_name::{self as properties, TagName, names};
use super::tag_parser::{Tag, skip_common_attributes};
use crate::Result;

/// The number of bytes, from the `<` of a tag on, in which the fast path looks for the name. Each
/// name that it accepts fits, with the byte after it.
const HEAD_SIZE: usize = 16;

impl TreeBuilder<'_, '_> {
    /// Reads text and common tags at the beginning of `bytes` by the fast path. Returns the number
    /// of bytes read; 0 if the fast path cannot read anything. If bytes were read, the remaining
    /// bytes begin with a `<`.
    pub(super) fn read_usual(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while self.is_in_html_body() {
            let Some(length) = self.usual_text(&bytes[at..])? else { break };
            at += length;
            match self.read_usual_tag(&bytes[at..])? {
                0 => break,
                length => at += length,
            }
        }
        Ok(at)
    }

    fn is_in_html_body(&self) -> bool {
        let tree = &*self.tree;
        tree.part == InsertionMode::Body && tree.open.depth() > 0 && tree.open.current().namespace == Namespace::Html
    }

    /// Reads text up to the next `<` in `bytes`. Returns its length, or `None` if `bytes` have no `<`.
    fn usual_text(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        let Some(length) = find_near(b'<', bytes) else { return Ok(None) };
        if length > 0 && self.tree.collects_text() {
            let is_preformatted = self.tree.open.current().is_preformatted;
            self.tree.text.push(&bytes[..length], true, is_preformatted);
            self.check_memory()?;
        }
        Ok(Some(length))
    }

    /// Reads a tag at the beginning of `bytes` by the fast path. Returns the length of the tag, or
    /// 0 if the fast path cannot read this tag.
    fn read_usual_tag(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(head) = bytes.first_chunk::<HEAD_SIZE>() else { return Ok(0) };
        let is_end = head[1] == b'/';
        let current = self.tree.open.current();
        if is_end
            && let Some(end) = end_of_end_tag(head, current.name)
            && self.closes_innermost(current.name, current.properties)
        {
            self.end_run();
            self.close_innermost()?;
            return Ok(end);
        }
        let start = 1 + usize::from(is_end);
        let word = if is_end { usual_name(head, 2) } else { usual_name(head, 1) };
        let Some((name, length)) = word else { return Ok(0) };
        let name_end = start + length;
        let rules = self.queries.names.rules(name);
        let bits = rules.properties;
        if is_end {
            if head[name_end] != b'>' {
                return Ok(0);
            }
            self.end_run();
            self.html_end(name, bits)?;
            return Ok(name_end + 1);
        }
        if rules.needs_attributes || bits & properties::HAS_RAW_TEXT != 0 {
            return Ok(0);
        }
        let end = if head[name_end] == b'>' { Some(name_end + 1) } else { skip_common_attributes(bytes, name_end) };
        let Some(end) = end else { return Ok(0) };
        self.end_run();
        let is_plain = self.needs_no_rules(name, bits);
        if is_plain && !self.queries.program.may_match(rules.steps) {
            self.open_plain(name, bits, false);
        } else if is_plain && rules.text_query > 0 && self.tree.begin_only_text(rules) {
            self.open_plain(name, bits, true);
        } else {
            let bytes = &bytes[..end];
            let tag = Tag { bytes, id: name, rules, name: start..name_end, attributes: &[], is_self_closing: false };
            self.html_start(&tag)?;
        }
        Ok(end)
    }

    /// Returns true if the start tag of this element in the body needs no special rules: it closes
    /// no element, and opens no other element.
    fn needs_no_rules(&self, name: TagName, bits: u32) -> bool {
        const RULES: u32 = properties::HAS_START_TAG_RULES
            | properties::HAS_SEPARATE_TEXT
            | properties::IS_TABLE_PART
            | properties::IS_RUBY_TEXT
            | properties::CLOSES_P
            | properties::IS_HEADING;
        let open = &self.tree.open;
        let has_none = match bits & RULES {
            0 => true,
            properties::CLOSES_P => !open.may_be_open(names::P),
            properties::IS_TABLE_PART => open.is_place_of(name),
            properties::HAS_START_TAG_RULES => name == names::A && !open.may_be_open(names::A),
            _ => false,
        };
        has_none && open.depth() < MAX_DEPTH
    }

    /// Opens an element of the body whose start tag needs no special rules. `is_selected` is true
    /// if a query selects the element's text.
    fn open_plain(&mut self, name: TagName, properties: u32, is_selected: bool) {
        let tree = &mut *self.tree;
        if properties & properties::SEPARATES_WORDS != 0 {
            tree.text.separate_next_word();
        }
        if properties & properties::IS_VOID != 0 {
            return;
        }
        let is_preformatted = properties & properties::IS_PREFORMATTED != 0 || tree.open.current().is_preformatted;
        let element = OpenElement { name, properties, is_selected, is_preformatted, ..OpenElement::default() };
        tree.open.push(element);
    }
}

/// Returns the name of a tag and the length of the name, which begins at the index `start`. Returns
/// `None` if the name does not have one to seven letters and digits.
fn usual_name(head: &[u8; HEAD_SIZE], start: usize) -> Option<(TagName, usize)> {
    let word = word_at(head, start);
    // Each byte in lower case, without its highest bit, and then the bytes that are no letters and
    // digits, as their highest bits.
    let lower = word | (0x20 * ONES);
    let low = lower & !HIGHEST;
    let at_least = |byte: u8| low + u64::from(0x80 - byte) * ONES;
    let is_letter = at_least(b'a') & !at_least(b'z' + 1);
    // A byte from 0x10 on that is no digit may become one with the bit of lower case.
    let is_digit = at_least(b'0') & !at_least(b'9' + 1) & word << 2;
    let others = !((is_letter | is_digit) & !word) & HIGHEST;
    let length = others.trailing_zeros() as usize / 8;
    if !(1..8).contains(&length) || head[start].is_ascii_digit() {
        return None;
    }
    Some((TagName::of_short(lower.swap_bytes() >> (64 - 8 * length)), length))
}

/// Returns the length of the end tag `</name>` at the beginning of `head`. Returns `None` if there is
/// another tag, or if the name has more than seven bytes.
fn end_of_end_tag(head: &[u8; HEAD_SIZE], name: TagName) -> Option<usize> {
    let packed = name.short()?;
    let unused = packed.leading_zeros() & !7;
    if unused == 0 || unused == 64 {
        return None;
    }
    let wanted = (packed << unused).swap_bytes();
    // Letters, but not digits, may be in upper case.
    let case = (wanted & (0x40 * ONES)) >> 1;
    let length = 8 - unused as usize / 8;
    let is_same = ((word_at(head, 2) | case) ^ wanted) << unused == 0;
    (is_same && head[2 + length] == b'>').then_some(length + 3)
}

/// The number with 1 in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bits of all bytes.
const HIGHEST: u64 = 0x80 * ONES;

fn word_at(head: &[u8; HEAD_SIZE], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| head[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_are_letters_and_digits() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut head = *b"<abcdefg>.......";
                head[1 + at] = byte;
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric();
                let length = head[1..].iter().take_while(is_part).count();
                let expected = (length > 0 && length < 8 && !head[1].is_ascii_digit())
                    .then(|| (TagName::new(&head[1..=length]), length));
                assert_eq!(usual_name(&head, 1), expected, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn end_tag_has_its_name_in_any_case() {
        for name in ["a", "h1", "Td", "TBODY", "caption"] {
            let number = TagName::new(name.as_bytes());
            let mut head = [b'x'; HEAD_SIZE];
            let tag = format!("</{name}>");
            head[..tag.len()].copy_from_slice(tag.as_bytes());
            assert_eq!(end_of_end_tag(&head, number), Some(tag.len()), "{name}");
            for at in 2..tag.len() {
                for byte in 0..=u8::MAX {
                    let mut other = head;
                    other[at] = byte;
                    let is_same = other[at].eq_ignore_ascii_case(&head[at]);
                    assert_eq!(end_of_end_tag(&other, number).is_some(), is_same, "{name}: {byte} at {at}");
                }
            }
        }
        for name in ["", "fieldset", "blockquote"] {
            assert_eq!(end_of_end_tag(b"</fieldset>xxxxx", TagName::new(name.as_bytes())), None);
        }
    }
}
