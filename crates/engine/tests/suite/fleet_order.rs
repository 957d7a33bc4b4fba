//! Tests of many URLs with one output: input order, complete bodies, limits of memory and
//! connections.

use crate::common;

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::{FleetRunResult, TEST_TIMEOUT, item, one_thread, run, run_reading, single_stage, start_origin, threads};
use haul::fleet::{BodyDestination, Fleet, FleetItem, FleetJob, FleetOptions, TransferReporter};
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::sink::file::FileOptions;
use haul::transfer::TransferOutcome;
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// Returns `count` body sizes in bytes. Most are small, some are 0, some are much larger than a
/// buffer.
fn sizes(count: usize) -> Vec<usize> {
    (0..count)
        .map(|i| match i % 50 {
            7 => 700_000 + i,
            13 => 0,
            21 => 140_000 + i,
            _ => i * 97 % 20_000,
        })
        .collect()
}

fn urls(origin: &Origin, sizes: &[usize]) -> Vec<String> {
    let kinds = ["bytes", "bytes", "chunked", "bytes", "close"];
    sizes.iter().enumerate().map(|(i, size)| origin.url(&format!("/{}/{size}", kinds[i % kinds.len()]))).collect()
}

fn concatenation(origin: &Origin, sizes: &[usize]) -> Vec<u8> {
    sizes.iter().flat_map(|&size| origin.pattern().slice(0, size)).collect()
}

fn plain() -> Vec<haul::fleet::FleetStage> {
    single_stage(&RequestOptions::default())
}

#[track_caller]
fn assert_whole(run: &FleetRunResult, expected: &[u8], count: usize) {
    let summary = run.summary();
    assert_eq!((summary.succeeded, summary.failed, summary.exit_code), (count as u64, 0, 0), "{:?}", summary.causes);
    assert_eq!(run.reports.len(), count);
    assert_eq!(run.output.len(), expected.len());
    assert!(run.output == expected, "the bytes differ");
}

#[test]
fn fleet_outputs_bodies_in_input_order() {
    let origin = Origin::builder().threads(2).start().unwrap();
    let sizes = sizes(500);
    let (urls, expected) = (urls(&origin, &sizes), concatenation(&origin, &sizes));
    for count in [1, 4] {
        assert_whole(&run(&Client::new(), plain(), threads(count), urls.clone()), &expected, 500);
    }
}

#[test]
fn fleet_over_tls_outputs_bodies_in_input_order() {
    let origin = Origin::builder().threads(2).start().unwrap();
    let (options, _ca) = common::trusting_ca(origin.ca_pem());
    let sizes = sizes(150);
    let urls: Vec<_> = sizes.iter().map(|size| origin.https_url(&format!("/bytes/{size}"))).collect();
    for count in [1, 4] {
        let run = run(&Client::new(), single_stage(&options), threads(count), urls.clone());
        assert_whole(&run, &concatenation(&origin, &sizes), 150);
    }
}

#[test]
fn slow_first_url_does_not_delay_other_fetches() {
    for count in [1, 4] {
        let origin = start_origin();
        let slow = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::Await(1),
            ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfirst\n"),
        ]]);
        let (done, is_done) = channel();
        let report = CountdownReporter { left: Mutex::new(60), done };
        let mut all = vec![slow.url("/")];
        all.extend((0..60).map(|i| origin.url(&format!("/small/{i}"))));
        // All others finish before the first responds.
        let releasing = thread::spawn(move || {
            is_done.recv_timeout(TEST_TIMEOUT).expect("the others finish");
            slow.release();
            slow.finished(1)
        });
        let output = caught(&Client::new(), threads(count), all.into_iter().map(item).collect(), report);
        let expected: String = (0..60).fold("first\n".into(), |text, i| format!("{text}small {i}\n"));
        assert_eq!(String::from_utf8(output).unwrap(), expected);
        assert!(releasing.join().unwrap());
    }
}

/// A reporter that sends a message when a given number of the fleet's transfers have finished.
struct CountdownReporter {
    left: Mutex<usize>,
    done: std::sync::mpsc::Sender<()>,
}

impl TransferReporter for CountdownReporter {
    fn finished(&self, _job: &FleetJob, _outcome: &TransferOutcome) -> Option<Vec<u8>> {
        let mut left = self.left.lock().unwrap();
        *left = left.wrapping_sub(1);
        if *left == 0 {
            let _ = self.done.send(());
        }
        None
    }
}

