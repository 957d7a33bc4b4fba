//! Tests of transfers that wait to be tried again: they hold no slot, so other URLs are fetched in
//! the meantime.

use crate::common;

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use common::{retrying, run, single_stage, threads, with_time_limit};
use haul::batch::{BatchOptions, BatchOrder};
use haul::fleet::{FleetOptions, HostStartRate, StartRate};
use haul::{Client, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// The pause before a retry. It is longer than the time in which all good pages are fetched.
const LONG: Duration = Duration::from_secs(12);

/// Starts an origin on all addresses of the loopback network.
fn many_hosts() -> Origin {
    Origin::builder().ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).start().unwrap()
}

/// Returns the URL of a path on the host number `host`.
fn on_host(origin: &Origin, host: usize, path: &str) -> String {
    format!("http://127.0.{}.{}:{}{path}", 1 + host / 200, 1 + host % 200, origin.http_addr().port())
}

/// Returns options with at most `times` retries and the pause `wait` before each retry.
fn retrying_after(times: u32, wait: Duration) -> RequestOptions {
    let mut options = retrying(times);
    options.retry.delay = Some(wait);
    options
}

/// Asserts that the server received all requests for good pages before the first retry of a failed
/// request.
#[track_caller]
fn assert_good_pages_first(origin: &Origin, failing: usize, good: usize) {
    let targets: Vec<_> = origin.log().into_iter().map(|request| request.target).collect();
    assert_eq!(targets.len(), 2 * failing + good);
    let is_failing = |target: &&String| target.starts_with("/flaky");
    let first: Vec<_> = targets[..failing + good].iter().filter(is_failing).collect();
    assert_eq!(first.len(), failing, "a retry came before a good page");
}

#[test]
fn failing_hosts_do_not_delay_good_pages() {
    for (count, unordered) in [(1, false), (1, true), (4, false)] {
        let origin = many_hosts();
        let failing = (0..20).map(|i| on_host(&origin, i, &format!("/flaky/1/small/{}", 1000 + i)));
        let good = (0..200).map(|i| on_host(&origin, 20 + i % 40, &format!("/small/{i}")));
        let options = FleetOptions { parallel: 10, unordered, ..threads(count) };
        let urls: Vec<_> = failing.chain(good).collect();
        let run = run(&Client::new(), single_stage(&retrying_after(1, LONG)), options, urls);
        assert_eq!((run.summary().succeeded, run.summary().failed), (220, 0));
        assert_good_pages_first(&origin, 20, 200);
        assert!(origin.peak_requests() <= 11, "{}", origin.peak_requests());
        if !unordered {
            let expected = (1000..1020).chain(0..200).map(|i| format!("small {i}\n"));
            assert_eq!(String::from_utf8(run.output).unwrap(), expected.collect::<String>());
        }
    }
}

#[test]
fn many_failing_urls_do_not_delay_good_pages() {
    let origin = many_hosts();
    let urls = (0..2000).map(|i| match i % 4 {
        0 => on_host(&origin, i % 100, &format!("/flaky/1/small/{i}")),
        _ => on_host(&origin, i % 100, &format!("/small/{i}")),
    });
    let options = FleetOptions { parallel: 10, unordered: true, ..threads(1) };
    let run = run(&Client::new(), single_stage(&retrying_after(1, 2 * LONG)), options, urls);
    assert_eq!((run.summary().succeeded, run.summary().failed), (2000, 0));
    assert_good_pages_first(&origin, 500, 1500);
}

#[test]
fn sequential_fleet_waits_for_a_retry() {
    let origin = many_hosts();
    let urls = [on_host(&origin, 0, "/flaky/1/small/0"), on_host(&origin, 1, "/small/1")];
    let options = FleetOptions { parallel: 1, ..threads(1) };
    let run = run(&Client::new(), single_stage(&retrying_after(1, Duration::from_millis(300))), options, urls);
    assert_eq!(run.summary().succeeded, 2);
    let targets: Vec<_> = origin.log().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/flaky/1/small/0", "/flaky/1/small/0", "/small/1"]);
}

