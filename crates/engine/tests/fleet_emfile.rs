//! A test of a fleet without free file descriptors (EMFILE): the fleet runs fewer requests at once,
//! and loses no URL. The client runs in a child process, so that the limit does not affect the
//! server.

mod common;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use common::{FleetRunResult, run_reading, single_stage, threads};
use haul::fleet::{BodyDestination, FleetItem, FleetOptions};
use haul::net::dns::{DnsCacheOptions, Resolver};
use haul::sink::file::FileOptions;
use haul::{Client, RequestOptions};
use rustix::process::{Resource, getrlimit, setrlimit};
use testkit::origin::Origin;

const PORT: &str = "HAUL_TEST_PORT";
const URLS: usize = 400;

#[test]
fn fleet_without_free_descriptors_loses_no_url() {
    let origin = Origin::builder().start().unwrap();
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_process_with_few_descriptors_fetches_all", "--nocapture", "--test-threads=1"])
        .env(PORT, origin.http_addr().port().to_string())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "see above");
    assert!(origin.requests() >= 6 * URLS as u64, "{} requests", origin.requests());
}

/// The test that [`fleet_without_free_descriptors_loses_no_url`] runs in a child process. In any
/// other process, it does nothing.
#[test]
fn child_process_with_few_descriptors_fetches_all() {
    let Ok(port) = env::var(PORT) else { return };
    for count in [1, 4] {
        for (room, per_host) in [(24, 6), (60, 40)] {
            let items = (0..URLS).map(|i| common::item(url(&port, i))).collect();
            let done = limited(room, FleetOptions { per_host: Some(per_host), ..threads(count) }, items);
            let expected: String = (0..URLS).map(|i| format!("small {i}\n")).collect();
            assert_eq!((done.summary().succeeded, done.summary().failed), (400, 0), "{:?}", done.reports);
            assert_eq!(String::from_utf8(done.output).unwrap(), expected);
        }
    }
    // Files need descriptors as well.
    let dir = tempfile::tempdir().unwrap();
    let path = |i: usize| -> PathBuf { dir.path().join(i.to_string()) };
    for count in [1, 4] {
        let file =
            |i| FleetItem::new(url(&port, i), BodyDestination::File { path: path(i), options: FileOptions::default() });
        let done = limited(24, threads(count), (0..URLS).map(file).collect());
        let failure = done.reports.iter().find(|got| got.exit != 0).map(|got| got.message.as_str());
        assert_eq!((done.summary().succeeded, failure), (400, None), "{:?}", done.summary().causes);
        for i in 0..URLS {
            assert_eq!(fs::read(path(i)).unwrap(), format!("small {i}\n").as_bytes());
            fs::remove_file(path(i)).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "litter");
    }
}

/// Returns the URL number `i`, on one of forty hosts. The fleet then needs more connections than
/// the limit on descriptors allows.
fn url(port: &str, i: usize) -> String {
    format!("http://h{}.test:{port}/small/{i}", i % 40)
}

/// Limits the process to `room` further open descriptors, and then runs a fleet.
fn limited(room: u64, options: FleetOptions, items: Vec<FleetItem>) -> FleetRunResult {
    let client = Client::with_resolver(Resolver::with_lookup(DnsCacheOptions::default(), |_| {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }));
    let before = getrlimit(Resource::Nofile);
    let mut tight = before;
    tight.current = Some(fs::read_dir("/proc/self/fd").unwrap().count() as u64 + room);
    setrlimit(Resource::Nofile, tight).unwrap();
    let done = run_reading(
        &client,
        single_stage(&RequestOptions::default()),
        options,
        Box::new(items.into_iter().map(Ok)),
        |mut pipe| {
            let mut output = Vec::new();
            std::io::Read::read_to_end(&mut pipe, &mut output).unwrap();
            output
        },
    );
    setrlimit(Resource::Nofile, before).unwrap();
    done
}
