#[cfg(feature = "select")]
use haul_policy::pagination::NextPageValue;

use super::*;

fn url(text: &str) -> Target {
    Target::parse(text).unwrap()
}

/// Returns the observed properties of `content`, which arrives in two pieces, cut at `cut`.
fn findings(pagination: &Pagination, content: &[u8], cut: usize) -> Result<PageFindings> {
    let mut observer = pagination.observer().unwrap();
    observer.push(&content[..cut]);
    observer.push(&content[cut..]);
    observer.finish()
}

#[test]
fn empty_content_is_recognised_at_every_cut() {
    let pagination = Pagination::by_count("page").unwrap();
    let is_empty = |content: &[u8], cut| findings(&pagination, content, cut).unwrap().is_empty;
    for content in ["", " \r\n\t", "[]", "{}", " [ \n] ", "{\n}\n", "null", " null\n"] {
        assert!((0..=content.len()).all(|cut| is_empty(content.as_bytes(), cut)), "{content:?}");
    }
    for content in ["[0]", "[[]]", "{}{}", "[][", "]", "nul", "nullx", "\"\"", "0", "{\"a\":[]}", "<p>", "\u{a0}"] {
        assert!(!(0..=content.len()).any(|cut| is_empty(content.as_bytes(), cut)), "{content:?}");
    }
}

#[test]
fn page_with_extracted_values_is_not_empty() {
    let pagination = Pagination::by_count("page").unwrap();
    for (content, has_values) in [("[]", true), ("[1]", false)] {
        let mut observer = pagination.observer().unwrap();
        observer.push(content.as_bytes());
        observer.set_has_values(has_values);
        assert_eq!(observer.finish().unwrap().is_empty, !has_values, "{content}");
    }
}

#[test]
fn page_digest_does_not_depend_on_pieces() {
    let pagination = Pagination::by_count("page").unwrap();
    let digest = |content: &[u8], cut| findings(&pagination, content, cut).unwrap().digest.unwrap();
    let all: Vec<u64> = (0..=6).map(|cut| digest(b"abcdef", cut)).collect();
    assert!(all.iter().all(|one| *one == all[0]));
    assert_ne!(digest(b"abcdeF", 0), all[0]);
}

#[test]
fn restarted_page_is_observed_from_the_beginning() {
    let pagination = Pagination::by_count("page").unwrap();
    let mut observer = pagination.observer().unwrap();
    observer.push(b"half");
    observer.restart();
    let findings = observer.finish().unwrap();
    assert!(findings.is_empty);
    assert_eq!(findings.digest, self::findings(&pagination, b"", 0).unwrap().digest);
}

#[test]
fn pagination_by_link_needs_no_body() {
    assert!(!Pagination::by_link().needs_body() && Pagination::by_link().observer().is_none());
    let head = b"HTTP/1.1 200 OK\r\nLink: </a>; rel=prev\r\nLINK: <?b>; rel=\"next\"\r\n\r\n";
    let head = ResponseHead::from_raw(head).unwrap();
    let mut listing = Listing::new(&Pagination::by_link(), &url("http://h/")).unwrap();
    let step = listing.next(Some(&head), &url("http://h/x"), b"").unwrap();
    assert_eq!(step, PageStep::Next(url("http://h/x?b")));
    assert!(matches!(listing.next(None, &url("http://h/x?b"), b"").unwrap(), PageStep::End(_)));
}

#[test]
fn pagination_errors_name_the_url_without_password() {
    let next = |reference: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nLink: <{reference}>; rel=next\r\n\r\n");
        let head = ResponseHead::from_raw(head.as_bytes()).unwrap();
        Listing::new(&Pagination::by_link(), &url("http://h/")).unwrap().next(Some(&head), &url("http://h/"), b"")
    };
    let error = next("http://me:pw@other/2").unwrap_err();
    assert_eq!((error.kind(), error.url()), (ErrorKind::Url, Some("http://other/2")));
    let error = next("gopher://me:pw@other/2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedScheme);
    assert!(!error.to_string().contains("pw"), "{error}");
}

