//! Tests that the fast paths for common tags and selectors find the same values as the tokenizer
//! and the full selector state.
//!
//! A page in pieces of one byte is parsed by the states of the tokenizer only. A selector with
//! combinators keeps state for each element, and one that tests an attribute of each element makes
//! the tokenizer parse all attributes.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::extraction::{CssQuery, ExtractRegexes, PageInfo, PageQuery, PageSearch};
use crate::{Error, ErrorKind, Result, Target};

/// Selectors that disable the fast paths for all queries that are searched together with them. `>`,
/// `~` and `+` need state, `:nth-of-type()` counts siblings, and `*[zz]` tests attributes. No page
/// has an element `zz`, so these selectors find nothing.
const GENERAL: [&str; 2] = ["zz:nth-of-type(9) > zz ~ zz", "*[zz] + zz"];

/// Groups of queries, each searched with and without the fast paths. Most queries are for the text
/// or an attribute of named elements (`td`, `a@href`), for which the fast paths are used.
const QUERIES: [&[&str]; 8] = [
    &["td"],
    &["a@href"],
    &["a.x[href]@href", "h1"],
    &["title", "p", "b@title"],
    &["li", "#i@class", "script"],
    &["div", "tr"],
    &["img@src", "svg a@href", "base@href"],
    &["html@lang", "body@class", "br@id", "p@id"],
];

fn query(texts: &[&str]) -> PageQuery {
    let queries: Vec<CssQuery> = texts.iter().map(|text| CssQuery::new(text).unwrap()).collect();
    PageQuery::css(&queries).unwrap()
}

fn values(query: &PageQuery, page: &[u8], size: usize, content_type: &[u8]) -> Result<Vec<(usize, Vec<u8>)>> {
    let url = Target::parse("http://h/dir/page").unwrap();
    let mut search = PageSearch::new(query.clone());
    search.begin(&PageInfo { url: Some(&url), content_type: Some(content_type) });
    let mut found = Vec::new();
    let mut take = |query: usize, value: &[u8]| {
        found.push((query, value.to_vec()));
        Ok(())
    };
    for piece in page.chunks(size) {
        search.push(piece, &mut take)?;
    }
    search.finish(&mut take)?;
    Ok(found)
}

/// Asserts that searches with and without the fast paths find the same values in a page.
#[track_caller]
fn assert_fast_paths_agree(page: &[u8]) {
    for texts in QUERIES {
        let general = [texts, &GENERAL].concat();
        let (quick, general) = (query(texts), query(&general));
        for content_type in [&b"text/html"[..], b"text/xml"] {
            let expected = values(&general, page, 1, content_type).unwrap();
            let found = values(&quick, page, page.len().max(1), content_type).unwrap();
            assert_eq!(found, expected, "{texts:?} in {:?}", String::from_utf8_lossy(page));
        }
    }
}

/// Parts of tags with quotation marks, equals signs, slashes and blanks, in common and in uncommon
/// positions.
const ATTRIBUTES: [&str; 30] = [
    " href=\"/x\"",
    " href='/y>z'",
    " href=/u",
    " href = \"a>b\"",
    " title=\"a ' > b\"",
    " class=\"x\"",
    " class=x",
    " id=\"i\"",
    " zz=\"\"",
    " a=b=\"c>d\"",
    " =\"c>d\"",
    " ==\"c>d\"",
    "=\"c>d\"",
    " a/b=\"c>d\"",
    " a/=\"c>d\"",
    " a =\"c>d\"",
    " a'b=\"c>d\"",
    " \"c>d\"",
    " b=\"1\"c=\"2>\"",
    " b=\"1\"cd=\"2>\"",
    " b='1'\"",
    "/",
    " /",
    " disabled",
    "\n\tlang=\"de\"",
    " src=\"a.png?x=1&amp;y=2\" alt=\"long enough to leave the block of sixty-four bytes > here\"",
    " long-name-of-an-attribute-that-is-longer-than-a-whole-block-of-sixty-four-bytes=\"x>\"",
    " a=\"unfinished",
    "\0",
    " é=\"é>\"",
];

const NAMES: [&str; 42] = [
    "a",
    "b",
    "p",
    "td",
    "tr",
    "th",
    "table",
    "tbody",
    "div",
    "li",
    "ul",
    "h1",
    "h2",
    "title",
    "script",
    "style",
    "svg",
    "math",
    "foreignObject",
    "template",
    "form",
    "select",
    "option",
    "br",
    "img",
    "image",
    "base",
    "body",
    "html",
    "head",
    "textarea",
    "font",
    "x-y",
    "a:b",
    "article-title",
    "i",
    "span",
    "button",
    "nobr",
    "caption",
    "col",
    "Td",
];

