//! The states and transitions of the [`MarkupAutomaton`](super::MarkupAutomaton), and positions in
//! the bytes that the automaton reads.

use super::super::open_element_stack::OpenElement;
use super::{MAX_LITERAL_SIZE, NO_INDEX, PREDICTIONS_PER_TRANSITION, TRANSITIONS_PER_STATE};

/// A state of the [`MarkupAutomaton`](super::MarkupAutomaton). It stands for one stack of open
/// elements, such as `html > body > table > tbody > tr`. A state inside a start tag also stands for
/// the name of that tag.
///
/// The states form a tree like the elements of a page. States are identified by their index in
/// `MarkupAutomaton::states`.
#[derive(Clone, Copy)]
pub(super) struct AutomatonState {
    /// The index of the parent state, which lacks the innermost open element: the parent of
    /// `html > body` is `html`. The parent of a state inside a start tag is the state before the
    /// `<`. [`NO_INDEX`] for the root state, in which no element is open.
    pub(super) parent: u16,
    /// The index of the child state that was added last; [`NO_INDEX`] if there is none.
    pub(super) first_child: u16,
    /// The index of the next child state of the same parent; [`NO_INDEX`] for the last one.
    pub(super) next_sibling: u16,
    /// The number of open elements. The element whose start tag is incomplete is not counted.
    pub(super) depth: u16,
    /// The depth of the selected element whose text is skipped, because the regular expression of
    /// `--extract` cannot match in it. 0 if there is no such element.
    pub(super) skipped_depth: u16,
    pub(super) kind: AutomatonStateKind,
    /// The innermost open element. For a state inside a start tag, the element that the tag opens.
    pub(super) element: OpenElement,
    /// The indexes of the transitions that start in this state, in `MarkupAutomaton::transitions`.
    /// Unused entries are [`NO_INDEX`].
    pub(super) transitions: [u16; TRANSITIONS_PER_STATE],
    /// The index of the entry in `transitions` that the next new transition overwrites.
    pub(super) next_replaced: u8,
}

/// The kind of position in the page that an automaton state (a stack of open elements) stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::extraction::html) enum AutomatonStateKind {
    /// Between tags, in the content of an element.
    ElementContent,
    /// Between tags, in the content of an element whose text a query selects. The text is skipped,
    /// because the regular expression of `--extract` cannot match in it.
    SkippedElementContent,
    /// Inside a start tag, after the value of an attribute.
    StartTag,
}

/// The bytes after the literal of a [`MarkupTransition`] that differ at each repetition. The
/// automaton skips them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::extraction::html) enum VariableBytes {
    /// No bytes: the next literal follows directly.
    #[default]
    None,
    /// Text up to the next `<`, outside of elements whose text a query selects.
    Text,
    /// Text up to the next `<`, inside an element whose text a query selects.
    SelectedText,
    /// An attribute value up to the `"` that ends it.
    AttributeValue,
}

/// The effect of the tags in the literal bytes of a [`MarkupTransition`] on the text of the element
/// around them.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::extraction::html) enum TransitionTextEffect {
    /// No effect, as of `<b>`: the text before and after can be one word.
    #[default]
    None,
    /// The literal separates the words before and after it, as `<br>` and white space do.
    SeparatesWords,
    /// A tag in the literal is followed by the content of an element that keeps white space, such
    /// as `<pre>`. The automaton cannot collect such text. The tokenizer therefore reads the
    /// selected element again.
    NeedsTokenizer,
}

/// A transition of the [`MarkupAutomaton`](super::MarkupAutomaton): literal bytes of markup, such
/// as `</td><td class="odd">`, the [`VariableBytes`] after them, and the state that follows.
#[derive(Clone, Copy, Default)]
pub(in crate::extraction::html) struct MarkupTransition {
    /// The literal bytes, as little-endian words. Unused bytes are 0.
    pub(super) words: [u64; MAX_LITERAL_SIZE / 8],
    /// A mask for `words`: 0xff for each byte of the literal, and 0 for each unused byte.
    pub(super) masks: [u64; MAX_LITERAL_SIZE / 8],
    /// The number of literal bytes.
    pub(super) length: u8,
    /// The index of the state after the literal.
    pub(in crate::extraction::html) target: u16,
    pub(in crate::extraction::html) variable: VariableBytes,
    pub(in crate::extraction::html) text_effect: TransitionTextEffect,
    /// The offset in the literal, in bytes, of the `<` of the start tag in which the literal ends,
    /// such as 4 in `<td><a href="`. `None` if the literal ends outside a start tag, or if the `<`
    /// is in an earlier literal.
    pub(in crate::extraction::html) tag_start: Option<u8>,
    /// The offset in the literal, in bytes, after the start tag of a skipped element: a query
    /// selects its text, but the text is collected only if the regular expression of `--extract`
    /// may match in it. `None` if there is no such tag.
    pub(in crate::extraction::html) skipped_start: Option<u8>,
    /// Predictions of the transition that follows this one: indexes in
    /// `MarkupAutomaton::transitions`, or [`NO_INDEX`]. If the transition before this one has the
    /// index `p`, the prediction is the entry `p` modulo [`PREDICTIONS_PER_TRANSITION`]. This entry
    /// is the transition that followed the last time.
    pub(super) predictions: [u16; PREDICTIONS_PER_TRANSITION],
}

