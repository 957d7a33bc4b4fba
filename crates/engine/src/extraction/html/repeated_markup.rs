//! An automaton that recognises markup that repeats in a page. It is made while the page is read.
//!
//! A page from a template has few different runs of constant markup, such as
//! `</td></tr>\n<tr class="odd"><td>`. Between two runs is a text, or the value of an attribute. A
//! tokenizer must find the end of each tag before it can read the next one. The automaton is
//! faster: it expects the run that came next the last time, and compares this whole run with the
//! page at once.
//!
//! A state of the automaton is a [`PagePlace`]. It stands for all open elements and the selected
//! element whose text is skipped. If the position is inside a tag (after the value of an
//! attribute), it also stands for this tag. As long as no text is collected, the effect of a tag
//! depends on nothing else. So a run that once led from one place to another always does.

mod selected_text;

use super::open_elements::{Namespace, OpenElement, OpenElements};
use super::tag_name_and_rules::TagName;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::prefilter::HitAcrossMarkupTest;
pub(super) use selected_text::{CollectElementResult, SelectedTextCollector};

/// The maximum length in bytes of a run of constant markup ([`MarkupRun`]). This is also the number
/// of bytes that are compared at once.
pub(super) const RUN_SIZE: usize = 64;

/// The maximum number of places (states) of a [`RepeatedMarkup`] automaton. If more are needed, all
/// places and runs (transitions) are removed.
const MAX_PLACES: usize = 128;

/// The maximum number of runs of a [`RepeatedMarkup`] automaton. A run is a transition: a piece of
/// markup that repeats. If more are needed, all runs and places (states) are removed.
const MAX_RUNS: usize = 192;

/// The maximum number of runs that begin at one place of a [`RepeatedMarkup`] automaton. A place is
/// a state. A run is a transition: a piece of markup that repeats.
const RUNS_OF_PLACE: usize = 16;

/// The number of predictions that each run (a piece of repeated markup) stores. A prediction is the
/// run that followed the last time. The run before selects the prediction to use.
const CONTEXTS: usize = 16;

/// The index that stands for "no place" or "no run": the absence of a state or transition.
const NONE: u16 = u16::MAX;

/// The initial value of the credit, a counter in a [`RepeatedMarkup`] automaton that shows how
/// often markup repeats. Each piece of markup that the automaton already contains adds one to the
/// credit; each new piece costs [`COST_OF_UNKNOWN`]. If the credit is too low, the automaton is not
/// used for some time.
const FIRST_CREDIT: u32 = 400;
const MAX_CREDIT: u32 = 1000;
const COST_OF_UNKNOWN: u32 = 8;

/// The number of tags in the first pause of a [`RepeatedMarkup`] automaton. During a pause, tags
/// are read without the automaton. Each further pause is twice as long.
const FIRST_PAUSE: u32 = 256;
const LONGEST_PAUSE: u32 = 1 << 16;

/// An automaton that recognises markup that repeats in the pages of a search. Its states are
/// places: a place stands for the open elements at a position of a page, outside of tags or in a
/// tag. Its transitions are runs: pieces of markup that repeat byte for byte, such as `</td><td>`.
/// Between two runs is a gap: a text or the value of an attribute, which differs. Markup is known
/// if it consists of runs in the automaton and of gaps. Each search has a separate automaton,
/// because the effect of a run depends on the queries and the filter of the search.
pub(super) struct RepeatedMarkup {
    places: Vec<PagePlace>,
    runs: Vec<MarkupRun>,
    /// A list of places, one for each open element, after the place of the document. The place at
    /// the index n stands for the n outermost open elements. [`locate`](Self::locate) and
    /// [`restore`](Self::restore) update the list.
    path: Vec<u16>,
    /// A buffer for the places that [`restore`](Self::restore) appends to `path`, one for each
    /// element that it opens; empty between calls.
    added: Vec<u16>,
    credit: u32,
    pause: u32,
    next_pause: u32,
}

