//! Caches of start tags, attribute names and attribute lists. Most tags of a page equal an earlier
//! tag, and are recognized by comparing a few 64-bit words instead of byte by byte.

use super::HtmlQueries;
use super::byte_mask::{HIGHEST, ONES, WordPrefix};
use super::markup_automaton::MarkupAutomaton;
use super::open_element_stack::{FastPathTagCondition, Namespace, OpenElement, OpenElementStack, StartTagQuickTest};
use super::tag_name_and_rules::{self as properties, TagName, names};
use super::tag_parser::skip_common_attributes;
use crate::extraction::inline_memchr::find_near;

/// The number of bytes, from the `<` of a tag on, that the fast path reads to find the tag's name:
/// `</`, a name of at most 7 bytes, the byte after it, and padding to 16.
pub(super) const TAG_HEAD_SIZE: usize = 16;

/// The number of entries in [`AttributeNameCache`] and in [`AttributeListCache`], and of pairs of
/// entries in [`StartTagCache`].
const CACHE_SIZE: usize = 64;

/// The caches of a search for markup that repeats: start tags, attribute names, and attribute
/// lists, and the automaton that compares several tags at once.
#[derive(Default)]
pub(super) struct MarkupCaches {
    pub(super) start_tags: StartTagCache,
    pub(super) attribute_names: AttributeNameCache,
    pub(super) attribute_lists: AttributeListCache,
    pub(super) automaton: MarkupAutomaton,
}

/// A cache of recently read start tags, such as `<td` and `<td>`. Of each pair of entries, the
/// first is for a tag without attributes, the second for one with attributes.
pub(super) struct StartTagCache([CachedStartTag; 2 * CACHE_SIZE]);

/// A cache of recently read attribute names, each with the `="` after it, such as `href="`.
pub(super) struct AttributeNameCache([WordPrefix; CACHE_SIZE]);

/// A cache of recently read attribute lists, each with the `>` after it, such as ` class="odd">`.
/// Only lists whose first name begins with `c`, such as `class` or `colspan`, are cached: their
/// values often repeat from tag to tag.
pub(super) struct AttributeListCache([CachedAttributeList; CACHE_SIZE]);

/// The maximum length in bytes of an attribute list that is cached as a [`CachedAttributeList`],
/// with the `>` after it.
const MAX_CACHED_LIST_SIZE: usize = 32;

/// An entry of the [`AttributeListCache`]: the bytes of a start tag after its name, up to and
/// including the `>`. The default value matches no tag.
#[derive(Clone, Copy, Default)]
struct CachedAttributeList {
    /// The bytes as little-endian words. Unused bytes are 0.
    words: [u64; MAX_CACHED_LIST_SIZE / 8],
    /// A mask for `words`: 0xff for each byte of the list, and 0 for each unused byte.
    masks: [u64; MAX_CACHED_LIST_SIZE / 8],
    /// The length in bytes; 0 if the entry is empty.
    length: usize,
}

/// An entry of the [`StartTagCache`]: the name of a start tag, and the facts that hold for all
/// start tags with this name.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct CachedStartTag {
    /// The bytes of the name as in the tag, and the byte after the name.
    start: WordPrefix,
    /// The element that the tag opens.
    pub(super) element: OpenElement,
    pub(super) quick_test: StartTagQuickTest,
    condition: FastPathTagCondition,
    /// The length in bytes of the whole tag if it has no attributes, otherwise of its `<` and name.
    pub(super) length: u8,
    pub(super) has_attributes: bool,
    pub(super) is_void: bool,
    /// True if a query may select an element with this name.
    /// [`MarkupSkipper`](super::markup_skipper::MarkupSkipper) then reads the tag only if a single
    /// query matches the name, and selects the text of all elements with it.
    pub(super) may_be_selected: bool,
}

impl Default for StartTagCache {
    fn default() -> Self {
        Self([CachedStartTag::default(); 2 * CACHE_SIZE])
    }
}

impl Default for AttributeNameCache {
    fn default() -> Self {
        Self([WordPrefix::default(); CACHE_SIZE])
    }
}

impl Default for AttributeListCache {
    fn default() -> Self {
        Self([CachedAttributeList::default(); CACHE_SIZE])
    }
}

