//! Variable-length integers of QUIC (RFC 9000 §16).

use alloc::vec::Vec;

/// The largest integer that a QUIC variable-length integer can represent (RFC 9000 §16).
pub(crate) const MAX_VALUE: u64 = (1 << 62) - 1;

/// Appends a QUIC variable-length integer (RFC 9000 §16) in the shortest encoding.
pub(crate) fn encode(value: u64, out: &mut Vec<u8>) {
    let value = value.min(MAX_VALUE);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Removes a QUIC variable-length integer from the front of `input` and returns it. If the integer
/// is incomplete, returns `None` and leaves `input` unchanged. An encoding that is longer than
/// necessary is accepted.
pub(crate) fn decode(input: &mut &[u8]) -> Option<u64> {
    let &first = input.first()?;
    let length = 1 << (first >> 6);
    let (bytes, behind) = input.split_at_checked(length)?;
    *input = behind;
    Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Encodes and decodes the integers in the examples of RFC 9000, Appendix A.1.
    #[test]
    fn quic_integers_match_rfc9000_examples() {
        let examples: [(u64, &[u8]); 4] = [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in examples {
            let mut out = vec![];
            encode(value, &mut out);
            assert_eq!(out, bytes);
            for length in 0..bytes.len() {
                assert_eq!(decode(&mut &bytes[..length]), None, "{value} cut at {length}");
            }
            assert_eq!(decode(&mut &bytes[..]), Some(value));
        }
        assert_eq!(decode(&mut &[0x40, 0x25][..]), Some(37), "longer than necessary");
    }

    #[test]
    fn limits_of_quic_integers_survive_a_round_trip() {
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX_VALUE] {
            let mut out = vec![];
            encode(value, &mut out);
            let mut input = &out[..];
            assert_eq!((decode(&mut input), input), (Some(value), &[][..]));
        }
    }
}