const TEXTS: [&str; 26] = [
    "x",
    " ",
    "  ",
    "\n",
    "a b",
    "one two three four five six seven",
    "one two three  four\u{b} five\tsix seven",
    "sixteen bytes !!",
    "sixteen bytes !! ",
    "seventeen bytes !",
    "&amp;",
    "&am",
    "p;",
    "a&lt;b & c",
    "&#6",
    "5;",
    "<",
    "< a>",
    "<!-- <td> -->",
    "<!-- ",
    "-->",
    "<![CDATA[<b>]]>",
    "</>",
    "\0",
    "\r",
    "é",
];

fn page() -> impl Strategy<Value = String> {
    let tag = (proptest::sample::select(&NAMES[..]), proptest::collection::vec(0..ATTRIBUTES.len(), 0..4), 0..6_u8);
    let tag = tag.prop_map(|(name, attributes, kind)| {
        let attributes: String = attributes.into_iter().map(|index| ATTRIBUTES[index]).collect();
        match kind {
            0 | 1 => format!("</{name}>"),
            2 => format!("</{name}{attributes}>"),
            3 => format!("<{name}>"),
            _ => format!("<{name}{attributes}>"),
        }
    });
    let text = proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned);
    let part = prop_oneof![2 => tag, 1 => text];
    proptest::collection::vec(part, 1..40).prop_map(|parts| parts.concat())
}

#[test]
fn fast_paths_agree_on_generated_pages() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[43; 32]);
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&page(), |page| {
        assert_fast_paths_agree(page.as_bytes());
        Ok(())
    });
    outcome.unwrap();
}

/// Pieces of table cells. A test joins random pieces, so that their texts often match the
/// expressions of [`filtered_values_agree`].
const CELL_PARTS: [&str; 40] = [
    "1",
    "2",
    "12",
    "1.2.3",
    "/",
    "/",
    "/3",
    "4/5",
    " ",
    "\n",
    "\0",
    "\r\n",
    "&#47;",
    "&sol;",
    "&#49;",
    "&amp;",
    "&",
    "<b>",
    "</b>",
    "<br>",
    "<br/>",
    "<a href=\"1/2\">",
    "<a href='3.4/5' title=\"x>7/8<\">",
    "</a>",
    "<p class=\"6/7\">",
    "</p>",
    "<pre>",
    "</pre>",
    "<ul><li>",
    "</li></ul>",
    "<li>",
    "<h2>",
    "</h2>",
    "<!-- 8/9 -->",
    "<script>1/2</script>",
    "</td><td>",
    "<td class=\"a\">",
    "</td></tr><tr><td>",
    "<table><tr><td>",
    "</table>",
];

/// Asserts that a search with a filter finds the same values as the filter's expression finds in
/// the unfiltered values. The page arrives in pieces of `size` bytes.
#[track_caller]
fn filtered_values_agree(page: &str, size: usize) {
    for texts in [&["td"][..], &["b"], &["li", "a"], &["td", "a@href"]] {
        let general = [texts, &GENERAL].concat();
        let all = values(&query(&general), page.as_bytes(), 1, b"text/html").unwrap();
        for expression in
            ["[0-9.]{1,5}/[0-9]", "[0-9.]{3,}/", "[0-9] ?/[0-9]", "[12]/(?:2|3)", "[^ ]/[^ ]", " /", "[0-9]+"]
        {
            let pattern = ExtractRegexes::new(expression).unwrap();
            let matches = PageQuery::matches(pattern.clone());
            let found_in = |(index, value): &(usize, Vec<u8>)| {
                let found = matches.values_in(&PageInfo::default(), value).unwrap();
                found.into_iter().map(|value| (*index, value.into_bytes())).collect::<Vec<_>>()
            };
            let expected: Vec<_> = all.iter().flat_map(found_in).collect();
            let found = values(&query(texts).filtered(pattern), page.as_bytes(), size, b"text/html").unwrap();
            assert_eq!(found, expected, "{texts:?}, {expression} in {page:?}");
        }
    }
}

#[test]
fn filtered_values_agree_on_generated_cells() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[44; 32]);
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cells = proptest::collection::vec(proptest::sample::select(&CELL_PARTS[..]), 1..24);
    let outcome = runner.run(&(cells, 1..80_usize), |(cells, size)| {
        let page = format!("<body><table><tr><td>{}</td></tr></table>", cells.concat());
        filtered_values_agree(&page, page.len());
        filtered_values_agree(&page, size);
        Ok(())
    });
    outcome.unwrap();
}