/// Runs a fleet with the reporter `report`, and returns the output of the fleet.
fn caught(
    client: &Client,
    options: FleetOptions,
    items: Vec<FleetItem>,
    report: impl TransferReporter + 'static,
) -> Vec<u8> {
    let client = client.clone();
    common::with_time_limit("the fleet", move || {
        let (mut reader, writer) = io::pipe().unwrap();
        let reading = thread::spawn(move || {
            let mut output = Vec::new();
            reader.read_to_end(&mut output).unwrap();
            output
        });
        let items = Box::new(items.into_iter().map(Ok));
        Fleet::new(plain(), options).run(&client, items, DescriptorWriter::new(writer.into()), report).unwrap();
        reading.join().unwrap()
    })
}

#[test]
fn bodies_larger_than_memory_reach_a_slow_reader() {
    let origin = Origin::builder().threads(2).start().unwrap();
    let sizes: Vec<usize> = (0..40).map(|i| if i % 3 == 0 { 1_000_000 + i } else { 3000 * i }).collect();
    let expected = concatenation(&origin, &sizes);
    for (count, unordered, memory) in
        [(1, false, 256 << 10), (4, false, 256 << 10), (1, false, 1), (1, true, 256 << 10), (2, true, 1), (3, false, 1)]
    {
        let options = FleetOptions { max_memory: memory, unordered, ..threads(count) };
        let items: Vec<_> = urls(&origin, &sizes).into_iter().map(|url| Ok(item(url))).collect();
        let run = run_reading(&Client::new(), plain(), options, Box::new(items.into_iter()), |mut pipe| {
            let mut output = Vec::new();
            let mut piece = vec![0; 100_000];
            loop {
                thread::sleep(Duration::from_millis(1));
                match pipe.read(&mut piece).unwrap() {
                    0 => return output,
                    n => output.extend_from_slice(&piece[..n]),
                }
            }
        });
        if unordered {
            assert_eq!(run.summary().succeeded, 40);
            assert_records(&run.output, &origin, &sizes);
        } else {
            assert_whole(&run, &expected, 40);
        }
    }
}

/// Asserts that the fleet's output consists of complete bodies of these sizes, in any order.
#[track_caller]
fn assert_records(output: &[u8], origin: &Origin, sizes: &[usize]) {
    // All bodies start with the same bytes and differ in length, so the longest that fits is the
    // right one.
    let whole = origin.pattern().slice(0, *sizes.iter().max().unwrap());
    let mut left: Vec<usize> = sizes.iter().copied().filter(|&size| size > 0).collect();
    left.sort_unstable();
    let mut at = 0;
    while at < output.len() {
        let same = output[at..].iter().zip(&whole).take_while(|(a, b)| a == b).count();
        let place = left.partition_point(|&size| size <= same);
        assert!(place > 0, "no body ends at {}", at + same);
        at += left.remove(place - 1);
    }
    assert!(left.is_empty(), "missing: {left:?}");
}

/// Fetches `count` bodies of `size` bytes by a fleet whose output is not read, and waits until no
/// more requests arrive. Returns two numbers at that time: the requests sent, and the URLs taken
/// from the input.
fn fetched_while_nothing_is_read(size: usize, count: u64, options: FleetOptions) -> (u64, u64) {
    let origin = Arc::new(Origin::builder().threads(2).start().unwrap());
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let url = origin.url(&format!("/bytes/{size}"));
    let items = (0..count).map(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(item(url.clone()))
    });
    let asked = Arc::clone(&origin);
    let (tell, told) = channel();
    let run = run_reading(&Client::new(), plain(), options, Box::new(items), move |mut pipe| {
        let (mut last, mut same) = (0, 0);
        while same < 10 {
            thread::sleep(Duration::from_millis(20));
            let now = asked.requests();
            same = if now == last && now > 0 { same + 1 } else { 0 };
            last = now;
        }
        tell.send((last, taken.load(Ordering::SeqCst))).unwrap();
        io::copy(&mut pipe, &mut io::sink()).unwrap().to_string().into_bytes()
    });
    assert_eq!((run.summary().succeeded, run.output), (count, (count * size as u64).to_string().into_bytes()));
    told.recv().unwrap()
}

#[test]
fn fleet_fetches_little_while_output_is_unread() {
    // A fixed number of connections, since the machine's speed would change an adaptive one.
    let options = FleetOptions { max_memory: 1 << 20, per_host: Some(6), ..one_thread() };
    let (fetched, taken) = fetched_while_nothing_is_read(100_000, 2000, options);
    // 1 MiB holds eight read buffers; the pipe and running requests add some.
    assert!(fetched < 40, "{fetched} of 2000 were fetched for a reader that reads nothing");
    assert!(taken < 400, "the list is in memory");
}

