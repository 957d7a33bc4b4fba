//! Tests of the output for a list of URLs: complete bodies in the order of the list, with limited
//! memory, even if a server or the reader of the output is slow.

use crate::common;

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use common::peak_memory::peak_memory;
use common::small_site::SmallSite;
use common::{haul, list, run, run_haul};
use tempfile::TempDir;
use testkit::byte_pattern::BytePattern;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

/// The memory in KiB that haul may use in addition to the buffers that `--max-memory` limits.
const OWN: u64 = 36 << 10;
/// The default of `--max-memory`, in KiB.
const BUDGET: u64 = 64 << 10;

/// A test server, and a list of URLs on it. The bodies of the URLs together exceed every memory
/// limit in these tests. All bodies are prefixes of one pattern with different lengths, so that the
/// end of a body identifies it.
struct BodyListServer {
    origin: Origin,
    lens: Vec<usize>,
    dir: TempDir,
}

impl BodyListServer {
    fn new() -> BodyListServer {
        let lens = (0..400).map(|n| 400_000 + n * 7919 % 1000).collect();
        BodyListServer { origin: Origin::builder().start().unwrap(), lens, dir: tempfile::tempdir().unwrap() }
    }

    /// Writes the URLs to a file, and returns the path of the file. `before` is inserted before the
    /// path of the first URL.
    fn list(&self, before: &str) -> String {
        let url = |(n, len)| self.origin.url(&format!("{}/bytes/{len}", if n == 0 { before } else { "" }));
        text(list(self.dir.path(), "list", self.lens.iter().enumerate().map(url)))
    }

    fn reader(&self) -> BodyChecker<'_> {
        let longest = self.lens.iter().max().unwrap();
        BodyChecker { lens: &self.lens, body: self.origin.pattern().slice(0, *longest), number: 0, at: 0 }
    }
}

/// Checks that haul's output consists of all bodies in order. It does so while the output is read,
/// because the output is too large for memory.
struct BodyChecker<'a> {
    lens: &'a [usize],
    body: Vec<u8>,
    number: usize,
    at: usize,
}

impl BodyChecker<'_> {
    fn check(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            assert!(self.number < self.lens.len(), "more than the bodies");
            let left = (self.lens[self.number] - self.at).min(bytes.len());
            assert!(bytes[..left] == self.body[self.at..self.at + left], "body {} from {}", self.number, self.at);
            bytes = &bytes[left..];
            self.at += left;
            if self.at == self.lens[self.number] {
                (self.number, self.at) = (self.number + 1, 0);
            }
        }
    }

    fn check_all(mut self, mut from: impl Read, mut pause: impl FnMut()) {
        let mut buffer = vec![0; 256 << 10];
        loop {
            match from.read(&mut buffer).unwrap() {
                0 => break,
                len => self.check(&buffer[..len]),
            }
            pause();
        }
        assert_eq!((self.number, self.at), (self.lens.len(), 0), "as many as the list has");
    }
}

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn pages_are_printed_in_list_order() {
    let origin = Origin::builder().site(GeneratedSite::scaled(2, 640).cached()).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    // No order that the server or the client has by itself.
    let mut paths = origin.site().as_paths();
    paths.sort_by_key(|path| path.chars().rev().collect::<String>());
    let expected: Vec<u8> = paths.iter().flat_map(|path| origin.site().page(path).unwrap()).collect();
    assert!(expected.len() > 30_000_000, "{}", expected.len());
    let file = text(list(dir.path(), "list", paths.iter().map(|path| origin.url(path))));
    for threads in ["1", "2", "4"] {
        let got = run_haul(["--threads", threads, "--input-file", &file]).ok();
        assert!(got == expected, "{threads} threads: {} bytes of {}", got.len(), expected.len());
    }
    let mut peak = 0;
    let mut got = Vec::new();
    for memory in ["64M", "1M"] {
        got.clear();
        let args = ["--max-memory", memory, "--input-file", &file];
        peak = peak_memory(&args, |mut from| {
            from.read_to_end(&mut got).unwrap();
        });
        assert!(got == expected, "{memory}: {} bytes of {}", got.len(), expected.len());
    }
    assert!(peak <= 1024 + OWN, "{peak} KiB at 1M");
}

