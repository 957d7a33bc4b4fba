//! A cache of recently read tags and attribute names. Most tags of a page equal an earlier tag, and
//! are then recognized by comparing a few words.

use super::HtmlQueries;
use super::byte_mask::{HIGHEST, ONES, WordPrefix};
use super::open_elements::{FastPathTagCondition, Namespace, OpenElement, OpenElements, StartTagQuickTest};
use super::repeated_markup::RepeatedMarkup;
use super::tag_name_and_rules::{self as properties, TagName, names};
use super::tag_parser::skip_common_attributes;
use crate::extraction::inline_memchr::find_near;

/// The number of bytes from the `<` of a tag on that the fast path examines to find the name. They
/// suffice for the longest name that the fast path accepts, and the byte after that name.
pub(super) const HEAD_SIZE: usize = 16;

/// The number of entries in [`RecentAttributeNames`] and in [`RecentTagEnds`], and of pairs of
/// entries in [`RecentTags`].
const RECENT: usize = 64;

/// The recently read parts of start tags: tag names, attribute names, and whole ends of tags (the
/// attributes and the `>`). Most tags of a page consist of such parts. A part that was read
/// recently is recognised by a single comparison, instead of byte by byte.
#[derive(Default)]
pub(super) struct RecentTagsAndAttributes {
    pub(super) tags: RecentTags,
    pub(super) attributes: RecentAttributeNames,
    pub(super) tag_ends: RecentTagEnds,
    pub(super) repeated: RepeatedMarkup,
}

/// The recently read start tags. Of each pair of entries, the first is for a tag without
/// attributes, the second for one with attributes.
pub(super) struct RecentTags([KnownTag; 2 * RECENT]);

/// The recently read names of attributes, each with the `="` after it.
pub(super) struct RecentAttributeNames([WordPrefix; RECENT]);

/// The recently read ends of start tags (all attributes and the `>`) whose first attribute begins
/// with `c`, such as `class` or `colspan`. The values of these attributes often repeat from tag to
/// tag; those of other attributes rarely do.
pub(super) struct RecentTagEnds([KnownTagEnd; RECENT]);

/// The maximum length in bytes of the end of a start tag (its attributes and the `>`) that is
/// remembered as a [`KnownTagEnd`].
const TAG_END_SIZE: usize = 32;

/// The part of a recently read start tag after its name: the attributes and the `>`. The default
/// value is an empty entry, which matches no tag.
#[derive(Clone, Copy, Default)]
struct KnownTagEnd {
    words: [u64; TAG_END_SIZE / 8],
    /// The mask for each number in `words`: 0xff for a byte of the tag's end, and 0 for an unused
    /// byte after it.
    masks: [u64; TAG_END_SIZE / 8],
    /// The length in bytes; 0 if the entry is empty.
    length: usize,
}

/// A recently read start tag: its name, and the facts that hold for all tags with this name.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct KnownTag {
    /// The name in the tag, and the byte after the name.
    start: WordPrefix,
    /// The element that the tag opens.
    pub(super) element: OpenElement,
    pub(super) quick_test: StartTagQuickTest,
    condition: FastPathTagCondition,
    /// The length in bytes of the whole tag if it has no attributes, otherwise of its `<` and name.
    pub(super) length: u8,
    pub(super) has_attributes: bool,
    pub(super) is_void: bool,
    /// True if a query may select an element with this name. The fast path reads such a tag only if
    /// a query selects the text of all elements with the name.
    pub(super) may_be_selected: bool,
}

impl Default for RecentTags {
    fn default() -> Self {
        Self([KnownTag::default(); 2 * RECENT])
    }
}

impl Default for RecentAttributeNames {
    fn default() -> Self {
        Self([WordPrefix::default(); RECENT])
    }
}

impl Default for RecentTagEnds {
    fn default() -> Self {
        Self([KnownTagEnd::default(); RECENT])
    }
}

