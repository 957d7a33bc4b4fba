//! The compiled selectors of several queries, as one program that runs at each start tag.
//!
//! Each compound selector is a *step*: `ul > li` has the steps `ul` and `li`. A set of steps is an
//! integer with one bit for each step. Each open element keeps four sets: the steps that may match
//! its descendants, its children, its next child, and all its later children. The first step of a
//! selector may match any element.
//!
//! If a step matches an element, its combinator selects the set to which the next step is added.
//! For example, if `ul` matches, `>` adds `li` to the set for the children of the element. If the
//! last step of a selector matches, the selector matches. So memory and time for an element do not
//! depend on the page.
//!
//! The compound selectors inside `:is()` and `:not()` are steps, too. They come before the step
//! that contains them, so that their results are known when that step is tested.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{Combinator, ComplexSelector, CompoundSelector, Condition, CssQuery, has_word};
use crate::extraction::html::tag_name_and_rules::TagName;
use crate::{Error, ErrorKind, Result};

/// The maximum number of compound selectors in all queries together: the number of bits in a `u64`,
/// which stores a set of compound selectors.
const MAX_STEPS: usize = 64;
/// The maximum number of different element names that are counted among the children of one element
/// for `:nth-of-type()`. Children with further names are not counted, and never match
/// `:nth-of-type()`. The limit bounds the memory.
const MAX_COUNTED_NAMES: usize = 1024;

/// The compiled selectors of several CSS queries: a list of steps, one for each compound selector.
/// Methods take and return sets of steps, such as those that an element may match, as a `u64`: the
/// step with the index n is in the set if bit n is 1.
pub(in crate::extraction) struct SelectorProgram {
    steps: Vec<SelectorStep>,
    /// The set of the first steps of all selectors.
    first: u64,
    counts_types: bool,
    /// True if a selector depends on elements other than the one that it matches, such as parents
    /// or siblings.
    has_state: bool,
}

/// A step of a selector program: one compound selector, compiled to the name and the conditions
/// that an element must have, and the effect of a match.
struct SelectorStep {
    name: Option<(TagName, Box<[u8]>)>,
    conditions: Vec<StepCondition>,
    outcome: StepMatchEffect,
}

/// The effect of an element that matches a step (a compiled compound selector).
enum StepMatchEffect {
    /// The element matches the CSS query with this index.
    Query(usize),
    /// The element matches a selector inside `:is()` or `:not()`. The field is the index of the
    /// selector's bit in the bit set of [`StepCondition::AnyOf`] or [`StepCondition::NoneOf`].
    Inner(usize),
    /// The selector continues with its next step, at the elements to which the combinator leads.
    Next(Combinator),
}

/// A condition of a step (a compiled compound selector). `AnyOf` stands for `:is()`, and `NoneOf`
/// for `:not()`. Their field is a bit set with one bit for each selector inside the parentheses.
enum StepCondition {
    Plain(Condition),
    AnyOf(u64),
    NoneOf(u64),
}

/// The state of the CSS selectors in a page: for the document and for each open element, the steps
/// (compound selectors) that elements inside it may match. For example, the children of an open
/// `ul` may match the step `li` of `ul > li`. Empty if each selector depends only on the element
/// that it matches.
#[derive(Default)]
pub(in crate::extraction) struct SelectorState {
    stack: Vec<OpenElementMatchState>,
}

impl SelectorState {
    /// Discards the state, so that another page can begin.
    pub(in crate::extraction) fn reset(&mut self) {
        self.stack.clear();
    }

    /// Removes the state of the open element at this depth, counted from 1.
    pub(in crate::extraction) fn remove(&mut self, depth: usize) {
        if depth + 1 == self.stack.len() {
            self.stack.pop();
        } else if depth < self.stack.len() {
            self.stack.remove(depth);
        }
    }
}

/// The sets of steps (compound selectors) that may match at the children and descendants of an open
/// element, and the number of its children so far.
#[derive(Default)]
struct OpenElementMatchState {
    descendants: u64,
    children: u64,
    next_child: u64,
    later_children: u64,
    count: u32,
    counts: Option<Box<FxHashMap<TagName, u32>>>,
}