#[test]
fn memory_is_bounded_with_a_slow_reader() {
    let bodies = BodyListServer::new();
    let file = bodies.list("");
    for (memory, budget) in [("64M", BUDGET), ("1M", 1024)] {
        let mut first = true;
        let peak = peak_memory(&["--max-memory", memory, "--input-file", &file], |from| {
            bodies.reader().check_all(from, || {
                if std::mem::take(&mut first) {
                    // Until nothing more is asked for: all that may run ahead has.
                    let mut before = 0;
                    common::eventually("the window is full", || {
                        thread::sleep(Duration::from_millis(150));
                        std::mem::replace(&mut before, bodies.origin.requests()) == bodies.origin.requests()
                    });
                } else {
                    thread::sleep(Duration::from_micros(100));
                }
            });
        });
        assert!(peak <= budget + OWN, "{peak} KiB at {memory}");
    }
}

#[test]
fn memory_is_bounded_with_a_slow_first_page() {
    let bodies = BodyListServer::new();
    let file = bodies.list("/delay/1500");
    for (memory, budget) in [("64M", BUDGET), ("1M", 1024)] {
        let peak = peak_memory(&["--max-memory", memory, "--input-file", &file], |from| {
            bodies.reader().check_all(from, || ());
        });
        assert!(peak <= budget + OWN, "{peak} KiB at {memory}");
    }
}

/// The memory in KiB that haul may use for any number of URLs, in addition to the memory for each
/// connection (`docs/design/faults.md`).
const MASS: u64 = 64 << 10;
const A_CONNECTION: u64 = 64;

#[test]
fn memory_for_many_urls_is_bounded_per_connection() {
    let bodies = BodyListServer::new();
    // Every reply is waited for, so that each has a connection of its own.
    let urls = bodies.lens.iter().map(|len| bodies.origin.url(&format!("/delay/300/bytes/{len}")));
    let file = text(list(bodies.dir.path(), "mass", urls));
    let most = bodies.lens.len().to_string();
    for order in [&[][..], &["--unordered"]] {
        let args = ["--parallel-max", &most, "--parallel-max-host", &most, "--input-file", &file];
        let before = bodies.origin.connections();
        let mut len = 0;
        let peak = peak_memory(&[&args[..], order].concat(), |mut from| {
            len = std::io::copy(&mut from, &mut std::io::sink()).unwrap();
        });
        assert_eq!(len, bodies.lens.iter().sum::<usize>() as u64);
        let connections = bodies.origin.connections() - before;
        println!("{order:?}: {peak} KiB with {connections} connections");
        assert!(peak <= MASS + A_CONNECTION * connections, "{order:?}: {peak} KiB with {connections} connections");
    }
}

#[test]
fn memory_does_not_grow_with_the_list() {
    let origin = Origin::builder().record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let urls = |count: usize| (0..count).map(|n| origin.url(&format!("/small/{n}")));
    let (few, many) = (text(list(dir.path(), "few", urls(2_000))), text(list(dir.path(), "many", urls(20_000))));
    for order in [&[][..], &["--unordered"]] {
        let peak = |file: &str, count: usize| {
            let mut got = String::new();
            let peak = peak_memory(&[&["--input-file", file], order].concat(), |mut from| {
                from.read_to_string(&mut got).unwrap();
            });
            assert_eq!(got.lines().count(), count);
            peak
        };
        let (small, large) = (peak(&few, 2_000), peak(&many, 20_000));
        assert!(large <= small * 12 / 10, "{order:?}: {small} KiB for few, {large} KiB for many");
    }
}

#[test]
fn unordered_output_has_the_same_complete_texts() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text_of = |n: usize| format!("/text/{}", 1000 + n * 997 % 60_000);
    let file = text(list(dir.path(), "list", (0..300).map(|n| origin.url(&text_of(n)))));
    // A byte that no text has tells the records apart.
    let args = ["-w", "%{size_download}\u{1}", "--input-file", &file];
    let records = |got: String| {
        let mut records: Vec<String> = got.split_inclusive('\u{1}').map(str::to_owned).collect();
        records.sort();
        records
    };
    let ordered = records(run_haul(args).text());
    assert_eq!(ordered.len(), 300);
    for threads in ["1", "4"] {
        let unordered = run_haul(args.iter().chain(&["--unordered", "--threads", threads])).text();
        assert!(records(unordered) == ordered, "{threads} threads");
    }
}