#[cfg(feature = "select")]
#[test]
fn page_value_depends_on_the_json_type() {
    let pagination = Pagination::by_json("$.a.next").unwrap();
    let cases = [
        ("", NextPageValue::None),
        ("{}", NextPageValue::None),
        ("[1]", NextPageValue::None),
        (r#"{"a": {"next": null}}"#, NextPageValue::None),
        (r#"{"a": {"next": false}}"#, NextPageValue::None),
        (r#"{"a": {"next": ""}}"#, NextPageValue::None),
        (r#"{"a": {"next": true}}"#, NextPageValue::True),
        (r#"{"a": {"next": "true"}}"#, NextPageValue::Text("true".into())),
        (r#"{"a": {"next": "\u00e9\n"}}"#, NextPageValue::Text("\u{e9}\n".into())),
        (r#"{"a": {"next": 18446744073709551615}}"#, NextPageValue::Number("18446744073709551615".into())),
        (r#"{"a": {"next": {}}}"#, NextPageValue::Unusable("an object")),
        (r#"{"a": {"next": []}}"#, NextPageValue::Unusable("an array")),
        ("\u{feff}{\"a\": {\"next\": \"x\"}} \n", NextPageValue::Text("x".into())),
    ];
    for (content, value) in cases {
        for cut in 0..=content.len() {
            assert_eq!(findings(&pagination, content.as_bytes(), cut).unwrap().value, value, "{content}");
        }
    }
    let many = Pagination::by_json("$..next").unwrap();
    let content = br#"[{"next": "x"}, {"next": "y"}]"#;
    assert_eq!(findings(&many, content, 3).unwrap().value, NextPageValue::Text("x".into()));
}

#[cfg(feature = "select")]
#[test]
fn hostile_json_page_is_an_error() {
    let pagination = Pagination::by_json("$.next").unwrap();
    let deep = "[".repeat(100_000);
    for content in ["<html>", "{\"next\": \"x\"", "{\"next\": \"x\"} {}", "\u{feff}\u{feff}1", "'x'", &deep] {
        let error = findings(&pagination, content.as_bytes(), 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContentCoding, "{error}");
    }
    let error = findings(&pagination, b"{\"next\": \"\xff\"}", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContentCoding, "{error}");
}

#[cfg(feature = "select")]
#[test]
fn json_page_above_the_size_limit_is_refused() {
    use super::buffered_json_page::MAX_PAGE;

    let pagination = Pagination::by_json("$.next").unwrap();
    let piece = vec![b' '; 1 << 20];
    let fill = |pieces: usize| {
        let mut observer = pagination.observer().unwrap();
        (0..pieces).for_each(|_| observer.push(&piece));
        observer
    };
    assert!(fill(MAX_PAGE / piece.len()).finish().is_ok());
    let large = fill(MAX_PAGE / piece.len() + 1);
    assert_eq!(large.buffered_bytes(), 0);
    let error = large.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("more than 16 MiB; ask the server for smaller pages"), "{error}");
    let mut observer = fill(3);
    assert_eq!((observer.buffered_bytes(), observer.max_buffered_bytes()), (3 << 20, MAX_PAGE as u64));
    observer.set_length(Some(1 << 20));
    assert_eq!(observer.max_buffered_bytes(), 4 << 20);
    observer.finish_content();
    assert_eq!(observer.buffered_bytes(), 0);
    observer.restart();
    observer.push(b"{\"next\": \"x\"}");
    assert_eq!(observer.finish().unwrap().value, NextPageValue::Text("x".into()));
}

#[cfg(feature = "select")]
#[test]
fn large_json_pages_do_not_share_a_limit() {
    // Credit, not failure, keeps the memory of pages side by side small.
    let pagination = Pagination::by_json("$.next").unwrap();
    let page = format!("{{\"next\": \"x\", \"pad\": \"{}\"}}", " ".repeat(15 << 20));
    let others: Vec<_> = (0..5)
        .map(|_| {
            let mut observer = pagination.observer().unwrap();
            observer.push(page.as_bytes());
            observer
        })
        .collect();
    for observer in others {
        assert_eq!(observer.finish().unwrap().value, NextPageValue::Text("x".into()));
    }
}

#[cfg(feature = "select")]
#[test]
fn json_page_with_too_many_values_is_refused() {
    let pagination = Pagination::by_json("$.next").unwrap();
    let page = format!("{{\"next\": \"x\", \"items\": [{}0]}}", "{\"a\":0},".repeat(1 << 20));
    let error = findings(&pagination, page.as_bytes(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("its values take more than 48 MiB"), "{error}");
}

#[cfg(feature = "select")]
#[test]
fn json_number_keeps_its_original_text() {
    let value =
        |path: &str, content: &str| findings(&Pagination::by_json(path).unwrap(), content.as_bytes(), 0).unwrap().value;
    for number in
        ["123456789012345678901234", "1732617600.100", "1.0", "-0", "1e2", "1E+2", "0.1", "18446744073709551616"]
    {
        let expected = NextPageValue::Number(number.into());
        assert_eq!(value("$.a[1].next", &format!("{{\"a\": [[], {{\"x\": [1], \"next\": {number} }}]}}")), expected);
        assert_eq!(value("$", &format!("\u{feff} {number}\n")), expected);
        assert_eq!(value("$..next", &format!("[{{\"b\": 1}}, {{\"next\":{number},\"next\":{number}}}]")), expected);
    }
    // The last member with a name counts.
    assert_eq!(value("$.n", r#"{"n": 1.50, "m": 3, "n": 2.50}"#), NextPageValue::Number("2.50".into()));
    assert_eq!(value(r#"$["a\"b"]"#, r#"{"a\u0022b": 1.50}"#), NextPageValue::Number("1.50".into()));
}

/// Returns the value in an HTML page that determines the URL of the next page. The page arrives in
/// two pieces, cut at `cut`.
#[cfg(feature = "select")]
fn html_value(pagination: &Pagination, content: &[u8], cut: usize) -> Result<NextPageValue> {
    let page = url("http://h/dir/page?p=1");
    let info = PageInfo { url: Some(&page), content_type: Some(b"text/html") };
    let mut observer = pagination.observer().unwrap();
    observer.begin(&info);
    observer.push(&content[..cut]);
    // A page that broke off continues.
    observer.begin(&info);
    observer.push(&content[cut..]);
    Ok(observer.finish()?.value)
}

#[cfg(feature = "select")]
#[test]
fn first_fetchable_css_link_is_used_at_every_cut() {
    let pagination = Pagination::by_css("a[rel~=next]@href").unwrap();
    let text = |text: &str| NextPageValue::Text(text.into());
    let cases = [
        ("", NextPageValue::None),
        ("<a href=x>", NextPageValue::None),
        ("<a rel=next>", NextPageValue::None),
        ("<a rel='nofollow next' href='?p=2&amp;q=\u{e9}#list'>more</a>", text("http://h/dir/page?p=2&q=%C3%A9")),
        ("<base href='/b/'><a rel=next href=2><a rel=next href=3>", text("http://h/b/2")),
        ("<a rel=next href='#'><a rel=next href='javascript:go(2)'><a rel=next href=''>", NextPageValue::None),
        ("<a rel=next href='#'><a rel=next href=2>", text("http://h/dir/2")),
        (
            "<!-- <a rel=next href=1> --><script>'<a rel=next href=1>'</script><a rel=next href=2>",
            text("http://h/dir/2"),
        ),
        ("<a rel=next href=//other/2>", text("http://other/2")),
    ];
    for (content, value) in cases {
        for cut in 0..=content.len() {
            assert_eq!(html_value(&pagination, content.as_bytes(), cut).unwrap(), value, "{content} at {cut}");
        }
    }
}

#[cfg(feature = "select")]
#[test]
fn css_value_is_an_element_text_or_attribute() {
    let value = |css: &str, content: &str| {
        html_value(&Pagination::by_css_value(css, "cursor").unwrap(), content.as_bytes(), 3).unwrap()
    };
    let text = NextPageValue::Text("a+b/=".into());
    assert_eq!(value("b", "<p>x</p><b> a+b/= </b>"), text);
    assert_eq!(value("ul@data-cursor", "<ul data-cursor='a+b/='>"), text);
    assert_eq!(value("b", "<b></b>"), NextPageValue::None);
}

#[cfg(feature = "select")]
#[test]
fn unusable_css_selectors_are_setup_errors() {
    for (css, words) in [
        ("a[", "CSS selector \"a[\" cannot be used"),
        ("a:last-child@href", "a page is read once"),
        ("next", "CSS selector \"next\" names no attribute with the URL of the next page"),
    ] {
        let error = Pagination::by_css(css).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setup, "{css}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(Pagination::by_css_value("next", "").is_err());
}

#[cfg(feature = "select")]
#[test]
fn huge_link_attribute_is_refused() {
    let pagination = Pagination::by_css("a@href").unwrap();
    let piece = vec![b'x'; 64 << 10];
    let mut observer = pagination.observer().unwrap();
    observer.begin(&PageInfo::default());
    observer.push(b"<a href=");
    (0..64).for_each(|_| observer.push(&piece));
    observer.push(b">");
    let error = observer.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("more than 256 KiB"), "{error}");
    // Other attributes may be as long.
    let content = format!("<img src=data:{}><a href=2>", "x".repeat(4 << 20));
    assert_eq!(html_value(&pagination, content.as_bytes(), 9).unwrap(), NextPageValue::Text("http://h/dir/2".into()));
}

#[cfg(feature = "select")]
#[test]
fn restarted_html_page_is_searched_from_the_beginning() {
    let pagination = Pagination::by_css("a@href").unwrap();
    let page = url("http://h/");
    let info = PageInfo { url: Some(&page), content_type: None };
    let mut observer = pagination.observer().unwrap();
    observer.begin(&info);
    observer.push(b"<a href=1><a hr");
    observer.restart();
    observer.begin(&info);
    observer.push(b"<a href=2>");
    assert_eq!(observer.finish().unwrap().value, NextPageValue::Text("http://h/2".into()));
}

#[test]
fn counted_listing_ends_at_page_without_values() {
    let mut listing = Listing::new(&Pagination::by_count("page").unwrap(), &url("http://h/")).unwrap();
    let PageStep::Next(second) = listing.next_with_values(None, &url("http://h/"), b"<p>", Some(true)).unwrap() else {
        panic!("the first page has values")
    };
    let step = listing.next_with_values(None, &second, b"<b>", Some(false)).unwrap();
    assert_eq!(step, PageStep::End(ListingEnd::EmptyPage));
}

#[test]
fn invalid_pagination_parameters_are_setup_errors() {
    assert_eq!(Pagination::by_count("").unwrap_err().kind(), ErrorKind::Setup);
    assert_eq!(Pagination::by_count("a:0").unwrap_err().kind(), ErrorKind::Setup);
    #[cfg(feature = "select")]
    for path in ["", "next", "$[", "$.a b"] {
        assert_eq!(Pagination::by_json(path).unwrap_err().kind(), ErrorKind::Setup, "{path}");
    }
    let listing = Listing::new(&Pagination::by_count("page").unwrap(), &url("http://h/?page=x"));
    assert_eq!(listing.unwrap_err().kind(), ErrorKind::Url);
}
