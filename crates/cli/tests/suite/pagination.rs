//! Tests of `--paginate`, `--paginate-json` and `--paginate-query`: listings of a JSON API and of
//! HTML pages, their order, their files, credentials, and hostile pages.

use crate::common;

use std::collections::BTreeSet;
use std::fs;

use common::small_site::SmallSite;
use common::{HAUL, answering, names, origin, received, reply_steps, run_haul, run_in};
use serde_json::Value;
use testkit::h1_peer::H1Peer;
use testkit::origin::Origin;

/// Returns the values of the key `name` of all items in a text that consists of JSON arrays and
/// objects.
fn items(text: &str, name: &str) -> Vec<String> {
    let pages = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let of_page = |page: Value| match page {
        Value::Array(items) => items,
        page => page["items"].as_array().cloned().unwrap_or_default(),
    };
    pages.flat_map(|page| of_page(page.unwrap())).map(|item| item[name].to_string()).collect()
}

/// Returns the numbers from 0 to `count` - 1 as texts.
fn numbers(count: u64) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// Asserts that the origin received `count` requests, all of them different.
#[track_caller]
fn assert_each_once(origin: &Origin, count: usize) {
    let targets: Vec<String> = origin.log().into_iter().map(|request| request.target).collect();
    let unique: BTreeSet<&String> = targets.iter().collect();
    assert_eq!((targets.len(), unique.len()), (count, count), "{targets:?}");
}

/// The options for each method of pagination, and the path of a listing for it.
const KINDS: &[(&str, &[&str])] = &[
    ("/api/link?total=25&size=4", &["--paginate", "link"]),
    ("/api/next?total=25&size=4", &["--paginate-json", "$.next"]),
    ("/api/cursor?total=25&size=4", &["--paginate-json", "$.next_cursor", "--paginate-query", "cursor"]),
    ("/api/more?total=25&size=4", &["--paginate-json", "$['has_more']", "--paginate-query", "page"]),
    ("/api/page?total=25&size=4&missing=1", &["--paginate-query", "page"]),
    ("/api/offset?total=25&size=4&missing=1", &["--paginate-query", "offset:4"]),
];

#[test]
fn each_pagination_method_yields_all_items() {
    for (path, options) in KINDS {
        let origin = origin();
        let url = origin.url(path);
        let ran = run_haul([&[&*url][..], options].concat());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{path}");
        assert_eq!(items(&ran.text(), "id"), numbers(25), "{path}");
        assert_each_once(&origin, if path.contains("missing") { 8 } else { 7 });
    }
}

