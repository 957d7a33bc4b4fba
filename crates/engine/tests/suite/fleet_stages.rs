//! Tests of a fleet's stages: extraction, templates, unique and sorted values. The results are
//! compared with the known content of the test site.

use crate::common;

use std::fs;
use std::sync::Arc;

use common::{following, run, run_reading, start_origin, threads};
use haul::extraction::ExtractRegexes;
use haul::fleet::{BodyDestination, FleetItem, FleetOptions, FleetStage};
use haul::sink::file::FileOptions;
use haul::{Client, RequestOptions};
use haul_policy::url_template::UrlTemplate;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

fn stage(template: Option<&str>, extract: &str) -> FleetStage {
    let mut options = RequestOptions { decode: true, fail: true, ..common::following() };
    options.retry.max = 0;
    FleetStage {
        options: Arc::new(options),
        extract: Some(ExtractRegexes::new(extract).unwrap().into()),
        template: template.map(|text| Arc::new(UrlTemplate::parse(text).unwrap())),
        ..FleetStage::default()
    }
}

const NUMBER: &str = "AS[0-9]{1,9}";

const BLOCK: &str = "[0-9.]{7,15}/[0-9]{1,2}";

fn site_stages(origin: &Origin) -> Vec<FleetStage> {
    vec![stage(None, NUMBER), stage(Some(&origin.url("/{}")), BLOCK)]
}

fn indexes(origin: &Origin) -> Vec<String> {
    origin.site().index_paths().iter().map(|path| origin.url(path)).collect()
}

fn site_of(pages: usize) -> Origin {
    Origin::builder().threads(2).site(GeneratedSite::scaled(7, pages).cached()).start().unwrap()
}

#[test]
fn unique_sorted_values_match_the_test_site() {
    let origin = site_of(150);
    let answer = origin.site().known_answer();
    for (count, memory) in [(1, 64 << 20), (4, 64 << 20), (4, 256 << 10)] {
        let mut stages = site_stages(&origin);
        (stages[1].unique, stages[1].sort) = (true, true);
        let options = FleetOptions { max_memory: memory, ..threads(count) };
        origin.forget();
        let run = run(&Client::new(), stages, options, indexes(&origin));
        assert_eq!((run.summary().succeeded, run.summary().failed), (153, 0), "{:?}", run.summary().causes);
        assert!(run.output == answer.text, "{} bytes for {}", run.output.len(), answer.text.len());
        for path in origin.site().as_paths() {
            assert_eq!(origin.hits(&path), 1, "{path}: a value feeds a stage once");
        }
    }
}

#[test]
fn unsorted_values_keep_input_order() {
    let origin = site_of(60);
    let expected = {
        let expression = regex::bytes::Regex::new(BLOCK).unwrap();
        let mut lines = Vec::new();
        for path in in_order_of_first_mention(&origin) {
            let page = origin.site().page(&path).unwrap();
            for found in expression.find_iter(&page) {
                lines.extend_from_slice(found.as_bytes());
                lines.push(b'\n');
            }
        }
        lines
    };
    for count in [1, 4] {
        let run = run(&Client::new(), site_stages(&origin), threads(count), indexes(&origin));
        assert_eq!(run.summary().failed, 0);
        assert!(run.output == expected, "{count} threads");
    }
}

