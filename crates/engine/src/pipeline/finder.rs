//! Finds the next match in one contiguous haystack, by the cheapest method that the expression
//! allows.

use std::ops::Range;

use regex_automata::{
    Input,
    meta::{Cache, Regex},
    util::primitives::{NonMaxUsize, PatternID},
};
use regex_syntax::hir::Hir;

use super::{
    prefilter::Filter,
    runs::{Runs, Verdict},
    shape::Shape,
};

/// One match and the part of it that is its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Group 1 if the pattern has groups (absent if the group took no part in the match), else the
    /// match.
    pub(super) value: Option<Range<usize>>,
}

/// A compiled expression and the way to search for it.
#[derive(Debug)]
pub(super) struct Finder {
    regex: Regex,
    grouped: bool,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Finds hits and matches the runs around them directly.
    Runs(Box<Runs>),
    /// Finds hits, then searches around them with the regular expression.
    Filter(Box<Filter>),
    /// Searches with the regular expression alone.
    Plain,
}

/// Scratch memory of one extractor's searches, and an account of the cost of false hits.
#[derive(Debug)]
pub(super) struct Scratch {
    cache: Cache,
    wasted: usize,
    covered: usize,
}

impl Scratch {
    /// Number of bytes searched for false hits that is always allowed.
    const FREE: usize = 64 << 10;

    pub(super) fn reset(&mut self) {
        self.wasted = 0;
        self.covered = 0;
    }

    /// Returns whether hits have proved too frequent in this body, as an adversary can make them.
    /// The regular expression alone is linear.
    fn is_exhausted(&self) -> bool {
        self.wasted > self.covered.saturating_add(Self::FREE)
    }
}

impl Finder {
    pub(super) fn new(regex: Regex, hir: &Hir) -> Self {
        let grouped = hir.properties().explicit_captures_len() > 0;
        let shape = Shape::of(hir);
        let way = Runs::of(&shape, grouped)
            .map(|runs| Way::Runs(Box::new(runs)))
            .or_else(|| Filter::of(hir, &shape).map(|filter| Way::Filter(Box::new(filter))))
            .unwrap_or(Way::Plain);
        Self { regex, grouped, way }
    }

    /// Returns the name of group 1.
    pub(super) fn value_name(&self) -> Option<&str> {
        self.regex.group_info().to_name(PatternID::ZERO, 1)
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch { cache: self.regex.create_cache(), wasted: 0, covered: 0 }
    }

    /// Returns the leftmost match that starts at `from` or later.
    pub(super) fn find(&self, scratch: &mut Scratch, haystack: &[u8], from: usize) -> Option<Found> {
        match &self.way {
            Way::Runs(runs) if !scratch.is_exhausted() => {
                let mut at = from;
                loop {
                    let Some(hit) = runs.trio.find(haystack, at) else {
                        scratch.covered += haystack.len() - from;
                        return None;
                    };
                    match runs.follow(haystack, from, hit) {
                        Verdict::Match(found) => {
                            scratch.covered += found.end - from;
                            return Some(found);
                        }
                        Verdict::Nothing(cost) => scratch.wasted += cost,
                    }
                    at = hit + 1;
                    if scratch.is_exhausted() {
                        return self.search(&mut scratch.cache, haystack, from..haystack.len());
                    }
                }
            }
            Way::Filter(filter) if !scratch.is_exhausted() => self.filter(filter, scratch, haystack, from),
            _ => self.search(&mut scratch.cache, haystack, from..haystack.len()),
        }
    }

    fn filter(&self, filter: &Filter, scratch: &mut Scratch, haystack: &[u8], from: usize) -> Option<Found> {
        let mut at = from;
        loop {
            let Some(hit) = filter.trio.find(haystack, at) else {
                scratch.covered += haystack.len() - from;
                return None;
            };
            let start = from.max(hit.saturating_sub(filter.before));
            let end = filter.longest.map_or(haystack.len(), |longest| haystack.len().min(hit + longest));
            let found = self.search(&mut scratch.cache, haystack, start..end);
            if filter.longest.is_none() || found.as_ref().is_some_and(|found| found.start <= hit) {
                scratch.covered += found.as_ref().map_or(haystack.len(), |found| found.end) - from;
                return found;
            }
            scratch.wasted += end - start;
            at = hit + 1;
            if scratch.is_exhausted() {
                return self.search(&mut scratch.cache, haystack, from..haystack.len());
            }
        }
    }

    /// Returns the leftmost match in the span. Assertions see the bytes around it.
    fn search(&self, cache: &mut Cache, haystack: &[u8], span: Range<usize>) -> Option<Found> {
        let input = Input::new(haystack).span(span);
        if !self.grouped {
            let found = self.regex.search_with(cache, &input)?;
            return Some(Found { start: found.start(), end: found.end(), value: Some(found.range()) });
        }
        let mut slots = [None; 4];
        self.regex.search_slots_with(cache, &input, &mut slots)?;
        let [start, end, from, to] = slots.map(|slot| slot.map(NonMaxUsize::get));
        Some(Found { start: start?, end: end?, value: from.zip(to).map(|(from, to)| from..to) })
    }
}