/// The attributes in an element's start tag, which selectors examine.
pub(in crate::extraction) trait ElementAttributes {
    /// Returns the value of an attribute with decoded character references, or `None` if there is
    /// no such attribute.
    fn attribute(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}

/// The properties of an element that selectors examine at its start tag.
pub(in crate::extraction) struct ElementStart<'e> {
    pub(in crate::extraction) name: TagName,
    /// The name as written in the tag. `None` if the name is so short that `name` represents it
    /// completely.
    pub(in crate::extraction) full_name: Option<&'e [u8]>,
    /// The set of steps (compound selectors) that may match an element with this name, from
    /// [`SelectorProgram::steps_for`].
    pub(in crate::extraction) steps: u64,
    /// True if the element is the root, which is inside no other element.
    pub(in crate::extraction) is_root: bool,
    pub(in crate::extraction) element: &'e dyn ElementAttributes,
}

/// The set of queries that an element matches. The bit with a query's index stands for the query.
pub(in crate::extraction) type MatchedQueryBits = u64;

impl SelectorProgram {
    /// Compiles the selectors of these queries.
    ///
    /// # Errors
    /// There are more than [`MAX_STEPS`] compound selectors.
    pub(in crate::extraction) fn new(queries: &[CssQuery]) -> Result<Self> {
        let mut program = Self { steps: Vec::new(), first: 0, counts_types: false, has_state: false };
        let mut inner_results = 0;
        for (index, query) in queries.iter().enumerate() {
            for selector in &query.selectors {
                program.add(selector, &|| StepMatchEffect::Query(index), &mut inner_results);
            }
        }
        if program.steps.len() > MAX_STEPS || inner_results > MAX_STEPS || queries.len() > MAX_STEPS {
            let message = format!("the CSS selectors of a stage have more than {MAX_STEPS} parts; use fewer");
            return Err(Error::new(ErrorKind::Setup, message));
        }
        for (index, is_first) in program.is_first_step().into_iter().enumerate() {
            program.first |= u64::from(is_first) << index;
        }
        program.has_state = program.steps.iter().any(SelectorStep::depends_on_others);
        Ok(program)
    }

    /// Returns a flag for each step: true if the step is the first one of its selector.
    fn is_first_step(&self) -> Vec<bool> {
        let ends = self.steps.iter().map(|step| !matches!(step.outcome, StepMatchEffect::Next(_)));
        std::iter::once(true).chain(ends).take(self.steps.len()).collect()
    }

    fn add(&mut self, selector: &ComplexSelector, last: &dyn Fn() -> StepMatchEffect, inner_results: &mut usize) {
        // Selectors in parentheses come first, so that the steps of this selector are adjacent.
        let conditions: Vec<Vec<StepCondition>> = selector
            .compounds
            .iter()
            .map(|(compound, _)| compound.conditions.iter().map(|it| self.condition(it, inner_results)).collect())
            .collect();
        for ((compound, combinator), conditions) in selector.compounds.iter().zip(conditions) {
            let CompoundSelector { name, .. } = compound;
            self.steps.push(SelectorStep {
                name: name.as_ref().map(|name| (TagName::new(name.as_bytes()), name.as_bytes().into())),
                conditions,
                outcome: combinator.map_or_else(last, StepMatchEffect::Next),
            });
        }
    }

    fn condition(&mut self, condition: &Condition, inner_results: &mut usize) -> StepCondition {
        let mut results = |list: &[ComplexSelector]| {
            let mut bits = 0;
            for selector in list {
                // The steps inside may use further results, so that the index is taken first.
                let index = *inner_results;
                *inner_results += 1;
                self.add(selector, &|| StepMatchEffect::Inner(index), inner_results);
                bits |= 1_u64.checked_shl(index as u32).unwrap_or(0);
            }
            bits
        };
        match condition {
            Condition::AnyOf(list) => StepCondition::AnyOf(results(list)),
            Condition::NoneOf(list) => StepCondition::NoneOf(results(list)),
            Condition::Nth { of_type, .. } => {
                self.counts_types |= of_type;
                StepCondition::Plain(condition.clone())
            }
            other => StepCondition::Plain(other.clone()),
        }
    }