/// A place: a state of the [`RepeatedMarkup`] automaton. A place stands for the open elements at a
/// position of the page, and for the tag if the position is in a tag. Runs (pieces of markup that
/// repeat) lead from one place to another.
#[derive(Clone, Copy)]
struct PagePlace {
    /// The index of the place around this one. For a place in a tag, this is the place before the
    /// tag. For any other place, it is the place after the innermost open element is closed.
    /// [`NONE`] if no element is open.
    parent: u16,
    first_child: u16,
    next_sibling: u16,
    /// The number of open elements, without the element whose tag is being read.
    depth: u16,
    /// The depth of the selected element whose text is skipped, because the filter (a regular
    /// expression) cannot match in it. 0 if there is no such element.
    skipped_depth: u16,
    kind: PlaceKind,
    /// The innermost open element. If the place is in a tag, the element that the tag opens.
    element: OpenElement,
    /// The indexes in `RepeatedMarkup::runs` of the runs that begin at this place. Unused entries
    /// are [`NONE`].
    runs: [u16; RUNS_OF_PLACE],
    /// The index in this place's `runs` of the entry that the next added run overwrites.
    next_replaced: u8,
}

/// The kind of position in a page that a state of the [`RepeatedMarkup`] automaton stands for:
/// outside of tags or in a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    /// Outside of tags.
    Element,
    /// Outside of tags. A query selects the text of the innermost open element, but this text is
    /// skipped, because the filter of the query (a regular expression) cannot match in it.
    SkippedElement,
    /// In a start tag, after the value of an attribute.
    Tag,
}

/// The variable part of a page between two runs (pieces of markup that repeat).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum GapAfterRun {
    /// The next run follows directly.
    #[default]
    Nothing,
    /// Text up to the next tag, outside of the elements whose text a query selects.
    Text,
    /// Text up to the next tag, in an element whose text a query selects.
    SelectedText,
    /// The value of an attribute, up to the quotation mark that ends it.
    AttributeValue,
}

/// The effect of a run (a piece of repeated markup) on the collected text of the element that
/// contains the run.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunTextEffect {
    #[default]
    Nothing,
    /// The run separates the words before and after it, as a space does.
    SeparatesWords,
    /// The run contains a tag in an element that keeps white space, such as `<pre>`. The text of
    /// such an element is not collected while runs are compared: the tokenizer must read the
    /// element again.
    Unknown,
}

/// A run: a piece of markup that repeats byte for byte, such as `</td><td class="odd">`. A run is a
/// transition of the [`RepeatedMarkup`] automaton: it leads from one place (state) to another.
#[derive(Clone, Copy, Default)]
pub(super) struct MarkupRun {
    words: [u64; RUN_SIZE / 8],
    /// A mask for `words`: 0xff for each byte that belongs to the run, and 0 for the others.
    masks: [u64; RUN_SIZE / 8],
    length: u8,
    /// The place (state of the automaton) after the run.
    pub(super) place: u16,
    pub(super) gap: GapAfterRun,
    pub(super) text_effect: RunTextEffect,
    /// The offset in the run, in bytes, of the tag that is not complete at the end of the run.
    /// `None` if there is no such tag, or if the tag begins in an earlier run.
    pub(super) tag_start: Option<u8>,
    /// The offset in the run, in bytes, of the end of a start tag that opens an element whose text
    /// a query selects, and whose text is skipped at first. `None` if the run opens no such
    /// element.
    pub(super) skipped_start: Option<u8>,
    /// The predictions of the run that follows this one: indexes in `RepeatedMarkup::runs`, or
    /// [`NONE`]. The index of the run before this one, modulo [`CONTEXTS`], selects the prediction.
    /// Each prediction is the run that followed the last time.
    next: [u16; CONTEXTS],
}

/// A cursor in known markup, i.e. in markup of a page that consists of runs (pieces that the
/// [`RepeatedMarkup`] automaton contains) and of the gaps between them (texts and attribute
/// values). The cursor stands at the beginning of a run. Indexes count the bytes of the page.
#[derive(Clone, Copy)]
pub(super) struct KnownMarkupCursor {
    at: usize,
    /// The index of the `<` of the tag that contains the cursor. The value is not used if the
    /// cursor is outside of tags.
    tag: usize,
    /// The place (state of the automaton) after the run `previous`. Without such a run, the place
    /// at which the known markup begins.
    place: u16,
    /// The index in `RepeatedMarkup::runs` of the run that ends before the cursor. [`NONE`] at the
    /// beginning of the known markup.
    previous: u16,
    /// The index in `RepeatedMarkup::runs` of the run that probably begins at the cursor, because
    /// it did the last time. [`NONE`] without a prediction.
    guess: u16,
}

