//! Encodes fields into header blocks (RFC 7541 §6, §7.1).

use super::static_table;
use crate::dynamic_table::DynamicTable;
use crate::field_coding::{FieldIndexing, FieldSectionEncoder, StaticTableMatch, encode_string};
use crate::prefix_integer;
use alloc::vec::Vec;

/// The sending end of HPACK: an encoder with its dynamic table.
#[derive(Debug)]
pub struct HpackEncoder {
    table: DynamicTable,
    /// The largest size in bytes that the dynamic table may have, even if the peer allows a larger
    /// one.
    own: u32,
    /// The smallest size in bytes that the dynamic table has had since the last header block. The
    /// next block must announce it (RFC 7541 §4.2).
    lowest: u32,
    changed: bool,
}

/// The size in bytes of a dynamic table before any SETTINGS (RFC 9113 §6.5.2).
const INITIAL_TABLE_SIZE: u32 = 4096;

impl HpackEncoder {
    /// Creates an encoder. `own` is the largest size in bytes of its dynamic table. The peer's
    /// limit may make the table smaller.
    pub fn new(own: u32) -> HpackEncoder {
        let size = own.min(INITIAL_TABLE_SIZE);
        HpackEncoder { table: DynamicTable::new(size as usize), own, lowest: size, changed: size < INITIAL_TABLE_SIZE }
    }

    /// Sets the limit on the dynamic table that the peer sent in `SETTINGS_HEADER_TABLE_SIZE`. The
    /// next header block announces the change.
    pub fn set_peer_limit(&mut self, limit: u32) {
        let size = limit.min(self.own);
        if size as usize != self.table.max() {
            self.table.resize(size as usize);
            self.lowest = if self.changed { self.lowest.min(size) } else { size };
            self.changed = true;
        }
    }

    /// Begins a header block in `out`. Every block that was begun must be sent, in order.
    pub fn begin_block(&mut self, out: &mut Vec<u8>) {
        if self.changed {
            self.changed = false;
            let size = self.table.max() as u32;
            if self.lowest < size {
                prefix_integer::encode(u64::from(self.lowest), 0x20, 5, out);
            }
            prefix_integer::encode(u64::from(size), 0x20, 5, out);
        }
    }

    /// Appends a field to the header block in `out`. `name` must be in lower case.
    pub fn encode(&mut self, name: &[u8], value: &[u8], indexing: FieldIndexing, out: &mut Vec<u8>) {
        let mut index = 0;
        // The dynamic table first: it has most fields of a further request, and it is the shorter
        // one.
        for (place, (known, known_value)) in self.table.iter().enumerate() {
            if known == name {
                let here = (static_table::ENTRIES.len() + place) as u32 + 1;
                if known_value == value && indexing != FieldIndexing::Never {
                    return prefix_integer::encode(u64::from(here), 0x80, 7, out);
                }
                if index == 0 {
                    index = here;
                }
            }
        }
        match static_table::find(name, value) {
            StaticTableMatch::Field(index) if indexing != FieldIndexing::Never => {
                return prefix_integer::encode(u64::from(index), 0x80, 7, out);
            }
            StaticTableMatch::Field(place) | StaticTableMatch::Name(place) => index = place,
            StaticTableMatch::Nothing => {}
        }
        let (pattern, prefix) = match indexing {
            FieldIndexing::Add => (0x40, 6),
            FieldIndexing::Skip => (0, 4),
            FieldIndexing::Never => (0x10, 4),
        };
        prefix_integer::encode(u64::from(index), pattern, prefix, out);
        if index == 0 {
            encode_string(name, 0, 7, out);
        }
        encode_string(value, 0, 7, out);
        if indexing == FieldIndexing::Add {
            self.table.insert(name, value);
        }
    }
}

/// A header block in `out` to which fields are being appended.
pub(crate) struct OpenHeaderBlock<'a> {
    encoder: &'a mut HpackEncoder,
    out: &'a mut Vec<u8>,
}

impl<'a> OpenHeaderBlock<'a> {
    /// Begins a header block in `out`. The block must be sent, because the encoder's dynamic table
    /// changes with it.
    pub(crate) fn begin(encoder: &'a mut HpackEncoder, out: &'a mut Vec<u8>) -> OpenHeaderBlock<'a> {
        encoder.begin_block(out);
        OpenHeaderBlock { encoder, out }
    }
}

impl FieldSectionEncoder for OpenHeaderBlock<'_> {
    fn push_field(&mut self, name: &[u8], value: &[u8], indexing: FieldIndexing) {
        self.encoder.encode(name, value, indexing, self.out);
    }
}
