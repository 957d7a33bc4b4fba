//! Finds matches of a regular expression in a body that arrives in pieces.
//!
//! The result is the same as that of one search over the whole body (leftmost-first, not
//! overlapping, without empty matches), wherever the pieces end. A start position in the window
//! that is being searched is *settled* if no later input can change the match there. A match is at
//! most *L* bytes long, and the assertions (`$`, `\b`) look at most 4 bytes (one character)
//! further. So in a window of *W* bytes, the start positions up to *W − L − 4* are settled. (The
//! module `settled_matches` handles expressions for which *L* has no bound.) Matches at settled
//! positions are returned. The remaining bytes are kept and searched again together with the next
//! piece. The 4 bytes before them are kept, too, for assertions that look back.
//!
//! Pieces are searched in place. Only the unsettled end of a piece is copied, and as much of the
//! next piece as is needed to settle it.

use std::{fmt, sync::Arc, time::Instant};

use regex_automata::meta::{Cache, Regex};
use regex_syntax::{Error as SyntaxError, ParserBuilder, ast};

#[cfg(feature = "select")]
use super::prefilter::HitAcrossMarkupTest;
use super::{
    contiguous_match_finder::{MatchFinder, SearchScratch, ValueMatch},
    page_search::OnValue,
    search_work_limit::{ReadAheadMeter, SearchWork},
    settled_matches::{ASSERTION_CONTEXT, SettledMatchRule},
};
use crate::{Error, ErrorKind, Result};

/// The minimum number of new bytes to collect before a search. A body that arrives slowly then does
/// not cost one search for each byte.
const MIN_GATHERED: usize = 4 << 10;
/// The maximum number of new bytes of a body that are collected before they are searched.
const MAX_GATHERED: usize = 256 << 10;

/// One or more compiled regular expressions; clones share them.
///
/// The syntax is that of the `regex` crate over bytes: Unicode is on (turn it off with `(?-u)`),
/// and bodies need not be UTF-8.
#[derive(Clone)]
pub struct ExtractRegexes {
    inner: Arc<[CompiledExpression]>,
    /// True to return the empty values of matches in which group 1 is empty or takes no part.
    keeps_empty: bool,
}

/// A compiled regular expression, with the rule that decides which of its matches are settled, i.e.
/// cannot be changed by later bytes of the body.
struct CompiledExpression {
    source: String,
    finder: MatchFinder,
    lookahead: SettledMatchRule,
    read_ahead: ReadAheadMeter,
}

impl ExtractRegexes {
    /// Compiles an expression. The value of a match is the text of group 1 or, if the expression
    /// has no groups, of the whole match.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`], with the parser's explanation.
    pub fn new(expression: &str) -> Result<Self> {
        Self::all_of(&[expression])
    }

    /// Compiles several expressions, which are searched for independently. Values are returned in
    /// the order in which their matches begin in the body. If two matches begin at the same
    /// position, the order of the expressions decides.
    ///
    /// # Errors
    /// The errors of [`ExtractRegexes::new`].
    pub fn all_of(expressions: &[impl AsRef<str>]) -> Result<Self> {
        let inner = expressions.iter().map(|expression| compile(expression.as_ref()));
        Ok(Self { inner: inner.collect::<Result<_>>()?, keeps_empty: false })
    }

    /// Makes the expressions also report an empty value: the value of a match in which group 1 is
    /// empty or takes no part. A match that is empty itself has no value. By default, empty values
    /// are left out. Suppose that three expressions match exactly once in each item of a page. With
    /// empty values, each item then has three values, and the position of a value in the list shows
    /// which expression found it.
    #[must_use]
    pub fn keeping_empty(self) -> Self {
        Self { keeps_empty: true, ..self }
    }

