//! Tests that the memory of jobs does not grow with the number of URLs.
//!
//! `HAUL_JOB_URLS=10000000` sets the number of URLs (`make job-memory`).

use crate::common;

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use common::peak_memory::measured;
use rustix::fs::{CWD, Mode, mkfifoat};

/// The maximum memory of a job, in KiB.
const MAX_MEMORY_KIB: u64 = 64 << 10;

/// The maximum additional memory, in KiB, for ten times as many URLs.
const MAX_GROWTH_KIB: u64 = 8 << 10;

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nETag: \"none\"\r\nContent-Length: 0\r\n\r\n";

/// Starts a server that responds to each request with status 404. It only looks for the ends of
/// requests, because it must answer millions.
fn empty_site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (mut buffer, mut matched) = (vec![0; 16 << 10], 0);
    loop {
        let read = stream.read(&mut buffer).ok().filter(|&read| read > 0)?;
        let mut replies = 0;
        for &byte in &buffer[..read] {
            matched = match byte {
                b'\n' if matched % 2 == 1 => matched + 1,
                b'\r' if matched % 2 == 0 => matched + 1,
                _ => 0,
            };
            if matched == 4 {
                (matched, replies) = (0, replies + 1);
            }
        }
        stream.write_all(&NOT_FOUND.repeat(replies)).ok()?;
    }
}

fn write_list(path: &Path, site: SocketAddr, count: u64) -> std::io::Result<()> {
    let mut list = BufWriter::new(File::options().create(true).truncate(true).write(true).open(path)?);
    (0..count).try_for_each(|number| writeln!(list, "http://{site}/items/{number:09}"))?;
    list.flush()
}

/// Runs a job with this number of URLs, each of which has a separate output file name. If
/// `is_piped` is true, haul reads the URLs from a FIFO. Returns the peak memory in KiB.
fn peak_of_job(site: SocketAddr, count: u64, is_piped: bool) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (list, job, output) = (dir.path().join("list"), path("j"), path("f-{name}"));
    let writer = if is_piped {
        mkfifoat(CWD, &list, Mode::RUSR | Mode::WUSR).unwrap();
        let list = list.clone();
        Some(thread::spawn(move || write_list(&list, site, count).unwrap()))
    } else {
        write_list(&list, site, count).unwrap();
        None
    };
    let args = ["--job", &job, "-s", "-o", &output, "--input-file", list.to_str().unwrap()];
    let (code, stderr, peak) = measured(&args, |mut output| drop(std::io::copy(&mut output, &mut std::io::sink())));
    assert_eq!((code.as_str(), stderr.as_str()), ("22", ""));
    if let Some(writer) = writer {
        writer.join().unwrap();
    }
    let rows = rusqlite::Connection::open(&job).unwrap().query_row("SELECT count(*) FROM url", [], |row| row.get(0));
    assert_eq!(rows, Ok(count.cast_signed()));
    let size = |name: &str| fs::metadata(path(name)).map_or(0, |metadata| metadata.len());
    println!("{count} URLs, piped: {is_piped}: {peak} KiB of memory, {} bytes on disk", size("j") + size("j-wal"));
    peak
}

#[test]
fn job_memory_does_not_grow_with_urls() {
    let count = std::env::var("HAUL_JOB_URLS").map_or(80_000, |count| count.parse().expect("a number"));
    let site = empty_site();
    for is_piped in [false, true] {
        let small = peak_of_job(site, count / 10, is_piped);
        let large = peak_of_job(site, count, is_piped);
        let growth = large.saturating_sub(small);
        // The part of a filter grows by two bytes for each name.
        assert!(growth < MAX_GROWTH_KIB + count / 512, "piped: {is_piped}: {small} KiB, then {large}");
        assert!(large < MAX_MEMORY_KIB, "piped: {is_piped}: {large} KiB");
    }
}
