//! Encodes fields into blocks (RFC 7541 §6, §7.1).

use super::dynamic_table::DynamicTable;
use super::{huffman, integer, static_table};
use alloc::vec::Vec;

/// The use of the dynamic table for a field.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HpackIndexing {
    /// Adds the field to the table, because it will occur again.
    Add,
    /// Does not add the field, because it would only evict others. If a table contains it already,
    /// its index is sent.
    Skip,
    /// Does not add the field, and forbids intermediaries to add it. For secrets, which the lengths
    /// of compressed blocks could reveal (RFC 7541 §7.1).
    Never,
}

/// The sending half: an encoder with its dynamic table.
#[derive(Debug)]
pub struct HpackEncoder {
    table: DynamicTable,
    /// The largest size of the table that we want, even if the peer allows more.
    own: u32,
    /// The smallest table size set since the last block, and whether the next block must announce a
    /// change (RFC 7541 §4.2).
    lowest: u32,
    changed: bool,
}

/// The size in bytes of a table before any SETTINGS (RFC 9113 §6.5.2).
const INITIAL: u32 = 4096;

impl HpackEncoder {
    /// Creates an encoder. `own` is the largest size in bytes of the dynamic table; the peer may
    /// make it smaller.
    pub fn new(own: u32) -> HpackEncoder {
        let size = own.min(INITIAL);
        HpackEncoder { table: DynamicTable::new(size as usize), own, lowest: size, changed: size < INITIAL }
    }

    /// Sets the peer's `SETTINGS_HEADER_TABLE_SIZE`. The next block announces the change.
    pub fn set_peer_limit(&mut self, limit: u32) {
        let size = limit.min(self.own);
        if size as usize != self.table.max() {
            self.table.resize(size as usize);
            self.lowest = if self.changed { self.lowest.min(size) } else { size };
            self.changed = true;
        }
    }

    /// Begins a block. Every block that was begun must be sent, in order.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.changed {
            self.changed = false;
            let size = self.table.max() as u32;
            if self.lowest < size {
                integer::encode(self.lowest, 0x20, 5, out);
            }
            integer::encode(size, 0x20, 5, out);
        }
    }

    /// Appends a field. `name` must be in lower case.
    pub fn encode(&mut self, name: &[u8], value: &[u8], indexing: HpackIndexing, out: &mut Vec<u8>) {
        let mut index = 0;
        // The dynamic table first: it has most fields of a further request, and it is the shorter
        // one.
        for (place, (known, known_value)) in self.table.iter().enumerate() {
            if known == name {
                let here = (static_table::TABLE.len() + place) as u32 + 1;
                if known_value == value && indexing != HpackIndexing::Never {
                    return integer::encode(here, 0x80, 7, out);
                }
                if index == 0 {
                    index = here;
                }
            }
        }
        match static_table::find(name, value) {
            static_table::StaticTableMatch::Field(index) if indexing != HpackIndexing::Never => {
                return integer::encode(index, 0x80, 7, out);
            }
            static_table::StaticTableMatch::Field(place) | static_table::StaticTableMatch::Name(place) => index = place,
            static_table::StaticTableMatch::Nothing => {}
        }
        let (pattern, prefix) = match indexing {
            HpackIndexing::Add => (0x40, 6),
            HpackIndexing::Skip => (0, 4),
            HpackIndexing::Never => (0x10, 4),
        };
        integer::encode(index, pattern, prefix, out);
        if index == 0 {
            string(name, out);
        }
        string(value, out);
        if indexing == HpackIndexing::Add {
            self.table.insert(name, value);
        }
    }
}

/// Appends a string, Huffman-coded if that is shorter.
fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::encode(coded as u32, 0x80, 7, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u32, 0, 7, out);
        out.extend_from_slice(text);
    }
}