/// A run (a piece of repeated markup) that opened a selected element, and the index in the page's
/// bytes at which the run begins.
#[derive(Clone, Copy)]
pub(super) struct ElementOpeningRun {
    at: usize,
    run: u16,
}

/// The end of the known markup that [`RepeatedMarkup::follow`] has read. Markup is known if the
/// automaton contains it. Indexes count the bytes of the page.
pub(super) struct KnownMarkupEnd {
    /// The index of the first text or tag that was not read.
    pub(super) at: usize,
    /// The place at the index `at`, outside of tags: the state of the automaton, which stands for
    /// the open elements.
    pub(super) place: u16,
    /// The index after the last start tag in the known markup that opens an element whose text a
    /// query selects, and whose text is skipped at first. `None` if there is no such tag.
    pub(super) skipped_start: Option<usize>,
    /// The run (piece of repeated markup) that opened the selected element whose text must be
    /// collected, because the filter may match in it. `None` if no text must be collected.
    pub(super) collected: Option<ElementOpeningRun>,
}

impl Default for RepeatedMarkup {
    fn default() -> Self {
        let (places, runs, path, added) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut repeated = Self { places, runs, path, added, credit: FIRST_CREDIT, pause: 0, next_pause: FIRST_PAUSE };
        repeated.clear();
        repeated
    }
}

impl RepeatedMarkup {
    fn clear(&mut self) {
        self.runs.clear();
        self.places.clear();
        self.places.push(PagePlace::new(NONE, OpenElement::default(), PlaceKind::Element));
        self.path.clear();
        self.path.push(0);
    }

    /// Counts one tag, and returns true during a pause: tags are then read without the automaton,
    /// because the markup repeats rarely. A pause lasts for a number of tags.
    pub(super) fn count_tag_and_check_pause(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause > 0
    }

    /// Returns the place of these open elements. `skipped_depth` is the depth of the selected
    /// element whose text is skipped, or 0. Returns `None` if there are too many places.
    pub(super) fn locate(&mut self, open: &OpenElements, skipped_depth: usize) -> Option<u16> {
        let elements = open.elements();
        self.path.truncate(elements.len() + 1);
        for (index, element) in elements.iter().enumerate() {
            let depth = index + 1;
            let kind = if depth == skipped_depth { PlaceKind::SkippedElement } else { PlaceKind::Element };
            if let Some(known) = self.path.get(depth)
                && self.places[usize::from(*known)].is(element, kind)
            {
                continue;
            }
            self.path.truncate(depth);
            let place = self.child(self.path[index], element, kind)?;
            self.path.push(place);
        }
        self.path.last().copied()
    }

    /// Closes and opens elements until the open elements are those that `place` stands for. The
    /// caller must not have changed the open elements since the last call of
    /// [`locate`](Self::locate) or [`restore`](Self::restore).
    pub(super) fn restore(&mut self, open: &mut OpenElements, place: u16) {
        let mut place = place;
        self.added.clear();
        while let entry = &self.places[usize::from(place)]
            && self.path.get(usize::from(entry.depth)) != Some(&place)
        {
            self.added.push(place);
            place = entry.parent;
        }
        let common = usize::from(self.places[usize::from(place)].depth);
        while open.depth() > common {
            open.pop_innermost();
        }
        self.path.truncate(common + 1);
        for added in self.added.drain(..).rev() {
            open.push_exact(&self.places[usize::from(added)].element);
            self.path.push(added);
        }
    }

    /// Returns the depth of the selected element whose text is skipped at this place, or 0.
    pub(super) fn skipped_depth(&self, place: u16) -> usize {
        usize::from(self.places[usize::from(place)].skipped_depth)
    }

