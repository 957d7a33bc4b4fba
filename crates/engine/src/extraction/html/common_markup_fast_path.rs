//! The fast path through common markup: text and tags in the body of an HTML page whose attributes
//! no query needs. It makes no tokens, but opens and closes the same elements as the tokenizer and
//! the tree builder. The tokenizer reads all other markup.
//!
//! Outside of selected elements (those whose text a query selects), no text is collected, and a tag
//! only changes the stack of open elements. With `--extract`, the content of a selected element is
//! usually read in the same way first. In two cases, this content is read again and its text is
//! collected: the regular expression may match in the text, or other markup comes before the end of
//! the element.

use super::byte_mask::ONES;
use super::markup_skipper::MarkupSkipper;
use super::open_element_stack::{
    FastPathTagCondition, IS_SELECTED, KEEPS_WHITE_SPACE, Namespace, OpenElement, OpenElementStack,
};
use super::tag_caches::{TAG_HEAD_SIZE, has_no_end_tag_rules, short_tag_name, skip_attributes, word_at};
use super::tag_name_and_rules::{self as properties, TagName};
use super::tag_parser::Tag;
use super::tree_builder::{InsertionMode, TreeBuilder};
use crate::Result;
use crate::extraction::inline_memchr::find_near;

impl TreeBuilder<'_, '_> {
    /// Reads common markup (text, and tags whose attributes no query needs) at the beginning of
    /// `bytes`, which must not be inside a tag. Returns the number of bytes read; the tokenizer
    /// reads the remaining bytes.
    pub(super) fn read_common_markup(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while self.is_in_html_body() {
            if self.collects_nothing() {
                at = self.skip_uncollected_markup(bytes, at)?;
                if !self.is_in_html_body() {
                    break;
                }
            }
            let Some(length) = find_near(b'<', &bytes[at..]) else { break };
            self.collect_text(&bytes[at..at + length])?;
            at += length;
            match self.read_common_tag(&bytes[at..])? {
                0 => break,
                length => at += length,
            }
        }
        Ok(at)
    }

    /// Returns true if the next tag is in the body of an HTML page, and not in SVG, MathML or XML.
    fn is_in_html_body(&self) -> bool {
        self.tree.insertion_mode == InsertionMode::Body && self.tree.open.is_in_html()
    }

    /// Returns true if tags of elements that no query selects only change the stack of open
    /// elements. No text or value is being collected then, and each selector depends only on the
    /// element itself, such as `a.x`, unlike `p > a`.
    fn collects_nothing(&self) -> bool {
        self.tree.collects_nothing() && self.queries.program.is_stateless()
    }

    /// Skips text and tags from the index `at` on without collecting text, and opens and closes
    /// elements. Returns the index at which skipping ends: the `<` of a tag that only the tokenizer
    /// can read, or the beginning of a selected element's text that must be collected.
    fn skip_uncollected_markup(&mut self, bytes: &[u8], at: usize) -> Result<usize> {
        let mut markup = self.markup_skipper();
        let at = markup.skip(bytes, at);
        let MarkupSkipper { open, skipped, texts, .. } = markup;
        texts.outcome?;
        if skipped.depth == 0 {
            return Ok(at);
        }
        while open.depth() > skipped.depth {
            open.pop();
        }
        open.select_innermost();
        let rules = self.queries.names.rules(self.tree.open.current().name);
        self.tree.begin_single_text(rules);
        Ok(skipped.start)
    }

    /// Adds `text`, which contains no tag, to the collected text, if text is collected at present.
    fn collect_text(&mut self, text: &[u8]) -> Result<()> {
        if !text.is_empty() && self.tree.collects_text() {
            let is_preformatted = self.tree.open.current().is(KEEPS_WHITE_SPACE);
            self.tree.text.push(text, true, is_preformatted);
            self.check_memory()?;
        }
        Ok(())
    }

