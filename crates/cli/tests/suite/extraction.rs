//! Tests of `--extract`, `--then`, `--unique` and `--sort`: pages with known values, output files
//! of stages, and pages with malicious values.

use crate::common;

use std::collections::BTreeSet;
use std::fs;

use common::{HAUL, answering, page, run_haul, run_in};
use serde_json::Value;
use testkit::content_coding::ContentCoding;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

const NAMES: &str = "AS[0-9]{1,9}";
const BLOCKS: &str = "[0-9.]{7,15}/[0-9]{1,2}";

fn origin(pages: usize) -> Origin {
    Origin::builder().site(GeneratedSite::scaled(3, pages).cached()).start().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn two_stages_yield_known_values_fetching_pages_once() {
    let origin = origin(200);
    let (index, template) = (origin.url("/[1-3]"), origin.url("/{}"));
    let ran =
        run_haul([&index, "--extract", NAMES, "--then", &template, "--extract", BLOCKS, "--unique", "--sort"]).ok();
    assert!(ran == origin.site().known_answer().text, "{} bytes", ran.len());
    for path in origin.site().as_paths().iter().chain(&origin.site().index_paths()) {
        assert_eq!(origin.hits(path), 1, "{path}");
    }
}

#[test]
fn small_memory_limit_changes_no_output() {
    let origin = origin(200);
    let (index, template) = (origin.url("/[1-3]"), origin.url("/{}"));
    for end in [&["--unique", "--sort"][..], &["--unique"], &["--sort"], &[]] {
        let mut args = vec![&*index, "--extract", NAMES, "--then", &template, "--extract", BLOCKS];
        args.extend(end);
        let plenty = run_haul(&args).ok();
        args.extend(["--max-memory", "64K"]);
        let little = run_haul(&args).ok();
        assert!(plenty == little, "{end:?}: {} and {} bytes", plenty.len(), little.len());
    }
}

#[test]
fn unique_keeps_first_occurrences_in_input_order() {
    let origin = origin(120);
    let (index, template) = (origin.url("/[1-3]"), origin.url("/{}"));
    let mut args = vec![&*index, "--extract", NAMES, "--then", &template, "--extract", BLOCKS];
    let all = run_haul(&args).text();
    let mut seen = BTreeSet::new();
    let first: String = all.lines().filter(|line| seen.insert(*line)).map(|line| format!("{line}\n")).collect();
    assert!(first.len() < all.len(), "something repeats");
    args.push("--unique");
    for _ in 0..5 {
        assert!(run_haul(&args).text() == first);
    }
    // The feed of the second stage is in the order of the indexes: the pages in that order have
    // this very output.
    let names = run_haul([&index, "--extract", NAMES, "--unique"]).text();
    let mut pages = vec!["--extract".to_owned(), BLOCKS.to_owned()];
    pages.extend(names.lines().map(|name| origin.url(&format!("/{name}"))));
    assert!(run_haul(&pages).text() == all);
}

#[test]
fn capture_group_values_feed_the_third_stage() {
    let origin = origin(40);
    let (index, second, third) = (origin.url("/[1-3]"), origin.url("/{}"), origin.url("/small/{}"));
    let group = "[0-9.]{7,15}/([0-9]{1,2})";
    let mut args = vec![&*index, "--extract", NAMES, "--then", &second, "--extract", group, "--then", &third];
    let answer = origin.site().known_answer().text;
    let lengths: BTreeSet<&str> = text(&answer).lines().map(|block| block.split_once('/').unwrap().1).collect();
    let bodies: BTreeSet<String> = lengths.iter().map(|length| format!("small {length}")).collect();
    let printed = run_haul(&args).text();
    assert_eq!(printed.lines().count(), lengths.len(), "each page once");
    assert_eq!(printed.lines().map(str::to_owned).collect::<BTreeSet<_>>(), bodies);
    for length in &lengths {
        assert_eq!(origin.hits(&format!("/small/{length}")), 1, "{length}");
    }
    args.extend(["--extract", "small ([0-9]+)", "--sort"]);
    let sorted: String = lengths.iter().map(|length| format!("{length}\n")).collect();
    assert_eq!(run_haul(&args).text(), sorted);
}

#[test]
fn extracted_values_go_to_a_file() {
    let origin = origin(20);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("answer");
    let args = [&*origin.url("/[1-3]"), "--extract", NAMES, "--then", &origin.url("/{}"), "--extract", BLOCKS];
    let ran = run_haul(args.into_iter().chain(["--unique", "--sort", "-o", file.to_str().unwrap()]));
    assert_eq!(ran.ok(), b"");
    assert!(fs::read(&file).unwrap() == origin.site().known_answer().text);
    assert_eq!(common::names(dir.path()), ["answer"]);
}

#[test]
fn template_percent_encodes_values_but_not_slashes() {
    let origin = origin(1);
    let pages = page("[a b] [c/d?e#f] [%41&\u{e9}]");
    run_haul([&*pages.url("/"), "--extract", r"\[([^\]]*)\]", "--then", &origin.url("/echo/x{}")]).ok();
    let targets: Vec<String> = origin.log().into_iter().map(|request| request.target).collect();
    let targets: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
    assert_eq!(targets, BTreeSet::from(["/echo/xa%20b", "/echo/xc/d%3Fe%23f", "/echo/x%2541%26%C3%A9"]));
}

#[test]
fn invalid_expressions_and_templates_are_refused() {
    let origin = origin(1);
    let url = origin.url("/1");
    let ran = run_haul([&url, "--extract", "("]);
    assert!(ran.failed(2).contains("regular expression"), "{}", ran.stderr);
    assert!(ran.stderr.contains("unclosed group"), "{}", ran.stderr);
    for template in ["http://h/nothing", "", "http://h/{x}", "file:///{}"] {
        let ran = run_haul([&url, "--extract", "a", "--then", template]);
        assert_ne!(ran.code, 0, "{template}");
        if !template.starts_with("file") {
            assert_eq!(ran.code, 2, "{template}: {}", ran.stderr);
        }
    }
    for args in [&["--then", "http://h/{}"][..], &["--unique"], &["--sort"]] {
        let ran = run_haul([&*url].into_iter().chain(args.iter().copied()));
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
    }
    assert_eq!(origin.requests(), 0, "found before anything is fetched");
}

#[test]
fn extracted_urls_of_other_schemes_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "hunter2\n").unwrap();
    let origin = origin(1);
    let links = page(&format!(
        "<file://{}> <FILE:{0}> <ftp://127.0.0.1/> <javascript:alert(1)> <{}> <data:,hunter2>",
        secret.display(),
        origin.url("/small")
    ));
    let ran = run_haul([&*links.url("/"), "--extract", "<([^>]+)>", "--then", "{}"]);
    assert_eq!(text(&ran.ok()), "small\n");
    assert_eq!((origin.requests(), links.connections()), (1, 1));
}

