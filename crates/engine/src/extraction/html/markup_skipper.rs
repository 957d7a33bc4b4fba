//! Skips markup (tags and text) whose text is not collected for a query. In such markup, a tag only
//! changes the stack of open elements.

use std::ops::Range;

use super::HtmlQueries;
use super::common_markup_fast_path::innermost_end_tag_length;
use super::markup_automaton::{
    AutomatonCursor, AutomatonStateKind, MAX_LITERAL_SIZE, MarkupAutomaton, MarkupTransition, SelectedTextCollector,
    TextCollectionResult, TransitionTextEffect, VariableBytes,
};
use super::open_element_stack::{KEEPS_WHITE_SPACE, OpenElement, OpenElementStack};
use super::tag_caches::{MarkupCaches, TAG_HEAD_SIZE, word_at};
use super::tag_name_and_rules::{self as properties, TagName};
use super::tag_parser::is_space;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::prefilter::HitAcrossMarkupTest;

/// The number of tags that [`MarkupSkipper::skip`] reads one by one before it uses the
/// [`MarkupAutomaton`], which compares several tags at once. For fewer tags, the automaton would
/// cost more than it saves.
const TAGS_BEFORE_AUTOMATON: usize = 3;

/// The maximum length in bytes of white space between two tags in the literal of a
/// [`MarkupTransition`]. Before longer white space, the literal ends.
const MAX_SPACE_IN_LITERAL: usize = 16;

/// The maximum length in bytes of an attribute value in the literal of a [`MarkupTransition`]. A
/// longer value is expected to differ at each repetition.
const MAX_VALUE_IN_LITERAL: usize = 24;

/// The attributes whose values are often the same in many tags, such as `class`. Their values can
/// be part of the literal of a [`MarkupTransition`].
const LITERAL_ATTRIBUTES: [&[u8]; 12] = [
    b"align", b"class", b"colspan", b"height", b"rel", b"role", b"rowspan", b"scope", b"style", b"type", b"valign",
    b"width",
];

/// An open element whose text a query selects, but whose text is skipped, because the regular
/// expression of `--extract` probably has no match in it.
#[derive(Clone, Copy)]
pub(super) struct SkippedSelectedElement {
    /// The index of the first byte after the element's start tag.
    pub(super) start: usize,
    /// The depth of the element among the open elements, or 0 if no element is skipped.
    pub(super) depth: usize,
}

/// Skips tags and text while no text must be collected for a query. Each tag only opens or closes
/// elements.
pub(super) struct MarkupSkipper<'a, 'f> {
    pub(super) open: &'a mut OpenElementStack,
    /// The test that finds texts in which the regular expression of `--extract` may match. Only
    /// such texts are collected. `None` if all text of selected elements is collected.
    pub(super) hits: Option<&'a HitAcrossMarkupTest>,
    pub(super) caches: &'a mut MarkupCaches,
    pub(super) queries: &'a HtmlQueries,
    /// Collects the text of a selected element if the regular expression of `--extract` may match
    /// in it.
    pub(super) texts: SelectedTextCollector<'a, 'f>,
    /// The selected element whose text is being skipped. Its depth is 0 if there is none.
    pub(super) skipped: SkippedSelectedElement,
}

/// A tag that was read: its end, and its effect on the stack of open elements.
struct ReadTag {
    /// The index in the page's bytes after the tag's `>`.
    end: usize,
    change: StackChange,
    /// The length in bytes of the `<` and the name of a start tag with attributes, otherwise 0.
    attributes_start: usize,
    /// The properties of the element, a bit set of constants such as
    /// [`IS_VOID`](properties::IS_VOID).
    properties: u32,
}

/// The effect of a tag on the stack of open elements.
enum StackChange {
    /// The stack stays the same, as after `<br>`.
    None,
    /// A start tag has opened an element.
    Opened,
    /// An end tag has closed the innermost element.
    Closed,
}