    /// Returns the element names that occur in selectors.
    pub(in crate::extraction) fn names(&self) -> impl Iterator<Item = TagName> {
        self.steps.iter().filter_map(|step| step.name.as_ref().map(|(name, _)| *name))
    }

    /// Returns the set of steps that may match an element with this name. `None` stands for any
    /// name that does not occur in a selector.
    pub(in crate::extraction) fn steps_for(&self, name: Option<TagName>) -> u64 {
        let may_match = |step: &SelectorStep| step.name.as_ref().is_none_or(|(wanted, _)| Some(*wanted) == name);
        let steps = self.steps.iter().enumerate().filter(|(_, step)| may_match(step));
        steps.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Returns true if each selector depends only on the element that it matches.
    pub(in crate::extraction) fn is_stateless(&self) -> bool {
        !self.has_state
    }

    /// Returns true if the program must examine an element. `steps` is the set of steps (compound
    /// selectors) that the element's name allows. An element must be examined if the first step of
    /// a selector is in this set. If a selector depends on parents or siblings, every element must
    /// be examined, because each one changes the [`SelectorState`].
    pub(in crate::extraction) fn may_match(&self, steps: u64) -> bool {
        self.has_state || self.first & steps != 0
    }

    /// Returns the index of the query that matches every element with a certain name, if the name
    /// alone shows that exactly this query matches. With the queries `td` and `a[href]`, the result
    /// is the index of `td` for the name `td`, and `None` for `a`. `steps` is the set of steps for
    /// the name, from [`SelectorProgram::steps_for`]. The result is also `None` for names of more
    /// than 8 bytes, and if any selector depends on parents or siblings.
    pub(in crate::extraction) fn only_query(&self, steps: u64) -> Option<usize> {
        if self.has_state || !steps.is_power_of_two() {
            return None;
        }
        match &self.steps[steps.trailing_zeros() as usize] {
            // A longer name must be compared.
            SelectorStep { name: Some((_, name)), conditions, outcome: StepMatchEffect::Query(query) }
                if conditions.is_empty() && name.len() <= 8 =>
            {
                Some(*query)
            }
            _ => None,
        }
    }

    /// Returns true if a step in the bit set `steps` needs the attributes of an element. A step
    /// needs attributes if it tests one, or if it is the last step of a query for the value of one.
    /// `takes_attribute` returns true for the index of such a query.
    pub(in crate::extraction) fn need_attributes(&self, steps: u64, takes_attribute: impl Fn(usize) -> bool) -> bool {
        self.steps.iter().enumerate().filter(|(index, _)| steps >> index & 1 == 1).any(|(_, step)| {
            step.conditions.iter().any(StepCondition::tests_attribute)
                || matches!(step.outcome, StepMatchEffect::Query(query) if takes_attribute(query))
        })
    }

    /// Returns the queries that a new element matches. `state` describes the elements before the
    /// new element; the new element is added to `state`.
    pub(in crate::extraction) fn start_element(
        &self,
        state: &mut SelectorState,
        start: &ElementStart<'_>,
    ) -> MatchedQueryBits {
        if !self.has_state {
            let place = SiblingPosition { is_root: start.is_root, child: 0, of_type: 0 };
            return if self.first & start.steps == 0 { 0 } else { self.run(self.first, start, place, |_, _| {}) };
        }
        if state.stack.is_empty() {
            state.stack.push(OpenElementMatchState::default());
        }
        let parent = state.stack.last_mut().expect("the document stays open");
        let candidates = self.first | parent.descendants | parent.children | parent.next_child | parent.later_children;
        parent.next_child = 0;
        parent.count += 1;
        let of_type = if self.counts_types { count_type(parent, start.name) } else { 0 };
        let place = SiblingPosition { is_root: start.is_root, child: parent.count, of_type };
        let mut own = OpenElementMatchState { descendants: parent.descendants, ..OpenElementMatchState::default() };
        let matches = self.run(candidates, start, place, |combinator, next| match combinator {
            Combinator::Descendant => own.descendants |= next,
            Combinator::Child => own.children |= next,
            Combinator::NextSibling => parent.next_child |= next,
            Combinator::LaterSibling => parent.later_children |= next,
        });
        state.stack.push(own);
        matches
    }

    /// Tests which of the steps in the set `candidates` match an element, and returns the queries
    /// that the element matches. For a matching step that is not the last one of its selector,
    /// calls `on_next` with the combinator and the bit of the next step.
    fn run(
        &self,
        candidates: u64,
        start: &ElementStart<'_>,
        place: SiblingPosition,
        mut on_next: impl FnMut(Combinator, u64),
    ) -> MatchedQueryBits {
        let (mut matches, mut inner) = (0, 0);
        let mut left = candidates & start.steps;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let step = &self.steps[index];
            if !step.accepts(start, place, inner) {
                continue;
            }
            match step.outcome {
                StepMatchEffect::Query(query) => matches |= 1 << query,
                StepMatchEffect::Inner(result) => inner |= 1 << result,
                StepMatchEffect::Next(combinator) => on_next(combinator, 1 << (index + 1)),
            }
        }
        matches
    }
}