/// Returns an index below [`RECENT`]: a hash of `start`, which is a few bytes of a tag's name, of
/// an attribute's name, or of a tag's end.
fn recent_index(start: u64) -> usize {
    (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl RecentTags {
    /// Returns the entry for the start tag that begins with `head`. Returns `None` if the tag's
    /// name does not consist of one to seven letters and digits.
    #[inline(always)]
    pub(super) fn tag(&mut self, head: &[u8; HEAD_SIZE], queries: &HtmlQueries) -> Option<&KnownTag> {
        let word = word_at(head, 1);
        let first = 2 * recent_index(word & 0xffff);
        if self.0[first].start.begins(word) {
            return Some(&self.0[first]);
        }
        let second = first + 1;
        if self.0[second].start.begins(word) {
            return Some(&self.0[second]);
        }
        self.add(first, head, queries)
    }

    #[inline(never)]
    fn add(&mut self, first: usize, head: &[u8; HEAD_SIZE], queries: &HtmlQueries) -> Option<&KnownTag> {
        let tag = KnownTag::new(head, queries)?;
        let entry = &mut self.0[first + usize::from(tag.has_attributes)];
        *entry = tag;
        Some(entry)
    }
}

impl RecentAttributeNames {
    /// Returns the length of an attribute's name and the `="` after it, if `word` begins with them
    /// and the name has one to six letters or digits. Otherwise returns `None`.
    #[inline(always)]
    fn length(&mut self, word: u64) -> Option<usize> {
        let entry = &mut self.0[recent_index(word & 0x00ff_ffff)];
        if !entry.begins(word) {
            let length = length_of_name(word);
            let is_common =
                (1..7).contains(&length) && word >> (8 * length) & 0xffff == u64::from(u16::from_le_bytes(*b"=\""));
            if !is_common {
                return None;
            }
            *entry = WordPrefix::new(word, length + 2);
        }
        Some(entry.length())
    }
}

impl RecentTagEnds {
    /// Returns the length of the start tag at the beginning of `tag`. Returns `None` if the tag is
    /// not complete, or if [`skip_attributes`] cannot read it. `from` is the length of the tag's
    /// `<` and name.
    #[inline(always)]
    pub(super) fn skip(&mut self, tag: &[u8], from: usize, recent: &mut RecentAttributeNames) -> Option<usize> {
        let text = tag.get(from..).and_then(|rest| rest.first_chunk::<TAG_END_SIZE>());
        let Some(text) = text.filter(|text| text[1] == b'c') else { return skip_attributes(tag, from, recent) };
        // Both values begin near this place.
        let index = recent_index(u64::from(u16::from_le_bytes([text[8], text[9]])));
        if self.0[index].begins(text) { Some(from + self.0[index].length) } else { self.add(index, tag, from, recent) }
    }

    #[inline(never)]
    fn add(&mut self, index: usize, tag: &[u8], from: usize, recent: &mut RecentAttributeNames) -> Option<usize> {
        let end = skip_attributes(tag, from, recent)?;
        if end - from <= TAG_END_SIZE {
            self.0[index] = KnownTagEnd::new(&tag[from..end]);
        }
        Some(end)
    }
}

impl KnownTagEnd {
    /// Makes the entry for the end of a tag, which has at most [`TAG_END_SIZE`] bytes.
    fn new(text: &[u8]) -> Self {
        let (mut words, mut masks) = ([[0; 8]; TAG_END_SIZE / 8], [[0; 8]; TAG_END_SIZE / 8]);
        words.as_flattened_mut()[..text.len()].copy_from_slice(text);
        masks.as_flattened_mut()[..text.len()].fill(0xff);
        Self { words: words.map(u64::from_le_bytes), masks: masks.map(u64::from_le_bytes), length: text.len() }
    }

    /// Returns true if `text` begins with this end of a tag.
    #[inline(always)]
    fn begins(&self, text: &[u8; TAG_END_SIZE]) -> bool {
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| text[8 * index + at]));
        let is_same = |index: usize| word(index) & self.masks[index] == self.words[index];
        (0..TAG_END_SIZE / 8).all(is_same) && self.length > 0
    }
}

