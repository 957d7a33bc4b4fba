//! Failures in a long list: the others go on, and the first one in the order of the input decides.

use crate::common;

use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

use common::{fetching, one_thread, retrying, run, start_origin, threads};
use haul::fleet::{FleetOptions, Stage};
use haul::net::dns::{DnsOptions, Resolver};
use haul::{Client, RequestOptions};
use testkit::origin::Origin;
use testkit::raw::{RawPeer, Step};

fn plain() -> Vec<Stage> {
    fetching(&RequestOptions::default())
}

/// A port that refuses.
fn closed() -> String {
    format!("http://{}/", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap())
}

#[test]
fn the_first_failure_in_the_order_of_the_input_decides() {
    let origin = start_origin();
    let short = RawPeer::always(vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"),
        Step::Close,
    ]);
    let refused = closed();
    let failing = RequestOptions { fail: true, ..RequestOptions::default() };
    // The same list, the delays this way and that.
    for (first, second) in [(0, 80), (80, 0), (40, 40)] {
        for count in [1, 4] {
            for unordered in [false, true] {
                let urls = [
                    origin.url("/small/1"),
                    origin.url(&format!("/delay/{first}/status/404")),
                    short.url("/"),
                    origin.url(&format!("/delay/{second}/small/2")),
                    refused.clone(),
                    "ftp://h/".into(),
                    origin.url("/status/500"),
                    origin.url("/small/3"),
                ];
                let options = FleetOptions { unordered, ..threads(count) };
                let run = run(&Client::new(), fetching(&failing), options, urls);
                let summary = run.summary();
                assert_eq!((summary.succeeded, summary.failed, summary.exit_code), (3, 5, 22));
                assert_eq!(summary.causes, [(1, 1), (7, 1), (18, 1), (22, 2)]);
                if !unordered {
                    assert_eq!(String::from_utf8_lossy(&run.output), "small 1\nwrongsmall 2\nsmall 3\n");
                }
            }
        }
    }
}

#[test]
fn fail_early_begins_nothing_more() {
    let origin = start_origin();
    let failing = RequestOptions { fail: true, ..RequestOptions::default() };
    for count in [1, 4] {
        let before = origin.requests();
        let urls = (0..5000).map(|i| if i == 20 { origin.url("/status/404") } else { origin.url("/small") });
        let options = FleetOptions { fail_early: true, ..threads(count) };
        let run = run(&Client::new(), fetching(&failing), options, urls);
        assert_eq!((run.summary().failed, run.summary().exit_code), (1, 22));
        assert!(origin.requests() - before < 500, "{}", origin.requests() - before);
        assert_eq!(run.output, b"small\n".repeat(run.output.len() / 6), "whole bodies only");
    }
}

#[test]
fn thousands_of_broken_and_refused_urls() {
    let refused = closed();
    for count in [1, 4] {
        let origin = start_origin();
        let urls = (0..6000).map(|i| match i {
            3000 | 5999 => origin.url("/small"),
            _ if i % 2 == 0 => "http://[".into(),
            _ => refused.clone(),
        });
        let run = run(&Client::new(), plain(), threads(count), urls);
        let summary = run.summary();
        assert_eq!((summary.succeeded, summary.failed, summary.exit_code), (2, 5998, 3), "{:?}", summary.causes);
        assert_eq!(summary.causes, [(3, 2999), (7, 2999)]);
        assert_eq!(run.output, b"small\nsmall\n");
    }
}

#[test]
fn nothing_at_all_and_nothing_but_broken_urls() {
    for count in [1, 4] {
        let none = run(&Client::new(), plain(), threads(count), Vec::<String>::new());
        assert_eq!((none.summary().succeeded, none.summary().failed, none.summary().exit_code), (0, 0, 0));
        let broken = run(&Client::new(), plain(), threads(count), vec!["::"; 3000]);
        assert_eq!((broken.summary().failed, broken.reports.len()), (3000, 3000));
    }
}

