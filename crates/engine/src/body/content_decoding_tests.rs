use std::io::Write;

use testkit::content_coding::ContentCoding;

use super::*;

const ALL: [ContentCoding; 5] =
    [ContentCoding::Gzip, ContentCoding::Deflate, ContentCoding::RawDeflate, ContentCoding::Br, ContentCoding::Zstd];

fn decode(field: &str, pieces: &[&[u8]], limits: DecodeLimits) -> Result<Vec<u8>> {
    let mut decoder = BodyDecoder::new(field.as_bytes(), limits)?.expect("a coding");
    let mut text = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut |piece| {
            assert!(!piece.is_empty() && piece.len() <= DECODER_BUFFER);
            text.extend_from_slice(piece);
            Ok(())
        })?;
    }
    decoder.finish()?;
    Ok(text)
}

fn kind(result: Result<Vec<u8>>) -> ErrorKind {
    result.expect_err("must fail").kind()
}

fn sample(length: usize) -> Vec<u8> {
    testkit::byte_pattern::compressible_text(7, length)
}

#[test]
fn every_coding_decodes_at_every_split() {
    let text = sample(300);
    for coding in ALL {
        let coded = coding.encode(&text);
        for split in 0..=coded.len() {
            let (one, two) = coded.split_at(split);
            assert_eq!(
                decode(coding.token(), &[one, two], DecodeLimits::default()).unwrap(),
                text,
                "{coding:?} {split}"
            );
        }
        let bytes: Vec<&[u8]> = coded.chunks(1).collect();
        assert_eq!(decode(coding.token(), &bytes, DecodeLimits::default()).unwrap(), text, "{coding:?}");
    }
}

#[test]
fn bodies_around_the_buffer_size_decode_completely() {
    for length in [1, DECODER_BUFFER - 1, DECODER_BUFFER, DECODER_BUFFER + 1, 2 * DECODER_BUFFER, 300_000] {
        let text = sample(length);
        for coding in ALL {
            let coded = coding.encode(&text);
            assert_eq!(
                decode(coding.token(), &[&coded], DecodeLimits::default()).unwrap(),
                text,
                "{coding:?} {length}"
            );
        }
    }
}

#[test]
fn stacked_codings_are_decoded_in_reverse_order() {
    let text = sample(5000);
    let coded = ContentCoding::Zstd.encode(&ContentCoding::Br.encode(&ContentCoding::Gzip.encode(&text)));
    for field in ["gzip, br, zstd", "X-GZIP,identity ,, Br\t,ZSTD"] {
        assert_eq!(decode(field, &[&coded], DecodeLimits::default()).unwrap(), text);
        let bytes: Vec<&[u8]> = coded.chunks(1).collect();
        assert_eq!(decode(field, &bytes, DecodeLimits::default()).unwrap(), text);
    }
    assert_eq!(kind(decode("zstd, br, gzip", &[&coded], DecodeLimits::default())), ErrorKind::ContentCoding);
}

#[test]
fn more_than_five_codings_are_refused() {
    let mut coded = sample(100);
    for _ in 0..5 {
        coded = ContentCoding::Gzip.encode(&coded);
    }
    let five = ["gzip"; 5].join(",");
    assert_eq!(decode(&five, &[&coded], DecodeLimits::default()).unwrap(), sample(100));
    let six = BodyDecoder::new(["gzip"; 6].join(",").as_bytes(), DecodeLimits::default()).unwrap_err();
    assert_eq!((six.exit_code(), six.to_string()), (61, "more than 5 content codings".to_owned()));
}

#[test]
fn unknown_coding_error_escapes_control_bytes() {
    let error = BodyDecoder::new(b"gzip, comp\x1bress", DecodeLimits::default()).unwrap_err();
    assert_eq!((error.exit_code(), error.to_string()), (61, "unknown content coding: comp\\x1bress".to_owned()));
    for field in ["", " , ", "identity", "Identity, none"] {
        assert!(BodyDecoder::new(field.as_bytes(), DecodeLimits::default()).unwrap().is_none(), "{field:?}");
    }
}

