//! Limits the work of a search for a regular expression in a page that was made to be slow.
//!
//! An expression such as `<p>.*?</p>|<p>` can read to the end of the window before each short
//! match. The work then grows with the square of the window. The automaton does not tell how far it
//! reads. So whenever the rests of the window before the matches add up to [`CHECK_BYTES`], the
//! distance that one match reads ahead is measured. It stands for the matches since the last
//! measurement. A usual page has a few measurements, of a few bytes each.

use std::sync::OnceLock;
use std::time::Instant;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::{Error, ErrorKind, Result};

/// The number of bytes that searches may examine between two checks. A search counts as if it
/// examined all bytes to the end of the window.
const CHECK_BYTES: usize = 4 << 20;
/// The number of bytes that the searches of a page may examine in any case. Tests have a small
/// number, so that a short page can exceed the limit.
const FREE_EXAMINED_BYTES: u64 = if cfg!(test) { 16 << 20 } else { 1 << 30 };
/// The number of bytes that the searches may examine in addition for each byte of the page.
const EXAMINED_PER_BYTE: u64 = 1 << 10;

/// Measures how far an expression reads ahead of the beginning of a match. The automaton for it is
/// built when it is first needed.
pub(super) struct ReadAheadMeter(OnceLock<Option<Box<DFA>>>);

impl ReadAheadMeter {
    pub(super) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the number of bytes of `window` from `start` that decide the match that begins at
    /// `start`. Returns 0 if no automaton is possible for the expression.
    fn measure(&self, expression: &str, cache: &mut Option<Cache>, window: &[u8], start: usize) -> usize {
        let automaton = self.0.get_or_init(|| {
            let config = DFA::config().unicode_word_boundary(true).skip_cache_capacity_check(true);
            let syntax = syntax::Config::new().utf8(false);
            let built = DFA::builder().configure(config).syntax(syntax).build(expression);
            built.ok().map(Box::new)
        });
        let Some(automaton) = automaton else { return 0 };
        let cache = cache.get_or_insert_with(|| automaton.create_cache());
        let input = Input::new(window).range(start..).anchored(Anchored::Yes);
        let Ok(mut state) = automaton.start_state_forward(cache, &input) else { return 0 };
        for (count, &byte) in window[start..].iter().enumerate() {
            match automaton.next_state(cache, state, byte) {
                Ok(next) if !next.is_dead() && !next.is_quit() => state = next,
                _ => return count,
            }
        }
        window.len() - start
    }
}

/// The work of the searches for one expression in a page.
pub(super) struct SearchWork {
    /// The time after which a search fails; `None` for no limit.
    deadline: Option<Instant>,
    /// The maximum number of bytes that were examined since the last check.
    unchecked: usize,
    /// The number of bytes that were examined before the last check, by estimate.
    examined: u64,
    /// The number of bytes in the values of the page that were searched completely.
    passed: u64,
    cache: Option<Cache>,
}

impl SearchWork {
    pub(super) fn new() -> Self {
        Self { deadline: None, unchecked: 0, examined: 0, passed: 0, cache: None }
    }

    /// Sets the time after which a search fails; `None` for no limit.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Begins to count for another page.
    pub(super) fn begin_page(&mut self) {
        (self.examined, self.passed) = (0, 0);
    }

    /// Adds the length of a value that was searched completely.
    #[cfg(feature = "select")]
    pub(super) fn add_passed(&mut self, length: usize) {
        self.passed += length as u64;
    }

    /// Counts a search that may examine `rest` bytes. Returns true if the work is to be checked by
    /// [`check`](Self::check).
    pub(super) fn add(&mut self, rest: usize) -> bool {
        self.unchecked += rest;
        self.unchecked >= CHECK_BYTES
    }

    /// Checks the work after a search in `window` that has found a match at `start`, the byte of
    /// the page with the offset `position`.
    ///
    /// # Errors
    /// - [`ErrorKind::Timeout`] after the deadline.
    /// - [`ErrorKind::TooLarge`] if the searches have examined too many bytes for the page's size.
    #[cold]
    pub(super) fn check(
        &mut self,
        meter: &ReadAheadMeter,
        expression: &str,
        window: &[u8],
        start: usize,
        position: u64,
    ) -> Result<()> {
        let unchecked = std::mem::take(&mut self.unchecked);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let message = format!("the time limit ended the search for values; {REMEDY}");
            return Err(Error::new(ErrorKind::Timeout, message));
        }
        let rest = (window.len() - start).max(1);
        let read = meter.measure(expression, &mut self.cache, window, start);
        self.examined += (unchecked as u128 * read as u128 / rest as u128) as u64;
        let most = FREE_EXAMINED_BYTES.saturating_add((self.passed + position).saturating_mul(EXAMINED_PER_BYTE));
        if self.examined > most {
            let message = format!(
                "the search for values was ended at byte {position}, because it has read each byte of the page more than \
                 {EXAMINED_PER_BYTE} times; {REMEDY}"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(())
    }
}

const REMEDY: &str = "an expression that reads far ahead of each match is slow, so limit its repetitions ({0,200} in \
                      place of *)";
