//! Expressions that need no automaton: sequences of runs in which no text can match in two ways.
//!
//! `AS[0-9]{1,9}`, `[0-9.]{7,15}/[0-9]{1,2}`, `href="([^"]+)"`: from the hit of a [`Trio`] the match is followed to the
//! left and to the right, byte by byte, with no state but a position, and group 1 falls out on the way.
//!
//! # Why this is the leftmost-first match
//! Accepted are sequences of runs where
//! 1. each repetition is greedy or of a fixed count, and there are no assertions;
//! 2. a run of a variable count shares no byte with any run that can come directly after it (up to and with the first
//!    that is not optional), and, left of the hit, none with any that can come directly before it;
//! 3. the hit's class shares no byte with any run left of it, and the runs left of it are of single bytes.
//!
//! By 2, following a variable run as far as it goes (or to its maximum) is the only way that can succeed: if it stopped
//! earlier, the next byte would belong to it and to what follows. Where all that follows is optional, the match could end earlier,
//! but greediness prefers the longest. So from a given start there is one match at most, and to the left of a given hit
//! one way at most to take the runs, but for the outermost ones, which are taken as long as possible: that is the
//! leftmost start. By 3, no match of a later hit p′ can start at or before an earlier hit p: p would lie in its
//! part left of p′, whose runs do not have that byte. So the first hit that leads to a match leads to the leftmost one.
//!
//! The equality with the regular expression is also tested, on generated expressions and bodies.

use super::{
    finder::Found,
    prefilter::Trio,
    shape::{Piece, Run, Shape, Wide},
};

/// A sequence of runs and where its hit is.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    pub(super) trio: Trio,
    runs: Vec<Run>,
    /// The runs that make the value.
    value: (usize, usize),
}

/// The result of examining a hit.
#[derive(Debug)]
pub(super) enum Verdict {
    Match(Found),
    /// No match has its hit here. The number is the cost in bytes of finding that out.
    Nothing(usize),
}

impl Runs {
    pub(super) fn of(shape: &Shape, grouped: bool) -> Option<Self> {
        let run = |piece: &Piece| match piece {
            Piece::Run(run) => Some(run.clone()),
            Piece::Opaque(_) => None,
        };
        let runs = shape.pieces.iter().map(run).collect::<Option<Vec<_>>>()?;
        let value = if grouped { shape.group? } else { (0, runs.len()) };
        let plain = |run: &Run| run.wide != Wide::Some && (run.greedy || run.is_fixed());
        if shape.looks || !runs.iter().all(plain) {
            return None;
        }
        let decided = |index: usize| runs[index].is_fixed() || apart(&runs[index], runs[index + 1..].iter());
        if !(0..runs.len()).all(decided) {
            return None;
        }
        let fits = |trio: &Trio| {
            let hit = &runs[trio.piece];
            (0..trio.piece).all(|index| {
                let run = &runs[index];
                run.wide == Wide::None
                    && run.is_disjoint(hit)
                    && (run.is_fixed() || apart(run, runs[..index].iter().rev()))
            })
        };
        let trio = Trio::all(shape).into_iter().find(fits)?;
        Some(Self { trio, runs, value })
    }

    /// Returns the match that starts at `from` or later and has its hit at `hit`.
    pub(super) fn follow(&self, haystack: &[u8], from: usize, hit: usize) -> Verdict {
        let mut value = (hit, hit);
        let mut note = |index: usize, at: usize| {
            if index == self.value.0 {
                value.0 = at;
            }
            if index == self.value.1 {
                value.1 = at;
            }
        };
        let (before, after) = self.runs.split_at(self.trio.piece);
        let mut start = hit;
        note(before.len(), hit);
        for (index, run) in before.iter().enumerate().rev() {
            let end = start;
            let floor = run.max.map_or(from, |max| from.max(end.saturating_sub(max)));
            while start > floor && run.set[usize::from(haystack[start - 1])] {
                start -= 1;
            }
            if end - start < run.min {
                return Verdict::Nothing(hit - start + 1);
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
                return Verdict::Nothing(end - start + 1);
            }
            note(before.len() + index + 1, end);
        }
        Verdict::Match(Found { start, end, value: Some(value.0..value.1) })
    }
}

/// Returns whether `run` shares no byte with the runs that can stand next to it, given from the
/// nearest on.
fn apart<'a>(run: &Run, others: impl Iterator<Item = &'a Run>) -> bool {
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

impl Run {
    /// Returns the number of bytes of the class's character at `at`, if there is one.
    fn width(&self, haystack: &[u8], at: usize) -> Option<usize> {
        let &first = haystack.get(at)?;
        if self.set[usize::from(first)] {
            return Some(1);
        }
        if self.wide == Wide::None || first < 0x80 {
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
