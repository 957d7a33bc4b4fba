//! Tests of QPACK: the examples of RFC 9204, round trips with any timing of the streams, and
//! malformed sections and instructions.

use haul_proto::qpack::{FieldIndexing, QpackDecoder, QpackEncoder, QpackError, QpackFault};
use proptest::prelude::*;

type SectionFields = Vec<(Vec<u8>, Vec<u8>)>;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("hex"), 16).expect("hex");
    digits.chunks(2).map(pair).collect()
}

fn fields(list: &[(&str, &str)]) -> SectionFields {
    list.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Decodes a section whose insertions have arrived. Returns its Required Insert Count and fields.
fn decode(decoder: &mut QpackDecoder, section: &[u8]) -> Result<(u64, SectionFields), QpackError> {
    let mut section = decoder.begin_section(section)?;
    let (mut text, mut found) = (Vec::new(), Vec::new());
    while let Some(line) = decoder.next_line(&mut section, &mut text)? {
        assert_eq!(&text[line.name.end..line.value.start], b": ");
        assert_eq!(&text[line.value.end..], b"\r\n");
        found.push((text[line.name].to_vec(), text[line.value].to_vec()));
    }
    Ok((section.required_insert_count(), found))
}

fn encode(encoder: &mut QpackEncoder, stream: u64, list: &SectionFields, indexing: FieldIndexing) -> Vec<u8> {
    let mut section = Vec::new();
    encoder.begin_section();
    for (name, value) in list {
        encoder.encode(name, value, indexing);
    }
    encoder.finish_section(stream, &mut section);
    section
}

const INSERTIONS: [&str; 4] = [
    "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
    "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565",
    "02",
    "810d 6375 7374 6f6d 2d76 616c 7565 32",
];

/// Decodes the session of RFC 9204, Appendix B.
#[test]
fn qpack_session_matches_rfc9204_examples() {
    let mut decoder = QpackDecoder::new(220);
    let section = bytes("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(decode(&mut decoder, &section), Ok((0, fields(&[(":path", "/index.html")]))));

    let section = bytes("0381 10 11");
    assert_eq!(decoder.begin_section(&section).expect("a valid prefix").required_insert_count(), 2);
    assert_eq!(decoder.insert_count(), 0, "the section has to wait");
    assert_eq!(decoder.on_encoder_stream(&bytes(INSERTIONS[0])), Ok(3));
    let expected = fields(&[(":authority", "www.example.com"), (":path", "/sample/path")]);
    assert_eq!(decode(&mut decoder, &section), Ok((2, expected)));
    let mut acknowledgements = Vec::new();
    decoder.acknowledge_section(4, 2, &mut acknowledgements);
    decoder.acknowledge_insertions(&mut acknowledgements);
    assert_eq!(acknowledgements, [0x84], "the section's acknowledgement covers both insertions");

    assert_eq!(decoder.on_encoder_stream(&bytes(INSERTIONS[1])), Ok(1));
    acknowledgements.clear();
    decoder.acknowledge_insertions(&mut acknowledgements);
    assert_eq!(acknowledgements, [0x01]);

    assert_eq!(decoder.on_encoder_stream(&bytes(INSERTIONS[2])), Ok(1));
    let expected = fields(&[(":authority", "www.example.com"), (":path", "/"), ("custom-key", "custom-value")]);
    assert_eq!(decode(&mut decoder, &bytes("0500 80 c1 81")), Ok((4, expected)));
    acknowledgements.clear();
    decoder.cancel_stream(8, &mut acknowledgements);
    assert_eq!(acknowledgements, [0x48]);

    assert_eq!(decoder.on_encoder_stream(&bytes(INSERTIONS[3])), Ok(1));
    assert_eq!(decoder.insert_count(), 5);
    assert_eq!(decode(&mut decoder, &bytes("0600 80")), Ok((5, fields(&[("custom-key", "custom-value2")]))));
    let gone = Err(QpackError::Section(QpackFault::Index { index: 4 }));
    assert_eq!(decode(&mut decoder, &bytes("0600 84")), gone, "the oldest entry was evicted");
}

/// Decodes literals whose names are entries after the base (RFC 9204 §4.5.6).
#[test]
fn post_base_name_references_are_decoded() {
    let mut decoder = QpackDecoder::new(220);
    assert_eq!(decoder.on_encoder_stream(&bytes(INSERTIONS[0])), Ok(3));
    let expected = fields(&[(":authority", "z"), (":path", "z"), (":path", "/sample/path")]);
    assert_eq!(decode(&mut decoder, &bytes("0381 00 017a 01 017a 11")), Ok((2, expected)));
    for (first, is_sensitive) in [(0x01, false), (0x09, true)] {
        let wire = [&bytes("0381")[..], &[first, 1, b'z']].concat();
        let (mut section, mut text) = (decoder.begin_section(&wire).expect("a prefix"), Vec::new());
        let line = decoder.next_line(&mut section, &mut text).expect("valid").expect("a field");
        assert_eq!(line.sensitive, is_sensitive);
        assert_eq!(text, b":path: z\r\n");
    }
    let beyond = QpackError::Section(QpackFault::Index { index: 2 });
    assert_eq!(decode(&mut decoder, &bytes("0381 02 017a")), Err(beyond));
}

#[test]
fn qpack_instructions_may_be_cut_anywhere() {
    let wire = bytes(&INSERTIONS.concat());
    let section = bytes("0600 80 81 82 83");
    let mut whole = QpackDecoder::new(220);
    assert_eq!(whole.on_encoder_stream(&wire), Ok(6));
    let expected = decode(&mut whole, &section);
    assert!(expected.is_ok());
    for cut in 0..=wire.len() {
        let mut decoder = QpackDecoder::new(220);
        let (first, second) = wire.split_at(cut);
        let count =
            decoder.on_encoder_stream(first).expect("valid") + decoder.on_encoder_stream(second).expect("valid");
        assert_eq!((count, decode(&mut decoder, &section)), (6, expected.clone()), "cut at {cut}");
    }
    let mut decoder = QpackDecoder::new(220);
    for byte in wire {
        decoder.on_encoder_stream(&[byte]).expect("valid");
    }
    assert_eq!(decode(&mut decoder, &section), expected);
}

fn request() -> SectionFields {
    fields(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "www.example.com"),
        (":path", "/a/b/c"),
        ("user-agent", "example/1.0"),
        ("accept", "*/*"),
        ("cookie", "a long cookie that stays the same"),
    ])
}

