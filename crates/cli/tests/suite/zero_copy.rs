//! Tests that the kernel moves bodies without copying them to haul's memory. strace counts every
//! call that could move bytes of a body. Only the bytes that arrive together with the head are
//! read.
#![cfg(linux_calls)]

use crate::common;

use std::io::Write;
use std::process::Command;

use common::{HAUL, bash, can_trace};
use testkit::faulty::{FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::unix_relay::UnixRelay;

const SIZE: u64 = 64 << 20;
/// The maximum number of body bytes that haul may read together with the head: the size of a read
/// buffer.
const WITH_HEAD: u64 = 128 << 10;

/// Returns the system calls in a report of strace: the name, the first argument and the result of
/// each call.
fn calls(report: &str) -> Vec<(String, String, u64)> {
    let parse = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (name, rest) = call.trim_start().split_once('(')?;
        let first = rest.split([',', ')']).next()?;
        let result = line.rsplit_once(" = ")?.1.split_whitespace().next()?.parse().ok()?;
        Some((name.to_owned(), first.to_owned(), result))
    };
    report.lines().filter_map(parse).collect()
}

fn traced(line: impl Fn(&str, &str) -> String) -> Vec<(String, String, u64)> {
    let origin = FaultyOrigin::builder().start().unwrap();
    let url = origin.url(&origin.serve("body", FaultPlan { size: SIZE, ..FaultPlan::default() }));
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    // -y shows the kind of each descriptor. io_uring and sendfile are traced, too.
    let which = "trace=read,readv,pread64,preadv,preadv2,recvfrom,recvmsg,recvmmsg,write,writev,pwrite64,pwritev,\
                 pwritev2,sendto,sendmsg,splice,tee,vmsplice,sendfile,mmap,io_uring_setup";
    let tracing = format!("strace -f -y -e '{which}' -o {} {HAUL}", report.display());
    let ran = bash(HAUL, &format!("set -o pipefail; unset LD_LIBRARY_PATH; {}", line(&tracing, &url)));
    assert_eq!(String::from_utf8(ran.ok()).unwrap().trim(), SIZE.to_string());
    calls(&std::fs::read_to_string(report).unwrap())
}

/// Returns the number of bytes that the system calls with these names moved. Only the calls count
/// whose first argument, a descriptor, contains the text `kind`, such as `pipe`.
fn carried(calls: &[(String, String, u64)], names: &[&str], kind: &str) -> u64 {
    let fits = |call: &&(String, String, u64)| names.contains(&call.0.as_str()) && call.1.contains(kind);
    calls.iter().filter(fits).map(|call| call.2).sum()
}

/// The option that disables splitting, because the parts of a split download are read into memory.
const ALONE: &str = "--split 1";

const READS: [&str; 8] = ["read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg"];
const WRITES: [&str; 7] = ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "vmsplice"];

#[test]
fn plain_body_is_spliced_into_a_pipe() {
    if !can_trace("the way of body bytes") {
        return;
    }
    let calls = traced(|haul, url| format!("{haul} {ALONE} -s {url} | cat | wc -c"));
    let read = carried(&calls, &READS, "socket:");
    assert!((1..=WITH_HEAD).contains(&read), "{read} bytes of the socket were read");
    let written = carried(&calls, &WRITES, "pipe:");
    assert!(written <= WITH_HEAD, "{written} bytes were written to the pipe");
    let moved = carried(&calls, &["splice"], "socket:");
    assert!(moved >= SIZE - WITH_HEAD, "{moved} bytes were moved");
    assert!(moved + written == SIZE, "{moved} moved and {written} written are not all");
    assert_eq!(carried(&calls, &["io_uring_setup", "sendfile"], ""), 0);
}

#[test]
fn discarded_body_is_dropped_in_the_kernel() {
    if !can_trace("the way of body bytes") {
        return;
    }
    let calls = traced(|haul, url| format!("{haul} {ALONE} -s -o /dev/null -w '%{{size_download}}' {url}"));
    assert_eq!(carried(&calls, &["splice"], ""), 0, "it goes through no pipe");
    assert_eq!(carried(&calls, &WRITES, "null"), 0, "and nothing is written");
    let received = carried(&calls, &["recvfrom"], "socket:");
    assert!((SIZE..=SIZE + WITH_HEAD).contains(&received), "{received} bytes were received");
}

