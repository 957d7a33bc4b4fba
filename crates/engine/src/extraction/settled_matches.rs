//! Decides which start positions in a window are *settled*: no later input can change a match that
//! starts there. The other start positions are *open*.
//!
//! If all matches of an expression are short ([`MAX_SHORT_MATCH`]), the positions within the
//! maximum length of a match from the window's end are open. For other expressions, such as
//! `href="[^"]+"`, a position is open if the text from there to the window's end is the beginning
//! of a possible match. These beginnings are a regular language, too. A second expression finds the
//! first of them by one backward search from the end. In the example, it finds the last `href="`
//! without a second quote after it, or an incomplete `h`, `hr`, `hre`… at the end. Without this
//! search, all of the last [`MAX_UNBOUNDED_MATCH`] bytes would be open, so the extractor would keep
//! a megabyte of every body.
//!
//! The second expression contains no assertions, so it leaves too many positions open rather than
//! too few. An assertion at the end of a match reads one more character. Therefore the search ends
//! [`ASSERTION_CONTEXT`] bytes before the window's end, and the positions after it are open.

use regex_automata::{
    Input,
    meta::{Cache, Regex},
};
use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look, Repetition};

/// The number of bytes that an assertion such as `\b` may examine on either side of a position. It
/// is the length of the longest UTF-8 character.
pub(super) const ASSERTION_CONTEXT: usize = 4;
/// The length in bytes up to which a match is certainly found completely, if its expression does
/// not limit the length. A longer match may be cut.
pub(super) const MAX_UNBOUNDED_MATCH: usize = 1 << 20;
/// The maximum length in bytes of a short match. If all matches of an expression are short,
/// [`SettledMatchRule::Within`] decides by their maximum length which matches are settled (later
/// input cannot change them). For other expressions, [`SettledMatchRule::Open`] decides by a
/// search.
const MAX_SHORT_MATCH: usize = 4 << 10;

/// A rule for the settled matches in a window, i.e. in the part of the body that is being searched.
/// A match is settled if later input cannot change it. The rule gives a position in the window:
/// every match that starts before this position is settled.
#[derive(Debug)]
pub(super) enum SettledMatchRule {
    /// Every match is at most this many bytes long. Later input can only change matches that start
    /// within this distance, plus [`ASSERTION_CONTEXT`] bytes, of the end of the window.
    Within(usize),
    /// A regular expression that finds the first position at which later input can change a match:
    /// the text from there to the window's end is the beginning of a possible match. Used if
    /// matches may be longer than [`MAX_SHORT_MATCH`].
    Open(Box<Regex>),
}

impl SettledMatchRule {
    pub(super) fn for_expression(hir: &Hir) -> Self {
        let bound = hir.properties().maximum_len().unwrap_or(MAX_UNBOUNDED_MATCH).min(MAX_UNBOUNDED_MATCH);
        if bound <= MAX_SHORT_MATCH {
            return Self::Within(bound);
        }
        let open = Hir::concat(vec![match_prefixes(hir), Hir::look(Look::End)]);
        let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(10 << 20));
        Regex::builder()
            .configure(config)
            .build_from_hir(&open)
            .map_or(Self::Within(bound), |regex| Self::Open(Box::new(regex)))
    }

    pub(super) fn cache(&self) -> Option<Cache> {
        match self {
            Self::Within(_) => None,
            Self::Open(regex) => Some(regex.create_cache()),
        }
    }

    /// Returns the number of bytes at the beginning of a piece of the body that are first searched
    /// together with the end of the previous piece. Matches in that end are not settled: later
    /// input can change them. This many further bytes usually settle these matches.
    pub(super) fn settling_length(&self) -> usize {
        match self {
            Self::Within(bound) => bound.saturating_add(2 * ASSERTION_CONTEXT).min(MAX_SHORT_MATCH),
            Self::Open(_) => MAX_SHORT_MATCH,
        }
    }

    /// Returns a position in `window`. Later input cannot change a match that starts before this
    /// position (a settled match). The window is already searched up to `from`. The position may be
    /// less than `from`.
    pub(super) fn unsettled_from(&self, cache: Option<&mut Cache>, window: &[u8], from: usize) -> usize {
        let within = |bound: usize| (window.len() + 1).saturating_sub(bound + ASSERTION_CONTEXT);
        match (self, cache) {
            (Self::Open(regex), Some(cache)) => {
                let seen = &window[..window.len().saturating_sub(ASSERTION_CONTEXT)];
                if from > seen.len() {
                    return from;
                }
                let open = regex.search_with(cache, &Input::new(seen).span(from..seen.len()));
                open.map_or(from, |open| open.start()).max(within(MAX_UNBOUNDED_MATCH))
            }
            (Self::Within(bound), _) => within(*bound),
            (Self::Open(_), None) => within(MAX_UNBOUNDED_MATCH),
        }
    }
}

/// Returns an expression that matches every prefix of a match of `hir`, from the empty prefix to
/// the whole match.
fn match_prefixes(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Hir::empty(),
        HirKind::Literal(literal) => literal
            .0
            .iter()
            .rev()
            .fold(Hir::empty(), |rest, &byte| optional(Hir::concat(vec![Hir::literal([byte]), rest]))),
        HirKind::Class(Class::Bytes(_)) => optional(hir.clone()),
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => optional(hir.clone()),
        HirKind::Class(Class::Unicode(_)) => optional(Hir::alternation(vec![hir.clone(), cut_character()])),
        HirKind::Capture(Capture { sub, .. }) => match_prefixes(sub),
        HirKind::Alternation(ways) => Hir::alternation(ways.iter().map(match_prefixes).collect()),
        HirKind::Concat(parts) => parts.iter().rev().fold(Hir::empty(), |rest, part| {
            Hir::alternation(vec![Hir::concat(vec![without_assertions_and_groups(part), rest]), match_prefixes(part)])
        }),
        HirKind::Repetition(Repetition { max: Some(0), .. }) => Hir::empty(),
        HirKind::Repetition(Repetition { max, sub, .. }) => Hir::concat(vec![
            repeat(without_assertions_and_groups(sub), 0, max.map(|max| max - 1)),
            match_prefixes(sub),
        ]),
    }
}

/// Returns the expression `hir` without its assertions and groups.
fn without_assertions_and_groups(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Capture(Capture { sub, .. }) => without_assertions_and_groups(sub),
        HirKind::Alternation(ways) => Hir::alternation(ways.iter().map(without_assertions_and_groups).collect()),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_assertions_and_groups).collect()),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => repeat(without_assertions_and_groups(sub), *min, *max),
    }
}

fn repeat(hir: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(hir) })
}

fn optional(hir: Hir) -> Hir {
    repeat(hir, 0, Some(1))
}

/// Returns an expression that matches the first bytes of an incomplete UTF-8 character. The
/// searched part of a body may end with such bytes.
fn cut_character() -> Hir {
    let bytes = |first, last| Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(first, last)])));
    Hir::concat(vec![bytes(0xc2, 0xf4), repeat(bytes(0x80, 0xbf), 0, Some(2))])
}
