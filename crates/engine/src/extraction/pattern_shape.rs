//! The shape of a regular expression: the sequence of pieces that each of its matches consists of.
//!
//! `href="([^"]+)"` consists of eight runs: seven of exactly one byte and one of at least one
//! character that is not `"`. Everything else (an alternation, a nested repetition) is an opaque
//! piece with a maximum length. Assertions have no length and are left out;
//! [`PatternShape::has_assertions`] says whether there were any.

use regex_syntax::hir::{Capture, Class, Hir, HirKind, Repetition};

/// The maximum number of pieces (runs of characters of one class, or other texts) in the
/// [`PatternShape`] of an expression. An expression with more pieces is represented by a single
/// piece, [`PatternShapePiece::Opaque`].
const MAX_PIECES: usize = 64;

/// A set of byte values, indexed by the byte.
pub(super) type ByteSet = [bool; 256];

/// The sequence of pieces that each match of a regular expression consists of.
#[derive(Debug, Clone, Default)]
pub(super) struct PatternShape {
    pub(super) pieces: Vec<PatternShapePiece>,
    /// The index of the first piece that belongs to capture group 1, and the index after its last
    /// piece. `None` if the group can be missing from a match or occur in it several times.
    pub(super) group: Option<(usize, usize)>,
    /// True if the expression has assertions, such as `^` or `\b`.
    pub(super) has_assertions: bool,
}

/// A piece of a [`PatternShape`]: a run of characters of one class, or any other text.
#[derive(Debug, Clone)]
pub(super) enum PatternShapePiece {
    Run(CharClassRun),
    /// Text that is not described further, of at most this many bytes; `None` for any length.
    Opaque(Option<usize>),
}

/// A run of `min` to `max` characters that belong to one character class. `max` is `None` without a
/// limit.
#[derive(Debug, Clone)]
pub(super) struct CharClassRun {
    /// The single-byte characters of the class. `wide` states whether the class also has non-ASCII
    /// characters.
    pub(super) set: Box<ByteSet>,
    pub(super) wide: NonAsciiCoverage,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    pub(super) greedy: bool,
}

/// The coverage of the non-ASCII characters by a character class: none, some or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NonAsciiCoverage {
    None,
    Some,
    All,
}

impl CharClassRun {
    fn single(set: ByteSet, wide: NonAsciiCoverage) -> Self {
        Self { set: Box::new(set), wide, min: 1, max: Some(1), greedy: true }
    }

    fn byte(byte: u8) -> Self {
        let mut set = [false; 256];
        set[usize::from(byte)] = true;
        Self::single(set, NonAsciiCoverage::None)
    }

    /// Returns true if the run is exactly one byte in every match.
    pub(super) fn is_one_byte(&self) -> bool {
        self.wide == NonAsciiCoverage::None && self.min == 1 && self.max == Some(1)
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.max == Some(self.min)
    }

    /// Returns the bytes with which a character of the run's class can begin.
    pub(super) fn first_bytes(&self) -> ByteSet {
        self.with_wide(0xc2..=0xf4)
    }

    /// Returns the bytes with which a character of the run's class can end.
    pub(super) fn last_bytes(&self) -> ByteSet {
        self.with_wide(0x80..=0xbf)
    }

    fn with_wide(&self, bytes: std::ops::RangeInclusive<usize>) -> ByteSet {
        let mut set = *self.set;
        if self.wide != NonAsciiCoverage::None {
            set[bytes].fill(true);
        }
        set
    }

    /// Returns true if no byte can occur in both runs.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        let (one, two) = (self.with_wide(0x80..=0xff), other.with_wide(0x80..=0xff));
        !one.iter().zip(&two).any(|(one, two)| *one && *two)
    }

    /// Returns the maximum length of the run in bytes; `None` if the length is not limited.
    fn longest(&self) -> Option<usize> {
        let width = if self.wide == NonAsciiCoverage::None { 1 } else { 4 };
        self.max?.checked_mul(width)
    }
}

impl PatternShapePiece {
    pub(super) fn longest(&self) -> Option<usize> {
        match self {
            Self::Run(run) => run.longest(),
            Self::Opaque(longest) => *longest,
        }
    }
}

impl PatternShape {
    pub(super) fn from_expression(hir: &Hir) -> Self {
        let mut shape = Self { has_assertions: !hir.properties().look_set().is_empty(), ..Self::default() };
        shape.add(hir);
        if shape.pieces.len() > MAX_PIECES {
            shape.pieces = vec![PatternShapePiece::Opaque(hir.properties().maximum_len())];
            shape.group = None;
        }
        shape
    }

    fn add(&mut self, hir: &Hir) {
        if self.pieces.len() > MAX_PIECES {
            return;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                self.pieces.extend(literal.0.iter().map(|&byte| PatternShapePiece::Run(CharClassRun::byte(byte))));
            }
            HirKind::Class(class) => {
                let (set, wide) = members(class);
                self.pieces.push(PatternShapePiece::Run(CharClassRun::single(set, wide)));
            }
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.add(part)),
            HirKind::Capture(Capture { index, sub, .. }) => {
                let start = self.pieces.len();
                self.add(sub);
                if *index == 1 {
                    self.group = Some((start, self.pieces.len()));
                }
            }
            HirKind::Repetition(repetition) => self.add_repetition(hir, repetition),
            HirKind::Alternation(_) => self.pieces.push(PatternShapePiece::Opaque(hir.properties().maximum_len())),
        }
    }

    fn add_repetition(&mut self, hir: &Hir, Repetition { min, max, greedy, sub }: &Repetition) {
        let (count, most) = (*min as usize, max.map(|max| max as usize));
        let mut inner = Self::default();
        inner.add(sub);
        if let [PatternShapePiece::Run(run)] = &inner.pieces[..]
            && run.is_fixed()
            && run.min == 1
            && inner.group.is_none()
        {
            self.pieces.push(PatternShapePiece::Run(CharClassRun {
                min: count,
                max: most,
                greedy: *greedy,
                ..run.clone()
            }));
        } else if inner.group.is_none() && count * inner.pieces.len() <= MAX_PIECES {
            for _ in 0..count {
                self.pieces.extend_from_slice(&inner.pieces);
            }
            if most != Some(count) {
                let rest = most.and_then(|most| sub.properties().maximum_len()?.checked_mul(most - count));
                self.pieces.push(PatternShapePiece::Opaque(rest));
            }
        } else {
            self.pieces.push(PatternShapePiece::Opaque(hir.properties().maximum_len()));
        }
    }
}

fn members(class: &Class) -> (ByteSet, NonAsciiCoverage) {
    let mut set = [false; 256];
    match class {
        Class::Bytes(class) => {
            for range in class.ranges() {
                set[usize::from(range.start())..=usize::from(range.end())].fill(true);
            }
            (set, NonAsciiCoverage::None)
        }
        Class::Unicode(class) => {
            for range in class.ranges().iter().filter(|range| range.start().is_ascii()) {
                set[range.start() as usize..=(range.end() as usize).min(0x7f)].fill(true);
            }
            let mut others = class.clone();
            others.negate();
            let wide = if class.is_ascii() {
                NonAsciiCoverage::None
            } else if others.is_ascii() {
                NonAsciiCoverage::All
            } else {
                NonAsciiCoverage::Some
            };
            (set, wide)
        }
    }
}