#[test]
fn extracted_origin_gets_no_secrets() {
    let (first, other) = (origin(1), origin(1));
    // The echo of the first page names both origins.
    let links = format!("/echo?({})({})", other.url("/echo/other"), first.url("/echo/first"));
    let index = first.url(&links);
    let secrets = ["-u", "user:hunter2", "-b", "sid=hunter2", "-H", "X-Api-Key: hunter2"];
    let then = ["--extract", r"\((http[^)]+)\)", "--then", "{}"];
    let args = [&["-g", &index][..], &secrets, &then, &secrets].concat();
    run_haul(args).ok();
    let secret = |request: &testkit::origin::LoggedRequest| {
        ["authorization", "cookie", "x-api-key"].iter().filter(|name| request.header(name).is_some()).count()
    };
    let log = other.log();
    assert_eq!(log.iter().map(|request| (&*request.target, secret(request))).collect::<Vec<_>>(), [("/echo/other", 0)]);
    let log = first.log();
    assert_eq!(log.len(), 2);
    assert!(log.iter().all(|request| secret(request) == 3), "{log:?}");
}

#[test]
fn stage_secrets_are_not_sent_by_next_stage() {
    let origin = origin(3);
    run_haul([&*origin.url("/1"), "-u", "user:hunter2", "--extract", NAMES, "--then", &origin.url("/{}")]).ok();
    for request in origin.log() {
        assert_eq!(request.header("authorization").is_some(), request.target == "/1", "{}", request.target);
    }
}

