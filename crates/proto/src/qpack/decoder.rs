//! Decodes field sections into field lines (RFC 9204 §4.5), and executes the insertions that the
//! peer requests (§4.3).

use super::huffman_decode_cache::HuffmanDecodeCache;
use super::instruction::{self, EncoderInstruction, InsertedFieldName};
use super::{QpackError, QpackFault, integer, static_table};
use crate::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
use crate::field_coding::{DecodedFieldRanges, push_table_line};
use crate::prefix_integer;
use alloc::vec::Vec;

/// An encoded field section, and the position up to which it has been decoded.
#[derive(Clone, Debug)]
pub struct EncodedFieldSection<'a> {
    rest: &'a [u8],
    required: u64,
    base: u64,
}

impl EncodedFieldSection<'_> {
    /// Returns the Required Insert Count: the section can be decoded as soon as this number of
    /// entries has been inserted ([`QpackDecoder::insert_count`]). If it is not 0, a decoded
    /// section must be acknowledged.
    pub fn required_insert_count(&self) -> u64 {
        self.required
    }
}

/// The receiving end of QPACK: a decoder with its dynamic table.
#[derive(Debug)]
pub struct QpackDecoder {
    table: DynamicTable,
    /// The largest capacity in bytes that the peer may choose for the dynamic table.
    limit: u32,
    /// The first bytes of an encoder instruction that has not arrived completely.
    partial: Vec<u8>,
    /// A buffer that is reused for the name and the value of an entry to insert.
    entry: Vec<u8>,
    /// The number of insertions that were acknowledged to the peer.
    acknowledged: u64,
    strings: HuffmanDecodeCache,
}

impl QpackDecoder {
    /// Creates a decoder. `limit` is the largest capacity in bytes that the peer may give the
    /// dynamic table (`SETTINGS_QPACK_MAX_TABLE_CAPACITY`). The table occupies at most about twice
    /// `limit`, depending on its entries. An instruction that has not arrived completely occupies
    /// up to eight times `limit` in addition.
    pub fn new(limit: u32) -> QpackDecoder {
        let (table, partial, entry) = (DynamicTable::new(0), Vec::new(), Vec::new());
        QpackDecoder { table, limit, partial, entry, acknowledged: 0, strings: HuffmanDecodeCache::default() }
    }

    /// Returns the number of entries that the peer has inserted into the dynamic table so far.
    pub fn insert_count(&self) -> u64 {
        self.table.insert_count()
    }

    /// Executes the instructions in `input`, the next bytes of the peer's encoder stream, and
    /// returns the number of instructions. All input is consumed. After an error, the connection
    /// must end.
    pub fn on_encoder_stream(&mut self, input: &[u8]) -> Result<u32, QpackError> {
        self.process_instructions(input).map_err(QpackError::EncoderStream)
    }

    fn process_instructions(&mut self, input: &[u8]) -> Result<u32, QpackFault> {
        let mut count = 0;
        if self.partial.is_empty() {
            let rest = self.complete_instructions(input, &mut count)?;
            self.partial.extend_from_slice(rest);
            return Ok(count);
        }
        let mut joined = core::mem::take(&mut self.partial);
        joined.extend_from_slice(input);
        let left = self.complete_instructions(&joined, &mut count)?.len();
        joined.drain(..joined.len() - left);
        // A large instruction is rare, and a connection in a pool should cost little.
        if joined.is_empty() {
            joined.shrink_to(1024);
        }
        self.partial = joined;
        Ok(count)
    }

