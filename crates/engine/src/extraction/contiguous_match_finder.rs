//! Finds the next match of an expression in one contiguous haystack, by the cheapest method that
//! the expression allows.

use std::ops::Range;

use regex_automata::{
    Input,
    meta::{Cache, Regex},
    util::primitives::{NonMaxUsize, PatternID},
};
use regex_syntax::hir::Hir;

use super::{
    class_run_matcher::{ClassRunMatcher, PrefilterHitResult},
    pattern_shape::PatternShape,
    prefilter::Prefilter,
};

#[cfg(feature = "select")]
use super::prefilter::HitAcrossMarkupTest;

/// A match, and the range of its value. The value is the text that the user wants to extract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueMatch {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The range of the value in the haystack: group 1 if the pattern has groups, otherwise the
    /// whole match. `None` if group 1 took no part in the match.
    pub(super) value: Option<Range<usize>>,
}

/// A compiled regular expression, and the method to search for it.
#[derive(Debug)]
pub(super) struct MatchFinder {
    regex: Regex,
    grouped: bool,
    method: SearchMethod,
}

/// The methods to search for an expression. The cheapest one that the expression allows is used.
#[derive(Debug)]
enum SearchMethod {
    /// Looks for hits: positions at which three adjacent bytes belong to the three sets of a
    /// [`ByteSetTriple`](super::prefilter::ByteSetTriple), as in every match. Around each hit,
    /// compares the bytes with the expression, a sequence of runs (repeated character classes).
    /// This needs no regular expression engine.
    Runs(Box<ClassRunMatcher>),
    /// Looks for hits: positions at which three adjacent bytes belong to the three sets of a
    /// [`ByteSetTriple`](super::prefilter::ByteSetTriple), as in every match. Around each hit,
    /// searches with the regular expression.
    Filter(Box<Prefilter>),
    /// Searches with the regular expression alone.
    Plain,
}

/// The buffers for the searches of one extractor, and two byte counts for the current body. The
/// counts show when searching around hits (possible positions of a match) has cost too much in this
/// body.
#[derive(Debug)]
pub(super) struct SearchScratch {
    cache: Cache,
    /// The number of bytes that were examined around hits without finding a match.
    unmatched_bytes: usize,
    /// The number of bytes that the search has passed.
    passed_bytes: usize,
}

impl SearchScratch {
    /// The number of bytes by which `unmatched_bytes` may exceed `passed_bytes`. At a larger
    /// excess, the search stops looking for hits (possible positions of a match), and uses the
    /// regular expression alone for the rest of the body.
    const FREE_BYTES: usize = 64 << 10;

    pub(super) fn reset(&mut self) {
        self.unmatched_bytes = 0;
        self.passed_bytes = 0;
    }

    /// Returns true if too many bytes of this body were examined in vain around hits (possible
    /// positions of a match). From then on, only the regular expression should be used, since its
    /// cost is linear. With the other methods, an adversary could cause a high cost.
    fn is_exhausted(&self) -> bool {
        self.unmatched_bytes > self.passed_bytes.saturating_add(Self::FREE_BYTES)
    }
}

impl MatchFinder {
    pub(super) fn new(regex: Regex, hir: &Hir) -> Self {
        let grouped = hir.properties().explicit_captures_len() > 0;
        let shape = PatternShape::from_expression(hir);
        let method = ClassRunMatcher::for_shape(&shape, grouped)
            .map(|runs| SearchMethod::Runs(Box::new(runs)))
            .or_else(|| Prefilter::for_expression(hir, &shape).map(|filter| SearchMethod::Filter(Box::new(filter))))
            .unwrap_or(SearchMethod::Plain);
        Self { regex, grouped, method }
    }

    /// Returns the name that the expression gives to group 1. `None` if the group has no name.
    pub(super) fn value_name(&self) -> Option<&str> {
        self.regex.group_info().to_name(PatternID::ZERO, 1)
    }

    pub(super) fn scratch(&self) -> SearchScratch {
        SearchScratch { cache: self.regex.create_cache(), unmatched_bytes: 0, passed_bytes: 0 }
    }