/// Returns the index of a cache entry, below [`CACHE_SIZE`]. It is a hash of `start`, which is a
/// few bytes of a tag or of an attribute's name.
fn cache_index(start: u64) -> usize {
    (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl StartTagCache {
    /// Returns the entry for the start tag that begins with `head`, and adds it if it is new.
    /// Returns `None` if the tag's name does not consist of one to seven letters and digits.
    #[inline(always)]
    pub(super) fn tag(&mut self, head: &[u8; TAG_HEAD_SIZE], queries: &HtmlQueries) -> Option<&CachedStartTag> {
        let word = word_at(head, 1);
        let first = 2 * cache_index(word & 0xffff);
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
    fn add(&mut self, first: usize, head: &[u8; TAG_HEAD_SIZE], queries: &HtmlQueries) -> Option<&CachedStartTag> {
        let tag = CachedStartTag::new(head, queries)?;
        let entry = &mut self.0[first + usize::from(tag.has_attributes)];
        *entry = tag;
        Some(entry)
    }
}

impl AttributeNameCache {
    /// Returns the length of the attribute's name and the `="` after it at the beginning of `word`,
    /// such as 6 for `href="`. Returns `None` if the name does not consist of one to six letters or
    /// digits, or if no `="` follows.
    #[inline(always)]
    fn length(&mut self, word: u64) -> Option<usize> {
        let entry = &mut self.0[cache_index(word & 0x00ff_ffff)];
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

impl AttributeListCache {
    /// Returns the length in bytes of the start tag at the beginning of `tag`. `from` is the length
    /// of its `<` and name. Returns `None` if the tag is not complete, or if [`skip_attributes`]
    /// cannot read it.
    #[inline(always)]
    pub(super) fn skip(&mut self, tag: &[u8], from: usize, names: &mut AttributeNameCache) -> Option<usize> {
        let text = tag.get(from..).and_then(|rest| rest.first_chunk::<MAX_CACHED_LIST_SIZE>());
        let Some(text) = text.filter(|text| text[1] == b'c') else { return skip_attributes(tag, from, names) };
        // Both values begin near this place.
        let index = cache_index(u64::from(u16::from_le_bytes([text[8], text[9]])));
        if self.0[index].matches(text) { Some(from + self.0[index].length) } else { self.add(index, tag, from, names) }
    }

    #[inline(never)]
    fn add(&mut self, index: usize, tag: &[u8], from: usize, names: &mut AttributeNameCache) -> Option<usize> {
        let end = skip_attributes(tag, from, names)?;
        if end - from <= MAX_CACHED_LIST_SIZE {
            self.0[index] = CachedAttributeList::new(&tag[from..end]);
        }
        Some(end)
    }
}

impl CachedAttributeList {
    /// Makes the entry for an attribute list and its `>`, which have at most
    /// [`MAX_CACHED_LIST_SIZE`] bytes.
    fn new(text: &[u8]) -> Self {
        let (mut words, mut masks) = ([[0; 8]; MAX_CACHED_LIST_SIZE / 8], [[0; 8]; MAX_CACHED_LIST_SIZE / 8]);
        words.as_flattened_mut()[..text.len()].copy_from_slice(text);
        masks.as_flattened_mut()[..text.len()].fill(0xff);
        Self { words: words.map(u64::from_le_bytes), masks: masks.map(u64::from_le_bytes), length: text.len() }
    }

    /// Returns true if `text` begins with this attribute list.
    #[inline(always)]
    fn matches(&self, text: &[u8; MAX_CACHED_LIST_SIZE]) -> bool {
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| text[8 * index + at]));
        let is_same = |index: usize| word(index) & self.masks[index] == self.words[index];
        (0..MAX_CACHED_LIST_SIZE / 8).all(is_same) && self.length > 0
    }
}

impl CachedStartTag {
    fn new(head: &[u8; TAG_HEAD_SIZE], queries: &HtmlQueries) -> Option<Self> {
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

    /// Returns the effect that this start tag, which has failed its [`StartTagQuickTest`], has on
    /// the stack of open elements:
    /// * `Some(true)`: the tag only opens its element. (A void element is not kept open.)
    /// * `Some(false)`: the stack stays the same. The tag is an `<a>` directly inside another
    ///   `<a>`, which the tag closes and replaces.
    /// * `None`: the tag may have other effects.
    #[inline(never)]
    pub(super) fn effect_if_quick_test_fails(&self, open: &OpenElementStack) -> Option<bool> {
        if !open.is_in_html() {
            return None;
        }
        let opens = open.meets_condition(self.element.name, self.condition);
        let is_reopened =
            self.condition == FastPathTagCondition::Anchor && open.is_innermost(names::A) && !self.may_be_selected;
        (opens || is_reopened).then_some(opens)
    }
}

/// Returns the index in `bytes` after the `>` of a tag whose name ends at the index `at`. Returns
/// `None` if the tag is not complete, or if [`skip_common_attributes`] cannot tell which quotation
/// marks enclose values.
///
/// Most attributes have one blank before them, a short name, and a value in double quotation marks.
/// The names of such attributes are looked up in `names`.
#[inline(never)]
pub(super) fn skip_attributes(bytes: &[u8], mut at: usize, names: &mut AttributeNameCache) -> Option<usize> {
    while let Some([b' ', start @ ..]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<9>()) {
        let Some(length) = names.length(u64::from_le_bytes(*start)) else { break };
        let value = at + 1 + length;
        at = value + find_near(b'"', bytes.get(value..)?)? + 1;
    }
    if bytes.get(at) == Some(&b'>') { Some(at + 1) } else { skip_common_attributes(bytes, at) }
}

/// Returns the length in bytes of the attribute's name at the beginning of `word`. The first byte
/// of `word` is in its lowest bits. A byte of at most 0x2f (`/`), or from 0x3c (`<`) to 0x3f (`?`),
/// ends the name. Returns 8 if no byte of `word` ends the name.
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
pub(super) fn short_tag_name(head: &[u8; TAG_HEAD_SIZE], start: usize) -> Option<(TagName, usize)> {
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

/// Returns true if the end tag of the innermost open element simply closes that element: HTML has
/// no special rules for it in the body. `properties` is the bit set of the element's properties
/// ([`properties::IS_VOID`] and so on).
pub(super) fn has_no_end_tag_rules(properties: u32) -> bool {
    // `</p>` and `</li>` are no exceptions in the body.
    properties & (properties::HAS_END_TAG_RULES | properties::HAS_IMPLIED_END_TAG) != properties::HAS_END_TAG_RULES
}

/// Returns the eight bytes of `head` from the index `at` on as a number, with the first byte in the
/// lowest bits.
#[inline(always)]
pub(super) fn word_at(head: &[u8; TAG_HEAD_SIZE], at: usize) -> u64 {
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
    fn start_tag_cache_distinguishes_names_and_attributes() {
        let query = crate::extraction::css::CssQuery::new("td").unwrap();
        let queries = HtmlQueries::new(&[query]).unwrap();
        let mut cache = StartTagCache::default();
        let names = ["td", "tr", "th", "thead", "TD", "div", "dir", "span", "a", "b", "section", "s", "h1", "h2"];
        let ends = [">", " class=\"x\">", "\nid=y>", "/>"];
        for round in 0..1000 {
            let (name, end) = (names[round * 5 % names.len()], ends[round * round % ends.len()]);
            let mut head = *b"................";
            let tag = format!("<{name}{end}");
            let length = tag.len().min(TAG_HEAD_SIZE);
            head[..length].copy_from_slice(&tag.as_bytes()[..length]);
            let known = cache.tag(&head, &queries).unwrap();
            assert!(known.element.name == TagName::new(name.as_bytes()), "{tag}");
            assert_eq!(known.has_attributes, end != ">", "{tag}");
            assert_eq!(usize::from(known.length), name.len() + 1 + usize::from(end == ">"), "{tag}");
            assert_eq!(known.may_be_selected, name.eq_ignore_ascii_case("td"), "{tag}");
        }
        assert!(cache.tag(b"<section-x>.....", &queries).is_some_and(|tag| tag.has_attributes), "skipped later");
        assert!(cache.tag(b"<sections>......", &queries).is_none());
    }

    #[test]
    fn cached_attribute_list_matches_itself_only() {
        let (mut lists, mut names) = (AttributeListCache::default(), AttributeNameCache::default());
        for length in 0..40 {
            let tag = format!("<td class=\"{}\">text of the cell and more text </td>", "x".repeat(length));
            for _ in 0..2 {
                assert_eq!(lists.skip(tag.as_bytes(), 3, &mut names), Some(13 + length), "{tag}");
            }
            for at in 4..13 + length {
                for byte in *b">\" xc" {
                    let mut other = tag.clone().into_bytes();
                    other[at] = byte;
                    let expected = skip_attributes(&other, 3, &mut AttributeNameCache::default());
                    assert_eq!(lists.skip(&other, 3, &mut names), expected, "{}", other.escape_ascii());
                    assert_eq!(lists.skip(tag.as_bytes(), 3, &mut names), Some(13 + length), "{tag}");
                }
            }
        }
    }
}