/// Attributes and texts that differ from row to row in the pages of [`repeated_rows`].
const CHANGING: [&str; 8] = [
    "1.2.3.0/24",
    "x",
    "",
    " 3/4 ",
    "a value that is longer than thirty-two bytes, with > in it",
    "1&sol;2",
    "<b>",
    "5\u{e9}/6",
];

/// The parts of a row. `#` stands for a text of [`CHANGING`].
const ROW_PARTS: [&str; 38] = [
    "#",
    "#",
    "#",
    "</td><td>",
    "</td><td>",
    "</td>\n  <td class=\"a\">",
    "</td></tr>\n<tr class=\"odd\"><td class=\"aligncenter\">",
    "</td></tr><tr><td id=\"#\">",
    "<tr><td>",
    "</table><table><tr><td>",
    "<table><tbody><tr><td>",
    "</table>",
    "<div class=\"flag\"><img alt=\"#\" src=\"#\" title=\"#\"></div>",
    "<img alt=\"#\" class=\"x\" src='#' />",
    "<a href=\"/#\" title=\"#\">",
    "<a href=\"/x\" class=\"#\">#</a>",
    "</a>",
    "<br>",
    "<br class=\"a class that is too long for a run, as it has more bytes than a window has\">",
    "<p>",
    "<p class=\"#\">#</p>",
    "</p>",
    "<ul>",
    "<li>#",
    "<li class=\"a\">#</li>",
    "</ul>",
    "<pre>\n#</pre>",
    "<b><i>#</i></b>",
    "<b>",
    "</b>",
    "<h2 data-id=\"#\">#</h2>",
    "<!-- # -->",
    "<script>#</script>",
    "<svg><a href=\"#\"/></svg>",
    "<template>#</template>",
    "&amp;",
    " \n ",
    "<option value=\"#\">#",
];

/// Pages in which some rows repeat, so that the automaton of repeated markup is used.
fn repeated_rows() -> impl Strategy<Value = String> {
    let row = proptest::collection::vec(proptest::sample::select(&ROW_PARTS[..]), 1..10);
    let rows = proptest::collection::vec(row, 1..4);
    let order = proptest::collection::vec((any::<prop::sample::Index>(), 0..CHANGING.len()), 8..60);
    (rows, order).prop_map(|(rows, order)| {
        let row = |(row, first): (prop::sample::Index, usize)| {
            let (mut text, mut changing) = (String::new(), CHANGING.iter().cycle().skip(first));
            for part in row.get(&rows).concat().split_inclusive('#') {
                match (part.strip_suffix('#'), changing.next()) {
                    (Some(part), Some(value)) => text.extend([part, *value]),
                    _ => text.push_str(part),
                }
            }
            text
        };
        format!("<body><table><tr><td>{}", order.into_iter().map(row).collect::<String>())
    })
}