#[test]
fn plain_body_is_spliced_into_a_file() {
    if !can_trace("the way of body bytes") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file").display().to_string();
    let calls = traced(|haul, url| format!("{haul} {ALONE} -s -o {file} {url} && wc -c <{file}"));
    assert!(carried(&calls, &READS, "socket:") <= WITH_HEAD);
    assert!(carried(&calls, &["splice"], "socket:") >= SIZE - WITH_HEAD);
    assert!(carried(&calls, &WRITES, "file") <= 2 * WITH_HEAD + (SIZE / (4 << 20) + 1) * 4096, "but for notes");
}

/// Uploads a file of `size` bytes to `peer` with these options, and returns the system calls that
/// could move its bytes, and the file's path.
fn traced_upload(peer: &H1Peer, size: usize, options: &str) -> (Vec<(String, String, u64)>, String) {
    let dir = tempfile::tempdir().unwrap();
    let (file, report) = (dir.path().join("file"), dir.path().join("report"));
    std::fs::write(&file, vec![b'x'; size]).unwrap();
    let which = "trace=read,readv,pread64,sendto,sendmsg,sendfile";
    let tracing = format!("strace -f -y -e '{which}' -o {} {HAUL}", report.display());
    bash(HAUL, &format!("{tracing} -s {options} -T {} {}", file.display(), peer.url("/"))).ok();
    (calls(&std::fs::read_to_string(report).unwrap()), file.display().to_string())
}

/// Starts a peer that reads requests with a body of `size` bytes.
fn upload_peer(size: usize) -> H1Peer {
    H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(size),
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ])
}

#[test]
fn uploaded_file_is_sent_by_the_kernel() {
    if !can_trace("the way of uploaded bytes") {
        return;
    }
    let size = 8 << 20;
    let peer = upload_peer(size);
    let relay = UnixRelay::to(peer.addr()).unwrap();
    let (calls, file) = traced_upload(&peer, size, &format!("--unix-socket {}", relay.path().display()));
    assert_eq!(carried(&calls, &["sendfile"], "socket:"), size as u64);
    assert!(carried(&calls, &["sendto", "sendmsg"], "socket:") <= WITH_HEAD);
    assert_eq!(carried(&calls, &["read", "readv", "pread64"], &file), 0);
}

#[test]
fn file_uploaded_over_tcp_to_this_machine_is_read_in_large_pieces() {
    if !can_trace("the way of uploaded bytes") {
        return;
    }
    let size = 64 << 20;
    let (calls, file) = traced_upload(&upload_peer(size), size, "");
    assert_eq!(carried(&calls, &["sendfile"], ""), 0);
    let reads = calls.iter().filter(|call| call.1.contains(&file) && call.2 > 0);
    assert_eq!(reads.clone().map(|call| call.2).sum::<u64>(), size as u64);
    assert!(reads.clone().count() < 400, "{} reads of the file", reads.count());
}

#[test]
fn uploaded_pipe_is_sent_by_the_kernel() {
    if !can_trace("the way of uploaded bytes") {
        return;
    }
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    // All of it waits in the pipe before haul starts.
    let content = testkit::byte_pattern::compressible_text(1, 60_000);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&content).unwrap();
    drop(writer);
    let status = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=read,readv,pread64,sendto,sendmsg,splice", "-o"])
        .args([report.as_os_str(), HAUL.as_ref()])
        .args(["-s", "-T", "-", "-o", "/dev/null", &origin.url("/echo")])
        .env_remove("LD_LIBRARY_PATH")
        .stdin(reader)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let log = origin.log();
    assert_eq!(log.len(), 1);
    assert!(log[0].body == content, "{} bytes arrived", log[0].body.len());
    let calls = calls(&std::fs::read_to_string(report).unwrap());
    assert_eq!(carried(&calls, &["splice"], "pipe:"), content.len() as u64);
    assert_eq!(carried(&calls, &["read", "readv", "pread64"], "pipe:"), 0);
}
