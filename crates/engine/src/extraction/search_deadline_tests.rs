//! Tests of the deadline of a search for regular expressions, and of the limit of its work.

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

/// Searches `page` in pieces. Returns the number of matches.
fn count_matches(query: PageQuery, page: &str) -> Result<usize> {
    let mut search = PageSearch::new(query);
    let mut count = 0;
    let mut on_value = |_, _: &[u8]| {
        count += 1;
        Ok(())
    };
    for piece in page.as_bytes().chunks(100_000) {
        search.push(piece, &mut on_value)?;
    }
    search.finish(&mut on_value)?;
    Ok(count)
}

#[test]
fn far_reading_search_ends_without_a_deadline() {
    let page = "<p>".repeat(30_000);
    let error = count_matches(far_reading_query(), &page).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("limit its repetitions"), "{error}");
    let links = "href=\"a\" ".repeat(30_000);
    let query = || ExtractRegexes::new(r#"page|href="([^"]+)"(?:[^>]*title="([^"]*)")?"#).unwrap();
    let error = count_matches(PageQuery::matches(query()), &links).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    // A match that ends soon is not read ahead of.
    let closed = links.replace("\" ", "\">");
    assert_eq!(count_matches(PageQuery::matches(query()), &closed).unwrap(), 30_000);
    let both = PageQuery::matches(ExtractRegexes::all_of(&["(?s)<p>.*?</p>|<p>", "x"]).unwrap());
    assert_eq!(count_matches(both, &page).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn short_reading_searches_never_exceed_the_limit() {
    let page = "<p>a</p>\n".repeat(150_000);
    for expression in ["(?s)<p>.*?</p>|<p>", "<p>([^<]+)", r"\ba\b", "p", "(?s)(a).*?p"] {
        let query = PageQuery::matches(ExtractRegexes::new(expression).unwrap());
        let found = count_matches(query, &page);
        assert!(found.as_ref().is_ok_and(|&count| count >= 150_000), "{expression}: {found:?}");
    }
}

#[cfg(feature = "select")]
#[test]
fn work_in_selected_values_is_limited_together() {
    let query = || {
        let query = PageQuery::json_path(&[super::JsonPathQuery::new("$[*]").unwrap()]);
        query.filtered(ExtractRegexes::new("(?s)<p>.*?</p>|<p>").unwrap())
    };
    // A value alone stays below the limit: 3,000 matches that read 4,500 bytes in the mean.
    let value = format!("\"{}\"", "<p>".repeat(3_000));
    let page = |count: usize| format!("[{}]", vec![&*value; count].join(","));
    assert_eq!(count_matches(query(), &page(1)).unwrap(), 3_000);
    assert_eq!(count_matches(query(), &page(40)).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[cfg(feature = "select")]
#[test]
fn deadline_ends_a_search_in_a_selected_value() {
    let query = PageQuery::json_path(&[super::JsonPathQuery::new("$.text").unwrap()]);
    let query = query.filtered(ExtractRegexes::new("(?s)<p>.*?</p>|<p>").unwrap());
    let page = format!(r#"{{"text":"{}"}}"#, "<p>".repeat(20_000));
    assert_eq!(search_after_deadline(query, &page).unwrap_err().kind(), ErrorKind::Timeout);
}
