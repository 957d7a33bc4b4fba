//! The fast path through markup whose text is not collected. In such markup, a tag only changes the
//! stack of open elements.

use std::ops::Range;

use super::HtmlQueries;
use super::common_markup_fast_path::end_of_innermost;
use super::open_elements::{KEEPS_BLANKS, OpenElement, OpenElements};
use super::recognized_tag_cache::{HEAD_SIZE, RecentTagsAndAttributes, word_at};
use super::repeated_markup::{
    CollectElementResult, GapAfterRun, KnownMarkupCursor, MarkupRun, PlaceKind, RUN_SIZE, RepeatedMarkup,
    RunTextEffect, SelectedTextCollector,
};
use super::tag_name_and_rules::{self as properties, TagName};
use super::tag_parser::is_space;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::prefilter::HitAcrossMarkupTest;

/// The number of tags that [`UncollectedMarkup::skip`] reads one by one before it compares larger
/// pieces of markup by the [`RepeatedMarkup`] automaton. For fewer tags, the automaton would cost
/// more than it saves.
const TAGS_BEFORE_AUTOMATON: usize = 3;

/// The maximum length in bytes of white space between two tags of a run ([`MarkupRun`]: a piece of
/// markup that repeats byte for byte). Longer white space ends the run.
const LONGEST_SPACE: usize = 16;

/// The maximum length in bytes of an attribute's value in a run ([`MarkupRun`]: a piece of markup
/// that repeats byte for byte). A longer value ends the run.
const LONGEST_CONSTANT_VALUE: usize = 24;

/// The attributes whose values are often the same in many tags.
const CONSTANT_ATTRIBUTES: [&[u8]; 12] = [
    b"align", b"class", b"colspan", b"height", b"rel", b"role", b"rowspan", b"scope", b"style", b"type", b"valign",
    b"width",
];

/// An element whose text a query selects, but whose text is skipped, because the regular expression
/// that filters the values probably has no match in it.
#[derive(Clone, Copy)]
pub(super) struct SkippedSelectedElement {
    /// The index of the first byte after the element's start tag.
    pub(super) start: usize,
    /// The depth of the element among the open elements, or 0 if no element is skipped.
    pub(super) depth: usize,
}

/// The fast path through markup while no text must be collected for a query. It only keeps track of
/// the open elements.
pub(super) struct UncollectedMarkup<'a, 'f> {
    pub(super) open: &'a mut OpenElements,
    /// The test that finds text in which the filter of the query (a regular expression) may match.
    /// Only such text is collected. `None` if all text of selected elements is collected.
    pub(super) hits: Option<&'a HitAcrossMarkupTest>,
    pub(super) recent: &'a mut RecentTagsAndAttributes,
    pub(super) queries: &'a HtmlQueries,
    pub(super) texts: SelectedTextCollector<'a, 'f>,
    pub(super) skipped: SkippedSelectedElement,
}

/// A tag that was read: its end, and its effect on the open elements.
struct ReadTag {
    /// The index after the tag.
    end: usize,
    change: StackChange,
    /// The length in bytes of the `<` and the name of a start tag with attributes, otherwise 0.
    attributes_start: usize,
    /// The properties of the element, a bit set of constants such as
    /// [`IS_VOID`](properties::IS_VOID).
    properties: u32,
}

/// The effect of a tag on the open elements.
enum StackChange {
    Nothing,
    Opened,
    Closed,
}

