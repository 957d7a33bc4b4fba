//! Encodes fields into blocks (RFC 7541 §6, §7.1).

use super::dynamic_table::DynamicTable;
use super::{huffman, integer, static_table};
use alloc::vec::Vec;

/// The use of HPACK's dynamic table for a field that is encoded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HpackIndexing {
    /// Adds the field to the dynamic table, because the field will occur again.
    Add,
    /// Does not add the field to the dynamic table, because it would only evict others. If a table
    /// contains the field already, its index is sent.
    Skip,
    /// Does not add the field to the dynamic table, and forbids intermediaries to add it. Use this
    /// for secrets, which the lengths of compressed blocks could reveal (RFC 7541 §7.1).
    Never,
}

/// The sending end of HPACK: an encoder with its dynamic table.
#[derive(Debug)]
pub struct HpackEncoder {
    table: DynamicTable,
    /// The largest size in bytes that the dynamic table may have, even if the peer allows more.
    own: u32,
    /// The smallest size of the dynamic table that was set since the last header block; the next
    /// block must announce it (RFC 7541 §4.2).
    lowest: u32,
    changed: bool,
}

/// The size in bytes of a dynamic table before any SETTINGS (RFC 9113 §6.5.2).
const INITIAL: u32 = 4096;

impl HpackEncoder {
    /// Creates an encoder. `own` is the largest size in bytes of its dynamic table; the peer may
    /// make the table smaller.
    pub fn new(own: u32) -> HpackEncoder {
        let size = own.min(INITIAL);
        HpackEncoder { table: DynamicTable::new(size as usize), own, lowest: size, changed: size < INITIAL }
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

    /// Begins a header block. Every block that was begun must be sent, in order.
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

    /// Appends a field to the header block in `out`. `name` must be in lower case.
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

/// Appends a string literal (RFC 7541 §5.2), Huffman-coded if that is shorter.
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
