//! The Huffman code of RFC 7541, Appendix B, which QPACK uses too (RFC 9204 §4.1.2).
//!
//! The code is canonical: symbols of one length have consecutive codes in the order of their
//! values, and shorter codes come first. Only the lengths are therefore listed; codes and decoding
//! tables are computed from them at compile time.
//!
//! The decoder looks up ten bits at once, which finds every letter and digit in one step. Only for
//! longer codes, it searches the code lengths. Rejected: a state machine over whole bytes, since it
//! needs tables of 256 KiB: more than the first-level cache, for strings of some twenty bytes.

use alloc::vec::Vec;

/// The length in bits of each symbol's Huffman code. The last symbol is EOS.
#[rustfmt::skip]
const CODE_LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The error for a string that is not a valid Huffman code: it contains EOS, or padding that is
/// longer than seven bits or not all ones (RFC 7541 §5.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MalformedHuffman;

const EOS_SYMBOL: usize = 256;
const LONGEST_CODE: usize = 30;
/// The number of bits of Huffman code that one table look-up decodes.
const LOOKUP_BITS: u32 = 10;

/// Tables for Huffman coding, computed from the code lengths at compile time.
struct HuffmanTables {
    /// The Huffman code of each symbol, in the low bits of the number.
    codes: [u32; 257],
    /// For each value of the next [`LOOKUP_BITS`] bits: the symbol in the low byte and the length
    /// of its code in the high byte. The entry is 0 if the code is longer than [`LOOKUP_BITS`].
    short: [u16; 1 << LOOKUP_BITS],
    /// The symbols in the order of their Huffman codes.
    ordered: [u16; 257],
    /// For each code length in bits: the first code of that length. The field `offset` contains the
    /// position of this code's symbol in `ordered`.
    first: [u32; LONGEST_CODE + 2],
    offset: [u16; LONGEST_CODE + 2],
}

static TABLES: HuffmanTables = build_tables();

