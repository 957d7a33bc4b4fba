//! Fuzzes header blocks against the crate `loona-hpack`: both decoders accept the same blocks, and
//! read the same fields from them.
//!
//! The input is a sequence of blocks, each after a byte with its length.
#![no_main]

use haul_proto::hpack::{HeaderBlock, HpackDecoder, HpackError};
use libfuzzer_sys::fuzz_target;
use loona_hpack::decoder::{DecoderError, IntegerDecodingError};

type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

const TABLE: u16 = 4096;

fuzz_target!(|data: &[u8]| {
    let (mut ours, mut theirs) = (HpackDecoder::new(TABLE.into()), loona_hpack::Decoder::new());
    theirs.set_max_allowed_table_size(TABLE.into());
    let mut rest = data;
    while let Some((&length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        match (decode(&mut ours, block), theirs.decode(block)) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected),
            (Err(_), Err(_)) => return,
            // RFC 7541 §4.2: an update of the table's size stands at the beginning of a block.
            (Err(HpackError::LateTableSize), Ok(_)) => return,
            // A limit of loona-hpack, and a rule of its own.
            (Ok(_), Err(DecoderError::IntegerDecodingError(IntegerDecodingError::TooManyOctets))) => return,
            (Ok(_), Err(DecoderError::SizeUpdateAtEnd)) => return,
            (read, expected) => panic!("haul: {read:?}, loona-hpack: {expected:?}"),
        }
    }
});

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<FieldList, HpackError> {
    let (mut input, mut text, mut fields) = (HeaderBlock::new(block), Vec::new(), Vec::new());
    while let Some(line) = decoder.next_line(&mut input, &mut text)? {
        fields.push((text[line.name].to_vec(), text[line.value].to_vec()));
    }
    Ok(fields)
}