/// Sends the same request repeatedly. The first one has literal fields, the second one inserts the
/// repeated fields, and the third one refers to them once the peer has acknowledged the insertions.
#[test]
fn repeated_qpack_fields_are_indexed_once_acknowledged() {
    let (mut encoder, mut decoder) = (QpackEncoder::new(4096), QpackDecoder::new(4096));
    encoder.set_peer_limit(4096);
    let first = encode(&mut encoder, 0, &request(), FieldIndexing::Add);
    assert!(encoder.encoder_stream_output().is_empty(), "one request needs no table");
    let second = encode(&mut encoder, 4, &request(), FieldIndexing::Add);
    assert_eq!(second, first, "the insertions are not acknowledged");
    let insertions = std::mem::take(encoder.encoder_stream_output());
    assert_eq!(decoder.on_encoder_stream(&insertions), Ok(5), "the capacity, and four fields");
    let mut acknowledgements = Vec::new();
    decoder.acknowledge_insertions(&mut acknowledgements);
    assert_eq!(acknowledgements, [4]);
    assert_eq!(encoder.on_decoder_stream(&acknowledgements), Ok(0));

    let third = encode(&mut encoder, 8, &request(), FieldIndexing::Add);
    assert_eq!(third.len(), 2 + request().len(), "a byte for each field: {third:02x?}");
    assert_eq!(decode(&mut decoder, &third), Ok((4, request())));
    assert!(encoder.encoder_stream_output().is_empty());
    let secret = encode(&mut encoder, 12, &request(), FieldIndexing::Never);
    assert!(secret.len() > first.len() - 20, "nothing secret is indexed");
    assert_eq!(decode(&mut decoder, &secret).expect("valid").1, request());
}

#[test]
fn qpack_entries_in_use_are_not_evicted() {
    let (mut encoder, mut decoder) = (QpackEncoder::new(100), QpackDecoder::new(100));
    encoder.set_peer_limit(100);
    let [one, two] = ["a", "b"].map(|value| fields(&[("x-name", &value.repeat(30))]));
    for _ in 0..2 {
        encode(&mut encoder, 0, &one, FieldIndexing::Add);
    }
    decoder.on_encoder_stream(encoder.encoder_stream_output()).expect("valid");
    encoder.encoder_stream_output().clear();
    for _ in 0..2 {
        encode(&mut encoder, 4, &two, FieldIndexing::Add);
    }
    assert!(encoder.encoder_stream_output().is_empty(), "the first entry is not acknowledged");
    assert_eq!(encoder.on_decoder_stream(&[1]), Ok(0));
    let section = encode(&mut encoder, 8, &one, FieldIndexing::Add);
    encode(&mut encoder, 12, &two, FieldIndexing::Add);
    assert!(encoder.encoder_stream_output().is_empty(), "a section refers to the first entry");
    assert_eq!(decode(&mut decoder, &section), Ok((1, one)));
    assert_eq!(encoder.on_decoder_stream(&[0x88]), Ok(0));
    encode(&mut encoder, 16, &two, FieldIndexing::Add);
    assert_eq!(decoder.on_encoder_stream(encoder.encoder_stream_output()), Ok(1));
    assert_eq!(decode(&mut decoder, &bytes("0300 80")), Ok((2, two)));
}