#[test]
fn retries_of_a_later_stage_finish() {
    use haul::body::delivery::RegexInputKind;
    use haul::extraction::ExtractRegexes;
    use haul::fleet::FleetStage;
    use haul_policy::url_template::UrlTemplate;
    use std::sync::Arc;

    let origin = many_hosts();
    let options = Arc::new(retrying_after(2, Duration::from_millis(20)));
    let lists = FleetStage {
        options: Arc::clone(&options),
        extract: Some(ExtractRegexes::new("small ([0-9]+)").unwrap().into()),
        search_in: RegexInputKind::Text,
        ..FleetStage::default()
    };
    let template = on_host(&origin, 7, "/flaky/1/small/{}");
    let template = Some(Arc::new(UrlTemplate::parse(&template).unwrap()));
    let pages = FleetStage { options, template, ..FleetStage::default() };
    let urls: Vec<_> = (0..60).map(|i| on_host(&origin, i, &format!("/flaky/2/small/{i}"))).collect();
    for (parallel, max_memory) in [(2, 1), (3, 1 << 20)] {
        origin.forget();
        let limits = FleetOptions { parallel, max_memory, ..threads(2) };
        let run = run(&Client::new(), vec![lists.clone(), pages.clone()], limits, urls.clone());
        let expected: String = (0..60).map(|i| format!("small {i}\n")).collect();
        assert_eq!(String::from_utf8(run.output).unwrap(), expected);
    }
}

#[test]
fn waiting_retry_fails_at_its_deadline() {
    // The second response pauses the host of the first for an hour.
    let reply = |more: &str| ScriptStep::send(format!("HTTP/1.1 503 X\r\nContent-Length: 0\r\n{more}\r\n"));
    let peer = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        reply(""),
        ScriptStep::ReadHead,
        reply("Retry-After: 3600\r\n"),
    ]]);
    let mut options = retrying_after(1, Duration::from_secs(2));
    options.total_time = Some(Duration::from_secs(4));
    let limits = FleetOptions { parallel: 2, per_host: Some(1), ..threads(1) };
    let run = run(&Client::new(), single_stage(&options), limits, [peer.url("/0"), peer.url("/1")]);
    let exits = run.reports.iter().map(|got| got.exit).collect::<Vec<_>>();
    // The pause of an hour is longer than the time limit: the second has no retry, and succeeds.
    assert_eq!((run.summary().failed, exits.contains(&28)), (1, true), "{exits:?}");
}

#[test]
fn start_rate_limit_includes_retries() {
    let origin = many_hosts();
    let urls: Vec<_> = (0..10).map(|i| on_host(&origin, i, &format!("/flaky/1/small/{i}"))).collect();
    for parallel in [1, 8] {
        origin.forget();
        let options =
            FleetOptions { parallel, start_rate: Some(StartRate::new(Duration::from_millis(50))), ..threads(1) };
        let began = Instant::now();
        let run =
            run(&Client::new(), single_stage(&retrying_after(1, Duration::from_millis(1))), options, urls.clone());
        let took = began.elapsed();
        assert_eq!(run.summary().succeeded, 10);
        assert!(took >= 19 * Duration::from_millis(50), "20 starts, {took:?}");
    }
}

#[test]
fn host_start_rate_limits_each_host_separately() {
    let origin = many_hosts();
    // 12 starts on each of 5 hosts, in turn.
    let urls = || (0..60).map(|i| on_host(&origin, i % 5, &format!("/small/{i}"))).collect::<Vec<_>>();
    for parallel in [1, 20] {
        let rate = HostStartRate::new(Duration::from_millis(60));
        let options = FleetOptions { parallel, host_start_rate: Some(rate.clone()), ..threads(2) };
        let began = Instant::now();
        let first = run(&Client::new(), single_stage(&RequestOptions::default()), options.clone(), urls());
        // A second fleet shares the limit.
        let second = run(&Client::new(), single_stage(&RequestOptions::default()), options, urls());
        let took = began.elapsed();
        assert_eq!((first.summary().succeeded, second.summary().succeeded), (60, 60));
        assert!(took >= 23 * Duration::from_millis(60), "24 starts on each host, {took:?}");
    }
    // The hosts are independent: all together are faster than one after the other.
    let rate = HostStartRate::new(Duration::from_secs(30));
    let urls: Vec<_> = (0..40).map(|i| on_host(&origin, i, "/small")).collect();
    let options = FleetOptions { host_start_rate: Some(rate), ..threads(1) };
    let run = run(&Client::new(), single_stage(&RequestOptions::default()), options, urls);
    assert_eq!(run.summary().succeeded, 40);
}