/// A position in the bytes that the [`MarkupAutomaton`](super::MarkupAutomaton) reads: the
/// beginning of the next literal, with the automaton's state there. Indexes count the bytes of the
/// page.
#[derive(Clone, Copy)]
pub(in crate::extraction::html) struct AutomatonCursor {
    /// The index of the next byte to read.
    pub(super) at: usize,
    /// The index of the `<` of the start tag that contains the cursor. Only used inside a tag.
    pub(super) tag: usize,
    /// The index of the automaton's current state. In [`MarkupAutomaton::match_markup`], this field
    /// keeps the state at the start of the call; the current state is then the target of the
    /// transition `previous`.
    ///
    /// [`MarkupAutomaton::match_markup`]: super::MarkupAutomaton::match_markup
    pub(super) state: u16,
    /// The index of the transition that led to the cursor; [`NO_INDEX`] if there is none.
    pub(super) previous: u16,
    /// The index of the transition that is tried first, because it followed the last time;
    /// [`NO_INDEX`] without such a prediction.
    pub(super) predicted: u16,
}

/// A [`MarkupTransition`] that the automaton followed at a position in the page. Its literal
/// contains the start tag of an element whose text a query selects.
#[derive(Clone, Copy)]
pub(in crate::extraction::html) struct ElementOpeningTransition {
    /// The index in the page's bytes at which the literal begins.
    pub(super) at: usize,
    /// The index in `MarkupAutomaton::transitions`.
    pub(super) transition: u16,
}

/// The position at which [`MarkupAutomaton::match_markup`] stopped, for example because no
/// transition matches the next bytes. Its documentation lists the reasons. Indexes count the bytes
/// of the page.
///
/// [`MarkupAutomaton::match_markup`]: super::MarkupAutomaton::match_markup
pub(in crate::extraction::html) struct MatchedMarkupEnd {
    /// The index of the first tag or text that was not read.
    pub(in crate::extraction::html) at: usize,
    /// The index of the automaton's state at `at`, which is never inside a tag.
    pub(in crate::extraction::html) state: u16,
    /// The index after the last start tag of a skipped element: a query selects its text, but the
    /// text is collected only if the regular expression of `--extract` may match in it. `None` if
    /// no such tag was read.
    pub(in crate::extraction::html) skipped_start: Option<usize>,
    /// The transition that opened the selected element in whose text the automaton stopped. The
    /// regular expression of `--extract` may match there, or the text is incomplete. The caller
    /// collects this text. `None` if the automaton stopped elsewhere.
    pub(in crate::extraction::html) collected: Option<ElementOpeningTransition>,
}

impl AutomatonCursor {
    /// Makes a cursor before the tag at the index `at` of the page's bytes. `state` is the index of
    /// the automaton's state there.
    pub(in crate::extraction::html) fn new(at: usize, state: u16) -> Self {
        Self { at, tag: at, state, previous: NO_INDEX, predicted: NO_INDEX }
    }
}

impl AutomatonState {
    pub(super) fn new(parent: u16, element: OpenElement, kind: AutomatonStateKind) -> Self {
        Self {
            parent,
            first_child: NO_INDEX,
            next_sibling: NO_INDEX,
            depth: 0,
            skipped_depth: 0,
            kind,
            element,
            transitions: [NO_INDEX; TRANSITIONS_PER_STATE],
            next_replaced: 0,
        }
    }

    /// Returns true if this state has this innermost element and this kind.
    pub(super) fn is(&self, element: &OpenElement, kind: AutomatonStateKind) -> bool {
        self.element.is_same(element) && self.kind == kind
    }
}

impl MarkupTransition {
    /// Returns the transition with `literal` as its literal bytes, at most [`MAX_LITERAL_SIZE`].
    pub(super) fn with_literal(mut self, literal: &[u8]) -> Self {
        let (mut words, mut masks) = ([[0; 8]; MAX_LITERAL_SIZE / 8], [[0; 8]; MAX_LITERAL_SIZE / 8]);
        words.as_flattened_mut()[..literal.len()].copy_from_slice(literal);
        masks.as_flattened_mut()[..literal.len()].fill(0xff);
        (self.words, self.masks) = (words.map(u64::from_le_bytes), masks.map(u64::from_le_bytes));
        self
    }

    /// Returns true if `window`, the next bytes of the page, begins with the literal of this
    /// transition.
    #[inline(always)]
    pub(super) fn matches(&self, window: &[u8; MAX_LITERAL_SIZE]) -> bool {
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| window[8 * index + at]));
        let differences = |index: usize| (word(index) & self.masks[index]) ^ self.words[index];
        let is_same = |words: std::ops::Range<usize>| words.fold(0, |all, index| all | differences(index)) == 0;
        is_same(0..2) && (self.length <= 16 || is_same(2..4) && (self.length <= 32 || is_same(4..8)))
    }
}
