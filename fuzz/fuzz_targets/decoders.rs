//! Fuzzes content decoders: the result does not depend on how the body is cut, and never exceeds
//! the limits.
#![no_main]

use haul::body::{BodyDecoder, DecodeLimits};
use libfuzzer_sys::fuzz_target;

const CODINGS: [&[u8]; 8] =
    [b"gzip", b"deflate", b"br", b"zstd", b"gzip, gzip", b"br, deflate", b"zstd, gzip", b"deflate, br, zstd"];

/// Returns the decoded bytes, and whether the content was complete.
fn decode(coding: &[u8], pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let mut decoder = BodyDecoder::new(coding, DecodeLimits::default()).expect("a known coding").expect("a coding");
    let mut out = Vec::new();
    for piece in pieces {
        let mut take = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            Ok(())
        };
        if decoder.push(piece, &mut take).is_err() {
            return (out, false);
        }
    }
    let is_whole = decoder.finish().is_ok();
    (out, is_whole)
}

fuzz_target!(|data: &[u8]| {
    let [first, cut, body @ ..] = data else { return };
    let coding = CODINGS[usize::from(*first) % CODINGS.len()];
    let whole = decode(coding, &[body]);
    let (one, two) = body.split_at(usize::from(*cut).min(body.len()));
    let split = decode(coding, &[one, two]);
    assert_eq!(whole.1, split.1);
    // What an error left ungiven may differ.
    let common = whole.0.len().min(split.0.len());
    assert!(whole.0[..common] == split.0[..common] && (!whole.1 || whole.0.len() == split.0.len()));
    assert!(whole.0.len() <= (8 << 20) + 250 * (body.len() + 1));
});
