//! Fuzzes QPACK's decoder: instructions may be cut anywhere, decoded lines lie at the returned
//! positions and are no longer than the section and the table allow, and encoding them again and
//! decoding gives the same lines.
//!
//! The input is a sequence of records, each after a byte with its length; its high bit makes it a
//! part of the encoder stream, otherwise it is a section.
#![no_main]

use haul_proto::qpack::{FieldIndexing, QpackDecoder, QpackEncoder};
use libfuzzer_sys::fuzz_target;

const TABLE: u32 = 512;

fuzz_target!(|data: &[u8]| {
    let mut decoder = QpackDecoder::new(TABLE);
    let mut cut = QpackDecoder::new(TABLE);
    let mut again = (QpackEncoder::new(TABLE), QpackDecoder::new(TABLE));
    again.0.set_peer_limit(u64::from(TABLE));
    let (mut rest, mut stream) = (data, 0);
    while let Some((&head, behind)) = rest.split_first() {
        let (record, behind) = behind.split_at(usize::from(head & 0x7f).min(behind.len()));
        rest = behind;
        if head & 0x80 != 0 {
            let whole = decoder.on_encoder_stream(record);
            let parts = record.iter().try_fold(0, |count, byte| Ok(count + cut.on_encoder_stream(&[*byte])?));
            assert_eq!(parts, whole);
            if whole.is_err() {
                return;
            }
            assert_eq!(cut.insert_count(), decoder.insert_count());
            continue;
        }
        let Ok(mut section) = decoder.begin_section(record) else { continue };
        if section.required_insert_count() > decoder.insert_count() {
            continue;
        }
        let mut text = Vec::new();
        again.0.begin_section();
        let mut is_whole = true;
        loop {
            let start = text.len();
            match decoder.next_line(&mut section, &mut text) {
                Err(_) => {
                    text.truncate(start);
                    is_whole = false;
                }
                Ok(None) => {}
                Ok(Some(line)) => {
                    assert_eq!((line.name.start, line.value.start), (start, line.name.end + 2));
                    assert_eq!(&text[line.value.end..], b"\r\n");
                    assert!(line.name.len() + line.value.len() <= TABLE as usize + record.len() * 8 / 5);
                    let how = if line.sensitive { FieldIndexing::Never } else { FieldIndexing::Add };
                    again.0.encode(&text[line.name], &text[line.value], how);
                    continue;
                }
            }
            break;
        }
        let (mut coded, mut second) = (Vec::new(), Vec::new());
        again.0.finish_section(stream, &mut coded);
        again.1.on_encoder_stream(again.0.encoder_stream_output()).expect("valid instructions");
        again.0.encoder_stream_output().clear();
        let mut section = again.1.begin_section(&coded).expect("a valid prefix");
        assert!(section.required_insert_count() <= again.1.insert_count(), "no section has to wait");
        while again.1.next_line(&mut section, &mut second).expect("what we encode we decode").is_some() {}
        assert_eq!(second, text);
        let mut acknowledgements = Vec::new();
        if is_whole {
            again.1.acknowledge_section(stream, section.required_insert_count(), &mut acknowledgements);
            again.1.acknowledge_insertions(&mut acknowledgements);
        } else {
            again.1.cancel_stream(stream, &mut acknowledgements);
        }
        again.0.on_decoder_stream(&acknowledgements).expect("valid acknowledgements");
        stream += 4;
    }
});
