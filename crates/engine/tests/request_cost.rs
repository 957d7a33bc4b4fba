//! Tests of the cost of a small request on a warm connection: system calls and allocations.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::process::Command;
use std::time::Duration;

use common::start_origin;
use haul::request::{MultipartForm, RequestOverrides};
use haul::{Client, Request, Target};

/// The system's allocator, which also counts the allocations of each thread.
struct CountingAllocator;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the same arguments; the count is outside
// its memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `place` came from the system's
        // allocator.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `realloc`, and `place` came from the system's
        // allocator.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn client() -> Client {
    Client::builder().timeout(Duration::from_secs(30)).build()
}

fn posting() -> RequestOverrides {
    RequestOverrides {
        method: Some("POST".into()),
        fields: vec![("Content-Type".into(), b"application/x-www-form-urlencoded".to_vec())],
        body: Some("name=value&other=thing".into()),
        ..RequestOverrides::default()
    }
}

#[test]
fn small_request_makes_few_allocations() {
    let origin = start_origin();
    let client = client();
    let target = Target::parse(&origin.url("/small")).unwrap();
    for (own, most) in [(RequestOverrides::default(), 20), (posting(), 30)] {
        let call = |own: &RequestOverrides| {
            let request = Request::new(target.clone(), client.options().clone(), own.clone());
            let before = COUNT.get();
            client.call(request).unwrap();
            COUNT.get() - before
        };
        for _ in 0..3 {
            call(&own);
        }
        let counts: Vec<u64> = (0..10).map(|_| call(&own)).collect();
        assert!(counts.iter().all(|count| *count <= most), "{:?}: {counts:?}", own.method);
    }
}

/// Runs this test program under strace, and returns its system calls with their counts. `what`
/// selects the requests that it sends, and `times` is their number.
fn calls(url: &str, what: &str, times: u32) -> Option<Vec<(String, u64)>> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-c", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "requests_counted_by_strace", "--ignored", "--test-threads=1"])
        .envs([("HAUL_URL", url), ("HAUL_WHAT", what), ("HAUL_TIMES", &times.to_string())])
        .output();
    let output = match status {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: strace cannot be run: {error}");
            return None;
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("ptrace"), "{said} {}", String::from_utf8_lossy(&output.stdout));
        eprintln!("skipped: strace may not trace here: {said}");
        return None;
    }
    let table = fs::read_to_string(log.path()).unwrap();
    let row = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        Some(((*columns.last()?).to_owned(), columns.get(3)?.parse().ok()?))
    };
    Some(table.lines().skip(2).filter_map(row).filter(|(name, _)| name != "total").collect())
}

#[test]
fn small_request_makes_three_system_calls() {
    let origin = start_origin();
    for (path, what) in [("/small", "get"), ("/echo", "post"), ("/echo", "form")] {
        let url = origin.url(path);
        let (Some(few), Some(many)) = (calls(&url, what, 100), calls(&url, what, 300)) else { return };
        let count = |table: &[(String, u64)], name: &str| {
            table.iter().filter(|(other, _)| other == name).map(|(_, count)| count).sum::<u64>()
        };
        for (name, each) in [("sendto", 1), ("recvfrom", 2)] {
            assert_eq!(count(&many, name) - count(&few, name), 200 * each, "{what} {name} {many:?}");
        }
        let all = |table: &[(String, u64)]| table.iter().map(|(_, count)| count).sum::<u64>();
        // The allocator may ask for memory now and then.
        assert!(all(&many) - all(&few) <= 600 + 10, "{what} {few:?} {many:?}");
    }
}

/// Sends the requests whose system calls [`calls`] counts. It runs in a child process under strace.
/// In other processes, it does nothing.
#[test]
#[ignore = "it is run by another test, under strace"]
fn requests_counted_by_strace() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (Ok(target), Ok(times)) = (Target::parse(&variable("HAUL_URL")), variable("HAUL_TIMES").parse::<u32>()) else {
        return;
    };
    let client = client();
    for _ in 0..times {
        let request = match variable("HAUL_WHAT").as_str() {
            "get" => Request::new(target.clone(), client.options().clone(), RequestOverrides::default()),
            "post" => Request::new(target.clone(), client.options().clone(), posting()),
            _ => {
                let form = MultipartForm::new().text("a", "b").bytes("f", "x.txt", "the file");
                client.request_to("POST", target.clone()).multipart(form).build().unwrap()
            }
        };
        client.call(request).unwrap();
    }
}
