use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn url(text: &str) -> Target {
    Target::parse(text).unwrap()
}

fn counting(parameter: &str) -> PaginationRules {
    PaginationRules::new(NextPageSource::Count(QueryParameter::parse(parameter).unwrap()))
}

fn token(parameter: &str) -> PaginationRules {
    PaginationRules::new(NextPageSource::Value(QueryParameter::parse(parameter).unwrap()))
}

fn text(value: &str) -> NextPageValue {
    NextPageValue::Text(value.to_owned())
}

/// A listing in progress: its rules, its state, and the URL of the current page.
struct Listing {
    rules: PaginationRules,
    chain: ListingHistory,
    at: Target,
}

impl Listing {
    fn of(rules: PaginationRules, first: &str) -> Self {
        let at = url(first);
        Self { chain: ListingHistory::new(&rules, &at).unwrap(), rules, at }
    }

    /// Returns the URL that follows a page, or the end of the listing. `change` sets the properties
    /// of the page.
    fn step(&mut self, change: impl FnOnce(&mut FinishedPage<'_>)) -> Result<String, PaginationError> {
        let at = self.at.clone();
        let mut page = FinishedPage::new(&at, 200);
        change(&mut page);
        match self.chain.next(&self.rules, &page)? {
            PageStep::Next(next) => {
                self.at = next;
                Ok(self.at.to_url())
            }
            PageStep::End(end) => Ok(format!("{end:?}")),
        }
    }

    fn link(&mut self, target: &str) -> Result<String, PaginationError> {
        self.step(|page| page.value = text(target))
    }

    fn count(&mut self) -> String {
        self.step(|_| {}).unwrap()
    }
}

fn references(first: &str) -> Listing {
    Listing::of(PaginationRules::new(NextPageSource::Reference), first)
}

#[test]
fn references_are_resolved_against_their_page() {
    let mut listing = references("http://h/a/b?x=1");
    assert_eq!(listing.link("?page=2").unwrap(), "http://h/a/b?page=2");
    assert_eq!(listing.link("c?page=3").unwrap(), "http://h/a/c?page=3");
    assert_eq!(listing.link("/d").unwrap(), "http://h/d");
    assert_eq!(listing.link("//h/e").unwrap(), "http://h/e");
    assert_eq!(listing.link("HTTP://H:80/f#top").unwrap(), "http://h/f");
    assert_eq!(listing.chain.page(), 6);
    assert_eq!(listing.step(|_| {}).unwrap(), "NoNextPage");
}

#[test]
fn next_page_is_resolved_against_the_redirect_target() {
    let mut listing = references("http://h/old/list");
    listing.at = url("https://www.h/new/list");
    assert_eq!(listing.link("2").unwrap(), "https://www.h/new/2");
    // The first URL's origin stays allowed.
    assert_eq!(listing.link("http://h/old/3").unwrap(), "http://h/old/3");
}

#[test]
fn next_page_of_another_origin_is_refused() {
    for other in ["http://evil/2", "https://h/2", "http://h:81/2", "//evil/2", "http://h.evil/2"] {
        let mut listing = references("http://h/1");
        let error = listing.link(other).unwrap_err();
        assert!(matches!(&error, PaginationError::OtherOrigin { page, .. } if page == "http://h"), "{other} {error:?}");
        assert_eq!(error.exit_code(), 3);
        listing.rules.any_origin = true;
        assert!(listing.link(other).unwrap().ends_with("/2"));
    }
    for bad in ["ftp://h/2", "javascript:x", "mailto:a@h", "http://h:x/", "http:///"] {
        let mut listing = references("http://h/1");
        assert!(matches!(listing.link(bad), Err(PaginationError::Reference { .. })), "{bad}");
    }
}

#[test]
fn userinfo_of_first_url_goes_to_its_origin_only() {
    let mut listing = references("http://me:pw@h/1");
    listing.rules.any_origin = true;
    listing.link("http://bob:x@h/2").unwrap();
    assert_eq!(listing.at.userinfo(), Some(("me".into(), "pw".into())));
    listing.link("http://bob:x@other/3").unwrap();
    assert_eq!(listing.at.userinfo(), None);
    listing.link("4").unwrap();
    assert_eq!(listing.at.userinfo(), None);
    listing.link("http://h/5").unwrap();
    assert_eq!(listing.at.userinfo(), Some(("me".into(), "pw".into())));
}

#[test]
fn next_link_to_a_known_page_ends_listing() {
    let mut listing = references("http://h/1");
    assert_eq!(listing.link("/1").unwrap(), r#"KnownUrl { url: "http://h/1" }"#);
    assert_eq!(listing.link("/2").unwrap(), "http://h/2");
    assert_eq!(listing.link("/3").unwrap(), "http://h/3");
    assert_eq!(listing.link("/1#x").unwrap(), r#"KnownUrl { url: "http://h/1" }"#);
    assert!(ListingEnd::KnownUrl { url: "x".into() }.needs_warning());
    // A redirect's target was fetched, too.
    listing.at = url("http://h/3b");
    assert_eq!(listing.link("/4").unwrap(), "http://h/4");
    assert_eq!(listing.link("/3b").unwrap(), r#"KnownUrl { url: "http://h/3b" }"#);
}

#[test]
fn first_next_link_of_the_page_itself_is_followed() {
    let step = |links: &[NextLink<'_>]| {
        let rules = PaginationRules::new(NextPageSource::LinkHeader);
        let at = url("http://h/a?b#c");
        let page = FinishedPage { links, ..FinishedPage::new(&at, 200) };
        match ListingHistory::new(&rules, &at).unwrap().next(&rules, &page).unwrap() {
            PageStep::Next(next) => next.to_url(),
            PageStep::End(end) => end.to_string(),
        }
    };
    let link = |target: &'static str, anchor: Option<&'static str>| NextLink {
        target: target.as_bytes(),
        anchor: anchor.map(str::as_bytes),
    };
    assert_eq!(step(&[link("2", None), link("3", None)]), "http://h/2");
    assert_eq!(step(&[link("\u{e9} 2", None)]), "http://h/%C3%A9%202");
    let of_page = [Some("?b"), Some("a?b"), Some("/a?b"), Some("http://h/a?b"), Some("")];
    assert!(of_page.iter().all(|anchor| step(&[link("2", *anchor)]) == "http://h/2"));
    for other in ["#x", "/a", "/z", "http://g/a?b", "ftp://h/", "?b#c"] {
        assert_eq!(step(&[link("2", Some(other))]), "the page names no next page", "{other}");
        assert_eq!(step(&[link("2", Some(other)), link("3", None)]), "http://h/3", "{other}");
    }
}

#[test]
fn page_counting_starts_at_number_in_the_url() {
    let mut listing = Listing::of(counting("page"), "http://h/l?q=a&page=7&x");
    assert_eq!(listing.count(), "http://h/l?q=a&page=8&x");
    assert_eq!(listing.count(), "http://h/l?q=a&page=9&x");
    let first = |rules, at| Listing::of(rules, at).count();
    assert_eq!(first(counting("page"), "http://h/l"), "http://h/l?page=2");
    assert_eq!(first(counting("page"), "http://h/l?page="), "http://h/l?page=2");
    assert_eq!(first(counting("page"), "http://h/l?page=0"), "http://h/l?page=1");
    assert_eq!(first(counting("offset:50"), "http://h/l?limit=50"), "http://h/l?limit=50&offset=50");
    assert_eq!(first(counting("offset:50"), "http://h/l?offset=10"), "http://h/l?offset=60");
    assert_eq!(first(counting("page[number]"), "http://h/l"), "http://h/l?page%5Bnumber%5D=2");
    assert_eq!(first(counting("page[number]"), "http://h/l?page[number]=4"), "http://h/l?page[number]=5");
    assert_eq!(first(counting("a b"), "http://h/l?a+b=4&a%20b=5&c"), "http://h/l?a+b=5&c");
}

#[test]
fn counted_listing_ends_at_empty_or_missing_page() {
    let ends = |change: fn(&mut FinishedPage<'_>)| {
        let mut listing = Listing::of(counting("page"), "http://h/l?page=1");
        listing.count();
        listing.step(change).unwrap()
    };
    assert_eq!(ends(|page| page.status = 404), "NotFound");
    assert_eq!(ends(|page| page.is_empty = true), "EmptyPage");
    assert_eq!(ends(|page| page.status = 500), "ErrorStatus(500)");
    let rules = counting("page");
    assert!(rules.ends_at(2, 404) && !rules.ends_at(1, 404) && !rules.ends_at(2, 410));
    assert!(!PaginationRules::new(NextPageSource::Reference).ends_at(2, 404));

    let mut listing = Listing::of(counting("page"), "http://h/l?page=1");
    let mut with = |digest| listing.step(|page| page.digest = Some(digest)).unwrap();
    assert_eq!(with(1), "http://h/l?page=2");
    assert_eq!(with(2), "http://h/l?page=3");
    assert_eq!(with(1), "http://h/l?page=4");
    assert_eq!(with(1), "SameContent");

    let mut listing = Listing::of(counting("page"), "http://h/l");
    listing.count();
    listing.at = url("http://h/l");
    assert_eq!(listing.count(), r#"RedirectedToKnownUrl { url: "http://h/l" }"#);
}

#[test]
fn page_parameter_that_is_no_number_is_refused() {
    for bad in ["a", "-1", "1.5", "+1", "18446744073709551616", "1%20", "%31x"] {
        let first = url(&format!("http://h/l?page={bad}"));
        let error = ListingHistory::new(&counting("page"), &first).unwrap_err();
        assert_eq!(error, PaginationError::NotANumber { name: "page".into() }, "{bad}");
    }
    assert_eq!(Listing::of(counting("page"), "http://h/?page=%32").count(), "http://h/?page=3");
    let mut listing = Listing::of(counting("page"), "http://h/?page=18446744073709551615");
    assert_eq!(listing.step(|_| {}), Err(PaginationError::NumberTooLarge { name: "page".into() }));
}

#[test]
fn query_parameter_has_a_name_and_a_step() {
    let parse = |text: &str| QueryParameter::parse(text).map(|parameter| (parameter.name, parameter.step));
    assert_eq!(parse("page"), Ok(("page".into(), None)));
    assert_eq!(parse("offset:100"), Ok(("offset".into(), Some(100))));
    assert_eq!(parse("a:b"), Ok(("a:b".into(), None)));
    assert_eq!(parse("a:b:2"), Ok(("a:b".into(), Some(2))));
    assert_eq!(parse("a:"), Ok(("a:".into(), None)));
    assert_eq!(parse(""), Err(ParseQueryParameterError::NoName));
    assert_eq!(parse(":1"), Err(ParseQueryParameterError::NoName));
    assert_eq!(parse("a:0"), Err(ParseQueryParameterError::Step));
    assert_eq!(parse("a:99999999999999999999"), Err(ParseQueryParameterError::Step));
}

#[test]
fn page_value_replaces_the_query_parameter() {
    let mut listing = Listing::of(token("cursor"), "http://h/l?limit=2");
    assert_eq!(listing.link("a=&b c/\u{e9}").unwrap(), "http://h/l?limit=2&cursor=a%3D%26b%20c%2F%C3%A9");
    assert_eq!(
        listing.step(|page| page.value = NextPageValue::Number("17".into())).unwrap(),
        "http://h/l?limit=2&cursor=17"
    );
    assert_eq!(listing.step(|page| page.value = NextPageValue::True).unwrap(), "http://h/l?limit=2&cursor=18");
    assert_eq!(listing.link("17").unwrap(), r#"KnownUrl { url: "http://h/l?limit=2&cursor=17" }"#);
    assert_eq!(listing.step(|_| {}).unwrap(), "NoNextPage");
    // The token belongs to the URL that the user gave, wherever a page was redirected to.
    let mut listing = Listing::of(token("cursor"), "http://h/l?cursor=");
    listing.at = url("http://other/x");
    assert_eq!(listing.link("http://evil/").unwrap(), "http://h/l?cursor=http%3A%2F%2Fevil%2F");
}

#[test]
fn page_value_of_unexpected_type_is_an_error() {
    let kinds = [NextPageValue::True, NextPageValue::Number("2".into()), NextPageValue::Unusable("an object")];
    for kind in kinds {
        let mut listing = references("http://h/");
        let error = listing.step(|page| page.value = kind).unwrap_err();
        assert_eq!(error.exit_code(), 61, "{error}");
    }
    let mut listing = Listing::of(token("c"), "http://h/");
    let error = listing.step(|page| page.value = NextPageValue::Unusable("an object")).unwrap_err();
    assert_eq!(error.to_string(), "the value for the next page is an object; it has to be a text or a number");
}

#[test]
fn only_default_page_limit_ends_with_an_error() {
    let mut listing = Listing::of(counting("page"), "http://h/");
    for _ in 1..DEFAULT_MAX_PAGES {
        listing.count();
    }
    assert_eq!(listing.chain.page(), DEFAULT_MAX_PAGES);
    let error = listing.step(|_| {}).unwrap_err();
    assert_eq!((error.exit_code(), error.url()), (47, Some("http://h/?page=1001")));
    let mut listing = Listing::of(counting("page"), "http://h/");
    listing.rules.max_pages = Some(2);
    listing.count();
    assert_eq!(listing.count(), "MaxPages");
    // A listing that ends at the limit is complete.
    let mut listing = references("http://h/");
    listing.rules.max_pages = Some(1);
    assert_eq!(listing.step(|_| {}).unwrap(), "NoNextPage");
}

/// Generates a link of a page: to one of a few paths on one of a few origins, in several spellings.
fn reference() -> impl Strategy<Value = (String, usize, usize)> {
    let origins = ["http://h", "HTTP://H:80", "http://g", "https://h", ""];
    (0..origins.len(), 0..6_usize, prop::bool::ANY).prop_map(move |(origin, path, has_fragment)| {
        let fragment = if has_fragment { "#f" } else { "" };
        (format!("{}/{path}{fragment}", origins[origin]), origin, path)
    })
}

proptest! {
    /// Walks through generated sites and compares each step with a plain model: a set of the URLs
    /// so far.
    #[test]
    fn page_chains_agree_with_a_model(
        links in prop::collection::vec(prop::option::weighted(0.9, reference()), 1..30),
        any_origin: bool,
        max in prop::option::of(1..12_u64),
    ) {
        let rules =
            PaginationRules { any_origin, max_pages: max, ..PaginationRules::new(NextPageSource::Reference) };
        let mut at = url("http://h/0");
        let mut chain = ListingHistory::new(&rules, &at).unwrap();
        let mut known = HashSet::from(["http://h/0".to_owned()]);
        for (number, link) in (1..).zip(links) {
            let value = link.as_ref().map_or(NextPageValue::None, |(reference, ..)| text(reference));
            let step = chain.next(&rules, &FinishedPage { value, ..FinishedPage::new(&at, 200) });
            let Some((_, origin, path)) = link else {
                prop_assert_eq!(step, Ok(PageStep::End(ListingEnd::NoNextPage)));
                break;
            };
            let origin = match origin {
                0 | 1 => "http://h",
                2 => "http://g",
                3 => "https://h",
                _ => at.origin().url_prefix().to_owned().leak(),
            };
            let expected = format!("{origin}/{path}");
            if !any_origin && origin != "http://h" && origin != at.origin().url_prefix() {
                let is_refused = matches!(step, Err(PaginationError::OtherOrigin { .. }));
                prop_assert!(is_refused);
                break;
            }
            if !known.insert(expected.clone()) {
                prop_assert_eq!(step, Ok(PageStep::End(ListingEnd::KnownUrl { url: expected })));
                break;
            }
            if max == Some(number) {
                prop_assert_eq!(step, Ok(PageStep::End(ListingEnd::MaxPages)));
                break;
            }
            let Ok(PageStep::Next(next)) = step else { panic!("{step:?} instead of {expected}") };
            prop_assert_eq!(next.to_url(), expected);
            at = next;
        }
    }

    /// Sets a parameter in any query: the other parameters stay, and the value can be read back.
    #[test]
    fn set_query_parameter_is_found_again(query in "[a-c=&+%2610\\[\\]]{0,16}", value in ".{0,12}", name in "[a-c \\[]{1,2}") {
        let parameter = QueryParameter::parse(&name).unwrap();
        let first = url(&format!("http://h/p?{query}"));
        let set = parameter.set(&first, &value);
        let of = |url: &Target, mine: bool| {
            let parts = url.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
            let parts = parts.filter(|part| parameter.value_in(part).is_some() == mine);
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        prop_assert_eq!(of(&first, false), of(&set, false));
        let mine = of(&set, true);
        prop_assert_eq!(mine.len(), 1);
        prop_assert_eq!(parameter.value_in(&mine[0]).unwrap().into_owned(), value.into_bytes());
        let again = url(&set.to_url());
        prop_assert_eq!(again.path_and_query(), set.path_and_query());
    }
}

#[test]
fn query_parameter_has_its_name() {
    assert_eq!(QueryParameter::parse("a:b:10").unwrap().name(), "a:b");
    assert_eq!(QueryParameter::parse("page").unwrap().name(), "page");
}

#[test]
fn only_doubtful_ends_of_listings_need_warning() {
    let url = || "http://h/".to_owned();
    for end in
        [ListingEnd::KnownUrl { url: url() }, ListingEnd::RedirectedToKnownUrl { url: url() }, ListingEnd::SameContent]
    {
        assert!(end.needs_warning(), "{end:?}");
    }
    for end in [
        ListingEnd::NoNextPage,
        ListingEnd::EmptyPage,
        ListingEnd::NotFound,
        ListingEnd::ErrorStatus(500),
        ListingEnd::MaxPages,
    ] {
        assert!(!end.needs_warning(), "{end:?}");
    }
}

#[test]
fn only_counting_rules_count_pages() {
    assert!(counting("page").counts_pages() && counting("page").ends_at(2, 404));
    assert!(!token("page").counts_pages() && !token("page").ends_at(2, 404));
    assert!(!counting("page").ends_at(1, 404) && !counting("page").ends_at(2, 410));
    assert!(!PaginationRules::new(NextPageSource::Reference).counts_pages());
}
