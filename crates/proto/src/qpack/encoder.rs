//! Encodes fields into sections (RFC 9204 §4.5), and inserts repeated fields into the peer's
//! dynamic table (§4.3).

use super::instruction::{self, DecoderInstruction};
use super::{LONGEST_INTEGER, QpackError, QpackFault, static_table};
use crate::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
use crate::field_coding::{FieldIndexing, FieldSectionEncoder, StaticTableMatch, encode_string};
use crate::prefix_integer;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The number of fields, sent once, that the encoder remembers. A field that is sent again is
/// inserted into the dynamic table.
const REMEMBERED_FIELDS: usize = 64;

/// The maximum number of field sections with dynamic entries that the peer has not acknowledged. If
/// it is reached, further sections refer to no dynamic entry. A peer that never acknowledges costs
/// 24 KiB.
const MAX_UNACKNOWLEDGED_SECTIONS: usize = 1024;

/// A field section that refers to dynamic entries, and that the peer has not acknowledged.
#[derive(Copy, Clone, Debug)]
struct UnacknowledgedSection {
    stream: u64,
    /// The number of insertions into the dynamic table that the peer must have received before the
    /// section can be decoded.
    required: u64,
    /// The lowest absolute index of a dynamic entry to which the section refers.
    lowest: u64,
}

/// The field section that is being encoded.
#[derive(Default, Debug)]
struct SectionBeingEncoded {
    lines: Vec<u8>,
    required: u64,
    lowest: Option<u64>,
    base: u64,
}

/// The sending end of QPACK: an encoder with its dynamic table.
///
/// Call [`QpackEncoder::begin_section`], then [`QpackEncoder::encode`] for each field, then
/// [`QpackEncoder::finish_section`].
#[derive(Debug)]
pub struct QpackEncoder {
    table: DynamicTable,
    /// The largest capacity in bytes that the dynamic table may have, even if the peer allows more.
    own: u32,
    /// The largest capacity in bytes that the peer allows for the dynamic table.
    peer_limit: u64,
    announced: bool,
    /// The number of insertions that the peer has acknowledged.
    known_received: u64,
    unacknowledged: VecDeque<UnacknowledgedSection>,
    open: SectionBeingEncoded,
    /// Hashes of the fields that were sent once and are not in the dynamic table.
    seen: [u32; REMEMBERED_FIELDS],
    next_seen: usize,
    instructions: Vec<u8>,
    /// The first bytes of a decoder instruction that has not arrived completely.
    partial: Vec<u8>,
}

impl QpackEncoder {
    /// Creates an encoder. `own` is the largest capacity in bytes of its dynamic table. The table
    /// is not used until [`QpackEncoder::set_peer_limit`].
    pub fn new(own: u32) -> QpackEncoder {
        QpackEncoder {
            table: DynamicTable::new(0),
            own,
            peer_limit: 0,
            announced: false,
            known_received: 0,
            unacknowledged: VecDeque::new(),
            open: SectionBeingEncoded::default(),
            seen: [0; REMEMBERED_FIELDS],
            next_seen: 0,
            instructions: Vec::new(),
            partial: Vec::new(),
        }
    }

    /// Sets the limit on the dynamic table that the peer sent in
    /// `SETTINGS_QPACK_MAX_TABLE_CAPACITY`. Call this at most once, since the setting cannot
    /// change.
    pub fn set_peer_limit(&mut self, limit: u64) {
        self.peer_limit = limit;
        self.table.resize(limit.min(u64::from(self.own)) as usize);
    }