#[test]
fn fast_paths_agree_on_repeated_rows() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[45; 32]);
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&(repeated_rows(), 1..400_usize), |(page, size)| {
        assert_fast_paths_agree(page.as_bytes());
        filtered_values_agree(&page, page.len());
        filtered_values_agree(&page, size);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn hits_in_repeated_cells_agree() {
    let long = "x".repeat(1200);
    let parts = [
        "",
        " ",
        "\n  ",
        "<br>",
        "<p>",
        "</p>",
        "<b> </b>",
        "<b><i>",
        "<pre> \n </pre>",
        "<pre>",
        "<div><pre></pre> <b></b></div>",
        "<br class=\"a\">",
        "/",
        "<img alt=\"1/2\" src='3/4'>",
        "&sol;",
        "&am",
        "\0",
        "<!-- 1/2 -->",
        "<script>1/2</script>",
        &long,
    ];
    for part in parts {
        let row = |number: usize| {
            format!(
                "<tr>\n  <td class=\"nowrap\">\n <a href=\"/net/{number}\">{number}.2/3</a>{part}<b>4/5{number}</b>\
                 {part}/{number}</td>\n  <td>x {number}</td></tr>\n"
            )
        };
        let page = format!("<body><table><tbody>{}", (0..30).map(row).collect::<String>());
        filtered_values_agree(&page, page.len());
        filtered_values_agree(&page, 700);
    }
}

#[test]
fn hit_in_repeated_cell_keeps_memory_limit() {
    let filtered = query(&["td"]).filtered(ExtractRegexes::new("[0-9.]{7,15}/[0-9]{1,2}").unwrap());
    let row = |length: usize| format!("<tr><td><b>1.2.3.0/24</b>{}</td></tr>\n", "x".repeat(length));
    let page = format!("<body><table><tbody>{}{}", row(90).repeat(40), row(200));
    for (memory, fits) in [(200, false), (500, true)] {
        let (mut search, mut found) = (PageSearch::with_memory(filtered.clone(), memory), 0);
        search.begin(&PageInfo { url: None, content_type: Some(b"text/html") });
        let mut take = |_: usize, _: &[u8]| {
            found += 1;
            Ok(())
        };
        let outcome = search.push(page.as_bytes(), &mut take).and_then(|()| search.finish(&mut take));
        assert_eq!(outcome.is_ok(), fits);
        assert_eq!(found, 40 + u32::from(fits));
    }
}

#[test]
fn receiver_error_ends_search_in_repeated_cells() {
    let filtered = query(&["td"]).filtered(ExtractRegexes::new("[0-9.]{7,15}/[0-9]{1,2}").unwrap());
    let page = format!("<body><table><tbody>{}", "<tr><td>1.2.3.0/24</td></tr>\n".repeat(1000));
    let (mut search, mut calls) = (PageSearch::new(filtered), 0);
    search.begin(&PageInfo { url: None, content_type: Some(b"text/html") });
    let outcome = search.push(page.as_bytes(), &mut |_, _| {
        calls += 1;
        Err(Error::new(ErrorKind::Write, "closed"))
    });
    assert_eq!((outcome.unwrap_err().kind(), calls), (ErrorKind::Write, 1));
}

#[test]
fn fast_paths_agree_on_common_pages() {
    let row = "<tr class=\"odd\">\n  <td class=\"nowrap\"><a href=\"/net/1.2.3.0/24\" title='x'>1.2.3.0/24</a>\n <div \
               class=\"flag\"><img alt=\"A\" src=\"/f.gif?1\" title=\"A\"></div></td><td>City of Example, Dept</td></tr>\n";
    let page = format!("<!DOCTYPE html><html><body><table><thead><tr><th>a</th></tr></thead><tbody>{}", row.repeat(20));
    assert_fast_paths_agree(page.as_bytes());
    for cut in 0..row.len() {
        assert_fast_paths_agree(&row.as_bytes()[cut..]);
        assert_fast_paths_agree(&row.as_bytes()[..cut]);
    }
}

#[test]
fn fast_paths_agree_on_pages_without_repetition() {
    let row = |row: usize| format!("<tr><td class=\"c{row}\"><x{row} href=\"{row}\">{row}/3</x{row}></td></tr>\n");
    let page = format!("<body><table><tbody>{}", (0..250).map(row).collect::<String>());
    assert_fast_paths_agree(page.as_bytes());
}

/// Compares the fast paths with the tokenizer on the pages of html5lib's tokenizer tests, if the
/// environment variable `HTML5LIB_TESTS` names the directory of their files.
#[test]
fn fast_paths_agree_on_html5lib_pages() {
    let Some(dir) = std::env::var_os("HTML5LIB_TESTS") else {
        eprintln!("skipped: HTML5LIB_TESTS does not name a directory");
        return;
    };
    let mut pages = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let Ok(file) = serde_json::from_slice::<Value>(&std::fs::read(entry.unwrap().path()).unwrap()) else {
            continue;
        };
        for test in file["tests"].as_array().into_iter().flatten() {
            let Some(input) = test["input"].as_str() else { continue };
            pages += 1;
            assert_fast_paths_agree(input.as_bytes());
            assert_fast_paths_agree(format!("<table><tr><td>{input}<td class=\"a\">b").as_bytes());
        }
    }
    eprintln!("{pages} pages");
}

#[test]
fn filter_finds_matches_at_every_place_of_a_value() {
    let pattern = ExtractRegexes::new("[0-9.]{7,15}/[0-9]{1,2}").unwrap();
    let filtered = query(&["td"]).filtered(pattern);
    for before in 0..80 {
        for after in [0, 1, 5, 40, 63] {
            let (before, after) = ("x".repeat(before), "y".repeat(after));
            let page = format!("<table><td>{before}1.2.3.0/24{after}<td>1.2.3.4</table>");
            let found = values(&filtered, page.as_bytes(), page.len(), b"text/html").unwrap();
            assert_eq!(found, [(0, b"1.2.3.0/24".to_vec())], "{page}");
        }
    }
}
