//! Finds the positions at which a match is possible. It searches for three adjacent bytes that
//! every match must contain.
//!
//! For `[0-9.]{7,15}/[0-9]{1,2}` these are a slash, a digit or dot before it, and a digit after it.
//! The search for them costs a few instructions for 64 bytes, however many slashes there are. So it
//! is faster than the automaton (which looks at each byte) and than `memchr` for the slash alone
//! (which would stop at each of the 12 million slashes in 276 MiB of HTML).
//!
//! # Why no match is missed
//! Let *M* be a run of exactly one byte in the expression's sequence of pieces (the module
//! `pattern_shape`), with at most *P* bytes before it. Every match [s, e) has its *M* at some
//! position p with s ≤ p < e and p − s ≤ P. The byte at p is in *M*'s class. The byte at p − 1 is
//! one with which the pieces before *M* can end, and the byte at p + 1 is one with which the pieces
//! after it can begin. Such a p is a *hit*. (If nothing or any byte can stand on a side, the byte
//! on that side is not checked.) A search for the leftmost match that starts at `from` or later has
//! p ≥ s ≥ `from`. With c as the first hit at or after `from`, p ≥ c, and therefore s ≥ p − P ≥ c −
//! P. So the search may begin at max(from, c − P).
//!
//! Let the expression match at most *L* bytes. A search of the span [max(from, c − P), c + L) sees
//! every match that starts at c or before as a whole, since that match ends inside the span. So if
//! the leftmost match in the span starts at c or before, it is the answer. If it does not, no match
//! starts in max(from, c − P) ..= c. Every later match has its own p > c, and the argument begins
//! again with the next hit. If *L* is large or has no bound, the span is the rest of the haystack,
//! and the match found there is the answer.

use regex_syntax::hir::Hir;

#[cfg(feature = "select")]
use super::inline_memchr::FirstOfThreeBytesFinder;
use super::pattern_shape::{ByteSet, PatternShape, PatternShapePiece};

/// The highest estimated frequency of hits (positions that may belong to a match), per byte of
/// text, at which a [`ByteSetTriple`] is used. With more frequent hits, the regular expression
/// alone is faster.
const MAX_HIT_RATE: f64 = 1.0 / 40.0;

/// Three sets of bytes to look for at adjacent positions. A position is a *hit* if its byte is in
/// the second set, the byte before it in the first set, and the byte after it in the third set.
#[derive(Debug, Clone)]
pub(super) struct ByteSetTriple {
    /// The sets of allowed values for three bytes: the byte before the hit, the hit itself, and the
    /// byte after it. `None` if the byte is not checked.
    exact: [Option<Box<ByteSet>>; 3],
    /// For each set in `exact`, a range of byte values that includes the set. The range is tested
    /// first, because this test is faster.
    cover: [ByteValueRange; 3],
    /// The index of the piece in the expression's [`PatternShape`] that matches the hit.
    pub(super) piece: usize,
    /// The estimated frequency of hits per byte of text.
    pub(super) frequency: f64,
}

impl ByteSetTriple {
    /// Returns triples that find hits of the expression with this shape (its sequence of pieces).
    /// There is at most one triple for each piece that matches exactly one byte. Leaves out triples
    /// whose hits are too frequent to be useful. The triples with the rarest hits come first.
    pub(super) fn all_in_shape(shape: &PatternShape) -> Vec<Self> {
        let mut triples: Vec<Self> = (0..shape.pieces.len())
            .filter_map(|piece| Self::at_piece(shape, piece))
            .filter(|triple| triple.frequency < MAX_HIT_RATE)
            .collect();
        triples.sort_by(|one, two| one.frequency.total_cmp(&two.frequency));
        triples
    }

