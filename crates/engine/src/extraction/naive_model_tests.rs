//! Tests that compare the extractor, the distinct filter and the sorter with naive models, for
//! hostile sizes and splits of the body.

use std::collections::{BTreeSet, HashSet};

use proptest::{prelude::*, test_runner::RngSeed};
use regex::bytes::Regex;

use super::*;
use crate::{Error, ErrorKind, Result};

/// Returns the values that one search with the regular expression over the whole body finds. The
/// extractor must find the same values.
fn naive(expression: &str, body: &[u8]) -> Vec<Vec<u8>> {
    let regex = Regex::new(expression).expect("the generator makes valid expressions");
    let group = usize::from(regex.captures_len() > 1);
    let values = regex.captures_iter(body).filter_map(|found| found.get(group).map(|value| value.as_bytes().to_vec()));
    values.filter(|value| !value.is_empty()).collect()
}

fn extract(extractor: &mut Extractor, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut take = |value: &[u8]| {
        found.push(value.to_vec());
        Ok(())
    };
    for piece in pieces {
        extractor.push(piece, &mut take).unwrap();
    }
    extractor.finish(&mut take).unwrap();
    found
}

fn split<'a>(body: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = at.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

#[track_caller]
fn check(expression: &str, body: &[u8], cuts: &[usize]) {
    let mut extractor = Extractor::new(ExtractRegexes::new(expression).unwrap());
    extractor.gather_at_least(1);
    let expected = naive(expression, body);
    let show = || format!("{expression:?} in {:?} at {cuts:?}", body.escape_ascii().to_string());
    assert_eq!(extract(&mut extractor, &[body]), expected, "whole: {}", show());
    assert_eq!(extract(&mut extractor, &split(body, cuts)), expected, "split: {}", show());
    assert_eq!(extract(&mut extractor, &body.chunks(1).collect::<Vec<_>>()), expected, "bytes: {}", show());
}

/// Generates regular expressions over a few letters, so that they often match generated bodies of
/// the same letters.
fn expressions() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "a",
        "b",
        "/",
        "\"",
        "1",
        "é",
        "[ab]",
        "[^/]",
        "[a/]",
        "[0-9.]",
        r"\d",
        r"\w",
        ".",
        "(?s:.)",
        "[^\"é]",
        "(?-u:[^a])",
        r"(?-u:\xa9)",
        "(?i:a)",
    ]);
    let times = prop::sample::select(vec![
        "", "", "", "", "?", "*", "+", "{2}", "{1,3}", "{0,2}", "+?", "*?", "{1,2}?", "{2,}",
    ]);
    let look = prop::sample::select(vec![
        "^",
        "$",
        r"\b",
        r"\B",
        "(?m:^)",
        "(?m:$)",
        r"\A",
        r"\z",
        r"(?-u:\b)",
        r"\b{start}",
        r"\b{end-half}",
        "(?Rm:$)",
    ]);
    let leaf = prop_oneof![
        12 => (unit, times.clone()).prop_map(|(unit, times)| format!("{unit}{times}")),
        2 => look.prop_map(str::to_owned),
    ];
    let tree = leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            6 => prop::collection::vec(inner.clone(), 1..5).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => inner.clone().prop_map(|part| format!("({part})")),
            1 => (inner, times.clone()).prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    });
    prop::collection::vec(tree, 1..4).prop_map(|parts| parts.concat())
}

/// Generates regular expressions that are sequences of characters and character classes, each with
/// an optional repetition, such as `a[ab]+1`. The extractor matches some of these without an
/// automaton.
fn sequences() -> impl Strategy<Value = String> {
    let class = prop::sample::select(vec![
        "a",
        "b",
        "/",
        "1",
        "[ab]",
        "[0-9.]",
        "[^/]",
        "[^a1]",
        "[a1]",
        "[/1]",
        "[ab/]",
        "(?-u:[^/])",
    ]);
    let times = prop::sample::select(vec!["", "", "", "?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}"]);
    let run = (class, times).prop_map(|(class, times)| format!("{class}{times}"));
    (prop::collection::vec(run.clone(), 0..4), prop::collection::vec(run, 1..4), any::<bool>()).prop_map(
        |(before, after, grouped)| {
            let (before, after) = (before.concat(), after.concat());
            if grouped { format!("{before}/({after})") } else { format!("{before}/{after}") }
        },
    )
}