    /// Executes all complete instructions, and returns the bytes after them.
    fn complete_instructions<'a>(&mut self, mut input: &'a [u8], count: &mut u32) -> Result<&'a [u8], QpackFault> {
        while !input.is_empty() {
            let mut rest = input;
            match instruction::encoder_instruction(&mut rest, self.table.max()) {
                Ok(instruction) => self.apply(&instruction)?,
                Err(QpackFault::Truncated) => break,
                Err(fault) => return Err(fault),
            }
            *count += 1;
            input = rest;
        }
        Ok(input)
    }

    fn apply(&mut self, instruction: &EncoderInstruction<'_>) -> Result<(), QpackFault> {
        self.entry.clear();
        let name = match *instruction {
            EncoderInstruction::Capacity(size) => {
                let limit = self.limit;
                let fits = u32::try_from(size).ok().filter(|&size| size <= limit);
                self.table.resize(fits.ok_or(QpackFault::Capacity { size, limit })? as usize);
                return Ok(());
            }
            EncoderInstruction::Duplicate(index) => {
                let (name, value) = entry_at_relative_index(&self.table, self.table.insert_count(), index)?;
                self.entry.extend_from_slice(name);
                self.entry.extend_from_slice(value);
                name.len()
            }
            EncoderInstruction::Insert { ref name, ref value } => {
                match *name {
                    InsertedFieldName::Static(index) => self.entry.extend_from_slice(static_entry(index)?.0),
                    InsertedFieldName::Dynamic(index) => {
                        let (name, _) = entry_at_relative_index(&self.table, self.table.insert_count(), index)?;
                        self.entry.extend_from_slice(name);
                    }
                    InsertedFieldName::Literal(ref text) => text.decode(&mut self.entry)?,
                }
                let length = self.entry.len();
                value.decode(&mut self.entry)?;
                length
            }
        };
        if self.entry.len() + ENTRY_OVERHEAD > self.table.max() {
            return Err(QpackFault::EntryTooLarge);
        }
        let (name, value) = self.entry.split_at(name);
        self.table.insert(name, value);
        Ok(())
    }

    /// Begins to decode a complete field section. If the [Required Insert
    /// Count](EncodedFieldSection::required_insert_count) of the result is more than
    /// [`QpackDecoder::insert_count`], wait for insertions and begin again.
    pub fn begin_section<'a>(&self, section: &'a [u8]) -> Result<EncodedFieldSection<'a>, QpackError> {
        self.decode_prefix(section).map_err(QpackError::Section)
    }

    fn decode_prefix<'a>(&self, section: &'a [u8]) -> Result<EncodedFieldSection<'a>, QpackFault> {
        let mut rest = section;
        let required = self.required_insert_count(integer(&mut rest, 8)?)?;
        let &first = rest.first().ok_or(QpackFault::Truncated)?;
        let delta = integer(&mut rest, 7)?;
        let base = if first & 0x80 == 0 {
            required.checked_add(delta)
        } else {
            required.checked_sub(delta).and_then(|base| base.checked_sub(1))
        };
        Ok(EncodedFieldSection { rest, required, base: base.ok_or(QpackFault::Prefix)? })
    }

    /// Reconstructs the Required Insert Count from `encoded`, its encoded form: the count modulo
    /// twice the number of entries that the largest table can have (RFC 9204 §4.5.1.1).
    fn required_insert_count(&self, encoded: u64) -> Result<u64, QpackFault> {
        if encoded == 0 {
            return Ok(0);
        }
        let entries = u64::from(self.limit) / ENTRY_OVERHEAD as u64;
        let range = 2 * entries;
        if encoded > range {
            return Err(QpackFault::Prefix);
        }
        let highest = self.table.insert_count() + entries;
        let required = highest / range * range + encoded - 1;
        match required {
            _ if required <= highest && required > 0 => Ok(required),
            _ if required > highest && required > range => Ok(required - range),
            _ => Err(QpackFault::Prefix),
        }
    }

    /// Decodes the next field of the section. Appends it to `out` as `name: value` and CR LF, and
    /// returns the positions of name and value in `out`; `None` at the end of the section.
    ///
    /// Only the encoding is checked, not whether the field is valid.
    pub fn next_line(
        &mut self,
        section: &mut EncodedFieldSection<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<DecodedFieldRanges>, QpackError> {
        match section.rest.first() {
            None => Ok(None),
            Some(&first) => self.decode_field(first, section, out).map(Some).map_err(QpackError::Section),
        }
    }

    fn decode_field(
        &mut self,
        first: u8,
        section: &mut EncodedFieldSection<'_>,
        out: &mut Vec<u8>,
    ) -> Result<DecodedFieldRanges, QpackFault> {
        let start = out.len();
        let sensitive = match first {
            0x80.. => {
                let index = integer(&mut section.rest, 6)?;
                let (name, value) =
                    if first & 0x40 != 0 { static_entry(index)? } else { self.entry_before_base(section, index)? };
                return Ok(push_table_line(name, value, out));
            }
            0x40.. => {
                let index = integer(&mut section.rest, 4)?;
                let entry =
                    if first & 0x10 != 0 { static_entry(index)? } else { self.entry_before_base(section, index)? };
                out.extend_from_slice(entry.0);
                first & 0x20 != 0
            }
            0x20.. => {
                self.string(&mut section.rest, 3, out)?;
                first & 0x10 != 0
            }
            0x10.. => {
                let index = integer(&mut section.rest, 4)?;
                let (name, value) = self.entry_after_base(section, index)?;
                return Ok(push_table_line(name, value, out));
            }
            _ => {
                let index = integer(&mut section.rest, 3)?;
                out.extend_from_slice(self.entry_after_base(section, index)?.0);
                first & 0x08 != 0
            }
        };
        let name = start..out.len();
        out.extend_from_slice(b": ");
        let value = out.len();
        self.string(&mut section.rest, 7, out)?;
        let value = value..out.len();
        out.extend_from_slice(b"\r\n");
        Ok(DecodedFieldRanges { name, value, sensitive })
    }

    /// Appends the string at the front of `input` to `out`. The length of the string is encoded as
    /// an integer with a prefix of `prefix` bits. The bit above the prefix says whether the string
    /// is Huffman-coded.
    fn string(&mut self, input: &mut &[u8], prefix: u32, out: &mut Vec<u8>) -> Result<(), QpackFault> {
        let &first = input.first().ok_or(QpackFault::Truncated)?;
        let length = integer(input, prefix)?;
        let length = usize::try_from(length).map_err(|_| QpackFault::Truncated)?;
        let (text, behind) = input.split_at_checked(length).ok_or(QpackFault::Truncated)?;
        *input = behind;
        if first & 1 << prefix != 0 {
            return Ok(self.strings.decode(text, out)?);
        }
        out.extend_from_slice(text);
        Ok(())
    }

    fn entry_before_base(&self, section: &EncodedFieldSection<'_>, index: u64) -> Result<(&[u8], &[u8]), QpackFault> {
        let absolute = section.base.checked_sub(1).and_then(|newest| newest.checked_sub(index));
        self.entry_at_absolute_index(section, index, absolute)
    }

    fn entry_after_base(&self, section: &EncodedFieldSection<'_>, index: u64) -> Result<(&[u8], &[u8]), QpackFault> {
        self.entry_at_absolute_index(section, index, section.base.checked_add(index))
    }

    fn entry_at_absolute_index(
        &self,
        section: &EncodedFieldSection<'_>,
        index: u64,
        absolute: Option<u64>,
    ) -> Result<(&[u8], &[u8]), QpackFault> {
        let declared = absolute.filter(|&absolute| absolute < section.required);
        declared.and_then(|absolute| self.table.get_absolute(absolute)).ok_or(QpackFault::Index { index })
    }

    /// Appends a Section Acknowledgment to `out`, the client's decoder stream. Call this after
    /// decoding a section of the stream `stream`. `required` is the section's
    /// [`EncodedFieldSection::required_insert_count`]; if it is 0, nothing is appended.
    pub fn acknowledge_section(&mut self, stream: u64, required: u64, out: &mut Vec<u8>) {
        if required > 0 {
            self.acknowledged = self.acknowledged.max(required);
            prefix_integer::encode(stream, 0x80, 7, out);
        }
    }

    /// Appends a Stream Cancellation to `out`, the client's decoder stream. Call this when a stream
    /// is reset, or is no longer read, before all its sections were decoded.
    pub fn cancel_stream(&self, stream: u64, out: &mut Vec<u8>) {
        // Without a table, the peer cannot have referred to it (RFC 9204 §2.2.2.2).
        if self.limit > 0 {
            prefix_integer::encode(stream, 0x40, 6, out);
        }
    }

    /// Appends an Insert Count Increment to `out`, the client's decoder stream, if some insertions
    /// have not been acknowledged yet.
    pub fn acknowledge_insertions(&mut self, out: &mut Vec<u8>) {
        let increment = self.table.insert_count() - self.acknowledged;
        if increment > 0 {
            self.acknowledged = self.table.insert_count();
            prefix_integer::encode(increment, 0, 6, out);
        }
    }
}

fn static_entry(index: u64) -> Result<(&'static [u8], &'static [u8]), QpackFault> {
    let entry = usize::try_from(index).ok().and_then(|place| static_table::ENTRIES.get(place));
    entry.copied().ok_or(QpackFault::Index { index })
}

/// Returns the name and the value of the entry with this index relative to `base` (RFC 9204
/// §3.2.5).
fn entry_at_relative_index(table: &DynamicTable, base: u64, index: u64) -> Result<(&[u8], &[u8]), QpackFault> {
    let absolute = base.checked_sub(1).and_then(|newest| newest.checked_sub(index));
    absolute.and_then(|absolute| table.get_absolute(absolute)).ok_or(QpackFault::Index { index })
}