    fn at_piece(shape: &PatternShape, piece: usize) -> Option<Self> {
        let PatternShapePiece::Run(run) = &shape.pieces[piece] else { return None };
        if !run.is_one_byte() {
            return None;
        }
        let before = neighbour(shape.pieces[..piece].iter().rev(), NeighbourSide::Before);
        let after = neighbour(shape.pieces[piece + 1..].iter(), NeighbourSide::After);
        let exact = [before, Some(run.set.clone()), after];
        let cover =
            exact.each_ref().map(|set| set.as_ref().map_or(ByteValueRange::ALL, |set| ByteValueRange::covering(set)));
        let frequency = cover.iter().map(|cover| cover.frequency()).product();
        Some(Self { exact, cover, piece, frequency })
    }

    /// Returns the position of the first hit in the haystack at `from` or later; `None` if there is
    /// none.
    pub(super) fn find(&self, haystack: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        if at == 0 && !haystack.is_empty() {
            if self.matches_at(haystack, 0) {
                return Some(0);
            }
            at = 1;
        }
        while let Some(window) =
            haystack.get(at.wrapping_sub(1)..).and_then(|rest| rest.first_chunk::<{ BLOCK_SIZE + 2 }>())
        {
            if self.is_possible(window) {
                for offset in self.possible(window) {
                    if self.matches_at(haystack, at + offset) {
                        return Some(at + offset);
                    }
                }
            }
            at += BLOCK_SIZE;
        }
        let left = haystack.len().saturating_sub(at);
        if left < MIN_BLOCK {
            return (at..haystack.len()).find(|&at| self.matches_at(haystack, at));
        }
        let mut window = [0; BLOCK_SIZE + 2];
        window[..=left].copy_from_slice(&haystack[at - 1..]);
        self.possible(&window)
            .map(|offset| at + offset)
            .find(|&at| at < haystack.len() && self.matches_at(haystack, at))
    }

    fn matches_at(&self, haystack: &[u8], at: usize) -> bool {
        let [before, here, after] = &self.exact;
        let fits = |set: &Option<Box<ByteSet>>, byte: Option<&u8>| match set {
            Some(set) => byte.is_some_and(|&byte| set[usize::from(byte)]),
            None => true,
        };
        fits(here, haystack.get(at))
            && fits(after, haystack.get(at + 1))
            && fits(before, haystack.get(at.wrapping_sub(1)))
    }

    /// Returns true if a block may contain hits. Tests the bytes only with the value ranges in
    /// `cover`, not with the exact sets; this test excludes most blocks. `window` is the block with
    /// one more byte on either side.
    fn is_possible(&self, window: &[u8; BLOCK_SIZE + 2]) -> bool {
        let [before, here, after] = self.cover;
        let is_hit = |at: usize| here.has(window[at + 1]) & before.has(window[at]) & after.has(window[at + 2]);
        (0..BLOCK_SIZE).fold(0, |any, at| any | is_hit(at)) != 0
    }

    /// Returns the offsets in a block of `BLOCK_SIZE` bytes at which hits are possible. `window` is
    /// the block with one more byte on either side. Most of the search's time is spent here.
    /// Therefore, the code is plain arithmetic over arrays, which the compiler turns into vector
    /// instructions.
    fn possible(&self, window: &[u8; BLOCK_SIZE + 2]) -> impl Iterator<Item = usize> + use<> {
        let [before, here, after] = self.cover;
        let mut flags = [0u8; BLOCK_SIZE];
        let mut any = 0;
        for (offset, flag) in flags.iter_mut().enumerate() {
            *flag = here.has(window[offset + 1]) & before.has(window[offset]) & after.has(window[offset + 2]);
            any |= *flag;
        }
        let words = if any == 0 { 0 } else { BLOCK_SIZE / 8 };
        (0..words).flat_map(move |word| {
            let bytes: [u8; 8] = std::array::from_fn(|index| flags[word * 8 + index]);
            let mut rest = u64::from_le_bytes(bytes);
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(word * 8 + bit as usize / 8)
            })
        })
    }
}

