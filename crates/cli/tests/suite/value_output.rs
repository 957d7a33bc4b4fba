//! Tests of the formats in which extracted values are printed: by name in the records of `--jsonl`,
//! as rows of `--csv`, and after their URLs (`--with-url`).

use crate::common;

use std::fs;

use common::small_site::SmallSite;
use common::{list, run_haul};
use serde_json::json;
use testkit::h1_peer::{H1Peer, ScriptStep};

use crate::jsonl_output::records;

/// Starts a server that responds with these texts, one on each connection, in order.
fn pages(texts: &[&str]) -> H1Peer {
    let script = |text: &&str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
        vec![ScriptStep::ReadHead, ScriptStep::send(head + text)]
    };
    H1Peer::start(texts.iter().map(script).collect())
}

const FIELDS: [&str; 4] = ["--extract", "name=<b>([^<]+)", "--extract", "price=([0-9.]+) EUR"];

#[test]
fn named_values_are_objects_in_records() {
    let page = common::page("<b>x</b> 1 EUR <b>y</b> 2 EUR");
    let urls = [page.url("/1"), page.url("/2")];
    let args = ["-sS", "--jsonl"].iter().chain(&FIELDS).copied().chain(urls.iter().map(String::as_str));
    let lines = records(&run_haul(args).ok());
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["values"] == json!({"name": ["x", "y"], "price": ["1", "2"]})), "{lines:?}");
    let none = records(&run_haul(["-sS", "--jsonl", "--extract", "a=nothing", &urls[0]]).ok());
    assert_eq!(none[0]["values"], json!({"a": []}));
}

#[test]
fn name_prefix_without_records_belongs_to_expression() {
    let page = common::page("id=7 8");
    let url = page.url("/");
    assert_eq!(run_haul(["-s", "--extract", "id=([0-9]+)", &url]).text(), "7\n");
    let named = records(&run_haul(["-s", "--jsonl", "--extract", "id=([0-9]+)", &url]).ok());
    assert_eq!(named[0]["values"], json!({"id": ["7", "8"]}));
    let literal = records(&run_haul(["-s", "--jsonl", "--extract", "(?:id)=([0-9]+)", &url]).ok());
    assert_eq!(literal[0]["values"], json!(["7"]));
    for (second, word) in [("x", "(?:id)="), ("id=x", "twice")] {
        let output = run_haul(["--jsonl", "--extract", "id=a", "--extract", second, &url]);
        assert!(output.code == 2 && output.stderr.contains(word), "{}", output.stderr);
    }
}

#[test]
fn csv_has_a_header_and_rows() {
    let page = common::page("<b>a, \"b\"</b> 1 EUR <b>y</b> 2 EUR");
    let urls = [page.url("/1"), page.url("/2")];
    let run = |args: &[&str]| {
        let urls = urls.iter().map(String::as_str);
        run_haul(["-sS", "--csv"].iter().chain(&FIELDS).chain(args).copied().chain(urls)).text()
    };
    let rows = "\"a, \"\"b\"\"\",1\ny,2\n";
    assert_eq!(run(&[]), format!("name,price\n{rows}{rows}"));
    assert_eq!(run(&["--unique"]), format!("name,price\n{rows}"));
    assert_eq!(run(&["--sort"]), format!("name,price\n{}", "\"a, \"\"b\"\"\",1\n".repeat(2) + &"y,2\n".repeat(2)));
    let with_url = run(&["--with-url"]);
    assert!(with_url.starts_with(&format!("url,name,price\n{},\"a, \"\"b\"\"\",1\n{0},y,2\n{},", urls[0], urls[1])));
    let unnamed = run_haul(["-sS", "--csv", "--extract", "([0-9]) EUR", &urls[0]]).text();
    assert_eq!(unnamed, "value\n1\n2\n");
}

#[test]
fn pages_with_unequal_csv_columns_fail_alone() {
    let server = pages(&["<b>x</b> 1 EUR", "<b>x</b> <b>y</b> 1 EUR", "<b>z</b>", "nothing"]);
    let urls: Vec<String> = (0..4).map(|n| server.url(&format!("/{n}"))).collect();
    let args = ["--csv", "--no-parallel"].iter().chain(&FIELDS).copied().chain(urls.iter().map(String::as_str));
    let output = run_haul(args);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "name,price\nx,1\nz,\n");
    let line = output.failed(23);
    assert!(
        line.contains(&urls[1]) && line.contains("price has 1 and name has 2") && line.contains("--jsonl"),
        "{line}"
    );
}

