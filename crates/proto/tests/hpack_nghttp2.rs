//! Compares HPACK with libnghttp2, which most servers and curl use: each implementation decodes the
//! blocks of the other, session by session, with tables that grow and shrink. libnghttp2 is called
//! through Python, so that no C code is linked. If Python or libnghttp2 is not installed, the test
//! prints that and passes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use haul_proto::hpack::{FieldIndexing, HeaderBlock, HpackDecoder, HpackEncoder};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

const SESSIONS: usize = 100;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hpack_nghttp2.py");

/// Generates a session of header blocks. Each block has a size limit for the dynamic table, and
/// fields.
fn session() -> impl Strategy<Value = Vec<(u32, FieldList)>> {
    let name = prop_oneof![
        prop::sample::select(vec![":path", "cookie", "etag", "authorization", "x-a"]).prop_map(str::to_owned),
        "[a-z][a-z0-9-]{0,12}",
    ];
    let value = prop_oneof![
        prop::sample::select(vec!["", "/", "a", "same value"]).prop_map(|value| value.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..60),
        "[ -~]{0,300}".prop_map(String::into_bytes),
    ];
    let field = (name.prop_map(String::into_bytes), value);
    let limit = prop_oneof![4 => Just(4096u32), 1 => 0u32..300, 1 => Just(0u32), 1 => Just(10_000u32)];
    prop::collection::vec((limit, prop::collection::vec(field, 1..12)), 1..12)
}

/// Returns the sessions of header blocks to compare. They are the same in every run.
fn sessions() -> Vec<Vec<(u32, FieldList)>> {
    let mut runner = TestRunner::deterministic();
    (0..SESSIONS).map(|_| session().new_tree(&mut runner).expect("a session").current()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}

fn pairs(fields: &FieldList) -> String {
    fields.iter().map(|(name, value)| format!("{}={}", hex(name), hex(value))).collect::<Vec<_>>().join(" ")
}

/// Passes these lines to libnghttp2 and returns the lines of its output; `None` if libnghttp2 is
/// not installed.
fn nghttp2(what: &str, lines: String) -> Option<Vec<String>> {
    let there = Command::new("python3").args(["-c", "import ctypes; ctypes.CDLL('libnghttp2.so.14')"]).output();
    if !there.is_ok_and(|ran| ran.status.success()) {
        println!("skipped: no python3 with libnghttp2, the comparison with its HPACK");
        return None;
    }
    let mut child = Command::new("python3")
        .args([SCRIPT, what])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut to = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || to.write_all(lines.as_bytes()));
    let ran = child.wait_with_output().expect("python3 ends");
    writer.join().expect("no panic").expect("all is read");
    assert!(ran.status.success(), "libnghttp2 refuses a block");
    Some(String::from_utf8(ran.stdout).expect("text").lines().map(str::to_owned).collect())
}

#[test]
fn blocks_of_nghttp2_are_decoded() {
    let mut lines = String::new();
    for session in sessions() {
        for (limit, fields) in session {
            lines += &format!("{limit} {}\n", pairs(&fields));
        }
        lines += "\n";
    }
    let Some(blocks) = nghttp2("deflate", lines) else { return };
    let mut blocks = blocks.iter();
    for session in sessions() {
        // As large as nghttp2's may get: how it uses its table is its own affair.
        let mut decoder = HpackDecoder::new(10_000);
        for (_, expected) in session {
            let block = bytes(blocks.next().expect("an answer to each line"));
            let (mut block, mut text, mut got) = (HeaderBlock::new(&block), Vec::new(), FieldList::new());
            while let Some(line) = decoder.next_line(&mut block, &mut text).expect("a valid block") {
                got.push((text[line.name].to_vec(), text[line.value].to_vec()));
            }
            assert_eq!(got, expected);
        }
    }
    assert_eq!(blocks.next(), None);
}

#[test]
fn hpack_blocks_are_decoded_by_nghttp2() {
    let mut lines = String::new();
    for (number, session) in sessions().into_iter().enumerate() {
        let indexing = [FieldIndexing::Add, FieldIndexing::Skip, FieldIndexing::Never][number % 3];
        let mut encoder = HpackEncoder::new(8192);
        for (limit, fields) in session {
            encoder.set_peer_limit(limit);
            let mut block = Vec::new();
            encoder.begin_block(&mut block);
            for (name, value) in &fields {
                encoder.encode(name, value, indexing, &mut block);
            }
            lines += &format!("{limit} {}\n", hex(&block));
        }
        lines += "\n";
    }
    let Some(answers) = nghttp2("inflate", lines) else { return };
    let expected: Vec<_> = sessions().iter().flatten().map(|(_, fields)| pairs(fields)).collect();
    assert_eq!(answers, expected);
}
