//! Tests of the deadline of a search for regular expressions.

use std::time::Instant;

use super::{ExtractRegexes, PageQuery, PageSearch};
use crate::{ErrorKind, Result};

/// A query that reads to the end of the page before each match, if no paragraph of the page ends.
fn far_reading_query() -> PageQuery {
    PageQuery::matches(ExtractRegexes::new("(?s)<p>.*?</p>|<p>").unwrap())
}

/// Searches `page` with a deadline that has passed.
fn search_after_deadline(query: PageQuery, page: &str) -> Result<()> {
    let mut search = PageSearch::new(query);
    search.set_deadline(Some(Instant::now()));
    search.push(page.as_bytes(), &mut |_, _| Ok(()))?;
    search.finish(&mut |_, _| Ok(()))
}

#[test]
fn deadline_ends_a_far_reading_search() {
    let page = "<p>".repeat(20_000);
    let error = search_after_deadline(far_reading_query(), &page).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    // A page of usual size is searched before the first check.
    search_after_deadline(far_reading_query(), &page[..300]).unwrap();
}

#[cfg(feature = "select")]
#[test]
fn deadline_ends_a_search_in_a_selected_value() {
    let query = PageQuery::json_path(&[super::JsonPathQuery::new("$.text").unwrap()]);
    let query = query.filtered(ExtractRegexes::new("(?s)<p>.*?</p>|<p>").unwrap());
    let page = format!(r#"{{"text":"{}"}}"#, "<p>".repeat(20_000));
    assert_eq!(search_after_deadline(query, &page).unwrap_err().kind(), ErrorKind::Timeout);
}
