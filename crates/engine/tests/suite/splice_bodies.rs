//! Tests of bodies of known length that are spliced from the socket to their destination, or copied
//! if splicing is impossible: every byte is correct.

use crate::common;
use crate::support::spliced_byte_counts;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::thread;

use common::{DriverKind, assert_same, one_thread, single_stage, trusting_ca, with_time_limit};
use haul::fleet::{BodyDestination, Fleet, FleetItem};
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::sink::file::{FileOptions, FileSink};
use haul::sink::memory::MemorySink;
use haul::{Client, RequestOptions};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, mknodat};
use spliced_byte_counts::{
    MIB, body, fetch, fetch_with_marks, head, head_then_body, pipe_read_by, read_all, waiting_output,
};
use tempfile::TempDir;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::test_certificates::TestCertificates;

const SIZES: [usize; 9] =
    [64 << 10, (64 << 10) + 1, (128 << 10) - 1, 511 << 10, MIB - 1, MIB + 1, 2 * MIB, 5 * MIB + 3, 20 * MIB];

fn options() -> RequestOptions {
    RequestOptions::default()
}

#[test]
fn splice_to_pipe_moves_every_byte() {
    for len in SIZES {
        let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
        let (writer, reading) = pipe_read_by(read_all);
        fetch(&Client::new(), &peer, waiting_output(writer), &options()).assert_spliced(len);
        assert_same(&reading.join().unwrap(), &body(len));
    }
}

#[test]
fn small_body_is_copied_not_spliced() {
    for len in [1, 4096, (64 << 10) - 1] {
        let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
        let (writer, reading) = pipe_read_by(read_all);
        fetch(&Client::new(), &peer, waiting_output(writer), &options()).assert_copied(len);
        assert_same(&reading.join().unwrap(), &body(len));
    }
}

#[test]
fn bytes_received_with_head_precede_spliced_body() {
    let len = 3 * MIB;
    let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    bytes.extend(&body(len)[..10_000]);
    let script = vec![
        ScriptStep::ReadHead,
        ScriptStep::Send(bytes),
        ScriptStep::Await(1),
        ScriptStep::Send(body(len)[10_000..].to_vec()),
    ];
    let peer = Arc::new(H1Peer::start(vec![script]));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &options());
    assert_eq!((told.exit, told.counts.moved() + told.counts.written()), (0, len));
    assert!(!spliced_byte_counts::CAN_SPLICE || told.counts.written() <= 10_000);
    assert_same(&reading.join().unwrap(), &body(len));
}

#[test]
fn included_head_precedes_the_spliced_body() {
    let len = MIB;
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    let (writer, reading) = pipe_read_by(read_all);
    let told =
        fetch(&Client::new(), &peer, waiting_output(writer), &RequestOptions { include_head: true, ..options() });
    assert_eq!(told.exit, 0);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    assert_same(&reading.join().unwrap(), &[head, body(len)].concat());
}

#[test]
fn splice_to_file_moves_every_byte() {
    let dir = TempDir::new().unwrap();
    for len in SIZES {
        let path = dir.path().join(len.to_string());
        let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
        fetch(&Client::new(), &peer, FileSink::new(&path), &options()).assert_spliced(len);
        assert_same(&fs::read(&path).unwrap(), &body(len));
    }
}

#[test]
fn splice_to_device_moves_every_byte() {
    let len = 20 * MIB;
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    fetch(&Client::new(), &peer, FileSink::new("/dev/null"), &options()).assert_spliced(len);
}

#[test]
fn splice_to_fifo_moves_every_byte() {
    let (dir, len) = (TempDir::new().unwrap(), 5 * MIB);
    let path = dir.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let from = path.clone();
    let reading = thread::spawn(move || fs::read(from).unwrap());
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    fetch(&Client::new(), &peer, FileSink::new(&path), &options()).assert_spliced(len);
    assert_same(&reading.join().unwrap(), &body(len));
}

#[test]
fn splice_to_file_starts_at_its_offset() {
    let (mut file, len) = (tempfile::tempfile().unwrap(), 2 * MIB);
    file.write_all(b"before").unwrap();
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    fetch(&Client::new(), &peer, waiting_output(file.try_clone().unwrap()), &options()).assert_spliced(len);
    file.write_all(b"after").unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    assert_same(&read_all(file), &[b"before".to_vec(), body(len), b"after".to_vec()].concat());
}

