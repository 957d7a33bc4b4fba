//! Tests of the values of JSON documents: several documents in a body, errors, limits, and the
//! compliance suite of RFC 9535, if it is on this machine.

use serde_json::Value;

use crate::extraction::{ExtractRegexes, JsonPathQuery, PageQuery, PageSearch};
use crate::{Error, ErrorKind};

fn query(paths: &[&str]) -> PageQuery {
    PageQuery::json_path(&paths.iter().map(|path| JsonPathQuery::new(path).unwrap()).collect::<Vec<_>>())
}

/// Searches a body in pieces of `size` bytes. Returns the values, and the error that ended the
/// search.
fn values_in(search: &mut PageSearch, body: &[u8], size: usize) -> (Vec<String>, Option<String>) {
    let mut found = Vec::new();
    let mut take = |_: usize, value: &[u8]| {
        found.push(String::from_utf8(value.to_vec()).expect("values are UTF-8"));
        Ok(())
    };
    let outcome =
        body.chunks(size).try_for_each(|piece| search.push(piece, &mut take)).and_then(|()| search.finish(&mut take));
    search.reset();
    (found, outcome.err().map(|error: Error| error.to_string()))
}

#[track_caller]
fn selected(paths: &[&str], body: &str) -> (Vec<String>, Option<String>) {
    let mut search = PageSearch::new(query(paths));
    let whole = values_in(&mut search, body.as_bytes(), body.len().max(1));
    for size in [1, 2, 3, 7] {
        assert_eq!(values_in(&mut search, body.as_bytes(), size), whole, "pieces of {size}: {body:?}");
    }
    whole
}

#[track_caller]
fn selects(path: &str, body: &str, expected: &[&str]) {
    let (values, error) = selected(&[path], body);
    assert_eq!(error, None, "{path} in {body:?}");
    assert_eq!(values, expected, "{path} in {body:?}");
}