/// Tests whether a text in HTML or XML may contain a match of a regular expression, without
/// decoding the text. The text is the markup without tags, with normalized white space and decoded
/// character references. The test looks for a *hit*: a byte that occurs in every match, with
/// suitable bytes before and after it ([`ByteSetTriple`]). It may find a hit where no match is, but
/// it misses none.
#[cfg(feature = "select")]
#[derive(Debug, Clone)]
pub(super) struct HitAcrossMarkupTest {
    /// The finder for the next of three byte values: the `<` that ends a text, the byte of a hit,
    /// or the `&` of a character reference.
    stops: FirstOfThreeBytesFinder,
    /// For each byte value, a bit set of what the byte can be: [`IS_BEFORE`], [`IS_AFTER`],
    /// [`ENDS_RUN`] and [`IS_BREAK`].
    neighbours: Box<[u8; 256]>,
    /// The minimum number of bytes of one set directly before the hit in every match: 3 for
    /// `[a-z]{3,}@`, whose hit is the `@`. Tags may stand between these bytes. 0 if no minimum is
    /// known.
    run_before: usize,
}

#[cfg(feature = "select")]
impl ByteSetTriple {
    /// Returns a test that finds texts in markup which may contain a hit of this triple. The test
    /// reads the markup without decoding it. Returns `None` if the byte at the hit can have several
    /// values, is white space, or has a meaning in markup (`<`, `>`, `&` and the null byte).
    ///
    /// Any other byte stands in the markup as itself or as a character reference, so the test also
    /// counts each `&` as a hit. The bytes directly before and after a hit are usually the same in
    /// the markup as in the text. In their place, the test also accepts a `<` or `>` of a tag and a
    /// null byte, which is no part of the text. In place of a space, it accepts any white space.
    ///
    /// `run_before` is a set of byte values and a number. In every match, at least this number of
    /// bytes of the set stand directly before the hit. `None` if no such set is known.
    pub(super) fn markup_test(&self, run_before: Option<(&ByteSet, usize)>) -> Option<HitAcrossMarkupTest> {
        let [before, here, after] = &self.exact;
        let mut members = (0..=u8::MAX).filter(|byte| here.as_ref().is_some_and(|here| here[usize::from(*byte)]));
        let (here, None) = (members.next()?, members.next()) else { return None };
        if SPACES.contains(&here) || b"\0<>&".contains(&here) {
            return None;
        }
        let in_markup = |set: &Option<Box<ByteSet>>| match set {
            Some(set) => with_markup_bytes(set),
            None => Box::new([true; 256]),
        };
        let (before, after) = (in_markup(before), in_markup(after));
        let run = run_before.map(|(set, _)| with_markup_bytes(set));
        let neighbours = Box::new(std::array::from_fn(|byte| {
            let is_break = BREAKS.contains(&(byte as u8));
            let ends_run = is_break || run.as_ref().is_some_and(|run| !run[byte]);
            (u8::from(before[byte]) * IS_BEFORE)
                | (u8::from(after[byte]) * IS_AFTER)
                | (u8::from(ends_run) * ENDS_RUN)
                | (u8::from(is_break) * IS_BREAK)
        }));
        let run_before = run_before.map_or(0, |(_, count)| count);
        let stops = FirstOfThreeBytesFinder::new([b'<', here, b'&']);
        Some(HitAcrossMarkupTest { stops, neighbours, run_before })
    }
}

/// A bit in [`HitAcrossMarkupTest::neighbours`]: in markup, the byte may stand directly before a
/// hit. For `[a-z]+@`, the hit is the `@`, and the letters and [`BREAKS`] have this bit.
#[cfg(feature = "select")]
const IS_BEFORE: u8 = 1;
/// A bit in [`HitAcrossMarkupTest::neighbours`]: in markup, the byte may stand directly after a hit
/// (a byte that occurs in every match).
#[cfg(feature = "select")]
const IS_AFTER: u8 = 2;
/// A bit in [`HitAcrossMarkupTest::neighbours`]: the byte is not one of those that every match has
/// directly before its hit ([`HitAcrossMarkupTest::run_before`]). For `[a-z]{3}@` with the hit `@`,
/// all bytes except `a` to `z` have this bit. [`BREAKS`] always have it.
#[cfg(feature = "select")]
const ENDS_RUN: u8 = 4;
/// A bit in [`HitAcrossMarkupTest::neighbours`]: the byte is one of [`BREAKS`]. In markup, such a
/// byte may stand between two bytes that are adjacent in the text.
#[cfg(feature = "select")]
const IS_BREAK: u8 = 8;

