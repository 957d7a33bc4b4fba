//! The fast path through common markup: text and tags in the body of an HTML page whose attributes
//! no query needs. It has no states and makes no tokens, but opens and closes the same elements as
//! the tokenizer and the tree builder. All other markup is left to them.
//!
//! While no text is collected, a tag only changes the stack of open elements. That is also so in
//! the text of a selected element whose values are filtered, as long as the filter cannot match in
//! it. If it can, or if anything unusual comes before the element's end, its text is read again and
//! collected.

use super::HtmlQueries;
use super::byte_mask::{HIGHEST, ONES, WordPrefix};
use super::open_elements::{
    IS_SELECTED, KEEPS_BLANKS, Namespace, OpenElement, OpenElements, StartTagRules, UsualPlace,
};
use super::page_parser_state::{InsertionMode, TreeBuilder};
use super::tag_name_and_rules::{self as properties, TagName, names};
use super::tag_parser::{Tag, skip_common_attributes};
use crate::Result;
use crate::extraction::near_bytes::find_near;

/// The number of bytes, from the `<` of a tag on, in which the fast path looks for the tag's name.
/// Each name that the fast path accepts fits into them, together with the byte after it.
const HEAD_SIZE: usize = 16;

/// A selected element whose text is skipped, because a test shows that it probably contains no
/// match of the filter.
struct SkippedTextElement {
    /// The index of the first byte after the element's start tag.
    start: usize,
    /// The depth of the element among the open elements, or 0 if no element is skipped.
    depth: usize,
}

/// The number of entries in each table of [`RecentNames`]: names of start tags, and names of
/// attributes.
const RECENT: usize = 64;

/// The names of start tags and attributes that were last read, so that most names need one
/// comparison.
#[derive(Default)]
pub(super) struct RecentNames {
    tags: RecentTags,
    attributes: RecentAttributes,
    repeated: RepeatedAttributes,
}

/// The start tags that were last read, in pairs: the first one of a pair has no attributes, the
/// second one has.
struct RecentTags([KnownTag; 2 * RECENT]);

/// The names of attributes that were last read, with `="` after them.
struct RecentAttributes([WordPrefix; RECENT]);

/// The ends of start tags that were last read, from a first attribute `class` or `colspan` on.
/// These attributes often have the same values as in earlier tags, others rarely have.
struct RepeatedAttributes([KnownTagEnd; RECENT]);

/// The maximum length of a [`KnownTagEnd`].
const TAG_END_SIZE: usize = 32;

/// The attributes and the `>` of a start tag. The default value is the end of no tag.
#[derive(Clone, Copy, Default)]
struct KnownTagEnd {
    words: [u64; TAG_END_SIZE / 8],
    /// The bits of the words that belong to the tag.
    masks: [u64; TAG_END_SIZE / 8],
    /// The length, or 0 if the end is not known.
    length: usize,
}

/// The name of a start tag, and what is known of all tags with this name.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct KnownTag {
    /// The first bytes of the tag: the name and the byte after it.
    start: WordPrefix,
    /// The description of the element that a tag with this name opens.
    element: OpenElement,
    place: UsualPlace,
    rules: StartTagRules,
    /// The length of the tag, or if it has attributes, of its `<` and name.
    length: u8,
    has_attributes: bool,
    is_void: bool,
    /// True if a query may select elements with this name.
    is_selected: bool,
}

impl Default for RecentTags {
    fn default() -> Self {
        Self([KnownTag::default(); 2 * RECENT])
    }
}

impl Default for RecentAttributes {
    fn default() -> Self {
        Self([WordPrefix::default(); RECENT])
    }
}

impl Default for RepeatedAttributes {
    fn default() -> Self {
        Self([KnownTagEnd::default(); RECENT])
    }
}

