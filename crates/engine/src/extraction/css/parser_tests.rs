//! Tests of the parser of CSS queries, and of selectors that fail.

use super::*;

fn flaw(query: &str) -> String {
    CssQuery::new(query).expect_err("the selector is refused").to_string()
}

#[test]
fn css_query_splits_into_selector_and_attribute() {
    let attribute = |query: &str| CssQuery::new(query).unwrap().attribute().map(str::to_owned);
    assert_eq!(attribute("a@HREF").as_deref(), Some("href"));
    assert_eq!(attribute("a, b > c @ data-x").as_deref(), Some("data-x"));
    assert_eq!(attribute("a[href='x@y']@xlink:href").as_deref(), Some("xlink:href"));
    assert_eq!(attribute("a[href='x@y']"), None);
    assert_eq!(attribute(r"a.x\@y"), None);
    for query in ["a@", "a@b@c", "a@b c", "@href"] {
        assert!(CssQuery::new(query).is_err(), "{query}");
    }
}

#[test]
fn selectors_with_valid_syntax_are_accepted() {
    for query in [
        "*",
        "a",
        " a  b>c + d~e ",
        "#x.y.z[a][b=c][d='e'][f=\"g\" i]",
        "a:not(.b, c d):is(e, f > g):where(h)",
        "li:nth-child(2n + 1):nth-of-type(-n+3):first-child:first-of-type",
        "/* all */ a /* of */ b",
        r"\61 \.b",
        "日本 > é",
        "a:link, :root",
        "[data-id=5]",
        "a\n,\tb",
    ] {
        assert!(CssQuery::new(query).is_ok(), "{query}: {:?}", CssQuery::new(query));
    }
}

#[test]
fn malformed_selectors_are_refused_with_a_remedy() {
    for (query, words) in [
        ("", "a selector is expected, not the end"),
        ("a >", "a selector is expected"),
        ("> a", "a selector is expected"),
        ("a,", "a selector is expected"),
        ("a[b", "] or one of"),
        ("a[b=c d]", "put quotes around"),
        ("a[b=/c]", "put quotes around"),
        ("a[b='c]", "the closing ' is missing"),
        ("a:", "a name is expected"),
        (".5", "write \\35 followed by a blank"),
        ("a:not", ":not takes a selector"),
        ("a:not(b", ") is expected"),
        ("a)", "')' is not expected"),
        ("p:last-child", "a page is read once"),
        ("a:has(b)", "a page is read once"),
        ("a::text", "leave it out"),
        ("a::attr(href)", "write @NAME"),
        ("a::before", "is no element"),
        ("a:hover", ":hover is not supported"),
        ("svg|a", "namespaces"),
        ("a:nth-child(x)", "odd, even or An+B"),
        ("a:nth-child(2 of b)", "odd, even or An+B"),
        ("a|b", "namespaces"),
    ] {
        assert!(flaw(query).contains(words), "{query}: {}", flaw(query));
    }
    let nested = format!("{}a{}", ":not(".repeat(9), ")".repeat(9));
    assert!(flaw(&nested).contains("too deeply"));
}

#[test]
fn queries_have_at_most_64_compound_selectors() {
    let many: Vec<CssQuery> = (0..33).map(|_| CssQuery::new("a b").unwrap()).collect();
    let refused = SelectorProgram::new(&many).err().expect("there are 66 compound selectors");
    assert!(refused.to_string().contains("more than 64"), "{refused}");
    assert!(SelectorProgram::new(&many[..32]).is_ok());
    let inner = CssQuery::new(&format!(":is({})", vec!["a"; 65].join(","))).unwrap();
    assert!(SelectorProgram::new(&[inner]).is_err());
}