fn bodies(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"/",
        b"\"",
        b"1",
        b".",
        b"\n",
        b"\r\n",
        b"\xc3\xa9",
        b"\xc3",
        b"\xa9",
        b"\xff",
        b" ",
        b"A",
        b"aaaa",
        b"1.1/1",
        b"b/a",
    ]);
    prop::collection::vec(part, 0..most).prop_map(|parts| parts.concat())
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn extractor_agrees_with_a_single_regex_search(expression in expressions(), body in bodies(80), cuts in cuts()) {
        check(&expression, &body, &cuts);
    }

    #[test]
    fn run_matcher_agrees_with_a_single_regex_search(expression in sequences(), body in bodies(120), cuts in cuts()) {
        check(&expression, &body, &cuts);
    }
}

#[test]
fn match_is_found_at_every_split() {
    let body = b"x 10.20.30.40/24 AS15169 1.2.3.4/5 y 256.256.256.256.256/33";
    for expression in ["AS[0-9]{1,9}", "[0-9.]{7,15}/[0-9]{1,2}", "S([0-9]+)", r"\b[0-9]+$", r"^x|3\z"] {
        for cut in 0..=body.len() {
            check(expression, body, &[cut]);
        }
    }
}

#[test]
fn anchors_apply_to_the_whole_body() {
    for cut in 0..8 {
        check("^ab", b"abababab", &[cut]);
        check("ab$", b"abababab", &[cut]);
        check(r"(?m)^ab$", b"ab\nab\nab", &[cut]);
        check(r"\bab\b", b"ab abab ab", &[cut, cut + 1]);
        check(r"a+\b", b"aa\xc3\xa9 aa", &[cut]);
    }
}

#[test]
fn long_bodies_match_in_pieces_of_any_size() {
    let row = "<tr><td><a href=\"/net/10.0.0.0/8\">10.0.0.0/8</a> AS64512 caf\u{e9}</td></tr>\n";
    let body = row.repeat(20_000).into_bytes();
    let expressions = [
        "[0-9.]{7,15}/[0-9]{1,2}",
        "AS[0-9]{1,9}",
        "href=\"([^\"]+)\"",
        r"\b(?:\d{1,3}\.){3}\d{1,3}/\d{1,2}\b",
        "<td>.*?</td>",
        "(?s)<td>.{3,600}</td>",
        r"\w+$",
    ];
    for expression in expressions {
        let expected = naive(expression, &body);
        let mut extractor = Extractor::new(ExtractRegexes::new(expression).unwrap());
        for size in [body.len(), 256 << 10, 16_384, 1_448, 77] {
            let found = extract(&mut extractor, &body.chunks(size).collect::<Vec<_>>());
            assert!(found == expected, "{expression} by {size}: {} of {}", found.len(), expected.len());
        }
    }
}

#[test]
fn values_are_passed_on_before_the_body_ends() {
    for expression in ["AS[0-9]{1,9}", "AS[0-9]+", "href=\"([^\"]+)\""] {
        let mut extractor = Extractor::new(ExtractRegexes::new(expression).unwrap());
        let row = "<a href=\"x\">AS64512</a>".repeat(100);
        let mut found = 0;
        for piece in 1..=200_usize {
            extractor
                .push(row.as_bytes(), &mut |_| {
                    found += 1;
                    Ok(())
                })
                .unwrap();
            let behind = piece * 100 - found;
            assert!(behind * row.len() / 100 <= 256 << 10, "{expression}: {behind} behind after {piece} pieces");
        }
    }
}

#[test]
fn false_prefilter_hits_keep_the_search_linear() {
    // Every second byte is a hit that leads nowhere, or far; quadratic work would take minutes.
    let bodies = ["1/".repeat(2 << 20), format!("a{}", "a".repeat(4 << 20)), "\"a/".repeat(1 << 20)];
    for body in &bodies {
        for expression in ["[0-9.]{7,15}/[0-9]{1,2}", "a[^b]*b", "1/[^\"]*\"", "(?:a|b)?/1[^x]{0,200}x"] {
            let mut extractor = Extractor::new(ExtractRegexes::new(expression).unwrap());
            let expected = naive(expression, body.as_bytes());
            assert_eq!(
                extract(&mut extractor, &body.as_bytes().chunks(64 << 10).collect::<Vec<_>>()).len(),
                expected.len()
            );
        }
    }
}

