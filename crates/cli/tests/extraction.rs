//! `--extract`, `--then`, `--unique`, `--sort`: answers that are known before, and what pages may not make it do.

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{answering, page, run_haul};
use testkit::origin::Origin;
use testkit::site::Site;

const NAMES: &str = "AS[0-9]{1,9}";
const BLOCKS: &str = "[0-9.]{7,15}/[0-9]{1,2}";

fn origin(pages: usize) -> Origin {
    Origin::builder().site(Site::scaled(3, pages).cached()).start().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn two_stages_give_the_known_answer_and_ask_for_each_page_once() {
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
fn little_memory_changes_no_answer() {
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
fn unique_keeps_the_first_of_each_in_input_order() {
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
    // The feed of the second stage is in the order of the indexes: the pages in that order have this very output.
    let names = run_haul([&index, "--extract", NAMES, "--unique"]).text();
    let mut pages = vec!["--extract".to_owned(), BLOCKS.to_owned()];
    pages.extend(names.lines().map(|name| origin.url(&format!("/{name}"))));
    assert!(run_haul(&pages).text() == all);
}

#[test]
fn three_stages_and_a_group() {
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
fn what_is_extracted_goes_to_a_file_too() {
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
fn a_match_is_percent_encoded_and_a_slash_stays() {
    let origin = origin(1);
    let pages = page("[a b] [c/d?e#f] [%41&\u{e9}]");
    run_haul([&*pages.url("/"), "--extract", r"\[([^\]]*)\]", "--then", &origin.url("/echo/x{}")]).ok();
    let targets: Vec<String> = origin.log().into_iter().map(|request| request.target).collect();
    let targets: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
    assert_eq!(targets, BTreeSet::from(["/echo/xa%20b", "/echo/xc/d%3Fe%23f", "/echo/x%2541%26%C3%A9"]));
}

#[test]
fn expressions_and_templates_that_are_none_are_refused() {
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
fn a_page_chooses_no_other_scheme() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "hunter2\n").unwrap();
    let origin = origin(1);
    let links = page(&format!(
        "<file://{}> <FILE:{0}> <{0}> <ftp://127.0.0.1/> <javascript:alert(1)> <{}> <data:,hunter2>",
        secret.display(),
        origin.url("/small")
    ));
    let ran = run_haul([&*links.url("/"), "--extract", "<([^>]+)>", "--then", "{}"]);
    assert_eq!(text(&ran.stdout), "small\n");
    assert_ne!(ran.code, 0);
    assert_eq!(ran.stderr.lines().count(), 6, "a line for each that is refused: {}", ran.stderr);
    assert_eq!((origin.requests(), links.connections()), (1, 1));
}

#[test]
fn an_origin_that_a_page_names_gets_no_secret() {
    let (first, other) = (origin(1), origin(1));
    // What the first page echoes names both.
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
fn secrets_of_one_stage_are_not_those_of_the_next() {
    let origin = origin(3);
    run_haul([&*origin.url("/1"), "-u", "user:hunter2", "--extract", NAMES, "--then", &origin.url("/{}")]).ok();
    for request in origin.log() {
        assert_eq!(request.header("authorization").is_some(), request.target == "/1", "{}", request.target);
    }
}

#[test]
fn an_origin_written_in_the_template_gets_the_secrets_of_its_stage() {
    let (first, second) = (origin(3), origin(3));
    let args = [&*first.url("/[1-3]"), "--extract", NAMES, "--then", &second.url("/{}"), "-u", "user:hunter2"];
    run_haul(args).ok();
    assert!(first.log().iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(second.requests(), 3);
    assert!(second.log().iter().all(|request| request.header("authorization").is_some()));
}

/// Pages are asked for compressed where values are extracted; the user did not say so.
#[test]
fn unknown_content_codings_are_taken_as_none_unless_asked_for() {
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