/// The white space of HTML.
#[cfg(feature = "select")]
const SPACES: [u8; 5] = [b' ', b'\t', b'\n', b'\r', 0x0c];

/// The bytes of markup that may interrupt a text: the `<` and `>` of a tag, and the null byte,
/// which does not belong to the text. The text may continue after them.
#[cfg(feature = "select")]
const BREAKS: [u8; 3] = *b"<>\0";

/// Returns the set of bytes that can occur in markup in place of a byte of `set` in the text. These
/// are the bytes of `set`, the bytes that may interrupt a text ([`BREAKS`]) and, if `set` contains
/// the space, all white space.
#[cfg(feature = "select")]
fn with_markup_bytes(set: &ByteSet) -> Box<ByteSet> {
    let mut set = Box::new(*set);
    let spaces: &[u8] = if set[usize::from(b' ')] { &SPACES } else { &[] };
    for byte in spaces.iter().chain(&BREAKS) {
        set[usize::from(*byte)] = true;
    }
    set
}

#[cfg(feature = "select")]
impl HitAcrossMarkupTest {
    /// Returns the index of the `<` that ends the text beginning at the index `from`. Returns
    /// `None` if this text may contain a hit, or if no `<` follows. The byte before `from` must be
    /// the `>` of a tag.
    #[inline(always)]
    pub(super) fn skip_text(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let at = from + self.stops.find(bytes.get(from..)?)?;
        if bytes[at] == b'<' { Some(at) } else { self.skip_text_after_stop(bytes, at) }
    }

    /// Continues [`skip_text`](Self::skip_text) at the index `at`. The byte there is an `&`, or it
    /// has the value that every hit has, such as `@` for `[a-z]+@`. Returns the index of the `<`
    /// that ends the text. Returns `None` if an `&` or a hit (that value between suitable bytes)
    /// comes before the `<`, or if no `<` follows.
    #[inline(never)]
    fn skip_text_after_stop(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            if self.is_hit(bytes, at) {
                return None;
            }
            at += 1;
            at += self.stops.find(bytes.get(at..)?)?;
            if bytes[at] == b'<' {
                return Some(at);
            }
        }
    }

    #[inline(always)]
    fn is_hit(&self, bytes: &[u8], at: usize) -> bool {
        let sides = |byte: u8| self.neighbours[usize::from(byte)];
        let after = bytes.get(at + 1).map_or(IS_AFTER, |byte| sides(*byte));
        let may_hit = sides(bytes[at - 1]) & IS_BEFORE != 0 && after & IS_AFTER != 0;
        bytes[at] == b'&' || may_hit && self.has_run_before(&bytes[..at])
    }

    /// Returns true if a hit may follow directly after `bytes`. The last
    /// [`run_before`](Self::run_before) bytes, or those of them after the last tag or null byte,
    /// must be of the set that every match has before its hit. For `[a-z]{3}@`, the result is true
    /// after `abc` and `a</b>bc`, and false after `1bc`.
    #[inline(never)]
    fn has_run_before(&self, bytes: &[u8]) -> bool {
        let mut kinds = bytes.iter().rev().take(self.run_before).map(|byte| self.neighbours[usize::from(*byte)]);
        // A tag may be within the run.
        kinds.find(|kind| kind & ENDS_RUN != 0).is_none_or(|kind| kind & IS_BREAK != 0)
    }
}

const BLOCK_SIZE: usize = 64;

/// The minimum number of bytes that are examined together, as one block. Fewer bytes at the end of
/// the searched text are examined one by one.
const MIN_BLOCK: usize = 6;