#[test]
fn batch_fetches_other_pages_before_retries() {
    for order in [BatchOrder::Input, BatchOrder::Completion] {
        let origin = many_hosts();
        let failing = (0..20).map(|i| on_host(&origin, i, &format!("/flaky/1/small/{}", 1000 + i)));
        let urls: Vec<_> =
            failing.chain((0..200).map(|i| on_host(&origin, 20 + i % 40, &format!("/small/{i}")))).collect();
        let client = Client::builder().options(|options| *options = retrying_after(1, LONG)).build();
        let requests: Vec<_> = urls.iter().map(|url| client.get(url).build().unwrap()).collect();
        let options = BatchOptions { max_parallel: 10, order, ..BatchOptions::default() };
        let replies = with_time_limit("the batch", move || client.fetch_all(requests, options).collect::<Vec<_>>());
        assert!(replies.iter().all(|(_, reply)| reply.as_ref().is_ok_and(|reply| reply.status() == 200)));
        if order == BatchOrder::Input {
            assert!(replies.iter().map(|(id, _)| *id).eq(0..220));
        }
        assert_good_pages_first(&origin, 20, 200);
        assert!(origin.peak_requests() <= 11, "{}", origin.peak_requests());
    }
}

#[test]
fn cancelled_batch_request_is_not_retried() {
    let origin = many_hosts();
    let client = Client::builder().options(|options| *options = retrying_after(1, Duration::from_secs(3600))).build();
    let batch = client.batch(BatchOptions { order: BatchOrder::Completion, ..BatchOptions::default() });
    let urls = (0..3).map(|i| on_host(&origin, i, &format!("/flaky/1/small/{i}")));
    let ids: Vec<_> = urls.map(|url| batch.submit(client.get(&url).build().unwrap())).collect();
    // A good request ends after the others have failed once.
    while origin.requests() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    batch.submit(client.get(&on_host(&origin, 9, "/delay/200/small")).build().unwrap());
    assert!(batch.next().unwrap().is_some_and(|done| done.outcome().result.is_ok()));
    assert!(batch.cancel(ids[1]) && !batch.cancel(ids[1] + 100));
    let cancelled = batch.next().unwrap().unwrap();
    assert_eq!((cancelled.id(), cancelled.outcome().result.is_err(), batch.outstanding()), (ids[1], true, 2));
    assert!(!batch.cancel(ids[1]));
    // The others end with the batch, without a retry.
    drop(batch);
    assert_eq!(origin.requests(), 4);
}

#[test]
fn batch_obeys_start_rate_limits() {
    let origin = many_hosts();
    let client = Client::new();
    for per_host in [false, true] {
        let (all, each) = (StartRate::new(Duration::from_millis(40)), HostStartRate::new(Duration::from_millis(80)));
        let options = BatchOptions {
            start_rate: (!per_host).then_some(all),
            host_start_rate: per_host.then_some(each),
            ..BatchOptions::default()
        };
        let requests: Vec<_> =
            (0..24).map(|i| client.get(&on_host(&origin, i % 2, "/small")).build().unwrap()).collect();
        let began = Instant::now();
        assert!(client.fetch_all(requests, options).all(|(_, reply)| reply.is_ok()));
        let took = began.elapsed();
        let least = if per_host { 11 * Duration::from_millis(80) } else { 23 * Duration::from_millis(40) };
        assert!(took >= least, "{took:?}");
    }
}
