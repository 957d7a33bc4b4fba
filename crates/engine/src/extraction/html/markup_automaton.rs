//! An automaton that skips repeated markup. It is built while the page is read.
//!
//! A page from a template repeats few different pieces of markup, such as `</td></tr>\n<tr
//! class="odd"><td>`. Between them are texts and attribute values that differ. A tokenizer finds
//! the end of each tag before it can read the next one. The automaton is faster: it predicts the
//! piece of markup that followed the last time, and compares all its bytes at once.
//!
//! - A *state* stands for a stack of open elements (`html > body > table > tbody > tr`), the
//!   selected element whose text is skipped, and the current start tag after an attribute value.
//! - A *transition* leads from one state to another. It consists of literal bytes (up to 64 bytes
//!   of markup) and [`VariableBytes`] after them: a text up to `<`, or an attribute value up to
//!   `"`.
//!
//! While no text is collected, a tag only opens and closes elements, and its effect depends only on
//! the open elements. So the same literal leads from the same state always to the same target
//! state. The page `docs/design/extraction.md` has an example.

mod selected_text;
mod state_and_transition;

use super::open_element_stack::{Namespace, OpenElement, OpenElementStack};
use super::tag_name_and_rules::TagName;
use crate::extraction::inline_memchr::find_near;
use crate::extraction::prefilter::HitAcrossMarkupTest;
pub(super) use selected_text::{SelectedTextCollector, TextCollectionResult};
pub(super) use state_and_transition::{
    AutomatonCursor, AutomatonStateKind, MarkupTransition, TransitionTextEffect, VariableBytes,
};
use state_and_transition::{AutomatonState, ElementOpeningTransition, MatchedMarkupEnd};

/// The maximum number of literal bytes of a [`MarkupTransition`]. So many bytes are compared with
/// the page at once.
pub(super) const MAX_LITERAL_SIZE: usize = 64;

/// The maximum number of states of a [`MarkupAutomaton`]. If more are needed, the automaton is
/// emptied and built anew.
const MAX_STATES: usize = 128;

/// The maximum number of transitions of a [`MarkupAutomaton`]. If more are needed, the automaton is
/// emptied and built anew.
const MAX_TRANSITIONS: usize = 192;

/// The maximum number of transitions that start in one state of a [`MarkupAutomaton`]. A further
/// transition overwrites the oldest one.
const TRANSITIONS_PER_STATE: usize = 16;

/// The number of predictions in each transition of a [`MarkupAutomaton`]. A prediction is the index
/// of the transition that followed the last time.
const PREDICTIONS_PER_TRANSITION: usize = 16;

/// The index that stands for no state or no transition of a [`MarkupAutomaton`].
const NO_INDEX: u16 = u16::MAX;

/// The initial credit of a [`MarkupAutomaton`], a measure of how often markup repeats. Each
/// transition that matches adds 1, and each position without a matching transition costs
/// [`MISSING_TRANSITION_COST`]. If less than this cost is left, the automaton pauses, and its
/// credit becomes a quarter of the initial one.
const INITIAL_CREDIT: u32 = 400;
/// The maximum credit of a [`MarkupAutomaton`], see [`INITIAL_CREDIT`].
const MAX_CREDIT: u32 = 1000;
/// The credit that a [`MarkupAutomaton`] loses if no transition matches, see [`INITIAL_CREDIT`].
const MISSING_TRANSITION_COST: u32 = 8;

/// The length, in tags, of the first pause of a [`MarkupAutomaton`]. During a pause, tags are read
/// one by one, without the automaton. Each further pause is twice as long, up to [`MAX_PAUSE`].
const INITIAL_PAUSE: u32 = 256;
/// The length, in tags, of the longest pause of a [`MarkupAutomaton`], see [`INITIAL_PAUSE`].
const MAX_PAUSE: u32 = 1 << 16;

/// An automaton that skips repeated markup in the pages of a search, and keeps track of the open
/// elements. Each transition matches literal bytes such as `</td><td>`, and then skips a text or an
/// attribute value, which differs at each repetition.
///
/// Each search has a separate automaton, because the effect of a tag depends on the queries and the
/// regular expression of the search.
pub(super) struct MarkupAutomaton {
    /// The states. The first one is the root state, in which no element is open.
    states: Vec<AutomatonState>,
    transitions: Vec<MarkupTransition>,
    /// The indexes of the root state and of the states of the open elements: the entry at the index
    /// n is the state in which only the n outermost elements are open. [`state_of`](Self::state_of)
    /// and [`restore_open_elements`](Self::restore_open_elements) update the list.
    path: Vec<u16>,
    /// A buffer of [`restore_open_elements`](Self::restore_open_elements), empty between calls: the
    /// states of the elements to open, the innermost first.
    added: Vec<u16>,
    /// A counter that falls when no transition matches, see [`INITIAL_CREDIT`].
    credit: u32,
    /// The number of tags until the end of the current pause; 0 outside of pauses.
    pause: u32,
    /// The length of the next pause, in tags.
    next_pause: u32,
}

