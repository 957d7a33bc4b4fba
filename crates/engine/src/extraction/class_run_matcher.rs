//! Matches expressions that need no automaton: sequences of runs in which any text can match in
//! only one way.
//!
//! Examples are `AS[0-9]{1,9}`, `[0-9.]{7,15}/[0-9]{1,2}` and `href="([^"]+)"`. A [`ByteSetTriple`]
//! finds a hit: a position that may be in a match, because the bytes around it occur in every
//! match. From the hit, the match is followed to the left and to the right, byte by byte. The only
//! state is a position, and the boundaries of group 1 are noted on the way.
//!
//! # Why this is the leftmost-first match
//! The matcher accepts sequences of runs with three properties:
//! 1. Each repetition is greedy or of a fixed count, and there are no assertions.
//! 2. A run of a variable count shares no byte with any run that can come directly after it (up to
//!    and including the first one that is not optional). To the left of the hit, it also shares
//!    none with any run that can come directly before it.
//! 3. The class of the hit shares no byte with any run to its left, and the runs to its left
//!    consist of single bytes.
//!
//! By 2, only one way can succeed: to follow a variable run as far as it goes (or to its maximum).
//! If it stopped earlier, the next byte would belong both to it and to the following run. If all
//! following runs are optional, the match could end earlier, but a greedy repetition prefers the
//! longest text. So from a given start, there is at most one match. To the left of a given hit,
//! there is at most one way to divide the text into runs, except for the outermost runs. These are
//! followed as far as possible, which gives the leftmost start. By 3, no match of a later hit p′
//! can start at or before an earlier hit p: p would lie in the part of the match to the left of p′,
//! whose runs do not contain that byte. So the first hit that leads to a match leads to the
//! leftmost match.
//!
//! The equality with the regular expression is also tested, on generated expressions and bodies.

use super::{
    contiguous_match_finder::ValueMatch,
    pattern_shape::{CharClassRun, NonAsciiCoverage, PatternShape, PatternShapePiece},
    prefilter::ByteSetTriple,
};

#[cfg(feature = "select")]
use super::prefilter::HitAcrossMarkupTest;

/// A matcher for a regular expression that is a sequence of runs (repeated character classes, such
/// as `[0-9]{1,3}`). It needs no automaton. To find matches, it looks for hits: positions of three
/// adjacent bytes that every match contains.
#[derive(Debug, Clone)]
pub(super) struct ClassRunMatcher {
    pub(super) triple: ByteSetTriple,
    runs: Vec<CharClassRun>,
    /// The part of `runs` that matches the value (the text to extract): `runs[value.0..value.1]`.
    value: (usize, usize),
}

/// The result of examining the bytes around a hit. A hit is a position in the text that may be part
/// of a match.
#[derive(Debug)]
pub(super) enum PrefilterHitResult {
    Match(ValueMatch),
    /// No match contains this hit. The field is the number of bytes that were examined.
    Nothing(usize),
}

impl ClassRunMatcher {
    pub(super) fn for_shape(shape: &PatternShape, grouped: bool) -> Option<Self> {
        let run = |piece: &PatternShapePiece| match piece {
            PatternShapePiece::Run(run) => Some(run.clone()),
            PatternShapePiece::Opaque(_) => None,
        };
        let runs = shape.pieces.iter().map(run).collect::<Option<Vec<_>>>()?;
        let value = if grouped { shape.group? } else { (0, runs.len()) };
        let plain = |run: &CharClassRun| run.wide != NonAsciiCoverage::Some && (run.greedy || run.is_fixed());
        if shape.has_assertions || !runs.iter().all(plain) {
            return None;
        }
        let decided = |index: usize| runs[index].is_fixed() || is_unambiguous(&runs[index], runs[index + 1..].iter());
        if !(0..runs.len()).all(decided) {
            return None;
        }
        let fits = |triple: &ByteSetTriple| {
            let hit = &runs[triple.piece];
            (0..triple.piece).all(|index| {
                let run = &runs[index];
                run.wide == NonAsciiCoverage::None
                    && run.is_disjoint(hit)
                    && (run.is_fixed() || is_unambiguous(run, runs[..index].iter().rev()))
            })
        };
        let triple = ByteSetTriple::all_in_shape(shape).into_iter().find(fits)?;
        Some(Self { triple, runs, value })
    }

    /// Returns a quick test that finds the parts of HTML or XML markup in whose text the expression
    /// may match. Returns `None` if the markup cannot show where the text may match (see
    /// [`ByteSetTriple::markup_test`]).
    #[cfg(feature = "select")]
    pub(super) fn markup_test(&self) -> Option<HitAcrossMarkupTest> {
        let before = self.triple.piece.checked_sub(1).map(|index| &self.runs[index]);
        let is_bytes = |run: &&CharClassRun| run.wide == NonAsciiCoverage::None;
        self.triple.markup_test(before.filter(is_bytes).map(|run| (&*run.set, run.min)))
    }

    /// Examines the bytes around the position `hit` in the haystack. Returns the match that
    /// contains the hit, if that match starts at `from` or later.
    pub(super) fn match_at(&self, haystack: &[u8], from: usize, hit: usize) -> PrefilterHitResult {
        let mut value = (hit, hit);
        let mut note = |index: usize, at: usize| {
            if index == self.value.0 {
                value.0 = at;
            }
            if index == self.value.1 {
                value.1 = at;
            }
        };
        let (before, after) = self.runs.split_at(self.triple.piece);
        let mut start = hit;
        note(before.len(), hit);
        for (index, run) in before.iter().enumerate().rev() {
            let end = start;
            let floor = run.max.map_or(from, |max| from.max(end.saturating_sub(max)));
            while start > floor && run.set[usize::from(haystack[start - 1])] {
                start -= 1;
            }
            if end - start < run.min {
                return PrefilterHitResult::Nothing(hit - start + 1);
            }
            note(index, start);
        }
        let mut end = hit;
        for (index, run) in after.iter().enumerate() {
            let mut count = 0;
            while run.max.is_none_or(|max| count < max)
                && let Some(width) = run.width(haystack, end)
            {
                end += width;
                count += 1;
            }
            if count < run.min {
                return PrefilterHitResult::Nothing(end - start + 1);
            }
            note(before.len() + index + 1, end);
        }
        PrefilterHitResult::Match(ValueMatch { start, end, value: Some(value.0..value.1) })
    }
}

/// Returns true if `run` has no byte in common with the runs that can be adjacent to it on one
/// side. The end of a match of `run` on that side is then unambiguous: the match ends at the first
/// byte that does not belong to `run`. `others` are the runs on that side, beginning with the
/// nearest.
fn is_unambiguous<'a>(run: &CharClassRun, others: impl Iterator<Item = &'a CharClassRun>) -> bool {
    for other in others {
        if !run.is_disjoint(other) {
            return false;
        }
        if other.min > 0 {
            break;
        }
    }
    true
}

impl CharClassRun {
    /// Returns the length in bytes of the character at the position `at` in the haystack. Returns
    /// `None` if the character does not belong to the run's class.
    fn width(&self, haystack: &[u8], at: usize) -> Option<usize> {
        let &first = haystack.get(at)?;
        if self.set[usize::from(first)] {
            return Some(1);
        }
        if self.wide == NonAsciiCoverage::None || first < 0x80 {
            return None;
        }
        let width = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return None,
        };
        std::str::from_utf8(haystack.get(at..at + width)?).is_ok().then_some(width)
    }
}