#[test]
fn pagination_follows_links_of_html_pages() {
    let origin = origin();
    let url = origin.url("/api/html?total=25&size=4");
    let names: String = (0..25).map(|number| format!("item {number}\n")).collect();
    let ran = run_haul(["--paginate", "a[rel~=next]@href", "--select", "a.title", &*url]);
    assert_eq!(ran.text(), names);
    assert_each_once(&origin, 7);
    // Without values the pages themselves are printed, also where the stage searches other
    // charsets.
    let text = run_haul(["--paginate", "a[rel~=next]@href", &url]).text();
    assert_eq!(text.matches("<!DOCTYPE html>").count(), 7);
    let both = [&*origin.url("/api/html?total=6&size=2"), "--paginate", "[rel~=next]@href", "--extract-bytes"];
    let text = run_haul([&both[..], &["--extract", "item [0-9]"]].concat()).text();
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[test]
fn pagination_resolves_html_links_as_browsers_do() {
    let html = "text/html";
    let site = SmallSite::of(&[
        ("/from", "redirect", "/dir/1"),
        ("/dir/1", html, "<p>1</p><a class=next href='#'>top</a><a class=next href=' 2?a&amp;b#x '>more</a>"),
        ("/dir/2?a&b", html, "<base href='/other/'><p>2</p><LI><A CLASS='x next' HREF=3></A>"),
        ("/other/3", html, "<p>3</p><a class=next href='javascript:void(0)'>no more</a>"),
    ]);
    let ran = run_haul(["--paginate", "a.next@href", "--select", "p", &*site.url("/from")]);
    assert_eq!((ran.code, &*ran.stderr, &*ran.stdout), (0, "", &b"1\n2\n3\n"[..]));
    let latin = SmallSite::start(|target| match target {
        "/" => Some(("text/html; charset=iso-8859-1", b"<a id=\xe9 href=2>".to_vec())),
        "/2" => Some(("text/html", b"\xff\xfe2\0".to_vec())),
        _ => None,
    });
    let ran = run_haul(["--paginate", "#\u{e9}@href", "-w", "%{url}\n", "-o", "/dev/null", &*latin.url("/")]);
    assert_eq!(ran.text(), format!("{}\n{}\n", latin.url("/"), latin.url("/2")));
}

#[test]
fn pagination_cursor_may_be_element_text() {
    let page = |number: u32, next: &str| {
        format!(
            "<?xml version='1.0'?><List><Key>{number}</Key><NextContinuationToken>{next}</NextContinuationToken></List>"
        )
    };
    let site = SmallSite::start(move |target| {
        let text = match target {
            "/b?list" => page(1, " a+b/= "),
            "/b?list&token=a%2Bb%2F%3D" => page(2, "c&amp;d"),
            "/b?list&token=c%26d" => page(3, ""),
            _ => return None,
        };
        Some(("application/xml", text.into_bytes()))
    });
    let args = ["--paginate", "NextContinuationToken", "--paginate-query", "token", "--select", "Key"];
    assert_eq!(run_haul([&args[..], &[&*site.url("/b?list")]].concat()).text(), "1\n2\n3\n");
}

#[test]
fn invalid_pagination_selectors_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["--paginate", "a.next"], "names no attribute with the URL of the next page; add it, as in a[rel=next]@href"),
        (&["--paginate", "Link"], "CSS selector \"Link\" names no attribute"),
        (&["--paginate", "a[rel=next@href"], "CSS selector \"a[rel=next@href\" cannot be used"),
        (&["--paginate", "a:last-child@href"], "a page is read once"),
        (&["--paginate", "a@href", "--paginate-json", "$.next"], "one place only"),
        (&["--paginate", "a@href", "-I"], "HEAD"),
    ];
    for (options, words) in cases {
        let ran = run_haul([options, &["http://127.0.0.1:1/"][..]].concat());
        assert!(ran.code == 2 && ran.stderr.contains(words), "{options:?}: {} {}", ran.code, ran.stderr);
    }
    let peer = H1Peer::start(vec![reply_steps("200 OK", "<a rel=next href=http://127.0.0.1:1/2>")]);
    let ran = run_haul(["--paginate", "a[rel=next]@href", &peer.url("/1")]);
    assert!(ran.failed(3).ends_with("; --paginate-any allows that"), "{}", ran.stderr);
}

#[test]
fn empty_page_ends_paginate_query() {
    let origin = origin();
    let text = run_haul(["--paginate-query", "page", &origin.url("/api/page?total=8&size=4")]).text();
    assert_eq!(items(&text, "id"), numbers(8));
    assert_each_once(&origin, 3);
    let text = run_haul(["--paginate-query", "page", &origin.url("/api/page?total=8&size=4&page=2")]).text();
    assert_eq!(items(&text, "id"), ["4", "5", "6", "7"]);
    // The pages are JSON objects that are never empty, but a page without values is.
    let more = origin.url("/api/more?total=8&size=4");
    let ran = run_haul(["--paginate-query", "page", &more, "--extract", "\"id\":([0-9]+)"]).text();
    assert_eq!(ran, "0\n1\n2\n3\n4\n5\n6\n7\n");
}

#[test]
fn paginated_listings_are_printed_in_input_order() {
    let origin = Origin::builder().threads(2).start().unwrap();
    let urls: Vec<String> = (0..40)
        .map(|number| {
            let slow = if number % 7 == 0 { "/delay/20" } else { "" };
            origin.url(&format!("{slow}/api/link?total={}&size=3&listing={number}", number * 5 % 32))
        })
        .collect();
    let expected: Vec<String> = (0..40).flat_map(|number| numbers(number * 5 % 32)).collect();
    for memory in ["64M", "1K"] {
        let text =
            run_haul(urls.iter().map(String::as_str).chain(["--paginate", "link", "--max-memory", memory])).text();
        assert_eq!(items(&text, "id"), expected, "{memory}");
    }
    let text = run_haul(urls.iter().map(String::as_str).chain(["--paginate", "link", "--unordered"])).text();
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(items(&text, "id")), sorted(expected));
}

