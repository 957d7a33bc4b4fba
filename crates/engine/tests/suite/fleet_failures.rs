//! Tests of failures in a long list of URLs: the other URLs succeed, and the first failure in input
//! order determines the exit code.

use crate::common;

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{item, one_thread, retrying, run, run_reading, single_stage, start_origin, threads, with_time_limit};
use haul::fleet::{Fleet, FleetItems, FleetJob, FleetOptions, FleetStage, TransferReporter};
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::transfer::TransferOutcome;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

fn plain() -> Vec<FleetStage> {
    single_stage(&RequestOptions::default())
}

/// Returns a URL with a port on which no server listens.
fn closed() -> String {
    format!("http://{}/", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap())
}

#[test]
fn first_failure_in_input_order_sets_exit_code() {
    let origin = start_origin();
    let short = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"),
        ScriptStep::Close,
    ]);
    let refused = closed();
    let failing = RequestOptions { fail: true, ..RequestOptions::default() };
    // The same list with different delays.
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
                let run = run(&Client::new(), single_stage(&failing), options, urls);
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
fn fail_early_starts_no_further_requests() {
    let origin = start_origin();
    let failing = RequestOptions { fail: true, ..RequestOptions::default() };
    for count in [1, 4] {
        let before = origin.requests();
        let urls = (0..5000).map(|i| if i == 20 { origin.url("/status/404") } else { origin.url("/small") });
        let options = FleetOptions { fail_early: true, ..threads(count) };
        let run = run(&Client::new(), single_stage(&failing), options, urls);
        assert_eq!((run.summary().failed, run.summary().exit_code), (1, 22));
        assert!(origin.requests() - before < 500, "{}", origin.requests() - before);
        assert_eq!(run.output, b"small\n".repeat(run.output.len() / 6), "whole bodies only");
    }
}