#[test]
fn qpack_table_stays_unused_without_peer_limit() {
    let mut encoder = QpackEncoder::new(4096);
    let sections: Vec<Vec<u8>> =
        (0..4).map(|stream| encode(&mut encoder, 4 * stream, &request(), FieldIndexing::Add)).collect();
    assert!(sections.iter().all(|section| *section == sections[0]) && encoder.encoder_stream_output().is_empty());
    encoder.set_peer_limit(31);
    encode(&mut encoder, 0, &request(), FieldIndexing::Add);
    assert!(encoder.encoder_stream_output().is_empty(), "no entry fits");
}

#[test]
fn malformed_qpack_sections_are_refused() {
    let mut decoder = QpackDecoder::new(220);
    decoder.on_encoder_stream(&bytes(INSERTIONS[0])).expect("valid");
    let cases = [
        ("", QpackFault::Truncated),
        ("00", QpackFault::Truncated),
        ("0000 ff", QpackFault::Truncated),
        ("0000 51", QpackFault::Truncated),
        ("0000 510b 2f", QpackFault::Truncated),
        ("0000 23 6161", QpackFault::Truncated),
        ("0000 ff24", QpackFault::Index { index: 99 }),
        ("0000 5f54 0161", QpackFault::Index { index: 99 }),
        ("0000 80", QpackFault::Index { index: 0 }),
        ("0000 10", QpackFault::Index { index: 0 }),
        ("0000 00 0161", QpackFault::Index { index: 0 }),
        ("0200 81", QpackFault::Index { index: 1 }),
        ("0280 11", QpackFault::Index { index: 1 }),
        // A reference to an entry that exists and is not declared as required.
        ("0201 80", QpackFault::Index { index: 0 }),
        ("0381 ffff ffff ffff ffff ffff ff7f", QpackFault::Integer),
        ("0000 2f 0261 00", QpackFault::Truncated),
        ("0000 29 18 0161", QpackFault::Huffman),
        // More than twice the entries of the largest table; more than its insertions can reach; a
        // Base below zero.
        ("0d00", QpackFault::Prefix),
        ("0a00", QpackFault::Prefix),
        ("0382 80", QpackFault::Prefix),
        ("0180", QpackFault::Prefix),
    ];
    for (hex, fault) in cases {
        assert_eq!(decode(&mut decoder, &bytes(hex)), Err(QpackError::Section(fault)), "{hex}");
    }
    let mut without_table = QpackDecoder::new(0);
    assert_eq!(decode(&mut without_table, &bytes("0200 80")), Err(QpackError::Section(QpackFault::Prefix)));
    let mut out = Vec::new();
    without_table.cancel_stream(4, &mut out);
    assert!(out.is_empty(), "there is nothing to cancel");
}

#[test]
fn malformed_qpack_insertions_are_refused() {
    let capacity = QpackFault::Capacity { size: 221, limit: 220 };
    let cases = [
        ("3fbe01", capacity),
        // Before any capacity was set.
        ("c0 0161", QpackFault::EntryTooLarge),
        ("3fbd01 ff24 0161", QpackFault::Index { index: 99 }),
        ("3fbd01 80 0161", QpackFault::Index { index: 0 }),
        ("3fbd01 00", QpackFault::Index { index: 0 }),
        ("3fbd01 c0 0161 01", QpackFault::Index { index: 1 }),
        ("3fbd01 c0 ff ffff ffff ffff ffff ffff ff", QpackFault::Integer),
        // Longer than the table, announced before a byte of it arrives.
        ("3fbd01 c0 7f5e", QpackFault::EntryTooLarge),
        ("3fbd01 41 61 7f5e", QpackFault::EntryTooLarge),
        // One byte longer than the table with its overhead.
        (&format!("3fbd01 c0 7f34 {}", "61".repeat(179)), QpackFault::EntryTooLarge),
        ("3fbd01 61 18 00", QpackFault::Huffman),
    ];
    for (hex, fault) in cases {
        let mut decoder = QpackDecoder::new(220);
        assert_eq!(decoder.on_encoder_stream(&bytes(hex)), Err(QpackError::EncoderStream(fault)), "{hex}");
    }
    let mut decoder = QpackDecoder::new(220);
    assert_eq!(decoder.on_encoder_stream(&bytes(&format!("3fbd01 c0 7f33 {}", "61".repeat(178)))), Ok(2));
}

