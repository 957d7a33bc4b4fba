//! Runs that once hung, waited in vain or told too much.

use crate::common;

use std::sync::Arc;

use common::{bounded, fetching, following, item, retrying, run, run_reading, start_origin, threads};
use haul::fleet::{Fleet, FleetOptions, Items, Job, Report, Stage};
use haul::net::dns::{DnsOptions, Resolver};
use haul::pipeline::Pattern;
use haul::sink::output::Output;
use haul::transfer::Outcome;
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::template::Template;
use testkit::raw::{RawPeer, Step};

/// A page of so many links, each on a line so long that the page is received in several pieces, and then one of them over
/// and over, which fills what may be kept before a value is known to be an old one.
fn page_of_links(count: usize) -> RawPeer {
    let page: String = (0..count).map(|i| format!("<{i}>{:.<70}\n", "")).chain(["<1>\n".repeat(200_000)]).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    RawPeer::always(vec![Step::ReadHead, Step::send(head), Step::send(page), Step::Close])
}

fn read_all(mut pipe: std::io::PipeReader) -> Vec<u8> {
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut pipe, &mut all).unwrap();
    all
}

#[test]
fn pages_that_fill_the_next_stage_leave_it_a_slot() {
    const LINKS: usize = 5000;
    let origin = start_origin();
    let index = page_of_links(LINKS);
    let stages = |sort: bool| {
        let first = Stage { extract: Some(Pattern::new("<([0-9]+)>").unwrap()), ..Stage::default() };
        let second = Stage {
            extract: Some(Pattern::new("small [0-9]+").unwrap()),
            template: Some(Arc::new(Template::parse(&origin.url("/small/{}")).unwrap())),
            sort,
            ..Stage::default()
        };
        vec![first, second]
    };
    // One slot in all, which the page holds; with memory for what it names and without.
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
fn a_report_that_panics_does_not_hang_the_run() {
    struct Panics;
    impl Report for Panics {
        fn finished(&self, _: &Job, _: &Outcome) -> Option<Vec<u8>> {
            panic!("on purpose")
        }
    }
    let url = start_origin().url("/small");
    bounded("the fleet", move || {
        let running = std::thread::spawn(move || {
            let (_reader, writer) = std::io::pipe().unwrap();
            let items: Items = Box::new((0..100).map(move |_| Ok(item(url.clone()))));
            Fleet::new(fetching(&RequestOptions::default()), threads(4)).run(
                &Client::new(),
                items,
                Output::new(writer.into()),
                Panics,
            )
        });
        assert!(running.join().is_err(), "the panic comes through");
    });
}

#[test]
fn a_list_that_panics_is_no_complete_one() {
    let origin = start_origin();
    let url = origin.url("/small");
    let items: Items = Box::new((0..5).map(move |i| if i < 3 { Ok(item(url.clone())) } else { panic!("on purpose") }));
    let options = FleetOptions { slow_input: true, ..threads(1) };
    let run = run_reading(&Client::new(), fetching(&RequestOptions::default()), options, items, read_all);
    let summary = run.summary();
    assert_eq!((summary.succeeded, summary.failed, summary.exit_code), (3, 1, 26));
    assert_eq!(run.output, b"small\nsmall\nsmall\n");
}

#[test]
fn a_host_field_goes_to_no_origin_that_a_page_chose() {
    let answer = vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), Step::Close];
    let other = RawPeer::always(answer.clone());
    let page = format!("<a href=\"{}\">", other.url("/"));
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    let index = RawPeer::always(vec![Step::ReadHead, Step::send(head + &page), Step::Close]);
    let options = RequestOptions { fields: vec![("hOst".into(), b"inside.test".to_vec())], ..following() };
    let first = Stage { extract: Some(Pattern::new("href=\"([^\"]+)").unwrap()), ..Stage::default() };
    let second = Stage {
        options: Arc::new(options),
        template: Some(Arc::new(Template::parse("{}").unwrap())),
        ..Stage::default()
    };
    let run = run(&Client::new(), vec![first, second], threads(1), [index.url("/")]);
    assert_eq!(run.output, b"x");
    let request = String::from_utf8(other.received(0)).unwrap();
    assert!(!request.contains("inside.test"), "{request}");
    assert!(request.contains(&format!("Host: {}", other.addr())), "{request}");
}

#[test]
fn a_resolver_that_could_not_ask_is_asked_again_and_a_name_that_is_not_there_is_not() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let resolver = Resolver::with_lookup(DnsOptions::default(), move |name| {
        let mut log = log.lock().unwrap();
        log.push(name.to_owned());
        match name {
            "late.test" if log.iter().filter(|asked| *asked == name).count() > 1 => {
                Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()])
            }
            "late.test" => {
                Err(std::io::Error::other("failed to lookup address information: Temporary failure in name resolution"))
            }
            _ => Err(std::io::Error::other("failed to lookup address information: Name or service not known")),
        }
    });
    let mut options = retrying(3);
    // Longer than such a failure is kept.
    options.retry.delay = Some(std::time::Duration::from_millis(400));
    let urls = ["late", "gone", "haul.invalid"].map(|name| match name {
        "haul.invalid" => format!("http://{name}:{port}/small"),
        name => format!("http://{name}.test:{port}/small"),
    });
    let run = run(&Client::with_resolver(resolver), fetching(&options), threads(1), urls);
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (1, 2, 6));
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["gone.test", "late.test", "late.test"]);
    assert!(run.reports.iter().all(|got| got.exit == 0 || got.kind == Some(ErrorKind::Resolve)));
}

#[test]
fn a_host_that_asks_for_a_pause_does_not_keep_the_slots_of_the_others() {
    let origin = start_origin();
    // Both slots are taken by transfers that wait for an hour; the run is stopped by what comes after the others.
    let busy = RawPeer::always(vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 503 X\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"),
        Step::Close,
    ]);
    let broken = origin.url("/status/404");
    let mut urls = vec![busy.url("/1"), busy.url("/2")];
    urls.extend((0..50).map(|i| origin.url(&format!("/small/{i}"))));
    urls.push(broken);
    let mut options = retrying(3);
    options.fail = true;
    let fleet = FleetOptions { parallel: 2, per_host: 2, fail_early: true, unordered: true, ..threads(1) };
    let run = run(&Client::new(), fetching(&options), fleet, urls);
    assert_eq!(run.summary().exit_code, 22);
    assert!(run.summary().succeeded >= 45, "{:?}", run.summary());
}