    /// Reads the tag at the beginning of `bytes`, and opens or closes its element. Returns the
    /// length of the tag; 0 if only the tokenizer can read it.
    fn read_common_tag(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(head) = bytes.first_chunk::<TAG_HEAD_SIZE>() else { return Ok(0) };
        let is_end = head[1] == b'/';
        let current = self.tree.open.current();
        if is_end
            && let Some(length) = end_tag_length(head, current.name)
            && has_no_end_tag_rules(current.properties)
        {
            self.end_text_node();
            self.close_innermost()?;
            return Ok(length);
        }
        let start = 1 + usize::from(is_end);
        let word = if is_end { short_tag_name(head, 2) } else { short_tag_name(head, 1) };
        let Some((name, length)) = word else { return Ok(0) };
        let name_end = start + length;
        let rules = self.queries.names.rules(name);
        let properties = rules.properties;
        if is_end {
            if head[name_end] != b'>' {
                return Ok(0);
            }
            self.end_text_node();
            self.html_end_tag(name, properties)?;
            return Ok(name_end + 1);
        }
        if rules.needs_attributes || properties & properties::HAS_RAW_TEXT != 0 {
            return Ok(0);
        }
        let end = if head[name_end] == b'>' {
            Some(name_end + 1)
        } else {
            skip_attributes(bytes, name_end, &mut self.tree.caches.attribute_names)
        };
        let Some(end) = end else { return Ok(0) };
        self.end_text_node();
        let is_plain = self.tree.open.meets_condition(name, FastPathTagCondition::new(name, properties));
        if is_plain && !self.queries.program.may_match(rules.steps) {
            self.open_without_other_effects(name, properties, false);
        } else if is_plain && rules.text_query > 0 && self.tree.begin_single_text(rules) {
            self.open_without_other_effects(name, properties, true);
        } else {
            let bytes = &bytes[..end];
            let tag = Tag { bytes, id: name, rules, name: start..name_end, attributes: &[], is_self_closing: false };
            self.html_start_tag(&tag)?;
        }
        Ok(end)
    }

    /// Opens an element in the body. The start tag must not affect other elements. For example,
    /// `<li>` may close an earlier `<li>`, and `<td>` may need an implied `<tr>`. `properties` is
    /// the bit set of the element's properties, such as [`properties::IS_VOID`]. `is_selected` is
    /// true if the element's text is collected.
    fn open_without_other_effects(&mut self, name: TagName, properties: u32, is_selected: bool) {
        let tree = &mut *self.tree;
        if properties & properties::SEPARATES_WORDS != 0 {
            tree.text.separate_next_word();
        }
        if properties & properties::IS_VOID != 0 {
            return;
        }
        let flags = if is_selected { IS_SELECTED } else { 0 };
        tree.open.push(OpenElement::new(name, Namespace::Html, properties, flags));
    }
}

/// Returns the length in bytes of the end tag at the beginning of `head`, if it closes the
/// innermost open element. Returns `None` for any other tag, or if HTML has special rules for this
/// end tag.
#[inline(never)]
pub(super) fn innermost_end_tag_length(head: &[u8; TAG_HEAD_SIZE], open: &OpenElementStack) -> Option<usize> {
    let current = open.current();
    let has_no_rules = open.is_in_html() && has_no_end_tag_rules(current.properties);
    end_tag_length(head, current.name).filter(|_| has_no_rules)
}

/// Returns the length in bytes of the end tag `</name>` at the beginning of `head`, such as 5 for
/// `</td>`. Returns `None` for any other tag, or if the name has more than seven bytes.
fn end_tag_length(head: &[u8; TAG_HEAD_SIZE], name: TagName) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_tag_has_its_name_in_any_case() {
        for name in ["a", "h1", "Td", "TBODY", "caption"] {
            let number = TagName::new(name.as_bytes());
            let mut head = [b'x'; TAG_HEAD_SIZE];
            let tag = format!("</{name}>");
            head[..tag.len()].copy_from_slice(tag.as_bytes());
            assert_eq!(end_tag_length(&head, number), Some(tag.len()), "{name}");
            for at in 2..tag.len() {
                for byte in 0..=u8::MAX {
                    let mut other = head;
                    other[at] = byte;
                    let is_same = other[at].eq_ignore_ascii_case(&head[at]);
                    assert_eq!(end_tag_length(&other, number).is_some(), is_same, "{name}: {byte} at {at}");
                }
            }
        }
        for name in ["", "fieldset", "blockquote"] {
            assert_eq!(end_tag_length(b"</fieldset>xxxxx", TagName::new(name.as_bytes())), None);
        }
    }
}