    /// Returns the texts of the expressions, as they were given.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.inner.iter().map(|inner| &*inner.source)
    }

    /// Returns a quick test that finds the texts in HTML or XML markup in which the expression may
    /// match. Returns `None` if there are several expressions or if the test is not possible.
    #[cfg(feature = "select")]
    pub(super) fn markup_hit_test(&self) -> Option<HitAcrossMarkupTest> {
        match &*self.inner {
            [one] => one.finder.markup_hit_test(),
            _ => None,
        }
    }

    /// Returns the names that the expressions give to group 1: `(?<name>…)`.
    pub fn value_names(&self) -> impl Iterator<Item = &str> {
        self.inner.iter().filter_map(|inner| inner.finder.value_name())
    }
}

fn compile(expression: &str) -> Result<CompiledExpression> {
    let bad = |cause: String| {
        Error::new(ErrorKind::Setup, format!("regular expression {expression:?} cannot be used: {cause}"))
    };
    let parsed = ParserBuilder::new().utf8(false).build().parse(expression);
    let hir = parsed.map_err(|cause| bad(describe_syntax_error(&cause, expression)))?;
    let regex = Regex::builder()
        .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(10 << 20)))
        .build_from_hir(&hir)
        .map_err(|cause| bad(cause.to_string()))?;
    Ok(CompiledExpression {
        source: expression.to_owned(),
        finder: MatchFinder::new(regex, &hir),
        lookahead: SettledMatchRule::for_expression(&hir),
        read_ahead: ReadAheadMeter::new(),
    })
}

impl fmt::Debug for ExtractRegexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.expressions()).finish()
    }
}

/// Searches a body for matches of regular expressions, and returns their values. The body may
/// arrive in pieces. After [`finish`](Self::finish) or [`reset`](Self::reset), the extractor can
/// search another body. Reuse an extractor, because it owns the working memory of the search.
///
/// # Memory
///
/// An extractor keeps the end of the body received so far, because later bytes can still change the
/// matches there. The length of this end is at most 256 KiB plus the maximum length of a match. An
/// expression such as `[0-9]{1,9}` limits the length of its matches. Without such a limit, the
/// maximum is 1 MiB, and a longer match may be cut. With several expressions, the extractor also
/// keeps the values of matches in this end. In addition, each expression needs working memory.
pub struct Extractor {
    searches: Vec<RegexSearch>,
    /// The values that were found but not passed to the callback yet, because another expression
    /// may still find a value that begins earlier in the body.
    found: Vec<ExtractedValue>,
}

/// An extracted value, the position in the body where its match begins, and the index of the
/// expression that found it.
struct ExtractedValue {
    start: u64,
    expression: usize,
    bytes: Box<[u8]>,
}

impl Extractor {
    /// Makes an extractor for these regular expressions.
    #[must_use]
    pub fn new(pattern: ExtractRegexes) -> Self {
        let searches = (0..pattern.inner.len()).map(|index| RegexSearch::new(pattern.clone(), index)).collect();
        Self { searches, found: Vec::new() }
    }

    /// Sets the minimum number of new bytes that are collected before a search. Tests set a small
    /// number, so that short bodies are also searched in several pieces.
    #[cfg(test)]
    pub(super) fn gather_at_least(&mut self, gather: usize) {
        self.searches.iter_mut().for_each(|search| search.gather = gather);
    }