#[test]
fn pagination_retries_rate_limits_with_credentials() {
    let origin = origin();
    let url = origin.url("/private/limited/0/api/link?total=9&size=2");
    let ran = run_haul(["--paginate", "link", "-u", "me:secret", &url]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(items(&ran.text(), "id"), numbers(9));
    let ran = run_haul(["--paginate", "link", &url]);
    assert_eq!((ran.failed(22).contains("401"), &*ran.stdout), (true, &b""[..]));
}

#[test]
fn failed_page_ends_only_its_listing() {
    let origin = origin();
    let broken = H1Peer::start(vec![reply_steps("200 OK\r\nLink: </2>; rel=next", "[]"), reply_steps("500 No", "")]);
    let (bad, good) = (broken.url("/1"), origin.url("/api/link?total=6&size=2"));
    let ran = run_haul(["--retry", "0", "--paginate", "link", &*bad, &good]);
    assert!(ran.failed(22).contains("/2: the server answered 500"), "{}", ran.stderr);
    assert_eq!(items(&String::from_utf8(ran.stdout).unwrap(), "id"), numbers(6));
    // The first page of a counted listing must exist.
    let ran = run_haul(["--paginate-query", "page", &origin.url("/status/404")]);
    assert!(ran.failed(22).contains("404"), "{}", ran.stderr);
}

#[test]
fn pages_of_a_listing_have_separate_files() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let url = origin.url("/api/page?size=[2-3]&total=6&missing=1");
    run_in(dir.path(), HAUL, &["--paginate-query", "page", "-o", "list#1-{page}.json", &url]).ok();
    assert_eq!(names(dir.path()), ["list2-1.json", "list2-2.json", "list2-3.json", "list3-1.json", "list3-2.json"]);
    let text = fs::read_to_string(dir.path().join("list2-3.json")).unwrap();
    assert_eq!(items(&text, "id"), ["4", "5"]);

    let url = origin.url("/api/link?total=6&size=2");
    run_in(dir.path(), HAUL, &["--paginate", "link", "-o", "all.json", &url]).ok();
    let text = fs::read_to_string(dir.path().join("all.json")).unwrap();
    assert_eq!(items(&text, "id"), numbers(6));

    // -O leaves the query out, so the second page has the name of the first.
    let ran = run_in(dir.path(), HAUL, &["--paginate", "link", "-O", &url]);
    assert!(ran.failed(23).contains("page=2"), "{}", ran.stderr);
    let ran = run_in(dir.path(), HAUL, &["--paginate", "link", "-o", "a", "-o", "b", &url, &url]);
    assert!(ran.stderr.contains("{page}") && ran.code == 2, "{}", ran.stderr);
}

#[test]
fn later_stages_can_use_pagination() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let index = origin.url("/api/html?total=5&size=2");
    let template = origin.url("/api/link?total={}&size=2");
    let args = ["--paginate-query", "page", "--extract", "item ([0-9])", "--then", &template, "--paginate", "link"];
    let expected: Vec<String> = (0..5).flat_map(numbers).collect();
    let ran = run_haul([&[&*index][..], &args].concat());
    assert_eq!(items(&ran.text(), "id"), expected);
    let files = [&[&*index][..], &args, &["-o", "{}-{page}.json"]].concat();
    run_in(dir.path(), HAUL, &files).ok();
    let files = ["0-1", "1-1", "2-1", "3-1", "3-2", "4-1", "4-2"].map(|name| format!("{name}.json"));
    assert_eq!(names(dir.path()), files);
}

#[test]
fn pagination_loop_ends_with_a_warning() {
    let origin = origin();
    let ran = run_haul(["--paginate", "link", &origin.url("/api/loop?total=6&size=2")]);
    let line = ran.failed(0).to_owned();
    assert!(line.starts_with("Warning: ") && line.contains("page=2 was already fetched"), "{line}");
    assert_eq!(items(&String::from_utf8(ran.stdout).unwrap(), "id"), numbers(6));
    assert_each_once(&origin, 3);
    // A server that ignores the parameter has the same page again and again.
    let ran = run_haul(["--paginate-query", "page", &origin.url("/small")]);
    assert!(ran.failed(0).contains("/small?page=2: the page has the same content"), "{}", ran.stderr);
    assert_eq!(ran.stdout, b"small\nsmall\n");
}