impl MarkupSkipper<'_, '_> {
    /// Skips text and tags from the index `at` of the page's bytes on. Returns the index at which
    /// skipping ends: the `<` of a tag that only the tokenizer can read, or the beginning of a text
    /// that may have to be collected.
    pub(super) fn skip(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let mut tags = 0;
        while let Some(rest) = bytes.get(at..)
            && let Some(head) = rest.first_chunk::<TAG_HEAD_SIZE>()
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
                || rest.len() < MAX_LITERAL_SIZE
                || self.caches.automaton.count_tag_and_check_pause();
            let next = if is_alone {
                self.read_tag(rest, at, head).map(|tag| tag.end)
            } else {
                self.skip_by_automaton(bytes, at)
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }

    /// Reads one tag, and opens or closes its element. The tag is at the beginning of `rest`, and
    /// at the index `at` of the page's bytes. `head` is the first bytes of `rest`. Returns `None`
    /// if only the tokenizer can read the tag.
    #[inline(always)]
    fn read_tag(&mut self, rest: &[u8], at: usize, head: &[u8; TAG_HEAD_SIZE]) -> Option<ReadTag> {
        let Self { open, hits, caches, queries, skipped, .. } = self;
        if head[1] == b'/' {
            let OpenElement { end_tag, properties, .. } = *open.current();
            let length = if end_tag.begins(word_at(head, 2)) {
                end_tag.length() + 2
            } else {
                innermost_end_tag_length(head, open)?
            };
            if skipped.depth == open.depth() {
                skipped.depth = 0;
            }
            open.pop_innermost();
            return Some(ReadTag { end: at + length, change: StackChange::Closed, attributes_start: 0, properties });
        }
        let tag = caches.start_tags.tag(head, queries)?;
        if tag.may_be_selected && (hits.is_none() || skipped.depth > 0) {
            return None;
        }
        let opens = if open.passes_quick_test(tag.quick_test) { true } else { tag.effect_if_quick_test_fails(open)? };
        let (length, attributes_start) = if tag.has_attributes {
            let name = usize::from(tag.length);
            (caches.attribute_lists.skip(rest, name, &mut caches.attribute_names)?, name)
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
        let change = if is_opened { StackChange::Opened } else { StackChange::None };
        Some(ReadTag { end, change, attributes_start, properties: tag.element.properties })
    }

    /// Skips markup from the index `at` on by the [`MarkupAutomaton`], until the automaton stops.
    /// If it stops at a tag, reads the tags up to the next text one by one, and adds transitions
    /// for them. Without a state for the open elements, reads one tag. Returns the index after the
    /// markup read. Returns `None` if only the tokenizer can read the tag at `at`, or if the
    /// callback for values returned an error.
    fn skip_by_automaton(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let Some(state) = self.caches.automaton.state_of(self.open, self.skipped.depth) else {
            return self.read_tag_at(bytes, at).map(|tag| tag.end);
        };
        let mut from = AutomatonCursor::new(at, state);
        let (matched, missing) = loop {
            let matched = self.caches.automaton.match_markup(bytes, from, self.hits);
            let Some(opening) = matched.collected else { break (matched, None) };
            match self.caches.automaton.collect_text(bytes, opening, &mut self.texts) {
                TextCollectionResult::Collected(next) => from = next,
                TextCollectionResult::NoTransition(at, state) => break (matched, Some((at, state))),
                TextCollectionResult::Failed => break (matched, None),
            }
        };
        self.caches.automaton.restore_open_elements(self.open, matched.state);
        self.skipped.depth = self.caches.automaton.skipped_depth(matched.state);
        if let Some(start) = matched.skipped_start {
            self.skipped.start = start;
        }
        if self.texts.outcome.is_err() {
            return None;
        }
        if let Some((at, state)) = missing {
            self.learn_without_advancing(bytes, at, state);
        }
        if matched.at > at && bytes.get(matched.at) != Some(&b'<') {
            return Some(matched.at);
        }
        match self.learn_transitions(bytes, matched.at, matched.state) {
            None if matched.at == at => None,
            None => Some(matched.at),
            next => next,
        }
    }

    /// Adds transitions to the [`MarkupAutomaton`] for the tags from the index `at` on, up to the
    /// next text. `state` is the index of the automaton's state at `at`. Leaves the open elements
    /// and the skipped element of this skipper as they were before the call, because the caller
    /// continues at an index before `at`, and will read these tags again.
    fn learn_without_advancing(&mut self, bytes: &[u8], at: usize, state: u16) {
        let (open, skipped) = (self.open.clone(), self.skipped);
        self.caches.automaton.restore_open_elements(self.open, state);
        self.skipped.depth = self.caches.automaton.skipped_depth(state);
        self.learn_transitions(bytes, at, state);
        (*self.open, self.skipped) = (open, skipped);
    }

    /// Reads the tag at the index `at` of `bytes`, and opens or closes its element. Returns `None`
    /// if only the tokenizer can read the tag.
    fn read_tag_at(&mut self, bytes: &[u8], at: usize) -> Option<ReadTag> {
        let rest = bytes.get(at..)?;
        self.read_tag(rest, at, rest.first_chunk()?)
    }

    /// Reads the tags from the index `at` on, up to the next text, and adds transitions for them to
    /// the [`MarkupAutomaton`]. `state` is the index of the automaton's state at `at`. Returns the
    /// index after the last tag read; `None` if only the tokenizer can read the first tag.
    #[inline(never)]
    fn learn_transitions(&mut self, bytes: &[u8], mut at: usize, mut state: u16) -> Option<usize> {
        let mut builder = TransitionBuilder { bytes, from: state, start: at, transition: MarkupTransition::default() };
        let first = at;
        loop {
            let Some(tag) = self.read_tag_at(bytes, at) else { return (at > first).then_some(at) };
            let Some(next) = self.learn_transitions_of_tag(&mut builder, at, &tag, state) else { return Some(tag.end) };
            state = next;
            let space =
                bytes[tag.end..].iter().take(MAX_SPACE_IN_LITERAL + 1).take_while(|byte| is_space(**byte)).count();
            builder.add_text_effect(match tag.properties & properties::SEPARATES_WORDS {
                _ if self.open.current().is(KEEPS_WHITE_SPACE) => TransitionTextEffect::NeedsTokenizer,
                0 if space == 0 => TransitionTextEffect::None,
                _ => TransitionTextEffect::SeparatesWords,
            });
            at = tag.end + space;
            if space > MAX_SPACE_IN_LITERAL || bytes.get(at) != Some(&b'<') {
                let is_skipped = self.skipped.depth > 0;
                builder.transition.variable =
                    if is_skipped { VariableBytes::SelectedText } else { VariableBytes::Text };
                builder.add(&mut self.caches.automaton, tag.end, state);
                return Some(tag.end);
            }
            // Otherwise there would be a transition for each pair of an end and a beginning of
            // rows.
            if space > 0 && matches!(tag.change, StackChange::Closed) {
                builder.transition.variable = VariableBytes::None;
                builder.add(&mut self.caches.automaton, at, state);
                return Some(at);
            }
        }
    }

    /// Adds the transitions whose literals end in `tag` to the [`MarkupAutomaton`]. A literal, such
    /// as `<td><a href="`, ends before each attribute value that is expected to differ. If the
    /// first literal would exceed [`MAX_LITERAL_SIZE`], an additional one ends before `tag`.
    /// `start` is the index of the tag's `<` in the page's bytes. `state` is the index of the
    /// automaton's state before the tag. Returns the state after the tag; `None` if a literal is
    /// too long, or the automaton has too many states or transitions.
    fn learn_transitions_of_tag(
        &mut self,
        builder: &mut TransitionBuilder<'_>,
        start: usize,
        tag: &ReadTag,
        state: u16,
    ) -> Option<u16> {
        let automaton = &mut self.caches.automaton;
        let name = start + 1..start + tag.attributes_start.max(1);
        let text = &builder.bytes[..tag.end];
        let mut value = next_variable_value(text, name.end).filter(|_| tag.attributes_start > 0);
        let first_end = value.as_ref().map_or(tag.end, |value| value.start);
        if first_end - builder.start > MAX_LITERAL_SIZE && builder.start < start {
            builder.add(automaton, start, state)?;
        }
        while let Some(range) = value {
            let in_tag = automaton.start_tag_state(state, TagName::new(&text[name.clone()]))?;
            builder.transition.variable = VariableBytes::AttributeValue;
            if start >= builder.start {
                builder.transition.tag_start = u8::try_from(start - builder.start).ok();
            }
            builder.add(automaton, range.start, in_tag)?;
            builder.start = range.end;
            value = next_variable_value(text, range.end + 1);
        }
        match tag.change {
            StackChange::None => Some(state),
            StackChange::Closed => automaton.parent_state(state),
            StackChange::Opened => {
                let is_skipped = self.skipped.depth == self.open.depth();
                let kind = if is_skipped {
                    AutomatonStateKind::SkippedElementContent
                } else {
                    AutomatonStateKind::ElementContent
                };
                if is_skipped {
                    builder.transition.skipped_start = u8::try_from(tag.end - builder.start).ok();
                }
                automaton.child_state(state, self.open.current(), kind)
            }
        }
    }
}

/// Builds a transition of the [`MarkupAutomaton`] from the tags that are being read. When its
/// literal is complete, adds it to the automaton, and begins the next transition.
struct TransitionBuilder<'b> {
    /// The bytes of the page.
    bytes: &'b [u8],
    /// The index of the state in which the transition starts.
    from: u16,
    /// The index in `bytes` at which the transition's literal begins.
    start: usize,
    transition: MarkupTransition,
}

impl TransitionBuilder<'_> {
    /// Adds the effect of one tag on the text around it to the effect of the transition, if it is
    /// stronger.
    fn add_text_effect(&mut self, effect: TransitionTextEffect) {
        self.transition.text_effect = self.transition.text_effect.max(effect);
    }

