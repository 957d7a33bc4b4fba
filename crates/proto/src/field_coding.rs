//! Functions and types that HPACK (RFC 7541) and QPACK (RFC 9204) share to compress field sections.

use crate::{huffman, prefix_integer};
use alloc::vec::Vec;
use core::ops::Range;

/// The positions of one decoded field line in the buffer to which the decoder appended it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedFieldRanges {
    /// The range of the field name in the buffer.
    pub name: Range<usize>,
    /// The range of the field value in the buffer.
    pub value: Range<usize>,
    /// True if the field must never enter a dynamic table, not even an intermediary's (RFC 7541
    /// §7.1.3, RFC 9204 §7.1.3).
    pub sensitive: bool,
}

/// The rule for adding a field to the dynamic table of HPACK or QPACK when it is encoded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FieldIndexing {
    /// The field is added to the dynamic table, because it will occur again.
    Add,
    /// The field is not added to the dynamic table, because it would only evict other fields. If a
    /// table contains the field already, its index is sent.
    Skip,
    /// The field is not added to the dynamic table, and intermediaries must not add it. Use this
    /// for secrets, which the lengths of compressed blocks could reveal (RFC 7541 §7.1).
    Never,
}

/// An encoder of one field section, to which the fields are added one by one: by HPACK, by QPACK or
/// as HTTP/1 text.
pub(crate) trait FieldSectionEncoder {
    /// Adds a field to the section. `name` must be in lower case.
    fn push_field(&mut self, name: &[u8], value: &[u8], indexing: FieldIndexing);
}

/// The result of looking up a field in a static table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum StaticTableMatch {
    /// The static table has an entry with this name and value. The number is the entry's index.
    Field(u32),
    /// The static table has an entry with this name, but another value. The number is the entry's
    /// index.
    Name(u32),
    Nothing,
}

/// Appends a string literal of HPACK or QPACK (RFC 7541 §5.2), Huffman-coded if that is shorter.
/// The length of the string is encoded as an integer with a prefix of `prefix` bits. The bit above
/// the prefix tells whether the string is Huffman-coded. `pattern` contains the bits above that
/// bit.
pub(crate) fn encode_string(text: &[u8], pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        prefix_integer::encode(coded as u64, pattern | 1 << prefix, prefix, out);
        huffman::encode(text, out);
    } else {
        prefix_integer::encode(text.len() as u64, pattern, prefix, out);
        out.extend_from_slice(text);
    }
}

/// Appends the field of a table entry to `out` as `name: value` and CR LF. Returns the positions of
/// name and value in `out`.
pub(crate) fn push_table_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) -> DecodedFieldRanges {
    let start = out.len();
    out.reserve(name.len() + value.len() + ": \r\n".len());
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    let value = out.len() - value.len()..out.len();
    out.extend_from_slice(b"\r\n");
    DecodedFieldRanges { name: start..start + name.len(), value, sensitive: false }
}