#[test]
fn accept_encoding_names_only_decodable_codings() {
    for name in accept_encoding().split(", ") {
        assert!(BodyDecoder::new(name.as_bytes(), DecodeLimits::default()).unwrap().is_some(), "{name}");
    }
}

#[test]
fn empty_body_decodes_to_nothing_in_every_coding() {
    for field in ["gzip", "deflate", "br", "zstd", "gzip, br, zstd"] {
        assert_eq!(decode(field, &[], DecodeLimits::default()).unwrap(), b"");
        assert_eq!(decode(field, &[b"", b""], DecodeLimits::default()).unwrap(), b"");
    }
    for coding in ALL {
        assert_eq!(decode(coding.token(), &[&coding.encode(b"")], DecodeLimits::default()).unwrap(), b"", "{coding:?}");
    }
}

#[test]
fn truncated_body_is_an_error_at_every_length() {
    let text = sample(400);
    for coding in ALL {
        let coded = coding.encode(&text);
        for length in 1..coded.len() {
            let result = decode(coding.token(), &[&coded[..length]], DecodeLimits::default());
            assert_eq!(kind(result), ErrorKind::ContentCoding, "{coding:?} {length}");
        }
    }
}

#[test]
fn truncation_within_the_inner_coding_is_an_error() {
    let inner = ContentCoding::Br.encode(&sample(400));
    let coded = ContentCoding::Gzip.encode(&inner[..inner.len() - 1]);
    let error = decode("br, gzip", &[&coded], DecodeLimits::default()).unwrap_err();
    assert!(error.to_string().starts_with("brotli body is cut short"), "{error}");
}

#[test]
fn trailing_bytes_after_coded_content_are_an_error() {
    for coding in ALL {
        let mut coded = coding.encode(&sample(400));
        let end = coded.len();
        coded.extend_from_slice(b"\0\0trailing");
        for split in [0, end, end + 1] {
            let (one, two) = coded.split_at(split);
            let result = decode(coding.token(), &[one, two], DecodeLimits::default());
            assert_eq!(kind(result), ErrorKind::ContentCoding, "{coding:?} {split}");
        }
    }
}

#[test]
fn passes_over_rest_ignores_trailing_bytes() {
    let lenient = DecodeLimits { passes_over_rest: true, ..DecodeLimits::default() };
    for coding in [ContentCoding::Gzip, ContentCoding::Deflate] {
        let mut coded = coding.encode(&sample(400));
        let end = coded.len();
        coded.extend_from_slice(b"\0\0trailing");
        for split in [0, end, end + 1] {
            let (one, two) = coded.split_at(split);
            assert_eq!(decode(coding.token(), &[one, two], lenient).unwrap(), sample(400), "{coding:?} {split}");
        }
        let bytes: Vec<&[u8]> = coded.chunks(1).collect();
        assert_eq!(decode(coding.token(), &bytes, lenient).unwrap(), sample(400), "{coding:?}");
        // A further member is still decoded, and a truncated or damaged stream is still an error.
        assert_eq!(kind(decode(coding.token(), &[&coded[..end - 1]], lenient)), ErrorKind::ContentCoding);
        coded[end / 2] ^= 0x55;
        assert_eq!(kind(decode(coding.token(), &[&coded], lenient)), ErrorKind::ContentCoding, "{coding:?}");
        assert_eq!(kind(decode(coding.token(), &[b"no such thing"], lenient)), ErrorKind::ContentCoding, "{coding:?}");
    }
    let two = [ContentCoding::Gzip.encode(b"one "), ContentCoding::Gzip.encode(b"two")].concat();
    assert_eq!(decode(ContentCoding::Gzip.token(), &[&two, b"\0"], lenient).unwrap(), b"one two");
}

#[test]
fn gzip_members_and_zstd_frames_are_concatenated() {
    for coding in [ContentCoding::Gzip, ContentCoding::Zstd] {
        let mut coded = coding.encode(b"one ");
        coded.extend(coding.encode(b""));
        coded.extend(coding.encode(b"two"));
        let bytes: Vec<&[u8]> = coded.chunks(1).collect();
        for pieces in [&[&coded[..]][..], &bytes] {
            assert_eq!(decode(coding.token(), pieces, DecodeLimits::default()).unwrap(), b"one two", "{coding:?}");
        }
        let result = decode(coding.token(), &[&coded[..coded.len() - 1]], DecodeLimits::default());
        assert_eq!(kind(result), ErrorKind::ContentCoding);
    }
}