    /// Adds the transition to the automaton, and begins the next transition. The literal ends
    /// before the index `end`, and `state` is the index of the state there. Returns `None` if the
    /// literal is too long, or if the automaton has too many transitions.
    fn add(&mut self, automaton: &mut MarkupAutomaton, end: usize, state: u16) -> Option<()> {
        let mut transition = std::mem::take(&mut self.transition);
        transition.target = state;
        let from = std::mem::replace(&mut self.from, state);
        let start = std::mem::replace(&mut self.start, end);
        let window = self.bytes.get(start..)?.first_chunk()?;
        automaton.add_transition(from, window, end - start, transition)
    }
}

/// Returns the range of the next attribute value that is expected to differ between similar tags:
/// the value of an attribute outside [`LITERAL_ATTRIBUTES`], or a value of more than
/// [`MAX_VALUE_IN_LITERAL`] bytes. `tag` is a complete start tag. The search begins at `at`, the
/// index after the tag's name or after one of its attributes. Returns `None` if the rest of the tag
/// has no such value, or an attribute that is not written as `name="value"`.
fn next_variable_value(tag: &[u8], mut at: usize) -> Option<Range<usize>> {
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
        if length > MAX_VALUE_IN_LITERAL || !LITERAL_ATTRIBUTES.contains(&&tag[name..name_end]) {
            return Some(start..start + length);
        }
        at = start + length + 1;
    }
}