#[test]
fn thousands_of_bad_urls_are_all_reported() {
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
fn fleet_without_any_valid_url_finishes() {
    for count in [1, 4] {
        let none = run(&Client::new(), plain(), threads(count), Vec::<String>::new());
        assert_eq!((none.summary().succeeded, none.summary().failed, none.summary().exit_code), (0, 0, 0));
        let broken = run(&Client::new(), plain(), threads(count), vec!["::"; 3000]);
        assert_eq!((broken.summary().failed, broken.reports.len()), (3000, 3000));
    }
}

#[test]
fn invalid_urls_are_not_read_ahead_without_limit() {
    // With unbounded reading ahead, all items would be taken before the first report.
    struct ReadAheadReporter(std::sync::Arc<std::sync::atomic::AtomicU64>, std::sync::Mutex<Option<u64>>);
    impl haul::fleet::TransferReporter for ReadAheadReporter {
        fn finished(&self, _: &haul::fleet::FleetJob, _: &haul::transfer::TransferOutcome) -> Option<Vec<u8>> {
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
    let failed = common::with_time_limit("the fleet", move || {
        let (_reader, writer) = std::io::pipe().unwrap();
        let output = haul::sink::descriptor_writer::DescriptorWriter::new(writer.into());
        let fleet = haul::fleet::Fleet::new(plain(), one_thread());
        fleet.run(&Client::new(), Box::new(items), output, ReadAheadReporter(taken, None.into())).unwrap().failed
    });
    assert_eq!(failed, 100_000);
}

#[test]
fn unresolvable_hosts_do_not_delay_others() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    for count in [1, 4] {
        let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |name| {
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
fn stalled_peers_fail_while_others_succeed() {
    let origin = start_origin();
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
    let options = RequestOptions { max_time: Some(Duration::from_secs(2)), ..RequestOptions::default() };
    for count in [1, 4] {
        let mut urls: Vec<_> = (0..6).map(|_| silent.url("/")).collect();
        urls.extend((0..100).map(|i| origin.url(&format!("/small/{i}"))));
        let run = run(&Client::new(), single_stage(&options), threads(count), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (100, 6, 28));
    }
}

#[test]
fn transient_failures_are_retried_in_a_fleet() {
    for count in [1, 4] {
        let origin = start_origin();
        let urls: Vec<_> = (0..200).map(|i| origin.url(&format!("/flaky/{}/small/{i}", i % 3))).collect();
        let run = run(&Client::new(), single_stage(&retrying(2)), threads(count), urls);
        assert_eq!((run.summary().succeeded, run.summary().failed), (200, 0));
        let expected: String = (0..200).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}

#[test]
fn retry_after_pauses_only_its_host() {
    let (busy, other) = (start_origin(), start_origin());
    let options = retrying(1);
    let mut urls = vec![busy.url("/retry-after/1/small/0")];
    urls.extend((0..10).map(|i| other.url(&format!("/small/{i}"))));
    urls.extend((0..50).map(|i| busy.url(&format!("/small/{i}"))));
    let one_at_a_time = FleetOptions { per_host: Some(1), ..one_thread() };
    let run = run(&Client::new(), single_stage(&options), one_at_a_time, urls);
    assert_eq!((run.summary().succeeded, run.summary().failed), (61, 0));
    assert_eq!(run.reports.iter().take(10).filter(|got| got.url.starts_with(&other.url("/"))).count(), 10);
}

#[test]
fn retry_after_pauses_all_requests_to_its_host() {
    let peer = Origin::builder().start().unwrap();
    // Two slots: while the first waits for its retry, the second starts no new request.
    let options = FleetOptions { per_host: Some(2), ..one_thread() };
    let mut urls = vec![peer.url("/retry-after/1/small/0"), peer.url("/delay/700/small/1")];
    urls.extend((0..20).map(|i| peer.url(&format!("/small/{i}"))));
    let run = run(&Client::new(), single_stage(&retrying(1)), options, urls);
    assert_eq!(run.summary().succeeded, 22);
    let log: Vec<_> = peer.log().into_iter().map(|request| request.target).collect();
    let again = log.iter().rposition(|target| target.starts_with("/retry-after")).unwrap();
    assert!(again <= 3, "{again} requests before the pause was over: {log:?}");
}

#[test]
fn redirected_urls_keep_input_order() {
    let origin = Origin::builder().threads(2).start().unwrap();
    for count in [1, 4] {
        let urls: Vec<_> = (0..150).map(|i| origin.url(&format!("/redirect/302?to=/small/{i}"))).collect();
        let run = run(&Client::new(), single_stage(&common::following()), threads(count), urls);
        let expected: String = (0..150).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}

fn read_all(mut pipe: std::io::PipeReader) -> Vec<u8> {
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut pipe, &mut all).unwrap();
    all
}

#[test]
fn panicking_report_ends_the_fleet_run() {
    struct PanickingReporter;
    impl TransferReporter for PanickingReporter {
        fn finished(&self, _: &FleetJob, _: &TransferOutcome) -> Option<Vec<u8>> {
            panic!("on purpose")
        }
    }
    let url = start_origin().url("/small");
    with_time_limit("the fleet", move || {
        let running = std::thread::spawn(move || {
            let (_reader, writer) = std::io::pipe().unwrap();
            let items: FleetItems = Box::new((0..100).map(move |_| Ok(item(url.clone()))));
            Fleet::new(single_stage(&RequestOptions::default()), threads(4)).run(
                &Client::new(),
                items,
                DescriptorWriter::new(writer.into()),
                PanickingReporter,
            )
        });
        assert!(running.join().is_err(), "the panic comes through");
    });
}

#[test]
fn panicking_input_iterator_fails_the_run() {
    let origin = start_origin();
    let url = origin.url("/small");
    let items: FleetItems =
        Box::new((0..5).map(move |i| if i < 3 { Ok(item(url.clone())) } else { panic!("on purpose") }));
    let options = FleetOptions { slow_input: true, ..threads(1) };
    let run = run_reading(&Client::new(), single_stage(&RequestOptions::default()), options, items, read_all);
    let summary = run.summary();
    assert_eq!((summary.succeeded, summary.failed, summary.exit_code), (3, 1, 26));
    assert_eq!(run.output, b"small\nsmall\nsmall\n");
}

#[test]
fn temporary_dns_failure_is_retried_unlike_nxdomain() {
    let origin = start_origin();
    let port = origin.http_addr().port();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), move |name| {
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
    // Longer than a failed lookup is cached.
    options.retry.delay = Some(std::time::Duration::from_millis(400));
    let urls = ["late", "gone", "haul.invalid"].map(|name| match name {
        "haul.invalid" => format!("http://{name}:{port}/small"),
        name => format!("http://{name}.test:{port}/small"),
    });
    let run = run(&Client::with_resolver(resolver), single_stage(&options), threads(1), urls);
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (1, 2, 6));
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["gone.test", "late.test", "late.test"]);
    assert!(run.reports.iter().all(|got| got.exit == 0 || got.kind == Some(ErrorKind::Resolve)));
}

#[test]
fn paused_host_frees_its_slots_for_others() {
    let origin = start_origin();
    // Both slots belong to transfers that wait for an hour; the failure at the end of the list
    // stops the run.
    let busy = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 503 X\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"),
        ScriptStep::Close,
    ]);
    let broken = origin.url("/status/404");
    let mut urls = vec![busy.url("/1"), busy.url("/2")];
    urls.extend((0..50).map(|i| origin.url(&format!("/small/{i}"))));
    urls.push(broken);
    let mut options = retrying(3);
    options.fail = true;
    let fleet = FleetOptions { parallel: 2, per_host: Some(2), fail_early: true, unordered: true, ..threads(1) };
    let run = run(&Client::new(), single_stage(&options), fleet, urls);
    assert_eq!(run.summary().exit_code, 22);
    assert!(run.summary().succeeded >= 45, "{:?}", run.summary());
}
