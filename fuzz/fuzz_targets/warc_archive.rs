//! Fuzzes archives: whatever a server sends, the records of an archive are read back as they were
//! recorded, and the reader of the tests survives any file.
//!
//! The first byte has the options. Then come exchanges, each of a head, two pieces of a body and a
//! URL, all of which have one byte of length.
#![no_main]

#[allow(dead_code, reason = "the tests of the command use the rest")]
#[path = "../../testkit/src/warc_reader.rs"]
mod warc_reader;

use haul::exchange_record::{ExchangeEnd, ExchangeRecorder, ExchangeStart, TruncationReason};
use haul::{ProtocolVersion, Target};
use haul_cli::plan::WarcArgs;
use haul_cli::warc::WarcArchive;
use libfuzzer_sys::fuzz_target;
use warc_reader::{read, read_prefix};

/// Removes a piece from the front of the input.
fn piece<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let Some((&length, rest)) = data.split_first() else { return &[] };
    let (piece, rest) = rest.split_at(usize::from(length).min(rest.len()));
    *data = rest;
    piece
}

fuzz_target!(|data: &[u8]| {
    let (_, end, fault) = read_prefix(data);
    assert!(end <= data.len() && (fault.is_some() || end == data.len()));
    let Some((&options, mut rest)) = data.split_first() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let name = if options & 1 == 0 { "a.warc" } else { "a.warc.gz" };
    let args = WarcArgs { keeps_secrets: options & 2 == 0, ..WarcArgs::default() };
    // With no memory, every message goes through a file.
    let memory = if options & 4 == 0 { 1 << 20 } else { 0 };
    let archive = WarcArchive::create(folder.path().join(name), &args, memory).expect("an archive");
    let mut expected = Vec::new();
    while !rest.is_empty() {
        let (value, first, second, url) = (piece(&mut rest), piece(&mut rest), piece(&mut rest), piece(&mut rest));
        let value: Vec<u8> = value.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        let head = [b"HTTP/1.1 200 OK\r\nX-Value: ", &value[..], b"\r\n\r\n"].concat();
        let url = ["http://h/", &String::from_utf8_lossy(url)].concat();
        let target = Target::parse(&url).unwrap_or_else(|_| Target::parse("http://h/").expect("a URL"));
        let request = b"GET / HTTP/1.1\r\nCookie: a\r\n\r\n";
        let start =
            ExchangeStart { target: &target, head: request, version: ProtocolVersion::Http11, server: None, tls: None };
        let mut record = archive.begin(&start);
        record.request_content(second);
        record.response_head(&head);
        record.response_body(first).expect("room");
        record.response_body(second).expect("room");
        let is_whole = first.len() % 2 == 0;
        let end = if is_whole { ExchangeEnd::Complete } else { ExchangeEnd::Truncated(TruncationReason::Time) };
        record.end(end).expect("room");
        expected.push((target.to_url(), [&head, first, second].concat(), head));
    }
    let bytes = std::fs::read(folder.path().join(name)).expect("an archive");
    let records = read(&bytes).expect("a valid archive");
    assert_eq!(records.len(), 1 + 2 * expected.len());
    for (pair, (url, block, head)) in records[1..].chunks(2).zip(&expected) {
        assert_eq!(args.keeps_secrets, pair[0].message().0.windows(6).any(|window| window == b"Cookie"));
        assert_eq!(pair[1].field("WARC-Target-URI"), Some(url.as_str()));
        let is_revisit = pair[1].field("WARC-Type") == Some("revisit");
        assert_eq!(&pair[1].block, if is_revisit { head } else { block });
    }
});