impl KnownTag {
    fn new(head: &[u8; HEAD_SIZE], queries: &HtmlQueries) -> Option<Self> {
        let (name, length) = short_tag_name(head, 1)?;
        let word = word_at(head, 1);
        let known = queries.names.rules(name);
        let properties = known.properties;
        let (is_void, may_be_selected) =
            (properties & properties::IS_VOID != 0, queries.program.may_match(known.steps));
        let has_text = known.text_query > 0 && !is_void;
        let is_common =
            !known.needs_attributes && properties & properties::HAS_RAW_TEXT == 0 && (!may_be_selected || has_text);
        let condition =
            if is_common { FastPathTagCondition::new(name, properties) } else { FastPathTagCondition::Other };
        let after = 0xff << (8 * length);
        let end = word & !after | u64::from(b'>') << (8 * length);
        let mut element =
            OpenElement::with_flags_of_condition(condition, OpenElement::new(name, Namespace::Html, properties, 0));
        // Another end tag needs the tree builder.
        if has_no_end_tag_rules(properties) {
            element.end_tag = WordPrefix::new(end, length + 1);
        }
        let has_attributes = head[1 + length] != b'>';
        Some(Self {
            start: WordPrefix::new(word, length + 1),
            element,
            quick_test: StartTagQuickTest::new(condition),
            condition,
            length: (length + 1) as u8 + u8::from(!has_attributes),
            has_attributes,
            is_void,
            may_be_selected,
        })
    }

    /// Returns the effect of this start tag on the open elements, after the tag has failed its
    /// [`StartTagQuickTest`]. `Some(true)`: the tag only opens its element (or is void).
    /// `Some(false)`: the tag closes the innermost open element, an `<a>`, and opens an `<a>`
    /// instead, so that the open elements stay the same. `None`: the tag may have other effects.
    #[inline(never)]
    pub(super) fn effect_if_quick_test_fails(&self, open: &OpenElements) -> Option<bool> {
        if !open.is_in_html() {
            return None;
        }
        let opens = open.meets_condition(self.element.name, self.condition);
        let is_reopened =
            self.condition == FastPathTagCondition::Anchor && open.is_innermost(names::A) && !self.may_be_selected;
        (opens || is_reopened).then_some(opens)
    }
}

/// Returns the length of a tag whose name ends at the index `at`. Returns `None` if the tag is not
/// complete, or if it is uncertain which quotation marks enclose values (see
/// [`skip_common_attributes`]).
///
/// Most attributes have one blank before them, a short name, and a value in double quotation marks.
/// The names of such attributes are looked up in `recent`.
#[inline(never)]
pub(super) fn skip_attributes(bytes: &[u8], mut at: usize, recent: &mut RecentAttributeNames) -> Option<usize> {
    while let Some([b' ', start @ ..]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<9>()) {
        let Some(length) = recent.length(u64::from_le_bytes(*start)) else { break };
        let value = at + 1 + length;
        at = value + find_near(b'"', bytes.get(value..)?)? + 1;
    }
    if bytes.get(at) == Some(&b'>') { Some(at + 1) } else { skip_common_attributes(bytes, at) }
}

/// Returns the number of bytes in `word` before the first byte that ends an attribute's name: a
/// byte of at most 0x2f (`/`), or one from 0x3c (`<`) to 0x3f (`?`). The first byte of `word` is in
/// its lowest bits. Returns 8 if no byte ends the name.
fn length_of_name(word: u64) -> usize {
    let up_to_slash = !(((word & !HIGHEST) + 0x50 * ONES) | word) & HIGHEST;
    let differences = (word | (3 * ONES)) ^ (0x3f * ONES);
    // The lowest bit is that of the first byte without a difference.
    let brackets = differences.wrapping_sub(ONES) & !differences & HIGHEST;
    (up_to_slash | brackets).trailing_zeros() as usize / 8
}

