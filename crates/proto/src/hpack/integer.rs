//! Integers with a prefix (RFC 7541 §5.1).

use super::HpackError;
use alloc::vec::Vec;

/// Appends an HPACK integer with a prefix of `prefix` bits (1 to 8). `pattern` contains the bits
/// above the prefix in the first byte.
pub(super) fn encode(value: u32, pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let full = (1u32 << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Removes an HPACK integer from the front of `input` and returns it. Its prefix is the low
/// `prefix` bits of the first byte.
pub(super) fn decode(input: &mut &[u8], prefix: u32) -> Result<u32, HpackError> {
    let (&first, mut rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let full = (1u32 << prefix) - 1;
    let mut value = u64::from(u32::from(first) & full);
    if value == u64::from(full) {
        // Five bytes of seven bits hold 32 bits. A longer run of zeros adds nothing and could go on
        // for ever.
        let mut shift = 0;
        loop {
            let (&byte, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = behind;
            if shift > 28 {
                return Err(HpackError::Integer);
            }
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    u32::try_from(value).map_err(|_| HpackError::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn both(value: u32, prefix: u32, bytes: &[u8]) {
        let mut out = vec![];
        encode(value, 0, prefix, &mut out);
        assert_eq!(out, bytes);
        let mut input = bytes;
        assert_eq!(decode(&mut input, prefix), Ok(value));
        assert!(input.is_empty());
    }

    /// Encodes and decodes the integers in the examples of RFC 7541, Appendix C.1.
    #[test]
    fn integers_match_rfc7541_examples() {
        both(10, 5, &[0x0a]);
        both(1337, 5, &[0x1f, 0x9a, 0x0a]);
        both(42, 8, &[0x2a]);
    }

    #[test]
    fn largest_and_malformed_integers() {
        both(0, 1, &[0]);
        both(127, 7, &[0x7f, 0]);
        both(126, 7, &[0x7e]);
        both(u32::MAX, 4, &[0x0f, 0xf0, 0xff, 0xff, 0xff, 0x0f]);
        let refused = |mut bytes: &[u8]| decode(&mut bytes, 4).unwrap_err();
        assert_eq!(refused(&[]), HpackError::Truncated);
        assert_eq!(refused(&[0x0f, 0x80]), HpackError::Truncated);
        assert_eq!(refused(&[0x0f, 0xf1, 0xff, 0xff, 0xff, 0x0f]), HpackError::Integer, "one above 32 bits");
        assert_eq!(refused(&[0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), HpackError::Integer, "zeros without an end");
    }
}