impl UncollectedMarkup<'_, '_> {
    /// Skips text and tags from the index `at` on. Returns the index after them: the start of a tag
    /// that this fast path cannot read, or of a text that may have to be collected.
    pub(super) fn skip(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let mut tags = 0;
        while let Some(rest) = bytes.get(at..)
            && let Some(head) = rest.first_chunk::<HEAD_SIZE>()
        {
            // Most tags follow another tag.
            if head[0] != b'<' {
                let next = match self.hits {
                    Some(hits) if self.skipped.depth > 0 => hits.skip_text(bytes, at),
                    _ => find_near(b'<', rest).map(|length| at + length),
                };
                let Some(next) = next else { break };
                at = next;
                continue;
            }
            tags += 1;
            let is_alone = tags <= TAGS_BEFORE_AUTOMATON
                || rest.len() < RUN_SIZE
                || self.recent.repeated.count_tag_and_check_pause();
            let next =
                if is_alone { self.read_tag(rest, at, head).map(|tag| tag.end) } else { self.skip_repeated(bytes, at) };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }

    /// Reads the tag at the beginning of `rest`, which is at the index `at` of the page's bytes.
    /// `head` is the first bytes of `rest`. Returns `None` if this fast path cannot read the tag.
    #[inline(always)]
    fn read_tag(&mut self, rest: &[u8], at: usize, head: &[u8; HEAD_SIZE]) -> Option<ReadTag> {
        let Self { open, hits, recent, queries, skipped, .. } = self;
        if head[1] == b'/' {
            let OpenElement { end_tag, properties, .. } = *open.current();
            let length =
                if end_tag.begins(word_at(head, 2)) { end_tag.length() + 2 } else { end_of_innermost(head, open)? };
            if skipped.depth == open.depth() {
                skipped.depth = 0;
            }
            open.pop_innermost();
            return Some(ReadTag { end: at + length, change: StackChange::Closed, attributes_start: 0, properties });
        }
        let tag = recent.tags.tag(head, queries)?;
        if tag.may_be_selected && (hits.is_none() || skipped.depth > 0) {
            return None;
        }
        let opens = if open.passes_quick_test(tag.quick_test) { true } else { tag.effect_if_quick_test_fails(open)? };
        let (length, attributes_start) = if tag.has_attributes {
            let name = usize::from(tag.length);
            (recent.tag_ends.skip(rest, name, &mut recent.attributes)?, name)
        } else {
            (usize::from(tag.length), 0)
        };
        let end = at + length;
        let is_opened = opens && !tag.is_void;
        if is_opened {
            open.push_with_known_flags(&tag.element);
        }
        if tag.may_be_selected {
            *skipped = SkippedSelectedElement { start: end, depth: open.depth() };
        }
        let change = if is_opened { StackChange::Opened } else { StackChange::Nothing };
        Some(ReadTag { end, change, attributes_start, properties: tag.element.properties })
    }

    /// Skips the markup at the index `at` that the [`RepeatedMarkup`] automaton already contains.
    /// Then reads the tags that follow, up to the next text, and adds them to the automaton.
    /// Returns the index after the markup read; `None` if this fast path cannot read the tag at
    /// `at`, or if a collected value could not be passed on.
    fn skip_repeated(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let Some(place) = self.recent.repeated.locate(self.open, self.skipped.depth) else {
            return self.read_tag_at(bytes, at).map(|tag| tag.end);
        };
        let mut from = KnownMarkupCursor::new(at, place);
        let (known, unknown) = loop {
            let known = self.recent.repeated.follow(bytes, from, self.hits);
            let Some(opening) = known.collected else { break (known, None) };
            match self.recent.repeated.collect(bytes, opening, &mut self.texts) {
                CollectElementResult::Whole(next) => from = next,
                CollectElementResult::Unknown(at, place) => break (known, Some((at, place))),
                CollectElementResult::Failed => break (known, None),
            }
        };
        self.recent.repeated.restore(self.open, known.place);
        self.skipped.depth = self.recent.repeated.skipped_depth(known.place);
        if let Some(start) = known.skipped_start {
            self.skipped.start = start;
        }
        if self.texts.outcome.is_err() {
            return None;
        }
        if let Some((at, place)) = unknown {
            self.learn_for_later(bytes, at, place);
        }
        if known.at > at && bytes.get(known.at) != Some(&b'<') {
            return Some(known.at);
        }
        match self.learn(bytes, known.at, known.place) {
            None if known.at == at => None,
            None => Some(known.at),
            next => next,
        }
    }

    /// Adds the markup at the index `at`, up to the next text, to the [`RepeatedMarkup`] automaton.
    /// `place` is the place (the state of the automaton) there. The open elements and the skipped
    /// element stay the same, because the caller continues before this markup.
    fn learn_for_later(&mut self, bytes: &[u8], at: usize, place: u16) {
        let (open, skipped) = (self.open.clone(), self.skipped);
        self.recent.repeated.restore(self.open, place);
        self.skipped.depth = self.recent.repeated.skipped_depth(place);
        self.learn(bytes, at, place);
        (*self.open, self.skipped) = (open, skipped);
    }

    fn read_tag_at(&mut self, bytes: &[u8], at: usize) -> Option<ReadTag> {
        let rest = bytes.get(at..)?;
        self.read_tag(rest, at, rest.first_chunk()?)
    }

    /// Reads the tags from the index `at` on, up to the next text, and adds them to the
    /// [`RepeatedMarkup`] automaton. `place` is the state of the automaton (called a place) before
    /// the first tag. Returns the index after the last tag; `None` if no tag can be read.
    #[inline(never)]
    fn learn(&mut self, bytes: &[u8], mut at: usize, mut place: u16) -> Option<usize> {
        let mut new_run = NewMarkupRun { bytes, from: place, start: at, run: MarkupRun::default() };
        let first = at;
        loop {
            let Some(tag) = self.read_tag_at(bytes, at) else { return (at > first).then_some(at) };
            let Some(next) = self.learn_tag(&mut new_run, at, &tag, place) else { return Some(tag.end) };
            place = next;
            let space = bytes[tag.end..].iter().take(LONGEST_SPACE + 1).take_while(|byte| is_space(**byte)).count();
            new_run.add_effect(match tag.properties & properties::SEPARATES_WORDS {
                _ if self.open.current().is(KEEPS_BLANKS) => RunTextEffect::Unknown,
                0 if space == 0 => RunTextEffect::Nothing,
                _ => RunTextEffect::SeparatesWords,
            });
            at = tag.end + space;
            if space > LONGEST_SPACE || bytes.get(at) != Some(&b'<') {
                let is_skipped = self.skipped.depth > 0;
                new_run.run.gap = if is_skipped { GapAfterRun::SelectedText } else { GapAfterRun::Text };
                new_run.add(&mut self.recent.repeated, tag.end, place);
                return Some(tag.end);
            }
            // Otherwise there would be a run for each pair of an end and a beginning of rows.
            if space > 0 && matches!(tag.change, StackChange::Closed) {
                new_run.run.gap = GapAfterRun::Nothing;
                new_run.add(&mut self.recent.repeated, at, place);
                return Some(at);
            }
        }
    }

    /// Adds the complete runs to the [`RepeatedMarkup`] automaton that end before `tag` or in it.
    /// Runs are pieces of markup that repeat. `start` is the index of the tag's `<` in the page's
    /// bytes. `place` is the place (the state of the automaton) before the tag. Returns the place
    /// after the tag; `None` if a place or a run cannot be added.
    fn learn_tag(&mut self, new_run: &mut NewMarkupRun<'_>, start: usize, tag: &ReadTag, place: u16) -> Option<u16> {
        let repeated = &mut self.recent.repeated;
        let name = start + 1..start + tag.attributes_start.max(1);
        let text = &new_run.bytes[..tag.end];
        let mut value = changing_value(text, name.end).filter(|_| tag.attributes_start > 0);
        let first_end = value.as_ref().map_or(tag.end, |value| value.start);
        if first_end - new_run.start > RUN_SIZE && new_run.start < start {
            new_run.add(repeated, start, place)?;
        }
        while let Some(range) = value {
            let in_tag = repeated.tag(place, TagName::new(&text[name.clone()]))?;
            new_run.run.gap = GapAfterRun::AttributeValue;
            if start >= new_run.start {
                new_run.run.tag_start = u8::try_from(start - new_run.start).ok();
            }
            new_run.add(repeated, range.start, in_tag)?;
            new_run.start = range.end;
            value = changing_value(text, range.end + 1);
        }
        match tag.change {
            StackChange::Nothing => Some(place),
            StackChange::Closed => repeated.parent(place),
            StackChange::Opened => {
                let is_skipped = self.skipped.depth == self.open.depth();
                let kind = if is_skipped { PlaceKind::SkippedElement } else { PlaceKind::Element };
                if is_skipped {
                    new_run.run.skipped_start = u8::try_from(tag.end - new_run.start).ok();
                }
                repeated.child(place, self.open.current(), kind)
            }
        }
    }
}

/// A run (a piece of markup that may repeat) while it is read for the first time, in order to add
/// it to the [`RepeatedMarkup`] automaton.
struct NewMarkupRun<'b> {
    bytes: &'b [u8],
    /// The place (the state of the automaton) before the run.
    from: u16,
    /// The index in `bytes` at which the run begins.
    start: usize,
    run: MarkupRun,
}