    /// Returns the place (state) that the start tag of `element` leads to from the place `parent`.
    /// With [`PlaceKind::Tag`], returns the place inside this start tag. Adds the place if it is
    /// new. Returns `None` if there are too many places.
    pub(super) fn child(&mut self, parent: u16, element: &OpenElement, kind: PlaceKind) -> Option<u16> {
        let mut child = self.places[usize::from(parent)].first_child;
        while let Some(place) = self.places.get(usize::from(child)) {
            if place.is(element, kind) {
                return Some(child);
            }
            child = place.next_sibling;
        }
        if self.places.len() >= MAX_PLACES {
            self.forget();
            return None;
        }
        let added = self.places.len() as u16;
        let outside = &mut self.places[usize::from(parent)];
        let mut place = PagePlace::new(parent, *element, kind);
        place.next_sibling = std::mem::replace(&mut outside.first_child, added);
        place.depth = outside.depth + u16::from(kind != PlaceKind::Tag);
        place.skipped_depth = if kind == PlaceKind::SkippedElement { place.depth } else { outside.skipped_depth };
        self.places.push(place);
        Some(added)
    }

    /// Removes all places and runs, because there are too many, and begins a pause. During the
    /// pause, a number of tags are read without the automaton.
    fn forget(&mut self) {
        self.clear();
        self.begin_pause();
    }

    fn begin_pause(&mut self) {
        self.credit = FIRST_CREDIT / 4;
        self.pause = self.next_pause;
        self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
    }

    /// Returns the place before the tag, if `place` is in a tag; otherwise `place` itself.
    fn outside(&self, place: u16) -> u16 {
        let entry = &self.places[usize::from(place)];
        if entry.kind == PlaceKind::Tag { entry.parent } else { place }
    }

