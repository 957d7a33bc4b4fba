//! A test of a split download without free file descriptors (EMFILE): it continues with the
//! connections that it has. The client runs in a child process, so that the limit does not affect
//! the server.

mod common;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs};

use common::{BufferSink, assert_same, with_time_limit};
use haul::request::SplitDownloadOptions;
use haul::sink::Sink;
use haul::sink::file::FileSink;
use haul::{Client, RequestOptions, Target};
use rustix::process::{Resource, getrlimit, setrlimit};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{FaultPlan, FaultyOrigin};

const URL: &str = "HAUL_TEST_URL";
const PATHS: [&str; 2] = ["memory", "file"];
/// The numbers of further descriptors that the child process may open. How many a split into a file
/// needs depends on the system: with the largest number here, each system can split.
const ROOMS: [u64; 8] = [1, 2, 3, 4, 5, 6, 10, 14];

fn plan() -> FaultPlan {
    FaultPlan { size: 4 << 20, rate: Some(4 << 20), ..FaultPlan::default() }
}

#[test]
fn split_without_free_descriptors_continues() {
    let origin = FaultyOrigin::builder().start().unwrap();
    for path in PATHS {
        for room in ROOMS {
            origin.serve(&format!("{path}-{room}"), plan());
        }
    }
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_process_with_few_descriptors_fetches_body", "--nocapture", "--test-threads=1"])
        .env(URL, origin.url("/f/"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "see above");
    for path in PATHS {
        let mut most = 0;
        for room in ROOMS {
            let seen = origin.seen(&format!("{path}-{room}"));
            let parts: Vec<_> = seen.requests[1..].iter().map(|request| request.range.as_deref()).collect();
            // After a silence, the transfer would continue alone, with an open range or none.
            let is_open = |range: &Option<&str>| range.is_none_or(|range| range.ends_with('-'));
            assert!(!parts.first().is_some_and(is_open), "{path}, {room} descriptors: {parts:?}");
            assert!(!parts.contains(&None), "{path}, {room} descriptors: {parts:?}");
            most = most.max(parts.len());
        }
        assert!(most > 0, "{path}: it was never split");
    }
}

/// The test that [`split_without_free_descriptors_continues`] runs in a child process. In any other
/// process, it does nothing.
#[test]
fn child_process_with_few_descriptors_fetches_body() {
    let Ok(url) = env::var(URL) else { return };
    let dir = tempfile::tempdir().unwrap();
    let expected = BytePattern::new(plan().seed).slice(0, plan().size as usize);
    for room in ROOMS {
        let memory = BufferSink::default();
        // The connection and the file need two descriptors.
        let file = dir.path().join("body");
        for (path, sink, more) in
            [("memory", Box::new(memory.clone()) as Box<dyn Sink>, 0), ("file", Box::new(FileSink::new(&file)), 2)]
        {
            fetch(&format!("{url}{path}-{room}"), room + more, sink);
        }
        assert_same(&memory.bytes(), &expected);
        assert_same(&fs::read(&file).unwrap(), &expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "litter");
        fs::remove_file(&file).unwrap();
    }
}

/// Limits the process to `room` further open descriptors, and then fetches a URL.
fn fetch(url: &str, room: u64, sink: Box<dyn Sink>) {
    let before = getrlimit(Resource::Nofile);
    let mut tight = before;
    // The directory is open while it is read.
    tight.current = Some(fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1 + room);
    setrlimit(Resource::Nofile, tight).unwrap();
    let split = SplitDownloadOptions { connections: 6, ..SplitDownloadOptions::default() };
    let options = Arc::new(RequestOptions { split, ..RequestOptions::default() });
    let target = Target::parse(url).unwrap();
    let outcome = with_time_limit("the fetch", move || Client::new().fetch(target, options, sink));
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(outcome.result.is_ok(), "{room}: {:?}", outcome.result);
}
