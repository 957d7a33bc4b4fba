//! Tests of HPACK: the examples of RFC 7541, round trips, comparison with another implementation,
//! and malformed blocks.

use haul_proto::hpack::{FieldIndexing, HeaderBlock, HpackDecoder, HpackEncoder, HpackError};
use loona_hpack::decoder::{DecoderError, IntegerDecodingError};
use proptest::prelude::*;

type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("hex"), 16).expect("hex");
    digits.chunks(2).map(pair).collect()
}

fn fields(list: &[(&str, &str)]) -> FieldList {
    list.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<FieldList, HpackError> {
    let (mut block, mut text, mut found) = (HeaderBlock::new(block), Vec::new(), Vec::new());
    while let Some(line) = decoder.next_line(&mut block, &mut text)? {
        assert_eq!(&text[line.name.end..line.value.start], b": ");
        assert_eq!(&text[line.value.end..], b"\r\n");
        found.push((text[line.name].to_vec(), text[line.value].to_vec()));
    }
    Ok(found)
}

fn encode(encoder: &mut HpackEncoder, list: &FieldList, indexing: FieldIndexing) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin_block(&mut block);
    for (name, value) in list {
        encoder.encode(name, value, indexing, &mut block);
    }
    block
}

/// Encodes and decodes the examples of RFC 7541, Appendix C.2: single fields.
#[test]
fn hpack_single_fields_match_rfc7541_examples() {
    let cases = [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", ("custom-key", "custom-header"), false),
        ("040c 2f73 616d 706c 652f 7061 7468", (":path", "/sample/path"), false),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", ("password", "secret"), true),
        ("82", (":method", "GET"), false),
    ];
    for (hex, field, sensitive) in cases {
        let (wire, mut text) = (bytes(hex), Vec::new());
        let mut block = HeaderBlock::new(&wire);
        let line = HpackDecoder::new(4096).next_line(&mut block, &mut text).expect("a valid block").expect("a field");
        assert_eq!((&text[line.name], &text[line.value]), (field.0.as_bytes(), field.1.as_bytes()));
        assert_eq!(line.sensitive, sensitive);
    }
}

const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

fn requests() -> Vec<FieldList> {
    let first = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    let second = [&first[..], &[("cache-control", "no-cache")]].concat();
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    vec![fields(&first), fields(&second), fields(&third)]
}

fn responses() -> Vec<FieldList> {
    let date = "Mon, 21 Oct 2013 20:13:21 GMT";
    let location = ("location", "https://www.example.com");
    let first = [(":status", "302"), ("cache-control", "private"), ("date", date), location];
    let second = [(":status", "307"), ("cache-control", "private"), ("date", date), location];
    let third = [
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        location,
        ("content-encoding", "gzip"),
        ("set-cookie", COOKIE),
    ];
    vec![fields(&first), fields(&second), fields(&third)]
}

/// Encodes and decodes the examples of RFC 7541, Appendix C.3 (plain) and C.4 (Huffman-coded).
#[test]
fn hpack_requests_match_rfc7541_examples() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let mut decoders = [HpackDecoder::new(4096), HpackDecoder::new(4096)];
    let mut encoder = HpackEncoder::new(4096);
    for (number, expected) in requests().into_iter().enumerate() {
        assert_eq!(decode(&mut decoders[0], &bytes(plain[number])), Ok(expected.clone()));
        assert_eq!(decode(&mut decoders[1], &bytes(coded[number])), Ok(expected.clone()));
        assert_eq!(
            encode(&mut encoder, &expected, FieldIndexing::Add),
            bytes(coded[number]),
            "the encoder does the same"
        );
    }
}