fn in_order_of_first_mention(origin: &Origin) -> Vec<String> {
    let expression = regex::bytes::Regex::new(NUMBER).unwrap();
    let mut order: Vec<String> = Vec::new();
    for path in origin.site().index_paths() {
        for found in expression.find_iter(&origin.site().page(&path).unwrap()) {
            let path = format!("/{}", String::from_utf8_lossy(found.as_bytes()));
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    order
}

#[test]
fn unordered_output_contains_the_same_values() {
    let origin = site_of(60);
    let mut stages = site_stages(&origin);
    stages[1].unique = true;
    let options = FleetOptions { unordered: true, ..threads(4) };
    let run = run(&Client::new(), stages, options, indexes(&origin));
    let mut lines: Vec<&[u8]> = run.output.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    // The known answer is sorted without line ends.
    let answer = origin.site().known_answer();
    let mut expected: Vec<&[u8]> = answer.text.split_inclusive(|&byte| byte == b'\n').collect();
    expected.sort_unstable();
    assert_eq!(lines.len(), expected.len());
    assert!(lines == expected);
}

#[test]
fn three_stage_fleet_outputs_only_last_stage_pages() {
    let peer = H1Peer::always(many_answers("a1 a2 a3 a2", 1));
    let second = H1Peer::always(many_answers("b7 b8", 8));
    let origin = start_origin();
    let last = FleetStage { extract: None, ..stage(Some(&origin.url("/small/{}")), "x") };
    let stages = vec![stage(None, "a[0-9]"), stage(Some(&second.url("/{}")), "b([0-9])"), last];
    for count in [1, 4] {
        let run = run(&Client::new(), stages.clone(), threads(count), [peer.url("/")]);
        assert_eq!((run.summary().succeeded, run.summary().failed), (1 + 3 + 2, 0));
        assert_eq!(String::from_utf8(run.output).unwrap(), "small 7\nsmall 8\n");
    }
}

#[test]
fn page_stored_in_a_file_feeds_the_next_stage() {
    let dir = tempfile::tempdir().unwrap();
    let origin = start_origin();
    let bodies: Vec<String> = (0..20).map(|i| format!("n{} n{}{}", 2 * i, 2 * i + 1, " ".repeat(i * 5000))).collect();
    let peers: Vec<_> = bodies.iter().map(|body| H1Peer::always(many_answers(body, 1))).collect();
    let mut first = stage(None, "n([0-9]+)");
    let options = RequestOptions { include_head: true, ..RequestOptions::clone(&first.options) };
    first.options = Arc::new(options);
    let last = FleetStage { extract: None, ..stage(Some(&origin.url("/small/{}")), "x") };
    for (count, unordered) in [(1, false), (4, false), (1, true)] {
        let path = |number: usize| dir.path().join(format!("{count}-{unordered}-{number}"));
        let to_file = |(number, peer): (usize, &H1Peer)| {
            let destination = BodyDestination::File { path: path(number), options: FileOptions::default() };
            Ok(FleetItem::new(peer.url("/"), destination))
        };
        let items: Vec<_> = peers.iter().enumerate().map(to_file).collect();
        let options = FleetOptions { max_memory: 100_000, unordered, ..threads(count) };
        let stages = vec![first.clone(), last.clone()];
        let run = run_reading(&Client::new(), stages, options, Box::new(items.into_iter()), |pipe| {
            std::io::read_to_string(pipe).unwrap().into_bytes()
        });
        assert_eq!((run.summary().succeeded, run.summary().failed), (60, 0), "{:?}", run.summary().causes);
        let output = String::from_utf8(run.output).unwrap();
        let mut lines: Vec<&str> = output.lines().collect();
        if unordered {
            lines.sort_unstable_by_key(|line| (line.len(), *line));
        }
        assert_eq!(lines, (0..40).map(|i| format!("small {i}")).collect::<Vec<_>>());
        for (number, body) in bodies.iter().enumerate() {
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            assert!(fs::read_to_string(path(number)).unwrap() == response, "page {number}");
        }
    }
}

fn many_answers(body: &str, count: usize) -> Vec<ScriptStep> {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    (0..count).flat_map(|_| [ScriptStep::ReadHead, ScriptStep::send(&answer)]).collect()
}

#[test]
fn more_links_than_the_queue_holds_are_fetched() {
    // Pages with far more links than a stage holds; their host also serves the links.
    let origin = Origin::builder().threads(2).record(false).start().unwrap();
    let pages: Vec<String> = (0..8).map(|page| (0..1000).map(|i| format!("n{} ", page * 1000 + i)).collect()).collect();
    for (count, memory, pipeline) in [(1, 64 << 20, 1), (4, 64 << 20, 1), (1, 128 << 10, 1), (1, 64 << 20, 8)] {
        let peers: Vec<_> = pages.iter().map(|page| H1Peer::start(vec![many_answers(page, 1)])).collect();
        let last = FleetStage { extract: None, ..stage(Some(&origin.url("/small/{}")), "x") };
        let stages = vec![stage(None, "n([0-9]+)"), last];
        let options = FleetOptions { max_memory: memory, pipeline, ..threads(count) };
        let run = run(&Client::new(), stages, options, peers.iter().map(|peer| peer.url("/")));
        assert_eq!((run.summary().succeeded, run.summary().failed), (8008, 0), "{:?}", run.summary().causes);
        let expected: String = (0..8000).map(|i| format!("small {i}\n")).collect();
        assert!(run.output == expected.as_bytes(), "{count} threads, {memory} bytes, {pipeline} deep");
    }
}

#[test]
fn invalid_extracted_urls_do_not_affect_valid_ones() {
    let origin = start_origin();
    let index = H1Peer::start(vec![many_answers("<1> <../2> <3> <a/../b>", 1)]);
    let last = FleetStage { extract: None, ..stage(Some(&origin.url("/small/{}")), "x") };
    let run = run(&Client::new(), vec![stage(None, "<([^>]+)>"), last], threads(1), [index.url("/")]);
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (3, 2, 3));
    assert_eq!(run.output, b"small 1\nsmall 3\n");
}

#[test]
fn later_stage_failure_keeps_its_output_position() {
    // The second link of the first index fails with 22, and the second index fails with 7.
    let origin = start_origin();
    for (first, second) in [(0, 60), (60, 0)] {
        let index = H1Peer::start(vec![many_answers(&format!("<small/1> <delay/{first}/status/404>"), 1)]);
        let slow = format!("http://127.0.0.1:1/{second}");
        let last = FleetStage { extract: None, ..stage(Some(&origin.url("/{}")), "x") };
        let stages = vec![stage(None, "<([^>]+)>"), last];
        let run = run(&Client::new(), stages, threads(2), [index.url("/"), slow]);
        assert_eq!((run.summary().failed, run.summary().exit_code), (2, 22), "{:?}", run.summary().causes);
    }
}

#[test]
fn only_http_links_of_a_page_are_fetched() {
    let origin = start_origin();
    let links = format!("<{}> <ftp://h/> <file:///etc/passwd> <http://u:p@h/> <#here>", origin.url("/small/5"));
    let index = H1Peer::start(vec![many_answers(&links, 1)]);
    let last = FleetStage { extract: None, ..stage(Some("{}"), "x") };
    let run = run(&Client::new(), vec![stage(None, "<([^>]+)>"), last], threads(1), [index.url("/")]);
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().skipped_values), (2, 1, 3));
    assert_eq!(run.output, b"small 5\n");
    assert!(run.reports.iter().all(|got| !got.message.contains("u:p")), "a page's text may hold a secret, too");
}