/// The side of a piece of an expression: before or after the text that the piece matches.
#[derive(Debug, Clone, Copy)]
enum NeighbourSide {
    Before,
    After,
}

/// Returns the set of bytes that can occur directly next to a piece of an expression; `None` if any
/// byte can. `pieces` are the other pieces on the side `side`, beginning with the nearest.
fn neighbour<'a>(pieces: impl Iterator<Item = &'a PatternShapePiece>, side: NeighbourSide) -> Option<Box<ByteSet>> {
    let mut set = Box::new([false; 256]);
    for piece in pieces {
        let PatternShapePiece::Run(run) = piece else { return None };
        let bytes = match side {
            NeighbourSide::Before => run.last_bytes(),
            NeighbourSide::After => run.first_bytes(),
        };
        set.iter_mut().zip(bytes).for_each(|(member, new)| *member |= new);
        if run.min > 0 {
            return Some(set);
        }
    }
    None
}

/// A range of byte values that includes a [`ByteSet`]: the first value, and the number of values
/// minus one. A byte is tested with the range first, which is faster, and then with the set.
#[derive(Debug, Clone, Copy)]
struct ByteValueRange(u8, u8);

impl ByteValueRange {
    const ALL: Self = Self(0, 255);

    fn covering(set: &ByteSet) -> Self {
        let first = set.iter().position(|&member| member).unwrap_or(0);
        let last = set.iter().rposition(|&member| member).unwrap_or(255);
        Self(first as u8, (last - first) as u8)
    }

    fn has(self, byte: u8) -> u8 {
        u8::from(byte.wrapping_sub(self.0) <= self.1)
    }

    fn frequency(self) -> f64 {
        (0..=255).filter(|&byte| self.has(byte) == 1).map(byte_frequency).sum::<f64>().min(1.0)
    }
}

/// Returns the approximate frequency of a byte value in pages (0 to 1). The frequencies only
/// influence which [`ByteSetTriple`] is used.
fn byte_frequency(byte: u8) -> f64 {
    match byte {
        b' ' => 0.09,
        b'e' | b't' | b'a' | b'i' | b'o' | b'n' | b's' | b'r' => 0.045,
        b'a'..=b'z' => 0.016,
        b'/' | b'<' | b'>' | b'"' | b'=' => 0.03,
        b'0'..=b'9' => 0.015,
        b'\n' | b'.' | b'-' | b':' | b',' => 0.01,
        b'A'..=b'Z' => 0.003,
        0x21..=0x7e => 0.002,
        _ => 0.0005,
    }
}

/// A search that first finds hits of a [`ByteSetTriple`], three adjacent bytes that every match
/// contains. The regular expression then searches for a match only around the hits.
#[derive(Debug, Clone)]
pub(super) struct Prefilter {
    pub(super) triple: ByteSetTriple,
    /// The maximum number of bytes between the start of a match and the hit in it.
    pub(super) before: usize,
    /// The maximum length of a match in bytes. `None` if it is larger than
    /// [`Prefilter::MAX_DISTANCE`]; the regular expression then searches up to the end of the text.
    pub(super) longest: Option<usize>,
}

impl Prefilter {
    /// The maximum value of the fields `before` and `longest`, in bytes. They determine how many
    /// bytes around a hit are searched. With larger values, a hit without a match would cost much
    /// time.
    const MAX_DISTANCE: usize = 256;

    pub(super) fn for_expression(hir: &Hir, shape: &PatternShape) -> Option<Self> {
        ByteSetTriple::all_in_shape(shape).into_iter().find_map(|triple| {
            let before = shape.pieces[..triple.piece]
                .iter()
                .try_fold(0_usize, |sum, piece| sum.checked_add(piece.longest()?))
                .filter(|&before| before <= Self::MAX_DISTANCE)?;
            let longest = hir.properties().maximum_len().filter(|&longest| longest <= Self::MAX_DISTANCE);
            Some(Self { triple, before, longest })
        })
    }
}