#[test]
fn fleet_fetches_few_small_bodies_while_unread() {
    for unordered in [false, true] {
        let options = FleetOptions { max_memory: 1 << 20, unordered, ..one_thread() };
        let (fetched, _) = fetched_while_nothing_is_read(3000, 20_000, options);
        // 1 MiB and the pipe hold about 400 bodies; running requests add some.
        assert!(fetched < 1000, "{fetched} of 20000 were fetched, unordered: {unordered}");
    }
}

#[test]
fn unordered_bodies_are_not_interleaved() {
    let origin = Origin::builder().threads(2).start().unwrap();
    // Each body has its own length, so that a mixed one is noticed.
    for count in [1, 4] {
        let sizes: Vec<usize> = (1..=120).map(|i| i * 2003).collect();
        let options = FleetOptions { unordered: true, max_memory: 512 << 10, ..threads(count) };
        let run = run(&Client::new(), plain(), options, urls(&origin, &sizes));
        assert_eq!(run.summary().succeeded, 120);
        assert_records(&run.output, &origin, &sizes);
    }
}

#[test]
fn report_text_follows_the_body_of_its_transfer() {
    struct JobNumberReporter;
    impl TransferReporter for JobNumberReporter {
        fn finished(&self, job: &FleetJob, _outcome: &TransferOutcome) -> Option<Vec<u8>> {
            Some(format!("<{}>\n", job.number).into_bytes())
        }
    }
    let origin = start_origin();
    for unordered in [false, true] {
        let items = (0..200).map(|i| item(origin.url(&format!("/small/{i}")))).collect();
        let options = FleetOptions { unordered, ..threads(2) };
        let output = String::from_utf8(caught(&Client::new(), options, items, JobNumberReporter)).unwrap();
        let mut lines: Vec<_> = output.lines().collect();
        assert_eq!(lines.len(), 400);
        for pair in lines.chunks(2) {
            assert_eq!(pair[1], pair[0].replace("small ", "<") + ">");
        }
        if unordered {
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), 400);
        } else {
            assert_eq!(lines[399], "<199>");
        }
    }
}

#[test]
fn fleet_obeys_parallel_and_per_host_limits() {
    let origin = Origin::builder().threads(2).start().unwrap();
    for (per_host, parallel, most) in [(3, 64, 3), (64, 5, 5), (1, 1, 1)] {
        let fresh = Origin::builder().start().unwrap();
        let options = FleetOptions { per_host: Some(per_host), parallel, ..one_thread() };
        let urls: Vec<_> = (0..100).map(|i| fresh.url(&format!("/delay/1/small/{i}"))).collect();
        assert_eq!(run(&Client::new(), plain(), options, urls).summary().succeeded, 100);
        // The first URL of the output may use one more.
        assert!(fresh.peak_requests() <= most + 1, "{} at once, {most} allowed", fresh.peak_requests());
        assert!(fresh.connections() <= most + 1, "{} connections", fresh.connections());
    }
    // Two hosts share the total limit, and each has its own limit.
    let other = start_origin();
    let options = FleetOptions { per_host: Some(2), parallel: 3, ..one_thread() };
    let urls: Vec<_> = (0..100).map(|i| [&origin, &other][i % 2].url(&format!("/delay/1/small/{i}"))).collect();
    assert_eq!(run(&Client::new(), plain(), options, urls).summary().succeeded, 100);
    assert!(origin.peak_requests() <= 3 && other.peak_requests() <= 3);
}

#[test]
fn slow_input_urls_are_fetched_as_they_arrive() {
    let origin = start_origin();
    let (give, given) = channel::<String>();
    let items = given.into_iter().map(|url| Ok(item(url)));
    let options = FleetOptions { slow_input: true, ..one_thread() };
    let url = origin.url("/small/1");
    let feeding = thread::spawn(move || {
        for i in 0..3 {
            give.send(url.clone()).unwrap();
            // The next URL is known only when this one has been fetched.
            let end = Instant::now() + TEST_TIMEOUT;
            while origin.requests() <= i {
                assert!(Instant::now() < end, "URL {i} is not fetched");
                thread::sleep(Duration::from_millis(1));
            }
        }
        origin
    });
    let run = run_reading(&Client::new(), plain(), options, Box::new(items), |mut pipe| {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).unwrap();
        output
    });
    assert_eq!(run.output, b"small 1\n".repeat(3));
    feeding.join().unwrap();
}