    /// Sets the time after which a search fails, for this body and later ones. An expression may
    /// read far ahead of each of its matches, so the limit of the work alone lets a body that was
    /// made for this purpose occupy the search for seconds.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.searches.iter_mut().for_each(|search| search.work.set_deadline(deadline));
        self.begin_page();
    }

    /// Begins to count the work of the searches for another body.
    fn begin_page(&mut self) {
        self.searches.iter_mut().for_each(|search| search.work.begin_page());
    }

    /// Discards the state of the body that is being searched, so that the extractor can search
    /// another body.
    pub fn reset(&mut self) {
        self.searches.iter_mut().for_each(RegexSearch::reset);
        self.found.clear();
        self.begin_page();
    }

    /// Searches the next piece of the body, and passes each value that later bytes cannot change to
    /// `on_match`. Collects small pieces, and searches them when they have 4 KiB together.
    ///
    /// Each search reads again the end of the body in which later bytes can still change matches.
    /// If this end is longer than 4 KiB, the extractor first collects as many new bytes as the end
    /// has, but at most 256 KiB.
    ///
    /// # Errors
    /// The errors of `on_match`, and [`ErrorKind::TooLarge`] if the expression reads so far ahead
    /// of its matches that the search takes too long for the size of the body. Then call
    /// [`reset`](Self::reset), since the rest of the body cannot be searched.
    pub fn push(&mut self, piece: &[u8], on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.push_numbered(piece, &mut |_, value| on_match(value))
    }

    /// Searches the next piece like [`push`](Self::push). The callback also gets the index of the
    /// expression that found the value.
    pub(super) fn push_numbered(&mut self, piece: &[u8], on_value: &mut OnValue<'_>) -> Result<()> {
        let Self { searches, found } = self;
        if let [search] = searches.as_mut_slice() {
            return search.push(piece, &mut |_, value| on_value(0, value));
        }
        for (expression, search) in searches.iter_mut().enumerate() {
            search.push(piece, &mut |start, value| {
                found.push(ExtractedValue { start, expression, bytes: value.into() });
                Ok(())
            })?;
        }
        let settled = searches.iter().map(RegexSearch::settled).min().unwrap_or(0);
        pass_settled_values(found, settled, on_value)
    }

    /// Searches a whole body that is in memory. Does the same as one [`push`](Self::push) and a
    /// [`finish`](Self::finish), but without a copy. `known_hit` is the first position in the body
    /// that can belong to a match, if the caller has already found it by
    /// [`next_hit`](Self::next_hit).
    #[cfg(feature = "select")]
    pub(super) fn search_whole(
        &mut self,
        body: &[u8],
        known_hit: Option<usize>,
        on_match: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if let [search] = self.searches.as_mut_slice() {
            let outcome = search.search(body, true, known_hit, &mut |_, value| on_match(value));
            search.reset();
            search.work.add_passed(body.len());
            return outcome;
        }
        self.push(body, on_match)?;
        let outcome = self.finish_text(&mut |_, value| on_match(value));
        self.searches.iter_mut().for_each(|search| search.work.add_passed(body.len()));
        outcome
    }

    /// Returns the index of the first hit at `from` or later: a byte that, judged by the bytes
    /// around it, can be part of a match. Each match contains a hit, so a match that begins at
    /// `from` or later ends after this index. Returns `None` if no match begins at `from` or later.
    /// Returns `from` if there is no test for hits, for example with several expressions. The
    /// result also holds for a search in a part of `text` that begins at `from` or later.
    #[cfg(feature = "select")]
    pub(super) fn next_hit(&self, text: &[u8], from: usize) -> Option<usize> {
        match self.searches.as_slice() {
            [search] => search.pattern.inner[search.index].finder.next_hit(text, from),
            _ => Some(from),
        }
    }

    /// Ends the body, and passes the remaining values to `on_match`. The extractor can then search
    /// another body.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub fn finish(&mut self, on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.finish_numbered(&mut |_, value| on_match(value))
    }

    /// Ends the body like [`finish`](Self::finish). The callback also gets the index of the
    /// expression that found the value.
    pub(super) fn finish_numbered(&mut self, on_value: &mut OnValue<'_>) -> Result<()> {
        let outcome = self.finish_text(on_value);
        self.begin_page();
        outcome
    }

    /// Searches the rest of the text, which is a body or a selected value. The work of the searches
    /// still counts for the same page.
    fn finish_text(&mut self, on_value: &mut OnValue<'_>) -> Result<()> {
        let Self { searches, found } = self;
        if let [search] = searches.as_mut_slice() {
            return search.finish(&mut |_, value| on_value(0, value));
        }
        for (expression, search) in searches.iter_mut().enumerate() {
            search.finish(&mut |start, value| {
                found.push(ExtractedValue { start, expression, bytes: value.into() });
                Ok(())
            })?;
        }
        let outcome = pass_settled_values(found, u64::MAX, on_value);
        found.clear();
        outcome
    }
}