#[test]
fn strings_are_output_raw_and_others_as_compact_json() {
    let body = r#"{"z": "a\"\u00e9\n", "b": [1, 2.50, true, null, {"y": 1, "x": []}], "c": ""}"#;
    selects("$.z", body, &["a\"\u{e9}\n"]);
    selects("$.b[*]", body, &["1", "2.50", "true", "null", r#"{"y":1,"x":[]}"#]);
    selects("$.b", body, &[r#"[1,2.50,true,null,{"y":1,"x":[]}]"#]);
    selects("$.c", body, &[]);
    selects("$.none", body, &[]);
    selects("$[?@.a > 1].n", r#"[{"a":1,"n":"x"},{"a":2,"n":"y"}]"#, &["y"]);
    selects("$", "18446744073709551615", &["18446744073709551615"]);
}

#[test]
fn body_may_have_several_documents() {
    selects("$.a", "{\"a\":1}\n{\"a\":2}\r\n\n{\"b\":3}\n{\"a\":4}", &["1", "2", "4"]);
    selects("$.a", "{\"a\":1}{\"a\":2} [1]{\"a\":\"}\\\"{\"}", &["1", "2", "}\"{"]);
    selects("$.a", "\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n", &["1", "2"]);
    selects("$", "1 \"a b\" true\nnull [] {}", &["1", "a b", "true", "null", "[]", "{}"]);
    selects("$", " \n ", &[]);
    selects("$", "", &[]);
}

#[test]
fn values_of_several_queries_are_grouped_by_query() {
    let (values, error) = selected(&["$.b", "$.a"], "{\"a\":1,\"b\":2}\n{\"b\":4,\"a\":3}");
    assert_eq!((values, error), (["2", "1", "4", "3"].map(str::to_owned).to_vec(), None));
}

#[test]
fn regex_filter_searches_each_json_value() {
    let filtered = query(&["$[*]"]).filtered(ExtractRegexes::new("[0-9]+").unwrap());
    let (values, error) = values_in(&mut PageSearch::new(filtered), br#"["a1b2", {"c": 3}, null]"#, 5);
    assert_eq!((values, error), (["1", "2", "3"].map(str::to_owned).to_vec(), None));
}

#[test]
fn invalid_json_error_names_line_and_column() {
    for (body, at) in [
        ("<html>", "expected value at line 1 column 1"),
        ("{\"a\":1}\n{\"a\":}\n", "expected value at line 2 column 6"),
        ("{\"a\":1}\n  {\n\"a\": x}", "at line 3 column"),
        ("{\"a\":1} {\"a\" 2}", "at line 1 column 14"),
        ("{\"a\":1}\n[1,", "EOF while parsing"),
        ("{\"a\":1},{\"a\":2}", "expected value at line 1 column 8"),
        ("{\"a\":1}\n[}", "at line 2 column 2"),
        ("{\"a\":1}\n\"a", "EOF while parsing a string at line 2"),
    ] {
        let (values, error) = selected(&["$.a"], body);
        let error = error.unwrap_or_else(|| panic!("{body:?} is invalid"));
        assert!(error.contains("the body is not JSON") && error.contains(at), "{body:?}: {error}");
        assert_eq!(values.len(), usize::from(body.starts_with("{\"a\":1}")), "{body:?}: values before the error");
    }
    let deep = "[".repeat(100_000);
    assert!(selected(&["$"], &deep).1.is_some_and(|error| error.contains("recursion limit")));
}

#[test]
fn document_size_is_limited_but_not_body_size() {
    let mut search = PageSearch::with_memory(query(&["$.a"]), 64 << 10);
    let mut count = 0;
    let mut take = |_: usize, _: &[u8]| {
        count += 1;
        Ok(())
    };
    for _ in 0..20_000 {
        search.push(b"{\"a\":1,\"b\":\"0123456789 0123456789 0123456789\"}\n", &mut take).unwrap();
        assert!(search.memory_in_use() < 1 << 10);
    }
    search.finish(&mut take).unwrap();
    assert_eq!(count, 20_000);
    for part in ["0123456789", "[],", "{\"\":{}},", "1,"] {
        let body = format!("{{\"a\":1}}\n[{}0]", part.repeat((60 << 10) / part.len()));
        let body =
            if part == "0123456789" { format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}", part.repeat(7000)) } else { body };
        let (values, error) = values_in(&mut search, body.as_bytes(), 1000);
        let error = error.expect("the document is too large");
        assert!(
            error.contains("at line 2 column 1 takes more than 1 MiB") && error.contains("--max-memory"),
            "{error}"
        );
        assert_eq!(values, ["1"]);
    }
}

#[test]
fn total_size_of_nested_json_values_is_limited() {
    let body = format!("{}\"{}\"{}", "{\"a\":".repeat(100), "x".repeat(10 << 10), "}".repeat(100));
    let mut search = PageSearch::with_memory(query(&["$..a"]), 64 << 10);
    let (values, error) = values_in(&mut search, body.as_bytes(), 1000);
    let error = error.expect("the values have 1 MB");
    assert!(error.contains("the values selected from the JSON document at line 1 column 1 take more"), "{error}");
    assert!(values.iter().map(String::len).sum::<usize>() <= 3 * (64 << 10));
    let (values, error) = values_in(&mut PageSearch::new(query(&["$..a"])), body.as_bytes(), 1000);
    assert_eq!((values.len(), error), (100, None));
}

#[test]
fn numbers_are_output_with_their_original_text() {
    let numbers = [
        "0",
        "-0",
        "1.50",
        "1e3",
        "-1.0E+2",
        "0.10",
        "2.5",
        "100.0",
        "18446744073709551616",
        "-123456789012345678901234567890",
        "12345678901234567890.10",
        "0.1234567890123456789012345",
        "1e-400",
    ];
    let list = format!("[{}]", numbers.join(","));
    selects("$[*]", &list, &numbers);
    selects("$", &list, &[&list]);
    let first = "{\"1.0 \\\" -2e3\": [3.0, \"4.0\"], \"b\":[[ 5.00 ],{}, {\"c\" :6E1}],\"d\":7.5}";
    selects("$", first, &["{\"1.0 \\\" -2e3\":[3.0,\"4.0\"],\"b\":[[5.00],{},{\"c\":6E1}],\"d\":7.5}"]);
    selects("$..c", first, &["6E1"]);
    selects("$[?@.p > 1.4].p", "[{\"p\":1.400},{\"p\":1.410},{\"p\":2}]", &["1.410", "2"]);
    selects("$.a", "{\"a\":1.0}\n{\"b\":2.0,\"a\":3.0}\n", &["1.0", "3.0"]);
    let (values, error) = selected(&["$.b", "$.a", "$"], "{\"a\":1.0,\"b\":2.0}");
    assert_eq!((values, error), (["2.0", "1.0", "{\"a\":1.0,\"b\":2.0}"].map(str::to_owned).to_vec(), None));
}

#[test]
fn numbers_are_doubles_if_names_repeat() {
    selects("$", "{\"a\":\"x\",\"b\":2.50,\"a\":1.10}", &["{\"a\":1.1,\"b\":2.5}"]);
    selects("$.b", "{\"a\":[1.0,1.0],\"a\":1,\"b\":18446744073709551616}", &["1.8446744073709552e+19"]);
    for number in [
        "31.245270191439438",
        "64.12345678901234",
        "122.416294033786585",
        "65.613616999999977",
        "2.2250738585072014e-308",
    ] {
        let nearest = number.parse::<f64>().unwrap();
        let (values, _) = selected(&["$.b"], &format!("{{\"a\":1,\"a\":1,\"b\":{number}}}"));
        assert_eq!(values[0].parse::<f64>().unwrap().to_bits(), nearest.to_bits(), "{number}");
    }
}

#[test]
fn many_small_objects_fit_the_default_memory() {
    let item = |number| format!("{{\"id\":{number},\"name\":\"item {number}\",\"price\":1.50}}");
    let items: Vec<String> = (0..30_000).map(item).collect();
    let body = format!("[{}]", items.join(","));
    assert!(body.len() > 1_300_000);
    let (values, error) = values_in(&mut PageSearch::new(query(&["$[*].price"])), body.as_bytes(), 100_000);
    assert_eq!(error, None);
    assert!(values.len() == 30_000 && values.iter().all(|value| value == "1.50"));
}

#[test]
fn json_queries_with_several_descents_are_limited() {
    let deep = format!("[{}1{}]", "{\"a\":".repeat(120), "}".repeat(120));
    let body = format!("[{}1]", format!("{deep},").repeat(300));
    for (path, fits) in [("$..a", true), ("$..['..a..']", true), ("$..a..a", false), ("$..*..*..*", false)] {
        let (_, error) = values_in(&mut PageSearch::with_memory(query(&[path]), 8 << 20), body.as_bytes(), 1 << 20);
        let is_refused = error.as_ref().is_some_and(|error| error.contains("fewer `..`"));
        let repeats = error.as_ref().is_some_and(|error| error.contains("select fewer of the values"));
        assert!(if fits { error.is_none() || repeats } else { is_refused }, "{path}: {error:?}");
    }
}

#[test]
fn json_without_charset_is_utf8() {
    use crate::extraction::PageInfo;

    for content_type in [None, Some(&b"text/plain"[..]), Some(b"application/octet-stream")] {
        let page = PageInfo { url: None, content_type };
        assert_eq!(query(&["$"]).values_in(&page, b"\"\xe9\xc3\xa9\"").unwrap(), ["\u{fffd}\u{e9}"]);
    }
    let page = PageInfo { url: None, content_type: Some(b"application/json; charset=latin1") };
    assert_eq!(query(&["$"]).values_in(&page, b"\"\xe9\"").unwrap(), ["\u{e9}"]);
}

#[test]
fn malformed_jsonpath_queries_are_refused() {
    for (path, words) in
        [("", "begins with $"), (".a", "begins with $"), ("$.", "position"), ("$[?@.a = 1]", "position")]
    {
        let error = JsonPathQuery::new(path).expect_err("the path is malformed");
        assert_eq!(error.kind(), ErrorKind::Setup, "{path}");
        assert!(error.to_string().contains(words), "{path}: {error}");
    }
}

/// Runs the compliance suite of RFC 9535
/// (<https://github.com/jsonpath-standard/jsonpath-compliance-test-suite>), if the variable
/// `JSONPATH_TESTS` names its file `cts.json`.
#[test]
fn values_agree_with_jsonpath_compliance_suite() {
    let Some(file) = std::env::var_os("JSONPATH_TESTS") else {
        eprintln!("skipped: JSONPATH_TESTS does not name a file");
        return;
    };
    let suite: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut failed = Vec::new();
    let tests = suite["tests"].as_array().unwrap();
    for test in tests {
        let path = test["selector"].as_str().unwrap();
        let parsed = JsonPathQuery::new(path);
        if test["invalid_selector"] == true {
            if parsed.is_ok() {
                failed.push(format!("{path:?} is accepted"));
            }
            continue;
        }
        let Ok(parsed) = parsed else {
            failed.push(format!("{path:?} is refused"));
            continue;
        };
        let found = parsed.path.query(&test["document"]);
        let found = Value::Array(found.iter().map(|value| (*value).clone()).collect());
        let results = test["results"].as_array();
        let is_expected = results.map_or(found == test["result"], |results| results.contains(&found));
        if !is_expected {
            failed.push(format!("{path:?} gives {found}"));
        }
    }
    eprintln!("{} tests, {} failed", tests.len(), failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