#[test]
fn malformed_qpack_acknowledgements_are_refused() {
    let cases = [
        ("00", QpackFault::Increment { increment: 0 }),
        ("05", QpackFault::Increment { increment: 5 }),
        ("80", QpackFault::Acknowledgement { stream: 0 }),
        ("88 88", QpackFault::Acknowledgement { stream: 8 }),
        // A cancelled stream has nothing to acknowledge.
        ("48 88", QpackFault::Acknowledgement { stream: 8 }),
        ("ff ffff ffff ffff ffff ffff", QpackFault::Integer),
    ];
    for (hex, fault) in cases {
        let mut encoder = QpackEncoder::new(4096);
        encoder.set_peer_limit(4096);
        for stream in 0..2 {
            encode(&mut encoder, stream, &request(), FieldIndexing::Add);
        }
        assert_eq!(encoder.on_decoder_stream(&[4]), Ok(0));
        encode(&mut encoder, 8, &request(), FieldIndexing::Add);
        assert_eq!(encoder.on_decoder_stream(&bytes(hex)), Err(QpackError::DecoderStream(fault)), "{hex}");
    }
    assert_eq!(QpackEncoder::new(0).on_decoder_stream(&bytes("7f 9a0a 41 40")), Ok(3), "unknown streams are no fault");
}

#[test]
fn peer_that_never_acknowledges_costs_bounded_memory() {
    let (mut encoder, mut decoder) = (QpackEncoder::new(4096), QpackDecoder::new(4096));
    encoder.set_peer_limit(4096);
    for stream in 0..2 {
        encode(&mut encoder, stream, &request(), FieldIndexing::Add);
    }
    decoder.on_encoder_stream(encoder.encoder_stream_output()).expect("valid");
    encoder.on_decoder_stream(&[4]).expect("valid");
    let sections: Vec<Vec<u8>> =
        (0..2_000).map(|stream| encode(&mut encoder, 4 * stream, &request(), FieldIndexing::Add)).collect();
    let referring = sections.iter().filter(|section| section[0] != 0).count();
    assert_eq!(referring, 1_024);
    assert_eq!(decode(&mut decoder, &sections[1_999]), Ok((0, request())));
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![":path", ":method", "cookie", "etag", "x-a"]).prop_map(str::to_owned),
        "[a-z][a-z0-9-]{0,12}",
    ]
    .prop_map(String::into_bytes)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec!["", "/", "GET", "same value"]).prop_map(|value| value.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => "[ -~]{0,200}".prop_map(String::into_bytes),
    ]
}

/// A step of a session: a section to send, or a part of a stream to deliver.
#[derive(Clone, Debug)]
enum QpackSessionStep {
    Section(SectionFields, FieldIndexing),
    /// Delivers this many bytes of the encoder stream.
    Insertions(usize),
    /// Decodes the oldest section that was not decoded; cancels it if the value is false.
    Decode(bool),
    /// Delivers this many bytes of the decoder stream.
    Acknowledgements(usize),
}

fn operation() -> impl Strategy<Value = QpackSessionStep> {
    let how =
        prop::sample::select(vec![FieldIndexing::Add, FieldIndexing::Add, FieldIndexing::Skip, FieldIndexing::Never]);
    prop_oneof![
        3 => (prop::collection::vec((name(), value()), 0..8), how)
            .prop_map(|(fields, how)| QpackSessionStep::Section(fields, how)),
        2 => (0usize..80).prop_map(QpackSessionStep::Insertions),
        3 => prop::bool::weighted(0.9).prop_map(QpackSessionStep::Decode),
        2 => (0usize..8).prop_map(QpackSessionStep::Acknowledgements),
    ]
}