#[test]
fn extraction_faster_than_the_reader_loses_nothing() {
    // Each pair of bytes is a value, so that extraction keeps the workers busy and fills the
    // output.
    let origin = site_of(60);
    let expected: Vec<u8> = origin
        .site()
        .as_paths()
        .iter()
        .flat_map(|path| {
            let page = origin.site().page(path).unwrap();
            let text = page.split(|&byte| byte == b'\n').flat_map(|line| line.chunks_exact(2).map(<[u8]>::to_vec));
            text.flat_map(|pair| [&pair[..], b"\n"].concat()).collect::<Vec<u8>>()
        })
        .collect();
    let with = [(2, 1 << 20, false), (4, 256 << 10, false), (4, 1 << 20, true), (2, 1, true), (2, 1, false)];
    for (count, memory, unordered) in with {
        let items: Vec<_> = origin.site().as_paths().iter().map(|path| Ok(common::item(origin.url(path)))).collect();
        let options = FleetOptions { max_memory: memory, unordered, ..threads(count) };
        let stages = vec![stage(None, "..")];
        let run = common::run_reading(&Client::new(), stages, options, Box::new(items.into_iter()), |mut pipe| {
            let mut output = Vec::new();
            let mut piece = vec![0; 60_000];
            loop {
                // Fast at first, so that all workers start, then so slow that all of them wait.
                if output.len() > 1 << 20 {
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
                match std::io::Read::read(&mut pipe, &mut piece).unwrap() {
                    0 => return output,
                    n => output.extend_from_slice(&piece[..n]),
                }
            }
        });
        assert_eq!((run.summary().succeeded, run.summary().failed), (60, 0));
        assert_eq!(run.output.len(), expected.len());
        assert!(unordered || run.output == expected, "{count} threads");
    }
}

/// Starts a server with a page of `count` different links on long lines, followed by 200,000 copies
/// of one link. The page is long enough to arrive in several pieces. If the fleet has little
/// memory, the copies use up the part for links that were not yet checked for duplicates.
fn page_of_links(count: usize) -> H1Peer {
    let page: String = (0..count).map(|i| format!("<{i}>{:.<70}\n", "")).chain(["<1>\n".repeat(200_000)]).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::send(page), ScriptStep::Close])
}