#[test]
fn slow_input_that_ends_wakes_idle_workers() {
    // The end of the input must wake the workers. That is a race, so there are many short runs.
    let origin = start_origin();
    let client = Client::new();
    for round in 0..200 {
        let (give, given) = channel::<String>();
        let options = FleetOptions { slow_input: true, ..threads(1 + round % 2) };
        for _ in 0..round % 3 {
            give.send(origin.url("/small")).unwrap();
        }
        let closing = thread::spawn(move || {
            for _ in 0..round * 50 {
                std::hint::spin_loop();
            }
            drop(give);
        });
        let items = Box::new(given.into_iter().map(|url| Ok(item(url))));
        let run = run_reading(&client, plain(), options, items, |mut pipe| {
            let mut output = Vec::new();
            pipe.read_to_end(&mut output).unwrap();
            output
        });
        assert_eq!(run.output, b"small\n".repeat(round % 3));
        closing.join().unwrap();
    }
}

#[test]
fn downloaded_files_appear_whole_or_not_at_all() {
    let origin = start_origin();
    let dir = tempfile::tempdir().unwrap();
    let broken = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwrong"),
        ScriptStep::Close,
    ]);
    let to = |url: String, name: &str, create_dirs| {
        let options = FileOptions { create_dirs, ..FileOptions::default() };
        FleetItem::new(url, BodyDestination::File { path: dir.path().join(name), options })
    };
    fs::write(dir.path().join("old"), "old").unwrap();
    let items = vec![
        to(origin.url("/bytes/300000"), "big", false),
        to(broken.url("/"), "broken", false),
        to(broken.url("/"), "old", false),
        to(origin.url("/status/404"), "missing", false),
        to(origin.url("/small/1"), "a/b/small", true),
        to(origin.url("/small/2"), "no/such/directory", false),
        to(origin.url("/bytes/0"), "empty", false),
        item(origin.url("/small/3")),
    ];
    let options = RequestOptions { fail: true, ..RequestOptions::default() };
    let run = run_items(&options, items);
    let exits: HashMap<_, _> = run.exits().into_iter().collect();
    assert_eq!(exits[&origin.url("/small/2")], 23);
    assert_eq!((run.summary().succeeded, run.summary().failed, run.summary().exit_code), (4, 4, 18));
    assert_eq!(run.output, b"small 3\n");
    assert!(fs::read(dir.path().join("big")).unwrap() == origin.pattern().slice(0, 300_000));
    assert_eq!(fs::read(dir.path().join("a/b/small")).unwrap(), b"small 1\n");
    assert_eq!(fs::read(dir.path().join("old")).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["a", "big", "empty", "old"]);
}

fn run_items(options: &RequestOptions, items: Vec<FleetItem>) -> FleetRunResult {
    run_reading(&Client::new(), single_stage(options), one_thread(), Box::new(items.into_iter().map(Ok)), |mut pipe| {
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).unwrap();
        output
    })
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn closed_output_pipe_ends_the_run() {
    let origin = Origin::builder().threads(2).start().unwrap();
    let url = origin.url("/bytes/50000");
    for (count, unordered) in [(1, false), (4, false), (1, true)] {
        let before = origin.requests();
        let url = url.clone();
        let items = (0..1_000_000).map(move |_| Ok(item(url.clone())));
        let options = FleetOptions { unordered, max_memory: 4 << 20, ..threads(count) };
        let run = run_reading(&Client::new(), plain(), options, Box::new(items), |mut pipe| {
            let mut output = vec![0; 200_000];
            pipe.read_exact(&mut output).unwrap();
            output
        });
        let error = run.result.unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Write, 23), "{error}");
        assert_eq!(error.io_source().unwrap().kind(), io::ErrorKind::BrokenPipe);
        assert!(
            origin.requests() - before < 2000,
            "{} requests for a reader that has left",
            origin.requests() - before
        );
    }
}

#[test]
fn close_delimited_body_survives_a_slow_reader() {
    // The connection ends long before the output has room for the last bytes.
    let origin = start_origin();
    let sizes = [1_000_000, 5, 900_000];
    let urls: Vec<_> = sizes.iter().map(|size| origin.url(&format!("/close/{size}"))).collect();
    let items: Vec<_> = urls.into_iter().map(|url| Ok(item(url))).collect();
    let run = run_reading(&Client::new(), plain(), one_thread(), Box::new(items.into_iter()), |mut pipe| {
        thread::sleep(Duration::from_millis(200));
        let mut output = Vec::new();
        pipe.read_to_end(&mut output).unwrap();
        output
    });
    assert_whole(&run, &concatenation(&origin, &sizes), 3);
}