impl Default for MarkupAutomaton {
    fn default() -> Self {
        let (states, transitions, path, added) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut automaton =
            Self { states, transitions, path, added, credit: INITIAL_CREDIT, pause: 0, next_pause: INITIAL_PAUSE };
        automaton.clear();
        automaton
    }
}

impl MarkupAutomaton {
    /// Removes all transitions and all states except the root state, in which no element is open.
    fn clear(&mut self) {
        self.transitions.clear();
        self.states.clear();
        self.states.push(AutomatonState::new(NO_INDEX, OpenElement::default(), AutomatonStateKind::ElementContent));
        self.path.clear();
        self.path.push(0);
    }

    /// Counts one tag of the page. Returns true during a pause of the automaton: the caller then
    /// reads the tag without the automaton. A pause begins if the markup repeats rarely, or if
    /// there are too many states or transitions. It lasts for a number of tags ([`INITIAL_PAUSE`]).
    pub(super) fn count_tag_and_check_pause(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause > 0
    }

    /// Returns the index of the state that stands for this stack of open elements, and adds the
    /// state if it is new. `skipped_depth` is the depth of the selected element whose text is
    /// skipped; 0 if there is none. Returns `None` if there are too many states.
    pub(super) fn state_of(&mut self, open: &OpenElementStack, skipped_depth: usize) -> Option<u16> {
        let elements = open.elements();
        self.path.truncate(elements.len() + 1);
        for (index, element) in elements.iter().enumerate() {
            let depth = index + 1;
            let kind = if depth == skipped_depth {
                AutomatonStateKind::SkippedElementContent
            } else {
                AutomatonStateKind::ElementContent
            };
            if let Some(known) = self.path.get(depth)
                && self.states[usize::from(*known)].is(element, kind)
            {
                continue;
            }
            self.path.truncate(depth);
            let state = self.child_state(self.path[index], element, kind)?;
            self.path.push(state);
        }
        self.path.last().copied()
    }

    /// Closes and opens elements in `open` until they are those that the state with the index
    /// `state` stands for. The caller must not have changed `open` since the last call of
    /// [`state_of`](Self::state_of) or [`restore_open_elements`](Self::restore_open_elements).
    pub(super) fn restore_open_elements(&mut self, open: &mut OpenElementStack, state: u16) {
        let mut state = state;
        self.added.clear();
        while let entry = &self.states[usize::from(state)]
            && self.path.get(usize::from(entry.depth)) != Some(&state)
        {
            self.added.push(state);
            state = entry.parent;
        }
        let common = usize::from(self.states[usize::from(state)].depth);
        while open.depth() > common {
            open.pop_innermost();
        }
        self.path.truncate(common + 1);
        for added in self.added.drain(..).rev() {
            open.push_with_final_flags(&self.states[usize::from(added)].element);
            self.path.push(added);
        }
    }

    /// Returns the depth, in this state, of the selected element whose text is skipped; 0 if there
    /// is none.
    pub(super) fn skipped_depth(&self, state: u16) -> usize {
        usize::from(self.states[usize::from(state)].skipped_depth)
    }

    /// Returns the index of the state below `parent` for `element`: the state in the content of the
    /// element or, with [`AutomatonStateKind::StartTag`], the state inside its start tag. Adds the
    /// state if it is missing. If there are already [`MAX_STATES`] states, clears the automaton
    /// instead, and returns `None`.
    pub(super) fn child_state(&mut self, parent: u16, element: &OpenElement, kind: AutomatonStateKind) -> Option<u16> {
        let mut child = self.states[usize::from(parent)].first_child;
        while let Some(state) = self.states.get(usize::from(child)) {
            if state.is(element, kind) {
                return Some(child);
            }
            child = state.next_sibling;
        }
        if self.states.len() >= MAX_STATES {
            self.clear_and_pause();
            return None;
        }
        let added = self.states.len() as u16;
        let parent_state = &mut self.states[usize::from(parent)];
        let mut state = AutomatonState::new(parent, *element, kind);
        state.next_sibling = std::mem::replace(&mut parent_state.first_child, added);
        state.depth = parent_state.depth + u16::from(kind != AutomatonStateKind::StartTag);
        state.skipped_depth =
            if kind == AutomatonStateKind::SkippedElementContent { state.depth } else { parent_state.skipped_depth };
        self.states.push(state);
        Some(added)
    }