#[test]
fn template_origin_gets_the_secrets_of_its_stage() {
    let (first, second) = (origin(3), origin(3));
    let args = [&*first.url("/[1-3]"), "--extract", NAMES, "--then", &second.url("/{}"), "-u", "user:hunter2"];
    run_haul(args).ok();
    assert!(first.log().iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(second.requests(), 3);
    assert!(second.log().iter().all(|request| request.header("authorization").is_some()));
}

/// With `--extract`, haul asks for compressed pages by itself. A response in an unknown content
/// coding is an error only if the user gives `--compressed`.
#[test]
fn unknown_content_coding_is_ignored_unless_requested() {
    for coding in ["UTF-8", "binary", "8bit", "text/html", "aws-chunked", "identity", "none", ""] {
        let body = "id=12345";
        let reply =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let peer = answering(&reply);
        assert_eq!(text(&run_haul([&*peer.url("/"), "--extract", "id=([0-9]+)"]).ok()), "12345\n", "{coding}");
        assert_eq!(text(&run_haul([&peer.url("/")]).ok()), body, "{coding}");
        if ["UTF-8", "binary"].contains(&coding) {
            run_haul(["--compressed", &peer.url("/")]).failed(61);
        }
    }
}

/// Servers add names such as `aws-chunked` and `UTF-8` to a real coding. The page is decoded, since
/// a search of its compressed bytes would find nothing and succeed.
#[test]
fn meaningless_name_beside_a_content_coding_is_ignored() {
    let coded = ContentCoding::Gzip.encode(b"id=12345");
    for coding in ["aws-chunked, gzip", "gzip,aws-chunked", "UTF-8,gzip", "binary, gzip, identity", "8bit,gzip"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", coded.len());
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Send([head.as_bytes(), &coded].concat())]);
        assert_eq!(text(&run_haul([&*peer.url("/"), "--extract", "id=([0-9]+)"]).ok()), "12345\n", "{coding}");
        run_haul(["--compressed", &peer.url("/")]).failed(61);
    }
}

/// Starts two servers. The first has a page that contains the values `a/b` and `c`, and the second
/// has the pages that these values name.
fn index_and_pages() -> (H1Peer, Origin) {
    (page("<a/b> <c> <c>"), origin(1))
}

const VALUES: &str = "<([^>]+)>";

#[test]
fn later_stage_files_are_named_by_extracted_values() {
    let (index, pages) = index_and_pages();
    let (index, template) = (index.url("/index"), pages.url("/echo/x/{}"));
    for (output, first, second) in
        [("p_#1", "p_a_b", "p_c"), ("{}.html", "a_b.html", "c.html"), ("d/#<id>", "d/a_b", "d/c"), ("", "b", "c")]
    {
        let dir = tempfile::tempdir().unwrap();
        let output = if output.is_empty() { vec!["-O"] } else { vec!["--create-dirs", "-o", output] };
        let named = VALUES.replace("(", "(?<id>");
        let args = [&*index, "--extract", &named, "-o", "index.html", "--then", &template];
        let args: Vec<&str> = args.into_iter().chain(output.iter().copied()).collect();
        assert_eq!(run_in(dir.path(), HAUL, &args).ok(), b"", "{args:?}");
        let content = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(content(first).contains("/echo/x/a/b"), "{args:?}");
        assert!(content(second).contains("/echo/x/c"), "{args:?}");
        // The stage that feeds the other keeps its page.
        assert_eq!(content("index.html"), "<a/b> <c> <c>");
    }
}

#[test]
fn middle_stage_keeps_its_pages() {
    let (index, middle, last) = (page("<a/b>"), page("<c>"), page("end"));
    let dir = tempfile::tempdir().unwrap();
    let (to_middle, to_last) = (middle.url("/{}"), last.url("/{}"));
    let first = [&*index.url("/"), "--extract", VALUES, "--then", &to_middle].map(str::to_owned);
    let second = ["--extract", VALUES, "-o", "page_{}", "--then", &to_last].map(str::to_owned);
    let args: Vec<&str> = first.iter().chain(&second).map(String::as_str).collect();
    assert_eq!(run_in(dir.path(), HAUL, &args).ok(), b"end");
    assert_eq!(fs::read_to_string(dir.path().join("page_a_b")).unwrap(), "<c>");
}

