//! Collects the text of a selected element in known markup, because the filter may match in it.

use haul_policy::page_reference::PageBase;

use super::{
    CONTEXTS, COST_OF_UNKNOWN, ElementOpeningRun, GapAfterRun, KnownMarkupCursor, NONE, PlaceKind, RUN_SIZE,
    RepeatedMarkup, RunTextEffect,
};
use crate::Result;
use crate::extraction::html::HtmlQueries;
use crate::extraction::html::attribute_output::trimmed;
use crate::extraction::html::open_and_selected_elements::MEMORY_OF_ONE_TEXT;
use crate::extraction::html::open_elements::KEEPS_BLANKS;
use crate::extraction::html::tag_name_and_rules::TagName;
use crate::extraction::html::text::ElementText;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::page_search::{FoundValue, OnFound};

/// The collector of the text of elements that queries select, in markup that the [`RepeatedMarkup`]
/// automaton already contains. It passes each text to a callback.
pub(in crate::extraction::html) struct SelectedTextCollector<'a, 'f> {
    pub(in crate::extraction::html) text: &'a mut ElementText,
    pub(in crate::extraction::html) queries: &'a HtmlQueries,
    pub(in crate::extraction::html) base: Option<&'a PageBase>,
    pub(in crate::extraction::html) keeps_empty: bool,
    /// The maximum number of bytes of text that the parser may keep in memory for one page.
    pub(in crate::extraction::html) limit: usize,
    pub(in crate::extraction::html) on_found: &'a mut OnFound<'f>,
    /// The error of the callback that receives values. After an error, no value is passed on.
    pub(in crate::extraction::html) outcome: Result<()>,
}

/// The result of [`RepeatedMarkup::collect`], which collects the text of a selected element in
/// markup that the automaton already contains.
pub(in crate::extraction::html) enum CollectElementResult {
    /// The text was passed to the callback. The cursor is before the run (piece of repeated markup)
    /// that closes the element.
    Whole(KnownMarkupCursor),
    /// The text was not passed on, because the element contains markup that the automaton does not
    /// contain. The fields are the index of the first such tag in the page's bytes, and the place
    /// (state of the automaton) there.
    Unknown(usize, u16),
    /// The text was not passed on. Either it cannot be collected from runs (pieces of repeated
    /// markup), so that the element must be read again; or the callback returned an error.
    Failed,
}

impl SelectedTextCollector<'_, '_> {
    /// Adds a text between two tags. Returns false if the collected text is too long.
    fn push(&mut self, text: &[u8]) -> bool {
        self.text.push(text, true, false);
        self.text.end_run(false);
        self.text.memory_in_use() + MEMORY_OF_ONE_TEXT <= self.limit
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

impl RepeatedMarkup {
    /// Collects the text of the selected element that the run `opening` (a piece of repeated
    /// markup) opened, and passes the text to the callback in `texts`.
    #[inline(never)]
    pub(in crate::extraction::html) fn collect(
        &mut self,
        bytes: &[u8],
        opening: ElementOpeningRun,
        texts: &mut SelectedTextCollector<'_, '_>,
    ) -> CollectElementResult {
        let (start, place) = (opening.at, self.runs[usize::from(opening.run)].place);
        let mut here = KnownMarkupCursor { at: start, tag: start, place, previous: NONE, guess: opening.run };
        let mut selected = &self.places[usize::from(place)];
        while selected.kind != PlaceKind::SkippedElement {
            let Some(parent) = self.places.get(usize::from(selected.parent)) else {
                return CollectElementResult::Failed;
            };
            selected = parent;
        }
        let name = selected.element.name;
        texts.text.clear();
        loop {
            let run = &self.runs[usize::from(here.guess)];
            match run.text_effect {
                RunTextEffect::Unknown => break,
                RunTextEffect::SeparatesWords => texts.text.separate_next_word(),
                RunTextEffect::Nothing => {}
            }
            if !self.pass(bytes, &mut here, texts) {
                break;
            }
            let Some(window) = bytes.get(here.at..).and_then(|rest| rest.first_chunk::<RUN_SIZE>()) else { break };
            let next = match self.runs.get(usize::from(here.guess)) {
                Some(run) if run.begins(window) => Some(here.guess),
                _ => self.find(here.place, window),
            };
            let Some(next) = next else {
                texts.text.clear();
                self.credit = self.credit.saturating_sub(COST_OF_UNKNOWN);
                let end = self.end_of_known(here, ElementOpeningRun { at: here.at, run: NONE }, false);
                return CollectElementResult::Unknown(end.at, end.place);
            };
            here.guess = next;
            let next = &self.runs[usize::from(next)];
            if next.skipped_start.is_some() || self.places[usize::from(next.place)].skipped_depth == 0 {
                return if texts.finish(name) {
                    CollectElementResult::Whole(here)
                } else {
                    CollectElementResult::Failed
                };
            }
        }
        texts.text.clear();
        CollectElementResult::Failed
    }

    /// Moves the cursor `here` past the run [`guess`](KnownMarkupCursor::guess) and the gap after
    /// it (a text or the value of an attribute). Adds a text to the collected text. Returns false
    /// if the end of the gap is not found, or if the text cannot be collected.
    fn pass(&self, bytes: &[u8], here: &mut KnownMarkupCursor, texts: &mut SelectedTextCollector<'_, '_>) -> bool {
        let (run, start) = (&self.runs[usize::from(here.guess)], here.at);
        let context = usize::from(here.previous) % CONTEXTS;
        (here.previous, here.guess, here.place) = (here.guess, run.next[context], run.place);
        here.at += usize::from(run.length);
        let rest = &bytes[here.at..];
        let length = match run.gap {
            GapAfterRun::Nothing => Some(0),
            GapAfterRun::Text => None,
            GapAfterRun::SelectedText if self.places[usize::from(run.place)].element.is(KEEPS_BLANKS) => None,
            GapAfterRun::SelectedText => find_near(b'<', rest).filter(|length| texts.push(&rest[..*length])),
            GapAfterRun::AttributeValue => {
                if let Some(offset) = run.tag_start {
                    here.tag = start + usize::from(offset);
                }
                find_near(b'"', rest)
            }
        };
        here.at += length.unwrap_or(0);
        length.is_some()
    }
}
