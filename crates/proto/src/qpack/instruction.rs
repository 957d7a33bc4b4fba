//! Instructions on the encoder stream and the decoder stream (RFC 9204 §4.3, §4.4).

use super::{QpackFault, integer};
use crate::huffman;
use alloc::vec::Vec;

/// The factor by which an encoded string may be longer than the capacity of the dynamic table. The
/// longest Huffman code needs 30 bits for a byte, so that four encoded bytes can stand for one.
const MAX_CODING_FACTOR: usize = 4;

/// A string in an instruction, not decoded yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct InstructionString<'a> {
    coded: &'a [u8],
    huffman: bool,
}

impl InstructionString<'_> {
    pub(super) fn decode(&self, out: &mut Vec<u8>) -> Result<(), QpackFault> {
        if self.huffman {
            return Ok(huffman::decode(self.coded, out)?);
        }
        out.extend_from_slice(self.coded);
        Ok(())
    }
}

/// The name of an entry to insert into the dynamic table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum InsertedFieldName<'a> {
    /// The name is that of the static entry with this index.
    Static(u64),
    /// The name is that of the dynamic entry with this index; 0 is the newest.
    Dynamic(u64),
    Literal(InstructionString<'a>),
}

/// An instruction of the encoder: a change of the dynamic table (RFC 9204 §4.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum EncoderInstruction<'a> {
    Capacity(u64),
    Insert {
        name: InsertedFieldName<'a>,
        value: InstructionString<'a>,
    },
    /// Inserts a copy of the dynamic entry with this index; 0 is the newest.
    Duplicate(u64),
}

/// Removes an instruction of the encoder stream from the front of `input` and returns it. Fails
/// with [`QpackFault::Truncated`] if the instruction is incomplete. `capacity` is the present
/// capacity of the dynamic table in bytes, which limits the length of strings.
pub(super) fn encoder_instruction<'a>(
    input: &mut &'a [u8],
    capacity: usize,
) -> Result<EncoderInstruction<'a>, QpackFault> {
    let &first = input.first().ok_or(QpackFault::Truncated)?;
    Ok(match first {
        0x80.. => {
            let index = integer(input, 6)?;
            let name =
                if first & 0x40 != 0 { InsertedFieldName::Static(index) } else { InsertedFieldName::Dynamic(index) };
            EncoderInstruction::Insert { name, value: string(input, 7, capacity)? }
        }
        0x40.. => {
            let name = InsertedFieldName::Literal(string(input, 5, capacity)?);
            EncoderInstruction::Insert { name, value: string(input, 7, capacity)? }
        }
        0x20.. => EncoderInstruction::Capacity(integer(input, 5)?),
        _ => EncoderInstruction::Duplicate(integer(input, 5)?),
    })
}

fn string<'a>(input: &mut &'a [u8], prefix: u32, capacity: usize) -> Result<InstructionString<'a>, QpackFault> {
    let &first = input.first().ok_or(QpackFault::Truncated)?;
    let length = integer(input, prefix)?;
    let huffman = first & 1 << prefix != 0;
    let limit = if huffman { capacity * MAX_CODING_FACTOR } else { capacity };
    // Before any of it is buffered.
    let length = usize::try_from(length).ok().filter(|&length| length <= limit).ok_or(QpackFault::EntryTooLarge)?;
    let (coded, behind) = input.split_at_checked(length).ok_or(QpackFault::Truncated)?;
    *input = behind;
    Ok(InstructionString { coded, huffman })
}

/// An instruction of the decoder, sent back to the encoder (RFC 9204 §4.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DecoderInstruction {
    /// The decoder has decoded a field section of the stream with this identifier.
    SectionAcknowledgment(u64),
    /// The decoder will decode no more field sections of the stream with this identifier. Those
    /// that it has acknowledged are already decoded.
    StreamCancellation(u64),
    /// The decoder has received this number of insertions into the dynamic table since its last
    /// acknowledgement.
    InsertCountIncrement(u64),
}

/// Removes an instruction of the decoder stream from the front of `input` and returns it. Fails
/// with [`QpackFault::Truncated`] if the instruction is incomplete.
pub(super) fn decoder_instruction(input: &mut &[u8]) -> Result<DecoderInstruction, QpackFault> {
    let &first = input.first().ok_or(QpackFault::Truncated)?;
    Ok(match first {
        0x80.. => DecoderInstruction::SectionAcknowledgment(integer(input, 7)?),
        0x40.. => DecoderInstruction::StreamCancellation(integer(input, 6)?),
        _ => DecoderInstruction::InsertCountIncrement(integer(input, 6)?),
    })
}