#[test]
fn values_of_later_stage_are_saved_per_page() {
    let origin = origin(3);
    let dir = tempfile::tempdir().unwrap();
    let args = [&*origin.url("/1"), "--extract", NAMES, "--then", &origin.url("/{}"), "--extract", BLOCKS, "-o", "{}"];
    assert_eq!(run_in(dir.path(), HAUL, &args).ok(), b"");
    for name in common::names(dir.path()) {
        let alone = run_haul([&*origin.url(&format!("/{name}")), "--extract", BLOCKS]).ok();
        assert!(fs::read(dir.path().join(&name)).unwrap() == alone, "{name}");
    }
}

/// A placeholder is refused where no value is filled in, since the server or the file system would
/// get the placeholder itself.
#[test]
fn placeholders_in_options_without_values_are_refused() {
    let pages = origin(1);
    let (index, template) = (pages.url("/1"), pages.url("/{}"));
    let cases = [
        ("-F", "--form", "v={}"),
        ("-F", "--form", "{}=v"),
        ("-F", "--form", "v=@{}"),
        ("-F", "--form", "v=x;filename={}"),
        ("-D", "--dump-header", "{}.head"),
        ("--etag-save", "--etag-save", "{}.tag"),
        ("--etag-compare", "--etag-compare", "{}.tag"),
        ("--request-target", "--request-target", "/{}"),
    ];
    for (option, name, value) in cases {
        let ran = run_haul([&*index, "--extract", NAMES, "--then", &*template, option, value]);
        assert!(ran.stderr.contains(&format!("option {name}: values are")), "{value}: {}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
    let ran = run_haul(["--csv-in", "--input-file", "/dev/null", &pages.url("/{id}"), "-F", "v={id}"]);
    assert!(ran.stderr.contains("option --form: values are not filled in forms"), "{}", ran.stderr);
    assert_eq!(ran.code, 2);
    assert_eq!(pages.requests(), 0);
}

#[test]
fn output_name_with_unknown_capture_is_refused() {
    for output in ["#2", "#<other>"] {
        let ran = run_haul(["http://h/", "--extract", "(?<id>x)", "--then", "http://h/{}", "-o", output]);
        assert!(ran.failed(2).contains("behind --then, #1 and {} are the value"), "{}", ran.stderr);
    }
}

#[test]
fn values_with_equal_file_names_never_overwrite() {
    let (index, pages) = (page("<a/b> <a_b>"), origin(1));
    let dir = tempfile::tempdir().unwrap();
    let (index, template) = (index.url("/"), pages.url("/echo/{}"));
    let args = [&*index, "--extract", VALUES, "--then", &template, "-o", "{}"];
    let ran = run_in(dir.path(), HAUL, &args);
    let line = ran.failed(23);
    assert!(line.contains("/echo/a/b") && line.contains("/echo/a_b"), "{line}");
    assert!(fs::read_to_string(dir.path().join("a_b")).unwrap().contains("/echo/a/b"));
    run_in(dir.path(), HAUL, &[&args[..], &["--no-clobber"]].concat()).ok();
    assert_eq!(common::names(dir.path()), ["a_b", "a_b.1", "a_b.2"]);
}

#[test]
fn write_out_of_stage_before_then_is_printed() {
    let (index, pages) = index_and_pages();
    let args = [&*index.url("/index"), "-w", "[%{http_code} %{size_download}]\n", "--extract", VALUES, "--then"];
    let printed = run_haul(args.into_iter().chain([&*pages.url("/small/{}"), "-w", "\n%{http_code}\n"]));
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        text.contains("[200 13]\n") && text.matches("\n200\n").count() + text.matches("\n404\n").count() == 2,
        "{text}"
    );
    // Behind the pages of the values that came before it.
    let ones = page("<1>");
    let (indexes, template) = (ones.url("/[1-3]"), pages.url("/small/{}"));
    let options = [&*indexes, "-w", "[%{urlnum}]\n", "--extract", VALUES, "--then", &template];
    assert_eq!(run_haul(options).text(), "small 1\n[0]\n[1]\n[2]\n");
    // A file for all pages has nothing else in it.
    let dir = tempfile::tempdir().unwrap();
    let told = run_in(dir.path(), HAUL, &[&options[..], &["-w", "told\n", "-o", "out"]].concat()).text();
    assert_eq!((told.lines().count(), told.contains("told\n")), (4, true), "{told}");
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "small 1\n");
}