fn deliver(from: &mut Vec<u8>, count: usize) -> Vec<u8> {
    from.drain(..count.min(from.len())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks that each section can be decoded at once and gives the same fields, for any timing of
    /// the streams.
    #[test]
    fn encoded_qpack_sections_are_decoded(
        operations in prop::collection::vec(operation(), 1..80),
        limit in prop::sample::select(vec![0u32, 40, 100, 300, 4096]),
    ) {
        let (mut encoder, mut decoder) = (QpackEncoder::new(300), QpackDecoder::new(limit));
        encoder.set_peer_limit(u64::from(limit));
        let (mut insertions, mut acknowledgements, mut sections) = (Vec::new(), Vec::new(), Vec::new());
        let mut stream = 0;
        for operation in operations {
            match operation {
                QpackSessionStep::Section(fields, how) => {
                    sections.push((stream, encode(&mut encoder, stream, &fields, how), fields));
                    insertions.append(encoder.encoder_stream_output());
                    stream += 4;
                }
                QpackSessionStep::Insertions(count) => {
                    prop_assert!(decoder.on_encoder_stream(&deliver(&mut insertions, count)).is_ok());
                    decoder.acknowledge_insertions(&mut acknowledgements);
                }
                QpackSessionStep::Decode(is_wanted) if !sections.is_empty() => {
                    let (stream, section, fields) = sections.remove(0);
                    if is_wanted {
                        let (required, got) = decode(&mut decoder, &section).expect("a valid section");
                        prop_assert!(required <= decoder.insert_count() && got == fields);
                        decoder.acknowledge_section(stream, required, &mut acknowledgements);
                    } else {
                        decoder.cancel_stream(stream, &mut acknowledgements);
                    }
                }
                QpackSessionStep::Decode(_) => {}
                QpackSessionStep::Acknowledgements(count) => {
                    prop_assert!(encoder.on_decoder_stream(&deliver(&mut acknowledgements, count)).is_ok());
                }
            }
        }
    }

    /// Decodes arbitrary bytes as instructions and sections. The decoder must not panic, and no
    /// field line may be longer than the table or the section allows.
    #[test]
    fn decoding_arbitrary_qpack_data_never_panics(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
        let mut decoder = QpackDecoder::new(512);
        decoder.on_encoder_stream(&bytes("3fe103")).expect("valid");
        for piece in &pieces {
            if decoder.on_encoder_stream(piece).is_err() {
                break;
            }
        }
        for piece in &pieces {
            let Ok(mut section) = decoder.begin_section(piece) else { continue };
            let mut text = Vec::new();
            while let Ok(Some(line)) = decoder.next_line(&mut section, &mut text) {
                prop_assert!(line.name.len() + line.value.len() <= 512 + piece.len() * 8 / 5);
            }
        }
        let mut encoder = QpackEncoder::new(512);
        let _ = pieces.iter().try_for_each(|piece| encoder.on_decoder_stream(piece).map(drop));
    }
}

#[test]
fn qpack_literal_tells_whether_it_is_sensitive() {
    let mut decoder = QpackDecoder::new(0);
    for (hex, is_sensitive) in
        [("51 017a", false), ("71 017a", true), ("21 61 017a", false), ("31 61 017a", true), ("c1", false)]
    {
        let wire = bytes(&format!("0000 {hex}"));
        let (mut section, mut text) = (decoder.begin_section(&wire).expect("a prefix"), Vec::new());
        let line = decoder.next_line(&mut section, &mut text).expect("valid").expect("a field");
        assert_eq!(line.sensitive, is_sensitive, "{hex}");
    }
}

/// The largest table has one entry, so that the count of insertions is sent modulo two.
#[test]
fn required_insert_count_wraps_with_the_table() {
    let (mut encoder, mut decoder) = (QpackEncoder::new(40), QpackDecoder::new(40));
    encoder.set_peer_limit(40);
    for (number, value) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
        let (list, stream) = (fields(&[("x", value)]), 4 * number as u64);
        for _ in 0..2 {
            encode(&mut encoder, stream, &list, FieldIndexing::Add);
        }
        decoder.on_encoder_stream(encoder.encoder_stream_output()).expect("valid");
        encoder.encoder_stream_output().clear();
        assert_eq!(encoder.on_decoder_stream(&[1]), Ok(0));
        let section = encode(&mut encoder, stream, &list, FieldIndexing::Add);
        let required = number as u64 + 1;
        assert_eq!(decode(&mut decoder, &section), Ok((required, list)));
        let mut acknowledgement = Vec::new();
        decoder.acknowledge_section(stream, required, &mut acknowledgement);
        assert_eq!(encoder.on_decoder_stream(&acknowledgement), Ok(0));
    }
}

#[test]
fn qpack_acknowledgements_may_be_cut_anywhere() {
    // Cancellations of the streams 1,369, 1 and 0, then an acknowledgement that is refused.
    let wire = bytes("7f 9a0a 41 40 80");
    let mut encoder = QpackEncoder::new(0);
    let results: Vec<_> = wire.iter().map(|&byte| encoder.on_decoder_stream(&[byte])).collect();
    let refused = QpackError::DecoderStream(QpackFault::Acknowledgement { stream: 0 });
    assert_eq!(results, [Ok(0), Ok(0), Ok(1), Ok(1), Ok(1), Err(refused)]);
}
