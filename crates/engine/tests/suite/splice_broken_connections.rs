//! Tests of faults during the splicing of a body: the exact prefix is delivered, and the transfer
//! fails.

use crate::common;
use crate::support::spliced_byte_counts;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use common::assert_same;
use haul::sink::file::FileSink;
use haul::{Client, RequestOptions};
use spliced_byte_counts::{MIB, body, fetch, head, head_then_body, pipe_read_by, read_all, waiting_output};
use tempfile::TempDir;
use testkit::h1_peer::{H1Peer, PeerScript, ScriptStep};

/// Returns the script of a server that announces a body of 3 MiB, sends `sent` bytes of it, and
/// then performs `end`.
fn broken_off(sent: usize, end: ScriptStep) -> PeerScript {
    vec![ScriptStep::ReadHead, head(3 * MIB), ScriptStep::Await(1), ScriptStep::Send(body(sent)), end]
}

fn options() -> RequestOptions {
    RequestOptions::default()
}

fn within(limit: u64) -> RequestOptions {
    RequestOptions { max_time: Some(Duration::from_millis(limit)), ..options() }
}

#[test]
fn early_close_is_partial_body_error_with_exact_prefix() {
    for sent in [0, 1, 70_000, MIB + 17, 3 * MIB - 1] {
        let peer = Arc::new(H1Peer::start(vec![broken_off(sent, ScriptStep::Close)]));
        let (writer, reading) = pipe_read_by(read_all);
        let told = fetch(&Client::new(), &peer, waiting_output(writer), &options());
        assert_eq!((told.exit, told.got), (18, sent as u64), "{:?}", told.error);
        assert_same(&reading.join().unwrap(), &body(sent));
    }
}

#[test]
fn connection_reset_is_an_error_with_exact_prefix() {
    let peer = Arc::new(H1Peer::start(vec![broken_off(2 * MIB, ScriptStep::Reset)]));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &options());
    assert_eq!(told.exit, 56, "{:?}", told.error);
    let got = reading.join().unwrap();
    assert_eq!(told.got, got.len() as u64);
    assert_same(&got, &body(got.len()));
}

#[test]
fn discarded_body_reports_its_size_and_faults() {
    for sent in [70_000, MIB + 17, 3 * MIB - 1] {
        let peer = Arc::new(H1Peer::start(vec![broken_off(sent, ScriptStep::Close)]));
        let told = fetch(&Client::new(), &peer, FileSink::new("/dev/null"), &options());
        assert_eq!((told.exit, told.got), (18, sent as u64), "{:?}", told.error);
    }
    let peer = Arc::new(H1Peer::start(vec![broken_off(2 * MIB, ScriptStep::Reset)]));
    let told = fetch(&Client::new(), &peer, FileSink::new("/dev/null"), &options());
    assert_eq!(told.exit, 56, "{:?}", told.error);
    let peer = Arc::new(H1Peer::start(vec![broken_off(MIB, ScriptStep::ReadToEnd)]));
    let told = fetch(&Client::new(), &peer, FileSink::new("/dev/null"), &within(400));
    assert_eq!((told.exit, told.got), (28, MIB as u64), "{:?}", told.error);
}

#[test]
fn failed_download_leaves_no_file() {
    for end in [ScriptStep::Close, ScriptStep::Reset] {
        let dir = TempDir::new().unwrap();
        let peer = Arc::new(H1Peer::start(vec![broken_off(2 * MIB, end)]));
        let told = fetch(&Client::new(), &peer, FileSink::new(dir.path().join("file")), &options());
        assert!(matches!(told.exit, 18 | 56), "{:?}", told.error);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn retry_into_a_file_starts_from_the_beginning() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    let again = vec![ScriptStep::ReadHead, head(3 * MIB), ScriptStep::Send(body(3 * MIB))];
    let peer = Arc::new(H1Peer::start(vec![broken_off(2 * MIB, ScriptStep::Close), again]));
    let told = fetch(&Client::new(), &peer, FileSink::new(&path), &common::retrying(1));
    assert_eq!((told.exit, told.got), (0, 3 * MIB as u64), "{:?}", told.error);
    assert_same(&std::fs::read(&path).unwrap(), &body(3 * MIB));
}

#[test]
fn bytes_already_in_a_pipe_are_not_fetched_again() {
    let peer = Arc::new(H1Peer::always(broken_off(MIB, ScriptStep::Close)));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &common::retrying(3));
    assert_eq!(told.exit, 18);
    assert_eq!(peer.connections(), 1);
    assert_same(&reading.join().unwrap(), &body(MIB));
}

