//! The Huffman-coded strings that a decoder has decoded last, with their texts.
//!
//! Many servers never use the dynamic table, so each response repeats the same coded strings: the
//! date, the server's name, the content type. A coded string that was decoded before is copied
//! instead of decoded again.

use crate::huffman::{self, MalformedHuffman};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The number of strings that are kept. The coded bytes of a string determine the index at which it
/// is kept.
const STRINGS: usize = 16;
/// The length in bytes of the longest coded string that is kept.
const LONGEST_CODED: usize = 40;
/// The length in bytes of the longest text that [`LONGEST_CODED`] bytes can encode: the shortest
/// Huffman code has five bits.
const LONGEST_TEXT: usize = LONGEST_CODED * 8 / 5;

/// A Huffman decoder that keeps the last short strings with their texts, so that a repeated string
/// is not decoded again. Occupies less than 2 KiB from the first string on.
#[derive(Debug, Default)]
pub(super) struct HuffmanDecodeCache {
    kept: Option<Box<[KeptString; STRINGS]>>,
}

/// A Huffman-coded string and its decoded text, kept for reuse. An unused entry contains the empty
/// string, whose text is empty.
#[derive(Copy, Clone, Debug)]
struct KeptString {
    coded: [u8; LONGEST_CODED],
    coded_len: u8,
    text: [u8; LONGEST_TEXT],
    text_len: u8,
}

const UNUSED: KeptString = KeptString { coded: [0; LONGEST_CODED], coded_len: 0, text: [0; LONGEST_TEXT], text_len: 0 };

impl HuffmanDecodeCache {
    /// Appends the decoded text to `out`. If the coded text is invalid, `out` contains the part
    /// decoded before the error.
    pub(super) fn decode(&mut self, coded: &[u8], out: &mut Vec<u8>) -> Result<(), MalformedHuffman> {
        if coded.len() > LONGEST_CODED {
            return huffman::decode(coded, out);
        }
        let kept = &mut self.kept.get_or_insert_with(|| Box::new([UNUSED; STRINGS]))[cache_index(coded)];
        if kept.coded[..usize::from(kept.coded_len)] == *coded {
            out.extend_from_slice(&kept.text[..usize::from(kept.text_len)]);
            return Ok(());
        }
        let start = out.len();
        huffman::decode(coded, out)?;
        let text = &out[start..];
        kept.coded[..coded.len()].copy_from_slice(coded);
        kept.text[..text.len()].copy_from_slice(text);
        (kept.coded_len, kept.text_len) = (coded.len() as u8, text.len() as u8);
        Ok(())
    }
}

/// Returns the index in the cache at which a coded string is stored. A server may choose strings
/// that all have the same index. Each of them is then decoded every time, which does no other harm.
fn cache_index(coded: &[u8]) -> usize {
    let (words, rest) = coded.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, word: &[u8; 8]| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let hash = words.iter().chain([&last]).fold(coded.len() as u64, mix);
    (hash >> 32) as usize % STRINGS
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        huffman::encode(text, &mut out);
        out
    }

    #[test]
    fn malformed_string_is_an_error_each_time() {
        let mut strings = HuffmanDecodeCache::default();
        for _ in 0..2 {
            // The code of EOS.
            assert_eq!(strings.decode(&[0xff; 4], &mut vec![]), Err(MalformedHuffman));
        }
    }

    #[test]
    fn longest_text_of_a_kept_string_fits() {
        let text = vec![b'0'; LONGEST_TEXT];
        assert_eq!(coded(&text).len(), LONGEST_CODED);
        let mut strings = HuffmanDecodeCache::default();
        for _ in 0..2 {
            let mut out = vec![];
            assert_eq!(strings.decode(&coded(&text), &mut out), Ok(()));
            assert_eq!(out, text);
        }
    }

    proptest! {
        #[test]
        fn repeated_strings_decode_like_new_ones(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..40),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 1..200),
        ) {
            let mut strings = HuffmanDecodeCache::default();
            for index in order {
                let coded = coded(&texts[index.index(texts.len())]);
                let (mut out, mut expected) = (b"before".to_vec(), b"before".to_vec());
                prop_assert_eq!(strings.decode(&coded, &mut out), huffman::decode(&coded, &mut expected));
                prop_assert_eq!(out, expected);
            }
        }
    }
}
