//! Fuzzes the peer's decoder stream: instructions may be cut anywhere, nothing panics, and whatever
//! the peer acknowledges, no section refers to an entry that its decoder does not have.
//!
//! The input is bytes of the decoder stream; before each, a section with fields that repeat is
//! sent.
#![no_main]

use haul_proto::qpack::{FieldIndexing, QpackDecoder, QpackEncoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (mut encoder, mut decoder) = (QpackEncoder::new(200), QpackDecoder::new(200));
    encoder.set_peer_limit(200);
    for (number, &byte) in data.iter().enumerate() {
        let mut section = Vec::new();
        encoder.begin_section();
        for place in 0..3 {
            let value = [b'a' + (number / 3 + place) as u8 % 5; 9];
            encoder.encode(b"x-name", &value, FieldIndexing::Add);
        }
        encoder.finish_section(number as u64 % 30, &mut section);
        decoder.on_encoder_stream(encoder.encoder_stream_output()).expect("valid instructions");
        encoder.encoder_stream_output().clear();
        let (mut input, mut text) = (decoder.begin_section(&section).expect("a valid prefix"), Vec::new());
        while decoder.next_line(&mut input, &mut text).expect("a valid section").is_some() {}
        assert_eq!(text.len(), 3 * (6 + 2 + 9 + 2));
        if encoder.on_decoder_stream(&[byte]).is_err() {
            return;
        }
    }
});