/// Passes to `on_value` the values in `found` whose matches begin before the position `settled` in
/// the body, in the order of their matches, and removes them from `found`.
fn pass_settled_values(found: &mut Vec<ExtractedValue>, settled: u64, on_value: &mut OnValue<'_>) -> Result<()> {
    found.sort_by_key(|value| (value.start, value.expression));
    let count = found.partition_point(|value| value.start < settled);
    found.drain(..count).try_for_each(|value| on_value(value.expression, &value.bytes))
}

impl fmt::Debug for Extractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extractor")
            .field("pattern", &self.searches.first().map(|search| &search.pattern))
            .field("waiting", &self.searches.iter().map(|search| search.tail.len()).sum::<usize>())
            .finish_non_exhaustive()
    }
}

/// A callback that receives the position in the body where a match begins, and the match's value.
type OnMatch<'f> = dyn FnMut(u64, &[u8]) -> Result<()> + 'f;

/// The search for one expression in a body. The body is searched in windows, i.e. parts of the
/// body. A window usually begins with the unsettled end of the bytes received before: the bytes in
/// which later input could still change a match. The next bytes of the body follow.
struct RegexSearch {
    pattern: ExtractRegexes,
    index: usize,
    scratch: SearchScratch,
    reach_cache: Option<Cache>,
    /// The bytes that are kept between two searches: the unsettled end of the body so far (where
    /// later bytes can still change a match), and the [`ASSERTION_CONTEXT`] bytes before it.
    tail: Vec<u8>,
    /// The offset in the body, in bytes, of the first byte of the window. Between two searches,
    /// this is the first byte of `tail`, which becomes the beginning of the next window.
    origin: u64,
    /// The index in the window at which the search continues. Between two searches, this is an
    /// index in `tail`, which becomes the beginning of the next window.
    next: usize,
    /// The number of bytes of `tail` that an earlier search has covered already.
    searched: usize,
    gather: usize,
    work: SearchWork,
}

impl RegexSearch {
    fn new(pattern: ExtractRegexes, index: usize) -> Self {
        let inner = &pattern.inner[index];
        let (scratch, reach_cache) = (inner.finder.scratch(), inner.lookahead.cache());
        Self {
            pattern,
            index,
            scratch,
            reach_cache,
            tail: Vec::new(),
            origin: 0,
            next: 0,
            searched: 0,
            gather: MIN_GATHERED,
            work: SearchWork::new(),
        }
    }

    fn reset(&mut self) {
        self.tail.clear();
        self.origin = 0;
        self.next = 0;
        self.searched = 0;
        self.scratch.reset();
    }

    /// Returns the position in the body before which no further match can begin.
    fn settled(&self) -> u64 {
        self.origin + self.next as u64
    }

    fn push(&mut self, piece: &[u8], on_match: &mut OnMatch<'_>) -> Result<()> {
        let unsettled = self.searched.saturating_sub(self.next);
        let enough = unsettled.clamp(self.gather, MAX_GATHERED);
        if self.tail.len() - self.searched + piece.len() < enough {
            self.tail.extend_from_slice(piece);
            return Ok(());
        }
        if self.tail.is_empty() {
            return self.search_in_place(piece, on_match);
        }
        let mut tail = std::mem::take(&mut self.tail);
        let mut taken = 0;
        let mut step = self.pattern.inner[self.index].lookahead.settling_length();
        while taken < piece.len() {
            let before = tail.len() - taken;
            let count = step.min(piece.len() - taken);
            tail.extend_from_slice(&piece[taken..taken + count]);
            taken += count;
            step *= 2;
            self.search(&tail, false, None, on_match)?;
            if self.next >= before + ASSERTION_CONTEXT && taken < piece.len() {
                self.next -= before;
                self.origin += before as u64;
                tail.clear();
                self.tail = tail;
                return self.search_in_place(piece, on_match);
            }
        }
        let unneeded = self.next.saturating_sub(ASSERTION_CONTEXT);
        tail.drain(..unneeded);
        self.next -= unneeded;
        self.origin += unneeded as u64;
        self.searched = tail.len();
        self.tail = tail;
        Ok(())
    }