#[test]
fn csv_failures_leave_only_the_header() {
    let output = run_haul(["-s", "--csv", "--extract", "a=b", "--retry", "0", &format!("{}/", common::REFUSED)]);
    assert_eq!((output.code, &*output.stdout), (7, &b"a\n"[..]));
}

#[test]
fn csv_is_written_to_the_output_file() {
    let page = common::page("<b>x</b> 1 EUR");
    let dir = tempfile::tempdir().unwrap();
    let urls = list(dir.path(), "list", [page.url("/1"), page.url("/2")]);
    let out = dir.path().join("out.csv");
    let args = ["-sS", "--csv", "-o", out.to_str().unwrap(), "--input-file", urls.to_str().unwrap()];
    run_haul(args.iter().chain(&FIELDS)).ok();
    assert_eq!(fs::read_to_string(out).unwrap(), "name,price\nx,1\nx,1\n");
}

#[test]
fn with_url_prints_the_url_before_each_value() {
    let page = common::page("<1> <2>");
    let (first, second) = (page.url("/a"), page.url("/b"));
    let run = |args: &[&str]| run_haul(["-s", "--with-url", "--extract", "<([0-9])>"].iter().chain(args)).text();
    let lines = |url: &str| format!("{url}\t1\n{url}\t2\n");
    assert_eq!(run(&[&first, &second]), lines(&first) + &lines(&second));
    assert_eq!(run(&["--unique", "--sort", &first, &first]), lines(&first));
    let secret = first.replace("http://", "http://me:word@");
    assert!(!run(&[&secret]).contains("word"));
    let then = page.url("/p{}");
    let pages =
        run_haul(["-s", &first, "--extract", "<([0-9])>", "--then", &then, "--extract", "<([0-9])>", "--with-url"]);
    assert_eq!(pages.text(), lines(&page.url("/p1")) + &lines(&page.url("/p2")));
}

#[test]
fn depth_with_records_is_refused() {
    for option in ["--jsonl", "--csv", "--with-url"] {
        let output = run_haul([option, "--depth", "2", "--select", "a@href", "http://127.0.0.1/"]);
        assert!(output.code == 2 && output.stderr.contains(option), "{}", output.stderr);
    }
}

#[test]
fn csv_and_with_url_require_extracted_values() {
    for option in ["--csv", "--with-url"] {
        let output = run_haul([option, "http://127.0.0.1/"]);
        assert!(output.code == 2 && output.stderr.contains(option), "{}", output.stderr);
        let output = run_haul(["http://127.0.0.1/", "--extract", "x", "--then", "http://127.0.0.1/{}", option]);
        assert!(output.code == 2 && output.stderr.contains(option), "{}", output.stderr);
    }
}

