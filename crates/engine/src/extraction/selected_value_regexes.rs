//! The regular expressions that search selected values. Short values are gathered, because one
//! search in many values costs less than a search in each.

use std::time::Instant;

use super::page_search::OnValue;
use super::streaming_regex_search::Extractor;
use crate::Result;

/// The maximum total length in bytes of short values that are collected, so that one search by the
/// filter's regular expressions covers all of them.
const MAX_GATHERED: usize = 4 << 10;

/// A filter that searches values by regular expressions, and the values that it has gathered for
/// the next search.
pub(super) struct ValueFilter {
    extractor: Extractor,
    /// The gathered values, one after another in one buffer.
    text: Vec<u8>,
    /// For each gathered value, the index of the query that found the value, and the index in
    /// `text` at which the value ends.
    values: Vec<(usize, usize)>,
}

impl ValueFilter {
    pub(super) fn new(extractor: Extractor) -> Self {
        Self { extractor, text: Vec::new(), values: Vec::new() }
    }

    /// Sets the time after which a search fails; `None` for no limit.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.extractor.set_deadline(deadline);
    }

    /// Discards the gathered values, which were not searched yet.
    pub(super) fn reset(&mut self) {
        self.extractor.reset();
        self.text.clear();
        self.values.clear();
    }

    /// Takes a value of the query with the index `query`. The matches in it are passed to
    /// `on_value`, either now or in a later call of [`search_gathered`](Self::search_gathered).
    pub(super) fn push(&mut self, query: usize, value: &[u8], on_value: &mut OnValue<'_>) -> Result<()> {
        if self.text.len() + value.len() > MAX_GATHERED {
            self.search_gathered(on_value)?;
            if value.len() > MAX_GATHERED {
                return self.search(query, value, on_value);
            }
        }
        self.text.extend_from_slice(value);
        self.values.push((query, self.text.len()));
        Ok(())
    }

    /// Searches one value immediately, and passes the matches in it to `on_value`. The caller must
    /// search the gathered values first, so that the matches keep the order of the values. `query`
    /// is the index of the query that found the value.
    pub(super) fn search(&mut self, query: usize, value: &[u8], on_value: &mut OnValue<'_>) -> Result<()> {
        self.extractor.search_whole(value, None, &mut |found| on_value(query, found))
    }

    /// Searches the gathered values, and passes the matches in them to `on_value`.
    pub(super) fn search_gathered(&mut self, on_value: &mut OnValue<'_>) -> Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        let values = std::mem::take(&mut self.values);
        let outcome = self.search_each(&text, &values, on_value);
        (self.text, self.values) = (text, values);
        self.text.clear();
        self.values.clear();
        outcome
    }

    fn search_each(&mut self, text: &[u8], values: &[(usize, usize)], on_value: &mut OnValue<'_>) -> Result<()> {
        let (mut start, mut hit) = (0, self.extractor.next_hit(text, 0));
        for &(query, end) in values {
            if hit.is_some_and(|hit| hit < start) {
                hit = self.extractor.next_hit(text, start);
            }
            let Some(hit) = hit else { return Ok(()) };
            if hit < end {
                let value = &text[start..end];
                self.extractor.search_whole(value, Some(hit - start), &mut |found| on_value(query, found))?;
            }
            start = end;
        }
        Ok(())
    }
}
