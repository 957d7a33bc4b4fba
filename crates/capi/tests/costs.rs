//! Costs: the system calls of a small request, the memory after many requests, and requests of
//! threads that share a client.

mod common;

use std::fs;
use std::process::Command;

use common::{BuildDirectory, has};
use testkit::origin::Origin;

/// Returns the names of the system calls of one request on an open connection; `None` if strace
/// does not work here. The program `tests/c/small.c` marks the start and the end of each request.
fn calls_of_one(kind: &str) -> Option<Vec<String>> {
    if !has("strace") {
        return None;
    }
    let directory = BuildDirectory::new()?;
    let (_origin, base) = Origin::start_with_base_url();
    let (small, log) = (directory.compile("tests/c/small.c"), directory.path("strace"));
    let status =
        Command::new("strace").arg("-o").arg(&log).arg(small.path()).args([&base, kind, "5"]).status().unwrap();
    if !status.success() {
        eprintln!("SKIPPED: strace cannot trace here");
        return None;
    }
    let log = fs::read_to_string(log).unwrap();
    let names: Vec<&str> = log.lines().filter_map(|line| line.split_once('(').map(|(name, _)| name)).collect();
    let is_mark = |line: &str| line.starts_with("write(99,");
    let marks: Vec<usize> =
        log.lines().enumerate().filter(|(_, line)| is_mark(line)).map(|(number, _)| number).collect();
    assert_eq!(marks.len(), 6, "{log}");
    Some(names[marks[4] + 1..marks[5]].iter().map(ToString::to_string).collect())
}

#[test]
fn small_request_on_open_connection_makes_three_system_calls() {
    for kind in ["get", "post", "multipart"] {
        let Some(calls) = calls_of_one(kind) else { return };
        assert_eq!(calls, ["recvfrom", "sendto", "recvfrom"], "{kind}");
    }
}

#[test]
fn memory_does_not_grow_with_requests() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let soak = directory.compile("tests/c/soak.c");
    // `make c-soak` has 200,000.
    let count = std::env::var("HAUL_C_SOAK").unwrap_or_else(|_| "5000".into());
    println!("{}", soak.run_well([base, count]).trim_end());
}

#[test]
fn threads_share_connections_and_cookie_jar() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let threads = directory.compile("tests/c/threads.c");
    let rounds = std::env::var("HAUL_C_ROUNDS").unwrap_or_else(|_| "200".into());
    println!("{}", threads.run_well([&base, "6", &rounds]).trim_end());
}