    /// Returns the bytes to send on the client's encoder stream. The caller sends them in order and
    /// removes them from the vector.
    pub fn encoder_stream_output(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    /// Begins a field section, to which [`QpackEncoder::encode`] adds fields.
    pub fn begin_section(&mut self) {
        self.open.lines.clear();
        (self.open.required, self.open.lowest, self.open.base) = (0, None, self.known_received);
    }

    /// Adds a field to the section. `name` must be in lower case.
    pub fn encode(&mut self, name: &[u8], value: &[u8], indexing: FieldIndexing) {
        let is_secret = indexing == FieldIndexing::Never;
        let in_static = static_table::find(name, value);
        if let StaticTableMatch::Field(index) = in_static
            && !is_secret
        {
            return prefix_integer::encode(u64::from(index), 0xc0, 6, &mut self.open.lines);
        }
        let static_name = match in_static {
            StaticTableMatch::Field(index) | StaticTableMatch::Name(index) => Some(u64::from(index)),
            StaticTableMatch::Nothing => None,
        };
        match self.find(name, value) {
            Some(index) if index < self.known_received && self.may_refer_to_dynamic_table() && !is_secret => {
                let relative = self.record_reference(index);
                return prefix_integer::encode(relative, 0x80, 6, &mut self.open.lines);
            }
            None if indexing == FieldIndexing::Add => self.insert_if_repeated(name, value, static_name),
            _ => {}
        }
        if let Some(index) = static_name {
            prefix_integer::encode(index, 0x50 | u8::from(is_secret) << 5, 4, &mut self.open.lines);
        } else {
            encode_string(name, 0x20 | u8::from(is_secret) << 4, 3, &mut self.open.lines);
        }
        encode_string(value, 0, 7, &mut self.open.lines);
    }

    /// Ends the section, and appends it to `out`. The section must be sent on the QUIC stream
    /// `stream`.
    pub fn finish_section(&mut self, stream: u64, out: &mut Vec<u8>) {
        let SectionBeingEncoded { required, lowest, base, .. } = self.open;
        match lowest {
            // No entry is referred to, and the Base does not matter.
            None => out.extend_from_slice(&[0, 0]),
            Some(lowest) => {
                let range = 2 * (self.peer_limit / ENTRY_OVERHEAD as u64);
                prefix_integer::encode(required % range + 1, 0, 8, out);
                prefix_integer::encode(base - required, 0, 7, out);
                self.unacknowledged.push_back(UnacknowledgedSection { stream, required, lowest });
            }
        }
        out.extend_from_slice(&self.open.lines);
    }

    /// Returns the absolute index of the newest dynamic entry with this name and value; `None` if
    /// there is none. An entry with the same name but another value is not used, although QPACK can
    /// refer to a name alone. The reference would delay the eviction of that entry, whose value may
    /// never be sent again.
    fn find(&self, name: &[u8], value: &[u8]) -> Option<u64> {
        let place = self.table.iter().position(|entry| entry == (name, value))?;
        Some(self.table.insert_count() - 1 - place as u64)
    }

    fn may_refer_to_dynamic_table(&self) -> bool {
        self.unacknowledged.len() < MAX_UNACKNOWLEDGED_SECTIONS
    }

    /// Records that the section refers to the entry with this absolute index, and returns its index
    /// relative to the section's Base.
    fn record_reference(&mut self, index: u64) -> u64 {
        self.open.required = self.open.required.max(index + 1);
        self.open.lowest = Some(self.open.lowest.map_or(index, |lowest| lowest.min(index)));
        self.open.base - 1 - index
    }

    /// Inserts a field into the table if it is sent for the second time and its insertion evicts no
    /// entry that is in use. `static_name` is the index of a static entry with the same name;
    /// `None` if there is none.
    fn insert_if_repeated(&mut self, name: &[u8], value: &[u8], static_name: Option<u64>) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if size > self.table.max() {
            return;
        }
        let hash = hash(name, value);
        if !self.seen.contains(&hash) {
            self.seen[self.next_seen] = hash;
            self.next_seen = (self.next_seen + 1) % REMEMBERED_FIELDS;
            return;
        }
        // RFC 9204 §2.1.1: an entry that is evicted must be acknowledged, and no unacknowledged
        // section may refer to it.
        let in_use = self.unacknowledged.iter().map(|section| section.lowest).chain(self.open.lowest);
        let first_in_use = in_use.fold(self.known_received, u64::min);
        if self.table.first_index_after_insert(size) > first_in_use {
            return;
        }
        if !self.announced {
            self.announced = true;
            prefix_integer::encode(self.table.max() as u64, 0x20, 5, &mut self.instructions);
        }
        match static_name {
            Some(index) => prefix_integer::encode(index, 0xc0, 6, &mut self.instructions),
            None => encode_string(name, 0x40, 5, &mut self.instructions),
        }
        encode_string(value, 0, 7, &mut self.instructions);
        self.table.insert(name, value);
    }

    /// Processes the instructions in `input`, the next bytes of the peer's decoder stream, and
    /// returns the number of Stream Cancellations. All input is consumed. After an error, the
    /// connection must end.
    pub fn on_decoder_stream(&mut self, input: &[u8]) -> Result<u32, QpackError> {
        self.process_instructions(input).map_err(QpackError::DecoderStream)
    }

    fn process_instructions(&mut self, mut input: &[u8]) -> Result<u32, QpackFault> {
        let mut cancellations = 0;
        while !self.partial.is_empty()
            && let Some((&byte, behind)) = input.split_first()
        {
            input = behind;
            self.partial.push(byte);
            debug_assert!(self.partial.len() <= LONGEST_INTEGER as usize + 2);
            match instruction::decoder_instruction(&mut &self.partial[..]) {
                Ok(instruction) => {
                    self.partial.clear();
                    cancellations += self.apply(instruction)?;
                }
                Err(QpackFault::Truncated) => {}
                Err(fault) => return Err(fault),
            }
        }
        while !input.is_empty() {
            match instruction::decoder_instruction(&mut input) {
                Ok(instruction) => cancellations += self.apply(instruction)?,
                Err(QpackFault::Truncated) => {
                    self.partial.extend_from_slice(input);
                    break;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(cancellations)
    }

    /// Executes an instruction of the peer's decoder. Returns the number of Stream Cancellations: 1
    /// if the instruction is one, otherwise 0.
    fn apply(&mut self, instruction: DecoderInstruction) -> Result<u32, QpackFault> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment(stream) => {
                let place = self.unacknowledged.iter().position(|section| section.stream == stream);
                let section = place.and_then(|place| self.unacknowledged.remove(place));
                let section = section.ok_or(QpackFault::Acknowledgement { stream })?;
                self.known_received = self.known_received.max(section.required);
            }
            DecoderInstruction::StreamCancellation(stream) => {
                self.unacknowledged.retain(|section| section.stream != stream);
                return Ok(1);
            }
            DecoderInstruction::InsertCountIncrement(increment) => {
                let missing = self.table.insert_count() - self.known_received;
                if increment == 0 || increment > missing {
                    return Err(QpackFault::Increment { increment });
                }
                self.known_received += increment;
            }
        }
        Ok(0)
    }
}

impl FieldSectionEncoder for QpackEncoder {
    fn push_field(&mut self, name: &[u8], value: &[u8], indexing: FieldIndexing) {
        self.encode(name, value, indexing);
    }
}

/// Returns a 32-bit FNV-1a hash of the field's name and value.
fn hash(name: &[u8], value: &[u8]) -> u32 {
    let bytes = name.iter().chain(core::iter::once(&0)).chain(value);
    bytes.fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