#[test]
fn extractor_is_reusable_for_the_next_body() {
    let mut extractor = Extractor::new(ExtractRegexes::new("^a+").unwrap());
    extractor.push(b"aa", &mut |_| Ok(())).unwrap();
    extractor.reset();
    assert_eq!(extract(&mut extractor, &[b"aaa"]), [b"aaa"]);
    assert_eq!(extract(&mut extractor, &[b"a", b"b"]), [b"a"]);
    assert_eq!(extract(&mut extractor, &[]), [b""; 0]);
    let error = extractor
        .push(&b"a".repeat(9999), &mut |_| Ok(()))
        .and_then(|()| extractor.finish(&mut |_| Err(Error::new(ErrorKind::Write, "closed"))));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Write);
    assert_eq!(extract(&mut extractor, &[b"aaa"]), [b"aaa"]);
}

#[test]
fn invalid_expression_is_a_setup_error() {
    for expression in ["(", "a{2,1}", "[z-a]", r"(?<", r"\p{nope}"] {
        let error = ExtractRegexes::new(expression).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("cannot be used"), "{error}");
    }
    assert_eq!(ExtractRegexes::new("(a){1000}{1000}{1000}").unwrap_err().kind(), ErrorKind::Setup);
}

fn sorted(memory: u64, unique: bool, values: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut sorter = Sorter::new(memory, std::env::temp_dir(), unique);
    for value in values {
        sorter.push(value)?;
    }
    let mut sorted = sorter.finish()?;
    let mut out = Vec::new();
    while let Some(value) = sorted.next_value()? {
        out.push(value.to_vec());
    }
    assert_eq!(sorted.next_value()?, None, "the end stays the end");
    Ok(out)
}

/// Passes the values through a [`Distinct`] with a budget of `memory` bytes. Returns two lists: the
/// values that the filter reported as new immediately, and the deferred values that its `finish`
/// returned.
fn distinct(memory: u64, values: &[Vec<u8>]) -> Result<[Vec<Vec<u8>>; 2]> {
    let mut distinct = Distinct::new(memory, std::env::temp_dir());
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for value in values {
        if distinct.push(value)? == DistinctResult::New {
            now.push(value.clone());
        }
    }
    let mut deferred = distinct.finish()?;
    while let Some(value) = deferred.next_value()? {
        later.push(value.to_vec());
    }
    Ok([now, later])
}

fn values() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let value = prop_oneof![
        prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 0..12),
        (0_u16..400).prop_map(|number| format!("10.{number}.0.0/16").into_bytes()),
    ];
    prop::collection::vec(value, 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sorter_agrees_with_vec_sort(values in values(), memory in 0_u64..20_000) {
        let mut expected = values.clone();
        expected.sort();
        prop_assert_eq!(sorted(memory, false, &values).unwrap(), expected.clone());
        expected.dedup();
        prop_assert_eq!(sorted(memory, true, &values).unwrap(), expected);
    }

    #[test]
    fn distinct_keeps_the_first_of_equal_values(values in values(), memory in 0_u64..20_000) {
        let mut seen = HashSet::new();
        let expected: Vec<_> = values.iter().filter(|value| seen.insert(*value)).cloned().collect();
        let [now, later] = distinct(memory, &values).unwrap();
        let at_once: BTreeSet<_> = now.iter().cloned().collect();
        prop_assert_eq!(&now, &expected.iter().filter(|value| at_once.contains(*value)).cloned().collect::<Vec<_>>());
        prop_assert_eq!(&later, &expected.iter().filter(|value| !at_once.contains(*value)).cloned().collect::<Vec<_>>());
    }
}

#[test]
fn many_spilled_runs_are_merged() {
    let values: Vec<Vec<u8>> =
        (0..40_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) % 30_000).to_string().into_bytes()).collect();
    let mut expected = values.clone();
    expected.sort();
    assert!(sorted(4_000, false, &values).unwrap() == expected);
    expected.dedup();
    assert!(sorted(4_000, true, &values).unwrap() == expected);
}

#[test]
fn distinct_defers_nothing_within_its_budget() {
    let values: Vec<Vec<u8>> = (0..100_000_u32).map(|n| (n % 20_000).to_string().into_bytes()).collect();
    let [now, later] = distinct(2 << 20, &values).unwrap();
    assert_eq!((now.len(), later.len()), (20_000, 0));
    let [now, later] = distinct(64 << 10, &values).unwrap();
    assert_eq!(now.len() + later.len(), 20_000);
    assert!(now.len() > 400 && !later.is_empty(), "{}", now.len());
}

#[test]
fn full_distinct_table_still_drops_repeated_values() {
    let mut distinct = Distinct::new(0, std::env::temp_dir());
    let first = distinct.push(b"a").unwrap();
    assert_eq!((first, distinct.push(b"a").unwrap()), (DistinctResult::Deferred, DistinctResult::Deferred));
    let mut small = Distinct::new(4096, std::env::temp_dir());
    assert_eq!(small.push(b"first").unwrap(), DistinctResult::New);
    let deferred = (0..1000).any(|number: u32| small.push(&number.to_le_bytes()).unwrap() == DistinctResult::Deferred);
    assert!(deferred);
    assert_eq!(small.push(b"first").unwrap(), DistinctResult::Old);
}