/// Encodes and decodes the examples of RFC 7541, Appendix C.5 and C.6, whose table of 256 bytes is
/// too small for all entries.
#[test]
fn hpack_responses_match_rfc7541_examples() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d
         546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f
         6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b
         2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7
         8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
         dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    let mut decoders = [HpackDecoder::new(256), HpackDecoder::new(256)];
    let mut encoder = HpackEncoder::new(256);
    for (number, expected) in responses().into_iter().enumerate() {
        assert_eq!(decode(&mut decoders[0], &bytes(plain[number])), Ok(expected.clone()));
        assert_eq!(decode(&mut decoders[1], &bytes(coded[number])), Ok(expected.clone()));
        let made = encode(&mut encoder, &expected, FieldIndexing::Add);
        // The first block says that the table is smaller than what every connection begins with.
        let made = if number == 0 { made.strip_prefix(&[0x3f, 0xe1, 0x01][..]).expect("the size") } else { &made };
        // "307" is as long coded as plain, and the example codes it all the same.
        let example = if number == 1 { bytes("4803 3330 37c1 c0bf") } else { bytes(coded[number]) };
        assert_eq!(made, example);
    }
}

#[test]
fn malformed_hpack_blocks_are_refused() {
    let refused = |hex: &str| decode(&mut HpackDecoder::new(4096), &bytes(hex)).unwrap_err();
    assert_eq!(refused("80"), HpackError::Index { index: 0 });
    assert_eq!(refused("be"), HpackError::Index { index: 62 });
    assert_eq!(refused("ffffffffff0f"), HpackError::Integer);
    assert_eq!(refused("ff8080808000"), HpackError::Index { index: 127 });
    assert_eq!(refused("7f0001 61"), HpackError::Index { index: 63 }, "a name that no table has");
    assert_eq!(refused("41"), HpackError::Truncated);
    assert_eq!(refused("4105 61"), HpackError::Truncated);
    assert_eq!(refused("00ff ffff ff07 61"), HpackError::Truncated, "a string of 2 GiB in no bytes");
    assert_eq!(refused("0082 ffff 00"), HpackError::Huffman);
    assert_eq!(refused("3fe2 1f"), HpackError::TableSize { size: 4097, limit: 4096 });
    assert_eq!(refused("8220"), HpackError::LateTableSize);
    let mut lowered = HpackDecoder::new(4096);
    lowered.set_limit(1024);
    assert_eq!(decode(&mut lowered, &bytes("82")), Err(HpackError::MissingTableSize));
    lowered = HpackDecoder::new(4096);
    lowered.set_limit(1024);
    assert_eq!(decode(&mut lowered, &bytes("20 3fe1 07 82")), Ok(fields(&[(":method", "GET")])), "down and up again");
}

/// Checks that a smaller size of the dynamic table removes entries from the tables of both encoder
/// and decoder.
#[test]
fn smaller_hpack_table_size_is_announced() {
    let list = fields(&[("a", "one"), ("b", "two")]);
    let (mut encoder, mut decoder) = (HpackEncoder::new(4096), HpackDecoder::new(4096));
    for limit in [4096, 0, 4096, 60, 40, 100] {
        encoder.set_peer_limit(0);
        encoder.set_peer_limit(limit);
        for _ in 0..3 {
            assert_eq!(
                decode(&mut decoder, &encode(&mut encoder, &list, FieldIndexing::Add)),
                Ok(list.clone()),
                "{limit}"
            );
        }
    }
}

#[test]
fn sensitive_fields_enter_no_hpack_table() {
    let list = fields(&[("authorization", "Basic YTpi"), ("x-token", "abc")]);
    let (mut encoder, mut decoder) = (HpackEncoder::new(4096), HpackDecoder::new(4096));
    let first = encode(&mut encoder, &list, FieldIndexing::Never);
    assert_eq!(encode(&mut encoder, &list, FieldIndexing::Never), first, "nothing was remembered");
    let (mut block, mut text) = (HeaderBlock::new(&first), Vec::new());
    while let Some(line) = decoder.next_line(&mut block, &mut text).expect("a valid block") {
        assert!(line.sensitive);
    }
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(HpackError::Index { index: 62 }));
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![":path", "cookie", "etag", "x-a", "x-b"]).prop_map(|name| name.as_bytes().to_vec()),
        "[a-z][a-z0-9-]{0,12}".prop_map(String::into_bytes),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec!["", "/", "a", "same value"]).prop_map(|value| value.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..60),
        "[ -~]{0,200}".prop_map(String::into_bytes),
    ]
}

fn session() -> impl Strategy<Value = Vec<(u32, FieldList)>> {
    let limit = prop_oneof![Just(4096u32), 0u32..300, Just(0u32), Just(10_000u32)];
    prop::collection::vec((limit, prop::collection::vec((name(), value()), 1..12)), 1..12)
}