#[test]
fn several_expressions_match_in_page_order() {
    let pages = page("b=2 a=1 b=3");
    let args = [&*pages.url("/"), "--extract", "a=([0-9])", "--extract", "b=([0-9])"];
    assert_eq!(run_haul(args).text(), "2\n1\n3\n", "in the order of the page");
    let origin = origin(1);
    run_haul(args.into_iter().chain(["--then", &*origin.url("/echo/{}")])).ok();
    for value in 1..=3 {
        assert_eq!(origin.hits(&format!("/echo/{value}")), 1);
    }
}

#[test]
fn extracted_value_is_inserted_into_body_header_query() {
    let (index, origin) = (page("<a \"b\"&c>"), origin(1));
    let template = origin.url("/echo/{}");
    let asked = |args: &[&str]| -> Value {
        let index = index.url("/");
        let all = [&[&*index, "--extract", VALUES, "--then", &template], args].concat();
        serde_json::from_slice(&run_haul(all).ok()).unwrap()
    };
    let form = asked(&["-d", "id={}&n=1", "-H", "X-Id: <{}>"]);
    assert_eq!((&form["method"], &form["target"]), (&"POST".into(), &"/echo/a%20%22b%22%26c".into()));
    assert_eq!(form["body"], "id=a+%22b%22%26c&n=1");
    assert!(form["headers"].to_string().to_lowercase().contains("[\"x-id\",\"<a \\\"b\\\"&c>\"]"), "{form}");
    let named = asked(&["-A", "agent {}", "-e", "http://h/{}", "-b", "id={}"])["headers"].to_string().to_lowercase();
    for field in ["\"user-agent\",\"agent <>\"", "\"referer\",\"http://h/<>\"", "\"cookie\",\"id=<>\""] {
        assert!(named.contains(&field.replace("<>", "a \\\"b\\\"&c")), "{field}: {named}");
    }
    let json = asked(&["--json", "{\"id\": \"{}\", \"again\": {}}"]);
    assert_eq!(json["body"], "{\"id\": \"a \\\"b\\\"&c\", \"again\": \"a \\\"b\\\"&c\"}");
    let query = asked(&["-G", "--data-urlencode", "q={}!"]);
    assert_eq!(
        (&query["method"], &query["target"]),
        (&"GET".into(), &"/echo/a%20%22b%22%26c?q=a%20%22b%22%26c%21".into())
    );
}

#[test]
fn value_with_control_characters_is_refused_in_header() {
    let (index, peer) = (page("<a\r\nX: y> <b>"), page("x"));
    let ran = run_haul([&*index.url("/"), "--extract", VALUES, "--then", &peer.url("/{}"), "-H", "X-Id: {}"]);
    assert!(ran.failed(3).contains("control characters"), "{}", ran.stderr);
    assert_eq!((peer.connections(), ran.stdout.as_slice()), (1, &b"x"[..]));
}

#[test]
fn pages_are_decoded_by_charset_before_matching() {
    let serve = |content_type: &str, body: &[u8]| {
        let head =
            format!("HTTP/1.1 200 OK\r\n{content_type}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send([head.as_bytes(), body].concat())])
    };
    for (content_type, body) in [
        ("Content-Type: text/html; charset=iso-8859-1\r\n", &b"<caf\xe9>"[..]),
        ("Content-Type: text/html\r\n", b"<meta charset=windows-1252><caf\xe9>"),
        ("", b"<caf\xe9>"),
        ("", b"<caf\xc3\xa9>"),
        ("", b"\xff\xfe<\0c\0a\0f\0\xe9\0>\0"),
        ("Content-Type: text/plain; charset=utf-16be\r\n", b"\0<\0c\0a\0f\0\xe9\0>"),
    ] {
        let pages = serve(content_type, body);
        assert_eq!(
            run_haul([&*pages.url("/"), "--extract", "<(caf\\w)>"]).text(),
            "caf\u{e9}\n",
            "{content_type} {body:?}"
        );
    }
    let bytes = serve("Content-Type: text/html; charset=iso-8859-1\r\n", b"<caf\xe9>");
    let args = [&*bytes.url("/"), "--extract", "(?-u)<([^>]*)>", "--extract", "(?-u)\\xe9"];
    assert_eq!(run_haul(args.into_iter().chain(["--extract-bytes"])).ok(), b"caf\xe9\n\xe9\n");
}