/// Counts a child of `parent` with this name. Returns the number of children with this name so far,
/// including this child. Returns 0 if there are more than [`MAX_COUNTED_NAMES`] different names.
fn count_type(parent: &mut OpenElementMatchState, name: TagName) -> u32 {
    let counts = parent.counts.get_or_insert_with(Box::default);
    if counts.len() >= MAX_COUNTED_NAMES && !counts.contains_key(&name) {
        return 0;
    }
    let count = counts.entry(name).or_default();
    *count += 1;
    *count
}

/// The position of an element among all its siblings, and among its siblings of the same name.
/// Positions are counted from 1; 0 means that the position is unknown.
#[derive(Clone, Copy)]
struct SiblingPosition {
    is_root: bool,
    child: u32,
    of_type: u32,
}

impl SelectorStep {
    /// Returns true if the step depends on elements other than the one that it matches: a
    /// combinator follows it, or it counts siblings.
    fn depends_on_others(&self) -> bool {
        let counts = |condition: &StepCondition| matches!(condition, StepCondition::Plain(Condition::Nth { .. }));
        matches!(self.outcome, StepMatchEffect::Next(_)) || self.conditions.iter().any(counts)
    }

    fn accepts(&self, start: &ElementStart<'_>, place: SiblingPosition, inner: u64) -> bool {
        if let Some((wanted, text)) = &self.name {
            // Only the number of a short name is the name.
            let differs = |full: &[u8]| text.len() > 8 && !full.eq_ignore_ascii_case(text);
            if *wanted != start.name || start.full_name.is_some_and(differs) {
                return false;
            }
        }
        self.conditions.iter().all(|condition| match condition {
            StepCondition::AnyOf(results) => inner & results != 0,
            StepCondition::NoneOf(results) => inner & results == 0,
            StepCondition::Plain(condition) => condition.accepts(start.element, place),
        })
    }
}

impl StepCondition {
    fn tests_attribute(&self) -> bool {
        matches!(self, Self::Plain(Condition::Id(_) | Condition::Class(_) | Condition::Attribute(_)))
    }
}

impl Condition {
    fn accepts(&self, element: &dyn ElementAttributes, place: SiblingPosition) -> bool {
        match self {
            Self::Id(id) => element.attribute("id").is_some_and(|value| *value == *id.as_bytes()),
            Self::Class(class) => element.attribute("class").is_some_and(|value| has_word(&value, class.as_bytes())),
            Self::Attribute(attribute) => {
                element.attribute(&attribute.name).is_some_and(|value| attribute.accepts(&value))
            }
            Self::Root => place.is_root,
            Self::Nth { step, offset, of_type } => {
                let at = if *of_type { place.of_type } else { place.child };
                at > 0 && is_nth(i64::from(at), i64::from(*step), i64::from(*offset))
            }
            // Compiled to the results of their selectors.
            Self::AnyOf(_) | Self::NoneOf(_) => false,
        }
    }
}

/// Returns true if `at` is `step` × n + `offset` for some n ≥ 0.
fn is_nth(at: i64, step: i64, offset: i64) -> bool {
    let distance = at - offset;
    if step == 0 { distance == 0 } else { distance % step == 0 && distance / step >= 0 }
}
