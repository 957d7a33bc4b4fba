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

/// The collector of the text of a selected element in known markup, and the receiver of its value.
pub(in crate::extraction::html) struct SelectedTextCollector<'a, 'f> {
    pub(in crate::extraction::html) text: &'a mut ElementText,
    pub(in crate::extraction::html) queries: &'a HtmlQueries,
    pub(in crate::extraction::html) base: Option<&'a PageBase>,
    pub(in crate::extraction::html) keeps_empty: bool,
    /// The maximum number of bytes that a page keeps.
    pub(in crate::extraction::html) limit: usize,
    pub(in crate::extraction::html) on_found: &'a mut OnFound<'f>,
    /// The error of the receiver of a value. After an error, no value is passed on.
    pub(in crate::extraction::html) outcome: Result<()>,
}

/// The result of collecting the text of a selected element in known markup.
pub(in crate::extraction::html) enum CollectElementResult {
    /// The value was passed on. The position is that of the run that closes the element.
    Whole(KnownMarkupCursor),
    /// An unknown run follows in the element. The index and the place are those of its first tag.
    Unknown(usize, u16),
    /// The text cannot be collected here, or the receiver of the value failed.
    Failed,
}

impl SelectedTextCollector<'_, '_> {
    /// Adds a text between two tags. Returns false if the collected text is too long.
    fn push(&mut self, text: &[u8]) -> bool {
        self.text.push(text, true, false);
        self.text.end_run(false);
        self.text.memory_in_use() + MEMORY_OF_ONE_TEXT <= self.limit
    }

    /// Passes on the collected text of an element with this name. Returns false after an error.
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
    /// Collects the text of the selected element that this run opened, and passes it on.
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

    /// Moves behind the run that [`guess`](KnownMarkupCursor::guess) names and the gap after it.
    /// Adds a text in the gap to the collected text. Returns false if that is not possible.
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