#[test]
fn append_mode_file_is_copied_not_spliced() {
    let (dir, len) = (TempDir::new().unwrap(), 2 * MIB);
    let path = dir.path().join("log");
    fs::write(&path, "before").unwrap();
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    fetch(&Client::new(), &peer, waiting_output(file), &options()).assert_copied(len);
    assert_same(&fs::read(&path).unwrap(), &[b"before".to_vec(), body(len)].concat());
}

#[test]
fn splice_to_slow_pipe_reader_moves_every_byte() {
    let len = 3 * MIB;
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    let (writer, reading) = pipe_read_by(|mut reader| {
        let (mut all, mut piece) = (Vec::new(), [0; 997]);
        loop {
            match reader.read(&mut piece).unwrap() {
                0 => return all,
                n => all.extend_from_slice(&piece[..n]),
            }
            thread::yield_now();
        }
    });
    fetch(&Client::new(), &peer, waiting_output(writer), &options()).assert_spliced(len);
    assert_same(&reading.join().unwrap(), &body(len));
}

#[test]
fn splice_leaves_the_callers_descriptor_blocking() {
    let len = 2 * MIB;
    let peer = Arc::new(H1Peer::start(vec![head_then_body(len)]));
    let (writer, reading) = pipe_read_by(read_all);
    let ours = writer.try_clone().unwrap();
    fetch(&Client::new(), &peer, waiting_output(writer), &options()).assert_spliced(len);
    assert!(!fcntl_getfl(&ours).unwrap().contains(OFlags::NONBLOCK));
    drop(ours);
    reading.join().unwrap();
}

#[test]
fn connection_is_reused_after_a_spliced_body() {
    let (client, big) = (Client::new(), 20 * MIB);
    let mut script = vec![];
    for (turn, len) in [big, 10, big].into_iter().enumerate() {
        script.extend([
            ScriptStep::ReadHead,
            head(len),
            ScriptStep::Await(turn as u64 + 1),
            ScriptStep::Send(body(len)),
        ]);
    }
    let peer = Arc::new(H1Peer::start(vec![script]));
    for len in [big, 10, big] {
        let (writer, reading) = pipe_read_by(read_all);
        assert_eq!(fetch(&client, &peer, waiting_output(writer), &options()).exit, 0);
        assert_same(&reading.join().unwrap(), &body(len));
    }
    assert_eq!(peer.connections(), 1);
}

#[test]
fn chunked_body_is_copied_not_spliced() {
    let len = 300_000;
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body(len).chunks(100_000) {
        chunked.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let peer = Arc::new(H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::Send(chunked)]]));
    let (writer, reading) = pipe_read_by(read_all);
    fetch(&Client::new(), &peer, waiting_output(writer), &options()).assert_copied(len);
    assert_same(&reading.join().unwrap(), &body(len));
}

#[test]
fn decoded_body_is_copied_not_spliced() {
    let text = testkit::byte_pattern::compressible_text(3, 4 * MIB);
    let coded = testkit::content_coding::ContentCoding::Gzip.encode(&text);
    assert!(coded.len() > 100_000);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", coded.len());
    let script = vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Await(1), ScriptStep::Send(coded)];
    let peer = Arc::new(H1Peer::start(vec![script]));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch(&Client::new(), &peer, waiting_output(writer), &RequestOptions { decode: true, ..options() });
    assert_eq!((told.exit, told.counts.moved()), (0, 0));
    assert_same(&reading.join().unwrap(), &text);
}

#[test]
fn fleet_splices_bodies_to_files_and_devices() {
    let dir = TempDir::new().unwrap();
    let lens = [20 * MIB, 70_000, 1, 3 * MIB + 5, MIB];
    let script = |len| vec![ScriptStep::ReadHead, head(len), ScriptStep::Send(body(len))];
    let peers: Vec<_> = lens.iter().map(|&len| H1Peer::start(vec![script(len)])).collect();
    let items: Vec<_> = peers
        .iter()
        .zip(lens)
        .map(|(peer, len)| {
            let path = if len == MIB { "/dev/null".into() } else { dir.path().join(len.to_string()) };
            let destination = BodyDestination::File { path, options: FileOptions::default() };
            Ok(FleetItem::new(peer.url("/"), destination))
        })
        .collect();
    let notes = common::RecordingReporter::default();
    let report = notes.clone();
    with_time_limit("the fleet", move || {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let fleet = Fleet::new(single_stage(&options()), one_thread());
        fleet.run(&Client::new(), Box::new(items.into_iter()), DescriptorWriter::new(null.into()), report).unwrap();
    });
    assert!(notes.all().iter().all(|got| got.exit == 0), "{:?}", notes.all());
    let mut counted: Vec<_> = notes.all().iter().map(|got| got.facts.body_bytes as usize).collect();
    counted.sort_unstable();
    let mut expected = lens;
    expected.sort_unstable();
    assert_eq!(counted, expected);
    for len in lens.into_iter().filter(|&len| len != MIB) {
        assert_same(&fs::read(dir.path().join(len.to_string())).unwrap(), &body(len));
    }
}