#[test]
fn name_prefix_names_selected_values() {
    let site = SmallSite::of(&[
        ("/1", "text/html", "<h1>Chair, <b>red</b></h1><a class=price href='/p?id=7'>10.50</a>"),
        ("/2", "text/html", "<h1>Table</h1><a class=price href='/p?id=8'>99</a>"),
        ("/json", "application/json", r#"{"a": [1, "x"], "b": {"c": null}}"#),
    ]);
    let urls = [site.url("/1"), site.url("/2")];
    let css = ["--select", "name=h1", "--select", "link=a[href]@href"];
    let printed = |args: &[&str], urls: &[String]| {
        run_haul(["-s"].iter().chain(args).copied().chain(urls.iter().map(String::as_str)))
    };
    let lines = records(&printed(&[&["--jsonl"], &css[..]].concat(), &urls).ok());
    assert_eq!(lines[0]["values"], json!({"name": ["Chair, red"], "link": [site.url("/p?id=7")]}));
    let csv = printed(&[&["--csv", "--with-url"], &css[..]].concat(), &urls).text();
    let row = |url: &str, name: &str, id: u8| format!("{url},{name},{}\n", site.url(&format!("/p?id={id}")));
    let rows = [row(&urls[0], "\"Chair, red\"", 7), row(&urls[1], "Table", 8)];
    assert_eq!(csv, format!("url,name,link\n{}", rows.concat()));
    // The matches in a selected value have the name of its selector.
    let digits = ["--csv", "--select", "price=.price", "--select", "id=.price@href", "--extract", "[0-9]+$"];
    assert_eq!(printed(&digits, &urls).text(), "price,id\n50,7\n99,8\n");
    let paths = ["--jsonl", "--select-json", "all=$.a[*]", "--select-json", "none=$.d", "--select-json", "b=$.b"];
    let lines = records(&printed(&paths, &[site.url("/json")]).ok());
    assert_eq!(lines[0]["values"], json!({"all": ["1", "x"], "none": [], "b": ["{\"c\":null}"]}));
    // Elsewhere a name is no part of a selector.
    let ran = run_haul(["--select", "name=h1", &urls[0]]);
    assert!(ran.code == 2 && ran.stderr.contains("CSS selector \"name=h1\""), "{} {}", ran.code, ran.stderr);
    let ran = run_haul(["--jsonl", "--select", "name=h1", "--select", "p", &urls[0]]);
    assert!(ran.code == 2 && ran.stderr.contains("names"), "{} {}", ran.code, ran.stderr);
}

#[test]
fn named_values_of_large_pages_are_valid_json() {
    let text: String = ["name", "price"]
        .iter()
        .flat_map(|name| (0..30_000).map(move |number| format!("<{name}>{name} {number}\n")))
        .collect();
    let page = common::page(&text);
    let args = ["-sS", "--jsonl", "--extract", "name=<name>([^\n]+)", "--extract", "price=<price>([^\n]+)"];
    let lines = records(&run_haul(args.into_iter().chain([&*page.url("/")])).ok());
    for name in ["name", "price"] {
        let values = lines[0]["values"][name].as_array().unwrap();
        assert_eq!((values.len(), &values[29_999]), (30_000, &json!(format!("{name} 29999"))));
    }
}

#[test]
fn csv_keeps_rows_of_empty_values() {
    let html = "<li><b></b><i title='1'>x</i></li><li><b>b</b><i title=''> </i></li><li><b>c</b><i title=3>z</i></li>";
    let page = common::page(html);
    let url = page.url("/");
    let run = |args: &[&str]| run_haul(["-sS"].iter().chain(args).copied().chain([&*url])).text();
    for fields in [
        ["--select", "name=b", "--select", "price=i"],
        ["--extract", "name=<b>(.*?)</b>", "--extract", "price=<i[^>]*>\\s*(.*?)</i>"],
    ] {
        let csv: Vec<&str> = ["--csv"].into_iter().chain(fields).collect();
        assert_eq!(run(&csv), "name,price\n,x\nb,\nc,z\n", "{fields:?}");
        let jsonl: Vec<&str> = ["--jsonl"].into_iter().chain(fields).collect();
        let lines = records(run(&jsonl).as_bytes());
        assert_eq!(lines[0]["values"], json!({"name": ["", "b", "c"], "price": ["x", "", "z"]}), "{fields:?}");
    }
    assert_eq!(run(&["--csv", "--select", "a=b", "--select", "b=i@title"]), "a,b\n,1\nb,\nc,3\n");
    assert_eq!(run(&["--csv", "--select", "b"]), "value\n\"\"\nb\nc\n");
    assert_eq!(run(&["--select", "b"]), "b\nc\n", "lines of text leave them out");
    let items = json!({"items": [{"n": "", "p": "1"}, {"n": "b", "p": ""}]}).to_string();
    let page = common::page(&items);
    let args = ["-sS", "--csv", "--select-json", "name=$.items[*].n", "--select-json", "price=$.items[*].p"];
    assert_eq!(run_haul(args.into_iter().chain([&*page.url("/")])).text(), "name,price\n,1\nb,\n");
}

#[test]
fn csv_rows_with_long_urls_need_little_memory() {
    let text: String = (0..20_000).map(|number| format!("A{number} ")).collect();
    let page = common::page(&text);
    let url = page.url(&format!("/?{}", "u".repeat(6_000)));
    let peak =
        common::peak_memory::peak_memory(&["--csv", "--with-url", "--extract", "A([0-9]+)", &url], |mut from| {
            assert!(std::io::copy(&mut from, &mut std::io::sink()).unwrap() > 110_000_000);
        });
    assert!(peak < 96 << 10, "{peak} KiB");
    let ran = run_haul(["--csv", "--with-url", "--sort", "--extract", "A([0-9]+)", &url]);
    assert!(ran.failed(63).contains("leave --with-url out"), "{}", ran.stderr);
}