#[test]
fn a_list_of_broken_urls_is_not_kept() {
    // Were it read ahead without a bound, all items would be taken before the first is reported.
    struct First(std::sync::Arc<std::sync::atomic::AtomicU64>, std::sync::Mutex<Option<u64>>);
    impl haul::fleet::Report for First {
        fn finished(&self, _: &haul::fleet::Job, _: &haul::transfer::Outcome) -> Option<Vec<u8>> {
            let taken = self.0.load(std::sync::atomic::Ordering::SeqCst);
            let first = *self.1.lock().unwrap().get_or_insert(taken);
            assert!(first < 2000, "{first} were taken before the first was reported");
            None
        }
    }
    let taken = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&taken);
    let items = (0..100_000).map(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(common::item("http://["))
    });
    let failed = common::bounded("the fleet", move || {
        let (_reader, writer) = std::io::pipe().unwrap();
        let output = haul::sink::output::Output::new(writer.into());
        let fleet = haul::fleet::Fleet::new(plain(), one_thread());
        fleet.run(&Client::new(), Box::new(items), output, First(taken, None.into())).unwrap().failed
    });
    assert_eq!(failed, 100_000);
}

#[test]
fn names_without_an_address_hold_nobody_up() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    for count in [1, 4] {
        let resolver = Resolver::with_lookup(DnsOptions::default(), |name| {
            thread::sleep(Duration::from_millis(1));
            if name.starts_with("good") {
                Ok(vec![Ipv4Addr::LOCALHOST.into()])
            } else {
                Err(std::io::Error::other("no"))
            }
        });
        let client = Client::with_resolver(resolver);
        let urls = (0..300).map(|i| match i % 3 {
            0 => format!("http://bad{i}.test:{port}/"),
            1 => format!("http://bad.test:{port}/{i}"),
            _ => format!("http://good{}.test:{port}/small/{i}", i % 7),
        });
        let run = run(&client, plain(), threads(count), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (100, 200, 6));
        let expected: String = (0..300).filter(|i| i % 3 == 2).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}

#[test]
fn peers_that_stall_and_a_limit() {
    let origin = start_origin();
    let silent = RawPeer::always(vec![Step::ReadHead, Step::ReadToEnd]);
    let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..RequestOptions::default() };
    for count in [1, 4] {
        let mut urls: Vec<_> = (0..6).map(|_| silent.url("/")).collect();
        urls.extend((0..100).map(|i| origin.url(&format!("/small/{i}"))));
        let run = run(&Client::new(), fetching(&options), threads(count), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (100, 6, 28));
    }
}

#[test]
fn transient_failures_are_retried_among_many() {
    for count in [1, 4] {
        let origin = start_origin();
        let urls: Vec<_> = (0..200).map(|i| origin.url(&format!("/flaky/{}/small/{i}", i % 3))).collect();
        let run = run(&Client::new(), fetching(&retrying(2)), threads(count), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed), (200, 0));
        let expected: String = (0..200).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}

#[test]
fn a_host_that_asks_for_a_pause_gets_it_and_the_others_go_on() {
    let (busy, other) = (start_origin(), start_origin());
    let options = retrying(1);
    let mut urls = vec![busy.url("/retry-after/1/small/0")];
    urls.extend((0..10).map(|i| other.url(&format!("/small/{i}"))));
    urls.extend((0..50).map(|i| busy.url(&format!("/small/{i}"))));
    let one_at_a_time = FleetOptions { per_host: 1, ..one_thread() };
    let run = run(&Client::new(), fetching(&options), one_at_a_time, urls);
    assert_eq!((run.summary().succeeded, run.summary().failed), (61, 0));
    assert_eq!(run.reports.iter().take(10).filter(|got| got.url.starts_with(&other.url("/"))).count(), 10);
}

#[test]
fn a_pause_holds_for_the_host_and_not_for_the_transfer_alone() {
    let peer = Origin::builder().start().unwrap();
    // Two slots: while the first waits for its second try, nothing new is begun beside it.
    let options = FleetOptions { per_host: 2, ..one_thread() };
    let mut urls = vec![peer.url("/retry-after/1/small/0"), peer.url("/delay/700/small/1")];
    urls.extend((0..20).map(|i| peer.url(&format!("/small/{i}"))));
    let run = run(&Client::new(), fetching(&retrying(1)), options, urls);
    assert_eq!(run.summary().succeeded, 22);
    let log: Vec<_> = peer.log().into_iter().map(|request| request.target).collect();
    let again = log.iter().rposition(|target| target.starts_with("/retry-after")).unwrap();
    assert!(again <= 3, "{again} requests before the pause was over: {log:?}");
}

#[test]
fn redirected_ones_among_many() {
    let origin = Origin::builder().threads(2).start().unwrap();
    for count in [1, 4] {
        let urls: Vec<_> = (0..150).map(|i| origin.url(&format!("/redirect/302?to=/small/{i}"))).collect();
        let run = run(&Client::new(), fetching(&common::following()), threads(count), urls);
        let expected: String = (0..150).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}