    /// Removes all states and transitions, because there are too many, and begins a pause: the next
    /// tags are read one by one, without the automaton.
    fn clear_and_pause(&mut self) {
        self.clear();
        self.begin_pause();
    }

    /// Begins a pause of `next_pause` tags, which are read one by one, without the automaton. The
    /// pause after it will be twice as long.
    fn begin_pause(&mut self) {
        self.credit = INITIAL_CREDIT / 4;
        self.pause = self.next_pause;
        self.next_pause = (2 * self.next_pause).min(MAX_PAUSE);
    }

    /// Returns the state before the `<` if `state` is inside a start tag; otherwise `state` itself.
    /// States are given by their index.
    fn state_outside_tags(&self, state: u16) -> u16 {
        let entry = &self.states[usize::from(state)];
        if entry.kind == AutomatonStateKind::StartTag { entry.parent } else { state }
    }

    /// Runs the automaton from the cursor `from`, and returns the position at which it stops:
    /// - No transition matches, or fewer than [`MAX_LITERAL_SIZE`] bytes are left.
    /// - The end of a text or of an attribute value is not in `bytes`.
    /// - The regular expression of `--extract` may match in the text of a selected element (one
    ///   whose text a query selects). `hits` tests this. Without `hits`, the automaton stops at
    ///   each such text.
    #[inline(never)]
    pub(super) fn match_markup(
        &mut self,
        bytes: &[u8],
        from: AutomatonCursor,
        hits: Option<&HitAcrossMarkupTest>,
    ) -> MatchedMarkupEnd {
        let AutomatonCursor { mut at, mut tag, state, mut previous, mut predicted } = from;
        let (mut slot, mut known, mut is_cut_off) = (0, 0_u32, false);
        let mut opening = ElementOpeningTransition { at, transition: NO_INDEX };
        while let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<MAX_LITERAL_SIZE>()) {
            let transition = match self.transitions.get(usize::from(predicted)) {
                Some(transition) if transition.matches(window) => transition,
                _ => {
                    let Some(found) = self.find_next_transition(previous, slot, state, window) else { break };
                    predicted = found;
                    &self.transitions[usize::from(found)]
                }
            };
            known += 1;
            if transition.skipped_start.is_some() {
                opening = ElementOpeningTransition { at, transition: predicted };
            }
            let start = at;
            at += usize::from(transition.length);
            slot = usize::from(previous) % PREDICTIONS_PER_TRANSITION;
            (previous, predicted) = (predicted, transition.predictions[slot]);
            let rest = &bytes[at..];
            let length = match transition.variable {
                VariableBytes::None => continue,
                VariableBytes::Text => find_near(b'<', rest),
                VariableBytes::SelectedText => hits.and_then(|hits| hits.skip_text(bytes, at)).map(|end| end - at),
                VariableBytes::AttributeValue => {
                    if let Some(offset) = transition.tag_start {
                        tag = start + usize::from(offset);
                    }
                    find_near(b'"', rest)
                }
            };
            let Some(length) = length else {
                is_cut_off = true;
                break;
            };
            at += length;
        }
        self.credit = (self.credit + known).min(MAX_CREDIT);
        if self.credit == MAX_CREDIT {
            self.next_pause = INITIAL_PAUSE;
        }
        if self.credit < MISSING_TRANSITION_COST {
            self.begin_pause();
        }
        self.matched_end(AutomatonCursor { at, tag, state, previous, predicted }, opening, is_cut_off)
    }

    /// Returns the result of [`match_markup`](Self::match_markup), which has stopped at the cursor
    /// `here`. `opening` is the last transition that this run has followed and that opens a
    /// selected element (one whose text a query selects); its index is [`NO_INDEX`] if there is
    /// none. `is_cut_off` is true if the automaton has stopped before the end of a text or an
    /// attribute value.
    fn matched_end(
        &self,
        here: AutomatonCursor,
        opening: ElementOpeningTransition,
        is_cut_off: bool,
    ) -> MatchedMarkupEnd {
        let last = self.transitions.get(usize::from(here.previous));
        let variable = last.map(|transition| transition.variable);
        let opened = self.transitions.get(usize::from(opening.transition));
        MatchedMarkupEnd {
            at: if variable == Some(VariableBytes::AttributeValue) { here.tag } else { here.at },
            state: self.state_outside_tags(last.map_or(here.state, |transition| transition.target)),
            skipped_start: opened
                .and_then(|transition| transition.skipped_start)
                .map(|start| opening.at + usize::from(start)),
            collected: opened.filter(|_| is_cut_off && variable == Some(VariableBytes::SelectedText)).map(|_| opening),
        }
    }

    /// Returns the index of a transition that matches `window`, the next bytes of the page, and
    /// starts in the state to which the transition `previous` leads. Stores this index in
    /// `previous`, as the prediction with the index `slot`. If `previous` is [`NO_INDEX`], the
    /// transition starts in the state `first`, and nothing is stored. Returns `None`, and lowers
    /// the credit, if no transition matches.
    #[inline(never)]
    fn find_next_transition(
        &mut self,
        previous: u16,
        slot: usize,
        first: u16,
        window: &[u8; MAX_LITERAL_SIZE],
    ) -> Option<u16> {
        let state = self.transitions.get(usize::from(previous)).map_or(first, |transition| transition.target);
        let Some(found) = self.find_transition(state, window) else {
            self.credit = self.credit.saturating_sub(MISSING_TRANSITION_COST);
            return None;
        };
        if let Some(transition) = self.transitions.get_mut(usize::from(previous)) {
            transition.predictions[slot] = found;
        }
        Some(found)
    }

    /// Returns the index of a transition that starts in the state `state` and matches `window`, the
    /// next bytes of the page. Returns `None` if there is no such transition.
    #[inline(never)]
    fn find_transition(&self, state: u16, window: &[u8; MAX_LITERAL_SIZE]) -> Option<u16> {
        for &index in &self.states[usize::from(state)].transitions {
            // No transition has the index `NO_INDEX`.
            let transition = self.transitions.get(usize::from(index))?;
            if transition.matches(window) {
                return Some(index);
            }
        }
        None
    }

    /// Returns the index of the parent of `state`. The parent lacks the innermost open element: the
    /// parent of `html > body` is `html`. For a state inside a start tag, the parent is the state
    /// before the `<`. Returns `None` for the root state, in which no element is open.
    pub(super) fn parent_state(&self, state: u16) -> Option<u16> {
        Some(self.states[usize::from(state)].parent).filter(|parent| *parent != NO_INDEX)
    }

    /// Returns the index of the state inside a start tag with this name, after an attribute value.
    /// Adds the state if it is new. `outside` is the state before the tag. Returns `None` if there
    /// are too many states.
    pub(super) fn start_tag_state(&mut self, outside: u16, name: TagName) -> Option<u16> {
        self.child_state(outside, &OpenElement::new(name, Namespace::Html, 0, 0), AutomatonStateKind::StartTag)
    }

    /// Adds a transition that starts in the state `from`. Its literal is the first `length` bytes
    /// of `window`, and its other properties are those of `transition`. Returns `None` if the
    /// literal is longer than [`MAX_LITERAL_SIZE`], or if there are too many transitions.
    pub(super) fn add_transition(
        &mut self,
        from: u16,
        window: &[u8; MAX_LITERAL_SIZE],
        length: usize,
        transition: MarkupTransition,
    ) -> Option<()> {
        if length > MAX_LITERAL_SIZE {
            return None;
        }
        let is_known = |known: &u16| {
            let known = self.transitions.get(usize::from(*known));
            known.is_some_and(|known| usize::from(known.length) == length && known.matches(window))
        };
        if self.states[usize::from(from)].transitions.iter().any(is_known) {
            return Some(());
        }
        let transition = MarkupTransition {
            length: length as u8,
            predictions: [NO_INDEX; PREDICTIONS_PER_TRANSITION],
            ..transition
        }
        .with_literal(&window[..length]);
        let entry = &mut self.states[usize::from(from)];
        let replaced = &mut entry.transitions[usize::from(entry.next_replaced)];
        entry.next_replaced = (entry.next_replaced + 1) % TRANSITIONS_PER_STATE as u8;
        if *replaced == NO_INDEX {
            if self.transitions.len() >= MAX_TRANSITIONS {
                self.clear_and_pause();
                return None;
            }
            *replaced = self.transitions.len() as u16;
            self.transitions.push(transition);
        } else {
            self.transitions[usize::from(*replaced)] = transition;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extraction::html::{HtmlQueries, HtmlSearch};

    fn child_state(automaton: &mut MarkupAutomaton, number: usize) -> Option<u16> {
        automaton.start_tag_state(0, TagName::new(format!("x{number}").as_bytes()))
    }

    #[test]
    fn transition_leads_to_its_target_state() {
        let mut automaton = MarkupAutomaton::default();
        let state = child_state(&mut automaton, 1).unwrap();
        let page = format!("<x1 href=\"value\" title=\"{}", "y".repeat(100));
        let window = page.as_bytes().first_chunk().unwrap();
        let transition = MarkupTransition {
            target: state,
            variable: VariableBytes::AttributeValue,
            tag_start: Some(0),
            ..MarkupTransition::default()
        };
        automaton.add_transition(0, window, 10, transition).unwrap();
        let end = automaton.match_markup(page.as_bytes(), AutomatonCursor::new(0, 0), None);
        assert_eq!((end.at, end.state), (0, 0), "the tag is not complete");
        assert_eq!(automaton.find_transition(state, window), None);
        let other = page.replace("href", "hreF");
        assert_eq!(automaton.find_transition(0, other.as_bytes().first_chunk().unwrap()), None);
        assert!(automaton.add_transition(0, window, MAX_LITERAL_SIZE + 1, transition).is_none());
    }

    #[test]
    fn too_many_states_clear_the_automaton() {
        let mut automaton = MarkupAutomaton::default();
        for round in 0..3 {
            let added = (0..).take_while(|number| child_state(&mut automaton, *number).is_some()).count();
            assert_eq!(added, MAX_STATES - 1);
            let paused = (0..).take_while(|_| automaton.count_tag_and_check_pause()).count();
            assert_eq!(paused, (INITIAL_PAUSE << round) as usize - 1);
        }
    }

    #[test]
    fn missing_transitions_lead_to_a_pause() {
        let mut automaton = MarkupAutomaton::default();
        let page = "<a>".repeat(40);
        let calls = (0..).take_while(|_| {
            automaton.match_markup(page.as_bytes(), AutomatonCursor::new(0, 0), None);
            !automaton.count_tag_and_check_pause()
        });
        assert_eq!(calls.count() as u32, INITIAL_CREDIT / MISSING_TRANSITION_COST - 1);
    }

    #[test]
    fn state_has_a_limited_number_of_transitions() {
        let mut automaton = MarkupAutomaton::default();
        for number in 0..3 * TRANSITIONS_PER_STATE {
            let page = format!("<x{number:062}");
            let window = page.as_bytes().first_chunk().unwrap();
            automaton.add_transition(0, window, MAX_LITERAL_SIZE, MarkupTransition::default()).unwrap();
            assert!(automaton.find_transition(0, window).is_some());
        }
        assert_eq!(automaton.transitions.len(), TRANSITIONS_PER_STATE);
    }

    /// Checks the transitions that `docs/design/extraction.md` shows as an example: those for a table
    /// whose rows have the same markup.
    #[test]
    fn table_rows_become_three_transitions() {
        let query = crate::extraction::css::CssQuery::new("h1").unwrap();
        let queries = std::sync::Arc::new(HtmlQueries::new(&[query]).unwrap());
        let mut search = HtmlSearch::new(queries, 1 << 20, false, None);
        search.begin(None, Some(false));
        let row = |number: usize| format!("<tr><td><a href=\"/{number}\">text {number}</a></td></tr>\n");
        let page = format!("<html><body><table><tbody>{}", (0..20).map(row).collect::<String>());
        search.push(page.as_bytes(), encoding_rs::UTF_8, &mut |_| Ok(())).unwrap();
        let automaton = &search.tree.caches.automaton;
        let literal = |transition: &MarkupTransition| {
            let bytes = transition.words.map(u64::to_le_bytes).concat();
            (String::from_utf8(bytes[..usize::from(transition.length)].to_vec()).unwrap(), transition.variable)
        };
        let mut found: Vec<_> = automaton.transitions.iter().map(literal).collect();
        found.sort_by_key(|(literal, _)| literal.len());
        let literals: Vec<_> = found.iter().map(|(literal, _)| literal.as_str()).collect();
        assert_eq!(literals, ["\">", "</a></td></tr>\n", "<tr><td><a href=\""]);
        let variable = [VariableBytes::Text, VariableBytes::None, VariableBytes::AttributeValue];
        assert!(found.iter().map(|(_, variable)| *variable).eq(variable));
    }
}