#[test]
fn next_page_on_other_server_requires_paginate_any() {
    let other = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n2\n");
    let head = format!("200 OK\r\nLink: <{}>; rel=\"next\"", other.url("/2"));
    let first = || H1Peer::start(vec![reply_steps(&head, "1\n")]);
    let args = ["--paginate", "link", "-u", "me:secret", "-H", "X-Api-Key: k", "-H", "X-Plain: p"];
    let peer = first();
    let ran = run_haul([&[&*peer.url("/1")][..], &args].concat());
    let line = ran.failed(3).to_owned();
    assert!(line.contains(&other.url("/2")) && line.ends_with("; --paginate-any allows that"), "{line}");
    assert_eq!((&*ran.stdout, other.connections()), (&b"1\n"[..], 0));

    let peer = first();
    let ran = run_haul([&[&*peer.url("/1")][..], &args, &["--paginate-any"]].concat());
    assert_eq!(ran.text(), "1\n2\n");
    let (here, there) = (received(&peer, 0), received(&other, 0));
    assert!(here.contains("Authorization: Basic") && here.contains("X-Api-Key"), "{here}");
    assert!(!there.contains("Authorization") && !there.contains("X-Api-Key") && there.contains("X-Plain"), "{there}");
}

#[test]
fn next_page_must_have_an_allowed_scheme() {
    for bad in ["file:///etc/passwd", "ftp://h/", "javascript:alert(1)", "http://h:99999/"] {
        let peer = H1Peer::start(vec![reply_steps(&format!("200 OK\r\nLink: <{bad}>; rel=next"), "1\n")]);
        let ran = run_haul(["--paginate", "link", "--paginate-any", &peer.url("/")]);
        assert!([1, 3].contains(&ran.code) && ran.stderr.contains("the next page is a"), "{bad}: {}", ran.stderr);
        assert_eq!(ran.stdout, b"1\n");
    }
    let origin = origin();
    let ran = run_haul(["--proto", "=https", "--paginate", "link", &origin.url("/api/link")]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

#[test]
fn next_page_link_is_relative_to_redirect_target() {
    let origin = origin();
    let to = origin.url("/redirect/302?to=/api/link?total=4&size=2");
    assert_eq!(items(&run_haul(["--paginate", "link", &to]).text(), "id"), numbers(4));
}

#[test]
fn paginate_max_limits_the_number_of_pages() {
    let origin = origin();
    let url = origin.url("/api/link?total=30&size=2");
    let text = run_haul(["--paginate", "link", "--paginate-max", "3", &url]).text();
    assert_eq!(items(&text, "id"), numbers(6));
    let many = origin.url("/api/link?total=1001&size=1");
    let ran = run_haul(["--paginate", "link", &many]);
    let line = ran.failed(47).to_owned();
    assert!(line.contains("page=1001") && line.ends_with("; --paginate-max N sets another limit"), "{line}");
    assert_eq!(items(&String::from_utf8(ran.stdout).unwrap(), "id"), numbers(1000));
    let text = run_haul(["--paginate", "link", "--paginate-max", "1001", &many]).text();
    assert_eq!(items(&text, "id"), numbers(1001));
}

#[test]
fn invalid_values_for_next_page_are_errors() {
    let page = |body: &str| H1Peer::start(vec![reply_steps("200 OK", body)]);
    let cases: &[(&str, &[&str], i32, &str)] = &[
        ("<html>", &["--paginate-json", "$.next"], 61, "the page is not JSON"),
        ("{\"next\": 2}", &["--paginate-json", "$.next"], 61, "a number and no URL; --paginate-query NAME"),
        ("{\"next\": {\"href\": 1}}", &["--paginate-json", "$.next"], 61, "an object"),
        ("{\"next\": [1]}", &["--paginate-json", "$.next", "--paginate-query", "c"], 61, "an array"),
        ("{\"next\": 1}{}", &["--paginate-json", "$.next"], 61, "the page is not JSON"),
    ];
    for (body, options, code, text) in cases {
        let peer = page(body);
        let ran = run_haul([&[&*peer.url("/")][..], options].concat());
        assert!(ran.failed(*code).contains(text), "{body}: {}", ran.stderr);
        assert_eq!(ran.stdout, body.as_bytes());
    }
    for end in ["", " ", "{}", "[]", "null", "{\"next\": null}", "{\"next\": \"\"}", "{\"next\": false}", "1"] {
        let peer = page(end);
        assert_eq!(run_haul(["--paginate-json", "$.next", &peer.url("/")]).text(), end);
    }
    let ran = run_haul(["--paginate-query", "page", "http://127.0.0.1:1/?page=x"]);
    assert!(ran.failed(3).contains("the parameter page in the query is no number"), "{}", ran.stderr);
}

#[test]
fn options_that_contradict_pagination_are_refused() {
    let cases: &[&[&str]] = &[
        &["--paginate", ""],
        &["--paginate-json", "next"],
        &["--paginate-json", "$["],
        &["--paginate-query", ":1"],
        &["--paginate-query", "page:0"],
        &["--paginate-any"],
        &["--paginate-max", "3"],
        &["--paginate", "link", "--paginate-max", "0"],
        &["--paginate", "link", "--paginate-query", "page"],
        &["--paginate", "link", "-T", "x"],
        &["--paginate", "link", "-C", "5"],
        &["--paginate", "link", "-r", "0-4"],
        &["--paginate", "link", "--skip-existing"],
        &["--paginate", "link", "--checksum", "x"],
        &["--paginate", "link", "--etag-save", "x"],
        &["--paginate-query", "page", "-I"],
    ];
    for options in cases {
        let ran = run_haul([options, &["http://127.0.0.1:1/"][..]].concat());
        assert!(ran.code == 2 && !ran.stderr.is_empty(), "{options:?}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn heads_and_write_out_are_printed_per_page() {
    let origin = origin();
    let url = origin.url("/api/link?total=4&size=2");
    let text = run_haul(["-I", "--paginate", "link", "-w", "%{urlnum} %{url}\n", &url]).text();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("0 ")).collect();
    assert_eq!(lines, [format!("0 {url}"), format!("0 {url}&page=2")]);
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    let one_by_one = run_haul(["--no-parallel", "--paginate", "link", &url, &url]).text();
    assert_eq!(items(&one_by_one, "id"), [numbers(4), numbers(4)].concat());
}

#[test]
fn listings_of_csv_rows_are_saved_per_page() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("t.csv"), "name,total\nb/,5\na,3\n").unwrap();
    let list = ["--csv-in", "--input-file", "t.csv", "--paginate", "link"];
    let url = origin.url("/api/link?total={total}&size=2");
    run_in(dir.path(), HAUL, &[&list[..], &["-o", "{name}-{page}.json", &url]].concat()).ok();
    let files = ["a-1.json", "a-2.json", "b_-1.json", "b_-2.json", "b_-3.json", "t.csv"];
    assert_eq!(names(dir.path()), files);
    let text: String = files[2..5].iter().map(|name| fs::read_to_string(dir.path().join(name)).unwrap()).collect();
    assert_eq!(items(&text, "id"), numbers(5));
    // Without files, the pages come in the order of the rows.
    let text = run_in(dir.path(), HAUL, &[&list[..], &[&*url]].concat()).text();
    assert_eq!(items(&text, "id"), [numbers(5), numbers(3)].concat());
    let ran = run_in(dir.path(), HAUL, &[&list[..], &["-o", "{name}.json", &url]].concat());
    assert!(ran.code == 2 && ran.stderr.contains("{page}"), "{}", ran.stderr);
}

#[test]
fn listings_of_jsonl_records_are_saved_per_page() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let url = origin.url("/api/link?size=2&total=");
    let lines = [
        format!(r#"{{"url":"{url}5","output":"five/{{page}}.json"}}"#),
        format!(r#"{{"url":"{url}3"}}"#),
        format!(r#"{{"url":"{url}4","output":"four.json"}}"#),
    ];
    fs::write(dir.path().join("l.jsonl"), lines.join("\n")).unwrap();
    let args = ["--jsonl-in", "--input-file", "l.jsonl", "--paginate", "link", "--create-dirs"];
    let ran = run_in(dir.path(), HAUL, &args);
    let message = "l.jsonl, line 3: key \"output\": the pages of a listing need a name each: write {page} into it";
    assert!(ran.failed(26).contains(message), "{}", ran.stderr);
    assert_eq!(items(&String::from_utf8(ran.stdout).unwrap(), "id"), numbers(3));
    assert_eq!(names(&dir.path().join("five")), ["1.json", "2.json", "3.json"]);
    assert_eq!(names(dir.path()), ["five", "l.jsonl"]);
}

#[test]
fn next_pages_of_records_must_have_allowed_protocols() {
    let reply = reply_steps("200 OK\r\nLink: <https://127.0.0.1:1/2>; rel=next", "1\n");
    let (peer, dir) = (H1Peer::start(vec![reply]), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("l.jsonl"), format!(r#"{{"url":"{}"}}"#, peer.url("/"))).unwrap();
    let args = ["--jsonl-in", "--input-file", "l.jsonl", "--paginate", "link", "--paginate-any", "--proto", "=http"];
    let ran = run_in(dir.path(), HAUL, &args);
    assert!(ran.failed(1).contains("https is not among the protocols"), "{}", ran.stderr);
    assert_eq!(ran.stdout, b"1\n");
}