/// Returns the script of a server that sends `first` bytes at full speed, then one byte, and then,
/// only after the client has received that byte, `rest` bytes.
fn pausing_script(first: usize, rest: usize) -> Vec<ScriptStep> {
    let all = body(first + 1 + rest);
    vec![
        ScriptStep::ReadHead,
        head(all.len()),
        ScriptStep::Send(all[..first].to_vec()),
        ScriptStep::Await(2),
        ScriptStep::Send(all[first..=first].to_vec()),
        ScriptStep::Await(3),
        ScriptStep::Send(all[first + 1..].to_vec()),
        ScriptStep::ReadToEnd,
    ]
}

const FIRST: usize = 8 * MIB;
const REST: usize = 6 * MIB;

#[test]
fn slow_body_is_delivered_without_delay() {
    let peer = Arc::new(H1Peer::start(vec![pausing_script(FIRST, REST)]));
    let (writer, reading) = pipe_read_by(read_all);
    let told = fetch_with_marks(&Client::new(), &peer, waiting_output(writer), &options(), &[FIRST, FIRST + 1]);
    assert_eq!(told.exit, 0, "{:?}", told.error);
    assert_same(&reading.join().unwrap(), &body(FIRST + 1 + REST));

    let peer = Arc::new(H1Peer::start(vec![pausing_script(FIRST, REST)]));
    let told = fetch_with_marks(&Client::new(), &peer, MemorySink::default(), &options(), &[FIRST, FIRST + 1]);
    told.assert_copied(FIRST + 1 + REST);
}

#[test]
fn slow_tls_body_is_delivered_without_delay() {
    let identity = TestCertificates::generate();
    let (options, _file) = trusting_ca(identity.ca_pem());
    let peer = Arc::new(H1Peer::start_tls(vec![pausing_script(FIRST, REST)], &identity, &[]));
    let (sink, counts) = spliced_byte_counts::CountingSink::new(MemorySink::default(), &peer, &[FIRST, FIRST + 1]);
    let url = format!("https://localhost:{}/", peer.addr().port());
    let outcome = with_time_limit("the transfer", move || {
        Client::new().fetch(haul::Target::parse(&url).unwrap(), Arc::new(options), Box::new(sink))
    });
    spliced_byte_counts::SpliceOutcome::of(outcome, counts).assert_copied(FIRST + 1 + REST);
}

#[test]
fn fleet_delivers_a_slow_body_without_delay() {
    let peer = Arc::new(H1Peer::start(vec![pausing_script(FIRST, REST)]));
    let telling = Arc::clone(&peer);
    // The head arrives before the body.
    peer.release();
    let items = vec![Ok(common::item(peer.url("/")))];
    let run = common::run_reading(
        &Client::new(),
        single_stage(&options()),
        one_thread(),
        Box::new(items.into_iter()),
        move |mut pipe| {
            let mut all = vec![0; FIRST];
            pipe.read_exact(&mut all).unwrap();
            telling.release();
            all.push(0);
            pipe.read_exact(&mut all[FIRST..]).unwrap();
            telling.release();
            pipe.read_to_end(&mut all).unwrap();
            all
        },
    );
    assert_eq!(run.reports[0].exit, 0);
    assert_same(&run.output, &body(FIRST + 1 + REST));
}

#[test]
fn both_drivers_receive_large_bodies_whole() {
    for driver in [DriverKind::Blocking, DriverKind::Reactor] {
        let len = 9 * MIB;
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            head(len),
            ScriptStep::Send(body(len)),
            ScriptStep::ReadToEnd,
        ]]);
        assert_same(driver.get(&Client::new(), &peer.url("/"), &options()).ok(), &body(len));
    }
}
