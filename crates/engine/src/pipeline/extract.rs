//! Matches of a regular expression in a body that arrives in pieces.
//!
//! The result is that of one search over the whole body (leftmost-first, not overlapping, empty matches left out),
//! wherever the pieces end. A search in a window of the body is right about a start position once nothing that is
//! still to come can change what happens there: a match is at most *L* bytes long, and the assertions (`$`, `\b`) look
//! at most 4 bytes (one character) further. So of a window of *W* bytes the start positions up to *W − L − 4* are
//! settled (the module `reach` says what is where *L* has no bound); matches there are given out, and what follows is
//! kept and searched again together with the next piece. 4 bytes before it are kept for the assertions that look back.
//!
//! Pieces are searched where they lie: only the unsettled end of a piece, and as much of the next one as settles it,
//! are copied.

use std::{fmt, sync::Arc};

use regex_automata::meta::{Cache, Regex};
use regex_syntax::{Error as SyntaxError, ParserBuilder, ast};

use super::{
    finder::{Finder, Found, Scratch},
    reach::{CONTEXT, Reach},
};
use crate::{Error, ErrorKind, Result};

/// Pieces are gathered until there are this many new bytes, so that a trickle costs no search a byte.
const GATHER: usize = 4 << 10;
/// Never more than this is gathered before it is searched.
const GATHER_MOST: usize = 256 << 10;

/// A compiled regular expression; clones share it.
///
/// The syntax is that of the `regex` crate over bytes: Unicode is on (turn it off with `(?-u)`), and bodies need not be
/// UTF-8.
#[derive(Clone)]
pub struct Pattern {
    inner: Arc<Inner>,
}

struct Inner {
    source: String,
    finder: Finder,
    reach: Reach,
}

impl Pattern {
    /// Compiles an expression. Its value is group 1 where there is one, else the whole match.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`], with the parser's explanation.
    pub fn new(expression: &str) -> Result<Self> {
        let bad = |cause: String| {
            Error::new(ErrorKind::Setup, format!("regular expression {expression:?} cannot be used: {cause}"))
        };
        let parsed = ParserBuilder::new().utf8(false).build().parse(expression);
        let hir = parsed.map_err(|cause| bad(in_words(&cause, expression)))?;
        let regex = Regex::builder()
            .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(10 << 20)))
            .build_from_hir(&hir)
            .map_err(|cause| bad(cause.to_string()))?;
        Ok(Self {
            inner: Arc::new(Inner {
                source: expression.to_owned(),
                finder: Finder::new(regex, &hir),
                reach: Reach::of(&hir),
            }),
        })
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.inner.source
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.inner.source).finish()
    }
}

/// The search through one body, and after [`finish`](Self::finish) or [`reset`](Self::reset) through another.
///
/// It owns the scratch memory of the search, so make one a worker and use it again. Memory: what the expression needs,
/// and the unsettled end of the body, which is at most the longest match (1 MiB where the expression has no bound; a
/// longer match may be cut there) plus 256 KiB.
pub struct Extractor {
    pattern: Pattern,
    scratch: Scratch,
    reach_cache: Option<Cache>,
    /// The end of what was pushed, from `CONTEXT` bytes before the first unsettled position.
    tail: Vec<u8>,
    /// Where in `tail` (or in the window being searched) the search goes on.
    next: usize,
    /// Bytes of `tail` that were searched already, in vain.
    searched: usize,
    gather: usize,
}

impl Extractor {
    /// An extractor at the beginning of a body.
    #[must_use]
    pub fn new(pattern: Pattern) -> Self {
        let scratch = pattern.inner.finder.scratch();
        let reach_cache = pattern.inner.reach.cache();
        Self { pattern, scratch, reach_cache, tail: Vec::new(), next: 0, searched: 0, gather: GATHER }
    }

    /// Searches smaller gatherings, so that small tests meet every seam.
    #[cfg(test)]
    pub(super) fn gather_at_least(&mut self, gather: usize) {
        self.gather = gather;
    }

    /// Forgets the body under way.
    pub fn reset(&mut self) {
        self.tail.clear();
        self.next = 0;
        self.searched = 0;
        self.scratch.reset();
    }

    /// Searches the next piece of the body. A value is given out as soon as what follows cannot change it and 4 KiB
    /// (256 KiB at most, when much is unsettled) have gathered.
    ///
    /// # Errors
    /// Only what `on_match` gives; the body under way is lost then ([`reset`](Self::reset)).
    pub fn push(&mut self, piece: &[u8], on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let unsettled = self.searched.saturating_sub(self.next);
        let enough = unsettled.clamp(self.gather, GATHER_MOST);
        if self.tail.len() - self.searched + piece.len() < enough {
            self.tail.extend_from_slice(piece);
            return Ok(());
        }
        if self.tail.is_empty() {
            return self.search_in_place(piece, on_match);
        }
        let mut tail = std::mem::take(&mut self.tail);
        let mut taken = 0;
        let mut step = self.pattern.inner.reach.seam();
        while taken < piece.len() {
            let before = tail.len() - taken;
            let count = step.min(piece.len() - taken);
            tail.extend_from_slice(&piece[taken..taken + count]);
            taken += count;
            step *= 2;
            self.search(&tail, false, on_match)?;
            if self.next >= before + CONTEXT && taken < piece.len() {
                self.next -= before;
                tail.clear();
                self.tail = tail;
                return self.search_in_place(piece, on_match);
            }
        }
        let unneeded = self.next.saturating_sub(CONTEXT);
        tail.drain(..unneeded);
        self.next -= unneeded;
        self.searched = tail.len();
        self.tail = tail;
        Ok(())
    }

    /// Says that the body has ended, and gives out the values that waited for it. The extractor is then ready for
    /// another body.
    ///
    /// # Errors
    /// Only what `on_match` gives.
    pub fn finish(&mut self, on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let tail = std::mem::take(&mut self.tail);
        let result = self.search(&tail, true, on_match);
        self.tail = tail;
        self.reset();
        result
    }

    fn search_in_place(&mut self, piece: &[u8], on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.search(piece, false, on_match)?;
        let unneeded = self.next.saturating_sub(CONTEXT);
        self.tail.extend_from_slice(&piece[unneeded..]);
        self.next -= unneeded;
        self.searched = self.tail.len();
        Ok(())
    }

    /// Gives out the matches at the window's settled positions and moves `next` behind them.
    fn search(&mut self, window: &[u8], last: bool, on_match: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let inner = &*self.pattern.inner;
        let settled =
            if last { window.len() + 1 } else { inner.reach.settled(self.reach_cache.as_mut(), window, self.next) };
        while self.next < settled {
            let found = inner.finder.find(&mut self.scratch, window, self.next);
            let Some(Found { start, end, value }) = found.filter(|found| found.start < settled) else {
                self.next = settled;
                break;
            };
            if start == end {
                self.next = end + 1;
                continue;
            }
            self.next = end;
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                on_match(&window[value])?;
            }
        }
        Ok(())
    }
}

/// A syntax error in one line: what is wrong, where, and what to write where that is known.
fn in_words(cause: &SyntaxError, expression: &str) -> String {
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

impl fmt::Debug for Extractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extractor")
            .field("pattern", &self.pattern)
            .field("waiting", &self.tail.len())
            .finish_non_exhaustive()
    }
}