    /// Reads known markup from the cursor `from` on, and returns its end. Known markup consists of
    /// runs in the automaton and of gaps (texts and attribute values). In a selected element,
    /// `hits` tests each text: if the filter may match in the text, the known markup ends before
    /// it.
    #[inline(never)]
    pub(super) fn follow(
        &mut self,
        bytes: &[u8],
        from: KnownMarkupCursor,
        hits: Option<&HitAcrossMarkupTest>,
    ) -> KnownMarkupEnd {
        let KnownMarkupCursor { mut at, mut tag, place, mut previous, mut guess } = from;
        let (mut context, mut known, mut is_in_gap) = (0, 0_u32, false);
        let mut opening = ElementOpeningRun { at, run: NONE };
        while let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<RUN_SIZE>()) {
            let run = match self.runs.get(usize::from(guess)) {
                Some(run) if run.begins(window) => run,
                _ => {
                    let Some(found) = self.find_next(previous, context, place, window) else { break };
                    guess = found;
                    &self.runs[usize::from(found)]
                }
            };
            known += 1;
            if run.skipped_start.is_some() {
                opening = ElementOpeningRun { at, run: guess };
            }
            let start = at;
            at += usize::from(run.length);
            context = usize::from(previous) % CONTEXTS;
            (previous, guess) = (guess, run.next[context]);
            let rest = &bytes[at..];
            let length = match run.gap {
                GapAfterRun::Nothing => continue,
                GapAfterRun::Text => find_near(b'<', rest),
                GapAfterRun::SelectedText => hits.and_then(|hits| hits.skip_text(bytes, at)).map(|end| end - at),
                GapAfterRun::AttributeValue => {
                    if let Some(offset) = run.tag_start {
                        tag = start + usize::from(offset);
                    }
                    find_near(b'"', rest)
                }
            };
            let Some(length) = length else {
                is_in_gap = true;
                break;
            };
            at += length;
        }
        self.credit = (self.credit + known).min(MAX_CREDIT);
        if self.credit == MAX_CREDIT {
            self.next_pause = FIRST_PAUSE;
        }
        if self.credit < COST_OF_UNKNOWN {
            self.begin_pause();
        }
        self.end_of_known(KnownMarkupCursor { at, tag, place, previous, guess }, opening, is_in_gap)
    }

    /// Returns the end of the known markup, which is at the cursor `here`. `opening` is the run
    /// that opened the last selected element; its index is [`NONE`] if there is none. `is_in_gap`
    /// is true if the text or attribute value after the last run was not read to its end.
    fn end_of_known(&self, here: KnownMarkupCursor, opening: ElementOpeningRun, is_in_gap: bool) -> KnownMarkupEnd {
        let last = self.runs.get(usize::from(here.previous));
        let gap = last.map(|run| run.gap);
        let opened = self.runs.get(usize::from(opening.run));
        KnownMarkupEnd {
            at: if gap == Some(GapAfterRun::AttributeValue) { here.tag } else { here.at },
            place: self.outside(last.map_or(here.place, |run| run.place)),
            skipped_start: opened.and_then(|run| run.skipped_start).map(|start| opening.at + usize::from(start)),
            collected: opened.filter(|_| is_in_gap && gap == Some(GapAfterRun::SelectedText)).map(|_| opening),
        }
    }

    /// Returns the index of the run that follows the run `previous` and whose bytes `window` begins
    /// with. If `previous` is [`NONE`], searches the runs of the place `first`. A found run becomes
    /// the prediction number `context` of `previous`. If there is no such run, lowers the credit.
    #[inline(never)]
    fn find_next(&mut self, previous: u16, context: usize, first: u16, window: &[u8; RUN_SIZE]) -> Option<u16> {
        let place = self.runs.get(usize::from(previous)).map_or(first, |run| run.place);
        let Some(found) = self.find(place, window) else {
            self.credit = self.credit.saturating_sub(COST_OF_UNKNOWN);
            return None;
        };
        if let Some(run) = self.runs.get_mut(usize::from(previous)) {
            run.next[context] = found;
        }
        Some(found)
    }

    /// Returns the index of a run that begins at the place `place` and whose bytes are the first
    /// bytes of `window`; `None` if there is no such run.
    #[inline(never)]
    fn find(&self, place: u16, window: &[u8; RUN_SIZE]) -> Option<u16> {
        for &index in &self.places[usize::from(place)].runs {
            // No run has the index `NONE`.
            let run = self.runs.get(usize::from(index))?;
            if run.begins(window) {
                return Some(index);
            }
        }
        None
    }

    /// Returns the place around this place. For a place in a tag, this is the place before the tag.
    /// For any other place, it is the place after the innermost open element is closed. `None` if
    /// no element is open.
    pub(super) fn parent(&self, place: u16) -> Option<u16> {
        Some(self.places[usize::from(place)].parent).filter(|parent| *parent != NONE)
    }

    /// Returns the place (state) inside a start tag with this name, and adds the place if it is
    /// new. `outside` is the place before the tag. Returns `None` if there are too many places.
    pub(super) fn tag(&mut self, outside: u16, name: TagName) -> Option<u16> {
        self.child(outside, &OpenElement::new(name, Namespace::Html, 0, 0), PlaceKind::Tag)
    }

    /// Adds a run that begins at the place `from`. The bytes of the run are the first `length`
    /// bytes of `window`, and its other properties are those of `run`. Returns `None` if the run is
    /// too long, or if there are too many runs.
    pub(super) fn add(&mut self, from: u16, window: &[u8; RUN_SIZE], length: usize, run: MarkupRun) -> Option<()> {
        if length > RUN_SIZE {
            return None;
        }
        let is_known = |known: &u16| {
            let known = self.runs.get(usize::from(*known));
            known.is_some_and(|known| usize::from(known.length) == length && known.begins(window))
        };
        if self.places[usize::from(from)].runs.iter().any(is_known) {
            return Some(());
        }
        let run = MarkupRun { length: length as u8, next: [NONE; CONTEXTS], ..run }.with_text(&window[..length]);
        let entry = &mut self.places[usize::from(from)];
        let replaced = &mut entry.runs[usize::from(entry.next_replaced)];
        entry.next_replaced = (entry.next_replaced + 1) % RUNS_OF_PLACE as u8;
        if *replaced == NONE {
            if self.runs.len() >= MAX_RUNS {
                self.forget();
                return None;
            }
            *replaced = self.runs.len() as u16;
            self.runs.push(run);
        } else {
            self.runs[usize::from(*replaced)] = run;
        }
        Some(())
    }
}

impl KnownMarkupCursor {
    /// Makes a cursor before the tag at the index `at`. `place` is the place (state of the
    /// automaton) there.
    pub(super) fn new(at: usize, place: u16) -> Self {
        Self { at, tag: at, place, previous: NONE, guess: NONE }
    }
}