impl NewMarkupRun<'_> {
    fn add_effect(&mut self, effect: RunTextEffect) {
        self.run.text_effect = self.run.text_effect.max(effect);
    }

    /// Adds the run to the repeated markup, and begins the next run. `end` is the index after the
    /// run, and `place` is the place (the state of the automaton) there. Returns `None` if the run
    /// cannot be added.
    fn add(&mut self, repeated: &mut RepeatedMarkup, end: usize, place: u16) -> Option<()> {
        let mut run = std::mem::take(&mut self.run);
        run.place = place;
        let from = std::mem::replace(&mut self.from, place);
        let start = std::mem::replace(&mut self.start, end);
        let window = self.bytes.get(start..)?.first_chunk()?;
        repeated.add(from, window, end - start, run)
    }
}

/// Returns the range of the next attribute value that is expected to differ between similar tags:
/// the value of an attribute outside [`CONSTANT_ATTRIBUTES`], or a value of more than
/// [`LONGEST_CONSTANT_VALUE`] bytes. `tag` is a complete start tag. The search begins at `at`, the
/// index after the tag's name or after one of its attributes. Returns `None` if the rest of the tag
/// has no such value, or an attribute that is not written as `name="value"`.
fn changing_value(tag: &[u8], mut at: usize) -> Option<Range<usize>> {
    loop {
        let spaces = tag[at..].iter().take_while(|byte| is_space(**byte)).count();
        let name = at + spaces;
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
        let name_end = name + tag[name..].iter().take_while(is_name).count();
        if spaces == 0 || name == name_end || !tag[name_end..].starts_with(b"=\"") {
            return None;
        }
        let start = name_end + 2;
        let length = find_near(b'"', &tag[start..])?;
        if length > LONGEST_CONSTANT_VALUE || !CONSTANT_ATTRIBUTES.contains(&&tag[name..name_end]) {
            return Some(start..start + length);
        }
        at = start + length + 1;
    }
}