/// Returns a tag's name, which begins at the index `start` of `head` (the first bytes of the tag),
/// and the number of bytes of the name. The name ends before the first byte that is not a letter or
/// a digit. Returns `None` if the name is empty, begins with a digit, or has more than seven bytes.
pub(super) fn short_tag_name(head: &[u8; HEAD_SIZE], start: usize) -> Option<(TagName, usize)> {
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

/// Returns true if no special rules apply to the end tag of an element that is in the body and is
/// the innermost open element. `properties` is the bit set of the properties of the element's name.
pub(super) fn has_no_end_tag_rules(properties: u32) -> bool {
    // `</p>` and `</li>` are no exceptions in the body.
    properties & (properties::HAS_END_TAG_RULES | properties::HAS_IMPLIED_END_TAG) != properties::HAS_END_TAG_RULES
}

/// Returns the eight bytes of `head` from the index `at` on as a number, with the first byte in the
/// lowest bits.
#[inline(always)]
pub(super) fn word_at(head: &[u8; HEAD_SIZE], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| head[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tag_names_are_letters_and_digits() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut head = *b"<abcdefg>.......";
                head[1 + at] = byte;
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric();
                let length = head[1..].iter().take_while(is_part).count();
                let expected = (length > 0 && length < 8 && !head[1].is_ascii_digit())
                    .then(|| (TagName::new(&head[1..=length]), length));
                assert_eq!(short_tag_name(&head, 1), expected, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn recent_tags_tell_names_and_attributes_apart() {
        let query = crate::extraction::css::CssQuery::new("td").unwrap();
        let queries = HtmlQueries::new(&[query]).unwrap();
        let mut recent = RecentTags::default();
        let names = ["td", "tr", "th", "thead", "TD", "div", "dir", "span", "a", "b", "section", "s", "h1", "h2"];
        let ends = [">", " class=\"x\">", "\nid=y>", "/>"];
        for round in 0..1000 {
            let (name, end) = (names[round * 5 % names.len()], ends[round * round % ends.len()]);
            let mut head = *b"................";
            let tag = format!("<{name}{end}");
            let length = tag.len().min(HEAD_SIZE);
            head[..length].copy_from_slice(&tag.as_bytes()[..length]);
            let known = recent.tag(&head, &queries).unwrap();
            assert!(known.element.name == TagName::new(name.as_bytes()), "{tag}");
            assert_eq!(known.has_attributes, end != ">", "{tag}");
            assert_eq!(usize::from(known.length), name.len() + 1 + usize::from(end == ">"), "{tag}");
            assert_eq!(known.may_be_selected, name.eq_ignore_ascii_case("td"), "{tag}");
        }
        assert!(recent.tag(b"<section-x>.....", &queries).is_some_and(|tag| tag.has_attributes), "skipped later");
        assert!(recent.tag(b"<sections>......", &queries).is_none());
    }

    #[test]
    fn repeated_tag_end_matches_itself_only() {
        let (mut repeated, mut recent) = (RecentTagEnds::default(), RecentAttributeNames::default());
        for length in 0..40 {
            let tag = format!("<td class=\"{}\">text of the cell and more text </td>", "x".repeat(length));
            for _ in 0..2 {
                assert_eq!(repeated.skip(tag.as_bytes(), 3, &mut recent), Some(13 + length), "{tag}");
            }
            for at in 4..13 + length {
                for byte in *b">\" xc" {
                    let mut other = tag.clone().into_bytes();
                    other[at] = byte;
                    let expected = skip_attributes(&other, 3, &mut RecentAttributeNames::default());
                    assert_eq!(repeated.skip(&other, 3, &mut recent), expected, "{}", other.escape_ascii());
                    assert_eq!(repeated.skip(tag.as_bytes(), 3, &mut recent), Some(13 + length), "{tag}");
                }
            }
        }
    }
}