    /// Returns the leftmost match in the haystack that starts at `from` or later; `None` if there
    /// is none. A hit is a position that may be part of a match. `known_hit` is the first hit at
    /// `from` or later, if `next_hit` has already found it for the caller; this saves a search.
    pub(super) fn find(
        &self,
        scratch: &mut SearchScratch,
        haystack: &[u8],
        from: usize,
        mut known_hit: Option<usize>,
    ) -> Option<ValueMatch> {
        match &self.method {
            SearchMethod::Runs(runs) if !scratch.is_exhausted() => {
                let mut at = from;
                loop {
                    let Some(hit) = known_hit.take().or_else(|| runs.triple.find(haystack, at)) else {
                        scratch.passed_bytes += haystack.len() - from;
                        return None;
                    };
                    match runs.match_at(haystack, from, hit) {
                        PrefilterHitResult::Match(found) => {
                            scratch.passed_bytes += found.end - from;
                            return Some(found);
                        }
                        PrefilterHitResult::Nothing(cost) => scratch.unmatched_bytes += cost,
                    }
                    at = hit + 1;
                    if scratch.is_exhausted() {
                        return self.search(&mut scratch.cache, haystack, from..haystack.len());
                    }
                }
            }
            SearchMethod::Filter(filter) if !scratch.is_exhausted() => self.filter(filter, scratch, haystack, from),
            _ => self.search(&mut scratch.cache, haystack, from..haystack.len()),
        }
    }

    /// Returns the index of the first hit at `from` or later; `None` if there is no hit, and
    /// therefore no match. A hit is a byte that fits the
    /// [`ByteSetTriple`](super::prefilter::ByteSetTriple) together with the bytes before and after
    /// it. With [`SearchMethod::Plain`], which has no triple, returns `from`. The result also helps
    /// to search a part of `text` that begins at `from`: each hit in the part is a hit in `text`.
    #[cfg(feature = "select")]
    pub(super) fn next_hit(&self, text: &[u8], from: usize) -> Option<usize> {
        match &self.method {
            SearchMethod::Runs(runs) => runs.triple.find(text, from),
            SearchMethod::Filter(filter) => filter.triple.find(text, from),
            SearchMethod::Plain => Some(from),
        }
    }

    /// Returns a quick test that finds the texts in HTML or XML markup in which the expression may
    /// match. Returns `None` if the expression allows no such test.
    #[cfg(feature = "select")]
    pub(super) fn markup_hit_test(&self) -> Option<HitAcrossMarkupTest> {
        match &self.method {
            SearchMethod::Runs(runs) => runs.markup_test(),
            SearchMethod::Filter(filter) => filter.triple.markup_test(None),
            SearchMethod::Plain => None,
        }
    }

    fn filter(
        &self,
        filter: &Prefilter,
        scratch: &mut SearchScratch,
        haystack: &[u8],
        from: usize,
    ) -> Option<ValueMatch> {
        let mut at = from;
        loop {
            let Some(hit) = filter.triple.find(haystack, at) else {
                scratch.passed_bytes += haystack.len() - from;
                return None;
            };
            let start = from.max(hit.saturating_sub(filter.before));
            let end = filter.longest.map_or(haystack.len(), |longest| haystack.len().min(hit + longest));
            let found = self.search(&mut scratch.cache, haystack, start..end);
            if filter.longest.is_none() || found.as_ref().is_some_and(|found| found.start <= hit) {
                scratch.passed_bytes += found.as_ref().map_or(haystack.len(), |found| found.end) - from;
                return found;
            }
            scratch.unmatched_bytes += end - start;
            at = hit + 1;
            if scratch.is_exhausted() {
                return self.search(&mut scratch.cache, haystack, from..haystack.len());
            }
        }
    }

    /// Returns the leftmost match within `span`, a range of the haystack; `None` if there is none.
    /// Assertions such as `\b` also see the bytes around the span.
    fn search(&self, cache: &mut Cache, haystack: &[u8], span: Range<usize>) -> Option<ValueMatch> {
        let input = Input::new(haystack).span(span);
        if !self.grouped {
            let found = self.regex.search_with(cache, &input)?;
            return Some(ValueMatch { start: found.start(), end: found.end(), value: Some(found.range()) });
        }
        let mut slots = [None; 4];
        self.regex.search_slots_with(cache, &input, &mut slots)?;
        let [start, end, from, to] = slots.map(|slot| slot.map(NonMaxUsize::get));
        Some(ValueMatch { start: start?, end: end?, value: from.zip(to).map(|(from, to)| from..to) })
    }
}