#[test]
fn stalled_spliced_body_ends_at_max_time() {
    let peer = Arc::new(H1Peer::start(vec![broken_off(MIB + 1, ScriptStep::ReadToEnd)]));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &within(400));
    assert_eq!(told.exit, 28, "{:?}", told.error);
    let got = reading.join().unwrap();
    assert_eq!(told.got, got.len() as u64);
    assert_same(&got, &body(got.len()));
}

#[test]
fn output_pipe_never_read_ends_at_max_time() {
    let chunked = |len: usize| {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len:x}\r\n").into_bytes();
        bytes.extend(body(len));
        bytes
    };
    let scripts = [head_then_body(20 * MIB), vec![ScriptStep::ReadHead, ScriptStep::Send(chunked(20 * MIB))]];
    for script in scripts {
        let peer = Arc::new(H1Peer::start(vec![script]));
        let (mut reader, writer) = io::pipe().unwrap();
        let told = fetch(&Client::new(), &peer, waiting_output(writer), &within(300));
        assert_eq!(told.exit, 28, "{:?}", told.error);
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert_same(&got, &body(got.len()));
    }
}

#[test]
fn closed_output_pipe_ends_the_transfer() {
    // The peer sends a part, and then nothing until the connection is closed.
    let peer = Arc::new(H1Peer::start(vec![broken_off(2 * MIB, ScriptStep::ReadToEnd)]));
    let (writer, reading) = pipe_read_by(|mut reader| {
        let mut some = vec![0; 100_000];
        reader.read_exact(&mut some).unwrap();
        some
    });
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &options());
    assert_eq!(told.exit, 23, "{:?}", told.error);
    assert_eq!(told.error.unwrap().io_source().unwrap().kind(), io::ErrorKind::BrokenPipe);
    assert!(peer.finished(1));
    assert_same(&reading.join().unwrap(), &body(100_000));
}

#[test]
#[cfg(linux_calls)]
fn full_device_error_names_the_device() {
    let peer = Arc::new(H1Peer::start(vec![head_then_body(2 * MIB)]));
    let told = fetch(&Client::new(), &peer, FileSink::new("/dev/full"), &options());
    let error = told.error.unwrap();
    assert_eq!((told.exit, error.kind()), (23, haul::ErrorKind::Write));
    assert_eq!(told.counts.moved() + told.counts.written(), 0);
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[test]
fn body_larger_than_disk_fails_before_fetching() {
    let dir = TempDir::new().unwrap();
    let script = vec![ScriptStep::ReadHead, head(1_u64 << 62), ScriptStep::ReadToEnd];
    let peer = Arc::new(H1Peer::start(vec![script]));
    let told = fetch(&Client::new(), &peer, FileSink::new(dir.path().join("file")), &within(10_000));
    assert_eq!(told.exit, 23, "{:?}", told.error);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn announced_length_over_max_size_is_refused() {
    let peer = Arc::new(H1Peer::start(vec![head_then_body(2 * MIB)]));
    let (writer, reading) = pipe_read_by(read_all);
    let limited = RequestOptions { max_size: Some(2 * MIB as u64 - 1), ..options() };
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &limited);
    assert_eq!(told.exit, 63, "{:?}", told.error);
    assert!(reading.join().unwrap().is_empty());
}