const fn build_tables() -> HuffmanTables {
    let mut tables = HuffmanTables {
        codes: [0; 257],
        short: [0; 1 << LOOKUP_BITS],
        ordered: [0; 257],
        first: [0; LONGEST_CODE + 2],
        offset: [0; LONGEST_CODE + 2],
    };
    let (mut length, mut code, mut place) = (1, 0u32, 0);
    while length <= LONGEST_CODE {
        tables.first[length] = code;
        tables.offset[length] = place as u16;
        let mut symbol = 0;
        while symbol < 257 {
            if CODE_LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.ordered[place] = symbol as u16;
                place += 1;
                if length <= LOOKUP_BITS as usize {
                    let free = LOOKUP_BITS - length as u32;
                    let mut fill = 0;
                    while fill < 1 << free {
                        tables.short[(code << free) as usize + fill] = symbol as u16 | (length as u16) << 8;
                        fill += 1;
                    }
                }
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    tables.first[LONGEST_CODE + 1] = code;
    tables.offset[LONGEST_CODE + 1] = place as u16;
    tables
}

/// Returns the number of bytes that `text` occupies in Huffman code.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: u64 = text.iter().map(|&byte| u64::from(CODE_LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8) as usize
}

/// Appends `text` in Huffman code. The last byte is padded with ones.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u64, 0u32);
    for &byte in text {
        let length = u32::from(CODE_LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(TABLES.codes[usize::from(byte)]);
        held += length;
        // At most 31 bits are left over and at most 30 are added, so 64 are enough.
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    while held >= 8 {
        held -= 8;
        out.push((bits >> held) as u8);
    }
    if held > 0 {
        let free = 8 - held;
        out.push((bits << free) as u8 | ((1u16 << free) - 1) as u8);
    }
}

/// Appends the decoded text to `out`. If the coded text is invalid, `out` then contains the text
/// before the error.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), MalformedHuffman> {
    // The shortest code has five bits.
    out.reserve(coded.len() * 8 / 5);
    let mut rest = coded;
    // The next bits from the top, with ones after the last, so that the end looks like padding.
    let (mut bits, mut held) = (0u64, 0u32);
    loop {
        // Fewer bits than the longest code are held, so that four bytes have room.
        if let Some((word, behind)) = rest.split_first_chunk::<4>() {
            bits |= u64::from(u32::from_be_bytes(*word)) << (32 - held);
            held += 32;
            rest = behind;
        } else {
            for &byte in rest {
                bits |= u64::from(byte) << (56 - held);
                held += 8;
            }
            rest = &[];
        }
        if held < LONGEST_CODE as u32 {
            return decode_rest(bits, held, out);
        }
        while held >= LONGEST_CODE as u32 {
            let (symbol, length) = decode_symbol(bits)?;
            out.push(symbol);
            bits <<= length;
            held -= length;
        }
    }
}

/// Decodes the last bits of a Huffman-coded string: symbols, then at most seven ones as padding.
/// `bits` contains `held` bits, beginning at the highest.
fn decode_rest(mut bits: u64, mut held: u32, out: &mut Vec<u8>) -> Result<(), MalformedHuffman> {
    while held > 0 {
        let padding = u64::MAX << (64 - held);
        if held < 8 && bits == padding {
            return Ok(());
        }
        let (symbol, length) = decode_symbol(bits | !padding)?;
        if length > held {
            return Err(MalformedHuffman);
        }
        out.push(symbol);
        bits <<= length;
        held -= length;
    }
    Ok(())
}

/// Returns the symbol whose Huffman code begins at the highest bit of `bits`, and the length of
/// that code.
fn decode_symbol(bits: u64) -> Result<(u8, u32), MalformedHuffman> {
    let entry = TABLES.short[(bits >> (64 - LOOKUP_BITS)) as usize];
    if entry != 0 {
        return Ok((entry as u8, u32::from(entry >> 8)));
    }
    for length in LOOKUP_BITS as usize + 1..=LONGEST_CODE {
        let code = (bits >> (64 - length)) as u32;
        let count = u32::from(TABLES.offset[length + 1] - TABLES.offset[length]);
        let place = code.wrapping_sub(TABLES.first[length]);
        if place < count {
            let symbol = TABLES.ordered[usize::from(TABLES.offset[length]) + place as usize];
            return if usize::from(symbol) == EOS_SYMBOL {
                Err(MalformedHuffman)
            } else {
                Ok((symbol as u8, length as u32))
            };
        }
    }
    Err(MalformedHuffman)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_len(text));
        out
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, MalformedHuffman> {
        let mut out = vec![];
        decode(bytes, &mut out).map(|()| out)
    }

    /// Compares Huffman codes with rows of RFC 7541, Appendix B: the first row, the longest codes,
    /// and some between.
    #[test]
    fn huffman_codes_match_the_rfc7541_table() {
        let rows = [(0, 0x1ff8), (10, 0x3fff_fffc), (48, 0), (97, 3), (58, 0x5c), (92, 0x7fff0), (255, 0x3ff_ffee)];
        let tables = build_tables();
        for (symbol, code) in rows {
            assert_eq!(tables.codes[symbol], code, "{symbol}");
        }
        assert_eq!(tables.codes[EOS_SYMBOL], 0x3fff_ffff);
    }

    #[test]
    fn every_byte_survives_huffman_coding() {
        for byte in 0..=255u8 {
            for before in 0..9 {
                for behind in 0..9 {
                    let text = [vec![b'a'; before], vec![byte], vec![b'0'; behind]].concat();
                    assert_eq!(decoded(&coded(&text)), Ok(text), "{byte} behind {before}");
                }
            }
        }
    }

    #[test]
    fn malformed_huffman_padding_is_refused() {
        assert_eq!(decoded(&[]), Ok(vec![]));
        assert_eq!(decoded(&[0xff]), Err(MalformedHuffman), "eight ones of padding");
        assert_eq!(decoded(&[0x1f, 0xff]), Err(MalformedHuffman), "a letter, then more than seven ones");
        assert_eq!(decoded(&[0x1f]), Ok(vec![b'a']));
        assert_eq!(decoded(&[0x18]), Err(MalformedHuffman), "padded with zeros");
        assert_eq!(decoded(&[0x1e]), Err(MalformedHuffman), "padded with ones and a zero");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(MalformedHuffman), "EOS");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc, 0x1f]), Err(MalformedHuffman), "EOS, then more");
        assert_eq!(decoded(&[0xff, 0xc0]), Err(MalformedHuffman), "cut within a code");
    }
}
