//! Fuzzes the selection of values from HTML and JSON that arrive in pieces: the values do not
//! depend on where a page is cut, nor on other selectors, and memory stays within its limit. Some
//! queries have a filter, so that elements without a possible match are skipped.
#![no_main]

use std::sync::LazyLock;

use haul::extraction::{CssQuery, ExtractRegexes, JsonPathQuery, PageInfo, PageQuery, PageSearch};
use haul::{Error, Target};
use libfuzzer_sys::fuzz_target;

const MEMORY: u64 = 4 << 10;

/// Selectors that need the attributes, the parents and the siblings of all elements.
const GENERAL: [&str; 2] = ["zz:nth-of-type(9) > zz ~ zz", "*[zz] + zz"];

/// Each query, and the same with the selectors in [`GENERAL`].
static QUERIES: LazyLock<Vec<(PageQuery, PageQuery)>> = LazyLock::new(|| {
    let one = |queries: &[&str]| {
        let queries: Vec<CssQuery> = queries.iter().map(|query| CssQuery::new(query).expect("a selector")).collect();
        PageQuery::css(&queries).expect("few selectors")
    };
    let css = |queries: &[&str]| (one(queries), one(&[queries, &GENERAL].concat()));
    let filtered = |queries: &[&str], expression: &str| {
        let pattern = ExtractRegexes::new(expression).expect("an expression");
        let (query, general) = css(queries);
        (query.filtered(pattern.clone()), general.filtered(pattern))
    };
    let json = |path| {
        let query = PageQuery::json_path(&[JsonPathQuery::new(path).expect("a path")]);
        (query.clone(), query)
    };
    vec![
        css(&["a@href", "p", "div > :not(b) + i ~ u:nth-of-type(2n)"]),
        css(&["*"]),
        css(&["script", "body", "[x*=y]@srcset"]),
        css(&["td", "li:first-child", "svg a@xlink:href", "template"]),
        css(&["td"]),
        css(&["a@href", "title", "h1"]),
        json("$..*"),
        json("$[?@.a > 1]"),
        filtered(&["td"], "[0-9.]{7,15}/[0-9]{1,2}"),
        filtered(&["td", "a@href"], "[a-z]{1,4}/[a-z]"),
        filtered(&["p"], "[0-9]{1,3}-([a-z ]{1,9})"),
    ]
});

/// Returns the values in these pieces of a page, and the message of the error that ended the
/// search.
fn values(query: &PageQuery, content_type: Option<&[u8]>, pieces: &[&[u8]]) -> (Vec<(usize, Vec<u8>)>, Option<String>) {
    let url = Target::parse("http://h/dir/page").expect("a URL");
    let mut search = PageSearch::with_memory(query.clone(), MEMORY);
    search.begin(&PageInfo { url: Some(&url), content_type });
    let mut found = Vec::new();
    let mut take = |query: usize, value: &[u8]| {
        found.push((query, value.to_vec()));
        Ok(())
    };
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = outcome.and_then(|()| search.push(piece, &mut take));
        // After an error, what nested values would take may be more.
        assert!(outcome.is_err() || search.memory_in_use() <= 4 * MEMORY + piece.len() as u64);
    }
    outcome = outcome.and_then(|()| search.finish(&mut take));
    (found, outcome.err().map(|error: Error| error.to_string()))
}

fuzz_target!(|data: &[u8]| {
    let [first, cut, page @ ..] = data else { return };
    // Converted to UTF-8 before it is searched.
    let Ok(page) = std::str::from_utf8(page) else { return };
    let (query, general) = &QUERIES[usize::from(*first) % QUERIES.len()];
    let content_type: Option<&[u8]> = [None, Some(&b"text/html"[..]), Some(b"text/xml")][usize::from(*first >> 4) % 3];
    let pieces: Vec<&[u8]> = page.as_bytes().chunks(usize::from(*cut).max(1)).collect();
    let whole = values(query, content_type, &[page.as_bytes()]);
    let mut split = values(general, content_type, &pieces);
    split.0.retain(|(index, _)| *index < query.sources().len());
    // A limit of memory may be reached earlier or later in pieces.
    if whole.1.is_none() && split.1.is_none() {
        assert_eq!(whole, split);
    }
});
