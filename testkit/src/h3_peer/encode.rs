//! Encodes HTTP/3 frames (RFC 9114 section 7) and QPACK field sections (RFC 9204 section 4.5).

/// The type of a DATA frame.
pub const DATA: u64 = 0x0;
/// The type of a HEADERS frame.
pub const HEADERS: u64 = 0x1;
/// The type of a SETTINGS frame.
pub const SETTINGS: u64 = 0x4;
/// The type of a PUSH_PROMISE frame.
pub const PUSH_PROMISE: u64 = 0x5;
/// The type of a GOAWAY frame.
pub const GOAWAY: u64 = 0x7;

/// The type of a control stream.
pub const CONTROL_STREAM: u64 = 0x0;
/// The type of a push stream.
pub const PUSH_STREAM: u64 = 0x1;
/// The type of a QPACK encoder stream.
pub const ENCODER_STREAM: u64 = 0x2;
/// The type of a QPACK decoder stream.
pub const DECODER_STREAM: u64 = 0x3;

/// Encodes a variable-length integer of QUIC (RFC 9000 section 16) in its shortest form.
///
/// # Panics
/// `value` has more than 62 bits.
pub fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        0x4000_0000..0x4000_0000_0000_0000 => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
        _ => panic!("{value} has more than 62 bits"),
    }
}

/// Decodes the variable-length integer at the start of `bytes`. Returns its value and its encoded
/// length; `None` if `bytes` ends within the integer.
pub fn decode_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = 1 << (bytes.first()? >> 6);
    let value = bytes.get(..length)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> (66 - 8 * length)), length))
}

/// Encodes a frame of any type.
pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(kind)[..], &varint(payload.len() as u64), payload].concat()
}

/// Encodes a DATA frame.
pub fn data(bytes: &[u8]) -> Vec<u8> {
    frame(DATA, bytes)
}

/// Encodes a HEADERS frame with these fields. [`section`] encodes the fields.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

/// Encodes a SETTINGS frame with these identifiers and values.
pub fn settings(values: &[(u64, u64)]) -> Vec<u8> {
    let payload: Vec<u8> = values.iter().flat_map(|(id, value)| [varint(*id), varint(*value)].concat()).collect();
    frame(SETTINGS, &payload)
}

/// Encodes a GOAWAY frame with this stream ID.
pub fn goaway(stream: u64) -> Vec<u8> {
    frame(GOAWAY, &varint(stream))
}

/// Encodes a field section of literal names and values, without the static and the dynamic table
/// and without Huffman codes.
pub fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = section_prefix(0, 0);
    for (name, value) in fields {
        section.extend(prefixed(0x20, 3, name.len() as u64));
        section.extend(name.as_bytes());
        section.extend(prefixed(0, 7, value.len() as u64));
        section.extend(value.as_bytes());
    }
    section
}

/// Encodes the prefix of a field section: the encoded Required Insert Count, and the Delta Base
/// with a positive sign.
pub fn section_prefix(insert_count: u64, delta_base: u64) -> Vec<u8> {
    [prefixed(0, 8, insert_count), prefixed(0, 7, delta_base)].concat()
}

/// Encodes an integer with a prefix of `bits` bits (RFC 7541 section 5.1). `first` is the first
/// byte without the integer: it has the bits before the prefix, and zeros in the prefix.
pub fn prefixed(first: u8, bits: u32, value: u64) -> Vec<u8> {
    let most = (1u64 << bits) - 1;
    if value < most {
        return vec![first | value as u8];
    }
    let mut bytes = vec![first | most as u8];
    let mut rest = value - most;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Encodes the encoder instruction that inserts a field with a literal name (RFC 9204 section
/// 4.3.3).
pub fn insert(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = prefixed(0x40, 5, name.len() as u64);
    bytes.extend(name.as_bytes());
    bytes.extend(prefixed(0, 7, value.len() as u64));
    bytes.extend(value.as_bytes());
    bytes
}

/// Encodes the encoder instruction that sets the capacity of the dynamic table (RFC 9204 section
/// 4.3.1).
pub fn capacity(bytes: u64) -> Vec<u8> {
    prefixed(0x20, 5, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_integers_match_rfc_examples() {
        assert_eq!(varint(37), [0x25]);
        assert_eq!(varint(15_293), [0x7b, 0xbd]);
        assert_eq!(varint(494_878_333), [0x9d, 0x7f, 0x3e, 0x7d]);
        assert_eq!(varint(151_288_809_941_952_652), [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]);
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            assert_eq!(decode_varint(&varint(value)), Some((value, varint(value).len())));
        }
        assert_eq!((prefixed(0, 5, 10), prefixed(0, 5, 1337)), (vec![0x0a], vec![0x1f, 0x9a, 0x0a]));
    }
}