    fn finish(&mut self, on_match: &mut OnMatch<'_>) -> Result<()> {
        let tail = std::mem::take(&mut self.tail);
        let result = self.search(&tail, true, None, on_match);
        self.tail = tail;
        self.reset();
        result
    }

    fn search_in_place(&mut self, piece: &[u8], on_match: &mut OnMatch<'_>) -> Result<()> {
        self.search(piece, false, None, on_match)?;
        let unneeded = self.next.saturating_sub(ASSERTION_CONTEXT);
        self.tail.extend_from_slice(&piece[unneeded..]);
        self.next -= unneeded;
        self.origin += unneeded as u64;
        self.searched = self.tail.len();
        Ok(())
    }

    /// Searches `window` from the index `next` (a field) on. Passes the values of settled matches
    /// (those that later input cannot change) to `on_match`. Then sets `next` to the index before
    /// which no further match can begin. `last` is true if the body ends with the window.
    /// `known_hit` is the first index from `next` on that may be inside a match; `None` if unknown.
    ///
    /// # Errors
    /// The errors of `on_match`, and those of [`SearchWork::check`].
    fn search(
        &mut self,
        window: &[u8],
        last: bool,
        mut known_hit: Option<usize>,
        on_match: &mut OnMatch<'_>,
    ) -> Result<()> {
        let inner = &self.pattern.inner[self.index];
        let settled = if last {
            window.len() + 1
        } else {
            inner.lookahead.unsettled_from(self.reach_cache.as_mut(), window, self.next)
        };
        while self.next < settled {
            let is_due = self.work.add(window.len().saturating_sub(self.next));
            let found = inner.finder.find(&mut self.scratch, window, self.next, known_hit.take());
            let Some(ValueMatch { start, end, value }) = found.filter(|found| found.start < settled) else {
                self.next = settled;
                break;
            };
            if is_due {
                let position = self.origin + start as u64;
                self.work.check(&inner.read_ahead, &inner.source, window, start, position)?;
            }
            if start == end {
                self.next = end + 1;
                continue;
            }
            self.next = end;
            let value = value.map_or(&[][..], |value| &window[value]);
            if !value.is_empty() || self.pattern.keeps_empty {
                on_match(self.origin + start as u64, value)?;
            }
        }
        Ok(())
    }
}

/// Describes a syntax error in an expression in one line: the error, its position, and a remedy if
/// there is one.
fn describe_syntax_error(cause: &SyntaxError, expression: &str) -> String {
    let (why, at, remedy) = match cause {
        SyntaxError::Parse(flaw) => {
            let remedy = match flaw.kind() {
                ast::ErrorKind::UnsupportedLookAround => {
                    Some("match what surrounds it, and put what is wanted into group 1")
                }
                ast::ErrorKind::UnsupportedBackreference => Some("write the group out once more"),
                _ => None,
            };
            (flaw.kind().to_string(), flaw.span().start.offset, remedy)
        }
        SyntaxError::Translate(flaw) => (flaw.kind().to_string(), flaw.span().start.offset, None),
        other => return other.to_string(),
    };
    let sign = expression[at.min(expression.len())..].chars().next().filter(char::is_ascii_punctuation);
    match (remedy, sign) {
        (Some(remedy), _) => format!("{why}, at byte {at}; {remedy}"),
        (None, Some('\\')) => format!("{why}, at byte {at}; write \\\\ for a backslash"),
        (None, Some(sign)) => format!("{why}, at byte {at}; write \\{sign} for the character {sign} itself"),
        (None, None) => format!("{why}, at byte {at}"),
    }
}
