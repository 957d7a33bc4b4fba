//! Decodes header blocks into field lines (RFC 7541 §3, §6).

use super::{HpackError, static_table};
use crate::dynamic_table::DynamicTable;
use crate::field_coding::{DecodedFieldRanges, push_table_line};
use crate::{huffman, prefix_integer};
use alloc::vec::Vec;

/// An HPACK header block, and the position up to which it has been decoded.
#[derive(Clone, Debug)]
pub struct HeaderBlock<'a> {
    rest: &'a [u8],
    /// True if a field of the block was decoded. After a field, the block must not change the size
    /// of the dynamic table.
    begun: bool,
}

impl<'a> HeaderBlock<'a> {
    /// Creates the state for decoding a complete header block, i.e. the joined fragments of a
    /// HEADERS frame and its CONTINUATION frames.
    pub fn new(bytes: &'a [u8]) -> HeaderBlock<'a> {
        HeaderBlock { rest: bytes, begun: false }
    }
}

/// The receiving end of HPACK: a decoder with its dynamic table.
#[derive(Debug)]
pub struct HpackDecoder {
    table: DynamicTable,
    /// The largest size in bytes that the peer may choose for the dynamic table.
    limit: u32,
}

impl HpackDecoder {
    /// Creates a decoder. `limit` is the largest size in bytes that the peer may give the dynamic
    /// table (`SETTINGS_HEADER_TABLE_SIZE`), and also the table's initial size. The memory in use
    /// depends on the entries, and is at most about twice `limit`.
    pub fn new(limit: u32) -> HpackDecoder {
        HpackDecoder { table: DynamicTable::new(limit as usize), limit }
    }

    /// Sets another limit on the size of the dynamic table, after the peer has acknowledged it. If
    /// the table is larger than the limit, the next header block must begin with an instruction
    /// that reduces the table (RFC 7541 §4.2).
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Decodes the next field of the header block. Appends it to `out` as `name: value` and CR LF,
    /// and returns the positions of name and value in `out`; `None` at the end of the block.
    ///
    /// Only the encoding is checked, not whether the field is valid. Decode every block of a
    /// connection to its end, in order, even if its fields are not wanted. If a block is skipped,
    /// the tables of client and server differ from then on.
    pub fn next_line(
        &mut self,
        block: &mut HeaderBlock<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<DecodedFieldRanges>, HpackError> {
        loop {
            let Some(&first) = block.rest.first() else { return Ok(None) };
            if first & 0xe0 != 0x20 {
                if self.table.max() > self.limit as usize {
                    return Err(HpackError::MissingTableSize);
                }
                block.begun = true;
                return self.decode_field(first, block, out).map(Some);
            }
            if block.begun {
                return Err(HpackError::LateTableSize);
            }
            let size = integer(&mut block.rest, 5)?;
            if size > self.limit {
                return Err(HpackError::TableSize { size, limit: self.limit });
            }
            self.table.resize(size as usize);
        }
    }

    fn decode_field(
        &mut self,
        first: u8,
        block: &mut HeaderBlock<'_>,
        out: &mut Vec<u8>,
    ) -> Result<DecodedFieldRanges, HpackError> {
        let start = out.len();
        if first & 0x80 != 0 {
            let index = integer(&mut block.rest, 7)?;
            let (name, value) = self.entry(index)?;
            return Ok(push_table_line(name, value, out));
        }
        let added = first & 0x40 != 0;
        match integer(&mut block.rest, if added { 6 } else { 4 })? {
            0 => string(block, out)?,
            index => out.extend_from_slice(self.entry(index)?.0),
        }
        let name = start..out.len();
        out.extend_from_slice(b": ");
        let value = out.len();
        string(block, out)?;
        let value = value..out.len();
        if added {
            self.table.insert(&out[name.clone()], &out[value.clone()]);
        }
        out.extend_from_slice(b"\r\n");
        Ok(DecodedFieldRanges { name, value, sensitive: first & 0xf0 == 0x10 })
    }

    fn entry(&self, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
        let unknown = HpackError::Index { index };
        let place = (index as usize).checked_sub(1).ok_or(unknown)?;
        match static_table::ENTRIES.get(place) {
            Some(&entry) => Ok(entry),
            None => self.table.get(place - static_table::ENTRIES.len()).ok_or(unknown),
        }
    }
}

/// Removes an HPACK integer of up to 32 bits from the front of `input` and returns it. Its prefix
/// has `prefix` bits.
fn integer(input: &mut &[u8], prefix: u32) -> Result<u32, HpackError> {
    // Five bytes of seven bits hold 32 bits.
    let value = prefix_integer::decode(input, prefix, 5)?;
    u32::try_from(value).map_err(|_| HpackError::Integer)
}

fn string(block: &mut HeaderBlock<'_>, out: &mut Vec<u8>) -> Result<(), HpackError> {
    let &first = block.rest.first().ok_or(HpackError::Truncated)?;
    let length = integer(&mut block.rest, 7)? as usize;
    let (text, behind) = block.rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
    block.rest = behind;
    if first & 0x80 != 0 {
        return Ok(huffman::decode(text, out)?);
    }
    out.extend_from_slice(text);
    Ok(())
}