#[test]
fn option_groups_run_one_after_another() {
    let origin = Origin::builder().start().unwrap();
    let (slow, quick) = (origin.url("/delay/100/small/[1-3]"), origin.url("/small/[4-6]"));
    let got = run_haul([&*slow, "--next", &quick]).text();
    assert_eq!(got, "small 1\nsmall 2\nsmall 3\nsmall 4\nsmall 5\nsmall 6\n");
}

#[test]
fn test_bodies_are_prefixes_of_one_pattern() {
    // The comparison above depends on this.
    let pattern = BytePattern::new(1);
    assert_eq!(pattern.slice(0, 1000)[..900], pattern.slice(0, 900));
}

#[test]
fn explicit_stdout_keeps_headers_and_bodies_ordered() {
    let origin = Origin::builder().start().unwrap();
    let (slow, quick) = (origin.url("/delay/100/small/1"), origin.url("/small/2"));
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        assert_eq!(run_haul(["-o", name, &slow, "-o", name, &quick]).text(), "small 1\nsmall 2\n", "{name}");
    }
    let got = run_haul(["-D", "-", &slow, &quick]).text();
    let parts: Vec<&str> = got.split("\r\n\r\n").collect();
    assert!(parts[0].starts_with("HTTP/1.1 200") && parts[1].starts_with("small 1\nHTTP/1.1 200"), "{got}");
    assert_eq!(parts[2..], ["small 2\n"]);
}

/// Returns 24 MiB of content in zstd format, with a window of 8 MiB (RFC 8878). Blocks of 6 KiB
/// without compression alternate with blocks that repeat one byte.
fn windowed() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    for block in 0_u32..384 {
        let (size, kind) = if block % 2 == 0 { (6 << 10, 0_u32) } else { (122 << 10, 1) };
        let header = size << 3 | kind << 1 | u32::from(block == 383);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend(std::iter::repeat_n(b'a' + (block % 26) as u8, if kind == 0 { size as usize } else { 1 }));
    }
    frame
}

#[test]
fn many_zstd_bodies_share_their_window_memory() {
    let coded = windowed();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n", coded.len());
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send([head.as_bytes(), &coded].concat())]);
    let dir = tempfile::tempdir().unwrap();
    let file = |count: usize| text(list(dir.path(), "list", (0..count).map(|n| peer.url(&format!("/{n}")))));
    let args = ["-s", "--compressed", "--parallel-max", "40", "--parallel-max-host", "40", "--max-memory", "32M"];
    // With files each body is decoded independently; in order they wait for each other.
    for (options, count, bytes) in
        [(&["-o", "/dev/null"][..], 40, 0), (&[], 12, (12 * 24) << 20), (&["--unordered"], 12, (12 * 24) << 20)]
    {
        let mut got = 0;
        let file = file(count);
        let peak = peak_memory(&[&args[..], options, &["--input-file", &file]].concat(), |mut from| {
            got = std::io::copy(&mut from, &mut std::io::sink()).unwrap();
        });
        println!("{options:?}: {peak} KiB");
        assert_eq!(got, bytes, "{options:?}");
        // The budget and the first read of each body. With separate windows each body would take 8
        // MiB.
        let most = OWN + (32 << 10) + (count as u64 * (1 << 10));
        assert!(peak <= most, "{options:?}: {peak} KiB");
    }
}

#[test]
fn byte_order_mark_of_a_list_is_skipped() {
    let site = SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())));
    let dir = tempfile::tempdir().unwrap();
    let urls = [site.url("/0"), site.url("/1")].join("\n");
    let file = dir.path().join("list");
    fs::write(&file, format!("\u{feff}{urls}")).unwrap();
    assert_eq!(run_haul(["--input-file", file.to_str().unwrap()]).text(), "page /0\npage /1\n");
    let piped = run(haul(["--input-file", "-"]).stdin(fs::File::open(&file).unwrap()));
    assert_eq!(piped.text(), "page /0\npage /1\n");
    // In another line, it belongs to the URL.
    fs::write(&file, format!("{}\n\u{feff}{urls}\n", site.url("/2"))).unwrap();
    assert_eq!(run_haul(["--input-file", file.to_str().unwrap()]).code, 3);
}
