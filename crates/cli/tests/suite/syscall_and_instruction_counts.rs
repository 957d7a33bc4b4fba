//! Checks the number of system calls (counted by strace) and of instructions (counted by
//! callgrind), for a single request and for each of many requests.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{HAUL, can_trace, list, program, run};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

/// The maximum number of system calls for starting and ending the process: the loader, the
/// allocator, the threads of the standard library.
const STARTUP: u64 = 150;

/// Runs haul with `args` under strace with `options`. Returns the report of strace.
fn traced(options: &[&str], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let mut command = program("strace");
    // Cargo sets it for tests, and the loader then looks for the C library in each of its
    // directories.
    command.env_remove("LD_LIBRARY_PATH");
    command.arg("-f").args(options).arg("-o").arg(&report).arg(HAUL).args(args);
    run(&mut command).ok();
    std::fs::read_to_string(report).unwrap()
}

/// Returns the total number of system calls in a report of `strace -c`.
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
fn single_request_starts_no_thread_or_event_loop() {
    if !can_trace("counts of system calls") {
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
fn small_page_on_open_connection_costs_few_syscalls() {
    if !can_trace("counts of system calls") {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    const PAGES: usize = 2_000;
    let file = many(&origin, dir.path(), PAGES);
    // Not with -o: there each body is a write of its own. The connections are as many as for a near
    // host, which the server is not under strace.
    let args = ["-s", "--threads", "1", "--parallel-max-host", "6", "--input-file", &file];
    for extra in [&[][..], &["--unordered"]] {
        let report = traced(&["-c"], &[&args, extra].concat());
        let calls = calls(&report);
        assert!(calls > PAGES as u64, "each page is a send or a receive at least: {report}");
        assert!(calls <= 5 * PAGES as u64 / 2 + STARTUP, "{extra:?}: {calls} calls\n{report}");
    }
}

/// Writes a config file with `count` groups, each of which sends its own content, and returns its
/// path.
fn post_groups(origin: &Origin, dir: &Path, count: usize) -> String {
    let url = origin.url("/small");
    let group = |n| format!("next\nurl = \"{url}\"\ndata = \"item={n}\"\noutput = \"/dev/null\"\n");
    let path = dir.join(format!("groups.{count}"));
    std::fs::write(&path, (0..count).map(group).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn post_group_in_curl_mode_costs_few_syscalls() {
    if !can_trace("counts of system calls") {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    const GROUPS: usize = 1_000;
    let file = post_groups(&origin, dir.path(), GROUPS);
    let report = traced(&["-c"], &["curl", "-q", "-s", "-Z", "--parallel-max", "6", "-K", &file]);
    let calls = calls(&report);
    assert!(calls >= 2 * GROUPS as u64, "each request is a send and a receive: {report}");
    assert!(calls <= 5 * GROUPS as u64 / 2 + STARTUP, "{calls} calls\n{report}");
}

#[test]
fn upload_groups_without_output_files_resolve_no_paths() {
    if !can_trace("counts of system calls") {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (upload, config) = (dir.path().join("upload"), dir.path().join("groups"));
    std::fs::write(&upload, "content").unwrap();
    let group = format!("next\nurl = {}\nupload-file = {}\n", origin.url("/echo"), upload.display());
    std::fs::write(&config, group.repeat(100)).unwrap();
    let args = ["curl", "-q", "-s", "-Z", "-K", config.to_str().unwrap()];
    let report = traced(&["-e", "trace=readlink,openat"], &args);
    let about = |call: &str| report.lines().filter(|line| line.contains(call) && line.contains("/upload")).count();
    // Once for the size, and once for the content. The first 50 are also opened before the first
    // request, as in curl.
    assert_eq!((about("readlink"), about("openat")), (0, 250), "{report}");
}

#[test]
fn output_to_device_searches_no_partial_files() {
    if !can_trace("counts of system calls") {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = many(&origin, dir.path(), 100);
    let report = traced(&["-e", "trace=openat"], &["-s", "--threads", "1", "-o", "/dev/null", "--input-file", &file]);
    let about: Vec<&str> = report.lines().filter(|line| line.contains("null")).collect();
    // The probes of the first body, and of bodies that start before it has opened the device.
    assert!(!about.is_empty() && about.len() <= 20, "{about:#?}");
    // The open device is remembered: its kind and place are not queried for each body. (The
    // remaining calls are from the start.)
    let asking = ["-e", "trace=readlink,fcntl,fstat,newfstatat,statx"];
    let report = traced(&asking, &["-s", "--threads", "1", "-o", "/dev/null", "--input-file", &file]);
    assert!(report.lines().count() < 150, "{report}");
}

/// Returns a command that runs a program under callgrind, which counts instructions. The count does
/// not depend on the load of the machine.
fn callgrind(program: &str, args: &[&str]) -> Command {
    let mut command = common::program("valgrind");
    command
        .env_remove("LD_LIBRARY_PATH")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program])
        .args(args);
    command
}

/// Runs a command that [`callgrind`] returned. Returns the number of executed instructions; `None`
/// if callgrind reports none.
fn counted(command: &mut Command) -> Option<u64> {
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let line = ran.stderr.lines().find(|line| line.contains("Collected"))?;
    line.split_whitespace().last()?.parse().ok()
}

#[test]
fn post_group_costs_little_more_than_a_url() {
    if common::installed("valgrind", "instructions of a URL group").is_none() {
        return;
    }
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let few_urls = many(&origin, dir.path(), 50);
    let all_urls = list(dir.path(), "more", (0..150).map(|n| origin.url(&format!("/small/{n}"))));
    let (few_groups, all_groups) = (post_groups(&origin, dir.path(), 50), post_groups(&origin, dir.path(), 150));
    let count = |args: &[&str]| {
        let common = ["-s", "--threads", "1", "--parallel-max-host", "6"];
        counted(&mut callgrind(HAUL, &[&common, args].concat())).expect("callgrind says how many")
    };
    let of_urls = |file: &str| count(&["-o", "/dev/null", "--input-file", file]);
    let of_groups = |file: &str| count(&["-K", file]);
    let url = (of_urls(all_urls.to_str().unwrap()) - of_urls(&few_urls)) / 100;
    let group = (of_groups(&all_groups) - of_groups(&few_groups)) / 100;
    // A group that had its own copy of the default settings cost more than three times as much.
    assert!(group <= 2 * url, "{group} instructions for a group, {url} for a URL");
}

/// Writes a file with 151 CA certificates, about as many as a system trusts, and returns its path.
/// One of them is the CA of the test server. All have the same subject, so that haul tries them one
/// after the other.
fn bundle(dir: &Path, origin: &Origin) -> PathBuf {
    let others = (0..150).map(|_| TestCertificates::generate().ca_pem().to_owned());
    let path = dir.join("bundle.pem");
    std::fs::write(&path, [origin.ca_pem().to_owned()].into_iter().chain(others).collect::<String>()).unwrap();
    path
}

#[test]
fn loading_system_certificates_costs_few_instructions() {
    if common::installed("valgrind", "instructions of reading the system's certificates").is_none() {
        return;
    }
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let bundle = bundle(dir.path(), &origin);
    let url = origin.https_url("/small");
    let args = ["-s", "-o", "/dev/null", &url];
    let one = dir.path().join("one.pem");
    std::fs::write(&one, origin.ca_pem()).unwrap();
    let by = |file: &Path| {
        let mut command = callgrind(HAUL, &args);
        counted(command.env("SSL_CERT_FILE", file).env_remove("SSL_CERT_DIR")).expect("callgrind says how many")
    };
    let (few, many) = (by(&one), by(&bundle));
    // 20,000 each as of 2026; a patient reader of PEM takes 60,000.
    assert!(many - few <= 150 * 40_000, "{} instructions for 150 certificates", many - few);
}

#[test]
fn cold_start_costs_few_instructions() {
    if common::installed("valgrind", "instructions of a cold start").is_none() {
        return;
    }
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let plain = ["-s", "-o", "/dev/null", &origin.url("/small")];
    let secure = ["-s", "-o", "/dev/null", "--cacert", ca.to_str().unwrap(), &origin.https_url("/small")];
    let count = |program, args: &[&str]| counted(&mut callgrind(program, args)).expect("callgrind says how many");
    let (small, large) = (count(HAUL, &plain), count(HAUL, &secure));
    // A million and a half each as of 2026. The jitter entropy of aws-lc would be a hundred million
    // more.
    assert!(small <= 4_000_000, "{small} instructions for a plain request");
    assert!(large <= 12_000_000, "{large} instructions for one by TLS");
    let trusted = ["-s", "-o", "/dev/null", "-k", &origin.https_url("/small")];
    assert!(count(HAUL, &trusted) <= 12_000_000);
    if common::installed("curl", "a cold start against curl's").is_some() {
        assert!(small * 2 <= count("curl", &plain), "at most half of curl's");
        assert!(large * 10 <= count("curl", &secure) * 6, "at most 0.6 of curl's");
    }
}