impl PagePlace {
    fn new(parent: u16, element: OpenElement, kind: PlaceKind) -> Self {
        Self {
            parent,
            first_child: NONE,
            next_sibling: NONE,
            depth: 0,
            skipped_depth: 0,
            kind,
            element,
            runs: [NONE; RUNS_OF_PLACE],
            next_replaced: 0,
        }
    }

    fn is(&self, element: &OpenElement, kind: PlaceKind) -> bool {
        self.element.is_same(element) && self.kind == kind
    }
}

impl MarkupRun {
    fn with_text(mut self, text: &[u8]) -> Self {
        let (mut words, mut masks) = ([[0; 8]; RUN_SIZE / 8], [[0; 8]; RUN_SIZE / 8]);
        words.as_flattened_mut()[..text.len()].copy_from_slice(text);
        masks.as_flattened_mut()[..text.len()].fill(0xff);
        (self.words, self.masks) = (words.map(u64::from_le_bytes), masks.map(u64::from_le_bytes));
        self
    }

    /// Returns true if `window` begins with this run.
    #[inline(always)]
    fn begins(&self, window: &[u8; RUN_SIZE]) -> bool {
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| window[8 * index + at]));
        let differences = |index: usize| (word(index) & self.masks[index]) ^ self.words[index];
        let is_same = |words: std::ops::Range<usize>| words.fold(0, |all, index| all | differences(index)) == 0;
        is_same(0..2) && (self.length <= 16 || is_same(2..4) && (self.length <= 32 || is_same(4..8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(repeated: &mut RepeatedMarkup, number: usize) -> Option<u16> {
        repeated.tag(0, TagName::new(format!("x{number}").as_bytes()))
    }

    #[test]
    fn known_run_leads_to_its_place() {
        let mut repeated = RepeatedMarkup::default();
        let place = child(&mut repeated, 1).unwrap();
        let page = format!("<x1 href=\"value\" title=\"{}", "y".repeat(100));
        let window = page.as_bytes().first_chunk().unwrap();
        let run = MarkupRun { place, gap: GapAfterRun::AttributeValue, tag_start: Some(0), ..MarkupRun::default() };
        repeated.add(0, window, 10, run).unwrap();
        let end = repeated.follow(page.as_bytes(), KnownMarkupCursor::new(0, 0), None);
        assert_eq!((end.at, end.place), (0, 0), "the tag is not complete");
        assert_eq!(repeated.find(place, window), None);
        let other = page.replace("href", "hreF");
        assert_eq!(repeated.find(0, other.as_bytes().first_chunk().unwrap()), None);
        assert!(repeated.add(0, window, RUN_SIZE + 1, run).is_none());
    }

    #[test]
    fn too_many_places_are_forgotten() {
        let mut repeated = RepeatedMarkup::default();
        for round in 0..3 {
            let added = (0..).take_while(|number| child(&mut repeated, *number).is_some()).count();
            assert_eq!(added, MAX_PLACES - 1);
            let paused = (0..).take_while(|_| repeated.count_tag_and_check_pause()).count();
            assert_eq!(paused, (FIRST_PAUSE << round) as usize - 1);
        }
    }

    #[test]
    fn unknown_runs_lead_to_a_pause() {
        let mut repeated = RepeatedMarkup::default();
        let page = "<a>".repeat(40);
        let calls = (0..).take_while(|_| {
            repeated.follow(page.as_bytes(), KnownMarkupCursor::new(0, 0), None);
            !repeated.count_tag_and_check_pause()
        });
        assert_eq!(calls.count() as u32, FIRST_CREDIT / COST_OF_UNKNOWN - 1);
    }

    #[test]
    fn place_has_a_limited_number_of_runs() {
        let mut repeated = RepeatedMarkup::default();
        for number in 0..3 * RUNS_OF_PLACE {
            let page = format!("<x{number:062}");
            let window = page.as_bytes().first_chunk().unwrap();
            repeated.add(0, window, RUN_SIZE, MarkupRun::default()).unwrap();
            assert!(repeated.find(0, window).is_some());
        }
        assert_eq!(repeated.runs.len(), RUNS_OF_PLACE);
    }
}