#[test]
fn full_first_stage_does_not_block_next_stage() {
    const LINKS: usize = 5000;
    let origin = start_origin();
    let index = page_of_links(LINKS);
    let stages = |sort: bool| {
        let first =
            FleetStage { extract: Some(ExtractRegexes::new("<([0-9]+)>").unwrap().into()), ..FleetStage::default() };
        let second = FleetStage {
            extract: Some(ExtractRegexes::new("small [0-9]+").unwrap().into()),
            template: Some(Arc::new(UrlTemplate::parse(&origin.url("/small/{}")).unwrap())),
            sort,
            ..FleetStage::default()
        };
        vec![first, second]
    };
    // One slot in all, which the page holds, with and without memory for its links.
    for (sort, unordered, max_memory) in
        [(true, false, 64 << 20), (true, false, 2 << 20), (false, true, 2 << 20), (false, false, 2 << 20)]
    {
        let options = FleetOptions { parallel: 1, max_memory, unordered, ..threads(1) };
        let run = run(&Client::new(), stages(sort), options, [index.url("/")]);
        assert_eq!(run.summary().succeeded, 1 + LINKS as u64, "{sort} {unordered} {max_memory}");
        assert_eq!(run.output.iter().filter(|&&byte| byte == b'\n').count(), LINKS);
    }
}

#[test]
fn host_field_is_not_sent_to_extracted_origins() {
    let answer = vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        ScriptStep::Close,
    ];
    let other = H1Peer::always(answer.clone());
    let page = format!("<a href=\"{}\">", other.url("/"));
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    let index = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + &page), ScriptStep::Close]);
    let options = RequestOptions { fields: vec![("hOst".into(), b"inside.test".to_vec())], ..following() };
    let first =
        FleetStage { extract: Some(ExtractRegexes::new("href=\"([^\"]+)").unwrap().into()), ..FleetStage::default() };
    let second = FleetStage {
        options: Arc::new(options),
        template: Some(Arc::new(UrlTemplate::parse("{}").unwrap())),
        ..FleetStage::default()
    };
    let run = run(&Client::new(), vec![first, second], threads(1), [index.url("/")]);
    assert_eq!(run.output, b"x");
    let request = String::from_utf8(other.received(0)).unwrap();
    assert!(!request.contains("inside.test"), "{request}");
    assert!(request.contains(&format!("Host: {}", other.addr())), "{request}");
}