#[test]
fn changed_byte_of_coded_content_is_detected() {
    let text = sample(300);
    for coding in [ContentCoding::Gzip, ContentCoding::Deflate] {
        let coded = coding.encode(&text);
        for at in 0..coded.len() {
            let mut broken = coded.clone();
            broken[at] ^= 0x40;
            match decode(coding.token(), &[&broken], DecodeLimits::default()) {
                Ok(decoded) => assert_eq!(decoded, text, "{coding:?} {at}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ContentCoding, "{coding:?} {at}"),
            }
        }
    }
}

#[test]
fn random_coded_input_never_panics() {
    let mut state = 1_u32;
    for field in ["gzip", "deflate", "br", "zstd", "deflate, br", "zstd, gzip"] {
        for length in 1..200 {
            let noise: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .take(length)
            .collect();
            if let Err(error) = decode(field, &[&noise], DecodeLimits::default()) {
                assert!(matches!(error.kind(), ErrorKind::ContentCoding | ErrorKind::TooLarge), "{error}");
            }
        }
    }
}

fn delivered_of_a_bomb(field: &str, coded: &[u8], limits: DecodeLimits) -> (u64, Error) {
    let mut decoder = BodyDecoder::new(field.as_bytes(), limits).unwrap().unwrap();
    let mut delivered = 0;
    let error = coded
        .chunks(64 << 10)
        .find_map(|piece| {
            let count = &mut |piece: &[u8]| {
                delivered += piece.len() as u64;
                Ok(())
            };
            decoder.push(piece, count).err()
        })
        .expect("the bomb must be found");
    (delivered, error)
}

#[test]
fn decompression_bombs_are_stopped_in_every_coding() {
    let limits = DecodeLimits::default();
    let zeros = vec![0; 64 << 20];
    let gzip = testkit::content_coding::bomb(64).concat();
    let raw = gzip[10..gzip.len() - 8].to_vec();
    let once_more = ContentCoding::Gzip.encode(&gzip);
    let bombs = [
        ("gzip", gzip),
        ("br", ContentCoding::Br.encode(&zeros)),
        ("zstd", ContentCoding::Zstd.encode(&zeros)),
        ("deflate", raw),
        ("gzip, gzip", once_more),
    ];
    for (field, coded) in bombs {
        let (delivered, error) = delivered_of_a_bomb(field, &coded, limits);
        assert_eq!(error.exit_code(), 63, "{field}: {error}");
        assert!(delivered <= limits.free_output, "{field}: {delivered}");
        assert!(error.to_string().contains("more than 750:1"), "{field}: {error}");
    }
}

#[test]
fn bomb_in_an_inner_coding_is_detected() {
    // The outer coding expands greatly; its output, empty gzip members, decodes to nothing.
    let empty = ContentCoding::Gzip.encode(b"").repeat(1 << 20);
    let (delivered, error) =
        delivered_of_a_bomb("gzip, zstd", &ContentCoding::Zstd.encode(&empty), DecodeLimits::default());
    assert_eq!((delivered, error.kind()), (0, ErrorKind::TooLarge));
}

#[test]
fn repetitive_pages_pass_the_expansion_guard() {
    let row = b"<tr><td class=\"alignright\"><a href=\"/about/\">0</a></td></tr>\n";
    let page = row.repeat((6 << 20) / row.len());
    for coding in ALL {
        let coded = coding.encode(&page);
        assert_eq!(decode(coding.token(), &[&coded], DecodeLimits::default()).unwrap().len(), page.len(), "{coding:?}");
    }
}

#[test]
fn repetitive_logs_pass_the_expansion_guard() {
    for line in [&b"GET / 200\n"[..], b"2026-01-01T00:00:00Z INFO healthcheck ok from 10.0.0.1\n"] {
        let log = line.repeat((32 << 20) / line.len());
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&log).unwrap();
        let coded = encoder.finish().unwrap();
        assert!(log.len() / coded.len() > 250, "{}:1", log.len() / coded.len());
        assert_eq!(decode("gzip", &[&coded], DecodeLimits::default()).unwrap().len(), log.len());
    }
}