fn indexing() -> impl Strategy<Value = FieldIndexing> {
    prop::sample::select(vec![FieldIndexing::Add, FieldIndexing::Skip, FieldIndexing::Never])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn encoded_hpack_blocks_are_decoded(session in session(), how in indexing()) {
        let (mut encoder, mut decoder) = (HpackEncoder::new(8192), HpackDecoder::new(10_000));
        for (limit, list) in session {
            encoder.set_peer_limit(limit);
            prop_assert_eq!(decode(&mut decoder, &encode(&mut encoder, &list, how)), Ok(list));
        }
    }

    #[test]
    fn hpack_blocks_are_decoded_by_loona_hpack(session in session(), how in indexing()) {
        let (mut encoder, mut decoder) = (HpackEncoder::new(4096), loona_hpack::Decoder::new());
        for (limit, list) in session {
            encoder.set_peer_limit(limit);
            let block = encode(&mut encoder, &list, how);
            prop_assert_eq!(decoder.decode(&block).expect("a valid block"), list);
        }
    }

    #[test]
    fn blocks_of_loona_hpack_are_decoded(session in session()) {
        let (mut encoder, mut decoder) = (loona_hpack::Encoder::new(), HpackDecoder::new(4096));
        for (_, list) in session {
            let pairs = list.iter().map(|(name, value)| (&name[..], &value[..]));
            prop_assert_eq!(decode(&mut decoder, &encoder.encode(pairs)), Ok(list));
        }
    }

    /// Decodes arbitrary bytes as header blocks. The decoder must not panic, and no field line may
    /// be longer than the table or the block allows.
    #[test]
    fn decoding_arbitrary_hpack_blocks_never_panics(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
        let mut decoder = HpackDecoder::new(512);
        for block in blocks {
            let (mut input, mut text) = (HeaderBlock::new(&block), Vec::new());
            while let Ok(Some(line)) = decoder.next_line(&mut input, &mut text) {
                prop_assert!(line.name.len() + line.value.len() <= 512 + block.len() * 8 / 5);
            }
        }
    }

    /// Decodes damaged blocks with both implementations and compares the results. The fuzz target
    /// `hpack_differential` does the same.
    #[test]
    fn damaged_blocks_are_decoded_as_by_loona_hpack(
        session in session(),
        how in indexing(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut encoder = HpackEncoder::new(4096);
        let (mut decoder, mut theirs) = (HpackDecoder::new(4096), loona_hpack::Decoder::new());
        theirs.set_max_allowed_table_size(4096);
        for (_, list) in session {
            let mut block = encode(&mut encoder, &list, how);
            for (place, byte) in &damage {
                let place = place.index(block.len());
                block[place] = *byte;
            }
            match (decode(&mut decoder, &block), theirs.decode(&block)) {
                (Ok(read), Ok(expected)) => prop_assert_eq!(read, expected),
                (Err(_), Err(_)) | (Err(HpackError::LateTableSize), Ok(_)) => break,
                // A limit of loona-hpack, and a rule of its own.
                (Ok(_), Err(DecoderError::SizeUpdateAtEnd)) => break,
                (Ok(_), Err(DecoderError::IntegerDecodingError(IntegerDecodingError::TooManyOctets))) => break,
                (read, expected) => prop_assert!(false, "haul: {read:?}, loona-hpack: {expected:?}"),
            }
        }
    }
}

#[test]
fn sensitive_field_in_the_table_is_a_literal() {
    let list = fields(&[("x-token", "abc")]);
    let (mut encoder, mut decoder) = (HpackEncoder::new(4096), HpackDecoder::new(4096));
    assert_eq!(decode(&mut decoder, &encode(&mut encoder, &list, FieldIndexing::Add)), Ok(list.clone()));
    assert_eq!(encode(&mut encoder, &list, FieldIndexing::Add), [0xbe], "an index");
    let secret = encode(&mut encoder, &list, FieldIndexing::Never);
    assert_eq!(secret[..2], [0x1f, 62 - 15], "a literal never indexed, with the name of the entry (RFC 7541 §6.2.3)");
    assert_eq!(decode(&mut decoder, &secret), Ok(list));
}