/// Returns a number below [`RECENT`] that is often different for different values of `start`.
fn recent_index(start: u64) -> usize {
    (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl RecentTags {
    /// Returns the start tag with this head, if its name has one to seven letters and digits.
    #[inline(always)]
    fn tag(&mut self, head: &[u8; HEAD_SIZE], queries: &HtmlQueries) -> Option<&KnownTag> {
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

impl RecentAttributes {
    /// Returns the length of an attribute's name and `="`, if `word` begins with a name of one to
    /// six letters and digits, and with these.
    #[inline(always)]
    fn length(&mut self, word: u64) -> Option<usize> {
        let entry = &mut self.0[recent_index(word & 0x00ff_ffff)];
        if !entry.begins(word) {
            let length = length_of_name(word);
            let is_usual =
                (1..7).contains(&length) && word >> (8 * length) & 0xffff == u64::from(u16::from_le_bytes(*b"=\""));
            if !is_usual {
                return None;
            }
            *entry = WordPrefix::new(word, length + 2);
        }
        Some(entry.length())
    }
}

impl RepeatedAttributes {
    /// Returns the length of a start tag at the beginning of `tag`, as [`skip_attributes`] does.
    /// `from` is the length of its `<` and name.
    #[inline(always)]
    fn skip(&mut self, tag: &[u8], from: usize, recent: &mut RecentAttributes) -> Option<usize> {
        let Some(text) = tag.get(from..).and_then(|rest| rest.first_chunk::<TAG_END_SIZE>()) else {
            return skip_attributes(tag, from, recent);
        };
        if text[1] != b'c' {
            return skip_attributes(tag, from, recent);
        }
        // Both values begin near this place.
        let index = recent_index(u64::from(u16::from_le_bytes([text[8], text[9]])));
        if self.0[index].begins(text) { Some(from + self.0[index].length) } else { self.add(index, tag, from, recent) }
    }

    #[inline(never)]
    fn add(&mut self, index: usize, tag: &[u8], from: usize, recent: &mut RecentAttributes) -> Option<usize> {
        let end = skip_attributes(tag, from, recent)?;
        if end - from <= TAG_END_SIZE {
            self.0[index] = KnownTagEnd::new(&tag[from..end]);
        }
        Some(end)
    }
}

impl KnownTagEnd {
    /// Makes the known end of a tag, of at most [`TAG_END_SIZE`] bytes.
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
        let (name, length) = usual_name(head, 1)?;
        let word = word_at(head, 1);
        let known = queries.names.rules(name);
        let bits = known.properties;
        let (is_void, is_selected) = (bits & properties::IS_VOID != 0, queries.program.may_match(known.steps));
        let has_text = known.text_query > 0 && !is_void;
        let is_usual = !known.needs_attributes && bits & properties::HAS_RAW_TEXT == 0 && (!is_selected || has_text);
        let rules = if is_usual { StartTagRules::new(name, bits) } else { StartTagRules::Other };
        let after = 0xff << (8 * length);
        let end = word & !after | u64::from(b'>') << (8 * length);
        let mut element = OpenElement::in_place_of(rules, OpenElement::new(name, Namespace::Html, bits, 0));
        // Another end tag needs the tree builder.
        if has_usual_end_tag(bits) {
            element.end_tag = WordPrefix::new(end, length + 1);
        }
        let has_attributes = head[1 + length] != b'>';
        Some(Self {
            start: WordPrefix::new(word, length + 1),
            element,
            place: UsualPlace::new(rules),
            rules,
            length: (length + 1) as u8 + u8::from(!has_attributes),
            has_attributes,
            is_void,
            is_selected,
        })
    }

    /// Returns true if the tag opens an element, unless the element is void, and false if it closes
    /// an innermost `<a>` and opens another one like it. Returns `None` if it does more than that.
    #[inline(never)]
    fn opens_in_unusual_place(&self, open: &OpenElements) -> Option<bool> {
        if !open.is_in_html() {
            return None;
        }
        let opens = open.takes_without_rules(self.element.name, self.rules);
        let is_reopened = self.rules == StartTagRules::Anchor && open.is_innermost(names::A) && !self.is_selected;
        (opens || is_reopened).then_some(opens)
    }
}

impl TreeBuilder<'_, '_> {
    /// Reads common markup at the beginning of `bytes`, where text and tags may begin. Returns the
    /// number of bytes read; the rest is left to the tokenizer.
    pub(super) fn read_usual(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while self.is_in_html_body() {
            if self.collects_nothing() {
                at = self.skip_uncollected(bytes, at);
                if !self.is_in_html_body() {
                    break;
                }
            }
            let Some(length) = find_near(b'<', &bytes[at..]) else { break };
            self.usual_text(&bytes[at..at + length])?;
            at += length;
            match self.read_usual_tag(&bytes[at..])? {
                0 => break,
                length => at += length,
            }
        }
        Ok(at)
    }

    fn is_in_html_body(&self) -> bool {
        self.tree.part == InsertionMode::Body && self.tree.open.is_in_html()
    }

    /// Returns true if no text is collected at present, and if it depends only on the start tag
    /// whether an element is selected.
    fn collects_nothing(&self) -> bool {
        self.tree.collects_nothing() && self.queries.program.is_stateless()
    }

    /// Skips common markup from the index `at` on that only opens and closes elements. Returns the
    /// index after it. There, a tag begins that must be read in another way, or the text of a
    /// selected element begins that must be collected.
    fn skip_uncollected(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let Self { tree, queries, .. } = self;
        let (open, hits, recent) = tree.parts();
        let mut skipped = SkippedTextElement { start: 0, depth: 0 };
        while let Some(rest) = bytes.get(at..)
            && let Some(head) = rest.first_chunk::<HEAD_SIZE>()
        {
            // Most tags follow another tag.
            if head[0] != b'<' {
                let next = match hits {
                    Some(hits) if skipped.depth > 0 => hits.skip_text(bytes, at),
                    _ => find_near(b'<', rest).map(|length| at + length),
                };
                let Some(next) = next else { break };
                at = next;
                continue;
            }
            if head[1] == b'/' {
                let end_tag = open.current().end_tag;
                let length = if end_tag.begins(word_at(head, 2)) {
                    end_tag.length() + 2
                } else {
                    match end_of_innermost(head, open) {
                        Some(length) => length,
                        None => break,
                    }
                };
                if skipped.depth == open.depth() {
                    skipped.depth = 0;
                }
                open.pop_innermost();
                at += length;
                continue;
            }
            let Some(tag) = recent.tags.tag(head, queries) else { break };
            if tag.is_selected && (hits.is_none() || skipped.depth > 0) {
                break;
            }
            let opens = if open.is_usual_place(tag.place) {
                true
            } else {
                match tag.opens_in_unusual_place(open) {
                    Some(opens) => opens,
                    None => break,
                }
            };
            at += if tag.has_attributes {
                match recent.repeated.skip(rest, usize::from(tag.length), &mut recent.attributes) {
                    Some(end) => end,
                    None => break,
                }
            } else {
                usize::from(tag.length)
            };
            if opens && !tag.is_void {
                open.push_in_place(&tag.element);
            }
            if tag.is_selected {
                skipped = SkippedTextElement { start: at, depth: open.depth() };
            }
        }
        if skipped.depth == 0 {
            return at;
        }
        while open.depth() > skipped.depth {
            open.pop();
        }
        open.select_innermost();
        let rules = queries.names.rules(open.current().name);
        tree.begin_only_text(rules);
        skipped.start
    }

    /// Adds text up to the next tag to the collected text, if text is collected.
    fn usual_text(&mut self, text: &[u8]) -> Result<()> {
        if !text.is_empty() && self.tree.collects_text() {
            let is_preformatted = self.tree.open.current().is(KEEPS_BLANKS);
            self.tree.text.push(text, true, is_preformatted);
            self.check_memory()?;
        }
        Ok(())
    }

    /// Reads a tag at the beginning of `bytes` by the fast path, and opens or closes its element.
    /// Returns the length of the tag, or 0 if the fast path cannot read this tag.
    fn read_usual_tag(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(head) = bytes.first_chunk::<HEAD_SIZE>() else { return Ok(0) };
        let is_end = head[1] == b'/';
        let current = self.tree.open.current();
        if is_end
            && let Some(length) = end_of_end_tag(head, current.name)
            && has_usual_end_tag(current.properties)
        {
            self.end_run();
            self.close_innermost()?;
            return Ok(length);
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
        let end = if head[name_end] == b'>' {
            Some(name_end + 1)
        } else {
            skip_attributes(bytes, name_end, &mut self.tree.recent.attributes)
        };
        let Some(end) = end else { return Ok(0) };
        self.end_run();
        let is_plain = self.tree.open.takes_without_rules(name, StartTagRules::new(name, bits));
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

    /// Opens an element in the body that closes and opens no other element. `is_selected` is true
    /// if its text is collected.
    fn open_plain(&mut self, name: TagName, properties: u32, is_selected: bool) {
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

/// Returns true if an end tag simply closes the innermost open element, provided that both have the
/// same name. `bits` are the properties of the element, which is in the body.
fn has_usual_end_tag(bits: u32) -> bool {
    // `</p>` and `</li>` are no exceptions in the body.
    bits & (properties::HAS_END_TAG_RULES | properties::HAS_IMPLIED_END_TAG) != properties::HAS_END_TAG_RULES
}

/// Returns the length of the tag in `bytes` whose name ends at the index `at`. Returns `None` in
/// the same cases as [`skip_common_attributes`].
///
/// Most attributes have one blank before them, a short name, and a value in double quotation marks.
/// Their names are compared with those of earlier attributes.
#[inline(never)]
fn skip_attributes(bytes: &[u8], mut at: usize, recent: &mut RecentAttributes) -> Option<usize> {
    while let Some([b' ', start @ ..]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<9>()) {
        let Some(length) = recent.length(u64::from_le_bytes(*start)) else { break };
        let value = at + 1 + length;
        at = value + find_near(b'"', bytes.get(value..)?)? + 1;
    }
    if bytes.get(at) == Some(&b'>') { Some(at + 1) } else { skip_common_attributes(bytes, at) }
}

/// Returns the length of the name at the beginning of `word`, which contains eight bytes. The name
/// ends before the first byte that is at most `/`, or from `<` to `?`. The result is 8 if there is
/// no such byte.
fn length_of_name(word: u64) -> usize {
    let up_to_slash = !(((word & !HIGHEST) + 0x50 * ONES) | word) & HIGHEST;
    let differences = (word | (3 * ONES)) ^ (0x3f * ONES);
    // The lowest bit is that of the first byte without a difference.
    let brackets = differences.wrapping_sub(ONES) & !differences & HIGHEST;
    (up_to_slash | brackets).trailing_zeros() as usize / 8
}

/// Returns the name of the tag whose name begins at the index `start`, and the length of the name.
/// Returns `None` if the name does not have one to seven letters and digits.
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

/// Returns the length of the end tag of the innermost element at the beginning of `head`. Returns
/// `None` if there is another tag, or if the element's end tag has special rules.
#[inline(never)]
fn end_of_innermost(head: &[u8; HEAD_SIZE], open: &OpenElements) -> Option<usize> {
    let current = open.current();
    let is_usual = open.is_in_html() && has_usual_end_tag(current.properties);
    end_of_end_tag(head, current.name).filter(|_| is_usual)
}

/// Returns the length of the end tag `</name>` at the beginning of `head`. Returns `None` if there
/// is another tag, or if the name has more than seven bytes.
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
            assert_eq!(known.is_selected, name.eq_ignore_ascii_case("td"), "{tag}");
        }
        assert!(recent.tag(b"<section-x>.....", &queries).is_some_and(|tag| tag.has_attributes), "skipped later");
        assert!(recent.tag(b"<sections>......", &queries).is_none());
    }

    #[test]
    fn repeated_tag_end_matches_itself_only() {
        let (mut repeated, mut recent) = (RepeatedAttributes::default(), RecentAttributes::default());
        for length in 0..40 {
            let tag = format!("<td class=\"{}\">text of the cell and more text </td>", "x".repeat(length));
            for _ in 0..2 {
                assert_eq!(repeated.skip(tag.as_bytes(), 3, &mut recent), Some(13 + length), "{tag}");
            }
            for at in 4..13 + length {
                for byte in *b">\" xc" {
                    let mut other = tag.clone().into_bytes();
                    other[at] = byte;
                    let expected = skip_attributes(&other, 3, &mut RecentAttributes::default());
                    assert_eq!(repeated.skip(&other, 3, &mut recent), expected, "{}", other.escape_ascii());
                    assert_eq!(repeated.skip(tag.as_bytes(), 3, &mut recent), Some(13 + length), "{tag}");
                }
            }
        }
    }

    #[test]
    fn word_start_has_its_first_bytes() {
        let word = u64::from_le_bytes(*b"abcdefgh");
        for length in 1..=8 {
            let start = WordPrefix::new(word, length);
            assert_eq!(start.length(), length);
            for at in 0..8 {
                assert_eq!(start.begins(word ^ 1 << (8 * at)), at >= length);
            }
        }
        assert!(!WordPrefix::default().begins(0));
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
