//! From fields to blocks (RFC 7541 §6, §7.1).

use super::table::Table;
use super::{fixed, huffman, integer};
use alloc::vec::Vec;

/// May a field enter the table?
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Indexing {
    /// Yes: it will come again.
    Add,
    /// No: it would only push others out. (If a table has it already, its index is sent.)
    Skip,
    /// No, and no intermediary may put it there either: it is a secret whose value could be guessed from the lengths of
    /// blocks (RFC 7541 §7.1).
    Never,
}

/// The sending half.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The largest table we are willing to hold, whatever the peer offers.
    own: u32,
    /// The smallest size since the last block, and whether a change has to be announced (RFC 7541 §4.2).
    lowest: u32,
    changed: bool,
}

/// The size of a table before any SETTINGS (RFC 9113 §6.5.2).
const INITIAL: u32 = 4096;

impl Encoder {
    /// `own` is the most that the dynamic table may take here, in bytes; the peer may make it smaller.
    pub fn new(own: u32) -> Encoder {
        let size = own.min(INITIAL);
        Encoder { table: Table::new(size as usize), own, lowest: size, changed: size < INITIAL }
    }

    /// The peer's `SETTINGS_HEADER_TABLE_SIZE`. The change goes with the next block.
    pub fn set_peer_limit(&mut self, limit: u32) {
        let size = limit.min(self.own);
        if size as usize != self.table.max() {
            self.table.resize(size as usize);
            self.lowest = if self.changed { self.lowest.min(size) } else { size };
            self.changed = true;
        }
    }

    /// Begins a block. Every block that is begun has to be sent, in order.
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

    /// Appends one field. `name` has to be in lower case already.
    pub fn encode(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let mut index = 0;
        // The dynamic table first: it has most fields of a further request, and it is the shorter one.
        for (place, (known, known_value)) in self.table.iter().enumerate() {
            if known == name {
                let here = (fixed::TABLE.len() + place) as u32 + 1;
                if known_value == value && indexing != Indexing::Never {
                    return integer::encode(here, 0x80, 7, out);
                }
                if index == 0 {
                    index = here;
                }
            }
        }
        match fixed::find(name, value) {
            fixed::Found::Field(index) if indexing != Indexing::Never => return integer::encode(index, 0x80, 7, out),
            fixed::Found::Field(place) | fixed::Found::Name(place) => index = place,
            fixed::Found::Nothing => {}
        }
        let (pattern, prefix) = match indexing {
            Indexing::Add => (0x40, 6),
            Indexing::Skip => (0, 4),
            Indexing::Never => (0x10, 4),
        };
        integer::encode(index, pattern, prefix, out);
        if index == 0 {
            string(name, out);
        }
        string(value, out);
        if indexing == Indexing::Add {
            self.table.insert(name, value);
        }
    }
}

/// Huffman-coded where that is shorter.
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