#[test]
fn temporary_file_error_names_the_directory() {
    let nowhere = std::env::temp_dir().join("haul-no-such-directory");
    let mut sorter = Sorter::new(0, &nowhere, true);
    sorter.push(b"a").unwrap();
    let error = sorter.push(b"b").unwrap_err();
    assert_eq!(error.exit_code(), 23);
    assert!(error.to_string().contains("haul-no-such-directory"), "{error}");
    let mut distinct = Distinct::new(0, &nowhere);
    distinct.push(b"a").unwrap();
    assert_eq!(distinct.push(b"b").and_then(|_| distinct.finish().map(|_| ())).unwrap_err().kind(), ErrorKind::Write);
}

#[test]
fn regex_syntax_errors_name_position_and_remedy() {
    for (expression, told) in [
        ("a(b", "unclosed group, at byte 1; write \\( for the character ( itself"),
        ("a)", "unopened group, at byte 1; write \\) for the character ) itself"),
        ("*", "at byte 0; write \\* for the character * itself"),
        ("(?=a)", "put what is wanted into group 1"),
        ("(a)\\1", "write the group out once more"),
        ("a\\", "write \\\\ for a backslash"),
    ] {
        let error = ExtractRegexes::new(expression).unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains('\n'), "{expression}: {error}");
    }
}

#[test]
fn values_of_several_regexes_keep_page_order() {
    let body = format!("b2 a1 {} x(a3)(b4)y b5{}", "a0 ".repeat(40), "c".repeat(9));
    let pattern = ExtractRegexes::all_of(&["a([0-9])", "b[0-9]", r"x\((a[^c]*)", "(a3)"]).unwrap();
    let mut expected = vec!["b2".to_owned(), "1".to_owned()];
    expected.extend(std::iter::repeat_n("0".to_owned(), 40));
    expected.extend(["a3)(b4)y b5", "3", "a3", "b4", "b5"].map(str::to_owned));
    for gather in [1, 64, 4096] {
        let mut extractor = Extractor::new(pattern.clone());
        extractor.gather_at_least(gather);
        for size in [1, 2, 5, 64, body.len()] {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let found = extract(&mut extractor, &pieces);
            let found: Vec<String> = found.into_iter().map(|value| String::from_utf8(value).unwrap()).collect();
            assert_eq!(found, expected, "{gather} {size}");
        }
    }
}

#[test]
fn value_name_is_the_name_of_group_1() {
    let pattern = ExtractRegexes::all_of(&["(?<id>a)(?<other>b)", "(c)", "d", "(?P<n>e)"]).unwrap();
    assert_eq!(pattern.value_names().collect::<Vec<_>>(), ["id", "n"]);
}

/// Returns the absolute URLs of the links that the regular expression `href="([^"]+)"` finds in a
/// page of this media type.
#[cfg(feature = "select")]
fn links(content_type: &str, page: &str) -> Vec<String> {
    let url = crate::Target::parse("http://h/dir/page").unwrap();
    let pattern = ExtractRegexes::new("href=\"([^\"]+)\"").unwrap();
    let mut search = PageSearch::new(pattern.into()).with_link_resolution(std::sync::Arc::default());
    search.begin(&PageInfo { url: Some(&url), content_type: Some(content_type.as_bytes()) });
    let mut found = Vec::new();
    let mut take = |_: usize, value: &[u8]| {
        found.push(String::from_utf8(value.to_vec()).unwrap());
        Ok(())
    };
    search.push(page.as_bytes(), &mut take).unwrap();
    search.finish(&mut take).unwrap();
    found
}

#[cfg(feature = "select")]
#[test]
fn character_references_in_matched_links_are_decoded() {
    let page = "<a href=\"/x?a=1&#038;b=2&amp;c=3&#x26;d=&quot;&copy=4&copy;\"><a href=\"&#x2F;y&#32;z\">";
    let expected = ["http://h/x?a=1&b=2&c=3&d=%22&copy=4%C2%A9", "http://h/y%20z"];
    assert_eq!(links("text/html", page), expected);
    assert_eq!(links("application/xhtml+xml; charset=utf-8", page), expected);
    // Other text has no references.
    assert_eq!(links("text/plain", "href=\"/x?a&amp;b\""), ["http://h/x?a&amp;b"]);
}
