//! The prefixed integers of HPACK and QPACK (RFC 7541 §5.1).

use alloc::vec::Vec;

/// The reason why an integer with a prefix (RFC 7541 §5.1) cannot be decoded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PrefixIntegerError {
    /// The input ends within the integer.
    Truncated,
    /// The integer has more bytes than the caller allows.
    TooLarge,
}

/// Appends an integer in the encoding of HPACK and QPACK (RFC 7541 §5.1). Its prefix has `prefix`
/// bits (1 to 8). `pattern` contains the bits above the prefix in the first byte.
pub(crate) fn encode(value: u64, pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let full = (1u64 << prefix) - 1;
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

/// Removes an integer from the front of `input` and returns it. Its prefix is the low `prefix` bits
/// of the first byte. At most `longest` bytes (up to 9) may follow the first byte: without this
/// limit, an encoding could be padded with zeros for ever. On an error, `input` is unchanged.
pub(crate) fn decode(input: &mut &[u8], prefix: u32, longest: u32) -> Result<u64, PrefixIntegerError> {
    let (&first, mut rest) = input.split_first().ok_or(PrefixIntegerError::Truncated)?;
    let full = (1u64 << prefix) - 1;
    let mut value = u64::from(first) & full;
    if value == full {
        let mut shift = 0;
        loop {
            let (&byte, behind) = rest.split_first().ok_or(PrefixIntegerError::Truncated)?;
            rest = behind;
            if shift >= 7 * longest {
                return Err(PrefixIntegerError::TooLarge);
            }
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn both(value: u64, prefix: u32, bytes: &[u8]) {
        let mut out = vec![];
        encode(value, 0, prefix, &mut out);
        assert_eq!(out, bytes);
        let mut input = bytes;
        assert_eq!(decode(&mut input, prefix, 9), Ok(value));
        assert!(input.is_empty());
    }

    /// Encodes and decodes the integers in the examples of RFC 7541, Appendix C.1.
    #[test]
    fn prefixed_integers_match_rfc7541_examples() {
        both(10, 5, &[0x0a]);
        both(1337, 5, &[0x1f, 0x9a, 0x0a]);
        both(42, 8, &[0x2a]);
    }

    #[test]
    fn largest_prefixed_integer_decodes_and_malformed_is_refused() {
        both(0, 1, &[0]);
        both(127, 7, &[0x7f, 0]);
        both(126, 7, &[0x7e]);
        both(u64::from(u32::MAX), 4, &[0x0f, 0xf0, 0xff, 0xff, 0xff, 0x0f]);
        both((1 << 62) - 1, 8, &[0xff, 0x80, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]);
        let refused = |mut bytes: &[u8], longest| decode(&mut bytes, 4, longest).unwrap_err();
        assert_eq!(refused(&[], 5), PrefixIntegerError::Truncated);
        assert_eq!(refused(&[0x0f, 0x80], 5), PrefixIntegerError::Truncated);
        assert_eq!(refused(&[0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 5), PrefixIntegerError::TooLarge, "endless zeros");
        let mut input = &[0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..];
        assert_eq!(decode(&mut input, 4, 9), Ok(15));
        assert_eq!(refused(&[&[0x0f][..], &[0x80; 9], &[0]].concat(), 9), PrefixIntegerError::TooLarge);
    }
}
