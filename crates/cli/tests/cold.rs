//! What haul asks of the system, counted by strace: little for one request, very little for each of many.

mod common;

use std::path::Path;
use std::process::Stdio;

use common::{HAUL, list, program, run, skipped};
use testkit::origin::Origin;

/// Calls that a start and an end may cost: the loader, allocators, threads of the standard library.
const STARTUP: u64 = 150;

/// Whether strace is there and may do its work here.
fn can_trace() -> bool {
    let works = program("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skipped("counts of system calls: strace is not installed or may not trace");
    }
    works
}

/// The report of strace over a run of haul.
fn traced(options: &[&str], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let mut command = program("strace");
    // Cargo sets it for tests, and the loader then looks for the C library in each of its directories.
    command.env_remove("LD_LIBRARY_PATH");
    command.arg("-f").args(options).arg("-o").arg(&report).arg(HAUL).args(args);
    run(&mut command).ok();
    std::fs::read_to_string(report).unwrap()
}

/// All calls of a `strace -c`.
fn calls(report: &str) -> u64 {
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let is_row = fields.next()?.parse::<f64>().is_ok() && line.split_whitespace().last() != Some("total");
        fields.nth(2).filter(|_| is_row)?.parse::<u64>().ok()
    };
    report.lines().filter_map(row).sum()
}

fn many(origin: &Origin, dir: &Path, count: usize) -> String {
    list(dir, "list", (0..count).map(|n| origin.url(&format!("/small/{n}")))).to_str().unwrap().to_owned()
}

#[test]
fn one_request_starts_no_thread_and_no_event_loop() {
    if !can_trace() {
        return;
    }
    let origin = Origin::builder().start().unwrap();
    let which = "trace=clone,clone3,fork,vfork,epoll_create,epoll_create1,epoll_ctl,epoll_wait,epoll_pwait,eventfd2";
    for args in [&["-s"][..], &["-s", "-o", "/dev/null"]] {
        let report = traced(&["-e", which], &[args, &[&origin.url("/small")]].concat());
        let calls: Vec<&str> = report.lines().filter(|line| !line.contains("+++ exited")).collect();
        assert_eq!(calls, [""; 0]);
    }
    let report = traced(&["-c"], &["-s", "-o", "/dev/null", &origin.url("/small")]);
    assert!((10..=STARTUP).contains(&calls(&report)), "{report}");
}

#[test]
fn a_small_page_on_a_warm_connection_costs_few_calls() {
    if !can_trace() {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    const PAGES: usize = 2_000;
    let file = many(&origin, dir.path(), PAGES);
    // Not with -o: there each body is a write of its own.
    for extra in [&[][..], &["--unordered"]] {
        let report = traced(&["-c"], &[&["-s", "--threads", "1", "--input-file", &file], extra].concat());
        let calls = calls(&report);
        assert!(calls > PAGES as u64, "each page is a send or a receive at least: {report}");
        assert!(calls <= 5 * PAGES as u64 / 2 + STARTUP, "{extra:?}: {calls} calls\n{report}");
    }
}
