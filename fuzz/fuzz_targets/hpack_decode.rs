//! Fuzzes header blocks: decoded lines lie at the returned positions and are no longer than the
//! block and the table allow; encoding them again and decoding gives the same lines.
//!
//! The input is a sequence of blocks, each after a byte with its length.
#![no_main]

use haul_proto::hpack::{FieldIndexing, HeaderBlock, HpackDecoder, HpackEncoder};
use libfuzzer_sys::fuzz_target;

const TABLE: u32 = 512;

fuzz_target!(|data: &[u8]| {
    let mut decoder = HpackDecoder::new(TABLE);
    let mut again = (HpackEncoder::new(TABLE), HpackDecoder::new(TABLE));
    let mut rest = data;
    while let Some((&length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let (mut input, mut text, mut coded) = (HeaderBlock::new(block), Vec::new(), Vec::new());
        again.0.begin_block(&mut coded);
        loop {
            let start = text.len();
            match decoder.next_line(&mut input, &mut text) {
                Err(_) => return,
                Ok(None) => break,
                Ok(Some(line)) => {
                    assert_eq!((line.name.start, line.value.start), (start, line.name.end + 2));
                    assert_eq!(&text[line.value.end..], b"\r\n");
                    assert!(line.name.len() + line.value.len() <= TABLE as usize + block.len() * 8 / 5);
                    let how = if line.sensitive { FieldIndexing::Never } else { FieldIndexing::Add };
                    again.0.encode(&text[line.name], &text[line.value], how, &mut coded);
                }
            }
        }
        let (mut input, mut second) = (HeaderBlock::new(&coded), Vec::new());
        while again.1.next_line(&mut input, &mut second).expect("what we encode we decode").is_some() {}
        assert_eq!(second, text);
    }
});
