//! Lets the automaton collect the text of an element that a query selects. The automaton does so
//! only if the regular expression of `--extract` may match in the text.

use haul_policy::page_reference::PageBase;

use super::{
    AutomatonCursor, AutomatonStateKind, ElementOpeningTransition, MAX_LITERAL_SIZE, MISSING_TRANSITION_COST,
    MarkupAutomaton, NO_INDEX, PREDICTIONS_PER_TRANSITION, TransitionTextEffect, VariableBytes,
};
use crate::Result;
use crate::extraction::html::HtmlQueries;
use crate::extraction::html::attribute_output::trimmed;
use crate::extraction::html::open_element_stack::KEEPS_WHITE_SPACE;
use crate::extraction::html::tag_name_and_rules::TagName;
use crate::extraction::html::text::ElementText;
use crate::extraction::html::tree_builder::DEFERRED_VALUE_SIZE;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::page_search::{FoundValue, OnFound};

/// Collects the text of an element that a query selects, while the [`MarkupAutomaton`] reads the
/// element. Passes the text to the callback `on_found`.
pub(in crate::extraction::html) struct SelectedTextCollector<'a, 'f> {
    pub(in crate::extraction::html) text: &'a mut ElementText,
    pub(in crate::extraction::html) queries: &'a HtmlQueries,
    pub(in crate::extraction::html) base: Option<&'a PageBase>,
    /// True if an empty text is passed to the callback, too.
    pub(in crate::extraction::html) keeps_empty: bool,
    /// The maximum number of bytes of text that the search of a page may keep in memory.
    pub(in crate::extraction::html) limit: usize,
    pub(in crate::extraction::html) on_found: &'a mut OnFound<'f>,
    /// The error of the callback. After an error, no text is passed to the callback.
    pub(in crate::extraction::html) outcome: Result<()>,
}

/// The result of [`MarkupAutomaton::collect_text`], which collects the text of a selected element.
pub(in crate::extraction::html) enum TextCollectionResult {
    /// The text was passed to the callback. The cursor is before the literal that closes the
    /// element.
    Collected(AutomatonCursor),
    /// The text was not passed on, because no transition of the automaton matches some tag in the
    /// element. The fields are the index of the `<` of this tag in the page's bytes, and the index
    /// of the automaton's state there.
    NoTransition(usize, u16),
    /// The text was not passed on. Either the tokenizer must read the element again, because the
    /// automaton cannot collect its text, or the callback returned an error.
    Failed,
}

impl SelectedTextCollector<'_, '_> {
    /// Adds a text between two tags to the collected text. Returns false if the collected text
    /// needs more than `limit` bytes of memory.
    fn push(&mut self, text: &[u8]) -> bool {
        self.text.push(text, true, false);
        self.text.end_text_node(false);
        self.text.memory_in_use() + DEFERRED_VALUE_SIZE <= self.limit
    }

    /// Passes the collected text to the callback. `name` is the name of the selected element, which
    /// determines the query that selects it. Returns false if the callback has returned an error.
    fn finish(&mut self, name: TagName) -> bool {
        let bytes = trimmed(self.text.bytes());
        let query = usize::from(self.queries.names.rules(name).text_query).checked_sub(1);
        if let Some(query) = query
            && self.outcome.is_ok()
            && (!bytes.is_empty() || self.keeps_empty)
        {
            self.outcome = (self.on_found)(FoundValue { query, bytes, base: self.base });
        }
        self.text.clear();
        self.outcome.is_ok()
    }
}

impl MarkupAutomaton {
    /// Collects the text of the selected element that the transition `opening` opened, up to the
    /// literal that closes the element. Passes the text to the callback of `texts`.
    #[inline(never)]
    pub(in crate::extraction::html) fn collect_text(
        &mut self,
        bytes: &[u8],
        opening: ElementOpeningTransition,
        texts: &mut SelectedTextCollector<'_, '_>,
    ) -> TextCollectionResult {
        let (start, state) = (opening.at, self.transitions[usize::from(opening.transition)].target);
        let mut here =
            AutomatonCursor { at: start, tag: start, state, previous: NO_INDEX, predicted: opening.transition };
        let mut selected = &self.states[usize::from(state)];
        while selected.kind != AutomatonStateKind::SkippedElementContent {
            let Some(parent) = self.states.get(usize::from(selected.parent)) else {
                return TextCollectionResult::Failed;
            };
            selected = parent;
        }
        let name = selected.element.name;
        texts.text.clear();
        loop {
            let transition = &self.transitions[usize::from(here.predicted)];
            match transition.text_effect {
                TransitionTextEffect::NeedsTokenizer => break,
                TransitionTextEffect::SeparatesWords => texts.text.separate_next_word(),
                TransitionTextEffect::None => {}
            }
            if !self.advance(bytes, &mut here, texts) {
                break;
            }
            let Some(window) = bytes.get(here.at..).and_then(|rest| rest.first_chunk::<MAX_LITERAL_SIZE>()) else {
                break;
            };
            let next = match self.transitions.get(usize::from(here.predicted)) {
                Some(transition) if transition.matches(window) => Some(here.predicted),
                _ => self.find_transition(here.state, window),
            };
            let Some(next) = next else {
                texts.text.clear();
                self.credit = self.credit.saturating_sub(MISSING_TRANSITION_COST);
                let end = self.matched_end(here, ElementOpeningTransition { at: here.at, transition: NO_INDEX }, false);
                return TextCollectionResult::NoTransition(end.at, end.state);
            };
            here.predicted = next;
            let next = &self.transitions[usize::from(next)];
            if next.skipped_start.is_some() || self.states[usize::from(next.target)].skipped_depth == 0 {
                return if texts.finish(name) {
                    TextCollectionResult::Collected(here)
                } else {
                    TextCollectionResult::Failed
                };
            }
        }
        texts.text.clear();
        TextCollectionResult::Failed
    }

    /// Moves the cursor `here` over the literal of its predicted transition and over the
    /// [`VariableBytes`] after the literal. If these are a text, adds them to the collected text.
    /// Returns false if the end of the variable bytes is not in `bytes`. Also returns false if the
    /// text needs too much memory, or if its element keeps white space, such as `<pre>`.
    fn advance(&self, bytes: &[u8], here: &mut AutomatonCursor, texts: &mut SelectedTextCollector<'_, '_>) -> bool {
        let (transition, start) = (&self.transitions[usize::from(here.predicted)], here.at);
        let slot = usize::from(here.previous) % PREDICTIONS_PER_TRANSITION;
        (here.previous, here.predicted, here.state) = (here.predicted, transition.predictions[slot], transition.target);
        here.at += usize::from(transition.length);
        let rest = &bytes[here.at..];
        let length = match transition.variable {
            VariableBytes::None => Some(0),
            VariableBytes::Text => None,
            VariableBytes::SelectedText
                if self.states[usize::from(transition.target)].element.is(KEEPS_WHITE_SPACE) =>
            {
                None
            }
            VariableBytes::SelectedText => find_near(b'<', rest).filter(|length| texts.push(&rest[..*length])),
            VariableBytes::AttributeValue => {
                if let Some(offset) = transition.tag_start {
                    here.tag = start + usize::from(offset);
                }
                find_near(b'"', rest)
            }
        };
        here.at += length.unwrap_or(0);
        length.is_some()
    }
}