#[test]
fn max_output_is_exact_to_the_byte() {
    let coded = ContentCoding::Gzip.encode(&sample(1000));
    let limits = |most| DecodeLimits { max_output: Some(most), ..DecodeLimits::default() };
    assert_eq!(decode("gzip", &[&coded], limits(1000)).unwrap().len(), 1000);
    let error = decode("gzip", &[&coded], limits(999)).unwrap_err();
    assert_eq!(
        (error.exit_code(), error.to_string()),
        (63, "decoded body is larger than the 999 bytes allowed".into())
    );
}

#[test]
fn max_ratio_zero_allows_any_expansion() {
    let limits = DecodeLimits { max_ratio: 0, ..DecodeLimits::default() };
    let coded = ContentCoding::Zstd.encode(&vec![0; 20 << 20]);
    assert_eq!(decode("zstd", &[&coded], limits).unwrap().len(), 20 << 20);
}

/// Returns a zstd frame for a test. Its header announces a window of 2^`log` bytes. Its only block
/// is empty and marked as the last one (RFC 8878 section 3.1.1).
fn zstd_with_window(log: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (log - 10) << 3, 0x01, 0x00, 0x00]
}

#[test]
fn zstd_window_above_the_limit_is_refused() {
    assert_eq!(decode("zstd", &[&zstd_with_window(23)], DecodeLimits::default()).unwrap(), b"");
    assert_eq!(kind(decode("zstd", &[&zstd_with_window(24)], DecodeLimits::default())), ErrorKind::ContentCoding);
    let wide = DecodeLimits { max_window_log: 24, ..DecodeLimits::default() };
    assert_eq!(decode("zstd", &[&zstd_with_window(24)], wide).unwrap(), b"");
}

#[test]
fn decoder_returns_the_error_of_the_output_callback() {
    let mut decoder = BodyDecoder::new(b"gzip", DecodeLimits::default()).unwrap().unwrap();
    let coded = ContentCoding::Gzip.encode(&sample(200_000));
    let error = decoder.push(&coded, &mut |_| Err(Error::new(ErrorKind::Write, "full"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Write);
}

/// Returns brotli content for a test. It has a window of 16 MiB and contains `text` uncompressed
/// (RFC 7932 section 9.2).
fn widest_brotli(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len() - 1).unwrap();
    let header = 0x0f | length << 7 | 1 << 23;
    [&header.to_le_bytes()[..3], text, &[3]].concat()
}

#[test]
fn windows_of_stacked_codings_share_one_limit() {
    let text = b"some text";
    let two = widest_brotli(&widest_brotli(text));
    assert_eq!(decode("br, br", &[&two], DecodeLimits::default()).unwrap(), text);
    let three = widest_brotli(&two);
    assert_eq!(kind(decode("br, br, br", &[&three], DecodeLimits::default())), ErrorKind::TooLarge);
}

#[test]
fn zstd_window_size_is_found_at_every_split() {
    // A window of 8 MiB, one of 1.5 MiB; single segments of 5 and of 300 bytes.
    for (header, length, window) in [
        (&[0, 13 << 3][..], 4, 8 << 20),
        (&[0, 10 << 3 | 4], 4, 3 << 19),
        (&[0x20, 5], 5, 5),
        (&[0x60, 44, 0], 300, 300),
    ] {
        let block = (length as u32) << 3 | 1;
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd], header, &block.to_le_bytes()[..3], &vec![b'x'; length]].concat();
        for split in 1..frame.len() {
            let mut decoder = BodyDecoder::new(b"zstd", DecodeLimits::default()).unwrap().unwrap();
            for piece in [&frame[..split], &frame[split..]] {
                decoder.push(piece, &mut |_| Ok(())).unwrap();
            }
            decoder.finish().unwrap();
            let expected = decoder.expected_window(&frame);
            assert_eq!((expected, decoder.window_memory()), (window, window.min(length as u64)), "{header:?} {split}");
        }
    }
}
